// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the models again with the changes of [`super::causes`], and notes which of them bring a
//! comparison inside.

use super::causes::{WHAT_IFS, WhatIf, causes};
use super::judge::{Measure, compare_runs, runs_of};
use super::result::{Agreement, Comparison, KernelAgreement, Outcome};
use super::{CasePlace, CaseStudy, Cause, SetCase};
use crate::execute::{ExecuteOptions, execute_some};
use crate::pairs::Pair;
use crate::plan::PlannedRun;
use crate::{ExperimentResult, Plan};
use schedlab_run::{Lane, LaneKind, RunRequest, RunResult};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// What the comparisons of an agreement were made of.
#[derive(Clone, Copy)]
pub struct Made<'a> {
    /// The cases.
    pub study: &'a CaseStudy,
    /// The results of their experiments.
    pub results: &'a [ExperimentResult],
    /// The plan of these.
    pub plan: &'a Plan,
}

/// Notes the causes of all comparisons outside, and how many of the wrong models' have some. `lane`
/// simulates, on so many threads.
pub fn explain(agreement: &mut Agreement, made: Made<'_>, lane: &dyn Lane, threads: usize) {
    for one in agreement.kernels.iter_mut().filter(|one| one.lane == LaneKind::Vm) {
        let places = made.study.places.iter().filter(|place| place.lane == one.lane);
        let pairs = places.flat_map(|place| place.pairs.iter().map(move |pair| (place, pair)));
        let Some((place, pair)) = pairs.into_iter().find(|(_, pair)| pair.kernel == one.kernel)
        else {
            continue;
        };
        let of_kernel = OfKernel { made, place, pair, lane, threads };
        of_kernel.explain(one);
    }
}

struct OfKernel<'a> {
    made: Made<'a>,
    place: &'a CasePlace,
    pair: &'a Pair,
    lane: &'a dyn Lane,
    threads: usize,
}

impl OfKernel<'_> {
    fn explain(&self, one: &mut KernelAgreement) {
        let set = one.set.clone();
        self.find_causes(&set, &self.pair.model, &mut one.outside);
        if let Some(wrong) = &self.pair.wrong {
            self.find_causes(&set, wrong, &mut one.wrong_outside);
            let caused = one.wrong_outside.iter().filter(|one| !one.causes.is_empty());
            one.nr_wrong_caused = Some(caused.count() as u32);
        }
    }

    /// Notes the causes of these comparisons of a kernel with `model`.
    fn find_causes(&self, set: &str, model: &str, outside: &mut [Comparison]) {
        let seeds: BTreeSet<u64> = outside.iter().map(|one| one.seed).collect();
        for seed in seeds {
            let is_it = |case: &&SetCase| case.set == set && case.seed == seed;
            let Some(case) = self.made.study.cases.iter().find(is_it) else { continue };
            let mut of_case: Vec<&mut Comparison> =
                outside.iter_mut().filter(|one| one.seed == seed).collect();
            self.find_causes_of(case, model, &mut of_case);
        }
    }

    fn find_causes_of(&self, case: &SetCase, model: &str, outside: &mut [&mut Comparison]) {
        let experiment = case.experiment(self.place.lane);
        let is_it = |result: &&ExperimentResult| result.experiment.name == experiment;
        let Some(result) = self.made.results.iter().find(is_it) else { return };
        let Ok(runs) = runs_of(self.place, self.pair, &result.runs) else { return };
        let plan = self.made.plan;
        let of_model = |run: &&PlannedRun| {
            run.lane == LaneKind::Sim
                && run.request.scheduler == model
                && plan.experiments[run.experiment].name == experiment
        };
        let requests: Vec<&RunRequest> =
            plan.runs.iter().filter(of_model).map(|run| &run.request).collect();
        let wanted = WHAT_IFS.iter().filter(|change| change.matters(case.nr_cpus));
        let changed: Vec<(&WhatIf, Vec<RunRequest>)> = wanted
            .filter_map(|change| {
                let applied = requests.iter().map(|request| change.applied(request));
                Some((change, applied.collect::<Option<Vec<RunRequest>>>()?))
            })
            .collect();
        let mut found = self.run_all(changed.iter().flat_map(|(_, requests)| requests)).into_iter();
        let mut agreeing: Vec<Vec<Cause>> = vec![Vec::new(); outside.len()];
        for (change, requests) in &changed {
            let of_change: Vec<Option<RunResult>> = found.by_ref().take(requests.len()).collect();
            let Some(models) = of_change.into_iter().collect::<Option<Vec<RunResult>>>() else {
                continue;
            };
            let models: Vec<&RunResult> = models.iter().collect();
            for (comparison, agreeing) in outside.iter().zip(&mut agreeing) {
                if self.is_inside(&comparison.measure, &runs.kernel, &models) {
                    agreeing.push(change.cause);
                }
            }
        }
        for (comparison, agreeing) in outside.iter_mut().zip(agreeing) {
            comparison.nr_changes = agreeing.len() as u32;
            comparison.causes = causes(&agreeing);
            if agreeing.is_empty() && self.kernel_differs(&comparison.measure, &runs.kernel) {
                comparison.causes = vec![Cause::Chance];
            }
        }
    }

    /// Whether a half of the kernel's runs is outside of the other one. Every other run is of one
    /// half, so that both have runs of each kind.
    fn kernel_differs(&self, what: &str, runs: &[&RunResult]) -> bool {
        let half = |from: usize| runs.iter().skip(from).step_by(2).copied().collect::<Vec<_>>();
        let (one, other) = (half(0), half(1));
        one.len() > 1
            && other.len() > 1
            && (!self.is_inside(what, &one, &other) || !self.is_inside(what, &other, &one))
    }

    fn is_inside(&self, what: &str, kernel: &[&RunResult], model: &[&RunResult]) -> bool {
        let measures = self.made.study.measures.iter().filter_map(Measure::of);
        let measure = measures.into_iter().find(|measure| measure.what == what);
        let compared = measure.and_then(|measure| compare_runs(&measure, kernel, model));
        compared.is_some_and(|compared| compared.outcome != Outcome::Outside)
    }

    /// The results of these runs, in their order; `None` for one that failed.
    fn run_all<'r>(
        &self,
        requests: impl Iterator<Item = &'r RunRequest>,
    ) -> Vec<Option<RunResult>> {
        let planned = |request: &RunRequest| PlannedRun {
            experiment: 0,
            lane: LaneKind::Sim,
            request: request.clone(),
        };
        let plan = Plan { runs: requests.map(planned).collect(), ..Plan::default() };
        let slots: Vec<Mutex<Option<RunResult>>> =
            plan.runs.iter().map(|_| Mutex::default()).collect();
        let options = ExecuteOptions { threads: self.threads, seed: 1 };
        execute_some(&plan, &[self.lane], options, &|_| true, &|run, result| {
            if let Ok(mut slot) = slots[run].lock() {
                *slot = result.ok();
            }
            ControlFlow::Continue(())
        });
        slots.into_iter().map(|slot| slot.into_inner().ok().flatten()).collect()
    }
}
