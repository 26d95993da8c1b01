// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact sequences of the O(1) schedulers through the whole engine: programs, ticks, arrays,
//! schedule() and the trace. HZ=1000, one CPU, nothing costs time.
//!
//! The sequences follow from the time slices and priorities of Linux 2.6.0, 2.6.11 and 2.6.22,
//! kernel/sched.c.

use crate::common;

use common::checks::measures;
use common::workloads::{nice, on, policy, task};
use common::{Case, MS, Run};
use schedlab_metrics::TaskMeasures;
use schedlab_model::machine::Shape;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, CpuId, EventKind, LoopCount, Machine, Op, Policy, Program, Release, TaskSpec, Topology,
    Workload,
};
use schedlab_sched::registry::find;

const FIRST: &str = "linux-2.6.0";

fn endless() -> Program {
    ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000 * MS).end_loop().build()
}

/// A new process that only computes. One that was woken would have its wait counted as sleep.
fn hog(name: &str, value: i8) -> TaskSpec {
    TaskSpec { attr: nice(value), is_process: true, ..TaskSpec::new(name, endless()) }
}

fn simulate(scheduler: &str, tasks: Vec<TaskSpec>, until_ms: u64) -> (Run, Vec<TaskMeasures>) {
    let workload = Workload::new("vector", tasks);
    let mut case = Case::new(&workload, find(scheduler).expect("it is registered"), 1);
    case.machine = Machine { hz: 1000, ..case.machine };
    case.until_ns = Some(until_ms * MS);
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let tasks = measures(&case, &run).tasks;
    (run, tasks)
}

fn turns(scheduler: &str, tasks: Vec<TaskSpec>, until_ms: u64) -> String {
    common::turns(&simulate(scheduler, tasks, until_ms).0, MS)
}

/// Share of the first of two hogs in hundredths of a percent, over whole cycles.
fn share(scheduler: &str, nices: [i8; 2], cycle_ms: u64) -> u64 {
    let (run, tasks) =
        simulate(scheduler, vec![hog("A", nices[0]), hog("B", nices[1])], 20 * cycle_ms);
    (tasks[0].cpu_time_ns * 10_000 + run.trace.end_ns / 2) / run.trace.end_ns
}

/// A sleeper is due at the tick in which the slice of a SCHED_RR task is over. Up to 2.6.23 the
/// tick comes first: the task is alone in its list and begins another slice. From 2.6.24 on the
/// sleeper has a timer of its own, is in the list before the tick, and is next.
#[test]
fn sleepers_that_are_due_at_a_tick_wake_after_it_before_2_6_24() {
    // From 2.6.23 on the first slice of a task lasts a second.
    for (scheduler, first_slice, expected) in [
        (FIRST, 102, "A204 B102 A102"),
        ("linux-2.6.11", 100, "A200 B100 A100"),
        ("linux-2.6.22", 100, "A200 B100 A100"),
        ("rsdl-0.31", 6, "A12 B6 A6"),
        ("sd-0.48", 6, "A12 B6 A6"),
        ("cfs-v19", 1_000, "A1100 B1000 A100"),
        ("linux-2.6.23", 1_000, "A1100 B1000 A100"),
        ("linux-2.6.24", 1_000, "A1000 B1000 A100"),
    ] {
        let rr = |name: &str| task(name, policy(Policy::Rr, 10), endless());
        let late = TaskSpec { release_ns: Amount::Constant(first_slice * MS), ..rr("B") };
        let until = expected.split(' ').map(|turn| turn[1..].parse::<u64>().unwrap()).sum();
        assert_eq!(turns(scheduler, vec![rr("A"), late], until), expected, "{scheduler}");
    }
}

/// B is released while a hog runs. Forked, it waits for the end of the hog's slice. Woken, it has
/// slept since the start of the run (wake_up_process): 30 ms give it a bonus of 2 in 2.6.0 and of 3
/// in 2.6.11, which multiply them by 10, and none in 2.6.22. 550 ms make it interactive.
#[test]
fn a_task_that_the_launcher_wakes_has_slept_since_the_start() {
    for (scheduler, release_ms, forked, woken) in [
        (FIRST, 30, "A102 B102", "A30 B102 A72"),
        ("linux-2.6.11", 30, "A100 B100", "A30 B100 A70"),
        ("linux-2.6.22", 30, "A100 B100", "A100 B100"),
        (FIRST, 550, "A612 B102", "A550 B164"),
        ("linux-2.6.11", 550, "A600 B100", "A550 B164"),
        // Here a sleep counts once only: enough to preempt, not to keep the CPU.
        ("linux-2.6.22", 550, "A600 B100", "A550 B100 A50"),
    ] {
        for (release, expected) in [(Release::Fork, forked), (Release::Wakeup, woken)] {
            let release_ns = Amount::Constant(release_ms * MS);
            let late = TaskSpec { release, release_ns, ..hog("B", 0) };
            let until = expected.split(' ').map(|turn| turn[1..].parse::<u64>().unwrap()).sum();
            let text = turns(scheduler, vec![hog("A", 0), late], until);
            assert_eq!(text, expected, "{scheduler}, {release:?} at {release_ms} ms");
        }
    }
}

#[test]
fn section_3_12_hogs_under_2_6_0() {
    // The slices of 2.6.0 instead: 102 ms at nice 0, 53 at 10, 10 at 19, 200 at -20.
    assert_eq!(turns(FIRST, vec![hog("A", 0), hog("B", 0)], 408), "A102 B102 A102 B102");
    assert_eq!(turns(FIRST, vec![hog("A", 0), hog("B", 10)], 310), "A102 B53 A102 B53");
    assert_eq!(turns(FIRST, vec![hog("A", 19), hog("B", 19)], 40), "A10 B10 A10 B10");
    assert_eq!(share(FIRST, [0, 19], 112), 9107);
    assert_eq!(share(FIRST, [-20, 0], 302), 6623);
}

const LATER: [&str; 2] = ["linux-2.6.11", "linux-2.6.22"];

#[test]
fn section_3_12_hogs() {
    for scheduler in LATER {
        let hogs = |nices: [i8; 2]| vec![hog("A", nices[0]), hog("B", nices[1])];
        assert_eq!(turns(scheduler, hogs([0, 0]), 400), "A100 B100 A100 B100", "{scheduler}");
        assert_eq!(turns(scheduler, hogs([19, 19]), 20), "A5 B5 A5 B5", "{scheduler}");
        assert_eq!(turns(scheduler, hogs([0, 10]), 300), "A100 B50 A100 B50", "{scheduler}");
        assert_eq!(turns(scheduler, hogs([-20, 0]), 1800), "A800 B100 A800 B100", "{scheduler}");
    }
}

#[test]
fn section_3_12_shares() {
    for scheduler in LATER {
        assert_eq!(share(scheduler, [0, 1], 195), 5128);
        assert_eq!(share(scheduler, [0, 10], 150), 6667);
        assert_eq!(share(scheduler, [0, 19], 105), 9524);
        assert_eq!(share(scheduler, [-1, 0], 520), 8077);
        assert_eq!(share(scheduler, [-20, 0], 900), 8889);
    }
}

#[test]
fn an_interactive_task_keeps_the_cpu_for_four_slices() {
    // 150 ms of sleep are as good as a second. It goes on at the end of three slices, since its
    // bonus is 9, 8 and 7; then it has 6, which is not enough. The hog has 54 ms left.
    let sleeper = ProgramBuilder::new().sleep(150 * MS).run(1_000 * MS).build();
    let sleeper = TaskSpec { is_process: true, ..task("A", nice(0), sleeper) };
    let found = turns(FIRST, vec![sleeper, hog("B", 0)], 800);
    assert!(found.starts_with("B150 A408 B54 A102"), "{found}");
}

/// Of hogs that are woken together the one that had to wait is taken to be interactive: it has four
/// slices, and a fifth when the arrays have changed places, since its priority is still better.
#[test]
fn a_hog_that_has_waited_is_taken_to_be_interactive() {
    let hogs = ["A", "B"].map(|name| task(name, nice(0), endless()));
    let found = turns(FIRST, hogs.into(), 700);
    assert!(found.starts_with("A102 B510 A"), "{found}");
}

#[test]
fn a_child_runs_before_its_parent_and_shares_its_slice() {
    let parent = ProgramBuilder::new().op(Op::Fork { task: 1 }).run(1_000 * MS).build();
    let tasks = vec![
        TaskSpec { is_process: true, ..task("P", nice(0), parent) },
        TaskSpec { instances: 0, ..hog("C", 0) },
    ];
    // 102 ticks are split into 51 and 51; then each has a slice of its own.
    assert_eq!(turns(FIRST, tasks, 408), "B51 A51 B102 A102 B102");
}

#[test]
fn real_time_tasks() {
    let rt = |name, kind| task(name, policy(kind, 10), endless());
    // FIFO runs on; RR takes turns of the slice of its nice value.
    assert_eq!(turns(FIRST, vec![rt("A", Policy::Fifo), hog("B", -20)], 1_000), "A1000");
    let two = vec![rt("A", Policy::Rr), rt("B", Policy::Rr)];
    assert_eq!(turns(FIRST, two, 306), "A102 B102 A102");
}

#[test]
fn a_yielder_waits_for_the_arrays_to_change_places() {
    let yielder = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .run(MS)
        .op(Op::Yield)
        .end_loop()
        .build();
    let yielder = TaskSpec { is_process: true, ..task("A", nice(0), yielder) };
    assert_eq!(turns(FIRST, vec![yielder, hog("B", 0)], 206), "A1 B102 A1 B102");
}

/// Two hogs that were bound to the two threads of one core, beside an idle core of two threads:
/// nothing waits that could be pulled, so one of them is pushed while it runs.
#[test]
fn what_runs_is_pushed_to_an_idle_core() {
    let shape = Shape {
        nodes: 1,
        llcs_per_node: 1,
        cores_per_llc: 2,
        threads_per_core: 2,
        siblings_apart: false,
    };
    for scheduler in LATER {
        let bound = |name: &str, cpu: u32| {
            let mut program = ProgramBuilder::new();
            program.run(MS).op(Op::SetAttr(Box::default())).run(2_000 * MS);
            TaskSpec { attr: on(&[cpu]), is_process: true, ..TaskSpec::new(name, program.build()) }
        };
        let workload = Workload::new("pair", vec![bound("A", 0), bound("B", 1)]);
        let mut case = Case::new(&workload, find(scheduler).unwrap(), 4);
        case.machine = Machine { hz: 1000, topology: Topology::regular(shape), ..case.machine };
        let run = case.run().unwrap_or_else(|error| panic!("{error}"));
        let moves: Vec<_> = run
            .trace
            .events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Migrate { from, .. } => Some((event.time_ns / MS, from, event.cpu)),
                _ => None,
            })
            .collect();
        let (at_ms, from, to) = moves[0];
        assert!(at_ms < 100 && from < CpuId(2) && to >= CpuId(2), "{scheduler}: {:?}", moves[0]);
        assert_eq!(moves.len(), 1, "{scheduler}: one move makes the cores even");
        // Both run all the time: the push takes no time from either.
        assert_eq!(run.outcome.end_ns, 2_001 * MS, "{scheduler}");
    }
}
