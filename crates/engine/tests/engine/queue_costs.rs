// SPDX-License-Identifier: MIT OR Apache-2.0
//! What it takes to put tasks on queues and to pick them, by class and level of groups, in the
//! interrupt of a timer and on the way to the switch.

use crate::common;

use common::workloads::{endless, nice, task};
use common::{Case, MS, timeline};
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Costs, Machine, Nanos, SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

/// Turns of 6.12 with a group `/a`.
fn turns(tasks: Vec<TaskSpec>, costs: Costs, until_ns: Nanos) -> String {
    let mut workload = Workload::new("queues", tasks);
    workload.cgroups.push(CgroupSpec::new("/a", CgroupId(0), 100));
    let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
    case.machine = Machine { costs, ..case.machine };
    case.until_ns = Some(until_ns);
    timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
}

fn in_group(attr: SchedAttr) -> SchedAttr {
    SchedAttr { cgroup: CgroupId(1), ..attr }
}

fn late(task: TaskSpec, ns: Nanos) -> TaskSpec {
    TaskSpec { release_ns: Amount::Constant(ns), ..task }
}

/// The task in the group has used its slice when a task with a short one preempts it. Its own queue
/// notices that when the group's entity is put back, and asks to reschedule the CPU. This comes
/// before the kernel clears the flag of the leaving task, so the next one keeps its slice.
#[test]
fn a_task_that_leaves_asks_nothing_of_the_next() {
    let hog = task("hog", in_group(nice(0)), endless());
    let other = task("other", nice(0), endless());
    let short = SchedAttr { slice_ns: Some(100_000), ..nice(0) };
    let short = late(task("short", short, endless()), MS);
    let found = turns(vec![hog, other, short], Costs::ZERO, 5 * MS);
    assert_eq!(found, "0A 1C 4B");
}
