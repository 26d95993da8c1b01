// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that have slept in a setup before the run: where they begin under CFS, and when the first
//! period of real-time throttling ends.

use crate::common;

use common::workloads::{endless, nice, policy, task};
use common::{Case, MS, timeline};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    CgroupId, CgroupSpec, Costs, Machine, Nanos, Op, Policy, Release, SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

fn turns(tasks: Vec<TaskSpec>, set_up_ns: Nanos, costs: Costs, until_ns: Nanos) -> String {
    let mut workload = Workload::new("set-up", tasks);
    workload.cgroups.push(CgroupSpec::new("/a", CgroupId(0), 100));
    let mut case = Case::new(&workload, find("linux-6.1").expect("it is registered"), 1);
    case.machine = Machine { set_up_ns, costs, ..case.machine };
    case.until_ns = Some(until_ns);
    timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
}

/// A sleeper is placed half a latency before the least virtual runtime, a SCHED_IDLE one half a
/// least granularity before it: kernel 6.1 runs B first in a guest.
#[test]
fn an_idle_task_of_time_0_begins_behind_others() {
    let tasks = || {
        vec![
            task("idle", policy(Policy::Idle, 0), endless()),
            task("hog", nice(0), endless()),
            task("hog", SchedAttr { cgroup: CgroupId(1), ..nice(0) }, endless()),
        ]
    };
    assert!(turns(tasks(), 0, Costs::ZERO, 9 * MS).starts_with("0A 4B"));
    assert_eq!(turns(tasks(), 1_000 * MS, Costs::ZERO, 17 * MS), "0B 4C 8A 12B 16C");
}

/// Its virtual runtime is relative to the queue that it comes to.
#[test]
fn a_task_that_begins_as_a_real_time_one_has_no_old_virtual_runtime() {
    let program =
        ProgramBuilder::new().run(MS).op(Op::SetAttr(Box::new(nice(0)))).run(100 * MS).build();
    let late = TaskSpec {
        release_ns: schedlab_model::Amount::Constant(200 * MS),
        ..task("late", policy(Policy::Fifo, 1), program)
    };
    let tasks = || vec![task("hog", nice(0), endless()), late.clone()];
    // It used to run on its own until it had caught up with 200 ms.
    let found = turns(tasks(), 0, Costs::ZERO, 230 * MS);
    assert_eq!(found, "0A 200B 201A 204B 208A 212B 216A 220B 224A 228B");
    // As a guest's: it has half a latency, as one that slept.
    let found = turns(tasks(), 1_000 * MS, Costs::ZERO, 230 * MS);
    assert_eq!(found, "0A 200B 204A 208B 212A 216B 220A 224B 228A");
}

/// The launcher of a real run wakes tasks that exist. A forked task of 6.12 gets half a slice at
/// first (PLACE_DEADLINE_INITIAL), so it preempted a hog whose slice ended earlier than its own.
#[test]
fn tasks_that_were_created_before_the_run_are_woken() {
    let late = |release| TaskSpec {
        release_ns: schedlab_model::Amount::Constant(8 * MS + MS / 10),
        release,
        ..task("late", nice(0), endless())
    };
    let found = |release, set_up_ns| {
        let workload =
            Workload::new("set-up", vec![task("hog", nice(0), endless()), late(release)]);
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        case.machine = Machine { set_up_ns, ..case.machine };
        case.until_ns = Some(20 * MS);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    let [forked, woken] = [found(Release::Fork, 0), found(Release::Wakeup, 0)];
    assert_ne!(forked, woken);
    assert_eq!(found(Release::Fork, 1_000 * MS), found(Release::Wakeup, 1_000 * MS));
}

/// The launcher has written the parameters of the server, which starts it, and the CPU has idled
/// for 2 ms: a task that comes later does not start it.
#[test]
fn a_fair_server_of_7_2_has_started_before_time_0() {
    let late = TaskSpec {
        release_ns: schedlab_model::Amount::Constant(100 * MS),
        ..task("late", nice(0), endless())
    };
    let tasks = [task("fifo", policy(Policy::Fifo, 1), endless()), late];
    let found = |scheduler: &str, server_idle_ns| {
        let workload = Workload::new("set-up", tasks.to_vec());
        let mut case = Case::new(&workload, find(scheduler).expect("it is registered"), 1);
        let costs = Costs { server_idle_ns, ..Costs::ZERO };
        case.machine = Machine { costs, ..case.machine };
        case.until_ns = Some(1_110 * MS);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(found("linux-7.2", 0), "0A 1050B 1100A");
    assert_eq!(found("linux-7.2", 2 * MS), "0A 950B 1000A");
    assert_eq!(found("linux-6.18", 2 * MS), "0A 1050B 1100A");
}

/// The launcher has started the timer 98 ms before time 0.
#[test]
fn the_first_period_of_real_time_throttling_has_begun_before_time_0() {
    let tasks =
        || vec![task("fifo", policy(Policy::Fifo, 1), endless()), task("hog", nice(0), endless())];
    let until = 2_000 * MS;
    assert_eq!(turns(tasks(), 0, Costs::ZERO, until), "0A 952B 1000A 1952B");
    let costs = Costs { server_lead_ns: 98 * MS, ..Costs::ZERO };
    assert_eq!(turns(tasks(), 0, costs, until), "0A 1852B 1902A");
}
