// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of the kernel that tasks set while they run.
//!
//! They are the whole machine's. The caller reads the present values before it starts the launcher,
//! which opens the files with root's rights, so that tasks can write them. The launcher writes the
//! old values back when the run ends; if it was killed, the caller does.

use crate::error::HostError;
use schedlab_model::program::SchedTunable;
use schedlab_model::{Op, Workload};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

const DIR: &str = "/sys/kernel/debug/sched";

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
    PathBuf::from(DIR).join(tunable.file())
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
            let before = fs::read_to_string(path(*tunable)).map_err(|error| {
                HostError::Unavailable(format!(
                    "tunable {}: {}: {error}: this needs root, debugfs at /sys/kernel/debug and a \
                     kernel with this tunable",
                    tunable.name(),
                    path(*tunable).display()
                ))
            })?;
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
            Some(mut file) => file.write_all(value.to_string().as_bytes()),
            None => Ok(()),
        }
    }

    /// Writes the old values back. Without the right to do so nothing was changed either.
    pub fn restore(&self) {
        for changed in &self.0 {
            let _ = fs::write(path(changed.tunable), changed.before.trim());
        }
    }
}
