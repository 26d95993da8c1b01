// SPDX-License-Identifier: MIT OR Apache-2.0
//! RSDL and SD on several CPUs, where they leave everything to the balancing of Linux 2.6.22:
//! tasks of equal weight go where they go under that kernel, at the same ticks.

use crate::common;

use common::workloads::{endless, nice, on, task};
use common::{Case, MS, Run};
use schedlab_model::machine::Shape;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{Amount, Costs, EventKind, Machine, Op, TaskSpec, Topology, Workload};
use schedlab_sched::registry::find;

const STAIRCASE: [&str; 2] = ["rsdl-0.31", "sd-0.48"];
const KERNEL: &str = "linux-2.6.22";

/// Cores of two threads, two to a cache, in so many nodes.
fn threads(nodes: u32) -> Topology {
    Topology::regular(Shape {
        nodes,
        llcs_per_node: 1,
        cores_per_llc: 2,
        threads_per_core: 2,
        siblings_apart: false,
    })
}

/// No task is cache-hot: who has run last differs, since turns do.
fn simulate(scheduler: &str, topology: Topology, tasks: Vec<TaskSpec>, until_ms: u64) -> Run {
    let workload = Workload::new("cpus", tasks);
    let mut case = Case::new(&workload, find(scheduler).unwrap(), topology.nr_cpus());
    case.machine = Machine { hz: 1_000, costs: Costs::ZERO, topology, ..case.machine };
    case.options.set(&case.scheduler.tunables, "cache_hot", 0).unwrap();
    case.until_ns = Some(until_ms * MS);
    case.run().unwrap_or_else(|error| panic!("{error}"))
}

/// When a task goes where: ms, from, to.
fn moves(run: &Run) -> Vec<(u64, u32, u32)> {
    let moved = run.trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Migrate { from, .. } => Some((event.time_ns / MS, from.0, event.cpu.0)),
        _ => None,
    });
    moved.collect()
}

/// Hogs that wake on CPU 0.
fn pile(count: u32) -> Vec<TaskSpec> {
    vec![TaskSpec { instances: count, ..task("hog", nice(0), endless()) }]
}

#[test]
fn a_pile_is_spread_as_under_2_6_22() {
    let machines = [Topology::flat(2), Topology::flat(4), threads(1), threads(2)];
    for topology in machines {
        for count in [3, 8, 13] {
            let moves_of =
                |scheduler: &str| moves(&simulate(scheduler, topology.clone(), pile(count), 60));
            let expected = moves_of(KERNEL);
            assert!(!expected.is_empty(), "{count}");
            for scheduler in STAIRCASE {
                assert_eq!(moves_of(scheduler), expected, "{scheduler}, {count} on {topology:?}");
            }
        }
    }
}

#[test]
fn nodes_are_not_told_apart() {
    // 2.6.22 here has one domain of all CPUs above that of the threads of a core.
    for scheduler in STAIRCASE {
        let mut one = threads(2);
        one.node.fill(0);
        one.llc.fill(0);
        let [apart, together] =
            [threads(2), one].map(|topology| simulate(scheduler, topology, pile(16), 500));
        assert_eq!(moves(&apart), moves(&together), "{scheduler}");
        let other_node = moves(&apart).iter().filter(|(_, _, to)| *to >= 4).count();
        assert!(other_node >= 8, "{scheduler}: {other_node}");
    }
}

/// Two hogs that were bound to the two threads of one core, beside an idle core of two threads:
/// nothing waits that could be pulled, so one of them is pushed while it runs.
#[test]
fn what_runs_is_pushed_to_an_idle_core() {
    let bound = |name: &str, cpu: u32| {
        let mut program = ProgramBuilder::new();
        program.run(MS).op(Op::SetAttr(Box::default())).run(2_000 * MS);
        TaskSpec { is_process: true, ..task(name, on(&[cpu]), program.build()) }
    };
    let pair = || vec![bound("A", 0), bound("B", 1)];
    let expected = moves(&simulate(KERNEL, threads(1), pair(), 3_000));
    let [(at_ms, from, to)] = expected[..] else { panic!("{expected:?}") };
    assert!(at_ms < 100 && from < 2 && to >= 2, "{expected:?}");
    for scheduler in STAIRCASE {
        let run = simulate(scheduler, threads(1), pair(), 3_000);
        assert_eq!(moves(&run), expected, "{scheduler}");
        // Both run all the time: the push takes no time from either.
        assert_eq!(run.outcome.end_ns, 2_001 * MS, "{scheduler}");
    }
}

/// A program that is released is taken to exec: it starts in the least loaded group.
#[test]
fn programs_start_where_the_load_is_least() {
    let hogs = |at_ms: u64| {
        let release_ns = Amount::Constant(at_ms * MS);
        TaskSpec { release_ns, instances: 4, ..TaskSpec::new("hog", endless()) }
    };
    for scheduler in STAIRCASE.into_iter().chain([KERNEL]) {
        let run = simulate(scheduler, Topology::flat(4), vec![hogs(0), hogs(201)], 202);
        let starts = run.trace.events.iter().filter_map(|event| match event.kind {
            EventKind::Fork { .. } => Some(event.cpu.0),
            _ => None,
        });
        assert_eq!(starts.collect::<Vec<_>>(), [0, 1, 2, 3, 1, 2, 3, 0], "{scheduler}");
        assert_eq!(moves(&run), [], "{scheduler}");
    }
}
