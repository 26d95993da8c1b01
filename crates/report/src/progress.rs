// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress curves (study S0's second figure): how much of its work each task had done at each
//! moment. Each run has a small panel, all with the same axes, and a model is next to the policy
//! that it models.

use crate::draw::{Axis, Chart, Form, Panel as Plot, Series};
use crate::embed::Packer;
use crate::figure::Figure;
use crate::group::Group;
use crate::number::{count, duration, plural, unit_for};
use crate::order::{limit_panels, panel_order};
use crate::style::{COLOURS, Style};
use crate::timeline::{origin_ns, panel_title};
use schedlab_lab::redrawn::DrawnPoint;
use schedlab_run::{ProgressCurve, RunResult};
use serde::Serialize;

/// Data of one figure.
#[derive(Debug, Serialize)]
pub struct ProgressData {
    /// One run each.
    pub panels: Vec<Panel>,
    /// End of the common time axis in ns.
    pub end_ns: u64,
}

/// One run.
#[derive(Debug, Serialize)]
pub struct Panel {
    /// Scheduler, and what distinguishes the run from the others.
    pub title: String,
    /// `simulated` or `measured`.
    pub lane: String,
    /// Lines.
    pub tasks: Vec<Line>,
    /// Packed: for each line its times in ns from the origin, ascending.
    pub data: String,
}

/// One task.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Number in the run.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Number of units of progress in `data`.
    pub count: usize,
    /// Units that are 100 %: the most that any task of the run finished. So a task that was stopped
    /// early does not appear finished.
    pub whole: usize,
}

/// Runs of `group` with progress, in drawing order.
pub fn progress_runs<'a>(group: &Group<'a>) -> Vec<(usize, String, &'a RunResult)> {
    panel_order(group)
        .into_iter()
        .filter_map(|cell| {
            let run = cell.runs.iter().copied().find(|run| !run.progress.is_empty())?;
            Some((cell.config, panel_title(group, cell.config, cell.n, cell.cpus), run))
        })
        .collect()
}

/// A run's lines with the times of their marks, from the origin.
struct Shown {
    title: String,
    lane: String,
    lines: Vec<(Line, Vec<u64>)>,
}

impl Shown {
    fn end_ns(&self) -> u64 {
        self.lines.iter().filter_map(|(_, times)| times.last()).copied().max().unwrap_or(0)
    }

    fn pack(self) -> Panel {
        let mut packer = Packer::default();
        let mut tasks = Vec::new();
        for (line, times) in self.lines {
            packer.push_ascending(times);
            tasks.push(line);
        }
        Panel { title: self.title, lane: self.lane, tasks, data: packer.finish() }
    }
}

/// The runs to draw; each keeps at most `cap` marks.
fn shown(group: &Group<'_>, cap: usize, notices: &mut Vec<String>) -> Vec<Shown> {
    let mut runs = progress_runs(group);
    limit_panels(&mut runs, notices);
    let one = |(config, title, run): (usize, String, &RunResult)| {
        let lane = group.configs[config].lane_words().to_string();
        let lines = lines(&title, &lane, run, cap, notices);
        Shown { title, lane, lines }
    };
    runs.into_iter().map(one).collect()
}

fn chart(group: &Group<'_>, runs: &[Shown]) -> Chart {
    let end_ns = runs.iter().map(Shown::end_ns).max().unwrap_or(0).max(1);
    let unit = unit_for(end_ns as f64 / 20.0);
    let scaled = |ns: u64| ns as f64 / unit.ns as f64;
    let series = |(index, (line, times)): (usize, &(Line, Vec<u64>))| {
        let done = (0..).map(|marks: usize| marks as f64 * 100.0 / line.whole.max(1) as f64);
        let all = std::iter::once(0).chain(times.iter().copied());
        Series {
            name: line.name.clone(),
            style: Some(Style { dashed: index >= COLOURS.len(), ..Style::numbered(index) }),
            form: Form::Track,
            points: all.zip(done).map(|(ns, y)| DrawnPoint::plain(scaled(ns), y)).collect(),
            ..Series::default()
        }
    };
    let panel = |run: &Shown| Plot {
        title: run.title.clone(),
        note: run.lane.clone(),
        height: 130.0,
        along: Axis::numbers(&format!("elapsed ({})", unit.symbol), 0.0, scaled(end_ns)),
        value: Axis::numbers("progress (%)", 0.0, 100.0),
        series: run.lines.iter().enumerate().map(series).collect(),
        ..Plot::default()
    };
    Chart {
        title: group.title().into(),
        columns: runs.len().min(4),
        panels: runs.iter().map(panel).collect(),
    }
}

/// The figure as a file; `None` if no run has progress.
pub fn progress_file(group: &Group<'_>) -> Option<String> {
    let runs = shown(group, usize::MAX, &mut Vec::new());
    let chart = Chart { columns: 2, ..chart(group, &runs) };
    (!runs.is_empty()).then(|| chart.file(460.0))
}

/// The figure and its data; `None` if no run has progress. Each run keeps at most `cap` marks.
pub fn progress(group: &Group<'_>, cap: usize) -> Option<(Figure, ProgressData)> {
    let mut notices = Vec::new();
    let runs = shown(group, cap, &mut notices);
    if runs.is_empty() {
        return None;
    }
    let mut alternative = format!(
        "Progress in percent against elapsed time for {}.",
        plural(runs.len(), "run", "runs")
    );
    for run in &runs {
        let ends = run.lines.iter().filter_map(|(_, times)| times.last()).take(8);
        let ends: Vec<String> = ends.map(|end| duration(*end as f64)).collect();
        alternative += &format!(" {}, {}: tasks end at {}.", run.title, run.lane, ends.join(", "));
    }
    let chart = chart(group, &runs);
    let figure = Figure {
        id: format!("{}-progress", group.id),
        kind: "progress",
        title: "Progress.".into(),
        caption: "Work done, in percent, against elapsed time; one line for each task. A steep \
            stretch is time on a CPU, a flat one is waiting, so tasks that take turns draw \
            staircases. All panels have the same axes; a model stands before the policy it models."
            .into(),
        alternative,
        notices,
        legend: chart.legend(),
        picture: chart.page(280.0, Some(172.0)),
        half: false,
    };
    let end_ns = runs.iter().map(Shown::end_ns).max().unwrap_or(0);
    let panels = runs.into_iter().map(Shown::pack).collect();
    Some((figure, ProgressData { panels, end_ns }))
}

/// The lines of a run, thinned to `cap` marks with a notice.
fn lines(
    title: &str,
    lane: &str,
    run: &RunResult,
    cap: usize,
    notices: &mut Vec<String>,
) -> Vec<(Line, Vec<u64>)> {
    let origin = origin_ns(run);
    let marks: usize = run.progress.iter().map(|curve| curve.times_ns.len()).sum();
    let most = run.progress.iter().map(|curve| curve.times_ns.len()).max().unwrap_or(0);
    // Thinning keeps every line's shape and its last mark; truncation would lose the end.
    let step = marks.div_ceil(cap.max(1)).max(1);
    if step > 1 {
        notices.push(format!(
            "The curves of {title} ({lane}) show every {step}th of {} marks, because the report \
             would become too big to open.",
            count(marks as u64)
        ));
    }
    let line = |curve: &ProgressCurve| {
        let times: Vec<u64> =
            thinned(&curve.times_ns, step).map(|time| time.saturating_sub(origin)).collect();
        let named = run.measures.tasks.iter().find(|task| task.id == curve.task);
        let name = named
            .filter(|task| !task.name.is_empty())
            .map_or_else(|| format!("task {}", curve.task), |task| task.name.clone());
        let whole = most.div_ceil(step);
        (Line { id: curve.task, name, count: times.len(), whole }, times)
    };
    run.progress.iter().map(line).collect()
}

/// Every `step`th time, counted so that the last of a full block is kept.
fn thinned(times: &[u64], step: usize) -> impl Iterator<Item = u64> + '_ {
    let length = times.len();
    times
        .iter()
        .enumerate()
        .filter(move |(index, _)| (index + 1) % step == 0 || index + 1 == length)
        .map(|(_, time)| *time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::Sim;
    use schedlab_run::ProgressCurve;

    #[test]
    fn thinning_keeps_the_end_and_is_announced() {
        assert_eq!(thinned(&[1, 2, 3, 4, 5], 2).collect::<Vec<_>>(), [2, 4, 5]);
        let mut r = run(Sim, "rr", 1, 1);
        r.progress = vec![ProgressCurve { task: 0, times_ns: (1..=100).collect() }];
        let results = [experiment("x", vec![r])];
        let groups = group_all(&results);
        let (figure, data) = progress(&groups[0], 10).unwrap();
        assert_eq!(data.panels[0].tasks[0].count, 10);
        assert_eq!(data.panels[0].tasks[0].whole, 10);
        assert!(figure.notices[0].contains("every 10th of 100 marks"));
        assert_eq!(data.end_ns, 100);
    }

    #[test]
    fn percent_is_of_the_most_any_task_did() {
        let mut r = run(Sim, "rr", 2, 1);
        r.progress = vec![
            ProgressCurve { task: 0, times_ns: vec![1, 2, 3, 4] },
            ProgressCurve { task: 1, times_ns: vec![2] },
        ];
        let results = [experiment("x", vec![r])];
        let groups = group_all(&results);
        let (_, data) = progress(&groups[0], 100).unwrap();
        assert_eq!(data.panels[0].tasks[1].whole, 4);
    }
}
