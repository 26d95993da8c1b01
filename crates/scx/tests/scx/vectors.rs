// SPDX-License-Identifier: MIT OR Apache-2.0
//! Worked examples of sched_ext, followed by hand through Linux kernel/sched/ext.c (6.18) and
//! tools/sched_ext/scx_simple.bpf.c: what runs when, and every callback in its order.

use crate::support;

use schedlab_model::program::ProgramBuilder;
use schedlab_model::{Amount, Op, Policy, TaskId};
use schedlab_scx::consts::{DSQ_LOCAL, OPS_KEEP_BUILTIN_IDLE, SLICE_DFL};
use schedlab_scx::{Callback, Ops};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use support::record::Recorded;
use support::schedulers::{SHARED, Simple};
use support::script::Script;
use support::{Case, MS, Ran, hog, later, nice, policy, sleeper, task};

fn recorded(case: &Case, ops: Recorded<impl Ops + 'static>) -> Ran {
    let log = ops.log.clone();
    case.run(ops, log)
}

fn two_hogs(until_ms: u64) -> Case {
    Case::new(1, until_ms, vec![hog("a", nice(0)), hog("b", nice(0))])
}

/// (a): two hogs, one shared queue in order of coming, one CPU: a switch every 20 ms exactly.
#[test]
fn section_7_5_a_fifo_two_hogs_alternate_every_20_ms() {
    for hz in [250, 1000] {
        let run = recorded(&two_hogs(90).at_hz(hz), Recorded::new(Simple::fifo()));
        assert_eq!(run.timeline(), "0A 20B 40A 60B 80A");
        let switch = ["dispatch(0,A)", "stopping(A,1)", "enqueue(A,0)", "running(B)"];
        assert_eq!(run.log.at("20"), switch);
        let ticking = Recorded::new(Simple::fifo()).with(Callback::Tick);
        let run = recorded(&two_hogs(90).at_hz(hz), ticking);
        assert_eq!(run.timeline(), "0A 20B 40A 60B 80A");
        assert_eq!(run.log.at("20"), [&["tick(A)"][..], &switch].concat());
        let ticks = run.log.of(&["tick"]).len() as u32;
        assert_eq!(ticks, 89 * hz / 1000, "a tick each 1/HZ from the first on");
    }
}

/// (b): a single hog: `ops.dispatch` each 20 ms and nothing else; the slice is refilled.
#[test]
fn section_7_5_b_a_single_hog_is_asked_about_every_20_ms() {
    let case = Case::new(1, 70, vec![hog("a", nice(0))]);
    let run = recorded(&case, Recorded::new(Simple::fifo()));
    assert_eq!(run.timeline(), "0A");
    let after_start: Vec<_> =
        run.log.lines().into_iter().filter(|line| !line.starts_with("0 ")).collect();
    let at_end = ["70 disable(A)", "70 exit_task(A,cancelled=0)"];
    assert_eq!(
        after_start[..5],
        [
            "20 dispatch(0,A)",
            "40 dispatch(0,A)",
            "60 dispatch(0,A)",
            "70 cgroup_exit(0)",
            at_end[0]
        ]
    );
    assert_eq!(after_start[5], at_end[1]);
    assert!(after_start[6].starts_with("70 exit(64,0,unregistered from user space"));
}

/// The virtual times at which tasks were enqueued, and the charges.
fn with_vtimes(until_ms: u64, attrs: &[i8]) -> (String, Vec<(TaskId, u64)>) {
    let hogs = attrs.iter().map(|n| hog("hog", nice(*n))).collect();
    let ops = Simple::vtime();
    let enqueued = Arc::clone(&ops.enqueued);
    let run = Case::new(1, until_ms, hogs).run(ops, Default::default());
    let seen = enqueued.lock().unwrap().clone();
    (run.timeline(), seen)
}

/// (c): weights 100 and 33: with two hogs they change nothing but the virtual times.
#[test]
fn section_7_5_c_vtime_two_hogs_alternate_whatever_their_weights() {
    let (timeline, enqueued) = with_vtimes(150, &[0, 5]);
    assert_eq!(timeline, "0A 20B 40A 60B 80A 100B 120A 140B");
    let (a, b) = (TaskId(0), TaskId(1));
    // A is charged 20 ms a turn and B 60,606,060 ns; who lags is raised to 20 ms before the virtual
    // time, which is that of what ran furthest.
    let expected = [
        (a, 0),
        (b, 0),
        (a, 20_000_000),
        (b, 60_606_060),
        (a, 40_000_000),
        (b, 121_212_120),
        (a, 60_000_000),
        (b, 181_818_180),
        (a, 121_212_120 - 20_000_000),
    ];
    assert_eq!(enqueued, expected);
}

/// (d): weights 100, 100, 33.
#[test]
fn section_7_5_d_vtime_three_hogs_share_by_weight() {
    let (timeline, _) = with_vtimes(410, &[0, 0, 5]);
    assert_eq!(
        timeline,
        "0A 20B 40C 60A 80B 100A 120B 140A 160B 180C 200A 220B 240A 260B 280A 300B 320C 340A 360B \
         380A 400B"
    );
}

/// (e): weights 305, 100, 33.
#[test]
fn section_7_5_e_vtime_three_hogs_share_by_weight() {
    let (timeline, _) = with_vtimes(410, &[-5, 0, 5]);
    assert_eq!(
        timeline,
        "0A 20B 40C 60A 80B 100A 120B 140A 160B 180A 200C 220A 240B 260A 280B 300A 320B 340A 360C \
         380A 400B"
    );
}

/// (f): a real-time task takes the CPU for 3 ms when A has 7 ms of its slice left.
#[test]
fn section_7_5_f_a_preempted_task_goes_on_with_the_rest_of_its_slice() {
    let tasks = vec![
        hog("a", nice(0)),
        hog("b", nice(0)),
        later("rt", policy(Policy::Fifo, 50), 13 * MS, 3 * MS),
    ];
    let case = Case::new(1, 50, tasks).at_hz(1000);
    let watched =
        Recorded::new(Simple::fifo()).with(Callback::CpuAcquire).with(Callback::CpuRelease);
    let run = recorded(&case, watched);
    // The real-time task goes to sleep at 0.
    assert_eq!(run.timeline(), "0C 0A 13C 16A 23B 43A");
    assert_eq!(run.log.at("13"), ["stopping(A,1)", "cpu_release(0,0,C)"]);
    assert_eq!(run.log.at("16"), ["cpu_acquire(0)", "running(A)", "exit_task(C,cancelled=0)"]);
    let run = recorded(&case, Recorded::new(Simple::fifo()));
    assert_eq!(run.log.at("13"), ["stopping(A,1)"]);
    assert_eq!(run.log.at("16"), ["running(A)", "exit_task(C,cancelled=0)"]);
    assert_eq!(run.log.at("23"), ["dispatch(0,A)", "stopping(A,1)", "enqueue(A,0)", "running(B)"]);
}

/// (g): renice of the running task.
#[test]
fn section_7_5_g_renice_of_a_running_task() {
    let program =
        ProgramBuilder::new().run(5 * MS).op(Op::SetAttr(Box::new(nice(5)))).run(100 * MS).build();
    let case = Case::new(1, 30, vec![task("a", nice(0), program), hog("b", nice(0))]).at_hz(1000);
    let run = recorded(&case, Recorded::new(Simple::fifo()));
    assert_eq!(
        run.log.at("5"),
        [
            "stopping(A,0)",
            "quiescent(A,SAVE|MOVE)",
            "set_weight(A,33)",
            "runnable(A,RESTORE|MOVE|HEAD)",
            "running(A)"
        ]
    );
    // The slice goes on.
    assert_eq!(run.timeline(), "0A 20B");
}

/// (h): a wake-up that finds an idle CPU and inserts into its local queue.
#[test]
fn section_7_5_h_wakeup_with_an_idle_cpu_claimed() {
    let case = Case::new(2, 20, vec![sleeper("a", nice(0), 8 * MS, 2 * MS)]);
    let run = recorded(&case, Recorded::new(Simple::fifo()));
    assert_eq!(run.log.at("8"), ["select_cpu(A,0,8)", "runnable(A,WAKEUP|SELECTED)", "running(A)"]);
    assert_eq!(run.log.at("10"), ["stopping(A,0)", "quiescent(A,SLEEP)", "dispatch(0,A)"]);
    let ops = Simple { flags: OPS_KEEP_BUILTIN_IDLE, ..Simple::fifo() };
    let run = recorded(&case, Recorded::new(ops).with(Callback::UpdateIdle));
    assert_eq!(
        run.log.at("8"),
        ["select_cpu(A,0,8)", "runnable(A,WAKEUP|SELECTED)", "update_idle(0,0)", "running(A)"]
    );
    assert_eq!(
        run.log.at("10"),
        ["stopping(A,0)", "quiescent(A,SLEEP)", "dispatch(0,A)", "update_idle(0,1)"]
    );
}

/// (i): an insert with slice 0 of a task that has none left gives it a nanosecond.
#[test]
fn section_7_5_i_slice_0_becomes_a_nanosecond() {
    let slices = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&slices);
    let ops = Script {
        enqueue: Some(Box::new(move |k, p, flags| {
            k.entity(p).set_slice(0);
            k.dsq_insert(p, DSQ_LOCAL, 0, flags);
            slices.lock().unwrap().push(k.entity(p).slice());
        })),
        ..Script::default()
    };
    let run = two_hogs(17).run(ops, Default::default());
    // It expires at the first tick: at HZ=250 every 4 ms.
    assert_eq!(run.timeline(), "0A 4B 8A 12B 16A");
    assert!(seen.lock().unwrap().iter().all(|slice| *slice == 1));
}

/// (j): inserting by virtual time into a queue that holds tasks in order of coming.
#[test]
fn section_7_5_j_a_queue_keeps_one_order() {
    let calls = AtomicU32::new(0);
    let ops = Script {
        init: Some(Box::new(|k| k.create_dsq(SHARED, -1))),
        enqueue: Some(Box::new(move |k, p, flags| {
            if calls.fetch_add(1, Ordering::Relaxed) == 0 {
                k.dsq_insert(p, SHARED, SLICE_DFL, flags);
            } else {
                k.dsq_insert_vtime(p, SHARED, SLICE_DFL, 0, flags);
            }
        })),
        dispatch: Some(Box::new(|k, _, _| {
            k.dsq_move_to_local(SHARED);
        })),
        ..Script::default()
    };
    let run = two_hogs(50).run(ops, Default::default());
    let error = run.error();
    assert!(
        error.contains(
            "runtime error (kind 1024, code 0): DSQ ID 0x0000000000000000 already had \
                        FIFO-enqueued tasks"
        ),
        "{error}"
    );
}

/// (k): what was dequeued between its insert and the flush of the buffer is dropped without a
/// word, and counts.
#[test]
fn section_7_5_k_stale_entries_of_the_buffer_are_dropped_and_counted() {
    let rounds = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&rounds);
    let queue = Arc::new(Mutex::new(Vec::new()));
    let waiting = Arc::clone(&queue);
    // Task B sleeps when C comes: in its first round the dispatch inserts B only, in the second
    // one B again and C.
    let ops = Script {
        enqueue: Some(Box::new(move |_, p, _| queue.lock().unwrap().push(p))),
        dispatch: Some(Box::new(move |k, _, _| {
            let round = rounds.fetch_add(1, Ordering::Relaxed);
            let taken = std::mem::take(&mut *waiting.lock().unwrap());
            if k.now() == 5 * MS {
                match round % 2 {
                    0 => {
                        *waiting.lock().unwrap() = taken;
                        k.dsq_insert(TaskId(0), DSQ_LOCAL, SLICE_DFL, 0);
                    }
                    _ => {
                        k.dsq_insert(TaskId(0), DSQ_LOCAL, SLICE_DFL, 0);
                        taken.into_iter().for_each(|p| {
                            k.dsq_insert(p, DSQ_LOCAL, SLICE_DFL, 0);
                        });
                    }
                }
                return;
            }
            for p in taken {
                k.dsq_insert(p, DSQ_LOCAL, SLICE_DFL, 0);
            }
            if k.now() < 5 * MS {
                rounds.store(0, Ordering::Relaxed);
            }
        })),
        ..Script::default()
    };
    let tasks = vec![later("sleeps", nice(0), 100 * MS, MS), later("b", nice(0), 5 * MS, MS)];
    let run = Case::new(1, 20, tasks).run(ops, Default::default());
    assert_eq!(run.timeline(), "0A 0B 0- 5B 6-");
    // Two rounds at 5 ms: the stale entry of the first one counted, so there was a second.
    assert!(seen.load(Ordering::Relaxed) >= 2);
}

/// (l): a task that is never dispatched.
#[test]
fn section_7_5_l_the_watchdog_ends_a_scheduler_that_forgets_a_task() {
    for released_ms in [0, 100, 2_400, 2_600] {
        let stalled_at = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&stalled_at);
        let ops = Script {
            timeout_ms: 5_000,
            enqueue: Some(Box::new(|_, _, _| {})),
            dump: Some(Box::new(move |k| stalled_at.store(k.now(), Ordering::Relaxed))),
            ..Script::default()
        };
        let tasks = vec![task("forgotten", nice(0), ProgramBuilder::new().run(MS).build())];
        let mut case = Case::new(1, 60_000, tasks);
        case.workload.tasks[0].release_ns = Amount::Constant(released_ms * MS);
        let run = case.run(ops, Default::default());
        let error = run.error();
        let waited = seen.load(Ordering::Relaxed) / MS - released_ms;
        assert!((5_000..=7_500).contains(&waited), "{waited} ms after {released_ms}: {error}");
        assert!(error.contains("runnable task stall (kind 1026"), "{error}");
        assert!(error.contains(&format!("failed to run for {}.", waited / 1_000)), "{error}");
        assert!(error.ends_with("; task of CPU 0, in no queue: the scheduler keeps it"), "{error}");
    }
}
