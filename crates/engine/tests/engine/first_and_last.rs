// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a task takes at its start, at its first fork and when it finds a child that has exited;
//! what a wait on an object takes; what starting the timer of a slice takes; and the visit of a
//! task whose group has used its quota.

use crate::common;

use common::workloads::{burst, bursts, endless, nice, policy, task};
use common::{Case, MS, timeline};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::workload::Change;
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Costs, CpuMax, DeadlineParams, EventKind, Machine, MutexProtocol,
    ObjectId, ObjectKind, ObjectSpec, Op, Policy, Preempt, SchedAttr, TaskId, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

fn turns(scheduler: &str, workload: &Workload, costs: Costs, until_ns: Option<u64>) -> String {
    let mut case = Case::new(workload, find(scheduler).expect("it is registered"), 1);
    case.machine = Machine { costs, ..case.machine };
    case.until_ns = until_ns;
    timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn a_start_takes_time_of_tasks_that_no_other_one_forks() {
    let costs = Costs { task_start_ns: 50_000, child_start_ns: 200_000, ..Costs::ZERO };
    let parent = ProgramBuilder::new().run(MS).op(Op::Fork { task: 1 }).op(Op::JoinAll).build();
    let child = TaskSpec { instances: 0, ..task("child", policy(Policy::Fifo, 1), burst(MS)) };
    let workload =
        Workload::new("starts", vec![task("parent", policy(Policy::Fifo, 1), parent), child]);
    assert_eq!(turns("linux-6.12", &workload, costs, None), "0A 1.050000B 2.250000A 2.250000-");
}

#[test]
fn a_first_fork_and_the_end_of_a_wait_for_children_take_time() {
    let mut parent = ProgramBuilder::new();
    for _ in 0..2 {
        parent.op(Op::Fork { task: 1 }).op(Op::JoinAll);
    }
    let parent = parent.build();
    let child = TaskSpec { instances: 0, ..task("child", policy(Policy::Fifo, 1), burst(MS)) };
    let workload =
        Workload::new("forks", vec![task("parent", policy(Policy::Fifo, 1), parent), child]);
    let costs = Costs { fork_ns: 400_000, first_fork_ns: 100_000, ..Costs::ZERO };
    let found = turns("linux-6.12", &workload, costs, None);
    assert_eq!(found, "0A 0.500000B 1.500000A 1.900000C 2.900000A 2.900000-");
    let costs = Costs { reap_ns: 60_000, ..Costs::ZERO };
    let found = turns("linux-6.12", &workload, costs, None);
    assert_eq!(found, "0A 0B 1A 1.060000C 2.060000A 2.120000-");
}

/// Who continues first after a fork copies the pages that both write to.
#[test]
fn pages_are_copied_after_a_fork_by_the_one_that_runs_first() {
    let parent = ProgramBuilder::new().op(Op::Fork { task: 1 }).run(MS).build();
    let turns_with = |priority| {
        let attr = policy(Policy::Fifo, priority);
        let child = TaskSpec { instances: 0, ..task("child", attr, burst(MS)) };
        let tasks = vec![task("parent", policy(Policy::Fifo, 1), parent.clone()), child];
        let costs = Costs { fork_after_ns: 180_000, fork_copy_ns: 110_000, ..Costs::ZERO };
        turns("linux-6.12", &Workload::new("forks", tasks), costs, None)
    };
    assert_eq!(turns_with(1), "0A 1.180000B 2.180000-");
    assert_eq!(turns_with(2), "0A 0B 1.110000A 2.180000-");
}

/// The last child copies no pages at its start if its parent has ended.
#[test]
fn a_child_that_shares_its_memory_with_no_task_starts_faster() {
    let turns_with = |loops, rest_ns| {
        let mut parent = ProgramBuilder::new();
        for _ in 0..loops {
            parent.op(Op::Fork { task: 1 });
        }
        let attr = policy(Policy::Fifo, 1);
        let child = TaskSpec { instances: 0, ..task("child", attr, burst(MS)) };
        let parent = parent.run(MS).sleep(rest_ns).build();
        let tasks = vec![task("parent", attr, parent), child];
        let costs = Costs { child_start_ns: 500_000, child_alone_ns: 300_000, ..Costs::ZERO };
        turns("linux-6.12", &Workload::new("forks", tasks), costs, None)
    };
    assert_eq!(turns_with(1, 0), "0A 1B 2.200000-");
    assert_eq!(turns_with(2, 0), "0A 1B 2.500000C 3.700000-");
    assert_eq!(turns_with(1, 5 * MS), "0A 1B 2.500000- 6A 6-");
}

/// A parent that is switched out in a fork, or after it, copies a page instead of its child.
#[test]
fn a_parent_that_is_switched_out_copies_a_page_for_its_child() {
    let parent = ProgramBuilder::new().op(Op::Fork { task: 1 }).run(MS).build();
    let turns_with = |sleep_ns| {
        let attr = policy(Policy::Fifo, 1);
        let child = TaskSpec { instances: 0, ..task("child", attr, burst(MS)) };
        let wakes = ProgramBuilder::new().sleep(sleep_ns).run(100_000).build();
        let other = task("other", policy(Policy::Fifo, 2), wakes);
        let tasks = vec![task("parent", attr, parent.clone()), child, other];
        let costs = Costs {
            fork_ns: 500_000,
            fork_after_ns: 90_000,
            fork_switch_ns: 80_000,
            child_start_ns: 200_000,
            ..Costs::ZERO
        };
        turns("linux-6.12", &Workload::new("forks", tasks), costs, None)
    };
    // The other task comes in the fork, after it, and when the child has begun.
    assert_eq!(turns_with(200_000), "0B 0A 0.200000B 0.300000A 1.770000C 2.890000-");
    assert_eq!(turns_with(700_000), "0B 0A 0.700000B 0.800000A 1.770000C 2.890000-");
    assert_eq!(turns_with(2 * MS), "0B 0A 1.590000C 2B 2.100000C 2.890000-");
}

/// A CPU keeps the stacks of two ended tasks, of which a launcher leaves one, and both if it has
/// more than one task that forks. A fork without one takes longer.
#[test]
fn a_fork_takes_longer_without_the_stack_of_an_ended_task() {
    let mut parent = ProgramBuilder::new();
    for _ in 0..3 {
        parent.op(Op::Fork { task: 1 }).op(Op::Fork { task: 1 }).sleep(8 * MS);
    }
    let child = TaskSpec { instances: 0, ..task("child", policy(Policy::Fifo, 1), burst(MS)) };
    let tasks = vec![task("parent", policy(Policy::Fifo, 1), parent.build()), child];
    let costs = Costs { fork_ns: 400_000, fork_stack_ns: 100_000, ..Costs::ZERO };
    let found = turns("linux-6.12", &Workload::new("forks", tasks), costs, None);
    // The second fork has none, the later ones have those of the first two children.
    assert_eq!(
        found,
        "0A 0.900000B 1.900000C 2.900000- 8.900000A 9.700000D 10.700000E 11.700000- \
         17.700000A 18.500000F 19.500000G 20.500000- 26.500000A 26.500000-"
    );
    let parent = ProgramBuilder::new().op(Op::Fork { task: 1 }).op(Op::Fork { task: 1 }).build();
    let parent = TaskSpec { instances: 2, ..task("parent", policy(Policy::Fifo, 1), parent) };
    let child = TaskSpec { instances: 0, ..task("child", policy(Policy::Fifo, 1), burst(MS)) };
    let workload = Workload::new("forks", vec![parent, child]);
    let found = turns("linux-6.12", &workload, costs, Some(MS));
    // Neither fork of the first parent maps a stack.
    assert_eq!(found, "0A 0.800000B");
}

/// A fork and the exit of a child take longer for each further task of the run. A part of the exit
/// comes before the first sleep.
#[test]
fn a_child_copies_pages_before_its_first_sleep() {
    let costs = Costs {
        fork_ns: 4_000,
        fork_task_ns: 3_000,
        exit_task_ns: 1_000,
        child_sleep_ns: 60_000,
        exit_ns: 200_000,
        ..Costs::ZERO
    };
    let turns_with = |sleeps: u32| {
        let mut parent = ProgramBuilder::new();
        parent.op(Op::Fork { task: 1 }).sleep(9 * MS);
        let mut child = ProgramBuilder::new();
        child.run(MS);
        for _ in 0..sleeps {
            child.sleep(MS).run(MS);
        }
        let child = task("child", policy(Policy::Fifo, 1), child.build());
        let parent = task("parent", policy(Policy::Fifo, 2), parent.build());
        let idle = task("idle", policy(Policy::Fifo, 2), burst(0));
        let late = TaskSpec { release_ns: Amount::Constant(20 * MS), instances: 2, ..idle };
        let tasks = vec![parent, TaskSpec { instances: 0, ..child }, late];
        turns("linux-6.12", &Workload::new("forks", tasks), costs, Some(8 * MS))
    };
    assert_eq!(turns_with(0), "0A 0.010000B 1.212000-");
    assert_eq!(turns_with(1), "0A 0.010000B 1.070000- 2.070000B 3.212000-");
    assert_eq!(turns_with(2), "0A 0.010000B 1.070000- 2.070000B 3.070000- 4.070000B 5.212000-");
}

/// A task that has run more than its share stays on its queue when it goes to sleep. The pick that
/// takes it off later, at a tick, takes time from the task that goes on.
#[test]
fn a_delayed_dequeue_takes_time_from_the_next_task() {
    let turns_with = |scheduler: &str, costs: Costs| {
        let mut ahead = ProgramBuilder::new();
        ahead.run(2 * MS).sleep(20 * MS);
        let tasks =
            vec![task("ahead", nice(0), ahead.build()), task("hog", nice(0), burst(5 * MS))];
        turns(scheduler, &Workload::new("delayed", tasks), costs, Some(9 * MS))
    };
    let costs = Costs { dequeue_delayed_ns: 70_000, ..Costs::ZERO };
    assert_eq!(turns_with("linux-6.1", costs), "0A 2B 7-");
    assert_eq!(turns_with("linux-6.12", costs), "0A 2B 7.070000-");
    // So does putting it back on its queue.
    let both = Costs { delay_dequeue_ns: 6_000, ..costs };
    assert_eq!(turns_with("linux-6.1", both), "0A 2B 7-");
    assert_eq!(turns_with("linux-6.12", both), "0A 2B 7.076000-");
}

/// What a task does with objects makes its exit longer, unless it was forked.
#[test]
fn a_child_exits_as_early_with_a_mutex() {
    let costs = Costs { exit_ns: 200_000, exit_marks_ns: 90_000, ..Costs::ZERO };
    let mut parent = ProgramBuilder::new();
    parent.op(Op::Fork { task: 1 }).lock(ObjectId(0)).unlock(ObjectId(0));
    let mut child = ProgramBuilder::new();
    child.run(MS).lock(ObjectId(0)).unlock(ObjectId(0));
    let child = task("child", policy(Policy::Fifo, 1), child.build());
    let parent = task("parent", policy(Policy::Fifo, 2), parent.build());
    let tasks = vec![parent, TaskSpec { instances: 0, ..child }];
    let mut workload = Workload::new("forks", tasks);
    let kind = ObjectKind::Mutex { protocol: MutexProtocol::None };
    workload.objects.push(ObjectSpec::new("m", kind));
    assert_eq!(turns("linux-6.12", &workload, costs, None), "0A 0.290000B 1.490000-");
}

/// A parent that writes to the file of a group copies pages of its heap, unless its child has run.
#[test]
fn a_parent_copies_its_heap_for_its_child() {
    let turns_with = |priority| {
        let change = Change::Weight { group: CgroupId(1), weight: 7 };
        let mut parent = ProgramBuilder::new();
        parent.op(Op::Fork { task: 1 }).op(Op::Change(Box::new(change)));
        let child = task("child", policy(Policy::Fifo, priority), burst(MS));
        let child = TaskSpec { instances: 0, ..child };
        let tasks = vec![task("parent", policy(Policy::Fifo, 1), parent.build()), child];
        let mut workload = Workload::new("forks", tasks);
        workload.cgroups.push(CgroupSpec::new("/a", CgroupId(0), 100));
        let costs = Costs {
            fork_heap_ns: 100_000,
            child_start_ns: 400_000,
            group_change_ns: 10_000,
            ..Costs::ZERO
        };
        turns("linux-6.12", &workload, costs, None)
    };
    assert_eq!(turns_with(1), "0A 0.110000B 1.410000-");
    assert_eq!(turns_with(2), "0A 0B 1.400000A 1.410000-");
}

#[test]
fn what_is_no_system_call_takes_time_in_user_mode() {
    let (object, semaphore) = (ObjectId(0), ObjectId(1));
    let mut program = ProgramBuilder::new();
    program.run(MS).op(Op::Phase(0)).lock(object).unlock(object);
    program.op(Op::SemPost { object: semaphore }).op(Op::SemWait { object: semaphore }).run(MS);
    let phases = vec!["here".into()];
    let spec = TaskSpec { phases, ..task("a", policy(Policy::Fifo, 1), program.build()) };
    let mut workload = Workload::new("user", vec![spec]);
    let kind = ObjectKind::Mutex { protocol: MutexProtocol::None };
    workload.objects.push(ObjectSpec { name: "m".into(), kind });
    workload
        .objects
        .push(ObjectSpec { name: "s".into(), kind: ObjectKind::Semaphore { initial: 0 } });
    let costs = Costs { phase_ns: 10_000, mutex_ns: 5_000, ..Costs::ZERO };
    assert_eq!(turns("linux-6.12", &workload, costs, None), "0A 2.020000-");
    let costs = Costs { run_step_ns: 1_000, semaphore_ns: 3_000, ..Costs::ZERO };
    assert_eq!(turns("linux-6.12", &workload, costs, None), "0A 2.008000-");
}

/// An exit takes longer where tasks of the run fork, and where it has groups, which also a task
/// that does neither pays. The queues of events then cost those that no other task forked.
#[test]
fn an_exit_depends_on_what_tasks_share() {
    let costs = Costs {
        fork_ns: MS,
        exit_ns: MS,
        first_exit_ns: 7_000,
        exit_shared_ns: 200_000,
        exit_queue_ns: 50_000,
        exit_groups_ns: 30_000,
        child_groups_ns: 20_000,
        fork_groups_ns: 40_000,
        exit_marks_ns: 1_000,
        ..Costs::ZERO
    };
    let fifo = |name: &str, program| task(name, policy(Policy::Fifo, 1), program);
    let other = || fifo("other", burst(MS));
    let found = |workload: &Workload| turns("linux-6.12", workload, costs, None);
    let mut workload = Workload::new("exits", vec![other(), other()]);
    workload.add_object(ObjectSpec::new("e", ObjectKind::Event));
    assert_eq!(found(&workload), "0A 2.007000B 4.007000-");
    workload.cgroups.push(CgroupSpec::new("/g", CgroupId(0), 100));
    assert_eq!(found(&workload), "0A 2.037000B 4.067000-");

    let parent = ProgramBuilder::new().op(Op::Fork { task: 1 }).op(Op::Phase(0)).build();
    let parent = TaskSpec { phases: vec!["here".into()], ..fifo("parent", parent) };
    let child = TaskSpec { instances: 0, ..fifo("child", burst(MS)) };
    let mut workload = Workload::new("exits", vec![parent, child, other()]);
    // The parent forks and exits, then the other one has its turn, then the child.
    assert_eq!(found(&workload), "0A 2.208000B 4.408000C 6.608000-");
    workload.add_object(ObjectSpec::new("e", ObjectKind::Event));
    assert_eq!(found(&workload), "0A 2.258000B 4.508000C 6.708000-");
    // Those of forked tasks have a cost of their own, and so have forks.
    workload.cgroups.push(CgroupSpec::new("/g", CgroupId(0), 100));
    assert_eq!(found(&workload), "0A 2.328000B 4.608000C 6.828000-");
}

/// In a kernel that is not preemptible a task that wakes in the first part of a fork, or in the
/// last one of an exit, waits for its end.
#[test]
fn forks_and_exits_hold_tasks_back_in_kernels_that_are_not_preemptible() {
    let parent = ProgramBuilder::new().op(Op::Fork { task: 1 }).run(MS).build();
    let child = TaskSpec { instances: 0, ..task("child", policy(Policy::Fifo, 1), burst(MS)) };
    let costs = Costs {
        fork_ns: 2 * MS,
        fork_held_ns: 300_000,
        exit_ns: MS,
        exit_held_ns: 200_000,
        exit_after_ns: 20_000,
        ..Costs::ZERO
    };
    let late_with = |costs: Costs, preempt, wakes_ns: u64| {
        let wakes = ProgramBuilder::new().sleep(wakes_ns).run(100_000).build();
        let other = task("other", policy(Policy::Fifo, 2), wakes);
        let parent = task("parent", policy(Policy::Fifo, 1), parent.clone());
        let workload = Workload::new("forks", vec![parent, child.clone(), other]);
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        case.machine = Machine { costs, preempt, ..case.machine };
        let turns = timeline(&case.run().unwrap_or_else(|error| panic!("{error}")));
        let at = turns.split(' ').nth(2).expect("it runs").trim_end_matches('B').parse::<f64>();
        (at.expect("a time") * 1e6).round() as u64 - wakes_ns
    };
    let late_ns = |preempt, wakes_ns| late_with(costs, preempt, wakes_ns);
    // At most the distance to the next point follows.
    assert!((200_000..204_000).contains(&late_ns(Preempt::Voluntary, 100_000)));
    assert!(late_ns(Preempt::Voluntary, 400_000) < 3_000);
    // The parent exits from 3 to 4 ms.
    assert!((100_000..104_000).contains(&late_ns(Preempt::Voluntary, 3_900_000)));
    // The task that exits can be preempted again after it has freed memory.
    let freed = Costs { exit_freed_ns: 300_000, ..costs };
    assert!((80_000..84_000).contains(&late_with(freed, Preempt::Voluntary, 3_600_000)));
    assert!(late_with(freed, Preempt::Voluntary, 3_800_000) < 3_000);
    assert_eq!(late_ns(Preempt::Full, 100_000), 0);
    assert_eq!(late_ns(Preempt::Full, 3_900_000), 0);
}

/// An exit takes as long, whatever its parts are.
#[test]
fn the_parts_of_an_exit_are_within_it() {
    let workload = Workload::new("exit", vec![task("a", policy(Policy::Fifo, 1), burst(MS))]);
    for (exit_held_ns, exit_freed_ns) in [(0, 0), (0, 300_000), (200_000, 0), (200_000, 300_000)] {
        let exit = Costs { exit_ns: MS, exit_after_ns: 20_000, ..Costs::ZERO };
        let costs = Costs { exit_held_ns, exit_freed_ns, ..exit };
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        case.machine = Machine { costs, preempt: Preempt::Voluntary, ..case.machine };
        let found = timeline(&case.run().unwrap_or_else(|error| panic!("{error}")));
        assert_eq!(found, "0A 2-", "{exit_held_ns} {exit_freed_ns}");
    }
}

#[test]
fn a_futex_takes_more_than_a_system_call() {
    let object = ObjectId(0);
    let program = ProgramBuilder::new().run(MS).op(Op::SemPost { object }).run(MS).build();
    let waits = ProgramBuilder::new().op(Op::SemWait { object }).run(MS).build();
    let tasks = vec![
        task("waits", policy(Policy::Fifo, 1), waits),
        task("posts", policy(Policy::Fifo, 1), program),
    ];
    let mut workload = Workload::new("futexes", tasks);
    workload.add_object(ObjectSpec::new("s", ObjectKind::Semaphore { initial: 0 }));
    let costs = Costs { syscall_ns: 7_000, futex_ns: 6_000, block_ns: 17_000, ..Costs::ZERO };
    // A's wait: 30 us before its switch. B's post: 13 us.
    let found = turns("linux-6.12", &workload, costs, None);
    assert_eq!(found, "0A 0.030000B 2.043000A 3.043000-");
}

/// The timer's time counts after what starting it takes, also if the task before has gone to sleep.
#[test]
fn a_slice_counts_from_the_start_of_its_timer() {
    let workload = Workload::new("slices", vec![task("hog", nice(0), endless()); 3]);
    let until = Some(3 * MS);
    let costs = Costs { hrtick_ns: 14_000, block_switch_ns: 8_000, ..Costs::ZERO };
    let found = turns("linux-7.2", &workload, costs, until);
    assert_eq!(found, "0A 0.714000B 1.428000C 2.142000A 2.856000B");
    let sleeper = task("sleeper", nice(0), bursts(1, 100_000, 100 * MS));
    let hog = || task("hog", nice(0), endless());
    let after = Workload::new("slices", vec![sleeper, hog(), hog()]);
    let found = turns("linux-7.2", &after, costs, until);
    assert_eq!(found, "0A 0.114000B 0.828000C 1.542000B 2.256000C 2.970000B");
    // From its expiry to the switch the slice goes on, and what is used of the next one is lost.
    let later = Costs { hrtick_resched_ns: 10_000, ..costs };
    let found = turns("linux-7.2", &workload, later, until);
    assert_eq!(found, "0A 0.724000B 1.448000C 2.172000A 2.886000B");
    // What it takes is CPU time of the task.
    let workload = Workload::new("slices", vec![task("hog", nice(0), burst(600_000)); 2]);
    let costs = Costs { block_switch_ns: 0, ..costs };
    assert_eq!(turns("linux-7.2", &workload, costs, None), "0A 0.614000B 1.214000-");
    let plain = turns("linux-7.1", &workload, costs, None);
    assert_eq!(plain, "0A 0.600000B 1.200000-");
}

/// The kernel sets the timer after the switch, whichever task was there before
/// (finish_lock_switch).
#[test]
fn a_slice_counts_from_the_end_of_the_switch() {
    let until = Some(2 * MS);
    let timer = Costs { context_switch_ns: 8_000, hrtick_ns: 6_000, ..Costs::ZERO };
    let costs = Costs { block_switch_ns: 8_000, preempt_switch_ns: 11_000, ..timer };
    let hogs = Workload::new("slices", vec![task("hog", nice(0), endless()); 2]);
    let sleeper = task("sleeper", nice(0), bursts(1, 100_000, 100 * MS));
    let hog = || task("hog", nice(0), endless());
    let after = Workload::new("slices", vec![sleeper, hog(), hog()]);
    for costs in [timer, costs] {
        assert_eq!(turns("linux-7.2", &hogs, costs, until), "0A 0.714000B 1.428000A");
        assert_eq!(turns("linux-7.2", &after, costs, until), "0A 0.114000B 0.828000C 1.542000B");
    }
    // The next task pays for what the switch took, and for the timer if it starts one.
    let work = |first: TaskSpec| {
        let tasks = vec![first, task("next", nice(0), burst(500_000)), hog()];
        turns("linux-7.2", &Workload::new("costs", tasks), costs, until)
    };
    let sleeper = task("sleeper", nice(0), bursts(1, 100_000, 100 * MS));
    assert!(work(sleeper).starts_with("0A 0.114000B 0.636000C"));
    assert!(work(hog()).starts_with("0A 0.714000B 1.239000C"));
}

/// A task that sleeps with a negative lag stays on its queue. Waking it takes its waker two thirds
/// as long as another one.
#[test]
fn a_waker_pays_for_a_task_that_is_still_queued() {
    let object = ObjectId(0);
    let batch = SchedAttr { policy: Policy::Batch, ..SchedAttr::default() };
    let waits = ProgramBuilder::new().run(100_000).op(Op::SemWait { object }).run(MS).build();
    let posts = ProgramBuilder::new().run(100_000).op(Op::SemPost { object }).run(MS).build();
    let waits = |policy| task("waits", SchedAttr { policy, ..batch }, waits.clone());
    let end = |wakeup_fair_ns, policy| {
        let tasks = vec![waits(policy), task("posts", batch, posts.clone())];
        let mut workload = Workload::new("wakeups", tasks);
        workload.add_object(ObjectSpec::new("s", ObjectKind::Semaphore { initial: 0 }));
        let costs = Costs { wakeup_fair_ns, preempt_check_ns: 2_000, ..Costs::ZERO };
        turns("linux-6.12", &workload, costs, None)
    };
    assert_eq!(end(0, Policy::Batch), "0A 0.100000B 1.200000A 2.200000-");
    assert_eq!(end(9_000, Policy::Batch), "0A 0.100000B 1.207000A 2.207000-");
}

/// A wake-up starts the timer of the waker's slice. It comes when that of A's would, so A, which
/// preempts, starts none and pays nothing.
#[test]
fn a_woken_task_does_not_pay_for_the_wakers_timer() {
    let object = ObjectId(0);
    let waits = ProgramBuilder::new().op(Op::SemWait { object }).run(100_000).build();
    let posts = ProgramBuilder::new().run(2 * MS).op(Op::SemPost { object }).run(MS).build();
    let tasks = vec![task("waits", nice(0), waits), task("posts", nice(0), posts)];
    let mut workload = Workload::new("timers", tasks);
    workload.add_object(ObjectSpec::new("s", ObjectKind::Semaphore { initial: 0 }));
    let costs = Costs { hrtick_ns: 14_000, ..Costs::ZERO };
    let found = turns("linux-7.2", &workload, costs, None);
    assert_eq!(found, "0A 0.014000B 2.028000A 2.128000B 3.128000-");
}

/// A switch picks at each level before it sets the timer, which updates each. Kernel 7.2: first
/// slices of 0.734 ms, 0.738 to 0.745 in a group, 0.747 to 0.755 in a group of a group.
#[test]
fn a_slice_in_a_group_is_longer() {
    let mut hogs = [1, 1, 2]
        .map(|group| task("hog", SchedAttr { cgroup: CgroupId(group), ..nice(0) }, endless()));
    let first = |hogs: &[TaskSpec]| {
        let mut workload = Workload::new("slices", hogs.to_vec());
        workload.cgroups.push(CgroupSpec::new("/g", CgroupId(0), 100));
        workload.cgroups.push(CgroupSpec::new("/g/h", CgroupId(1), 100));
        let (hrtick_ns, hrtick_resched_ns) = (14_000, 9_000);
        let (tick_entity_ns, pick_entity_ns) = (3_000, 3_500);
        let costs =
            Costs { hrtick_ns, hrtick_resched_ns, tick_entity_ns, pick_entity_ns, ..Costs::ZERO };
        turns("linux-7.2", &workload, costs, Some(MS))
    };
    assert_eq!(first(&hogs[..2]), "0A 0.729500B");
    hogs[0].attr.cgroup = CgroupId(2);
    assert_eq!(first(&hogs[..2]), "0A 0.736000B");
    hogs[0].attr.cgroup = CgroupId(0);
    assert_eq!(first(&hogs[..2]), "0A 0.723000B");
}

/// A budget that reclaims lasts longer than its timer's time, so the timer starts again.
#[test]
fn the_timer_of_a_budget_takes_time_whenever_it_starts() {
    let deadline = DeadlineParams {
        runtime_ns: 4 * MS,
        deadline_ns: 40 * MS,
        period_ns: 40 * MS,
        reclaim: true,
    };
    let attr = SchedAttr { policy: Policy::Deadline, deadline, ..SchedAttr::default() };
    let workload = Workload::new("budgets", vec![task("reclaims", attr, burst(3 * MS))]);
    let end = |hrtick_ns| turns("linux-7.2", &workload, Costs { hrtick_ns, ..Costs::ZERO }, None);
    // The first timer would come after 4 ms: one start. Then one that comes within the burst.
    assert_eq!((end(0).as_str(), end(6_000).as_str()), ("0A 3-", "0A 3.003000-"));
    let longer = Workload::new("budgets", vec![task("reclaims", attr, burst(6 * MS))]);
    let found = turns("linux-7.2", &longer, Costs { hrtick_ns: 6_000, ..Costs::ZERO }, None);
    let plain = turns("linux-7.2", &longer, Costs::ZERO, None);
    assert_eq!(plain, "0A 6-");
    assert_eq!(found, "0A 6.021600-");
}

/// A timer that starts again in its own interrupt counts from its expiry, not from its effect.
#[test]
fn the_timer_of_a_budget_counts_from_its_expiry() {
    let (runtime_ns, period_ns) = (500_000, 5 * MS);
    let deadline = DeadlineParams { runtime_ns, deadline_ns: period_ns, period_ns, reclaim: true };
    let attr = SchedAttr { policy: Policy::Deadline, deadline, ..SchedAttr::default() };
    let tasks = vec![
        task("reclaims", attr, burst(20 * MS)),
        task("hog", SchedAttr::default(), burst(20 * MS)),
    ];
    let workload = Workload::new("budgets", tasks);
    let end = |hrtick_ns, timer_delay_ns| {
        let costs = Costs { hrtick_ns, timer_delay_ns, ..Costs::ZERO };
        turns("linux-7.2", &workload, costs, Some(4 * MS))
    };
    // Without costs, a step is as long as what is left, 10 us at least.
    assert_eq!(end(0, 0), "0A 3.336083B");
    // Each step takes 7.3 us more, the interrupt's delay included, so there are fewer.
    assert_eq!(end(4_400, 15_500), "0A 3.340685B");
}

/// The kernel charges a task only while it is queued (`update_curr_dl`).
#[test]
fn a_budget_does_not_pay_for_the_way_to_the_switch() {
    let (runtime_ns, period_ns) = (MS, 10 * MS);
    let deadline = DeadlineParams { runtime_ns, deadline_ns: period_ns, period_ns, reclaim: false };
    let attr = SchedAttr { policy: Policy::Deadline, deadline, ..SchedAttr::default() };
    let workload = Workload::new("budgets", vec![task("budget", attr, endless())]);
    let costs = Costs { hrtick_resched_ns: 9_000, ..Costs::ZERO };
    let found = turns("linux-7.2", &workload, costs, Some(21 * MS));
    assert_eq!(found, "0A 1.012000- 10A 11.012000- 20A");
}

/// 1 ms in each 20 ms; a task uses 2.5 ms, sleeps for 2 ms and wakes while its group is in debt.
#[test]
fn a_task_of_a_throttled_group_visits_its_cpu_from_6_18_on() {
    let attr = SchedAttr { cgroup: CgroupId(1), ..SchedAttr::default() };
    let mut program = ProgramBuilder::new();
    program.sleep(MS).run(2_500_000).sleep(2 * MS).run(2_500_000);
    let program = program.build();
    let mut workload = Workload::new("visits", vec![task("limited", attr, program)]);
    let cpu_max = Some(CpuMax { quota_ns: MS, period_ns: 20 * MS, burst_ns: 0 });
    workload.cgroups.push(CgroupSpec { cpu_max, ..CgroupSpec::new("/g", CgroupId(0), 100) });
    let with = |scheduler: &str, throttle_ns| {
        let mut case = Case::new(&workload, find(scheduler).expect("it is registered"), 1);
        let costs = Costs { throttle_ns, ..Costs::ZERO };
        case.machine = Machine { costs, aligns_periods: true, ..case.machine };
        case.until_ns = Some(70 * MS);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    // Under 6.12 the queue takes a quota before the refill at time 0.
    assert_eq!(with("linux-6.12", 30_000), "0A 0- 1A 3.500000- 20A 22.500000-");
    assert_eq!(with("linux-7.2", 0), "0A 0- 1A 3.500000- 40A 42.500000-");
    let visits = "0A 0- 1A 3.500000- 5.500000A 5.530000- 40A 42.500000-";
    assert_eq!(with("linux-7.2", 30_000), visits);
}

/// Three hogs in a group with a quota.
fn limited_hogs(quota_ms: u64, period_ms: u64) -> Workload {
    let attr = SchedAttr { cgroup: CgroupId(1), ..SchedAttr::default() };
    let mut workload = Workload::new("limited", vec![task("limited", attr, endless()); 3]);
    let (quota_ns, period_ns) = (quota_ms * MS, period_ms * MS);
    let cpu_max = Some(CpuMax { quota_ns, period_ns, burst_ns: 0 });
    workload.cgroups.push(CgroupSpec { cpu_max, ..CgroupSpec::new("/g", CgroupId(0), 100) });
    workload
}

/// A group of three hogs uses its quota up. Each visits the CPU once and is throttled at the end of
/// its visit, whichever is picked next.
#[test]
fn each_task_of_a_throttled_group_visits_its_cpu_once() {
    let costs = Costs { throttle_ns: 30_000, ..Costs::ZERO };
    let turns = turns("linux-7.2", &limited_hogs(5, 20), costs, Some(19 * MS));
    assert!(turns.contains("B 5.600000C 5.630000A 5.660000B 5.690000- "), "{turns}");
}

/// Their slices are long, so the quota of 5 ms is used up at the tick of 8 ms, within one. Under
/// 7.2 the running task leaves then; before, all three visit the CPU, this one last.
#[test]
fn a_running_task_of_7_2_leaves_when_the_quota_is_used_up() {
    let mut limited = limited_hogs(5, 20);
    for task in &mut limited.tasks {
        task.attr.slice_ns = Some(20 * MS);
    }
    let costs = Costs { throttle_ns: 30_000, ..Costs::ZERO };
    let with = |scheduler| turns(scheduler, &limited, costs, Some(12 * MS));
    assert_eq!(with("linux-7.1"), "0A 8B 8.030000C 8.060000A 8.090000-");
    assert_eq!(with("linux-7.2"), "0A 8B 8.030000C 8.060000-");
}

/// A sleeper wakes at the tick that finds the quota used up. The CPU reschedules before the task
/// of the group returns to user mode. So the task stays queued, and leaves after a visit.
#[test]
fn a_request_to_reschedule_comes_before_a_task_of_7_2_leaves() {
    let mut limited = limited_hogs(5, 20);
    limited.tasks.truncate(1);
    limited.tasks[0].attr.slice_ns = Some(20 * MS);
    let costs = Costs { throttle_ns: 30_000, ..Costs::ZERO };
    let late = ProgramBuilder::new().sleep(8 * MS).run(MS).build();
    limited.tasks.push(task("late", nice(-20), late));
    let found = turns("linux-7.2", &limited, costs, Some(12 * MS));
    assert_eq!(found, "0B 0A 8B 8.699947A 8.729947B 9.030000-");
}

/// Two hogs in a group below the one with the quota take turns. The kernel looks for throttled
/// queues only up to the first one that both tasks share (set_next_task_fair). So neither leaves:
/// in a guest of 7.2.12 such a group with a quota of 5 in 20 ms gets 99.8 % of its CPU.
#[test]
fn tasks_of_one_group_below_a_throttled_one_go_on_under_7_2() {
    let mut limited = limited_hogs(5, 20);
    limited.cgroups.push(CgroupSpec::new("/g/h", CgroupId(1), 100));
    for task in &mut limited.tasks {
        task.attr.cgroup = CgroupId(2);
    }
    let costs = Costs { throttle_ns: 30_000, ..Costs::ZERO };
    let idle = |scheduler| turns(scheduler, &limited, costs, Some(38 * MS)).matches('-').count();
    assert_eq!((idle("linux-7.1"), idle("linux-7.2")), (2, 0));
}

/// A hog with 3 ms in 4 ms overruns to a tick, and the refill comes in the same interrupt, before
/// it has left. Under 7.2 that pays its debt, but it is in debt again at once and waits for the
/// next refill, so it gets half of the time. In 7.1 the pick finds the refill, and the hog goes on.
#[test]
fn a_refill_before_a_task_of_7_2_has_left_does_not_help_it() {
    let mut limited = limited_hogs(3, 4);
    limited.tasks.truncate(1);
    let costs = Costs {
        timer_delay_ns: 10_000,
        tick_ns: 20_000,
        tick_resched_ns: 20_000,
        clock_lead_ns: 15_000,
        throttle_ns: 40_000,
        ..Costs::ZERO
    };
    let with = |scheduler: &str| {
        let mut case = Case::new(&limited, find(scheduler).expect("it is registered"), 1);
        case.machine = Machine { costs, aligns_periods: true, ..case.machine };
        case.until_ns = Some(22 * MS);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(with("linux-7.1"), "0A 4.038000- 8.010000A 16.038000- 20.010000A");
    let half = "0A 4.038000- 8.010000A 12.038000- 16.010000A 20.038000-";
    assert_eq!(with("linux-7.2"), half);
}

/// A refill puts each throttled task back under 7.2, but the group's queue under 6.12. The next
/// turn comes later; a task of another group that runs loses the time.
#[test]
fn a_refill_of_a_quota_takes_time() {
    let limited = limited_hogs(2, 10);
    let late = ProgramBuilder::new().sleep(5 * MS).run(8 * MS).build();
    let mut shared = limited.clone();
    shared.tasks.truncate(1);
    shared.tasks.push(task("other", policy(Policy::Fifo, 1), late));
    let with = |scheduler: &str, workload: &Workload, unthrottle_ns, until| {
        let mut case = Case::new(workload, find(scheduler).expect("it is registered"), 1);
        let costs = Costs { unthrottle_ns, unthrottle_task_ns: 7_000, ..Costs::ZERO };
        case.machine = Machine { costs, aligns_periods: true, ..case.machine };
        case.until_ns = Some(until);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    for (scheduler, start) in [("linux-6.12", "10.010000"), ("linux-7.2", "10.031000")] {
        let plain = with(scheduler, &limited, 0, 11 * MS);
        let later = with(scheduler, &limited, 10_000, 11 * MS);
        assert!(plain.contains("- 10"), "{scheduler}: {plain}");
        assert!(later.contains(&format!("- {start}")), "{scheduler}: {later}");
    }
    // A level of groups below the limited one takes a quarter more.
    let mut deeper = limited.clone();
    deeper.cgroups.push(CgroupSpec::new("/g/h", CgroupId(1), 100));
    deeper.tasks[0].attr.cgroup = CgroupId(2);
    let later = with("linux-7.2", &deeper, 10_000, 11 * MS);
    assert!(later.contains("- 10.032750"), "{later}");
    let shared = |unthrottle_ns| with("linux-6.12", &shared, unthrottle_ns, 14 * MS);
    assert!(shared(0).ends_with(" 5B 13A"), "{}", shared(0));
    assert!(shared(10_000).ends_with(" 5B 13.010000A"), "{}", shared(10_000));
}

/// Two hogs use up the 50 ms of the fair server at the tick of 52 ms, and its next 50 ms, which
/// begin then, at 104 ms.
#[test]
fn a_tick_that_begins_a_period_of_the_fair_server_takes_longer() {
    // Without a task that may starve others there is no server.
    let rt = task("rt", policy(Policy::Fifo, 1), ProgramBuilder::new().sleep(1_000 * MS).build());
    let hog = task("hog", nice(0), burst(120 * MS));
    let workload = Workload::new("hogs", vec![hog.clone(), hog, rt]);
    let costs = Costs { server_refill_ns: 4_000, ..Costs::ZERO };
    let with = |costs| turns("linux-6.12", &workload, costs, Some(110 * MS));
    let (plain, later) = (with(Costs::ZERO), with(costs));
    assert!(plain.contains(" 48A 52B ") && plain.contains(" 104A "), "{plain}");
    assert!(later.contains(" 48A 52.004000B ") && later.contains(" 104.004000B "), "{later}");
}

/// Since 6.18 a task is throttled on its way to user mode, to which one that exits does not return
/// (throttle_cfs_rq_work). It goes on without quota. Before, its whole queue is throttled.
#[test]
fn a_task_that_exits_is_not_throttled() {
    let limited = SchedAttr { cgroup: CgroupId(1), ..nice(0) };
    let tasks = vec![task("limited", limited, burst(MS)), task("hog", nice(0), burst(40 * MS))];
    let mut workload = Workload::new("exits", tasks);
    let limit = CpuMax { quota_ns: 2 * MS, period_ns: 100 * MS, burst_ns: 0 };
    let group = CgroupSpec { cpu_max: Some(limit), ..CgroupSpec::new("/g", CgroupId(0), 100) };
    workload.cgroups.push(group);
    let costs = Costs { exit_ns: 15 * MS, throttle_ns: 30_000, ..Costs::ZERO };
    let ends_at = |scheduler: &str| {
        let mut case = Case::new(&workload, find(scheduler).expect("it is registered"), 1);
        case.machine = Machine { costs, set_up_ns: 1_000 * MS, ..case.machine };
        let found = case.run().unwrap_or_else(|error| panic!("{error}"));
        let exits = found.trace.events.iter().filter(|event| match event.kind {
            EventKind::Exit { task } => task == TaskId(0),
            _ => false,
        });
        exits.map(|event| event.time_ns / MS).next().expect("it exits")
    };
    assert_eq!(["linux-6.12", "linux-6.18", "linux-7.2"].map(ends_at), [590, 28, 31]);
}
