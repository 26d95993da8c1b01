// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a run met what its workload expects: `expect` of a workload file against the measures.
//!
//! Names are those of docs/reference/measures.md, read from the very types that hold the measures:
//! a number such as `nr_switches`; a number of a distribution, `wakeup_latency_ns_p99` (or with a
//! dot, `wakeup_latency.ns_p99`); and for a task, a number over all tasks of its description:
//! `turnaround_ns_mean`, `_min`, `_max`, `_sum`, and the quartiles `_q1`, `_median`, `_q3`. Values
//! are compared in millionths, so that a number in a file is compared as it is written. Left out:
//! expectations over several runs.

use schedlab_metrics::{RunMeasures, RunTotals, TaskMeasures};
use schedlab_model::{Comparison, Expectation, Subject, Workload};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What came of one expectation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expected {
    /// Name of the measure as the workload has it.
    pub measure: String,
    /// Task it is expected of; `None`: of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// `<`, `<=`, `==`, `>=` or `>`.
    pub comparison: String,
    /// What it is compared with.
    pub value: f64,
    /// What was measured; of several tasks the value that is furthest from what is expected.
    /// `None`: a task does not have the measure, or there is no such task.
    pub found: Option<f64>,
    /// The task with that value, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_in: Option<String>,
    /// Whether the expectation is met.
    pub holds: bool,
}

/// Numbers over all tasks of a description, by the end of the measure's name.
const OVER_TASKS: [&str; 7] = ["_mean", "_min", "_max", "_sum", "_q1", "_median", "_q3"];

/// How a measure is found.
enum Found {
    /// In the measures of one task or of the run.
    One(Option<i128>),
    /// No such measure, or no number.
    Unknown,
}

/// Checks that the measures that a workload names exist, before anything runs.
pub fn check(workload: &Workload) -> Result<(), String> {
    let task = to_value(&TaskMeasures::default());
    let run = to_value(&RunTotals::default());
    for expectation in &workload.expect {
        let measure = normal(&expectation.measure);
        let (values, of, over_tasks) = match expectation.subject {
            Subject::Total => (&run, "run", false),
            Subject::Task(_) => (&task, "task", true),
        };
        let known = |name: &str| !matches!(look_up(values, name), Found::Unknown);
        let stem = over_tasks.then(|| stem(&measure)).flatten();
        if known(&measure) || stem.is_some_and(|(stem, _)| known(stem)) {
            continue;
        }
        let names = names(values);
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

/// Compares the measures of a run with what its workload expects, in the workload's order.
pub fn evaluate(workload: &Workload, measures: &RunMeasures) -> Vec<Expected> {
    if workload.expect.is_empty() {
        return Vec::new();
    }
    let totals = to_value(&measures.totals);
    let one = |expectation: &Expectation| match &expectation.subject {
        Subject::Total => {
            let found = match look_up(&totals, &normal(&expectation.measure)) {
                Found::One(value) => value,
                Found::Unknown => None,
            };
            outcome(expectation, found, None)
        }
        Subject::Task(name) => of_tasks(workload, measures, expectation, name),
    };
    workload.expect.iter().map(one).collect()
}

/// An expectation of the tasks called `name`: instances and forks of a description, or one of them.
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
    let values = |name: &str| -> Option<Vec<Option<i128>>> {
        tasks
            .iter()
            .map(|task| match look_up(&to_value(task), name) {
                Found::One(value) => Some(value),
                Found::Unknown => None,
            })
            .collect()
    };
    if let Some(values) = values(&measure) {
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
        let values: Option<Vec<i128>> = values(stem)?.into_iter().collect();
        over(&values?, end)
    });
    outcome(expectation, over_all, None)
}

/// Whether a task without the measure, or with this one, is further from what is expected.
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

/// Names of all measures of a task.
pub fn task_measure_names() -> Vec<String> {
    names(&to_value(&TaskMeasures::default()))
}

/// A measure of one task, or one over several by the end of its name; `None` where a task lacks it
/// or it is no single number.
pub fn number_of_tasks(tasks: &[&TaskMeasures], name: &str) -> Option<f64> {
    let values = |name: &str| -> Option<Vec<i128>> {
        let value = |task: &&TaskMeasures| match look_up(&to_value(task), name) {
            Found::One(value) => value,
            Found::Unknown => None,
        };
        tasks.iter().map(value).collect()
    };
    let found = match values(name) {
        Some(found) if found.len() == 1 => Some(found[0]),
        _ => stem(name).and_then(|(stem, end)| over(&values(stem)?, end)),
    };
    found.map(from_millionths)
}

/// One number of several; `None` without any.
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

/// A quartile, between two values by linear interpolation (type 7 of Hyndman and Fan, The American
/// Statistician 50, 1996), as box plots of common programs have them.
fn quartile(values: &[i128], number: usize) -> Option<i128> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let quarters = sorted.len().checked_sub(1)? * number;
    let (index, rest) = (quarters / 4, (quarters % 4) as i128);
    let low = sorted[index];
    let high = sorted.get(index + 1).copied().unwrap_or(low);
    Some(low + (high - low) * rest / 4)
}

/// The name without the end that asks for a number over all tasks, and that end.
pub fn stem(measure: &str) -> Option<(&str, &'static str)> {
    OVER_TASKS.into_iter().find_map(|end| measure.strip_suffix(end).map(|stem| (stem, end)))
}

/// `wakeup_latency.ns_p99` as `wakeup_latency_ns_p99`.
fn normal(measure: &str) -> String {
    measure.replace('.', "_")
}

fn to_value(measures: &impl Serialize) -> Value {
    // Plain structs of numbers and strings always have a JSON form.
    serde_json::to_value(measures).unwrap_or_default()
}

/// The number called `name` in a set of measures, in millionths.
fn look_up(values: &Value, name: &str) -> Found {
    if let Some(value) = values.get(name)
        && !value.is_object()
    {
        return number(value);
    }
    let members = values.as_object().into_iter().flatten();
    let distributions = members.filter(|(_, value)| value.is_object());
    for (distribution, fields) in distributions {
        let field =
            name.strip_prefix(distribution.as_str()).and_then(|rest| rest.strip_prefix('_'));
        if let Some(value) = field.and_then(|field| fields.get(field)) {
            return number(value);
        }
    }
    Found::Unknown
}

fn number(value: &Value) -> Found {
    match value {
        Value::Null => Found::One(None),
        Value::Number(number) => {
            let whole = number.as_u64().map(i128::from).or(number.as_i64().map(i128::from));
            let millionths = whole.map(|whole| whole * 1_000_000);
            // Rounded: a share of 0.74 measured as 0.7399999996 is at least 0.74.
            let rounded = || number.as_f64().map(|float| (float * 1e6).round() as i128);
            Found::One(millionths.or_else(rounded))
        }
        _ => Found::Unknown,
    }
}

/// Every name that [`look_up`] finds.
fn names(values: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for (name, value) in values.as_object().into_iter().flatten() {
        match value {
            Value::Object(fields) => {
                names.extend(fields.keys().map(|field| format!("{name}_{field}")));
            }
            value if !matches!(number(value), Found::Unknown) => names.push(name.clone()),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::Distribution;
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
            cpu_share,
            wait: Distribution { count: 3, ns_max: 900, ..Distribution::default() },
            ..TaskMeasures::default()
        };
        let tasks = vec![
            task(0, "a-0", Some(100), 0.25),
            task(0, "a-1", Some(300), 0.2499999996),
            task(1, "b", None, 0.5),
        ];
        let totals = RunTotals {
            nr_switches: 7,
            jain_index: 0.9,
            run_delay: Distribution { count: 2, ns_p99: 50, ..Distribution::default() },
            ..RunTotals::default()
        };
        (workload, RunMeasures { totals, tasks })
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
