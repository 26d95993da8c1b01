// SPDX-License-Identifier: MIT OR Apache-2.0
//! A validation as a study.
//!
//! Each case (workload, lane, number of CPUs) is an experiment with the kernels and their models;
//! each wrong model and each value of a knob is one of its own, simulated alone. So the store, the
//! manifest and the order of runs are those of every experiment.

use super::file::{Control, LaneSpec, Metric, Pair, Sweep, Validation, WorkloadSpec, means};
use crate::Study;
use crate::axis::{OneOrMore, Scalar, SeedRange, Seeds};
use crate::study::{ExperimentSpec, RunsSpec};
use schedlab_run::place::unknown;
use schedlab_run::{LaneKind, StudyError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What of a validation is wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Only these lanes, if any is named.
    pub lanes: Vec<LaneKind>,
    /// Only these kernels, if any is named.
    pub kernels: Vec<String>,
    /// Without what `skip_quick` says.
    pub quick: bool,
    /// Runs of each kernel instead of the file's.
    pub repetitions: Option<u32>,
    /// Release of this machine's kernel; `None`: nothing runs here.
    pub host_release: Option<String>,
}

/// A validation as a study, and which of its experiments hold the runs of each case.
#[derive(Clone, PartialEq, Debug)]
pub struct ValidationStudy<'v> {
    /// The experiments.
    pub study: Study,
    /// Workloads (JSON) by name.
    pub files: BTreeMap<String, String>,
    /// What is left out, and why.
    pub missing: Vec<String>,
    /// The cases that have a kernel.
    pub(super) cases: Vec<CaseRuns<'v>>,
}

/// A workload in a lane with so many CPUs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Case<'v> {
    pub workload: &'v WorkloadSpec,
    pub lane: &'v LaneSpec,
    pub nr_cpus: u32,
}

/// A case with its kernels, and the experiments (by index) that hold its runs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct CaseRuns<'v> {
    pub case: Case<'v>,
    pub pairs: Vec<&'v Pair>,
    /// That of kernels and models.
    pub experiment: usize,
    /// Those of the wrong models.
    pub controls: Vec<(&'v Control, usize)>,
    /// Those of each value of a knob.
    pub sweeps: Vec<(&'v Sweep, Vec<usize>)>,
}

impl Case<'_> {
    /// Name of the experiment with kernels and models; those of wrong models and knobs begin so.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.workload.name, self.lane.name, self.nr_cpus)
    }

    /// Whether a control is made here.
    fn has_control(&self, control: &Control) -> bool {
        control.workload == self.workload.name
            && means(&control.lanes, &self.lane.name)
            && control.metric.fits(self.nr_cpus)
    }

    /// Metrics that a sweep moves here.
    pub fn swept<'s>(&self, sweep: &'s Sweep) -> impl Iterator<Item = Metric> + use<'s> {
        let is_here = sweep.workload == self.workload.name;
        let nr_cpus = self.nr_cpus;
        sweep.metrics.iter().copied().filter(move |metric| is_here && metric.fits(nr_cpus))
    }
}

impl Control {
    /// The wrong model with its tunables, for people.
    pub(super) fn label(&self) -> String {
        let set: Vec<String> = self.set.iter().map(|(name, v)| format!("{name}={v}")).collect();
        match set.is_empty() {
            true => self.model.clone(),
            false => format!("{} {}", self.model, set.join(",")),
        }
    }
}

impl Validation {
    /// The cases that are wanted.
    fn cases<'v>(&'v self, wanted: &Wanted) -> Vec<Case<'v>> {
        let mut cases = Vec::new();
        for lane in self.lanes.iter().filter(|lane| means(&wanted.lanes, &lane.name)) {
            let is_here = |workload: &&WorkloadSpec| {
                !(wanted.quick && workload.skip_quick) && means(&workload.lanes, &lane.name)
            };
            for workload in self.workloads.iter().filter(is_here) {
                let case = |nr_cpus: &u32| Case { workload, lane, nr_cpus: *nr_cpus };
                cases.extend(lane.cpus.iter().map(case));
            }
        }
        cases
    }

    /// The pairs whose kernel a lane can have.
    fn pairs_in(&self, lane: &LaneSpec, wanted: &Wanted) -> Vec<&Pair> {
        let is_left_out =
            |pair: &Pair| wanted.quick && pair.skip_quick && lane.name != LaneKind::Host;
        let is_wanted = |pair: &&Pair| match wanted.kernels.is_empty() {
            true => !is_left_out(pair),
            false => wanted.kernels.contains(&pair.kernel),
        };
        let is_here = |pair: &&Pair| match &wanted.host_release {
            _ if lane.name != LaneKind::Host => true,
            Some(release) => is_of_series(release, &pair.kernel),
            None => false,
        };
        self.pairs.iter().filter(is_wanted).filter(is_here).collect()
    }

    /// The study. The error says which kernel is unknown, or that nothing is left.
    pub fn study(&self, wanted: &Wanted) -> Result<ValidationStudy<'_>, StudyError> {
        let known = self.pairs.iter().map(|pair| pair.kernel.as_str());
        let is_known = |name: &&String| known.clone().any(|known| known == *name);
        if let Some(kernel) = wanted.kernels.iter().find(|name| !is_known(name)) {
            return Err(unknown("kernel", kernel, known));
        }
        let mut made = ValidationStudy {
            study: Study { name: self.name.clone(), ..Study::default() },
            files: BTreeMap::new(),
            missing: Vec::new(),
            cases: Vec::new(),
        };
        for case in self.cases(wanted) {
            let pairs = self.pairs_in(case.lane, wanted);
            match pairs.is_empty() {
                true => made.says_missing(case.lane, wanted),
                false => self.add(case, pairs, wanted, &mut made),
            }
        }
        if made.cases.is_empty() {
            let why = made.missing.join("; ");
            return Err(StudyError::new(
                "nothing is left to compare",
                if why.is_empty() { "ask for more lanes or kernels".into() } else { why },
            ));
        }
        Ok(made)
    }

    fn add<'v>(
        &'v self,
        case: Case<'v>,
        pairs: Vec<&'v Pair>,
        wanted: &Wanted,
        to: &mut ValidationStudy<'v>,
    ) {
        let name = case.name();
        let models = || pairs.iter().map(|pair| pair.model.clone());
        let kernels = match case.lane.name {
            LaneKind::Vm => pairs.iter().map(|pair| pair.kernel.clone()).collect(),
            _ => vec!["OTHER".into()],
        };
        let sim = RunsSpec::new(LaneKind::Sim, models().collect());
        let runs = vec![sim, RunsSpec::new(case.lane.name, kernels)];
        let own = &case.workload.parameters;
        let experiment = to.experiment(case, wanted, name.clone(), own, runs);
        let mut controls = Vec::new();
        for control in self.controls.iter().filter(|control| case.has_control(control)) {
            let name = format!("{name} control {}", control.label());
            let mut runs = RunsSpec::new(LaneKind::Sim, vec![control.model.clone()]);
            let set = control.set.iter();
            runs.set = set.map(|(name, v)| (name.clone(), OneOrMore::One(v.clone()))).collect();
            controls.push((control, to.experiment(case, wanted, name, own, vec![runs])));
        }
        let mut sweeps = Vec::new();
        for sweep in self.sweeps.iter().filter(|sweep| case.swept(sweep).next().is_some()) {
            let models: Vec<String> =
                models().filter(|model| means(&sweep.models, model)).collect();
            if models.is_empty() {
                continue;
            }
            let with = |value: &Scalar| {
                let mut runs = RunsSpec::new(LaneKind::Sim, models.clone());
                let mut parameters = own.clone();
                match (sweep.knob.strip_prefix("set."), value) {
                    (Some(tunable), _) => {
                        runs.set.insert(tunable.into(), OneOrMore::One(value.clone()));
                    }
                    (None, Scalar::Number(hz)) if sweep.knob == "hz" => {
                        runs.hz = u32::try_from(*hz).ok();
                    }
                    _ => drop(parameters.insert(sweep.knob.clone(), value.clone())),
                }
                let name = format!("{name} {}={value}", sweep.knob);
                to.experiment(case, wanted, name, &parameters, vec![runs])
            };
            sweeps.push((sweep, sweep.values.iter().map(with).collect()));
        }
        to.cases.push(CaseRuns { case, pairs, experiment, controls, sweeps });
    }
}

/// Whether a kernel's release is of a series: `6.18.33+deb13` is of `6.18`.
fn is_of_series(release: &str, series: &str) -> bool {
    let rest = release.strip_prefix(series);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

impl ValidationStudy<'_> {
    fn says_missing(&mut self, lane: &LaneSpec, wanted: &Wanted) {
        let text = match &wanted.host_release {
            _ if lane.name != LaneKind::Host => format!("lane {}: no kernel is left", lane.name),
            Some(release) => format!("lane host: this machine's kernel {release} has no model"),
            None => "lane host: this machine's kernel is not known".to_string(),
        };
        if !self.missing.contains(&text) {
            self.missing.push(text);
        }
    }

    /// Index of the experiment of this name, which is added if it is not there yet: two metrics may
    /// have one wrong model or one knob.
    fn experiment(
        &mut self,
        case: Case<'_>,
        wanted: &Wanted,
        name: String,
        parameters: &BTreeMap<String, Scalar>,
        runs: Vec<RunsSpec>,
    ) -> usize {
        let all = &mut self.study.experiments;
        if let Some(index) = all.iter().position(|known| known.name == name) {
            return index;
        }
        let Case { workload, lane, nr_cpus } = case;
        let (file, tasks) = filled(workload, parameters);
        let count = wanted.repetitions.or(workload.repetitions).unwrap_or(lane.repetitions);
        let one = |text: &str| OneOrMore::One(Scalar::Text(text.into()));
        all.push(ExperimentSpec {
            name,
            text: workload.text.clone(),
            workload: one(&file),
            machine: Some(one(&lane.machine)),
            parameters: BTreeMap::from([("cpus".into(), Scalar::Number(nr_cpus.into()))]),
            seeds: Some(Seeds::Range(SeedRange { first: 1, count: count.into() })),
            keep_slices: workload.metrics.contains(&Metric::Slices) && nr_cpus == 1,
            keep_tasks: true,
            keep_each: true,
            runs,
            ..ExperimentSpec::default()
        });
        self.files.insert(file, tasks);
        all.len() - 1
    }
}

/// Name and text of a workload with its parameters put in.
fn filled(workload: &WorkloadSpec, parameters: &BTreeMap<String, Scalar>) -> (String, String) {
    let mut name = workload.name.clone();
    let mut text = workload.tasks.clone();
    for (parameter, value) in parameters {
        text = text.replace(&format!("{{{parameter}}}"), &value.to_string());
        if workload.parameters.get(parameter) != Some(value) {
            let _ = write!(name, "-{parameter}-{value}");
        }
    }
    (format!("{name}.json"), text)
}
