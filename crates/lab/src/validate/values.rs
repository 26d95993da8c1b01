// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of a metric in one run, and how far those of two runs are apart.
//!
//! Values are a task's. Where a description has many tasks (a workload that forks), they are put
//! together: shares, switches and run delays added, percentiles averaged by their counts; a task
//! that lives for three slices has no switch count worth comparing.

use super::file::{Metric, Tolerance};
use super::slices::description;
use schedlab_metrics::{Distribution, TaskMeasures};
use schedlab_run::RunResult;
use std::collections::{BTreeMap, BTreeSet};

/// A description with more tasks is compared as one.
const TASKS_MAX: usize = 8;

/// Fewest wake-ups of which percentiles say something.
const WAKEUPS_MIN: u64 = 20;

/// Name of the value that is one of all tasks.
pub(super) const ALL_TASKS: &str = "all tasks";

/// Descriptions whose tasks are compared as one, in these runs.
pub(super) fn pooled(runs: &[&RunResult]) -> BTreeSet<String> {
    let mut pooled = BTreeSet::new();
    for run in runs {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for task in &run.measures.tasks {
            *counts.entry(description(&task.name)).or_default() += 1;
        }
        let many = counts.into_iter().filter(|(_, count)| *count > TASKS_MAX);
        pooled.extend(many.map(|(name, _)| name.to_string()));
    }
    pooled
}

/// The values by task, or by description where its tasks are `pooled`.
pub(super) fn values(
    metric: Metric,
    run: &RunResult,
    pooled: &BTreeSet<String>,
) -> BTreeMap<String, f64> {
    if metric == Metric::NrMigrations {
        let count = run.measures.totals.nr_migrations.map(|count| count as f64);
        return count.map(|count| (ALL_TASKS.to_string(), count)).into_iter().collect();
    }
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for task in &run.measures.tasks {
        let Some((value, weight)) = of_task(metric, task) else { continue };
        let stem = description(&task.name);
        let unit = match pooled.contains(stem) {
            true => format!("{stem}-*"),
            false => task.name.clone(),
        };
        let sum = sums.entry(unit).or_default();
        sum.0 += value * weight;
        sum.1 += weight;
    }
    let is_mean = is_percentile(metric);
    let value = |(sum, weight): (f64, f64)| if is_mean { sum / weight } else { sum };
    sums.into_iter().map(|(unit, sum)| (unit, value(sum))).collect()
}

const fn is_percentile(metric: Metric) -> bool {
    matches!(metric, Metric::WakeupLatencyNsMedian | Metric::WakeupLatencyNsP99)
}

/// Value and weight.
fn of_task(metric: Metric, task: &TaskMeasures) -> Option<(f64, f64)> {
    let latency = |value: fn(&Distribution) -> Option<u64>| {
        let latency = &task.wakeup_latency;
        let count = latency.count.filter(|count| *count >= WAKEUPS_MIN)?;
        Some((value(latency)? as f64, count as f64))
    };
    match metric {
        Metric::CpuShare => task.cpu_share.map(|share| (share, 1.0)),
        Metric::NrSwitches => {
            Some(((task.nr_voluntary_switches + task.nr_involuntary_switches) as f64, 1.0))
        }
        Metric::RunDelayNs => Some((task.run_delay_ns as f64, 1.0)),
        Metric::WakeupLatencyNsMedian => latency(|latency| latency.ns_median),
        Metric::WakeupLatencyNsP99 => latency(|latency| latency.ns_p99),
        // One of all tasks, and one of the whole timeline.
        Metric::NrMigrations | Metric::Slices => None,
    }
}

/// How far the model's value is from the kernel's, with its sign, on the scale on which deviations
/// of several runs are averaged: a difference, or the logarithm of a quotient.
pub(super) fn deviation(tolerance: &Tolerance, kernel: f64, model: f64) -> f64 {
    let (kernel, model) = (kernel.max(tolerance.floor), model.max(tolerance.floor));
    match tolerance.name {
        Metric::NrSwitches => model / kernel - 1.0,
        metric if metric.is_factor() => (model / kernel).ln(),
        _ => model - kernel,
    }
}

/// The greatest deviation on that scale.
pub(super) fn limit(tolerance: &Tolerance) -> f64 {
    if tolerance.name.is_factor() { tolerance.within.ln() } else { tolerance.within }
}

/// A deviation as it is told: a factor of 1 and more, or a difference without its sign.
pub(super) fn told(metric: Metric, deviation: f64) -> f64 {
    if metric.is_factor() { deviation.abs().exp() } else { deviation.abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tolerance(name: Metric, within: f64, floor: f64) -> Tolerance {
        Tolerance { name, within, floor, why: String::new() }
    }

    fn task(name: &str, delay: u64, count: u64, median: u64) -> TaskMeasures {
        let wakeup_latency =
            Distribution { count: Some(count), ns_median: Some(median), ..Distribution::default() };
        TaskMeasures {
            name: name.into(),
            run_delay_ns: delay,
            wakeup_latency,
            ..TaskMeasures::default()
        }
    }

    fn run(tasks: Vec<TaskMeasures>) -> RunResult {
        let mut run = RunResult::default();
        run.measures.tasks = tasks;
        run
    }

    #[test]
    fn few_tasks_are_compared_one_by_one_and_many_as_one() {
        let few = run((0..8).map(|n| task(&format!("hog-{n}"), n, 0, 0)).collect());
        let none = pooled(&[&few]);
        assert_eq!(values(Metric::RunDelayNs, &few, &none)["hog-7"], 7.0);
        let many = run((0..9).map(|n| task(&format!("child-{n}"), n, 30 + n, 100)).collect());
        let pooled = pooled(&[&few, &many]);
        assert_eq!(
            values(Metric::RunDelayNs, &many, &pooled),
            BTreeMap::from([("child-*".into(), 36.0)])
        );
        let medians = values(Metric::WakeupLatencyNsMedian, &many, &pooled);
        assert_eq!(medians["child-*"], 100.0, "a mean, not a sum");
    }

    #[test]
    fn few_wake_ups_have_no_percentiles() {
        let run = run(vec![task("a", 0, 19, 5), task("b", 0, 20, 7)]);
        let found = values(Metric::WakeupLatencyNsMedian, &run, &BTreeSet::new());
        assert_eq!(found, BTreeMap::from([("b".into(), 7.0)]));
    }

    #[test]
    fn deviations() {
        let share = tolerance(Metric::CpuShare, 0.01, 0.0);
        assert!((deviation(&share, 0.25, 0.24) + 0.01).abs() < 1e-12);
        let switches = tolerance(Metric::NrSwitches, 0.1, 10.0);
        assert!((deviation(&switches, 200.0, 180.0) + 0.1).abs() < 1e-12);
        assert_eq!(deviation(&switches, 2.0, 9.0), 0.0, "both below what counts");
        let delay = tolerance(Metric::RunDelayNs, 1.25, 1e5);
        assert!(deviation(&delay, 1e6, 1.25e6) <= limit(&delay) + 1e-12);
        assert!(deviation(&delay, 1e6, 1.26e6) > limit(&delay));
        assert!((told(Metric::RunDelayNs, deviation(&delay, 1e6, 5e5)) - 2.0).abs() < 1e-12);
    }
}
