// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sortable tables: the summary of all cells, and one of all measures for each experiment.

use crate::group::{Cell, Group};
use crate::html::escape;
use crate::legend::line_name;
use crate::number::{TimeUnit, duration, significant, unit_for_all};
use crate::order::panel_order;
use crate::stats::Estimate;
use crate::style::Styles;
use schedlab_run::RunResult;
use std::fmt::Write as _;

/// How a column shows its values.
#[derive(Clone, Copy)]
enum Show {
    /// In the column's time unit.
    Time,
    /// As a plain number.
    Plain,
}

struct Column {
    head: &'static str,
    /// Unit other than of time; empty for none.
    unit: &'static str,
    show: Show,
    read: fn(&RunResult) -> Option<f64>,
}

const fn time(head: &'static str, read: fn(&RunResult) -> Option<f64>) -> Column {
    Column { head, unit: "", show: Show::Time, read }
}

const fn plain(
    head: &'static str,
    unit: &'static str,
    read: fn(&RunResult) -> Option<f64>,
) -> Column {
    Column { head, unit, show: Show::Plain, read }
}

const MAKESPAN: Column = time("makespan", |run| run.measures.totals.makespan_ns.map(|v| v as f64));
const TURNAROUND: Column = time("mean turnaround", |run| {
    let totals = &run.measures.totals;
    (totals.nr_exited > 0).then_some(totals.turnaround_ns_mean as f64)
});
const RESPONSE: Column =
    time("mean response", |run| Some(run.measures.totals.response_ns_mean as f64));
const THROUGHPUT: Column =
    plain("throughput", "1/s", |run| Some(run.measures.totals.throughput_per_s));
const SWITCHES: Column = plain("switches", "", |run| Some(run.measures.totals.nr_switches as f64));
const JAIN: Column = plain("Jain", "", |run| Some(run.measures.totals.jain_index));

const SUMMARY: [Column; 6] = [MAKESPAN, TURNAROUND, RESPONSE, THROUGHPUT, SWITCHES, JAIN];

const DETAIL: [Column; 17] = [
    MAKESPAN,
    TURNAROUND,
    time("turnaround p95", |run| some_if(run.measures.totals.turnaround)),
    RESPONSE,
    time("mean run delay", |run| Some(run.measures.totals.run_delay.ns_mean as f64)),
    time("max run delay", |run| Some(run.measures.totals.run_delay.ns_max as f64)),
    time("longest wait", |run| {
        let wait = run.measures.totals.wait;
        (wait.count > 0).then_some(wait.ns_max as f64)
    }),
    time("wake-up latency p50", |run| wakeup(run, |d| d.ns_median)),
    time("wake-up latency p99", |run| wakeup(run, |d| d.ns_p99)),
    time("median slice", |run| {
        let slice = run.measures.totals.slice;
        (slice.count > 0).then_some(slice.ns_median as f64)
    }),
    THROUGHPUT,
    plain("utilisation", "%", |run| Some(run.measures.totals.utilisation * 100.0)),
    SWITCHES,
    plain("voluntary", "", |run| Some(run.measures.totals.nr_voluntary_switches as f64)),
    plain("involuntary", "", |run| Some(run.measures.totals.nr_involuntary_switches as f64)),
    plain("migrations", "", |run| Some(run.measures.totals.nr_migrations as f64)),
    JAIN,
];

fn some_if(distribution: schedlab_metrics::Distribution) -> Option<f64> {
    (distribution.count > 0).then_some(distribution.ns_p95 as f64)
}

fn wakeup(run: &RunResult, read: fn(&schedlab_metrics::Distribution) -> u64) -> Option<f64> {
    let latency = &run.measures.totals.wakeup_latency;
    (latency.count > 0).then(|| read(latency) as f64)
}

/// The summary: one row for each scheduler, lane, n and CPUs of each experiment. Rows below the
/// greatest n of their experiment are marked `minor`; the page can hide them.
pub fn summary_table(groups: &[Group<'_>], styles: &Styles) -> String {
    let mut rows = Vec::new();
    for group in groups {
        for cell in panel_order(group) {
            let minor = group.ns(cell.cpus).last() != Some(&cell.n);
            rows.push((group, cell, minor));
        }
    }
    table("summary-table", &rows, &SUMMARY, styles, true)
}

/// All measures of one experiment.
pub fn detail_table(group: &Group<'_>, styles: &Styles) -> String {
    let rows: Vec<_> = panel_order(group).into_iter().map(|cell| (group, cell, false)).collect();
    table(&format!("{}-table", group.id), &rows, &DETAIL, styles, false)
}

type Row<'g, 'a> = (&'g Group<'a>, &'g Cell<'a>, bool);

fn table(
    id: &str,
    rows: &[Row<'_, '_>],
    columns: &[Column],
    styles: &Styles,
    with_experiment: bool,
) -> String {
    // A column that no run fills would only take room.
    let columns: Vec<(&Column, TimeUnit)> = columns
        .iter()
        .filter_map(|column| {
            let values = || {
                rows.iter()
                    .flat_map(|(_, cell, _)| cell.runs.iter().filter_map(|r| (column.read)(r)))
            };
            values().next().map(|_| (column, unit_for_all(values())))
        })
        .collect();
    let mut out =
        format!("<div class=\"scroll\"><table class=\"sortable\" id=\"{id}\">\n<thead><tr>");
    let mut heads: Vec<(String, bool)> = Vec::new();
    if with_experiment {
        heads.push(("experiment".into(), false));
    }
    heads.push(("scheduler".into(), false));
    heads.push(("lane".into(), false));
    heads.extend(["n", "CPUs", "runs"].map(|head| (head.to_string(), true)));
    for (column, unit) in &columns {
        let symbol = if let Show::Time = column.show { unit.symbol } else { column.unit };
        let unit = if symbol.is_empty() {
            String::new()
        } else {
            format!(" <span class=\"unit\">{symbol}</span>")
        };
        heads.push((format!("{}{unit}", column.head), true));
    }
    for (head, numeric) in heads {
        let class = if numeric { " class=\"num\"" } else { "" };
        let _ =
            write!(out, "<th scope=\"col\"{class}><button type=\"button\">{head}</button></th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for (group, cell, minor) in rows {
        row(&mut out, group, cell, *minor, &columns, styles, with_experiment);
    }
    out += "</tbody></table></div>\n";
    out
}

fn row(
    out: &mut String,
    group: &Group<'_>,
    cell: &Cell<'_>,
    minor: bool,
    columns: &[(&Column, TimeUnit)],
    styles: &Styles,
    with_experiment: bool,
) {
    let config = &group.configs[cell.config];
    let class = if minor { " class=\"minor\"" } else { "" };
    let _ = write!(out, "<tr{class}>");
    if with_experiment {
        let name = &group.result.experiment.name;
        let _ = write!(out, "<td><a href=\"#{}\">{}</a></td>", group.id, escape(name));
    }
    let _ = write!(
        out,
        "<th scope=\"row\">{}</th><td>{}</td>",
        line_name(config, styles),
        escape(config.lane_words())
    );
    for value in [cell.n, cell.cpus, cell.runs.len() as u64] {
        let _ = write!(out, "<td class=\"num\" data-v=\"{value}\">{value}</td>");
    }
    for (column, unit) in columns {
        match cell.estimate(column.read) {
            Some(estimate) => value_cell(out, column, *unit, estimate),
            None => *out += "<td class=\"num none\">\u{2013}</td>",
        }
    }
    *out += "</tr>\n";
}

fn value_cell(out: &mut String, column: &Column, unit: TimeUnit, estimate: Estimate) {
    let (mean, half) = (estimate.mean, estimate.ci95_half.filter(|half| *half > 0.0));
    let (text, spread) = match column.show {
        Show::Time => (significant(mean / unit.ns as f64), half.map(duration)),
        Show::Plain if column.head == "Jain" => (format!("{mean:.3}"), half.map(significant)),
        Show::Plain => (plain_number(mean), half.map(significant)),
    };
    let title = spread.map_or_else(String::new, |spread| {
        format!(" title=\"95 % confidence: \u{b1}{spread} over {} runs\"", estimate.count)
    });
    let _ = write!(out, "<td class=\"num\" data-v=\"{mean}\"{title}>{text}</td>");
}

/// Counts without decimals, other numbers with three significant digits.
fn plain_number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        crate::number::count(value.abs() as u64)
    } else {
        significant(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};

    #[test]
    fn rows_below_the_greatest_n_are_minor_and_empty_columns_vanish() {
        let results = [experiment(
            "S1",
            vec![run("sim", "rr", 1, 1), run("sim", "rr", 2, 1), run("sim", "<i>", 2, 1)],
        )];
        let groups = group_all(&results);
        let html = summary_table(&groups, &Styles::new(&groups));
        assert_eq!(html.matches("<tr class=\"minor\">").count(), 1);
        assert_eq!(html.matches("<tr>").count(), 3, "head and two rows");
        assert!(!html.contains("makespan"), "no run has one");
        assert!(html.contains("&lt;i&gt;") && !html.contains("<i>"));
    }
}
