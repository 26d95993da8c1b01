// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab sim --watch`: runs the command again whenever a file that it reads is saved.
//!
//! Each run is a process of its own with the same arguments, so that no crash of a scheduler ends
//! the watch, and a save ends a run that is still going on. Files are compared a few times a
//! second: editors that write a new file and rename it, network file systems and headers that do
//! not exist yet need no special care.

use crate::args::{Cli, SimArgs};
use crate::config;
use crate::error::{CliError, CliResult, EXIT_INTERRUPTED, Exit};
use crate::output::say;
use crate::schedulers::{is_file, is_policy};
use crate::table::{counted, duration};
use clap::CommandFactory;
use schedlab_run::policy::Spec;
use schedlab_scx_source::setup_next_to;
use schedlab_workload::WorkloadName;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// The option that starts a watch.
const OPTION: &str = "--watch";
/// Time between two looks at the files.
const POLL: Duration = Duration::from_millis(100);
/// Time that a file may be missing while an editor replaces it.
const GONE_MAX: Duration = Duration::from_secs(1);

/// What tells one version of a file from another; `None`: there is no such file.
type Version = Option<(SystemTime, u64, u64)>;

/// The versions of all files.
type Versions = BTreeMap<PathBuf, Version>;

fn version(path: &Path) -> Version {
    let data = fs::metadata(path).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&data);
    #[cfg(not(unix))]
    let inode = 0;
    Some((data.modified().ok()?, data.len(), inode))
}

fn versions(args: &SimArgs) -> Versions {
    files(args).into_iter().map(|path| (path.clone(), version(&path))).collect()
}

/// The files that a run with `args` reads.
fn files(args: &SimArgs) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    let machine = &args.machine;
    if let Ok(WorkloadName::File(path)) = WorkloadName::parse(&args.workload) {
        all.insert(path.to_owned());
    }
    let is_machine = |name: &&String| schedlab_run::machine::is_file(name);
    all.extend(machine.machine.iter().filter(is_machine).map(PathBuf::from));
    let is_costs = |name: &&String| Path::new(name).is_file();
    all.extend(machine.costs.iter().filter(is_costs).map(PathBuf::from));
    for scheduler in &args.scheduler {
        let name = Spec::parse(scheduler).map_or(scheduler.as_str(), |spec| spec.name);
        let source = Path::new(name);
        if is_policy(name) {
            all.insert(source.to_owned());
        } else if is_file(name) {
            all.extend(machine.scx.options().files_read(source));
            all.extend(machine.scx.setup.clone().or_else(|| setup_next_to(source)));
        }
    }
    all
}

/// The first file whose version differs.
fn changed<'v>(before: &'v Versions, now: &'v Versions) -> Option<&'v Path> {
    let differs = |path: &&PathBuf| before.get(*path) != now.get(*path);
    now.keys().chain(before.keys()).find(differs).map(PathBuf::as_path)
}

/// Builds the command that runs once: this command line without `--watch`. The configuration file
/// may set `--watch`, so its defaults are added before the option is removed.
fn command_line() -> CliResult<Command> {
    let words = config::with_defaults(&Cli::command(), std::env::args_os().collect())?;
    let words: Vec<OsString> = words.into_iter().skip(1).filter(|word| word != OPTION).collect();
    let program = std::env::current_exe()
        .map_err(|error| CliError::file("find", Path::new("/proc/self/exe"), &error))?;
    let mut command = Command::new(program);
    command.args(words).env(config::VARIABLE, "");
    Ok(command)
}

struct Watch<'a> {
    args: &'a SimArgs,
    command: Command,
    /// Set by Ctrl-C and similar signals.
    is_interrupted: Arc<AtomicBool>,
    nr_runs: u32,
}

/// Runs the command now and after every change of its files, until Ctrl-C.
pub fn watch(args: &SimArgs) -> CliResult<()> {
    if files(args).is_empty() {
        return Err(CliError::usage_help(
            "--watch waits for changes of files, and this run reads none",
            "name a scheduler's .bpf.c or the file of a workload",
        ));
    }
    let is_interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_interrupted);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).map_err(|error| {
        CliError::new(Exit::Unavailable, format!("cannot wait for Ctrl-C: {error}"), "")
    })?;
    Watch { args, command: command_line()?, is_interrupted, nr_runs: 0 }.go_on()
}

impl Watch<'_> {
    fn go_on(&mut self) -> CliResult<()> {
        let mut why = String::new();
        loop {
            self.nr_runs += 1;
            say(format!("──── run {}{why} ────", self.nr_runs));
            // The versions before the run: a save during the run is a change.
            let before = versions(self.args);
            let next = match self.run(&before)? {
                Some(next) => next,
                None => self.wait(&before),
            };
            let path = changed(&before, &next).unwrap_or(Path::new("a file"));
            why = format!(": {} has changed", path.display());
        }
    }

    /// Runs the command to its end. A change of the files ends it earlier, and gives the new
    /// versions.
    fn run(&mut self, before: &Versions) -> CliResult<Option<Versions>> {
        let start = Instant::now();
        let mut child = self.command.spawn().map_err(|error| {
            let program = PathBuf::from(self.command.get_program());
            CliError::file("start", &program, &error)
        })?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            self.end_if_interrupted(Some(&mut child));
            // Short runs end between two looks.
            sleep(if start.elapsed() < POLL { POLL / 20 } else { POLL });
            if start.elapsed() > POLL && changed(before, &versions(self.args)).is_some() {
                end(&mut child);
                return Ok(Some(self.settled(before)));
            }
        };
        // A signal to the whole group ends the run too.
        self.end_if_interrupted(None);
        let nr_files = before.len() as u64;
        say(format!(
            "──── run {}: {} after {}; waiting for a change of {} (Ctrl-C ends) ────",
            self.nr_runs,
            status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}")),
            duration(start.elapsed().as_nanos() as u64),
            counted(nr_files, "file", "files"),
        ));
        Ok(None)
    }

    /// Waits for a change of the files. Returns the new versions.
    fn wait(&self, before: &Versions) -> Versions {
        loop {
            self.end_if_interrupted(None);
            sleep(POLL);
            if changed(before, &versions(self.args)).is_some() {
                return self.settled(before);
            }
        }
    }

    /// Waits until no file changes and none that existed `before` is missing. Those that stay
    /// missing are left to the run, whose error names them.
    fn settled(&self, before: &Versions) -> Versions {
        let start = Instant::now();
        let is_gone = |(path, version): (&PathBuf, &Version)| version.is_some() && !path.exists();
        let mut last = versions(self.args);
        loop {
            self.end_if_interrupted(None);
            sleep(POLL);
            let now = versions(self.args);
            if now == last && (start.elapsed() >= GONE_MAX || !before.iter().any(is_gone)) {
                return now;
            }
            last = now;
        }
    }

    /// Ends the program, and the run that is going on, after Ctrl-C.
    fn end_if_interrupted(&self, child: Option<&mut Child>) {
        if self.is_interrupted.load(Ordering::Relaxed) {
            child.map(end);
            say(format!("\ninterrupted after {}", counted(self.nr_runs, "run", "runs")));
            std::process::exit(EXIT_INTERRUPTED);
        }
    }
}

/// Ends a run. One that has ended by itself meanwhile is fine too.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
