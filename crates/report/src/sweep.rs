// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a sweep: a measure against a swept number, with one line for each configuration. If
//! nothing swept is a number, each configuration is a bar. Error bars are the 95 % confidence
//! intervals of the experiment's table; with one seed there are none. An axis whose values span
//! more than two decades is logarithmic.

use crate::draw::{Axis, Chart, Form, Panel, Series, Ticks, nice_end, spans_decades};
use crate::figure::{Figure, Table};
use crate::group::Group;
use crate::html::slug;
use crate::number::{duration, significant, unit_for_all};
use crate::style::Style;
use crate::words::{axis_words, capital, measure_words};
use schedlab_lab::redrawn::DrawnPoint;
use schedlab_lab::view::{self, Row};
use schedlab_run::values::{self, is_time};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One configuration.
#[derive(Debug)]
pub struct SweepLine {
    /// Name: the scheduler, then what else distinguishes it.
    pub label: String,
    /// Look.
    pub style: Style,
    /// Means, sorted by x (0 without an x).
    pub points: Vec<DrawnPoint>,
}

/// One measure as a picture.
#[derive(Debug)]
pub struct SweepPicture {
    /// Name of the measure, for file names.
    pub key: String,
    /// The measure's name in results.
    measure: String,
    /// The measure's name for people, with its unit.
    pub y_label: String,
    /// The swept quantity, with its unit; `None`: bars.
    pub x_label: Option<String>,
    /// Lines; with bars each has one point.
    pub lines: Vec<SweepLine>,
    scale: f64,
}

/// Data of a figure.
#[derive(Debug, Serialize)]
pub struct SweepData {
    table: Table,
}

/// Maximum number of lines or bars in a picture; a reader cannot distinguish more.
const LINES_MAX: usize = 40;

/// Every measure of the experiment's table as a picture; empty if the experiment has no table.
pub fn sweep_pictures(group: &Group<'_>) -> Vec<SweepPicture> {
    let Some(table) = table_of(group) else { return Vec::new() };
    let x = group.result.experiment.view.as_ref().and_then(|view| view.axis(&table));
    let count = table.measures.len();
    (0..count).filter_map(|measure| picture(&table, x, measure)).collect()
}

fn table_of(group: &Group<'_>) -> Option<view::Table> {
    let view = group.result.experiment.view.as_ref()?;
    Some(view.table(&group.result.runs)).filter(|table| !table.rows.is_empty())
}

/// Scale and label of the horizontal axis.
fn x_axis(table: &view::Table, x: usize) -> (f64, String) {
    let name = &table.by[x];
    let values = || table.rows.iter().filter_map(|row| values::axis_value(&row.key[x]));
    if values().any(|value| value.is_time) {
        let unit = unit_for_all(values().map(|value| value.number));
        (unit.ns as f64, axis_words(name, unit.symbol))
    } else {
        (1.0, axis_words(name, ""))
    }
}

fn picture(table: &view::Table, x: Option<usize>, measure: usize) -> Option<SweepPicture> {
    let name = &table.measures[measure];
    let estimates = || table.rows.iter().filter_map(|row| row.values[measure].estimate);
    estimates().next()?;
    let (scale, y_label) = if is_time(name) {
        let unit = unit_for_all(estimates().map(|estimate| estimate.mean));
        (unit.ns as f64, measure_words(name, unit.symbol))
    } else {
        (1.0, measure_words(name, ""))
    };
    let axis = x.map(|x| (x, x_axis(table, x)));
    let labels = labels(table, x);
    let mut lines: Vec<SweepLine> = Vec::new();
    for row in &table.rows {
        let Some(estimate) = row.values[measure].estimate else { continue };
        let at = match &axis {
            Some((x, (x_scale, _))) => match values::axis_value(&row.key[*x]) {
                Some(value) => value.number / x_scale,
                None => continue,
            },
            None => 0.0,
        };
        let ci95 = estimate.ci95.map(|ends| ends.map(|end| end / scale));
        let point = DrawnPoint { ci95, ..DrawnPoint::plain(at, estimate.mean / scale) };
        let label = label(table, row, x);
        match lines.iter_mut().find(|line| line.label == label && x.is_some()) {
            Some(line) => line.points.push(point),
            None => {
                let index = labels.iter().position(|known| *known == label).unwrap_or_default();
                let style = Style::numbered(index);
                lines.push(SweepLine { label, style, points: vec![point] });
            }
        }
    }
    lines.truncate(LINES_MAX);
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let x_label = axis.map(|(_, (_, label))| label);
    let (key, measure) = (slug(name), name.clone());
    (!lines.is_empty()).then_some(SweepPicture { key, measure, y_label, x_label, lines, scale })
}

/// Every label of the table, in order. A configuration looks the same in the figures of all
/// measures, even if it lacks some of them.
fn labels(table: &view::Table, x: Option<usize>) -> Vec<String> {
    let mut labels = Vec::new();
    for row in &table.rows {
        let label = label(table, row, x);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

/// What distinguishes a row from others at the same x: the scheduler's plain name, the rest as
/// `name=value`.
fn label(table: &view::Table, row: &Row, x: Option<usize>) -> String {
    let parts = table.by.iter().zip(&row.key).enumerate();
    let shown = parts.filter(|(index, (_, value))| Some(*index) != x && !value.is_empty());
    let texts: Vec<String> = shown
        .map(|(_, (name, value))| match name.as_str() {
            "scheduler" | "workload" | "lane" | "machine" => value.clone(),
            _ => format!("{}={value}", name.trim_start_matches("set.")),
        })
        .collect();
    if texts.is_empty() { "all".into() } else { texts.join(", ") }
}

/// The figures with their data.
pub fn sweep_figures(group: &Group<'_>) -> Vec<(Figure, SweepData)> {
    let Some(table) = table_of(group) else { return Vec::new() };
    let figure = |picture: &SweepPicture| {
        let measure = table.measures.iter().position(|name| slug(name) == picture.key)?;
        let id = format!("{}-sweep-{}", group.id, picture.key);
        let cut = table.rows.len() > LINES_MAX && picture.lines.len() == LINES_MAX;
        let notice = format!(
            "Only the first {LINES_MAX} configurations are drawn; the table has \
            all."
        );
        let what = match &picture.x_label {
            Some(x) => format!("{} against {x}.", capital(&picture.y_label)),
            None => format!("{}.", capital(&picture.y_label)),
        };
        let chart = sweep_chart(picture, group.title());
        let figure = Figure {
            kind: "sweep",
            title: what,
            caption: caption(picture),
            alternative: alternative(picture),
            notices: if cut { vec![notice] } else { Vec::new() },
            legend: chart.legend(),
            picture: chart.page(760.0, Some(340.0)),
            half: false,
            id,
        };
        Some((figure, SweepData { table: rows_of(&table, measure) }))
    };
    sweep_pictures(group).iter().filter_map(figure).collect()
}

/// Explains the marks and gives the measure's name in results.
fn caption(picture: &SweepPicture) -> String {
    let mut points = picture.lines.iter().flat_map(|line| &line.points);
    let spread = match points.any(|point| point.ci95.is_some()) {
        true => {
            "Means over seeds; error bars are 95 % confidence intervals (Student's t over the \
             seeds)."
        }
        false => "One seed for each value: nothing is known about the spread.",
    };
    format!("{spread} Measure: {}.", picture.measure)
}

/// The axis of values: from 0, or logarithmic if they span more than two decades.
fn value_axis(picture: &SweepPicture) -> Axis {
    let points = || picture.lines.iter().flat_map(|line| &line.points);
    let high = points().map(DrawnPoint::top).fold(0.0, f64::max);
    let low = points().map(|point| point.y).fold(f64::MAX, f64::min);
    if !spans_decades(points().map(|point| point.y)) {
        return Axis::numbers(&picture.y_label, low.min(0.0), nice_end(high));
    }
    let decade = |value: f64, to: fn(f64) -> f64| 10.0_f64.powf(to(value.log10()));
    Axis::Numbers {
        label: picture.y_label.clone(),
        low: decade(low, f64::floor),
        high: decade(high, f64::ceil),
        ticks: Ticks::Decades,
    }
}

/// The axis of the swept quantity, extended slightly at both ends.
fn swept_axis(picture: &SweepPicture, label: &str) -> Axis {
    let places = || picture.lines.iter().flat_map(|line| &line.points).map(|point| point.x);
    let (first, last) =
        places().fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
    let label = label.into();
    if spans_decades(places()) {
        return Axis::Numbers { label, low: first * 0.8, high: last * 1.25, ticks: Ticks::Decades };
    }
    let pad = if last > first { (last - first) * 0.04 } else { 0.5 };
    // Ticks are whole numbers: there is no half task and no half CPU.
    let is_whole = places().all(|x| x.fract() == 0.0);
    let ticks = if is_whole { Ticks::Whole } else { Ticks::Round };
    Axis::Numbers { label, low: first - pad, high: last + pad, ticks }
}

/// The picture: lines against x, or bars.
pub fn sweep_chart(picture: &SweepPicture, title: &str) -> Chart {
    let value = value_axis(picture);
    // A bar has no base on a logarithmic axis, so a dot marks its end.
    let is_log = matches!(value, Axis::Numbers { ticks: Ticks::Decades, .. });
    let form = if is_log { Form::Dots { r: 5.0 } } else { Form::Bars { part: 0, parts: 1 } };
    let panel = match &picture.x_label {
        Some(label) => Panel {
            height: 300.0,
            along: swept_axis(picture, label),
            value,
            series: picture.lines.iter().map(line_series).collect(),
            ..Panel::default()
        },
        None => Panel {
            height: 26.0 * picture.lines.len() as f64,
            along: Axis::Names(picture.lines.iter().map(|line| line.label.clone()).collect()),
            value,
            is_lying: true,
            series: (0..)
                .map(f64::from)
                .zip(&picture.lines)
                .map(|(slot, line)| bar_series(slot, line, form))
                .collect(),
            ..Panel::default()
        },
    };
    Chart { title: title.into(), columns: 1, panels: vec![panel] }
}

fn line_series(line: &SweepLine) -> Series {
    Series {
        name: line.label.clone(),
        style: Some(line.style),
        form: Form::Line { r: 4.0, dash: "" },
        points: line.points.clone(),
        ..Series::default()
    }
}

fn bar_series(slot: f64, line: &SweepLine, form: Form) -> Series {
    Series {
        style: Some(line.style),
        form,
        points: line.points.iter().take(1).map(|point| DrawnPoint { x: slot, ..*point }).collect(),
        ..Series::default()
    }
}

fn alternative(picture: &SweepPicture) -> String {
    let is_time = picture.scale != 1.0;
    let show = |value: f64| {
        if is_time { duration(value * picture.scale) } else { significant(value) }
    };
    let mut text = match &picture.x_label {
        Some(x) => format!("Lines of {} against {x}.", picture.y_label),
        None => format!("Bars of {}.", picture.y_label),
    };
    for line in &picture.lines {
        let (Some(first), Some(last)) = (line.points.first(), line.points.last()) else { continue };
        let _ = match picture.x_label {
            Some(_) => write!(
                text,
                " {}: {} at {}, {} at {};",
                line.label,
                show(first.y),
                significant(first.x),
                show(last.y),
                significant(last.x)
            ),
            None => write!(text, " {}: {};", line.label, show(first.y)),
        };
    }
    text
}

/// One measure of all rows, with intervals and differences.
fn rows_of(table: &view::Table, measure: usize) -> Table {
    let columns = table.by.iter().map(|name| name.as_str()).chain([
        "seeds",
        table.measures[measure].as_str(),
        "ci95_low",
        "ci95_high",
        "difference_seeds",
        "difference",
        "difference_ci95_low",
        "difference_ci95_high",
    ]);
    let ends = |ci95: Option<[f64; 2]>| match ci95 {
        Some([low, high]) => [json!(low), json!(high)],
        None => [Value::Null, Value::Null],
    };
    let row = |row: &Row| {
        let value = row.values[measure];
        let mut cells: Vec<Value> = row
            .key
            .iter()
            .map(|text| text.parse::<f64>().map_or_else(|_| json!(text), |number| json!(number)))
            .collect();
        let estimate = value.estimate;
        cells.push(json!(estimate.map_or(0, |estimate| estimate.n)));
        cells.push(json!(estimate.map(|estimate| estimate.mean)));
        cells.extend(ends(estimate.and_then(|estimate| estimate.ci95)));
        let paired = value.difference.map(|difference| difference.paired);
        cells.push(json!(paired.map(|paired| paired.n)));
        cells.push(json!(paired.map(|paired| paired.mean)));
        cells.extend(ends(paired.and_then(|paired| paired.ci95)));
        cells
    };
    Table {
        columns: columns.map(String::from).collect(),
        rows: table.rows.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::unfolded;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_lab::{ExperimentResult, View};
    use schedlab_run::LaneKind::Sim;

    fn result(by: &[&str]) -> ExperimentResult {
        let mut runs = Vec::new();
        for (scheduler, factor) in [("<b>a", 1), ("b", 3)] {
            for n in [1, 2, 4] {
                for seed in [1, 2] {
                    let mut one = run(Sim, scheduler, n, 1);
                    one.seed = seed;
                    one.measures.totals.nr_switches = factor * n * 10 + seed;
                    runs.push(one);
                }
            }
        }
        let mut result = experiment("x", runs);
        result.experiment.view = Some(View {
            by: by.iter().map(|name| (*name).into()).collect(),
            measures: vec!["nr_switches".into(), "makespan_ns".into()],
            ..View::default()
        });
        result
    }

    #[test]
    fn a_swept_number_gives_lines_with_intervals() {
        let results = [result(&["scheduler", "n"])];
        let groups = group_all(&results);
        let pictures = sweep_pictures(&groups[0]);
        assert_eq!(pictures.len(), 1, "no run has a makespan");
        assert_eq!(pictures[0].x_label.as_deref(), Some("number of tasks"));
        assert_eq!(pictures[0].y_label, "context switches");
        let b = &pictures[0].lines[1];
        assert_eq!(b.label, "b");
        let means: Vec<(f64, f64)> = b.points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(means, [(1.0, 31.5), (2.0, 61.5), (4.0, 121.5)]);
        // Deviation of 31 and 32: sqrt(1/2); t(1) = 12.7062; half the interval 6.3531.
        let half = b.points[0].ci95.unwrap()[1] - b.points[0].y;
        assert!((half - 6.353_1).abs() < 1e-3);
        let (figure, data) = sweep_figures(&groups[0]).remove(0);
        let html = figure.render(1, &data).unwrap();
        assert!(html.contains("&lt;b&gt;a") && !html.contains("<b>a"));
        assert!(unfolded(&html).contains("<svg") && html.contains("error bars are 95 %"));
        assert!(html.contains("Measure: nr_switches."), "{html}");
        assert_eq!(data.table.rows.len(), 6);
    }

    #[test]
    fn a_configuration_that_lacks_a_measure_leaves_its_colour_free() {
        let mut results = [result(&["scheduler", "n"])];
        for run in results[0].runs.iter_mut().filter(|run| run.scheduler == "b") {
            run.measures.totals.makespan_ns = Some(5_000_000);
        }
        let pictures = sweep_pictures(&group_all(&results)[0]);
        let colours = |picture: usize| -> Vec<(&str, usize)> {
            let lines = pictures[picture].lines.iter();
            lines.map(|line| (line.label.as_str(), line.style.colour)).collect()
        };
        assert_eq!(colours(0), [("<b>a", 0), ("b", 1)]);
        assert_eq!(colours(1), [("b", 1)], "only these runs have a makespan");
    }

    /// Counts have whole ticks: below 1, 2 and 4 tasks the axis has only whole numbers.
    #[test]
    fn whole_numbers_have_whole_ticks() {
        let results = [result(&["scheduler", "n"])];
        let pictures = sweep_pictures(&group_all(&results)[0]);
        for width in [760.0, 340.0] {
            let svg = sweep_chart(&pictures[0], "").page(width, None);
            let texts: Vec<&str> = svg
                .split("<text")
                .skip(1)
                .filter_map(|text| text.split_once('>')?.1.split_once('<'))
                .map(|(text, _)| text.trim())
                .collect();
            let numbers = texts.iter().filter_map(|text| text.parse::<f64>().ok());
            let fractions: Vec<f64> = numbers.filter(|number| number.fract() != 0.0).collect();
            assert!(fractions.is_empty(), "{width}: {texts:?}");
            assert!(["1", "2", "3", "4"].iter().all(|tick| texts.contains(tick)), "{texts:?}");
        }
    }

    #[test]
    fn one_seed_announces_no_interval() {
        let mut results = [result(&["scheduler", "n"])];
        results[0].runs.retain(|run| run.seed == 1);
        let groups = group_all(&results);
        let (figure, _) = sweep_figures(&groups[0]).remove(0);
        assert!(figure.caption.starts_with("One seed for each value"), "{}", figure.caption);
        assert!(!figure.caption.contains("error bars"), "{}", figure.caption);
    }

    #[test]
    fn values_over_more_than_two_decades_get_a_logarithmic_axis() {
        let is_log = |axis: &Axis| matches!(axis, Axis::Numbers { ticks: Ticks::Decades, .. });
        let axes = |factor: u64, by: &[&str]| {
            let mut results = [result(by)];
            for run in results[0].runs.iter_mut().filter(|run| run.scheduler == "b") {
                run.measures.totals.nr_switches *= factor;
            }
            let chart = sweep_chart(&sweep_pictures(&group_all(&results)[0])[0], "");
            let panel = chart.panels.into_iter().next().unwrap();
            (is_log(&panel.value), panel.series[0].form)
        };
        assert!(!axes(1, &["scheduler", "n"]).0);
        assert!(axes(100, &["scheduler", "n"]).0);
        assert_eq!(axes(1000, &["scheduler"]), (true, Form::Dots { r: 5.0 }));
        let lines = |last: f64| SweepPicture {
            key: "k".into(),
            measure: "m".into(),
            y_label: "y".into(),
            x_label: Some("x".into()),
            lines: vec![SweepLine {
                label: "l".into(),
                style: Style::default(),
                points: vec![DrawnPoint::plain(1.0, 1.0), DrawnPoint::plain(last, 2.0)],
            }],
            scale: 1.0,
        };
        assert!(is_log(&swept_axis(&lines(200.0), "x")) && !is_log(&swept_axis(&lines(90.0), "x")));
    }

    #[test]
    fn categories_give_bars() {
        let results = [result(&["scheduler"])];
        let groups = group_all(&results);
        let pictures = sweep_pictures(&groups[0]);
        assert_eq!((pictures[0].x_label.as_deref(), pictures[0].lines.len()), (None, 2));
        assert!(sweep_figures(&groups[0])[0].0.picture.contains("<svg"));
    }

    #[test]
    fn an_experiment_without_a_table_has_no_such_figure() {
        let results = [experiment("x", vec![run(Sim, "a", 1, 1)])];
        assert!(sweep_figures(&group_all(&results)[0]).is_empty());
    }
}
