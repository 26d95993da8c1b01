// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of the analysis of runs: the depth of the run queues, the CPU time of tasks over time,
//! and the time in each state. The page has one of each for every run. A file has one of each for
//! an experiment, with a panel for each run.

use super::{RUNS_MAX, analysed_runs};
use crate::draw::{Axis, Chart, Form, Panel, Series, Ticks, nice_end};
use crate::group::Group;
use crate::number::unit_for;
use crate::style::{COLOURS, Style};
use schedlab_lab::redrawn::DrawnPoint;
use schedlab_metrics::Analysis;
use schedlab_metrics::analysis::{Curve, TaskAnalysis};
use schedlab_run::RunResult;

/// Maximum number of lines or groups in a picture, one for each colour. The tasks with the most CPU
/// time get them.
const TASKS_MAX: usize = COLOURS.len();
/// Width of a panel in a file.
const WIDTH: f64 = 520.0;

/// A function that draws one part of a run's analysis; `None` if the run lacks that part.
type DrawPart = fn(&RunResult, &Analysis) -> Option<Panel>;

/// The pictures of an experiment as files, with their names. Empty if no run was analysed.
pub fn analysis_files(group: &Group<'_>) -> Vec<(String, String)> {
    let parts: [(&str, DrawPart); 3] =
        [("depth", depth_panel), ("progress", progress_panel), ("states", states_panel)];
    let file = |(name, part): (&str, DrawPart)| {
        let runs = analysed_runs(group).into_iter().take(RUNS_MAX);
        let panels: Vec<Panel> = runs
            .filter_map(|(title, run, analysis)| Some(Panel { title, ..part(run, analysis)? }))
            .collect();
        let chart = Chart { title: group.title().into(), columns: 2, panels };
        let name = format!("{}-analysis-{name}", group.id);
        (!chart.panels.is_empty()).then(|| (name, chart.file(WIDTH)))
    };
    parts.into_iter().filter_map(file).collect()
}

/// One panel for the page, with its legend and a text alternative.
pub fn panel_html(panel: Panel, label: &str) -> String {
    let chart = Chart { title: String::new(), columns: 1, panels: vec![panel] };
    format!(
        "{}<div role=\"img\" aria-label=\"{}\">{}</div>\n",
        chart.legend(),
        crate::html::escape(label),
        chart.page(720.0, Some(340.0))
    )
}

/// The picture of a curve for a table cell.
pub fn small_html(curve: &Curve, end_ns: u64, label: &str) -> String {
    let panel = Panel { height: 24.0, is_bare: true, ..curve_panel(curve, end_ns) };
    let chart = Chart { title: String::new(), columns: 1, panels: vec![panel] };
    let label = crate::html::escape(label);
    format!("<div role=\"img\" aria-label=\"{label}\">{}</div>", chart.page(220.0, None))
}

/// Runnable tasks over time: the mean as a line, the maximum as an area behind it.
pub fn depth_panel(run: &RunResult, analysis: &Analysis) -> Option<Panel> {
    let curve = analysis.depth.curve.as_ref()?;
    Some(curve_panel(curve, run.measures.totals.end_ns))
}

fn curve_panel(curve: &Curve, end_ns: u64) -> Panel {
    let most = curve.max.iter().copied().max().unwrap_or(0) as f64;
    let (along, ns) = time_axis(end_ns);
    let steps = |values: &mut dyn Iterator<Item = f64>| -> Vec<DrawnPoint> {
        let edge = |bin: u64| (bin * curve.bin_ns).min(end_ns) as f64 / ns;
        let step = |(bin, value): (u64, f64)| {
            [DrawnPoint::plain(edge(bin), value), DrawnPoint::plain(edge(bin + 1), value)]
        };
        (0..).zip(values).flat_map(step).collect()
    };
    let series = |name: &str, colour: usize, form, points| Series {
        name: name.into(),
        style: Some(Style::numbered(colour)),
        form,
        points,
        ..Series::default()
    };
    let max = steps(&mut curve.max.iter().map(|value| *value as f64));
    let mean = steps(&mut curve.mean.iter().copied());
    Panel {
        height: 140.0,
        along,
        value: Axis::Numbers {
            label: "runnable tasks".into(),
            low: 0.0,
            high: nice_end(most.max(1.0)),
            ticks: Ticks::Whole,
        },
        series: vec![
            series("most", 4, Form::Area, max),
            series("mean", 0, Form::Line { r: 0.0, dash: "" }, mean),
        ],
        ..Panel::default()
    }
}

/// The axis of elapsed time, and the number of nanoseconds in its unit.
fn time_axis(end_ns: u64) -> (Axis, f64) {
    let unit = unit_for(end_ns as f64 / 2.0);
    let end = end_ns.max(1) as f64 / unit.ns as f64;
    (Axis::numbers(&format!("elapsed time ({})", unit.symbol), 0.0, end), unit.ns as f64)
}

/// CPU time over time of the tasks with the most CPU time; `None` if no task ran.
pub fn progress_panel(run: &RunResult, analysis: &Analysis) -> Option<Panel> {
    let end_ns = run.measures.totals.end_ns;
    let got = |task: &TaskAnalysis| task.progress.as_ref()?.cpu_time_ns.last().copied();
    let mut tasks: Vec<(&TaskAnalysis, u64)> =
        analysis.tasks.iter().filter_map(|task| Some((task, got(task)?))).collect();
    tasks.sort_by_key(|(task, got)| (std::cmp::Reverse(*got), task.id));
    tasks.truncate(TASKS_MAX);
    let most = tasks.first().map(|(_, got)| *got).filter(|got| *got > 0)?;
    let (along, ns) = time_axis(end_ns);
    let unit = unit_for(most as f64);
    let point = |at: u64, got: u64| DrawnPoint::plain(at as f64 / ns, got as f64 / unit.ns as f64);
    let series = |(index, (task, got)): (usize, &(&TaskAnalysis, u64))| {
        let found = task.progress.as_ref()?;
        let times = (0..).map(|bin: u64| bin.saturating_mul(found.bin_ns).min(end_ns));
        let values = std::iter::once(0).chain(found.cpu_time_ns.iter().copied());
        let points = times.zip(values).chain([(end_ns, *got)]);
        Some(Series {
            name: task.name.clone(),
            style: Some(Style::numbered(index)),
            form: Form::Track,
            points: points.map(|(at, got)| point(at, got)).collect(),
            ..Series::default()
        })
    };
    Some(Panel {
        height: 140.0,
        along,
        value: Axis::numbers(
            &format!("CPU time ({})", unit.symbol),
            0.0,
            nice_end(most as f64 / unit.ns as f64),
        ),
        series: tasks.iter().enumerate().filter_map(series).collect(),
        ..Panel::default()
    })
}

/// Each task's shares of time by state, as groups of bars.
fn states_panel(_: &RunResult, analysis: &Analysis) -> Option<Panel> {
    let tasks = || analysis.tasks.iter().take(TASKS_MAX);
    let mut states: Vec<&str> = Vec::new();
    for state in tasks().flat_map(|task| &task.states) {
        if !states.contains(&state.state.as_str()) {
            states.push(&state.state);
        }
    }
    // Add up the waits for all objects as one state.
    let share = |task: &TaskAnalysis, name: &str| -> f64 {
        task.states.iter().filter(|state| state.state == name).map(|state| state.share).sum()
    };
    let series = |(part, name): (usize, &&str)| Series {
        name: (*name).into(),
        style: Some(Style::numbered(part)),
        form: Form::Bars { part, parts: states.len() },
        points: (0..)
            .map(f64::from)
            .zip(tasks())
            .map(|(slot, task)| DrawnPoint::plain(slot, share(task, name) * 100.0))
            .collect(),
        ..Series::default()
    };
    (!states.is_empty()).then(|| Panel {
        height: 190.0,
        along: Axis::Names(tasks().map(|task| task.name.clone()).collect()),
        value: Axis::numbers("part of the life (%)", 0.0, 100.0),
        series: states.iter().enumerate().map(series).collect(),
        ..Panel::default()
    })
}
