// SPDX-License-Identifier: MIT OR Apache-2.0
//! A validation made into an experiment file.
//!
//! Each place (workload, lane, number of CPUs) is an experiment with the kernels and their models;
//! each wrong model and each value of a knob is one of its own, simulated alone. So the store, the
//! manifest and the order of runs are those of every experiment, and `judge` finds the runs by the
//! experiment's name.

use super::file::{Control, LaneSpec, Metric, Pair, Sweep, Validation, WorkloadSpec};
use crate::axis::Scalar;
use schedlab_run::StudyError;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What of a validation is wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Only these lanes, if any is named.
    pub lanes: Vec<String>,
    /// Only these kernels, if any is named.
    pub kernels: Vec<String>,
    /// Without what `skip_quick` says.
    pub quick: bool,
    /// Runs of each kernel instead of the file's.
    pub repetitions: Option<u32>,
    /// Release of this machine's kernel; `None`: nothing runs here.
    pub host_release: Option<String>,
}

/// An experiment file, and the workload files that it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generated {
    /// The text (TOML).
    pub text: String,
    /// Workloads (JSON) by name.
    pub files: BTreeMap<String, String>,
    /// What is left out, and why.
    pub missing: Vec<String>,
}

/// A workload in a lane with so many CPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'v> {
    pub workload: &'v WorkloadSpec,
    pub lane: &'v LaneSpec,
    pub nr_cpus: u32,
}

impl Place<'_> {
    /// Name of the experiment with kernels and models.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.workload.name, self.lane.name, self.nr_cpus)
    }

    /// Name of a wrong model's.
    pub fn control(&self, control: &Control) -> String {
        format!("{} control {}", self.name(), model_of(control))
    }

    /// Name of a value's.
    pub fn sweep(&self, sweep: &Sweep, value: &Scalar) -> String {
        format!("{} {}={value}", self.name(), sweep.knob)
    }
}

/// A wrong model with its tunables, for people.
pub(super) fn model_of(control: &Control) -> String {
    let set: Vec<String> = control.set.iter().map(|(name, v)| format!("{name}={v}")).collect();
    match set.is_empty() {
        true => control.model.clone(),
        false => format!("{} {}", control.model, set.join(",")),
    }
}

/// Whether a control is made at a place.
pub(super) fn has_control(place: Place<'_>, control: &Control) -> bool {
    control.workload == place.workload.name
        && control.is_in(&place.lane.name)
        && control.metric.fits(place.nr_cpus)
}

/// Metrics that a sweep moves at a place.
pub(super) fn swept<'s>(place: Place<'_>, sweep: &'s Sweep) -> impl Iterator<Item = Metric> + 's {
    let is_here = sweep.workload == place.workload.name;
    let nr_cpus = place.nr_cpus;
    sweep.metrics.iter().copied().filter(move |metric| is_here && metric.fits(nr_cpus))
}

impl Validation {
    /// The places that are wanted.
    pub(super) fn places<'v>(&'v self, wanted: &Wanted) -> Vec<Place<'v>> {
        let mut places = Vec::new();
        for lane in &self.lanes {
            if !wanted.lanes.is_empty() && !wanted.lanes.contains(&lane.name) {
                continue;
            }
            for workload in &self.workloads {
                let is_left_out = wanted.quick && workload.skip_quick;
                if is_left_out || !workload.is_in(&lane.name) {
                    continue;
                }
                let place = |nr_cpus: &u32| Place { workload, lane, nr_cpus: *nr_cpus };
                places.extend(lane.cpus.iter().map(place));
            }
        }
        places
    }

    /// The pairs whose kernel a lane can have.
    pub(super) fn pairs_in(&self, lane: &LaneSpec, wanted: &Wanted) -> Vec<&Pair> {
        let is_left_out = |pair: &Pair| wanted.quick && pair.skip_quick && lane.name != "host";
        let is_wanted = |pair: &&Pair| match wanted.kernels.is_empty() {
            true => !is_left_out(pair),
            false => wanted.kernels.contains(&pair.kernel),
        };
        let is_here = |pair: &&Pair| match &wanted.host_release {
            _ if lane.name != "host" => true,
            Some(release) => is_of_series(release, &pair.kernel),
            None => false,
        };
        self.pairs.iter().filter(is_wanted).filter(is_here).collect()
    }

    /// The experiment file. The error says which kernel is unknown, or that nothing is left.
    pub fn generate(&self, wanted: &Wanted) -> Result<Generated, StudyError> {
        for kernel in &wanted.kernels {
            let known = self.pairs.iter().map(|pair| pair.kernel.as_str());
            if !known.clone().any(|name| name == kernel) {
                return Err(schedlab_run::place::unknown("kernel", kernel, known));
            }
        }
        let mut generated = Generated {
            text: format!("name = {}\n", quoted(&self.name)),
            files: BTreeMap::new(),
            missing: Vec::new(),
        };
        for place in self.places(wanted) {
            let pairs = self.pairs_in(place.lane, wanted);
            if pairs.is_empty() {
                generated.says_missing(place.lane, wanted);
                continue;
            }
            self.place(place, &pairs, wanted, &mut generated);
        }
        if generated.files.is_empty() {
            let why = generated.missing.join("; ");
            return Err(StudyError::new(
                "nothing is left to compare",
                if why.is_empty() { "ask for more lanes or kernels".into() } else { why },
            ));
        }
        Ok(generated)
    }

    fn place(&self, place: Place<'_>, pairs: &[&Pair], wanted: &Wanted, to: &mut Generated) {
        let models: Vec<&str> = pairs.iter().map(|pair| pair.model.as_str()).collect();
        let kernels: Vec<&str> = match place.lane.name.as_str() {
            "vm" => pairs.iter().map(|pair| pair.kernel.as_str()).collect(),
            _ => vec!["OTHER"],
        };
        let mut experiment = Experiment { place, wanted, to };
        let own = &place.workload.parameters;
        experiment.begin(&place.name(), own);
        experiment.runs("sim", &models, None, &BTreeMap::new());
        experiment.runs(&place.lane.name, &kernels, None, &BTreeMap::new());
        let mut done = Vec::new();
        for control in self.controls.iter().filter(|control| has_control(place, control)) {
            let name = place.control(control);
            if !done.contains(&name) {
                experiment.begin(&name, own);
                experiment.runs("sim", &[&control.model], None, &control.set);
                done.push(name);
            }
        }
        for sweep in &self.sweeps {
            if swept(place, sweep).next().is_none() {
                continue;
            }
            let is_swept =
                |model: &&&str| sweep.models.is_empty() || sweep.models.iter().any(|m| m == *model);
            let models: Vec<&str> = models.iter().filter(is_swept).copied().collect();
            for value in sweep.values.iter().filter(|_| !models.is_empty()) {
                let name = place.sweep(sweep, value);
                if done.contains(&name) {
                    continue;
                }
                experiment.knob(&name, sweep, value, &models);
                done.push(name);
            }
        }
    }
}

/// Whether a kernel's release is of a series: `6.18.33+deb13` is of `6.18`.
fn is_of_series(release: &str, series: &str) -> bool {
    let rest = release.strip_prefix(series);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

impl Generated {
    fn says_missing(&mut self, lane: &LaneSpec, wanted: &Wanted) {
        let text = match &wanted.host_release {
            _ if lane.name != "host" => format!("lane {}: no kernel is left", lane.name),
            Some(release) => format!("lane host: this machine's kernel {release} has no model"),
            None => "lane host: this machine's kernel is not known".to_string(),
        };
        if !self.missing.contains(&text) {
            self.missing.push(text);
        }
    }
}

/// Writes experiments of a place.
struct Experiment<'a> {
    place: Place<'a>,
    wanted: &'a Wanted,
    to: &'a mut Generated,
}

impl Experiment<'_> {
    fn begin(&mut self, name: &str, parameters: &BTreeMap<String, Scalar>) {
        let Place { workload, lane, nr_cpus } = self.place;
        let (file, tasks) = filled(workload, parameters);
        let own = workload.repetitions.unwrap_or(lane.repetitions);
        let count = self.wanted.repetitions.unwrap_or(own);
        let has_slices = workload.metrics.contains(&Metric::Slices) && nr_cpus == 1;
        let _ = write!(
            self.to.text,
            "\n[[experiment]]\nname = {}\ntext = {}\nworkload = {}\nmachine = {}\n\
             parameters = {{ cpus = {nr_cpus} }}\nseeds = {{ first = 1, count = {count} }}\n\
             keep_slices = {has_slices}\nkeep_each = true\n",
            quoted(name),
            quoted(&workload.text),
            quoted(&file),
            quoted(&lane.machine),
        );
        self.to.files.insert(file, tasks);
    }

    fn runs(
        &mut self,
        lane: &str,
        schedulers: &[&str],
        hz: Option<&Scalar>,
        set: &BTreeMap<String, Scalar>,
    ) {
        let names: Vec<String> = schedulers.iter().map(|name| quoted(name)).collect();
        let text = &mut self.to.text;
        let _ = write!(
            text,
            "\n[[experiment.runs]]\nlane = {}\nschedulers = [{}]\n",
            quoted(lane),
            names.join(", ")
        );
        if let Some(hz) = hz {
            let _ = writeln!(text, "hz = {hz}");
        }
        if !set.is_empty() {
            let pairs = set.iter().map(|(name, value)| format!("{name} = {}", scalar(value)));
            let _ = writeln!(text, "set = {{ {} }}", pairs.collect::<Vec<_>>().join(", "));
        }
    }

    /// The models with a value of a knob.
    fn knob(&mut self, name: &str, sweep: &Sweep, value: &Scalar, models: &[&str]) {
        let own = &self.place.workload.parameters;
        let none = BTreeMap::new();
        if let Some(tunable) = sweep.knob.strip_prefix("set.") {
            self.begin(name, own);
            let set = BTreeMap::from([(tunable.to_string(), value.clone())]);
            self.runs("sim", models, None, &set);
        } else if sweep.knob == "hz" {
            self.begin(name, own);
            self.runs("sim", models, Some(value), &none);
        } else {
            let mut parameters = own.clone();
            parameters.insert(sweep.knob.clone(), value.clone());
            self.begin(name, &parameters);
            self.runs("sim", models, None, &none);
        }
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

/// A TOML string: JSON's form of one is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn scalar(value: &Scalar) -> String {
    match value {
        Scalar::Number(number) => number.to_string(),
        Scalar::Text(text) => quoted(text),
    }
}
