// SPDX-License-Identifier: MIT OR Apache-2.0
//! A launcher on the last CPU wakes the tasks of time 0 one after another.

use crate::common;

use common::workloads::{endless, nice, policy, task};
use common::{Case, MS};
use schedlab_model::{Costs, DeadlineParams, EventKind, Machine, Policy, SchedAttr, TaskSpec};
use schedlab_model::{Nanos, Workload};
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
