// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of a validation's page.

use crate::html::{escape, slug};
use crate::legend::verdict_item;
use crate::number::{duration, plural, significant};
use schedlab_lab::validate::{
    Comparison, Metric, MetricResult, UnitResult, Validation, ValidationResult, Verdict,
};
use schedlab_run::LaneKind;
use std::fmt::Write as _;

/// Name of a verdict in the style sheet.
const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Within => "holds",
        Verdict::Outside => "fails",
        Verdict::Inconclusive => "inconclusive",
        Verdict::DoesNotDiscriminate => "partly",
    }
}

/// A sign for a verdict, so that nothing rests on colour alone.
const fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Within => "\u{2713}",
        Verdict::Outside => "\u{2717}",
        Verdict::Inconclusive => "?",
        Verdict::DoesNotDiscriminate => "~",
    }
}

fn id_of(comparison: &Comparison) -> String {
    let Comparison { lane, workload, kernel, model, nr_cpus, .. } = comparison;
    format!("compared-{}", slug(&format!("{workload} {kernel} {model} {lane} {nr_cpus}")))
}

fn place(lane: LaneKind, nr_cpus: u32) -> String {
    let lane = match lane {
        LaneKind::Vm => "guest",
        LaneKind::Host => "this machine",
        LaneKind::Sim => "sim",
    };
    format!("{lane}, {}", plural(nr_cpus as usize, "CPU", "CPUs"))
}

/// One row a comparison, one column a metric: the farthest deviation with its verdict.
pub fn verdicts(found: &ValidationResult) -> String {
    let mut out = String::from(
        "<section id=\"verdicts\">\n<h2>Models and kernels at a glance</h2>\n<p>In each cell \
         stands by how much the task that is farthest off differs between the model and the \
         kernel; of slices, how many are equal in order and length. It is within if the whole \
         95\u{a0}% interval over the runs of every task lies within the tolerance.</p>\n\
         <ul class=\"legend\" aria-label=\"Legend\">",
    );
    for verdict in Verdict::ALL {
        out += &verdict_item(class(verdict), sign(verdict), verdict.text());
    }
    let columns = found.metrics();
    out += "</ul>\n<div class=\"scroll\"><table class=\"verdicts\">\n<thead><tr><th>workload</th>\
            <th>kernel</th><th>model</th><th>where</th>";
    for metric in &columns {
        let _ = write!(out, "<th class=\"num\">{}</th>", metric.label());
    }
    out += "</tr></thead>\n<tbody>\n";
    for comparison in &found.comparisons {
        let _ = write!(
            out,
            "<tr><td><a href=\"#{}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td>",
            id_of(comparison),
            escape(&comparison.workload),
            escape(&comparison.kernel),
            escape(&comparison.model),
            place(comparison.lane, comparison.nr_cpus)
        );
        for metric in &columns {
            out += &cell(comparison, *metric);
        }
        out += "</tr>\n";
    }
    out += "</tbody></table></div>\n</section>\n";
    out
}

fn cell(comparison: &Comparison, metric: Metric) -> String {
    let Some(found) = comparison.metrics.iter().find(|found| found.metric == metric) else {
        return "<td class=\"num none\"></td>".into();
    };
    let verdict = found.verdict_text();
    format!(
        "<td class=\"num\" title=\"{}\">{} <span class=\"cell {}\">{}</span></td>",
        escape(&verdict),
        found.worst_text().unwrap_or_else(|| "\u{2013}".into()),
        class(found.verdict),
        sign(found.verdict)
    )
}

/// Every value with its interval, a table that opens for each comparison.
pub fn comparisons(found: &ValidationResult) -> String {
    let mut out = String::from(
        "<section id=\"comparisons\">\n<h2>Every value, task by task</h2>\n<p>Means over the runs; \
         the deviation is the mean over pairs of one seed, with its 95\u{a0}% interval.</p>\n",
    );
    for comparison in &found.comparisons {
        let _ = writeln!(
            out,
            "<details class=\"claim-details\" id=\"{}\"{}><summary>{} {}: {}, release {}, against \
             {}, {} of runs</summary>\n<div class=\"scroll\"><table class=\"checks\">\n<thead><tr>\
             <th>metric</th><th>of</th><th class=\"num\">kernel</th><th class=\"num\">model</th>\
             <th class=\"num\">off by</th><th class=\"num\">95\u{a0}% interval</th>\
             <th class=\"num\">allowed</th><th>verdict</th></tr></thead>\n<tbody>",
            id_of(comparison),
            if is_open(comparison) { " open" } else { "" },
            escape(&comparison.workload),
            escape(&comparison.kernel),
            place(comparison.lane, comparison.nr_cpus),
            escape(&comparison.release),
            escape(&comparison.model),
            plural(comparison.nr_runs as usize, "pair", "pairs"),
        );
        for metric in &comparison.metrics {
            units(&mut out, metric);
        }
        out += "</tbody></table></div>\n";
        reasons(&mut out, comparison);
        out += "</details>\n";
    }
    out += "</section>\n";
    out
}

/// What is outside stands open: it is what a reader looks for.
fn is_open(comparison: &Comparison) -> bool {
    comparison.metrics.iter().any(|metric| metric.verdict == Verdict::Outside)
}

fn units(out: &mut String, found: &MetricResult) {
    let metric = found.metric;
    for (index, unit) in found.units.iter().enumerate() {
        let is_first = index == 0;
        let verdict = format!(
            "<span class=\"verdict {}\">{}</span>",
            class(found.verdict),
            found.verdict.text()
        );
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
             <td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
             <td>{}</td></tr>",
            if is_first { metric.label() } else { "" },
            escape(&unit.unit),
            value(metric, unit.kernel),
            value(metric, unit.model),
            metric.deviation_text(unit.deviation),
            interval(metric, unit),
            if is_first { metric.deviation_text(found.within) } else { String::new() },
            if is_first { verdict } else { String::new() },
        );
    }
}

fn interval(metric: Metric, unit: &UnitResult) -> String {
    let [low, high] = unit.ci95.map(|end| metric.deviation_text(end));
    format!("{low} \u{2026} {high}")
}

fn value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::CpuShare => format!("{:.2} %", value * 100.0),
        metric if metric.is_time() => duration(value),
        _ => significant(value),
    }
}

/// Why something is inconclusive, and how many slices are equal run by run.
fn reasons(out: &mut String, comparison: &Comparison) {
    for found in &comparison.metrics {
        let label = found.metric.label();
        if found.reason.is_some() {
            let text = escape(&found.verdict_text());
            let _ = writeln!(out, "<p class=\"claim-note\"><b>{label}:</b> {text}</p>");
        }
        if !found.slices.is_empty() {
            let runs = found.slices.iter().map(|equal| {
                format!("{} of {}", equal.nr_equal, equal.nr_kernel.max(equal.nr_model))
            });
            let _ = writeln!(
                out,
                "<p class=\"claim-note\"><b>{label}, run by run:</b> {}</p>",
                runs.collect::<Vec<_>>().join(", ")
            );
        }
    }
}

/// The wrong models, and whether they are rejected.
pub fn controls(found: &ValidationResult) -> String {
    let mut out = String::from(
        "<section id=\"controls\">\n<h2>Models that are wrong on purpose</h2>\n<p>A metric that \
         accepts one of them tells nothing by its agreement.</p>\n<div class=\"scroll\">\
         <table class=\"checks\">\n<thead><tr><th>wrong model</th><th>what is wrong</th>\
         <th>metric</th><th>workload</th><th>kernel</th><th class=\"num\">off by</th><th></th>\
         </tr></thead>\n<tbody>\n",
    );
    for control in &found.controls {
        let (class, word) =
            if control.is_rejected { ("holds", "rejected") } else { ("fails", "ACCEPTED") };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} ({})</td>\
             <td class=\"num\">{}</td><td><span class=\"verdict {class}\">{word}</span></td></tr>",
            escape(&control.model),
            escape(&control.why),
            control.metric.label(),
            escape(&control.workload),
            escape(&control.kernel),
            place(control.lane, control.nr_cpus),
            control.metric.deviation_text(control.deviation),
        );
    }
    out += "</tbody></table></div>\n</section>\n";
    out
}

/// The knobs, and whether they move.
pub fn knobs(found: &ValidationResult) -> String {
    let mut out = String::from(
        "<section id=\"knobs\">\n<h2>Settings that must move a metric</h2>\n<p>The model with each \
         value of the setting, against the same runs of the kernel. A metric that no setting moves \
         by more than the tolerance sees nothing.</p>\n<div class=\"scroll\">\
         <table class=\"checks\">\n<thead><tr><th>setting</th><th>metric</th><th>workload</th>\
         <th>kernel</th><th>off by, at each value</th><th></th></tr></thead>\n<tbody>\n",
    );
    for sweep in &found.sweeps {
        let (class, word) =
            if sweep.moves { ("holds", "moves") } else { ("fails", "DOES NOT MOVE") };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{} ({})</td><td>{}</td>\
             <td><span class=\"verdict {class}\">{word}</span></td></tr>",
            escape(&sweep.knob),
            sweep.metric.label(),
            escape(&sweep.workload),
            escape(&sweep.kernel),
            place(sweep.lane, sweep.nr_cpus),
            escape(&sweep.points_text()),
        );
    }
    out += "</tbody></table></div>\n</section>\n";
    out
}

/// The tolerances with their reasons, and what the workloads are.
pub fn tolerances(validation: &Validation) -> String {
    let mut out = String::from(
        "<section id=\"tolerances\">\n<h2>What is allowed, and why</h2>\n<p>Written down before \
         anything ran.</p>\n<div class=\"scroll\"><table class=\"checks\">\n<thead><tr>\
         <th>metric</th><th class=\"num\">allowed</th><th>because</th></tr></thead>\n<tbody>\n",
    );
    for tolerance in &validation.metrics {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            tolerance.name.label(),
            tolerance.name.deviation_text(tolerance.within),
            escape(tolerance.why.trim())
        );
    }
    out += "</tbody></table></div>\n<dl>\n";
    for workload in &validation.workloads {
        let _ = writeln!(
            out,
            "<dt>{}</dt><dd>{}</dd>",
            escape(&workload.name),
            escape(workload.text.trim())
        );
    }
    out += "</dl>\n</section>\n";
    out
}
