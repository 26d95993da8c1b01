// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sortable tables: a summary of all cells, and all measures of each experiment.

use crate::fold::packed;
use crate::group::{Cell, Group};
use crate::html::escape;
use crate::legend::line_name;
use crate::number::{TimeUnit, duration, plural, significant, unit_for_all};
use crate::order::panel_order;
use crate::stats::Estimate;
use crate::style::Styles;
use schedlab_run::{RunResult, values};
use std::fmt::Write as _;

/// A measure by its name, which gives its unit.
struct Column {
    head: &'static str,
    measure: &'static str,
}

const fn column(head: &'static str, measure: &'static str) -> Column {
    Column { head, measure }
}

impl Column {
    /// The common part of its percentiles' names, such as `wakeup_latency`. These columns share one
    /// unit, so that a reader compares them at a glance.
    fn family(&self) -> &'static str {
        let ends = ["_ns_median", "_ns_p95", "_ns_p99"];
        ends.iter().find_map(|end| self.measure.strip_suffix(end)).unwrap_or(self.measure)
    }

    fn is_time(&self) -> bool {
        values::is_time(self.measure)
    }

    /// Unit of a column that is not a time; may be empty.
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

const LATENCY_P50: Column = column("wake-up latency p50", "wakeup_latency_ns_median");
const LATENCY_P95: Column = column("wake-up latency p95", "wakeup_latency_ns_p95");
const LATENCY_P99: Column = column("wake-up latency p99", "wakeup_latency_ns_p99");
const DELAY_P50: Column = column("run delay p50", "run_delay_ns_median");
const DELAY_P95: Column = column("run delay p95", "run_delay_ns_p95");
const DELAY_P99: Column = column("run delay p99", "run_delay_ns_p99");

const SUMMARY: [Column; 12] = [
    LATENCY_P50,
    LATENCY_P95,
    LATENCY_P99,
    DELAY_P50,
    DELAY_P95,
    DELAY_P99,
    TURNAROUND,
    RESPONSE,
    MAKESPAN,
    THROUGHPUT,
    SWITCHES,
    JAIN,
];

const DETAIL: [Column; 21] = [
    MAKESPAN,
    TURNAROUND,
    column("turnaround p95", "turnaround_ns_p95"),
    RESPONSE,
    DELAY_P50,
    DELAY_P95,
    DELAY_P99,
    column("mean run delay", "run_delay_ns_mean"),
    column("max run delay", "run_delay_ns_max"),
    column("longest wait", "wait_ns_max"),
    LATENCY_P50,
    LATENCY_P95,
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

/// What tells the rows of a table apart, besides the scheduler. A column whose value is the same in
/// all rows is left out, and said once above the table: on a phone it would keep the measures out
/// of sight.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Experiment,
    Lane,
    N,
    Cpus,
    Runs,
}

impl Key {
    fn head(self) -> &'static str {
        match self {
            Self::Experiment => "experiment",
            Self::Lane => "lane",
            Self::N => "n",
            Self::Cpus => "CPUs",
            Self::Runs => "runs",
        }
    }

    fn number(self, cell: &Cell<'_>) -> Option<u64> {
        match self {
            Self::Experiment | Self::Lane => None,
            Self::N => Some(cell.n),
            Self::Cpus => Some(cell.cpus),
            Self::Runs => Some(cell.runs.len() as u64),
        }
    }

    fn text(self, Row { group, cell, .. }: &Row<'_, '_>) -> String {
        match (self, self.number(cell)) {
            (_, Some(number)) => number.to_string(),
            (Self::Experiment, None) => group.result.experiment.name.clone(),
            (_, None) => group.configs[cell.config].lane_words().to_owned(),
        }
    }

    fn cell(self, row: &Row<'_, '_>) -> String {
        let text = escape(&self.text(row));
        match (self, self.number(row.cell)) {
            (_, Some(number)) => format!("<td class=\"num\" data-v=\"{number}\">{text}</td>"),
            (Self::Experiment, None) => {
                format!("<td><a href=\"#{}\">{text}</a></td>", row.group.id)
            }
            (_, None) => format!("<td>{text}</td>"),
        }
    }
}

/// Which columns a table has.
struct Columns<'c> {
    keys: Vec<Key>,
    /// Keys with the same value in all rows, and that value.
    same: Vec<(Key, String)>,
    measures: Vec<(&'c Column, TimeUnit)>,
}

impl<'c> Columns<'c> {
    fn new(rows: &[Row<'_, '_>], measures: &'c [Column], with_experiment: bool) -> Self {
        let values = |column: &Column| -> Vec<f64> {
            let runs = rows.iter().flat_map(|row| &row.cell.runs);
            runs.filter_map(|run| column.read(run)).collect()
        };
        let unit = |column: &Column| {
            let same = measures.iter().filter(|other| other.family() == column.family());
            unit_for_all(same.flat_map(values))
        };
        // Leave out columns that no run fills.
        let measures = measures
            .iter()
            .filter(|column| !values(column).is_empty())
            .map(|column| (column, unit(column)))
            .collect();
        let (mut keys, mut same) = (Vec::new(), Vec::new());
        for key in [Key::Experiment, Key::Lane, Key::N, Key::Cpus, Key::Runs] {
            let mut texts = rows.iter().map(|row| key.text(row));
            let first = texts.next().unwrap_or_default();
            if key == Key::Experiment && !with_experiment {
                continue;
            } else if rows.len() > 1 && texts.all(|text| text == first) {
                same.push((key, first));
            } else {
                keys.push(key);
            }
        }
        Self { keys, same, measures }
    }

    /// What all rows have in common, as a sentence; empty if nothing.
    fn in_common(&self) -> String {
        let parts: Vec<String> = self
            .same
            .iter()
            .map(|(key, text)| format!("{} {}", key.head(), escape(text)))
            .collect();
        match parts.is_empty() {
            true => String::new(),
            false => format!("<p class=\"lane\">All rows: {}.</p>\n", parts.join(", ")),
        }
    }

    /// Returns an HTML attribute with the columns whose value never changes. The page shows them
    /// above the table; the script that writes the CSV file reads them from the attribute.
    fn data(&self) -> String {
        if self.same.is_empty() {
            return String::new();
        }
        let pairs: Vec<_> = self.same.iter().map(|(key, text)| (key.head(), text)).collect();
        let json = serde_json::to_string(&pairs).expect("texts can be written as JSON");
        format!(" data-same=\"{}\"", escape(&json))
    }

    fn head(&self) -> String {
        let mut heads: Vec<(String, bool)> = Vec::new();
        let of_key = |key: &Key| {
            let is_number = matches!(key, Key::N | Key::Cpus | Key::Runs);
            (key.head().to_owned(), is_number)
        };
        let (before, after) = self.split();
        heads.extend(before.iter().map(of_key));
        heads.push(("scheduler".into(), false));
        heads.extend(after.iter().map(of_key));
        for (column, unit) in &self.measures {
            let symbol = if column.is_time() { unit.symbol } else { column.unit() };
            let unit = match symbol.is_empty() {
                true => String::new(),
                false => format!(" <span class=\"unit\">{symbol}</span>"),
            };
            heads.push((format!("{}{unit}", column.head), true));
        }
        let mut out = String::from("<thead><tr>");
        for (head, numeric) in heads {
            let class = if numeric { " class=\"num\"" } else { "" };
            let _ = write!(
                out,
                "<th scope=\"col\"{class}><button type=\"button\">{head}</button></th>"
            );
        }
        out + "</tr></thead>\n"
    }

    /// The columns before and after the scheduler.
    fn split(&self) -> (&[Key], &[Key]) {
        self.keys.split_at(usize::from(self.keys.first() == Some(&Key::Experiment)))
    }

    fn row(&self, row: &Row<'_, '_>, styles: &Styles) -> String {
        let (before, after) = self.split();
        let mut out = String::from("<tr>");
        before.iter().for_each(|key| out += &key.cell(row));
        let config = &row.group.configs[row.cell.config];
        let _ = write!(out, "<th scope=\"row\">{}</th>", line_name(config, styles));
        after.iter().for_each(|key| out += &key.cell(row));
        for (column, unit) in &self.measures {
            match row.cell.estimate(|run| column.read(run)) {
                Some(estimate) => value_cell(&mut out, column, *unit, estimate),
                None => out += "<td class=\"num none\">\u{2013}</td>",
            }
        }
        out + "</tr>\n"
    }
}

/// Number of rows shown at first; a click shows all.
const ROWS_SHOWN_MAX: usize = 40;

/// The section with the summary of all runs.
pub fn summary_section(groups: &[Group<'_>], styles: &Styles) -> String {
    format!(
        "<section id=\"overview\">\n<h2>All runs at a glance</h2>\n<p>Means over repetitions. \
         Click a head to sort.</p>\n{}<div class=\"fig-foot\"><a class=\"csv-of\" \
         href=\"#overview\" data-table=\"summary-table\" download=\"summary.csv\">All rows as \
         CSV</a></div>\n</section>\n",
        summary_table(groups, styles)
    )
}

/// The summary: one row for each scheduler, lane, n and CPUs of each experiment.
fn summary_table(groups: &[Group<'_>], styles: &Styles) -> String {
    let mut rows = Vec::new();
    for group in groups {
        for cell in panel_order(group) {
            let is_minor = group.ns(cell.cpus).last() != Some(&cell.n);
            rows.push(Row { group, cell, is_minor });
        }
    }
    table("summary-table", &rows, &SUMMARY, styles, true)
}

/// All measures of one experiment.
pub fn detail_table(group: &Group<'_>, styles: &Styles) -> String {
    let row = |cell| Row { group, cell, is_minor: false };
    let rows: Vec<Row<'_, '_>> = panel_order(group).into_iter().map(row).collect();
    table(&format!("{}-table", group.id), &rows, &DETAIL, styles, false)
}

struct Row<'g, 'a> {
    group: &'g Group<'a>,
    cell: &'g Cell<'a>,
    /// Whether n is below the greatest of its experiment. A long table omits such rows at first.
    is_minor: bool,
}

/// The rows shown at first: in a long table those with the greatest n, limited if there are many.
fn shown_at_first<'r, 'g, 'a>(rows: &'r [Row<'g, 'a>]) -> Vec<&'r Row<'g, 'a>> {
    let is_long = rows.len() > ROWS_SHOWN_MAX;
    rows.iter().filter(|row| !(is_long && row.is_minor)).take(ROWS_SHOWN_MAX).collect()
}

fn table(
    id: &str,
    rows: &[Row<'_, '_>],
    columns: &[Column],
    styles: &Styles,
    with_experiment: bool,
) -> String {
    let columns = Columns::new(rows, columns, with_experiment);
    let html = |row: &Row<'_, '_>| columns.row(row, styles);
    let shown = shown_at_first(rows);
    let mut out = format!(
        "<div class=\"long-table\">\n{}<div class=\"scroll\">\
         <table class=\"sortable\" id=\"{id}\"{}>\n{}<tbody>\n",
        columns.in_common(),
        columns.data(),
        columns.head()
    );
    shown.iter().for_each(|row| out += &html(row));
    out += "</tbody></table></div>\n";
    if shown.len() < rows.len() {
        let is_cut = shown.len() == ROWS_SHOWN_MAX;
        let _ = writeln!(
            out,
            "<p class=\"more\"><button type=\"button\" class=\"show-all\">Show all {}</button> \
             <span class=\"lane\">{}</span></p>\n{}",
            plural(rows.len(), "row", "rows"),
            match is_cut {
                true => format!("now the first {ROWS_SHOWN_MAX}"),
                false => "now those with the greatest n".into(),
            },
            packed("rows", &rows.iter().map(html).collect::<String>())
        );
    }
    out += "</div>\n";
    out
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
    use crate::fold::tests::unfolded;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::Sim;

    #[test]
    fn names_stay_text_and_empty_columns_vanish() {
        let results = [experiment(
            "S1",
            vec![run(Sim, "rr", 1, 1), run(Sim, "rr", 2, 1), run(Sim, "<i>", 2, 1)],
        )];
        let groups = group_all(&results);
        let html = summary_table(&groups, &Styles::new(&groups));
        assert_eq!(html.matches("<tr>").count(), 4, "head and three rows");
        assert!(!html.contains("makespan"), "no run has one");
        assert!(!html.contains("Show all"), "all are there");
        assert!(html.contains("&lt;i&gt;") && !html.contains("<i>"));
    }

    /// What all rows have in common stands above the table, and in its data for CSV.
    #[test]
    fn columns_with_one_value_are_a_sentence() {
        let results = [experiment("S1", vec![run(Sim, "rr", 1, 4), run(Sim, "fcfs", 1, 4)])];
        let groups = group_all(&results);
        let html = summary_table(&groups, &Styles::new(&groups));
        let heads = |html: &str| {
            let head = html.split("<thead>").nth(1).unwrap().split("</thead>").next().unwrap();
            let parts = head.split("<button type=\"button\">").skip(1);
            parts.map(|part| part.split('<').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(heads(&html)[0], "scheduler");
        assert!(!heads(&html).iter().any(|head| ["lane", "n", "CPUs"].contains(&&**head)));
        assert!(html.contains("<p class=\"lane\">All rows: experiment S1, lane sim"), "{html}");
        assert!(html.contains("n 1, CPUs 4, runs 1.</p>"), "{html}");
        assert!(html.contains("[&quot;CPUs&quot;,&quot;4&quot;]"), "{html}");
        let results = [experiment("S1", vec![run(Sim, "rr", 1, 4), run(Sim, "fcfs", 2, 4)])];
        let groups = group_all(&results);
        let html = summary_table(&groups, &Styles::new(&groups));
        assert_eq!(heads(&html)[..2], ["scheduler", "n"], "{html}");
    }

    #[test]
    fn percentiles_of_one_measure_have_one_unit_and_one_run_no_interval() {
        let mut one = run(Sim, "rr", 1, 1);
        let totals = &mut one.measures.totals;
        totals.wakeup_latency.ns_median = Some(2_000);
        totals.wakeup_latency.ns_p95 = Some(3_000_000);
        totals.wakeup_latency.ns_p99 = Some(40_000_000);
        totals.run_delay.ns_p99 = Some(2_000_000_000);
        let results = [experiment("S1", vec![one])];
        let groups = group_all(&results);
        let html = summary_table(&groups, &Styles::new(&groups));
        let ms = " <span class=\"unit\">ms</span>";
        for head in ["wake-up latency p50", "wake-up latency p95", "wake-up latency p99"] {
            assert!(html.contains(&format!("{head}{ms}")), "{head}: {html}");
        }
        assert!(html.contains("run delay p99 <span class=\"unit\">s</span>"), "{html}");
        assert!(html.contains(">0.00200</td>") && html.contains(">40.0</td>"), "{html}");
        assert!(!html.contains('\u{b1}') && !html.contains("confidence"), "{html}");
    }

    #[test]
    fn a_long_table_shows_the_greatest_n_first_and_packs_all_rows() {
        let results = [experiment("S1", (1..=50).map(|n| run(Sim, "rr", n, 1)).collect())];
        let groups = group_all(&results);
        let html = summary_table(&groups, &Styles::new(&groups));
        assert_eq!(html.matches("<tr>").count(), 2, "head and n = 50");
        assert!(html.contains("Show all 50\u{a0}rows") && html.contains("greatest n"), "{html}");
        assert_eq!(unfolded(&html).matches("<tr>").count(), 2 + 50);
        let results =
            [experiment("S1", (0..90).map(|i| run(Sim, &format!("{i}"), 1, 1)).collect())];
        let groups = group_all(&results);
        let html = summary_table(&groups, &Styles::new(&groups));
        assert_eq!(html.matches("<tr>").count(), 1 + ROWS_SHOWN_MAX);
        assert!(html.contains("now the first 40"), "{html}");
    }
}
