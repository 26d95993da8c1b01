// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guide "Write a scheduler": its code is compiled here, runs, and is what the guide prints.
//!
//! `weighted_rr.rs` names its imports as a file of crates/sched does (`crate::core::Core`): the
//! re-exports below make this test the crate that it stands in.

mod weighted_rr;

pub use schedlab_sched::{boundary, registry, scheduler};

use schedlab_engine::{SimConfig, SimOutcome, simulate};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::time::NSEC_PER_MSEC;
use schedlab_model::trace::MemorySink;
use schedlab_model::{Costs, EventKind, Machine, Op, SchedAttr, TaskSpec, Workload};
use schedlab_sched::Options;
use std::sync::Arc;

const GUIDE: &str = include_str!("../../../../docs/guide/write-a-scheduler.md");
const CODE: &str = include_str!("weighted_rr.rs");

fn task(name: &str, nice: i8, work_ms: u64) -> TaskSpec {
    let mut task = TaskSpec::new(name, ProgramBuilder::new().run(work_ms * NSEC_PER_MSEC).build());
    task.attr.nice = nice;
    task
}

/// A slice: task, CPU, start and end in ms.
type Slice = (String, u32, u64, u64);

/// Who ran when, on a machine where nothing costs anything.
fn slices(nr_cpus: u32, tasks: Vec<TaskSpec>) -> (Vec<Slice>, SimOutcome) {
    let machine = Machine { costs: Costs::ZERO, ..Machine::flat(nr_cpus) };
    let mut sink = MemorySink::default();
    let scheduler = weighted_rr::scheduler();
    let config = SimConfig {
        machine: &machine,
        scheduler: &scheduler,
        options: &Options::defaults(&scheduler.tunables),
        seed: 1,
        until_ns: None,
        watchdog_ns: Some(1_000 * NSEC_PER_MSEC),
    };
    let outcome = simulate(&Workload::new("guide", tasks), &config, &mut sink, None).unwrap();
    let mut since = vec![0; nr_cpus as usize];
    let mut slices = Vec::new();
    for event in &sink.events {
        if let EventKind::Switch { prev, .. } = event.kind {
            let start = std::mem::replace(&mut since[event.cpu.index()], event.time_ns);
            if let Some(prev) = prev {
                let name = sink.tasks[prev.index()].name.clone();
                let (start, end) = (start / NSEC_PER_MSEC, event.time_ns / NSEC_PER_MSEC);
                slices.push((name, event.cpu.0, start, end));
            }
        }
    }
    (slices, outcome)
}

fn expect(slices: &[Slice], expected: &[(&str, u32, u64, u64)]) {
    let slices: Vec<_> =
        slices.iter().map(|(name, cpu, start, end)| (name.as_str(), *cpu, *start, *end)).collect();
    assert_eq!(slices, expected);
}

/// The lines of all blocks that begin with ```rust, without empty lines.
fn code_of_guide() -> Vec<&'static str> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for line in GUIDE.lines() {
        match line {
            "```rust" => in_code = true,
            "```" => in_code = false,
            _ if in_code && !line.is_empty() => lines.push(line),
            _ => {}
        }
    }
    lines
}

#[test]
fn the_guide_prints_the_whole_file() {
    let code: Vec<&str> = CODE.lines().filter(|line| !line.is_empty()).collect();
    let guide = code_of_guide();
    for (index, (shown, line)) in guide.iter().zip(&code).enumerate() {
        assert_eq!(shown, line, "line {} of the guide's code", index + 1);
    }
    assert_eq!(guide.len(), code.len(), "the guide's code is longer or shorter than the file");
}

#[test]
fn turns_follow_the_weights() {
    // 40 ms at nice 0 are 10 ticks; nice 5 has 335/1024 of them, 3 whole ticks.
    let (slices, _) = slices(1, vec![task("heavy", 0, 50), task("light", 5, 50)]);
    expect(
        &slices,
        &[("heavy", 0, 0, 40), ("light", 0, 40, 52), ("heavy", 0, 52, 62), ("light", 0, 62, 100)],
    );
}

#[test]
fn a_cpu_that_runs_dry_takes_a_waiting_task() {
    let tasks = vec![task("a", 0, 60), task("b", 0, 20), task("c", 0, 60)];
    let (slices, outcome) = slices(2, tasks);
    expect(&slices, &[("b", 1, 0, 20), ("a", 0, 0, 60), ("c", 1, 20, 80)]);
    assert_eq!(outcome.end_ns, 80 * NSEC_PER_MSEC);
}

#[test]
fn yield_and_a_change_of_nice_keep_the_queue_whole() {
    let mut polite = ProgramBuilder::new();
    polite.run(4 * NSEC_PER_MSEC).op(Op::Yield);
    let renice = Op::SetAttr(Box::new(SchedAttr { nice: 19, ..SchedAttr::default() }));
    polite.run(4 * NSEC_PER_MSEC).op(renice).run(16 * NSEC_PER_MSEC);
    let polite = TaskSpec::new("polite", polite.build());
    let (slices, _) = slices(1, vec![polite, task("hog", 0, 80)]);
    // It yields at 4, is back at 44, and at nice 19 its turn is one tick.
    expect(
        &slices,
        &[
            ("polite", 0, 0, 4),
            ("hog", 0, 4, 44),
            ("polite", 0, 44, 52),
            ("hog", 0, 52, 92),
            ("polite", 0, 92, 104),
        ],
    );
}

#[test]
fn its_name_is_free_and_its_entry_is_whole() {
    let own = weighted_rr::scheduler();
    assert!(registry::find(&own.name).is_none(), "choose another example for the guide");
    let mut all = registry::SCHEDULERS.to_vec();
    all.push(Arc::new(own));
    for info in all {
        assert!(!info.summary.is_empty() && !info.source.is_empty(), "{}", info.name);
        let mut options = Options::defaults(&info.tunables);
        for tunable in &info.tunables {
            options.set(&info.tunables, &tunable.name, tunable.default).unwrap();
        }
    }
}
