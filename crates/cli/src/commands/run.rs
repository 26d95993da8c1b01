// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab run`: a workload, or copies of any command, on the running kernel.

use super::trace_file::{OptionalTraceFile, SliceLines};
use super::{analysis, results, sim};
use crate::args::RunArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use crate::output::Out;
use crate::table::{self, duration, maybe_duration, number};
use schedlab_host::{HostLane, Output, PolicyOverride, RunCommand, run_command};
use schedlab_metrics::analysis::Context;
use schedlab_metrics::stats::Summary;
use schedlab_model::{CpuMask, Policy, SchedAttr, Workload};
use schedlab_run::analysis as analysis_facts;
use schedlab_run::policy;
use schedlab_run::{
    CopyResult, LaneError, LaneKind, Recorder, RunRequest, RunResult, SCHEMA_VERSION,
};
use std::collections::BTreeMap;

/// Source of a result that a trace gave.
const SOURCE_BPF: &str = "bpf";

/// Runs the command.
pub fn run(args: &RunArgs, out: &mut Out) -> CliResult<()> {
    let cpus = cpus(args)?;
    if args.repetitions > 1 && (args.output.print.slices || args.output.trace.file.is_some()) {
        return Err(CliError::usage_help(
            format!("--slices and --trace show one run, here are {}", args.repetitions),
            "leave --repetitions out",
        ));
    }
    let mut runs = Vec::new();
    for repetition in 0..args.repetitions {
        runs.push(match &args.workload {
            Some(workload) => run_workload(args, workload, cpus, repetition, out)?,
            None => run_copies(args, cpus, repetition, out)?,
        });
    }
    results::warn(runs.iter());
    let failed = runs.iter().flat_map(|run| &run.copies).filter(|copy| copy.exit_code != Some(0));
    let failed = failed.count();
    if args.workload.is_none() && !args.output.print.json && !args.output.print.slices {
        for run in &runs {
            out.line(copies_table(run))?;
            analysis::show(run, out)?;
        }
    } else {
        sim::show(runs, &args.output, out)?;
    }
    if failed > 0 {
        out.finish_now()?;
        return Err(CliError::new(
            Exit::Check,
            format!("{failed} of the copies did not end with exit code 0"),
            "the table shows the codes; a negative one is the signal that ended the copy",
        ));
    }
    Ok(())
}

/// The CPUs asked for, which this process must be allowed to use.
fn cpus(args: &RunArgs) -> CliResult<CpuMask> {
    let allowed = schedlab_host::allowed_cpus();
    let Some(wanted) = args.cpus else { return Ok(allowed) };
    let missing = wanted.and_not(&allowed);
    if missing.is_empty() {
        return Ok(wanted);
    }
    Err(CliError::new(
        Exit::Usage,
        format!("--cpus names {missing}, but this process may use CPUs {allowed}"),
        "name only those; `taskset -p $$` shows what a shell may use",
    ))
}

fn run_workload(
    args: &RunArgs,
    text: &str,
    cpus: CpuMask,
    repetition: u32,
    out: &mut Out,
) -> CliResult<RunResult> {
    let last = schedlab_host::allowed_cpus().iter().last().map_or(0, |cpu| cpu.0);
    let named = input::workload(text, &args.tasks, last + 1)?;
    let mut parameters = named.parameters;
    parameters.insert("cpus".into(), cpus.weight().to_string());
    let policy = args.tasks.policy.unwrap_or_default();
    let request = RunRequest {
        parameters,
        seed: args.tasks.seed.wrapping_add(u64::from(repetition)),
        repetition,
        until_ns: args.tasks.until,
        keep: sim::keep(&args.output),
        ..RunRequest::new(named.workload, policy.name(), cpus)
    };
    let mut run = sim::run_one(&HostLane, &request, &args.output, out)?;
    run.warnings.extend(named.warnings);
    Ok(run)
}

/// The request for copies of a command.
fn command(args: &RunArgs, cpus: CpuMask) -> CliResult<RunCommand> {
    if !args.tasks.params.is_empty() {
        return Err(CliError::usage_help(
            "--param is given, but a command is run",
            "parameters belong to built-in workloads",
        ));
    }
    let policy = args.tasks.policy.unwrap_or_default();
    if policy == Policy::Deadline {
        return Err(CliError::usage_help(
            "--policy deadline needs a runtime and a period for each task",
            "write an rt-app file (dl-runtime, dl-period)",
        ));
    }
    let priority = args.tasks.priority.unwrap_or(policy::RT_PRIORITY_DEFAULT);
    let rt_priority = if policy.is_rt() { priority } else { 0 };
    let mut command = RunCommand::new(args.command.clone());
    command.copies = args.copies.unwrap_or(1);
    command.policy = Some(PolicyOverride { policy, rt_priority });
    command.nice = args.tasks.nice.unwrap_or(0);
    command.cpus = cpus;
    if let Some(until_ns) = args.tasks.until {
        command.limit_ns = until_ns;
    }
    // What copies print would stand between the lines of data.
    if args.output.print.json || args.output.print.slices {
        command.output = Output::Null;
    }
    Ok(command)
}

fn run_copies(
    args: &RunArgs,
    cpus: CpuMask,
    repetition: u32,
    out: &mut Out,
) -> CliResult<RunResult> {
    let command = command(args, cpus)?;
    let name = args.command.first().map(|word| word.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let workload = Workload::new(name.rsplit('/').next().unwrap_or_default(), Vec::new());
    let last = cpus.iter().last().map_or(0, |cpu| cpu.0 + 1);
    let mut slices = SliceLines::new(args.output.print.slices.then_some(out), false);
    let mut file = OptionalTraceFile::create(&args.output.trace, &workload, last)?;
    let mut recorder = recorder(args, &command, &workload);
    let outcome = run_command(&command, &mut (&mut recorder, (&mut slices, file.sink())));
    slices.finish()?;
    let outcome = outcome.map_err(LaneError::from)?;
    file.commit()?;
    let recorded = recorder.finish(&workload);
    let is_recorded = outcome.host.source == SOURCE_BPF;
    let measures = if is_recorded {
        recorded.measures
    } else {
        schedlab_host::result::measures_without_trace(&outcome.host, &workload, cpus.weight())
    };
    Ok(RunResult {
        schema_version: SCHEMA_VERSION,
        schedlab_version: env!("CARGO_PKG_VERSION").into(),
        lane: LaneKind::Host.into(),
        scheduler: args.tasks.policy.unwrap_or_default().name().into(),
        workload: workload.name,
        parameters: command_parameters(args, &command),
        seed: args.tasks.seed,
        repetition,
        machine: outcome.host.machine,
        source: outcome.host.source.into(),
        warnings: outcome.host.warnings,
        measures,
        slices: recorded.slices,
        progress: recorded.progress,
        analysis: recorded.analysis.filter(|_| is_recorded),
        expectations: Vec::new(),
        copies: outcome.copies.into_iter().map(CopyResult::from).collect(),
        figures: BTreeMap::new(),
        groups: Vec::new(),
    })
}

/// The recorder of copies that all have the command's attributes.
fn recorder(args: &RunArgs, command: &RunCommand, workload: &Workload) -> Recorder {
    let keep = sim::keep(&args.output);
    let recorder = Recorder::new(command.cpus.weight(), keep);
    let Some(thresholds) = keep.analysis else { return recorder };
    let attr = SchedAttr {
        policy: command.policy.map_or(Policy::Normal, |given| given.policy),
        nice: command.nice,
        rt_priority: command.policy.map_or(0, |given| given.rt_priority),
        ..SchedAttr::default()
    };
    let other = analysis_facts::facts(&attr, &command.cpus);
    let context = analysis_facts::context(workload, &command.cpus, thresholds);
    recorder.with_analysis(Context { other, ..context })
}

fn command_parameters(args: &RunArgs, command: &RunCommand) -> BTreeMap<String, String> {
    let words: Vec<String> =
        args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    BTreeMap::from([
        ("n".into(), command.copies.to_string()),
        ("cpus".into(), command.cpus.weight().to_string()),
        ("nice".into(), command.nice.to_string()),
        ("command".into(), words.join(" ")),
    ])
}

/// Copies that the table shows one by one; the last line sums up all.
const COPIES_SHOWN: usize = 40;

/// One line a copy: wall, user, system, run delay, both kinds of switches.
fn copies_table(run: &RunResult) -> String {
    let mut rows = table::table(&[
        "copy",
        "pid",
        "wall",
        "user",
        "system",
        "run delay",
        "voluntary",
        "involuntary",
        "exit",
    ]);
    for copy in run.copies.iter().take(COPIES_SHOWN) {
        rows.add_row([
            number(copy.task),
            number(copy.pid),
            number(maybe_duration(copy.wall_ns)),
            number(duration(copy.user_ns)),
            number(duration(copy.system_ns)),
            number(duration(copy.run_delay_ns)),
            number(copy.nr_voluntary_switches),
            number(copy.nr_involuntary_switches),
            number(copy.exit_code.map_or_else(|| "-".into(), |code| code.to_string())),
        ]);
    }
    let mean = |value: &dyn Fn(&CopyResult) -> Option<u64>| {
        let values: Vec<f64> =
            run.copies.iter().filter_map(|copy| Some(value(copy)? as f64)).collect();
        (!values.is_empty()).then(|| Summary::of(&values).mean.round() as u64)
    };
    let count = |value: &dyn Fn(&CopyResult) -> Option<u64>| {
        number(mean(value).map_or_else(|| "-".into(), |mean| mean.to_string()))
    };
    rows.add_row([
        comfy_table::Cell::new("mean"),
        comfy_table::Cell::new(""),
        number(maybe_duration(mean(&|copy| copy.wall_ns))),
        number(maybe_duration(mean(&|copy| Some(copy.user_ns)))),
        number(maybe_duration(mean(&|copy| Some(copy.system_ns)))),
        number(maybe_duration(mean(&|copy| Some(copy.run_delay_ns)))),
        count(&|copy| Some(copy.nr_voluntary_switches)),
        count(&|copy| Some(copy.nr_involuntary_switches)),
        comfy_table::Cell::new(""),
    ]);
    format!(
        "{} x {} under {} on {}, measured by {}\n{}",
        run.copies.len(),
        run.workload,
        run.scheduler,
        table::counted(run.machine.nr_cpus, "CPU", "CPUs"),
        run.source,
        table::render(&rows)
    )
}
