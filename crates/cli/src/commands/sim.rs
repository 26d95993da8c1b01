// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab sim`: simulates one workload under one or more schedulers.

use super::progress::Bar;
use super::results::{self, Expectations};
use super::run_bar::RunBar;
use super::trace_file::{OptionalTraceFile, SliceLines};
use super::{analysis, inspect, report, watch};
use crate::args::{MachineArgs, OutputArgs, SimArgs};
use crate::error::{CliError, CliResult};
use crate::input::{self, Named};
use crate::machine;
use crate::output::{Out, say};
use crate::schedulers::{Schedulers, verdict_warning};
use schedlab_core::schedulers::Planned;
use schedlab_lab::plan::PlannedRun;
use schedlab_lab::{ExecuteOptions, Experiment, ExperimentResult, Plan, execute};
use schedlab_model::TraceSink;
use schedlab_model::trace::NullSink;
use schedlab_run::policy::Spec;
use schedlab_run::{Keep, Lane, LaneError, RunRequest, RunResult, run_and_check};
use schedlab_scx::inspect::Inspected;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::mem::take;

/// Runs the command.
pub fn sim(args: &SimArgs, out: &mut Out) -> CliResult<()> {
    if args.watch {
        return watch::watch(args);
    }
    results::check_columns(&args.output.columns)?;
    let mut lane = machine::sim_lane(&args.machine)?;
    let wanted = args.inspect.wanted(&args.scheduler, args.repetitions)?;
    if args.output.print.json && args.repetitions > 1 {
        args.inspect.check_json()?;
    }
    let user = args.user.spec(&args.scheduler)?;
    let known = Schedulers::new(&args.machine.scx, &args.machine.tunables)?;
    let known = known.inspecting(wanted).with_user_program(user);
    let nr_cpus = machine::nr_cpus(&lane, args.cpus)?;
    let named = input::workload(&args.workload, &args.tasks, nr_cpus)?;
    known.check_settings(args.scheduler.iter().map(String::as_str))?;
    let mut requests = Vec::new();
    for scheduler in &args.scheduler {
        for repetition in 0..args.repetitions {
            let mut one = request(args, &known, &named, nr_cpus, scheduler, repetition)?;
            if args.scheduler.len() > 1 {
                tell_tunables(&mut one, scheduler)?;
            }
            requests.push(one);
        }
    }
    lane.schedulers = known.compiled();
    machine::say_free(&lane, requests.iter().map(|request| request.scheduler.as_str()));
    let one = requests.len() == 1;
    if !one && (args.output.print.slices || args.output.trace.file.is_some()) {
        return Err(CliError::usage_help(
            format!("--slices and --trace show one run, here are {}", requests.len()),
            "give one scheduler and one repetition",
        ));
    }
    let ran = match requests.pop() {
        Some(request) if one => run_one(&lane, &request, &args.output, out).map(|run| vec![run]),
        last => {
            requests.extend(last);
            run_many(&lane, requests, args.user.threads(&args.machine), args.tasks.seed)
        }
    };
    let inspected = known.inspected();
    let mut runs = ran.inspect_err(|_| {
        // What a scheduler printed before it failed helps to find out why.
        if let Some(inspected) = &inspected {
            say(inspect::text(inspected));
        }
    })?;
    for run in &mut runs {
        run.warnings.extend(named.warnings.iter().cloned());
        run.warnings.extend(known.setup_warning(&run.scheduler));
        run.warnings.extend(verdict_warning(&lane, &run.scheduler));
    }
    results::warn(runs.iter());
    inspected.as_ref().map(|inspected| args.inspect.write(inspected)).transpose()?;
    show_inspected(runs, inspected.as_ref(), &args.output, out)
}

/// Prints results in the requested form and writes the report.
pub fn show(runs: Vec<RunResult>, output: &OutputArgs, out: &mut Out) -> CliResult<()> {
    show_inspected(runs, None, output, out)
}

/// As [`show`], with what was kept of the scheduler of the only run.
fn show_inspected(
    mut runs: Vec<RunResult>,
    inspected: Option<&Inspected>,
    output: &OutputArgs,
    out: &mut Out,
) -> CliResult<()> {
    let workload = runs.first().map(|run| run.workload.clone()).unwrap_or_default();
    let expectations = Expectations::of(runs.iter());
    if output.print.json {
        shown(&mut runs, output.print.keep, |runs| match (inspected, runs) {
            (Some(inspected), [run]) => out.json(&InspectedRun {
                run: Cow::Borrowed(run),
                inspected: Cow::Borrowed(inspected),
            }),
            _ => json(runs, out),
        })?;
    } else if !output.print.slices {
        match &runs[..] {
            [one] => {
                results::one_run(one, &output.columns, out)?;
                analysis::show(one, out)?;
            }
            many => out.line(results::comparison(many.iter(), &output.columns)?)?,
        }
        let more = inspected.map(inspect::text);
        more.map(|text| out.line(format!("\n{}", text.trim_end()))).transpose()?;
        expectations.table().map(|table| out.line(table)).transpose()?;
    }
    if output.report.is_some() || output.plots.is_some() {
        let results = [ExperimentResult::of_runs(&workload, runs)];
        let plots = output.plots.as_deref();
        match &output.report {
            Some(path) => report::write(path, plots, &workload, &results)?,
            None => report::write_plots(plots, &workload, &results)?,
        }
    }
    out.finish_now()?;
    expectations.check(&workload)
}

/// Prints one run as an object, several as an array, with the timeline only if `keep` is set.
pub fn print_json(runs: &mut [RunResult], keep: bool, out: &mut Out) -> CliResult<()> {
    shown(runs, keep, |runs| json(runs, out))
}

fn json(runs: &[RunResult], out: &mut Out) -> CliResult<()> {
    match runs {
        [one] => out.json(one),
        many => out.json(&many),
    }
}

/// Calls `print` with the results as JSON shows them: with their timelines only if `keep` is set.
/// They come back as they were; copies would double the memory of a run of many tasks.
fn shown(
    runs: &mut [RunResult],
    keep: bool,
    print: impl FnOnce(&[RunResult]) -> CliResult<()>,
) -> CliResult<()> {
    let mut timelines = Vec::new();
    if !keep {
        timelines
            .extend(runs.iter_mut().map(|run| (take(&mut run.slices), take(&mut run.progress))));
    }
    print(runs)?;
    for (run, (slices, progress)) in runs.iter_mut().zip(timelines) {
        (run.slices, run.progress) = (slices, progress);
    }
    Ok(())
}

/// A run with what was kept of its scheduler: what `sim --printk --maps --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct InspectedRun<'r> {
    /// The run.
    #[serde(flatten)]
    run: Cow<'r, RunResult>,
    /// Lines of bpf_printk(), maps and variables.
    #[serde(flatten)]
    inspected: Cow<'r, Inspected>,
}

/// Number of threads to simulate on.
pub fn threads(args: &MachineArgs) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, |count| count.get());
    args.threads.map_or_else(available, usize::from)
}

/// What a result keeps.
pub fn keep(output: &OutputArgs) -> Keep {
    let all = output.print.keep || output.report.is_some() || output.plots.is_some();
    let kept = if all { Keep::ALL } else { Keep::NOTHING };
    Keep { analysis: output.analysis.thresholds(), ..kept }
}

/// The request for one run.
pub fn request(
    args: &SimArgs,
    known: &Schedulers,
    named: &Named,
    nr_cpus: u32,
    scheduler: &str,
    repetition: u32,
) -> CliResult<RunRequest> {
    let found = known.of_spec(scheduler)?;
    let planned = Planned {
        named,
        scheduler: &found.scheduler,
        policy: found.policy.map(|policy| (policy, args.tasks.priority)),
        tunables: found.tunables,
        nr_cpus,
        machine: args.machine.machine.as_deref(),
        seed: args.tasks.seed,
        repetition,
        until_ns: args.tasks.until,
        keep: keep(&args.output),
    };
    let switch_jitter_ns = args.switch_jitter.unwrap_or(0);
    Ok(RunRequest { switch_jitter_ns, ..planned.request() })
}

/// Adds the tunables in the scheduler's text to the parameters of the run, by which runs of one
/// scheduler are told apart.
fn tell_tunables(request: &mut RunRequest, scheduler: &str) -> CliResult<()> {
    let own = Spec::parse(scheduler)?.tunables;
    for (name, value) in &request.tunables {
        if own.iter().any(|(own, _)| own == name) {
            request.parameters.insert(format!("set.{name}"), value.clone());
        }
    }
    Ok(())
}

/// Runs one request; its events can also go to a file and to stdout.
pub fn run_one(
    lane: &dyn Lane,
    request: &RunRequest,
    output: &OutputArgs,
    out: &mut Out,
) -> CliResult<RunResult> {
    run_one_into(lane, request, output, out, &mut NullSink)
}

/// Runs one request and sends its events to another sink too.
pub fn run_one_into(
    lane: &dyn Lane,
    request: &RunRequest,
    output: &OutputArgs,
    out: &mut Out,
    more: &mut dyn TraceSink,
) -> CliResult<RunResult> {
    let nr_cpus = request.cpus.iter().last().map_or(0, |cpu| cpu.0 + 1);
    let quits_early = lane.is_parallel() && output.trace.file.is_none();
    let mut slices = SliceLines::new(output.print.slices.then_some(out), quits_early);
    let mut file = OptionalTraceFile::create(&output.trace, &request.workload, nr_cpus)?;
    let bar = RunBar::new(lane.kind(), request);
    let mut sinks = (&mut slices, (file.sink(), more));
    let result = match bar.clock() {
        Some(clock) => run_and_check(lane, request, &mut (clock, &mut sinks)),
        None => run_and_check(lane, request, &mut sinks),
    };
    drop(bar);
    // Check the slices first: if their reader has gone, the run's own result does not matter.
    slices.finish()?;
    let result = result?;
    file.commit()?;
    Ok(result)
}

/// Runs many requests on several threads. The command reports the first failure in their order.
pub fn run_many(
    lane: &dyn Lane,
    requests: Vec<RunRequest>,
    threads: usize,
    seed: u64,
) -> CliResult<Vec<RunResult>> {
    let planned = |request| PlannedRun { experiment: 0, lane: lane.kind(), request };
    let plan = Plan {
        experiments: vec![Experiment::default()],
        runs: requests.into_iter().map(planned).collect(),
        notes: Vec::new(),
    };
    let bar = Bar::new(&plan);
    let step = |run: usize, error: Option<&LaneError>| bar.step(&plan.runs[run], error);
    let outcome = execute(&plan, &[lane], ExecuteOptions { threads, seed }, &step);
    bar.finish();
    if let Some(failure) = outcome.failures.into_iter().next() {
        return Err(failure.error.into());
    }
    Ok(outcome.results.into_iter().flat_map(|result| result.runs).collect())
}
