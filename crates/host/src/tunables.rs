// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of the kernel that tasks set while they run.
//!
//! They are the whole machine's. The caller reads the present values before it starts the launcher,
//! which opens the files with root's rights, so that tasks can write them. The launcher writes the
//! old values back when the run ends; if it was killed, the caller does.

use crate::error::HostError;
use schedlab_model::program::{SchedFeature, SchedTunable};
use schedlab_model::{Op, Workload};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

/// Files here take writes of root only, also if root has opened them.
const SYSCTLS: &str = "/proc/sys";

/// A tunable that the run changes.
#[derive(Debug)]
struct Changed {
    tunable: SchedTunable,
    /// Its text before the run.
    before: String,
    /// Open in the launcher and the tasks.
    file: Option<File>,
}

/// The tunables that the tasks of a run set.
#[derive(Debug, Default)]
pub struct Tunables(Vec<Changed>);

fn path(tunable: SchedTunable) -> PathBuf {
    let (dir, name) = tunable.file();
    PathBuf::from(dir).join(name)
}

/// What restores `tunable`, of what its file held before the run; `None`: this kernel does not have
/// the feature.
fn word_before(tunable: SchedTunable, text: &str) -> Option<String> {
    let SchedTunable::Feature(feature) = tunable else { return Some(text.trim().to_owned()) };
    let is_it = |word: &&str| SchedFeature::of_word(word).is_some_and(|(own, _)| own == feature);
    text.split_whitespace().find(is_it).map(str::to_owned)
}

/// What restores `tunable` after the run.
fn read(tunable: SchedTunable) -> Result<String, HostError> {
    let (path, name) = (path(tunable), tunable.name());
    let unavailable = |why: String| {
        HostError::Unavailable(format!(
            "tunable {name}: {}: {why}: this needs root, debugfs at /sys/kernel/debug and a kernel \
             with this tunable",
            path.display()
        ))
    };
    if path.starts_with(SYSCTLS) {
        return Err(HostError::Unavailable(format!(
            "tunable {name}: {}: the kernel checks who writes a sysctl at each write, and tasks \
             have no rights: set it before the run (`schedlab vm --sysctl`), or simulate the \
             workload",
            path.display()
        )));
    }
    let text = fs::read_to_string(&path).map_err(|error| unavailable(error.to_string()))?;
    word_before(tunable, &text)
        .ok_or_else(|| unavailable("the kernel does not have this feature".into()))
}

impl Tunables {
    /// Reads the present values of what tasks of `workload` set.
    ///
    /// # Errors
    /// If a file cannot be read: this kernel or this user cannot set the tunable.
    pub fn read(workload: &Workload) -> Result<Self, HostError> {
        let mut found: Vec<Changed> = Vec::new();
        for op in workload.tasks.iter().flat_map(|task| &task.program.ops) {
            let Op::Tune { tunable, .. } = op else { continue };
            if found.iter().any(|known| known.tunable == *tunable) {
                continue;
            }
            let before = read(*tunable)?;
            found.push(Changed { tunable: *tunable, before, file: None });
        }
        Ok(Self(found))
    }

    /// Opens the files, as root.
    pub fn open(&mut self) -> Result<(), String> {
        for changed in &mut self.0 {
            let path = path(changed.tunable);
            let file = OpenOptions::new().write(true).open(&path);
            changed.file = Some(file.map_err(|error| format!("{}: {error}", path.display()))?);
        }
        Ok(())
    }

    /// Sets a tunable, as the calling task.
    pub fn set(&self, tunable: SchedTunable, value: u64) -> io::Result<()> {
        let changed = self.0.iter().find(|changed| changed.tunable == tunable);
        match changed.and_then(|changed| changed.file.as_ref()) {
            // These files cannot seek.
            Some(mut file) => file.write_all(tunable.text(value).as_bytes()),
            None => Ok(()),
        }
    }

    /// Writes the old values back. Without the right to do so nothing was changed either.
    pub fn restore(&self) {
        for changed in &self.0 {
            let _ = fs::write(path(changed.tunable), &changed.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_restored_by_its_word() {
        let parity = SchedTunable::Feature(SchedFeature::RunToParity);
        let text = "PLACE_LAG NO_RUN_TO_PARITY WAKEUP_PREEMPTION\n";
        assert_eq!(word_before(parity, text).as_deref(), Some("NO_RUN_TO_PARITY"));
        let lag = SchedTunable::Feature(SchedFeature::PlaceLag);
        assert_eq!(word_before(lag, text).as_deref(), Some("PLACE_LAG"));
        let absent = SchedTunable::Feature(SchedFeature::LastBuddy);
        assert_eq!(word_before(absent, text), None);
        assert_eq!(word_before(SchedTunable::RtRuntime, "950000\n").as_deref(), Some("950000"));
    }
}
