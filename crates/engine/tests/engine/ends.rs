// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a run ends: by itself, at a time, or because time does not pass any more.

use schedlab_engine::{SimConfig, SimError, SimOutcome, simulate};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::NullSink;
use schedlab_model::{Costs, LoopCount, Machine, Nanos, Op, Program, TaskSpec, Workload};
use schedlab_sched::{Options, registry};

const MS: Nanos = 1_000_000;

fn run(
    program: Program,
    duration_ns: Option<Nanos>,
    until_ns: Option<Nanos>,
    costs: Costs,
) -> Result<SimOutcome, SimError> {
    let mut workload = Workload::new("ends", vec![TaskSpec::new("task", program)]);
    workload.duration_ns = duration_ns;
    let machine = Machine { costs, ..Machine::flat(1) };
    let scheduler = registry::find("rr").expect("rr is registered");
    let options = Options::defaults(&scheduler.tunables);
    let config = SimConfig {
        machine: &machine,
        scheduler,
        options: &options,
        seed: 1,
        until_ns,
        watchdog_ns: None,
    };
    simulate(&workload, &config, NullSink, None)
}

fn endless(op: Op) -> Program {
    ProgramBuilder::new().begin_loop(LoopCount::Forever).op(op).end_loop().build()
}

fn endless_hog() -> Program {
    ProgramBuilder::new().begin_loop(LoopCount::Forever).run(MS).end_loop().build()
}

#[test]
fn the_time_asked_for_replaces_the_workloads_own() {
    let end = |duration, until| run(endless_hog(), duration, until, Costs::ZERO).unwrap().end_ns;
    assert_eq!(end(Some(10 * MS), None), 10 * MS);
    assert_eq!(end(Some(10 * MS), Some(25 * MS)), 25 * MS);
    assert_eq!(end(Some(10 * MS), Some(5 * MS)), 5 * MS);
}

#[test]
fn a_run_ends_with_its_last_task() {
    let outcome = run(ProgramBuilder::new().run(3 * MS).build(), None, None, Costs::ZERO).unwrap();
    assert_eq!((outcome.end_ns, outcome.nr_exited, outcome.nr_switches), (3 * MS, 1, 2));
}

#[test]
fn a_loop_of_yields_that_cost_nothing_is_an_error_and_no_hang() {
    let error = run(endless(Op::Yield), None, Some(MS), Costs::ZERO).unwrap_err();
    assert!(matches!(&error, SimError::NoProgress { task, time_ns: 0 } if task == "task"));
    assert!(error.to_string().contains("--costs default"), "{error}");
    let outcome = run(endless(Op::Yield), None, Some(MS), Costs::DEFAULT).unwrap();
    assert_eq!(outcome.end_ns, MS);
}
