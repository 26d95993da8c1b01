// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a plan: models on several threads; real machines one run after the other, alone.
//!
//! Results are in the plan's order for any number of threads, so that the output depends on the
//! plan only.

use crate::ExperimentResult;
use crate::plan::Plan;
use schedlab_model::trace::NullSink;
use schedlab_run::{Lane, LaneError, LaneKind, RunResult, run_and_check};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How to run a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExecuteOptions {
    /// Threads for lanes that are parallel; at least 1.
    pub threads: usize,
    /// Seed for the order of runs on real machines.
    pub seed: u64,
}

/// A run without a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Index into the plan's runs.
    pub run: usize,
    /// Description of the run, for people.
    pub label: String,
    /// Why there is no result.
    pub error: LaneError,
}

/// The outcome of a plan.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// One entry for each experiment of the plan, with the runs that gave a result.
    pub results: Vec<ExperimentResult>,
    /// The failed runs, in the plan's order.
    pub failures: Vec<Failure>,
}

/// Callback for each run that ends; may be called from several threads.
pub type Progress<'a> = dyn Fn(usize, Option<&LaneError>) + Sync + 'a;

/// Callback that receives each run's result when it ends, possibly from several threads at once. It
/// returns whether to continue.
pub type Receive<'a> = dyn Fn(usize, Result<RunResult, LaneError>) -> ControlFlow<()> + Sync + 'a;

type Slot = Mutex<Option<Result<RunResult, LaneError>>>;

/// Runs every run of `plan` in its lane. Parallel lanes come first. The others follow in an order
/// shuffled by the seed, with no other work at the same time.
pub fn execute(
    plan: &Plan,
    lanes: &[&dyn Lane],
    options: ExecuteOptions,
    progress: &Progress<'_>,
) -> Outcome {
    let slots: Vec<Slot> = plan.runs.iter().map(|_| Mutex::new(None)).collect();
    execute_some(plan, lanes, options, &|_| true, &|run, result| {
        progress(run, result.as_ref().err());
        if let Ok(mut slot) = slots[run].lock() {
            *slot = Some(result);
        }
        ControlFlow::Continue(())
    });
    collect(plan, slots)
}

/// Runs the runs of `plan` that `wanted` selects, in the order of [`execute`]. Passes each result
/// on at once instead of keeping it. After a `Break` no further run begins.
pub fn execute_some(
    plan: &Plan,
    lanes: &[&dyn Lane],
    options: ExecuteOptions,
    wanted: &dyn Fn(usize) -> bool,
    receive: &Receive<'_>,
) {
    let lane_of = |kind: LaneKind| lanes.iter().copied().find(|lane| lane.kind() == kind);
    let stopped = AtomicBool::new(false);
    let run_one = |run: usize| {
        let planned = &plan.runs[run];
        let result = match lane_of(planned.lane) {
            Some(lane) => run_and_check(lane, &planned.request, &mut NullSink),
            None => {
                Err(LaneError::Unavailable(format!("there is no lane {:?}", planned.lane.name())))
            }
        };
        if receive(run, result).is_break() {
            stopped.store(true, Ordering::Relaxed);
        }
    };
    let goes_on = || !stopped.load(Ordering::Relaxed);
    let is_serial = |kind: LaneKind| lane_of(kind).is_some_and(|lane| !lane.is_parallel());
    let parallel: Vec<usize> = (0..plan.runs.len())
        .filter(|&run| !is_serial(plan.runs[run].lane) && wanted(run))
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, parallel.len().max(1)) {
            scope.spawn(|| {
                while let Some(&run) = parallel.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !goes_on() {
                        break;
                    }
                    run_one(run);
                }
            });
        }
    });
    let serial = plan.host_order(options.seed, is_serial);
    for run in serial.into_iter().filter(|&run| wanted(run)) {
        if goes_on() {
            run_one(run);
        }
    }
}

fn collect(plan: &Plan, slots: Vec<Slot>) -> Outcome {
    let mut outcome = Outcome {
        results: plan
            .experiments
            .iter()
            .map(|experiment| ExperimentResult { experiment: experiment.clone(), runs: Vec::new() })
            .collect(),
        failures: Vec::new(),
    };
    for (run, slot) in slots.into_iter().enumerate() {
        let planned = &plan.runs[run];
        let result = slot.into_inner().ok().flatten().unwrap_or_else(|| {
            Err(LaneError::System("the run's thread ended before the run did".into()))
        });
        match result {
            Ok(result) => outcome.results[planned.experiment].runs.push(result),
            Err(error) => {
                outcome.failures.push(Failure { run, label: planned.label(), error });
            }
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use crate::plan::PlannedRun;
    use schedlab_model::{CpuMask, TraceSink, Workload};
    use schedlab_run::RunRequest;

    /// A lane that returns its seed, refuses multiples of 5, and notes the order.
    struct Echo {
        parallel: bool,
        order: Mutex<Vec<u64>>,
    }

    impl Lane for Echo {
        fn kind(&self) -> LaneKind {
            if self.parallel { LaneKind::Sim } else { LaneKind::Host }
        }
        fn is_parallel(&self) -> bool {
            self.parallel
        }
        fn run(&self, request: &RunRequest, _: &mut dyn TraceSink) -> Result<RunResult, LaneError> {
            self.order.lock().unwrap().push(request.seed);
            if request.seed.is_multiple_of(5) {
                return Err(LaneError::Check("multiple of 5".into()));
            }
            Ok(RunResult { seed: request.seed, ..Default::default() })
        }
    }

    fn plan(lane: LaneKind, nr_runs: u64) -> Plan {
        let experiment = Experiment {
            name: "x".into(),
            study: String::new(),
            title: String::new(),
            text: String::new(),
            figures: vec![],
            view: None,
        };
        let request = |seed| RunRequest {
            seed,
            ..RunRequest::new(Workload::new("w", vec![]), "s", CpuMask::first(1))
        };
        let run = |seed| PlannedRun { experiment: 0, lane, request: request(seed) };
        Plan {
            experiments: vec![experiment],
            runs: (1..=nr_runs).map(run).collect(),
            notes: vec![],
        }
    }

    fn lane(parallel: bool) -> Echo {
        Echo { parallel, order: Mutex::new(vec![]) }
    }

    #[test]
    fn results_stand_in_the_plans_order_for_any_number_of_threads() {
        let plan = plan(LaneKind::Sim, 40);
        let run = |threads| {
            execute(&plan, &[&lane(true)], ExecuteOptions { threads, seed: 1 }, &|_, _| {})
        };
        let one = run(1);
        assert_eq!(one, run(4));
        let seeds: Vec<u64> = one.results[0].runs.iter().map(|run| run.seed).collect();
        assert_eq!(seeds, (1..=40).filter(|seed| seed % 5 != 0).collect::<Vec<_>>());
        assert_eq!(one.failures.len(), 8);
        assert_eq!(one.failures[0].error, LaneError::Check("multiple of 5".into()));
    }

    #[test]
    fn a_real_machine_is_measured_in_shuffled_order_and_reported_in_plan_order() {
        let plan = plan(LaneKind::Host, 9);
        let host = lane(false);
        let outcome = execute(&plan, &[&host], ExecuteOptions { threads: 4, seed: 3 }, &|_, _| {});
        let order = host.order.into_inner().unwrap();
        assert_ne!(order, (1..=9).collect::<Vec<_>>());
        assert!(outcome.results[0].runs.is_sorted_by_key(|run| run.seed));
    }

    #[test]
    fn after_a_break_no_run_begins() {
        let plan = plan(LaneKind::Sim, 40);
        let echo = lane(true);
        let options = ExecuteOptions { threads: 1, seed: 1 };
        execute_some(&plan, &[&echo], options, &|run| run != 1, &|run, _| match run {
            3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        assert_eq!(echo.order.into_inner().unwrap(), [1, 3, 4], "seed 2 was not wanted");
    }

    #[test]
    fn totals_do_without_the_tasks_they_are_of() {
        let workload = schedlab_workload::builtin("hogs", &[("n", "3")]).unwrap();
        let whole = RunRequest::new(workload, "rr", CpuMask::first(2));
        let keep = schedlab_run::Keep { totals_only: true, ..whole.keep };
        let run = |request: &RunRequest| {
            run_and_check(&schedlab_sim::SimLane::default(), request, &mut NullSink)
                .unwrap()
                .measures
        };
        let (all, totals) = (run(&whole), run(&RunRequest { keep, ..whole.clone() }));
        assert_eq!((all.tasks.len(), totals.tasks.len()), (3, 0));
        assert_eq!(all.totals, totals.totals);
    }

    #[test]
    fn a_plan_for_a_lane_that_is_not_there_fails_by_name() {
        let outcome = execute(
            &plan(LaneKind::Vm, 1),
            &[],
            ExecuteOptions { threads: 1, seed: 1 },
            &|_, _| {},
        );
        assert!(outcome.failures[0].error.text().contains("\"vm\""));
    }
}
