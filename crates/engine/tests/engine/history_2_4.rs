// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact sequences of `linux-2.4.18` through the whole engine: programs, ticks, epochs, schedule()
//! and the trace. HZ=100, one CPU, nothing costs time.
//!
//! The sequences follow from goodness() and the recalculation of Linux 2.4.17, kernel/sched.c.

use crate::common;

use common::checks::{check_case, measures};
use common::workloads::{all, bursts, nice, policy, task};
use common::{Case, MS, Run};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, Costs, LoopCount, Machine, Op, Policy, Program, Release, SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::registry::find;
use schedlab_sched::{Claims, Scheduler};

fn endless() -> Program {
    ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000 * MS).end_loop().build()
}

/// A hog with an address space of its own.
fn hog(name: &str, value: i8) -> TaskSpec {
    TaskSpec { is_process: true, ..task(name, nice(value), endless()) }
}

fn fifo(priority: u8) -> SchedAttr {
    policy(Policy::Fifo, priority)
}

fn simulate(tasks: Vec<TaskSpec>, options: &[(&str, u64)], until_ticks: u64) -> Run {
    let info = find("linux-2.4.18").expect("it is registered");
    let workload = Workload::new("vector", tasks);
    let mut case = Case::new(&workload, info, 1);
    for (name, value) in options {
        case.options.set(&info.tunables, name, *value).unwrap();
    }
    case.machine = Machine { hz: 100, ..case.machine };
    case.until_ns = Some(until_ticks * 10 * MS);
    case.run().unwrap_or_else(|error| panic!("{error}"))
}

fn turns(run: &Run) -> String {
    common::turns(run, 10 * MS)
}

/// The queue has the order of the list.
const IN_ORDER: &[(&str, u64)] = &[("wake_to", 1)];

#[test]
fn section_2_15_two_nice_0_and_one_nice_10() {
    let run = simulate(vec![hog("A", 0), hog("B", 0), hog("C", 10)], IN_ORDER, 45);
    assert_eq!(turns(&run), "A6 B6 C3 A6 B6 C3 A6 B6 C3");
}

#[test]
fn section_2_15_two_hogs_of_different_processes() {
    // The last to run in an epoch goes first in the next: its address space is loaded.
    let run = simulate(vec![hog("A", 0), hog("B", 0)], IN_ORDER, 48);
    assert_eq!(turns(&run), "A6 B12 A12 B12 A6");
}

#[test]
fn section_2_15_two_threads_of_a_process() {
    let threads = ["A", "B"].map(|name| task(name, nice(0), endless()));
    assert_eq!(turns(&simulate(threads.into(), IN_ORDER, 36)), "A6 B6 A6 B6 A6 B6");
}

#[test]
fn section_2_15_nice_minus_20_0_19() {
    let run = simulate(vec![hog("A", -20), hog("B", 0), hog("C", 19)], IN_ORDER, 54);
    assert_eq!(turns(&run), "A11 B6 C1 A11 B6 C1 A11 B6 C1");
}

#[test]
fn section_2_15_shares() {
    let shares = |first: i8, second: i8| {
        let tasks = vec![hog("A", first), hog("B", second)];
        let workload = Workload::new("shares", tasks);
        let mut case = Case::new(&workload, find("linux-2.4.18").unwrap(), 1);
        case.machine = Machine { hz: 100, ..case.machine };
        // Whole pairs of epochs: 22, 18, 14 and 24 ticks divide it.
        case.until_ns = Some(5544 * 10 * MS);
        let run = case.run().unwrap();
        let ran: Vec<u64> = measures(&case, &run).tasks.iter().map(|t| t.cpu_time_ns).collect();
        (ran[0] * 10_000 + run.trace.end_ns / 2) / run.trace.end_ns
    };
    assert_eq!(shares(0, 1), 5455);
    assert_eq!(shares(0, 10), 6667);
    assert_eq!(shares(0, 19), 8571);
    assert_eq!(shares(-20, 19), 9167);
}

#[test]
fn section_2_5_the_running_task_wins_ties_in_2_4_0() {
    // Threads of one process: at the end of an epoch every goodness is equal. The first in the
    // queue wins from 2.4.16 on; in 2.4.0 the one that runs goes on.
    let threads = || ["A", "B"].map(|name| task(name, nice(0), endless())).to_vec();
    let options = [("wake_to", 1), ("prev_first", 1)];
    assert_eq!(turns(&simulate(threads(), &options, 36)), "A6 B12 A12 B6");
}

#[test]
fn section_2_6_a_woken_task_goes_to_the_head() {
    // Three equal threads, released in the order of their names.
    let threads = || ["A", "B", "C"].map(|name| task(name, nice(0), endless())).to_vec();
    assert_eq!(turns(&simulate(threads(), &[], 18)), "C6 B6 A6");
    assert_eq!(turns(&simulate(threads(), IN_ORDER, 18)), "A6 B6 C6");
}

#[test]
fn section_2_9_a_sleeper_saves_ticks_and_preempts() {
    // The hog begins an epoch every 6 ticks, and the sleeper's 6 ticks become 9, 10, 11, 11: at
    // 245 ms it is better than the hog and runs for 11. At the end of the epoch that the hog ends
    // it goes on, since its address space is loaded.
    let sleeper = ProgramBuilder::new().sleep(245 * MS).run(1_000 * MS).build();
    let sleeper = TaskSpec { is_process: true, ..task("S", nice(0), sleeper) };
    let run = simulate(vec![sleeper, hog("H", 0)], IN_ORDER, 48);
    assert_eq!(turns(&run), "B24+5ms A10+5ms B12 A1");
}

/// Next to a hog, which begins an epoch every 6 ticks, a task that the launcher wakes has the 6
/// ticks of nice 0 until the first epoch, then 9, 10, 11 and 11 (half of what it had, and 6). One
/// that it forks has 6. It has more than the hog, and runs until the tick that uses up the last.
#[test]
fn a_task_that_the_launcher_wakes_has_slept_through_the_epochs() {
    for (release_ms, saved) in [(55, 6), (65, 9), (125, 10), (185, 11), (245, 11)] {
        for (release, ticks) in [(Release::Wakeup, saved), (Release::Fork, 6)] {
            let release_ns = Amount::Constant(release_ms * MS);
            let late = TaskSpec { release, release_ns, ..hog("B", 0) };
            // An equal number of ticks preempts only if the hog has used two of its own.
            let preempts = ticks > 6 || release_ms == 55;
            let first = if preempts { release_ms / 10 } else { release_ms / 60 * 6 + 6 };
            let run = simulate(vec![hog("A", 0), late], IN_ORDER, first + ticks + 1);
            let expected = match preempts {
                true => format!("A{first}+5ms B{}+5ms A1", ticks - 1),
                false => format!("A{first} B{}", ticks + 1),
            };
            assert_eq!(turns(&run), expected, "{release:?} at {release_ms} ms");
        }
    }
}

/// A task with 6 ticks preempts a hog with 4. Due at the tick that leaves the hog 4, it wakes after
/// that tick (in 2.4 the bottom half of timers follows it), and so finds 4, not 5.
#[test]
fn a_sleeper_that_is_due_at_a_tick_wakes_after_it() {
    for (release_ms, expected) in [(10, "A6 B6"), (20, "A2 B6 A4")] {
        let release_ns = Amount::Constant(release_ms * MS);
        let late = TaskSpec { release_ns, ..hog("B", 0) };
        let run = simulate(vec![hog("A", 0), late], IN_ORDER, 12);
        assert_eq!(turns(&run), expected, "at {release_ms} ms");
    }
}

#[test]
fn section_2_11_yielders_take_turns_and_lose_to_a_hog() {
    let yielder = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .run(MS)
        .op(Op::Yield)
        .end_loop()
        .build();
    let yielders = ["A", "B"].map(|name| task(name, nice(0), yielder.clone()));
    let run = simulate(yielders.to_vec(), IN_ORDER, 1);
    assert_eq!(turns(&run), ["A0+1ms B0+1ms"; 5].join(" "));
    // A yields to the hog, which keeps the CPU until its ticks are used up.
    let run = simulate(vec![yielders[0].clone(), hog("B", 0)], IN_ORDER, 6);
    assert_eq!(turns(&run), "A0+1ms B5+9ms");
}

#[test]
fn section_2_12_real_time() {
    // FIFO runs on whatever its ticks are; RR takes turns of its nice value's ticks.
    let tasks = vec![TaskSpec { attr: fifo(10), ..task("A", fifo(10), endless()) }, hog("B", -20)];
    assert_eq!(turns(&simulate(tasks, IN_ORDER, 30)), "A30");
    let rr = |name| task(name, policy(Policy::Rr, 5), endless());
    assert_eq!(turns(&simulate(vec![rr("A"), rr("B")], IN_ORDER, 24)), "A6 B6 A6 B6");
    // A better one preempts at once, wherever it stands in the queue.
    let late = ProgramBuilder::new().sleep(25 * MS).run(20 * MS).build();
    let tasks = vec![rr("A"), task("B", fifo(6), late)];
    assert_eq!(turns(&simulate(tasks, IN_ORDER, 8)), "A2+5ms B2 A3+5ms");
}

#[test]
fn section_2_10_a_child_gives_its_rest_back() {
    // The parent splits its 6 ticks into 3 and 3 and waits; the hog runs for 6. The child runs for
    // 15 ms, over one tick, and gives 2 back: the parent runs for 5 ticks in this epoch, and for 6
    // in the next, which its address space wins.
    let parent =
        ProgramBuilder::new().op(Op::Fork { task: 2 }).op(Op::JoinAll).run(1_000 * MS).build();
    let child = task("C", nice(0), bursts(1, 15 * MS, 0));
    let tasks = vec![
        TaskSpec { is_process: true, ..task("P", nice(0), parent) },
        hog("H", 0),
        TaskSpec { instances: 0, is_process: true, ..child },
    ];
    let run = simulate(tasks, IN_ORDER, 24);
    assert_eq!(turns(&run), "B6 C1+5ms A10+5ms B6");
}

/// The registry's claim is that it is not: a task that yields is not placed again. With that
/// excepted every conformance workload keeps CPUs from idling beside tasks that may use them.
#[test]
fn it_conserves_work_where_nobody_yields() {
    let info = find("linux-2.4.18").unwrap();
    let claims = Claims { work_conserving: true, ..info.claims };
    let claiming = Scheduler { claims, ..Scheduler::clone(info) };
    let mut nr_checked = 0;
    for nr_cpus in [2, 4] {
        for workload in all(nr_cpus) {
            let mut ops = workload.tasks.iter().flat_map(|task| &task.program.ops);
            if ops.any(|op| matches!(op, Op::Yield)) {
                continue;
            }
            let mut case = Case::new(&workload, &claiming, nr_cpus);
            case.machine = Machine { costs: Costs::ZERO, hz: 100, ..case.machine };
            check_case(&case).unwrap_or_else(|broken| panic!("{}", broken.text));
            nr_checked += 1;
        }
    }
    assert!(nr_checked > 10, "{nr_checked}");
}
