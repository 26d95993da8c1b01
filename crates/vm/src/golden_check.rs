// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares runs with a file of goldens: has a kernel or a scheduler changed a decision?
//!
//! A file has either every decision with its time, for one build of the guest, or the order of
//! turns, for all builds. Its first line names the kind.

use crate::VmLane;
use crate::golden::{self, Decisions, Entry, Goldens, Verdict};
use crate::golden_file::GoldenEntry as _;
use crate::turns::{Turns, TurnsEntry, TurnsFile};
use schedlab_model::TraceSink;
use schedlab_model::trace::NullSink;
use schedlab_run::{LaneError, RunRequest, RunResult, run_and_check};

/// The data collected of a run.
#[derive(Debug, Default)]
pub struct Seen {
    decisions: Decisions,
    turns: Turns,
}

impl Seen {
    /// Returns a sink that collects them.
    pub fn sink(&mut self) -> impl TraceSink + '_ {
        (&mut self.decisions, &mut self.turns)
    }
}

/// The content of a file of goldens.
#[derive(Debug)]
pub enum GoldenKind {
    /// Every decision with its time.
    Decisions(Goldens),
    /// The order in which tasks ran.
    Turns(TurnsFile),
}

/// The result of a comparison, as a line for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Compared {
    /// Equal to its golden, or, without one, to its repetition.
    Same(String),
    /// Different.
    Different(String),
}

impl GoldenKind {
    /// Reads a file's text.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.contains(TurnsEntry::FORMAT) {
            return TurnsFile::read(text).map(Self::Turns);
        }
        Goldens::read(text).map(Self::Decisions)
    }

    /// The file's text.
    pub fn text(&self) -> String {
        match self {
            Self::Decisions(goldens) => goldens.text(),
            Self::Turns(file) => file.text(),
        }
    }

    /// Stores a run as the golden one. Returns a line that describes what was stored.
    pub fn bless(&mut self, run: &RunResult, seen: Seen) -> String {
        match self {
            Self::Decisions(goldens) => {
                let found = Entry::of(run, seen.decisions.finish());
                let (name, count) = (name_of(&found), found.decisions.len());
                goldens.bless(found);
                format!("{name}: {count} decisions kept")
            }
            Self::Turns(file) => {
                let found = TurnsEntry::of(run, &seen.turns);
                let (name, count) = (turns_name(run, &found), found.len());
                file.bless(found);
                format!("{name}: {count} turns kept")
            }
        }
    }

    /// Compares a run with its entry. Without an entry it repeats the run, and compares both runs.
    pub fn compare(
        &self,
        lane: &VmLane,
        request: &RunRequest,
        run: &RunResult,
        seen: Seen,
    ) -> Result<Compared, LaneError> {
        match self {
            Self::Decisions(goldens) => {
                let found = Entry::of(run, seen.decisions.finish());
                compare_decisions(goldens, lane, request, &found)
            }
            Self::Turns(file) => {
                let found = TurnsEntry::of(run, &seen.turns);
                compare_turns(file, lane, request, run, &found)
            }
        }
    }
}

fn name_of(found: &Entry) -> String {
    format!("{} under {}", found.workload, found.scheduler)
}

fn turns_name(run: &RunResult, found: &TurnsEntry) -> String {
    format!("{} under {}", run.workload, found.scheduler)
}

fn compare_decisions(
    goldens: &Goldens,
    lane: &VmLane,
    request: &RunRequest,
    found: &Entry,
) -> Result<Compared, LaneError> {
    let name = name_of(found);
    let Some(golden) = goldens.find(found) else {
        let others = match goldens.others(found) {
            0 => String::new(),
            count => format!(" ({count} for another QEMU, guest, or machine)"),
        };
        return compare_again(lane, request, found, &others);
    };
    let other = match golden.kernel == found.kernel {
        true => String::new(),
        false => format!(" ({} instead of {})", found.kernel, golden.kernel),
    };
    let count = found.decisions.len();
    Ok(match golden::compare(golden, found) {
        Verdict::Same => Compared::Same(format!("{name}: the same {count} decisions")),
        Verdict::Moved(ns) => Compared::Same(format!(
            "{name}{other}: the same {count} decisions, at times that moved by up to {ns} ns"
        )),
        Verdict::Different(text) => Compared::Different(format!("{name}{other}: {text}")),
    })
}

/// Compares a run without a golden with its repetition.
fn compare_again(
    lane: &VmLane,
    request: &RunRequest,
    found: &Entry,
    others: &str,
) -> Result<Compared, LaneError> {
    let name = name_of(found);
    let mut again = Decisions::default();
    let run = run_and_check(lane, request, &mut again)?;
    let again = Entry::of(&run, again.finish());
    Ok(match golden::compare(found, &again) {
        Verdict::Different(text) => Compared::Different(format!("{name}: two runs differ: {text}")),
        _ => Compared::Same(format!(
            "{name}: none for these conditions{others}; run twice, both runs equal ({} decisions)",
            found.decisions.len()
        )),
    })
}

fn compare_turns(
    file: &TurnsFile,
    lane: &VmLane,
    request: &RunRequest,
    run: &RunResult,
    found: &TurnsEntry,
) -> Result<Compared, LaneError> {
    let name = turns_name(run, found);
    let count = found.len();
    if let Some(golden) = file.find(found) {
        return Ok(match golden.difference(found) {
            None => Compared::Same(format!("{name}: the same {count} turns")),
            Some(text) => Compared::Different(format!("{name}: {text}")),
        });
    }
    let why = file.why_none(found);
    let again = run_and_check(lane, request, &mut NullSink)?;
    Ok(match run.machine.setting("vm.trace") == again.machine.setting("vm.trace") {
        true => {
            Compared::Same(format!("{name}: {why}; run twice, both runs equal ({count} turns)"))
        }
        false => Compared::Different(format!("{name}: {why}; two runs have different traces")),
    })
}
