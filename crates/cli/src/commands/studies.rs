// SPDX-License-Identifier: MIT OR Apache-2.0
//! The studies that come with the program, those in files, and the workloads they name.

use crate::error::{CliError, CliResult};
use crate::input::{self, WorkloadName};
use crate::machine;
use crate::output::say;
use crate::schedulers::{self, Schedulers};
use schedlab_lab::study::ExperimentSpec;
use schedlab_lab::validate::{Validation, ValidationStudy, Wanted};
use schedlab_lab::{Built, Makers, Plan, PlanInput, Study};
use schedlab_run::{LaneError, MachineSpec, StudyError};
use schedlab_sim::SimLane;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Studies as text, compiled in so that the program needs no other file.
const BUILT_IN: [(&str, &str); 5] = [
    ("S0.toml", include_str!("../../../../studies/S0.toml")),
    ("S1.toml", include_str!("../../../../studies/S1.toml")),
    // Other people's data, claims and figures would make a study's own file too long to read.
    (
        "S2.toml",
        concat!(
            include_str!("../../../../studies/S2.toml"),
            "\n",
            include_str!("../../../../studies/S2-others.toml")
        ),
    ),
    (
        "S3.toml",
        concat!(
            include_str!("../../../../studies/S3.toml"),
            "\n",
            include_str!("../../../../studies/S3-figures.toml")
        ),
    ),
    (
        "S4.toml",
        concat!(
            include_str!("../../../../studies/S4.toml"),
            include_str!("../../../../studies/S4-claims.toml"),
            "\n",
            include_str!("../../../../studies/S4-figures.toml")
        ),
    ),
];

/// Name under which the model of this machine is kept; no file can have it.
const THIS_MACHINE: &str = "/host";

/// Largest study file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A study with its text, and the workload files it names.
#[derive(Debug)]
pub struct Source {
    /// Name of the file as the user gave it.
    pub name: String,
    /// Its text.
    pub text: String,
    /// What the text says.
    pub study: Study,
    /// Where the paths in it begin; `None`: no file is read, all there are stand in `files`.
    folder: Option<PathBuf>,
    /// Workload files by the path in the study.
    files: Mutex<BTreeMap<String, String>>,
    warned: Mutex<BTreeSet<String>>,
}

impl Source {
    /// From a text; files are looked for in `folder`.
    pub fn new(name: &str, text: String, folder: Option<PathBuf>) -> CliResult<Self> {
        let study = Study::parse(&text).map_err(|error| placed(name, &text, error, SCHEMA_HELP))?;
        Ok(Self { folder, ..Self::with_study(name, text, study) })
    }

    /// From a file.
    pub fn read(path: &Path) -> CliResult<Self> {
        let text = input::read_text(path, FILE_BYTES_MAX)?;
        let folder = path.parent().map(PathBuf::from).unwrap_or_default();
        Self::new(&path.display().to_string(), text, Some(folder))
    }

    /// The same with these workload files and no others.
    pub fn with_files(mut self, files: BTreeMap<String, String>) -> Self {
        self.folder = None;
        self.files = Mutex::new(files);
        self
    }

    /// A study made of a validation, with its workload files and no others. If it names this
    /// machine, `this_machine` gives its model as the text of a machine file.
    pub fn validation(
        name: &str,
        text: String,
        made: &ValidationStudy<'_>,
        this_machine: impl FnOnce() -> CliResult<String>,
    ) -> CliResult<Self> {
        let mut files = made.files.clone();
        let mut machines = made.study.experiments.iter().flat_map(ExperimentSpec::machines);
        if machines.any(|machine| machine == "host") {
            files.insert(THIS_MACHINE.into(), this_machine()?);
        }
        Ok(Self::with_study(name, text, made.study.clone()).with_files(files))
    }

    /// That of a manifest: of an experiment file, or of a validation file if `wanted` says what of
    /// it was run.
    pub fn of_manifest(
        name: &str,
        text: String,
        files: BTreeMap<String, String>,
        wanted: Option<&Wanted>,
    ) -> CliResult<Self> {
        let source = match wanted {
            None => Self::new(name, text, None)?,
            Some(wanted) => {
                let wrong = |error| placed(name, &text, error, SCHEMA_HELP_VALIDATION);
                let validation = Validation::parse(&text).map_err(wrong)?;
                let study = validation.study(wanted).map_err(wrong)?.study;
                Self::with_study(name, text, study)
            }
        };
        Ok(source.with_files(files))
    }

    fn with_study(name: &str, text: String, study: Study) -> Self {
        Self {
            name: name.into(),
            text,
            study,
            folder: None,
            files: Mutex::default(),
            warned: Mutex::default(),
        }
    }

    /// The workload files that were read.
    pub fn files(&self) -> BTreeMap<String, String> {
        held(&self.files).clone()
    }

    /// Adds the study's runs to a plan. Schedulers that are files are compiled as `known` says.
    pub fn plan(&self, plan: &mut Plan, input: &PlanInput, known: &Schedulers) -> CliResult<()> {
        let build = |name: &str, parameters: &BTreeMap<String, String>, nr_cpus: u32| {
            self.workload(name, parameters, nr_cpus).map_err(|error| error.text())
        };
        let machine = |name: &str| self.machine(name).map_err(|error| error.text());
        let make = Makers { workload: &build, machine: &machine, schedulers: &Beside(self, known) };
        plan.add_study(&self.study, input, make)
            .map_err(|error| placed(&self.name, &self.text, error, SCHEMA_HELP))
    }

    fn workload(
        &self,
        name: &str,
        given: &BTreeMap<String, String>,
        nr_cpus: u32,
    ) -> CliResult<Built> {
        let pairs = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        match input::workload_name(name)? {
            WorkloadName::Builtin(name, own) => {
                // What the study says of all workloads comes last: a parameter given twice is
                // refused by name.
                let all: Vec<(&str, &str)> = own.into_iter().chain(pairs).collect();
                let parameters =
                    all.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string())).collect();
                Ok(Built { workload: input::builtin(name, &all)?, parameters })
            }
            WorkloadName::File(path) => {
                if let Some(name) = given.keys().next() {
                    return Err(CliError::usage(format!(
                        "the file {} has no parameter {name:?}: only built-in workloads have any",
                        path.display()
                    )));
                }
                let text = self.file(name)?;
                let mut warnings = Vec::new();
                let workload = input::rtapp(name, &text, nr_cpus, &mut warnings)?;
                for warning in warnings {
                    if held(&self.warned).insert(warning.text.clone()) {
                        say(format!("warning [{}]: {}", warning.code, warning.text));
                    }
                }
                Ok(Built { workload, parameters: BTreeMap::new() })
            }
        }
    }

    /// A modelled machine. That of a file, and the model of this machine, are kept as text: a
    /// manifest must say what they were.
    fn machine(&self, name: &str) -> CliResult<MachineSpec> {
        let is_here = name == "host";
        if !is_here && !machine::is_file(name) {
            return machine::spec(name);
        }
        let text = match (is_here, held(&self.files).get(THIS_MACHINE)) {
            (true, Some(text)) => text.clone(),
            (true, None) if self.folder.is_some() => this_machine()?,
            _ => String::new(),
        };
        let text = if is_here {
            held(&self.files).insert(THIS_MACHINE.into(), text.clone());
            text
        } else {
            self.file(name)?
        };
        schedlab_sim::machine::parse(&text)
            .map_err(|error| CliError::usage(format!("machine {name}: {error}")))
    }

    /// Text of a workload or machine file, read once.
    fn file(&self, name: &str) -> CliResult<String> {
        if let Some(text) = held(&self.files).get(name) {
            return Ok(text.clone());
        }
        let Some(folder) = &self.folder else {
            return Err(CliError::usage(format!("the file {name} is not in the manifest")));
        };
        let text = input::read_text(&folder.join(name), input::FILE_BYTES_MAX)?;
        held(&self.files).insert(name.into(), text.clone());
        Ok(text)
    }
}

/// Schedulers whose files are named from where a study lies.
struct Beside<'s>(&'s Source, &'s Schedulers);

impl Beside<'_> {
    /// The lane with the scheduler called `name`, compiled if it is a file.
    fn lane_with(&self, name: &str) -> CliResult<SimLane> {
        let Self(source, known) = self;
        let mut lane = SimLane::default();
        if schedulers::is_file(name) {
            let folder = source.folder.clone().unwrap_or_default();
            lane.schedulers.push(known.find_at(name, &folder.join(name))?);
        }
        Ok(lane)
    }
}

impl schedlab_run::Schedulers for Beside<'_> {
    fn check_name(&self, name: &str) -> Result<(), StudyError> {
        let lane = self.lane_with(name).map_err(|error| StudyError::new(error.text(), ""))?;
        schedlab_run::Schedulers::check_name(&lane, name)
    }

    fn check_tunables(&self, name: &str, tunables: &[(String, String)]) -> Result<(), LaneError> {
        let lane = self.lane_with(name).map_err(|error| LaneError::Input(error.text()))?;
        schedlab_run::Schedulers::check_tunables(&lane, name, tunables)
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A model of this machine as text.
fn this_machine() -> CliResult<String> {
    serde_json::to_string(&machine::host()?).map_err(|error| CliError::usage(error.to_string()))
}

/// What is said where an error of a study says nothing.
const SCHEMA_HELP: &str = "`schedlab schema experiment` prints what a study may hold";

/// Help for an error of a validation file that has none of its own.
pub const SCHEMA_HELP_VALIDATION: &str = "`schedlab schema validation` prints what it may hold";

/// The error with file, line and column before it, and the line itself below; `help` if it says
/// nothing itself.
pub fn placed(name: &str, text: &str, error: StudyError, help: &str) -> CliError {
    let error = schedlab_lab::document::located(error, text);
    let help = if error.help.is_empty() { help.into() } else { error.help.clone() };
    match error.span {
        Some(span) => CliError::at(name, text, span, error.text, help),
        None => CliError::usage_help(format!("{name}: {}", error.text), help),
    }
}

/// The studies that come with the program.
pub fn built_in() -> CliResult<Vec<Source>> {
    BUILT_IN.iter().map(|(name, text)| Source::new(name, (*text).into(), None)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_studies_can_be_read() {
        let studies = built_in().unwrap();
        let found: Vec<(&str, usize)> =
            studies.iter().map(|s| (s.study.name.as_str(), s.study.claims.len())).collect();
        assert_eq!(found, [("S0", 18), ("S1", 11), ("S2", 19), ("S3", 22), ("S4", 20)]);
    }

    #[test]
    fn the_studies_can_be_planned_for_any_machine() {
        for nr_cpus in [1, 2, 7, 128] {
            let input = PlanInput {
                host_cpus: schedlab_model::CpuMask::first(nr_cpus),
                seed: 1,
                lanes: Vec::new(),
                host_repetitions: None,
                runs_max: schedlab_lab::plan::RUNS_MAX_DEFAULT,
                has_views: false,
            };
            let mut plan = Plan::default();
            for study in built_in().unwrap() {
                study.plan(&mut plan, &input, &Schedulers::default()).unwrap();
            }
            // Programs of others have no tasks of ours.
            for run in plan.runs.iter().filter(|run| run.request.program.is_none()) {
                run.request.workload.check(run.request.cpus.weight()).unwrap();
            }
            let names: Vec<&str> = plan.experiments.iter().map(|e| e.name.as_str()).collect();
            assert!(names.contains(&"S0-2cpu-4") && names.contains(&"S1-1cpu"), "{names:?}");
        }
    }
}
