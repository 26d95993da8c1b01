// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures one job: in this process, or as the median of several processes.

use super::job::Job;
use crate::args::{BenchArgs, BenchTrace, ScxChecks};
use crate::error::{CliError, CliResult, Exit};
use crate::machine;
use schedlab_engine::{SimConfig, SimError, SimOutcome};
use schedlab_host::{machine as host_machine, procfs, sys};
use schedlab_model::{Machine, Preempt, Workload};
use schedlab_sched::{Options, Scheduler};
use schedlab_sim::bench::{BenchResult, play};
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// CPU time used so far by this process and its compiler, if any, in seconds.
pub fn cpu_s() -> f64 {
    let usages = [sys::own_usage(), sys::usage_of_children()];
    usages.iter().map(|usage| (usage.user_us + usage.system_us) as f64 / 1e6).sum()
}

fn cpu_model() -> String {
    let text = host_machine::read("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    model.map_or_else(String::new, |rest| rest.trim_start_matches([':', '\t', ' ']).into())
}

/// Measures `job` under `scheduler` in this process. `compiling_cpu_s` is the CPU time (s) that
/// this process spent before, to compile schedulers; it does not count.
pub fn here(
    job: &Job,
    scheduler: &Scheduler,
    args: &BenchArgs,
    compiling_cpu_s: f64,
) -> CliResult<BenchResult> {
    let nr_cpus = args.cpus.unwrap_or(job.nr_cpus);
    let workload = job.workload(nr_cpus, args.tasks)?;
    let machine = modelled(args, nr_cpus)?;
    let options = Options::defaults(&scheduler.tunables);
    let config = SimConfig {
        machine: &machine,
        scheduler,
        options: &options,
        seed: 1,
        until_ns: Some(args.until.unwrap_or(job.until_ns)),
        watchdog_ns: None,
    };
    let before = cpu_s() - compiling_cpu_s;
    let (outcome, trace_bytes) = run(&workload, &config, args.trace)?;
    let after = cpu_s() - compiling_cpu_s;
    Ok(BenchResult {
        schedlab_version: env!("CARGO_PKG_VERSION").into(),
        job: job.name.clone(),
        text: job.text.clone(),
        scheduler: scheduler.name.to_string(),
        trace: args.trace.name().into(),
        machine: machine.name.clone(),
        nr_cpus,
        nr_tasks: outcome.nr_tasks,
        hz: machine.hz,
        simulated_ns: outcome.end_ns,
        nr_switches: outcome.nr_switches,
        nr_ticks: outcome.nr_ticks,
        nr_records: outcome.nr_events,
        nr_events: outcome.nr_events + outcome.nr_ticks,
        nr_entries_scanned: outcome.nr_entries_scanned,
        trace_bytes,
        cpu_s: after,
        start_up_cpu_s: before,
        run_cpu_s: after - before,
        switches_per_cpu_s: 0.0,
        events_per_cpu_s: 0.0,
        records_per_cpu_s: 0.0,
        run_switches_per_cpu_s: 0.0,
        run_events_per_cpu_s: 0.0,
        steady: None,
        max_rss_bytes: procfs::max_rss_bytes().unwrap_or_default(),
        nr_repetitions: 1,
        cpu_model: cpu_model(),
        kernel: host_machine::read("/proc/sys/kernel/osrelease").unwrap_or_default(),
    }
    .with_rates())
}

/// The machine as `schedlab sim` models it, but fully preemptible unless the machine's file sets a
/// preemption model.
fn modelled(args: &BenchArgs, nr_cpus: u32) -> CliResult<Machine> {
    let mut machine = match &args.machine {
        None => Machine::flat(nr_cpus),
        Some(text) => {
            let spec = machine::spec(text)?;
            let machine = spec.first_cpus(nr_cpus).map_err(CliError::usage)?;
            Machine { preempt: spec.preempt.unwrap_or(Preempt::Full), ..machine }
        }
    };
    machine.hz = args.hz.unwrap_or(machine.hz);
    if let Some(costs) = &args.costs {
        schedlab_run::machine::set_costs(&mut machine, machine::costs(costs)?);
    }
    Ok(machine)
}

fn run(
    workload: &Workload,
    config: &SimConfig<'_>,
    trace: BenchTrace,
) -> CliResult<(SimOutcome, u64)> {
    let refused = |error: SimError| match error {
        SimError::Unavailable(text) => CliError::usage(text),
        error => CliError::new(Exit::Check, error.to_string(), ""),
    };
    match trace {
        BenchTrace::None => Ok((play::untraced(workload, config).map_err(refused)?, 0)),
        BenchTrace::Binary => {
            let file = tempfile::tempfile()?;
            let (outcome, file) = play::logged(workload, config, file).map_err(refused)?;
            Ok((outcome, file?.metadata()?.len()))
        }
    }
}

/// Measures the job called `name` under `scheduler` with the arguments `more`, each repetition in a
/// process of its own. Returns the medians.
pub fn in_processes(
    name: &str,
    scheduler: &str,
    more: &[String],
    args: &BenchArgs,
) -> CliResult<BenchResult> {
    let mut results = Vec::new();
    for _ in 0..args.repetitions {
        results.push(in_process(name, scheduler, more, args)?);
    }
    Ok(BenchResult::median(&results))
}

/// Runs one process that measures the job called `name`.
pub fn in_process(
    name: &str,
    scheduler: &str,
    more: &[String],
    args: &BenchArgs,
) -> CliResult<BenchResult> {
    let failed = |text: String| CliError::new(Exit::Check, text, "");
    let program = std::env::current_exe()?;
    let mut words: Vec<OsString> =
        ["bench", name, "--json", "--trace", args.trace.name()].map(OsString::from).into();
    let mut option = |name: &str, value: String| words.extend([name.into(), value.into()]);
    option("--scheduler", scheduler.into());
    for (name, value) in [
        ("--machine", args.machine.clone()),
        ("--hz", args.hz.map(|hz| hz.to_string())),
        ("--costs", args.costs.clone()),
        ("--cpus", args.cpus.map(|cpus| cpus.to_string())),
        ("--tasks", args.tasks.map(|tasks| tasks.to_string())),
        ("--until", args.until.map(|ns| format!("{ns}ns"))),
    ] {
        if let Some(value) = value {
            option(name, value);
        }
    }
    for (name, paths) in [("--scx-include", &args.scx.include), ("--scx-source", &args.scx.source)]
    {
        for path in paths {
            words.extend([name.into(), path.into()]);
        }
    }
    if let Some(setup) = &args.scx.setup {
        words.extend(["--scx-setup".into(), setup.into()]);
    }
    if args.scx.checks == ScxChecks::Off {
        words.extend(["--scx-checks", "off"].map(Into::into));
    }
    for define in &args.scx.define {
        words.extend(["--scx-define".into(), define.into()]);
    }
    words.extend(more.iter().map(OsString::from));
    let output = Command::new(program).args(words).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(failed(format!("the process that measured {name} failed: {}", output.status)));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| failed(format!("the process that measured {name} said nonsense: {error}")))
}
