// SPDX-License-Identifier: MIT OR Apache-2.0
//! All small cases: every scheduler of the registry runs every set of three tasks of a small
//! alphabet on two CPUs, and each run is held to all rules of the conformance suite.
//!
//! A task is one of 3 kinds, 5 programs, 2 releases and 2 affinities, so one of 60; a set is
//! a multiset of three of them, since tasks differ in nothing else. In `make soak` every scheduler
//! runs every set; otherwise it runs every third one, and the next scheduler the next third.
//!
//! What is checked of each run: the engine's custody rules, those of a trace, sums of time, ends,
//! affinity, work conservation where it is claimed, and that a second run gives the same events.

use crate::common;

use common::checks::check_case;
use common::workloads::{nice, on, policy};
use common::{Case, MS};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, DeadlineParams, LoopCount, MutexProtocol, ObjectId, ObjectKind, ObjectSpec, Op, Policy,
    Program, SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::Scheduler;
use schedlab_sched::registry::SCHEDULERS;
use std::sync::Arc;

const KINDS: [&str; 4] = ["nice 0", "nice 5", "FIFO 1", "DEADLINE"];
const PROGRAMS: [&str; 5] = ["runs", "sleeps", "yields", "forks", "locks"];
const PLACES: [&str; 4] = ["at 0", "at 1 ms", "at 0 on CPU 0", "at 1 ms on CPU 0"];

/// Kind, program and place of a task.
type Letter = (&'static str, &'static str, &'static str);

/// Every program at every place for each of `kinds`.
fn alphabet(kinds: &[&'static str]) -> Vec<Letter> {
    let mut letters = Vec::new();
    for kind in kinds {
        for program in PROGRAMS {
            // A deadline task must be allowed to use every CPU.
            let is_possible = |place: &&str| *kind != "DEADLINE" || !place.ends_with("CPU 0");
            letters.extend(PLACES.into_iter().filter(is_possible).map(|at| (*kind, program, at)));
        }
    }
    letters
}

const MUTEX: ObjectId = ObjectId(0);

/// Number of the child's description.
const CHILD: u32 = 3;

fn program(name: &str) -> Program {
    let mut program = ProgramBuilder::new();
    match name {
        "runs" => program.run(3 * MS),
        "sleeps" => program.begin_loop(LoopCount::Times(2)).run(MS).sleep(MS).end_loop(),
        "yields" => program.run(MS).op(Op::Yield).run(MS),
        "forks" => program.op(Op::Fork { task: CHILD }).run(MS).op(Op::JoinAll),
        _ => program.run(MS / 2).lock(MUTEX).run(MS).unlock(MUTEX),
    };
    program.build()
}

fn attr(kind: &str) -> SchedAttr {
    match kind {
        "nice 0" => nice(0),
        "nice 5" => nice(5),
        "FIFO 1" => policy(Policy::Fifo, 1),
        _ => SchedAttr {
            policy: Policy::Deadline,
            deadline: DeadlineParams {
                runtime_ns: MS,
                deadline_ns: 5 * MS,
                period_ns: 6 * MS,
                reclaim: false,
            },
            ..SchedAttr::default()
        },
    }
}

fn workload(tasks: [Letter; 3]) -> Workload {
    let name = tasks.map(|(kind, program, place)| format!("{kind} {program} {place}")).join("; ");
    let mut specs: Vec<TaskSpec> = tasks
        .into_iter()
        .map(|(kind, runs, place)| {
            let affinity = if place.ends_with("CPU 0") { on(&[0]).affinity } else { None };
            let attr = SchedAttr { affinity, ..attr(kind) };
            let release = if place.starts_with("at 1 ms") { MS } else { 0 };
            let release_ns = Amount::Constant(release);
            TaskSpec { attr, release_ns, ..TaskSpec::new("task", program(runs)) }
        })
        .collect();
    let child = ProgramBuilder::new().run(MS).build();
    specs.push(TaskSpec { instances: 0, ..TaskSpec::new("child", child) });
    let mut workload = Workload::new(name, specs);
    let protocol = MutexProtocol::Inherit;
    workload.add_object(ObjectSpec::new("mutex", ObjectKind::Mutex { protocol }));
    workload
}

/// Multisets of three of `n`.
const fn nr_cases(n: usize) -> usize {
    n * (n + 1) * (n + 2) / 6
}

/// Runs every multiset of three `letters` under `schedulers`; returns the number of sets.
fn exhaust(
    letters: &[Letter],
    schedulers: &[&'static Arc<Scheduler>],
    prepare: impl Fn(&mut Case<'_>),
) -> usize {
    let mut failures = Vec::new();
    let (mut nr_runs, mut nr_sets) = (0usize, 0);
    let step = if std::env::var_os("SCHEDLAB_SOAK").is_some() { 1 } else { 3 };
    for (a, first) in letters.iter().enumerate() {
        for (b, second) in letters.iter().enumerate().skip(a) {
            for third in &letters[b..] {
                let workload = workload([*first, *second, *third]);
                nr_sets += 1;
                for info in schedulers.iter().skip(nr_sets % step).step_by(step) {
                    nr_runs += 1;
                    let mut case = Case::new(&workload, info, 2);
                    prepare(&mut case);
                    failures.extend(check_case(&case).err().map(|broken| broken.text));
                }
            }
        }
    }
    println!("{nr_runs} runs: {} letters under {} schedulers", letters.len(), schedulers.len());
    let shown = failures.len().min(20);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures[..shown].join("\n"));
    let all = nr_cases(letters.len()) * schedulers.len();
    // Each scheduler's part differs by a set at most.
    assert!(nr_runs.abs_diff(all / step) <= schedulers.len(), "{nr_runs} of {all}");
    nr_sets
}

/// Every second scheduler of the registry from `first` on.
fn half(first: usize) {
    let schedulers: Vec<_> = SCHEDULERS.iter().skip(first).step_by(2).collect();
    assert_eq!(exhaust(&alphabet(&KINDS[..3]), &schedulers, |_| {}), 37_820);
}

// Two halves, for two CPUs.

#[test]
fn under_every_second_scheduler() {
    half(0);
}

#[test]
fn under_the_others() {
    half(1);
}

/// Deadline tasks, real-time tasks that are held back or let fair ones go first after a few ms, and
/// a mutex through which parameters are lent.
#[test]
fn under_the_full_stack() {
    let has_deadline = |info: &&Arc<Scheduler>| {
        info.tunables.iter().any(|tunable| tunable.name == "dl_period_min")
    };
    let schedulers: Vec<_> = SCHEDULERS.iter().filter(has_deadline).collect();
    assert!(schedulers.len() >= 5);
    let cases = exhaust(&alphabet(&[KINDS[0], KINDS[2], KINDS[3]]), &schedulers, |case| {
        let tunables = &case.scheduler.tunables;
        case.machine.hz = 1000;
        // A CPU may idle beside a task that is out of budget.
        case.judges_balance = false;
        if case.options.set(tunables, "fair_server_runtime", MS).is_ok() {
            case.options.set(tunables, "fair_server_period", 4 * MS).unwrap();
        } else {
            case.options.set(tunables, "rt_runtime", 3 * MS).unwrap();
            case.options.set(tunables, "rt_period", 4 * MS).unwrap();
        }
    });
    assert_eq!(cases, 22_100);
}
