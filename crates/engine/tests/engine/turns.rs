// SPDX-License-Identifier: MIT OR Apache-2.0
//! Equally good CPUs are taken in turn: by tasks with a new affinity, and by pushes.

use crate::common;

use common::workloads::{endless, on, policy, task};
use common::{Case, MS, Run};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{EventKind, Machine, Op, Policy, SchedAttr, TaskId, TaskSpec, Workload};
use schedlab_sched::registry::find;

fn run(scheduler: &str, tasks: Vec<TaskSpec>, is_set_up: bool) -> Run {
    let workload = Workload::new("turns", tasks);
    let mut case = Case::new(&workload, find(scheduler).expect("it is registered"), 4);
    case.machine = Machine { set_up_ns: if is_set_up { MS } else { 0 }, ..case.machine };
    case.until_ns = Some(50 * MS);
    case.run().unwrap_or_else(|error| panic!("{error}"))
}

/// The CPUs to which `task` came, one after another.
fn cpus_of(run: &Run, of: TaskId) -> Vec<u32> {
    let mut cpus = Vec::new();
    for event in &run.trace.events {
        if let EventKind::Switch { next: Some(task), .. } = event.kind
            && task == of
            && cpus.last() != Some(&event.cpu.0)
        {
            cpus.push(event.cpu.0);
        }
    }
    cpus
}

/// A task on CPU 0 that may use CPUs 1 to 3, then CPU 0 again, several times; and on each of these
/// three `nr_hogs`.
fn wanderer(nr_hogs: u32) -> Vec<TaskSpec> {
    let mut program = ProgramBuilder::new();
    for _ in 0..4 {
        for cpus in [on(&[1, 2, 3]), on(&[0])] {
            program.run(MS).op(Op::SetAttr(Box::new(cpus)));
        }
    }
    let hog = |cpu: u32| TaskSpec { instances: nr_hogs, ..task("hog", on(&[cpu]), endless()) };
    vec![task("a", on(&[0]), program.run(MS).build()), hog(1), hog(2), hog(3)]
}

/// CPU 0 chose CPU 1 first, then the next one. The way back is a choice of the other CPU.
#[test]
fn a_new_affinity_takes_the_next_cpu() {
    for scheduler in ["linux-6.1", "linux-6.12", "linux-7.2"] {
        for nr_hogs in [0, 1] {
            let cpus = cpus_of(&run(scheduler, wanderer(nr_hogs), false), TaskId(0));
            assert_eq!(cpus, [0, 1, 0, 2, 0, 3, 0, 1, 0], "{scheduler}");
        }
    }
    // A textbook takes the first idle one.
    let cpus = cpus_of(&run("fcfs", wanderer(0), false), TaskId(0));
    assert_eq!(cpus, [0, 1, 0, 1, 0, 1, 0, 1, 0]);
}

/// Three tasks sleep on the last CPU, which a better one has when they wake. Where a launcher has
/// set the run up, CPU 0 is the first.
#[test]
fn a_push_takes_the_next_cpu() {
    let fifo = |priority: u8, cpus: &[u32]| {
        let own = policy(Policy::Fifo, priority);
        SchedAttr { affinity: on(cpus).affinity, ..own }
    };
    let mut pushed = ProgramBuilder::new();
    pushed.sleep(5 * MS).run(MS);
    let tasks = vec![
        task("better", fifo(9, &[3]), endless()),
        TaskSpec { instances: 3, ..task("pushed", fifo(1, &[0, 1, 2, 3]), pushed.build()) },
    ];
    for scheduler in ["linux-6.1", "linux-6.12"] {
        let run = run(scheduler, tasks.clone(), true);
        let last = |task: u32| cpus_of(&run, TaskId(task)).last().copied();
        assert_eq!([1, 2, 3].map(last), [Some(0), Some(1), Some(2)], "{scheduler}");
    }
}
