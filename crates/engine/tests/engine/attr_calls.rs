// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that change attributes or groups: what they change, in which order, and what they cost on
//! machines on which they take time. What the kernel does is from guests of 6.12 and 7.2, and from
//! kernel/sched/syscalls.c (__sched_setscheduler) and core.c (set_load_weight).

use crate::common;

use common::workloads::{endless, nice, policy, task};
use common::{Case, MS, Run, timeline};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::workload::Change;
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Costs, CpuId, CpuMask, CpuMax, EventKind, LoopCount, Machine,
    Nanos, ObjectId, ObjectKind, ObjectSpec, Op, Policy, SchedAttr, SwitchOut, TaskId, TaskSpec,
    Workload,
};
use schedlab_sched::registry::find;

const US: Nanos = 1_000;

fn run(scheduler: &str, workload: &Workload, costs: Costs, until_ns: Nanos) -> Run {
    let mut case = Case::new(workload, find(scheduler).expect("it is registered"), 1);
    case.machine = Machine { costs, ..case.machine };
    case.until_ns = Some(until_ns);
    case.run().unwrap_or_else(|error| panic!("{error}"))
}

/// The workload with two groups that have no limit.
fn workload(tasks: Vec<TaskSpec>) -> Workload {
    let mut workload = Workload::new("calls", tasks);
    for path in ["/a", "/b"] {
        workload.cgroups.push(CgroupSpec::new(path, CgroupId(0), 100));
    }
    workload
}

fn set(attr: SchedAttr) -> Op {
    Op::SetAttr(Box::new(attr))
}

fn inside(attr: SchedAttr) -> SchedAttr {
    SchedAttr { cgroup: CgroupId(1), ..attr }
}

/// A task that becomes one of another class keeps what is left of its request until it comes back,
/// whatever its slice is then. So the rest of a long slice protects it, as guests of 6.12 and 6.18
/// show.
#[test]
fn a_request_outlives_a_time_in_another_class() {
    let long = SchedAttr { slice_ns: Some(100 * MS), ..nice(0) };
    let mut b = ProgramBuilder::new();
    b.run(MS).op(set(policy(Policy::Fifo, 1))).run(4 * MS).op(set(nice(0))).run(20 * MS);
    let tasks = vec![task("a", nice(0), endless()), task("b", long, b.build())];
    for scheduler in ["linux-6.12", "linux-6.18.44"] {
        let run = run(scheduler, &workload(tasks.clone()), Costs::ZERO, 32 * MS);
        assert_eq!(timeline(&run), "0A 4B 29A", "{scheduler}");
    }
}

/// Where tasks may ask for slices, a call without one asks for a slice of 0, so something changes
/// each time; a call for the default slice of 0.7 ms changes nothing. A task that is taken off its
/// queue for a change is charged, and loses the CPU if its slice is over.
#[test]
fn a_call_changes_something_as_the_kernel_says() {
    let asks = |slice_ns| SchedAttr { slice_ns, ..nice(0) };
    for (scheduler, slice_ns, expected) in [
        ("linux-6.12", None, "0A 1.500000B 4A"),
        ("linux-6.12", Some(700 * US), "0A 4B 8A"),
        ("linux-6.12", Some(900 * US), "0A 1.500000B 4A"),
        ("linux-6.6", None, "0A 4B"),
        ("linux-6.1", None, "0A 4B"),
    ] {
        let mut a = ProgramBuilder::new();
        a.run(1_500 * US).op(set(asks(slice_ns))).run(100 * MS);
        let tasks = vec![task("a", nice(0), a.build()), task("b", nice(0), endless())];
        let found = timeline(&run(scheduler, &workload(tasks), Costs::ZERO, 9 * MS));
        assert!(found.starts_with(expected), "{scheduler} {slice_ns:?}: {found}");
    }
}

/// The weight of a real-time task changes without its lag: a task that becomes SCHED_IDLE again and
/// again waits for two or three ticks each time in guests of 6.12 and 7.2.
#[test]
fn a_lag_is_not_scaled_with_the_weight_of_a_real_time_task() {
    let mut a = ProgramBuilder::new();
    a.begin_loop(LoopCount::Forever);
    a.run(3 * MS).op(set(policy(Policy::Idle, 0))).run(300 * US);
    a.op(set(policy(Policy::Fifo, 3))).sleep(5 * MS).end_loop();
    let tasks = vec![task("a", policy(Policy::Fifo, 3), a.build()), task("b", nice(0), endless())];
    let costs = Costs { set_attr_after_ns: 13 * US, wakeup_switch_ns: 15 * US, ..Costs::ZERO };
    for scheduler in ["linux-6.12", "linux-6.18", "linux-7.2"] {
        let found = run(scheduler, &workload(tasks.clone()), costs, 400 * MS);
        let ends: Vec<Nanos> = found.trace.events.iter().map(|event| event.time_ns).collect();
        let longest = ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(longest < 13 * MS, "{scheduler}: {longest} ns, {}", timeline(&found));
    }
}

/// A task joins its group first, with its old policy; then it gets the new one.
#[test]
fn a_move_comes_before_the_other_attributes() {
    let turns = |from: SchedAttr, to: SchedAttr| {
        let program = ProgramBuilder::new().run(MS).op(set(to)).run(MS).build();
        let tasks = vec![task("a", from, program), task("b", nice(0), endless())];
        let costs = Costs {
            group_move_ns: 70 * US,
            group_move_after_ns: 10 * US,
            set_attr_ns: 12 * US,
            set_attr_after_ns: 5 * US,
            wakeup_switch_ns: 15 * US,
            ..Costs::ZERO
        };
        timeline(&run("linux-6.12", &workload(tasks), costs, 5 * MS))
    };
    // A real-time task goes on after the move, which asks for a pick, and loses the CPU when its
    // policy changes.
    let found = turns(policy(Policy::Fifo, 1), inside(policy(Policy::Idle, 0)));
    assert!(found.starts_with("0.015000A 1.137000B"), "{found}");
    // A fair one loses it at the move already, before it becomes a real-time task.
    let found = turns(nice(0), inside(policy(Policy::Fifo, 1)));
    assert!(found.starts_with("0.015000A 1.100000B"), "{found}");
}

/// A move takes longer to a group without tasks, and for a fair task. The root group has tasks
/// always.
#[test]
fn the_first_move_to_a_group_takes_longer() {
    let costs = Costs {
        group_move_ns: 70 * US,
        group_first_ns: 20 * US,
        group_fair_ns: 6 * US,
        ..Costs::ZERO
    };
    let after = |attr: SchedAttr, to: SchedAttr, other: Option<SchedAttr>| {
        let program = ProgramBuilder::new().run(MS).op(set(to)).build();
        let sleeper = |attr| task("b", attr, ProgramBuilder::new().sleep(9 * MS).build());
        let tasks = std::iter::once(task("a", attr, program)).chain(other.map(sleeper));
        let turns = timeline(&run("linux-6.12", &workload(tasks.collect()), costs, 5 * MS));
        turns.split(' ').next_back().map(str::to_owned)
    };
    let fifo = policy(Policy::Fifo, 1);
    let at = |us| Some(format!("1.{us:03}000-"));
    assert_eq!(after(nice(0), inside(nice(0)), None), at(96));
    assert_eq!(after(fifo, inside(fifo), None), at(90));
    assert_eq!(after(fifo, inside(fifo), Some(inside(nice(0)))), at(70));
    assert_eq!(after(inside(fifo), fifo, None), at(70));
}

/// A task that may not stay on its CPU moves with its old policy; then it gets the new one. The
/// thread that moves it takes the CPU's next task some time.
#[test]
fn a_move_to_another_cpu_comes_before_the_other_attributes() {
    let on = |cpu, attr: SchedAttr| SchedAttr { affinity: Some(CpuMask::only(CpuId(cpu))), ..attr };
    let to = on(1, policy(Policy::Idle, 0));
    let program = ProgramBuilder::new().run(MS).op(set(to)).run(MS).build();
    let tasks = vec![
        task("a", on(0, policy(Policy::Fifo, 1)), program),
        task("b", on(0, nice(0)), endless()),
        task("c", on(1, nice(0)), endless()),
    ];
    let costs = Costs {
        context_switch_ns: 10 * US,
        set_attr_ns: 12 * US,
        set_attr_after_ns: 5 * US,
        wakeup_switch_ns: 15 * US,
        ..Costs::ZERO
    };
    let workload = workload(tasks);
    let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
    case.machine = Machine { costs, ..Machine::flat(2) };
    case.until_ns = Some(3 * MS);
    let found = case.run().unwrap_or_else(|error| panic!("{error}"));
    let visits: Vec<Nanos> = (found.trace.events.iter())
        .filter(|event| event.cpu == CpuId(1))
        .filter_map(|event| match event.kind {
            EventKind::Switch { prev, next, .. } if [prev, next].contains(&Some(TaskId(0))) => {
                Some(event.time_ns)
            }
            _ => None,
        })
        .collect();
    // It runs from 15 us on, its switch takes 10 us and its call 12; the switch to the thread takes
    // 15 and 10, and the message to the other CPU 15.
    let comes = 15 * US + 10 * US + MS + 12 * US + 25 * US + 15 * US;
    assert_eq!(visits[0], comes, "{visits:?}");
    // There it pays for its switch, ends the first call and makes the second.
    assert!(visits[1] > comes + 10 * US && visits[1] < comes + 100 * US, "{visits:?}");
}

#[test]
fn changes_of_groups_take_time() {
    let limit = |group, quota_ms: Option<u64>| {
        let max = |quota_ms| CpuMax { quota_ns: quota_ms * MS, period_ns: 100 * MS, burst_ns: 0 };
        Change::CpuMax { group: CgroupId(group), cpu_max: quota_ms.map(max) }
    };
    let turns = |changes: Vec<Change>| {
        let mut program = ProgramBuilder::new();
        changes.into_iter().for_each(|change| {
            program.op(Op::Change(Box::new(change)));
        });
        let costs = Costs {
            syscall_ns: US,
            group_change_ns: 10 * US,
            cpu_max_ns: 100 * US,
            cpu_max_switch_ns: MS,
            ..Costs::ZERO
        };
        let tasks = vec![task("a", nice(0), program.run(MS).build())];
        timeline(&run("linux-6.12", &workload(tasks), costs, 50 * MS))
    };
    assert_eq!(turns(vec![Change::Weight { group: CgroupId(1), weight: 7 }]), "0A 1.011000-");
    // The first limit, and the removal of the last one, rewrite the kernel's code.
    let (first, second) = (limit(1, Some(9)), limit(2, Some(9)));
    assert_eq!(turns(vec![first.clone()]), "0A 2.111000-");
    assert_eq!(turns(vec![first.clone(), limit(1, Some(8))]), "0A 2.222000-");
    assert_eq!(turns(vec![first.clone(), second.clone()]), "0A 2.222000-");
    assert_eq!(turns(vec![first.clone(), second, limit(1, None)]), "0A 2.333000-");
    assert_eq!(turns(vec![first, limit(1, None)]), "0A 3.222000-");
}

/// A task in groups pays for their queues when it wakes; a reschedule that changes nothing costs
/// the task that goes on; a CPU that was idle at a tick switches later.
#[test]
fn queues_picks_and_stopped_ticks_take_time() {
    let sleeps = |attr| task("a", attr, ProgramBuilder::new().run(MS).sleep(MS).run(MS).build());
    let turns = |tasks, costs| timeline(&run("linux-6.12", &workload(tasks), costs, 9 * MS));
    let costs = Costs { block_entity_ns: 6 * US, ..Costs::ZERO };
    assert_eq!(turns(vec![sleeps(nice(0))], costs), "0A 1- 2A 3-");
    assert_eq!(turns(vec![sleeps(inside(nice(0)))], costs), "0A 1- 2A 3.006000-");
    // A move to another group asks for a pick; a task that is alone goes on.
    let fifo = policy(Policy::Fifo, 5);
    let program = ProgramBuilder::new().run(MS).op(set(inside(fifo))).run(MS).build();
    let costs = Costs { repick_ns: 9 * US, ..Costs::ZERO };
    assert_eq!(turns(vec![task("a", fifo, program)], costs), "0A 2.009000-");
    // A yield is no request, and leaves a FIFO task on its queue.
    let yields = |attr| task("a", attr, ProgramBuilder::new().run(MS).op(Op::Yield).build());
    assert_eq!(turns(vec![yields(fifo)], costs), "0A 1-");
    let costs = Costs { block_switch_ns: 8 * US, ..Costs::ZERO };
    assert_eq!(turns(vec![yields(fifo), yields(fifo)], costs), "0A 1B 2A 2B 2.008000-");
    let found = turns(vec![yields(nice(0)), yields(nice(0))], costs);
    assert!(found.starts_with("0A 1B 2.008000A"), "{found}");
    let late = task("a", nice(0), ProgramBuilder::new().run(MS).sleep(4 * MS).run(MS).build());
    let costs = Costs { idle_tick_ns: 7 * US, wakeup_switch_ns: 15 * US, ..Costs::ZERO };
    let found = turns(vec![late], costs);
    assert!(found.starts_with("0.015000A 1.015000- 5.022000A"), "{found}");
    let found = turns(vec![sleeps(nice(0))], costs);
    assert!(found.starts_with("0.015000A 1.015000- 2.015000A"), "{found}");
}

/// A message is copied before its reader wakes.
#[test]
fn a_message_is_copied_before_the_wake_up() {
    let (channel, bytes) = (ObjectId(0), Amount::Constant(4096));
    let reads = ProgramBuilder::new().op(Op::Receive { channel, bytes }).run(MS).build();
    let sends = ProgramBuilder::new().run(2 * MS).op(Op::Send { channel, bytes }).build();
    let mut workload =
        workload(vec![task("a", policy(Policy::Fifo, 1), reads), task("b", nice(0), sends)]);
    workload.add_object(ObjectSpec::new("p", ObjectKind::PIPE));
    let costs = Costs { block_ns: US, pipe_ns: 10 * US, ..Costs::ZERO };
    let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
    case.machine = Machine { costs, ..case.machine };
    case.machine.device.copy_kib_ns = 8 * US;
    let found = timeline(&case.run().unwrap_or_else(|error| panic!("{error}")));
    // 11 us until the reader sleeps; 10 us and 32 us of the copy before it wakes, and its own copy.
    assert_eq!(found, "0A 0.011000B 2.053000A 3.085000B 3.085000-");
}

/// A moves to a group of little weight and loses the CPU half way. B cannot move until A runs again
/// and has moved, as in guests of 6.1 to 7.2; without the lock it does at once.
#[test]
fn a_move_waits_for_the_end_of_another() {
    let moves = |attr: SchedAttr, ns| {
        ProgramBuilder::new().run(ns).op(set(inside(attr))).run(200 * US).build()
    };
    let late = TaskSpec {
        release_ns: Amount::Constant(3 * MS),
        ..task("b", nice(-10), moves(nice(-10), 300 * US))
    };
    let found = |group_move_ns| {
        let tasks = vec![
            task("a", nice(0), moves(nice(0), 2 * MS)),
            late.clone(),
            task("hog", nice(0), endless()),
        ];
        let mut workload = workload(tasks);
        workload.cgroups[1].weight = 1;
        let costs = Costs {
            group_move_ns,
            group_lock_ns: group_move_ns / 4,
            group_move_after_ns: 10 * US,
            wakeup_switch_ns: 15 * US,
            ..Costs::ZERO
        };
        let run = run("linux-6.12", &workload, costs, 30 * MS);
        let waits =
            run.trace.events.iter().any(|event| {
                matches!(event.kind, EventKind::Switch { out: SwitchOut::BlockedIo, .. })
            });
        (waits, timeline(&run))
    };
    let (waits, turns) = found(80 * US);
    assert!(waits, "{turns}");
    let (waits, turns) = found(0);
    assert!(!waits, "{turns}");
}
