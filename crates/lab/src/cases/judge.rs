// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the runs of cases, and counts how many comparisons agree.
//!
//! A comparison is one measure of one case under one kernel. In counted time a run repeats to the
//! last bit, but a start some microseconds later may change much of it. So model and kernel run
//! several times with shifted starts, and in some of these runs with longer switches, too.
//! The medians of their runs are compared: a single run may be the exception. The kernel's own
//! variation is the greatest deviation of one of its runs from their median. A comparison is
//! *within* if every task deviates by the tolerance at most, *by variation* if every task deviates
//! by the tolerance or by the variation of the runs with usual switches at most, *by switches* if
//! by that of all, and else *outside*.
//!
//! *The kernel itself* is compared in the same way: half of its runs takes the place of the model,
//! and the other half remains to show the variation. A perfect model would reach this figure.
//!
//! On this machine nothing repeats. Its runs also differ by what else it does, which is part of the
//! kernel's own variation there.

use super::result::{
    Agreement, Comparison, Counts, Figures, KernelAgreement, NotCompared, Outcome, Typical,
};
use super::{CasePlace, CaseStudy, MeasureSpec, SetCase};
use crate::claims::slices::description;
use crate::claims::{self, Number, Yardstick};
use crate::pairs::Pair;
use crate::plan::{SHIFT, SWITCH_JITTER};
use crate::{ExperimentResult, Failure, Plan};
use schedlab_metrics::stats;
use schedlab_run::{LaneKind, RunResult};
use std::collections::{BTreeMap, BTreeSet};

/// Judges the cases of a study by the results of their experiments.
pub fn judge(
    study: &CaseStudy,
    results: &[ExperimentResult],
    plan: &Plan,
    failures: &[Failure],
) -> Agreement {
    let yardsticks: Vec<Measure<'_>> = study.measures.iter().filter_map(Measure::of).collect();
    let by_name: BTreeMap<&str, &[RunResult]> =
        results.iter().map(|one| (one.experiment.name.as_str(), &one.runs[..])).collect();
    let mut agreement = Agreement::default();
    let pairs =
        || study.places.iter().flat_map(|place| place.pairs.iter().map(move |p| (place, p)));
    for (set, (place, pair)) in study.sets.iter().flat_map(|set| pairs().map(move |p| (set, p))) {
        let is_it = |case: &&SetCase| {
            case.set == *set && case.is_for(&pair.kernel) && place.fits(case.nr_cpus)
        };
        let cases: Vec<&SetCase> = study.cases.iter().filter(is_it).collect();
        let Some(half) = cases.first().map(|case| case.half) else { continue };
        let found = Found::default();
        let mut of_pair = OfPair { place, pair, yardsticks: &yardsticks, found };
        for case in &cases {
            let experiment = case.experiment(place.lane);
            let runs = by_name.get(experiment.as_str()).copied().unwrap_or_default();
            if let Err(missing) = of_pair.case(case, runs) {
                agreement.not_compared.push(NotCompared {
                    set: set.clone(),
                    seed: case.seed,
                    lane: place.lane,
                    kernel: pair.kernel.clone(),
                    why: why(&experiment, &missing, plan, failures),
                });
            }
        }
        let found = of_pair.found;
        agreement.kernels.push(KernelAgreement {
            set: set.clone(),
            half,
            lane: place.lane,
            kernel: pair.kernel.clone(),
            typical: found.typical(),
            release: found.release,
            model: pair.model.clone(),
            wrong: pair.wrong.clone(),
            nr_cases: cases.len() as u32,
            nr_runs: found.nr_runs,
            nr_disturbed: found.nr_disturbed,
            figures: found.model,
            kernel_itself: found.itself,
            wrong_model: found.wrong,
            outside: found.outside,
            wrong_outside: found.wrong_outside,
            nr_wrong_caused: None,
        });
    }
    agreement
}

/// Why a run is missing: the failure of a run of the experiment on that place.
fn why(experiment: &str, missing: &Missing<'_>, plan: &Plan, failures: &[Failure]) -> String {
    let is_it = |failure: &&Failure| {
        let run = &plan.runs[failure.run];
        plan.experiments[run.experiment].name == experiment
            && run.request.scheduler == missing.scheduler
    };
    match failures.iter().find(is_it) {
        Some(failure) => {
            let text = failure.error.text().lines().next().unwrap_or_default();
            format!("{}: {text}", missing.scheduler)
        }
        None => format!("{} was not run", missing.scheduler),
    }
}

/// The scheduler without a run.
pub(super) struct Missing<'p> {
    scheduler: &'p str,
}

/// A measure with its parsed yardstick.
pub(super) struct Measure<'m> {
    pub what: &'m str,
    yardstick: Yardstick,
    pub cpus_least: u32,
}

impl<'m> Measure<'m> {
    pub fn of(spec: &'m MeasureSpec) -> Option<Self> {
        let yardstick = spec.pairs().yardstick().ok()?;
        let cpus_least = spec.cpus_least.unwrap_or(1);
        Some(Self { what: &spec.what, yardstick, cpus_least })
    }

    /// The values of a run by task.
    fn values(&self, run: &RunResult, pooled: &BTreeSet<String>) -> Values {
        match &self.yardstick.number {
            Number::Value(expr, of) => claims::values((expr, *of), run, pooled),
            Number::Slices(_) => Values::new(),
        }
    }
}

/// What was found for a kernel.
#[derive(Default)]
struct Found {
    release: String,
    model: Figures,
    itself: Counts,
    wrong: Counts,
    outside: Vec<Comparison>,
    wrong_outside: Vec<Comparison>,
    nr_runs: u32,
    nr_disturbed: u32,
    /// The comparisons of each measure.
    by_measure: BTreeMap<String, Vec<Typical>>,
}

impl Found {
    fn typical(&self) -> BTreeMap<String, Typical> {
        let median = |all: &[Typical], of: fn(&Typical) -> f64| {
            stats::median(&all.iter().map(of).collect::<Vec<f64>>())
        };
        let one = |(name, all): (&String, &Vec<Typical>)| {
            let typical = Typical {
                deviation: median(all, |one| one.deviation),
                variation: median(all, |one| one.variation),
                scale: all.first().map(|one| one.scale).unwrap_or_default(),
            };
            (name.clone(), typical)
        };
        self.by_measure.iter().map(one).collect()
    }
}

struct OfPair<'p> {
    place: &'p CasePlace,
    pair: &'p Pair,
    yardsticks: &'p [Measure<'p>],
    found: Found,
}

/// The runs of a case under a kernel and its models: the first one of each, then the varied ones.
pub(super) struct Runs<'r> {
    pub kernel: Vec<&'r RunResult>,
    pub model: Vec<&'r RunResult>,
    pub wrong: Vec<&'r RunResult>,
}

/// Finds the runs of a case among those of its experiment.
pub(super) fn runs_of<'r, 'p>(
    place: &'p CasePlace,
    pair: &'p Pair,
    runs: &'r [RunResult],
) -> Result<Runs<'r>, Missing<'p>> {
    let is_shifted = |run: &&RunResult| run.parameters.contains_key(SHIFT);
    let of = |lane: LaneKind, scheduler: &'p str| {
        let of_it = runs.iter().filter(|run| run.lane == lane && run.scheduler == *scheduler);
        let (shifted, mut found): (Vec<_>, Vec<_>) = of_it.partition(is_shifted);
        found.truncate(1);
        if found.is_empty() {
            return Err(Missing { scheduler });
        }
        found.extend(shifted);
        Ok(found)
    };
    // Of several missing runs the kernel's is named: without it nothing can be compared.
    Ok(Runs {
        kernel: of(place.lane, place.scheduler(pair))?,
        model: of(LaneKind::Sim, &pair.model)?,
        wrong: match pair.wrong.as_deref() {
            Some(wrong) => of(LaneKind::Sim, wrong)?,
            None => Vec::new(),
        },
    })
}

/// Compares the runs of a kernel with those of a model by one measure.
pub(super) fn compare_runs(
    measure: &Measure<'_>,
    kernel: &[&RunResult],
    model: &[&RunResult],
) -> Option<Comparison> {
    let pooled = pooled(kernel.iter().chain(model).copied());
    let of = |runs: &[&RunResult]| -> Vec<OfRun> {
        runs.iter().map(|run| OfRun::of(run, measure.values(run, &pooled))).collect()
    };
    let (kernel, model) = (of(kernel), of(model));
    compare(measure, &kernel.iter().collect::<Vec<_>>(), &middle(model.iter()))
}

impl<'p> OfPair<'p> {
    fn case(&mut self, case: &SetCase, runs: &[RunResult]) -> Result<(), Missing<'p>> {
        let runs = runs_of(self.place, self.pair, runs)?;
        self.found.release.clone_from(&runs.kernel[0].machine.kernel);
        self.found.model.count_case(&case.features);
        self.found.nr_runs += runs.kernel.len() as u32;
        let disturbed = runs.kernel.iter().filter(|run| claims::is_disturbed(run)).count();
        self.found.nr_disturbed += disturbed as u32;
        for measure in self.yardsticks.iter().filter(|one| case.nr_cpus >= one.cpus_least) {
            let pooled = pooled(runs.kernel.iter().chain(&runs.model).copied());
            let of = |runs: &[&RunResult]| -> Vec<OfRun> {
                runs.iter().map(|run| OfRun::of(run, measure.values(run, &pooled))).collect()
            };
            let (kernel, model) = (of(&runs.kernel), of(&runs.model));
            let all: Vec<&OfRun> = kernel.iter().collect();
            let Some(compared) = compare(measure, &all, &middle(model.iter())) else {
                continue;
            };
            self.found.model.count(measure.what, &case.features, compared.outcome);
            let Comparison { deviation, variation, scale, .. } = compared;
            let typical = Typical { deviation, variation, scale };
            self.found.by_measure.entry(measure.what.into()).or_default().push(typical);
            if compared.outcome == Outcome::Outside {
                self.found.outside.push(compared.of(case.seed, measure.what));
            }
            // Every other run, so that both halves have runs of each kind.
            let every_other = |from: usize| kernel.iter().skip(from).step_by(2);
            for (part, rest) in [(0, 1), (1, 0)] {
                let part: Vec<&OfRun> = every_other(part).collect();
                if let Some(compared) = compare(measure, &part, &middle(every_other(rest))) {
                    self.found.itself.add(compared.outcome);
                }
            }
            if let Some(compared) = compare(measure, &all, &middle(of(&runs.wrong).iter())) {
                self.found.wrong.add(compared.outcome);
                if compared.outcome == Outcome::Outside {
                    self.found.wrong_outside.push(compared.of(case.seed, measure.what));
                }
            }
        }
        Ok(())
    }
}

type Values = BTreeMap<String, f64>;

/// The values of one run.
struct OfRun {
    values: Values,
    /// Whether its switches took longer.
    has_jitter: bool,
}

impl OfRun {
    fn of(run: &RunResult, values: Values) -> Self {
        Self { values, has_jitter: run.parameters.contains_key(SWITCH_JITTER) }
    }
}

/// The median of each task's values in these runs.
fn middle<'r>(runs: impl Iterator<Item = &'r OfRun>) -> Values {
    let mut all: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (unit, value) in runs.flat_map(|run| &run.values) {
        all.entry(unit).or_default().push(*value);
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let half = values.len() / 2;
        (values[half] + values[(values.len() - 1) / 2]) / 2.0
    };
    all.into_iter().map(|(unit, values)| (unit.clone(), median(values))).collect()
}

/// Descriptions whose tasks are compared as one: they are many, or not equally many in all runs.
fn pooled<'r>(runs: impl Iterator<Item = &'r RunResult> + Clone) -> BTreeSet<String> {
    let count = |run: &RunResult| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for task in &run.measures.tasks {
            *counts.entry(description(&task.name).to_string()).or_default() += 1;
        }
        counts
    };
    let counts: Vec<BTreeMap<String, usize>> = runs.clone().map(count).collect();
    let mut pooled = claims::pooled(runs);
    for (name, first) in counts.iter().flatten() {
        if counts.iter().any(|counts| counts.get(name) != Some(first)) {
            pooled.insert(name.clone());
        }
    }
    pooled
}

/// Compares values with those of a kernel's runs; `None`: no task has such a value in both.
fn compare(measure: &Measure<'_>, kernel: &[&OfRun], other: &Values) -> Option<Comparison> {
    let yardstick = &measure.yardstick;
    let base = middle(kernel.iter().copied());
    let counted = |value: f64| value.max(yardstick.floor);
    let deviation = |of: &Values, unit: &str| {
        let (on, against) = (counted(*base.get(unit)?), counted(*of.get(unit)?));
        Some(yardstick.scale.deviation(on, against).abs())
    };
    let mut worst: Option<(f64, Comparison)> = None;
    let mut outcome = Outcome::Within;
    for (unit, on) in &base {
        let Some(found) = deviation(other, unit) else { continue };
        let greatest = |with_jitter: bool| {
            let counted = kernel.iter().filter(|run| with_jitter || !run.has_jitter);
            counted.filter_map(|run| deviation(&run.values, unit)).fold(0.0, f64::max)
        };
        let own = greatest(true);
        let limit = yardstick.limit();
        outcome = outcome.max(match found {
            found if found <= limit => Outcome::Within,
            found if found <= greatest(false) => Outcome::ByVariation,
            found if found <= own => Outcome::BySwitches,
            _ => Outcome::Outside,
        });
        // The task that is furthest outside is told.
        let excess = found - limit.max(own);
        if worst.as_ref().is_none_or(|(most, _)| excess > *most) {
            let told = |averaged: f64| yardstick.scale.told(averaged);
            let comparison = Comparison {
                unit: unit.clone(),
                on: *on,
                against: other[unit],
                deviation: told(found),
                variation: told(own),
                scale: yardstick.scale,
                ..Comparison::default()
            };
            worst = Some((excess, comparison));
        }
    }
    worst.map(|(_, comparison)| Comparison { outcome, ..comparison })
}
