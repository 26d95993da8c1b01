// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timers that come late (`timer_delay_ns`): what is set for a time happens that much after it, and
//! what repeats keeps its pace. On one CPU where nothing else costs time.

use crate::common;

use common::workloads::{bursts, endless, nice, policy, task};
use common::{Case, MS, Run, timeline};
use schedlab_engine::SimError;
use schedlab_model::{Amount, Costs, EventKind, Machine, Nanos, Policy, TaskSpec, Workload};
use schedlab_sched::registry::find;

const LATE: Nanos = 25_000;

fn run(scheduler: &str, tasks: Vec<TaskSpec>, until_ns: Nanos) -> Result<Run, SimError> {
    let info = find(scheduler).expect("the scheduler is registered");
    let workload = Workload::new("late", tasks);
    let mut case = Case::new(&workload, info, 1);
    let costs = Costs { timer_delay_ns: LATE, ..Costs::ZERO };
    case.machine = Machine { costs, ..case.machine };
    case.until_ns = Some(until_ns);
    case.run()
}

#[track_caller]
fn assert_timeline(scheduler: &str, tasks: Vec<TaskSpec>, until_us: Nanos, expected: &str) {
    let run = run(scheduler, tasks, until_us * 1_000).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(timeline(&run), expected, "{scheduler}");
}

fn hogs(count: usize) -> Vec<TaskSpec> {
    vec![task("hog", nice(0), endless()); count]
}

/// Each begins when the one before it has come.
#[test]
fn timers_of_a_scheduler_come_late_and_what_they_end_is_longer() {
    let slices = "0A 0.725000B 1.450000C 2.175000D 2.900000A 3.625000B";
    assert_timeline("linux-7.2", hogs(4), 4_000, slices);
    assert_timeline("rr", hogs(2), 310_000, "0A 100.025000B 200.050000A 300.075000B");
}

#[test]
fn ticks_are_late_and_a_tick_apart() {
    // A tick comes 2 us before timers for its time. A ran for 23 us more than the others in its
    // first turn, and is not eligible at 12.023.
    let ticks = "0A 4.023000B 8.023000C 12.023000B 16.023000C";
    assert_timeline("linux-6.12", hogs(3), 18_000, ticks);
    // They come to an idle CPU by a timer. Its first tick is the next one of the machine.
    let tasks =
        hogs(2).into_iter().map(|hog| TaskSpec { release_ns: Amount::Constant(5 * MS), ..hog });
    assert_timeline("linux-6.12", tasks.collect(), 13_000, "5.025000A 8.023000B 12.023000A");
}

#[test]
fn sleepers_wake_late() {
    let sleeper = || vec![task("a", nice(0), bursts(3, MS, 2 * MS))];
    let expected = "0A 1- 3.025000A 4.025000- 6.050000A 7.050000-";
    for scheduler in ["fcfs", "linux-6.1", "linux-6.18"] {
        assert_timeline(scheduler, sleeper(), 9_000, expected);
    }
}

/// Periods of real-time throttling begin on their grid, each as late as the first.
#[test]
fn periods_stay_a_period_apart() {
    let tasks = vec![task("rt", policy(Policy::Fifo, 1), endless()), hogs(1).remove(0)];
    let run = run("linux-6.1", tasks, 4_100 * MS).unwrap();
    let starts: Vec<Nanos> = run
        .trace
        .events
        .iter()
        .filter(
            |event| matches!(event.kind, EventKind::Switch { next: Some(task), .. } if task.0 == 0),
        )
        .map(|event| event.time_ns)
        .collect();
    let second = 1_000 * MS;
    assert_eq!(
        starts,
        [0, second, 2 * second, 3 * second, 4 * second].map(|at| match at {
            0 => 0,
            at => at + LATE,
        })
    );
}

/// The server's timer, which it knows by its time, is its own when it is late, too.
#[test]
fn a_fair_server_hears_its_timer() {
    for scheduler in ["linux-6.12", "linux-6.18", "linux-7.2"] {
        let tasks = vec![task("rt", policy(Policy::Fifo, 1), endless()), hogs(1).remove(0)];
        let run = run(scheduler, tasks, 10_000 * MS).unwrap();
        let (mut since, mut served) = (None, 0);
        for event in &run.trace.events {
            let EventKind::Switch { next, .. } = event.kind else { continue };
            served += since.take().map_or(0, |since: Nanos| event.time_ns - since);
            since = next.filter(|task| task.0 == 1).map(|_| event.time_ns);
        }
        assert!((430 * MS..=560 * MS).contains(&served), "{scheduler}: {served}");
    }
}

#[test]
fn a_delay_of_a_tick_is_refused() {
    let costs = Costs { timer_delay_ns: 4 * MS, ..Costs::ZERO };
    let error = Machine { costs, ..Machine::flat(1) }.check().unwrap_err();
    assert!(error.contains("`timer_delay_ns` is 4000000") && error.contains("3999999"), "{error}");
}
