// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels and their models on random workloads that nobody chose.
//!
//! A study lists sets of cases by seed (`[[cases]]`) and the measures to compare (`[[measure]]`).
//! Each set has two halves: one to look into while a model is changed, and one that is held out for
//! the figure. `spec` makes the cases, `judge` compares their runs, `result` has the
//! numbers and `page` their tables.

mod features;
mod judge;
mod page;
mod result;
mod spec;

pub use judge::judge;
pub use page::markdown;
pub use result::{
    Agreement, Comparison, Counts, FeatureCounts, Figures, KernelAgreement, NotCompared, Outcome,
};
pub use spec::{CaseSet, Half, MeasureSpec, SetCase};

use crate::axis::{OneOrMore, Scalar, SeedRange, Seeds};
use crate::pairs::Pair;
use crate::study::{ExperimentSpec, RunsSpec, Shift, Study};
use schedlab_run::{LaneKind, StudyError};

/// The part of a study that is about cases.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CaseStudy {
    /// The measures.
    pub measures: Vec<MeasureSpec>,
    /// The kernels with their models.
    pub pairs: Vec<Pair>,
    /// Names of the sets.
    pub sets: Vec<String>,
    /// The cases.
    pub cases: Vec<SetCase>,
}

impl Study {
    pub(crate) fn check_cases(&self) -> Result<(), StudyError> {
        let mut names = Vec::new();
        for (index, set) in self.case_sets.iter().enumerate() {
            let inside = |error: StudyError| error.at(["cases".into(), index.into()]);
            set.check().map_err(inside)?;
            if names.contains(&&set.name) {
                let text = format!("two of [[cases]] are called {:?}", set.name);
                let error = StudyError::new(text, "give each its own name");
                return Err(inside(error.below("name")));
            }
            names.push(&set.name);
        }
        for (index, measure) in self.measures.iter().enumerate() {
            let checked = measure.pairs().yardstick();
            checked.map_err(|error| error.at(["measure".into(), index.into()]))?;
        }
        match (self.case_sets.is_empty(), self.measures.is_empty(), self.pairs.is_empty()) {
            (true, true, _) | (false, false, false) => Ok(()),
            _ => Err(StudyError::new(
                "[[cases]], [[measure]] and [[pair]] belong together",
                "give the kernels, the workloads, and what is compared",
            )),
        }
    }

    /// Replaces the experiments by those of the cases of one half, of the named sets or of all, for
    /// these pairs.
    pub(crate) fn with_cases(
        mut self,
        half: Half,
        names: &[String],
        pairs: Vec<Pair>,
    ) -> Result<Self, StudyError> {
        let known: Vec<&str> = self.case_sets.iter().map(|set| set.name.as_str()).collect();
        if known.is_empty() {
            let help = "add [[cases]] and [[measure]], or drop --cases";
            return Err(StudyError::new("the study has no [[cases]]", help));
        }
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(schedlab_run::place::unknown("set of cases", name, known.into_iter()));
        }
        let is_wanted = |set: &&CaseSet| names.is_empty() || names.contains(&set.name);
        let mut of_cases =
            CaseStudy { measures: self.measures.clone(), pairs, ..CaseStudy::default() };
        let mut experiments = Vec::new();
        for (index, set) in self.case_sets.iter().enumerate().filter(|(_, set)| is_wanted(set)) {
            of_cases.sets.push(set.name.clone());
            let cases = set.cases(half);
            let cases = cases.map_err(|error| error.at(["cases".into(), index.into()]))?;
            for case in cases {
                experiments.push(experiment(set, &case, &of_cases.pairs));
                of_cases.cases.push(case);
            }
        }
        self.experiments = experiments;
        self.claims.clear();
        self.of_cases = of_cases;
        Ok(self)
    }
}

/// The experiment with the runs of a case.
fn experiment(set: &CaseSet, case: &SetCase, pairs: &[Pair]) -> ExperimentSpec {
    let pairs: Vec<&Pair> = pairs.iter().filter(|pair| case.is_for(&pair.kernel)).collect();
    let mut models = Vec::new();
    for model in pairs.iter().flat_map(|pair| [Some(&pair.model), pair.wrong.as_ref()]).flatten() {
        if !models.contains(model) {
            models.push(model.clone());
        }
    }
    let mut kernels =
        RunsSpec::new(LaneKind::Vm, pairs.iter().map(|pair| pair.kernel.clone()).collect());
    kernels.shift = Some(set.shift.clone());
    let mut models = RunsSpec::new(LaneKind::Sim, models);
    models.shift = Some(Shift { switch_jitter: None, ..set.shift.clone() });
    let runs = match pairs.is_empty() {
        true => Vec::new(),
        false => vec![models, kernels],
    };
    let mut spec = ExperimentSpec {
        name: case.experiment(),
        workload: OneOrMore::One(Scalar::Text(case.experiment())),
        tasks: Some(case.text.clone()),
        machine: Some(OneOrMore::One(Scalar::Text(set.machine.clone()))),
        seeds: Some(Seeds::Range(SeedRange { first: case.seed, count: 1 })),
        keep_tasks: true,
        keep_each: true,
        runs,
        ..ExperimentSpec::default()
    };
    spec.parameters.insert("cpus".into(), Scalar::Number(case.nr_cpus.into()));
    spec
}

#[cfg(test)]
mod tests;
