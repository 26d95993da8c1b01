// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers of one run that are compared with those of another: the run's own, or its tasks'.
//!
//! If a description has many tasks (a workload that forks), they are pooled. Counts and times are
//! added; numbers of a distribution are averaged, weighted by their counts. A task that lives for
//! three slices has no meaningful switch count of its own.

use super::Expr;
use super::evaluate::number_of;
use super::pairs::Of;
use super::slices::description;
use schedlab_metrics::{Distribution, Measures, Reading, TaskMeasures};
use schedlab_run::{RunResult, values};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of tasks of one description that are compared separately.
const TASKS_MAX: usize = 8;

/// Minimum number of samples for numbers of a distribution.
const SAMPLES_MIN: u64 = 20;

/// Name of the single value for all tasks.
pub(super) const ALL_TASKS: &str = "all tasks";

/// Descriptions whose tasks are pooled in these runs.
pub(crate) fn pooled<'r>(runs: impl Iterator<Item = &'r RunResult>) -> BTreeSet<String> {
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

/// The values by task, or by description if its tasks are `pooled`. `hog/2` is the task with the
/// second least value of those called `hog`.
pub(crate) fn values(
    (expr, of): (&Expr, Of),
    run: &RunResult,
    pooled: &BTreeSet<String>,
) -> BTreeMap<String, f64> {
    if of == Of::Run {
        let value = number_of(expr, &|measure| values::run_value(run, &measure.name));
        return value.map(|value| (ALL_TASKS.to_string(), value)).into_iter().collect();
    }
    let measures = expr.measures();
    let is_mean =
        measures.iter().any(|m| distribution(&TaskMeasures::default(), &m.name).is_some());
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for task in &run.measures.tasks {
        let Some((value, weight)) = of_task(expr, task) else { continue };
        let stem = description(&task.name);
        let unit = match pooled.contains(stem) {
            true => format!("{stem}-*"),
            false => task.name.clone(),
        };
        let sum = sums.entry(unit).or_default();
        sum.0 += value * weight;
        sum.1 += weight;
    }
    let value = |(sum, weight): (f64, f64)| if is_mean { sum / weight } else { sum };
    ranked(sums.into_iter().map(|(unit, sum)| (unit, value(sum))).collect())
}

/// Names tasks of one description by the order of their values: equal tasks may exchange roles.
fn ranked(values: BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let mut equal: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut ranked = BTreeMap::new();
    for (unit, value) in values {
        match description(&unit) {
            stem if stem == unit => _ = ranked.insert(unit, value),
            stem => equal.entry(stem.to_string()).or_default().push(value),
        }
    }
    for (stem, mut values) in equal {
        values.sort_by(f64::total_cmp);
        ranked.extend((1..).zip(values).map(|(rank, value)| (format!("{stem}/{rank}"), value)));
    }
    ranked
}

/// Value and weight of a task.
fn of_task(expr: &Expr, task: &TaskMeasures) -> Option<(f64, f64)> {
    let mut weight = None;
    for measure in expr.measures() {
        if let Some(distribution) = distribution(task, &measure.name) {
            let count = distribution.count.filter(|count| *count >= SAMPLES_MIN)?;
            weight = Some(weight.map_or(count, |least: u64| least.min(count)));
        }
    }
    let read = |name: &str| Some(task.number(name)??.as_f64());
    let value = number_of(expr, &|measure| read(&measure.name))?;
    Some((value, weight.map_or(1.0, |count| count as f64)))
}

/// The distribution that a measure belongs to: `wakeup_latency` for `wakeup_latency_ns_p99`.
fn distribution(task: &TaskMeasures, name: &str) -> Option<Distribution> {
    TaskMeasures::LIST.iter().find_map(|measure| match (measure.read)(task) {
        Reading::Distribution(found) => {
            let part = name.strip_prefix(measure.name)?.strip_prefix('_')?;
            found.number(part).filter(|_| part != "count").map(|_| found)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn found(text: &str, run: &RunResult, pooled: &BTreeSet<String>) -> BTreeMap<String, f64> {
        values((&Expr::parse(text).unwrap(), Of::Tasks), run, pooled)
    }

    #[test]
    fn few_tasks_are_compared_one_by_one_and_many_as_one() {
        let few = run((0..8).map(|n| task(&format!("hog-{n}"), n, 0, 0)).collect());
        let none = pooled([&few].into_iter());
        let ranks = found("7 - run_delay_ns", &few, &none);
        assert_eq!((ranks["hog/1"], ranks["hog/8"]), (0.0, 7.0), "the least is the first");
        let many = run((0..9).map(|n| task(&format!("child-{n}"), n, 30 + n, 100)).collect());
        let pooled = pooled([&few, &many].into_iter());
        assert_eq!(
            found("run_delay_ns", &many, &pooled),
            BTreeMap::from([("child-*".into(), 36.0)])
        );
        let medians = found("wakeup_latency_ns_median", &many, &pooled);
        assert_eq!(medians["child-*"], 100.0, "a mean, not a sum");
        let counts = found("wakeup_latency_count", &many, &pooled);
        assert_eq!(counts["child-*"], 306.0, "a sum, not a mean");
    }

    #[test]
    fn few_wake_ups_have_no_percentiles() {
        let run = run(vec![task("a", 0, 19, 5), task("b", 0, 20, 7)]);
        let found = found("wakeup_latency_ns_median", &run, &BTreeSet::new());
        assert_eq!(found, BTreeMap::from([("b".into(), 7.0)]));
    }

    #[test]
    fn a_run_has_one_value() {
        let mut one = run(vec![]);
        one.measures.totals.nr_switches = 7;
        let expr = Expr::parse("nr_switches * 2").unwrap();
        let found = values((&expr, Of::Run), &one, &BTreeSet::new());
        assert_eq!(found, BTreeMap::from([(ALL_TASKS.into(), 14.0)]));
    }
}
