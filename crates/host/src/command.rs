// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of any command under any policy, as study S2's `schedule` intended.
//!
//! Every copy is started in the same way whatever its policy. It is created and held, drops its
//! rights, and gets its policy from outside, which is read back. All copies are released together
//! and then execute the command. If a fork, a policy or an exec fails, the run ends with the
//! reason. Run delay comes from the kernel's own counter, not from idle capacity.

use crate::attr::{self, Adjustments, PolicyOverride};
use crate::error::HostError;
use crate::lane::{self, LIMIT_NS_DEFAULT};
use crate::machine;
use crate::memory::RunMemory;
use crate::outcome::{HostOutcome, TaskOutcome};
use crate::pace::Pace;
use crate::plan::{Output, RunPlan, Work};
use crate::procfs;
use crate::recorder::convert::Names;
use crate::room;
use crate::session::{self, RecorderChoice};
use crate::sys::ExecImage;
use crate::traps::Watch;
use schedlab_model::trace::{TaskInfo, TraceSink};
use schedlab_model::{CpuMask, Event, EventKind, Nanos, SchedAttr, TaskId};
use schedlab_run::{CopyResult, Warning};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Most copies of a command.
pub const COPIES_MAX: u32 = 100_000;

/// A command to run, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunCommand {
    /// The command and its arguments. A command without `/` is searched in PATH.
    pub argv: Vec<OsString>,
    /// Number of copies, 1 to [`COPIES_MAX`].
    pub copies: u32,
    /// Policy and priority; `None`: OTHER.
    pub policy: Option<PolicyOverride>,
    /// Nice value, -20 to 19.
    pub nice: i8,
    /// Custom slice (ns), for OTHER and BATCH on 6.12 and later.
    pub slice_ns: Option<Nanos>,
    /// cpu.weight of a control group that holds all copies; `None`: they get no group.
    pub weight: Option<u32>,
    /// CPUs that the copies may use.
    pub cpus: CpuMask,
    /// A run that has not ended is ended after this time (ns).
    pub limit_ns: Nanos,
    /// How events are recorded.
    pub recorder: RecorderChoice,
    /// Where the copies' output goes.
    pub output: Output,
}

impl RunCommand {
    /// One copy of `argv` under OTHER, nice 0, on all CPUs that this process may use.
    pub fn new(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            copies: 1,
            policy: None,
            nice: 0,
            slice_ns: None,
            weight: None,
            cpus: machine::usable_cpus(),
            limit_ns: LIMIT_NS_DEFAULT,
            recorder: RecorderChoice::Auto,
            output: Output::Inherit,
        }
    }
}

/// One copy's figures.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CopyOutcome {
    /// Number of the copy, from 0.
    pub id: u32,
    /// Process id.
    pub pid: u32,
    /// Release to exit (ns); `None` if the exit was not recorded.
    pub wall_ns: Option<Nanos>,
    /// User time (us) of the copy and of the children that it waited for.
    pub user_us: u64,
    /// System time (us) of the copy and of the children that it waited for.
    pub system_us: u64,
    /// CPU time of the copy's main thread, ns.
    pub cpu_time_ns: Nanos,
    /// Time (ns) that the copy's main thread was runnable but not running.
    pub run_delay_ns: Nanos,
    /// Voluntary switches.
    pub nr_voluntary_switches: u64,
    /// Involuntary switches.
    pub nr_involuntary_switches: u64,
    /// Exit code; or the negative number of the signal that ended it.
    pub exit_code: Option<i32>,
}

/// A finished run of a command.
#[derive(Clone, PartialEq, Debug)]
pub struct CommandOutcome {
    /// The copies.
    pub copies: Vec<CopyOutcome>,
    /// The other results, as for a workload.
    pub host: HostOutcome,
}

/// Names copies `command-k`, and their descendants after the program that they execute.
struct CommandNames {
    command: String,
    copies: u32,
}

impl Names for CommandNames {
    fn task(&self, index: u32, _spec: u32, _nth: u32) -> TaskInfo {
        let name = match self.copies {
            1 => self.command.clone(),
            _ => format!("{}-{index}", self.command),
        };
        TaskInfo { name, spec: None, pid: 0 }
    }

    fn stranger(&self, pid: u32, parent: Option<&str>) -> TaskInfo {
        // It no longer exists: named after its parent.
        let comm = procfs::comm(pid).unwrap_or_else(|| parent.unwrap_or("task").to_owned());
        TaskInfo { name: format!("{comm}/{pid}"), spec: None, pid }
    }
}

impl From<CopyOutcome> for CopyResult {
    fn from(copy: CopyOutcome) -> Self {
        Self {
            task: copy.id,
            pid: copy.pid,
            wall_ns: copy.wall_ns,
            user_ns: copy.user_us * 1_000,
            system_ns: copy.system_us * 1_000,
            run_delay_ns: copy.run_delay_ns,
            nr_voluntary_switches: copy.nr_voluntary_switches,
            nr_involuntary_switches: copy.nr_involuntary_switches,
            exit_code: copy.exit_code,
        }
    }
}

/// Records when each copy exited, in addition to the caller's sink.
struct ExitTimes<'a> {
    exits: Vec<Option<Nanos>>,
    sink: &'a mut dyn TraceSink,
}

impl TraceSink for ExitTimes<'_> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.sink.task(id, info);
    }

    fn event(&mut self, event: &Event) {
        if let EventKind::Exit { task } = event.kind
            && let Some(exit) = self.exits.get_mut(task.index())
        {
            *exit = Some(event.time_ns);
        }
        self.sink.event(event);
    }

    fn end(&mut self, end_ns: Nanos) {
        self.sink.end(end_ns);
    }
}

/// Runs the copies, records them to `sink`, and waits for all.
pub fn run_command(
    command: &RunCommand,
    sink: &mut dyn TraceSink,
) -> Result<CommandOutcome, HostError> {
    let attr = check(command)?;
    let (image, name) = image(command)?;
    let mut adjustments = Adjustments::default();
    let online = machine::online_cpus();
    let able = session::abilities();
    let attr = attr::effective(&attr, None, &command.cpus, &online, able, &mut adjustments)?;
    attr::check(&attr, able)?;
    let mut plan = RunPlan {
        work: Work::Command {
            image,
            attr: Box::new(attr),
            copies: command.copies,
            output: command.output,
            weight: command.weight,
        },
        seed: 0,
        user: session::task_user(),
        tasks_set_own: crate::lane::is_root() && !crate::lane::may_set_policies(),
        needs_nice: false,
        own_stamps: false,
        dir: None,
        groups: Default::default(),
        tunables: Default::default(),
        objects: Default::default(),
        cpus: command.cpus,
        launcher_cpus: session::helper_cpus(&command.cpus),
        duration_ns: None,
        limit_ns: command.limit_ns,
        pace: Pace::on_this_machine(None, &command.cpus),
        program: None,
    };
    play(&mut plan, name, command.recorder, sink)
}

/// Runs the copies of a plan, whose work is a command called `name`.
pub(crate) fn play(
    plan: &mut RunPlan,
    name: String,
    recorder: RecorderChoice,
    sink: &mut dyn TraceSink,
) -> Result<CommandOutcome, HostError> {
    let Work::Command { attr, copies, .. } = &plan.work else {
        return Err(HostError::Input("the plan has no command".into()));
    };
    let (attr, copies, cpus) = (**attr, *copies, plan.cpus);
    let memory = RunMemory::new(copies, 1)
        .map_err(|error| HostError::system("memory shared with the copies", &error))?;
    let watch = Watch::start(&cpus);
    let names = CommandNames { command: name, copies };
    let mut exits = ExitTimes { exits: vec![None; copies as usize], sink };
    let session = session::run(plan, &memory, recorder, &names, false, &mut exits)?;
    let exits = exits.exits;
    let mut host = lane::collect(&memory, session, false);
    host.warnings.extend(watch.finish(attr.policy.is_rt(), &host));
    host.machine = machine::info(&cpus);
    machine::add_run_settings(&mut host);
    let is_unknown = |task: &TaskOutcome| task.ended_ns.is_none();
    if host.source == session::SOURCE_SCHEDSTAT && host.tasks.iter().any(is_unknown) {
        host.warnings.push(Warning::wall_time_absent());
    }
    let copies =
        host.tasks.iter().zip(exits).map(|(task, exit)| copy_outcome(task, exit)).collect();
    Ok(CommandOutcome { copies, host })
}

fn copy_outcome(task: &TaskOutcome, exit_ns: Option<Nanos>) -> CopyOutcome {
    CopyOutcome {
        id: task.id,
        pid: task.pid,
        wall_ns: exit_ns.or(task.ended_ns).map(|exit| exit.saturating_sub(task.release_ns)),
        user_us: task.user_us,
        system_us: task.system_us,
        cpu_time_ns: task.run_ns,
        run_delay_ns: task.run_delay_ns,
        nr_voluntary_switches: task.nr_voluntary_switches,
        nr_involuntary_switches: task.nr_involuntary_switches,
        exit_code: task.exit_code,
    }
}

/// Checks the request. Returns the attributes of a copy.
fn check(command: &RunCommand) -> Result<SchedAttr, HostError> {
    if !(1..=COPIES_MAX).contains(&command.copies) {
        return Err(HostError::Input(format!(
            "{} copies asked for, allowed are 1 to {COPIES_MAX}",
            command.copies
        )));
    }
    if !(-20..=19).contains(&command.nice) {
        return Err(HostError::Input(format!("nice is {}, allowed are -20 to 19", command.nice)));
    }
    room::check(u64::from(command.copies), room::Kind::Command)?;
    lane::check_cpus(&command.cpus)?;
    lane::check_policy(command.policy)?;
    let mut attr =
        SchedAttr { nice: command.nice, slice_ns: command.slice_ns, ..Default::default() };
    if let Some(PolicyOverride { policy, rt_priority }) = command.policy {
        (attr.policy, attr.rt_priority) = (policy, rt_priority);
    }
    Ok(attr)
}

/// The program to execute and its short name.
fn image(command: &RunCommand) -> Result<(ExecImage, String), HostError> {
    let Some(first) = command.argv.first() else {
        return Err(HostError::Input("no command given: put it after `--`".into()));
    };
    let path = find(first)?;
    let c_string = |text: &OsStr| {
        CString::new(text.as_bytes()).map_err(|_| {
            HostError::Input(format!(
                "argument {text:?} holds a zero byte, which no program can get"
            ))
        })
    };
    let argv = command.argv.iter().map(|arg| c_string(arg)).collect::<Result<_, _>>()?;
    let env = std::env::vars_os().filter_map(|(name, value)| {
        let pair = [name.into_vec(), b"=".to_vec(), value.into_vec()].concat();
        CString::new(pair).ok()
    });
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    Ok((ExecImage::new(c_string(path.as_os_str())?, argv, env.collect()), name))
}

pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Finds the file of a command, as execvp(3) does.
fn find(name: &OsStr) -> Result<PathBuf, HostError> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return if is_program(&path) {
            Ok(path)
        } else {
            Err(HostError::Input(format!("{name:?} is not a program that can be executed")))
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|path| is_program(path))
        .ok_or_else(|| HostError::Input(format!("command {name:?} is in no directory of PATH")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::Policy;

    fn command(argv: &[&str]) -> RunCommand {
        RunCommand::new(argv.iter().map(OsString::from).collect())
    }

    #[test]
    fn wrong_requests_say_what_is_allowed() {
        let text = |command: &RunCommand| check(command).unwrap_err().to_string();
        assert!(text(&RunCommand { copies: 0, ..command(&["true"]) }).contains("1 to 100000"));
        assert!(text(&RunCommand { nice: 20, ..command(&["true"]) }).contains("-20 to 19"));
        let fifo = Some(PolicyOverride { policy: Policy::Fifo, rt_priority: 0 });
        assert!(text(&RunCommand { policy: fifo, ..command(&["true"]) }).contains("1 to 97"));
        let none = RunCommand { cpus: CpuMask::empty(), ..command(&["true"]) };
        assert!(text(&none).contains("may use CPU"));
    }

    #[test]
    fn commands_are_found_as_the_shell_finds_them() {
        assert!(find(OsStr::new("sh")).unwrap().ends_with("sh"));
        assert!(find(OsStr::new("/etc/passwd")).is_err());
        assert!(find(OsStr::new("no-such-command-at-all")).is_err());
        assert!(image(&command(&[])).is_err());
        assert!(image(&command(&["sh", "a\0b"])).is_err());
    }
}
