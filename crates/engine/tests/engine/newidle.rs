// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time of a CPU's search for tasks before it goes idle.

use crate::common;

use common::workloads::{on, task};
use common::{Case, MS, Run};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Costs, CpuId, CpuMask, EventKind, LoopCount, Machine, Nanos, ObjectId, ObjectKind, ObjectSpec,
    Op, SchedAttr, SwitchOut, TaskId, TaskSpec, Workload, trace::Event,
};
use schedlab_sched::registry::find;

const SEARCH: Nanos = 6_000;
const EACH: Nanos = 1_000;
const COSTS: Costs = Costs { newidle_ns: SEARCH, newidle_cpu_ns: EACH, ..Costs::ZERO };
const SLEEPER: TaskId = TaskId(0);

fn run(workload: &Workload, scheduler: &str, nr_cpus: u32) -> Run {
    let mut case = Case::new(workload, find(scheduler).expect("it is registered"), nr_cpus);
    case.machine = Machine { costs: COSTS, ..case.machine };
    case.run().unwrap_or_else(|error| panic!("{}: {error}", case.describe()))
}

/// A task that has CPU 0 for itself and sleeps three times.
fn sleeper() -> TaskSpec {
    let mut program = ProgramBuilder::new();
    program.begin_loop(LoopCount::Times(3)).run(MS).sleep(5 * MS).end_loop();
    task("sleeper", on(&[0]), program.build())
}

/// `each` hogs that stay on each CPU from `first` on.
fn hogs(first: u32, nr_cpus: u32, each: u32) -> impl Iterator<Item = TaskSpec> {
    let cpus = (first..nr_cpus).flat_map(move |cpu| (0..each).map(move |_| cpu));
    cpus.map(|cpu| task("hog", on(&[cpu]), ProgramBuilder::new().run(40 * MS).build()))
}

/// How long the sleeper ran before each sleep.
fn stays(run: &Run) -> Vec<Nanos> {
    let mut since = 0;
    let mut stays = Vec::new();
    for event in &run.trace.events {
        match event.kind {
            EventKind::Switch { next, .. } if next == Some(SLEEPER) => since = event.time_ns,
            EventKind::Switch { prev, out: SwitchOut::Sleeping, .. } if prev == Some(SLEEPER) => {
                stays.push(event.time_ns - since);
            }
            _ => {}
        }
    }
    stays
}

/// The search compares all CPUs, and the rest again for each busy one whose tasks may not move.
#[test]
fn a_task_that_sleeps_stays_for_the_search() {
    for (scheduler, nr_cpus, compared) in
        [("linux-6.6", 2, 2 + 1), ("linux-6.12.0", 3, 3 + 2 + 1), ("linux-6.6", 4, 4 + 3 + 2 + 1)]
    {
        let tasks = [sleeper()].into_iter().chain(hogs(1, nr_cpus, 2)).collect();
        let done = run(&Workload::new("crowded", tasks), scheduler, nr_cpus);
        assert_eq!(stays(&done), [MS + SEARCH + compared * EACH; 3], "{scheduler}, {nr_cpus} CPUs");
    }
}

#[test]
fn nobody_searches_where_no_cpu_has_two_tasks() {
    let tasks = [sleeper()].into_iter().chain(hogs(1, 3, 1)).collect();
    let done = run(&Workload::new("one each", tasks), "linux-6.6", 3);
    assert_eq!(stays(&done), [MS; 3]);
}

/// Each domain that is drawn is searched, and a draw against it still takes the time before it.
#[test]
fn a_draw_against_the_search_leaves_its_beginning() {
    let mut program = ProgramBuilder::new();
    program.begin_loop(LoopCount::Times(40)).run(MS / 10).sleep(MS).end_loop();
    let sleeper = task("sleeper", on(&[0]), program.build());
    let tasks = [sleeper].into_iter().chain(hogs(1, 2, 2)).collect();
    let done = run(&Workload::new("draws", tasks), "linux-7.2", 2);
    let of = |ns: Nanos| stays(&done).iter().filter(|stay| **stay == MS / 10 + ns).count();
    let (drawn, not) = (of(SEARCH + 3 * EACH), of(SEARCH));
    assert_eq!(drawn + not, 40, "{:?}", stays(&done));
    assert!(drawn >= 10 && not >= 10, "{drawn} searches, {not} without");
}

const SEMAPHORE: ObjectId = ObjectId(0);

/// A task of CPU 0 that waits, and one of CPU 1 that posts after `post_ns`, while hogs share CPU 2.
fn waits(post_ns: Nanos, others: Vec<TaskSpec>) -> Workload {
    let program = |run_ns, op| ProgramBuilder::new().run(run_ns).op(op).run(MS).build();
    let waiter = task("waiter", on(&[0]), program(MS, Op::SemWait { object: SEMAPHORE }));
    let poster = task("poster", on(&[1]), program(post_ns, Op::SemPost { object: SEMAPHORE }));
    let tasks = [waiter, poster].into_iter().chain(others).chain(hogs(2, 3, 2)).collect();
    let mut workload = Workload::new("wakes", tasks);
    workload.objects = vec![ObjectSpec::new("s", ObjectKind::Semaphore { initial: 0 })];
    workload
}

/// When and why tasks left CPU 0, and who came then.
fn switches(run: &Run) -> Vec<(Nanos, SwitchOut, Option<TaskId>)> {
    let of_cpu = run.trace.events.iter().filter(|event| event.cpu == CpuId(0));
    let found = of_cpu.filter_map(|event| match event.kind {
        EventKind::Switch { prev: Some(_), next, out } => Some((event.time_ns, out, next)),
        _ => None,
    });
    found.collect()
}

/// From 1 ms on CPU 0 searches for 6 us and 3 + 2 CPUs.
#[test]
fn a_task_that_is_woken_during_the_search_leaves_first() {
    let done = run(&waits(MS + 2_000, Vec::new()), "linux-6.6", 3);
    let search = SEARCH + 5 * EACH;
    let expected =
        [(MS + search, SwitchOut::Sleeping, None), (2 * MS + search, SwitchOut::Dead, None)];
    assert_eq!(switches(&done), expected);
}

#[test]
fn a_task_that_another_cpu_brings_runs_after_the_search() {
    let mut late = task("late", on(&[0]), ProgramBuilder::new().run(MS).build());
    late.release_ns = schedlab_model::Amount::Constant(MS + 2_000);
    let done = run(&waits(5 * MS, vec![late]), "linux-6.6", 3);
    let search = SEARCH + 5 * EACH;
    let expected = [
        (MS + search, SwitchOut::Sleeping, Some(TaskId(4))),
        (2 * MS + search, SwitchOut::Dead, None),
        (6 * MS, SwitchOut::Dead, None),
    ];
    assert_eq!(switches(&done), expected);
}

/// When the movable task of two on CPU 0 first comes to CPU 1, which idles, if its look takes
/// `nohz_kick_ns` and the way to a switch at a tick `tick_resched_ns`.
fn pulled(nohz_kick_ns: Nanos, tick_resched_ns: Nanos) -> Nanos {
    let both = SchedAttr { affinity: Some(CpuMask::first(2)), ..on(&[0]) };
    let mut movable = ProgramBuilder::new();
    movable.run(MS).op(Op::SetAttr(Box::new(both))).run(40 * MS);
    let tasks = vec![
        task("movable", on(&[0]), movable.build()),
        task("hog", on(&[0]), ProgramBuilder::new().run(40 * MS).build()),
    ];
    let workload = Workload::new("kick", tasks);
    let mut case = Case::new(&workload, find("linux-6.12").expect("it is registered"), 2);
    let tick_ns = 2 * tick_resched_ns;
    let clock_lead_ns = tick_resched_ns / 2;
    let costs = Costs { nohz_kick_ns, tick_resched_ns, tick_ns, clock_lead_ns, ..Costs::ZERO };
    case.machine = Machine { costs, ..case.machine };
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let comes = |event: &&Event| {
        event.cpu == CpuId(1)
            && matches!(event.kind, EventKind::Switch { next: Some(TaskId(0)), .. })
    };
    run.trace.events.iter().find(comes).expect("it comes").time_ns
}

/// The idle CPU looks at 8 ms first, when a tick asks the hog to give way: the movable task waits.
/// If it looks after the switch, that task runs, and waits again at 12 ms. If it looks while the
/// switch is being done, it waits for its end; the hog has run less, and goes on.
#[test]
fn an_idle_cpu_looks_for_tasks_after_the_tick() {
    assert_eq!(pulled(0, 0), 8 * MS);
    assert_eq!(pulled(30_000, 70_000), 8 * MS + 30_000);
    assert_eq!(pulled(30_000, 0), 12 * MS + 30_000);
    assert_eq!(pulled(30_000, 50_000), 8 * MS + 50_001);
}
