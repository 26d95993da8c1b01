// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the runs to a word.
//!
//! Runs of kernel and model are paired by their seed, which drew the same releases and sleeps for
//! both. A unit's deviation is the mean over the pairs, with Student's 95 % interval; a metric is
//! within if that interval of every unit is, outside if that of some unit is. Then the wrong models
//! and the knobs are looked at in the same way, and a metric that does not tell them from the
//! right model loses its word.

use super::file::{LaneSpec, Metric, Pair, Sweep, Tolerance, Validation, means};
use super::result::{
    Comparison, ControlResult, MetricResult, SweepPoint, SweepResult, UnitResult, ValidationResult,
    Verdict,
};
use super::slices::{self, Equal, Sequence};
use super::study::{Case, CaseRuns, ValidationStudy};
use super::values::{ALL_TASKS, deviation, limit, pooled, told, values};
use crate::ExperimentResult;
use crate::axis::Scalar;
use crate::claims::{Bounds, Found, Lies, Place, Reason};
use schedlab_metrics::stats;
use schedlab_run::{LaneKind, RunResult};
use std::collections::{BTreeMap, BTreeSet};

/// Runs of one seed.
#[derive(Clone, Copy)]
struct Both<'r> {
    kernel: &'r RunResult,
    model: &'r RunResult,
}

/// Runs by seed.
type BySeed<'r> = BTreeMap<u64, &'r RunResult>;

/// A metric over pairs of runs.
struct Measured {
    /// Signed mean deviations on the scale of averaging, by unit.
    deviations: BTreeMap<String, f64>,
    /// The same for people, the farthest first.
    units: Vec<UnitResult>,
    slices: Vec<Equal>,
    verdict: Verdict,
    reason: Option<Reason>,
}

impl Measured {
    /// The greatest deviation for people.
    fn worst(&self) -> f64 {
        self.units.first().map_or(0.0, |unit| unit.deviation)
    }
}

/// Compares all that was run; `results` are those of the study's experiments, in their order.
pub fn judge(
    validation: &Validation,
    made: &ValidationStudy<'_>,
    results: &[ExperimentResult],
) -> ValidationResult {
    let mut judge = Judge {
        validation,
        results,
        found: ValidationResult {
            name: validation.name.clone(),
            schedlab_version: env!("CARGO_PKG_VERSION").into(),
            comparisons: Vec::new(),
            controls: Vec::new(),
            sweeps: Vec::new(),
            missing: made.missing.clone(),
        },
    };
    for runs in &made.cases {
        for pair in &runs.pairs {
            judge.compare(runs, pair);
        }
    }
    judge.discriminate();
    judge.found
}

struct Judge<'a> {
    validation: &'a Validation,
    results: &'a [ExperimentResult],
    found: ValidationResult,
}

impl<'a> Judge<'a> {
    /// Runs of an experiment in a lane under a scheduler.
    fn runs(&self, experiment: usize, lane: LaneKind, scheduler: &str) -> BySeed<'a> {
        let place = Place { lane, scheduler: Some(scheduler.into()) };
        let runs = self.results.get(experiment).into_iter().flat_map(|result| &result.runs);
        runs.filter(|run| place.has(run)).map(|run| (run.seed, run)).collect()
    }

    fn compare(&mut self, runs: &CaseRuns<'_>, pair: &Pair) {
        let Case { workload, lane, nr_cpus } = runs.case;
        let scheduler = if lane.name == LaneKind::Vm { pair.kernel.as_str() } else { "OTHER" };
        let kernels = self.runs(runs.experiment, lane.name, scheduler);
        let both = both(&kernels, &self.runs(runs.experiment, LaneKind::Sim, &pair.model));
        let mut comparison = Comparison {
            lane: lane.name,
            kernel: pair.kernel.clone(),
            release: both.first().map_or("", |both| &both.kernel.machine.kernel).into(),
            model: pair.model.clone(),
            workload: workload.name.clone(),
            nr_cpus,
            nr_runs: both.len() as u64,
            metrics: Vec::new(),
        };
        if both.is_empty() {
            self.found.missing.push(format!("{}: it was not run", comparison.label()));
            return;
        }
        let disturbed = disturbed(lane, &both);
        for tolerance in self.tolerances(runs.case) {
            let measured = self.measure(tolerance, &both);
            let (verdict, reason) = match &disturbed {
                Some(_) => (Verdict::Inconclusive, disturbed.clone()),
                None => (measured.verdict, measured.reason),
            };
            comparison.metrics.push(MetricResult {
                metric: tolerance.name,
                verdict,
                reason,
                within: tolerance.within,
                units: measured.units,
                slices: measured.slices,
            });
        }
        self.found.comparisons.push(comparison);
        if disturbed.is_none() {
            self.controls(runs, pair, &kernels);
            self.sweeps(runs, pair, &kernels);
        }
    }

    /// Metrics of a case, in the order of the file.
    fn tolerances(&self, case: Case<'_>) -> impl Iterator<Item = &'a Tolerance> {
        let is_here = move |metric: Metric| {
            case.workload.metrics.contains(&metric) && metric.fits(case.nr_cpus)
        };
        self.validation.metrics.iter().filter(move |tolerance| is_here(tolerance.name))
    }

    fn measure(&self, tolerance: &Tolerance, both: &[Both<'_>]) -> Measured {
        let samples = match tolerance.name {
            Metric::Slices => self.slices(both),
            _ => Samples::of(tolerance, both),
        };
        samples.summary(tolerance)
    }

    fn slices(&self, both: &[Both<'_>]) -> Samples {
        let rule = &self.validation.slices;
        let mut samples = Samples::default();
        for pair in both {
            let kernel = Sequence::of(pair.kernel, rule);
            let model = Sequence::of(pair.model, rule);
            let equal = slices::compare(&kernel, &model, rule);
            let counts = (equal.nr_kernel as f64, equal.nr_model as f64);
            samples.add(ALL_TASKS, counts, 1.0 - equal.part());
            samples.slices.push(equal);
        }
        samples
    }

    fn controls(&mut self, runs: &CaseRuns<'_>, pair: &Pair, kernels: &BySeed<'_>) {
        for (control, experiment) in &runs.controls {
            let both = both(kernels, &self.runs(*experiment, LaneKind::Sim, &control.model));
            let Some(tolerance) = self.validation.tolerance(control.metric) else { continue };
            let model = control.label();
            if both.is_empty() {
                let name = format!("{} control {model}", runs.case.name());
                self.found.missing.push(format!("{name}: the wrong model was not run"));
                continue;
            }
            let measured = self.measure(tolerance, &both);
            self.found.controls.push(ControlResult {
                metric: control.metric,
                lane: runs.case.lane.name,
                nr_cpus: runs.case.nr_cpus,
                kernel: pair.kernel.clone(),
                workload: control.workload.clone(),
                model,
                why: control.why.clone(),
                deviation: measured.worst(),
                is_rejected: measured.verdict == Verdict::Outside,
            });
        }
    }

    fn sweeps(&mut self, runs: &CaseRuns<'_>, pair: &Pair, kernels: &BySeed<'_>) {
        let is_its = |(sweep, _): &&(&Sweep, Vec<usize>)| means(&sweep.models, &pair.model);
        for (sweep, experiments) in runs.sweeps.iter().filter(is_its) {
            let points: Vec<(&Scalar, Vec<Both<'_>>)> = sweep
                .values
                .iter()
                .zip(experiments)
                .map(|(value, at)| {
                    (value, both(kernels, &self.runs(*at, LaneKind::Sim, &pair.model)))
                })
                .filter(|(_, both)| !both.is_empty())
                .collect();
            for metric in runs.case.swept(sweep).filter(|_| !points.is_empty()) {
                let Some(tolerance) = self.validation.tolerance(metric) else { continue };
                let swept = self.swept(runs.case, pair, (sweep, tolerance), &points);
                self.found.sweeps.push(swept);
            }
        }
    }

    fn swept(
        &self,
        case: Case<'_>,
        pair: &Pair,
        (sweep, tolerance): (&Sweep, &Tolerance),
        runs: &[(&Scalar, Vec<Both<'_>>)],
    ) -> SweepResult {
        let mut points = Vec::new();
        let mut by_unit: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (value, both) in runs {
            let measured = self.measure(tolerance, both);
            points.push(SweepPoint { value: value.to_string(), deviation: measured.worst() });
            for (unit, deviation) in measured.deviations {
                by_unit.entry(unit).or_default().push(deviation);
            }
        }
        let range = |values: &Vec<f64>| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            greatest - least
        };
        SweepResult {
            metric: tolerance.name,
            lane: case.lane.name,
            nr_cpus: case.nr_cpus,
            kernel: pair.kernel.clone(),
            workload: sweep.workload.clone(),
            knob: sweep.knob.clone(),
            points,
            moves: by_unit.values().any(|values| range(values) > limit(tolerance)),
        }
    }

    /// Takes the word from metrics that accept a wrong model, or that nothing moves.
    fn discriminate(&mut self) {
        let ValidationResult { comparisons, controls, sweeps, .. } = &mut self.found;
        for comparison in comparisons {
            for found in &mut comparison.metrics {
                let is_same = |metric: Metric, lane: LaneKind, nr_cpus: u32, kernel: &str| {
                    metric == found.metric
                        && lane == comparison.lane
                        && nr_cpus == comparison.nr_cpus
                        && kernel == comparison.kernel
                };
                let wrong: Vec<&ControlResult> = controls
                    .iter()
                    .filter(|c| is_same(c.metric, c.lane, c.nr_cpus, &c.kernel))
                    .collect();
                let knobs: Vec<&SweepResult> = sweeps
                    .iter()
                    .filter(|s| is_same(s.metric, s.lane, s.nr_cpus, &s.kernel))
                    .collect();
                let reason = doubt(&wrong, &knobs);
                if let Some(reason) = reason.filter(|_| found.verdict == Verdict::Within) {
                    found.verdict = Verdict::DoesNotDiscriminate;
                    found.reason = Some(reason);
                }
            }
        }
    }
}

/// Why agreement of a metric says nothing.
fn doubt(controls: &[&ControlResult], sweeps: &[&SweepResult]) -> Option<Reason> {
    if controls.is_empty() {
        return Some(Reason::NoWrongModel);
    }
    if let Some(accepted) = controls.iter().find(|control| !control.is_rejected) {
        let ControlResult { model, workload, .. } = accepted;
        return Some(Reason::Accepts { model: model.clone(), workload: workload.clone() });
    }
    if sweeps.is_empty() {
        return Some(Reason::NoKnob);
    }
    let SweepResult { knob, workload, .. } = sweeps.iter().find(|sweep| !sweep.moves)?;
    Some(Reason::DoesNotMove { knob: knob.clone(), workload: workload.clone() })
}

/// Runs of kernel and model with one seed.
fn both<'r>(kernels: &BySeed<'r>, models: &BySeed<'r>) -> Vec<Both<'r>> {
    let pair = |(seed, kernel): (&u64, &&'r RunResult)| {
        models.get(seed).map(|model| Both { kernel, model })
    };
    kernels.iter().filter_map(pair).collect()
}

/// What others used of the machine, if it is too much to compare anything.
fn disturbed(lane: &LaneSpec, both: &[Both<'_>]) -> Option<Reason> {
    let least = lane.cpu_time_least?;
    let sum = |of: fn(&Both<'_>) -> u64| both.iter().map(of).sum::<u64>() as f64;
    let kernel = sum(|both| both.kernel.measures.totals.cpu_time_ns);
    let model = sum(|both| both.model.measures.totals.cpu_time_ns);
    let part = kernel / model.max(1.0);
    (part < least).then_some(Reason::Crowded { percent: (part * 100.0).round_ties_even() as u32 })
}

/// Deviations by unit, one a pair of runs.
#[derive(Default)]
struct Samples {
    units: BTreeMap<String, Sample>,
    /// Units that only one of two runs has.
    alone: BTreeSet<String>,
    slices: Vec<Equal>,
}

#[derive(Default)]
struct Sample {
    kernel: Vec<f64>,
    model: Vec<f64>,
    deviations: Vec<f64>,
}

impl Samples {
    fn of(tolerance: &Tolerance, both: &[Both<'_>]) -> Self {
        let runs: Vec<&RunResult> =
            both.iter().flat_map(|both| [both.kernel, both.model]).collect();
        let pooled = pooled(&runs);
        let mut samples = Self::default();
        for pair in both {
            let kernel = values(tolerance.name, pair.kernel, &pooled);
            let model = values(tolerance.name, pair.model, &pooled);
            for unit in kernel.keys().chain(model.keys()) {
                if kernel.contains_key(unit) != model.contains_key(unit) {
                    samples.alone.insert(unit.clone());
                }
            }
            for (unit, own) in &kernel {
                let Some(other) = model.get(unit) else { continue };
                samples.add(unit, (*own, *other), deviation(tolerance, *own, *other));
            }
        }
        samples
    }

    fn add(&mut self, unit: &str, (kernel, model): (f64, f64), deviation: f64) {
        let sample = self.units.entry(unit.to_string()).or_default();
        sample.kernel.push(kernel);
        sample.model.push(model);
        sample.deviations.push(deviation);
    }

    fn summary(self, tolerance: &Tolerance) -> Measured {
        let metric = tolerance.name;
        let bounds = Bounds::about_zero(limit(tolerance));
        let mut measured = Measured {
            deviations: BTreeMap::new(),
            units: Vec::new(),
            slices: self.slices,
            verdict: Verdict::Within,
            reason: None,
        };
        let mut is_outside = false;
        for (unit, sample) in self.units {
            let found = Found::mean(&sample.deviations);
            let (Some(lies), Some([low, high])) = (found.lies(bounds), found.ci95) else {
                measured.reason = Some(Reason::OnePair { unit });
                continue;
            };
            match lies {
                Lies::Within => {}
                Lies::Outside => is_outside = true,
                Lies::Across => measured.reason = Some(Reason::ToleranceAcross(unit.clone())),
            }
            measured.deviations.insert(unit.clone(), found.value);
            measured.units.push(UnitResult {
                unit,
                kernel: stats::mean(&sample.kernel),
                model: stats::mean(&sample.model),
                deviation: told(metric, found.value),
                ci95: distances(low, high).map(|distance| told(metric, distance)),
            });
        }
        if let Some(unit) = self.alone.into_iter().next() {
            measured.reason = Some(Reason::NotInBoth { unit });
        }
        if measured.units.is_empty() {
            measured.reason.get_or_insert(Reason::NoTask);
        }
        measured.units.sort_by(|a, b| b.deviation.total_cmp(&a.deviation));
        if is_outside {
            measured.verdict = Verdict::Outside;
            measured.reason = None;
        } else if measured.reason.is_some() {
            measured.verdict = Verdict::Inconclusive;
        }
        measured
    }
}

/// Least and greatest distance from 0 in an interval.
fn distances(low: f64, high: f64) -> [f64; 2] {
    let (a, b) = (low.abs(), high.abs());
    let least = if low <= 0.0 && high >= 0.0 { 0.0 } else { a.min(b) };
    [least, a.max(b)]
}
