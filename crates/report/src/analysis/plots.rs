// SPDX-License-Identifier: MIT OR Apache-2.0
//! The analysis of runs as pictures for files: how deep the run queues were, what tasks did with
//! their lives, how much CPU time they had got by when. One picture an experiment, a panel a run.

use super::{RUNS_MAX, analysed_runs};
use crate::group::Group;
use crate::plot::{Ink, panels_scene};
use kuva::render::render::Scene;
use schedlab_lab::redrawn::{Drawn, DrawnKind, DrawnPanel, DrawnPoint, DrawnSeries};
use schedlab_metrics::Analysis;
use schedlab_metrics::analysis::TaskAnalysis;

/// Tasks that are drawn of a run; more cannot be told apart.
const TASKS_MAX: usize = 8;
const WIDTH: f64 = 1040.0;
const MS: f64 = 1e6;

/// The pictures of an experiment with their names; none without an analysed run.
pub fn analysis_scenes(group: &Group<'_>) -> Vec<(String, Scene)> {
    let pictures = [
        ("depth", "runnable tasks", depth as fn(&Analysis) -> Vec<DrawnSeries>),
        ("progress", "CPU time (ms)", progress),
    ];
    let mut all: Vec<Drawn> = Vec::new();
    for (name, y_label, series) in pictures {
        all.push(drawn(group, name, ("elapsed time (ms)", y_label), DrawnKind::Lines, series));
    }
    all.push(states(group));
    let has_panels = |drawn: &Drawn| !drawn.panels.is_empty();
    all.iter()
        .filter(|drawn| has_panels(drawn))
        .map(|drawn| (drawn.id.clone(), panels_scene(drawn, WIDTH, Ink::File)))
        .collect()
}

/// A figure with a panel for each analysed run that has such series.
fn drawn(
    group: &Group<'_>,
    name: &str,
    (x_label, y_label): (&str, &str),
    kind: DrawnKind,
    series: impl Fn(&Analysis) -> Vec<DrawnSeries>,
) -> Drawn {
    let runs = analysed_runs(group).into_iter().take(RUNS_MAX);
    let panels = runs.filter_map(|(title, _, analysis)| {
        let series = series(analysis);
        (!series.is_empty()).then_some(DrawnPanel { kind, title, is_original: false, series })
    });
    Drawn {
        id: format!("{}-analysis-{name}", group.id),
        title: group.title().into(),
        text: String::new(),
        claims: Vec::new(),
        source: None,
        columns: 2,
        x_label: x_label.into(),
        y_label: y_label.into(),
        log: false,
        y_range: [Some(0.0), None],
        groups: Vec::new(),
        panels: panels.collect(),
        missing: Vec::new(),
    }
}

/// Values of bins of `bin_ns`, each at its end.
fn curve(label: &str, bin_ns: u64, values: impl Iterator<Item = f64>) -> DrawnSeries {
    let point =
        |(index, y): (usize, f64)| DrawnPoint::plain((index + 1) as f64 * bin_ns as f64 / MS, y);
    DrawnSeries { label: label.into(), points: values.enumerate().map(point).collect() }
}

fn depth(analysis: &Analysis) -> Vec<DrawnSeries> {
    let Some(found) = &analysis.depth.curve else { return Vec::new() };
    vec![
        curve("most", found.bin_ns, found.max.iter().map(|most| *most as f64)),
        curve("mean", found.bin_ns, found.mean.iter().copied()),
    ]
}

/// CPU time that each task had got by when.
fn progress(analysis: &Analysis) -> Vec<DrawnSeries> {
    let of = |task: &TaskAnalysis| {
        let found = task.progress.as_ref()?;
        let sums = found.cpu_time_ns.iter().scan(0.0, |sum, ns| {
            *sum += *ns as f64 / MS;
            Some(*sum)
        });
        Some(curve(&task.name, found.bin_ns, sums))
    };
    analysis.tasks.iter().filter_map(of).take(TASKS_MAX).collect()
}

/// Shares of each task's life by state: groups of bars.
fn states(group: &Group<'_>) -> Drawn {
    let mut names: Vec<String> = Vec::new();
    for (_, _, analysis) in analysed_runs(group).into_iter().take(RUNS_MAX) {
        for task in analysis.tasks.iter().take(TASKS_MAX) {
            if !names.contains(&task.name) {
                names.push(task.name.clone());
            }
        }
    }
    let known = names.clone();
    let series = move |analysis: &Analysis| {
        let mut all: Vec<DrawnSeries> = Vec::new();
        for task in &analysis.tasks {
            let Some(at) = known.iter().position(|name| *name == task.name) else { continue };
            for state in &task.states {
                let series = all.iter().position(|one| one.label == state.state);
                let series = series.unwrap_or_else(|| {
                    all.push(DrawnSeries { label: state.state.clone(), points: Vec::new() });
                    all.len() - 1
                });
                let points = &mut all[series].points;
                let x = at as f64;
                match points.iter_mut().find(|point| point.x == x) {
                    // Waits on several objects are one state here.
                    Some(point) => point.y += state.share * 100.0,
                    None => points.push(DrawnPoint::plain(x, state.share * 100.0)),
                }
            }
        }
        all
    };
    let drawn = drawn(group, "states", ("", "part of the life (%)"), DrawnKind::Bars, series);
    Drawn { groups: names, y_range: [Some(0.0), Some(100.0)], ..drawn }
}
