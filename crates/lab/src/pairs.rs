// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies that compare kernels with their models: makes experiments from `[[pair]]` and
//! `[[lane]]`.
//!
//! Such a study lists each workload once. A case is one workload in one lane with one number of
//! CPUs: an experiment with the kernels and their models. Each wrong model and each knob is a
//! separate experiment, only simulated. The store, the manifest, the order of runs and the claims
//! then work as in every study.

use crate::axis::{Axis, OneOrMore, Scalar, SeedRange, Seeds};
use crate::cases::{CasePlace, Half};
use crate::claims::{Case, Claim, Control, Knob, Place};
use crate::plan::Note;
use crate::study::{ExperimentSpec, RunsSpec, Shift, Study};
use schedlab_run::place::unknown;
use schedlab_run::{LaneKind, StudyError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A kernel and its model.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Series of the kernel, such as `6.12`. It matches guests, and a host whose release begins
    /// with it.
    pub kernel: String,
    /// Scheduler of the lane sim.
    pub model: String,
    /// Whether `--quick` includes it in guests, even if the user does not ask for the kernel by
    /// name.
    #[serde(default = "yes")]
    pub quick: bool,
    /// A model that is wrong on purpose, for generated workloads: its figure must be lower.
    #[serde(default)]
    pub wrong: Option<String>,
}

/// A lane for kernels, and the modelled machine for their models.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairLane {
    /// `vm` (counted time) or `host`.
    pub name: LaneKind,
    /// The machine of the model: a preset, or `host` for a model of this machine.
    pub machine: String,
    /// Numbers of CPUs; each workload runs with each of them.
    pub cpus: Vec<u32>,
    /// Number of runs of each kernel and of its model, unless the experiment has `seeds`. Each pair
    /// of runs has one seed, which draws the same releases and sleeps for both.
    pub repetitions: u32,
    /// Runs of each kernel with shifted starts.
    #[serde(default)]
    pub shift: Option<Shift>,
    /// For a shared machine: minimum CPU time of the kernel's tasks, as a share (0 to 1) of that of
    /// the model's tasks. Below it comparisons are inconclusive.
    #[serde(default)]
    pub cpu_time_least: Option<f64>,
}

/// Minimum number of repetitions for a statement about spread.
pub const REPETITIONS_MIN: u32 = 5;

/// The part of a study of pairs to run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Only these lanes; empty: all.
    pub lanes: Vec<LaneKind>,
    /// Only these kernels; empty: all.
    pub kernels: Vec<String>,
    /// Whether to leave out what the quick form omits.
    pub quick: bool,
    /// Number of runs of each kernel, instead of the file's.
    pub repetitions: Option<u32>,
    /// Release of this machine's kernel; `None` if nothing runs here.
    pub host_release: Option<String>,
    /// Generated workloads of this half, in place of the study's own workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Half>,
    /// Only these sets of generated workloads; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
}

const fn yes() -> bool {
    true
}

/// A workload in a lane with one number of CPUs, and the pairs that the lane supports.
struct Target<'s> {
    spec: &'s ExperimentSpec,
    lane: &'s PairLane,
    nr_cpus: u32,
    pairs: Vec<&'s Pair>,
    wanted: &'s Wanted,
}

impl Study {
    /// Checks pairs and lanes. Without pairs there must be no lanes.
    pub(crate) fn check_pairs(&self) -> Result<(), StudyError> {
        if self.case_sets.is_empty() && self.pairs.is_empty() != self.lanes.is_empty() {
            let missing = if self.pairs.is_empty() { "pair" } else { "lane" };
            return Err(StudyError::new(
                format!("there is no [[{missing}]]"),
                "[[pair]] and [[lane]] belong together: the kernels and where they run",
            ));
        }
        let mut kernels = BTreeSet::new();
        for (index, pair) in self.pairs.iter().enumerate() {
            if !kernels.insert(&pair.kernel) {
                let text = format!("two of [[pair]] have the kernel {:?}", pair.kernel);
                let error = StudyError::new(text, "give each kernel one model");
                return Err(error.at(["pair".into(), index.into(), "kernel".into()]));
            }
        }
        let mut lanes = BTreeSet::new();
        for (index, lane) in self.lanes.iter().enumerate() {
            let inside = |error: StudyError| error.at(["lane".into(), index.into()]);
            if !lanes.insert(lane.name) {
                let text = format!("two of [[lane]] are called {:?}", lane.name.name());
                return Err(inside(StudyError::new(text, "give each lane once").below("name")));
            }
            lane.check().map_err(inside)?;
        }
        for (index, spec) in self.experiments.iter().enumerate().filter(|_| !self.pairs.is_empty())
        {
            let inside = |error: StudyError| error.at(["experiment".into(), index.into()]);
            if !spec.runs.is_empty() || spec.machine.is_some() || !spec.axes.is_empty() {
                return Err(inside(StudyError::new(
                    format!("experiment {:?} has runs, a machine or axes of its own", spec.name),
                    "[[pair]] and [[lane]] say where it runs: drop them",
                )));
            }
            let seeds = spec.seeds.as_ref().map(Seeds::values).transpose().map_err(inside)?;
            if let Some(seeds) = seeds {
                check_repetitions(seeds.len(), "seeds").map_err(inside)?;
            }
        }
        Ok(())
    }

    /// Makes experiments from the study's pairs. The error names an unknown kernel, or states that
    /// no pair is left. A study without pairs stays unchanged.
    pub fn with_pairs(mut self, wanted: &Wanted) -> Result<Self, StudyError> {
        if self.pairs.is_empty() {
            return Ok(self);
        }
        let known = self.pairs.iter().map(|pair| pair.kernel.as_str());
        let is_known = |name: &&String| known.clone().any(|known| known == *name);
        if let Some(kernel) = wanted.kernels.iter().find(|name| !is_known(name)) {
            return Err(unknown("kernel", kernel, known));
        }
        if let Some(half) = wanted.cases {
            return self.with_places(half, wanted);
        }
        let mut experiments = Vec::new();
        let mut notes = Vec::new();
        let mut claims = self.claims.clone();
        for lane in self.lanes.iter().filter(|lane| means(&wanted.lanes, &lane.name)) {
            let pairs = self.pairs_in(lane.name, wanted);
            if pairs.is_empty() {
                notes.push(no_pair(lane.name, wanted));
                continue;
            }
            let is_skipped = |spec: &&ExperimentSpec| {
                wanted.quick && spec.quick.as_ref().is_some_and(|quick| quick.skip)
            };
            for spec in self.experiments.iter().filter(|spec| !is_skipped(spec)) {
                for nr_cpus in lane.cpus.iter().copied() {
                    let pairs = pairs.clone();
                    Target { spec, lane, nr_cpus, pairs, wanted }
                        .add(&mut claims, &mut experiments);
                }
            }
        }
        if experiments.is_empty() {
            return Err(nothing_left(&notes));
        }
        (self.experiments, self.claims, self.notes) = (experiments, claims, notes);
        Ok(self)
    }

    /// Makes experiments from the cases of one half: in guests, unless lanes are wanted.
    fn with_places(mut self, half: Half, wanted: &Wanted) -> Result<Self, StudyError> {
        let lanes = match &wanted.lanes[..] {
            [] => &[LaneKind::Vm],
            lanes => lanes,
        };
        let mut places = Vec::new();
        for lane in lanes.iter().copied() {
            let pairs: Vec<Pair> = self.pairs_in(lane, wanted).into_iter().cloned().collect();
            match pairs.is_empty() {
                true => self.notes.push(no_pair(lane, wanted)),
                false => places.push(CasePlace { lane, pairs }),
            }
        }
        let study = self.with_cases(half, wanted, places)?;
        match study.experiments.is_empty() {
            true => Err(nothing_left(&study.notes)),
            false => Ok(study),
        }
    }

    /// The pairs whose kernel a lane supports.
    fn pairs_in(&self, lane: LaneKind, wanted: &Wanted) -> Vec<&Pair> {
        let is_left_out = |pair: &Pair| wanted.quick && !pair.quick && lane != LaneKind::Host;
        let is_wanted = |pair: &&Pair| match wanted.kernels.is_empty() {
            true => !is_left_out(pair),
            false => wanted.kernels.contains(&pair.kernel),
        };
        let is_here = |pair: &&Pair| match &wanted.host_release {
            _ if lane != LaneKind::Host => true,
            Some(release) => is_of_series(release, &pair.kernel),
            None => false,
        };
        self.pairs.iter().filter(is_wanted).filter(is_here).collect()
    }
}

/// The note on a lane without a pair.
fn no_pair(lane: LaneKind, wanted: &Wanted) -> Note {
    match lane {
        LaneKind::Host => Note::NoModel(wanted.host_release.clone()),
        name => Note::NoPair(name),
    }
}

/// The error of a study without experiments.
fn nothing_left(notes: &[Note]) -> StudyError {
    let why: Vec<String> = notes.iter().map(Note::to_string).collect();
    let why = why.join("; ");
    StudyError::new(
        "nothing is left to compare",
        if why.is_empty() { "ask for more lanes or kernels".into() } else { why },
    )
}

impl Target<'_> {
    /// Adds the target's experiments, and its comparisons to the claims.
    fn add(&self, claims: &mut [Claim], to: &mut Vec<ExperimentSpec>) {
        let Self { spec, lane, nr_cpus, pairs, .. } = self;
        let name = format!("{} {} {nr_cpus}", spec.name, lane.name);
        let is_about = |claim: &Claim| {
            let of_it = |pairs: &crate::claims::Pairs| {
                pairs.fits(*nr_cpus) && pairs.experiment.values().contains(&spec.name)
            };
            claim.pairs.as_ref().is_some_and(of_it)
        };
        let mut kernels = RunsSpec::new(
            lane.name,
            match lane.name {
                LaneKind::Vm => pairs.iter().map(|pair| pair.kernel.clone()).collect(),
                _ => vec!["OTHER".into()],
            },
        );
        kernels.shift = lane.shift.clone();
        let models = pairs.iter().map(|pair| pair.model.clone()).collect();
        let has_slices = claims
            .iter()
            .filter(|claim| is_about(claim))
            .any(|claim| claim.pairs.as_ref().is_some_and(|pairs| pairs.slices.is_some()));
        let made = |name: String, runs| self.experiment(name, runs, has_slices);
        to.push(made(name.clone(), vec![RunsSpec::new(LaneKind::Sim, models), kernels]));
        for claim in claims.iter_mut().filter(|claim| is_about(claim)) {
            let mut controls = Vec::new();
            for (index, control) in claim.controls.iter().enumerate() {
                if control.experiment == spec.name {
                    let name = format!("{name} control {}", control.label());
                    controls.push((index, name.clone()));
                    once(to, made(name, vec![wrong_model(control)]));
                }
            }
            let mut knobs = Vec::new();
            for (index, knob) in claim.knobs.iter().enumerate() {
                let models = || pairs.iter().filter(|pair| means(&knob.kernels, &pair.kernel));
                if knob.experiment == spec.name && models().next().is_some() {
                    // Another knob of this name may have other kernels or values.
                    let values: Vec<String> = knob.values.iter().map(Scalar::to_string).collect();
                    let of: Vec<&str> = models().map(|pair| pair.model.as_str()).collect();
                    let name =
                        format!("{name} {}={} {}", knob.name, values.join(","), of.join(","));
                    let mut swept = made(name.clone(), Vec::new());
                    turn(&mut swept, knob, models().map(|pair| pair.model.clone()).collect());
                    knobs.push((index, models().map(|pair| &pair.kernel).collect(), name));
                    once(to, swept);
                }
            }
            self.compare(claim, &name, &controls, &knobs);
        }
    }

    /// Adds the comparison of each pair to a claim.
    fn compare(
        &self,
        claim: &mut Claim,
        experiment: &str,
        controls: &[(usize, String)],
        knobs: &[(usize, Vec<&String>, String)],
    ) {
        let Some(pairs) = &mut claim.pairs else { return };
        for pair in &self.pairs {
            let scheduler = match self.lane.name {
                LaneKind::Vm => pair.kernel.clone(),
                _ => "OTHER".into(),
            };
            let of_pair = knobs.iter().filter(|(_, kernels, _)| kernels.contains(&&pair.kernel));
            pairs.cases.push(Case {
                experiment: experiment.into(),
                on: Place { lane: self.lane.name, scheduler: Some(scheduler) },
                against: Place { lane: LaneKind::Sim, scheduler: Some(pair.model.clone()) },
                cpu_time_least: self.lane.cpu_time_least.or(pairs.cpu_time_least),
                controls: controls.to_vec(),
                knobs: of_pair.map(|(index, _, name)| (*index, name.clone())).collect(),
            });
        }
    }

    /// An experiment with this workload.
    fn experiment(&self, name: String, runs: Vec<RunsSpec>, has_slices: bool) -> ExperimentSpec {
        let count = self.lane.repetitions.into();
        let own = || self.spec.seeds.clone();
        let range = |count| Seeds::Range(SeedRange { first: 1, count });
        let asked = self.wanted.repetitions.map(|count| range(count.into()));
        let mut spec = ExperimentSpec {
            name,
            machine: Some(OneOrMore::One(Scalar::Text(self.lane.machine.clone()))),
            seeds: asked.or_else(own).or_else(|| Some(range(count))),
            keep_slices: self.spec.keep_slices || has_slices,
            keep_tasks: true,
            keep_each: true,
            quick: None,
            runs,
            ..self.spec.clone()
        };
        if spec.tasks.is_some() && spec.workload.values().is_empty() {
            spec.workload = OneOrMore::One(Scalar::Text(self.spec.name.clone()));
        }
        spec.parameters.insert("cpus".into(), Scalar::Number(self.nr_cpus.into()));
        spec
    }
}

/// Runs of a wrong model.
fn wrong_model(control: &Control) -> RunsSpec {
    let mut runs = RunsSpec::new(LaneKind::Sim, vec![control.model.clone()]);
    let one = |(name, value): (&String, &Scalar)| (name.clone(), OneOrMore::One(value.clone()));
    runs.set = control.set.iter().map(one).collect();
    runs
}

/// Runs of the models with each value of a knob.
fn turn(spec: &mut ExperimentSpec, knob: &Knob, models: Vec<String>) {
    let runs = RunsSpec::new(LaneKind::Sim, models);
    spec.runs = match knob.name.strip_prefix("set.") {
        Some(tunable) => {
            let set = BTreeMap::from([(tunable.into(), OneOrMore::Many(knob.values.clone()))]);
            vec![RunsSpec { set, ..runs }]
        }
        None if knob.name == "hz" => {
            let hz = knob.values.iter().map(|value| value.to_string().parse().ok());
            hz.map(|hz| RunsSpec { hz, ..runs.clone() }).collect()
        }
        None => {
            spec.parameters.remove(&knob.name);
            spec.axes.insert(knob.name.clone(), Axis::List(knob.values.clone()));
            vec![runs]
        }
    };
}

/// Adds an experiment unless it exists: two claims may share a wrong model or a knob.
fn once(to: &mut Vec<ExperimentSpec>, spec: ExperimentSpec) {
    if to.iter().all(|known| known.name != spec.name) {
        to.push(spec);
    }
}

impl PairLane {
    fn check(&self) -> Result<(), StudyError> {
        let wrong =
            |key: &str, text: String, help: &str| Err(StudyError::new(text, help).below(key));
        if self.name == LaneKind::Sim {
            let text = format!("{:?} has no kernels", self.name.name());
            return wrong("name", text, "allowed are `vm` and `host`");
        }
        if self.cpus.is_empty() || self.cpus.iter().any(|cpus| !(1..=1024).contains(cpus)) {
            let text = format!("`cpus` is {:?}", self.cpus);
            return wrong("cpus", text, "give one or more numbers from 1 to 1024");
        }
        if let Some(shift) = &self.shift {
            shift.check(self.name).map_err(|error| error.below("shift"))?;
        }
        check_repetitions(self.repetitions as usize, "repetitions")?;
        match self.cpu_time_least {
            Some(part) if !(0.0..=1.0).contains(&part) => {
                wrong("cpu_time_least", format!("`cpu_time_least` is {part}"), "give 0 to 1")
            }
            _ => Ok(()),
        }
    }
}

fn check_repetitions(count: usize, key: &str) -> Result<(), StudyError> {
    if count < REPETITIONS_MIN as usize {
        return Err(StudyError::new(
            format!("`{key}` are {count}"),
            "give 5 or more: a spread rests on them",
        )
        .below(key));
    }
    Ok(())
}

/// Whether a list includes a name; an empty list includes all.
fn means<T: PartialEq>(names: &[T], name: &T) -> bool {
    names.is_empty() || names.contains(name)
}

/// Whether a kernel's release belongs to a series: `6.18.33+deb13` belongs to `6.18`.
fn is_of_series(release: &str, series: &str) -> bool {
    let rest = release.strip_prefix(series);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}
