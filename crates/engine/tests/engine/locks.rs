// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks of run queues through the whole engine: closed forms of who waits how long.

use crate::common;

use common::workloads::{on, task};
use common::{Case, Run};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, ChannelKind, Costs, EventKind, LoopCount, Machine, Nanos, ObjectId, ObjectKind,
    ObjectSpec, Op, Policy, SchedAttr, SwitchOut, TaskId, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

/// What an operation holds its lock for; a switch and a wake-up cost just that.
const HOLD: Nanos = 1_000;
const COSTS: Costs =
    Costs { context_switch_ns: HOLD, wakeup_ns: HOLD, lock_hold_ns: HOLD, ..Costs::ZERO };

fn run(workload: &Workload, scheduler: &str, nr_cpus: u32, costs: Costs) -> Run {
    let mut case = Case::new(workload, find(scheduler).expect("it is registered"), nr_cpus);
    case.machine = Machine { costs, ..case.machine };
    case.run().unwrap_or_else(|error| panic!("{}: {error}", case.describe()))
}

/// What every task does in the end, so that none exits while others still call.
const REST: Nanos = 20 * HOLD;

/// A task on each CPU that runs for `run_ns` and calls sched_yield, `times` times; then the rest.
fn yielders(nr_cpus: u32, times: u64, run_ns: Nanos) -> Workload {
    let program = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(times))
        .run(run_ns)
        .op(Op::Yield)
        .end_loop()
        .run(REST)
        .build();
    let tasks = (0..nr_cpus).map(|cpu| task("yielder", on(&[cpu]), program.clone()));
    Workload::new("yielders", tasks.collect())
}

/// With work that is shorter than a hold the lock is never free: the CPUs take turns, and the last
/// of N operations ends when N holds and N - 1 transfers are over.
#[test]
fn one_lock_for_all_makes_cpus_take_turns() {
    for nr_cpus in [2, 3, 4, 8] {
        for (transfer, entry) in [(0, 0), (130, 0), (0, 50), (130, 50)] {
            let costs = Costs { lock_transfer_ns: transfer, pick_entry_ns: entry, ..COSTS };
            let done = run(&yielders(nr_cpus, 20, 700), "linux-2.4.18", nr_cpus, costs);
            // The first choice and one for each call; each looks at all tasks.
            let (cpus, times) = (Nanos::from(nr_cpus), 21);
            let nr = cpus * times;
            let end = nr * (HOLD + (cpus - 1) * entry) + (nr - 1) * transfer + REST;
            assert_eq!(done.outcome.end_ns, end, "{nr_cpus} CPUs, {costs:?}");
            assert!(done.outcome.lock_wait_ns > 0 && done.outcome.nr_lock_waits > 0);
        }
    }
}

#[test]
fn locks_of_their_own_make_nobody_wait() {
    for scheduler in ["linux-2.6.0", "linux-6.1", "linux-6.12"] {
        let costs = Costs { lock_transfer_ns: 130, ..COSTS };
        let done = run(&yielders(4, 20, 700), scheduler, 4, costs);
        assert_eq!(done.outcome.end_ns, 21 * HOLD + 20 * 700 + REST, "{scheduler}");
        assert_eq!((done.outcome.nr_lock_waits, done.outcome.lock_transfer_ns), (0, 0));
    }
}

/// With work that is long enough for all others to be done, only the first round collides.
#[test]
fn who_comes_when_the_lock_is_free_waits_for_nobody() {
    let done = run(&yielders(4, 20, 3 * HOLD), "linux-2.4.18", 4, COSTS);
    assert_eq!(done.outcome.nr_lock_waits, 3);
    assert_eq!(done.outcome.lock_wait_ns, (1 + 2 + 3) * HOLD);
    assert_eq!(done.outcome.end_ns, (4 + 20) * HOLD + 20 * 3 * HOLD + REST);
}

#[test]
fn one_cpu_has_no_locks() {
    let workload = yielders(1, 20, 700);
    let without = Costs { lock_hold_ns: 0, ..COSTS };
    let ends = [COSTS, without].map(|c| run(&workload, "linux-2.4.18", 1, c).outcome);
    assert_eq!(ends[0], ends[1]);
    assert_eq!(ends[0].end_ns, HOLD + 20 * 700 + REST);
}

/// The woken CPU chooses while the waker still holds the lock: it waits for the transfer and the
/// hold of the wake-up, then fetches the lock itself. One queue or two: it is the queue of one CPU.
#[test]
fn a_woken_cpu_waits_for_its_waker() {
    const SEMAPHORE: ObjectId = ObjectId(0);
    const TRANSFER: Nanos = 130;
    let waker = ProgramBuilder::new().run(100_000).op(Op::SemPost { object: SEMAPHORE }).build();
    let woken = ProgramBuilder::new().op(Op::SemWait { object: SEMAPHORE }).run(50_000).build();
    let tasks = vec![task("waker", on(&[0]), waker), task("woken", on(&[1]), woken)];
    let mut workload = Workload::new("wakeup", tasks);
    workload.objects = vec![ObjectSpec::new("s", ObjectKind::Semaphore { initial: 0 })];
    for scheduler in ["linux-2.4.18", "linux-2.6.0", "linux-6.12"] {
        let costs = Costs { lock_transfer_ns: TRANSFER, ..COSTS };
        let done = run(&workload, scheduler, 2, costs);
        let posted = HOLD + 100_000;
        let end = posted + (TRANSFER + HOLD) + (TRANSFER + HOLD) + 50_000;
        assert_eq!(done.outcome.end_ns, end, "{scheduler}");
    }
}

/// A writer and a reader on CPUs of their own, or on one: each transfer after the first finds the
/// other end in another CPU's cache, or none does.
#[test]
fn a_message_from_another_cpu_costs_its_lines() {
    const CHANNEL: ObjectId = ObjectId(0);
    const TIMES: u64 = 10;
    let program = |op: Op| {
        let mut builder = ProgramBuilder::new();
        builder.begin_loop(LoopCount::Times(TIMES)).run(10_000).op(op).end_loop().build()
    };
    let bytes = Amount::Constant(1);
    let channel = CHANNEL;
    let costs = Costs { channel_transfer_ns: 500, ..Costs::ZERO };
    for (cpu, nr_dear) in [(1, 2 * TIMES - 1), (0, 0)] {
        let tasks: Vec<TaskSpec> = vec![
            task("writer", on(&[0]), program(Op::Send { channel, bytes })),
            task("reader", on(&[cpu]), program(Op::Receive { channel, bytes })),
        ];
        let mut workload = Workload::new("messages", tasks);
        let kind = ObjectKind::Channel { kind: ChannelKind::SocketPair, capacity_bytes: 100 };
        workload.objects = vec![ObjectSpec::new("c", kind)];
        let done = run(&workload, "rr", 2, costs);
        let busy = busy_ns(&done);
        assert_eq!(busy, 2 * TIMES * 10_000 + nr_dear * 500, "reader on CPU {cpu}");
    }
}

/// Time that CPUs ran tasks.
fn busy_ns(run: &Run) -> Nanos {
    let mut since = [None; 2];
    let mut busy = 0;
    for event in &run.trace.events {
        if let EventKind::Switch { next, .. } = event.kind {
            let since = &mut since[event.cpu.index()];
            busy += since.map_or(0, |since| event.time_ns - since);
            *since = next.map(|_| event.time_ns);
        }
    }
    busy
}

/// A task that sleeps until a time when its CPU still spins to take it off is woken before it has
/// left: it goes on without a switch, and waits for nothing else.
#[test]
fn a_task_that_is_woken_while_its_cpu_spins_never_leaves() {
    let sleeper = ProgramBuilder::new().run(10_000).sleep(300).run(5_000).build();
    let yielder = ProgramBuilder::new().run(8_400).op(Op::Yield).run(REST).build();
    // Both start at 0 and the second one a hold later; the second one's call comes at 10,400 and
    // the sleeper's at 11,000: it has the lock at 11,400, a hundred after it was woken.
    let tasks = vec![task("sleeper", on(&[0]), sleeper), task("yielder", on(&[1]), yielder)];
    let done = run(&Workload::new("race", tasks), "linux-2.4.18", 2, COSTS);
    let first = TaskId(0);
    let switches = done.trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Switch { prev, out, .. } if prev == Some(first) => Some((event.time_ns, out)),
        EventKind::Wakeup { task, .. } if task == first && event.time_ns > 0 => {
            panic!("it never slept, but is woken at {}", event.time_ns)
        }
        _ => None,
    });
    let end = 11_400 + HOLD + 5_000;
    assert_eq!(switches.collect::<Vec<_>>(), [(end, SwitchOut::Dead)]);
}

/// A parent that forks `nr` tasks of `run_ns` each and waits for them all; it preempts them.
fn family(nr: u64, run_ns: Nanos) -> Workload {
    let parent = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(nr))
        .op(Op::Fork { task: 1 })
        .end_loop()
        .op(Op::JoinAll)
        .run(REST)
        .build();
    let child = ProgramBuilder::new().run(run_ns).build();
    let child = TaskSpec { instances: 0, ..task("child", on(&[0]), child) };
    let attr = SchedAttr { policy: Policy::Fifo, rt_priority: 10, ..on(&[0]) };
    Workload::new("family", vec![task("parent", attr, parent), child])
}

/// The parent looks through all children before it sleeps, and after the exit of each of them once
/// for that one and once more; an exit looks at all that live. A line costs 10.
#[test]
fn exits_and_waits_of_2_4_walk_through_lists() {
    let walks = Costs { task_line_ns: 10, ..Costs::ZERO };
    for nr in [1, 2, 5, 20] {
        let family = family(nr, 700);
        let free = run(&family, "linux-2.4.18", 1, Costs::ZERO).outcome.end_ns;
        assert_eq!(free, nr * 700 + REST);
        let done = run(&family, "linux-2.4.18", 1, walks).outcome.end_ns;
        // Of those left after each exit: three lines of each child twice, two of each task, of
        // which the parent is one. The last exit is the parent's, which nobody comes after.
        let left = nr * (nr - 1) / 2;
        let waits = 3 * nr + 2 * 3 * left;
        let exits = 2 * (left + nr);
        assert_eq!(done, free + 10 * (waits + exits), "{nr} children");
    }
}

#[test]
fn later_kernels_walk_through_no_list_of_tasks() {
    let walks = Costs { task_line_ns: 1_000, ..Costs::ZERO };
    for scheduler in ["linux-2.6.0", "linux-2.6.23", "linux-6.12"] {
        let (family, cpus) = (family(5, 700), 1);
        let [free, priced] = [Costs::ZERO, walks].map(|costs| run(&family, scheduler, cpus, costs));
        assert_eq!(free.outcome.end_ns, priced.outcome.end_ns, "{scheduler}");
        assert_eq!(free.outcome.end_ns, 5 * 700 + REST, "{scheduler}");
    }
}
