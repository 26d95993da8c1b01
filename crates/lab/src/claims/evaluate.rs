// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes a number with its interval from runs.
//!
//! Every measure in an expression is a sample: one value for each run, over runs that differ only
//! in the repetition. The number is the expression of the samples' means. Its interval comes from
//! error propagation to the first order. The variance is the sum of each mean's variance times the
//! square of the expression's derivative (by central differences). The degrees of freedom are those
//! of Welch and Satterthwaite, the quantile is Student's (Welch, Biometrika 34, 1947; NIST/SEMATECH
//! e-Handbook, 2.5.5). So repetitions need not be paired, and three are enough for an honest, wide
//! interval. The method assumes independent repetitions and a smooth expression. If `max` or `min`
//! has two equal best candidates, it is only approximate.
//!
//! Simulated runs, and runs in counted time, repeat to the last bit. One such run is exact and
//! needs no interval.

use super::bounds::{Bounds, Lies};
use super::derived::{DERIVED, Derived};
use super::expression::{Expr, MeasureRef, Operator, Series, Unary};
use crate::plan::SHIFT;
use schedlab_metrics::{Measures, TaskMeasures, stats};
use schedlab_run::place::unknown;
use schedlab_run::{Code, LaneKind, RunResult, StudyError, expect, values};
use std::collections::{BTreeMap, BTreeSet};

/// The runs of one row.
#[derive(Clone, Debug)]
pub struct Scope<'r> {
    /// Runs with the row's experiments, lane and scheduler.
    pub runs: Vec<&'r RunResult>,
    /// The value of `all`.
    pub nr_cpus: u32,
}

/// A number computed from some runs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Found {
    /// The number.
    pub value: f64,
    /// Its 95 % confidence interval; `None` if it is exact, or if there are too few runs.
    pub ci95: Option<[f64; 2]>,
    /// Whether all its runs repeat to the last bit, so that the number is certain.
    pub is_exact: bool,
    /// Number of runs.
    pub nr_runs: usize,
    /// Disturbed runs: other load used the CPUs. Holds the first warning.
    pub disturbed: Option<Disturbed>,
}

impl Found {
    /// The mean of some runs' values, with Student's interval.
    pub fn mean(values: &[f64]) -> Self {
        let mean = stats::mean(values);
        let half = stats::ci95_half_width(values);
        Self {
            value: mean,
            ci95: half.map(|half| [mean - half, mean + half]),
            nr_runs: values.len(),
            ..Self::default()
        }
    }

    /// How the whole interval relates to the bounds; `None` if there are too few runs for an
    /// interval.
    pub fn lies(&self, bounds: Bounds) -> Option<Lies> {
        let [low, high] = if self.is_exact { [self.value; 2] } else { self.ci95? };
        Some(bounds.lie(low, high))
    }
}

/// Runs that shared their CPUs with other load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disturbed {
    /// Number of such runs.
    pub nr_runs: usize,
    /// The warning of the first one.
    pub text: String,
}

/// Warnings that other processes or the hypervisor used a run's CPUs.
const DISTURBED: [Code; 2] = [Code::OtherLoad, Code::Steal];

fn disturbance(run: &RunResult) -> Option<&str> {
    let warning = run.warnings.iter().find(|one| DISTURBED.contains(&one.code))?;
    Some(&warning.text)
}

/// Whether other processes or the hypervisor used the run's CPUs.
pub(crate) fn is_disturbed(run: &RunResult) -> bool {
    disturbance(run).is_some()
}

/// Values of a measure, one for each run.
struct Sample {
    values: Vec<f64>,
    is_exact: bool,
    /// Warnings of the disturbed runs.
    disturbances: Vec<String>,
}

/// An expression with samples in place of measures, and with series expanded.
enum Node {
    Number(f64),
    Sample(usize),
    Binary(Operator, Box<Node>, Box<Node>),
    Unary(Unary, Box<Node>),
    Series(Series, Vec<f64>, Vec<Node>),
}

/// Prefix of a scheduler's own counters: `counter.nr_promoted`.
const COUNTER: &str = "counter.";

/// Checks that a measure exists; `figures` are those of programs. A scheduler's counters are known
/// only when it runs.
pub(super) fn check_measure(measure: &MeasureRef, figures: &[String]) -> Result<(), StudyError> {
    let of_task = measure.selectors.iter().any(|(name, _)| name == "task");
    if !of_task && measure.name.strip_prefix(COUNTER).is_some_and(|name| !name.is_empty()) {
        return Ok(());
    }
    let derived = DERIVED.iter().filter(|derived| derived.of_task == of_task);
    let mut known: Vec<String> = derived.map(|derived| derived.name.to_string()).collect();
    known.extend(if of_task { TaskMeasures::names() } else { values::measure_names() });
    known.extend(figures.iter().filter(|_| !of_task).cloned());
    let is_known = |name: &str| known.iter().any(|known| known == name);
    if is_known(&measure.name)
        || (of_task && expect::stem(&measure.name).is_some_and(|(stem, _)| is_known(stem)))
    {
        return Ok(());
    }
    let what = if of_task { "measure of a task" } else { "measure" };
    Err(unknown(what, &measure.name, known.iter().map(String::as_str)))
}

impl Scope<'_> {
    /// The number, or the reason why there is none.
    pub fn evaluate(&self, expr: &Expr) -> Result<Found, String> {
        self.evaluate_at(expr, &BTreeMap::new())
    }

    /// The number at these values of dimensions; a measure's own selectors override them.
    pub fn evaluate_at(&self, expr: &Expr, at: &BTreeMap<String, String>) -> Result<Found, String> {
        if self.runs.is_empty() {
            return Err("no run of it gave a result".into());
        }
        let mut reading = Reading { scope: self, samples: Vec::new(), known: BTreeMap::new() };
        let node = reading.resolve(expr, at)?;
        let samples = reading.samples;
        let means: Vec<f64> = samples.iter().map(|sample| stats::mean(&sample.values)).collect();
        let value = node.value(&means);
        if !value.is_finite() {
            return Err("the number is not finite: something is divided by 0".into());
        }
        let is_exact = samples.iter().all(|sample| sample.is_exact);
        let ci95 = if is_exact { None } else { interval(&node, &samples, &means, value) };
        let nr_runs = samples.iter().map(|sample| sample.values.len()).sum();
        let texts: Vec<&String> = samples.iter().flat_map(|sample| &sample.disturbances).collect();
        let first = texts.first().map(|text| (*text).clone());
        let disturbed = first.map(|text| Disturbed { nr_runs: texts.len(), text });
        Ok(Found { value, ci95, is_exact, nr_runs, disturbed })
    }
}

/// The 95 % interval; `None` if an inexact sample has a single value.
fn interval(node: &Node, samples: &[Sample], means: &[f64], value: f64) -> Option<[f64; 2]> {
    let mut variance = 0.0;
    let mut by_freedom = 0.0;
    for (index, sample) in samples.iter().enumerate().filter(|(_, sample)| !sample.is_exact) {
        let n = sample.values.len();
        if n < 2 {
            return None;
        }
        let deviation = stats::std_dev(&sample.values);
        let slope = derivative(node, means, index, deviation);
        let part = slope * slope * deviation * deviation / n as f64;
        variance += part;
        by_freedom += part * part / (n - 1) as f64;
    }
    if variance == 0.0 {
        return Some([value, value]);
    }
    let freedom = (variance * variance / by_freedom).floor().max(1.0);
    let half = stats::t_975(freedom as u64) * variance.sqrt();
    half.is_finite().then_some([value - half, value + half])
}

/// The derivative of the expression with respect to one mean.
fn derivative(node: &Node, means: &[f64], index: usize, deviation: f64) -> f64 {
    let step = (deviation * 1e-3).max(means[index].abs() * 1e-9);
    if step == 0.0 {
        return 0.0;
    }
    let at = |mean: f64| {
        let mut means = means.to_vec();
        means[index] = mean;
        node.value(&means)
    };
    (at(means[index] + step) - at(means[index] - step)) / (2.0 * step)
}

/// The number of one run. `None` if `read` has no value for a measure, or the expression has a
/// series.
pub(super) fn number_of(expr: &Expr, read: &dyn Fn(&MeasureRef) -> Option<f64>) -> Option<f64> {
    fn node(expr: &Expr, read: &dyn Fn(&MeasureRef) -> Option<f64>) -> Option<Node> {
        Some(match expr {
            Expr::Number(number) | Expr::Time(number) => Node::Number(*number),
            Expr::Measure(measure) => Node::Number(read(measure)?),
            Expr::Unary(unary, inner) => Node::Unary(*unary, Box::new(node(inner, read)?)),
            Expr::Binary(operator, left, right) => {
                Node::Binary(*operator, Box::new(node(left, read)?), Box::new(node(right, read)?))
            }
            Expr::Variable(_) | Expr::Series(..) => return None,
        })
    }
    node(expr, read).map(|node| node.value(&[]))
}

/// Turns measures into samples, each one once.
struct Reading<'s, 'r> {
    scope: &'s Scope<'r>,
    samples: Vec<Sample>,
    known: BTreeMap<MeasureRef, usize>,
}

impl Reading<'_, '_> {
    fn resolve(&mut self, expr: &Expr, bound: &BTreeMap<String, String>) -> Result<Node, String> {
        Ok(match expr {
            Expr::Number(number) | Expr::Time(number) => Node::Number(*number),
            Expr::Variable(name) => Node::Number(self.variable(name, bound)?),
            Expr::Measure(measure) => Node::Sample(self.sample(measure, bound)?),
            Expr::Unary(unary, inner) => Node::Unary(*unary, Box::new(self.resolve(inner, bound)?)),
            Expr::Binary(operator, left, right) => {
                let left = self.resolve(left, bound)?;
                Node::Binary(*operator, Box::new(left), Box::new(self.resolve(right, bound)?))
            }
            Expr::Series(series, dimension, inner) => {
                let values = self.values_of(dimension)?;
                let mut nodes = Vec::new();
                for (text, _) in &values {
                    let mut bound = bound.clone();
                    bound.insert(dimension.clone(), text.clone());
                    nodes.push(self.resolve(inner, &bound)?);
                }
                Node::Series(*series, values.into_iter().map(|value| value.1).collect(), nodes)
            }
        })
    }

    fn variable(&self, name: &str, bound: &BTreeMap<String, String>) -> Result<f64, String> {
        if name == "all" {
            return Ok(f64::from(self.scope.nr_cpus));
        }
        let text = bound.get(name).ok_or_else(|| format!("{name:?} has no value here"))?;
        let value = values::axis_value(text).ok_or_else(|| format!("{text:?} is no number"))?;
        Ok(value.number)
    }

    /// Every value of a dimension in the runs, ascending.
    fn values_of(&self, dimension: &str) -> Result<Vec<(String, f64)>, String> {
        let texts: BTreeSet<String> =
            self.scope.runs.iter().map(|run| values::dimension(run, dimension)).collect();
        let numbered = |(index, text): (usize, String)| {
            let number = values::axis_value(&text).map_or(index as f64, |value| value.number);
            (text, number)
        };
        let texts = texts.into_iter().filter(|text| !text.is_empty());
        let mut values: Vec<(String, f64)> = texts.enumerate().map(numbered).collect();
        values.sort_by(|a, b| a.1.total_cmp(&b.1));
        if values.len() < 2 {
            return Err(format!("the runs have fewer than two values of {dimension}"));
        }
        Ok(values)
    }

    fn sample(
        &mut self,
        measure: &MeasureRef,
        bound: &BTreeMap<String, String>,
    ) -> Result<usize, String> {
        let mut whole = measure.clone();
        for (name, value) in bound {
            if whole.selectors.iter().all(|(known, _)| known != name) {
                whole.selectors.push((name.clone(), value.clone()));
            }
        }
        if let Some(index) = self.known.get(&whole) {
            return Ok(*index);
        }
        let sample = self.read(&whole)?;
        self.samples.push(sample);
        self.known.insert(whole, self.samples.len() - 1);
        Ok(self.samples.len() - 1)
    }

    fn read(&self, measure: &MeasureRef) -> Result<Sample, String> {
        let task = measure.selectors.iter().find(|(name, _)| name == "task");
        let task = task.map(|(_, value)| value.as_str());
        let wanted: Vec<(&str, String)> = measure
            .selectors
            .iter()
            .filter(|(name, _)| name != "task")
            .map(|(name, value)| (name.as_str(), self.selected(value)))
            .collect();
        // Runs with shifted starts are only for pairs, unless a selector asks for them.
        let takes_shifted = wanted.iter().any(|(name, _)| *name == SHIFT);
        let fits = |run: &&&schedlab_run::RunResult| {
            (takes_shifted || !run.parameters.contains_key(SHIFT))
                && wanted.iter().all(|(name, value)| is_same(&values::dimension(run, name), value))
        };
        let runs: Vec<&RunResult> = self.scope.runs.iter().filter(fits).copied().collect();
        let Some(first) = runs.first() else {
            return Err(format!("no run of it gave a result: {measure}"));
        };
        one_condition(&runs, measure)?;
        let mut found = Vec::new();
        for run in &runs {
            found.push(value_of(run, &measure.name, task).ok_or_else(|| {
                let of = task.map_or_else(String::new, |task| format!(" of task {task}"));
                format!("a run has no {}{of}", measure.name)
            })?);
        }
        let is_exact = runs.len() == 1 && repeats_exactly(first);
        let disturbances = runs.iter().filter_map(|run| disturbance(run)).map(String::from);
        Ok(Sample { values: found, is_exact, disturbances: disturbances.collect() })
    }

    /// Evaluates a dimension's value in a selector: `all` and expressions with it.
    fn selected(&self, text: &str) -> String {
        crate::axis::last_value(text, self.scope.nr_cpus)
            .map_or_else(|| text.to_string(), |number| number.to_string())
    }
}

/// Whether a second run would give the same bits.
fn repeats_exactly(run: &RunResult) -> bool {
    run.lane == LaneKind::Sim || run.machine.setting("vm.clock") == Some("counted")
}

/// Whether two values are equal as text, numbers or times.
fn is_same(own: &str, wanted: &str) -> bool {
    own == wanted || values::axis_value(own).is_some_and(|v| Some(v) == values::axis_value(wanted))
}

/// Checks that the runs of one sample differ only in the repetition.
fn one_condition(runs: &[&RunResult], measure: &MeasureRef) -> Result<(), String> {
    let first = values::condition(runs[0]);
    for run in &runs[1..] {
        let own = values::condition(run);
        let names: BTreeSet<&String> = first.keys().chain(own.keys()).collect();
        if let Some(name) = names.into_iter().find(|name| first.get(*name) != own.get(*name)) {
            let value = |map: &BTreeMap<String, String>| map.get(name).cloned().unwrap_or_default();
            return Err(format!(
                "{measure} mixes runs with {name} = {:?} and {:?}: name one",
                value(&first),
                value(&own)
            ));
        }
    }
    Ok(())
}

/// A counter of a scheduler loaded in a guest.
fn counter(run: &RunResult, name: &str) -> Option<f64> {
    let is_it =
        |setting: &&schedlab_run::Setting| setting.name.strip_prefix("vm.counter.") == Some(name);
    run.machine.settings.iter().find(is_it)?.value.parse().ok()
}

/// A measure of a run, or of the tasks that `task` selects.
fn value_of(run: &RunResult, name: &str, task: Option<&str>) -> Option<f64> {
    if let (Some(name), None) = (name.strip_prefix(COUNTER), task) {
        return counter(run, name);
    }
    let is_derived = |derived: &&Derived| derived.name == name && derived.of_task == task.is_some();
    if let Some(derived) = DERIVED.iter().find(is_derived) {
        return (derived.value)(run, task.unwrap_or_default());
    }
    match task {
        None => values::run_value(run, name),
        Some(task) => {
            let tasks = run.measures.tasks.iter();
            let tasks: Vec<_> = tasks.filter(|known| is_named(&known.name, task)).collect();
            expect::number_of_tasks(&tasks, name)
        }
    }
}

/// Whether a task's name matches `pattern`; a final `*` matches any ending.
pub(super) fn is_named(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    }
}

impl Node {
    fn value(&self, means: &[f64]) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Sample(index) => means[*index],
            Self::Unary(unary, inner) => {
                let inner = inner.value(means);
                match unary {
                    Unary::Negate => -inner,
                    Unary::Abs => inner.abs(),
                    Unary::Sqrt => inner.sqrt(),
                    Unary::Ln => inner.ln(),
                }
            }
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.value(means), right.value(means));
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                    Operator::Min => left.min(right),
                    Operator::Max => left.max(right),
                }
            }
            Self::Series(series, xs, nodes) => {
                let ys: Vec<f64> = nodes.iter().map(|node| node.value(means)).collect();
                series.value(xs, &ys)
            }
        }
    }
}

impl Series {
    /// The number of a series with at least two values.
    fn value(self, xs: &[f64], ys: &[f64]) -> f64 {
        let least = ys.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = ys.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self {
            Self::Min => least,
            Self::Max => greatest,
            Self::Mean => stats::mean(ys),
            Self::Sum => ys.iter().sum(),
            Self::Spread => greatest / least - 1.0,
            Self::Slope => line(xs, ys).0,
            Self::R2 => line(xs, ys).1,
            Self::Rising => {
                let steps = ys.windows(2).filter(|pair| pair[1] >= pair[0]).count();
                steps as f64 / (ys.len() - 1) as f64
            }
        }
    }
}

/// Slope of the least-squares line, and the share of the variance that it explains; 1 if all values
/// are equal.
pub(super) fn line(xs: &[f64], ys: &[f64]) -> (f64, f64) {
    let (x_mean, y_mean) = (stats::mean(xs), stats::mean(ys));
    let products = xs.iter().zip(ys).map(|(x, y)| (x - x_mean) * (y - y_mean));
    let xx: f64 = xs.iter().map(|x| (x - x_mean) * (x - x_mean)).sum();
    let yy: f64 = ys.iter().map(|y| (y - y_mean) * (y - y_mean)).sum();
    let xy: f64 = products.sum();
    let explained = if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) };
    (xy / xx, explained)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_run::LaneKind::{Host, Sim, Vm};

    fn run(lane: LaneKind, n: u32, repetition: u32, switches: u64) -> RunResult {
        let mut run = RunResult { lane: lane.into(), repetition, ..RunResult::default() };
        run.parameters.insert("n".into(), n.to_string());
        run.measures.totals.nr_switches = switches;
        run
    }

    fn evaluate(runs: &[RunResult], text: &str) -> Result<Found, String> {
        let scope = Scope { runs: runs.iter().collect(), nr_cpus: 4 };
        scope.evaluate(&Expr::parse(text).unwrap())
    }

    #[test]
    fn a_simulated_run_is_exact() {
        let runs = [run(Sim, 1, 0, 10), run(Sim, 2, 0, 25)];
        let found = evaluate(&runs, "nr_switches[n=2] / nr_switches[n=1]").unwrap();
        assert_eq!((found.value, found.ci95, found.is_exact, found.nr_runs), (2.5, None, true, 2));
        assert_eq!(found.disturbed, None);
        let found = evaluate(&runs, "max(n: nr_switches / n) + all").unwrap();
        assert_eq!(found.value, 16.5);
        assert_eq!(evaluate(&runs, "slope(n: nr_switches)").unwrap().value, 15.0);
        assert!(evaluate(&runs, "nr_switches[n=all-2]").is_err());
    }

    #[test]
    fn a_run_in_counted_time_is_exact_and_has_counters() {
        let mut guest = run(Vm, 1, 0, 10);
        let setting = |name: &str, value: &str| schedlab_run::Setting {
            name: name.into(),
            value: value.into(),
        };
        guest.machine.settings.push(setting("vm.counter.nr_moved", "7"));
        assert!(!evaluate(std::slice::from_ref(&guest), "nr_switches").unwrap().is_exact);
        guest.machine.settings.push(setting("vm.clock", "counted"));
        let runs = [guest];
        assert!(evaluate(&runs, "nr_switches").unwrap().is_exact);
        assert_eq!(evaluate(&runs, "counter.nr_moved / nr_switches").unwrap().value, 0.7);
        assert!(evaluate(&runs, "counter.nr_none").unwrap_err().contains("counter.nr_none"));
        let counter = |text: &str| check_measure(Expr::parse(text).unwrap().measures()[0], &[]);
        assert!(counter("counter.nr_any[n=1]").is_ok());
        assert!(counter("counter.nr_any[task=a]").is_err(), "tasks have none");
    }

    /// The interval of a ratio of two means, 30 / 10, with deviations 1 and 2 and 3 values each.
    /// Variance: 9 * (1 / (3 * 900) + 4 / (3 * 900) ...), computed by hand below.
    #[test]
    fn the_interval_of_a_ratio_is_that_of_error_propagation() {
        let mut runs = Vec::new();
        for (index, (a, b)) in [(28, 9), (30, 10), (32, 11)].into_iter().enumerate() {
            runs.push(run(Host, 1, index as u32, b));
            runs.push(run(Host, 2, index as u32, a));
        }
        let found = evaluate(&runs, "nr_switches[n=2] / nr_switches[n=1]").unwrap();
        // d/da = 1/10, d/db = -3/10; variances of the means 4/3 and 1/3.
        let parts = [4.0 / 3.0 / 100.0, 9.0 / 100.0 / 3.0];
        let variance: f64 = parts.iter().sum();
        let freedom = variance * variance / parts.iter().map(|p| p * p / 2.0).sum::<f64>();
        let half = stats::t_975(freedom.floor() as u64) * variance.sqrt();
        let [low, high] = found.ci95.unwrap();
        assert_eq!((found.value, found.is_exact), (3.0, false));
        assert!((high - low - 2.0 * half).abs() < 1e-6, "{low} {high} {half}");
    }

    #[test]
    fn one_measured_run_has_no_interval() {
        let found = evaluate(&[run(Host, 1, 0, 10)], "nr_switches").unwrap();
        assert_eq!((found.ci95, found.is_exact), (None, false));
        let equal = [run(Host, 1, 0, 10), run(Host, 1, 1, 10)];
        assert_eq!(evaluate(&equal, "nr_switches").unwrap().ci95, Some([10.0, 10.0]));
    }

    #[test]
    fn runs_of_several_conditions_are_no_sample() {
        let runs = [run(Sim, 1, 0, 10), run(Sim, 2, 0, 25)];
        let error = evaluate(&runs, "nr_switches").unwrap_err();
        assert!(error.contains("n = \"1\" and \"2\""), "{error}");
        assert!(evaluate(&runs, "nr_switches[n=3]").unwrap_err().contains("no run"));
        assert!(evaluate(&runs, "1 / (nr_switches[n=1] - 10)").unwrap_err().contains("finite"));
    }

    #[test]
    fn tasks_are_chosen_by_name() {
        let mut one = run(Sim, 1, 0, 10);
        let task = |name: &str, cpu_time_ns| TaskMeasures {
            name: name.into(),
            cpu_time_ns,
            ..TaskMeasures::default()
        };
        one.measures.tasks = vec![task("a-0", 10), task("a-1", 30), task("b", 5)];
        let runs = [one];
        let value = |text| evaluate(&runs, text).map(|found| found.value);
        assert_eq!(value("cpu_time_ns[task=b]"), Ok(5.0));
        assert_eq!(value("cpu_time_ns_mean[task=a-*]"), Ok(20.0));
        assert!(value("cpu_time_ns[task=a-*]").unwrap_err().contains("no cpu_time_ns of task a-*"));
        assert!(value("cpu_time_ns_max[task=c]").is_err());
    }
}
