// SPDX-License-Identifier: MIT OR Apache-2.0
//! A validation for people: one row a comparison, one column a metric, the farthest deviation in
//! the cell; as a table of the terminal, and in Markdown.

use crate::error::CliResult;
use crate::output::Out;
use crate::table::{self, digits, duration};
use comfy_table::Cell;
use schedlab_lab::validate::{
    Comparison, ControlResult, Metric, MetricResult, SweepResult, UnitResult, Validation,
    ValidationResult, Verdict,
};
use schedlab_run::LaneKind;
use std::fmt::Write as _;

/// What stands behind a deviation, by verdict.
const fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Within => "",
        Verdict::Outside => " !",
        Verdict::Inconclusive => " ?",
        Verdict::DoesNotDiscriminate => " ~",
    }
}

/// A value of a task.
fn value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::CpuShare => format!("{:.2} %", value * 100.0),
        metric if metric.is_time() => duration(value.round() as u64),
        _ => digits(value),
    }
}

fn cell(comparison: &Comparison, metric: Metric) -> String {
    let found = comparison.metrics.iter().find(|found| found.metric == metric);
    let shown = |found: &MetricResult| {
        format!("{}{}", found.worst_text().unwrap_or_else(|| "-".into()), mark(found.verdict))
    };
    found.map_or_else(String::new, shown)
}

/// Workload, kernel, model, where.
fn place(comparison: &Comparison) -> [String; 4] {
    let Comparison { workload, kernel, model, lane, nr_cpus, .. } = comparison;
    let cpus = table::counted(*nr_cpus, "CPU", "CPUs");
    [workload.clone(), kernel.clone(), model.clone(), format!("{lane}, {cpus}")]
}

const PLACE: [&str; 4] = ["workload", "kernel", "model", "where"];

/// Prints it.
pub fn terminal(found: &ValidationResult, details: bool, out: &mut Out) -> CliResult<()> {
    let columns = found.metrics();
    let heads: Vec<&str> = PLACE.into_iter().chain(columns.iter().map(|m| m.label())).collect();
    let mut rows = table::table(&heads);
    for comparison in &found.comparisons {
        let mut cells: Vec<Cell> = place(comparison).map(Cell::new).into();
        cells.extend(columns.iter().map(|metric| table::number(cell(comparison, *metric))));
        rows.add_row(cells);
    }
    out.line(table::render(&rows))?;
    out.line(
        "! outside the tolerance, ? inconclusive, ~ does not tell a right model from a wrong one",
    )?;
    if details {
        for comparison in &found.comparisons {
            detail(comparison, out)?;
        }
        controls(&found.controls, out)?;
        sweeps(&found.sweeps, out)?;
    }
    for text in &found.missing {
        out.line(format!("not compared: {text}"))?;
    }
    out.line(summary(found))
}

fn summary(found: &ValidationResult) -> String {
    format!(
        "{}; {} of {} wrong models rejected, {} of {} knobs move their metric",
        found.verdicts_text(),
        found.nr_rejected(),
        found.controls.len(),
        found.nr_moving(),
        found.sweeps.len()
    )
}

fn detail(comparison: &Comparison, out: &mut Out) -> CliResult<()> {
    out.line("")?;
    let Comparison { release, model, nr_runs, .. } = comparison;
    out.line(format!(
        "{}, release {release}, against {model}, {nr_runs} pairs of runs",
        comparison.label()
    ))?;
    let heads = ["  metric", "of", "kernel", "model", "off by", "95 % interval", "allowed", ""];
    let mut rows = table::table(&heads);
    for found in &comparison.metrics {
        let metric = found.metric;
        for (index, unit) in found.units.iter().enumerate() {
            let verdict = if index == 0 { found.verdict.text() } else { "" };
            rows.add_row([
                Cell::new(format!("  {}", if index == 0 { metric.name() } else { "" })),
                Cell::new(&unit.unit),
                table::number(value(metric, unit.kernel)),
                table::number(value(metric, unit.model)),
                table::number(metric.deviation_text(unit.deviation)),
                table::number(interval(metric, unit)),
                table::number(if index == 0 {
                    metric.deviation_text(found.within)
                } else {
                    "".into()
                }),
                Cell::new(verdict),
            ]);
        }
    }
    out.line(table::render(&rows))?;
    for found in comparison.metrics.iter().filter(|found| found.reason.is_some()) {
        out.line(format!("  {}: {}", found.metric.name(), found.verdict_text()))?;
    }
    Ok(())
}

fn interval(metric: Metric, unit: &UnitResult) -> String {
    let [low, high] = unit.ci95;
    format!("{} .. {}", metric.deviation_text(low), metric.deviation_text(high))
}

fn controls(controls: &[ControlResult], out: &mut Out) -> CliResult<()> {
    out.line("")?;
    let heads = ["wrong model", "what is wrong", "metric", "workload", "kernel", "off by", ""];
    let mut rows = table::table(&heads);
    for control in controls {
        rows.add_row([
            Cell::new(&control.model),
            Cell::new(&control.why),
            Cell::new(control.metric.name()),
            Cell::new(&control.workload),
            Cell::new(format!("{} ({})", control.kernel, control.lane)),
            table::number(control.metric.deviation_text(control.deviation)),
            Cell::new(if control.is_rejected { "rejected" } else { "ACCEPTED" }),
        ]);
    }
    out.line(table::render(&rows))
}

fn sweeps(sweeps: &[SweepResult], out: &mut Out) -> CliResult<()> {
    out.line("")?;
    let heads = ["knob", "metric", "workload", "kernel", "off by", ""];
    let mut rows = table::table(&heads);
    for sweep in sweeps {
        rows.add_row([
            Cell::new(&sweep.knob),
            Cell::new(sweep.metric.name()),
            Cell::new(&sweep.workload),
            Cell::new(format!("{} ({})", sweep.kernel, sweep.lane)),
            Cell::new(sweep.points_text()),
            Cell::new(if sweep.moves { "moves" } else { "DOES NOT MOVE" }),
        ]);
    }
    out.line(table::render(&rows))
}

/// The tables in Markdown: tolerances, comparisons, wrong models, knobs.
pub fn markdown(validation: &Validation, found: &ValidationResult) -> String {
    let mut text = String::from("| metric | allowed | why |\n| --- | --- | --- |\n");
    for tolerance in &validation.metrics {
        let why = tolerance.why.split_whitespace().collect::<Vec<_>>().join(" ");
        let within = tolerance.name.deviation_text(tolerance.within);
        let _ = writeln!(text, "| {} | {within} | {why} |", tolerance.name.label());
    }
    let columns = found.metrics();
    let heads: Vec<&str> = PLACE.into_iter().chain(columns.iter().map(|m| m.label())).collect();
    let _ = writeln!(text, "\n| {} |\n|{}", heads.join(" | "), " --- |".repeat(heads.len()));
    for comparison in &found.comparisons {
        let mut cells: Vec<String> = place(comparison).into();
        cells.extend(columns.iter().map(|metric| cell(comparison, *metric)));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text += "\n| wrong model | workload | metric | off by |\n| --- | --- | --- | --- |\n";
    for line in controls_by_model(found) {
        text += &line;
    }
    text += "\n| knob | workload | metric | kernel | off by |\n| --- | --- | --- | --- | --- |\n";
    for sweep in &found.sweeps {
        let SweepResult { knob, workload, kernel, lane, metric, .. } = sweep;
        let still = if sweep.moves { "" } else { " (does not move)" };
        let _ = writeln!(
            text,
            "| {knob} | {workload} | {} | {kernel} ({lane}) | {}{still} |",
            metric.label(),
            sweep.points_text()
        );
    }
    text
}

/// One row a wrong model and metric: by how much it is off under each kernel.
fn controls_by_model(found: &ValidationResult) -> Vec<String> {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for control in &found.controls {
        let ControlResult { model, workload, metric, kernel, lane, nr_cpus, .. } = control;
        let key = format!("| {model} | {workload} | {} |", metric.label());
        let accepted = if control.is_rejected { "" } else { " (accepted)" };
        let off = metric.deviation_text(control.deviation);
        let place = match lane {
            LaneKind::Vm => kernel.clone(),
            _ => format!("{kernel} {lane} {nr_cpus}"),
        };
        let value = format!("{place}: {off}{accepted}");
        match rows.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => rows.push((key, vec![value])),
        }
    }
    rows.into_iter().map(|(key, values)| format!("{key} {} |\n", values.join(", "))).collect()
}
