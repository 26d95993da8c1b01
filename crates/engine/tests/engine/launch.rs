// SPDX-License-Identifier: MIT OR Apache-2.0
//! A launcher on the last CPU wakes the tasks of time 0 one after another.

use crate::common;

use common::workloads::{bursts, endless, nice, policy, task};
use common::{Case, MS};
use schedlab_model::machine::{KernelThread, ThreadWakes};
use schedlab_model::{
    CgroupId, CgroupSpec, Costs, DeadlineParams, EventKind, Machine, Policy, SchedAttr, TaskSpec,
};
use schedlab_model::{Nanos, Preempt, Workload};
use schedlab_sched::registry::find;

fn deadline() -> SchedAttr {
    let period_ns = 10 * MS;
    let deadline =
        DeadlineParams { runtime_ns: MS, deadline_ns: period_ns, period_ns, reclaim: false };
    SchedAttr { deadline, ..policy(Policy::Deadline, 0) }
}

/// The wake-ups of these tasks on two CPUs: time in microseconds, task, CPU.
fn wakes(attrs: &[SchedAttr], release_ns: Nanos) -> Vec<String> {
    let tasks: Vec<TaskSpec> = attrs.iter().map(|attr| task("a", *attr, endless())).collect();
    let workload = Workload::new("launch", tasks);
    let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 2);
    let costs = Costs { release_ns, wakeup_ns: 8_000, ..Costs::ZERO };
    case.machine = Machine { set_up_ns: 1_000 * MS, costs, ..case.machine };
    case.until_ns = Some(MS);
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let told = run.trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Fork { task, .. } => {
            let letter = char::from(b'A' + task.0 as u8);
            Some(format!("{}{letter}{}", event.time_ns / 1_000, event.cpu.0))
        }
        _ => None,
    });
    told.collect()
}

/// Tasks have been on the last CPU. Without the launcher's time both CPUs seem idle to all.
#[test]
fn tasks_are_woken_one_after_another() {
    let hogs = [nice(0); 4];
    assert_eq!(wakes(&hogs, 0), ["0A1", "0B0", "0C1", "0D1"]);
    // An idle CPU takes the launcher 12 us, its own 16.
    assert_eq!(wakes(&hogs, 70_000), ["70A1", "82B0", "94C1", "110D1"]);
}

#[test]
fn real_time_tasks_come_first_and_those_of_a_word_together() {
    let [low, high] = [1, 2].map(|priority| policy(Policy::Fifo, priority));
    let order = |attrs: &[SchedAttr]| -> String {
        wakes(attrs, 70_000)
            .iter()
            .map(|wake| wake.trim_matches(|c: char| c.is_ascii_digit()).to_string())
            .collect()
    };
    assert_eq!(order(&[nice(0), low, deadline(), high, nice(0)]), "DBAEC");
    assert_eq!(order(&[deadline(), nice(0), low, deadline()]), "ADCB");
}

/// The wake-ups, and which CPUs the tasks come to, of two tasks of SCHED_DEADLINE and a fair one on
/// this many CPUs.
fn preempted_launch(preempt: Preempt, nr_cpus: u32) -> Vec<String> {
    let soon = DeadlineParams { deadline_ns: 5 * MS, ..deadline().deadline };
    let attrs = [deadline(), SchedAttr { deadline: soon, ..deadline() }, nice(0)];
    let tasks = attrs.iter().map(|attr| task("a", *attr, bursts(1, MS / 10, MS))).collect();
    let workload = Workload::new("launch", tasks);
    let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), nr_cpus);
    // On one CPU the fair task is awake at time 0.
    let release_ns = if nr_cpus > 1 { 20_000 } else { 0 };
    let costs = Costs { release_ns, release_deadline_ns: 30_000, wakeup_ns: 8_000, ..Costs::ZERO };
    let threads = vec![KernelThread {
        name: "launcher".into(),
        run_ns: 60_000,
        rt_priority: 99,
        wakes: ThreadWakes::Once { at_ns: 0 },
    }];
    case.machine = Machine { set_up_ns: 1_000 * MS, costs, threads, preempt, ..case.machine };
    case.until_ns = Some(MS);
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let told = run.trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Fork { task, .. } => Some(format!("{}us wakes {task}", event.time_ns / 1_000)),
        EventKind::Switch { next: Some(task), .. } => {
            Some(format!("{}us {task} on {}", event.time_ns / 1_000, event.cpu.0))
        }
        _ => None,
    });
    told.collect()
}

/// Both wake on the launcher's CPU 2, before the end of the call if that can be preempted. The
/// launcher, 0, goes on where one of them leaves.
#[test]
fn a_deadline_task_preempts_the_launcher() {
    let expected = [
        (
            Preempt::Voluntary,
            "0us 0 on 2, 20us wakes 1, 36us wakes 2, 38us 2 on 2, 38us 1 on 0, 138us 0 on 0, 162us \
             wakes 3, 162us 3 on 2",
        ),
        (
            Preempt::Full,
            "0us 0 on 2, 20us wakes 1, 20us 1 on 2, 120us 0 on 2, 144us wakes 2, 144us 2 on 2, \
             244us 0 on 2, 268us wakes 3, 268us 3 on 0",
        ),
    ];
    for (preempt, told) in expected {
        assert_eq!(preempted_launch(preempt, 3).join(", "), told, "{preempt:?}");
    }
}

/// On one CPU it wakes them after the tick: in one call, or the second when it has the CPU again.
#[test]
fn a_deadline_task_preempts_the_launcher_on_one_cpu() {
    let expected = [
        (
            Preempt::Voluntary,
            "0us wakes 3, 0us 0 on 0, 30us wakes 1, 38us wakes 2, 38us 2 on 0, 138us 1 on 0, \
             238us 0 on 0, 268us 3 on 0",
        ),
        (
            Preempt::Full,
            "0us wakes 3, 0us 0 on 0, 30us wakes 1, 30us 1 on 0, 130us 0 on 0, 138us wakes 2, \
             138us 2 on 0, 238us 0 on 0, 268us 3 on 0",
        ),
    ];
    for (preempt, told) in expected {
        assert_eq!(preempted_launch(preempt, 1).join(", "), told, "{preempt:?}");
    }
}

/// The launcher on one CPU, and when the first of these tasks comes to it (ns).
fn first_turn(attrs: &[SchedAttr], costs: Costs) -> Nanos {
    let tasks = attrs.iter().map(|attr| task("a", *attr, endless())).collect();
    let mut workload = Workload::new("launch", tasks);
    workload.cgroups.push(CgroupSpec::new("/g", CgroupId(0), 100));
    let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
    let threads = vec![KernelThread {
        name: "launcher".into(),
        run_ns: 60_000,
        rt_priority: 99,
        wakes: ThreadWakes::Once { at_ns: 0 },
    }];
    case.machine = Machine { set_up_ns: 1_000 * MS, costs, threads, ..case.machine };
    case.until_ns = Some(MS);
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let first = run.trace.events.iter().find_map(|event| match event.kind {
        EventKind::Switch { next: Some(task), .. } if task.0 > 0 => Some(event.time_ns),
        _ => None,
    });
    first.expect("a task runs")
}

/// It takes the launcher longer to leave the more tasks it has woken, and if the first one is fair.
#[test]
fn a_launcher_of_many_tasks_runs_longer() {
    let costs =
        Costs { launch_task_ns: 500, pick_fair_ns: 3_000, pick_entity_ns: 7_000, ..Costs::ZERO };
    let fifo = policy(Policy::Fifo, 1);
    let in_group = SchedAttr { cgroup: CgroupId(1), ..nice(0) };
    assert_eq!(first_turn(&[fifo], costs), 60_500);
    assert_eq!(first_turn(&[nice(0), fifo, nice(0)], costs), 61_500);
    assert_eq!(first_turn(&[nice(0), nice(0)], costs), 64_000);
    assert_eq!(first_turn(&[in_group, nice(0)], costs), 71_000);
    let none = Costs { launch_task_ns: 0, ..costs };
    assert_eq!(first_turn(&[nice(0), nice(0)], none), 60_000);
}
