// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels and their models on random workloads that nobody chose.
//!
//! A study lists sets of cases by seed (`[[cases]]`) and the measures to compare (`[[measure]]`).
//! Each set has two halves: one to look into while a model is changed, and one that is held out for
//! the figure. `spec` makes the cases, `judge` compares their runs, `explain` asks why some differ
//! (`causes`), `result` has the numbers and `page` their tables.

mod causes;
mod explain;
mod features;
mod judge;
mod page;
mod result;
mod spec;

pub use causes::Cause;
pub use explain::{Made, explain};
pub use judge::judge;
pub use page::markdown;
pub use result::{
    Agreement, Comparison, Counts, FeatureCounts, Figures, KernelAgreement, NotCompared, Outcome,
    Typical,
};
pub use spec::{CaseSet, Half, MeasureSpec, SetCase};

use crate::axis::{OneOrMore, Scalar, SeedRange, Seeds};
use crate::pairs::{Pair, Wanted};
use crate::plan::Note;
use crate::study::{ExperimentSpec, RunsSpec, Shift, Study};
use schedlab_model::Policy;
use schedlab_run::{LaneKind, StudyError};

/// The part of a study that is about cases.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CaseStudy {
    /// The measures.
    pub measures: Vec<MeasureSpec>,
    /// Where the kernels run, with their models.
    pub places: Vec<CasePlace>,
    /// Names of the sets.
    pub sets: Vec<String>,
    /// The cases.
    pub cases: Vec<SetCase>,
}

/// A lane for the kernels of cases.
#[derive(Clone, PartialEq, Debug)]
pub struct CasePlace {
    /// `vm` or `host`.
    pub lane: LaneKind,
    /// Its kernels with their models.
    pub pairs: Vec<Pair>,
}

impl CasePlace {
    /// Whether cases with so many CPUs run here. On this machine its other programs need a CPU, and
    /// no model knows on which one they run.
    pub fn fits(&self, nr_cpus: u32) -> bool {
        self.lane == LaneKind::Vm || nr_cpus == 1
    }

    /// Name of a kernel of this lane in results.
    pub fn scheduler<'p>(&self, pair: &'p Pair) -> &'p str {
        match self.lane {
            LaneKind::Vm => &pair.kernel,
            _ => Policy::Normal.name(),
        }
    }
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

    /// Replaces the experiments by those of the cases of one half, of the wanted sets, in these
    /// places.
    pub(crate) fn with_cases(
        mut self,
        half: Half,
        wanted: &Wanted,
        places: Vec<CasePlace>,
    ) -> Result<Self, StudyError> {
        let names = &wanted.sets;
        let known: Vec<&str> = self.case_sets.iter().map(|set| set.name.as_str()).collect();
        if known.is_empty() {
            let help = "add [[cases]] and [[measure]], or drop --cases";
            return Err(StudyError::new("the study has no [[cases]]", help));
        }
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(schedlab_run::place::unknown("set of cases", name, known.into_iter()));
        }
        let is_wanted = |set: &&CaseSet| names.is_empty() || names.contains(&set.name);
        let measures = self.measures.clone();
        let mut of_cases = CaseStudy { measures, places, ..CaseStudy::default() };
        let mut experiments = Vec::new();
        for (index, set) in self.case_sets.iter().enumerate().filter(|(_, set)| is_wanted(set)) {
            for place in of_cases.places.iter().filter(|place| !place.fits(set.cpus)) {
                self.notes.push(Note::OneCpuOnly { set: set.name.clone(), lane: place.lane });
            }
            let places = || of_cases.places.iter().filter(|place| place.fits(set.cpus));
            if places().next().is_none() && !of_cases.places.is_empty() {
                continue;
            }
            of_cases.sets.push(set.name.clone());
            let cases = set.cases(half);
            let cases = cases.map_err(|error| error.at(["cases".into(), index.into()]))?;
            let quick = set.quick.filter(|_| wanted.quick);
            for case in cases.into_iter().take(quick.map_or(usize::MAX, |count| count as usize)) {
                experiments.extend(places().map(|place| experiment(set, &case, place)));
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
fn experiment(set: &CaseSet, case: &SetCase, place: &CasePlace) -> ExperimentSpec {
    let pairs: Vec<&Pair> = place.pairs.iter().filter(|pair| case.is_for(&pair.kernel)).collect();
    let mut models = Vec::new();
    for model in pairs.iter().flat_map(|pair| [Some(&pair.model), pair.wrong.as_ref()]).flatten() {
        if !models.contains(model) {
            models.push(model.clone());
        }
    }
    let kernels = pairs.iter().map(|pair| place.scheduler(pair).to_string()).collect();
    let mut kernels = RunsSpec::new(place.lane, kernels);
    kernels.shift = Some(match place.lane {
        LaneKind::Vm => set.shift.clone(),
        // Switches of this machine cannot be made longer, and it is not booted again.
        _ => Shift { switch_jitter: None, other_boots: false, ..set.shift.clone() },
    });
    let mut models = RunsSpec::new(LaneKind::Sim, models);
    models.shift = Some(match place.lane {
        LaneKind::Vm => set.shift.clone(),
        _ => Shift { switch_jitter: None, ..set.shift.clone() },
    });
    let runs = match pairs.is_empty() {
        true => Vec::new(),
        false => vec![models, kernels],
    };
    let name = case.experiment(place.lane);
    let machine = match place.lane {
        LaneKind::Vm => set.machine.clone(),
        _ => THIS_MACHINE.into(),
    };
    let mut spec = ExperimentSpec {
        workload: OneOrMore::One(Scalar::Text(name.clone())),
        name,
        tasks: Some(case.text.clone()),
        machine: Some(OneOrMore::One(Scalar::Text(machine))),
        seeds: Some(Seeds::Range(SeedRange { first: case.seed, count: 1 })),
        keep_tasks: true,
        keep_each: true,
        runs,
        ..ExperimentSpec::default()
    };
    spec.parameters.insert("cpus".into(), Scalar::Number(case.nr_cpus.into()));
    spec
}

/// The machine of the models of this machine's kernel: `host`, its topology with measured costs.
const THIS_MACHINE: &str = "host";

#[cfg(test)]
mod tests;
