// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the runs to a word.
//!
//! Runs of kernel and model are paired by their seed, which drew the same releases and sleeps for
//! both. A unit's deviation is the mean over the pairs, with Student's 95 % interval; a metric is
//! within if that interval of every unit is, outside if that of some unit is. Then the wrong models
//! and the knobs are looked at in the same way, and a metric that does not tell them from the
//! right model loses its word.

use super::file::{LaneSpec, Metric, Pair, Sweep, Tolerance, Validation};
use super::result::{
    Comparison, ControlResult, MetricResult, SweepPoint, SweepResult, UnitResult, ValidationResult,
    Verdict,
};
use super::slices::{self, Equal, Sequence};
use super::study::{Place, Wanted, has_control, model_of, swept};
use super::values::{ALL_TASKS, deviation, limit, pooled, told, values};
use crate::ExperimentResult;
use schedlab_metrics::stats;
use schedlab_run::RunResult;
use std::collections::{BTreeMap, BTreeSet};

/// Runs of one seed.
#[derive(Clone, Copy)]
struct Both<'r> {
    kernel: &'r RunResult,
    model: &'r RunResult,
}

/// A metric over pairs of runs.
struct Measured {
    /// Signed mean deviations on the scale of averaging, by unit.
    deviations: BTreeMap<String, f64>,
    /// The same for people, the farthest first.
    units: Vec<UnitResult>,
    slices: Vec<Equal>,
    verdict: Verdict,
    reason: String,
}

impl Measured {
    /// The greatest deviation for people.
    fn worst(&self) -> f64 {
        self.units.first().map_or(0.0, |unit| unit.deviation)
    }
}

/// Compares everything that is wanted and was run.
pub fn judge(
    validation: &Validation,
    wanted: &Wanted,
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
            missing: Vec::new(),
        },
    };
    for place in validation.places(wanted) {
        for pair in validation.pairs_in(place.lane, wanted) {
            judge.compare(place, pair);
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
    /// Runs of an experiment in a lane under a scheduler, by seed.
    fn runs(&self, experiment: &str, lane: &str, scheduler: &str) -> BTreeMap<u64, &'a RunResult> {
        let named = self.results.iter().filter(|result| result.experiment.name == experiment);
        named
            .flat_map(|result| &result.runs)
            .filter(|run| run.lane == lane && run.scheduler == scheduler)
            .map(|run| (run.seed, run))
            .collect()
    }

    fn compare(&mut self, place: Place<'_>, pair: &Pair) {
        let lane = place.lane;
        let scheduler = if lane.name == "vm" { pair.kernel.as_str() } else { "OTHER" };
        let kernels = self.runs(&place.name(), &lane.name, scheduler);
        let models = self.runs(&place.name(), "sim", &pair.model);
        let both = both(&kernels, &models);
        let mut comparison = Comparison {
            lane: lane.name.clone(),
            kernel: pair.kernel.clone(),
            release: both.first().map_or("", |both| &both.kernel.machine.kernel).into(),
            model: pair.model.clone(),
            workload: place.workload.name.clone(),
            nr_cpus: place.nr_cpus,
            nr_runs: both.len() as u64,
            metrics: Vec::new(),
        };
        if both.is_empty() {
            self.found.missing.push(format!("{}: it was not run", comparison.label()));
            return;
        }
        let disturbed = disturbed(lane, &both);
        for metric in self.metrics(place) {
            let Some(tolerance) = self.validation.tolerance(metric) else { continue };
            let mut measured = self.measure(tolerance, &both);
            if let Some(reason) = &disturbed {
                measured.verdict = Verdict::CannotBeTold;
                measured.reason = reason.clone();
            }
            comparison.metrics.push(MetricResult {
                metric,
                verdict: measured.verdict,
                reason: measured.reason,
                within: tolerance.within,
                units: measured.units,
                slices: measured.slices,
            });
        }
        self.found.comparisons.push(comparison);
        if disturbed.is_none() {
            self.controls(place, pair, &kernels);
            self.sweeps(place, pair, &kernels);
        }
    }

    /// Metrics of a place, in the order of the file.
    fn metrics(&self, place: Place<'_>) -> Vec<Metric> {
        let all = self.validation.metrics.iter().map(|tolerance| tolerance.name);
        let is_here =
            |metric: &Metric| place.workload.metrics.contains(metric) && metric.fits(place.nr_cpus);
        all.filter(is_here).collect()
    }

    fn measure(&self, tolerance: &Tolerance, both: &[Both<'_>]) -> Measured {
        let mut samples = match tolerance.name {
            Metric::Slices => self.slices(both),
            _ => Samples::of(tolerance, both),
        };
        let slices = std::mem::take(&mut samples.slices);
        let mut measured = samples.summary(tolerance);
        measured.slices = slices;
        measured
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

    fn controls(&mut self, place: Place<'_>, pair: &Pair, kernels: &BTreeMap<u64, &RunResult>) {
        let validation = self.validation;
        let is_here = |control: &&super::Control| has_control(place, control);
        for control in validation.controls.iter().filter(is_here) {
            let models = self.runs(&place.control(control), "sim", &control.model);
            let both = both(kernels, &models);
            let Some(tolerance) = validation.tolerance(control.metric) else { continue };
            if both.is_empty() {
                let name = place.control(control);
                self.found.missing.push(format!("{name}: the wrong model was not run"));
                continue;
            }
            let measured = self.measure(tolerance, &both);
            self.found.controls.push(ControlResult {
                metric: control.metric,
                lane: place.lane.name.clone(),
                nr_cpus: place.nr_cpus,
                kernel: pair.kernel.clone(),
                workload: control.workload.clone(),
                model: model_of(control),
                why: control.why.clone(),
                deviation: measured.worst(),
                is_rejected: measured.verdict == Verdict::Outside,
            });
        }
    }

    fn sweeps(&mut self, place: Place<'_>, pair: &Pair, kernels: &BTreeMap<u64, &RunResult>) {
        for sweep in &self.validation.sweeps {
            if !sweep.models.is_empty() && !sweep.models.contains(&pair.model) {
                continue;
            }
            for metric in swept(place, sweep) {
                let Some(tolerance) = self.validation.tolerance(metric) else { continue };
                let swept = self.swept(place, pair, kernels, (sweep, tolerance));
                self.found.sweeps.extend(swept);
            }
        }
    }

    fn swept(
        &self,
        place: Place<'_>,
        pair: &Pair,
        kernels: &BTreeMap<u64, &RunResult>,
        (sweep, tolerance): (&Sweep, &Tolerance),
    ) -> Option<SweepResult> {
        let mut points = Vec::new();
        let mut by_unit: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for value in &sweep.values {
            let models = self.runs(&place.sweep(sweep, value), "sim", &pair.model);
            let both = both(kernels, &models);
            if both.is_empty() {
                continue;
            }
            let measured = self.measure(tolerance, &both);
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
        (!points.is_empty()).then(|| SweepResult {
            metric: tolerance.name,
            lane: place.lane.name.clone(),
            nr_cpus: place.nr_cpus,
            kernel: pair.kernel.clone(),
            workload: sweep.workload.clone(),
            knob: sweep.knob.clone(),
            points,
            moves: by_unit.values().any(|values| range(values) > limit(tolerance)),
        })
    }

    /// Takes the word from metrics that accept a wrong model, or that nothing moves.
    fn discriminate(&mut self) {
        let ValidationResult { comparisons, controls, sweeps, .. } = &mut self.found;
        for comparison in comparisons {
            for found in &mut comparison.metrics {
                let is_same = |metric: Metric, lane: &str, nr_cpus: u32, kernel: &str| {
                    metric == found.metric
                        && lane == comparison.lane
                        && nr_cpus == comparison.nr_cpus
                        && kernel == comparison.kernel
                };
                let wrong: Vec<&ControlResult> = controls
                    .iter()
                    .filter(|c| is_same(c.metric, &c.lane, c.nr_cpus, &c.kernel))
                    .collect();
                let knobs: Vec<&SweepResult> = sweeps
                    .iter()
                    .filter(|s| is_same(s.metric, &s.lane, s.nr_cpus, &s.kernel))
                    .collect();
                let reason = doubt(&wrong, &knobs);
                if let Some(reason) = reason.filter(|_| found.verdict == Verdict::Within) {
                    found.verdict = Verdict::DoesNotDiscriminate;
                    found.reason = reason;
                }
            }
        }
    }
}

/// Why agreement of a metric says nothing.
fn doubt(controls: &[&ControlResult], sweeps: &[&SweepResult]) -> Option<String> {
    if controls.is_empty() {
        return Some("no wrong model was run that it would have to reject".into());
    }
    if let Some(accepted) = controls.iter().find(|control| !control.is_rejected) {
        return Some(format!("it accepts {} under {}", accepted.model, accepted.workload));
    }
    if sweeps.is_empty() {
        return Some("no setting was tried that would have to move it".into());
    }
    let still = sweeps.iter().find(|sweep| !sweep.moves)?;
    Some(format!("{} does not move it under {}", still.knob, still.workload))
}

/// Runs of kernel and model with one seed.
fn both<'r>(
    kernels: &BTreeMap<u64, &'r RunResult>,
    models: &BTreeMap<u64, &'r RunResult>,
) -> Vec<Both<'r>> {
    let pair = |(seed, kernel): (&u64, &&'r RunResult)| {
        models.get(seed).map(|model| Both { kernel, model })
    };
    kernels.iter().filter_map(pair).collect()
}

/// What others used of the machine, if it is too much to compare anything.
fn disturbed(lane: &LaneSpec, both: &[Both<'_>]) -> Option<String> {
    let least = lane.cpu_time_least?;
    let sum = |of: fn(&Both<'_>) -> u64| both.iter().map(of).sum::<u64>() as f64;
    let kernel = sum(|both| both.kernel.measures.totals.cpu_time_ns);
    let model = sum(|both| both.model.measures.totals.cpu_time_ns);
    let part = kernel / model.max(1.0);
    (part < least).then(|| {
        format!(
            "others used this machine: the tasks got {:.0} % of the CPU time of the model's",
            part * 100.0
        )
    })
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
        let limit = limit(tolerance);
        let mut measured = Measured {
            deviations: BTreeMap::new(),
            units: Vec::new(),
            slices: Vec::new(),
            verdict: Verdict::Within,
            reason: String::new(),
        };
        let mut is_outside = false;
        for (unit, sample) in self.units {
            let mean = stats::mean(&sample.deviations);
            let Some(half) = stats::ci95_half_width(&sample.deviations) else {
                measured.reason = format!("{unit}: one pair of runs has no interval");
                continue;
            };
            let [low, high] = distances(mean - half, mean + half);
            is_outside |= low > limit;
            if low <= limit && high > limit {
                measured.reason = format!("the tolerance lies within the interval of {unit}");
            }
            measured.deviations.insert(unit.clone(), mean);
            measured.units.push(UnitResult {
                unit,
                kernel: stats::mean(&sample.kernel),
                model: stats::mean(&sample.model),
                deviation: told(metric, mean),
                ci95: [told(metric, low), told(metric, high)],
            });
        }
        if let Some(unit) = self.alone.first() {
            measured.reason = format!("{unit} is not in both, kernel and model");
        }
        if measured.units.is_empty() && measured.reason.is_empty() {
            measured.reason = "no task has such a value".into();
        }
        measured.units.sort_by(|a, b| b.deviation.total_cmp(&a.deviation));
        if is_outside {
            measured.verdict = Verdict::Outside;
            measured.reason = String::new();
        } else if !measured.reason.is_empty() {
            measured.verdict = Verdict::CannotBeTold;
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
