// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU timeline: which task ran where and when (study S0's first figure). This file decides the
//! content of each run. assets/timeline.js draws it in the page, where a reader zooms into a
//! million slices; draw/timeline.rs draws a still picture for a file.

use crate::embed::Packer;
use crate::figure::Figure;
use crate::group::Group;
use crate::number::{count, duration, plural};
use crate::order::{limit_panels, panel_order};
use schedlab_run::{RunResult, Slice};
use serde::Serialize;
use std::collections::BTreeMap;

/// Data of one figure.
#[derive(Debug, Serialize)]
pub struct TimelineData {
    /// One run each, all with the same time axis.
    pub panels: Vec<Panel>,
}

/// One run.
#[derive(Debug, Serialize)]
pub struct Panel {
    /// Scheduler, and what distinguishes the run from the others.
    pub title: String,
    /// `simulated` or `measured`.
    pub lane: String,
    /// CPUs with a lane, ascending.
    pub cpus: Vec<u32>,
    /// Tasks with a row.
    pub tasks: Vec<PanelTask>,
    /// The reasons why slices ended; slices refer to them by index.
    pub ends: Vec<String>,
    /// Number of slices in `data`.
    pub count: usize,
    /// End of the run, or of its kept part, in ns from the origin.
    pub end_ns: u64,
    /// Packed columns: start (ascending), length, index of task, index of CPU, index of end.
    pub data: String,
}

/// One task's row.
#[derive(Debug, Serialize)]
pub struct PanelTask {
    /// Number in the run.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Process id, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Release, ns from the origin.
    pub release_ns: u64,
}

/// The content of one run's timeline.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// Scheduler, and what distinguishes the run from the others.
    pub title: String,
    /// `simulated` or `measured`.
    pub lane: String,
    /// The run.
    run: &'a RunResult,
    /// Slices, sorted by start.
    pub slices: Vec<&'a Slice>,
    /// CPUs of the slices, ascending.
    pub cpus: Vec<u32>,
    /// Tasks of the slices, by number.
    pub tasks: Vec<PanelTask>,
    /// The time shown as 0.
    pub origin_ns: u64,
    /// End of the run, from the origin.
    pub end_ns: u64,
}

impl<'a> Timeline<'a> {
    /// The timeline of a whole run.
    pub fn new(title: String, lane: String, run: &'a RunResult) -> Self {
        let mut slices: Vec<&Slice> = run.slices.iter().collect();
        slices.sort_by_key(|slice| (slice.start_ns, slice.cpu, slice.task));
        let origin_ns = origin_ns(run);
        let ends = slices.iter().map(|slice| slice.end_ns).chain([run.measures.totals.end_ns]);
        let end_ns = ends.max().unwrap_or(0).saturating_sub(origin_ns);
        let (cpus, tasks) = rows_of(run, &slices, origin_ns);
        Timeline { title, lane, run, slices, cpus, tasks, origin_ns, end_ns }
    }

    /// Keeps the first `cap` slices, and adds a notice if there are more.
    fn limit(&mut self, cap: usize, notices: &mut Vec<String>) {
        let whole = self.slices.len();
        if whole <= cap {
            return;
        }
        self.slices.truncate(cap);
        let last = self.slices.last();
        self.end_ns = last.map_or(0, |slice| slice.start_ns.saturating_sub(self.origin_ns));
        (self.cpus, self.tasks) = rows_of(self.run, &self.slices, self.origin_ns);
        notices.push(format!(
            "The timeline of {} ({}) is cut after {}: it shows the first {} of {} slices, because \
             the report would become too big to open. Measures and tables count all of them.",
            self.title,
            self.lane,
            duration(self.end_ns as f64),
            count(cap as u64),
            count(whole as u64)
        ));
    }
}

/// CPUs and tasks of `slices`.
fn rows_of(run: &RunResult, slices: &[&Slice], origin_ns: u64) -> (Vec<u32>, Vec<PanelTask>) {
    let cpus = index_of(slices.iter().map(|slice| slice.cpu)).into_keys().collect();
    (cpus, panel_tasks(run, slices, origin_ns))
}

/// Runs of `group` with a timeline, each with title and lane, in drawing order.
pub fn timeline_runs<'a>(group: &Group<'a>) -> Vec<(String, String, &'a RunResult)> {
    panel_order(group)
        .into_iter()
        .filter_map(|cell| {
            let run = cell.runs.iter().copied().find(|run| !run.slices.is_empty())?;
            let title = panel_title(group, cell.config, cell.n, cell.cpus);
            let lane = group.configs[cell.config].lane_words().to_string();
            Some((title, lane, run))
        })
        .collect()
}

/// The line's label, with n and CPUs where they vary in the experiment.
pub fn panel_title(group: &Group<'_>, config: usize, n: u64, cpus: u64) -> String {
    let mut title = group.configs[config].label();
    let all_cpus = group.cpus();
    if all_cpus.iter().any(|c| group.ns(*c).len() > 1) {
        title += &format!(", n\u{a0}=\u{a0}{n}");
    }
    if all_cpus.len() > 1 {
        title += &format!(", {}", plural(cpus as usize, "CPU", "CPUs"));
    }
    title
}

/// The figure and its data; `None` if no run kept its slices. Each run shows at most `cap` slices.
pub fn timeline(group: &Group<'_>, cap: usize) -> Option<(Figure, TimelineData)> {
    let mut runs = timeline_runs(group);
    if runs.is_empty() {
        return None;
    }
    let mut notices = Vec::new();
    limit_panels(&mut runs, &mut notices);
    let panels: Vec<Panel> = runs
        .into_iter()
        .map(|(title, lane, run)| {
            let mut timeline = Timeline::new(title, lane, run);
            timeline.limit(cap, &mut notices);
            panel(timeline)
        })
        .collect();
    let repetitions = group.cells.iter().any(|cell| cell.runs.len() > 1);
    let slices: usize = panels.iter().map(|panel| panel.count).sum();
    let mut caption = "Who ran when. On top one lane for each CPU, coloured by task; under it one \
        row for each task, where a block is time on a CPU and a thin line is time spent waiting \
        for one. All runs share the time axis; time starts at the first release. Where blocks are \
        narrower than a pixel, the height shows the busy share and the colour the task that ran \
        longest."
        .to_string();
    if repetitions {
        caption += " Of several repetitions the first is drawn.";
    }
    let figure = Figure {
        id: format!("{}-timeline", group.id),
        kind: "timeline",
        title: "CPU timeline.".into(),
        caption,
        alternative: alternative(&panels, slices),
        notices,
        legend: String::new(),
        picture: String::new(),
        half: false,
    };
    Some((figure, TimelineData { panels }))
}

fn alternative(panels: &[Panel], slices: usize) -> String {
    let mut text = format!(
        "CPU timeline of {}, {} in all.",
        plural(panels.len(), "run", "runs"),
        plural(slices, "slice", "slices")
    );
    for panel in panels {
        text += &format!(
            " {}, {}: {} in {}.",
            panel.title,
            panel.lane,
            plural(panel.count, "slice", "slices"),
            duration(panel.end_ns as f64)
        );
    }
    text
}

fn panel(timeline: Timeline<'_>) -> Panel {
    let Timeline { title, lane, slices, cpus, tasks, origin_ns, end_ns, .. } = timeline;
    let ends = index_of(slices.iter().map(|slice| slice.end.clone()));
    let rows: BTreeMap<u32, u64> = tasks.iter().map(|task| task.id).zip(0..).collect();
    let lanes: BTreeMap<u32, u64> = cpus.iter().copied().zip(0..).collect();
    let mut packer = Packer::default();
    packer.push_ascending(slices.iter().map(|slice| slice.start_ns.saturating_sub(origin_ns)));
    for slice in &slices {
        packer.push(slice.end_ns.saturating_sub(slice.start_ns));
    }
    for slice in &slices {
        packer.push(rows.get(&slice.task).copied().unwrap_or(0));
    }
    for slice in &slices {
        packer.push(lanes[&slice.cpu]);
    }
    for slice in &slices {
        packer.push(ends[&slice.end]);
    }
    Panel {
        title,
        lane,
        cpus,
        tasks,
        ends: ends.into_keys().collect(),
        count: slices.len(),
        end_ns,
        data: packer.finish(),
    }
}

/// The time that figures show as 0: the first release, or the first slice if that is earlier.
pub fn origin_ns(run: &RunResult) -> u64 {
    let release = run.measures.tasks.iter().map(|task| task.release_ns).min();
    let slice = run.slices.iter().map(|slice| slice.start_ns).min();
    release.into_iter().chain(slice).min().unwrap_or(0)
}

/// Each distinct value with its rank.
fn index_of<T: Ord>(values: impl Iterator<Item = T>) -> BTreeMap<T, u64> {
    let mut index: BTreeMap<T, u64> = values.map(|value| (value, 0)).collect();
    for (rank, slot) in index.values_mut().enumerate() {
        *slot = rank as u64;
    }
    index
}

fn panel_tasks(run: &RunResult, slices: &[&Slice], origin: u64) -> Vec<PanelTask> {
    let mut tasks: BTreeMap<u32, PanelTask> = BTreeMap::new();
    for slice in slices {
        tasks.entry(slice.task).or_insert_with(|| PanelTask {
            id: slice.task,
            name: format!("task {}", slice.task),
            pid: None,
            release_ns: slice.start_ns.saturating_sub(origin),
        });
    }
    for task in &run.measures.tasks {
        if let Some(row) = tasks.get_mut(&task.id) {
            if !task.name.is_empty() {
                row.name.clone_from(&task.name);
            }
            row.pid = task.pid;
            row.release_ns = task.release_ns.saturating_sub(origin);
        }
    }
    tasks.into_values().collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::{Host, Sim};

    /// A slice that ends with a preemption.
    pub fn slice(cpu: u32, task: u32, start_ns: u64, end_ns: u64) -> Slice {
        Slice { cpu, task, start_ns, end_ns, end: "preempted".into() }
    }

    #[test]
    fn a_run_beyond_the_cap_is_cut_with_a_notice() {
        let mut r = run(Sim, "rr", 2, 1);
        r.slices = (0..10).map(|i| slice(0, (i % 2) as u32, i * 10, i * 10 + 10)).collect();
        let results = [experiment("x", vec![r])];
        let groups = group_all(&results);
        let (figure, data) = timeline(&groups[0], 4).unwrap();
        assert_eq!(data.panels[0].count, 4);
        assert_eq!(data.panels[0].end_ns, 30);
        assert!(figure.notices[0].contains("first 4 of 10 slices"));
        let (figure, data) = timeline(&groups[0], 10).unwrap();
        assert_eq!((data.panels[0].count, figure.notices.len()), (10, 0));
    }

    #[test]
    fn slices_of_unknown_tasks_and_backward_times_do_no_harm() {
        let mut r = run(Host, "OTHER", 1, 1);
        r.slices = vec![slice(3, 99, 500, 100), slice(1, 98, 20, u64::MAX)];
        let results = [experiment("x", vec![r])];
        let groups = group_all(&results);
        let (_, data) = timeline(&groups[0], 100).unwrap();
        assert_eq!(data.panels[0].cpus, [1, 3]);
        assert_eq!(data.panels[0].tasks[1].name, "task 99");
    }
}
