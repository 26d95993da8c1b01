// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact sequences of the first CFS (Linux 2.6.23 and v19) through the whole engine: programs,
//! ticks, keys, schedule() and the trace. One CPU unless said, nothing costs time.
//!
//! The sequences follow from the rules of Linux 2.6.23, kernel/sched_fair.c: a lead must exceed the
//! granularity, which falls to 0 when the running task has had its part of the latency.

use crate::common;

use common::checks::measures;
use common::workloads::{bursts, nice, policy};
use common::{Case, MS, Run, timeline};
use schedlab_metrics::TaskMeasures;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{LoopCount, Machine, Op, Policy, Program, TaskSpec, Workload};
use schedlab_sched::registry::find;

const FIRST: &str = "linux-2.6.23";
const V19: &str = "cfs-v19";

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

#[test]
fn section_5_4_hogs_under_v19() {
    // One constant lead to be exceeded, and no end to a turn but that.
    assert_eq!(turns(V19, 1000, &[0, 0], 27), "A3 B6 A6 B6 A6");
    assert_eq!(turns(V19, 250, &[0, 0], 60), "A12 B24 A24");
    assert_eq!(share(V19, [0, 5], 12_000), 7535);
}

#[test]
fn claim_s3_12_each_of_n_gets_an_nth() {
    for scheduler in [FIRST, V19] {
        for n in [2u64, 3, 5, 10] {
            let (run, tasks) = simulate(scheduler, 1000, hogs(&vec![0; n as usize]), 20_000);
            let fair = run.trace.end_ns / n;
            for task in tasks {
                let off = task.cpu_time_ns.abs_diff(fair);
                assert!(off * 100 < fair, "{scheduler}, {n} hogs: {off} ns from {fair} ns");
            }
        }
    }
}

#[test]
fn claim_s3_13_who_sleeps_half_of_the_time_runs_at_once_and_gets_what_it_asks_for() {
    // 5 ms of work and 5 ms of sleep, beside a hog.
    let half = |scheduler| {
        let program = bursts(100, 5 * MS, 5 * MS);
        let half = TaskSpec { is_process: true, ..TaskSpec::new("half", program) };
        let (_, tasks) = simulate(scheduler, 1000, vec![half, hog("hog", 0)], 5_000);
        assert_eq!(tasks[0].cpu_time_ns, 500 * MS, "all that it asks for");
        tasks[0].run_delay_ns
    };
    // It has waited for less than a tenth of what it ran.
    assert!(half(FIRST) < 50 * MS);
    // v19 credits only what it would have waited for had it been runnable, and takes that back from
    // itself too: it waits nearly as long as it runs.
    assert!(half(V19) > 400 * MS);
}

#[test]
fn section_5_3_a_child_runs_before_its_parent() {
    // The parent, alone on the CPU, forks after 3 ms; both then compute.
    let parent = ProgramBuilder::new().run(3 * MS).op(Op::Fork { task: 1 }).run(50 * MS).build();
    let child = TaskSpec { instances: 0, ..hog("child", 0) };
    let parent = TaskSpec { is_process: true, ..TaskSpec::new("parent", parent) };
    let (run, _) = simulate(FIRST, 1000, vec![parent.clone(), child.clone()], 40);
    // The child's key lies 20 ms before its parent's, but its account at -10 ms: the first tick
    // puts it 11 ms behind. The parent may then run for more than 10 ms, after which any lead
    // counts.
    assert_eq!(timeline(&run), "0A 3B 4A 16B 23A 34B");
    let workload = Workload::new("vector", vec![parent, child]);
    let mut case = case(&workload, FIRST, 1000, 25);
    case.options.set(&case.scheduler.tunables, "sched_child_runs_first", 0).unwrap();
    let run = case.run().unwrap();
    assert_eq!(timeline(&run), "0A 9B 20A");
}

#[test]
fn section_5_3_default_and_compatible_yield() {
    let yielder = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .run(MS / 2)
        .op(Op::Yield)
        .end_loop()
        .build();
    let tasks =
        vec![TaskSpec { is_process: true, ..TaskSpec::new("yielder", yielder) }, hog("hog", 0)];
    let workload = Workload::new("vector", tasks);
    let hog_share = |compat: u64| {
        let mut case = case(&workload, FIRST, 1000, 1_000);
        case.options.set(&case.scheduler.tunables, "sched_compat_yield", compat).unwrap();
        let run = case.run().unwrap();
        measures(&case, &run).tasks[1].cpu_time_ns * 100 / run.trace.end_ns
    };
    // By its account the yielder keeps its half; behind all others it has what is left of turns.
    assert!((49..=51).contains(&hog_share(0)), "{}", hog_share(0));
    assert!(hog_share(1) > 85, "{}", hog_share(1));
}

#[test]
fn section_5_2_nothing_is_held_back_for_fair_tasks() {
    let fifo = |name: &str| TaskSpec {
        attr: policy(Policy::Fifo, 10),
        is_process: true,
        ..TaskSpec::new(name, endless())
    };
    let (run, tasks) = simulate(FIRST, 1000, vec![hog("hog", 0), fifo("fifo")], 5_000);
    assert_eq!(tasks[0].cpu_time_ns, 0);
    assert_eq!(tasks[1].cpu_time_ns, run.trace.end_ns);
    assert_eq!(timeline(&run), "0B");
}
