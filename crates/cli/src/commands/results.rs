// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints results for people: one run as a table of its tasks, several runs as a table of
//! schedulers.

use crate::error::{CliError, CliResult, Exit};
use crate::output::{Out, say};
use crate::table::{self, Fitted, digits, duration, maybe_duration, number, or_dash, percent};
use schedlab_lab::against::{MEASURES, Measure, ModelAndKernel};
use schedlab_lab::answer::{Contender, answer};
use schedlab_lab::plan::SHIFT;
use schedlab_lab::twin::{Side, twin_of};
use schedlab_lab::versus::{Versus, measures_default, words_of};
use schedlab_metrics::stats::Summary;
use schedlab_metrics::{Measures, ModelCounters, TaskMeasures, Unit};
use schedlab_model::suggest;
use schedlab_run::{Code, Expected, GroupResult, LaneKind, Origin, RunResult, values};
use std::collections::BTreeSet;

/// Maximum number of tasks in a table; the others are counted.
const TASKS_SHOWN: usize = 40;

/// Prints one run: a head line, its tasks with `columns` (if empty, the usual ones), its totals.
pub fn one_run(run: &RunResult, columns: &[String], out: &mut Out) -> CliResult<()> {
    out.line(head(run))?;
    out.line(task_table(run, columns)?)?;
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

/// Columns of the table of tasks: headings and measures.
const OF_TASK: [(&str, &str); 9] = [
    ("response", "response_ns"),
    ("turnaround", "turnaround_ns"),
    ("CPU time", "cpu_time_ns"),
    ("run delay", "run_delay_ns"),
    ("share", "cpu_share"),
    ("latency p99", "wakeup_latency_ns_p99"),
    ("vol.", "nr_voluntary_switches"),
    ("invol.", "nr_involuntary_switches"),
    ("migr.", "nr_migrations"),
];

/// The columns of a table: headings and measures. `wanted` holds names of measures or headings of
/// `usual`; `all` selects every measure in `known`. An empty list selects `usual`.
fn chosen(
    wanted: &[String],
    usual: &[(&str, &str)],
    known: &[String],
) -> CliResult<Vec<(String, String)>> {
    let own = |(head, measure): &(&str, &str)| (head.to_string(), measure.to_string());
    if wanted.is_empty() {
        return Ok(usual.iter().map(own).collect());
    }
    if wanted == ["all"] {
        return Ok(known.iter().map(|name| (name.clone(), name.clone())).collect());
    }
    let find = |name: &String| {
        let is_it = |(head, measure): &&(&str, &str)| name == head || name == measure;
        let found = usual.iter().find(is_it).map(own);
        found.or_else(|| known.contains(name).then(|| (name.clone(), name.clone()))).ok_or_else(
            || {
                let guess = suggest::nearest(name, known.iter().map(String::as_str))
                    .map_or_else(String::new, |name| format!(": did you mean `{name}`?"));
                CliError::usage_help(
                    format!("--columns: no measure here is called {name:?}{guess}"),
                    "`schedlab list measures` lists them; `--columns all` shows all",
                )
            },
        )
    };
    wanted.iter().map(find).collect()
}

/// Names of all measures of a task.
fn task_measures() -> Vec<String> {
    TaskMeasures::default().numbers().into_iter().map(|(name, _, _)| name).collect()
}

/// Refuses columns that neither runs nor tasks have, before anything runs.
pub fn check_columns(wanted: &[String]) -> CliResult<()> {
    if chosen(wanted, &OF_TASK, &task_measures()).is_ok() {
        return Ok(());
    }
    chosen(wanted, &COMPARED, &values::measure_names()).map(drop)
}

fn task_table(run: &RunResult, wanted: &[String]) -> CliResult<String> {
    let columns = chosen(wanted, &OF_TASK, &task_measures())?;
    let heads = columns.iter().map(|(head, _)| head.as_str());
    let mut rows = Fitted::new(["task"].into_iter().chain(heads), 2);
    if !wanted.is_empty() {
        rows = rows.with_all_kept();
    }
    for task in run.measures.tasks.iter().take(TASKS_SHOWN) {
        let cells = columns.iter().map(|(_, measure)| {
            let value = task.number(measure).flatten();
            number(or_dash(value, |value| shown(measure, value.as_f64())))
        });
        rows.add([comfy_table::Cell::new(&task.name)].into_iter().chain(cells));
    }
    Ok(rows.render())
}

/// A value of a measure for people.
fn shown(measure: &str, value: f64) -> String {
    match values::unit_of(measure) {
        Unit::Ns => duration(value.round() as u64),
        Unit::Count => format!("{value:.0}"),
        Unit::Ratio(_) => percent(value),
        _ => digits(value),
    }
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

/// The simulator's own counters that are not zero.
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

/// An expectation that a run does not meet.
pub struct Unmet {
    /// `linux-6.12, n=4, seed 1`.
    run: String,
    expected: Expected,
}

/// The outcome of the expectations of some runs.
pub struct Expectations {
    /// Expectations that are not met.
    unmet: Vec<Unmet>,
    /// Number of expectations in all.
    count: usize,
}

/// Maximum number of rows in the table of unmet expectations.
const UNMET_MAX: usize = 50;

impl Expectations {
    /// Collects the outcome for `runs`.
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

    /// Returns a failed check, naming `whose` expectations they are, if one is not met.
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

    /// A table of the unmet expectations; `None` if all are met.
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
    label: String,
    /// Settings that differ between runs, as [`Side`] has them.
    variant: Vec<String>,
    runs: Vec<&'t RunResult>,
}

impl Row<'_> {
    /// The settings that kernels have too: tunables and policies belong to models.
    fn workload(&self) -> Vec<&String> {
        let is_own = |part: &&String| !part.starts_with("set.") && !part.starts_with("policy=");
        self.variant.iter().filter(is_own).collect()
    }
}

/// Groups repetitions in order of first appearance. The label of a group names the settings that
/// differ between runs: `rr quantum=1ms`.
fn rows<'t>(runs: impl Iterator<Item = &'t RunResult>) -> Vec<Row<'t>> {
    let runs: Vec<&RunResult> = runs.collect();
    let mut rows: Vec<Row<'t>> = Vec::new();
    let varied = varied(&runs);
    for run in runs {
        let mut label = scheduler_label(run);
        let policy = run.parameters.get("policy").filter(|_| run.lane == LaneKind::Sim);
        let mut variant: Vec<String> =
            policy.map(|policy| format!("policy={policy}")).into_iter().collect();
        for name in &varied {
            if let Some(value) = run.parameters.get(name) {
                variant.push(format!("{name}={value}"));
                let name = name.strip_prefix("set.").unwrap_or(name);
                label += &format!(" {name}={value}");
            }
        }
        match rows.iter_mut().find(|row| row.lane == run.lane && row.label == label) {
            Some(row) => row.runs.push(run),
            None => rows.push(Row { lane: run.lane, label, variant, runs: vec![run] }),
        }
    }
    rows
}

/// Names of the parameters that differ between runs. It omits the policy, which is in each label,
/// a command's nice value, which is in the name of its variant, and a repetition's shifted start. A
/// tunable also differs if only some runs have it.
fn varied(runs: &[&RunResult]) -> Vec<String> {
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.parameters.keys()).collect();
    let differs = |name: &&String| {
        let is_tunable = name.starts_with("set.");
        let values = runs.iter().map(|run| run.parameters.get(*name));
        let mut values = values.filter(|value| is_tunable || value.is_some());
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let is_shown = |name: &&String| !matches!(name.as_str(), "policy" | "nice" | SHIFT);
    names.into_iter().filter(is_shown).filter(differs).cloned().collect()
}

/// The scheduler, with the policy under which a model ran.
fn scheduler_label(run: &RunResult) -> String {
    match run.parameters.get("policy") {
        Some(policy) if run.lane == LaneKind::Sim => format!("{} {policy}", run.scheduler),
        _ => run.scheduler.clone(),
    }
}

/// Mean of a measure over repetitions, with half the width of its 95 % confidence interval if there
/// are enough repetitions.
fn mean(runs: &[&RunResult], measure: &str) -> String {
    let values: Vec<f64> = runs.iter().filter_map(|run| values::run_value(run, measure)).collect();
    if values.is_empty() {
        return "-".into();
    }
    let summary = Summary::of(&values);
    let show = |value: f64| mean_text(measure, value);
    match summary.ci95_half_width {
        Some(half) if half > 0.0 => format!("{} \u{b1} {}", show(summary.mean), show(half)),
        _ => show(summary.mean),
    }
}

/// A mean of a measure for people.
fn mean_text(measure: &str, mean: f64) -> String {
    match values::is_time(measure) {
        true => duration(mean.round() as u64),
        false => digits(mean),
    }
}

/// Columns of a comparison: headings and measures. A column that no run has is left out.
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

/// The measures of a comparison that at least one run has.
pub fn compared_measures(runs: &[RunResult]) -> Vec<String> {
    let has = |measure: &str| runs.iter().any(|run| values::run_value(run, measure).is_some());
    let measures = COMPARED.into_iter().map(|(_, measure)| measure);
    measures.filter(|measure| has(measure)).map(String::from).collect()
}

/// A comparison for people: a sentence, then tables.
pub struct Shown {
    /// The best scheduler or, for two of them over several seeds, the verdict.
    sentence: Option<String>,
    tables: Vec<Fitted>,
    /// A line below the tables.
    note: Option<&'static str>,
    /// Each model with its kernel: names, the table, how exact it is.
    pairs: Vec<(String, Fitted, String)>,
}

impl Shown {
    /// As text for a terminal.
    pub fn text(&self) -> String {
        let tables = self.tables.iter().map(Fitted::render).collect::<Vec<_>>().join("\n\n");
        let lines = [self.sentence.clone(), Some(tables), self.note.map(String::from)];
        let pairs = self
            .pairs
            .iter()
            .map(|(names, table, note)| Some(format!("\n{names}:\n{}\n{note}", table.render())));
        lines.into_iter().chain(pairs).flatten().collect::<Vec<_>>().join("\n")
    }

    /// As Markdown of GitHub.
    pub fn markdown(&self) -> String {
        let sentence = self.sentence.as_ref().map(|s| format!("**{}**", table::markdown_text(s)));
        let tables = self.tables.iter().map(Fitted::markdown);
        let note = self.note.map(table::markdown_text);
        let pairs = self.pairs.iter().flat_map(|(names, table, note)| {
            let names = format!("**{}**", table::markdown_text(names));
            [names, table.markdown(), table::markdown_text(&note.replace('\n', " "))]
        });
        let parts = sentence.into_iter().chain(tables).chain(note).chain(pairs);
        parts.collect::<Vec<_>>().join("\n\n")
    }
}

/// A comparison as text.
pub fn comparison<'t>(
    runs: impl Iterator<Item = &'t RunResult>,
    wanted: &[String],
) -> CliResult<String> {
    Ok(compared(runs, wanted)?.text())
}

/// A sentence that names the best scheduler, above a table with one row for each scheduler. The
/// table shows means over repetitions in the columns `wanted` (if empty, the usual ones). Two
/// schedulers that ran under the same seeds get a verdict and a table of ratios instead of the
/// sentence.
pub fn compared<'t>(
    runs: impl Iterator<Item = &'t RunResult>,
    wanted: &[String],
) -> CliResult<Shown> {
    let rows = rows(runs);
    let has = |measure: &str| {
        let mut runs = rows.iter().flat_map(|row| &row.runs);
        runs.any(|run| values::run_value(run, measure).is_some())
    };
    let mut columns = chosen(wanted, &COMPARED, &values::measure_names())?;
    let is_list = !wanted.is_empty() && wanted != ["all"];
    columns.retain(|(_, measure)| is_list || has(measure));
    let heads = columns.iter().map(|(head, _)| head.as_str());
    let mut output = Fitted::new(["lane", "scheduler", "runs"].into_iter().chain(heads), 4);
    if !wanted.is_empty() {
        output = output.with_all_kept();
    }
    for row in &rows {
        let start = [
            comfy_table::Cell::new(row.lane),
            comfy_table::Cell::new(&row.label),
            number(row.runs.len()),
        ];
        let means = columns.iter().map(|(_, measure)| number(mean(&row.runs, measure)));
        output.add(start.into_iter().chain(means));
    }
    let measures: Vec<String> = match wanted {
        [] => measures_default().map(String::from).collect(),
        _ => columns.into_iter().map(|(_, measure)| measure).collect(),
    };
    let pairs = models_and_kernels(&rows, is_list.then_some(&measures));
    // Of a model and its kernel neither is the better one.
    if rows.len() == 2 && !pairs.is_empty() {
        return Ok(Shown { sentence: None, tables: vec![output], note: None, pairs });
    }
    Ok(match versus(&rows, &measures) {
        Some(versus) => Shown {
            sentence: Some(versus.verdict(mean_text, digits)),
            tables: vec![ratios(&versus), output],
            note: versus.is_constant.then_some(CONSTANT),
            pairs,
        },
        None => Shown { sentence: best(rows), tables: vec![output], note: None, pairs },
    })
}

/// Each measured row with the row of its model: their names, a table of the measures `wanted` (or
/// the usual ones), and how exact the comparison is.
fn models_and_kernels(
    rows: &[Row<'_>],
    wanted: Option<&Vec<String>>,
) -> Vec<(String, Fitted, String)> {
    let variants: Vec<String> = rows.iter().map(|row| row.variant.join(", ")).collect();
    let side = |index: usize| Side {
        lane: rows[index].lane,
        scheduler: &rows[index].runs[0].scheduler,
        variant: &variants[index],
        kernel: &rows[index].runs[0].machine.kernel,
    };
    let mut pairs = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let near: Vec<usize> =
            (0..rows.len()).filter(|other| rows[*other].workload() == row.workload()).collect();
        let sides: Vec<Side<'_>> = near.iter().map(|index| side(*index)).collect();
        let Some(twin) = twin_of(&side(index), &sides) else { continue };
        let model = &rows[near[twin]];
        let measures: Vec<Measure<'_>> = match wanted {
            Some(names) => names.iter().map(|name| Measure::named(name)).collect(),
            None => MEASURES.into(),
        };
        let found = ModelAndKernel::of(measures, &model.runs, &row.runs);
        if found.measures.is_empty() {
            continue;
        }
        let kernel = format!("{} ({}, {})", row.label, row.lane, row.runs[0].machine.kernel);
        let names = format!("{} against {kernel}", model.label);
        pairs.push((names, against_table(&found), found.sentences().join("\n")));
    }
    pairs
}

/// A table with a line for each measure: the model, the kernel with its own range, their ratio.
fn against_table(found: &ModelAndKernel<'_>) -> Fitted {
    let heads =
        ["measure", "model", "kernel", "kernel's own range", "model \u{f7} kernel", "model is"];
    let mut output = Fitted::new(heads, 6);
    for one in &found.measures {
        let show = |value: f64| mean_text(one.measure.name, value);
        let range = format!("{} .. {}", show(one.kernel.min), show(one.kernel.max));
        output.add([
            comfy_table::Cell::new(one.measure.words()),
            number(show(one.model)),
            number(show(one.kernel.median)),
            number(or_dash(one.range().map(|_| range), |range| range)),
            number(digits(one.ratio())),
            comfy_table::Cell::new(one.place().name()),
        ]);
    }
    output
}

/// The note about runs that differ in nothing but the seed.
const CONSTANT: &str = "note: every seed gives the same values, so more seeds add nothing";

/// Prints the comparison of two schedulers: its verdict, then a line for each measure.
pub fn versus_lines(versus: &Versus, out: &mut Out) -> CliResult<()> {
    out.line(versus.verdict(mean_text, digits))?;
    out.line(ratios(versus).render())?;
    versus.is_constant.then_some(CONSTANT).map_or(Ok(()), |note| out.line(note))
}

/// The comparison of two rows over several seeds.
fn versus(rows: &[Row<'_>], measures: &[String]) -> Option<Versus> {
    let [base, new] = rows else { return None };
    let (base_name, new_name) = (contender(base), contender(new));
    let found = Versus::of((&base_name, &base.runs), (&new_name, &new.runs), measures)?;
    (found.nr_seeds > 1).then_some(found)
}

/// A table with a line for each measure: both means, their ratio, its interval, the verdict.
fn ratios(versus: &Versus) -> Fitted {
    let heads =
        ["measure", &versus.base, &versus.new, "ratio", "95 % interval", "verdict", "seeds"];
    let mut output = Fitted::new(heads, 6);
    for one in &versus.measures {
        let means = [one.base_mean, one.new_mean].map(|mean| number(mean_text(&one.measure, mean)));
        let interval = one.ratio.and_then(|ratio| ratio.ci95);
        let [low, high] = interval.map_or([None; 2], |ends| ends.map(Some));
        let ends = low.zip(high).map(|(low, high)| format!("{} .. {}", digits(low), digits(high)));
        let start = [comfy_table::Cell::new(words_of(&one.measure))];
        let rest = [
            number(or_dash(one.ratio, |ratio| digits(ratio.ratio))),
            number(or_dash(ends, |ends| ends)),
            comfy_table::Cell::new(one.order.name()),
            number(one.nr_seeds),
        ];
        output.add(start.into_iter().chain(means).chain(rest));
    }
    output
}

/// The name of a row in a sentence.
fn contender(row: &Row<'_>) -> String {
    match row.lane {
        Origin::Lane(LaneKind::Sim) => row.label.clone(),
        lane => format!("{} ({lane})", row.label),
    }
}

/// `linux-6.12 has the lowest p99 wake-up latency: ...`.
fn best(rows: Vec<Row<'_>>) -> Option<String> {
    let contenders: Vec<Contender<'_>> =
        rows.into_iter().map(|row| Contender { label: contender(&row), runs: row.runs }).collect();
    Some(answer(&contenders)?.text(|ns| duration(ns.round() as u64), digits))
}

/// Prints the warnings about results, one for each kind, with the text of the first run that has
/// it. The JSON and the report have every run's own text.
pub fn warn<'t>(runs: impl Iterator<Item = &'t RunResult>) {
    for line in warnings(runs) {
        say(line);
    }
}

/// A comparison, its warnings and its unmet expectations as Markdown, for the summary of a pull
/// request.
pub fn markdown<'t>(
    runs: impl Iterator<Item = &'t RunResult> + Clone,
    wanted: &[String],
    expectations: &Expectations,
) -> CliResult<String> {
    let mut parts = vec![compared(runs.clone(), wanted)?.markdown()];
    let warnings = warnings(runs);
    let lines: Vec<String> =
        warnings.iter().map(|line| format!("- {}", table::markdown_text(line))).collect();
    parts.extend((!lines.is_empty()).then(|| lines.join("\n")));
    if let Some(unmet) = expectations.table() {
        parts.push(format!(
            "**Expectations that do not hold:**\n\n{}",
            table::markdown_block(&unmet)
        ));
    }
    Ok(parts.join("\n\n"))
}

fn warnings<'t>(runs: impl Iterator<Item = &'t RunResult>) -> Vec<String> {
    let mut kinds: Vec<(&Code, &str, u32)> = Vec::new();
    let mut nr_runs = 0;
    for run in runs {
        nr_runs += 1;
        let mut seen = BTreeSet::new();
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
        let text = comparison(runs.iter(), &[]).unwrap();
        let line = text.lines().find(|line| line.starts_with(" sim   rr")).unwrap();
        // Two values: mean 2 ms, deviation 1.414 ms, t(1) = 12.71, interval 12.71 ms.
        assert!(line.contains("2.000 ms \u{b1} 12.71 ms"), "{text}");
        assert!(text.lines().any(|line| line.contains("fcfs") && line.contains("5.000 us")));
    }

    fn measured(label: &str, turnaround_ns_mean: u64) -> RunResult {
        let mut run = run(label, turnaround_ns_mean);
        run.lane = LaneKind::Host.into();
        run.machine.kernel = "6.18.44".into();
        run
    }

    #[test]
    fn a_model_has_its_place_in_the_range_of_its_kernel() {
        let mut runs = vec![run("linux-6.12", 105_000_000), run("rr", 1)];
        runs.extend([90_000_000, 100_000_000, 110_000_000].map(|ns| measured("OTHER", ns)));
        let text = comparison(runs.iter(), &[]).unwrap();
        assert!(text.contains("linux-6.12 against OTHER (host, 6.18.44):"), "{text}");
        let line =
            text.lines().find(|line| line.contains("105.0 ms") && line.contains("..")).unwrap();
        for cell in ["mean turnaround", "100.0 ms", "90.00 ms .. 110.0 ms", "1.050", "inside"] {
            assert!(line.contains(cell), "{cell}: {text}");
        }
        runs[0].measures.totals.turnaround_ns_mean = Some(111_000_000);
        let text = comparison(runs.iter(), &[]).unwrap();
        assert!(text.contains("OUTSIDE") && text.contains("median, in 0 of 1 measures"), "{text}");
    }

    #[test]
    fn one_run_of_a_kernel_asks_for_more() {
        let runs = [run("linux-6.12", 5), measured("OTHER", 5)];
        let shown = compared(runs.iter(), &[]).unwrap();
        assert!(shown.sentence.is_none(), "neither a model nor its kernel is the better one");
        for text in [shown.text(), shown.markdown()] {
            assert!(text.contains("unknown") && text.contains("--repetitions 5"), "{text}");
        }
    }

    #[test]
    fn a_kernel_meets_the_model_of_the_same_workload() {
        let with = |mut run: RunResult, n: &str| {
            run.parameters.insert("n".into(), n.into());
            run
        };
        let runs = [
            with(run("linux-6.12", 30_000_000), "1"),
            with(run("linux-6.12", 70_000_000), "2"),
            with(measured("OTHER", 80_000_000), "2"),
        ];
        let text = comparison(runs.iter(), &[]).unwrap();
        assert!(text.contains("linux-6.12 n=2 against OTHER n=2 (host, 6.18.44):"), "{text}");
        assert!(text.contains("0.875 ") && !text.contains("linux-6.12 n=1 against"), "{text}");
    }

    #[test]
    fn what_differs_is_in_the_label() {
        let mut runs = [run("rr", 1), run("rr", 2), run("fcfs", 3)];
        for (run, quantum) in runs.iter_mut().zip(["1ms", "5ms"]) {
            run.parameters.insert("set.quantum".into(), quantum.into());
            run.parameters.insert("n".into(), "4".into());
        }
        let text = comparison(runs.iter(), &[]).unwrap();
        assert!(text.contains("rr quantum=1ms") && text.contains("rr quantum=5ms"), "{text}");
        assert!(!text.contains("n=4"), "{text}");
    }

    #[test]
    fn columns_can_be_chosen() {
        let runs = [run("rr", 1_000)];
        let wanted = ["turnaround", "makespan_ns"].map(String::from);
        let text = comparison(runs.iter(), &wanted).unwrap();
        assert!(text.contains("1.000 us") && text.contains("makespan"), "{text}");
        assert!(!text.contains("Jain"), "{text}");
        let error = comparison(runs.iter(), &["turnarund_ns_mean".into()]).unwrap_err().text();
        assert!(error.contains("did you mean `turnaround_ns_mean`?"), "{error}");
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
        assert!(comparison(runs.iter(), &[]).unwrap().contains("linux-6.12 FIFO"));
    }
}
