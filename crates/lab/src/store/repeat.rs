// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats a sweep and compares the results.
//!
//! A simulated result must be identical to the bit. A measured one cannot be: for it, the
//! comparison shows the means of the measures then and now, and the distances between single runs.

use super::held;
use super::manifest::{Manifest, ManifestRun};
use super::sweep::Sweep;
use crate::execute::Progress;
use crate::identity::Program;
use crate::{ExecuteOptions, LabError, execute_some};
use schedlab_metrics::stats;
use schedlab_run::{Lane, LaneKind};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// The repetition of one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Repeated {
    /// Experiment, lane, scheduler, workload and parameters, for people.
    pub label: String,
    /// The lane.
    pub lane: LaneKind,
    /// Seed.
    pub seed: u64,
    /// For a simulated run: whether the sums are equal. For a measured run: `None`, they never are.
    pub is_identical: Option<bool>,
    /// Measures then and now.
    pub measures: BTreeMap<String, [Option<f64>; 2]>,
    /// Why there is no result now.
    pub error: Option<String>,
}

/// A measure over all measured runs, then and now.
#[derive(Clone, PartialEq, Debug)]
pub struct Drift {
    /// Name of the measure.
    pub measure: String,
    /// Number of runs that have it then and now.
    pub nr_runs: usize,
    /// Means then and now.
    pub means: [f64; 2],
    /// Difference of the means, as a share of the earlier mean.
    pub difference: f64,
    /// Distances between a run's two values, as a share of the earlier one: the median, and the
    /// greatest.
    pub apart: [f64; 2],
}

impl Sweep {
    /// Refuses a manifest of another sweep. Another version of the program may give its runs other
    /// keys, but not other names.
    pub fn check_repeats(&self, then: &Manifest) -> Result<(), LabError> {
        let is_same = self.plan_key == then.plan_key;
        let names_fit = then.runs.len() == self.plan.runs.len()
            && then.runs.iter().enumerate().all(|(i, run)| run.label == self.entry(i, None).label);
        let is_other_program = then.program() != Program::this();
        if is_same || (is_other_program && names_fit) {
            return Ok(());
        }
        Err(LabError::refused(
            "the runs of the manifest are not those that its text gives",
            "it was changed, or this program makes other runs of it: nothing can be compared",
        ))
    }

    /// Runs all runs, and compares each with its entry in `then`.
    pub fn repeat(
        &self,
        then: &Manifest,
        lanes: &[&dyn Lane],
        threads: usize,
        progress: &Progress<'_>,
    ) -> Vec<Repeated> {
        let slots: Vec<Mutex<Option<ManifestRun>>> =
            self.plan.runs.iter().map(|_| Mutex::new(None)).collect();
        let options = ExecuteOptions { threads, seed: self.settings.seed };
        execute_some(&self.plan, lanes, options, &|_| true, &|run, result| {
            progress(run, result.as_ref().err());
            let error = result.as_ref().err().map(|error| error.text().to_string());
            let entry = self.entry(run, result.as_ref().ok());
            *held(&slots[run]) = Some(ManifestRun { error, ..entry });
            ControlFlow::Continue(())
        });
        let not_run = |run| ManifestRun {
            error: Some("its thread ended before it did".into()),
            ..self.entry(run, None)
        };
        let taken = slots
            .iter()
            .enumerate()
            .map(|(run, slot)| held(slot).take().unwrap_or_else(|| not_run(run)));
        then.runs.iter().zip(taken).map(|(then, now)| compare(then, now)).collect()
    }
}

fn compare(then: &ManifestRun, now: ManifestRun) -> Repeated {
    let is_identical = (then.lane == LaneKind::Sim).then(|| {
        then.result_sha256 == now.result_sha256 && (then.error.is_some() == now.error.is_some())
    });
    let names = then.measures.keys().chain(now.measures.keys());
    let measures = names
        .map(|name| {
            let values = [then.measures.get(name).copied(), now.measures.get(name).copied()];
            (name.clone(), values)
        })
        .collect();
    Repeated {
        label: now.label,
        lane: now.lane,
        seed: now.seed,
        is_identical,
        measures,
        error: now.error,
    }
}

/// Differences of the measured runs in `compared` from before, measure by measure.
pub fn drifts(compared: &[Repeated]) -> Vec<Drift> {
    let measured = compared.iter().filter(|one| one.is_identical.is_none());
    let mut pairs: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
    for (name, values) in measured.flat_map(|one| &one.measures) {
        if let [Some(then), Some(now)] = values {
            pairs.entry(name).or_default().push([*then, *now]);
        }
    }
    let drift = |(measure, pairs): (&str, Vec<[f64; 2]>)| {
        let mean = |at: usize| stats::mean(&pairs.iter().map(|pair| pair[at]).collect::<Vec<_>>());
        let means = [mean(0), mean(1)];
        let apart: Vec<f64> = pairs.iter().map(|pair| relative(*pair).abs()).collect();
        let most = apart.iter().copied().fold(0.0, f64::max);
        Drift {
            measure: measure.into(),
            nr_runs: pairs.len(),
            means,
            difference: relative(means),
            apart: [stats::median(&apart), most],
        }
    };
    pairs.into_iter().map(drift).collect()
}

/// The difference between `now` and `then`, as a share of `then`.
fn relative([then, now]: [f64; 2]) -> f64 {
    if then == now { 0.0 } else { (now - then) / then.abs().max(f64::MIN_POSITIVE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(value: f64) -> ManifestRun {
        ManifestRun {
            label: "x".into(),
            lane: LaneKind::Host,
            seed: 1,
            key: String::new(),
            result_sha256: Some(value.to_string()),
            measures: BTreeMap::from([("makespan_ns".into(), value)]),
            error: None,
        }
    }

    #[test]
    fn a_simulated_run_is_identical_or_not_and_a_measured_one_drifts() {
        let sim = |value| ManifestRun { lane: LaneKind::Sim, ..run(value) };
        assert_eq!(compare(&sim(1.0), sim(1.0)).is_identical, Some(true));
        assert_eq!(compare(&sim(1.0), sim(2.0)).is_identical, Some(false));
        let measured = [compare(&run(10.0), run(11.0)), compare(&run(20.0), run(16.0))];
        assert_eq!(measured[0].is_identical, None);
        let drift = &drifts(&measured)[0];
        assert_eq!((drift.nr_runs, drift.means), (2, [15.0, 13.5]));
        assert!((drift.difference + 0.1).abs() < 1e-12, "{drift:?}");
        assert!((drift.apart[1] - 0.2).abs() < 1e-12, "{drift:?}");
        assert_eq!(drifts(&[compare(&sim(1.0), sim(2.0))]), []);
    }
}
