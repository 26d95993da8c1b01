// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fills the figures and tables of a study from runs.
//!
//! A panel, bar or cell without a run is left out and named. Numbers are means with the interval of
//! a claim ([`crate::claims::Scope`]).

use super::{FIVE, Form, GroupSpec, QUARTILE, SeriesSpec, StudyFigure, StudyTable};
use crate::ExperimentResult;
use crate::axis::Scalar;
use crate::claims::{Expr, Found, Place, Scope, matches_template};
use schedlab_run::{LaneKind, RunResult, values};
use std::collections::{BTreeMap, BTreeSet};

/// The content of a panel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DrawnKind {
    /// Dots: number of the process against time.
    Who,
    /// Dots: progress against time.
    Progress,
    /// Dots with intervals.
    Points,
    /// Lines with marks.
    Lines,
    /// Groups of bars.
    Bars,
    /// Groups of box plots.
    Boxes,
}

/// A number in a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DrawnPoint {
    /// Position on the horizontal axis; for bars and boxes, the number of the group from 0.
    pub x: f64,
    /// The value; for boxes, the median.
    pub y: f64,
    /// Ends of the 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// For boxes: least value, first and third quartile, greatest value.
    pub spread: Option<[f64; 4]>,
}

impl DrawnPoint {
    /// A point without an interval.
    pub const fn plain(x: f64, y: f64) -> Self {
        Self { x, y, ci95: None, spread: None }
    }

    /// The greatest value drawn for it.
    pub fn top(&self) -> f64 {
        let ends = self.ci95.map_or(self.y, |ends| ends[1].max(self.y));
        self.spread.map_or(ends, |spread| spread[3].max(ends))
    }
}

/// The points that form one line or set of bars.
#[derive(Clone, PartialEq, Debug)]
pub struct DrawnSeries {
    /// Name in the legend.
    pub label: String,
    /// Its numbers.
    pub points: Vec<DrawnPoint>,
}

/// One picture of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct DrawnPanel {
    /// Its content.
    pub kind: DrawnKind,
    /// `the study`, `linux-6.1, simulated`.
    pub title: String,
    /// Whether it shows the original's values.
    pub is_original: bool,
    /// Its series.
    pub series: Vec<DrawnSeries>,
}

/// A figure with its numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawn {
    /// Short name.
    pub id: String,
    /// Title.
    pub title: String,
    /// Description.
    pub text: String,
    /// Claims based on it.
    pub claims: Vec<String>,
    /// Source of the original's values.
    pub source: Option<String>,
    /// Maximum number of panels in a row; 0: automatic.
    pub columns: u32,
    /// Label of the horizontal axis.
    pub x_label: String,
    /// Label of the vertical axis.
    pub y_label: String,
    /// Whether the vertical axis is logarithmic.
    pub log: bool,
    /// Fixed ends of the vertical axis, if any.
    pub y_range: [Option<f64>; 2],
    /// Names of the groups of bars.
    pub groups: Vec<String>,
    /// Panels, row by row.
    pub panels: Vec<DrawnPanel>,
    /// What could not be drawn, and why.
    pub missing: Vec<String>,
}

/// A row of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct DrawnRow {
    /// Label of the group.
    pub label: String,
    /// The place, for people.
    pub place: String,
    /// A number, or none, for each column.
    pub cells: Vec<Option<Found>>,
    /// For each reference, a value for each of its columns; `None` if it has no such row.
    pub references: Vec<Option<Vec<f64>>>,
    /// Every run: wall, user, system (s), CPU use (%), involuntary and voluntary switches.
    pub raw: Vec<String>,
}

/// A table with its numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct DrawnTable {
    /// Short name.
    pub id: String,
    /// Title.
    pub title: String,
    /// Description.
    pub text: String,
    /// Claims based on it.
    pub claims: Vec<String>,
    /// Headings of the columns with our numbers.
    pub columns: Vec<String>,
    /// Source and headings of each reference.
    pub references: Vec<(String, Vec<String>)>,
    /// The rows.
    pub rows: Vec<DrawnRow>,
    /// Whether to list every repetition.
    pub has_raw: bool,
}

/// Runs of one study's experiments that match the `named` templates.
fn runs_of<'r>(
    study: &str,
    named: &[String],
    results: &'r [ExperimentResult],
) -> Vec<&'r RunResult> {
    let is_about = |result: &&ExperimentResult| {
        result.experiment.study == study
            && named.iter().any(|name| matches_template(name, &result.experiment.name))
    };
    results.iter().filter(is_about).flat_map(|result| &result.runs).collect()
}

/// Whether a run has these values; `all` is the number of CPUs.
fn fits(run: &RunResult, which: &BTreeMap<String, Scalar>, nr_cpus: u32) -> bool {
    which.iter().all(|(name, value)| {
        let own = values::dimension(run, name);
        let text = value.to_string();
        let wanted =
            crate::axis::last_value(&text, nr_cpus).map_or(text, |number| number.to_string());
        own == wanted
            || values::axis_value(&own).is_some_and(|v| Some(v) == values::axis_value(&wanted))
    })
}

fn at_place<'r>(runs: &[&'r RunResult], place: &Place) -> Vec<&'r RunResult> {
    runs.iter().copied().filter(|run| place.has(run)).collect()
}

/// `linux-6.1, simulated`.
fn place_words(place: &Place) -> String {
    let lane = match place.lane {
        LaneKind::Sim => "simulated",
        LaneKind::Host => "this machine",
        LaneKind::Vm => "real kernel in a VM",
    };
    place.scheduler.as_ref().map_or_else(|| lane.into(), |name| format!("{name}, {lane}"))
}

/// The number of some runs, if it has a value.
fn number(runs: &[&RunResult], value: &str, nr_cpus: u32) -> Option<Found> {
    number_at(runs, value, nr_cpus, &BTreeMap::new())
}

/// The number at these values of dimensions. A measure's own selectors override them, for
/// comparisons.
fn number_at(
    runs: &[&RunResult],
    value: &str,
    nr_cpus: u32,
    at: &BTreeMap<String, String>,
) -> Option<Found> {
    let expr = Expr::parse(value).ok()?;
    Scope { runs: runs.to_vec(), nr_cpus }.evaluate_at(&expr, at).ok()
}

fn point(x: f64, found: Found) -> DrawnPoint {
    DrawnPoint { ci95: found.ci95, ..DrawnPoint::plain(x, found.value) }
}

/// Fills a figure of `study`.
pub fn figure(
    study: &str,
    spec: &StudyFigure,
    results: &[ExperimentResult],
    nr_cpus: u32,
) -> Drawn {
    let mut drawn = Drawn {
        id: spec.id.clone(),
        title: spec.title.trim().into(),
        text: spec.text.trim().into(),
        claims: spec.claims.clone(),
        source: spec.published.as_ref().map(|published| published.source.clone()),
        columns: spec.columns,
        x_label: spec.x_label.clone(),
        y_label: spec.y_label.clone(),
        log: spec.log,
        y_range: [spec.y_min, spec.y_max],
        groups: spec.groups.iter().map(|group| group.label.clone()).collect(),
        panels: originals(spec),
        missing: Vec::new(),
    };
    let all = runs_of(study, &spec.experiment.values(), results);
    let all: Vec<&RunResult> =
        all.into_iter().filter(|run| fits(run, &spec.which, nr_cpus)).collect();
    for place in spec.on.iter().filter_map(|text| Place::parse(text)) {
        let runs = at_place(&all, &place);
        let title = place_words(&place);
        let before = drawn.panels.len();
        match spec.form {
            Form::Records => drawn.panels.extend(records(&runs, &title)),
            Form::Points | Form::Lines => {
                drawn.panels.extend(points(spec, &runs, &title, nr_cpus));
            }
            Form::Bars | Form::Boxes => drawn.panels.extend(bars(spec, &runs, &title, nr_cpus)),
        }
        if drawn.panels.len() == before {
            drawn.missing.push(title);
        }
    }
    if spec.form == Form::Records {
        // Put the panels of processes in one row and those of progress below.
        drawn.panels.sort_by_key(|panel| panel.kind == DrawnKind::Progress);
        drawn.columns = (drawn.panels.len() / 2) as u32;
    }
    drawn
}

/// The panels of the original's values.
fn originals(spec: &StudyFigure) -> Vec<DrawnPanel> {
    let Some(published) = &spec.published else { return Vec::new() };
    let title = || published.panel_title().to_string();
    let panel = |kind, series| DrawnPanel { kind, title: title(), is_original: true, series };
    let points = |series: (&str, &str)| -> Vec<DrawnPoint> {
        match spec.form {
            Form::Bars | Form::Boxes => (0..)
                .zip(&spec.groups)
                .filter_map(|(index, group)| {
                    grouped(index, published.labelled(&[series, ("group", &group.label)])?)
                })
                .collect(),
            _ => {
                let values = published.labelled(&[series]).unwrap_or_default();
                let places = published.places().unwrap_or_default();
                places.iter().zip(values).map(|(x, y)| DrawnPoint::plain(*x, *y)).collect()
            }
        }
    };
    if spec.form == Form::Records {
        let times: Vec<&[f64]> = published.rows.iter().map(|row| row.values.as_slice()).collect();
        let [who, progress] = record_series(&times);
        return vec![panel(DrawnKind::Who, who), panel(DrawnKind::Progress, progress)];
    }
    let series = spec.series.iter().map(|one| DrawnSeries {
        label: one.label.clone(),
        points: points(("series", &one.label)),
    });
    vec![panel(kind_of(spec.form), series.collect())]
}

/// The content of a form's panels; records have two kinds of their own.
const fn kind_of(form: Form) -> DrawnKind {
    match form {
        Form::Records => DrawnKind::Who,
        Form::Points => DrawnKind::Points,
        Form::Lines => DrawnKind::Lines,
        Form::Bars => DrawnKind::Bars,
        Form::Boxes => DrawnKind::Boxes,
    }
}

/// A bar for one number, or a box for five.
fn grouped(index: usize, numbers: &[f64]) -> Option<DrawnPoint> {
    let x = index as f64;
    match *numbers {
        [y] => Some(DrawnPoint::plain(x, y)),
        [min, q1, median, q3, max] => {
            Some(DrawnPoint { spread: Some([min, q1, q3, max]), ..DrawnPoint::plain(x, median) })
        }
        _ => None,
    }
}

/// Series from milliseconds by process: the time of each record, and the progress in percent.
fn record_series<T: AsRef<[f64]>>(records: &[T]) -> [Vec<DrawnSeries>; 2] {
    let most = records.iter().map(|times| times.as_ref().len()).max().unwrap_or(1).max(1) as f64;
    let series = |y: &dyn Fn(usize, usize) -> f64| -> Vec<DrawnSeries> {
        let one = |(number, times): (usize, &T)| DrawnSeries {
            label: format!("process {number}"),
            points: times
                .as_ref()
                .iter()
                .enumerate()
                .map(|(index, ms)| DrawnPoint::plain(*ms, y(number, index)))
                .collect(),
        };
        records.iter().enumerate().map(one).collect()
    };
    [series(&|number, _| number as f64), series(&|_, index| (index + 1) as f64 * 100.0 / most)]
}

/// The two panels of the first run that kept its progress.
fn records(runs: &[&RunResult], title: &str) -> Vec<DrawnPanel> {
    let Some(run) = runs.iter().find(|run| !run.progress.is_empty()) else { return Vec::new() };
    let Some(times) = super::raw::record_times_ms(run) else { return Vec::new() };
    let kinds = [DrawnKind::Who, DrawnKind::Progress];
    let panel =
        |(kind, series)| DrawnPanel { kind, title: title.into(), is_original: false, series };
    kinds.into_iter().zip(record_series(&times)).map(panel).collect()
}

fn points(
    spec: &StudyFigure,
    runs: &[&RunResult],
    title: &str,
    nr_cpus: u32,
) -> Option<DrawnPanel> {
    let xs: BTreeSet<String> = runs.iter().map(|run| values::dimension(run, &spec.x)).collect();
    let mut series = Vec::new();
    for one in &spec.series {
        let mut found = Vec::new();
        for text in &xs {
            let at = BTreeMap::from([(spec.x.clone(), text.clone())]);
            let x = values::axis_value(text).map(|value| value.number);
            let y = number_at(runs, &one.value, nr_cpus, &at);
            found.extend(x.zip(y).map(|(x, y)| point(x, y)));
        }
        found.sort_by(|a, b| a.x.total_cmp(&b.x));
        series.push(DrawnSeries { label: one.label.clone(), points: found });
    }
    series.iter().any(|one| !one.points.is_empty()).then(|| DrawnPanel {
        kind: kind_of(spec.form),
        title: title.into(),
        is_original: false,
        series,
    })
}

fn bars(spec: &StudyFigure, runs: &[&RunResult], title: &str, nr_cpus: u32) -> Option<DrawnPanel> {
    let bar = |series: &SeriesSpec, (index, group): (usize, &GroupSpec)| {
        let of: Vec<&RunResult> =
            runs.iter().filter(|run| fits(run, &group.which, nr_cpus)).copied().collect();
        if spec.form == Form::Boxes {
            let value = |q: &&str| number(&of, &series.value.replace(QUARTILE, q), nr_cpus);
            let five: Option<Vec<Found>> = FIVE.iter().map(value).collect();
            let five: Vec<f64> = five?.iter().map(|found| found.value).collect();
            return grouped(index, &five);
        }
        number(&of, &series.value, nr_cpus).map(|found| point(index as f64, found))
    };
    let one = |series: &SeriesSpec| DrawnSeries {
        label: series.label.clone(),
        points: spec.groups.iter().enumerate().filter_map(|group| bar(series, group)).collect(),
    };
    let series: Vec<DrawnSeries> = spec.series.iter().map(one).collect();
    series.iter().any(|one| !one.points.is_empty()).then(|| DrawnPanel {
        kind: kind_of(spec.form),
        title: title.into(),
        is_original: false,
        series,
    })
}

/// Whether a dimension distinguishes the lines of a panel. Any other dimension makes separate
/// panels.
fn is_line_name(name: &str) -> bool {
    name == "scheduler" || name.starts_with("set.") || name == "policy"
}

/// The figure of an experiment's published values next to ours; `None` if it has none, or no run.
pub fn published(result: &ExperimentResult) -> Option<Drawn> {
    let view = result.experiment.view.as_ref()?;
    let published = view.published.as_ref()?;
    let compared = crate::published::Comparison::of(result)?;
    compared.pairs().next()?;
    let xs: Vec<f64> = compared
        .at
        .iter()
        .map(|text| values::axis_value(text).map(|value| value.number))
        .collect::<Option<_>>()?;
    let mut panels: Vec<DrawnPanel> = Vec::new();
    let texts = |names: &dyn Fn(&str) -> bool, which: &BTreeMap<String, Scalar>| {
        let parts = which.iter().filter(|(name, _)| names(name)).map(|(_, v)| v.to_string());
        parts.collect::<Vec<_>>().join(", ")
    };
    for (spec, row) in published.rows.iter().zip(&compared.rows) {
        let group = texts(&|name| !is_line_name(name), &spec.which);
        let label = texts(&is_line_name, &spec.which);
        for is_original in [true, false] {
            let source = if is_original { published.panel_title() } else { "here" };
            let title = if group.is_empty() { source.into() } else { format!("{group}, {source}") };
            let at = panels.iter().position(|panel| panel.title == title).unwrap_or_else(|| {
                let kind = DrawnKind::Lines;
                panels.push(DrawnPanel { kind, title, is_original, series: Vec::new() });
                panels.len() - 1
            });
            let number = |(index, x): (usize, &f64)| {
                let here = row.pairs[index].map(|pair| pair.simulated);
                let y = if is_original { Some(spec.values[index]) } else { here };
                y.map(|y| DrawnPoint::plain(*x, y))
            };
            let points = xs.iter().enumerate().filter_map(number).collect();
            panels[at].series.push(DrawnSeries { label: label.clone(), points });
        }
    }
    let unit = match (values::is_time(&published.measure), published.unit) {
        (true, 1_000_000_000) => " (s)".into(),
        (true, 1_000_000) => " (ms)".into(),
        (true, 1_000) => " (\u{b5}s)".into(),
        (true, 1) => " (ns)".into(),
        (_, 1) => String::new(),
        (_, unit) => format!(" (in {unit})"),
    };
    let name = published.measure.replace("_ns", "").replace('_', " ");
    Some(Drawn {
        id: result.experiment.name.clone(),
        title: result.experiment.title.clone(),
        text: String::new(),
        claims: Vec::new(),
        source: Some(published.source.clone()),
        columns: 2,
        x_label: published.along.clone(),
        y_label: format!("{name}{unit}"),
        log: false,
        y_range: [Some(0.0), None],
        groups: Vec::new(),
        panels,
        missing: Vec::new(),
    })
}

/// Fills a table of `study`.
pub fn table(
    study: &str,
    spec: &StudyTable,
    results: &[ExperimentResult],
    nr_cpus: u32,
) -> DrawnTable {
    let named = spec.experiment.as_ref().map(|named| named.values()).unwrap_or_default();
    let all = runs_of(study, &named, results);
    let places: Vec<Place> = spec.on.iter().filter_map(|text| Place::parse(text)).collect();
    let mut rows = Vec::new();
    for group in &spec.rows {
        for place in &places {
            let runs = at_place(&all, place);
            // A lane that the user excluded has no rows; a condition that is missing has.
            if runs.is_empty() {
                continue;
            }
            let of = runs.iter().filter(|run| fits(run, &group.which, nr_cpus));
            let runs: Vec<&RunResult> = of.copied().collect();
            rows.push(row(spec, group, place, &runs, nr_cpus));
        }
    }
    let is_empty = |row: &DrawnRow| row.cells.iter().all(Option::is_none);
    if spec.experiment.is_none() {
        rows = only_references(spec);
    } else if rows.iter().all(is_empty) {
        rows.clear();
    }
    DrawnTable {
        id: spec.id.clone(),
        title: spec.title.trim().into(),
        text: spec.text.trim().into(),
        claims: spec.claims.clone(),
        columns: spec.columns.iter().map(|column| column.label.clone()).collect(),
        references: spec.reference.iter().map(|r| (r.source.clone(), r.columns.clone())).collect(),
        rows,
        has_raw: spec.raw,
    }
}

/// Rows of a table without runs: those of each reference, in its order.
fn only_references(spec: &StudyTable) -> Vec<DrawnRow> {
    let row = |number: usize, row: &super::ReferenceRow| {
        let mut references = vec![None; spec.reference.len()];
        references[number] = Some(row.values.clone());
        DrawnRow {
            label: row.row.clone(),
            place: row.on.clone(),
            cells: Vec::new(),
            references,
            raw: Vec::new(),
        }
    };
    let all = spec.reference.iter().enumerate();
    all.flat_map(|(number, reference)| reference.rows.iter().map(move |r| row(number, r))).collect()
}

fn references(spec: &StudyTable, label: &str, on: &str) -> Vec<Option<Vec<f64>>> {
    let of = |reference: &super::Reference| {
        let is_beside =
            |row: &&super::ReferenceRow| row.row == label && (row.on.is_empty() || row.on == on);
        let row = reference.rows.iter().find(is_beside);
        row.map(|row| row.values.clone())
    };
    spec.reference.iter().map(of).collect()
}

fn row(
    spec: &StudyTable,
    group: &GroupSpec,
    place: &Place,
    runs: &[&RunResult],
    nr_cpus: u32,
) -> DrawnRow {
    let policy = place.scheduler.as_deref().unwrap_or_default();
    let policy = policy.rsplit(':').next().unwrap_or_default();
    let raw = if spec.raw {
        runs.iter().copied().map(super::raw::time_line).collect()
    } else {
        Vec::new()
    };
    DrawnRow {
        label: group.label.clone(),
        place: place.scheduler.clone().unwrap_or_else(|| place.lane.to_string()),
        cells: spec.columns.iter().map(|c| number(runs, &c.value, nr_cpus)).collect(),
        references: references(spec, &group.label, policy),
        raw: raw.into_iter().flatten().collect(),
    }
}
