// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab vm --golden FILE`: has a kernel or a scheduler changed a decision?

use super::vm::VmArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use crate::output::{self, AtomicFile};
use schedlab_lab::{RunRequest, RunResult, run_and_check};
use schedlab_vm::golden::{self, Decisions, Entry, Goldens, Verdict};
use schedlab_vm::{Clock, VmLane};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Largest file of goldens.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A file of goldens in use.
pub struct Golden {
    path: PathBuf,
    goldens: Goldens,
    blesses: bool,
    /// What differs, a line a run.
    differences: Vec<String>,
}

impl Golden {
    /// Reads the file; with `--bless` it need not be there.
    pub fn open(path: &Path, args: &VmArgs) -> CliResult<Self> {
        let goldens = match args.bless && !path.exists() {
            true => Goldens::default(),
            false => Goldens::read(&input::read_text(path, FILE_BYTES_MAX)?).map_err(|why| {
                CliError::usage_help(
                    format!("{}: {why}", path.display()),
                    "--golden FILE --bless writes such a file",
                )
            })?,
        };
        Ok(Self { path: path.into(), goldens, blesses: args.bless, differences: Vec::new() })
    }

    /// Compares a run with its entry. Without one it is run again, and both runs are compared.
    pub fn check(
        &mut self,
        lane: &VmLane,
        request: &RunRequest,
        run: &RunResult,
        decisions: Decisions,
    ) -> CliResult<()> {
        if lane.options.clock != Clock::Counted {
            return Err(CliError::usage_help(
                "--golden with the host's time",
                "no two such runs are equal: use --clock counted",
            ));
        }
        let found = Entry::of(run, decisions.finish());
        let name = format!("{} under {}", found.workload, found.scheduler);
        if self.blesses {
            output::say(format!("golden: {name}: {} decisions kept", found.decisions.len()));
            self.goldens.bless(found);
            return Ok(());
        }
        let Some(golden) = self.goldens.find(&found) else {
            return self.check_again(lane, request, &found, &name);
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
    ) -> CliResult<()> {
        let mut again = Decisions::default();
        let run = run_and_check(lane, request, &mut again)?;
        let again = Entry::of(&run, again.finish());
        let others = match self.goldens.others(found) {
            0 => String::new(),
            count => format!(" ({count} for another QEMU, guest, or machine)"),
        };
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

    /// Writes the file, or says what differs.
    pub fn finish(self) -> CliResult<()> {
        if self.blesses {
            let mut file = AtomicFile::create(&self.path)?;
            file.write_all(self.goldens.text().as_bytes())
                .map_err(|error| CliError::file("write", &self.path, &error))?;
            return file.commit();
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
