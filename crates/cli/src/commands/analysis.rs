// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--analysis`: what tasks did with their lives, who kept them waiting and how deep the run queues
//! were, as tables.

use crate::error::CliResult;
use crate::output::Out;
use crate::table::{self, digits, duration, maybe_duration, number, percent};
use comfy_table::Cell;
use schedlab_metrics::analysis::{
    Analysis, Antagonist, Antagonists, Depth, Findings, Starved, StateTime, TaskAnalysis,
    Thresholds, Wasted,
};
use schedlab_model::Nanos;
use schedlab_run::RunResult;

/// Tasks and CPUs that a table shows.
const ROWS_SHOWN: usize = 40;
/// Findings that a table shows; the JSON and the report have the 100 longest.
const FINDINGS_SHOWN: usize = 10;
/// Antagonists and objects that a row names.
const NAMED: usize = 3;

/// The options of the analysis.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AnalysisArgs {
    /// Analyse states, waits, antagonists and run queues too
    ///
    /// For each task: time in each state, what it blocked on, who ran while it waited, and lag. For
    /// the run: depth of the run queues, starvation, and CPUs that idled while a task waited.
    #[arg(long)]
    pub analysis: bool,
    /// With --analysis: length of a wait that counts as starvation [default: 100ms]
    #[arg(long, hide_short_help = true, value_name = "TIME", requires = "analysis",
          value_parser = crate::input::duration)]
    pub starved_after: Option<Nanos>,
    /// With --analysis: how long a CPU idles while a task waits on another before it counts
    /// [default: 4ms]
    #[arg(long, hide_short_help = true, value_name = "TIME", requires = "analysis",
          value_parser = crate::input::duration)]
    pub wasted_after: Option<Nanos>,
}

impl AnalysisArgs {
    /// What counts as a finding; none: no analysis.
    pub fn thresholds(&self) -> Option<Thresholds> {
        let usual = Thresholds::default();
        self.analysis.then(|| Thresholds {
            starved_ns: self.starved_after.unwrap_or(usual.starved_ns),
            wasted_ns: self.wasted_after.unwrap_or(usual.wasted_ns),
        })
    }
}

/// Prints the analysis of a run, if it has one.
pub fn show(run: &RunResult, out: &mut Out) -> CliResult<()> {
    let Some(analysis) = &run.analysis else { return Ok(()) };
    out.line(format!("\nstates\n{}", state_table(&analysis.tasks)))?;
    hidden(analysis.tasks.len(), "tasks", out)?;
    out.line(format!(
        "\nlag, and who ran while they waited\n{}",
        antagonist_table(&analysis.tasks)
    ))?;
    out.line(format!("\nrunnable tasks\n{}", depth_table(analysis)))?;
    hidden(analysis.cpus.len(), "CPUs", out)?;
    starved(&analysis.starved, out)?;
    wasted(&analysis.wasted, out)
}

/// `starved: 3 waits of 100 ms or longer`, and the longest of them.
fn starved(found: &Findings<Starved>, out: &mut Out) -> CliResult<()> {
    let limit = duration(found.threshold_ns);
    let waits = table::counted(found.count, "wait", "waits");
    out.line(format!("\nstarved: {waits} of {limit} or longer"))?;
    if found.longest.is_empty() {
        return Ok(());
    }
    let mut rows = table::table(&["task", "waited", "from", "on CPU", "cause", "ran meanwhile"]);
    for one in most(&found.longest, |one| one.ns) {
        let open = if one.is_open { " (to the end)" } else { "" };
        rows.add_row([
            Cell::new(&one.name),
            number(format!("{}{open}", duration(one.ns))),
            number(duration(one.from_ns)),
            number(one.cpu),
            Cell::new(&one.cause),
            Cell::new(one.ran.iter().map(ran_for).take(NAMED).collect::<Vec<_>>().join(", ")),
        ]);
    }
    out.line(table::render(&rows))
}

/// `wasted: 2 times a CPU was idle for 4 ms or longer while a task waited, 12 ms in all`.
fn wasted(found: &Findings<Wasted>, out: &mut Out) -> CliResult<()> {
    let (limit, all) = (duration(found.threshold_ns), duration(found.ns));
    let times = table::counted(found.count, "time", "times");
    out.line(format!(
        "\nwasted: {times} a CPU was idle for {limit} or longer while a task that may run there \
         waited on another, {all} in all"
    ))?;
    if found.longest.is_empty() {
        return Ok(());
    }
    let mut rows = table::table(&["idle CPU", "for", "from", "task", "waited on", "cause"]);
    for one in most(&found.longest, |one| one.ns) {
        rows.add_row([
            number(one.cpu),
            number(duration(one.ns)),
            number(duration(one.from_ns)),
            Cell::new(&one.name),
            number(format!("CPU {}", one.waited_on)),
            Cell::new(&one.cause),
        ]);
    }
    out.line(table::render(&rows))
}

/// The longest first, as many as a table shows.
fn most<T>(all: &[T], ns: impl Fn(&T) -> u64) -> Vec<&T> {
    let mut all: Vec<&T> = all.iter().collect();
    all.sort_by_key(|one| std::cmp::Reverse(ns(one)));
    all.truncate(FINDINGS_SHOWN);
    all
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
        let (object, spent) = (state.blocked_on()?, duration(state.ns));
        Some(format!("{object} {spent} ({} x)", state.count))
    };
    let all: Vec<String> = states.iter().filter_map(one).collect();
    let shown = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown}, {more} more"),
    }
}

fn antagonist_table(tasks: &[TaskAnalysis]) -> String {
    let mut rows =
        table::table(&["task", "waited", "behind", "ahead", "idle", "not known", "ran meanwhile"]);
    for task in tasks.iter().take(ROWS_SHOWN) {
        let Antagonists { idle_ns, unnamed_ns, .. } = &task.antagonists;
        rows.add_row([
            Cell::new(&task.name),
            number(duration(sum(task, "runnable"))),
            number(maybe_duration(task.lag.map(|lag| lag.behind_ns_max))),
            number(maybe_duration(task.lag.map(|lag| lag.ahead_ns_max))),
            number(duration(*idle_ns)),
            number(duration(*unnamed_ns)),
            Cell::new(ran(&task.antagonists)),
        ]);
    }
    table::render(&rows)
}

/// `hog-0 12.00 ms, hog-1 3.000 ms, others 1.000 ms`.
fn ran(antagonists: &Antagonists) -> String {
    let shown = antagonists.tasks.iter().take(NAMED);
    let named: u64 = shown.clone().map(|one| one.ns).sum();
    let rest = antagonists.ran_ns.saturating_sub(named);
    let rest = (rest > 0).then(|| format!("others {}", duration(rest)));
    shown.map(ran_for).chain(rest).collect::<Vec<_>>().join(", ")
}

/// `hog-0 12.00 ms`.
fn ran_for(one: &Antagonist) -> String {
    let sign = if one.ns == one.ns_most { "" } else { ">= " };
    format!("{} {sign}{}", one.name, duration(one.ns))
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
