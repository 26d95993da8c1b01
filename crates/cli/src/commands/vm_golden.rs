// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab vm --golden FILE`: has a kernel or a scheduler changed a decision?
//!
//! A file holds either every decision with its time, for one build of the guest, or the order of
//! turns, for all builds; its first line says which.

use super::vm::VmArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use crate::output;
use schedlab_lab::run_and_check;
use schedlab_model::TraceSink;
use schedlab_run::file::write_whole;
use schedlab_run::{RunRequest, RunResult};
use schedlab_vm::golden::{self, Decisions, Entry, Goldens, Verdict};
use schedlab_vm::golden_file::GoldenEntry as _;
use schedlab_vm::turns::{Turns, TurnsEntry, TurnsFile};
use schedlab_vm::{Clock, VmLane};
use std::path::{Path, PathBuf};

/// Largest file of goldens.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What is collected of a run.
#[derive(Debug, Default)]
pub struct Seen {
    decisions: Decisions,
    turns: Turns,
}

impl Seen {
    /// Collects.
    pub fn sink(&mut self) -> impl TraceSink + '_ {
        (&mut self.decisions, &mut self.turns)
    }
}

/// What the file holds.
enum Kind {
    Decisions(Goldens),
    Turns(TurnsFile),
}

impl Kind {
    fn read(text: &str) -> Result<Self, String> {
        if text.contains(TurnsEntry::FORMAT) {
            return TurnsFile::read(text).map(Self::Turns);
        }
        Goldens::read(text).map(Self::Decisions)
    }
}

/// A file of goldens in use.
pub struct Golden {
    path: PathBuf,
    kind: Kind,
    blesses: bool,
    /// What differs, a line a run.
    differences: Vec<String>,
}

impl Golden {
    /// Reads the file; with `--bless` it need not be there.
    pub fn open(path: &Path, args: &VmArgs) -> CliResult<Self> {
        let kind = match args.bless && !path.exists() {
            true if args.turns => Kind::Turns(TurnsFile::default()),
            true => Kind::Decisions(Goldens::default()),
            false => Kind::read(&input::read_text(path, FILE_BYTES_MAX)?).map_err(|why| {
                CliError::usage_help(
                    format!("{}: {why}", path.display()),
                    "--golden FILE --bless writes such a file",
                )
            })?,
        };
        if args.bless && args.turns != matches!(kind, Kind::Turns(_)) {
            let (holds, option) = match kind {
                Kind::Turns(_) => ("turns", "bless it with --turns"),
                Kind::Decisions(_) => ("decisions", "bless it without --turns"),
            };
            return Err(CliError::usage_help(
                format!("{} holds {holds}", path.display()),
                format!("{option}, or name another file"),
            ));
        }
        Ok(Self { path: path.into(), kind, blesses: args.bless, differences: Vec::new() })
    }

    /// Compares a run with its entry. Without one it is run again, and both runs are compared.
    pub fn check(
        &mut self,
        lane: &VmLane,
        request: &RunRequest,
        run: &RunResult,
        seen: Seen,
    ) -> CliResult<()> {
        if lane.options.clock != Clock::Counted {
            return Err(CliError::usage_help(
                "--golden with the host's time",
                "no two such runs are equal: use --clock counted",
            ));
        }
        match &self.kind {
            Kind::Decisions(_) => {
                let found = Entry::of(run, seen.decisions.finish());
                self.check_decisions(lane, request, found)
            }
            Kind::Turns(_) => {
                let found = TurnsEntry::of(run, &seen.turns);
                self.check_turns(lane, request, run, found)
            }
        }
    }

    fn check_decisions(
        &mut self,
        lane: &VmLane,
        request: &RunRequest,
        found: Entry,
    ) -> CliResult<()> {
        let Kind::Decisions(goldens) = &mut self.kind else { return Ok(()) };
        let name = format!("{} under {}", found.workload, found.scheduler);
        if self.blesses {
            output::say(format!("golden: {name}: {} decisions kept", found.decisions.len()));
            goldens.bless(found);
            return Ok(());
        }
        let Some(golden) = goldens.find(&found) else {
            let others = match goldens.others(&found) {
                0 => String::new(),
                count => format!(" ({count} for another QEMU, guest, or machine)"),
            };
            return self.check_again(lane, request, &found, &name, &others);
        };
        let other = match golden.kernel == found.kernel {
            true => String::new(),
            false => format!(" ({} instead of {})", found.kernel, golden.kernel),
        };
        let count = found.decisions.len();
        match golden::compare(golden, &found) {
            Verdict::Same => output::say(format!("golden: {name}: the same {count} decisions")),
            Verdict::Moved(ns) => output::say(format!(
                "golden: {name}{other}: the same {count} decisions, at times that moved by up to \
                 {ns} ns"
            )),
            Verdict::Different(text) => self.differences.push(format!("{name}{other}: {text}")),
        }
        Ok(())
    }

    fn check_again(
        &mut self,
        lane: &VmLane,
        request: &RunRequest,
        found: &Entry,
        name: &str,
        others: &str,
    ) -> CliResult<()> {
        let mut again = Decisions::default();
        let run = run_and_check(lane, request, &mut again)?;
        let again = Entry::of(&run, again.finish());
        match golden::compare(found, &again) {
            Verdict::Different(text) => {
                self.differences.push(format!("{name}: two runs differ: {text}"));
            }
            _ => output::say(format!(
                "golden: {name}: none for these conditions{others}; run twice, both runs equal \
                 ({} decisions)",
                found.decisions.len()
            )),
        }
        Ok(())
    }

    fn check_turns(
        &mut self,
        lane: &VmLane,
        request: &RunRequest,
        run: &RunResult,
        found: TurnsEntry,
    ) -> CliResult<()> {
        let Kind::Turns(file) = &mut self.kind else { return Ok(()) };
        let name = format!("{} under {}", run.workload, found.scheduler);
        let count = found.len();
        if self.blesses {
            output::say(format!("golden: {name}: {count} turns kept"));
            file.bless(found);
            return Ok(());
        }
        if let Some(golden) = file.find(&found) {
            match golden.difference(&found) {
                None => output::say(format!("golden: {name}: the same {count} turns")),
                Some(text) => self.differences.push(format!("{name}: {text}")),
            }
            return Ok(());
        }
        let why = file.why_none(&found);
        let again = run_and_check(lane, request, &mut schedlab_model::trace::NullSink)?;
        if run.machine.setting("vm.trace") == again.machine.setting("vm.trace") {
            output::say(format!(
                "golden: {name}: {why}; run twice, both runs equal ({count} turns)"
            ));
        } else {
            self.differences.push(format!("{name}: {why}; two runs have different traces"));
        }
        Ok(())
    }

    /// Writes the file, or says what differs.
    pub fn finish(self) -> CliResult<()> {
        if self.blesses {
            let text = match &self.kind {
                Kind::Decisions(goldens) => goldens.text(),
                Kind::Turns(file) => file.text(),
            };
            return Ok(write_whole(&self.path, text.as_bytes())?);
        }
        if self.differences.is_empty() {
            return Ok(());
        }
        Err(CliError::new(
            Exit::Check,
            format!("not as in {}: {}", self.path.display(), self.differences.join("; ")),
            "if the change is wanted: the same command with --bless",
        ))
    }
}
