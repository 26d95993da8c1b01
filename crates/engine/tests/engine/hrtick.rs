// SPDX-License-Identifier: MIT OR Apache-2.0
//! High-resolution ticks (HRTICK, HRTICK_DL) through the whole engine: exact sequences that follow
//! from kernel/sched/fair.c, deadline.c and core.c, on one CPU where nothing costs time.
//!
//! The sequences of hogs under 7.2 were computed by a model of its own, written from the rules.

use crate::common;

use common::workloads::{burst, bursts, endless, nice, policy, task};
use common::{Case, MS, Run, timeline};
use schedlab_engine::SimError;
use schedlab_model::{
    Amount, Costs, DeadlineParams, EventKind, Machine, Nanos, Policy, SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

/// A run at this HZ until this time in us; `set` are features and whether they are on.
fn run(
    scheduler: &str,
    set: &[(&str, u64)],
    hz: u32,
    tasks: Vec<TaskSpec>,
    until_us: u64,
) -> Result<Run, SimError> {
    let info = find(scheduler).expect("the scheduler is registered");
    let workload = Workload::new("hrtick", tasks);
    let mut case = Case::new(&workload, info, 1);
    for (name, value) in set {
        case.options.set(&info.tunables, name, *value).expect("it has the feature");
    }
    case.machine = Machine { hz, ..case.machine };
    case.until_ns = Some(until_us * 1_000);
    case.run()
}

fn hogs(nices: &[i8]) -> Vec<TaskSpec> {
    nices.iter().map(|&value| task("hog", nice(value), endless())).collect()
}

#[track_caller]
fn assert_timeline(
    scheduler: &str,
    set: &[(&str, u64)],
    (hz, until_us): (u32, u64),
    tasks: Vec<TaskSpec>,
    expected: &str,
) {
    let run = run(scheduler, set, hz, tasks, until_us).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(timeline(&run), expected, "{scheduler} {set:?}");
}

/// 7.1 is the same with the feature on, and 7.2 with it off is 7.1.
#[test]
fn equal_hogs_change_when_the_slice_is_over() {
    let expected = "0A 0.700000B 1.400000C 2.100000D 2.800000A 3.500000B 4.200000C 4.900000D";
    for (scheduler, set) in [("linux-7.2", &[][..]), ("linux-7.1", &[("HRTICK", 1)])] {
        assert_timeline(scheduler, set, (250, 5_000), hogs(&[0; 4]), expected);
    }
    let ticks = "0A 4B 8C 12D";
    for (scheduler, set) in [("linux-7.2", &[("HRTICK", 0)][..]), ("linux-7.1", &[])] {
        assert_timeline(scheduler, set, (250, 16_000), hogs(&[0; 4]), ticks);
    }
}

/// A task that is picked again goes on without a timer, until a tick finds it unprotected.
#[test]
fn from_7_1_on_the_timer_is_not_started_anew_for_the_same_task() {
    let two = "0A 0.700000B 1.400000A 4B 4.700000A 8B";
    assert_timeline("linux-7.2", &[], (250, 12_000), hogs(&[0, 5]), two);
    let three = "0A 0.699998B 1.399998A 4B 4.700000C 5.400000A 8B 8.700000A 9.399998B 10.099998A";
    assert_timeline("linux-7.2", &[], (250, 12_000), hogs(&[-5, 0, 5]), three);
    let far = "0A 0.699998B 1.399998A 8B 8.700000A 16B";
    assert_timeline("linux-7.2", &[], (250, 16_500), hogs(&[-5, 5]), far);
    let fast = "0A 0.700000B 1.400000A 3B 4A 7B 7.700000A 10B 10.700000A";
    assert_timeline("linux-7.2", &[], (1000, 12_000), hogs(&[0, 5]), fast);
}

/// 6.6 starts it anew unless the slice is over, which it is when the heavier task has had it.
#[test]
fn in_6_6_the_slice_counts_from_the_change_of_tasks() {
    let expected = "0A 0.750000B 1.500000A 4B 4.750000A";
    assert_timeline("linux-6.6", &[("HRTICK", 1)], (250, 5_000), hogs(&[0, 5]), expected);
}

/// B, whose deadline is later, comes while A is alone and has no timer: A gets one.
#[test]
fn a_task_that_comes_starts_the_timer_of_one_that_was_alone() {
    let tasks = || {
        let late = task("B", nice(5), endless());
        let late = TaskSpec { release_ns: Amount::Constant(10 * MS), ..late };
        vec![task("A", nice(0), endless()), late]
    };
    // A's deadline was renewed when B came.
    let expected = "0A 10.700000B 11.400000A";
    assert_timeline("linux-7.2", &[], (250, 12_000), tasks(), expected);
    // To 7.0 the time is the slice less what A has run since it was picked: nothing is left.
    for scheduler in ["linux-6.12", "linux-6.18"] {
        let expected = "0A 12B 12.700000A";
        assert_timeline(scheduler, &[("HRTICK", 1)], (250, 13_000), tasks(), expected);
    }
}

/// A timer of CFS comes when the slice is over, and the ticks before it change nothing.
#[test]
fn cfs_changes_when_its_slice_is_over() {
    let set = &[("HRTICK", 1)];
    let expected = "0A 2.999998B 5.999996A 8.999994B 11.999992A";
    assert_timeline("linux-6.1", set, (250, 12_000), hogs(&[0, 0]), expected);
    // B is a nanosecond of virtual time short of A then: it is picked again, and has a timer anew.
    let unequal = "0A 4.520971B 6.009999A";
    assert_timeline("linux-6.1", set, (1000, 7_000), hogs(&[0, 5]), unequal);
}

fn implicit(runtime_us: Nanos, period_ms: u64) -> SchedAttr {
    let deadline = DeadlineParams {
        runtime_ns: runtime_us * 1_000,
        deadline_ns: period_ms * MS,
        period_ns: period_ms * MS,
        reclaim: false,
    };
    SchedAttr { policy: Policy::Deadline, deadline, ..SchedAttr::default() }
}

/// With ticks alone A would run for 12 ms, then 8.
#[test]
fn budgets_end_where_they_end() {
    let tasks = || vec![task("A", implicit(10_500, 100), endless()), task("B", nice(0), endless())];
    let expected = "0A 10.500000B 100A 110.500000B 200A 210.500000B";
    let on = &[("HRTICK_DL", 1)][..];
    let versions = ["linux-6.1", "linux-6.6", "linux-6.12.0", "linux-6.12", "linux-6.18"];
    for scheduler in versions.into_iter().chain(["linux-7.1"]) {
        assert_timeline(scheduler, on, (250, 211_000), tasks(), expected);
    }
    assert_timeline("linux-7.2", &[], (250, 211_000), tasks(), expected);
    let off = "0A 12B 100A 112B 200A 208B";
    assert_timeline("linux-7.2", &[("HRTICK_DL", 0)], (250, 211_000), tasks(), off);
}

/// A sleeps after 4 of 10 ms; what is left when it wakes decides.
#[test]
fn the_timer_of_a_budget_is_that_of_what_is_left() {
    let tasks = vec![
        task("A", implicit(10_000, 100), bursts(3, 4 * MS, 16 * MS)),
        task("B", nice(0), endless()),
    ];
    let expected = "0A 4B 20A 24B 40A 42B 100A 102B";
    assert_timeline("linux-7.2", &[], (250, 110_000), tasks, expected);
}

/// A timer that comes while a real-time task runs does nothing to it, and the fair task that comes
/// after it has its own.
#[test]
fn a_timer_does_nothing_to_tasks_of_other_classes() {
    let fifo = task("C", policy(Policy::Fifo, 1), burst(5 * MS));
    let fifo = TaskSpec { release_ns: Amount::Constant(MS), ..fifo };
    let tasks = hogs(&[0, 0]).into_iter().chain([fifo]).collect();
    // B has 0.4 ms left when it runs again.
    let expected = "0A 0.700000B 1C 6B 6.400000A 7.100000B";
    assert_timeline("linux-7.2", &[], (250, 7_500), tasks, expected);
}

/// A task whose group gets a new quota joins the queue of the one that runs, whose timer starts
/// then: in a guest of 7.2 it runs 0.75 ms after the begin of a period.
#[test]
fn a_new_quota_starts_the_timer() {
    let mut workload = Workload::new(
        "quota",
        vec![
            task("a", SchedAttr { cgroup: schedlab_model::CgroupId(1), ..nice(0) }, endless()),
            task("b", nice(0), endless()),
        ],
    );
    let mut group = schedlab_model::CgroupSpec::new("/g", schedlab_model::CgroupId(0), 100);
    group.cpu_max =
        Some(schedlab_model::CpuMax { quota_ns: 2 * MS, period_ns: 20 * MS, burst_ns: 0 });
    workload.cgroups.push(group);
    let mut case = Case::new(&workload, find("linux-7.2").expect("it is registered"), 1);
    case.machine.aligns_periods = true;
    case.until_ns = Some(24 * MS);
    let found = timeline(&case.run().unwrap_or_else(|error| panic!("{error}")));
    assert!(found.contains(" 20.700000A"), "{found}");
}

/// A budget that is renewed on an idle CPU moves its task to another one. Since 7.0 that stops the
/// clock of the other CPU, as a wake-up does, so the way to the switch is charged to the task. In
/// guests of 7.2 its turns last 499.5 us there, on one CPU 512.
#[test]
fn a_task_that_is_pushed_pays_for_the_way_to_its_switch() {
    let turns_us = |nr_cpus: u32| -> Vec<u64> {
        let spec = task("a", implicit(500, 5), endless());
        let workload = Workload::new("pushed", vec![spec]);
        let info = find("linux-7.2").expect("the scheduler is registered");
        let mut case = Case::new(&workload, info, nr_cpus);
        case.machine.costs = Costs { wakeup_switch_ns: 15_000, ..Costs::ZERO };
        case.until_ns = Some(17 * MS);
        let run = case.run().unwrap_or_else(|error| panic!("{error}"));
        let switches = run.trace.events.iter().filter_map(|event| match event.kind {
            EventKind::Switch { .. } => Some(event.time_ns / 1_000),
            _ => None,
        });
        let times: Vec<u64> = switches.collect();
        times.chunks_exact(2).map(|turn| turn[1] - turn[0]).collect()
    };
    assert_eq!(turns_us(1)[2..], [500, 500]);
    assert_eq!(turns_us(2)[2..], [485, 485]);
}

/// The timer of a budget that its task has not used up goes on when the task sleeps. Since 7.1 it
/// then interrupts the task that runs, unless that one has a timer of its own. In guests of 7.2 a
/// fair task loses 20 to 28 us by it.
#[test]
fn a_timer_that_nobody_waits_for_takes_time() {
    let exit_us = |nr_hogs: usize, hrtick_stray_ns: Nanos| {
        let brief = bursts(5, MS / 4, 10 * MS);
        let mut tasks = vec![task("a", implicit(1_000, 5), brief)];
        tasks.extend((0..nr_hogs).map(|_| task("hog", nice(0), burst(7 * MS))));
        let workload = Workload::new("stray", tasks);
        let info = find("linux-7.2").expect("the scheduler is registered");
        let mut case = Case::new(&workload, info, 1);
        case.machine.costs = Costs { hrtick_stray_ns, ..Costs::ZERO };
        case.until_ns = Some(20 * MS);
        let run = case.run().unwrap_or_else(|error| panic!("{error}"));
        let is_exit = |kind: &EventKind| matches!(kind, EventKind::Exit { .. });
        let exit = run.trace.events.iter().find(|event| is_exit(&event.kind));
        exit.map(|exit| exit.time_ns / 1_000)
    };
    assert_eq!([exit_us(1, 0), exit_us(1, 30_000)], [Some(7_250), Some(7_280)]);
    assert_eq!(exit_us(2, 30_000), exit_us(2, 0));
}
