// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--analysis`: prints tables of the tasks' states, of who kept them waiting, and of the depth of
//! the run queues.

use crate::error::CliResult;
use crate::output::Out;
use crate::table::{self, digits, duration, maybe_duration, moment, number, or_dash, percent};
use comfy_table::Cell;
use schedlab_metrics::analysis::{
    Analysis, Antagonist, Antagonists, Depth, Findings, NamedAntagonist, Starved, StateTime,
    TaskAnalysis, Thresholds, Wasted,
};
use schedlab_model::Nanos;
use schedlab_run::RunResult;

/// Maximum number of tasks or CPUs in a table.
const ROWS_SHOWN: usize = 40;
/// Maximum number of findings in a table; the JSON and the report have the 100 longest.
const FINDINGS_SHOWN: usize = 10;
/// Maximum number of antagonists or objects that a row names.
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
    /// The thresholds for findings; `None` without an analysis.
    pub fn thresholds(&self) -> Option<Thresholds> {
        let usual = Thresholds::default();
        self.analysis.then(|| Thresholds {
            starved_ns: self.starved_after.unwrap_or(usual.starved_ns),
            wasted_ns: self.wasted_after.unwrap_or(usual.wasted_ns),
        })
    }
}

/// How much of an analysis to show.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Show every row, not only the first or longest ones.
    pub all: bool,
    /// Show every listed finding: all those of the requested tasks.
    pub all_findings: bool,
    /// Ids of tasks in the order of the rows; if empty, rows are sorted by id.
    pub order: Vec<u32>,
}

impl Shown {
    const fn rows(&self) -> usize {
        if self.all { usize::MAX } else { ROWS_SHOWN }
    }

    const fn findings(&self) -> usize {
        if self.all || self.all_findings { usize::MAX } else { FINDINGS_SHOWN }
    }

    /// The tasks in the order of the rows.
    fn tasks<'a>(&self, tasks: &'a [TaskAnalysis]) -> Vec<&'a TaskAnalysis> {
        if self.order.is_empty() {
            return tasks.iter().collect();
        }
        let find = |id: &u32| tasks.binary_search_by_key(id, |task| task.id).ok();
        self.order.iter().filter_map(find).map(|at| &tasks[at]).collect()
    }

    fn hidden(&self, count: usize, what: &str, out: &mut Out) -> CliResult<()> {
        match count.saturating_sub(self.rows()) {
            0 => Ok(()),
            more => out.line(format!("... and {more} more {what}; --json shows all")),
        }
    }
}

/// Prints the analysis of a run, if it has one.
pub fn show(run: &RunResult, out: &mut Out) -> CliResult<()> {
    match &run.analysis {
        Some(analysis) => show_all(analysis, &Shown::default(), out),
        None => Ok(()),
    }
}

/// Prints every table of an analysis.
pub fn show_all(analysis: &Analysis, shown: &Shown, out: &mut Out) -> CliResult<()> {
    let tasks = shown.tasks(&analysis.tasks);
    out.line(format!("\nstates\n{}", state_table(&tasks, shown)))?;
    shown.hidden(tasks.len(), "tasks", out)?;
    out.line(format!("\nlag, and who ran while they waited\n{}", antagonist_table(&tasks, shown)))?;
    shown.hidden(tasks.len(), "tasks", out)?;
    out.line(format!("\nrunnable tasks\n{}", depth_table(analysis, shown)))?;
    shown.hidden(analysis.cpus.len(), "CPUs", out)?;
    if !analysis.queues.is_empty() {
        out.line(format!("\ntasks in dispatch queues\n{}", queue_table(analysis, shown)))?;
        shown.hidden(analysis.queues.len(), "queues", out)?;
    }
    starved(&analysis.starved, shown, out)?;
    wasted(&analysis.wasted, shown, out)
}

/// `starved: 3 waits of 100 ms or longer`, and the longest of them. Without a threshold, the line
/// counts all waits: `waits: 22`.
pub fn starved(found: &Findings<Starved>, shown: &Shown, out: &mut Out) -> CliResult<()> {
    let rows = most(&found.longest, shown, |one| one.ns);
    let waits = table::counted(found.count, "wait", "waits");
    let all = duration(found.ns);
    let head = match found.threshold_ns {
        0..=1 => format!("waits: {waits} for a CPU, {all} in all"),
        limit => format!("starved: {waits} of {} or longer, {all} in all", duration(limit)),
    };
    out.line(format!("\n{head}{}", how_many(rows.len(), found.count)))?;
    if rows.is_empty() {
        return Ok(());
    }
    let heads = ["task", "pid", "waited", "from", "to", "on CPU", "cause", "ran meanwhile"];
    let mut table = table::table(&heads);
    for one in rows {
        let open = if one.is_open { " (to the end)" } else { "" };
        table.add_row([
            Cell::new(&one.name),
            pid_cell(one.pid),
            number(format!("{}{open}", duration(one.ns))),
            number(moment(one.from_ns)),
            number(moment(one.to_ns)),
            number(one.cpu),
            Cell::new(&one.cause),
            Cell::new(one.ran.iter().map(ran_for).take(NAMED).collect::<Vec<_>>().join(", ")),
        ]);
    }
    out.line(table::render(&table))
}

/// `wasted: 2 times a CPU was idle for 4 ms or longer while a task waited, 12 ms in all`.
fn wasted(found: &Findings<Wasted>, shown: &Shown, out: &mut Out) -> CliResult<()> {
    let (limit, all) = (duration(found.threshold_ns), duration(found.ns));
    let times = table::counted(found.count, "time", "times");
    let rows = most(&found.longest, shown, |one| one.ns);
    out.line(format!(
        "\nwasted: {times} a CPU was idle for {limit} or longer while a task that may run there \
         waited on another, {all} in all{}",
        how_many(rows.len(), found.count)
    ))?;
    if rows.is_empty() {
        return Ok(());
    }
    let heads = ["idle CPU", "for", "from", "task", "pid", "waited on", "cause"];
    let mut table = table::table(&heads);
    for one in rows {
        table.add_row([
            number(one.cpu),
            number(duration(one.ns)),
            number(moment(one.from_ns)),
            Cell::new(&one.name),
            pid_cell(one.pid),
            number(format!("CPU {}", one.waited_on)),
            Cell::new(&one.cause),
        ]);
    }
    out.line(table::render(&table))
}

/// `; the 10 longest of 22 are shown, --all shows all`.
fn how_many(shown: usize, count: u64) -> String {
    match shown as u64 {
        0 => String::new(),
        all if all == count => String::new(),
        some => format!("; the {some} longest of {count} are shown, --all shows all"),
    }
}

/// A task's name for people, with its process id if known.
pub fn id_of(name: &str, pid: Option<u32>) -> String {
    pid.map_or_else(|| name.to_string(), |pid| format!("{name} {pid}"))
}

/// All tasks of one name: `hog (3 tasks)`, or `sh 8`.
pub fn sharers(one: &NamedAntagonist) -> String {
    match one.nr_tasks {
        0 | 1 => id_of(&one.name, one.pid),
        count => format!("{} ({count} tasks)", one.name),
    }
}

fn pid_cell(pid: Option<u32>) -> Cell {
    number(or_dash(pid, |pid| pid.to_string()))
}

/// The longest ones first, up to the number of rows of a table.
fn most<'a, T>(all: &'a [T], shown: &Shown, ns: impl Fn(&T) -> u64) -> Vec<&'a T> {
    let mut all: Vec<&T> = all.iter().collect();
    all.sort_by_key(|one| std::cmp::Reverse(ns(one)));
    all.truncate(shown.findings());
    all
}

fn state_table(tasks: &[&TaskAnalysis], shown: &Shown) -> String {
    let mut rows = table::table(&[
        "task",
        "pid",
        "life",
        "running",
        "runnable",
        "blocked",
        "sleeping",
        "device",
        "unknown",
        "blocked on",
    ]);
    for task in tasks.iter().take(shown.rows()) {
        let part = |state: &str| match task.time_in(state) {
            0 => number("-"),
            ns => number(percent(ns as f64 / task.life_ns.max(1) as f64)),
        };
        rows.add_row([
            Cell::new(&task.name),
            pid_cell(task.pid),
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

fn antagonist_table(tasks: &[&TaskAnalysis], shown: &Shown) -> String {
    let mut rows = table::table(&[
        "task",
        "pid",
        "waited",
        "behind",
        "ahead",
        "idle",
        "not known",
        "ran meanwhile",
    ]);
    for task in tasks.iter().take(shown.rows()) {
        let Antagonists { idle_ns, unnamed_ns, .. } = &task.antagonists;
        rows.add_row([
            Cell::new(&task.name),
            pid_cell(task.pid),
            number(duration(task.time_in("runnable"))),
            number(maybe_duration(task.lag.map(|lag| lag.behind_ns_max))),
            number(maybe_duration(task.lag.map(|lag| lag.ahead_ns_max))),
            number(duration(*idle_ns)),
            number(duration(*unnamed_ns)),
            Cell::new(ran(&task.antagonists)),
        ]);
    }
    table::render(&rows)
}

/// `hog (3 tasks) 12.00 ms, sh 8 3.000 ms, others 1.000 ms`.
fn ran(antagonists: &Antagonists) -> String {
    let shown = antagonists.names.iter().take(NAMED);
    let named: u64 = shown.clone().map(|one| one.ns).sum();
    let rest = antagonists.ran_ns.saturating_sub(named);
    let rest = (rest > 0).then(|| format!("others {}", duration(rest)));
    let one = |one: &NamedAntagonist| format!("{} {}", sharers(one), at_least(one.ns, one.ns_most));
    shown.map(one).chain(rest).collect::<Vec<_>>().join(", ")
}

/// `hog 117 12.00 ms`.
fn ran_for(one: &Antagonist) -> String {
    format!("{} {}", id_of(&one.name, one.pid), at_least(one.ns, one.ns_most))
}

/// A time; or, if its bounds differ, the lower bound marked as such.
fn at_least(ns: u64, ns_most: u64) -> String {
    let sign = if ns == ns_most { "" } else { ">= " };
    format!("{sign}{}", duration(ns))
}

fn depth_table(analysis: &Analysis, shown: &Shown) -> String {
    let mut rows = table::table(&["CPU", "mean", "median", "p99", "max", "at", "idle"]);
    for depth in analysis.cpus.iter().take(shown.rows()) {
        rows.add_row(depth_row(&depth.cpu.unwrap_or_default().to_string(), depth));
    }
    rows.add_row(depth_row("all", &analysis.depth));
    table::render(&rows)
}

fn queue_table(analysis: &Analysis, shown: &Shown) -> String {
    let mut rows = table::table(&["queue", "mean", "median", "p99", "max", "at", "empty"]);
    for of in analysis.queues.iter().take(shown.rows()) {
        rows.add_row(depth_row(&of.queue, &of.depth));
    }
    table::render(&rows)
}

fn depth_row(name: &str, depth: &Depth) -> [Cell; 7] {
    let whole: u64 = depth.histogram.iter().map(|time| time.ns).sum();
    let none = depth.histogram.first().filter(|time| time.from == 0).map_or(0, |t| t.ns);
    [
        Cell::new(name),
        number(digits(depth.mean)),
        number(depth.median),
        number(depth.p99),
        number(depth.max),
        number(moment(depth.max_at_ns)),
        number(percent(none as f64 / whole.max(1) as f64)),
    ]
}
