// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers that break a rule, crash, or are refused: what the run says, and what becomes of the
//! tasks.

use crate::support;

use schedlab_model::program::ProgramBuilder;
use schedlab_model::{CpuMask, TaskId};
use schedlab_scx::consts::{
    DSQ_GLOBAL, DSQ_LOCAL, DSQ_LOCAL_ON, KICK_IDLE, KICK_PREEMPT, OPS_ENQ_LAST, SLICE_DFL,
};
use schedlab_scx::{Callback, Kernel, named};
use std::sync::{Arc, Mutex};
use support::record::Recorded;
use support::schedulers::{Global, SHARED};
use support::script::Script;
use support::{Case, MS, hog, later, nice, on, task};

fn enqueuing(f: impl FnMut(&mut Kernel<'_>, TaskId, u64) + Send + 'static) -> Script {
    Script { enqueue: Some(Box::new(f)), ..Script::default() }
}

fn dispatching(mut f: impl FnMut(&mut Kernel<'_>) + Send + 'static) -> Script {
    Script {
        enqueue: Some(Box::new(|_, _, _| {})),
        dispatch: Some(Box::new(move |k, _, _| f(k))),
        ..Script::default()
    }
}

fn case() -> Case {
    Case::new(2, 50, vec![hog("a", nice(0)), hog("b", on(&[0])), hog("c", nice(0))])
}

/// The error of a scheduler, and that its tasks run on where errors end only the scheduler.
fn ejects(name: &str, make: impl Fn() -> Script, text: &str) {
    let error = case().run(make(), Default::default()).error();
    assert!(error.contains(text), "{name}: {error}");
    assert!(error.contains("sched_ext scheduler \"script\" was disabled at"), "{name}: {error}");
    let ran = Recorded::new(make());
    let log = ran.log.clone();
    let run = case().falling_back().run(ran, log);
    let notes = &run.outcome().notes;
    assert!(notes.len() == 1 && notes[0].0 == "scx-disabled", "{name}: {notes:?}");
    assert!(notes[0].1.contains(text), "{name}: {notes:?}");
    let exits = run.log.of(&["exit"]);
    assert_eq!(exits.len(), 1, "{name}: {exits:?}");
    assert!(exits[0].contains(text.split(": ").last().unwrap()), "{name}: {exits:?}");
    // From then on every CPU is busy with fair tasks.
    let idle =
        run.trace.events.iter().rev().find(|event| {
            matches!(event.kind, schedlab_model::EventKind::Switch { next: None, .. })
        });
    assert!(idle.is_none_or(|event| event.time_ns <= 40 * MS), "{name}: idle at the end");
}

#[test]
fn broken_rules_eject() {
    ejects(
        "unknown queue",
        || enqueuing(|k, p, flags| _ = k.dsq_insert(p, 77, SLICE_DFL, flags)),
        "runtime error (kind 1024, code 0): non-existent DSQ 0x4d for b[1001]",
    );
    ejects(
        "double insert",
        || {
            enqueuing(|k, p, flags| {
                k.dsq_insert(p, DSQ_GLOBAL, SLICE_DFL, flags);
                k.dsq_insert(p, DSQ_GLOBAL, SLICE_DFL, flags);
            })
        },
        "b[1001] already direct-dispatched",
    );
    ejects(
        "another task",
        || enqueuing(|k, _, flags| _ = k.dsq_insert(TaskId(0), DSQ_GLOBAL, SLICE_DFL, flags)),
        "scheduling for b[1001] but trying to direct-dispatch a[1000]",
    );
    ejects(
        "forbidden CPU",
        || enqueuing(|k, p, flags| _ = k.dsq_insert(p, DSQ_LOCAL_ON | 1, SLICE_DFL, flags)),
        "SCX_DSQ_LOCAL[_ON] target CPU 1 not allowed for b[1001] (from CPU 0)",
    );
    ejects(
        "no such CPU",
        || enqueuing(|k, p, flags| _ = k.dsq_insert(p, DSQ_LOCAL_ON | 9, SLICE_DFL, flags)),
        "invalid CPU 9",
    );
    ejects(
        "internal flags",
        || enqueuing(|k, p, _| _ = k.dsq_insert(p, DSQ_GLOBAL, SLICE_DFL, 1 << 56)),
        "invalid enq_flags 0x100000000000000",
    );
    ejects(
        "virtual time in a built-in queue",
        || enqueuing(|k, p, flags| _ = k.dsq_insert_vtime(p, DSQ_LOCAL, SLICE_DFL, 1, flags)),
        "cannot use vtime ordering for built-in DSQs",
    );
    ejects(
        "consuming outside of dispatch",
        || enqueuing(|k, _, _| _ = k.dsq_move_to_local(SHARED)),
        "scx_bpf_dsq_move_to_local() is not allowed in ops.enqueue",
    );
    ejects(
        "a kick that is two",
        || enqueuing(|k, _, _| k.kick_cpu(1, KICK_IDLE | KICK_PREEMPT)),
        "PREEMPT/WAIT cannot be used with SCX_KICK_IDLE",
    );
    ejects(
        "its own word",
        || enqueuing(|k, _, _| k.error("no tokens left")),
        "scx_bpf_error (kind 1025, code 0): no tokens left",
    );
}

#[test]
fn broken_rules_of_dispatch_eject() {
    ejects(
        "unknown queue",
        || dispatching(|k| _ = k.dsq_move_to_local(3)),
        "invalid DSQ ID 0x0000000000000003",
    );
    ejects(
        "buffer too small",
        || Script {
            max_batch: 2,
            ..dispatching(|k| {
                (0..3).for_each(|_| _ = k.dsq_insert(TaskId(0), DSQ_LOCAL, SLICE_DFL, 0));
            })
        },
        "dispatch buffer overflow",
    );
    ejects(
        "nothing to cancel",
        || dispatching(|k| k.dispatch_cancel()),
        "dispatch buffer underflow",
    );
    ejects(
        "a CPU that is none",
        || Script { select_cpu: Some(Box::new(|_, _, _, _| -3)), ..dispatching(|_| {}) },
        "invalid CPU -3 from ops.select_cpu()",
    );
    ejects(
        "a queue in use",
        || Script {
            init: Some(Box::new(|k| k.create_dsq(5, -1))),
            dispatch: Some(Box::new(|k, _, _| k.destroy_dsq(5))),
            ..enqueuing(|k, p, flags| _ = k.dsq_insert(p, 5, SLICE_DFL, flags))
        },
        "attempting to destroy in-use dsq 0x0000000000000005 (nr=1)",
    );
}

/// Without built-in tracking its functions are errors.
#[test]
fn idle_tracking_that_is_off() {
    let ops = Recorded::new(enqueuing(|k, p, flags| {
        k.pick_idle_cpu(&CpuMask::first(2), 0);
        k.dsq_insert(p, DSQ_GLOBAL, SLICE_DFL, flags);
    }))
    .with(Callback::UpdateIdle);
    let error = case().run(ops, Default::default()).error();
    assert!(error.contains("built-in idle tracking is disabled"), "{error}");
}

/// `scx_bpf_exit` is no error, but nobody is left to schedule.
#[test]
fn a_scheduler_that_exits() {
    let make = || enqueuing(|k, _, _| k.exit(7, "done"));
    let error = case().run(make(), Default::default()).error();
    assert!(error.contains("unregistered from BPF (kind 65, code 7): done"), "{error}");
    let run = case().falling_back().run(make(), Default::default());
    assert!(run.outcome().notes[0].1.contains("code 7"));
}

#[test]
fn crashes_name_the_callback() {
    for (callback, name) in [
        (Callback::Enqueue, "ops.enqueue"),
        (Callback::Dispatch, "ops.dispatch"),
        (Callback::SelectCpu, "ops.select_cpu"),
        (Callback::Init, "ops.init"),
    ] {
        let ops = Script {
            crashes_in: Some(callback),
            init: Some(Box::new(|_| 0)),
            select_cpu: Some(Box::new(|_, _, prev, _| prev.0 as i32)),
            ..dispatching(|_| {})
        };
        let error = case().run(ops, Default::default()).error();
        assert!(
            error.contains(&format!("{name} failed: invalid memory access at 0x10")),
            "{error}"
        );
    }
}

#[test]
fn schedulers_that_no_kernel_takes() {
    let refused = |ops: Script, text: &str| {
        let error = case().run(ops, Default::default()).error();
        assert!(error.contains("cannot be loaded") && error.contains(text), "{error}");
    };
    refused(Script { flags: OPS_ENQ_LAST, ..Script::default() }, "requires ops.enqueue()");
    refused(Script { flags: 1 << 40, ..Script::default() }, "flags 0x10000000000");
    refused(Script { timeout_ms: 30_001, ..Script::default() }, "timeout_ms is 30001");
    refused(
        Script { init: Some(Box::new(|_| -12)), ..Script::default() },
        "ops.init() failed (-12)",
    );
    refused(Script { init: Some(Box::new(|_| 5)), ..Script::default() }, "ops.init() failed (-71)");
    let error = |k: &mut Kernel<'_>| {
        k.error("too few CPUs");
        0
    };
    refused(Script { init: Some(Box::new(error)), ..Script::default() }, "too few CPUs");
    let late = Script { init_task: Some(Box::new(|_, _| -1)), ..Script::default() };
    let error = case().run(late, Default::default()).error();
    assert!(error.contains("ops.init_task() failed (-1) for a[1000]: its fork fails"), "{error}");
    // One that is made at run time is refused before the run.
    let scheduler = named("bad", || Ok(Box::new(Script { flags: 1 << 40, ..Script::default() })));
    let case = case();
    let refusal = scheduler.stack(&case.options, &case.machine, &case.workload.cgroups);
    assert!(refusal.is_err_and(|text| text.contains("flags 0x10000000000")));
}

/// Queues: what creating them answers.
#[test]
fn creating_queues() {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&answers);
    let init = move |k: &mut Kernel<'_>| {
        let mut answers = answers.lock().unwrap();
        answers.push(k.create_dsq(1, -1));
        answers.push(k.create_dsq(1, -1));
        answers.push(k.create_dsq(2, 0));
        answers.push(k.create_dsq(3, 1));
        answers.push(k.create_dsq(3, -2));
        answers.push(k.create_dsq(DSQ_GLOBAL, -1));
        answers.push(k.dsq_nr_queued(1));
        answers.push(k.dsq_nr_queued(9));
        answers.push(k.dsq_nr_queued(DSQ_GLOBAL));
        answers.push(k.dsq_nr_queued(DSQ_LOCAL_ON | 1));
        k.destroy_dsq(2);
        k.destroy_dsq(2);
        answers.push(k.dsq_nr_queued(2));
        0
    };
    let ops = Script { init: Some(Box::new(init)), ..Script::default() };
    case().run(ops, Default::default()).outcome();
    assert_eq!(*seen.lock().unwrap(), [0, -17, 0, -22, -22, -22, 0, -2, -2, 0, -2]);
}

/// Waking tasks, children and groups after a fallback need nothing of the scheduler any more.
#[test]
fn life_goes_on_without_the_scheduler() {
    let mut tasks: Vec<_> =
        (0..6).map(|n| later("t", nice(0), (n + 1) * 5 * MS, 30 * MS)).collect();
    let stop = ProgramBuilder::new().sleep(17 * MS).run(MS).build();
    tasks.push(task("stop", nice(0), stop));
    let ops = enqueuing(|k, p, flags| {
        if k.comm(p) == "stop" {
            k.error("stop");
        }
        k.dsq_insert(p, DSQ_GLOBAL, SLICE_DFL, flags);
    });
    let mut case = Case::new(2, 1_000, tasks).falling_back();
    case.workload.tasks.push(hog("late", nice(0)));
    case.workload.tasks[7].release_ns = schedlab_model::Amount::Constant(500 * MS);
    let run = case.run(ops, Default::default());
    assert_eq!(run.outcome().nr_exited, 7);
}

#[test]
fn the_simplest_scheduler_needs_no_dispatch() {
    let run = Case::new(1, 50, vec![hog("a", nice(0)), hog("b", nice(0))])
        .run(Global, Default::default());
    assert_eq!(run.timeline(), "0A 20B 40A");
}
