// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab compare`: one workload under several schedulers, simulated and on this machine.

use super::progress::{Bar, Unavailable, finish_with_failures};
use super::results::{self, Expectations};
use super::{report, sim, sweep, vm};
use crate::args::CompareArgs;
use crate::error::{CliError, CliResult};
use crate::input::{self, Named};
use crate::machine;
use crate::output::{Out, say};
use crate::schedulers::Schedulers;
use schedlab_host::HostLane;
use schedlab_lab::plan::PlannedRun;
use schedlab_lab::{ExecuteOptions, Experiment, Plan, execute};
use schedlab_model::{CpuMask, Policy};
use schedlab_run::policy;
use schedlab_run::{Keep, Lane, LaneKind, RunRequest};

/// Schedulers that are simulated when none is named.
const DEFAULT_SCHEDULERS: [&str; 4] = ["linux-6.1", "linux-6.12", "rr", "fcfs"];

/// Repetitions on this machine if nothing is said.
const REPETITIONS_DEFAULT: u32 = 3;

fn cpus(args: &CompareArgs) -> u32 {
    args.cpus.unwrap_or(1)
}

/// Runs the command.
pub fn compare(args: &CompareArgs, out: &mut Out) -> CliResult<()> {
    match &args.workload {
        None => sweep::repeat(args, out),
        Some(text) if sweep::is_experiment(text) => sweep::sweep(args, text, out),
        Some(text) => {
            sweep::refuse_options(&args.sweep)?;
            compare_one(args, text, out)
        }
    }
}

fn compare_one(args: &CompareArgs, text: &str, out: &mut Out) -> CliResult<()> {
    let named = input::workload(text, &args.tasks, cpus(args))?;
    let mut lane = machine::sim_lane(&args.machine)?;
    // Where kernels are measured too, models have to pay as these do.
    lane.charges_textbooks = !args.host.is_empty() || !args.vm.is_empty();
    let known = Schedulers::new(&args.machine.scx, &args.machine.tunables)?;
    let host = HostLane;
    let mut plan = plan(args, &known, &named)?;
    lane.schedulers = known.compiled();
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
    }
    let runs = || outcome.results.iter().flat_map(|result| &result.runs);
    results::warn(runs());
    let expectations = Expectations::of(runs());
    if args.json {
        let runs: Vec<_> = runs().cloned().collect();
        sim::print_json(&runs, args.keep, out)?;
    } else {
        out.line(results::comparison(runs()))?;
        expectations.table().map(|table| out.line(table)).transpose()?;
    }
    if let (Some(path), true) = (&args.report, runs().next().is_some()) {
        report::write(path, None, &named.workload.name, &outcome.results)?;
    }
    out.finish_now()?;
    let finished = finish_with_failures(&outcome.failures, Unavailable::Fails);
    // A failed check counts most.
    expectations.check(&named.workload.name).and(finished)
}

fn plan(args: &CompareArgs, known: &Schedulers, named: &Named) -> CliResult<Plan> {
    let mut schedulers: Vec<&str> = args.scheduler.iter().map(String::as_str).collect();
    if schedulers.is_empty() && args.host.is_empty() && args.vm.is_empty() {
        schedulers.extend(DEFAULT_SCHEDULERS);
    }
    known.check_settings(schedulers.iter().copied())?;
    let host_cpus = schedlab_host::allowed_cpus();
    if !args.host.is_empty() && host_cpus.weight() < cpus(args) {
        return Err(CliError::new(
            crate::error::Exit::Unavailable,
            format!("--cpus is {}, but this process may use CPUs {host_cpus}", cpus(args)),
            "give fewer CPUs, or leave --host out",
        ));
    }
    let mut runs = Vec::new();
    for scheduler in schedulers {
        let scheduler = policy::scheduler_of(LaneKind::Sim, scheduler)?;
        let found = known.find(&scheduler.0)?;
        let scheduler = (found.name.to_string(), scheduler.1);
        let cpus = CpuMask::first(cpus(args));
        let mut run = planned(args, named, LaneKind::Sim, scheduler, cpus, 0);
        run.request.tunables = known.tunables(&found);
        runs.push(run);
    }
    for target in &args.vm {
        let target = policy::scheduler_of(LaneKind::Vm, target)?;
        runs.push(planned(args, named, LaneKind::Vm, target, CpuMask::first(cpus(args)), 0));
    }
    let cpus: CpuMask = host_cpus.iter().take(cpus(args) as usize).collect();
    for policy in &args.host {
        for repetition in 0..args.repetitions.unwrap_or(REPETITIONS_DEFAULT) {
            let policy = policy::scheduler_of(LaneKind::Host, policy)?;
            runs.push(planned(args, named, LaneKind::Host, policy, cpus, repetition));
        }
    }
    let experiment = Experiment::of_runs(&named.workload.name);
    Ok(Plan { experiments: vec![experiment], runs, notes: Vec::new() })
}

fn planned(
    args: &CompareArgs,
    named: &Named,
    lane: LaneKind,
    (scheduler, policy): (String, Option<Policy>),
    cpus: CpuMask,
    repetition: u32,
) -> PlannedRun {
    let mut workload = named.workload.clone();
    let mut parameters = named.parameters.clone();
    parameters.insert("cpus".into(), cpus.weight().to_string());
    if let Some(policy) = policy {
        let priority = args.tasks.priority.unwrap_or(policy::RT_PRIORITY_DEFAULT);
        policy::apply_policy(&mut workload, policy, priority);
        if lane == LaneKind::Sim {
            parameters.insert("policy".into(), policy.name().into());
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
