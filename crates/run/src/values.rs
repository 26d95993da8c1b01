// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties and measures of a run, by name: `scheduler`, `cpus`, an axis; `turnaround_ns_mean`,
//! `wakeup_latency_ns_p99`.
//!
//! `schedlab_metrics` declares names and units of measures. The unit of a figure from a program's
//! output is the end of its name.

use crate::{LaneKind, RunResult, expect};
use schedlab_metrics::{Measures, ModelCounters, RunMeasures, RunTotals, TaskMeasures, Unit};
use std::collections::BTreeMap;

/// Measures that a table shows by default.
pub const MEASURES_DEFAULT: [&str; 5] = [
    "turnaround_ns_mean",
    "run_delay_ns_mean",
    "wakeup_latency_ns_p99",
    "throughput_per_s",
    "nr_switches",
];

/// Names of all measures of a run, in the order of the JSON.
pub fn measure_names() -> Vec<String> {
    RunMeasures::default().numbers().into_iter().map(|(name, _, _)| name).collect()
}

/// Every measure of a run; `None` if the run has no such value, because no task exited or slept.
pub fn measure_values(measures: &RunMeasures) -> Vec<(String, Option<f64>)> {
    let numbers = measures.numbers().into_iter();
    numbers.map(|(name, _, number)| (name, number.map(|number| number.as_f64()))).collect()
}

/// Every measure of a run, then the figures from its program's output.
pub fn run_values(run: &RunResult) -> Vec<(String, Option<f64>)> {
    let mut values = measure_values(&run.measures);
    values.extend(run.figures.iter().map(|(name, value)| (name.clone(), Some(*value))));
    values
}

/// A measure of a run, or a figure from its program's output; `None` if the run has no such value.
pub fn run_value(run: &RunResult, name: &str) -> Option<f64> {
    match run.measures.number(name) {
        Some(number) => number.map(|number| number.as_f64()),
        None => run.figures.get(name).copied(),
    }
}

/// Whether a measure is a time in nanoseconds.
pub fn is_time(measure: &str) -> bool {
    unit_of(measure) == Unit::Ns
}

/// Unit of a measure: `ns`, `1/s`, `count`, or `1` for a ratio.
pub fn unit(measure: &str) -> &'static str {
    unit_of(measure).symbol()
}

/// The declared unit of a measure of runs or tasks. Any other name is that of a program's figure,
/// and has the unit at its end.
pub fn unit_of(measure: &str) -> Unit {
    let of_run = || RunTotals::unit(measure).or_else(|| ModelCounters::unit(measure));
    let of_task = || {
        let stem = expect::stem(measure).map_or(measure, |(stem, _)| stem);
        TaskMeasures::unit(measure).or_else(|| TaskMeasures::unit(stem))
    };
    of_run().or_else(of_task).unwrap_or_else(|| Unit::of_name(measure))
}

/// The scheduler's name as in a study: `linux-6.12:FIFO` if a model's tasks got another policy.
pub fn scheduler_label(run: &RunResult) -> String {
    match run.parameters.get("policy") {
        Some(policy) if run.lane == LaneKind::Sim => format!("{}:{policy}", run.scheduler),
        _ => run.scheduler.clone(),
    }
}

/// Value of a dimension; empty if the run has none.
pub fn dimension(run: &RunResult, name: &str) -> String {
    match (name, run.parameters.get(name)) {
        ("lane", _) => run.lane.to_string(),
        ("scheduler", _) => scheduler_label(run),
        ("workload", _) => run.workload.clone(),
        ("seed", _) => run.seed.to_string(),
        (_, Some(value)) => value.clone(),
        ("cpus", None) => run.machine.nr_cpus.to_string(),
        _ => String::new(),
    }
}

/// A dimension's value on an axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AxisValue {
    /// The number; a time is in nanoseconds.
    pub number: f64,
    /// Whether it is a time.
    pub is_time: bool,
}

/// Reads the value as a number, or as a time with its unit.
pub fn axis_value(text: &str) -> Option<AxisValue> {
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some(AxisValue { number, is_time: false });
    }
    let ns = schedlab_workload::units::parse_duration(text).ok()?;
    Some(AxisValue { number: ns as f64, is_time: true })
}

/// All dimensions of a run except the seed. Repetitions have equal ones.
pub fn condition(run: &RunResult) -> BTreeMap<String, String> {
    let mut all = run.parameters.clone();
    for name in ["lane", "scheduler", "workload", "cpus"] {
        all.insert(name.into(), dimension(run, name));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::Distribution;

    fn value(measures: &RunMeasures, name: &str) -> Option<f64> {
        measure_values(measures).into_iter().find(|(known, _)| known == name).unwrap().1
    }

    #[test]
    fn measures_have_the_names_of_the_json() {
        let names = measure_names();
        for name in MEASURES_DEFAULT.iter().chain(&["makespan_ns", "slice_ns_max", "wait_count"]) {
            assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
        }
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len(), "a name stands for one measure");
    }

    #[test]
    fn units_are_those_that_measures_declare() {
        for (name, wanted) in [
            ("run_delay_ns_p99", "ns"),
            ("wait_count", "count"),
            ("throughput_per_s", "1/s"),
            ("nr_lock_waits", "count"),
            ("cpu_share_median", "1"),
            ("sleep_ns_q1", "ns"),
            ("frames_per_s", "1/s"),
            ("pass_ns", "ns"),
        ] {
            assert_eq!(unit(name), wanted, "{name}");
        }
        assert!(is_time("run_delay_ns_p99") && !is_time("throughput_per_s"));
    }

    #[test]
    fn what_did_not_happen_has_no_value() {
        let mut measures = RunMeasures::default();
        measures.totals.nr_switches = 4;
        for absent in ["turnaround_ns_mean", "turnaround_ns_p99", "turnaround_count", "makespan_ns"]
        {
            assert_eq!(value(&measures, absent), None, "{absent}");
        }
        assert_eq!(value(&measures, "nr_switches"), Some(4.0));
        measures.totals.turnaround.count = Some(0);
        assert_eq!(value(&measures, "turnaround_count"), Some(0.0));
        measures.totals.turnaround =
            Distribution { count: Some(1), ns_p99: Some(7), ..Default::default() };
        measures.totals.turnaround_ns_mean = Some(5);
        assert_eq!(value(&measures, "turnaround_ns_p99"), Some(7.0));
        assert_eq!(value(&measures, "turnaround_ns_mean"), Some(5.0));
    }

    #[test]
    fn numbers_and_times_can_stand_on_an_axis() {
        let value = |text| axis_value(text).map(|value| (value.number, value.is_time));
        assert_eq!(value("4"), Some((4.0, false)));
        assert_eq!(value("10ms"), Some((1e7, true)));
        assert_eq!(value("rr").or(value("NaN")).or(value("")), None);
    }

    #[test]
    fn a_models_policy_belongs_to_its_name() {
        let mut run =
            RunResult { lane: LaneKind::Sim.into(), scheduler: "x".into(), ..Default::default() };
        run.parameters.insert("policy".into(), "RR".into());
        assert_eq!(dimension(&run, "scheduler"), "x:RR");
        run.lane = LaneKind::Host.into();
        assert_eq!(dimension(&run, "scheduler"), "x");
        assert_eq!((dimension(&run, "cpus"), dimension(&run, "n")), ("0".into(), "".into()));
    }
}
