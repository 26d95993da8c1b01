// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator and the running kernel play one workload to the same end: if policy and locks
//! decide everything, the tasks act in the same order in both.
//!
//! The tests use real-time tasks on one CPU. They need permission to set real-time policies and are
//! skipped without it.

use schedlab_host::{HostError, HostLane, HostRequest};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::MemorySink;
use schedlab_model::{
    ChannelKind, CpuMask, DeadlineParams, EventKind, LoopCount, MutexProtocol, ObjectId,
    ObjectKind, ObjectSpec, Op, Policy, TaskSpec, Workload,
};
use schedlab_run::{Lane, RunRequest};
use schedlab_sim::SimLane;
use schedlab_testing::skip;

const MS: u64 = 1_000_000;
const A: ObjectId = ObjectId(0);
const B: ObjectId = ObjectId(1);

fn fifo(name: &str, priority: u8, build: impl FnOnce(&mut ProgramBuilder)) -> TaskSpec {
    let mut builder = ProgramBuilder::new();
    build(&mut builder);
    let mut task = TaskSpec::new(name, builder.build());
    task.attr.policy = Policy::Fifo;
    task.attr.rt_priority = priority;
    task
}

fn workload(tasks: Vec<TaskSpec>, kinds: &[(&str, ObjectKind)]) -> Workload {
    let mut workload = Workload::new("parity", tasks);
    for (name, kind) in kinds {
        workload.add_object(ObjectSpec::new(*name, *kind));
    }
    workload
}

/// Names of the tasks in the order of their units of progress.
fn progress(sink: &MemorySink) -> Vec<&str> {
    let of = |event: &schedlab_model::Event| match event.kind {
        EventKind::Progress { task } => Some(sink.tasks[task.index()].name.as_str()),
        _ => None,
    };
    sink.events.iter().filter_map(of).collect()
}

fn request(workload: &Workload) -> RunRequest {
    RunRequest::new(workload.clone(), "linux-6.12", CpuMask::first(1))
}

/// Number of real runs of which one must have the simulated order: other load disturbs
/// single runs, a defect all of them.
const ATTEMPTS: usize = 5;

/// Plays the workload in both lanes, compares the orders and returns the order.
fn same_order(workload: &Workload) -> Vec<String> {
    let mut simulated = MemorySink::default();
    let request = request(workload);
    SimLane::default().run(&request, &mut simulated).expect("the simulation succeeds");
    let cpus = schedlab_host::allowed_cpus().first_cpu().map(CpuMask::only).unwrap();
    let request = HostRequest { cpus, ..HostRequest::new(workload.clone(), 1) };
    let order_of = |sink: &MemorySink| -> Vec<String> {
        progress(sink).into_iter().map(ToString::to_string).collect()
    };
    let expected = order_of(&simulated);
    let mut others = Vec::new();
    for _ in 0..ATTEMPTS {
        let _turn = schedlab_testing::turn();
        let mut real = MemorySink::default();
        HostLane.play(&request, &mut real).expect("the run succeeds");
        let order = order_of(&real);
        if order == expected {
            return order;
        }
        others.push(order);
    }
    panic!("simulated {expected:?}, real {others:?}");
}

fn has_rights() -> bool {
    let has = schedlab_host::lane::is_root() && schedlab_host::lane::may_set_policies();
    if !has {
        skip("real-time policies need root and CAP_SYS_NICE");
    }
    has
}

#[test]
fn messages() {
    if !has_rights() {
        return;
    }
    for (kind, priority) in [(ChannelKind::Pipe, 20), (ChannelKind::SocketPair, 30)] {
        let ping = fifo("ping", 20, |program| {
            program.begin_loop(LoopCount::Times(50));
            program.send(B, 64).receive(A, 64).op(Op::Progress).end_loop();
        });
        let pong = fifo("pong", priority, |program| {
            program.begin_loop(LoopCount::Times(50));
            program.receive(B, 64).op(Op::Progress).send(A, 64).end_loop();
        });
        let channel = ObjectKind::Channel { kind, capacity_bytes: 65_536 };
        let order = same_order(&workload(vec![ping, pong], &[("a", channel), ("b", channel)]));
        assert_eq!(order, ["pong", "ping"].repeat(50));
    }
}

#[test]
fn a_full_pipe() {
    if !has_rights() {
        return;
    }
    let writer = fifo("writer", 30, |program| {
        program.begin_loop(LoopCount::Times(20)).send(A, 4_096).op(Op::Progress).end_loop();
    });
    let reader = fifo("reader", 20, |program| {
        program.begin_loop(LoopCount::Times(20)).receive(A, 4_096).op(Op::Progress).end_loop();
    });
    let pipe = ObjectKind::Channel { kind: ChannelKind::Pipe, capacity_bytes: 16_384 };
    let order = same_order(&workload(vec![writer, reader], &[("pipe", pipe)]));
    assert_eq!(order.len(), 40);
}

#[test]
fn barrier_rounds() {
    if !has_rights() {
        return;
    }
    let party = |name, priority| {
        fifo(name, priority, |program| {
            program.begin_loop(LoopCount::Times(20)).run(20_000).op(Op::Progress);
            program.op(Op::Barrier { object: A }).end_loop();
        })
    };
    let tasks = vec![party("low", 10), party("middle", 20), party("high", 30)];
    let barrier = ObjectKind::Barrier { parties: 3 };
    let order = same_order(&workload(tasks, &[("barrier", barrier)]));
    assert_eq!(order.len(), 60);
}

#[test]
fn priority_inversion_under_each_protocol() {
    if !has_rights() {
        return;
    }
    let order = |protocol| {
        let low = fifo("low", 10, |program| {
            program.lock(A).run(20 * MS).unlock(A).op(Op::Progress);
        });
        // They sleep until their time. The launcher is no real-time task, so on busy CPUs it would
        // release them late.
        let middle = fifo("middle", 20, |program| {
            program.sleep(8 * MS).run(60 * MS).op(Op::Progress);
        });
        let high = fifo("high", 30, |program| {
            program.sleep(4 * MS).lock(A).run(MS).unlock(A).op(Op::Progress);
        });
        let mutex = ObjectKind::Mutex { protocol };
        same_order(&workload(vec![low, middle, high], &[("mutex", mutex)]))
    };
    assert_eq!(order(MutexProtocol::None), ["middle", "high", "low"]);
    assert_eq!(order(MutexProtocol::Inherit), ["high", "middle", "low"]);
    assert_eq!(order(MutexProtocol::Ceiling { rt_priority: 30 }), ["high", "middle", "low"]);
}

#[test]
fn signals_semaphores_and_forks() {
    if !has_rights() {
        return;
    }
    let mut waiter = fifo("waiter", 20, |program| {
        program.lock(A).op(Op::Wait { condvar: B, mutex: A }).op(Op::Progress).unlock(A);
        program.op(Op::SemWait { object: ObjectId(2) }).op(Op::Progress);
    });
    waiter.instances = 3;
    let waker = fifo("waker", 10, |program| {
        for _ in 0..3 {
            program.run(MS).lock(A).op(Op::Signal { object: B }).unlock(A).op(Op::Progress);
        }
        program.begin_loop(LoopCount::Times(3)).op(Op::SemPost { object: ObjectId(2) });
        program.op(Op::Progress).end_loop();
        program.op(Op::Fork { task: 2 }).op(Op::Join { task: 2 }).op(Op::Progress);
    });
    let mut child = fifo("child", 5, |program| {
        program.run(MS).op(Op::Progress);
    });
    child.instances = 0;
    let kinds = [
        ("mutex", ObjectKind::MUTEX),
        ("condvar", ObjectKind::Condvar),
        ("sem", ObjectKind::Semaphore { initial: 0 }),
    ];
    let order = same_order(&workload(vec![waiter, waker, child], &kinds));
    assert_eq!(order.len(), 3 * 2 + 3 + 3 + 2);
}

/// A DEADLINE task with 60 ms of work and a budget of 4 ms in every 20 ms takes fifteen periods, in
/// the model and on the kernel. The kernel checks the budget at ticks and subtracts an overrun from
/// the next one.
#[test]
fn a_deadline_task_gets_its_share() {
    if !has_rights() {
        return;
    }
    let mut task = TaskSpec::new("d", ProgramBuilder::new().run(60 * MS).build());
    task.attr.policy = Policy::Deadline;
    task.attr.deadline = DeadlineParams {
        runtime_ns: 4 * MS,
        deadline_ns: 20 * MS,
        period_ns: 20 * MS,
        reclaim: false,
    };
    let workload = workload(vec![task], &[]);
    let request = request(&workload);
    let modelled = SimLane::default().run(&request, &mut MemorySink::default()).unwrap();
    let modelled = modelled.measures.tasks[0].turnaround_ns.unwrap();
    assert!((14 * 20 * MS..16 * 20 * MS).contains(&modelled), "{modelled}");
    let _turn = schedlab_testing::turn();
    let outcome = match HostLane.play(&HostRequest::new(workload, 1), &mut MemorySink::default()) {
        Ok(outcome) => outcome,
        Err(error @ HostError::Unavailable(_)) => {
            return skip(error);
        }
        Err(error) => panic!("{error}"),
    };
    let task = &outcome.tasks[0];
    let measured = task.ended_ns.expect("it exits") - task.release_ns;
    assert!(measured.abs_diff(modelled) < 3 * 20 * MS, "{measured} measured, {modelled} modelled");
}
