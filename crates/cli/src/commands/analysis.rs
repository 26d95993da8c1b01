// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--analysis`: what tasks did with their lives, who kept them waiting and how deep the run queues
//! were, as tables.

use crate::error::CliResult;
use crate::output::Out;
use crate::table::{self, digits, duration, number, percent};
use comfy_table::Cell;
use schedlab_lab::RunResult;
use schedlab_metrics::analysis::{
    Analysis, Antagonist, Antagonists, Depth, StateTime, TaskAnalysis, Thresholds,
};

/// Tasks and CPUs that a table shows.
const ROWS_SHOWN: usize = 40;
/// Antagonists and objects that a row names.
const NAMED: usize = 3;

/// The options of the analysis.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AnalysisArgs {
    /// Also analyse the trace: what each task did with its life, what it blocked on, who ran while
    /// it waited, how deep the run queues were.
    #[arg(long, conflicts_with = "slices")]
    pub analysis: bool,
}

impl AnalysisArgs {
    /// What counts as a finding; none: no analysis.
    pub fn thresholds(&self) -> Option<Thresholds> {
        self.analysis.then(Thresholds::default)
    }
}

/// Prints the analysis of a run, if it has one.
pub fn show(run: &RunResult, out: &mut Out) -> CliResult<()> {
    let Some(analysis) = &run.analysis else { return Ok(()) };
    out.line(format!("\nstates\n{}", state_table(&analysis.tasks)))?;
    hidden(analysis.tasks.len(), "tasks", out)?;
    out.line(format!("\nwho ran while they waited\n{}", antagonist_table(&analysis.tasks)))?;
    out.line(format!("\nrunnable tasks\n{}", depth_table(analysis)))?;
    hidden(analysis.cpus.len(), "CPUs", out)
}

fn hidden(count: usize, what: &str, out: &mut Out) -> CliResult<()> {
    match count.saturating_sub(ROWS_SHOWN) {
        0 => Ok(()),
        more => out.line(format!("... and {more} more {what}; --json shows all")),
    }
}

/// Sum of the states of one kind.
fn sum(task: &TaskAnalysis, state: &str) -> u64 {
    task.states.iter().filter(|one| one.state == state).map(|one| one.ns).sum()
}

fn state_table(tasks: &[TaskAnalysis]) -> String {
    let mut rows = table::table(&[
        "task",
        "life",
        "running",
        "runnable",
        "blocked",
        "sleeping",
        "device",
        "unknown",
        "blocked on",
    ]);
    for task in tasks.iter().take(ROWS_SHOWN) {
        let part = |state: &str| match sum(task, state) {
            0 => number("-"),
            ns => number(percent(ns as f64 / task.life_ns.max(1) as f64)),
        };
        rows.add_row([
            Cell::new(&task.name),
            number(duration(task.life_ns)),
            part("running"),
            part("runnable"),
            part("blocked"),
            part("sleeping"),
            part("device"),
            part("unknown"),
            Cell::new(objects(&task.states)),
        ]);
    }
    table::render(&rows)
}

/// `mutex m 12.00 ms (40 x), pipe p 3.000 us (1 x)`.
fn objects(states: &[StateTime]) -> String {
    let one = |state: &StateTime| {
        let object = state.object.as_ref()?;
        let kind = state.kind.as_deref().unwrap_or_default();
        Some(format!("{kind} {object} {} ({} x)", duration(state.ns), state.count))
    };
    let all: Vec<String> = states.iter().filter_map(one).collect();
    let shown = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown}, {more} more"),
    }
}

fn antagonist_table(tasks: &[TaskAnalysis]) -> String {
    let mut rows = table::table(&["task", "waited", "ran meanwhile", "idle", "not known"]);
    for task in tasks.iter().take(ROWS_SHOWN) {
        let Antagonists { idle_ns, unnamed_ns, .. } = &task.antagonists;
        rows.add_row([
            Cell::new(&task.name),
            number(duration(sum(task, "runnable"))),
            Cell::new(ran(&task.antagonists)),
            number(duration(*idle_ns)),
            number(duration(*unnamed_ns)),
        ]);
    }
    table::render(&rows)
}

/// `hog-0 12.00 ms, hog-1 3.000 ms, others 1.000 ms`.
fn ran(antagonists: &Antagonists) -> String {
    let shown = antagonists.tasks.iter().take(NAMED);
    let named: u64 = shown.clone().map(|one| one.ns).sum();
    let name = |one: &Antagonist| {
        let sign = if one.ns == one.ns_most { "" } else { ">= " };
        format!("{} {sign}{}", one.name, duration(one.ns))
    };
    let rest = antagonists.ran_ns.saturating_sub(named);
    let rest = (rest > 0).then(|| format!("others {}", duration(rest)));
    shown.map(name).chain(rest).collect::<Vec<_>>().join(", ")
}

fn depth_table(analysis: &Analysis) -> String {
    let mut rows = table::table(&["CPU", "mean", "median", "p99", "max", "at", "idle"]);
    let mut row = |name: String, depth: &Depth| {
        let whole: u64 = depth.histogram.iter().map(|time| time.ns).sum();
        let none = depth.histogram.first().filter(|time| time.from == 0).map_or(0, |t| t.ns);
        rows.add_row([
            Cell::new(name),
            number(digits(depth.mean)),
            number(depth.median),
            number(depth.p99),
            number(depth.max),
            number(duration(depth.max_at_ns)),
            number(percent(none as f64 / whole.max(1) as f64)),
        ]);
    };
    for depth in analysis.cpus.iter().take(ROWS_SHOWN) {
        row(depth.cpu.unwrap_or_default().to_string(), depth);
    }
    row("all".into(), &analysis.depth);
    table::render(&rows)
}
