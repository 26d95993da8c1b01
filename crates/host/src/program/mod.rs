// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host lane with a third-party program as the workload: a database server and its clients, a
//! game, a benchmark in its original form.
//!
//! The caller finds every program and prepares every command. The launcher creates the private
//! directory, runs the commands before the program, starts the program held like any task, releases
//! it, and cleans up (`launcher/stage.rs`). The recording contains the program and its descendants.
//! Servers next to it get CPUs and policy from the lane, but are not tasks of the trace. Figures
//! are read from the program's output.
//!
//! Nothing is installed: an error names missing packages, with the command that installs them.

mod output;
mod plan;

pub use output::{OUTPUT_MAX, OutputFile};
pub use plan::{ProgramPlan, StepPlan};

use crate::attr::{self, Adjustments, PolicyOverride};
use crate::command::{self, CommandOutcome};
use crate::error::HostError;
use crate::files;
use crate::lane;
use crate::machine;
use crate::pace::Pace;
use crate::plan::{Output, RunPlan, Work};
use crate::session::{self, RecorderChoice};
use crate::sys::ExecImage;
use schedlab_model::trace::TraceSink;
use schedlab_model::{CpuMask, Policy, SchedAttr};
use schedlab_run::policy::RT_PRIORITY_DEFAULT;
use schedlab_run::program::{Matcher, ProgramRun, ReadyProgram, ReadyStep, Surroundings};
use schedlab_run::{LaneError, RunRequest, Setting};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::path::{Path, PathBuf};

/// Directories of programs that may be missing in a user's PATH.
const SYSTEM_DIRS: [&str; 7] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/games"];

/// The results of a run of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramOutcome {
    /// The program's process, with the results of a command.
    pub command: CommandOutcome,
    /// Its figures by name.
    pub figures: BTreeMap<String, f64>,
}

/// Runs the program of a request. Its events and those of its descendants go to `sink`.
pub fn run_program(
    request: &RunRequest,
    program: &ProgramRun,
    sink: &mut dyn TraceSink,
) -> Result<ProgramOutcome, LaneError> {
    lane::check_cpus(&request.cpus)?;
    let dir = files::program_dir(session::task_user().is_some()).map_err(HostError::Unavailable)?;
    let Some(dir_text) = dir.to_str() else {
        return Err(LaneError::Unavailable(format!(
            "{dir:?} is no text, and a command cannot name it: set SCHEDLAB_IO_DIR"
        )));
    };
    let at = Surroundings { dir: dir_text, number: std::process::id(), seed: request.seed };
    let ready = program.ready(at).map_err(|error| LaneError::Input(error.to_string()))?;
    check_installed(&ready, &program.spec.packages)?;
    let attrs = Attrs::of(program.policy, &request.cpus)?;
    let commands = Commands { environment: environment(&ready, dir_text)?, attrs: &attrs };
    let (image, name) = commands.image(&ready.argv)?;
    let stage = commands.stage(&ready, dir)?;
    let output = Output::File(stage.output.fd());
    let mut plan = RunPlan {
        work: Work::Command {
            image,
            attr: Box::new(attrs.of_run),
            copies: 1,
            output,
            weight: None,
        },
        seed: request.seed,
        user: session::task_user(),
        tasks_set_own: lane::is_root() && !lane::may_set_policies(),
        needs_nice: false,
        own_stamps: false,
        dir: None,
        groups: Default::default(),
        tunables: Default::default(),
        objects: Default::default(),
        cpus: request.cpus,
        launcher_cpus: session::helper_cpus(&request.cpus),
        duration_ns: None,
        limit_ns: ready.limit_ns,
        pace: Pace::on_this_machine(None, &request.cpus),
        program: Some(Box::new(stage)),
    };
    files::remove_dead();
    let mut outcome = command::play(&mut plan, name, RecorderChoice::Auto, sink)?;
    let setting = |name: &str, value: String| Setting { name: name.into(), value };
    outcome.host.machine.settings.push(setting("program", ready.argv.join(" ")));
    let Some(stage) = &plan.program else {
        return Err(LaneError::System("the program's output is lost".into()));
    };
    check_end(&outcome, &ready, &stage.output)?;
    let read = |text: String| LaneError::Check(format!("{text}: {}", stage.output.last_lines(0)));
    let figures = program.figures(&stage.output.text(0)).map_err(read)?;
    Ok(ProgramOutcome { command: outcome, figures })
}

/// Checks that the program ended normally.
fn check_end(
    outcome: &CommandOutcome,
    ready: &ReadyProgram,
    output: &OutputFile,
) -> Result<(), LaneError> {
    let name = ready.argv.first().map_or("", String::as_str);
    let failed = |what: String| Err(LaneError::Check(format!("{name} {what}")));
    if outcome.host.was_limited {
        let seconds = ready.limit_ns as f64 / 1e9;
        return failed(format!(
            "had not ended within the {seconds} s of `limit`: {}",
            output.last_lines(0)
        ));
    }
    if output.is_full() {
        return failed(format!("printed more than {} MiB", OUTPUT_MAX >> 20));
    }
    match outcome.copies.first().and_then(|copy| copy.exit_code) {
        Some(0) => Ok(()),
        Some(code) if code < 0 => {
            failed(format!("was ended by signal {}: {}", -code, output.last_lines(0)))
        }
        code => failed(format!(
            "failed (exit code {}): {}",
            code.map_or_else(|| "unknown".into(), |code| code.to_string()),
            output.last_lines(0)
        )),
    }
}

/// Checks that every program is installed. The error names the missing ones, and how to install
/// them.
fn check_installed(ready: &ReadyProgram, packages: &[String]) -> Result<(), LaneError> {
    let steps = ready.setup.iter().filter(|step| step.count > 0).map(|step| &step.argv);
    let commands = steps.chain([&ready.argv]).chain(&ready.teardown);
    let names: BTreeSet<&String> = commands.filter_map(|argv| argv.first()).collect();
    let missing: Vec<&str> =
        names.into_iter().filter(|name| find(name).is_none()).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let install = match packages {
        [] => String::new(),
        packages => format!(": apt-get install {}", packages.join(" ")),
    };
    Err(LaneError::Unavailable(format!("not installed: {}{install}", missing.join(", "))))
}

/// The file of a program by its name.
fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| command::is_program(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(SYSTEM_DIRS.map(PathBuf::from));
    dirs.filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|path| command::is_program(path))
}

/// The environment. It contains nothing of the caller's.
fn environment(ready: &ReadyProgram, dir: &str) -> Result<Vec<CString>, HostError> {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::split_paths(&own).filter(|dir| dir.is_absolute());
    let mut dirs: Vec<PathBuf> = Vec::new();
    for dir in own.chain(SYSTEM_DIRS.map(PathBuf::from)) {
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    let path = std::env::join_paths(dirs).unwrap_or_default();
    let mut all = BTreeMap::from([
        ("PATH", path.to_string_lossy().into_owned()),
        ("LANG", "C.UTF-8".to_string()),
        ("HOME", dir.to_string()),
        ("TMPDIR", dir.to_string()),
    ]);
    all.extend(ready.environment.iter().map(|(name, value)| (name.as_str(), value.clone())));
    all.into_iter().map(|(name, value)| c_string(&format!("{name}={value}"))).collect()
}

fn c_string(text: &str) -> Result<CString, HostError> {
    CString::new(text)
        .map_err(|_| HostError::Input(format!("{text:?} holds a zero byte, which no program gets")))
}

/// Attributes of the commands.
struct Attrs {
    /// Those of the run: its policy and CPUs.
    of_run: SchedAttr,
    /// OTHER on the same CPUs.
    plain: SchedAttr,
}

impl Attrs {
    fn of(policy: Policy, cpus: &CpuMask) -> Result<Self, HostError> {
        let rt_priority = if policy.is_rt() { RT_PRIORITY_DEFAULT } else { 0 };
        let given = PolicyOverride { policy, rt_priority };
        lane::check_policy(Some(given))?;
        let (online, able) = (machine::online_cpus(), session::abilities());
        let make = |given: Option<PolicyOverride>| {
            let plain = SchedAttr::default();
            let mut adjustments = Adjustments::default();
            let attr = attr::effective(&plain, given, cpus, &online, able, &mut adjustments)?;
            attr::check(&attr, able)?;
            Ok::<_, HostError>(attr)
        };
        Ok(Self { of_run: make(Some(given))?, plain: make(None)? })
    }
}

/// Prepares commands for execution.
struct Commands<'a> {
    environment: Vec<CString>,
    attrs: &'a Attrs,
}

impl Commands<'_> {
    /// A command and its short name.
    fn image(&self, argv: &[String]) -> Result<(ExecImage, String), HostError> {
        let name = argv.first().map_or("", String::as_str);
        let path =
            find(name).ok_or_else(|| HostError::Unavailable(format!("not installed: {name}")))?;
        let words = argv.iter().map(|word| c_string(word)).collect::<Result<Vec<_>, _>>()?;
        let short = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into());
        let file = c_string(&path.to_string_lossy())?;
        Ok((ExecImage::new(file, words, self.environment.clone()), short))
    }

    fn stage(&self, ready: &ReadyProgram, dir: PathBuf) -> Result<ProgramPlan, HostError> {
        let no_file = |error| HostError::system("making a file for output", &error);
        let started = ready.setup.iter().filter(|step| step.count > 0);
        let setup: Result<_, HostError> = started.map(|step| self.step(step)).collect();
        let after = |argv: &Vec<String>| {
            let (image, name) = self.image(argv)?;
            Ok(StepPlan {
                image,
                name,
                count: 1,
                stays: false,
                is_killed: false,
                ready_output: None,
                ready_path: None,
                attr: self.attrs.plain,
            })
        };
        let teardown: Result<_, HostError> = ready.teardown.iter().map(after).collect();
        Ok(ProgramPlan {
            directories: with_parents(&dir, &ready.directories),
            dir,
            setup: setup?,
            teardown: teardown?,
            setup_limit_ns: ready.setup_limit_ns,
            log: OutputFile::new().map_err(no_file)?,
            output: OutputFile::new().map_err(no_file)?,
        })
    }

    fn step(&self, step: &ReadyStep) -> Result<StepPlan, HostError> {
        let (image, name) = self.image(&step.argv)?;
        let pattern = step.ready_output.as_deref().map(Matcher::new).transpose();
        Ok(StepPlan {
            image,
            name,
            count: step.count,
            stays: step.stays,
            is_killed: step.is_killed,
            ready_output: pattern.map_err(|error| HostError::Input(error.to_string()))?,
            ready_path: step.ready_path.as_ref().map(PathBuf::from),
            attr: if step.has_policy { self.attrs.of_run } else { self.attrs.plain },
        })
    }
}

/// Each directory after those that contain it, as relative paths.
fn with_parents(dir: &Path, wanted: &[String]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in wanted {
        let mut at = dir.to_path_buf();
        for part in Path::new(OsStr::new(path)) {
            at.push(part);
            if !all.contains(&at) {
                all.push(at.clone());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_after_those_that_they_lie_in() {
        let wanted = ["a/b".to_string(), "a/c".into(), "a".into()];
        let found = with_parents(Path::new("/d"), &wanted);
        let wanted = ["/d/a", "/d/a/b", "/d/a/c"].map(PathBuf::from);
        assert_eq!(found, wanted);
    }

    #[test]
    fn programs_of_the_system_are_found_without_a_path() {
        assert!(find("sh").is_some() && find("/bin/sh").is_some());
        assert!(find("no-such-program-at-all").is_none() && find("/etc/passwd").is_none());
    }

    #[test]
    fn the_environment_is_made_anew() {
        let ready = ReadyProgram {
            argv: vec!["true".into()],
            environment: BTreeMap::from([("DISPLAY".into(), ":7".into())]),
            directories: vec![],
            setup: vec![],
            teardown: vec![],
            limit_ns: 1,
            setup_limit_ns: 1,
        };
        let all = environment(&ready, "/d").unwrap();
        let names: Vec<&str> =
            all.iter().map(|text| text.to_str().unwrap().split_once('=').unwrap().0).collect();
        assert_eq!(names, ["DISPLAY", "HOME", "LANG", "PATH", "TMPDIR"]);
        assert!(all.iter().any(|text| text.to_bytes() == b"HOME=/d"));
    }
}
