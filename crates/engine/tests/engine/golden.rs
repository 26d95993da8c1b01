// SPDX-License-Identifier: MIT OR Apache-2.0
//! Golden traces: what each scheduler of the registry does with each of a few small scenarios,
//! event by event. A change of behaviour shows as a changed line; `cargo xtask bless` accepts it,
//! and writes those of a new scheduler.
//!
//! One file for each scenario and scheduler in tests/golden; a missing one, and one that no test
//! makes, is an error.

use crate::common;

use common::workloads::{burst, bursts, nice, on, policy, task};
use common::{Case, MS, Run};
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::{
    Amount, Costs, Event, EventKind, LoopCount, Machine, Nanos, Op, Policy, TaskId, TaskSpec,
    Workload,
};
use schedlab_sched::Scheduler;
use schedlab_sched::registry::SCHEDULERS;
use schedlab_testing::{golden, is_blessing};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// A workload and the machine on which it runs.
struct Scenario {
    workload: Workload,
    machine: Machine,
    until_ns: Nanos,
}

fn scenario(name: &str, nr_cpus: u32, until_ms: u64, tasks: Vec<TaskSpec>) -> Scenario {
    Scenario {
        workload: Workload::new(name, tasks),
        machine: Machine { costs: Costs::ZERO, ..Machine::flat(nr_cpus) },
        until_ns: until_ms * MS,
    }
}

fn hogs() -> Scenario {
    let nices = [("a", 0), ("b", 0), ("c", 5)];
    let hogs = nices.map(|(name, value)| task(name, nice(value), burst(150 * MS)));
    scenario("hogs", 1, 400, hogs.into())
}

fn sleepers() -> Scenario {
    let draws = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(8))
        .op(Op::Run(Amount::Exponential { mean: MS }))
        .op(Op::Sleep(Amount::Uniform { low: MS, high: 5 * MS }))
        .end_loop()
        .build();
    let tasks = vec![
        TaskSpec::new("hog", burst(60 * MS)),
        TaskSpec { instances: 2, ..TaskSpec::new("drawn", draws) },
        TaskSpec::new("regular", bursts(6, MS, 9 * MS)),
    ];
    scenario("sleepers", 1, 200, tasks)
}

fn forks() -> Scenario {
    let root = ProgramBuilder::new()
        .run(MS)
        .op(Op::Fork { task: 1 })
        .op(Op::Fork { task: 1 })
        .run(3 * MS)
        .op(Op::Fork { task: 1 })
        .op(Op::JoinAll)
        .run(MS)
        .build();
    let child = TaskSpec { instances: 0, ..TaskSpec::new("child", bursts(2, 6 * MS, 2 * MS)) };
    scenario("forks", 2, 200, vec![TaskSpec::new("root", root), child])
}

fn yields() -> Scenario {
    let yielder = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(12))
        .run(700_000)
        .op(Op::Yield)
        .end_loop()
        .build();
    let yielder = TaskSpec { instances: 2, ..TaskSpec::new("yielder", yielder) };
    scenario("yields", 1, 100, vec![yielder, TaskSpec::new("hog", burst(10 * MS))])
}

fn io() -> Scenario {
    let transfer =
        |direction, bytes, sync| Op::Io { direction, bytes: Amount::Constant(bytes), sync };
    let reader = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(6))
        .run(400_000)
        .op(transfer(IoDirection::Read, 65_536, true))
        .end_loop()
        .build();
    let writer = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(4))
        .op(transfer(IoDirection::Write, 1 << 20, false))
        .run(MS)
        .op(transfer(IoDirection::Write, 4096, true))
        .end_loop()
        .build();
    let tasks = vec![
        TaskSpec { instances: 2, ..TaskSpec::new("reader", reader) },
        TaskSpec::new("writer", writer),
        TaskSpec::new("hog", burst(15 * MS)),
    ];
    scenario("io", 1, 100, tasks)
}

fn policies() -> Scenario {
    let periodic = |name, attr| TaskSpec { attr, ..TaskSpec::new(name, bursts(4, 2 * MS, 8 * MS)) };
    let tasks = vec![
        TaskSpec { attr: policy(Policy::Idle, 0), ..TaskSpec::new("idle", burst(20 * MS)) },
        TaskSpec { attr: policy(Policy::Batch, 0), ..TaskSpec::new("batch", burst(20 * MS)) },
        periodic("fifo", policy(Policy::Fifo, 50)),
        periodic("rr", policy(Policy::Rr, 20)),
        periodic("normal", nice(-5)),
    ];
    scenario("policies", 1, 150, tasks)
}

fn changes() -> Scenario {
    let changer = ProgramBuilder::new()
        .run(5 * MS)
        .op(Op::SetAttr(Box::new(on(&[1]))))
        .run(5 * MS)
        .op(Op::SetAttr(Box::new(nice(10))))
        .run(9 * MS)
        .op(Op::SetAttr(Box::new(policy(Policy::Fifo, 5))))
        .run(5 * MS)
        .build();
    let tasks = vec![
        TaskSpec { attr: on(&[0]), ..TaskSpec::new("changer", changer) },
        TaskSpec { instances: 2, ..TaskSpec::new("hog", burst(25 * MS)) },
    ];
    scenario("changes", 2, 150, tasks)
}

/// Everything costs time here, on two CPUs at HZ=1000.
fn costs() -> Scenario {
    let tasks = vec![
        TaskSpec { instances: 3, ..TaskSpec::new("hog", burst(9 * MS)) },
        TaskSpec { instances: 3, ..TaskSpec::new("sleeper", bursts(5, 900_000, 3 * MS)) },
    ];
    let free = scenario("costs", 2, 100, tasks);
    Scenario { machine: Machine { hz: 1000, ..Machine::flat(2) }, ..free }
}

fn name(run: &Run, task: Option<TaskId>) -> &str {
    task.map_or("-", |task| run.trace.tasks[task.index()].name.as_str())
}

/// One event, one line: time in ms, CPU, what happened.
fn line(run: &Run, event: &Event) -> String {
    let named = |task: TaskId| name(run, Some(task));
    let what = match event.kind {
        EventKind::Switch { prev, next, out } => {
            format!("switch {} -> {} ({})", name(run, prev), name(run, next), out.name())
        }
        EventKind::Wakeup { task, waker } => {
            format!("wakeup {} by {}", named(task), name(run, waker))
        }
        EventKind::Fork { task, parent } => {
            format!("fork {} by {}", named(task), name(run, parent))
        }
        EventKind::Exit { task } => format!("exit {}", named(task)),
        EventKind::Migrate { task, from } => format!("migrate {} from CPU {from}", named(task)),
        EventKind::Phase { task, phase } => format!("phase {} {phase}", named(task)),
        EventKind::Progress { task } => format!("progress {}", named(task)),
        EventKind::Block { task, object } => {
            let object = &run.trace.objects[object.index()];
            format!("block {} on {} {}", named(task), object.kind.name(), object.name)
        }
        EventKind::Lost { count } => format!("lost {count}"),
    };
    let (ms, part) = (event.time_ns / MS, event.time_ns % MS);
    format!("{ms:>4}.{part:06} cpu{} {what}", event.cpu)
}

fn text(scenario: &Scenario, scheduler: &Scheduler) -> String {
    let mut case = Case::new(&scenario.workload, scheduler, 1);
    case.machine = scenario.machine.clone();
    case.until_ns = Some(scenario.until_ns);
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let mut text = format!("# {}\n", case.describe());
    for event in &run.trace.events {
        writeln!(text, "{}", line(&run, event)).expect("a string takes everything");
    }
    let end = run.trace.end_ns;
    writeln!(text, "{:>4}.{:06} end", end / MS, end % MS).expect("a string takes everything");
    text
}

/// Where the goldens lie, in the checkout that the test runs for.
fn directory() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    PathBuf::from(package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()))
        .join("../../tests/golden")
}

/// File name and text of every golden.
fn expected_files() -> BTreeMap<String, String> {
    let scenarios = [hogs(), sleepers(), forks(), yields(), io(), policies(), changes(), costs()];
    let mut files = BTreeMap::new();
    for scenario in &scenarios {
        for scheduler in SCHEDULERS.iter() {
            let file = format!("{}.{}.txt", scenario.workload.name, scheduler.name);
            files.insert(file, text(scenario, scheduler));
        }
    }
    files
}

fn names_in_directory() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory()) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn traces_are_as_before() {
    let files = expected_files();
    let stale = names_in_directory().into_iter().filter(|name| !files.contains_key(name));
    let mut problems = Vec::new();
    for name in stale {
        if is_blessing() {
            std::fs::remove_file(directory().join(name)).unwrap();
        } else {
            problems.push(format!("{name}: no scenario makes this file"));
        }
    }
    for (name, found) in &files {
        problems.extend(golden(&directory().join(name), found).err());
    }
    assert!(
        problems.is_empty(),
        "{} goldens differ; if that is meant, run `cargo xtask bless` and read the diff:\n{}",
        problems.len(),
        problems.join("\n")
    );
}
