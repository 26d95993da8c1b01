// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mean turnaround and throughput against the number of tasks (study S1's two figures), simulated
//! and measured on the same axes, with the 95 % confidence interval over repetitions as a band.

use crate::draw::{Axis as ChartAxis, Chart, Panel, Series, Ticks};
use crate::figure::{Figure, Table};
use crate::group::Group;
use crate::number::{duration, plural, significant, unit_for_all};
use crate::order::config_order;
use crate::style::{Style, Styles};
use schedlab_lab::FigureKind;
use schedlab_lab::redrawn::DrawnPoint;
use schedlab_run::RunResult;
use serde::Serialize;
use serde_json::json;

/// Data of one figure.
#[derive(Debug, Serialize)]
pub struct CurvesData {
    /// Label of the vertical axis with its unit.
    pub y_label: String,
    /// One plot for each number of CPUs.
    pub facets: Vec<Facet>,
    /// The data as rows.
    pub table: Table,
}

/// One plot.
#[derive(Debug, Serialize)]
pub struct Facet {
    /// `1 CPU`.
    pub title: String,
    /// Number of CPUs: the curves bend where n reaches it.
    pub cpus: u64,
    /// Numbers of tasks.
    pub n: Vec<u64>,
    /// Lines.
    pub lines: Vec<Line>,
}

/// One line. Its values align with [`Facet::n`]; `None` means that no run had this n.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Scheduler.
    pub label: String,
    /// `simulated` or `measured`.
    pub lane: String,
    /// Colour, marker, dash.
    #[serde(skip)]
    pub style: Style,
    /// Means.
    pub mean: Vec<Option<f64>>,
    /// Lower ends of the intervals.
    pub low: Vec<Option<f64>>,
    /// Upper ends of the intervals.
    pub high: Vec<Option<f64>>,
}

/// The vertical axis.
#[derive(Debug)]
pub struct Axis {
    read: fn(&RunResult) -> Option<f64>,
    /// Value by which measures are divided for display.
    pub scale: f64,
    /// Label with unit.
    pub label: String,
    name: &'static str,
    column: String,
}

/// Returns the x axis of a figure of this kind; `None` if the figure has no x axis of n.
pub fn axis_of(kind: FigureKind, group: &Group<'_>) -> Option<Axis> {
    match kind {
        FigureKind::TurnaroundAgainstN => {
            let read: fn(&RunResult) -> Option<f64> =
                |run| run.measures.totals.turnaround_ns_mean.map(|ns| ns as f64);
            let all = group.cells.iter().flat_map(|cell| cell.runs.iter());
            let unit = unit_for_all(all.filter_map(|run| read(run)));
            Some(Axis {
                read,
                scale: unit.ns as f64,
                label: format!("mean turnaround ({})", unit.symbol),
                name: "turnaround",
                column: format!("turnaround_{}_mean", unit.symbol.replace('\u{b5}', "u")),
            })
        }
        FigureKind::ThroughputAgainstN => Some(Axis {
            read: |run| run.measures.totals.throughput_per_s.filter(|v| *v > 0.0),
            scale: 1.0,
            label: "throughput (tasks/s)".into(),
            name: "throughput",
            column: "throughput_per_s".into(),
        }),
        _ => None,
    }
}

/// Makes the plots, one for each number of CPUs.
pub fn facets_of(group: &Group<'_>, styles: &Styles, axis: &Axis) -> Vec<Facet> {
    group
        .cpus()
        .into_iter()
        .map(|cpus| {
            let n = group.ns(cpus);
            let lines = config_order(group)
                .into_iter()
                .map(|config| line(group, styles, axis, config, cpus, &n))
                .filter(|line| line.mean.iter().any(Option::is_some))
                .collect();
            Facet { title: plural(cpus as usize, "CPU", "CPUs"), cpus, n, lines }
        })
        .filter(|facet| !facet.lines.is_empty())
        .collect()
}

fn line(
    group: &Group<'_>,
    styles: &Styles,
    axis: &Axis,
    config: usize,
    cpus: u64,
    ns: &[u64],
) -> Line {
    let (mut mean, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    for n in ns {
        let found = group.cell(config, *n, cpus).and_then(|cell| cell.estimate(axis.read));
        mean.push(found.map(|e| e.mean / axis.scale));
        let half = found.and_then(|e| Some((e.mean, e.ci95_half?)));
        low.push(half.map(|(mean, half)| (mean - half).max(0.0) / axis.scale));
        high.push(half.map(|(mean, half)| (mean + half) / axis.scale));
    }
    let line = &group.configs[config];
    Line {
        label: line.label(),
        lane: line.lane_words().to_string(),
        style: styles.of(line),
        mean,
        low,
        high,
    }
}

/// The figure of some facets, all with the same vertical axis.
pub fn curves_chart(title: &str, facets: &[Facet], y_label: &str) -> Chart {
    let lines = || facets.iter().flat_map(|facet| &facet.lines);
    let tops = lines().flat_map(|line| line.mean.iter().chain(&line.high)).flatten();
    let top = tops.fold(0.0_f64, |top, value| top.max(*value)) * 1.06;
    let series = |facet: &Facet, line: &Line| Series {
        name: line.label.clone(),
        note: line.lane.clone(),
        style: Some(line.style),
        points: (0..facet.n.len())
            .filter_map(|at| {
                let plain = DrawnPoint::plain(facet.n[at] as f64, line.mean[at]?);
                let ci95 = line.low[at].zip(line.high[at]).map(|(low, high)| [low, high]);
                Some(DrawnPoint { ci95, ..plain })
            })
            .collect(),
        ..Series::default()
    };
    let panel = |facet: &Facet| {
        let end = |n: Option<&u64>| n.map_or(0.0, |n| *n as f64);
        let (first, last) = (end(facet.n.first()), end(facet.n.last()));
        let pad = if last > first { (last - first) * 0.04 } else { 0.5 };
        let cpus = facet.cpus as f64;
        Panel {
            title: if facets.len() > 1 { facet.title.clone() } else { String::new() },
            height: 260.0,
            along: ChartAxis::Numbers {
                label: "tasks n".into(),
                low: first - pad,
                high: last + pad,
                ticks: Ticks::Whole,
            },
            value: ChartAxis::numbers(y_label, 0.0, if top > 0.0 { top } else { 1.0 }),
            rule: (cpus > first && cpus < last).then_some(cpus),
            has_end_names: true,
            series: facet.lines.iter().map(|line| series(facet, line)).collect(),
            ..Panel::default()
        }
    };
    Chart { title: title.into(), columns: 2, panels: facets.iter().map(panel).collect() }
}

/// The figure and its data; `None` if there is nothing to draw.
pub fn curves(
    group: &Group<'_>,
    styles: &Styles,
    kind: FigureKind,
) -> Option<(Figure, CurvesData)> {
    let axis = axis_of(kind, group)?;
    let facets = facets_of(group, styles, &axis);
    if facets.is_empty() {
        return None;
    }
    let table = table(&facets, &axis);
    let chart = curves_chart(group.title(), &facets, &axis.label);
    let most = group.cells.iter().map(|cell| cell.runs.len()).max().unwrap_or(1);
    let what = if axis.name == "turnaround" {
        "Mean time from release to exit against the number of tasks n, released together. With \
         fair sharing it grows in proportion to n once every CPU is busy; running one task after \
         the other halves it."
    } else {
        "Finished tasks a second against the number of tasks n. It rises until every CPU is busy \
         (dotted upright line) and can then only stay level."
    };
    let spread = if most > 1 {
        format!(" Bands: 95 % confidence interval of the mean over up to {most} repetitions.")
    } else {
        " One run a point: nothing is known about the spread, so there is no band.".to_string()
    };
    let figure = Figure {
        id: format!("{}-{}-n", group.id, axis.name),
        kind: "curves",
        title: if axis.name == "turnaround" {
            "Turnaround against n.".into()
        } else {
            "Throughput against n.".into()
        },
        caption: format!(
            "{what} Solid lines and filled marks are measured, dashed lines and hollow marks \
             simulated.{spread}"
        ),
        alternative: alternative(&facets, &axis),
        notices: Vec::new(),
        legend: chart.legend(),
        picture: chart.page(520.0, Some(340.0)),
        half: facets.len() == 1,
    };
    Some((figure, CurvesData { y_label: axis.label, facets, table }))
}

fn alternative(facets: &[Facet], axis: &Axis) -> String {
    let show = |value: f64| match axis.name {
        "turnaround" => duration(value * axis.scale),
        _ => format!("{} a second", significant(value)),
    };
    let mut text = format!("Line chart of {} against the number of tasks.", axis.name);
    for facet in facets {
        text += &format!(" {}:", facet.title);
        for line in &facet.lines {
            let known: Vec<(u64, f64)> =
                facet.n.iter().zip(&line.mean).filter_map(|(n, m)| Some((*n, (*m)?))).collect();
            if let (Some((n0, y0)), Some((n1, y1))) = (known.first(), known.last()) {
                text += &format!(
                    " {} {}: {} at n = {n0}, {} at n = {n1};",
                    line.label,
                    line.lane,
                    show(*y0),
                    show(*y1)
                );
            }
        }
    }
    text
}

fn table(facets: &[Facet], axis: &Axis) -> Table {
    let columns =
        ["scheduler", "lane", "cpus", "n", &axis.column, "ci95_low", "ci95_high"].map(String::from);
    let mut rows = Vec::new();
    for facet in facets {
        for line in &facet.lines {
            for (index, n) in facet.n.iter().enumerate() {
                if let Some(mean) = line.mean[index] {
                    rows.push(vec![
                        json!(line.label),
                        json!(line.lane),
                        json!(facet.cpus),
                        json!(n),
                        json!(mean),
                        json!(line.low[index]),
                        json!(line.high[index]),
                    ]);
                }
            }
        }
    }
    Table { columns: columns.to_vec(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::{Host, Sim};

    fn with_turnaround(n: u64, ns: u64) -> RunResult {
        let mut r = run(Host, "OTHER", n, 1);
        r.measures.totals.turnaround_ns_mean = Some(ns);
        r
    }

    #[test]
    fn repetitions_give_a_band_and_single_runs_none() {
        let results = [experiment(
            "x",
            vec![
                with_turnaround(1, 1_000_000),
                with_turnaround(2, 1_000_000),
                with_turnaround(2, 3_000_000),
            ],
        )];
        let groups = group_all(&results);
        let styles = Styles::new(&groups);
        let (_, data) = curves(&groups[0], &styles, FigureKind::TurnaroundAgainstN).unwrap();
        let line = &data.facets[0].lines[0];
        assert_eq!(line.mean, [Some(1.0), Some(2.0)]);
        assert_eq!(line.low[0], None);
        assert_eq!(line.low[1], Some(0.0));
        assert!((line.high[1].unwrap() - (2.0 + 12.706)).abs() < 1e-6);
        assert_eq!(data.y_label, "mean turnaround (ms)");
        assert_eq!(data.table.rows.len(), 2);
    }

    #[test]
    fn an_experiment_without_the_measure_draws_nothing() {
        let results = [experiment("x", vec![run(Sim, "rr", 1, 1)])];
        let groups = group_all(&results);
        let styles = Styles::new(&groups);
        assert!(curves(&groups[0], &styles, FigureKind::TurnaroundAgainstN).is_none());
        assert!(curves(&groups[0], &styles, FigureKind::ThroughputAgainstN).is_none());
        assert!(curves(&groups[0], &styles, FigureKind::Boxes).is_none());
    }
}
