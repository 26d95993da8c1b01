// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cumulative distributions of waiting times: from a wake-up until the task runs, and each single
//! wait for a CPU. Each configuration has one line, at the greatest n. It passes through the
//! percentiles in a result: least, median, p95, p99, greatest.

use crate::draw::{Axis, Chart, Panel, Series, Ticks, spans_decades};
use crate::figure::{Figure, Table};
use crate::group::{Cell, Group};
use crate::number::{TimeUnit, duration, plural, unit_for_all};
use crate::order::config_order;
use crate::style::{Style, Styles};
use crate::words::capital;
use schedlab_lab::redrawn::DrawnPoint;
use schedlab_metrics::{Distribution, RunTotals};
use serde::Serialize;
use serde_json::json;

/// Maximum number of lines in a picture. A sweep has more lines, but figures of its own.
const LINES_MAX: usize = 16;
/// Minimum number of samples for a curve.
const SAMPLES_MIN: u64 = 5;

/// A measure with a distribution.
struct Measure {
    name: &'static str,
    key: &'static str,
    /// What the percentages count.
    of: &'static str,
    read: fn(&RunTotals) -> &Distribution,
}

const MEASURES: [Measure; 2] = [
    Measure {
        name: "time from wake-up to running",
        key: "wakeup_latency",
        of: "wake-ups",
        read: |totals| &totals.wakeup_latency,
    },
    Measure {
        name: "a single wait for a CPU",
        key: "wait",
        of: "waits",
        read: |totals| &totals.wait,
    },
];

/// The percentiles of a configuration, each the mean over its repetitions, in ns.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Percentiles {
    count: f64,
    values: [f64; 5],
}

impl Percentiles {
    /// Reads the percentiles; `None` if a run lacks them or has too few samples.
    fn of(cell: &Cell<'_>, read: fn(&RunTotals) -> &Distribution) -> Option<Self> {
        let mut all = Self { count: 0.0, values: [0.0; 5] };
        let share = 1.0 / cell.runs.len() as f64;
        for run in &cell.runs {
            let found = read(&run.measures.totals);
            all.count += found.count.filter(|count| *count >= SAMPLES_MIN)? as f64 * share;
            let values = [found.ns_min, found.ns_median, found.ns_p95, found.ns_p99, found.ns_max];
            for (sum, value) in all.values.iter_mut().zip(values) {
                *sum += value? as f64 * share;
            }
        }
        Some(all)
    }

    /// The percentage of samples that do not exceed each value.
    fn percents(&self) -> [f64; 5] {
        [(100.0 / self.count).min(50.0), 50.0, 95.0, 99.0, 100.0]
    }
}

/// A configuration.
struct Line {
    scheduler: String,
    lane: &'static str,
    style: Style,
    runs: usize,
    found: Percentiles,
}

/// One measure at one number of CPUs.
struct Picture {
    measure: &'static Measure,
    n: u64,
    cpus: u64,
    lines: Vec<Line>,
}

/// Data of the figure.
#[derive(Debug, Serialize)]
pub struct LatencyData {
    table: Table,
}

fn pictures(group: &Group<'_>, styles: &Styles) -> Vec<Picture> {
    let mut pictures = Vec::new();
    for cpus in group.cpus() {
        let Some(n) = group.ns(cpus).last().copied() else { continue };
        for measure in &MEASURES {
            let line = |config: usize| {
                let cell = group.cell(config, n, cpus)?;
                let of = &group.configs[config];
                Some(Line {
                    scheduler: of.label(),
                    lane: of.lane_words(),
                    style: styles.of(of),
                    runs: cell.runs.len(),
                    found: Percentiles::of(cell, measure.read)?,
                })
            };
            let lines: Vec<Line> = config_order(group).into_iter().filter_map(line).collect();
            let is_some = lines.iter().any(|line| line.found.values[4] > 0.0);
            if is_some && lines.len() <= LINES_MAX {
                pictures.push(Picture { measure, n, cpus, lines });
            }
        }
    }
    pictures
}

impl Picture {
    fn heading(&self) -> String {
        format!(
            "{}, n\u{a0}=\u{a0}{}, {}",
            capital(self.measure.name),
            self.n,
            plural(self.cpus as usize, "CPU", "CPUs")
        )
    }

    fn values(&self) -> impl Iterator<Item = f64> + Clone {
        self.lines.iter().flat_map(|line| line.found.values)
    }

    fn unit(&self) -> TimeUnit {
        unit_for_all(self.values())
    }

    fn panel(&self) -> Panel {
        let unit = self.unit();
        let label = format!("{} ({})", self.measure.name, unit.symbol);
        let some = self.values().filter(|value| *value > 0.0);
        let (low, high) = some
            .clone()
            .fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let [low, high] = [low, high].map(|value| value / unit.ns as f64);
        let is_log = spans_decades(some);
        let (along, least) = match is_log {
            // Values of 0 go to the left end.
            true => {
                let (low, high) = (low * 0.8, high * 1.25);
                (Axis::Numbers { label, low, high, ticks: Ticks::Decades }, low)
            }
            false => (Axis::numbers(&label, 0.0, high * 1.04), 0.0),
        };
        let series = |line: &Line| Series {
            name: line.scheduler.clone(),
            note: line.lane.into(),
            style: Some(line.style),
            points: line
                .found
                .values
                .iter()
                .zip(line.found.percents())
                .map(|(ns, percent)| DrawnPoint::plain((ns / unit.ns as f64).max(least), percent))
                .collect(),
            ..Series::default()
        };
        Panel {
            title: self.heading(),
            height: 220.0,
            along,
            value: Axis::numbers(
                &format!("{} that took at most so long (%)", self.measure.of),
                0.0,
                100.0,
            ),
            series: self.lines.iter().map(series).collect(),
            ..Panel::default()
        }
    }
}

fn chart(title: &str, pictures: &[Picture]) -> Chart {
    let panels = pictures.iter().map(Picture::panel).collect();
    Chart { title: title.into(), columns: 2, panels }
}

/// The figure as a file, with the ending of its name; `None` if no run holds a distribution.
pub fn latency_file(group: &Group<'_>, styles: &Styles) -> Option<String> {
    let pictures = pictures(group, styles);
    (!pictures.is_empty()).then(|| chart(group.title(), &pictures).file(560.0))
}

/// The figure and its data; `None` if no run holds a distribution.
pub fn latency(group: &Group<'_>, styles: &Styles) -> Option<(Figure, LatencyData)> {
    let pictures = pictures(group, styles);
    if pictures.is_empty() {
        return None;
    }
    let chart = chart("", &pictures);
    let is_drawn = |measure: &&Measure| pictures.iter().any(|one| one.measure.key == measure.key);
    let names: Vec<&str> = MEASURES.iter().filter(is_drawn).map(|measure| measure.key).collect();
    let figure = Figure {
        id: format!("{}-latency", group.id),
        kind: "latency",
        title: "How long tasks wait.".into(),
        caption: format!(
            "How many of all waits took at most so long, at the greatest n. The further left a \
             line, the shorter the waits; where it bends to the right at the top, a few were \
             long. Marks are what the results hold: the least wait, the median, the 95th and the \
             99th percentile and the greatest, each the mean over repetitions; between the marks \
             the line is a guess. Measures: {}.",
            names.join(", ")
        ),
        alternative: alternative(&pictures),
        notices: Vec::new(),
        legend: chart.legend(),
        picture: chart.page(520.0, Some(340.0)),
        half: false,
    };
    Some((figure, LatencyData { table: table(&pictures) }))
}

fn alternative(pictures: &[Picture]) -> String {
    let mut text = String::from("Cumulative distributions.");
    for picture in pictures {
        text += &format!(" {}:", picture.heading());
        for line in &picture.lines {
            let [_, median, _, p99, _] = line.found.values;
            text += &format!(
                " {} {}: median {}, p99 {};",
                line.scheduler,
                line.lane,
                duration(median),
                duration(p99)
            );
        }
    }
    text
}

fn table(pictures: &[Picture]) -> Table {
    let columns = [
        "measure",
        "cpus",
        "n",
        "scheduler",
        "lane",
        "runs",
        "samples",
        "ns_min",
        "ns_median",
        "ns_p95",
        "ns_p99",
        "ns_max",
    ];
    let mut rows = Vec::new();
    for picture in pictures {
        for line in &picture.lines {
            let mut row = vec![
                json!(picture.measure.key),
                json!(picture.cpus),
                json!(picture.n),
                json!(line.scheduler),
                json!(line.lane),
                json!(line.runs),
                json!(line.found.count),
            ];
            row.extend(line.found.values.map(|value| json!(value)));
            rows.push(row);
        }
    }
    Table { columns: columns.map(String::from).to_vec(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::{Host, Sim};
    use schedlab_run::{LaneKind, RunResult};

    fn with_latency(lane: LaneKind, values: [u64; 5], count: u64) -> RunResult {
        let mut one = run(lane, "rr", 2, 1);
        let [min, median, p95, p99, max] = values.map(Some);
        one.measures.totals.wakeup_latency = Distribution {
            count: Some(count),
            ns_min: min,
            ns_mean: median,
            ns_median: median,
            ns_p95: p95,
            ns_p99: p99,
            ns_max: max,
        };
        one
    }

    fn drawn(runs: Vec<RunResult>) -> Option<(Figure, LatencyData)> {
        let results = [experiment("x", runs)];
        let groups = group_all(&results);
        latency(&groups[0], &Styles::new(&groups))
    }

    #[test]
    fn each_lane_has_a_line_through_its_percentiles() {
        let runs = vec![
            with_latency(Sim, [0, 1_000, 50_000, 200_000, 900_000], 100),
            with_latency(Host, [2_000, 3_000, 50_000, 200_000, 900_000], 10),
            with_latency(Host, [4_000, 5_000, 70_000, 400_000, 1_100_000], 10),
        ];
        let (figure, data) = drawn(runs).unwrap();
        assert_eq!(data.table.rows.len(), 2, "{:?}", data.table.rows);
        assert_eq!(data.table.rows[1][6..9], [json!(10.0), json!(3_000.0), json!(4_000.0)]);
        assert!(figure.legend.contains("simulated") && figure.legend.contains("measured"));
        // Three decades: the axis is logarithmic, with 0 at its left end.
        assert!(figure.picture.contains(">10<") && figure.picture.contains(">1000<"), "decades");
        assert!(figure.alternative.contains("median 1.00\u{a0}\u{b5}s"), "{}", figure.alternative);
    }

    #[test]
    fn without_a_trace_or_with_few_samples_there_is_no_figure() {
        assert!(drawn(vec![run(Host, "rr", 2, 1)]).is_none());
        assert!(drawn(vec![with_latency(Sim, [1, 2, 3, 4, 5], 4)]).is_none());
        assert!(drawn(vec![with_latency(Sim, [0; 5], 50)]).is_none());
    }
}
