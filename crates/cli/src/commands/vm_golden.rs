// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab vm --golden FILE`: checks whether a kernel or a scheduler decides differently than
//! before.

use super::vm::VmArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::output;
use schedlab_run::file::{read_text, write_whole};
use schedlab_run::{RunRequest, RunResult};
use schedlab_vm::golden::Goldens;
use schedlab_vm::golden_check::{Compared, GoldenKind, Seen};
use schedlab_vm::turns::TurnsFile;
use schedlab_vm::{Clock, VmLane};
use std::path::{Path, PathBuf};

/// Size limit for a file of goldens.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A file of goldens in use.
pub struct Golden {
    path: PathBuf,
    kind: GoldenKind,
    blesses: bool,
    /// The differences, one line for each run.
    differences: Vec<String>,
}

impl Golden {
    /// Reads the file; with `--bless` it need not exist.
    pub fn open(path: &Path, args: &VmArgs) -> CliResult<Self> {
        let kind = match args.bless && !path.exists() {
            true if args.turns => GoldenKind::Turns(TurnsFile::default()),
            true => GoldenKind::Decisions(Goldens::default()),
            false => GoldenKind::read(&read_text(path, FILE_BYTES_MAX)?).map_err(|why| {
                CliError::usage_help(
                    format!("{}: {why}", path.display()),
                    "--golden FILE --bless writes such a file",
                )
            })?,
        };
        if args.bless && args.turns != matches!(kind, GoldenKind::Turns(_)) {
            let (holds, option) = match kind {
                GoldenKind::Turns(_) => ("turns", "bless it with --turns"),
                GoldenKind::Decisions(_) => ("decisions", "bless it without --turns"),
            };
            return Err(CliError::usage_help(
                format!("{} holds {holds}", path.display()),
                format!("{option}, or name another file"),
            ));
        }
        Ok(Self { path: path.into(), kind, blesses: args.bless, differences: Vec::new() })
    }

    /// Compares a run with its entry, or stores it as the entry.
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
        let compared = match self.blesses {
            true => Compared::Same(self.kind.bless(run, seen)),
            false => self.kind.compare(lane, request, run, seen)?,
        };
        match compared {
            Compared::Same(text) => output::say(format!("golden: {text}")),
            Compared::Different(text) => self.differences.push(text),
        }
        Ok(())
    }

    /// Writes the file, or reports the differences.
    pub fn finish(self) -> CliResult<()> {
        if self.blesses {
            return Ok(write_whole(&self.path, self.kind.text().as_bytes())?);
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
