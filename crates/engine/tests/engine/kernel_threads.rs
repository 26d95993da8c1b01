// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of the kernel: when they come, and that the tasks of a workload stay what they are.

use crate::common;

use common::workloads::{burst, endless, nice, policy, task};
use common::{Case, MS, Run, timeline};
use schedlab_model::machine::{KernelThread, ThreadWakes};
use schedlab_model::program::{Program, ProgramBuilder};
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Costs, CpuId, EventKind, Machine, Nanos, Op, Policy, SchedAttr,
    TaskId, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

fn periodic(first_ns: Nanos, period_ns: Nanos) -> KernelThread {
    let wakes = ThreadWakes::Periodic { first_ns, period_ns };
    KernelThread { name: "kcompactd0".into(), wakes, rt_priority: 0, run_ns: 30_000 }
}

fn rcu() -> KernelThread {
    let wakes = ThreadWakes::AfterExit { ticks: 2, fork_unlocked_ns: None };
    KernelThread { name: "rcu_preempt".into(), wakes, rt_priority: 0, run_ns: 30_000 }
}

fn run(tasks: Vec<TaskSpec>, threads: Vec<KernelThread>, until_ns: Option<Nanos>) -> Run {
    let workload = Workload::new("threads", tasks);
    let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
    case.machine = Machine { threads, costs: Costs::ZERO, ..case.machine };
    case.until_ns = until_ns;
    case.run().unwrap_or_else(|error| panic!("{error}"))
}

/// A is the thread. It waits until the turn of C is protected no more, and comes before B.
#[test]
fn a_visit_comes_at_the_end_of_a_turn() {
    let hogs = || vec![task("hog", nice(0), endless()); 2];
    assert_eq!(timeline(&run(hogs(), vec![], Some(15 * MS))), "0A 4B 8A 12B");
    let found = timeline(&run(hogs(), vec![periodic(6 * MS, 100 * MS)], Some(11 * MS)));
    assert_eq!(found, "0B 4C 8A 8.030000B");
}

/// A thread leaves a hog alone if another CPU is idle. Those that are set up before the run, and
/// the tasks, are on the last CPU; a launcher that wakes tasks at time 0 has that CPU meanwhile.
#[test]
fn a_visit_takes_an_idle_cpu() {
    let runs = |threads: Vec<KernelThread>, nr_hogs, set_up_ns| {
        let workload = Workload::new("threads", vec![task("hog", nice(0), burst(7 * MS)); nr_hogs]);
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        case.machine = Machine { threads, costs: Costs::ZERO, set_up_ns, ..Machine::flat(2) };
        case.run().unwrap_or_else(|error| panic!("{error}"))
    };
    let found = runs(vec![periodic(MS, 2 * MS)], 1, 0);
    assert_eq!(found.outcome.end_ns, 7 * MS);
    let wakes = ThreadWakes::Once { at_ns: 0 };
    let launcher = KernelThread { wakes, rt_priority: 99, ..rcu() };
    let found = runs(vec![launcher], 2, 14_000 * MS);
    let first = found.trace.events.iter().find_map(|event| match event.kind {
        EventKind::Switch { next: Some(TaskId(1)), .. } => Some((event.time_ns, event.cpu)),
        _ => None,
    });
    assert_eq!(first, Some((0, CpuId(0))));
    assert_eq!(found.outcome.end_ns, 7_030_000);
}

/// A is the thread: tasks released at the same time begin after it, though they are fair.
#[test]
fn a_real_time_visit_at_the_release_comes_first() {
    let wakes = ThreadWakes::Once { at_ns: 0 };
    let first = KernelThread { wakes, rt_priority: 99, ..rcu() };
    let hogs = vec![task("hog", nice(0), endless()); 2];
    let found = timeline(&run(hogs, vec![first], Some(13 * MS)));
    assert_eq!(found, "0A 0.030000B 4C 8B 12C");
}

/// A is the launcher, which runs already: a task of the same priority waits for it.
#[test]
fn a_visit_at_the_release_comes_before_tasks_of_the_same_priority() {
    let wakes = ThreadWakes::Once { at_ns: 0 };
    let first = KernelThread { wakes, rt_priority: 99, ..rcu() };
    let hog = task("hog", policy(Policy::Rr, 99), endless());
    assert_eq!(timeline(&run(vec![hog], vec![first], Some(MS))), "0A 0.030000B");
}

/// Nobody checks for stalls of a scheduler for sched_ext where there is none.
#[test]
fn a_thread_that_checks_for_stalls_does_not_come_under_the_kernels_own_class() {
    let wakes = ThreadWakes::AtChecks { after_ns: MS };
    let checks = KernelThread { wakes, ..rcu() };
    let hogs = || vec![task("hog", nice(0), endless()); 2];
    let found = timeline(&run(hogs(), vec![checks], Some(15 * MS)));
    assert_eq!(found, "0B 4C 8B 12C");
}

#[test]
fn a_periodic_thread_keeps_its_times() {
    let idle = TaskSpec { release_ns: Amount::Constant(0), ..task("a", nice(0), burst(7 * MS)) };
    let found = timeline(&run(vec![idle], vec![periodic(MS, 2 * MS)], None));
    // The run ends with its task, not with the thread.
    assert_eq!(found, "0B 1A 1.030000B 3A 3.030000B 5A 5.030000B 7A 7.030000B 7.120000-");
}

/// The first task ends at 5 ms: RCU's thread comes at the ticks of 8 and 12 ms, and no more.
#[test]
fn an_exit_is_followed_by_two_visits() {
    let tasks = || vec![task("a", nice(0), burst(3 * MS)), task("b", nice(0), burst(19 * MS))];
    let found = timeline(&run(tasks(), vec![rcu()], None));
    let visits: Vec<&str> = found.split(' ').filter(|turn| turn.ends_with('A')).collect();
    assert_eq!(visits, ["4A", "8A"], "{found}");
    assert_eq!(timeline(&run(tasks(), vec![], None)), "0A 3B 22-");
}

/// The child ends at 1 ms. Its parent waits for it at 6 ms: RCU's thread comes at 8 and 12 ms. A
/// parent that does not wait leaves it to init.
#[test]
fn a_child_is_freed_when_its_parent_waits_for_it() {
    let visits = |joins: bool| {
        let mut parent = ProgramBuilder::new();
        parent.op(Op::Fork { task: 1 }).run(5 * MS);
        if joins {
            parent.op(Op::JoinAll);
        }
        let parent = parent.run(14 * MS).build();
        let child = TaskSpec { instances: 0, ..task("child", policy(Policy::Fifo, 1), burst(MS)) };
        let found = timeline(&run(vec![task("parent", nice(0), parent), child], vec![rcu()], None));
        let visits = found.split(' ').filter(|turn| turn.ends_with('A'));
        visits.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(visits(true), ["8A", "12A"]);
    assert_eq!(visits(false), Vec::<String>::new());
}

/// What RCU is to free before the first visit waits for no further ones; what comes after it does,
/// and the visit that ends one grace period begins the next.
#[test]
fn a_grace_period_serves_all_that_came_before_it() {
    let visits = |second: Program, ticks| {
        let first = task("a", policy(Policy::Fifo, 3), burst(3 * MS));
        let second = task("b", policy(Policy::Fifo, 2), second);
        let hog = task("hog", policy(Policy::Idle, 0), burst(40 * MS));
        let wakes = ThreadWakes::AfterExit { ticks, fork_unlocked_ns: None };
        let thread = KernelThread { wakes, ..rcu() };
        let found = timeline(&run(vec![first, second, hog], vec![thread], None));
        let visits = found.split(' ').filter_map(|turn| turn.strip_suffix('A'));
        visits.map(str::to_owned).collect::<Vec<_>>()
    };
    // They end at 3 and 3.5 ms, then at 3 and 6 ms.
    assert_eq!(visits(burst(500_000), 2), ["4", "8"]);
    assert_eq!(visits(burst(500_000), 1), ["4"]);
    let late = || ProgramBuilder::new().sleep(2 * MS).run(MS).build();
    assert_eq!(visits(late(), 2), ["4", "8", "12"]);
    assert_eq!(visits(late(), 1), ["4", "8"]);
}

/// RCU's thread wakes after the tick, an exit hands memory to RCU before its end, and the tick
/// after the last visit frees it.
#[test]
fn rcu_frees_at_the_tick_after_its_threads_last_visit() {
    let turns = |burst_ns, costs: Costs| {
        let tasks = vec![
            task("a", policy(Policy::Fifo, 1), burst(burst_ns)),
            task("b", policy(Policy::Idle, 0), burst(19 * MS)),
        ];
        let workload = Workload::new("threads", tasks);
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        case.machine = Machine { threads: vec![rcu()], costs, ..case.machine };
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    let costs = Costs { rcu_wakeup_ns: 20_000, rcu_free_ns: 50_000, ..Costs::ZERO };
    let found = turns(3 * MS, costs);
    assert_eq!(found, "0B 3C 4.020000A 4.050000C 8.020000A 8.050000C 22.110000-");
    // The exit lasts from 3 to 5 ms.
    let exit = Costs { exit_ns: 2 * MS, exit_after_ns: 15_000, exit_rcu_ns: MS + 100_000, ..costs };
    let found = turns(3 * MS, exit);
    assert_eq!(found, "0B 5A 5.030000C 8.020000A 8.050000C 12.020000A 12.050000C 26.140000-");
    // Nothing is handed to RCU before the tick of 4 ms.
    let later = Costs { exit_rcu_ns: 900_000, ..exit };
    let found = turns(3 * MS, later);
    assert_eq!(found, "0B 5C 8.020000A 8.050000C 12.020000A 12.050000C 26.110000-");
}

/// A fork from 0.5 to 6.5 ms, which RCU's thread interrupts at 4 ms. If its memory is locked then,
/// the grace period ends when the fork has gone on, and the thread comes twice.
#[test]
fn a_fork_that_is_preempted_delays_a_grace_period() {
    let turns = |fork_unlocked_ns| {
        let parent = ProgramBuilder::new().op(Op::Fork { task: 2 }).run(MS).build();
        let tasks = vec![
            task("short", policy(Policy::Fifo, 1), burst(500_000)),
            task("parent", policy(Policy::Fifo, 1), parent),
            TaskSpec { instances: 0, ..task("child", policy(Policy::Fifo, 1), burst(MS)) },
        ];
        let workload = Workload::new("threads", tasks);
        let wakes = ThreadWakes::AfterExit { ticks: 1, fork_unlocked_ns };
        let thread = KernelThread { wakes, rt_priority: 2, ..rcu() };
        let mut case = Case::new(&workload, find("linux-7.2").expect("it is registered"), 1);
        let costs = Costs { fork_ns: 6 * MS, wakeup_ns: 5_000, ..Costs::ZERO };
        case.machine = Machine { threads: vec![thread], costs, ..case.machine };
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    let once = "0B 0.500000C 4A 4.030000C 7.530000D 8A 8.030000D 8.560000-";
    assert_eq!(turns(None), once);
    assert_eq!(turns(Some(3 * MS)), once);
    let twice = "0B 0.500000C 4A 4.030000C 4.035000A 4.065000C 7.560000D 8A 8.030000D 8.590000-";
    assert_eq!(turns(Some(2 * MS)), twice);
}

/// Amounts of forked tasks come from the same random streams with and without threads.
#[test]
fn tasks_draw_the_same_amounts() {
    let child =
        ProgramBuilder::new().op(Op::Run(Amount::Uniform { low: MS, high: 9 * MS })).build();
    let mut parent = ProgramBuilder::new();
    parent.run(MS).op(Op::Fork { task: 1 }).op(Op::Fork { task: 1 }).op(Op::JoinAll);
    let parent = parent.build();
    let tasks = || {
        let forked = TaskSpec { instances: 0, ..task("child", nice(0), child.clone()) };
        vec![task("parent", nice(0), parent.clone()), forked]
    };
    let used = |threads: Vec<KernelThread>| {
        let nr_hidden = threads.len() as u32;
        let found = run(tasks(), threads, None);
        let mut ran = vec![0; 3];
        let mut since = (0, None::<TaskId>);
        for event in &found.trace.events {
            if let schedlab_model::EventKind::Switch { prev, next, .. } = event.kind {
                if let Some(task) = prev.and_then(|task| task.0.checked_sub(nr_hidden)) {
                    ran[task as usize] += event.time_ns - since.0;
                }
                since = (event.time_ns, next);
            }
        }
        ran
    };
    let alone = used(vec![]);
    assert!(alone[1] != alone[2] && alone[1] > MS, "{alone:?}");
    assert_eq!(used(vec![periodic(2 * MS, 3 * MS), rcu()]), alone);
}

#[test]
fn a_thread_leaves_time_for_tasks() {
    let check = |thread| Machine { threads: vec![thread], ..Machine::flat(1) }.check();
    assert_eq!(check(rcu()), Ok(()));
    let error = check(KernelThread { run_ns: 60_000, ..periodic(0, 100_000) }).unwrap_err();
    assert!(error.contains("60000 ns of every 100000 ns"), "{error}");
    let error = check(KernelThread { rt_priority: 100, ..rcu() }).unwrap_err();
    assert!(error.contains("`rt_priority` is 100: allowed is 0 to 99"), "{error}");
    assert!(check(KernelThread { run_ns: 0, ..rcu() }).unwrap_err().contains("1 and more"));
}

/// A worker comes when the task moves to the empty group, and for its move back only at the fourth
/// tick after that, since this is less than 10 ms later. A group that has a task already is not
/// told of.
#[test]
fn a_worker_tells_that_a_group_is_populated() {
    let visits_of = |others: usize, again: bool| {
        let set = |group| Op::SetAttr(Box::new(SchedAttr { cgroup: CgroupId(group), ..nice(0) }));
        let mut moves = ProgramBuilder::new();
        moves.run(5 * MS).op(set(1)).run(MS).op(set(0));
        if again {
            moves.run(MS).op(set(1)).run(MS).op(set(0));
        }
        moves.run(40 * MS);
        let mut sleeper = ProgramBuilder::new();
        let in_group = SchedAttr { cgroup: CgroupId(1), ..nice(0) };
        let sleeper = task("sleeper", in_group, sleeper.sleep(60 * MS).build());
        let mut tasks = vec![task("moves", nice(0), moves.build())];
        tasks.extend(vec![sleeper; others]);
        let mut workload = Workload::new("threads", tasks);
        workload.cgroups.push(CgroupSpec::new("/a", CgroupId(0), 100));
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        let worker = KernelThread { wakes: ThreadWakes::AtPopulated, ..rcu() };
        case.machine = Machine { threads: vec![worker], costs: Costs::ZERO, ..case.machine };
        case.until_ns = Some(40 * MS);
        let run = case.run().unwrap_or_else(|error| panic!("{error}"));
        let wakes = run.trace.events.iter().filter_map(|event| match event.kind {
            EventKind::Wakeup { task: TaskId(0), .. } => Some(event.time_ns / MS),
            _ => None,
        });
        wakes.collect::<Vec<_>>()
    };
    assert_eq!(visits_of(0, false), [5, 20]);
    assert_eq!(visits_of(1, false), Vec::<Nanos>::new());
    // What happens before the worker comes is told of by then.
    assert_eq!(visits_of(0, true), [5, 20]);
}

/// The times (ms) at which the last of these threads comes to its CPU.
fn visits_of_last(threads: &[KernelThread], tasks: Vec<TaskSpec>) -> Vec<Nanos> {
    let last = TaskId(threads.len() as u32 - 1);
    let found = run(tasks, threads.to_vec(), Some(40 * MS));
    let switches = found.trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Switch { next, .. } if next == Some(last) => Some(event.time_ns / MS),
        _ => None,
    });
    switches.collect()
}

fn launcher() -> KernelThread {
    KernelThread { wakes: ThreadWakes::AtAwaitedExit, rt_priority: 99, ..rcu() }
}

/// The launcher waits for the tasks in the order in which they were made. The exit of a later one
/// does not wake it, nor does any exit if a task of the run is endless. Its visits take the CPU
/// from tasks of the highest priority, which it has lowered.
#[test]
fn the_launcher_comes_when_the_task_exits_that_it_waits_for() {
    let visits = |tasks| visits_of_last(&[launcher()], tasks);
    let fifo = |ms: u64| task("t", policy(Policy::Fifo, 99), burst(ms * MS));
    assert_eq!(visits(vec![fifo(1), fifo(2), fifo(3)]), [1, 3, 6]);
    // The second one exits first.
    let mut late = ProgramBuilder::new();
    let late = task("late", policy(Policy::Fifo, 99), late.sleep(5 * MS).run(MS).build());
    assert_eq!(visits(vec![late.clone(), fifo(2)]), [6]);
    assert_eq!(visits(vec![fifo(2), late, task("hog", nice(0), endless())]), Vec::<Nanos>::new());
}

/// A launcher reaps tasks in the order in which they were made. RCU frees one that has exited then,
/// and none if the launcher waits for an endless one.
#[test]
fn rcu_comes_when_the_launcher_reaps() {
    let visits = |tasks| visits_of_last(&[launcher(), rcu()], tasks);
    let fifo = |prio, ms: u64| task("t", policy(Policy::Fifo, prio), burst(ms * MS));
    let fair = || task("t", nice(0), burst(20 * MS));
    let hog = task("hog", nice(0), endless());
    assert_eq!(visits(vec![fifo(1, 1), fair()]), [4, 8]);
    assert_eq!(visits(vec![fifo(1, 1), hog]), Vec::<Nanos>::new());
    // The second one exits first, and is reaped when the first one exits, after 7 ms.
    assert_eq!(visits(vec![fifo(1, 6), fifo(2, 1), fair()]), [8, 12]);
}
