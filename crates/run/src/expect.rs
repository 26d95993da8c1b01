// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the measures of a run with `expect` of its workload file.
//!
//! Names are those of docs/reference/measures.md, as `schedlab_metrics` declares them: a number
//! such as `nr_switches`; or a number of a distribution, `wakeup_latency_ns_p99` (or with a dot,
//! `wakeup_latency.ns_p99`). For a task there are also numbers over all tasks of its description:
//! `turnaround_ns_mean`, `_min`, `_max`, `_sum`, and the quartiles `_q1`, `_median`, `_q3`. Values
//! are compared in millionths, so that a decimal number in a file is exact. Left out: expectations
//! over several runs.

use crate::values;
use schedlab_metrics::{Measures, Number, RunMeasures, TaskMeasures};
use schedlab_model::{Comparison, Expectation, Subject, Workload};
use serde::{Deserialize, Serialize};

/// The result of one expectation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expected {
    /// Name of the measure, as in the workload.
    pub measure: String,
    /// The task whose measure it is; `None`: the measure is one of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// `<`, `<=`, `==`, `>=` or `>`.
    pub comparison: String,
    /// The value that the measure is compared with.
    pub value: f64,
    /// The measured value. Of several tasks, the value that is furthest from the expected one.
    /// `None`: a task does not have the measure, or no such task exists.
    pub found: Option<f64>,
    /// The task with that value, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_in: Option<String>,
    /// Whether the expectation is met.
    pub holds: bool,
}

/// Ends of names of measures that mean a number over all tasks of a description.
const OVER_TASKS: [&str; 7] = ["_mean", "_min", "_max", "_sum", "_q1", "_median", "_q3"];

/// Checks that the measures in a workload's expectations exist, before it runs.
pub fn check(workload: &Workload) -> Result<(), String> {
    for expectation in &workload.expect {
        let measure = normal(&expectation.measure);
        let (names, of, over_tasks) = match expectation.subject {
            Subject::Total => (values::measure_names(), "run", false),
            Subject::Task(_) => (TaskMeasures::names(), "task", true),
        };
        let is_known = |name: &str| names.iter().any(|known| known == name);
        let stem = over_tasks.then(|| stem(&measure)).flatten();
        if is_known(&measure) || stem.is_some_and(|(stem, _)| is_known(stem)) {
            continue;
        }
        return Err(format!(
            "expectation of {:?}: no measure of a {of} is called so: allowed are {}{}",
            expectation.measure,
            names.join(", "),
            if over_tasks {
                ", and any of them with _mean, _min, _max, _sum, _q1, _median or _q3"
            } else {
                ""
            }
        ));
    }
    Ok(())
}

/// Compares the measures of a run with the workload's expectations, in the workload's order.
pub fn evaluate(workload: &Workload, measures: &RunMeasures) -> Vec<Expected> {
    if workload.expect.is_empty() {
        return Vec::new();
    }
    let one = |expectation: &Expectation| match &expectation.subject {
        Subject::Total => {
            let found = measures.number(&normal(&expectation.measure)).flatten();
            outcome(expectation, found.map(Number::millionths), None)
        }
        Subject::Task(name) => of_tasks(workload, measures, expectation, name),
    };
    workload.expect.iter().map(one).collect()
}

/// Evaluates an expectation of the tasks called `name`: all instances and forks of a description,
/// or one of them.
fn of_tasks(
    workload: &Workload,
    measures: &RunMeasures,
    expectation: &Expectation,
    name: &str,
) -> Expected {
    let measure = normal(&expectation.measure);
    let description = |task: &TaskMeasures| {
        task.spec.and_then(|spec| workload.tasks.get(spec as usize)).map(|spec| spec.name.as_str())
    };
    let tasks: Vec<&TaskMeasures> = measures
        .tasks
        .iter()
        .filter(|task| task.name == name || description(task) == Some(name))
        .collect();
    if let Some(values) = values_of(&tasks, &measure) {
        let named = values.into_iter().zip(&tasks);
        let mut worst: Option<(Option<i128>, &str)> = None;
        for (value, task) in named {
            if worst.is_none_or(|(known, _)| is_worse(expectation, value, known)) {
                worst = Some((value, &task.name));
            }
        }
        let (value, task) = worst.unzip();
        let task = task.filter(|_| tasks.len() > 1).map(String::from);
        return outcome(expectation, value.flatten(), task);
    }
    let over_all = stem(&measure).and_then(|(stem, end)| {
        let values: Option<Vec<i128>> = values_of(&tasks, stem)?.into_iter().collect();
        over(&values?, end)
    });
    outcome(expectation, over_all, None)
}

/// The measure of each of these tasks, in millionths. The outer `None`: there is no such measure.
fn values_of(tasks: &[&TaskMeasures], name: &str) -> Option<Vec<Option<i128>>> {
    let value = |task: &&TaskMeasures| Some(task.number(name)?.map(Number::millionths));
    tasks.iter().map(value).collect()
}

/// Whether a task with this value, or without the measure, is further from the expected value.
fn is_worse(expectation: &Expectation, value: Option<i128>, known: Option<i128>) -> bool {
    let (Some(value), Some(known)) = (value, known) else { return known.is_some() };
    match expectation.comparison {
        Comparison::Less | Comparison::AtMost => value > known,
        Comparison::AtLeast | Comparison::Greater => value < known,
        Comparison::Equal => {
            let wanted = expectation.value_millionths;
            (value - wanted).abs() > (known - wanted).abs()
        }
    }
}

fn outcome(expectation: &Expectation, found: Option<i128>, found_in: Option<String>) -> Expected {
    let wanted = expectation.value_millionths;
    Expected {
        measure: expectation.measure.clone(),
        task: match &expectation.subject {
            Subject::Total => None,
            Subject::Task(name) => Some(name.clone()),
        },
        comparison: expectation.comparison.sign().into(),
        value: from_millionths(wanted),
        found: found.map(from_millionths),
        found_in,
        holds: found.is_some_and(|found| expectation.comparison.holds(found, wanted)),
    }
}

fn from_millionths(value: i128) -> f64 {
    value as f64 / 1e6
}

/// A measure of one task, or one over several tasks, as the end of its name says. `None`: a task
/// lacks it, or it is not a single number.
pub fn number_of_tasks(tasks: &[&TaskMeasures], name: &str) -> Option<f64> {
    let values =
        |name: &str| -> Option<Vec<i128>> { values_of(tasks, name)?.into_iter().collect() };
    let found = match values(name) {
        Some(found) if found.len() == 1 => Some(found[0]),
        _ => stem(name).and_then(|(stem, end)| over(&values(stem)?, end)),
    };
    found.map(from_millionths)
}

/// One number over several values; `None` without values.
fn over(values: &[i128], end: &str) -> Option<i128> {
    let sum: i128 = values.iter().sum();
    match end {
        "_min" => values.iter().copied().min(),
        "_max" => values.iter().copied().max(),
        "_sum" => Some(sum),
        "_q1" => quartile(values, 1),
        "_median" => quartile(values, 2),
        "_q3" => quartile(values, 3),
        _ => (!values.is_empty()).then(|| sum / values.len() as i128),
    }
}

/// A quartile, with linear interpolation between two values (type 7 of Hyndman and Fan, The
/// American Statistician 50, 1996), as in box plots of common programs.
fn quartile(values: &[i128], number: usize) -> Option<i128> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let quarters = sorted.len().checked_sub(1)? * number;
    let (index, rest) = (quarters / 4, (quarters % 4) as i128);
    let low = sorted[index];
    let high = sorted.get(index + 1).copied().unwrap_or(low);
    Some(low + (high - low) * rest / 4)
}

/// Splits the name into the measure and the end that means a number over all tasks.
pub fn stem(measure: &str) -> Option<(&str, &'static str)> {
    OVER_TASKS.into_iter().find_map(|end| measure.strip_suffix(end).map(|stem| (stem, end)))
}

/// Turns `wakeup_latency.ns_p99` into `wakeup_latency_ns_p99`.
fn normal(measure: &str) -> String {
    measure.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::{Distribution, RunTotals};
    use schedlab_model::TaskSpec;
    use schedlab_model::program::ProgramBuilder;

    fn expectation(task: &str, measure: &str, comparison: Comparison, value: f64) -> Expectation {
        Expectation {
            subject: match task {
                "" => Subject::Total,
                task => Subject::Task(task.into()),
            },
            measure: measure.into(),
            comparison,
            value_millionths: (value * 1e6).round() as i128,
        }
    }

    fn measured() -> (Workload, RunMeasures) {
        let spec = |name: &str| TaskSpec::new(name, ProgramBuilder::new().run(1).build());
        let workload = Workload::new("w", vec![spec("a"), spec("b")]);
        let task = |spec, name: &str, turnaround_ns, cpu_share| TaskMeasures {
            spec: Some(spec),
            name: name.into(),
            turnaround_ns,
            cpu_share: Some(cpu_share),
            wait: Distribution { count: Some(3), ns_max: Some(900), ..Distribution::default() },
            ..TaskMeasures::default()
        };
        let tasks = vec![
            task(0, "a-0", Some(100), 0.25),
            task(0, "a-1", Some(300), 0.2499999996),
            task(1, "b", None, 0.5),
        ];
        let totals = RunTotals {
            nr_switches: 7,
            jain_index: Some(0.9),
            run_delay: Distribution { count: Some(2), ns_p99: Some(50), ..Distribution::default() },
            ..RunTotals::default()
        };
        (workload, RunMeasures { totals, model: None, tasks })
    }

    fn holds(task: &str, measure: &str, comparison: Comparison, value: f64) -> bool {
        let (mut workload, measures) = measured();
        workload.expect = vec![expectation(task, measure, comparison, value)];
        check(&workload).unwrap();
        evaluate(&workload, &measures)[0].holds
    }

    #[test]
    fn measures_are_found_by_their_names() {
        use Comparison::*;
        assert!(holds("", "nr_switches", Equal, 7.0));
        assert!(!holds("", "nr_switches", Less, 7.0));
        assert!(holds("", "jain_index", AtLeast, 0.9));
        assert!(holds("", "run_delay_ns_p99", AtMost, 50.0));
        assert!(holds("", "run_delay.ns_p99", AtMost, 50.0));
        assert!(holds("a", "wait_ns_max", Equal, 900.0));
        assert!(holds("a", "wait_count_sum", Equal, 6.0));
        assert!(holds("a", "turnaround_ns_mean", Equal, 200.0));
        assert!(holds("a", "turnaround_ns_max", Greater, 299.0));
        assert!(holds("a-1", "turnaround_ns", Equal, 300.0));
    }

    #[test]
    fn every_task_must_meet_it_and_the_worst_is_shown() {
        use Comparison::*;
        assert!(holds("a", "cpu_share", AtLeast, 0.25), "rounded to the sixth place");
        assert!(!holds("a", "turnaround_ns", AtMost, 200.0));
        let (mut workload, measures) = measured();
        workload.expect = vec![expectation("a", "turnaround_ns", AtMost, 200.0)];
        let outcome = &evaluate(&workload, &measures)[0];
        assert_eq!((outcome.found, outcome.found_in.as_deref()), (Some(300.0), Some("a-1")));
    }

    #[test]
    fn what_did_not_happen_meets_nothing() {
        use Comparison::*;
        for comparison in Comparison::ALL {
            assert!(!holds("b", "turnaround_ns", comparison, 0.0));
            assert!(!holds("b", "turnaround_ns_mean", comparison, 0.0));
        }
        let (mut workload, mut measures) = measured();
        measures.tasks.truncate(2);
        workload.expect = vec![expectation("b", "nr_wakeups", AtMost, 5.0)];
        assert!(!evaluate(&workload, &measures)[0].holds, "no such task ran");
    }

    /// A mean of nothing and a counter that the lane does not have are no 0.
    #[test]
    fn what_a_run_does_not_have_meets_nothing() {
        for measure in ["turnaround_ns_mean", "nr_interrupts", "wakeup_latency.ns_max"] {
            assert!(!holds("", measure, Comparison::AtMost, 5.0), "{measure}");
        }
        let (mut workload, mut measures) = measured();
        measures.model = Some(Default::default());
        workload.expect = vec![expectation("", "nr_interrupts", Comparison::AtMost, 5.0)];
        assert!(evaluate(&workload, &measures)[0].holds, "a measured 0");
    }

    #[test]
    fn unknown_measures_are_refused_before_the_run() {
        let (mut workload, _) = measured();
        for (task, measure) in [
            ("", "turnaround"),
            ("", "nr_progress"),
            ("a", "name"),
            ("a", "ns_mean"),
            ("", "x_sum"),
        ] {
            workload.expect = vec![expectation(task, measure, Comparison::Equal, 0.0)];
            let error = check(&workload).unwrap_err();
            assert!(error.contains(&format!("{measure:?}")), "{error}");
            assert!(error.contains("wakeup_latency_ns_p99"), "{error}");
        }
    }
    #[test]
    fn quartiles_lie_between_values() {
        let (_, measures) = measured();
        let two: Vec<&TaskMeasures> = measures.tasks.iter().take(2).collect();
        let of = |end: &str| number_of_tasks(&two, &format!("turnaround_ns_{end}"));
        assert_eq!([of("q1"), of("median"), of("q3")], [Some(150.0), Some(200.0), Some(250.0)]);
        assert_eq!(quartile(&[7], 3), Some(7));
        assert_eq!(quartile(&[5, 1, 3, 9, 7], 1), Some(3));
        assert_eq!(quartile(&[], 2), None);
    }
}
