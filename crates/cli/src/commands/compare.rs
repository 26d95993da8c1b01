// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab compare`: one workload under several schedulers, simulated and on this machine.

use super::compare_command::compare_command;
use super::progress::{Bar, Unavailable, finish_with_failures};
use super::results::{self, Expectations};
use super::{report, sim, sweep, vm};
use crate::args::{CompareArgs, WorkloadArgs};
use crate::error::{CliError, CliResult};
use crate::input::{self, Cpus, Named};
use crate::machine;
use crate::output::{Out, say};
use crate::schedulers::{self, Schedulers};
use schedlab_host::HostLane;
use schedlab_lab::plan::{self, PlannedRun};
use schedlab_lab::study::Shift;
use schedlab_lab::{ExecuteOptions, Experiment, Plan, View, execute};
use schedlab_model::{CpuMask, Release};
use schedlab_run::policy::Spec;
use schedlab_run::{Keep, Lane, LaneKind, RunRequest, RunResult, Variant, policy, values};
use schedlab_sim::SimLane;

/// Default list of schedulers to simulate.
const DEFAULT_SCHEDULERS: [&str; 4] = ["linux-6.1", "linux-6.12", "rr", "fcfs"];

/// Default number of repetitions on this machine.
const REPETITIONS_DEFAULT: u32 = 3;

fn cpus(args: &CompareArgs) -> u32 {
    args.cpus.map_or(1, |cpus| cpus.count())
}

/// Runs the command.
pub fn compare(args: &CompareArgs, out: &mut Out) -> CliResult<()> {
    results::check_columns(&args.columns)?;
    match &args.workload {
        None if !args.command.is_empty() => compare_command(args, out),
        None => sweep::repeat(args, out),
        Some(text) if sweep::is_experiment(text) => sweep::sweep(args, text, out),
        Some(text) => {
            sweep::refuse_options(&args.sweep)?;
            compare_one(args, text, out)
        }
    }
}

/// One value for each parameter and tunable that has several values.
#[derive(Clone, Debug, Default)]
struct Combination {
    /// In the form of `--param`.
    params: Vec<String>,
    /// In the form of `--set`.
    tunables: Vec<String>,
}

/// What the command line varies: `--param n=1,2,4` and `--set quantum=1ms,10ms`.
struct Varied {
    /// Names of the varied dimensions, in the order of the command line.
    names: Vec<String>,
    combinations: Vec<Combination>,
}

impl Varied {
    /// The values of one option, separated by commas.
    fn values(option: &str, text: &str) -> CliResult<(String, Vec<String>)> {
        let (name, values) = schedlab_workload::pair(option, text)?;
        let values = values.split(',').map(|value| format!("{name}={}", value.trim())).collect();
        Ok((name.into(), values))
    }

    fn of(args: &CompareArgs) -> CliResult<Self> {
        let mut varied = Self { names: Vec::new(), combinations: vec![Combination::default()] };
        for text in &args.tasks.params {
            let (name, values) = Self::values("--param", text)?;
            varied.add(name, &values, |one| &mut one.params);
        }
        // In an option of a .bpf.c a comma separates the values of an array.
        let has_file = args.scheduler.iter().any(|name| schedulers::is_source(name));
        for text in &args.machine.tunables {
            let (name, values) = match has_file {
                true => (String::new(), vec![text.clone()]),
                false => Self::values("--set", text)?,
            };
            let name = name.rsplit(':').next().unwrap_or_default();
            varied.add(format!("set.{name}"), &values, |one| &mut one.tunables);
        }
        // A scheduler's own tunables tell it from the same scheduler without them.
        for scheduler in &args.scheduler {
            for (name, _) in Spec::parse(scheduler)?.tunables {
                let name = format!("set.{name}");
                if !varied.names.contains(&name) {
                    varied.names.push(name);
                }
            }
        }
        Ok(varied)
    }

    fn add(
        &mut self,
        name: String,
        values: &[String],
        of: fn(&mut Combination) -> &mut Vec<String>,
    ) {
        if values.len() > 1 {
            self.names.push(name);
        }
        let all = std::mem::take(&mut self.combinations);
        for combination in all {
            for value in values {
                let mut one = combination.clone();
                of(&mut one).push(value.clone());
                self.combinations.push(one);
            }
        }
    }

    /// How the report arranges runs that differ in these dimensions as a table and curves.
    fn view(&self, runs: &[RunResult], columns: &[String]) -> Option<View> {
        if self.names.is_empty() {
            return None;
        }
        let numeric = |name: &&String| {
            runs.iter().all(|run| values::axis_value(&values::dimension(run, name)).is_some())
        };
        let measures = match columns {
            [] => results::compared_measures(runs),
            given => given.to_vec(),
        };
        let lane = runs.iter().any(|run| run.lane != runs[0].lane).then(|| "lane".to_owned());
        let by = lane.into_iter().chain(["scheduler".to_owned()]).chain(self.names.iter().cloned());
        let x = self.names.iter().find(numeric).cloned();
        Some(View { by: by.collect(), measures, x, ..View::default() })
    }
}

fn compare_one(args: &CompareArgs, text: &str, out: &mut Out) -> CliResult<()> {
    let varied = Varied::of(args)?;
    let mut lane = machine::sim_lane(&args.machine)?;
    // If kernels are measured too, models must pay the same costs.
    lane.charges_textbooks = !args.host.is_empty() || !args.vm.is_empty();
    let host = HostLane;
    let (mut plan, named, known) = plan_all(args, text, &varied, &mut lane)?;
    let guests = vm::lane_of(&plan)?;
    vm::agree_hz(&mut plan, guests.as_ref(), &lane)?;
    plan.notes.iter().for_each(|note| say(format!("note: {note}")));
    let simulated = plan.runs.iter().filter(|run| run.lane == LaneKind::Sim);
    machine::say_free(&lane, simulated.map(|run| run.request.scheduler.as_str()));
    let mut lanes: Vec<&dyn Lane> = vec![&lane, &host];
    lanes.extend(guests.as_ref().map(|lane| lane as &dyn Lane));
    let bar = Bar::new(&plan);
    let mut outcome = execute(
        &plan,
        &lanes,
        ExecuteOptions { threads: sim::threads(&args.machine), seed: args.tasks.seed },
        &|run, error| bar.step(&plan.runs[run], error),
    );
    bar.finish();
    for run in outcome.results.iter_mut().flat_map(|result| &mut result.runs) {
        run.warnings.extend(named.warnings.iter().cloned());
        run.warnings.extend(known.setup_warning(&run.scheduler));
        run.warnings.extend(schedulers::verdict_warning(&lane, &run.scheduler));
    }
    for result in &mut outcome.results {
        result.experiment.view = varied.view(&result.runs, &args.columns);
    }
    let runs = || outcome.results.iter().flat_map(|result| &result.runs);
    results::warn(runs());
    let expectations = Expectations::of(runs());
    if args.json {
        let mut runs: Vec<_> = runs().cloned().collect();
        sim::print_json(&mut runs, args.keep, out)?;
    } else if args.markdown {
        out.line(results::markdown(runs(), &args.columns, &expectations)?)?;
    } else {
        out.line(results::comparison(runs(), &args.columns)?)?;
        expectations.table().map(|table| out.line(table)).transpose()?;
    }
    if let (Some(path), true) = (&args.report, runs().next().is_some()) {
        report::write(path, None, &named.workload.name, &outcome.results)?;
    }
    out.finish_now()?;
    let finished = finish_with_failures(&outcome.failures, Unavailable::Fails);
    // A failed check takes precedence.
    expectations.check(&named.workload.name).and(finished)
}

/// Plans and simulates all combinations. Returns their runs and the workload of the first one; adds
/// compiled schedulers to `lane`.
fn plan_all(
    args: &CompareArgs,
    text: &str,
    varied: &Varied,
    lane: &mut SimLane,
) -> CliResult<(Plan, Named, Schedulers)> {
    let mut runs = Vec::new();
    let mut first = None;
    let mut params_before = None;
    for combination in &varied.combinations {
        let tasks = WorkloadArgs { params: combination.params.clone(), ..args.tasks.clone() };
        let named = input::workload(text, &tasks, cpus(args))?;
        let known = Schedulers::new(&args.machine.scx, &combination.tunables)?;
        runs.extend(simulated(args, &known, &named, varied)?);
        // Tunables belong to models, so kernels run only once for each workload.
        if params_before.as_ref() != Some(&combination.params) {
            runs.extend(measured(args, &named)?);
        }
        params_before = Some(combination.params.clone());
        if first.is_none() {
            lane.schedulers = known.compiled();
            first = Some((named, known));
        }
    }
    let Some((named, known)) = first else {
        return Err(CliError::usage("there is nothing to compare"));
    };
    let experiment = Experiment::of_runs(&named.workload.name);
    Ok((Plan { experiments: vec![experiment], runs, notes: Vec::new() }, named, known))
}

/// Simulates the models.
fn simulated(
    args: &CompareArgs,
    known: &Schedulers,
    named: &Named,
    varied: &Varied,
) -> CliResult<Vec<PlannedRun>> {
    let mut schedulers: Vec<&str> = args.scheduler.iter().map(String::as_str).collect();
    if schedulers.is_empty() && args.host.is_empty() && args.vm.is_empty() {
        schedulers.extend(DEFAULT_SCHEDULERS);
    }
    known.check_settings(schedulers.iter().copied())?;
    let mut runs = Vec::new();
    for scheduler in schedulers {
        let found = known.of_spec(scheduler)?;
        let name = &found.scheduler.name;
        let variant = Variant { policy: found.policy, ..Variant::default() };
        let cpus = CpuMask::first(cpus(args));
        // Every scheduler gets the same seeds, so that runs are pairs.
        for repetition in 0..args.repetitions.unwrap_or(1) {
            let mut run = planned(args, named, LaneKind::Sim, name, &variant, cpus, repetition);
            run.request.tunables.clone_from(&found.tunables);
            for (name, value) in &run.request.tunables {
                let name = format!("set.{name}");
                if varied.names.contains(&name) {
                    run.request.parameters.insert(name, value.clone());
                }
            }
            runs.push(run);
        }
    }
    Ok(runs)
}

/// Runs the workload on kernels: in guests, and on this machine.
fn measured(args: &CompareArgs, named: &Named) -> CliResult<Vec<PlannedRun>> {
    let mut runs = Vec::new();
    for target in &args.vm {
        let target = policy::scheduler_of(LaneKind::Vm, target)?.0;
        let cpus = CpuMask::first(cpus(args));
        for repetition in 0..args.repetitions.unwrap_or(1) {
            let variant = Variant::default();
            let mut run = planned(args, named, LaneKind::Vm, &target, &variant, cpus, repetition);
            // In counted time equal runs are identical. Another phase of the tick shows what the
            // kernel varies by itself. A start without a greatest value stays as it is: seeds draw
            // it.
            if repetition > 0 {
                let _ = plan::shift_start(&mut run, &Shift::usual(1), repetition);
            }
            runs.push(run);
        }
    }
    if args.host.is_empty() {
        return Ok(runs);
    }
    let cpus = args.cpus.unwrap_or(Cpus::Count(1)).on_this_machine()?;
    for variant in &args.host {
        for repetition in 0..args.repetitions.unwrap_or(REPETITIONS_DEFAULT) {
            let label = variant.to_string();
            runs.push(planned(args, named, LaneKind::Host, &label, variant, cpus, repetition));
        }
    }
    Ok(runs)
}

fn planned(
    args: &CompareArgs,
    named: &Named,
    lane: LaneKind,
    scheduler: &str,
    variant: &Variant,
    cpus: CpuMask,
    repetition: u32,
) -> PlannedRun {
    let mut workload = named.workload.clone();
    let mut parameters = named.parameters.clone();
    parameters.insert("cpus".into(), cpus.weight().to_string());
    variant.apply(&mut workload, args.tasks.priority.unwrap_or(policy::RT_PRIORITY_DEFAULT));
    if lane == LaneKind::Sim {
        if let Some(policy) = variant.policy {
            parameters.insert("policy".into(), policy.name().into());
        }
        // A kernel sees wake-ups: the tasks of a real run exist before its start.
        if !args.vm.is_empty() || !args.host.is_empty() {
            workload.tasks.iter_mut().for_each(|task| task.release = Release::Wakeup);
        }
    }
    PlannedRun {
        experiment: 0,
        lane,
        request: RunRequest {
            parameters,
            seed: args.tasks.seed.wrapping_add(u64::from(repetition)),
            repetition,
            until_ns: args.tasks.until,
            keep: Keep {
                analysis: args.analysis.thresholds(),
                ..if repetition == 0 { Keep::ALL } else { Keep::NOTHING }
            },
            ..RunRequest::new(workload, scheduler, cpus)
        },
    }
}
