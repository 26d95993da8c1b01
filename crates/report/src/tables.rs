// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sortable tables: the summary of all cells, and one of all measures for each experiment.

use crate::group::{Cell, Group};
use crate::html::escape;
use crate::legend::line_name;
use crate::number::{TimeUnit, duration, significant, unit_for_all};
use crate::order::panel_order;
use crate::stats::Estimate;
use crate::style::Styles;
use schedlab_run::{RunResult, values};
use std::fmt::Write as _;

/// A measure by its name, which says its unit.
struct Column {
    head: &'static str,
    measure: &'static str,
}

const fn column(head: &'static str, measure: &'static str) -> Column {
    Column { head, measure }
}

impl Column {
    fn is_time(&self) -> bool {
        values::is_time(self.measure)
    }

    /// Unit other than of time; empty for none.
    fn unit(&self) -> &'static str {
        match values::unit(self.measure) {
            "1/s" => "1/s",
            _ if self.measure == "utilisation" => "%",
            _ => "",
        }
    }

    fn read(&self, run: &RunResult) -> Option<f64> {
        let percent = if self.unit() == "%" { 100.0 } else { 1.0 };
        values::run_value(run, self.measure).map(|value| value * percent)
    }
}

const MAKESPAN: Column = column("makespan", "makespan_ns");
const TURNAROUND: Column = column("mean turnaround", "turnaround_ns_mean");
const RESPONSE: Column = column("mean response", "response_ns_mean");
const THROUGHPUT: Column = column("throughput", "throughput_per_s");
const SWITCHES: Column = column("switches", "nr_switches");
const JAIN: Column = column("Jain", "jain_index");

const LATENCY_P99: Column = column("wake-up latency p99", "wakeup_latency_ns_p99");

const SUMMARY: [Column; 7] =
    [LATENCY_P99, TURNAROUND, RESPONSE, MAKESPAN, THROUGHPUT, SWITCHES, JAIN];

const DETAIL: [Column; 17] = [
    MAKESPAN,
    TURNAROUND,
    column("turnaround p95", "turnaround_ns_p95"),
    RESPONSE,
    column("mean run delay", "run_delay_ns_mean"),
    column("max run delay", "run_delay_ns_max"),
    column("longest wait", "wait_ns_max"),
    column("wake-up latency p50", "wakeup_latency_ns_median"),
    LATENCY_P99,
    column("median slice", "slice_ns_median"),
    THROUGHPUT,
    column("utilisation", "utilisation"),
    SWITCHES,
    column("voluntary", "nr_voluntary_switches"),
    column("involuntary", "nr_involuntary_switches"),
    column("migrations", "nr_migrations"),
    JAIN,
];

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
                    .flat_map(|(_, cell, _)| cell.runs.iter().filter_map(|run| column.read(run)))
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
        let symbol = if column.is_time() { unit.symbol } else { column.unit() };
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
        match cell.estimate(|run| column.read(run)) {
            Some(estimate) => value_cell(out, column, *unit, estimate),
            None => *out += "<td class=\"num none\">\u{2013}</td>",
        }
    }
    *out += "</tr>\n";
}

fn value_cell(out: &mut String, column: &Column, unit: TimeUnit, estimate: Estimate) {
    let (mean, half) = (estimate.mean, estimate.ci95_half.filter(|half| *half > 0.0));
    let (text, spread) = match column.measure {
        _ if column.is_time() => (significant(mean / unit.ns as f64), half.map(duration)),
        "jain_index" => (format!("{mean:.3}"), half.map(significant)),
        _ => (plain_number(mean), half.map(significant)),
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
    use schedlab_run::LaneKind::Sim;

    #[test]
    fn rows_below_the_greatest_n_are_minor_and_empty_columns_vanish() {
        let results = [experiment(
            "S1",
            vec![run(Sim, "rr", 1, 1), run(Sim, "rr", 2, 1), run(Sim, "<i>", 2, 1)],
        )];
        let groups = group_all(&results);
        let html = summary_table(&groups, &Styles::new(&groups));
        assert_eq!(html.matches("<tr class=\"minor\">").count(), 1);
        assert_eq!(html.matches("<tr>").count(), 3, "head and two rows");
        assert!(!html.contains("makespan"), "no run has one");
        assert!(html.contains("&lt;i&gt;") && !html.contains("<i>"));
    }
}
