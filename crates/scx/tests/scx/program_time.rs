// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time that a scheduler's callbacks take: where it passes, and who sees it.

use crate::support;

use schedlab_model::TaskId;
use schedlab_scx::Kernel;
use schedlab_scx::consts::{DSQ_GLOBAL, SLICE_DFL};
use std::sync::{Arc, Mutex};
use support::script::Script;
use support::{Case, MS, hog, later, nice};

/// What a callback takes in these tests (ns): 1,000 instructions of 8 ns.
const EACH_NS: u64 = 8_000;

/// The scheduler's queue.
const QUEUE: u64 = 0;

type Seen = Arc<Mutex<Vec<String>>>;

/// A callback that takes 1,000 instructions and notes the clocks, as time since the run began.
fn spender(name: &'static str, seen: &Seen) -> impl FnMut(&mut Kernel<'_>) + Send + use<> {
    let seen = Arc::clone(seen);
    move |k| {
        let start = schedlab_scx::kernel::UPTIME_NS;
        let (clock, rq) = (k.clock_ns() - start, k.rq_clock_ns() - start);
        seen.lock().unwrap().push(format!("{name} {rq}+{}", clock - rq));
        k.spend(1_000);
    }
}

/// First come, first served with slices of 20 ms; every callback takes time.
fn slow(seen: &Seen) -> Script {
    let of_task = |name| {
        let mut spend = spender(name, seen);
        Box::new(move |k: &mut Kernel<'_>, _: TaskId| spend(k))
    };
    let (mut enqueue, mut dispatch) = (spender("enqueue", seen), spender("dispatch", seen));
    Script {
        init: Some(Box::new(|k| k.create_dsq(QUEUE, -1))),
        enqueue: Some(Box::new(move |k, p, flags| {
            enqueue(k);
            k.dsq_insert(p, QUEUE, SLICE_DFL, flags);
        })),
        dispatch: Some(Box::new(move |k, _, _| {
            dispatch(k);
            k.dsq_move_to_local(QUEUE);
        })),
        running: Some(of_task("running")),
        stopping: Some(of_task("stopping")),
        ..Script::default()
    }
}

fn case(tasks: Vec<schedlab_model::TaskSpec>, kinsn_ns: u64) -> Case {
    let mut case = Case::new(1, 100, tasks);
    case.machine.costs.bpf_kinsn_ns = kinsn_ns;
    case
}

/// At a switch the callbacks follow each other: each sees the clock of the CPU where the last one
/// left it, and the clock of the run queue as it was. What they took is lost to the next task.
#[test]
fn a_switch_takes_the_time_of_its_callbacks() {
    let seen = Seen::default();
    let first = later("first", nice(0), 0, 2 * MS);
    let case = case(vec![first, later("second", nice(0), 0, 2 * MS)], EACH_NS);
    let ran = case.run(slow(&seen), Default::default());
    ran.outcome();
    let seen = seen.lock().unwrap();
    let at = seen.iter().position(|text| text.starts_with("stopping")).unwrap();
    let end = seen[at].trim_start_matches("stopping ").trim_end_matches("+0").to_owned();
    let wanted = [
        format!("stopping {end}+0"),
        format!("dispatch {end}+{EACH_NS}"),
        format!("running {end}+{}", 2 * EACH_NS),
    ];
    assert_eq!(seen[at..at + 3], wanted);
    let end: u64 = end.parse().unwrap();
    // The second works for 2 ms after the three callbacks.
    assert_eq!(seen[at + 3], format!("stopping {}+0", end + 3 * EACH_NS + 2 * MS));
}

/// Without the cost all is as if callbacks took no time.
#[test]
fn callbacks_take_no_time_on_other_machines() {
    let seen = Seen::default();
    let tasks = || vec![later("first", nice(0), MS, 2 * MS), later("second", nice(0), MS, 2 * MS)];
    let found = case(tasks(), 0).run(slow(&seen), Default::default()).timeline();
    assert_eq!(found, "0A 0B 0- 1A 3B 5-");
    assert!(seen.lock().unwrap().iter().all(|text| text.ends_with("+0")));
}

/// A timer's wake-up takes its time from the task that it interrupts.
#[test]
fn a_wake_up_takes_time_from_the_running_task() {
    let late = later("late", nice(0), 5 * MS, MS);
    let tasks = vec![late, later("busy", nice(0), 0, 10 * MS)];
    let turns = |kinsn_ns| {
        let found = case(tasks.clone(), kinsn_ns).run(slow(&Seen::default()), Default::default());
        found.timeline()
    };
    assert_eq!(turns(0), "0A 0B 10A 11-");
    // Tasks of time 0 have been woken before. The first sleeps after two callbacks (16 us). From
    // then on the other one works for 10 ms, three callbacks of the switch and the wake-up's.
    assert_eq!(turns(EACH_NS), "0A 0.016B 10.048A 11.072-");
}

/// What a timer's callback asks for takes place when it has returned.
#[test]
fn a_timer_takes_time_before_the_switch_that_it_asks_for() {
    let hogs = vec![hog("a", nice(0)), hog("b", nice(0))];
    let preempting = |insns: u32| Script {
        init: Some(Box::new(|k| {
            k.start_timer(7, 6 * MS);
            0
        })),
        timer: Some(Box::new(move |k, _| {
            k.spend(insns);
            k.kick_cpu(0, schedlab_scx::consts::KICK_PREEMPT);
        })),
        enqueue: Some(Box::new(|k, p, flags| {
            k.dsq_insert(p, DSQ_GLOBAL, SLICE_DFL, flags);
        })),
        ..Script::default()
    };
    let turns = |insns| {
        let case = case(hogs.clone(), EACH_NS);
        let found = case.run(preempting(insns), Default::default()).timeline();
        found.split(' ').map(str::to_owned).nth(1).unwrap()
    };
    assert_eq!(turns(0), "6B");
    assert_eq!(turns(5_000), "6.04B");
}
