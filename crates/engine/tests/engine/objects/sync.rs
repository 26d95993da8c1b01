// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutexes, condition variables, barriers, semaphores, events, joins, memory.

use super::*;
use schedlab_model::{LoopCount, MemAccess, MemPattern, MutexProtocol, Op};

const INHERIT: ObjectKind = ObjectKind::Mutex { protocol: MutexProtocol::Inherit };

fn section(ms: u64) -> Program {
    build(|b| {
        b.lock(A).run(ms * MS).unlock(A);
    })
}

#[test]
fn a_mutex_lets_one_in_at_a_time_in_order_of_coming() {
    for kind in [ObjectKind::MUTEX, INHERIT] {
        let tasks = [("x", 0, 10), ("y", 1, 2), ("z", 2, 3)]
            .map(|(name, at, ms)| task(name, at, at.into(), section(ms)));
        let done = run(&workload(&[kind], tasks.into()));
        assert_eq!(["x", "y", "z"].map(|name| exit_ms(&done, name)), [10, 12, 15]);
        assert_eq!(blocks(&done, "y"), [(MS, "mutex a".into())]);
        assert_eq!(wakers(&done, "z"), [(12 * MS, Some("y".into()))]);
        assert!(blocks(&done, "x").is_empty());
    }
}

/// The holder locks again at once: a normal mutex it gets, one with inheritance is handed over.
#[test]
fn a_normal_mutex_is_not_handed_over() {
    let greedy = || {
        build(|b| {
            b.lock(A).run(10 * MS).unlock(A).lock(A).run(5 * MS).unlock(A);
        })
    };
    let exits = |kind| {
        let tasks = vec![task("greedy", 0, 0, greedy()), task("other", 1, 1, section(2))];
        let done = run(&workload(&[kind], tasks));
        let blocked = blocks(&done, "other").len();
        (exit_ms(&done, "greedy"), exit_ms(&done, "other"), blocked)
    };
    assert_eq!(exits(ObjectKind::MUTEX), (15, 17, 2));
    assert_eq!(exits(INHERIT), (17, 12, 1));
}

#[test]
fn a_condition_wakes_one_or_all_and_the_mutex_is_taken_again() {
    let waiter = || {
        build(|b| {
            b.lock(A).op(Op::Wait { condvar: B, mutex: A }).run(2 * MS).unlock(A);
        })
    };
    let wake = |op: Op| {
        let waker = build(|b| {
            b.sleep(10 * MS).lock(A).op(op).run(3 * MS).unlock(A);
            b.sleep(20 * MS).op(Op::Broadcast { object: B });
        });
        let tasks =
            vec![task("x", 0, 0, waiter()), task("y", 1, 1, waiter()), task("waker", 2, 0, waker)];
        let done = run(&workload(&[ObjectKind::MUTEX, ObjectKind::Condvar], tasks));
        let on = |name| blocks(&done, name).into_iter().map(|(_, what)| what).collect::<Vec<_>>();
        // Woken while the waker holds the mutex, it waits for that next.
        assert_eq!(on("x"), ["condvar b", "mutex a"]);
        (exit_ms(&done, "x"), exit_ms(&done, "y"))
    };
    assert_eq!(wake(Op::Broadcast { object: B }), (15, 17));
    assert_eq!(wake(Op::Signal { object: B }), (15, 35));
}

/// rt-app's `sync`: two tasks that take turns.
#[test]
fn sync_signals_and_waits() {
    let turn = |rounds| {
        build(|b| {
            b.lock(A).begin_loop(LoopCount::Times(rounds)).run(MS);
            b.op(Op::Sync { condvar: B, mutex: A }).end_loop().op(Op::Signal { object: B });
            b.unlock(A);
        })
    };
    let tasks = vec![task("ping", 0, 0, turn(5)), task("pong", 1, 0, turn(4))];
    let done = run(&workload(&[ObjectKind::MUTEX, ObjectKind::Condvar], tasks));
    assert_eq!((exit_ms(&done, "ping"), exit_ms(&done, "pong")), (9, 9));
}

#[test]
fn a_barrier_makes_each_round_as_long_as_its_slowest_party() {
    let party = |ms: u64| {
        build(|b| {
            b.begin_loop(LoopCount::Times(4)).run(ms * MS).op(Op::Barrier { object: A }).end_loop();
        })
    };
    let tasks = vec![
        task("short", 0, 0, party(1)),
        task("middle", 1, 0, party(2)),
        task("long", 2, 0, party(5)),
    ];
    let done = run(&workload(&[ObjectKind::Barrier { parties: 3 }], tasks));
    assert_eq!(["short", "middle", "long"].map(|name| exit_ms(&done, name)), [20; 3]);
    assert_eq!(blocks(&done, "short").len(), 4);
    assert!(blocks(&done, "long").is_empty());
}

#[test]
fn a_semaphore_lets_as_many_in_as_it_counts() {
    let user = || {
        build(|b| {
            b.op(Op::SemWait { object: A }).run(10 * MS).op(Op::SemPost { object: A });
        })
    };
    let tasks = (0..4).map(|cpu| task(&format!("u{cpu}"), cpu, cpu.into(), user())).collect();
    let done = run(&workload(&[ObjectKind::Semaphore { initial: 2 }], tasks));
    assert_eq!(["u0", "u1", "u2", "u3"].map(|name| exit_ms(&done, name)), [10, 11, 20, 21]);
}

#[test]
fn a_resume_wakes_all_that_are_suspended_and_is_else_lost() {
    let worker = build(|b| {
        b.begin_loop(LoopCount::Times(3)).op(Op::Suspend { object: A }).run(MS).end_loop();
    });
    let waker = build(|b| {
        b.op(Op::Resume { object: A }).begin_loop(LoopCount::Times(3)).sleep(10 * MS);
        b.op(Op::Resume { object: A }).end_loop();
    });
    let tasks =
        vec![task("waker", 0, 0, waker), task("x", 1, 0, worker.clone()), task("y", 2, 5, worker)];
    let done = run(&workload(&[ObjectKind::Event], tasks));
    assert_eq!((exit_ms(&done, "x"), exit_ms(&done, "y")), (31, 31));
}

/// A task to be forked, which runs for `ms` on CPU `cpu`.
fn child(name: &str, cpu: u32, ms: u64) -> TaskSpec {
    let program = build(|b| {
        b.run(ms * MS);
    });
    TaskSpec { instances: 0, ..task(name, cpu, 0, program) }
}

#[test]
fn a_join_of_one_description_waits_for_no_other() {
    let parent = build(|b| {
        b.op(Op::Fork { task: 1 }).op(Op::Fork { task: 2 }).op(Op::Fork { task: 1 });
        b.op(Op::Join { task: 1 }).run(MS).op(Op::Join { task: 1 }).run(MS).op(Op::JoinAll);
    });
    let tasks = vec![task("parent", 0, 0, parent), child("short", 1, 4), child("long", 2, 30)];
    let done = run(&workload(&[], tasks));
    let waits = |ms| (ms * MS, "children children".to_string());
    assert_eq!(blocks(&done, "parent"), [waits(0), waits(4), waits(10)]);
    assert_eq!(exit_ms(&done, "parent"), 30);
}

/// As a program that calls waitpid() for each of its children, and as the tasks of real runs: it
/// sleeps until the first one exits, finds the second one done with, and sleeps for the third.
#[test]
fn a_join_waits_for_one_child_after_the_other() {
    let parent = build(|b| {
        b.op(Op::Fork { task: 1 }).op(Op::Fork { task: 2 }).op(Op::Fork { task: 3 });
        b.op(Op::JoinAll).run(MS);
    });
    let tasks =
        vec![task("parent", 0, 0, parent), child("a", 1, 10), child("b", 2, 4), child("c", 3, 30)];
    let done = run(&workload(&[], tasks));
    let waits = |ms| (ms * MS, "children children".to_string());
    assert_eq!(blocks(&done, "parent"), [waits(0), waits(10)]);
    assert_eq!(exit_ms(&done, "parent"), 31);
}

#[test]
fn memory_takes_the_time_that_the_machine_says() {
    let program = build(|b| {
        b.op(Op::Mem { bytes: Amount::Constant(64 << 20) });
        b.op(Op::MemRun {
            access: MemAccess::Chase,
            pattern: MemPattern::Random,
            size_bytes: 1 << 30,
            stride_bytes: 64,
            count: Amount::Constant(1_000_000),
        });
    });
    let done = run(&workload(&[], vec![task("t", 0, 0, program)]));
    assert_eq!(done.outcome.end_ns, (64 << 10) * 100 + 90_000_000);
}
