// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of callbacks for each kind of event, as Linux kernel/sched/ext.c (6.18) makes it.

use crate::support;

use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Change, CpuMax, Op, Policy, Release, SchedAttr, TaskId, TaskSpec,
};
use schedlab_scx::consts::{
    DSQ_LOCAL, DSQ_LOCAL_ON, KICK_IDLE, KICK_PREEMPT, OPS_ENQ_LAST, OPS_SWITCH_PARTIAL, SLICE_DFL,
    SLICE_INF,
};
use schedlab_scx::{Callback, Kernel, Ops};
use std::sync::{Arc, Mutex};
use support::record::Recorded;
use support::schedulers::{SHARED, Simple};
use support::script::Script;
use support::{Case, MS, Ran, hog, later, nice, on, policy, sleeper, task};

fn recorded(case: &Case, ops: Recorded<impl Ops + 'static>) -> Ran {
    let log = ops.log.clone();
    case.run(ops, log)
}

fn fifo(case: &Case) -> Ran {
    recorded(case, Recorded::new(Simple::fifo()))
}

/// Forks a child at 5 ms that runs 3 ms; the parent joins it.
fn forker() -> Vec<TaskSpec> {
    let parent =
        ProgramBuilder::new().run(5 * MS).op(Op::Fork { task: 1 }).run(MS).op(Op::JoinAll).build();
    let child = ProgramBuilder::new().run(3 * MS).build();
    vec![
        TaskSpec { release: Release::Wakeup, ..TaskSpec::new("parent", parent) },
        TaskSpec { instances: 0, ..TaskSpec::new("child", child) },
    ]
}

#[test]
fn fork_first_run_and_exit() {
    let run = fifo(&Case::new(1, 100, forker()));
    assert_eq!(run.timeline(), "0A 6B 9A 9-");
    assert_eq!(
        run.log.at("5"),
        [
            "init_task(B,fork=1)",
            "enable(B)",
            "set_weight(B,100)",
            "runnable(B,INITIAL)",
            "enqueue(B,INITIAL)"
        ]
    );
    // At 6 ms the parent waits.
    assert_eq!(
        run.log.at("6"),
        ["stopping(A,0)", "quiescent(A,SLEEP)", "dispatch(0,A)", "running(B)"]
    );
    // At 9 ms the child exits and wakes the parent, then the parent exits.
    assert_eq!(
        run.log.at("9")[..8],
        [
            "runnable(A,WAKEUP)",
            "enqueue(A,WAKEUP)",
            "stopping(B,0)",
            "quiescent(B,SLEEP)",
            "dispatch(0,B)",
            "running(A)",
            "disable(B)",
            "exit_task(B,cancelled=0)",
        ]
    );
    assert_eq!(
        run.log.at("9")[8..13],
        [
            "stopping(A,0)",
            "quiescent(A,SLEEP)",
            "dispatch(0,A)",
            "disable(A)",
            "exit_task(A,cancelled=0)"
        ]
    );
}

#[test]
fn wakeup_with_nothing_inserted() {
    let b = task("b", nice(0), ProgramBuilder::new().run(MS).build());
    let b = TaskSpec { release_ns: Amount::Constant(7 * MS), ..b };
    let run = fifo(&Case::new(2, 30, vec![hog("a", nice(0)), hog("b", nice(0)), b]));
    assert_eq!(
        run.log.at("7")[3..],
        ["select_cpu(C,0,8)", "runnable(C,WAKEUP|SELECTED)", "enqueue(C,WAKEUP|SELECTED)"]
    );
}

#[test]
fn a_new_task_is_placed_by_select_cpu() {
    let run = fifo(&Case::new(2, 100, forker()));
    assert_eq!(
        run.log.at("5"),
        [
            "init_task(B,fork=1)",
            "enable(B)",
            "set_weight(B,100)",
            "select_cpu(B,0,4)",
            "runnable(B,INITIAL)",
            "running(B)"
        ]
    );
    assert_eq!(run.timeline_by_cpu(), "0:0A 1:5B 0:6- 1:8- 0:8A 0:8-");
}

#[test]
fn wakeup_of_a_task_bound_to_one_cpu() {
    let b = task("b", on(&[0]), ProgramBuilder::new().run(MS).build());
    let b = TaskSpec { release_ns: Amount::Constant(7 * MS), ..b };
    let run = fifo(&Case::new(2, 30, vec![hog("a", on(&[0])), b]));
    assert_eq!(run.log.at("7")[3..], ["runnable(B,WAKEUP)", "enqueue(B,WAKEUP)"]);
}

/// The last task with SCX_OPS_ENQ_LAST is enqueued, and the CPU goes idle.
#[test]
fn slice_used_up_with_enq_last() {
    let ops = Script {
        flags: OPS_ENQ_LAST,
        enqueue: Some(Box::new(|k, p, flags| {
            if flags & schedlab_scx::consts::ENQ_LAST == 0 {
                k.dsq_insert(p, DSQ_LOCAL, SLICE_DFL, flags);
            }
        })),
        dispatch: Some(Box::new(|_, _, _| {})),
        ..Script::default()
    };
    let case = Case::new(1, 30, vec![hog("a", nice(0))]);
    let run = recorded(&case, Recorded::new(ops).with(Callback::UpdateIdle));
    assert_eq!(
        run.log.at("20"),
        ["dispatch(0,A)", "stopping(A,1)", "enqueue(A,LAST)", "update_idle(0,1)"]
    );
    assert_eq!(run.timeline(), "0A 20-");
}

/// Who keeps an own list of idle CPUs hears of those that are idle when it is loaded.
#[test]
fn idle_cpus_at_the_loading() {
    let ops = || Script {
        enqueue: Some(Box::new(|k, p, flags| {
            k.dsq_insert(p, DSQ_LOCAL, SLICE_DFL, flags);
        })),
        ..Script::default()
    };
    let case = Case::new(2, 10, vec![hog("a", nice(0))]);
    let idle = |log: Vec<String>| -> Vec<String> {
        log.into_iter().filter(|line| line.starts_with("update_idle")).collect()
    };
    let run = recorded(&case, Recorded::new(ops()).with(Callback::UpdateIdle));
    assert_eq!(idle(run.log.at("0")), ["update_idle(0,1)", "update_idle(1,1)", "update_idle(0,0)"]);
    let keeps = Script { flags: schedlab_scx::consts::OPS_KEEP_BUILTIN_IDLE, ..ops() };
    let run = recorded(&case, Recorded::new(keeps).with(Callback::UpdateIdle));
    assert_eq!(idle(run.log.at("0")), ["update_idle(0,0)"]);
}

/// A scheduler that parks tasks in queue 1 and takes them back at each tick.
fn parking(flags: u64, queue: u64) -> Script {
    use schedlab_scx::consts::ENQ_REENQ;
    Script {
        init: Some(Box::new(|k| k.create_dsq(1, -1))),
        enqueue: Some(Box::new(move |k, p, enq| {
            let is_back = enq & ENQ_REENQ != 0;
            k.dsq_insert(p, if is_back { DSQ_LOCAL } else { 1 }, SLICE_DFL, enq);
        })),
        dispatch: Some(Box::new(|_, _, _| {})),
        timer: Some(Box::new(move |k, _| k.dsq_reenq(queue, flags))),
        init_task: Some(Box::new(|k, _| {
            k.start_timer(1, 7 * MS);
            0
        })),
        ..Script::default()
    }
}

#[test]
fn tasks_are_taken_back_from_a_queue_of_the_scheduler() {
    let case = Case::new(1, 60, vec![hog("a", nice(0)), hog("b", nice(0))]).at_7_1();
    let run = recorded(&case, Recorded::new(parking(0, 1)));
    assert_eq!(run.log.at("7")[..3], ["timer(1)", "enqueue(A,REENQ)", "enqueue(B,REENQ)"]);
    assert_eq!(run.timeline(), "7A 28B");
}

#[test]
fn what_cannot_be_taken_back_is_an_error() {
    let error = |flags, queue| {
        let case = Case::new(1, 60, vec![hog("a", nice(0))]).at_7_1();
        case.run(parking(flags, queue), Default::default()).error()
    };
    assert!(error(2, 1).contains("invalid SCX_REENQ flags 0x2"), "{}", error(2, 1));
    assert!(error(0, 9).contains("non-existent DSQ 0x9"), "{}", error(0, 9));
    let global = error(0, schedlab_scx::consts::DSQ_GLOBAL);
    assert!(global.contains("not allowed for reenq"), "{global}");
}

/// A scheduler that puts each task back where it was taken from, and asks for it again.
#[test]
fn taking_back_without_end_is_an_error() {
    let ops = Script {
        init: Some(Box::new(|k| k.create_dsq(1, -1))),
        enqueue: Some(Box::new(|k, p, flags| {
            k.dsq_insert(p, 1, SLICE_DFL, flags);
            k.dsq_reenq(1, 0);
        })),
        dispatch: Some(Box::new(|_, _, _| {})),
        ..Script::default()
    };
    let case = Case::new(1, 60, vec![hog("a", nice(0))]).at_7_1();
    let error = case.run(ops, Default::default()).error();
    assert!(error.contains("SCX_ENQ_REENQ repeated 257 times at one instant"), "{error}");
}

/// In 6.18 an insert of the last task into the local queue asks for no reschedule, in 7.1 it does.
#[test]
fn enq_last_into_the_local_queue() {
    let ops = || Script {
        flags: OPS_ENQ_LAST,
        enqueue: Some(Box::new(|k, p, flags| {
            k.dsq_insert(p, DSQ_LOCAL, SLICE_DFL, flags);
        })),
        dispatch: Some(Box::new(|_, _, _| {})),
        ..Script::default()
    };
    let case = Case::new(1, 50, vec![hog("a", nice(0))]);
    assert_eq!(case.run(ops(), Default::default()).timeline(), "0A 20-");
    assert_eq!(case.at_7_1().run(ops(), Default::default()).timeline(), "0A 20- 20A 40- 40A");
}

#[test]
fn a_slice_refilled_by_dispatch_or_tick_goes_on() {
    for by_tick in [false, true] {
        let ops = Script {
            enqueue: Some(Box::new(|k, p, flags| {
                k.dsq_insert(p, schedlab_scx::consts::DSQ_GLOBAL, SLICE_DFL, flags);
            })),
            tick: if by_tick { Some(Box::new(refill)) } else { None },
            dispatch: Some(Box::new(move |k, _, prev| {
                if let Some(prev) = prev.filter(|_| !by_tick) {
                    refill(k, prev);
                }
            })),
            ..Script::default()
        };
        let case = Case::new(1, 45, vec![hog("a", nice(0))]);
        let run = recorded(&case, Recorded::new(ops));
        let asked: Vec<_> = run.log.of(&["dispatch"]);
        let expected: &[&str] = if by_tick {
            &[]
        } else {
            &["20 dispatch(0,A)", "32 dispatch(0,A)", "44 dispatch(0,A)"]
        };
        // The first choice is from idle.
        assert_eq!(
            asked.iter().filter(|line| !line.starts_with("0 ")).collect::<Vec<_>>(),
            expected
        );
        assert!(run.log.of(&["stopping"]).is_empty());
    }
}

fn refill(k: &mut Kernel<'_>, p: TaskId) {
    if k.entity(p).slice() == 0 {
        k.entity(p).set_slice(10 * MS);
    }
}

#[test]
fn block() {
    let tasks = vec![
        task("a", nice(0), ProgramBuilder::new().run(4 * MS).sleep(20 * MS).run(MS).build()),
        hog("b", nice(0)),
    ];
    let run = fifo(&Case::new(1, 20, tasks).at_hz(1000));
    assert_eq!(
        run.log.at("4"),
        ["stopping(A,0)", "quiescent(A,SLEEP)", "dispatch(0,A)", "running(B)"]
    );
}

/// A higher class comes exactly when the slice is used up: the task goes back to the scheduler.
#[test]
fn preempted_by_a_higher_class_without_a_slice_left() {
    let tasks = vec![hog("a", nice(0)), later("rt", policy(Policy::Fifo, 10), 20 * MS, 2 * MS)];
    let ops = Recorded::new(Simple::fifo()).with(Callback::CpuRelease);
    let run = recorded(&Case::new(1, 23, tasks).at_hz(1000), ops);
    assert_eq!(
        run.log.at("20"),
        ["dispatch(0,A)", "stopping(A,1)", "enqueue(A,0)", "cpu_release(0,0,B)"]
    );
    assert_eq!(run.log.at("22")[..2], ["dispatch(0,-)", "running(A)"]);
}

#[test]
fn yield_is_a_slice_used_up() {
    let program = || ProgramBuilder::new().run(3 * MS).op(Op::Yield).run(100 * MS).build();
    let tasks = vec![task("a", nice(0), program()), hog("b", nice(0))];
    let case = Case::new(1, 10, tasks).at_hz(1000);
    let run = fifo(&case);
    assert_eq!(run.log.at("3"), ["dispatch(0,A)", "stopping(A,1)", "enqueue(A,0)", "running(B)"]);
    // With ops.yield the slice is the scheduler's business: nothing happens without it.
    let run = recorded(&case, Recorded::new(Simple::fifo()).with(Callback::Yield));
    assert_eq!(run.log.at("3"), ["yield(A)"]);
    assert_eq!(run.timeline(), "0A");
}

#[test]
fn a_running_task_changes_its_affinity() {
    let program = ProgramBuilder::new()
        .run(3 * MS)
        .op(Op::SetAttr(Box::new(on(&[0, 1]))))
        .run(100 * MS)
        .build();
    let run = fifo(&Case::new(4, 10, vec![task("a", on(&[0, 2]), program)]));
    assert_eq!(
        run.log.at("3"),
        [
            "stopping(A,0)",
            "quiescent(A,SAVE)",
            "set_cpumask(A,0-1)",
            "runnable(A,RESTORE)",
            "running(A)"
        ]
    );
}

/// The new affinity forbids the CPU: the task moves as an internal migration.
#[test]
fn a_running_task_must_leave_its_cpu() {
    let program =
        ProgramBuilder::new().run(3 * MS).op(Op::SetAttr(Box::new(on(&[1])))).run(MS).build();
    let run = fifo(&Case::new(2, 10, vec![task("a", on(&[0]), program)]));
    assert_eq!(
        run.log.at("3")[5..],
        ["stopping(A,1)", "dispatch(0,-)", "enqueue(A,MIGRATED)", "dispatch(1,-)", "running(A)"]
    );
    assert_eq!(run.timeline_by_cpu(), "0:0A 0:3- 1:3A 1:4-");
}

#[test]
fn ext_to_another_class_and_back() {
    let program = ProgramBuilder::new()
        .run(3 * MS)
        .op(Op::SetAttr(Box::new(policy(Policy::Fifo, 1))))
        .run(3 * MS)
        .op(Op::SetAttr(Box::new(nice(0))))
        .run(3 * MS)
        .build();
    let run = fifo(&Case::new(1, 20, vec![task("a", nice(0), program)]));
    assert_eq!(run.log.at("3"), ["stopping(A,0)", "quiescent(A,SAVE|MOVE)", "disable(A)"]);
    assert_eq!(
        run.log.at("6"),
        [
            "enable(A)",
            "set_weight(A,100)",
            "set_cpumask(A,0)",
            "runnable(A,RESTORE|MOVE|HEAD)",
            "running(A)"
        ]
    );
}

#[test]
fn a_task_changes_its_group() {
    let moved = SchedAttr { cgroup: CgroupId(2), ..nice(0) };
    let program =
        ProgramBuilder::new().run(3 * MS).op(Op::SetAttr(Box::new(moved))).run(MS).build();
    let mut case = Case::new(1, 10, vec![task("a", nice(0), program)]);
    case.workload.cgroups.push(CgroupSpec::new("/x", CgroupId(0), 300));
    case.workload.cgroups.push(CgroupSpec::new("/x/y", CgroupId(1), 50));
    let ops = Recorded::new(Simple::fifo()).with(Callback::CgroupPrepMove);
    let run = recorded(&case, ops);
    assert_eq!(
        run.log.at("0")[..3],
        ["cgroup_init(0,100)", "cgroup_init(1,300)", "cgroup_init(2,50)"]
    );
    assert_eq!(
        run.log.at("3"),
        [
            "stopping(A,0)",
            "quiescent(A,SAVE)",
            "cgroup_prep_move(A,0,2)",
            "cgroup_move(A,0,2)",
            "runnable(A,RESTORE)",
            "running(A)"
        ]
    );
    assert_eq!(
        run.log.of(&["cgroup_exit"]),
        ["4 cgroup_exit(2)", "4 cgroup_exit(1)", "4 cgroup_exit(0)"]
    );
}

/// A scheduler is told a new weight, and each write of a limit that changes a number.
#[test]
fn a_group_changes() {
    let max = CpuMax { quota_ns: 5 * MS, period_ns: 20 * MS, burst_ns: 2 * MS };
    let limit = |cpu_max| Change::CpuMax { group: CgroupId(1), cpu_max };
    let weight = Change::Weight { group: CgroupId(1), weight: 300 };
    let mut program = ProgramBuilder::new();
    for change in [weight.clone(), weight, limit(Some(max)), limit(Some(max)), limit(None)] {
        program.run(MS).op(Op::Change(Box::new(change)));
    }
    let mut case = Case::new(1, 10, vec![task("a", nice(0), program.run(MS).build())]);
    case.workload.cgroups.push(CgroupSpec::new("/x", CgroupId(0), 100));
    let ops = Recorded::new(Simple::fifo())
        .with(Callback::CgroupSetWeight)
        .with(Callback::CgroupSetBandwidth);
    let run = recorded(&case, ops);
    let none = u64::MAX;
    assert_eq!(
        run.log.of(&["cgroup_set_weight", "cgroup_set_bandwidth"]),
        [
            "1 cgroup_set_weight(1,300)".to_string(),
            "3 cgroup_set_bandwidth(1,20000,5000,0)".into(),
            "3 cgroup_set_bandwidth(1,20000,5000,2000)".into(),
            "5 cgroup_set_bandwidth(1,20000,5000,0)".into(),
            format!("5 cgroup_set_bandwidth(1,100000,{none},0)"),
        ]
    );
}

/// Taking a task from a queue to another CPU calls nothing but what runs there.
#[test]
fn consuming_on_another_cpu_is_silent() {
    // B is woken on CPU 0, which is busy, and taken by CPU 1 when that is free.
    let tasks = vec![
        hog("a", on(&[0])),
        task("c", on(&[1]), ProgramBuilder::new().run(9 * MS).build()),
        later("b", nice(0), 5 * MS, 2 * MS),
    ];
    let run = fifo(&Case::new(2, 20, tasks));
    assert_eq!(
        run.log.at("9")[..4],
        ["stopping(B,0)", "quiescent(B,SLEEP)", "dispatch(1,B)", "running(C)"]
    );
}

/// SCX_DSQ_LOCAL_ON of another CPU from ops.enqueue is deferred and then carried out.
#[test]
fn local_on_another_cpu_is_deferred() {
    let ops = Script {
        select_cpu: Some(Box::new(|_, _, _, _| 0)),
        enqueue: Some(Box::new(|k, p, flags| {
            k.dsq_insert(p, DSQ_LOCAL_ON | 1, SLICE_DFL, flags);
        })),
        ..Script::default()
    };
    let tasks = vec![later("a", nice(0), 4 * MS, 2 * MS)];
    let run = recorded(&Case::new(2, 20, tasks), Recorded::new(ops));
    assert_eq!(
        run.log.at("4"),
        [
            "select_cpu(A,1,8)",
            "runnable(A,WAKEUP|MIGRATED|SELECTED)",
            "enqueue(A,WAKEUP|MIGRATED|SELECTED)",
            "running(A)"
        ]
    );
    assert_eq!(run.timeline_by_cpu(), "1:0A 1:0- 1:4A 1:6-");
}

/// A queue that nobody is told about wakes no CPU; a kick does.
#[test]
fn only_a_kick_wakes_an_idle_cpu() {
    for kicks in [false, true] {
        let ops = Script {
            init: Some(Box::new(|k| k.create_dsq(SHARED, -1))),
            select_cpu: Some(Box::new(|_, _, _, _| 0)),
            enqueue: Some(Box::new(move |k, p, flags| {
                k.dsq_insert(p, SHARED, SLICE_INF, flags);
                if kicks {
                    k.kick_cpu(1, KICK_IDLE);
                }
            })),
            dispatch: Some(Box::new(|k, _, _| {
                k.dsq_move_to_local(SHARED);
            })),
            ..Script::default()
        };
        let tasks = vec![hog("a", nice(0)), hog("b", nice(0))];
        let run = Case::new(2, 20, tasks).run(ops, Default::default());
        // Both are woken on CPU 0, which is idle and therefore looks for work.
        let expected = if kicks { "0:0A 1:0B" } else { "0:0A" };
        assert_eq!(run.timeline_by_cpu(), expected);
    }
}

/// A scheduler that is loaded while tasks run and wait.
#[test]
fn loading_beside_tasks_that_run_and_wait() {
    let tasks = vec![hog("a", nice(0)), hog("b", nice(5)), sleeper("c", nice(0), 50 * MS, MS)];
    let case = Case::new(1, 45, tasks).with("scx_load_at", 10 * MS);
    let run = fifo(&case);
    let at = run.log.at("10");
    assert_eq!(
        at[..4],
        ["cgroup_init(0,100)", "init_task(A,fork=0)", "init_task(B,fork=0)", "init_task(C,fork=0)"]
    );
    let of = |task: &str| -> Vec<String> {
        at[4..].iter().filter(|line| line.contains(&format!("({task}"))).cloned().collect()
    };
    let runs_first = run.log.at("10").iter().any(|line| line == "running(A)");
    let (running, waiting) = if runs_first { ("A", "B") } else { ("B", "A") };
    let weight = |task: &str| if task == "B" { 33 } else { 100 };
    assert_eq!(
        of(running)[..5],
        [
            format!("enable({running})"),
            format!("set_weight({running},{})", weight(running)),
            format!("set_cpumask({running},0)"),
            format!("runnable({running},RESTORE)"),
            format!("running({running})"),
        ]
    );
    // Enqueued while bypassed, and again when bypassing ends.
    assert_eq!(
        of(waiting),
        [
            format!("enable({waiting})"),
            format!("set_weight({waiting},{})", weight(waiting)),
            format!("set_cpumask({waiting},0)"),
            format!("runnable({waiting},RESTORE)"),
            format!("quiescent({waiting},SAVE|MOVE)"),
            format!("runnable({waiting},RESTORE|MOVE)"),
            format!("enqueue({waiting},RESTORE|MOVE)"),
        ]
    );
    assert_eq!(of("C"), ["enable(C)", "set_weight(C,100)", "set_cpumask(C,0)"]);
}

/// And one that is unloaded.
#[test]
fn unloading_gives_the_tasks_back() {
    let tasks = vec![hog("a", nice(0)), hog("b", nice(0)), later("c", nice(0), 50 * MS, MS)];
    let case = Case::new(1, 150, tasks).with("scx_unload_at", 30 * MS);
    let run = fifo(&case);
    let at = run.log.at("30");
    assert_eq!(
        at,
        [
            // A and C wait, B runs. Bypassing begins.
            "quiescent(A,SAVE|MOVE)",
            "runnable(A,RESTORE|MOVE)",
            "quiescent(C,SAVE|MOVE)",
            "runnable(C,RESTORE|MOVE)",
            "cgroup_exit(0)",
            // The CPU takes the first task of the global queue.
            "stopping(B,1)",
            "running(A)",
            // The tasks go back.
            "stopping(A,0)",
            "quiescent(A,SAVE)",
            "disable(A)",
            "exit_task(A,cancelled=0)",
            "quiescent(B,SAVE)",
            "disable(B)",
            "exit_task(B,cancelled=0)",
            "quiescent(C,SAVE)",
            "disable(C)",
            "exit_task(C,cancelled=0)",
            "exit(64,0,unregistered from user space,)",
        ]
    );
    let outcome = run.outcome();
    assert_eq!(outcome.notes.len(), 1);
    assert!(outcome.notes[0].1.contains("unregistered from user space"), "{:?}", outcome.notes);
    // The fair class goes on with them.
    assert!(outcome.nr_exited == 1 && outcome.nr_switches > 10);
    assert!(run.log.lines().last().unwrap().starts_with("30 "), "nothing is called after that");
}

/// SCX_OPS_SWITCH_PARTIAL: only SCHED_EXT tasks are the scheduler's, and fair ones go first.
#[test]
fn in_partial_mode_fair_tasks_go_first() {
    let b = task("b", nice(0), ProgramBuilder::new().run(6 * MS).build());
    let b = TaskSpec { release_ns: Amount::Constant(7 * MS), ..b };
    let tasks = vec![hog("a", policy(Policy::Ext, 0)), hog("c", policy(Policy::Ext, 0)), b];
    let simple = Simple { flags: OPS_SWITCH_PARTIAL, ..Simple::fifo() };
    let ops = Recorded::new(simple).with(Callback::CpuRelease).with(Callback::CpuAcquire);
    let run = recorded(&Case::new(1, 30, tasks).at_hz(1000), ops);
    assert_eq!(run.timeline(), "0A 7C 13A 26B");
    // Every task is announced, of whatever class; the reason is none of those with a name.
    assert_eq!(run.log.at("7"), ["init_task(C,fork=1)", "stopping(A,1)", "cpu_release(0,3,C)"]);
    assert_eq!(run.log.at("13"), ["cpu_acquire(0)", "running(A)", "exit_task(C,cancelled=0)"]);
}

/// Tasks stranded in the local queue of a CPU that a higher class takes.
#[test]
fn a_released_cpu_gives_its_queue_back() {
    let ops = Script {
        enqueue: Some(Box::new(|k, p, flags| {
            k.dsq_insert(p, DSQ_LOCAL, SLICE_DFL, flags);
        })),
        cpu_release: Some(Box::new(|k, _| assert_eq!(k.reenqueue_local(), 2))),
        ..Script::default()
    };
    let tasks = vec![
        hog("a", nice(0)),
        hog("b", nice(0)),
        later("rt", policy(Policy::Fifo, 50), 5 * MS, 2 * MS),
    ];
    let run = recorded(&Case::new(1, 12, tasks).at_hz(1000), Recorded::new(ops));
    assert_eq!(
        run.log.at("5"),
        ["stopping(A,1)", "cpu_release(0,0,C)", "enqueue(A,REENQ)", "enqueue(B,REENQ)"]
    );
    assert_eq!(run.timeline(), "0C 0A 5C 7A");
}

/// In 7.1 each stay in the scheduler's custody ends with exactly one dequeue.
#[test]
fn custody_of_7_1() {
    let run = fifo(&Case::new(1, 50, vec![hog("a", nice(0)), hog("b", nice(0))]).at_7_1());
    assert_eq!(run.timeline(), "0A 20B 40A");
    assert_eq!(
        run.log.at("20"),
        ["dispatch(0,A)", "dequeue(B,0)", "stopping(A,1)", "enqueue(A,0)", "running(B)"]
    );
    let enqueued = run.log.of(&["enqueue"]).len();
    // One of the two is in the queue at the end.
    assert_eq!(run.log.of(&["dequeue"]).len(), enqueued - 1);
}

/// In a kernel time passes while CPUs preempt each other. Where timers come late, so do kicks.
#[test]
fn cpus_that_preempt_each_other_go_on() {
    let nr_switches = |timer_delay_ns| {
        let ops = Script {
            init: Some(Box::new(|k| k.create_dsq(SHARED, -1))),
            enqueue: Some(Box::new(|k, p, flags| {
                k.dsq_insert(p, SHARED, SLICE_DFL, flags);
                let cpu = k.this_cpu().0 as i32;
                k.kick_cpu(1 - cpu, KICK_PREEMPT);
            })),
            dispatch: Some(Box::new(|k, _, _| {
                k.dsq_move_to_local(SHARED);
            })),
            ..Script::default()
        };
        let hogs = ["a", "b", "c"].map(|name| hog(name, nice(0)));
        let mut case = Case::new(2, 25, hogs.into());
        case.machine.costs.timer_delay_ns = timer_delay_ns;
        case.run(ops, Default::default()).outcome().nr_switches
    };
    // Each of the two takes a kick every microsecond from 20 ms on, or every 21 us.
    let [exact, late] = [0, 20_000].map(nr_switches);
    assert!((5_000..30_000).contains(&exact), "{exact}");
    assert!((400..1_500).contains(&late), "{late}");
}

/// On a machine whose timers come late, those of the scheduler and of the watchdog come too.
#[test]
fn late_timers_expire() {
    let ops = Script {
        init: Some(Box::new(|k| {
            k.start_timer(9, 6 * MS);
            0
        })),
        // Keeps every task.
        enqueue: Some(Box::new(|_, _, _| {})),
        timer: Some(Box::new(|k, token| k.start_timer(token, k.now() + 5 * MS))),
        ..Script::default()
    };
    let mut case = Case::new(1, 60_000, vec![hog("a", nice(0))]);
    case.machine.costs.timer_delay_ns = 20_000;
    let run = recorded(&case, Recorded::new(ops));
    assert_eq!(run.log.at("6.02"), ["timer(9)"]);
    assert_eq!(run.log.at("11.04"), ["timer(9)"]);
    assert!(run.error().contains("failed to run for 30.00"), "{}", run.error());
}

/// A kick with SCX_KICK_PREEMPT ends the slice of what runs there.
#[test]
fn a_preempting_kick() {
    let ops = Script {
        init: Some(Box::new(|k| {
            k.start_timer(9, 6 * MS);
            k.create_dsq(SHARED, -1)
        })),
        enqueue: Some(Box::new(|k, p, flags| {
            k.dsq_insert(p, SHARED, SLICE_INF, flags);
        })),
        dispatch: Some(Box::new(|k, _, _| {
            k.dsq_move_to_local(SHARED);
        })),
        timer: Some(Box::new(|k, token| {
            k.kick_cpu(0, KICK_PREEMPT);
            if k.now() < 20 * MS {
                k.start_timer(token, k.now() + 5 * MS);
            }
        })),
        ..Script::default()
    };
    let run =
        Case::new(1, 50, vec![hog("a", nice(0)), hog("b", nice(0))]).run(ops, Default::default());
    assert_eq!(run.timeline(), "0A 6B 11A 16B 21A");
}

/// The weight is set when a task enters the class; memory of a new one is zeroed
/// (init_scx_entity). scx_p2dq scales a slice by it in ops.init_task, and gets 0.
#[test]
fn a_task_has_no_weight_until_it_is_enabled() {
    let seen: Arc<Mutex<Vec<u32>>> = Arc::default();
    let note = |k: &Kernel<'_>, p, seen: &Mutex<Vec<u32>>| {
        seen.lock().unwrap().push(k.entity(p).weight());
    };
    let (at_init, at_running) = (Arc::clone(&seen), Arc::clone(&seen));
    let script = Script {
        init_task: Some(Box::new(move |k, p| {
            note(k, p, &at_init);
            0
        })),
        enqueue: Some(Box::new(|k, p, enq| _ = k.dsq_insert(p, DSQ_LOCAL, SLICE_DFL, enq))),
        running: Some(Box::new(move |k, p| note(k, p, &at_running))),
        ..Script::default()
    };
    Case::new(1, 10, vec![hog("a", nice(-20))]).run(script, Default::default()).outcome();
    assert_eq!(*seen.lock().unwrap(), [0, 8_668]);
}
