// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stalls of published sched_ext schedulers, each as the smallest scheduler with the same mistake:
//! the watchdog finds it, and the cure runs. Sources: issues and pull requests of the scx project,
//! named at each.

use crate::support;

use schedlab_model::machine::{KernelThread, ThreadWakes};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{Amount, CpuMask, Op, Policy, SchedAttr, TaskId, TaskSpec};
use schedlab_scx::Kernel;
use schedlab_scx::consts::{DSQ_GLOBAL, DSQ_LOCAL, SLICE_DFL};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use support::schedulers::Simple;
use support::script::Script;
use support::{Case, MS, hog, nice, on, policy, sleeper, task};

/// A scheduler's patience, and a run that is longer.
const TIMEOUT_MS: u32 = 1_000;
const UNTIL_MS: u64 = 4_000;

/// Checks that `make(true)` stalls task `name`, and that `make(false)` does not.
fn stalls(case: &Case, name: &str, make: impl Fn(bool) -> Script) {
    let error = case.run(make(true), Default::default()).error();
    assert!(error.contains("runnable task stall (kind 1026"), "{error}");
    assert!(error.contains(&format!("{name}[")), "{error}");
    case.run(make(false), Default::default()).outcome();
}

fn create(k: &mut Kernel<'_>, nr_queues: u64) -> i32 {
    (0..nr_queues).map(|id| k.create_dsq(id, -1)).sum()
}

/// scx_lavd 1.1.3 (issues 3750 and 3791, pull request 3748): a task is queued for the CPU that was
/// chosen for it earlier. Since then it may use another CPU only, which idles while the task waits
/// where only the first one looks. In lavd it was a task that may not migrate; here it is one whose
/// affinity changes, because the simulator has no migrate_disable().
#[test]
fn a_cached_cpu_that_a_task_may_no_longer_use() {
    let moved = SchedAttr { affinity: Some(CpuMask::only(schedlab_model::CpuId(0))), ..nice(0) };
    let program =
        ProgramBuilder::new().run(10 * MS).op(Op::SetAttr(Box::new(moved))).run(10 * MS).build();
    let case = Case::new(2, UNTIL_MS, vec![task("moved", on(&[1]), program)]);
    stalls(&case, "moved", |is_wrong| {
        let mut chosen: BTreeMap<TaskId, u64> = BTreeMap::new();
        Script {
            timeout_ms: TIMEOUT_MS,
            init: Some(Box::new(|k| create(k, 2))),
            enqueue: Some(Box::new(move |k, p, flags| {
                let now = k.cpus_allowed(p).first_cpu().map_or(0, |cpu| u64::from(cpu.0));
                let cached = *chosen.entry(p).or_insert(now);
                let cpu = if is_wrong { cached } else { now };
                k.dsq_insert(p, cpu, SLICE_DFL, flags);
                k.kick_cpu(cpu as i32, 0);
            })),
            dispatch: Some(Box::new(|k, cpu, _| _ = k.dsq_move_to_local(u64::from(cpu.0)))),
            ..Script::default()
        }
    });
}

/// The library for bandwidth of control groups in scx (pull requests 3618 and 3554, issue 3082):
/// tasks that wait are ordered by virtual time alone. One that has much of it waits behind a stream
/// of tasks that have little, which come back as fast as they go. The cure puts the time of the
/// arrival above virtual time.
#[test]
fn a_queue_by_virtual_time_alone_behind_a_stream() {
    let mut tasks: Vec<TaskSpec> =
        (0..3).map(|_| sleeper("stream", nice(0), 5 * MS, 5 * MS)).collect();
    tasks.push(hog("late", nice(0)));
    let case = Case::new(1, UNTIL_MS, tasks);
    stalls(&case, "late", |is_wrong| Script {
        timeout_ms: TIMEOUT_MS,
        init: Some(Box::new(|k| create(k, 1))),
        enqueue: Some(Box::new(move |k, p, flags| {
            let vtime = if k.comm(p) == "late" { 1_000_000 } else { 1 };
            let key = if is_wrong { vtime } else { k.now() / (100 * MS) * 1_000_000_000 + vtime };
            k.dsq_insert_vtime(p, 0, SLICE_DFL, key, flags);
        })),
        dispatch: Some(Box::new(|k, _, _| _ = k.dsq_move_to_local(0))),
        ..Script::default()
    });
}

/// scx_p2dq (commit de5684bf6): virtual time less a credit is below 0 just after the start. As an
/// unsigned number it is greater than all others, so the task sorts last for ever. The kernel's own
/// queues compare by the sign of the difference.
#[test]
fn a_virtual_time_below_zero_compared_as_unsigned() {
    const CREDIT: u64 = 1_000;
    let hogs = vec![hog("a", nice(0)), hog("b", nice(0)), hog("late", nice(0))];
    let case = Case::new(1, UNTIL_MS, hogs);
    stalls(&case, "late", |is_wrong| {
        let waiting: Arc<Mutex<Vec<(u64, TaskId)>>> = Arc::default();
        let queue = Arc::clone(&waiting);
        Script {
            timeout_ms: TIMEOUT_MS,
            enqueue: Some(Box::new(move |k, p, _| {
                let used = k.sum_exec_runtime(p);
                let credit = if k.comm(p) == "late" { CREDIT } else { 0 };
                queue.lock().unwrap().push((used.wrapping_sub(credit), p));
            })),
            dispatch: Some(Box::new(move |k, _, _| {
                let mut waiting = waiting.lock().unwrap();
                let least = |(key, _): &&(u64, TaskId)| match is_wrong {
                    true => i128::from(*key),
                    false => i128::from(*key as i64),
                };
                if let Some(next) = waiting.iter().min_by_key(least).copied() {
                    waiting.retain(|(_, p)| *p != next.1);
                    k.dsq_insert(next.1, DSQ_LOCAL, SLICE_DFL, 0);
                }
            })),
            ..Script::default()
        }
    });
}

/// Issue 1202 of scx: a real-time hog has the only CPU that a task may use, and the watchdog blames
/// the scheduler, which is asked for nothing. From 7.0 on the ext server gives the task a share.
#[test]
fn a_real_time_hog_on_the_only_allowed_cpu_is_no_fault_of_the_scheduler() {
    let rt = SchedAttr { affinity: on(&[0]).affinity, ..policy(Policy::Fifo, 50) };
    let tasks = || vec![hog("rt", rt), hog("victim", on(&[0]))];
    let error = Case::new(2, 50_000, tasks()).run(Simple::fifo(), Default::default()).error();
    assert!(error.contains("runnable task stall") && error.contains("victim["), "{error}");
    Case::new(2, 50_000, tasks()).at_7_1().run(Simple::fifo(), Default::default()).outcome();
}

/// A scheduler with this patience, whose tasks take turns of 20 ms. It notes how long ago each of
/// its tasks was created.
fn patient(timeout_ms: u32, ages_ms: &Arc<Mutex<Vec<u64>>>) -> Script {
    let ages_ms = Arc::clone(ages_ms);
    let start = schedlab_scx::kernel::UPTIME_NS;
    Script {
        timeout_ms,
        init_task: Some(Box::new(move |k, _| {
            ages_ms.lock().unwrap().push((start + k.now() - k.clock_ns()) / MS);
            0
        })),
        enqueue: Some(Box::new(|k, p, flags| _ = k.dsq_insert(p, DSQ_GLOBAL, SLICE_DFL, flags))),
        ..Script::default()
    }
}

/// The kernel's thread A comes whenever the kernel checks for stalls: after 125 ticks, rounded up
/// to 128 (512 ms), and after 1,250, rounded up to 1,280. The last check was 200 ms before the run.
#[test]
fn a_thread_comes_when_the_kernel_checks_for_stalls() {
    let visits = |timeout_ms, until_ms| {
        let mut case = Case::new(1, until_ms, vec![hog("b", nice(0))]);
        let wakes = ThreadWakes::AtChecks { after_ns: 200 * MS };
        let name = "kworker".into();
        case.machine.threads = vec![KernelThread { name, wakes, rt_priority: 0, run_ns: 40_000 }];
        let found = case.run(patient(timeout_ms, &Arc::default()), Default::default()).timeline();
        let visits = found.split(' ').filter_map(|turn| turn.strip_suffix('A'));
        visits.map(str::to_owned).collect::<Vec<_>>()
    };
    // It waits for the end of a turn, which is a tick.
    assert_eq!(visits(1_000, 1_400), ["320", "824", "1348"]);
    assert_eq!(visits(10_000, 6_000), ["4920"]);
}

/// Tasks are as old as the machine says, also those that start later.
#[test]
fn tasks_are_created_before_a_run() {
    let ages = |set_up_ns| {
        let late = TaskSpec { release_ns: Amount::Constant(7 * MS), ..hog("late", nice(0)) };
        let mut case = Case::new(1, 50, vec![hog("first", nice(0)), late]);
        case.machine.set_up_ns = set_up_ns;
        let found = Arc::default();
        case.run(patient(1_000, &found), Default::default()).outcome();
        Arc::try_unwrap(found).unwrap().into_inner().unwrap()
    };
    assert_eq!(ages(0), [0, 0]);
    assert_eq!(ages(3_000 * MS), [3_000, 3_007]);
}

/// A scheduler that forgets the third of three tasks, or not.
fn forgetful(is_wrong: bool, timeout_ms: u32) -> Script {
    Script {
        timeout_ms,
        enqueue: Some(Box::new(move |k, p, flags| {
            if !(is_wrong && k.comm(p) == "late") {
                k.dsq_insert(p, DSQ_GLOBAL, SLICE_DFL, flags);
            }
        })),
        ..Script::default()
    }
}

/// The note about a task that waits at the end of a run; empty: none.
fn short_run(case: &Case, script: Script) -> String {
    let ran = case.run(script, Default::default());
    let notes = ran.outcome().notes.iter().filter(|note| note.0 == "scx-short-run");
    notes.map(|note| note.1.clone()).collect()
}

#[test]
fn a_run_that_ends_before_the_watchdog_acts_names_who_waits() {
    let hogs = |nr| (0..nr).map(|_| hog("hog", nice(0))).chain([hog("late", nice(0))]).collect();
    let case = |until_ms, nr| Case::new(1, until_ms, hogs(nr));
    let text = short_run(&case(4_000, 2), forgetful(true, 0));
    for part in [
        "late[1002] had waited for 4.000 s when the run ended, has never run,",
        "no wait before took longer than 0.020 s",
        "task of CPU 0, in no queue: the scheduler keeps it",
        "the watchdog decides after 30.000 s. To see it, add --until 46s.",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let text = short_run(&case(900, 2), forgetful(true, TIMEOUT_MS));
    assert!(text.contains("after 1.000 s. To see it, add --until 2s."), "{text}");
    // The floor is 100 ms and a slice of 20 ms for each of the two that wait.
    assert_eq!(short_run(&case(130, 2), forgetful(true, 0)), "");
    assert_ne!(short_run(&case(150, 2), forgetful(true, 0)), "");
    // The advice is right.
    let error = case(2_000, 2).run(forgetful(true, TIMEOUT_MS), Default::default()).error();
    assert!(error.contains("runnable task stall"), "{error}");
    // Of the last tasks in a long queue nothing can be said, nor after a few slices.
    for (until_ms, nr) in [(4_000, 2), (1_000, 99), (1_990, 99), (2_100, 99), (30, 5), (90, 9)] {
        assert_eq!(short_run(&case(until_ms, nr), forgetful(false, 0)), "", "{until_ms} {nr}");
    }
}
