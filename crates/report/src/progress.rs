// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress curves (study S0's second figure): how much of its work each task had done at each
//! moment. One small panel a run, all on the same axes, a model beside the policy it models.

use crate::embed::Packer;
use crate::figure::Figure;
use crate::group::Group;
use crate::number::{count, duration, plural};
use crate::order::{limit_panels, panel_order};
use crate::timeline::{origin_ns, panel_title};
use schedlab_run::RunResult;
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
    /// Scheduler, and what tells the run from the others.
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
    /// Units of progress in `data`.
    pub count: usize,
    /// Units that are 100 %: the most any task of the run finished, so a task that was stopped
    /// early does not look finished.
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

/// The figure and its data; `None` if no run has progress. Each run keeps at most `cap` marks.
pub fn progress(group: &Group<'_>, cap: usize) -> Option<(Figure, ProgressData)> {
    let mut runs = progress_runs(group);
    if runs.is_empty() {
        return None;
    }
    let mut notices = Vec::new();
    limit_panels(&mut runs, &mut notices);
    let mut end_ns = 0;
    let panels: Vec<Panel> = runs
        .iter()
        .map(|(config, title, run)| {
            let lane = group.configs[*config].lane_words().to_string();
            panel(title.clone(), lane, run, cap, &mut end_ns, &mut notices)
        })
        .collect();
    let mut alternative = format!(
        "Progress in percent against elapsed time for {}.",
        plural(panels.len(), "run", "runs")
    );
    for (panel, (_, _, run)) in panels.iter().zip(&runs) {
        let origin = origin_ns(run);
        let ends: Vec<String> = run
            .progress
            .iter()
            .filter_map(|curve| curve.times_ns.last())
            .take(8)
            .map(|end| duration(end.saturating_sub(origin) as f64))
            .collect();
        alternative +=
            &format!(" {}, {}: tasks end at {}.", panel.title, panel.lane, ends.join(", "));
    }
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
        legend: String::new(),
        picture: String::new(),
        half: false,
    };
    Some((figure, ProgressData { panels, end_ns }))
}

fn panel(
    title: String,
    lane: String,
    run: &RunResult,
    cap: usize,
    end_ns: &mut u64,
    notices: &mut Vec<String>,
) -> Panel {
    let origin = origin_ns(run);
    let marks: usize = run.progress.iter().map(|curve| curve.times_ns.len()).sum();
    let most = run.progress.iter().map(|curve| curve.times_ns.len()).max().unwrap_or(0);
    // Thinning keeps every line's shape and its last mark; cutting would lose the end.
    let step = marks.div_ceil(cap.max(1)).max(1);
    if step > 1 {
        notices.push(format!(
            "The curves of {title} ({lane}) show every {step}th of {} marks, because the report \
             would become too big to open.",
            count(marks as u64)
        ));
    }
    let mut packer = Packer::default();
    let mut tasks = Vec::new();
    for curve in &run.progress {
        let kept: Vec<u64> =
            thinned(&curve.times_ns, step).map(|time| time.saturating_sub(origin)).collect();
        *end_ns = (*end_ns).max(kept.last().copied().unwrap_or(0));
        let named = run.measures.tasks.iter().find(|task| task.id == curve.task);
        tasks.push(Line {
            id: curve.task,
            name: named
                .filter(|task| !task.name.is_empty())
                .map_or_else(|| format!("task {}", curve.task), |task| task.name.clone()),
            count: kept.len(),
            whole: most.div_ceil(step),
        });
        packer.push_ascending(kept);
    }
    Panel { title, lane, tasks, data: packer.finish() }
}

/// Each `step`th time, counted so that the last of a full block is kept.
pub fn thinned(times: &[u64], step: usize) -> impl Iterator<Item = u64> + '_ {
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
    use schedlab_run::ProgressCurve;

    #[test]
    fn thinning_keeps_the_end_and_is_announced() {
        assert_eq!(thinned(&[1, 2, 3, 4, 5], 2).collect::<Vec<_>>(), [2, 4, 5]);
        let mut r = run("sim", "rr", 1, 1);
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
        let mut r = run("sim", "rr", 2, 1);
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
