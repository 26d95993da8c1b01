// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fixed workloads of the conformance suite. Every task ends. A change of attributes stands
//! behind a phase mark, so that the trace shows which affinity holds.

use super::MS;
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::{
    Amount, ChannelKind, CpuId, CpuMask, LoopCount, MutexProtocol, ObjectId, ObjectKind,
    ObjectSpec, Op, Policy, Program, Release, SchedAttr, TaskSpec, Workload,
};

/// Attributes with a nice value.
pub fn nice(nice: i8) -> SchedAttr {
    SchedAttr { nice, ..SchedAttr::default() }
}

/// Attributes with a policy, and a priority if it is a real-time one.
pub fn policy(policy: Policy, rt_priority: u8) -> SchedAttr {
    SchedAttr { policy, rt_priority, ..SchedAttr::default() }
}

/// Attributes with an affinity.
pub fn on(cpus: &[u32]) -> SchedAttr {
    let mut mask = CpuMask::empty();
    for &cpu in cpus {
        mask.set(CpuId(cpu));
    }
    SchedAttr { affinity: Some(mask), ..SchedAttr::default() }
}

/// A program of one burst.
pub fn burst(ns: u64) -> Program {
    ProgramBuilder::new().run(ns).build()
}

/// Runs for ever, in steps of a millisecond.
pub fn endless() -> Program {
    ProgramBuilder::new().begin_loop(LoopCount::Forever).run(MS).end_loop().build()
}

/// `times` bursts, each followed by a sleep.
pub fn bursts(times: u64, run_ns: u64, sleep_ns: u64) -> Program {
    ProgramBuilder::new()
        .begin_loop(LoopCount::Times(times))
        .run(run_ns)
        .sleep(sleep_ns)
        .end_loop()
        .build()
}

/// A task that exists and sleeps before it is released, with attributes.
pub fn task(name: &str, attr: SchedAttr, program: Program) -> TaskSpec {
    TaskSpec { attr, release: Release::Wakeup, ..TaskSpec::new(name, program) }
}

/// `count` hogs of equal importance that run for ever, released by a wake-up at 0.
pub fn endless_hogs(count: u32) -> Workload {
    let program =
        ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000_000 * MS).end_loop().build();
    let hogs = TaskSpec { instances: count, ..task("hog", nice(0), program) };
    Workload::new(format!("{count} endless hogs"), vec![hogs])
}

fn hogs() -> Workload {
    let hogs = TaskSpec { instances: 7, ..TaskSpec::new("hog", burst(120 * MS + 345)) };
    let late = TaskSpec { release_ns: Amount::Constant(33 * MS), ..hogs.clone() };
    Workload::new("hogs", vec![hogs, TaskSpec { name: "late".into(), instances: 3, ..late }])
}

fn sleepers() -> Workload {
    let draws = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(60))
        .op(Op::Run(Amount::Exponential { mean: 700_000 }))
        .op(Op::Sleep(Amount::Uniform { low: 0, high: 4 * MS }))
        .end_loop()
        .build();
    let drawn = TaskSpec { instances: 5, ..TaskSpec::new("drawn", draws) };
    let regular = TaskSpec { instances: 4, ..TaskSpec::new("regular", bursts(50, MS, 3 * MS)) };
    let hog = TaskSpec::new("hog", burst(200 * MS));
    let open = TaskSpec {
        instances: 20,
        interarrival_ns: Some(Amount::Exponential { mean: 5 * MS }),
        ..TaskSpec::new("open", burst(2 * MS))
    };
    Workload::new("sleepers", vec![drawn, regular, hog, open])
}

fn forks() -> Workload {
    let root = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(4))
        .run(MS)
        .op(Op::Fork { task: 1 })
        .op(Op::Fork { task: 1 })
        .op(Op::Fork { task: 2 })
        .run(300_000)
        .op(Op::JoinAll)
        .end_loop()
        .op(Op::JoinAll)
        .build();
    let middle = ProgramBuilder::new()
        .op(Op::Fork { task: 2 })
        .run(5 * MS)
        .op(Op::JoinAll)
        .run(100_000)
        .build();
    let orphans = ProgramBuilder::new().op(Op::Fork { task: 2 }).op(Op::Fork { task: 2 }).build();
    let none = |name, program| TaskSpec { instances: 0, ..TaskSpec::new(name, program) };
    let tasks = vec![
        TaskSpec { instances: 2, ..TaskSpec::new("root", root) },
        none("middle", middle),
        none("leaf", bursts(3, 2 * MS, MS)),
        TaskSpec::new("parent-of-orphans", orphans),
    ];
    Workload::new("forks", tasks)
}

fn yields() -> Workload {
    let yielder = |run_ns| {
        ProgramBuilder::new()
            .begin_loop(LoopCount::Times(80))
            .run(run_ns)
            .op(Op::Yield)
            .end_loop()
            .build()
    };
    let tasks = vec![
        TaskSpec { instances: 3, ..TaskSpec::new("yielder", yielder(250_000)) },
        TaskSpec::new("slow-yielder", yielder(3 * MS)),
        TaskSpec::new("hog", burst(60 * MS)),
    ];
    Workload::new("yields", tasks)
}

/// Tasks that change their own attributes; needs at least `nr_cpus` CPUs.
fn changes(nr_cpus: u32) -> Workload {
    let last = nr_cpus - 1;
    let steps = [
        nice(5),
        on(&[last]),
        policy(Policy::Batch, 0),
        on(&[0]),
        policy(Policy::Fifo, 10),
        SchedAttr { affinity: on(&[0, last]).affinity, ..policy(Policy::Rr, 10) },
        nice(-5),
        policy(Policy::Idle, 0),
        nice(0),
    ];
    let mut builder = ProgramBuilder::new();
    builder.begin_loop(LoopCount::Times(3));
    for (phase, attr) in steps.iter().enumerate() {
        builder.run(2 * MS).op(Op::Phase(phase as u32)).op(Op::SetAttr(Box::new(*attr)));
        builder.run(300_000).sleep(500_000);
    }
    let phases = (0..steps.len()).map(|step| format!("step {step}")).collect();
    let changer = TaskSpec { phases, ..TaskSpec::new("changer", builder.end_loop().build()) };
    let pinned = TaskSpec { attr: on(&[last]), ..TaskSpec::new("pinned", bursts(20, 3 * MS, MS)) };
    let tasks = vec![
        TaskSpec { instances: 3, ..changer },
        TaskSpec { instances: 2, ..pinned },
        TaskSpec { instances: 2, ..TaskSpec::new("hog", burst(80 * MS)) },
    ];
    Workload::new("changes", tasks)
}

fn io() -> Workload {
    let transfer = |direction, bytes, sync| Op::Io { direction, bytes, sync };
    let reader = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(40))
        .run(400_000)
        .op(transfer(IoDirection::Read, Amount::Uniform { low: 512, high: 65_536 }, true))
        .end_loop()
        .build();
    let writer = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(30))
        .op(transfer(IoDirection::Write, Amount::Constant(1 << 20), false))
        .run(MS)
        .op(transfer(IoDirection::Write, Amount::Constant(4096), true))
        .end_loop()
        .build();
    let tasks = vec![
        TaskSpec { instances: 12, ..TaskSpec::new("reader", reader) },
        TaskSpec { instances: 2, ..TaskSpec::new("writer", writer) },
        TaskSpec { instances: 2, ..TaskSpec::new("hog", burst(50 * MS)) },
    ];
    Workload::new("io", tasks)
}

fn mixed() -> Workload {
    let hog = |name: &str, attr| TaskSpec { attr, ..TaskSpec::new(name, burst(40 * MS)) };
    let waker = |name: &str, attr| TaskSpec { attr, ..TaskSpec::new(name, bursts(30, MS, 5 * MS)) };
    let tasks = vec![
        hog("nice -20", nice(-20)),
        hog("nice -5", nice(-5)),
        hog("nice 0", nice(0)),
        hog("nice 5", nice(5)),
        hog("nice 19", nice(19)),
        hog("batch", policy(Policy::Batch, 0)),
        hog("idle", policy(Policy::Idle, 0)),
        waker("fifo", policy(Policy::Fifo, 50)),
        TaskSpec { instances: 2, ..waker("rr", policy(Policy::Rr, 20)) },
        waker("normal", nice(0)),
    ];
    Workload::new("mixed", tasks)
}

/// Tasks of every importance that take turns at mutexes of every protocol.
fn locks() -> Workload {
    let (plain, inherit, ceiling, condvar) = (ObjectId(0), ObjectId(1), ObjectId(2), ObjectId(3));
    let user = |times, section| {
        let mut builder = ProgramBuilder::new();
        builder.begin_loop(LoopCount::Times(times)).run(400_000);
        builder.lock(inherit).run(section).lock(plain).run(section).unlock(plain);
        builder.sleep(200_000).unlock(inherit).lock(ceiling).run(section).unlock(ceiling);
        builder.op(Op::Signal { object: condvar }).end_loop().build()
    };
    // Its last broadcast comes long after everybody has begun to wait.
    let waiter = ProgramBuilder::new()
        .lock(inherit)
        .op(Op::Wait { condvar, mutex: inherit })
        .run(MS)
        .unlock(inherit)
        .build();
    let caller = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(200))
        .sleep(3 * MS)
        .op(Op::Broadcast { object: condvar })
        .end_loop()
        .build();
    let tasks = vec![
        TaskSpec { instances: 3, ..TaskSpec::new("normal", user(15, 300_000)) },
        TaskSpec { attr: policy(Policy::Idle, 0), ..TaskSpec::new("idle", user(8, 200_000)) },
        TaskSpec { attr: policy(Policy::Fifo, 50), ..TaskSpec::new("fifo", user(10, 100_000)) },
        TaskSpec { attr: policy(Policy::Rr, 20), ..TaskSpec::new("rr", user(10, 700_000)) },
        TaskSpec { attr: policy(Policy::Fifo, 30), ..TaskSpec::new("hog", bursts(6, 4 * MS, MS)) },
        TaskSpec { instances: 2, ..TaskSpec::new("waiter", waiter) },
        TaskSpec { attr: policy(Policy::Fifo, 60), ..TaskSpec::new("caller", caller) },
    ];
    let mut workload = Workload::new("locks", tasks);
    let ceiling = MutexProtocol::Ceiling { rt_priority: 70 };
    for (name, protocol) in
        [("plain", MutexProtocol::None), ("inherit", MutexProtocol::Inherit), ("ceiling", ceiling)]
    {
        workload.add_object(ObjectSpec::new(name, ObjectKind::Mutex { protocol }));
    }
    workload.add_object(ObjectSpec::new("condvar", ObjectKind::Condvar));
    workload
}

/// A pipeline, groups that meet, a pool, and a server that waits for either of two clients.
fn channels() -> Workload {
    let (pipe, socket, barrier, pool) = (ObjectId(0), ObjectId(1), ObjectId(2), ObjectId(3));
    let looped = |times, ops: Vec<Op>| {
        let mut builder = ProgramBuilder::new();
        builder.begin_loop(LoopCount::Times(times));
        for op in ops {
            builder.op(op);
        }
        builder.end_loop().build()
    };
    let run = |ns| Op::Run(Amount::Constant(ns));
    let bytes = Amount::Constant;
    let writer = vec![run(100_000), Op::Send { channel: pipe, bytes: bytes(900) }];
    let filter = vec![
        Op::Receive { channel: pipe, bytes: bytes(900) },
        run(150_000),
        Op::Send { channel: socket, bytes: bytes(300) },
    ];
    let reader = vec![
        Op::WaitAny { set: 0 },
        Op::Receive { channel: socket, bytes: bytes(300) },
        run(60_000),
    ];
    let party = vec![run(700_000), Op::Barrier { object: barrier }, Op::Yield];
    let guest = vec![
        Op::SemWait { object: pool },
        run(500_000),
        Op::SemPost { object: pool },
        Op::Sleep(bytes(300_000)),
    ];
    let tasks = vec![
        TaskSpec { instances: 3, ..TaskSpec::new("writer", looped(40, writer)) },
        TaskSpec { instances: 2, ..TaskSpec::new("filter", looped(60, filter)) },
        TaskSpec::new("reader", looped(120, reader)),
        TaskSpec { instances: 4, ..TaskSpec::new("party", looped(10, party)) },
        TaskSpec { instances: 5, ..TaskSpec::new("guest", looped(8, guest)) },
    ];
    let mut workload = Workload::new("channels", tasks);
    let socket_pair = ChannelKind::SocketPair;
    for (name, kind) in [
        ("pipe", ObjectKind::Channel { kind: ChannelKind::Pipe, capacity_bytes: 4_096 }),
        ("socket", ObjectKind::Channel { kind: socket_pair, capacity_bytes: 1_000 }),
        ("barrier", ObjectKind::Barrier { parties: 4 }),
        ("pool", ObjectKind::Semaphore { initial: 2 }),
    ] {
        workload.add_object(ObjectSpec::new(name, kind));
    }
    workload.wait_sets.push(vec![socket]);
    workload
}

/// Every workload that `nr_cpus` CPUs can run.
pub fn all(nr_cpus: u32) -> Vec<Workload> {
    vec![
        hogs(),
        sleepers(),
        forks(),
        yields(),
        changes(nr_cpus),
        io(),
        mixed(),
        locks(),
        channels(),
    ]
}
