// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's parts, each against figures worked out by hand: hardware threads, preemption
//! models, interrupts.

use crate::common;

use common::{Case, MS, Run};
use schedlab_model::machine::{Caches, InterruptArrivals, InterruptSource};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, Costs, CpuId, CpuMask, EventKind, LoopCount, Machine, Nanos, Op, Policy, Preempt,
    Release, SchedAttr, SwitchOut, TaskSpec, Topology, Workload,
};
use schedlab_sched::registry;

/// Two hardware threads of one core.
fn siblings(smt_speed: u32) -> Machine {
    let topology = Topology { core: vec![0, 0], ..Topology::flat(2) };
    Machine { topology, smt_speed: vec![smt_speed], costs: Costs::ZERO, ..Machine::flat(2) }
}

/// A task that runs for `work` and exits.
fn hog(name: &str, work: Nanos) -> TaskSpec {
    TaskSpec::new(name, ProgramBuilder::new().run(work).build())
}

fn pinned(task: TaskSpec, cpu: u32) -> TaskSpec {
    let affinity = Some(CpuMask::only(CpuId(cpu)));
    TaskSpec { attr: SchedAttr { affinity, ..task.attr }, ..task }
}

fn run(machine: Machine, scheduler: &str, tasks: Vec<TaskSpec>) -> Run {
    let workload = Workload::new("machine", tasks);
    let info = registry::find(scheduler).unwrap();
    let case = Case { machine, ..Case::new(&workload, info, 1) };
    case.run().unwrap()
}

/// When `task` exits.
fn exit_ns(run: &Run, task: u32) -> Nanos {
    let exits = |kind: &EventKind| matches!(kind, EventKind::Exit { task: t } if t.0 == task);
    run.trace.events.iter().find(|event| exits(&event.kind)).unwrap().time_ns
}

/// When `task` first runs.
fn first_run_ns(run: &Run, task: u32) -> Nanos {
    let comes =
        |kind: &EventKind| matches!(kind, EventKind::Switch { next: Some(t), .. } if t.0 == task);
    run.trace.events.iter().find(|event| comes(&event.kind)).unwrap().time_ns
}

#[test]
fn two_hogs_on_two_siblings_take_work_by_speed() {
    for (work, speed) in [(100 * MS, 650), (10_000_001, 650), (7, 333), (1, 1), (123_457, 999)] {
        for scheduler in ["fcfs", "linux-6.1", "linux-6.12"] {
            let run = run(
                siblings(speed),
                scheduler,
                vec![pinned(hog("a", work), 0), pinned(hog("b", work), 1)],
            );
            let expected = (work * 1000).div_ceil(u64::from(speed));
            assert_eq!(exit_ns(&run, 0), expected, "{work} ns at {speed} under {scheduler}");
            assert_eq!(exit_ns(&run, 1), expected);
        }
    }
}

#[test]
fn a_hog_goes_at_full_speed_once_its_sibling_is_idle() {
    // The first 650 us of a's work take 1 ms beside b, whose work ends then; the rest goes alone.
    let run = run(
        siblings(650),
        "fcfs",
        vec![pinned(hog("a", 2_000_000), 0), pinned(hog("b", 650_000), 1)],
    );
    assert_eq!(exit_ns(&run, 1), 1_000_000);
    assert_eq!(exit_ns(&run, 0), 1_000_000 + 1_350_000);
}

#[test]
fn speed_follows_the_number_of_busy_threads() {
    let topology = Topology { core: vec![0; 4], ..Topology::flat(4) };
    let machine =
        Machine { topology, smt_speed: vec![800, 600], costs: Costs::ZERO, ..Machine::flat(4) };
    let times = [2, 3, 4].map(|nr_hogs| {
        let hogs = (0..nr_hogs).map(|cpu| pinned(hog(&format!("h{cpu}"), 24 * MS), cpu));
        exit_ns(&run(machine.clone(), "fcfs", hogs.collect()), 0)
    });
    assert_eq!(times, [30 * MS, 40 * MS, 40 * MS]);
}

#[test]
fn many_cut_bursts_lose_no_work() {
    // A hog beside a neighbour that comes and goes at odd times, cut into slices by round robin:
    // what was done at each speed must add up to the nanosecond.
    let mut program = ProgramBuilder::new();
    program.begin_loop(LoopCount::Times(50)).run(33_333).sleep(77_777).end_loop();
    let tasks = vec![
        pinned(hog("a", 9_999_999), 0),
        pinned(hog("b", 7_777_777), 0),
        pinned(TaskSpec::new("neighbour", program.build()), 1),
    ];
    let run = run(siblings(613), "rr", tasks);
    let (mut both, mut alone, mut since) = (0u64, 0u64, 0);
    let mut busy = [false; 2];
    let end = exit_ns(&run, 0).max(exit_ns(&run, 1));
    for event in run.trace.events.iter().filter(|event| event.time_ns <= end) {
        let length = event.time_ns - since;
        match busy {
            [true, true] => both += length,
            [true, false] => alone += length,
            _ => {}
        }
        since = event.time_ns;
        if let EventKind::Switch { next, .. } = event.kind {
            busy[event.cpu.index()] = next.is_some();
        }
    }
    let (done, asked) = (both * 613 + alone * 1000, (9_999_999 + 7_777_777) * 1000);
    assert!((asked..asked + 2_000).contains(&done), "{done} of {asked}");
}

/// One CPU whose system calls take `syscall_ns`; nothing else costs time.
fn with_calls(preempt: Preempt, syscall_ns: Nanos) -> Machine {
    let costs = Costs { syscall_ns, ..Costs::ZERO };
    Machine { preempt, costs, ..Machine::flat(1) }
}

/// Task 0 makes a system call at time 0 and then runs; task 1 is released at `at`.
fn call_and_release(policy: Policy, at: Nanos) -> Vec<TaskSpec> {
    let mut calls = ProgramBuilder::new();
    calls.sleep(0).run(20 * MS);
    let attr = |policy: Policy| SchedAttr {
        policy,
        rt_priority: u8::from(policy.is_rt()),
        ..SchedAttr::default()
    };
    vec![
        TaskSpec { attr: attr(Policy::Idle), ..TaskSpec::new("caller", calls.build()) },
        TaskSpec {
            attr: attr(policy),
            release_ns: Amount::Constant(at),
            release: Release::Wakeup,
            ..hog("released", MS)
        },
    ]
}

#[test]
fn a_preemption_in_a_system_call_waits_as_the_model_says() {
    let cases = [
        // In a call of 100 us, for a real-time and for a fair task.
        (Preempt::Full, Policy::Fifo, 30_500, 30_500),
        (Preempt::None, Policy::Fifo, 30_500, 100_000),
        (Preempt::Voluntary, Policy::Fifo, 30_500, 32_000),
        (Preempt::Voluntary, Policy::Fifo, 32_000, 32_000),
        (Preempt::Voluntary, Policy::Fifo, 99_999, 100_000),
        (Preempt::Lazy, Policy::Fifo, 30_500, 30_500),
        (Preempt::Full, Policy::Normal, 30_500, 30_500),
        (Preempt::None, Policy::Normal, 30_500, 100_000),
        (Preempt::Lazy, Policy::Normal, 30_500, 100_000),
    ];
    for (preempt, policy, at, expected) in cases {
        for scheduler in ["linux-6.1", "linux-6.12"] {
            let tasks = call_and_release(policy, at);
            let run = run(with_calls(preempt, 100_000), scheduler, tasks);
            let found = first_run_ns(&run, 1);
            assert_eq!(found, expected, "{preempt:?} {policy:?} at {at} under {scheduler}");
            // The call's rest and the program's work are done after it, no more and no less.
            assert_eq!(run.outcome.end_ns, 21 * MS + 100_000);
        }
    }
}

#[test]
fn in_user_mode_an_interrupt_on_the_same_cpu_preempts_under_every_model() {
    for preempt in Preempt::ALL {
        let tasks = call_and_release(Policy::Normal, 500_000);
        let run = run(with_calls(preempt, 100_000), "linux-6.12", tasks);
        assert_eq!(first_run_ns(&run, 1), 500_000, "{preempt:?}");
    }
}

#[test]
fn a_lazy_request_becomes_full_at_the_tick() {
    // The call lasts 10 ms, and the tick comes every 4 ms.
    for (preempt, expected) in
        [(Preempt::Lazy, 4 * MS), (Preempt::None, 10 * MS), (Preempt::Full, MS)]
    {
        let tasks = call_and_release(Policy::Normal, MS);
        let run = run(with_calls(preempt, 10 * MS), "linux-6.12", tasks);
        assert_eq!(first_run_ns(&run, 1), expected, "{preempt:?}");
    }
}

/// What a task owes for a call it works off before the next one, so also before it waits or exits:
/// in a kernel fork(2) has taken its time when it returns, and the child is there at its end.
#[test]
fn forks_take_their_time_before_the_parent_waits_or_exits() {
    const FORK: Nanos = 2_500_000;
    let costs = Costs { fork_ns: FORK, ..Costs::ZERO };
    for (waits, exits_at) in [(true, 12 * FORK + 12 * MS), (false, 12 * FORK)] {
        let mut parent = ProgramBuilder::new();
        parent.begin_loop(LoopCount::Times(12)).op(Op::Fork { task: 1 }).end_loop();
        if waits {
            parent.op(Op::JoinAll);
        }
        let child = TaskSpec { instances: 0, ..hog("child", MS) };
        let tasks = vec![TaskSpec::new("parent", parent.build()), child];
        let run = run(Machine { costs, ..Machine::flat(1) }, "fcfs", tasks);
        let is_fork = |kind: &EventKind| matches!(kind, EventKind::Fork { parent: Some(_), .. });
        let forks = run.trace.events.iter().filter(|event| is_fork(&event.kind));
        let at: Vec<Nanos> = forks.map(|event| event.time_ns).collect();
        assert_eq!(at, (1..=12).map(|nth| nth * FORK).collect::<Vec<_>>());
        assert_eq!((first_run_ns(&run, 1), exit_ns(&run, 0)), (12 * FORK, exits_at), "{waits}");
        assert_eq!(run.outcome.end_ns, 12 * FORK + 12 * MS);
    }
}

/// The tick at 4 ms makes a lazy request in a call of the first task. The call has its effect
/// before the return to user mode, where the request takes effect: the child of a fork is there,
/// and a task that sleeps is not preempted.
#[test]
fn a_lazy_request_waits_until_a_call_has_its_effect() {
    let begin = |ns: Nanos, call: Op| {
        let mut program = ProgramBuilder::new();
        program.run(ns).op(call).run(5 * MS);
        let child = TaskSpec { instances: 0, ..hog("child", MS) };
        vec![TaskSpec::new("first", program.build()), child, hog("second", 9 * MS)]
    };
    let first_end = |costs: Costs, tasks: Vec<TaskSpec>| {
        let machine = Machine { preempt: Preempt::Lazy, costs, ..Machine::flat(1) };
        let run = run(machine, "linux-6.18", tasks);
        let is_fork = |kind: &EventKind| matches!(kind, EventKind::Fork { parent: Some(_), .. });
        let left = |kind: &EventKind| match kind {
            EventKind::Switch { prev: Some(prev), out, .. } if prev.0 == 0 => Some(*out),
            _ => None,
        };
        let events = &run.trace.events;
        let out = events.iter().find_map(|e| Some((e.time_ns, left(&e.kind)?))).unwrap();
        (out, events.iter().find(|e| is_fork(&e.kind)).map(|e| e.time_ns))
    };
    let costs = Costs { fork_ns: 2 * MS, ..Costs::ZERO };
    let fork = begin(3 * MS, Op::Fork { task: 1 });
    assert_eq!(first_end(costs, fork), ((5 * MS, SwitchOut::Preempted), Some(5 * MS)));
    let costs = Costs { block_ns: 200_000, ..Costs::ZERO };
    let sleep = begin(3_900_000, Op::Sleep(Amount::Constant(MS)));
    assert_eq!(first_end(costs, sleep), ((4_100_000, SwitchOut::Sleeping), None));
}

/// The parent, on CPU 0 beside a hog under SCHED_IDLE, is woken at 1.3 ms by its child's exit on
/// CPU 1. Gives the time at which it runs again.
fn remote_wakeup(preempt: Preempt, scheduler: &str) -> Nanos {
    let mut parent = ProgramBuilder::new();
    parent.op(Op::Fork { task: 1 }).op(Op::JoinAll).run(MS);
    let child = TaskSpec { instances: 0, ..pinned(hog("child", 1_300_000), 1) };
    let mut idle = pinned(hog("idle", 50 * MS), 0);
    idle.attr.policy = Policy::Idle;
    let tasks = vec![pinned(TaskSpec::new("parent", parent.build()), 0), child, idle];
    let machine = Machine { preempt, costs: Costs::ZERO, ..Machine::flat(2) };
    let run = run(machine, scheduler, tasks);
    let comes =
        |kind: &EventKind| matches!(kind, EventKind::Switch { next: Some(t), .. } if t.0 == 0);
    let mut times = run.trace.events.iter().filter(|event| comes(&event.kind));
    times.nth(1).unwrap().time_ns
}

#[test]
fn a_lazy_request_to_another_cpu_waits_for_its_tick() {
    for preempt in [Preempt::Full, Preempt::Voluntary, Preempt::None] {
        assert_eq!(remote_wakeup(preempt, "linux-6.12"), 1_300_000);
    }
    for scheduler in ["linux-6.12", "linux-6.18", "linux-7.1"] {
        assert_eq!(remote_wakeup(Preempt::Lazy, scheduler), 4 * MS, "{scheduler}");
    }
    // The wake-up starts the timer of a slice (HRTICK), by an interrupt of that CPU.
    assert_eq!(remote_wakeup(Preempt::Lazy, "linux-7.2"), 1_300_000);
}

/// Interrupts of 100 us, half of it softirq, every millisecond on CPU 0.
fn interrupted(arrivals: InterruptArrivals) -> Machine {
    let source = InterruptSource {
        name: "nic".into(),
        cpus: CpuMask::only(CpuId(0)),
        interval_ns: MS,
        cost_ns: 50_000,
        softirq_ns: 50_000,
        arrivals,
    };
    Machine { interrupts: vec![source], costs: Costs::ZERO, ..Machine::flat(2) }
}

#[test]
fn interrupts_take_their_time_from_the_running_task() {
    let tasks = vec![pinned(hog("hit", 10 * MS), 0), pinned(hog("spared", 10 * MS), 1)];
    let run = run(interrupted(InterruptArrivals::Periodic), "fcfs", tasks);
    // Interrupts at 1, 2, ... 11 ms.
    assert_eq!(exit_ns(&run, 0), 11_100_000);
    assert_eq!(exit_ns(&run, 1), 10 * MS);
    assert_eq!((run.outcome.nr_interrupts, run.outcome.interrupt_ns), (11, 1_100_000));
}

#[test]
fn an_interrupt_of_an_idle_cpu_holds_up_the_task_that_comes() {
    let late = TaskSpec { release_ns: Amount::Constant(1_030_000), ..pinned(hog("a", 1_000), 0) };
    let run = run(interrupted(InterruptArrivals::Periodic), "fcfs", vec![late]);
    assert_eq!(first_run_ns(&run, 0), 1_030_000);
    assert_eq!(exit_ns(&run, 0), 1_101_000);
}

#[test]
fn drawn_interrupts_add_up() {
    let tasks = || vec![pinned(hog("hit", 1_000 * MS), 0)];
    let run = |seed| {
        let workload = Workload::new("machine", tasks());
        let info = registry::find("fcfs").unwrap();
        let machine = interrupted(InterruptArrivals::Exponential);
        Case { machine, seed, ..Case::new(&workload, info, 1) }.run().unwrap()
    };
    let (one, two) = (run(1), run(2));
    for run in [&one, &two] {
        assert_eq!(run.outcome.interrupt_ns, run.outcome.nr_interrupts * 100_000);
        assert_eq!(exit_ns(run, 0), 1_000 * MS + run.outcome.interrupt_ns);
        // About 1,111 interrupts; five deviations are 167.
        assert!((944..1_278).contains(&run.outcome.nr_interrupts));
    }
    assert_ne!(exit_ns(&one, 0), exit_ns(&two, 0));
}

#[test]
fn interrupts_alone_do_not_keep_a_run_going() {
    // The sleep ends beyond the end of time: the run must not wait for it.
    let mut forever = ProgramBuilder::new();
    forever.sleep(Nanos::MAX);
    let workload = Workload::new("machine", vec![TaskSpec::new("a", forever.build())]);
    let info = registry::find("fcfs").unwrap();
    let machine = interrupted(InterruptArrivals::Periodic);
    let run = Case { machine, ..Case::new(&workload, info, 1) }.run().unwrap();
    assert_eq!((run.outcome.end_ns, run.outcome.nr_exited), (0, 0));
}

/// One byte a nanosecond from the last-level cache, a quarter of it from memory, an eighth from
/// another node's; a core has 1,000 bytes, a last-level cache 4,000.
const CACHES: Caches = Caches {
    core_bytes: 1_000,
    llc_bytes: 4_000,
    llc_bytes_per_sec: 1_000_000_000,
    local_bytes_per_sec: 250_000_000,
    remote_bytes_per_sec: 125_000_000,
};

/// Two nodes of two cores, one cache a node; nothing else costs time.
fn cached() -> Machine {
    let halves = vec![0, 0, 1, 1];
    let topology = Topology { llc: halves.clone(), node: halves, ..Topology::flat(4) };
    Machine { topology, caches: CACHES, costs: Costs::ZERO, ..Machine::flat(4) }
}

/// Runs on CPU 0, then moves to `cpu` and runs there.
fn mover(cpu: u32, working_set_bytes: u64) -> TaskSpec {
    let attr =
        |cpu| SchedAttr { affinity: Some(CpuMask::only(CpuId(cpu))), ..SchedAttr::default() };
    let mut program = ProgramBuilder::new();
    program.run(MS).op(Op::SetAttr(Box::new(attr(cpu)))).run(MS);
    let task = TaskSpec::new("mover", program.build());
    TaskSpec { attr: attr(0), working_set_bytes, ..task }
}

#[test]
fn a_move_costs_a_refill_by_its_distance() {
    let cases = [
        // The same core: nothing.
        (0, 600, 0),
        // Another core of the same cache: the core's part comes from the last-level cache.
        (1, 600, 600),
        (1, 1_800, 1_000),
        // Another node: all that a last-level cache holds comes from the first node's memory.
        (2, 600, 4_800),
        (3, 100_000, 32_000),
        // No working set, no cost.
        (2, 0, 0),
    ];
    for (cpu, bytes, refill) in cases {
        let run = run(cached(), "fcfs", vec![mover(cpu, bytes)]);
        assert_eq!(run.outcome.cache_refill_ns, refill, "{bytes} bytes to CPU {cpu}");
        assert_eq!(exit_ns(&run, 0), 2 * MS + refill);
    }
}

#[test]
fn a_known_set_replaces_the_fixed_cost_of_a_migration() {
    let costs = Costs { migration_ns: 7, migration_llc_ns: 9, ..Costs::ZERO };
    let machine = Machine { costs, ..cached() };
    for (cpu, bytes, cost) in [(1, 0, 7), (2, 0, 9), (1, 50, 50), (2, 50, 400)] {
        let run = run(machine.clone(), "fcfs", vec![mover(cpu, bytes)]);
        assert_eq!(exit_ns(&run, 0), 2 * MS + cost, "{bytes} bytes to CPU {cpu}");
    }
}

/// Two hogs of 4 ms each that take turns of 1 ms on one CPU, with a set of `bytes` each.
fn turns(bytes: u64) -> Run {
    let task = |name| TaskSpec { working_set_bytes: bytes, ..pinned(hog(name, 4 * MS), 0) };
    let workload = Workload::new("machine", vec![task("a"), task("b")]);
    let info = registry::find("rr").unwrap();
    let mut case = Case { machine: cached(), ..Case::new(&workload, info, 1) };
    let parse = |_: &str| Ok(MS);
    case.options.set_text(&info.tunables, "quantum", "1ms", parse).unwrap();
    case.run().unwrap()
}

#[test]
fn others_evict_what_does_not_fit_beside_them() {
    // Both sets fit: turns are free.
    assert_eq!(turns(500).outcome.cache_refill_ns, 0);
    // Of 700 + 700 bytes 400 do not fit the core's cache: each return fetches as much from the
    // last-level cache. Refills lengthen the last turn into one more.
    let run = turns(700);
    let nr_returns = run.outcome.nr_switches - 3;
    assert_eq!(run.outcome.cache_refill_ns, nr_returns * 400, "{:?}", run.outcome);
    assert!(nr_returns >= 6);
    assert_eq!(run.outcome.end_ns, 8 * MS + run.outcome.cache_refill_ns);
    // Of 3,000 + 3,000 bytes 2,000 do not fit the last-level cache either: they come from memory,
    // and more than the core's part comes with them.
    let run = turns(3_000);
    let nr_returns = run.outcome.nr_switches - 3;
    assert_eq!(run.outcome.cache_refill_ns, nr_returns * 2_000 * 4);
}

/// Round robin makes 25 switches to each of two hogs: each waits for the jitter of both.
#[test]
fn switches_may_take_longer_each_by_its_own_time() {
    const MOST: Nanos = 2_000;
    let last_exit = |switch_jitter_ns| {
        let machine = Machine { costs: Costs::ZERO, switch_jitter_ns, ..Machine::flat(1) };
        let run = run(machine, "rr", vec![hog("a", 400 * MS), hog("b", 400 * MS)]);
        let nr_switches = run.outcome.nr_switches;
        (exit_ns(&run, 0).max(exit_ns(&run, 1)) - 800 * MS, nr_switches)
    };
    assert_eq!(last_exit(0).0, 0);
    let (longer_ns, nr_switches) = last_exit(MOST);
    let mean_ns = longer_ns / nr_switches;
    assert!(nr_switches >= 8, "{nr_switches} switches");
    assert!((MOST / 4..MOST * 3 / 4).contains(&mean_ns), "{mean_ns} ns for each switch");
    assert_eq!(last_exit(MOST), (longer_ns, nr_switches), "the seed draws it");
}
