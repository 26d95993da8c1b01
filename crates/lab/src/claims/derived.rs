// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures that only claims need, computed from a run's timeline and progress.
//!
//! Each has one entry: name, description, formula. A run without the needed timeline or progress
//! has no value.

use super::evaluate::{is_named, line};
use schedlab_metrics::Unit;
use schedlab_run::{ProgressCurve, RunResult, Slice};
use std::collections::BTreeMap;

/// A measure computed from a run's timeline or progress.
#[derive(Clone, Copy, Debug)]
pub struct Derived {
    /// Name, as in an expression.
    pub name: &'static str,
    /// Description.
    pub text: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Whether it is a measure of tasks, chosen by `task=`.
    pub of_task: bool,
    /// Computes its value; the second argument selects tasks by name.
    pub value: fn(&RunResult, &str) -> Option<f64>,
}

/// All derived measures.
pub const DERIVED: &[Derived] = &[
    Derived {
        name: "progress_r2_min",
        text: "how well a straight line through a task's progress against time fits: the least R^2 \
               of the run's tasks",
        unit: Unit::Ratio("0 to 1"),
        of_task: false,
        value: |run, _| of_curves(run, progress_r2, f64::min),
    },
    Derived {
        name: "progress_gap_ns_max",
        text: "the longest time between two units of progress of one task, ns",
        unit: Unit::Ns,
        of_task: false,
        value: |run, _| of_curves(run, progress_gap, f64::max),
    },
    Derived {
        name: "nr_running_max",
        text: "most tasks that were on a CPU at one moment",
        unit: Unit::Count,
        of_task: false,
        value: |run, _| nr_running_max(&run.slices),
    },
    Derived {
        name: "finish_spread",
        text: "the last exit by the first, from the first release on, less 1: 0 if all end \
               together",
        unit: Unit::Ratio("0 and more"),
        of_task: false,
        value: |run, _| finish_spread(run),
    },
    Derived {
        name: "slice_ns_mean_contended",
        text: "mean stay on a CPU while every task of the run was alive, that is before the first \
               exit, ns",
        unit: Unit::Ns,
        of_task: false,
        value: |run, _| mean_slice(run, |_| true),
    },
    Derived {
        name: "cpu_share_contended",
        text: "the tasks' part of the CPU time that was used before the first exit, 0 to 1",
        unit: Unit::Ratio("0 to 1"),
        of_task: true,
        value: cpu_share_contended,
    },
    Derived {
        name: "slice_ns_mean_contended",
        text: "mean stay of these tasks on a CPU before the first exit of any task, ns",
        unit: Unit::Ns,
        of_task: true,
        value: |run, task| {
            let ids = ids(run, task);
            mean_slice(run, |slice| ids.contains(&slice.task))
        },
    },
];

/// Combines all tasks' progress into one number.
fn of_curves(
    run: &RunResult,
    of_one: fn(&ProgressCurve) -> Option<f64>,
    of_two: fn(f64, f64) -> f64,
) -> Option<f64> {
    let values: Option<Vec<f64>> = run.progress.iter().map(of_one).collect();
    values?.into_iter().reduce(of_two)
}

fn progress_r2(curve: &ProgressCurve) -> Option<f64> {
    let times: Vec<f64> = curve.times_ns.iter().map(|ns| *ns as f64).collect();
    let units: Vec<f64> = (1..=times.len()).map(|unit| unit as f64).collect();
    (times.len() > 2).then(|| line(&times, &units).1)
}

fn progress_gap(curve: &ProgressCurve) -> Option<f64> {
    let gaps = curve.times_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    gaps.max().map(|gap| gap as f64)
}

/// At the same moment, count ends first: a slice ends when the next begins.
fn nr_running_max(slices: &[Slice]) -> Option<f64> {
    let mut steps: Vec<(u64, i64)> = Vec::new();
    for slice in slices {
        steps.push((slice.start_ns, 1));
        steps.push((slice.end_ns, -1));
    }
    steps.sort_unstable();
    let mut running = 0;
    let most = steps.into_iter().map(|(_, step)| {
        running += step;
        running
    });
    most.max().map(|most| most as f64)
}

fn finish_spread(run: &RunResult) -> Option<f64> {
    let jobs = || run.measures.tasks.iter().filter(|task| !task.is_launcher);
    let release = jobs().map(|task| task.release_ns).min()?;
    let exits: Option<Vec<u64>> = jobs().map(|task| task.exit_ns).collect();
    let since = |exit: Option<u64>| exit.map(|exit| exit.saturating_sub(release) as f64);
    let exits = exits?;
    let (first, last) = (since(exits.iter().min().copied())?, since(exits.iter().max().copied())?);
    (first > 0.0).then(|| last / first - 1.0)
}

fn ids(run: &RunResult, task: &str) -> Vec<u32> {
    let tasks = run.measures.tasks.iter().filter(|known| is_named(&known.name, task));
    tasks.map(|known| known.id).collect()
}

/// The first exit of a task that worked in the run.
fn first_exit(run: &RunResult) -> Option<u64> {
    let jobs = run.measures.tasks.iter().filter(|task| !task.is_launcher);
    jobs.filter_map(|task| task.exit_ns).min()
}

/// CPU time of each task before the first exit.
fn contended(run: &RunResult) -> Option<BTreeMap<u32, u64>> {
    let end = first_exit(run)?;
    let launchers: Vec<u32> =
        run.measures.tasks.iter().filter(|task| task.is_launcher).map(|task| task.id).collect();
    let mut by_task = BTreeMap::new();
    for slice in run.slices.iter().filter(|slice| !launchers.contains(&slice.task)) {
        let ns = slice.end_ns.min(end).saturating_sub(slice.start_ns);
        *by_task.entry(slice.task).or_insert(0) += ns;
    }
    (!by_task.is_empty()).then_some(by_task)
}

fn cpu_share_contended(run: &RunResult, task: &str) -> Option<f64> {
    let (by_task, ids) = (contended(run)?, ids(run, task));
    let all: u64 = by_task.values().sum();
    let own: u64 = by_task.iter().filter(|(id, _)| ids.contains(id)).map(|(_, ns)| ns).sum();
    (all > 0 && !ids.is_empty()).then(|| own as f64 / all as f64)
}

fn mean_slice(run: &RunResult, wanted: impl Fn(&Slice) -> bool) -> Option<f64> {
    let end = first_exit(run)?;
    let whole = run.slices.iter().filter(|slice| slice.end_ns <= end && wanted(slice));
    let lengths: Vec<f64> = whole.map(|slice| (slice.end_ns - slice.start_ns) as f64).collect();
    (!lengths.is_empty()).then(|| schedlab_metrics::stats::mean(&lengths))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::TaskMeasures;

    fn run() -> RunResult {
        let slice =
            |task, start_ns, end_ns| Slice { cpu: 0, task, start_ns, end_ns, end: String::new() };
        let task = |id, exit_ns| TaskMeasures {
            id,
            name: format!("t-{id}"),
            exit_ns: Some(exit_ns),
            ..TaskMeasures::default()
        };
        let mut run = RunResult {
            slices: vec![slice(0, 0, 30), slice(1, 30, 40), slice(0, 40, 70), slice(1, 70, 100)],
            progress: vec![
                ProgressCurve { task: 0, times_ns: vec![10, 20, 30] },
                ProgressCurve { task: 1, times_ns: vec![35, 40, 100] },
            ],
            ..RunResult::default()
        };
        run.measures.tasks = vec![task(0, 70), task(1, 100)];
        run
    }

    fn value(name: &str, of_task: bool, task: &str) -> Option<f64> {
        let derived = DERIVED.iter().find(|d| d.name == name && d.of_task == of_task).unwrap();
        (derived.value)(&run(), task)
    }

    #[test]
    fn shares_and_slices_count_while_all_were_alive() {
        assert_eq!(value("cpu_share_contended", true, "t-0"), Some(60.0 / 70.0));
        assert_eq!(value("cpu_share_contended", true, "t-*"), Some(1.0));
        assert_eq!(value("cpu_share_contended", true, "x"), None);
        assert_eq!(value("slice_ns_mean_contended", true, "t-1"), Some(10.0));
        assert_eq!(value("slice_ns_mean_contended", false, ""), Some(70.0 / 3.0));
    }

    #[test]
    fn progress_and_exits() {
        assert_eq!(value("progress_gap_ns_max", false, ""), Some(60.0));
        let least = value("progress_r2_min", false, "").unwrap();
        assert!(least > 0.5 && least < 0.9, "task 0 is straight, task 1 is not: {least}");
        assert_eq!(value("nr_running_max", false, ""), Some(1.0));
        assert_eq!(value("finish_spread", false, ""), Some(100.0 / 70.0 - 1.0));
    }

    #[test]
    fn what_was_not_kept_has_no_value() {
        for derived in DERIVED {
            assert_eq!((derived.value)(&RunResult::default(), "t"), None, "{}", derived.name);
        }
    }
}
