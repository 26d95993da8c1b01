// SPDX-License-Identifier: MIT OR Apache-2.0
//! The features that a workload has, by which results are counted.
//!
//! They are read from the workload itself, not from what the generator was allowed to draw.

use schedlab_model::{Amount, ObjectKind, Op, Policy, TaskSpec, Workload};
use std::collections::BTreeSet;

/// The names of a workload's features, sorted.
pub fn features(workload: &Workload, nr_cpus: u32) -> Vec<String> {
    let mut found = BTreeSet::new();
    if nr_cpus > 1 {
        found.insert("several CPUs");
    }
    groups(workload, &mut found);
    for object in &workload.objects {
        found.insert(match object.kind {
            ObjectKind::Mutex { protocol: schedlab_model::MutexProtocol::None } => "locks",
            ObjectKind::Mutex { .. } => "inheritance",
            ObjectKind::Channel { .. } => "pipes",
            _ => "sync",
        });
    }
    for task in &workload.tasks {
        of_task(task, nr_cpus, &mut found);
    }
    found.into_iter().map(String::from).collect()
}

fn groups(workload: &Workload, found: &mut BTreeSet<&'static str>) {
    if workload.cgroups.len() > 1 {
        found.insert("groups");
    }
    if workload.cgroups.iter().any(|group| group.cpu_max.is_some()) {
        found.insert("cpu.max");
    }
    if workload.cgroups.iter().any(|group| group.cpus.is_some()) {
        found.insert("cpusets");
    }
}

fn of_task(task: &TaskSpec, nr_cpus: u32, found: &mut BTreeSet<&'static str>) {
    let attr = &task.attr;
    match attr.policy {
        Policy::Batch => _ = found.insert("batch"),
        Policy::Idle => _ = found.insert("idle"),
        Policy::Fifo | Policy::Rr => _ = found.insert("real-time"),
        Policy::Deadline => _ = found.insert("deadline"),
        _ => {}
    }
    let mut has = |name: &'static str, is_so: bool| {
        if is_so {
            found.insert(name);
        }
    };
    has("nice", attr.nice != 0);
    has("slices", attr.slice_ns.is_some());
    has("affinity", nr_cpus > 1 && attr.affinity.is_some());
    has("instances", task.instances > 1);
    has("late starts", task.release_ns != Amount::Constant(0));
    for op in &task.program.ops {
        let name = match op {
            Op::Fork { .. } => "forks",
            Op::Join { .. } | Op::JoinAll => "joins",
            Op::Timer { .. } => "timers",
            Op::Yield => "yields",
            Op::SetAttr(_) => "changes",
            Op::Change(_) => "group changes",
            _ => "",
        };
        has(name, !name.is_empty());
        has("drawn amounts", is_drawn(op));
    }
}

fn is_drawn(op: &Op) -> bool {
    match op {
        Op::Run(amount) | Op::RunWall(amount) | Op::Sleep(amount) => {
            !matches!(amount, Amount::Constant(_))
        }
        _ => false,
    }
}
