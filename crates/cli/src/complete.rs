// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shell completion for names of schedulers, workloads, machines, studies and kernels.
//!
//! The shell asks the program itself, so the names are those of the installed version.

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use schedlab_sched::registry::{self, SCHEDULERS};
use schedlab_sim::machine::PRESETS;
use schedlab_vm::kernel::series;
use schedlab_workload::BUILTINS;
use std::ffi::OsStr;

/// Names of schedulers; and files, if the word begins as a path.
pub fn schedulers(current: &OsStr) -> Vec<CompletionCandidate> {
    let known = SCHEDULERS.iter().map(|found| (found.name.as_ref(), found.summary.as_ref()));
    let aliases = registry::ALIASES.iter().map(|(alias, name)| (*alias, *name));
    of_list(current, known.chain(aliases))
}

/// Names of the rules of `check`.
pub fn rules(current: &OsStr) -> Vec<CompletionCandidate> {
    of_list(current, schedlab_check::RULES.iter().map(|rule| (rule.name, rule.statement)))
}

/// Names of built-in workloads, and files.
pub fn workloads(current: &OsStr) -> Vec<CompletionCandidate> {
    let known = BUILTINS.iter().map(|found| (found.name, found.summary));
    with_files(current, of_list(current, known))
}

/// Names of machines, and files.
pub fn machines(current: &OsStr) -> Vec<CompletionCandidate> {
    let known = PRESETS.iter().map(|(name, _)| (*name, ""));
    with_files(current, of_list(current, known.chain([("host", "a model of this machine")])))
}

/// Names of measures.
pub fn measures(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = schedlab_run::values::measure_names();
    of_list(current, names.iter().map(|name| (name.as_str(), "")))
}

/// Names of kernels for guests, and files.
pub fn kernels(current: &OsStr) -> Vec<CompletionCandidate> {
    let all: Vec<_> = series::all().map(|found| (found.name(), found.image.about)).collect();
    let known = all.iter().map(|(name, about)| (name.as_str(), *about));
    with_files(current, of_list(current, known))
}

/// The names that complete the last word of a list with commas.
fn of_list<'n>(
    current: &OsStr,
    names: impl Iterator<Item = (&'n str, &'n str)>,
) -> Vec<CompletionCandidate> {
    let Some(text) = current.to_str() else { return Vec::new() };
    let (before, begun) = match text.rfind(',') {
        Some(comma) => text.split_at(comma + 1),
        None => ("", text),
    };
    let fitting = names.filter(|(name, _)| name.starts_with(begun));
    let candidate = |(name, about): (&str, &str)| {
        let help = (!about.is_empty()).then(|| about.to_owned().into());
        CompletionCandidate::new(format!("{before}{name}")).help(help)
    };
    fitting.map(candidate).collect()
}

fn with_files(
    current: &OsStr,
    mut candidates: Vec<CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    candidates.extend(PathCompleter::any().complete(current));
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(candidates: &[CompletionCandidate]) -> Vec<String> {
        candidates.iter().map(|found| found.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_last_name_of_a_list_is_completed() {
        let found = values(&schedulers(OsStr::new("rr,linux-6.1")));
        let versions = ["6.1", "6.12.0", "6.12", "6.18.44", "6.18"];
        assert_eq!(found, versions.map(|version| format!("rr,linux-{version}")));
        assert_eq!(values(&schedulers(OsStr::new("eev"))), ["eevdf"]);
        assert!(values(&workloads(OsStr::new("hog"))).contains(&"hogs".to_owned()));
        assert!(values(&machines(OsStr::new("ho"))).contains(&"host".to_owned()));
        assert!(values(&kernels(OsStr::new("6.1,6.1"))).contains(&"6.1,6.12".to_owned()));
    }
}
