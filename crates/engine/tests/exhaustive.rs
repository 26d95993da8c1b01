// SPDX-License-Identifier: MIT OR Apache-2.0
//! All small cases: every scheduler of the registry runs every set of three tasks of a small
//! alphabet on two CPUs, and each run is held to all rules of the conformance suite.
//!
//! A task is one of 3 policies, 5 programs, 2 releases and 2 affinities, so one of 60; a set is
//! a multiset of three of them, since tasks differ in nothing else. What is checked of each run:
//! the engine's custody rules, those of a trace, sums of time, ends, affinity, work conservation
//! where it is claimed, and that a second run gives the same events.

mod common;

use common::checks::check_case;
use common::workloads::{nice, on, policy};
use common::{Case, MS};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, LoopCount, MutexProtocol, ObjectId, ObjectKind, ObjectSpec, Op, Policy, Program,
    SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::registry::SCHEDULERS;

const POLICIES: [&str; 3] = ["nice 0", "nice 5", "FIFO 1"];
const PROGRAMS: [&str; 5] = ["runs", "sleeps", "yields", "forks", "locks"];
const PLACES: [&str; 4] = ["at 0", "at 1 ms", "at 0 on CPU 0", "at 1 ms on CPU 0"];

/// Different tasks.
const NR_TASKS: usize = POLICIES.len() * PROGRAMS.len() * PLACES.len();

/// Multisets of three tasks: n (n + 1) (n + 2) / 6.
const NR_CASES: usize = NR_TASKS * (NR_TASKS + 1) * (NR_TASKS + 2) / 6;

const MUTEX: ObjectId = ObjectId(0);

/// Number of the child's description.
const CHILD: u32 = 3;

fn program(number: usize) -> Program {
    let mut program = ProgramBuilder::new();
    match PROGRAMS[number] {
        "runs" => program.run(3 * MS),
        "sleeps" => program.begin_loop(LoopCount::Times(2)).run(MS).sleep(MS).end_loop(),
        "yields" => program.run(MS).op(Op::Yield).run(MS),
        "forks" => program.op(Op::Fork { task: CHILD }).run(MS).op(Op::JoinAll),
        _ => program.run(MS / 2).lock(MUTEX).run(MS).unlock(MUTEX),
    };
    program.build()
}

/// One of the tasks, and what it is called.
fn describe(number: usize) -> (SchedAttr, Program, Amount, String) {
    let (nr_programs, nr_places) = (PROGRAMS.len(), PLACES.len());
    let place = number % nr_places;
    let runs = number / nr_places % nr_programs;
    let kind = number / nr_places / nr_programs;
    let mut attr = match POLICIES[kind] {
        "nice 0" => nice(0),
        "nice 5" => nice(5),
        _ => policy(Policy::Fifo, 1),
    };
    if PLACES[place].ends_with("on CPU 0") {
        attr.affinity = on(&[0]).affinity;
    }
    let release = if PLACES[place].starts_with("at 1 ms") { MS } else { 0 };
    let name = format!("{} {} {}", POLICIES[kind], PROGRAMS[runs], PLACES[place]);
    (attr, program(runs), Amount::Constant(release), name)
}

fn workload(tasks: [usize; 3]) -> Workload {
    let mut names = Vec::new();
    let mut specs: Vec<TaskSpec> = tasks
        .into_iter()
        .map(|number| {
            let (attr, program, release_ns, name) = describe(number);
            names.push(name);
            TaskSpec { attr, release_ns, ..TaskSpec::new("task", program) }
        })
        .collect();
    let child = ProgramBuilder::new().run(MS).build();
    specs.push(TaskSpec { instances: 0, ..TaskSpec::new("child", child) });
    let mut workload = Workload::new(names.join("; "), specs);
    let protocol = MutexProtocol::Inherit;
    workload.add_object(ObjectSpec::new("mutex", ObjectKind::Mutex { protocol }));
    workload
}

/// Runs all cases under every `stride`-th scheduler from `first` on.
fn exhaust(first: usize, stride: usize) {
    let mut failures = Vec::new();
    let mut nr_runs = 0;
    let schedulers: Vec<_> = SCHEDULERS.iter().skip(first).step_by(stride).collect();
    for a in 0..NR_TASKS {
        for b in a..NR_TASKS {
            for c in b..NR_TASKS {
                let workload = workload([a, b, c]);
                for info in &schedulers {
                    nr_runs += 1;
                    let checked = check_case(&Case::new(&workload, info, 2));
                    failures.extend(checked.err().map(|broken| broken.text));
                }
            }
        }
    }
    println!("{nr_runs} runs: {NR_CASES} cases under {} schedulers", schedulers.len());
    assert_eq!((NR_CASES, nr_runs), (37_820, 37_820 * schedulers.len()));
    let shown = failures.len().min(20);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures[..shown].join("\n"));
}

// Two halves, for two CPUs.

#[test]
fn under_every_second_scheduler() {
    exhaust(0, 2);
}

#[test]
fn under_the_others() {
    exhaust(1, 2);
}
