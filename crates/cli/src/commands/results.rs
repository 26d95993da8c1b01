// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results for people: one run as a table of its tasks, several as a table of schedulers.

use crate::error::{CliError, CliResult, Exit};
use crate::output::{Out, say};
use crate::table::{self, digits, duration, maybe_duration, number, or_dash, percent};
use schedlab_lab::answer::{Contender, answer};
use schedlab_metrics::ModelCounters;
use schedlab_metrics::stats::Summary;
use schedlab_run::{Code, Expected, GroupResult, LaneKind, Origin, RunResult, values};

/// Tasks that a table shows; the others are counted.
const TASKS_SHOWN: usize = 40;

/// Prints one run: a head line, its tasks, its totals.
pub fn one_run(run: &RunResult, out: &mut Out) -> CliResult<()> {
    out.line(head(run))?;
    out.line(task_table(run))?;
    let hidden = run.measures.tasks.len().saturating_sub(TASKS_SHOWN);
    if hidden > 0 {
        out.line(format!("... and {hidden} more tasks; --json shows all"))?;
    }
    out.line(totals(run))?;
    run.groups.iter().try_for_each(|group| out.line(group_line(group)))
}

/// `group /batch: throttled at the end of 10 of 10 periods, for 800 ms in all`.
fn group_line(group: &GroupResult) -> String {
    let bursts = match group.nr_bursts {
        0 => String::new(),
        count => format!(
            "; beyond its quota in {}, by {}",
            table::counted(count, "period", "periods"),
            duration(group.burst_ns)
        ),
    };
    format!(
        "group {}: throttled at the end of {} of {}, for {} in all{bursts}",
        group.path,
        group.nr_throttled,
        table::counted(group.nr_periods, "period", "periods"),
        duration(group.throttled_ns)
    )
}

/// `hogs under linux-6.12: simulated, 2 CPUs, HZ 250, seed 1`.
fn head(run: &RunResult) -> String {
    let machine = &run.machine;
    let hz = machine.hz.map(|hz| format!(", HZ {hz}")).unwrap_or_default();
    let name = machine.cpu_model.strip_prefix("modelled: ");
    let cpus = table::counted(machine.nr_cpus, "CPU", "CPUs");
    let on = name.map(|name| format!(" on {name}")).unwrap_or_default();
    format!(
        "{} under {}: {}{on}, {cpus}{hz}, seed {}, schedlab {}",
        run.workload, run.scheduler, run.source, run.seed, run.schedlab_version
    )
}

fn task_table(run: &RunResult) -> String {
    let mut rows = table::table(&[
        "task",
        "response",
        "turnaround",
        "CPU time",
        "run delay",
        "share",
        "switches",
        "invol.",
        "migr.",
        "latency p99",
    ]);
    for task in run.measures.tasks.iter().take(TASKS_SHOWN) {
        rows.add_row([
            comfy_table::Cell::new(&task.name),
            number(maybe_duration(task.response_ns)),
            number(maybe_duration(task.turnaround_ns)),
            number(duration(task.cpu_time_ns)),
            number(duration(task.run_delay_ns)),
            number(or_dash(task.cpu_share, percent)),
            number(task.nr_voluntary_switches + task.nr_involuntary_switches),
            number(task.nr_involuntary_switches),
            number(or_dash(task.nr_migrations, |count| count.to_string())),
            number(maybe_duration(task.wakeup_latency.ns_p99)),
        ]);
    }
    table::render(&rows)
}

/// The totals on one line.
pub fn totals(run: &RunResult) -> String {
    let totals = &run.measures.totals;
    format!(
        "makespan {}, throughput {}, utilisation {}, Jain index {}, {} switches, {} migrations{}",
        maybe_duration(totals.makespan_ns),
        or_dash(totals.throughput_per_s, |value| format!("{}/s", digits(value))),
        or_dash(totals.utilisation, percent),
        or_dash(totals.jain_index, |index| format!("{index:.3}")),
        totals.nr_switches,
        or_dash(totals.nr_migrations, |count| count.to_string()),
        run.measures.model.as_ref().map_or_else(String::new, counters)
    )
}

/// What the simulator counted beside, where there was any.
fn counters(model: &ModelCounters) -> String {
    let mut text = String::new();
    if model.nr_interrupts > 0 {
        let ns = duration(model.interrupt_ns);
        text += &format!(", {} interrupts of {ns}", model.nr_interrupts);
    }
    if model.cache_refill_ns > 0 {
        text += &format!(", {} refilling caches", duration(model.cache_refill_ns));
    }
    if model.lock_wait_ns > 0 {
        text += &format!(", {} spinning for locks", duration(model.lock_wait_ns));
    }
    text
}

/// An expectation that does not hold, and the run in which.
pub struct Unmet {
    /// `linux-6.12, n=4, seed 1`.
    run: String,
    expected: Expected,
}

/// What came of the expectations of some runs.
pub struct Expectations {
    /// Those that do not hold.
    unmet: Vec<Unmet>,
    /// How many there are in all.
    count: usize,
}

/// Most rows of the table of expectations that do not hold.
const UNMET_MAX: usize = 50;

impl Expectations {
    /// Those of `runs`.
    pub fn of<'r>(runs: impl Iterator<Item = &'r RunResult>) -> Self {
        let mut all = Self { unmet: Vec::new(), count: 0 };
        for run in runs {
            all.count += run.expectations.len();
            let missed = run.expectations.iter().filter(|expected| !expected.holds).cloned();
            let parameters = run.parameters.iter().filter(|(name, _)| *name != "policy");
            let parameters: String =
                parameters.map(|(name, value)| format!(", {name}={value}")).collect();
            let label = format!("{}{parameters}, seed {}", scheduler_label(run), run.seed);
            all.unmet.extend(missed.map(|expected| Unmet { run: label.clone(), expected }));
        }
        all
    }

    /// A failed check if one does not hold, of `whose`.
    pub fn check(&self, whose: &str) -> CliResult<()> {
        if self.unmet.is_empty() {
            return Ok(());
        }
        Err(CliError::new(
            Exit::Check,
            format!("{} of {} expectations of {whose} do not hold", self.unmet.len(), self.count),
            "the workload file's `expect` says what was expected; results as JSON have every value",
        ))
    }

    /// Those that do not hold, one a row; `None` if all do.
    pub fn table(&self) -> Option<String> {
        if self.unmet.is_empty() {
            return None;
        }
        let mut rows = table::table(&["run", "task", "measure", "expected", "found", "in"]);
        for Unmet { run, expected } in self.unmet.iter().take(UNMET_MAX) {
            let is_time = values::is_time(&expected.measure.replace('.', "_"));
            let show = |value: f64| match is_time && value >= 0.0 {
                true => duration(value.round() as u64),
                false => value.to_string(),
            };
            rows.add_row([
                comfy_table::Cell::new(run),
                comfy_table::Cell::new(expected.task.as_deref().unwrap_or("(run)")),
                comfy_table::Cell::new(&expected.measure),
                number(format!("{} {}", expected.comparison, show(expected.value))),
                number(expected.found.map_or_else(|| "none".into(), show)),
                comfy_table::Cell::new(expected.found_in.as_deref().unwrap_or_default()),
            ]);
        }
        let more = match self.unmet.len().saturating_sub(UNMET_MAX) {
            0 => String::new(),
            count => format!("\n and {count} more"),
        };
        Some(format!("\nexpectations that do not hold:\n{}{more}", table::render(&rows)))
    }
}

/// Runs that are repetitions of one another.
struct Row<'t> {
    lane: Origin,
    scheduler: String,
    runs: Vec<&'t RunResult>,
}

/// Groups repetitions, in order of first appearance.
fn rows<'t>(runs: impl Iterator<Item = &'t RunResult>) -> Vec<Row<'t>> {
    let mut rows: Vec<Row<'t>> = Vec::new();
    for run in runs {
        let scheduler = scheduler_label(run);
        match rows.iter_mut().find(|row| row.lane == run.lane && row.scheduler == scheduler) {
            Some(row) => row.runs.push(run),
            None => rows.push(Row { lane: run.lane, scheduler, runs: vec![run] }),
        }
    }
    rows
}

/// Scheduler, and the policy that a model was run under.
fn scheduler_label(run: &RunResult) -> String {
    match run.parameters.get("policy") {
        Some(policy) if run.lane == LaneKind::Sim => format!("{} {policy}", run.scheduler),
        _ => run.scheduler.clone(),
    }
}

/// Mean of a measure over repetitions, with half the width of the 95 % confidence interval where
/// there are enough of them.
fn mean(runs: &[&RunResult], measure: &str) -> String {
    let values: Vec<f64> = runs.iter().filter_map(|run| values::run_value(run, measure)).collect();
    if values.is_empty() {
        return "-".into();
    }
    let summary = Summary::of(&values);
    let is_time = values::is_time(measure);
    let show = |value: f64| if is_time { duration(value.round() as u64) } else { digits(value) };
    match summary.ci95_half_width {
        Some(half) if half > 0.0 => format!("{} \u{b1} {}", show(summary.mean), show(half)),
        _ => show(summary.mean),
    }
}

/// Columns of a comparison: their heads, and their measures. One that no run has is left out.
const COMPARED: [(&str, &str); 9] = [
    ("latency p50", "wakeup_latency_ns_median"),
    ("latency p99", "wakeup_latency_ns_p99"),
    ("turnaround", "turnaround_ns_mean"),
    ("response", "response_ns_mean"),
    ("makespan", "makespan_ns"),
    ("throughput/s", "throughput_per_s"),
    ("run delay", "run_delay_ns_mean"),
    ("switches", "nr_switches"),
    ("Jain", "jain_index"),
];

/// Who is best, in a sentence, and a table of schedulers, one row each, means over repetitions.
pub fn comparison<'t>(runs: impl Iterator<Item = &'t RunResult>) -> String {
    let rows = rows(runs);
    let has = |measure: &str| {
        let mut runs = rows.iter().flat_map(|row| &row.runs);
        runs.any(|run| values::run_value(run, measure).is_some())
    };
    let columns: Vec<(&str, &str)> = COMPARED.into_iter().filter(|(_, m)| has(m)).collect();
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let mut output = table::table(&[&["lane", "scheduler", "runs"], &heads[..]].concat());
    for row in &rows {
        let start = [
            comfy_table::Cell::new(row.lane),
            comfy_table::Cell::new(&row.scheduler),
            number(row.runs.len()),
        ];
        let means = columns.iter().map(|(_, measure)| number(mean(&row.runs, measure)));
        output.add_row(start.into_iter().chain(means));
    }
    let table = table::render(&output);
    match best(rows) {
        Some(sentence) => format!("{sentence}\n{table}"),
        None => table,
    }
}

/// `linux-6.12 has the lowest p99 wake-up latency: ...`.
fn best(rows: Vec<Row<'_>>) -> Option<String> {
    let mut contenders = Vec::new();
    for row in rows {
        let label = match row.lane {
            Origin::Lane(LaneKind::Sim) => row.scheduler,
            lane => format!("{} ({lane})", row.scheduler),
        };
        contenders.push(Contender { label, runs: row.runs });
    }
    Some(answer(&contenders)?.text(|ns| duration(ns.round() as u64), digits))
}

/// Tells what may falsify results: each kind of thing once, with the text of the first run that has
/// it. Every run's own text stands in the JSON and in the report.
pub fn warn<'t>(runs: impl Iterator<Item = &'t RunResult>) {
    for line in warnings(runs) {
        say(line);
    }
}

fn warnings<'t>(runs: impl Iterator<Item = &'t RunResult>) -> Vec<String> {
    let mut kinds: Vec<(&Code, &str, u32)> = Vec::new();
    let mut nr_runs = 0;
    for run in runs {
        nr_runs += 1;
        let mut seen = std::collections::BTreeSet::new();
        for warning in run.warnings.iter().filter(|warning| seen.insert(warning.code.name())) {
            match kinds.iter_mut().find(|(code, _, _)| **code == warning.code) {
                Some((_, _, count)) => *count += 1,
                None => kinds.push((&warning.code, &warning.text, 1)),
            }
        }
    }
    let line = |(code, text, count): (&Code, &str, u32)| match nr_runs {
        1 => format!("warning [{code}]: {text}"),
        _ => format!("warning [{code}], {count} of {nr_runs} runs, the first: {text}"),
    };
    kinds.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(scheduler: &str, turnaround_ns_mean: u64) -> RunResult {
        let mut run = RunResult {
            lane: LaneKind::Sim.into(),
            scheduler: scheduler.into(),
            ..Default::default()
        };
        run.measures.totals.turnaround_ns_mean = Some(turnaround_ns_mean);
        run
    }

    #[test]
    fn repetitions_share_a_row_with_their_mean_and_interval() {
        let runs = [run("rr", 1_000_000), run("fcfs", 5_000), run("rr", 3_000_000)];
        let text = comparison(runs.iter());
        let line = text.lines().find(|line| line.starts_with(" sim   rr")).unwrap();
        // Two values: mean 2 ms, deviation 1.414 ms, t(1) = 12.71, interval 12.71 ms.
        assert!(line.contains("2.000 ms \u{b1} 12.71 ms"), "{text}");
        assert!(text.lines().any(|line| line.contains("fcfs") && line.contains("5.000 us")));
    }

    #[test]
    fn a_kind_of_warning_is_told_once() {
        let mut runs = [run("rr", 1), run("rr", 2), run("rr", 3)];
        for (index, run) in runs.iter_mut().take(2).enumerate() {
            let text = format!("{index} %");
            run.warnings = vec![schedlab_run::Warning { code: Code::OtherLoad, text }];
        }
        let lines = warnings(runs.iter());
        assert_eq!(lines, ["warning [other-load], 2 of 3 runs, the first: 0 %"]);
        assert_eq!(warnings(runs[..1].iter()), ["warning [other-load]: 0 %"]);
    }

    #[test]
    fn a_policy_makes_a_row_of_its_own() {
        let mut under = run("linux-6.12", 7);
        under.parameters.insert("policy".into(), "FIFO".into());
        let runs = [run("linux-6.12", 7), under];
        assert!(comparison(runs.iter()).contains("linux-6.12 FIFO"));
    }
}
