// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks, signals and messages on this kernel: counts, order, what a task blocks on, and that a run
//! ends when no task can continue.

mod common;

use common::play;
use schedlab_host::{HostLane, HostOutcome, HostRequest};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::{MemorySink, NullSink};
use schedlab_model::{
    Amount, ChannelKind, CpuMask, EventKind, LoopCount, MutexProtocol, ObjectId, ObjectKind,
    ObjectSpec, Op, Policy, SwitchOut, TaskId, TaskSpec, TraceSink, Workload,
};
use schedlab_run::Code;
use schedlab_trace::check::TraceCheck;

const MS: u64 = 1_000_000;

fn on_one_cpu(workload: Workload) -> HostRequest {
    let cpus = schedlab_host::allowed_cpus().first_cpu().map(CpuMask::only).unwrap();
    HostRequest { cpus, limit_ns: 20_000 * MS, ..HostRequest::new(workload, 1) }
}

fn task(name: &str, build: impl FnOnce(&mut ProgramBuilder)) -> TaskSpec {
    let mut builder = ProgramBuilder::new();
    build(&mut builder);
    TaskSpec::new(name, builder.build())
}

fn fifo(mut task: TaskSpec, priority: u8) -> TaskSpec {
    task.attr.policy = Policy::Fifo;
    task.attr.rt_priority = priority;
    task
}

fn with_objects(tasks: Vec<TaskSpec>, kinds: &[(&str, ObjectKind)]) -> Workload {
    let mut workload = Workload::new("w", tasks);
    for (name, kind) in kinds {
        workload.add_object(ObjectSpec::new(*name, *kind));
    }
    workload
}

/// Numbers of the tasks in the order of their units of progress.
fn progress(sink: &MemorySink) -> Vec<u32> {
    let of = |event: &schedlab_model::Event| match event.kind {
        EventKind::Progress { task } => Some(task.0),
        _ => None,
    };
    sink.events.iter().filter_map(of).collect()
}

fn warning(outcome: &HostOutcome, code: Code) -> Option<&str> {
    outcome.warnings.iter().find(|w| w.code == code).map(|w| w.text.as_str())
}

fn check_trace(sink: &MemorySink) {
    let mut check = TraceCheck::new();
    for (id, info) in sink.tasks.iter().enumerate() {
        check.task(TaskId(id as u32), info);
    }
    for (id, info) in sink.objects.iter().enumerate() {
        check.object(ObjectId(id as u32), info);
    }
    sink.events.iter().for_each(|event| check.event(event));
    check.end(sink.end_ns);
    assert_eq!(check.finish().map_err(|found| found.to_string()), Ok(()));
}

const A: ObjectId = ObjectId(0);
const B: ObjectId = ObjectId(1);
const C: ObjectId = ObjectId(2);

#[test]
fn messages_go_to_and_fro_and_each_wait_names_its_channel() {
    if !common::has_bpf() {
        return;
    }
    for kind in [ChannelKind::Pipe, ChannelKind::SocketPair] {
        let player = |name, first: ObjectId, second: ObjectId, begins: bool| {
            fifo(
                task(name, |program| {
                    program.begin_loop(LoopCount::Times(200));
                    if begins {
                        program.send(second, 100).receive(first, 100).op(Op::Progress);
                    } else {
                        program.receive(first, 100).op(Op::Progress).send(second, 100);
                    }
                    program.end_loop();
                }),
                20,
            )
        };
        let channel = ObjectKind::Channel { kind, capacity_bytes: 65_536 };
        let tasks = vec![player("ping", A, B, true), player("pong", B, A, false)];
        let workload = with_objects(tasks, &[("to-ping", channel), ("to-pong", channel)]);
        let (outcome, sink) = play(&on_one_cpu(workload));
        assert_eq!(progress(&sink), [1, 0].repeat(200), "strictly by turns");
        assert_eq!(sink.objects[1].name, "to-pong");
        // Each sleep, except at the exit, is a wait for the task's own channel.
        for number in [0, 1] {
            let is_own = |event: &&schedlab_model::Event| match event.kind {
                EventKind::Switch { prev: Some(task), out: SwitchOut::Sleeping, .. } => {
                    task.0 == number
                }
                EventKind::Block { task, .. } => task.0 == number,
                _ => false,
            };
            let own: Vec<EventKind> =
                sink.events.iter().filter(is_own).map(|event| event.kind).collect();
            assert!(own.len() >= 2 * 199, "{kind:?}: {}", own.len());
            for pair in own.chunks(2) {
                let wanted = EventKind::Block { task: TaskId(number), object: ObjectId(number) };
                assert_eq!(pair[0], wanted);
                assert!(matches!(pair[1], EventKind::Switch { .. }), "{pair:?}");
            }
        }
        check_trace(&sink);
        assert!(outcome.tasks.iter().all(|task| task.exit_code == Some(0)));
    }
}

#[test]
fn a_full_pipe_stops_its_writer() {
    if !common::has_bpf() {
        return;
    }
    let writer = task("writer", |program| {
        program.begin_loop(LoopCount::Times(10)).send(A, 4_096).op(Op::Progress).end_loop();
    });
    let reader = task("reader", |program| {
        program.begin_loop(LoopCount::Times(10)).receive(A, 4_096).op(Op::Progress).end_loop();
    });
    let pipe = ObjectKind::Channel { kind: ChannelKind::Pipe, capacity_bytes: 8_192 };
    let workload = with_objects(vec![fifo(writer, 30), fifo(reader, 20)], &[("pipe", pipe)]);
    let (_, sink) = play(&on_one_cpu(workload));
    // The writer has a higher priority and fills two pages, then follows the reader page by page.
    assert_eq!(progress(&sink)[..4], [0, 0, 0, 1]);
    assert_eq!(progress(&sink).len(), 20);
    check_trace(&sink);
}

#[test]
fn a_barrier_keeps_rounds_together() {
    if !common::has_root() {
        return;
    }
    let mut worker = task("worker", |program| {
        program.begin_loop(LoopCount::Times(50)).op(Op::Progress);
        program.op(Op::Barrier { object: A }).end_loop();
    });
    worker.instances = 5;
    let barrier = ObjectKind::Barrier { parties: 5 };
    let workload = with_objects(vec![worker], &[("barrier", barrier)]);
    let (_, sink) = play(&HostRequest::new(workload, 1));
    let order = progress(&sink);
    assert_eq!(order.len(), 250);
    for round in order.chunks(5) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2, 3, 4]);
    }
}

#[test]
fn signals_wake_in_the_order_of_waiting_and_broadcast_wakes_all() {
    if !common::has_root() {
        return;
    }
    // Release the tasks one after another. Timers expire in order however late this CPU handles
    // them, so they decide the order of waiting, not the order of getting ready.
    let waiter = |released_ms: u64| {
        let mut waiter = task("waiter", |program| {
            program.lock(A).op(Op::Wait { condvar: B, mutex: A }).op(Op::Progress).unlock(A);
            program.op(Op::Suspend { object: C }).op(Op::Progress);
        });
        waiter.release_ns = Amount::Constant(released_ms * MS);
        fifo(waiter, 20)
    };
    let waker = task("waker", |program| {
        program.op(Op::Signal { object: B }).sleep(30 * MS);
        for _ in 0..2 {
            program.lock(A).op(Op::Signal { object: B }).unlock(A).sleep(5 * MS);
        }
        program.lock(A).op(Op::Broadcast { object: B }).unlock(A).sleep(5 * MS);
        program.op(Op::Resume { object: C });
    });
    let kinds = [
        ("mutex", ObjectKind::MUTEX),
        ("condvar", ObjectKind::Condvar),
        ("event", ObjectKind::Event),
    ];
    let mut tasks = vec![fifo(waker, 10)];
    tasks.extend([2, 6, 10, 14].map(waiter));
    let workload = with_objects(tasks, &kinds);
    let (outcome, sink) = play(&on_one_cpu(workload));
    assert_eq!(progress(&sink), [1, 2, 3, 4, 1, 2, 3, 4]);
    assert_eq!(warning(&outcome, Code::Deadlock), None);
}

/// Low holds the mutex, high waits for it, and medium would keep low from its CPU.
fn inversion(protocol: MutexProtocol) -> Vec<String> {
    let low = task("low", |program| {
        program.lock(A).run(20 * MS).unlock(A).op(Op::Progress);
    });
    let mut medium = task("medium", |program| {
        program.run(60 * MS).op(Op::Progress);
    });
    let mut high = task("high", |program| {
        program.lock(A).run(MS).unlock(A).op(Op::Progress);
    });
    medium.release_ns = Amount::Constant(8 * MS);
    high.release_ns = Amount::Constant(4 * MS);
    let tasks = vec![fifo(low, 10), fifo(medium, 20), fifo(high, 30)];
    let workload = with_objects(tasks, &[("mutex", ObjectKind::Mutex { protocol })]);
    let (_, sink) = play(&on_one_cpu(workload));
    progress(&sink).iter().map(|task| sink.tasks[*task as usize].name.clone()).collect()
}

#[test]
fn inheritance_and_ceiling_bound_priority_inversion() {
    if !common::has_root() {
        return;
    }
    assert_eq!(inversion(MutexProtocol::None), ["medium", "high", "low"]);
    assert_eq!(inversion(MutexProtocol::Inherit), ["high", "medium", "low"]);
    let ceiling = MutexProtocol::Ceiling { rt_priority: 30 };
    assert_eq!(inversion(ceiling), ["high", "medium", "low"]);
}

#[test]
fn a_mutex_is_held_by_one_at_a_time() {
    for protocol in [MutexProtocol::None, MutexProtocol::Inherit] {
        let mut worker = task("worker", |program| {
            program.begin_loop(LoopCount::Times(300)).lock(A).op(Op::Progress).run(5_000);
            program.op(Op::Progress).unlock(A).end_loop();
        });
        worker.instances = 4;
        let workload = with_objects(vec![worker], &[("mutex", ObjectKind::Mutex { protocol })]);
        let (outcome, sink) = play(&HostRequest::new(workload, 1));
        let order = progress(&sink);
        assert_eq!(order.len(), 2_400);
        assert!(order.chunks(2).all(|pair| pair[0] == pair[1]), "two were inside at once");
        assert_eq!(warning(&outcome, Code::MutexAbandoned), None);
    }
}

#[test]
fn semaphores_count_and_a_wait_for_any_takes_nothing() {
    let producer = task("producer", |program| {
        program.begin_loop(LoopCount::Times(100)).op(Op::SemPost { object: A });
        program.op(Op::SemPost { object: B }).end_loop().send(C, 10);
    });
    let consumer = task("consumer", |program| {
        program.begin_loop(LoopCount::Times(103)).op(Op::SemWait { object: A });
        program.op(Op::Progress).end_loop();
    });
    let any = task("any", |program| {
        program.begin_loop(LoopCount::Times(100)).op(Op::WaitAny { set: 0 });
        program.op(Op::WaitAny { set: 0 }).op(Op::SemWait { object: B }).end_loop();
        program.op(Op::WaitAny { set: 0 }).receive(C, 10).op(Op::Progress);
    });
    let kinds = [
        ("futex", ObjectKind::Semaphore { initial: 3 }),
        ("polled", ObjectKind::Semaphore { initial: 0 }),
        ("pipe", ObjectKind::PIPE),
    ];
    let mut workload = with_objects(vec![producer, consumer, any], &kinds);
    workload.wait_sets.push(vec![B, C]);
    let (outcome, sink) = play(&HostRequest::new(workload, 1));
    assert_eq!(progress(&sink).len(), 104);
    assert!(outcome.tasks.iter().all(|task| task.exit_code == Some(0)), "{outcome:?}");
}

#[test]
fn a_join_waits_for_one_description() {
    if !common::has_root() {
        return;
    }
    let parent = task("parent", |program| {
        program.op(Op::Fork { task: 1 }).op(Op::Fork { task: 2 });
        program.op(Op::Join { task: 1 }).op(Op::Progress).op(Op::SemPost { object: A });
        program.op(Op::JoinAll).op(Op::Progress);
    });
    let mut quick = task("quick", |program| {
        program.lock(B).run(MS).unlock(B).op(Op::Progress);
    });
    let mut slow = task("slow", |program| {
        program.lock(B).unlock(B).op(Op::SemWait { object: A }).op(Op::Progress);
    });
    (quick.instances, slow.instances) = (0, 0);
    let protocol = MutexProtocol::Inherit;
    let kinds =
        [("sem", ObjectKind::Semaphore { initial: 0 }), ("pi", ObjectKind::Mutex { protocol })];
    let (_, sink) = play(&on_one_cpu(with_objects(vec![parent, quick, slow], &kinds)));
    assert_eq!(progress(&sink), [1, 0, 2, 0]);
    assert_eq!(sink.objects.last().unwrap().name, "children");
}

#[test]
fn a_deadlock_ends_the_run_and_is_named() {
    for protocol in [MutexProtocol::None, MutexProtocol::Inherit] {
        let crossed = |name, first, second| {
            task(name, |program| {
                program.lock(first).op(Op::Barrier { object: C }).lock(second);
            })
        };
        let mutex = ObjectKind::Mutex { protocol };
        let kinds = [("m", mutex), ("n", mutex), ("both", ObjectKind::Barrier { parties: 2 })];
        let workload = with_objects(vec![crossed("one", A, B), crossed("two", B, A)], &kinds);
        let (outcome, _) = play(&HostRequest::new(workload, 1));
        assert!(!outcome.was_limited && outcome.end_ns < 5_000 * MS, "{}", outcome.end_ns);
        let text = warning(&outcome, Code::Deadlock).expect("the deadlock is named");
        assert!(text.contains("one for mutex \"n\", held by two"), "{text}");
        assert!(text.contains("two for mutex \"m\", held by one"), "{text}");
    }
}

#[test]
fn the_limit_ends_every_wait_and_names_the_waiting() {
    let kinds = [
        ("sem", ObjectKind::Semaphore { initial: 0 }),
        ("pipe", ObjectKind::PIPE),
        ("mutex", ObjectKind::MUTEX),
        ("condvar", ObjectKind::Condvar),
        ("event", ObjectKind::Event),
        ("barrier", ObjectKind::Barrier { parties: 9 }),
        ("polled", ObjectKind::Semaphore { initial: 0 }),
    ];
    let [sem, pipe, mutex, condvar, event, barrier] = [0, 1, 2, 3, 4, 5].map(ObjectId);
    let one = |name: &str, ops: &[Op]| {
        task(name, |program| {
            ops.iter().for_each(|op| {
                program.op(op.clone());
            });
        })
    };
    let tasks = vec![
        one("s", &[Op::SemWait { object: sem }]),
        one("r", &[Op::Receive { channel: pipe, bytes: Amount::Constant(1) }]),
        one("c", &[Op::Lock { object: mutex }, Op::Wait { condvar, mutex }]),
        one("e", &[Op::Suspend { object: event }]),
        one("b", &[Op::Barrier { object: barrier }]),
        one("a", &[Op::WaitAny { set: 0 }]),
        one("sleeper", &[Op::Sleep(Amount::Constant(100_000 * MS))]),
    ];
    let mut workload = with_objects(tasks, &kinds);
    workload.wait_sets.push(vec![pipe, ObjectId(6)]);
    let mut request = HostRequest::new(workload, 1);
    request.limit_ns = 300 * MS;
    let (outcome, _) = play(&request);
    assert!(outcome.was_limited && outcome.end_ns < 2_000 * MS, "{}", outcome.end_ns);
    let text = warning(&outcome, Code::WaitingAtLimit).expect("who waits is named");
    for part in [
        "s for semaphore \"sem\"",
        "r for pipe \"pipe\"",
        "c for condvar \"condvar\"",
        "e for event \"event\"",
        "b for barrier \"barrier\"",
        "a for set \"pipe|polled\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("sleeper"));
}

#[test]
fn what_a_task_leaves_behind_is_taken_over_and_named() {
    for protocol in [MutexProtocol::None, MutexProtocol::Inherit] {
        let careless = task("careless", |program| {
            program.lock(A).op(Op::SemPost { object: B }).sleep(5 * MS);
        });
        let heir = task("heir", |program| {
            program.op(Op::SemWait { object: B }).lock(A).op(Op::Progress).unlock(A);
        });
        let kinds =
            [("m", ObjectKind::Mutex { protocol }), ("sem", ObjectKind::Semaphore { initial: 0 })];
        let (outcome, sink) =
            play(&HostRequest::new(with_objects(vec![careless, heir], &kinds), 1));
        assert_eq!(progress(&sink), [1]);
        let text = warning(&outcome, Code::MutexAbandoned).unwrap();
        assert!(text.contains("heir mutex \"m\""), "{text}");
    }
    let writer = task("writer", |program| {
        program.send(A, 10);
    });
    let reader = task("reader", |program| {
        program.receive(A, 11).op(Op::Progress);
    });
    let (outcome, sink) =
        play(&HostRequest::new(with_objects(vec![writer, reader], &[("p", ObjectKind::PIPE)]), 1));
    assert_eq!(progress(&sink).len(), 0);
    assert!(warning(&outcome, Code::ChannelClosed).unwrap().contains("reader pipe \"p\""));
    assert!(outcome.tasks.iter().all(|task| task.exit_code == Some(0)));
}

#[test]
fn misuse_is_an_error_that_names_task_and_object() {
    let error = |build: fn(&mut ProgramBuilder)| {
        let kinds = [("m", ObjectKind::MUTEX), ("c", ObjectKind::Condvar)];
        let request = HostRequest::new(with_objects(vec![task("t", build)], &kinds), 1);
        HostLane.play(&request, &mut NullSink).expect_err("it must fail").to_string()
    };
    let text = error(|program| {
        program.unlock(A);
    });
    assert!(text.contains("(t): unlocking a mutex that it does not hold (\"m\")"), "{text}");
    let text = error(|program| {
        program.lock(A).lock(A);
    });
    assert!(text.contains("locking a mutex that it holds (\"m\")"), "{text}");
    let text = error(|program| {
        program.op(Op::Wait { condvar: B, mutex: A });
    });
    assert!(text.contains("a mutex that it does not hold (\"m\")"), "{text}");
}
