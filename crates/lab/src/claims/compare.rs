// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers checks over pairs of runs.
//!
//! Runs of two places are paired by their seed, which draws the same releases and sleeps for both.
//! The deviation of a unit (a task) is its mean over the pairs, with Student's 95 % interval. The
//! check holds if every unit's interval is within the tolerance. It fails if some unit's interval
//! is outside. If the first place also has runs with shifted starts, they show the kernel's own
//! variation: the greatest deviation of a shifted run from the unshifted one of its seed. A unit
//! may then deviate by the tolerance or by that variation, whichever is greater.
//!
//! The module judges the wrong models and the knobs in the same way. If the comparison does not
//! distinguish them from the right model, agreement becomes inconclusive.

use super::pairs::{Case, Number, Pairs, Scale, Yardstick};
use super::slices::{self, Equal, Sequence};
use super::units::{ALL_TASKS, pooled, values};
use super::verdict::{CheckResult, Evidence};
use super::{Answer, Bounds, Claim, Found, Lies, Place, Reason, matches_template};
use crate::axis::Scalar;
use crate::plan::SHIFT;
use schedlab_metrics::stats;
use schedlab_run::{LaneKind, RunResult, values as run_values};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The question of a check over pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PairKind {
    /// Do the runs agree?
    Agrees,
    /// Does the comparison reject a wrong model?
    Rejects,
    /// Does a knob move the number?
    Moves,
}

/// One task, or all tasks of one description, in both places.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct UnitResult {
    /// Name of the task, `child-*` for all tasks of one description, or `all tasks`.
    pub unit: String,
    /// Mean over the runs `on`, those of the kernel.
    pub on: f64,
    /// Mean over the runs `against`, those of the model.
    pub against: f64,
    /// Mean over the seeds of the deviation, on the scale of the check, without its sign.
    pub deviation: f64,
    /// Ends of its 95 % interval; equal if nothing varied.
    pub ci95: [f64; 2],
    /// The greatest deviation of the first place's shifted runs from its unshifted ones; `None`
    /// without shifted runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<f64>,
}

/// The effect of one value of a knob.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct KnobPoint {
    /// The value.
    pub value: String,
    /// Greatest deviation with this value.
    pub deviation: f64,
}

/// The part of a check's result that only checks over pairs have.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PairResult {
    /// The question.
    pub kind: PairKind,
    /// The experiment.
    pub experiment: String,
    /// The workload; empty if there is no run.
    pub workload: String,
    /// Number of CPUs.
    pub nr_cpus: u32,
    /// Kernel release of the runs `on`; empty if there is no run.
    pub release: String,
    /// Place of the other runs; for a wrong model, with its tunables.
    pub against: String,
    /// The scale of deviations.
    pub scale: Scale,
    /// The tolerance: greatest allowed deviation.
    pub within: f64,
    /// Whether a unit is outside the tolerance, but within the kernel's own variation.
    pub by_variation: bool,
    /// Results by unit, the greatest deviation first.
    pub units: Vec<UnitResult>,
    /// For slices: how many are equal, run by run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Equal>,
    /// Name of a knob.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub knob: String,
    /// Values of a knob.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<KnobPoint>,
}

impl PairResult {
    /// The greatest deviation of a unit, for people.
    pub fn worst_text(&self) -> Option<String> {
        self.units.first().map(|unit| self.scale.text(unit.deviation))
    }

    /// The deviation at each value of a knob, for people: `100: 3.1 %, 250: 0.2 %`.
    pub fn points_text(&self) -> String {
        let point =
            |point: &KnobPoint| format!("{}: {}", point.value, self.scale.text(point.deviation));
        self.points.iter().map(point).collect::<Vec<_>>().join(", ")
    }
}

/// Two runs with one seed.
#[derive(Clone, Copy)]
struct Both<'r> {
    on: &'r RunResult,
    against: &'r RunResult,
}

/// Runs of a place, by seed.
type BySeed<'r> = BTreeMap<u64, &'r RunResult>;

/// Judges the comparisons of a claim.
pub(super) fn judge_pairs(claim: &Claim, evidence: Evidence<'_>) -> Vec<CheckResult> {
    let Some(pairs) = &claim.pairs else { return Vec::new() };
    // Reading the study has already parsed its yardstick, so no error is left.
    let Ok(yardstick) = pairs.yardstick() else { return Vec::new() };
    let judge = Judge { claim, pairs, yardstick, evidence };
    let mut checks = Vec::new();
    for case in &pairs.cases {
        judge.case(case, &mut checks);
    }
    discriminate(&mut checks);
    checks
}

struct Judge<'j> {
    claim: &'j Claim,
    pairs: &'j Pairs,
    yardstick: Yardstick,
    evidence: Evidence<'j>,
}

/// The runs of a case in its first place.
struct Reference<'r> {
    runs: BySeed<'r>,
    /// Each unit's own variation, on the averaging scale.
    variation: BTreeMap<String, f64>,
}

impl<'j> Judge<'j> {
    /// Runs of an experiment in a place, with these values of dimensions.
    fn runs(
        &self,
        experiment: &str,
        place: &Place,
        which: &[(String, String)],
    ) -> Vec<&'j RunResult> {
        let evidence = self.evidence;
        let results = evidence.results.iter().filter(|result| {
            result.experiment.study == evidence.study
                && matches_template(experiment, &result.experiment.name)
        });
        // The values for these runs override those for all runs.
        let is_open = |(name, _): &(&String, &Scalar)| which.iter().all(|(own, _)| own != *name);
        let fixed = self.pairs.which.iter().filter(is_open);
        let fixed = fixed.map(|(name, value)| (name.clone(), value.to_string()));
        let which: Vec<(String, String)> = fixed.chain(which.iter().cloned()).collect();
        let has = |run: &&RunResult| {
            let is_so =
                |(name, value): &(String, String)| run_values::dimension(run, name) == *value;
            place.has(run) && which.iter().all(is_so)
        };
        results.flat_map(|result| &result.runs).filter(has).collect()
    }

    /// Sorts runs by seed. Several runs of one seed must have the same condition.
    fn by_seed(runs: &[&'j RunResult]) -> Result<BySeed<'j>, Reason> {
        let mut by_seed = BySeed::new();
        for run in runs {
            if let Some(other) = by_seed.insert(run.seed, *run)
                && run_values::condition(other) != run_values::condition(run)
            {
                return Err(Reason::Mixed { seed: run.seed });
            }
        }
        Ok(by_seed)
    }

    fn case(&self, case: &Case, checks: &mut Vec<CheckResult>) {
        let on = self.runs(&case.experiment, &case.on, &[]);
        let against = self.runs(&case.experiment, &case.against, &[]);
        let (shifted, own): (Vec<_>, Vec<_>) =
            on.into_iter().partition(|run| run.parameters.contains_key(SHIFT));
        let nr_cpus = |run: &&RunResult| run_values::dimension(run, "cpus").parse().unwrap_or(1);
        if own.first().is_some_and(|run| !self.pairs.fits(nr_cpus(run))) {
            return;
        }
        let paired = Self::by_seed(&own).and_then(|on| Ok((on, Self::by_seed(&against)?)));
        let mut check = self.check(case, PairKind::Agrees, case.against.to_string());
        let (on, both) = match paired {
            Ok((on, against)) => {
                let both = both(&on, &against);
                (on, both)
            }
            Err(reason) => {
                check.reason = Some(reason);
                checks.push(check);
                return;
            }
        };
        let Some(first) = both.first() else {
            check.reason = Some(self.why_missing(case));
            checks.push(check);
            return;
        };
        let (cpus, release, workload) =
            (nr_cpus(&first.on), first.on.machine.kernel.clone(), first.on.workload.clone());
        let reference = Reference { variation: self.variation(&on, &shifted), runs: on };
        let crowded = crowded(case, &both);
        let is_crowded = crowded.is_some();
        self.measure(&both, &reference).put_into(&mut check);
        if is_crowded {
            (check.answer, check.reason) = (Answer::Inconclusive, crowded);
        }
        let from = checks.len();
        checks.push(check);
        if !is_crowded {
            self.controls(case, &reference, checks);
            self.knobs(case, &reference, checks);
        }
        for pair in checks[from..].iter_mut().filter_map(|check| check.pair.as_mut()) {
            pair.nr_cpus = cpus;
            pair.release.clone_from(&release);
            pair.workload.clone_from(&workload);
        }
    }

    /// A check without a result.
    fn check(&self, case: &Case, kind: PairKind, against: String) -> CheckResult {
        let yardstick = &self.yardstick;
        let within = yardstick.scale.text(yardstick.within);
        CheckResult {
            what: self.pairs.what.clone(),
            lane: case.on.lane,
            scheduler: case.on.scheduler.clone(),
            value: self.pairs.value.clone(),
            published: None,
            holds: match kind {
                PairKind::Agrees => format!("within {within}"),
                PairKind::Rejects => format!("outside {within}"),
                PairKind::Moves => format!("moved by more than {within}"),
            },
            why: self.pairs.why.trim().into(),
            found: None,
            ci95: None,
            is_exact: false,
            is_time: yardstick.is_time(),
            nr_runs: 0,
            answer: Answer::Inconclusive,
            reason: None,
            pair: Some(PairResult {
                kind,
                experiment: case.experiment.clone(),
                workload: String::new(),
                nr_cpus: 0,
                release: String::new(),
                against,
                scale: yardstick.scale,
                within: yardstick.within,
                by_variation: false,
                units: Vec::new(),
                slices: Vec::new(),
                knob: String::new(),
                points: Vec::new(),
            }),
        }
    }

    fn why_missing(&self, case: &Case) -> Reason {
        let about = |name: &str| matches_template(&case.experiment, name);
        let lanes = [case.on.lane, case.against.lane];
        let known = lanes.iter().find_map(|lane| self.evidence.why_missing(*lane, &about));
        known.unwrap_or_else(|| Reason::NoValue("it was not run".into()))
    }

    /// The greatest deviation of each unit of shifted runs from the unshifted run of their seed.
    fn variation(&self, on: &BySeed<'j>, shifted: &[&'j RunResult]) -> BTreeMap<String, f64> {
        let pair = |run: &&'j RunResult| on.get(&run.seed).map(|on| Both { on, against: run });
        let both: Vec<Both<'_>> = shifted.iter().filter_map(pair).collect();
        let greatest = |sample: &Sample| {
            sample.deviations.iter().map(|deviation| deviation.abs()).fold(0.0, f64::max)
        };
        let units = self.samples(&both).units.into_iter();
        units.map(|(unit, sample)| (unit, greatest(&sample))).collect()
    }

    fn samples(&self, both: &[Both<'_>]) -> Samples {
        match &self.yardstick.number {
            Number::Slices(rule) => Samples::of_slices(rule, both),
            Number::Value(expr, of) => {
                let pooled = pooled(both.iter().flat_map(|both| [both.on, both.against]));
                Samples::of(&self.yardstick, both, |run| values((expr, *of), run, &pooled))
            }
        }
    }

    fn measure(&self, both: &[Both<'_>], reference: &Reference<'_>) -> Measured {
        let mut found = self.samples(both).summary(&self.yardstick, &reference.variation);
        found.nr_runs = 2 * both.len();
        found
    }

    fn controls(&self, case: &Case, on: &Reference<'j>, checks: &mut Vec<CheckResult>) {
        for (index, experiment) in &case.controls {
            let control = &self.claim.controls[*index];
            let set = control.set.iter();
            let which: Vec<(String, String)> =
                set.map(|(name, value)| (format!("set.{name}"), value.to_string())).collect();
            let place = Place { lane: LaneKind::Sim, scheduler: Some(control.model.clone()) };
            let mut check = self.check(case, PairKind::Rejects, control.label());
            check.why = control.why.trim().into();
            match Self::by_seed(&self.runs(experiment, &place, &which)) {
                Err(reason) => check.reason = Some(reason),
                Ok(against) => match &both(&on.runs, &against)[..] {
                    [] => check.reason = Some(Reason::NoValue("it was not run".into())),
                    both => {
                        let measured = self.measure(both, on);
                        let is_rejected = measured.answer == Answer::Fails;
                        measured.put_into(&mut check);
                        check.answer = if is_rejected { Answer::Holds } else { Answer::Fails };
                        check.reason = None;
                    }
                },
            }
            checks.push(check);
        }
    }

    fn knobs(&self, case: &Case, on: &Reference<'j>, checks: &mut Vec<CheckResult>) {
        for (index, experiment) in &case.knobs {
            let knob = &self.claim.knobs[*index];
            let mut check = self.check(case, PairKind::Moves, case.against.to_string());
            let mut points = Vec::new();
            let mut by_unit: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for value in knob.values.iter().map(Scalar::to_string) {
                let which = [(knob.name.clone(), value.clone())];
                let runs = self.runs(experiment, &case.against, &which);
                let both = match Self::by_seed(&runs) {
                    Ok(against) => both(&on.runs, &against),
                    Err(reason) => {
                        check.reason = Some(reason);
                        continue;
                    }
                };
                if both.is_empty() {
                    continue;
                }
                let measured = self.measure(&both, on);
                points.push(KnobPoint { value, deviation: measured.worst() });
                check.nr_runs += measured.nr_runs;
                for (unit, deviation) in measured.deviations {
                    by_unit.entry(unit).or_default().push(deviation);
                }
            }
            if points.is_empty() {
                check.reason.get_or_insert(Reason::NoValue("it was not run".into()));
            } else {
                let moves = by_unit
                    .iter()
                    .any(|(unit, values)| range(values) > on.limit(&self.yardstick, unit));
                check.answer = if moves { Answer::Holds } else { Answer::Fails };
            }
            if let Some(pair) = &mut check.pair {
                pair.knob.clone_from(&knob.name);
                pair.points = points;
            }
            checks.push(check);
        }
    }
}

impl Reference<'_> {
    /// The greatest allowed deviation of a unit, on the averaging scale.
    fn limit(&self, yardstick: &Yardstick, unit: &str) -> f64 {
        yardstick.limit().max(self.variation.get(unit).copied().unwrap_or_default())
    }
}

fn range(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    greatest - least
}

/// The pairs of runs in both places with one seed.
fn both<'r>(on: &BySeed<'r>, against: &BySeed<'r>) -> Vec<Both<'r>> {
    let pair =
        |(seed, on): (&u64, &&'r RunResult)| against.get(seed).map(|against| Both { on, against });
    on.iter().filter_map(pair).collect()
}

/// The reason for no answer, if other programs took too much of the CPU time for a comparison.
fn crowded(case: &Case, both: &[Both<'_>]) -> Option<Reason> {
    let least = case.cpu_time_least?;
    let sum = |of: fn(&Both<'_>) -> u64| both.iter().map(of).sum::<u64>() as f64;
    let on = sum(|both| both.on.measures.totals.cpu_time_ns);
    let against = sum(|both| both.against.measures.totals.cpu_time_ns);
    let part = on / against.max(1.0);
    (part < least).then_some(Reason::Crowded { percent: (part * 100.0).round_ties_even() as u32 })
}

/// Makes agreement inconclusive if the comparison accepts a wrong model or no knob moves it, in the
/// same place with as many CPUs.
fn discriminate(checks: &mut [CheckResult]) {
    let place = |check: &CheckResult| {
        let nr_cpus = check.pair.as_ref().map(|pair| pair.nr_cpus);
        (check.lane, check.scheduler.clone(), nr_cpus)
    };
    let is = |check: &CheckResult, kind: PairKind| {
        check.pair.as_ref().is_some_and(|pair| pair.kind == kind)
    };
    let doubts: Vec<Option<Reason>> = checks
        .iter()
        .map(|check| {
            let same = |kind| {
                let own = place(check);
                let of_place = checks.iter().filter(move |other| place(other) == own);
                of_place.filter(move |other| is(other, kind) && other.nr_runs > 0).collect()
            };
            let (wrong, knobs): (Vec<_>, Vec<_>) = (same(PairKind::Rejects), same(PairKind::Moves));
            let holds = is(check, PairKind::Agrees) && check.answer == Answer::Holds;
            holds.then(|| doubt(&wrong, &knobs)).flatten()
        })
        .collect();
    for (check, doubt) in checks.iter_mut().zip(doubts) {
        if let Some(reason) = doubt {
            (check.answer, check.reason) = (Answer::Inconclusive, Some(reason));
        }
    }
}

/// The reason why agreement means nothing.
fn doubt(controls: &[&CheckResult], knobs: &[&CheckResult]) -> Option<Reason> {
    let failed = |checks: &[&CheckResult]| {
        let failed = checks.iter().find(|check| check.answer == Answer::Fails);
        failed.and_then(|check| check.pair.clone())
    };
    if controls.is_empty() {
        return Some(Reason::NoWrongModel);
    }
    if let Some(PairResult { against: model, workload, .. }) = failed(controls) {
        return Some(Reason::Accepts { model, workload });
    }
    if knobs.is_empty() {
        return Some(Reason::NoKnob);
    }
    let PairResult { knob, workload, .. } = failed(knobs)?;
    Some(Reason::DoesNotMove { knob, workload })
}

/// Deviations by unit, one for each pair of runs.
#[derive(Default)]
struct Samples {
    units: BTreeMap<String, Sample>,
    /// Units in only one of two runs.
    alone: BTreeSet<String>,
    slices: Vec<Equal>,
}

#[derive(Default)]
struct Sample {
    on: Vec<f64>,
    against: Vec<f64>,
    deviations: Vec<f64>,
}

/// A number measured over pairs of runs.
struct Measured {
    /// Signed mean deviations by unit, on the averaging scale.
    deviations: BTreeMap<String, f64>,
    /// Results by unit for people, the greatest deviation first.
    units: Vec<UnitResult>,
    slices: Vec<Equal>,
    nr_runs: usize,
    answer: Answer,
    by_variation: bool,
    reason: Option<Reason>,
}

impl Measured {
    /// The greatest deviation, for people.
    fn worst(&self) -> f64 {
        self.units.first().map_or(0.0, |unit| unit.deviation)
    }

    fn put_into(self, check: &mut CheckResult) {
        check.found = self.units.first().map(|unit| unit.deviation);
        check.ci95 = self.units.first().map(|unit| unit.ci95);
        (check.answer, check.reason, check.nr_runs) = (self.answer, self.reason, self.nr_runs);
        if let Some(pair) = &mut check.pair {
            pair.by_variation = self.by_variation;
            (pair.units, pair.slices) = (self.units, self.slices);
        }
    }
}

impl Samples {
    fn of(
        yardstick: &Yardstick,
        both: &[Both<'_>],
        values: impl Fn(&RunResult) -> BTreeMap<String, f64>,
    ) -> Self {
        let mut samples = Self::default();
        let counted = |value: f64| value.max(yardstick.floor);
        for pair in both {
            let (on, against) = (values(pair.on), values(pair.against));
            for unit in on.keys().chain(against.keys()) {
                if on.contains_key(unit) != against.contains_key(unit) {
                    samples.alone.insert(unit.clone());
                }
            }
            for (unit, own) in &on {
                let Some(other) = against.get(unit) else { continue };
                let deviation = yardstick.scale.deviation(counted(*own), counted(*other));
                samples.add(unit, (*own, *other), deviation);
            }
        }
        samples
    }

    fn of_slices(rule: &slices::SliceRule, both: &[Both<'_>]) -> Self {
        let mut samples = Self::default();
        for pair in both {
            let on = Sequence::of(pair.on, rule);
            let against = Sequence::of(pair.against, rule);
            let equal = slices::compare(&on, &against, rule);
            let counts = (equal.nr_kernel as f64, equal.nr_model as f64);
            samples.add(ALL_TASKS, counts, 1.0 - equal.part());
            samples.slices.push(equal);
        }
        samples
    }

    fn add(&mut self, unit: &str, (on, against): (f64, f64), deviation: f64) {
        let sample = self.units.entry(unit.to_string()).or_default();
        sample.on.push(on);
        sample.against.push(against);
        sample.deviations.push(deviation);
    }

    fn summary(self, yardstick: &Yardstick, variation: &BTreeMap<String, f64>) -> Measured {
        let (scale, limit) = (yardstick.scale, yardstick.limit());
        let mut measured = Measured {
            deviations: BTreeMap::new(),
            units: Vec::new(),
            slices: self.slices,
            nr_runs: 0,
            answer: Answer::Holds,
            by_variation: false,
            reason: None,
        };
        let mut is_outside = false;
        for (unit, sample) in self.units {
            let found = Found::mean(&sample.deviations);
            let Some([low, high]) = found.ci95 else {
                measured.reason = Some(Reason::OnePair { unit });
                continue;
            };
            let variation = variation.get(&unit).copied();
            let wide = Bounds::about_zero(limit.max(variation.unwrap_or_default()));
            match (Bounds::about_zero(limit).lie(low, high), wide.lie(low, high)) {
                (Lies::Within, _) => {}
                (_, Lies::Within) => measured.by_variation = true,
                (_, Lies::Outside) => is_outside = true,
                _ => measured.reason = Some(Reason::ToleranceAcross(unit.clone())),
            }
            measured.deviations.insert(unit.clone(), found.value);
            measured.units.push(UnitResult {
                unit,
                on: stats::mean(&sample.on),
                against: stats::mean(&sample.against),
                deviation: scale.told(found.value),
                ci95: distances(low, high).map(|distance| scale.told(distance)),
                variation: variation.map(|variation| scale.told(variation)),
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
            measured.answer = Answer::Fails;
            measured.reason = None;
        } else if measured.reason.is_some() {
            measured.answer = Answer::Inconclusive;
        }
        measured.by_variation &= measured.answer == Answer::Holds;
        measured
    }
}

/// The least and the greatest distance from 0 in an interval.
fn distances(low: f64, high: f64) -> [f64; 2] {
    let (a, b) = (low.abs(), high.abs());
    let least = if low <= 0.0 && high >= 0.0 { 0.0 } else { a.min(b) };
    [least, a.max(b)]
}
