// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory of a sweep: which experiment it holds, and who may write it.
//!
//! The manifest comes first and names the experiment; then the log of runs grows. So a directory
//! with a manifest is a sweep, begun or finished; one without is either empty or not ours.

use super::manifest::{self, MANIFEST_NAME, Manifest};
use super::prepare::Prepared;
use crate::args::VerdictArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::output::say;
use crate::table::counted;
use schedlab_lab::identity::Program;
use schedlab_lab::store::{self, LOG_NAME, RunLog};
use schedlab_run::file::UNFINISHED;
use std::fs::File;
use std::path::Path;

/// What a finished sweep leaves, beside the plots.
const FILES: [&str; 6] =
    [MANIFEST_NAME, LOG_NAME, "results.csv", "results.parquet", "tables.csv", "report.html"];

/// Whether a file was being written when its writer was killed.
fn is_unfinished(name: &str) -> bool {
    name.starts_with(UNFINISHED)
}

/// What to do with what a directory holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// Go on with the same experiment, begin in an empty one.
    Any,
    /// Go on; an error if there is nothing.
    Resume,
    /// Throw it away.
    Fresh,
}

impl Begin {
    /// Of a command that goes on unless it is told otherwise.
    pub fn of(args: &VerdictArgs) -> Self {
        if args.fresh { Self::Fresh } else { Self::Any }
    }
}

/// An open directory; nobody else writes it meanwhile.
pub struct Folder {
    /// The log of runs.
    pub log: RunLog,
    /// Held until the sweep is done.
    pub lock: File,
}

impl Folder {
    /// Opens `path` for the sweep: new, or with a part of its results.
    pub fn open(path: &Path, prepared: &Prepared, begin: Begin) -> CliResult<Self> {
        std::fs::create_dir_all(path).map_err(|error| CliError::file("create", path, &error))?;
        let wrong = |error: std::io::Error| CliError::file("use the directory", path, &error);
        let Some(lock) = store::lock(path).map_err(wrong)? else {
            return Err(CliError::new(
                Exit::Unavailable,
                format!("another schedlab writes to {}", path.display()),
                "wait for it, or give another --output",
            ));
        };
        for name in names(path)?.iter().filter(|name| is_unfinished(name)) {
            remove(path, name)?;
        }
        if begin == Begin::Fresh {
            for name in FILES {
                remove(path, name)?;
            }
        }
        match Manifest::read_from(path)? {
            Some(found) => fits(path, &found, prepared)?,
            None if begin == Begin::Resume => {
                return Err(CliError::usage_help(
                    format!("--resume, but {} holds no results", path.display()),
                    "leave --resume out to begin",
                ));
            }
            None => {
                is_free(path)?;
                manifest::begin(prepared, path)?;
            }
        }
        let log_path = path.join(LOG_NAME);
        let log = RunLog::open(path).map_err(|error| CliError::file("read", &log_path, &error))?;
        if log.nr_damaged() > 0 {
            say(format!(
                "warning: damaged in {}: {}; their runs are run again",
                log_path.display(),
                counted(log.nr_damaged(), "line", "lines")
            ));
        }
        Ok(Self { log, lock })
    }
}

fn names(path: &Path) -> CliResult<Vec<String>> {
    let wrong = |error: std::io::Error| CliError::file("list", path, &error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(wrong)? {
        names.push(entry.map_err(wrong)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn remove(folder: &Path, name: &str) -> CliResult<()> {
    let path = folder.join(name);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CliError::file("remove", &path, &error))
        }
        _ => Ok(()),
    }
}

/// A directory without a manifest must not hold anything that we would overwrite.
fn is_free(path: &Path) -> CliResult<()> {
    let names = names(path)?;
    let ours = names.iter().find(|name| FILES.contains(&name.as_str()));
    match ours {
        None => Ok(()),
        Some(name) => Err(CliError::usage_help(
            format!("{} holds a {name}, but no {MANIFEST_NAME}", path.display()),
            "give another --output, or --fresh to overwrite it",
        )),
    }
}

/// The directory must hold the very same runs.
fn fits(path: &Path, found: &Manifest, prepared: &Prepared) -> CliResult<()> {
    if found.plan_key == prepared.plan_key {
        return Ok(());
    }
    let Program { version, models } = Program::this();
    let mut differences = Vec::new();
    if found.schedlab_version != version {
        differences.push(format!("version {} (this is {version})", found.schedlab_version));
    }
    if found.models != models {
        differences.push(format!("other models ({}, these are {models})", found.models));
    }
    if found.experiment_text != prepared.source.text {
        differences.push(format!("another text of {}", found.experiment_file));
    }
    if found.workload_files != prepared.source.files() {
        differences.push("other workload files".into());
    }
    if found.settings != prepared.settings {
        differences
            .push("other settings (seed, HZ, costs, watchdog, lane, host, QEMU or guest)".into());
    }
    if differences.is_empty() {
        differences.push("other runs".into());
    }
    Err(CliError::usage_help(
        format!(
            "{} holds the results of another experiment: {} runs with {}",
            path.display(),
            found.nr_runs,
            differences.join(", ")
        ),
        "give another --output, or --fresh to throw those results away",
    ))
}
