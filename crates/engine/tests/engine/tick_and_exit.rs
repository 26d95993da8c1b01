// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies between a tick and the switch that it asks for (`tick_resched_ns`), and between the
//! end of a program and that of its task (`exit_ns`).

use crate::common;

use common::workloads::{burst, endless, nice, policy, task};
use common::{Case, MS, Run, timeline};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Costs, DeadlineParams, EventKind, Machine, Nanos, Op, Policy,
    Preempt, SchedAttr, SwitchOut, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

const TICK: Nanos = 30_000;

fn run(scheduler: &str, tasks: Vec<TaskSpec>, costs: Costs, until_ns: Option<Nanos>) -> Run {
    let workload = Workload::new("costs", tasks);
    let mut case = Case::new(&workload, find(scheduler).expect("it is registered"), 1);
    case.machine = Machine { costs, ..case.machine };
    case.until_ns = until_ns;
    case.run().unwrap_or_else(|error| panic!("{error}"))
}

fn hogs(count: usize) -> Vec<TaskSpec> {
    vec![task("hog", nice(0), endless()); count]
}

/// Slots of 6 ms at ticks of 4: the second turn has 4 ms left. B's last 20 us of them are charged
/// behind the tick, so it goes on to the next one; A's first turn began with a tick, and its second
/// one is used up.
#[test]
fn a_turn_of_whole_ticks_is_not_used_up_at_the_last_one() {
    let at_once = Costs { tick_ns: TICK, ..Costs::ZERO };
    let later = Costs { tick_resched_ns: 20_000, ..at_once };
    let turns = |costs| timeline(&run("sd-0.48", hogs(2), costs, Some(31 * MS)));
    assert_eq!(turns(at_once), "0A 8B 16A 20B 24A");
    assert_eq!(turns(later), "0A 8.020000B 16.020000A 20.020000B 28.020000A");
}

/// Who asks between two ticks is answered at once; who asks in the meantime waits with the tick.
#[test]
fn only_what_a_tick_asks_for_waits_for_its_end() {
    let costs = Costs { tick_ns: TICK, tick_resched_ns: TICK, ..Costs::ZERO };
    let wakes = |at_us: Nanos| TaskSpec {
        release_ns: Amount::Constant(at_us * 1_000),
        ..task("late", nice(-20), burst(MS))
    };
    let turns = |at_us| {
        let tasks = [hogs(2), vec![wakes(at_us)]].concat();
        timeline(&run("sd-0.48", tasks, costs, Some(9_500_000)))
    };
    assert_eq!(turns(3_990), "0A 3.990000C 5.020000A 8.030000B");
    assert_eq!(turns(8_010), "0A 8.030000C 9.030000B");
}

/// Two hogs with slices of 0.7 ms follow a task of FIFO that runs for 3.305 ms. The tick at 4 ms
/// finds that the first one has used 0.695 ms since its switch, and 0.705 since the clock was read
/// with which its turn began.
#[test]
fn a_tick_charges_from_the_clock_that_the_switch_has_read() {
    let turns = |clock_lead_ns| {
        let first = task("first", policy(Policy::Fifo, 1), burst(3_305_000));
        let tasks = [vec![first], hogs(2)].concat();
        let costs = Costs { tick_ns: TICK, tick_resched_ns: 20_000, clock_lead_ns, ..Costs::ZERO };
        timeline(&run("linux-6.12", tasks, costs, Some(9 * MS)))
    };
    assert_eq!(turns(0), "0A 3.305000B 8.020000C");
    assert_eq!(turns(10_000), "0A 3.305000B 4.020000C 8.020000B");
}

/// Two hogs take turns. At 8 ms both have been charged 4 ms if the second one pays for the 20 us
/// after the tick. If the first one does, the second has had less, and goes on.
#[test]
fn who_follows_a_tick_pays_from_the_clock_of_the_pick() {
    let turns = |tick_lead_ns| {
        let costs = Costs { tick_ns: TICK, tick_resched_ns: 20_000, tick_lead_ns, ..Costs::ZERO };
        timeline(&run("linux-6.12", hogs(2), costs, Some(13 * MS)))
    };
    assert_eq!(turns(0), "0A 4.020000B 12.020000A");
    assert_eq!(turns(20_000), "0A 4.020000B 8.020000A 12.020000B");
}

fn deadline(runtime_ns: Nanos) -> SchedAttr {
    let deadline =
        DeadlineParams { runtime_ns, deadline_ns: 50 * MS, period_ns: 50 * MS, reclaim: false };
    SchedAttr { policy: Policy::Deadline, deadline, ..SchedAttr::default() }
}

/// A pick that comes to a fair task from one whose budget is over takes longer.
#[test]
fn a_fair_task_follows_a_budget_later() {
    let costs =
        Costs { tick_ns: TICK, tick_resched_ns: TICK, tick_pick_fair_ns: 5_000, ..Costs::ZERO };
    let turns = |next: SchedAttr| {
        let first = task("first", deadline(5 * MS), endless());
        let tasks = vec![first, task("next", next, endless())];
        timeline(&run("linux-6.12", tasks, costs, Some(9 * MS)))
    };
    assert_eq!(turns(nice(0)), "0A 8.035000B");
    assert_eq!(turns(policy(Policy::Fifo, 1)), "0A 8.030000B");
}

/// A budget that lacks 4 us at a tick is used up if its turn began 4 us before the switch.
#[test]
fn a_tick_charges_a_budget_from_before_the_switch() {
    let turns = |tick_budget_lead_ns| {
        let costs = Costs { tick_budget_lead_ns, ..Costs::ZERO };
        let tasks = vec![task("dl", deadline(4 * MS + 4_000), endless()), hogs(1).remove(0)];
        timeline(&run("linux-6.12", tasks, costs, Some(9 * MS)))
    };
    assert_eq!(turns(3_000), "0A 8B");
    assert_eq!(turns(4_000), "0A 4B");
}

#[test]
fn a_tick_takes_at_least_as_long() {
    let costs = Costs { tick_ns: 9, tick_resched_ns: 10, ..Costs::ZERO };
    let error = Machine { costs, ..Machine::flat(1) }.check().unwrap_err();
    assert!(error.contains("`tick_resched_ns` is 10, allowed are 0 to 9"), "{error}");
    let costs = Costs { tick_ns: 9, tick_resched_ns: 8, clock_lead_ns: 9, ..Costs::ZERO };
    let error = Machine { costs, ..Machine::flat(1) }.check().unwrap_err();
    assert!(error.contains("`clock_lead_ns` is 9, allowed are 0 to 8"), "{error}");
}

/// An exit is CPU time of the task that exits, which others may interrupt.
#[test]
fn an_exit_takes_time() {
    let costs = Costs { exit_ns: 3 * MS, ..Costs::ZERO };
    let tasks = || vec![task("short", nice(0), burst(2 * MS)); 2];
    assert_eq!(timeline(&run("fcfs", tasks(), costs, None)), "0A 5B 10-");
    assert_eq!(timeline(&run("sd-0.48", tasks(), costs, None)), "0A 5B 10-");
    let ten = vec![task("ten", nice(0), burst(6 * MS)); 2];
    let run = run("sd-0.48", ten, costs, None);
    assert_eq!(timeline(&run), "0A 8B 16A 17B 18-");
    // Until it is over the task is there, and it leaves its CPU only then.
    let events = &run.trace.events;
    let exits: Vec<Nanos> = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Exit { .. }))
        .map(|event| event.time_ns)
        .collect();
    assert_eq!(exits, [17 * MS, 18 * MS]);
    let gone = |event: &&schedlab_model::Event| {
        matches!(event.kind, EventKind::Switch { out: SwitchOut::Dead, .. })
    };
    assert_eq!(events.iter().filter(gone).count(), 2);
    assert_eq!(run.outcome.work_ns, 12 * MS);
}

/// In its exit a task leaves its autogroup (sched_move_task), goes to the tail of its priority and
/// asks for a reschedule. A kernel that preempts itself then runs the others first.
#[test]
fn an_exit_lets_others_of_its_priority_go_first() {
    let costs = Costs { exit_ns: 300_000, exit_after_ns: 100_000, ..Costs::ZERO };
    let turns = |scheduler: &str, preempt| {
        let task = task("short", policy(Policy::Fifo, 1), burst(2 * MS));
        let workload = Workload::new("exits", vec![task; 2]);
        let mut case = Case::new(&workload, find(scheduler).expect("it is registered"), 1);
        case.machine = Machine { costs, preempt, ..case.machine };
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    let split = "0A 2.200000B 4.400000A 4.500000B 4.600000-";
    for preempt in [Preempt::Full, Preempt::Lazy] {
        assert_eq!(turns("linux-6.18", preempt), split);
    }
    for preempt in [Preempt::None, Preempt::Voluntary] {
        assert_eq!(turns("linux-6.12", preempt), "0A 2.300000B 4.600000-");
    }
    // Not part of the rules of earlier kernels.
    assert_eq!(turns("linux-2.6.32", Preempt::Full), "0A 2.300000B 4.600000-");
}

/// A running task that moves to another group does the same.
#[test]
fn a_move_to_another_group_requests_a_reschedule() {
    let group = SchedAttr { cgroup: CgroupId(1), ..policy(Policy::Fifo, 1) };
    let moves = ProgramBuilder::new().run(MS).op(Op::SetAttr(Box::new(group))).run(MS).build();
    let tasks = vec![
        task("moves", policy(Policy::Fifo, 1), moves),
        task("stays", policy(Policy::Fifo, 1), burst(MS)),
    ];
    let mut workload = Workload::new("moves", tasks);
    workload.cgroups.push(CgroupSpec::new("/a", CgroupId(0), 100));
    let turns = |scheduler: &str| {
        let case = Case::new(&workload, find(scheduler).expect("it is registered"), 1);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    for scheduler in ["linux-6.1", "linux-6.12", "linux-7.2"] {
        assert_eq!(turns(scheduler), "0A 1B 2A 3-", "{scheduler}");
    }
    assert_eq!(turns("linux-2.6.32"), "0A 2B 3-");
}

/// A tick of a fair task goes through the levels of groups, one of a real-time task takes a time
/// of its own.
#[test]
fn a_tick_takes_longer_in_a_group() {
    let costs = Costs { tick_ns: 20_000, tick_entity_ns: 5_000, tick_rt_ns: 3_000, ..Costs::ZERO };
    let end = |attr: SchedAttr| {
        let mut workload = Workload::new("ticks", vec![task("hog", attr, burst(10 * MS))]);
        workload.cgroups.push(CgroupSpec::new("/a", CgroupId(0), 100));
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        case.machine = Machine { costs, ..case.machine };
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(end(policy(Policy::Fifo, 1)), "0A 10.046000-");
    assert_eq!(end(nice(0)), "0A 10.050000-");
    assert_eq!(end(SchedAttr { cgroup: CgroupId(1), ..nice(0) }), "0A 10.060000-");
    assert_eq!(end(policy(Policy::Rr, 1)), "0A 10.046000-");
}
