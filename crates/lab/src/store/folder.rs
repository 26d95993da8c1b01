// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory of a sweep: which experiment it holds, and which process may write to it.
//!
//! The manifest is written first and names the experiment; then the log of runs grows. So a
//! directory with a manifest is a sweep, unfinished or finished. A directory without one is either
//! empty or not ours.

use super::log::{self, LOG_NAME, RunLog};
use super::manifest::{MANIFEST_NAME, Manifest};
use super::sweep::Sweep;
use crate::LabError;
use crate::identity::Program;
use schedlab_run::file::{FileError, UNFINISHED};
use std::fs::File;
use std::io;
use std::path::Path;

/// Files of a finished sweep, except the plots.
const FILES: [&str; 6] =
    [MANIFEST_NAME, LOG_NAME, "results.csv", "results.parquet", "tables.csv", "report.html"];

/// Whether this is a file whose writer was killed while writing it.
fn is_unfinished(name: &str) -> bool {
    name.starts_with(UNFINISHED)
}

/// How to treat the contents of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// Resume the same experiment, or start in an empty directory.
    Any,
    /// Resume; an error if there is nothing.
    Resume,
    /// Delete the contents.
    Fresh,
}

/// An open directory, locked against other writers.
#[derive(Debug)]
pub struct Folder {
    /// The log of runs.
    pub log: RunLog,
    /// Lock, held until the sweep is done.
    pub lock: File,
}

impl Folder {
    /// Opens `path` for the sweep, which is new or has some of its results.
    pub fn open(path: &Path, sweep: &Sweep, begin: Begin) -> Result<Self, LabError> {
        std::fs::create_dir_all(path).map_err(wrong("create", path))?;
        let Some(lock) = log::lock(path).map_err(wrong("use the directory", path))? else {
            return Err(LabError::Locked(path.into()));
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
            Some(found) => fits(path, &found, sweep)?,
            None if begin == Begin::Resume => {
                return Err(LabError::refused(
                    format!("--resume, but {} holds no results", path.display()),
                    "leave --resume out to begin",
                ));
            }
            None => {
                is_free(path)?;
                Manifest::of(sweep).write(path)?;
            }
        }
        let log_path = path.join(LOG_NAME);
        let log = RunLog::open(path).map_err(wrong("read", &log_path))?;
        Ok(Self { log, lock })
    }
}

fn wrong(what: &'static str, path: &Path) -> impl Fn(io::Error) -> FileError {
    move |source| FileError { what, path: path.into(), source }
}

fn names(path: &Path) -> Result<Vec<String>, FileError> {
    let wrong = wrong("list", path);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(&wrong)? {
        names.push(entry.map_err(&wrong)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn remove(folder: &Path, name: &str) -> Result<(), FileError> {
    let path = folder.join(name);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(wrong("remove", &path)(error)),
        _ => Ok(()),
    }
}

/// Checks that a directory without a manifest holds nothing that the sweep would overwrite.
fn is_free(path: &Path) -> Result<(), LabError> {
    let names = names(path)?;
    let ours = names.iter().find(|name| FILES.contains(&name.as_str()));
    match ours {
        None => Ok(()),
        Some(name) => Err(LabError::refused(
            format!("{} holds a {name}, but no {MANIFEST_NAME}", path.display()),
            "give another --output, or --fresh to overwrite it",
        )),
    }
}

/// Checks that the directory holds exactly the same runs.
fn fits(path: &Path, found: &Manifest, sweep: &Sweep) -> Result<(), LabError> {
    if found.plan_key == sweep.plan_key {
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
    if found.experiment_text != sweep.source.text {
        differences.push(format!("another text of {}", found.experiment_file));
    }
    if found.workload_files != sweep.source.files() {
        differences.push("other workload files".into());
    }
    if found.settings != sweep.settings {
        differences
            .push("other settings (seed, HZ, costs, watchdog, lane, host, QEMU or guest)".into());
    }
    if differences.is_empty() {
        differences.push("other runs".into());
    }
    Err(LabError::refused(
        format!(
            "{} holds the results of another experiment: {} runs with {}",
            path.display(),
            found.nr_runs,
            differences.join(", ")
        ),
        "give another --output, or --fresh to throw those results away",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use crate::store::Settings;
    use crate::studies::Source;

    const STUDY: &str = "name = 'x'\n[[experiment]]\nname = 'x'\nworkload = 'hogs'\n\
                         [[experiment.runs]]\nlane = 'sim'\nschedulers = ['rr']\n";

    /// A sweep without runs, whose key is its seed.
    fn sweep(seed: u64) -> Sweep {
        let source = Source::new("x.toml", STUDY.into(), None).unwrap();
        let settings = Settings { seed, ..Settings::default() };
        let mut sweep = Sweep::new(source, settings, Plan::default(), &Program::this(), |_| ());
        sweep.plan_key = seed.to_string();
        sweep
    }

    fn refused(path: &Path, sweep: &Sweep, begin: Begin) -> String {
        Folder::open(path, sweep, begin).unwrap_err().text()
    }

    #[test]
    fn a_directory_holds_one_sweep_and_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.results");
        let error = refused(&path, &sweep(1), Begin::Resume);
        assert!(error.contains("a.results holds no results; leave --resume out"), "{error}");
        let open = Folder::open(&path, &sweep(1), Begin::Any).unwrap();
        let error = Folder::open(&path, &sweep(1), Begin::Any).unwrap_err();
        assert!(matches!(error, LabError::Locked(_)), "{error}");
        drop(open);
        drop(Folder::open(&path, &sweep(1), Begin::Resume).unwrap());
        let error = refused(&path, &sweep(2), Begin::Any);
        assert!(error.contains("results of another experiment: 0 runs with other settings"));
        drop(Folder::open(&path, &sweep(2), Begin::Fresh).unwrap());
        drop(Folder::open(&path, &sweep(2), Begin::Resume).unwrap());
    }

    #[test]
    fn what_is_not_ours_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let mine = folder.path().join("results.csv");
        std::fs::write(&mine, "mine").unwrap();
        std::fs::write(folder.path().join(format!("{UNFINISHED}1")), "").unwrap();
        let error = refused(folder.path(), &sweep(1), Begin::Any);
        assert!(error.contains("holds a results.csv, but no manifest.json; give"), "{error}");
        assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
        assert_eq!(names(folder.path()).unwrap(), ["results.csv"], "leftovers are taken away");
        drop(Folder::open(folder.path(), &sweep(1), Begin::Fresh).unwrap());
        assert!(!mine.exists());
    }
}
