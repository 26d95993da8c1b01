// SPDX-License-Identifier: MIT OR Apache-2.0
//! Marks of schedulers that students have written: an [`Assignment`] has tests with points, and
//! [`grade`] runs a scheduler through them.
//!
//! A test compares slices or a measure with those of a scheduler of this program, or plays random
//! cases against the rules that every run must keep. This crate reads no file, clock or
//! environment: the same assignment and scheduler get the same marks on every machine.

mod assignment;

pub use assignment::{Assignment, Kind, Test};

use schedlab_check::{Subject, Verdict, check, generate};
use schedlab_core::{Outcome, Request, simulate, simulate_with};
use schedlab_run::values::{is_time, run_value};
use schedlab_sched::Scheduler;
use serde::Serialize;
use std::sync::Arc;

/// The marks of a scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Marks {
    /// Points in all.
    pub points: u32,
    /// Each test, in the order of the assignment.
    pub tests: Vec<Mark>,
}

/// The mark of a test.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mark {
    /// Name of the test.
    pub name: String,
    /// Points that it gave.
    pub points: u32,
    /// Why it gave none; `None` if it was passed.
    pub problem: Option<String>,
}

impl Marks {
    /// No points at all, because of `problem`.
    pub fn none(assignment: &Assignment, problem: &str) -> Self {
        let mark = |test: &Test| Mark {
            name: test.name.clone(),
            points: 0,
            problem: Some(problem.to_owned()),
        };
        Self { points: 0, tests: assignment.tests.iter().map(mark).collect() }
    }
}

/// Runs `scheduler` through the tests of `assignment`.
pub fn grade(assignment: &Assignment, scheduler: &Arc<Scheduler>) -> Marks {
    let mut marks = Marks { points: 0, tests: Vec::new() };
    for test in &assignment.tests {
        let problem = judge(test, scheduler).err();
        let points = if problem.is_none() { test.points } else { 0 };
        marks.points += points;
        marks.tests.push(Mark { name: test.name.clone(), points, problem });
    }
    marks
}

fn judge(test: &Test, scheduler: &Arc<Scheduler>) -> Result<(), String> {
    match test.kind()? {
        Kind::Cases(count) => cases(test, count, scheduler),
        Kind::SameSlices(other) => each_seed(test, |seed| {
            let own = run(test.request(&scheduler.name, seed), Some(scheduler))?;
            let wanted = run(test.request(other, seed), None)?;
            same_slices(&own, &wanted, other)
        }),
        Kind::Measure(measure) => each_seed(test, |seed| {
            let own = run(test.request(&scheduler.name, seed), Some(scheduler))?;
            within(test, measure, &own, seed)
        }),
    }
}

/// The first problem of a seed. Its number is named if there are several.
fn each_seed(test: &Test, judge: impl Fn(u64) -> Result<(), String>) -> Result<(), String> {
    let several = test.seeds().len() > 1;
    for seed in test.seeds() {
        let named = |problem| if several { format!("seed {seed}: {problem}") } else { problem };
        judge(*seed).map_err(named)?;
    }
    Ok(())
}

fn run(request: Request, own: Option<&Arc<Scheduler>>) -> Result<Outcome, String> {
    let outcome = match own {
        Some(scheduler) => simulate_with(&request, Some(Arc::clone(scheduler)), None),
        None => simulate(&request),
    };
    outcome.map_err(|error| error.one_line())
}

/// A time in ms, exactly.
fn ms(ns: u64) -> String {
    format!("{} ms", ns as f64 / 1e6)
}

/// Slice number `at` of a run; `None` if it has fewer.
fn slice(run: &Outcome, at: usize) -> Option<(u32, u32, u64, u64)> {
    let slices = &run.columns.slices;
    Some((*slices.cpu.get(at)?, slices.task[at], slices.start_ns[at], slices.end_ns[at]))
}

/// Names the first slice that differs.
fn same_slices(own: &Outcome, wanted: &Outcome, other: &str) -> Result<(), String> {
    let count = own.columns.slices.cpu.len().max(wanted.columns.slices.cpu.len());
    let Some(at) = (0..count).find(|at| slice(own, *at) != slice(wanted, *at)) else {
        return Ok(());
    };
    let text = |run: &Outcome| {
        let Some((cpu, task, start, end)) = slice(run, at) else {
            return "the run has ended".to_owned();
        };
        let mut tasks = run.result.measures.tasks.iter();
        let name = tasks.find(|known| known.id == task).map_or("a task", |known| &known.name);
        format!("{name} runs on CPU {cpu} from {} to {}", ms(start), ms(end))
    };
    let (mine, theirs) = (text(own), text(wanted));
    Err(format!("slice {} of {count} differs: {mine}, under {other} {theirs}", at + 1))
}

/// A value of a measure for people.
fn value(measure: &str, value: f64) -> String {
    if is_time(measure) { format!("{:.3} ms", value / 1e6) } else { format!("{value:.4}") }
}

fn within(test: &Test, measure: &str, own: &Outcome, seed: u64) -> Result<(), String> {
    let lacks = || format!("the run has no {measure}: no task exits or sleeps");
    let found = run_value(&own.result, measure).ok_or_else(lacks)?;
    let (unit, of) = match &test.relative_to {
        Some(other) => {
            let reference = run(test.request(other, seed), None)?;
            let unit = run_value(&reference.result, measure).ok_or_else(lacks)?;
            (unit, format!(" times {other}'s {}", value(measure, unit)))
        }
        None => (1.0, String::new()),
    };
    let fails = |what: &str, bound: f64| {
        let limit = match test.relative_to {
            Some(_) => format!("{bound}{of}"),
            None => value(measure, bound),
        };
        Err(format!("{measure} is {}: {what} {limit}", value(measure, found)))
    };
    match (test.at_most, test.at_least) {
        (Some(most), _) if found > most * unit => fails("allowed is at most", most),
        (_, Some(least)) if found < least * unit => fails("asked for is at least", least),
        _ => Ok(()),
    }
}

/// Plays random cases. The seeds continue those of the test.
fn cases(test: &Test, count: u64, scheduler: &Arc<Scheduler>) -> Result<(), String> {
    let subject = Subject::new(Arc::clone(scheduler));
    let shape = schedlab_check::Shape { cpus_max: test.cpus, ..subject.shape() };
    let first = test.seeds()[0];
    for seed in first..first.saturating_add(count) {
        let case = generate(&shape, seed);
        if let Verdict::Broken(breach) = check(&case, &subject) {
            return Err(format!(
                "random case {seed} breaks the rule {}: {}",
                breach.rule.name, breach.text
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
