// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab vm`: runs a workload on real kernels in guests.

use super::vm_golden::Golden;
use super::{results, sim};
use crate::args::{OutputArgs, ScxArgs, WorkloadArgs};
use crate::complete;
use crate::error::{CliError, CliResult, Exit};
use crate::input::{self, Named};
use crate::output::{self, Out};
use crate::setups;
use clap::builder::ArgPredicate;
use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use schedlab_lab::Plan;
use schedlab_lab::plan::ModelTicks;
use schedlab_model::{CpuMask, Nanos};
use schedlab_run::{Boot, LaneError, LaneKind, RunRequest, RunResult};
use schedlab_sim::SimLane;
use schedlab_vm::command::ShippedScheduler;
use schedlab_vm::golden_check::Seen;
use schedlab_vm::lane::{KERNEL, Options, Target};
use schedlab_vm::{Clock, VmLane};
use std::path::PathBuf;
use std::time::Duration;

/// What drives a guest's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum ClockArg {
    /// Counted instructions: the same run every time, on any host.
    #[default]
    Counted,
    /// The host's time.
    Live,
}

/// Default number of repetitions with the live clock.
const LIVE_REPETITIONS: u32 = 5;

/// Arguments of `vm`.
#[derive(Debug, Args)]
pub struct VmArgs {
    /// Built-in workload, such as hogs or hogs:n=4,work=100ms, or a file
    #[arg(add = ArgValueCompleter::new(complete::workloads))]
    pub workload: String,
    /// Kernels, separated by commas: series (`schedlab kernel list`) or image files
    #[arg(long, value_delimiter = ',', value_name = "KERNELS", default_value = "6.12",
          add = ArgValueCompleter::new(complete::kernels))]
    pub kernel: Vec<String>,
    /// Schedulers: `kernel` is the kernel's own, others use sched_ext
    #[arg(long, short = 'S', visible_alias = "schedulers", value_delimiter = ',',
          value_name = "NAME",
          default_value = KERNEL, default_value_if("scheduler_cmd", ArgPredicate::IsPresent, None))]
    pub scheduler: Vec<String>,
    /// Program that loads a scheduler, with its arguments, such as './scx_lavd --performance'
    ///
    /// Runs in the guest, with the libraries that it needs, until the workload has ended. Quotes
    /// keep words together. Repeatable.
    #[arg(long, hide_short_help = true, value_name = "COMMAND")]
    pub scheduler_cmd: Vec<String>,
    /// CPUs of the guest, such as 2 or 0-1; at most 64
    #[arg(long, value_name = "N|LIST", default_value_t = 1,
          value_parser = crate::input::model_cpus)]
    pub cpus: u32,
    /// Counted time that each of several CPUs executes before the clock goes on [default: 2us]
    ///
    /// Needs `schedlab qemu build`. 1us to 1ms.
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = quantum)]
    pub quantum: Option<Nanos>,
    /// Clock of the guest
    #[arg(long, value_enum, default_value_t)]
    pub clock: ClockArg,
    /// Runs, each with the next seed [default: 1, or 5 with the live clock]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repetitions: Option<u32>,
    /// Make each switch longer, by a time of its own up to this one
    ///
    /// What changes then depends on microseconds. Needs the counted clock. Up to 20us; the seed
    /// draws the times.
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = input::jitter)]
    pub switch_jitter: Option<Nanos>,
    /// Number of the boot: another one draws other random numbers in the kernel
    ///
    /// The random numbers of the workload come from the seed. Needs the counted clock. 0 to 1,000.
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(Boot::MAX)))]
    pub boot: u32,
    /// Set an option of the sched_ext scheduler, such as slice_ms=5 (repeatable)
    #[arg(long = "set", short = 's', value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// Set a sysctl of the guest, or a file by its path (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub sysctl: Vec<String>,
    /// Boot the guest instead of restoring its cached snapshot
    #[arg(long, hide_short_help = true)]
    pub no_snapshot: bool,
    /// Limit on the real time of a boot, and of a run
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "5min",
          value_parser = crate::input::duration)]
    pub limit: Nanos,
    /// Repeat the workload for this long without reloading the scheduler
    ///
    /// The result is that of the first round.
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = crate::input::duration,
          conflicts_with = "golden")]
    pub soak: Option<Nanos>,
    /// Compare the decisions with this file; fail at the first difference
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub golden: Option<PathBuf>,
    /// Write the decisions into the file of --golden
    #[arg(long, hide_short_help = true, requires = "golden")]
    pub bless: bool,
    /// With --bless: keep only the order of tasks and the reasons of switches
    ///
    /// These are the same for every build of schedlab.
    #[arg(long, hide_short_help = true, requires = "bless")]
    pub turns: bool,
    /// How the source of a sched_ext scheduler is compiled.
    #[command(flatten)]
    pub scx: ScxArgs,
    /// The workload.
    #[command(flatten)]
    pub tasks: WorkloadArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Runs the command.
pub fn vm(args: &VmArgs, out: &mut Out) -> CliResult<()> {
    let named = input::workload(&args.workload, &args.tasks, args.cpus)?;
    let lane = lane(args)?;
    let requests = requests(args, &named)?;
    let one = requests.len() == 1;
    if !one && (args.output.print.slices || args.output.trace.file.is_some()) {
        return Err(CliError::usage_help(
            format!("--slices and --trace show one run, here are {}", requests.len()),
            "give one kernel, one scheduler and --repetitions 1",
        ));
    }
    let mut golden = args.golden.as_deref().map(|path| Golden::open(path, args)).transpose()?;
    let mut runs = Vec::new();
    for request in &requests {
        let mut seen = Seen::default();
        let mut run = sim::run_one_into(&lane, request, &args.output, out, &mut seen.sink())?;
        run.warnings.extend(named.warnings.iter().cloned());
        tell_identity(&run);
        if let Some(golden) = &mut golden {
            golden.check(&lane, request, &run, seen)?;
        }
        runs.push(run);
    }
    results::warn(runs.iter());
    sim::show(runs, &args.output, out)?;
    out.finish_now()?;
    golden.map_or(Ok(()), Golden::finish)
}

/// The lane with the given options.
fn lane(args: &VmArgs) -> CliResult<VmLane> {
    let writes: CliResult<Vec<_>> = args.sysctl.iter().map(|text| write(text)).collect();
    let options = Options {
        clock: match args.clock {
            ClockArg::Counted => Clock::Counted,
            ClockArg::Live => Clock::Live,
        },
        uses_snapshots: !args.no_snapshot,
        limit: Duration::from_nanos(args.limit),
        writes: writes?,
        soak: args.soak.map(Duration::from_nanos),
        source: args.scx.options_for_kernel()?,
        quantum_ns: args.quantum,
        is_compared: true,
        commands: commands(args)?,
        setup: args.scx.setup.clone(),
    };
    lane_with(options)
}

/// A lane that sets schedulers up as the simulator does.
pub fn lane_with(options: Options) -> CliResult<VmLane> {
    let lane = VmLane::new(options, say()).map_err(LaneError::from)?;
    Ok(lane.with_setups(setups::find))
}

/// The programs of `--scheduler-cmd`.
fn commands(args: &VmArgs) -> CliResult<Vec<ShippedScheduler>> {
    let mut commands: Vec<ShippedScheduler> = Vec::new();
    for text in &args.scheduler_cmd {
        let words = input::words(text)
            .map_err(|why| CliError::usage(format!("--scheduler-cmd {text:?}: {why}")))?;
        let mut command = ShippedScheduler::new(words).map_err(LaneError::from)?;
        // The same program with other arguments.
        let name = command.name.clone();
        for number in 2.. {
            if commands.iter().all(|other| other.name != command.name) {
                break;
            }
            command.name = format!("{name}#{number}");
        }
        commands.push(command);
    }
    Ok(commands)
}

/// The lane for a plan, with counted time; `None` if no run of the plan needs a guest.
pub fn lane_of(plan: &Plan) -> CliResult<Option<VmLane>> {
    let is_wanted = plan.runs.iter().any(|run| run.lane == LaneKind::Vm);
    is_wanted.then(|| lane_with(Options::default())).transpose()
}

/// Sets the models of a plan to the same timer frequency as the kernels of its guests.
pub fn agree_hz(plan: &mut Plan, guests: Option<&VmLane>, lane: &SimLane) -> CliResult<()> {
    let Some(guests) = guests else { return Ok(()) };
    let models = ModelTicks { hz: lane.hz, machine: lane.machine.as_deref() };
    plan.agree_hz(models, |scheduler| {
        let kernel = Target::parse(scheduler).kernel;
        Ok((kernel.to_owned(), guests.hz(kernel)?))
    })
}

/// A callback that reports slow steps on stderr.
pub fn say() -> Box<schedlab_vm::lane::Say> {
    Box::new(|text| output::say(format!("schedlab: {text}")))
}

/// Reads the value of `--quantum`.
fn quantum(text: &str) -> Result<Nanos, String> {
    const ALLOWED: std::ops::RangeInclusive<Nanos> = 1_000..=1_000_000;
    let ns = input::duration(text)?;
    let is_allowed = ALLOWED.contains(&ns);
    is_allowed.then_some(ns).ok_or_else(|| "allowed are 1us to 1ms".into())
}

/// The file of the guest and the text to write for a `--sysctl` setting.
fn write(text: &str) -> CliResult<(String, String)> {
    let (name, value) = schedlab_workload::pair("--sysctl", text)?;
    let path = match name.starts_with('/') {
        true => name.to_owned(),
        false => format!("/proc/sys/{}", name.replace('.', "/")),
    };
    Ok((path, value.to_owned()))
}

/// Refuses options after a scheduler's name, which the simulator takes.
fn check_name(scheduler: &str) -> CliResult<()> {
    let Some((name, option)) = scheduler.split_once(':') else { return Ok(()) };
    let advice = match option.contains('=') {
        true => format!("give options by --set: --scheduler {name} --set {option}"),
        false => format!("name a kernel by --kernel: --kernel {name} --scheduler {option}"),
    };
    Err(CliError::new(
        Exit::Usage,
        format!("--scheduler {scheduler}: a guest's scheduler is a name or a file, without \":\""),
        advice,
    ))
}

/// Makes one request for each kernel, scheduler and repetition.
fn requests(args: &VmArgs, named: &Named) -> CliResult<Vec<RunRequest>> {
    let tunables = input::pairs("--set", &args.options)?;
    args.scheduler.iter().try_for_each(|scheduler| check_name(scheduler))?;
    let repetitions = args.repetitions.unwrap_or(match args.clock {
        ClockArg::Counted => 1,
        ClockArg::Live if args.output.print.slices || args.output.trace.file.is_some() => 1,
        ClockArg::Live => LIVE_REPETITIONS,
    });
    let mut requests = Vec::new();
    for kernel in &args.kernel {
        let commands = commands(args)?;
        let named_last = commands.iter().map(|command| &command.name);
        for scheduler in args.scheduler.iter().chain(named_last) {
            for repetition in 0..repetitions {
                let mut parameters = named.parameters.clone();
                parameters.insert("cpus".into(), args.cpus.to_string());
                let is_kernels = scheduler == KERNEL;
                let scheduler = match is_kernels {
                    true => kernel.clone(),
                    false => format!("{kernel}:{scheduler}"),
                };
                let cpus = CpuMask::first(args.cpus);
                requests.push(RunRequest {
                    // Next to other schedulers, the kernel's own runs without options; alone, the
                    // lane reports why it cannot take them.
                    tunables: match is_kernels && args.scheduler.len() > 1 {
                        true => Vec::new(),
                        false => tunables.clone(),
                    },
                    parameters,
                    seed: args.tasks.seed.wrapping_add(u64::from(repetition)),
                    repetition,
                    until_ns: args.tasks.until,
                    switch_jitter_ns: args.switch_jitter.unwrap_or(0),
                    boot: Boot(args.boot),
                    keep: sim::keep(&args.output),
                    ..RunRequest::new(named.workload.clone(), scheduler, cpus)
                });
            }
        }
    }
    Ok(requests)
}

/// Prints the identity of a run on stderr, because stdout holds data only.
fn tell_identity(run: &RunResult) {
    let value = |name| run.machine.setting(name).unwrap_or_default();
    let checked = match value("vm.checked") {
        "" => String::new(),
        checked => format!(", checked {checked}"),
    };
    let soaked = match value("vm.rounds") {
        "" => String::new(),
        rounds => {
            let ns = value("vm.rounds_ns").parse().unwrap_or(0);
            format!(", {rounds} rounds in {} of the guest's time", crate::table::duration(ns))
        }
    };
    output::say(format!(
        "{} ({}): identity {:.16}, trace {:.16}, {} clock{checked}{soaked}",
        run.scheduler,
        run.machine.kernel,
        value("vm.identity"),
        value("vm.trace"),
        value("vm.clock"),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_name_or_a_path() {
        let of = |text| write(text).unwrap();
        let path = "/proc/sys/kernel/sched_rt_runtime_us".to_owned();
        assert_eq!(of("kernel.sched_rt_runtime_us=1"), (path, "1".into()));
        assert_eq!(of("/sys/a.b/c=x=y"), ("/sys/a.b/c".into(), "x=y".into()));
        assert!(write("kernel").is_err());
    }
}
