// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies between a timer and the switch to the task that it wakes (`timer_wakeup_ns`,
//! `wakeup_switch_ns`), and between a call that blocks and the switch (`block_ns`).

use crate::common;

use common::workloads::{burst, bursts, endless, nice, policy, task};
use common::{Case, MS, Run, timeline};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Costs, CpuId, CpuMask, CpuMax, EventKind, Machine, Nanos,
    ObjectId, ObjectKind, ObjectSpec, Op, Policy, Preempt, SchedAttr, TaskId, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

const DELAY: Nanos = 27_000;
const SWITCH: Nanos = 15_000;

fn run(tasks: Vec<TaskSpec>, costs: Costs, until_ns: Nanos) -> Run {
    let workload = Workload::new("costs", tasks);
    let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
    case.machine = Machine { costs, ..case.machine };
    case.until_ns = Some(until_ns);
    case.run().unwrap_or_else(|error| panic!("{error}"))
}

fn costs() -> Costs {
    Costs { timer_delay_ns: DELAY, wakeup_switch_ns: SWITCH, ..Costs::ZERO }
}

/// A real-time task that runs 1 ms and sleeps 2 ms, twice; it is named first.
fn sleeper() -> TaskSpec {
    task("sleeper", policy(Policy::Fifo, 1), bursts(2, MS, 2 * MS))
}

fn wakeups(run: &Run) -> Vec<Nanos> {
    let is_it = |kind: &EventKind| matches!(kind, EventKind::Wakeup { .. });
    let events = run.trace.events.iter().filter(|event| is_it(&event.kind));
    events.map(|event| event.time_ns).collect()
}

/// The switch comes when the delay of the timer is over, the wake-up before it, and the task that
/// runs meanwhile does no work in between.
#[test]
fn a_woken_task_is_runnable_before_it_runs() {
    let hog = || task("hog", nice(0), burst(6 * MS));
    let found = run(vec![sleeper(), hog()], costs(), 9 * MS);
    // The first start is a wake-up as well.
    let turns = timeline(&found);
    assert!(turns.starts_with("0.015000A 1.015000B 3.042000A 4.042000B"), "{turns}");
    assert!(turns.ends_with("8.045000-"), "{turns}");
    assert_eq!(wakeups(&found)[0], 3 * MS + DELAY);
    // The same switches without the cost, but the wake-up and the switch are one, and the hog has
    // worked until then.
    let at_once = Costs { wakeup_switch_ns: 0, ..costs() };
    let found = run(vec![sleeper(), hog()], at_once, 9 * MS);
    assert_eq!(wakeups(&found)[0], 3 * MS + DELAY);
    assert!(timeline(&found).starts_with("0A 1B 3.027000A 4.027000B"), "{}", timeline(&found));
}

/// A task that wakes several in one call, the first of which is more important, is switched out
/// when it has woken all of them: 30 to 32 us after the first of three in guests of 6.1 and 6.12,
/// 11 to 13 us after a single one.
#[test]
fn a_call_wakes_all_before_the_switch() {
    let object = ObjectId(0);
    let late_ns = |parties: u32| {
        let waits = ProgramBuilder::new().op(Op::Barrier { object }).run(MS).build();
        let last = ProgramBuilder::new().run(MS).op(Op::Barrier { object }).run(MS).build();
        let mut tasks = vec![task("first", policy(Policy::Fifo, 2), waits.clone())];
        let waiters = TaskSpec { instances: parties - 2, ..task("b", nice(0), waits) };
        tasks.extend((parties > 2).then_some(waiters));
        tasks.push(task("last", nice(0), last));
        let mut workload = Workload::new("wake-ups", tasks);
        let kind = ObjectKind::Barrier { parties };
        workload.objects.push(ObjectSpec { name: "b".into(), kind });
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        let costs = Costs { wakeup_ns: 10_000, wakeup_switch_ns: SWITCH, ..Costs::ZERO };
        case.machine = Machine { costs, preempt: Preempt::Voluntary, ..case.machine };
        case.until_ns = Some(4 * MS);
        let run = case.run().unwrap_or_else(|error| panic!("{error}"));
        let woken = wakeups(&run)[0];
        let turns = timeline(&run);
        let runs = turns.split(' ').filter_map(|turn| turn.strip_suffix('A')?.parse::<f64>().ok());
        let at = runs.map(|ms| (ms * 1e6).round() as Nanos).find(|at| *at >= woken);
        at.expect("it runs again") - woken
    };
    assert_eq!(late_ns(2), 10_000);
    assert_eq!(late_ns(4), 30_000);
}

#[test]
fn an_idle_cpu_switches_later_too() {
    let found = run(vec![sleeper()], costs(), 9 * MS);
    let turns = timeline(&found);
    assert!(turns.starts_with("0.015000A 1.015000- 3.042000A 4.042000-"), "{turns}");
    assert_eq!(wakeups(&found)[0], 3 * MS + DELAY);
}

#[test]
fn a_timer_takes_time_from_whoever_runs() {
    let end = |timer_wakeup_ns| {
        let idle = TaskSpec { ..task("idle", policy(Policy::Idle, 0), bursts(9, MS, MS)) };
        let first = task("hog", policy(Policy::Fifo, 1), burst(5 * MS));
        let costs = Costs { timer_wakeup_ns, ..Costs::ZERO };
        let late = TaskSpec { release_ns: schedlab_model::Amount::Constant(1_500_000), ..first };
        timeline(&run(vec![idle, late], costs, 8 * MS))
    };
    // The idle task sleeps from 1 to 2 ms, and wakes while the hog runs.
    assert_eq!(end(0), "0A 1- 1.500000B 6.500000A 7.500000-");
    assert_eq!(end(20_000), "0A 1- 1.500000B 6.520000A 7.520000-");
}

/// The time of a sleep passes on the way to the switch. A shorter one ends right after the switch.
#[test]
fn a_sleep_begins_before_the_switch() {
    let costs = Costs { block_ns: 17_000, ..Costs::ZERO };
    let sleeps = |ns| task("a", policy(Policy::Fifo, 1), bursts(2, MS, ns));
    let hog = task("hog", policy(Policy::Idle, 0), endless());
    let turns = |ns| timeline(&run(vec![sleeps(ns), hog.clone()], costs, 4 * MS));
    assert!(turns(MS).starts_with("0A 1.017000B 2A 3.017000B"), "{}", turns(MS));
    assert!(turns(10_000).starts_with("0A 1.017000B 1.017001A 2.034001B"), "{}", turns(10_000));
}

/// The task after one that blocks pays for its dequeue, one after a preempted task does not.
#[test]
fn the_next_task_pays_for_the_dequeue() {
    let costs = Costs { block_switch_ns: 9_000, ..Costs::ZERO };
    let sleeper = task("a", policy(Policy::Fifo, 1), bursts(2, MS, MS));
    let hog = task("hog", policy(Policy::Idle, 0), burst(2 * MS));
    let turns = timeline(&run(vec![sleeper, hog], costs, 9 * MS));
    assert_eq!(turns, "0A 1B 2A 3B 4A 4B 4.027000-");
}

/// The clock is read before the dequeue: B is charged for the time of A's sleep that follows, so C
/// is less far than B at the end of its first slice and goes on.
#[test]
fn the_next_task_is_charged_from_before_the_dequeue() {
    let turns = |block_ns| {
        let hogs = || task("hog", nice(0), endless());
        let sleeper = task("a", policy(Policy::Fifo, 1), bursts(2, 100_000, 100 * MS));
        let workload = Workload::new("costs", vec![sleeper, hogs(), hogs()]);
        let mut case = Case::new(&workload, find("linux-7.2").expect("it is registered"), 1);
        case.machine = Machine { costs: Costs { block_ns, ..Costs::ZERO }, ..case.machine };
        case.until_ns = Some(3 * MS);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(turns(0), "0A 0.100000B 0.800000C 1.500000B 2.200000C 2.900000B");
    assert_eq!(turns(17_000), "0A 0.117000B 0.817000C");
}

/// A task that wakes a fair one pays for its queue, and a fair waker for the comparison.
#[test]
fn waking_a_fair_task_costs_its_waker_more() {
    let object = ObjectId(0);
    let end = |waits: SchedAttr, posts: SchedAttr| {
        let program = ProgramBuilder::new().op(Op::SemWait { object }).build();
        let post = ProgramBuilder::new().run(MS).op(Op::SemPost { object }).run(MS).build();
        let tasks = vec![task("waits", waits, program), task("posts", posts, post)];
        let mut workload = Workload::new("costs", tasks);
        workload.add_object(ObjectSpec::new("s", ObjectKind::Semaphore { initial: 0 }));
        let costs = Costs { wakeup_fair_ns: 7_000, preempt_check_ns: 1_000, ..Costs::ZERO };
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        case.machine = Machine { costs, ..case.machine };
        case.run().unwrap_or_else(|error| panic!("{error}")).outcome.end_ns
    };
    let fifo = || policy(Policy::Fifo, 1);
    assert_eq!(end(policy(Policy::Fifo, 2), fifo()), 2 * MS);
    assert_eq!(end(policy(Policy::Fifo, 2), nice(0)), 2 * MS);
    assert_eq!(end(nice(0), nice(0)), 2 * MS + 7_500);
}

/// A task that yields uses the time up, but no longer delays the others.
#[test]
fn a_yield_costs_its_caller() {
    let mut program = ProgramBuilder::new();
    program.run(MS).op(Op::Yield).run(MS);
    let costs = Costs { block_ns: 17_000, ..Costs::ZERO };
    let found = run(vec![task("a", nice(0), program.build())], costs, 4 * MS);
    assert_eq!(timeline(&found), "0A 2.017000-");
}

/// What a call that blocks takes passes before its task waits, not when it runs again.
#[test]
fn a_wait_takes_its_time_before_the_switch() {
    let object = ObjectId(0);
    let waits = ProgramBuilder::new().op(Op::SemWait { object }).run(MS).build();
    let posts = ProgramBuilder::new().run(2 * MS).op(Op::SemPost { object }).run(MS).build();
    let tasks = vec![task("a", policy(Policy::Fifo, 1), waits), task("b", nice(0), posts)];
    let mut workload = Workload::new("costs", tasks);
    workload.add_object(ObjectSpec::new("s", ObjectKind::Semaphore { initial: 0 }));
    let turns = |block_ns| {
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        let costs = Costs { block_ns, syscall_ns: 7_000, ..Costs::ZERO };
        case.machine = Machine { costs, ..case.machine };
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    let paid = turns(17_000);
    // The call that wakes it takes its time first, too.
    assert!(paid.starts_with("0A 0.024000B 2.031000A 3.031000B 4.031000-"), "{paid}");
    // Without such costs the call is paid when the task runs again.
    assert!(turns(0).starts_with("0A 0B 2A 3.007000B"), "{}", turns(0));
}

/// An exit wakes the parent before its last part, which no wake-up of a fair task interrupts.
#[test]
fn an_exit_goes_on_after_the_parent_is_awake() {
    let mut parent = ProgramBuilder::new();
    parent.op(Op::Fork { task: 1 }).op(Op::JoinAll).run(MS);
    let child = TaskSpec { instances: 0, ..task("child", nice(0), burst(2 * MS)) };
    let tasks = vec![task("parent", nice(0), parent.build()), child];
    let workload = Workload::new("costs", tasks);
    let run = |scheduler: &str, preempt: Preempt, wakeup_switch_ns: Nanos| {
        let costs =
            Costs { exit_ns: 300_000, exit_after_ns: 100_000, wakeup_switch_ns, ..Costs::ZERO };
        let mut case = Case::new(&workload, find(scheduler).expect("it is registered"), 1);
        case.machine = Machine { costs, preempt, ..case.machine };
        case.run().unwrap_or_else(|error| panic!("{error}"))
    };
    for (scheduler, preempt) in [
        ("linux-6.12", Preempt::Voluntary),
        ("linux-6.12", Preempt::None),
        ("linux-6.18", Preempt::Lazy),
    ] {
        let found = run(scheduler, preempt, 0);
        assert_eq!(wakeups(&found), [2_200_000]);
        assert!(timeline(&found).contains("2.300000A"), "{}", timeline(&found));
        // It ends with its last turn, though the parent asked for the CPU before.
        for found in [found, run(scheduler, preempt, 15_000)] {
            let is_turn = |event: &&schedlab_model::Event| {
                let to =
                    |next: Option<schedlab_model::TaskId>| next.is_some_and(|task| task.0 == 1);
                matches!(event.kind, schedlab_model::EventKind::Switch { next, .. } if to(next))
            };
            let nr_turns = found.trace.events.iter().filter(is_turn).count();
            assert_eq!(nr_turns, 1, "{scheduler}: {}", timeline(&found));
        }
    }
}

/// A wake-up that preempts has updated the clock, and the pick leaves it as it is: the time between
/// the two is charged to the woken task. So a SCHED_IDLE hog is not ahead of it, and gets the CPU
/// at the first tick at which the slice of the other is over, as in guests of 6.12. Where the
/// request is lazy (6.18, 7.2), the clock goes on: the hog is charged, and the other goes on.
#[test]
fn a_wake_up_stops_the_clock_up_to_the_switch() {
    let program = ProgramBuilder::new().run(MS).sleep(9 * MS).run(MS).build();
    let late = TaskSpec {
        release_ns: schedlab_model::Amount::Constant(35_100_000),
        ..task("a", nice(0), program)
    };
    let hog = task("hog", policy(Policy::Idle, 0), endless());
    let workload = Workload::new("clock", vec![hog, late]);
    let turns = |scheduler: &str, preempt| {
        let mut case = Case::new(&workload, find(scheduler).expect("it is registered"), 1);
        let costs = Costs { wakeup_switch_ns: SWITCH, ..Costs::ZERO };
        case.machine = Machine { costs, preempt, ..case.machine };
        case.until_ns = Some(41 * MS);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    let found = turns("linux-6.12", Preempt::Voluntary);
    assert_eq!(found, "0.015000A 35.115000B 36A 40B 40.115000A");
    for scheduler in ["linux-6.18", "linux-7.2"] {
        let found = turns(scheduler, Preempt::Lazy);
        assert_eq!(found, "0.015000A 35.115000B 36.115000A", "{scheduler}");
    }
}

/// A wake-up of a task of another CPU reaches the switch as late as one by a timer there. If that
/// CPU is busy, the waker queues the task itself, which takes it longer.
#[test]
fn a_wake_up_on_another_cpu_takes_a_message() {
    let object = ObjectId(0);
    let on = |cpu, task: TaskSpec| {
        let affinity = Some(CpuMask::only(CpuId(cpu)));
        TaskSpec { attr: SchedAttr { affinity, ..task.attr }, ..task }
    };
    let runs = |others: Vec<TaskSpec>| {
        let posts = ProgramBuilder::new().run(MS).op(Op::SemPost { object }).run(MS).build();
        let waits = ProgramBuilder::new().op(Op::SemWait { object }).run(MS).build();
        let mut tasks = vec![on(0, task("a", nice(0), posts)), on(1, task("b", nice(0), waits))];
        tasks.extend(others);
        let mut workload = Workload::new("costs", tasks);
        workload.add_object(ObjectSpec::new("s", ObjectKind::Semaphore { initial: 0 }));
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        let costs = Costs { wakeup_ns: 7_000, wakeup_switch_ns: SWITCH, ..Costs::ZERO };
        case.machine = Machine { costs, ..Machine::flat(2) };
        case.until_ns = Some(4 * MS);
        let found = case.run().unwrap_or_else(|error| panic!("{error}"));
        let at = |kind: &dyn Fn(&EventKind) -> bool| {
            found.trace.events.iter().rfind(|event| kind(&event.kind)).unwrap().time_ns
        };
        let starts =
            |kind: &EventKind| matches!(kind, EventKind::Switch { next: Some(TaskId(1)), .. });
        let ends =
            |kind: &EventKind| matches!(kind, EventKind::Switch { prev: Some(TaskId(0)), .. });
        (at(&starts), at(&ends))
    };
    // It runs from 15 us on, and the wake-up takes it 7 us.
    let posted = SWITCH + MS;
    assert_eq!(runs(vec![]), (posted + SWITCH, posted + MS + 7_000));
    let hog = on(1, task("hog", policy(Policy::Idle, 0), endless()));
    assert_eq!(runs(vec![hog]), (posted + SWITCH, posted + MS + 21_000));
}

/// The group has used its quota at the tick of 8 ms. A timer gives it another one at 20 ms, while
/// the CPU is idle: from there on all is as after a wake-up.
#[test]
fn a_new_quota_on_an_idle_cpu_takes_the_way_of_a_wakeup() {
    let attr = SchedAttr { cgroup: CgroupId(1), ..nice(0) };
    let mut workload = Workload::new("quota", vec![task("limited", attr, endless())]);
    let cpu_max = Some(CpuMax { quota_ns: 4 * MS, period_ns: 20 * MS, burst_ns: 0 });
    workload.cgroups.push(CgroupSpec { cpu_max, ..CgroupSpec::new("/g", CgroupId(0), 100) });
    let mut case = Case::new(&workload, find("linux-6.1").expect("it is registered"), 1);
    case.machine = Machine { costs: costs(), aligns_periods: true, ..case.machine };
    case.until_ns = Some(21 * MS);
    let turns = timeline(&case.run().unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(turns, "0.015000A 8.025000- 20.042000A");
}

/// A timer wakes a real-time task 4 us earlier on a busy CPU of guests than on an idle one.
#[test]
fn a_real_time_task_wakes_earlier_on_a_busy_cpu() {
    let costs = Costs { timer_rt_ns: 4_000, ..costs() };
    let found = run(vec![sleeper(), task("hog", nice(0), burst(6 * MS))], costs, 9 * MS);
    let turns = timeline(&found);
    assert!(turns.starts_with("0.015000A 1.015000B 3.038000A 4.038000B"), "{turns}");
    let turns = timeline(&run(vec![sleeper()], costs, 9 * MS));
    assert!(turns.starts_with("0.015000A 1.015000- 3.042000A"), "{turns}");
}

/// The first fair task on a CPU takes longer to wake, before its switch if the CPU is idle.
#[test]
fn the_wake_up_of_the_only_fair_task_takes_longer() {
    let costs = Costs { timer_wakeup_ns: 12_000, first_fair_ns: 9_000, ..costs() };
    let late = |name, attr, ms| TaskSpec {
        release_ns: Amount::Constant(ms * MS),
        ..task(name, attr, burst(MS))
    };
    let found =
        run(vec![late("fair", nice(0), 1), late("rt", policy(Policy::Fifo, 1), 5)], costs, 9 * MS);
    let first = timeline(&found);
    assert!(first.starts_with("1.051000A 2.051000- 5.042000B"), "{first}");
    // While a real-time task runs, that one pays for it.
    let hog = || task("hog", policy(Policy::Fifo, 1), burst(3 * MS));
    let fair = vec![hog(), late("a", nice(0), 1), late("b", nice(0), 2)];
    let found = run(fair, costs, 9 * MS);
    let end = Costs { first_fair_ns: 0, ..costs };
    let without = run(vec![hog(), late("a", nice(0), 1), late("b", nice(0), 2)], end, 9 * MS);
    let first_turn = |run: &Run| {
        run.trace
            .events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::Switch { .. }))
            .nth(1)
            .map(|event| event.time_ns)
    };
    assert_eq!(first_turn(&found), first_turn(&without).map(|at| at + 9_000));
}

/// Timers that expire together are handled one after another in one interrupt: in a guest of 6.12
/// the switch to the first of 2, 4 and 8 FIFO tasks comes 8.4 us later for each further task. The
/// clock goes on meanwhile, so the second wake-up finds that the slice of the running task is over,
/// even if only SCHED_BATCH tasks wake, which do not preempt.
#[test]
fn one_interrupt_wakes_several_tasks_one_after_another() {
    const NEXT: Nanos = 8_500;
    let costs = Costs { timer_wakeup_ns: 12_000, timer_next_ns: NEXT, ..costs() };
    let first_turn = |policy: SchedAttr, nr: u32| {
        let late = TaskSpec { instances: nr, ..task("late", policy, burst(MS)) };
        let late = TaskSpec { release_ns: Amount::Constant(5 * MS), ..late };
        let found = run(vec![task("hog", nice(0), burst(20 * MS)), late], costs, 12 * MS);
        let is_switch = |kind: &EventKind| matches!(kind, EventKind::Switch { .. });
        let mut switches = found.trace.events.iter().filter(|event| is_switch(&event.kind));
        switches.nth(1).expect("a second task runs").time_ns
    };
    let alone = 5 * MS + DELAY + SWITCH;
    for nr in 1..5 {
        let turn = first_turn(policy(Policy::Fifo, 1), nr);
        assert_eq!(turn, alone + NEXT * Nanos::from(nr - 1), "{nr} tasks");
    }
    let batch = || policy(Policy::Batch, 0);
    assert!(first_turn(batch(), 1) > 8 * MS, "it waits for the tick");
    assert_eq!(first_turn(batch(), 2), alone + NEXT, "the second one finds the slice over");
}

/// A task of SCHED_BATCH that a timer wakes is compared with none, because it does not preempt.
#[test]
fn a_batch_task_is_not_compared_with_the_running_one() {
    let exit_ns = |preempt_check_ns| {
        let late = task("batch", policy(Policy::Batch, 0), burst(MS));
        let late = TaskSpec { release_ns: Amount::Constant(MS), ..late };
        let costs = Costs { timer_wakeup_ns: 12_000, preempt_check_ns, ..costs() };
        let found = run(vec![task("hog", nice(0), burst(3 * MS)), late], costs, 9 * MS);
        let exits = |kind: &EventKind| matches!(kind, EventKind::Exit { task: TaskId(0) });
        let exit = found.trace.events.iter().find(|event| exits(&event.kind));
        exit.expect("the hog exits").time_ns
    };
    assert_eq!(exit_ns(0), 3 * MS + SWITCH + 12_000);
    assert_eq!(exit_ns(5_000), exit_ns(0));
}

/// When a task of FIFO runs that sleeps until `at_us` after its first release, while a fair task is
/// busy: us after its timer's expiry.
fn after_expiry_us(at_us: u64) -> u64 {
    let mode = schedlab_model::TimerMode::Absolute;
    let period_ns = at_us * 1_000;
    let period = Amount::Constant(period_ns);
    let timer = Op::Timer { timer: 0, period, mode };
    let program = ProgramBuilder::new().op(timer).run(MS / 10).build();
    let mut sleeper = task("sleeper", policy(Policy::Fifo, 1), program);
    sleeper.program.nr_timers = 1;
    let costs = Costs {
        timer_absolute_ns: 6_000,
        interrupt_entry_ns: 4_000,
        timer_next_ns: 8_000,
        timer_delay_ns: 10_000,
        wakeup_switch_ns: 10_000,
        tick_ns: 20_000,
        ..Costs::ZERO
    };
    let found = run(vec![sleeper, task("hog", nice(0), endless())], costs, 12 * MS);
    let is_late = |time_ns: Nanos| time_ns > period_ns;
    let switches = found.trace.events.iter().filter(|event| match event.kind {
        EventKind::Switch { next, .. } => next == Some(TaskId(0)),
        _ => false,
    });
    let mut starts = switches.map(|event| event.time_ns).filter(|time_ns| is_late(*time_ns));
    (starts.next().expect("it runs again") - period_ns) / 1_000
}

/// A CPU handles one interrupt at a time. The cases are those of sleepers in guests of 6.1 to 7.2.
#[test]
fn a_tick_and_a_timer_wait_for_each_other() {
    // Far from a tick: the delay, and what a point in time takes in addition.
    assert_eq!(after_expiry_us(6_000), 16);
    // The tick of 8 ms has just begun, and goes on for 16 us without its entry.
    assert_eq!(after_expiry_us(8_000), 16 + 14);
    assert_eq!(after_expiry_us(8_010), 16 + 4);
    assert_eq!(after_expiry_us(8_014), 16);
    // It comes while the timer's interrupt goes on, and the switch waits for it.
    assert_eq!(after_expiry_us(7_990), 16 + 16);
    assert_eq!(after_expiry_us(7_980), 16);
}

/// When a second task of FIFO runs whose timer expires `after_us` after a first one has gone to
/// sleep, in a call of `call_us`: us after that. A fair task is busy meanwhile.
fn after_switch_us(call_us: u64, after_us: i64) -> u64 {
    let block_ns = call_us * 1_000;
    let slept_ns = MS + block_ns;
    let first = ProgramBuilder::new().run(MS).sleep(5 * MS).build();
    let second = ProgramBuilder::new().run(MS).build();
    let release_ns = Amount::Constant((slept_ns as i64 + after_us * 1_000) as Nanos);
    let second = TaskSpec { release_ns, ..task("second", policy(Policy::Fifo, 1), second) };
    let costs = Costs { switch_closed_ns: 15_000, block_ns, ..Costs::ZERO };
    let tasks = vec![
        task("first", policy(Policy::Fifo, 1), first),
        task("hog", nice(0), endless()),
        second,
    ];
    let found = run(tasks, costs, 4 * MS);
    let is_second = |event: &&schedlab_model::Event| {
        matches!(event.kind, EventKind::Switch { next: Some(TaskId(2)), .. })
    };
    let start = found.trace.events.iter().find(is_second).expect("it runs");
    (start.time_ns - slept_ns) / 1_000
}

/// Interrupts are disabled around a switch. In guests of 7.2 a timer that expires then wakes its
/// task 16 us after the switch; one that expires before has its task picked by that switch.
#[test]
fn a_timer_waits_until_a_switch_is_over() {
    assert_eq!(after_switch_us(0, -1), 0);
    assert_eq!(after_switch_us(0, 1), 15);
    assert_eq!(after_switch_us(0, 14), 15);
    assert_eq!(after_switch_us(0, 15), 15);
    assert_eq!(after_switch_us(0, 16), 16);
    // The same holds for the last part of the call, of half that length.
    assert_eq!(after_switch_us(10, -9), 0);
    assert_eq!(after_switch_us(10, -7), 15);
    assert_eq!(after_switch_us(10, -1), 15);
}

/// A wake-up that asks for a lazy switch leaves the clock of the CPU running, and so does a second
/// one by the same timer interrupt. The running task is charged until the switch. In guests of 7.2
/// that makes its next turn 20 us shorter.
#[test]
fn a_second_lazy_wakeup_does_not_stop_the_clock() {
    let costs = Costs {
        timer_next_ns: 8_000,
        timer_delay_ns: 10_000,
        wakeup_switch_ns: SWITCH,
        ..Costs::ZERO
    };
    let turns = |nr: u32| {
        let late = TaskSpec {
            release_ns: Amount::Constant(2 * MS),
            instances: nr,
            ..task("late", nice(0), endless())
        };
        let workload = Workload::new("lazy", vec![task("hog", nice(0), endless()), late]);
        let mut case = Case::new(&workload, find("linux-7.2").expect("it is registered"), 1);
        case.machine =
            Machine { costs, preempt: Preempt::Lazy, set_up_ns: 1_000 * MS, ..case.machine };
        case.until_ns = Some(5 * MS);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    // The hog has used 15 us of its slice, and a timer is 10 us late: its turn takes 695 us.
    assert_eq!(turns(1), "0.015000A 2.025000B 2.735000A 3.430000B 4.140000A 4.850000B");
    assert_eq!(turns(2), "0.015000A 2.025000B 2.735000C 3.445000A 4.140000B 4.850000C");
}

/// An update of the load average that crosses one of its periods takes longer, so that slices which
/// are equal otherwise differ. In guests of 7.2 slices of hogs take 722.7, 724.0 or 725.3 us.
#[test]
fn a_period_of_the_load_average_makes_a_slice_longer() {
    let found = |load_period_ns| {
        let hogs = TaskSpec { instances: 2, ..task("hog", nice(0), endless()) };
        let workload = Workload::new("period", vec![hogs]);
        let mut case = Case::new(&workload, find("linux-7.2").expect("it is registered"), 1);
        let costs =
            Costs { hrtick_resched_ns: 9_000, hrtick_ns: 1_000, load_period_ns, ..Costs::ZERO };
        case.machine = Machine { costs, ..case.machine };
        case.until_ns = Some(2 * MS);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    // The first period ends after 1.05 ms (2^20 ns): in the second slice.
    assert_eq!(found(0), "0A 0.710000B 1.420000A");
    assert_eq!(found(1_300), "0A 0.710000B 1.421300A");
}

/// Timers that expire together shortly before a tick come one after another, and the tick last.
#[test]
fn a_tick_waits_for_all_timers_of_an_interrupt() {
    let costs = Costs {
        interrupt_entry_ns: 4_000,
        timer_next_ns: 10_000,
        timer_delay_ns: 10_000,
        wakeup_switch_ns: 10_000,
        timer_wakeup_ns: 10_000,
        tick_ns: 20_000,
        ..Costs::ZERO
    };
    let late = |rt_priority| TaskSpec {
        release_ns: Amount::Constant(3_990_000),
        ..task("late", policy(Policy::Fifo, rt_priority), burst(MS))
    };
    let tasks = vec![late(1), late(2), late(3), task("hog", nice(0), endless())];
    let found = run(tasks, costs, 12 * MS);
    let released = found.trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Fork { task, .. } if task.0 > 0 => Some(event.time_ns / 1_000),
        _ => None,
    });
    assert_eq!(released.collect::<Vec<_>>(), [4_000, 4_010, 4_020]);
    let first = found.trace.events.iter().find_map(|event| match event.kind {
        EventKind::Switch { next: Some(TaskId(3)), .. } => Some(event.time_ns / 1_000),
        _ => None,
    });
    // The last wake-up takes 10 us, the tick 16 without its entry, and the way to the switch 10.
    assert_eq!(first, Some(4_020 + 10 + 16));
}

/// Costs of ticks and switches on a machine whose kernel reads the clock this long before a switch.
fn early_clock(clock_lead_ns: Nanos) -> Costs {
    let tick_ns = 20_000;
    let wakeup_switch_ns = 10_000;
    Costs { tick_ns, tick_resched_ns: tick_ns, wakeup_switch_ns, clock_lead_ns, ..Costs::ZERO }
}

/// A wake-up reads the clock before it places the task: a running SCHED_IDLE task has been charged
/// up to then, and is eligible again as soon as the woken one has run for longer than nothing.
#[test]
fn a_wakeup_places_a_task_where_the_running_one_is() {
    let turns = |clock_lead_ns| {
        let costs = early_clock(clock_lead_ns);
        let late = TaskSpec {
            release_ns: Amount::Constant(3_600_000),
            ..task("late", SchedAttr { slice_ns: Some(100_000), ..nice(0) }, endless())
        };
        let idle = SchedAttr { policy: Policy::Idle, ..SchedAttr::default() };
        let tasks = vec![task("idle", idle, endless()), late];
        timeline(&run(tasks, costs, 5 * MS))
    };
    let expected = "0.010000A 3.610000B 4.020000A";
    assert_eq!([turns(0), turns(15_000)], [expected, expected]);
}

/// The wake-up of a SCHED_BATCH task that is still queued charges nobody: neither is it placed, nor
/// compared. So the quota of its group, 1 ms of each, is found used up only at the next tick, and
/// the debt takes three periods (seed 8667 under 6.12).
#[test]
fn a_batch_task_that_is_still_queued_charges_nobody() {
    let turns = |clock_lead_ns| {
        let costs = early_clock(clock_lead_ns);
        let batch = SchedAttr { slice_ns: Some(100_000), ..policy(Policy::Batch, 0) };
        let attrs = [batch, SchedAttr { slice_ns: Some(100 * MS), ..nice(0) }];
        let [batch, hog] = attrs.map(|attr| SchedAttr { cgroup: CgroupId(1), ..attr });
        let sleeper = task("sleeper", batch, bursts(3, 500_000, 1_425_000));
        let mut workload = Workload::new("quota", vec![sleeper, task("hog", hog, endless())]);
        let mut group = CgroupSpec::new("/g", CgroupId(0), 100);
        group.cpu_max = Some(CpuMax { quota_ns: MS, period_ns: MS, burst_ns: 0 });
        workload.cgroups.push(group);
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        case.machine = Machine { costs, aligns_periods: true, ..case.machine };
        case.until_ns = Some(9 * MS);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    let expected = "0.010000A 0.510000B 4.020000- 7.010000A";
    for lead_ns in [0, 15_000] {
        assert!(turns(lead_ns).starts_with(expected), "{}", turns(lead_ns));
    }
}

/// A fair task takes longer to sleep while another one waits.
#[test]
fn a_fair_task_takes_longer_to_leave_others() {
    let costs = Costs { block_ns: 3_000, block_fair_ns: 4_000, ..Costs::ZERO };
    let sleeper = || task("sleeper", nice(0), bursts(2, MS, 2 * MS));
    let alone = run(vec![sleeper()], costs, 5 * MS);
    assert_eq!(timeline(&alone), "0A 1.003000- 3A 4.003000-");
    let hog = task("hog", policy(Policy::Batch, 0), endless());
    let found = run(vec![sleeper(), hog], costs, 5 * MS);
    assert!(timeline(&found).starts_with("0A 1.007000B 3A"), "{}", timeline(&found));
}

/// The next task is charged for that time: at the tick, 2.993 ms after its switch, it has used up a
/// slice of 2.998 ms.
#[test]
fn the_next_task_is_charged_for_the_way_to_the_switch() {
    let turns = |block_ns, block_fair_ns| {
        let costs = Costs { block_ns, block_fair_ns, ..Costs::ZERO };
        let slice = SchedAttr { slice_ns: Some(2_998_000), ..nice(0) };
        let hog = || task("hog", slice, endless());
        let sleeper = task("sleeper", nice(0), bursts(1, MS, 20 * MS));
        timeline(&run(vec![sleeper, hog(), hog()], costs, 9 * MS))
    };
    for (block_ns, fair_ns) in [(3_000, 4_000), (7_000, 0)] {
        let found = turns(block_ns, fair_ns);
        assert!(found.starts_with("0A 1.007000B 4C"), "{found}");
    }
}

/// Two tasks of FIFO and a hog: a sleep is shorter while the other one waits, and the turn of that
/// one longer, if it has slept.
#[test]
fn a_pick_of_a_fair_task_takes_part_of_a_sleep() {
    let costs = Costs { block_ns: 8_000, pick_fair_ns: 3_000, ..Costs::ZERO };
    let fifo = || task("fifo", policy(Policy::Fifo, 1), bursts(2, MS, 1_500_000));
    let found = run(vec![fifo(), fifo(), task("hog", nice(0), endless())], costs, 8 * MS);
    assert!(
        timeline(&found).starts_with("0A 1.005000B 2.013000C 2.500000A"),
        "{}",
        timeline(&found)
    );
    let both = || task("fifo", policy(Policy::Fifo, 1), bursts(2, MS, 500_000));
    let found = run(vec![both(), both(), task("hog", nice(0), endless())], costs, 8 * MS);
    let ends = "4.026000A 4.029000C 4.521000B 4.521000C";
    assert_eq!(timeline(&found), format!("0A 1.005000B 2.010000A 3.018000B {ends}"));
}

/// One that was preempted is as late as a fair task: the sleep of the other one is not shorter.
#[test]
fn a_preempted_task_is_picked_as_late_as_a_fair_one() {
    let costs = Costs { block_ns: 8_000, pick_fair_ns: 3_000, ..Costs::ZERO };
    let low = task("low", policy(Policy::Fifo, 1), burst(3 * MS));
    let high = |late_ns| TaskSpec {
        release_ns: Amount::Constant(late_ns),
        ..task("high", policy(Policy::Fifo, 2), bursts(1, MS, MS))
    };
    let found = run(vec![low.clone(), high(MS)], costs, 8 * MS);
    assert_eq!(timeline(&found), "0A 1B 2.008000A 3B 3A 4.008000-");
    let found = run(vec![low, high(0)], costs, 8 * MS);
    assert_eq!(timeline(&found), "0B 1.005000A 2B 2A 4.005000-");
}

/// A timer wakes a task of FIFO while a fair one runs, in a group or not.
#[test]
fn a_preempted_task_of_a_group_leaves_later() {
    let costs = Costs {
        timer_wakeup_ns: 10_000,
        wakeup_switch_ns: 10_000,
        put_group_ns: 4_000,
        ..Costs::ZERO
    };
    let start = |hog: SchedAttr| {
        let late = TaskSpec {
            release_ns: Amount::Constant(MS),
            ..task("late", policy(Policy::Fifo, 1), burst(MS))
        };
        let mut workload = Workload::new("groups", vec![task("hog", hog, endless()), late]);
        workload.cgroups.push(CgroupSpec::new("/a", CgroupId(0), 100));
        workload.cgroups.push(CgroupSpec::new("/a/b", CgroupId(1), 100));
        let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
        case.machine = Machine { costs, ..case.machine };
        case.until_ns = Some(3 * MS);
        timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(start(nice(0)), "0.010000A 1.010000B 2.010000A");
    let grouped = SchedAttr { cgroup: CgroupId(1), ..nice(0) };
    assert_eq!(start(grouped), "0.010000A 1.014000B 2.014000A");
    let deeper = SchedAttr { cgroup: CgroupId(2), ..nice(0) };
    assert_eq!(start(deeper), "0.010000A 1.018000B 2.018000A");
}

/// When a task with `attr` that is released after 1 ms is runnable; `hog` runs until then, or
/// nothing.
fn released(attr: SchedAttr, hog: Option<SchedAttr>) -> Nanos {
    let costs = Costs {
        timer_delay_ns: 10_000,
        start_delay_ns: 4_000,
        start_entity_ns: 5_000,
        start_rt_ns: 6_000,
        ..Costs::ZERO
    };
    let late = TaskSpec { release_ns: Amount::Constant(MS), ..task("late", attr, burst(MS)) };
    let hogs = hog.map(|hog| task("hog", hog, endless()));
    let mut workload = Workload::new("late", std::iter::once(late).chain(hogs).collect());
    workload.cgroups.push(CgroupSpec::new("/a", CgroupId(0), 100));
    workload.cgroups.push(CgroupSpec::new("/a/b", CgroupId(1), 100));
    let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 1);
    case.machine = Machine { costs, ..case.machine };
    case.until_ns = Some(3 * MS);
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let mut forks = run.trace.events.iter().filter(|e| matches!(e.kind, EventKind::Fork { .. }));
    forks.next_back().expect("it is released").time_ns
}

/// The timer of a release takes longer than that of a sleep, and longer in groups. A real-time task
/// of a busy CPU is sooner.
#[test]
fn a_release_after_time_0_has_its_own_delay() {
    assert_eq!(released(nice(0), None), MS + 14_000);
    assert_eq!(released(nice(0), Some(nice(0))), MS + 14_000);
    let deep = SchedAttr { cgroup: CgroupId(2), ..nice(0) };
    assert_eq!(released(deep, Some(nice(0))), MS + 24_000);
    let fifo = policy(Policy::Fifo, 1);
    assert_eq!(released(fifo, None), MS + 14_000);
    assert_eq!(released(fifo, Some(nice(0))), MS + 8_000);
    let in_group = SchedAttr { cgroup: CgroupId(2), ..fifo };
    assert_eq!(released(in_group, Some(nice(0))), MS + 8_000);
}

#[test]
fn a_real_time_task_starts_sooner_on_an_idle_cpu() {
    let costs =
        Costs { idle_exit_ns: 9_000, idle_rt_ns: 3_000, wakeup_switch_ns: 1, ..Costs::ZERO };
    let end = |attr| timeline(&run(vec![task("t", attr, burst(MS))], costs, 3 * MS));
    assert_eq!(end(nice(0)), "0.000001A 1.009001-");
    assert_eq!(end(policy(Policy::Rr, 1)), "0.000001A 1.006001-");
}
