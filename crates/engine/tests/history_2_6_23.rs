// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact sequences of the first CFS (Linux 2.6.23 and v19) through the whole engine: programs,
//! ticks, keys, schedule() and the trace. One CPU unless said, nothing costs time.
//!
//! The sequences follow from the rules of Linux 2.6.23, kernel/sched_fair.c: a lead must exceed the
//! granularity, which falls to 0 when the running task has had its part of the latency.

mod common;

use common::checks::measures;
use common::workloads::nice;
use common::{Case, MS, Run};
use schedlab_metrics::TaskMeasures;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{LoopCount, Machine, Program, TaskSpec, Workload};
use schedlab_sched::registry::find;

const FIRST: &str = "linux-2.6.23";

fn endless() -> Program {
    ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000 * MS).end_loop().build()
}

fn hog(name: &str, value: i8) -> TaskSpec {
    TaskSpec { attr: nice(value), is_process: true, ..TaskSpec::new(name, endless()) }
}

fn hogs(nices: &[i8]) -> Vec<TaskSpec> {
    nices.iter().map(|&value| hog("hog", value)).collect()
}

fn case<'a>(workload: &'a Workload, scheduler: &str, hz: u32, until_ms: u64) -> Case<'a> {
    let mut case = Case::new(workload, find(scheduler).expect("it is registered"), 1);
    case.machine = Machine { hz, ..case.machine };
    case.until_ns = Some(until_ms * MS);
    case
}

fn simulate(
    scheduler: &str,
    hz: u32,
    tasks: Vec<TaskSpec>,
    until_ms: u64,
) -> (Run, Vec<TaskMeasures>) {
    let workload = Workload::new("vector", tasks);
    let case = case(&workload, scheduler, hz, until_ms);
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let tasks = measures(&case, &run).tasks;
    (run, tasks)
}

fn turns(scheduler: &str, hz: u32, nices: &[i8], until_ms: u64) -> String {
    common::turns(&simulate(scheduler, hz, hogs(nices), until_ms).0, MS)
}

/// Share of the first of two hogs in hundredths of a percent.
fn share(scheduler: &str, nices: [i8; 2], until_ms: u64) -> u64 {
    let (run, tasks) = simulate(scheduler, 1000, hogs(&nices), until_ms);
    (tasks[0].cpu_time_ns * 10_000 + run.trace.end_ns / 2) / run.trace.end_ns
}

#[test]
fn section_5_3_two_hogs() {
    assert_eq!(turns(FIRST, 1000, &[0, 0], 61), "A6 B11 A11 B11 A11 B11");
    assert_eq!(turns(FIRST, 250, &[0, 0], 56), "A8 B12 A12 B12 A12");
    assert_eq!(turns(FIRST, 100, &[0, 0], 70), "A10 B20 A20 B20");
}

#[test]
fn section_5_3_three_hogs() {
    let expected = "A5 B5 C7 A5 B7 C7 A7 B7 C7 A7";
    assert_eq!(turns(FIRST, 1000, &[0, 0, 0], 64), expected);
}

#[test]
fn section_5_3_hogs_of_other_nice_values() {
    assert_eq!(turns(FIRST, 1000, &[0, 5], 42), "A6 B3 A9 B3 A9 B3 A9");
    assert_eq!(turns(FIRST, 1000, &[0, 10], 33), "A6 B1 A9 B1 A9 B1 A6");
    assert_eq!(share(FIRST, [0, 5], 12_000), 7535);
    assert_eq!(share(FIRST, [0, 10], 10_000), 9030);
}
