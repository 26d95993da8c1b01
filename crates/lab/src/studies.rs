// SPDX-License-Identifier: MIT OR Apache-2.0
//! The built-in studies, studies in files, and the workloads that they name.

use crate::document::placed;
use crate::pairs::Wanted;
use crate::study::ExperimentSpec;
use crate::{Built, LabError, Makers, Plan, PlanInput, Study};
use schedlab_model::Workload;
use schedlab_run::file::read_text;
use schedlab_run::machine::is_file;
use schedlab_run::{MachineSpec, Schedulers, Warning, workload_file};
use schedlab_workload::WorkloadName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Studies as text, compiled in so that the program needs no other file.
const BUILT_IN: [(&str, &str); 5] = [
    ("S0.toml", include_str!("../../../studies/S0.toml")),
    ("S1.toml", include_str!("../../../studies/S1.toml")),
    // Published data, claims and figures are in separate files, to keep a study's own file short.
    (
        "S2.toml",
        concat!(
            include_str!("../../../studies/S2.toml"),
            "\n",
            include_str!("../../../studies/S2-others.toml")
        ),
    ),
    (
        "S3.toml",
        concat!(
            include_str!("../../../studies/S3.toml"),
            "\n",
            include_str!("../../../studies/S3-figures.toml")
        ),
    ),
    (
        "S4.toml",
        concat!(
            include_str!("../../../studies/S4.toml"),
            include_str!("../../../studies/S4-claims.toml"),
            "\n",
            include_str!("../../../studies/S4-figures.toml")
        ),
    ),
];

/// Key of this machine's model; no file can have this name.
const THIS_MACHINE: &str = "/host";

/// The built-in study of kernels and their models.
pub const VALIDATION: &str = concat!(
    include_str!("../../../studies/validate.toml"),
    "\n",
    include_str!("../../../studies/validate-cases.toml")
);

/// Size limit for a study file.
pub const STUDY_BYTES_MAX: u64 = 1 << 20;
/// Size limit for a workload file; rt-app files take a few kilobytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// The advice for an error of a study that has none.
const SCHEMA_HELP: &str = "`schedlab schema experiment` prints what a study may hold";

/// The modelled machines that a study may name. An error is a text for people.
pub trait Machines {
    /// The built-in machine with this name.
    fn preset(&self, name: &str) -> Result<MachineSpec, String>;

    /// Parses the text of a machine file.
    fn parse(&self, text: &str) -> Result<MachineSpec, String>;

    /// A model of this machine, as the text of a file.
    fn this_machine(&self) -> Result<String, String>;
}

/// A study with its text, and the workload files that it names.
#[derive(Debug)]
pub struct Source {
    /// Name of the file as the user gave it.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The parsed study.
    pub study: Study,
    /// Folder of its relative paths; `None`: reads no file, because `files` has all of them.
    folder: Option<PathBuf>,
    /// Workload files by the path in the study.
    files: Mutex<BTreeMap<String, String>>,
    /// Warnings about entries in the workload files that have no effect.
    warnings: Mutex<Vec<Warning>>,
}

impl Source {
    /// Makes a source from a text, with files in `folder`. Of the study's pairs, selects all that
    /// run in guests.
    pub fn new(name: &str, text: String, folder: Option<PathBuf>) -> Result<Self, LabError> {
        Self::with_pairs(name, text, folder, &Wanted::default())
    }

    /// Makes a source from a text, with the requested part of the study's pairs.
    pub fn with_pairs(
        name: &str,
        text: String,
        folder: Option<PathBuf>,
        wanted: &Wanted,
    ) -> Result<Self, LabError> {
        let study = Study::parse(&text).and_then(|study| study.with_pairs(wanted));
        let study = study.map_err(|error| placed(name, &text, error, SCHEMA_HELP))?;
        Ok(Self {
            name: name.into(),
            text,
            study,
            folder,
            files: Mutex::default(),
            warnings: Mutex::default(),
        })
    }

    /// Reads a study file.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        Self::read_pairs(path, &Wanted::default())
    }

    /// Reads a study file, with the requested part of the study's pairs.
    pub fn read_pairs(path: &Path, wanted: &Wanted) -> Result<Self, LabError> {
        let text = read_text(path, STUDY_BYTES_MAX)?;
        let folder = path.parent().map(PathBuf::from).unwrap_or_default();
        Self::with_pairs(&path.display().to_string(), text, Some(folder), wanted)
    }

    /// Replaces the workload files by these.
    pub fn with_files(mut self, files: BTreeMap<String, String>) -> Self {
        self.folder = None;
        self.files = Mutex::new(files);
        self
    }

    /// Adds a model of this machine, as the text of a machine file, if the study names the machine
    /// `host`.
    pub fn with_this_machine<E>(
        self,
        model: impl FnOnce() -> Result<String, E>,
    ) -> Result<Self, E> {
        let mut machines = self.study.experiments.iter().flat_map(ExperimentSpec::machines);
        if machines.any(|machine| machine == "host") {
            held(&self.files).insert(THIS_MACHINE.into(), model()?);
        }
        Ok(self)
    }

    /// Makes the source of a manifest; `wanted` is the part of the study's pairs that ran.
    pub fn of_manifest(
        name: &str,
        text: String,
        files: BTreeMap<String, String>,
        wanted: Option<&Wanted>,
    ) -> Result<Self, LabError> {
        let all = Wanted::default();
        Ok(Self::with_pairs(name, text, None, wanted.unwrap_or(&all))?.with_files(files))
    }

    /// The workload files read so far.
    pub fn files(&self) -> BTreeMap<String, String> {
        held(&self.files).clone()
    }

    /// Folder of its relative paths; empty if it reads no file.
    pub fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new(""))
    }

    /// Name of the file without its folder, which is the same on every machine.
    pub fn file_name(&self) -> String {
        let name = Path::new(&self.name).file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The warnings about workload files read since the last call, each once.
    pub fn take_warnings(&self) -> Vec<Warning> {
        std::mem::take(&mut held(&self.warnings))
    }

    /// Adds the study's runs to a plan.
    pub fn plan(
        &self,
        plan: &mut Plan,
        input: &PlanInput,
        machines: &dyn Machines,
        schedulers: &dyn Schedulers,
    ) -> Result<(), LabError> {
        let build = |name: &str, parameters: &BTreeMap<String, String>, nr_cpus: u32| {
            self.workload(name, parameters, nr_cpus).map_err(|error| error.text())
        };
        let tasks = |name: &str, text: &str, nr_cpus: u32| {
            self.tasks(name, text, nr_cpus).map_err(|error| error.text())
        };
        let machine = |name: &str| self.machine(name, machines);
        let make = Makers { workload: &build, tasks: &tasks, machine: &machine, schedulers };
        plan.notes.extend(self.study.notes.iter().cloned());
        plan.add_study(&self.study, input, make)
            .map_err(|error| placed(&self.name, &self.text, error, SCHEMA_HELP))
    }

    fn workload(
        &self,
        name: &str,
        given: &BTreeMap<String, String>,
        nr_cpus: u32,
    ) -> Result<Built, LabError> {
        let pairs = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        match WorkloadName::parse(name)? {
            WorkloadName::Builtin(name, own) => {
                // The study's parameters for all workloads come last, so that a parameter given
                // twice is refused by name.
                let all: Vec<(&str, &str)> = own.into_iter().chain(pairs).collect();
                let parameters =
                    all.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string())).collect();
                Ok(Built { workload: schedlab_workload::builtin(name, &all)?, parameters })
            }
            WorkloadName::File(path) => {
                if let Some(name) = given.keys().next() {
                    let path = path.display();
                    let text = format!(
                        "the file {path} has no parameter {name:?}: only built-in workloads have \
                         any"
                    );
                    return Err(LabError::refused(text, ""));
                }
                let workload = self.tasks(name, &self.file(name)?, nr_cpus)?;
                Ok(Built { workload, parameters: BTreeMap::new() })
            }
        }
    }

    /// Parses a workload file, or the text of one.
    fn tasks(&self, name: &str, text: &str, nr_cpus: u32) -> Result<Workload, LabError> {
        let mut found = Vec::new();
        let workload = workload_file::read(name, text, nr_cpus, &mut found)?;
        let mut warnings = held(&self.warnings);
        for warning in found {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        Ok(workload)
    }

    /// Makes a modelled machine. Keeps the text of a machine file, and of this machine's model, for
    /// the manifest.
    fn machine(&self, name: &str, machines: &dyn Machines) -> Result<MachineSpec, String> {
        let is_here = name == "host";
        if !is_here && !is_file(name) {
            return machines.preset(name);
        }
        let text = match (is_here, held(&self.files).get(THIS_MACHINE)) {
            (true, Some(text)) => text.clone(),
            (true, None) if self.folder.is_some() => machines.this_machine()?,
            _ => String::new(),
        };
        let text = if is_here {
            held(&self.files).insert(THIS_MACHINE.into(), text.clone());
            text
        } else {
            self.file(name).map_err(|error| error.text())?
        };
        machines.parse(&text).map_err(|error| format!("machine {name}: {error}"))
    }

    /// Text of a workload or machine file, read once.
    fn file(&self, name: &str) -> Result<String, LabError> {
        if let Some(text) = held(&self.files).get(name) {
            return Ok(text.clone());
        }
        let Some(folder) = &self.folder else {
            let text = format!("the file {name} is not in the manifest");
            return Err(LabError::refused(text, ""));
        };
        let text = read_text(&folder.join(name), FILE_BYTES_MAX)?;
        held(&self.files).insert(name.into(), text.clone());
        Ok(text)
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The built-in studies.
pub fn built_in() -> Result<Vec<Source>, LabError> {
    BUILT_IN.iter().map(|(name, text)| Source::new(name, (*text).into(), None)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sim::SimLane;

    #[test]
    fn the_built_in_studies_can_be_read() {
        let studies = built_in().unwrap();
        let found: Vec<(&str, usize)> =
            studies.iter().map(|s| (s.study.name.as_str(), s.study.claims.len())).collect();
        assert_eq!(found, [("S0", 18), ("S1", 11), ("S2", 19), ("S3", 22), ("S4", 20)]);
    }

    /// The simulator's presets.
    struct Presets;

    impl Machines for Presets {
        fn preset(&self, name: &str) -> Result<MachineSpec, String> {
            schedlab_sim::machine::preset(name).ok_or_else(|| format!("no machine {name}"))
        }

        fn parse(&self, text: &str) -> Result<MachineSpec, String> {
            schedlab_sim::machine::parse(text)
        }

        fn this_machine(&self) -> Result<String, String> {
            Err("not in this test".into())
        }
    }

    #[test]
    fn the_studies_can_be_planned_for_any_machine() {
        for nr_cpus in [1, 2, 7, 128] {
            let input = PlanInput {
                host_cpus: schedlab_model::CpuMask::first(nr_cpus),
                seed: 1,
                lanes: Vec::new(),
                host_repetitions: None,
                runs_max: crate::plan::RUNS_MAX_DEFAULT,
                has_views: false,
            };
            let mut plan = Plan::default();
            for study in built_in().unwrap() {
                study.plan(&mut plan, &input, &Presets, &SimLane::default()).unwrap();
            }
            // Third-party programs have no modelled tasks.
            for run in plan.runs.iter().filter(|run| run.request.program.is_none()) {
                run.request.workload.check(run.request.cpus.weight()).unwrap();
            }
            let names: Vec<&str> = plan.experiments.iter().map(|e| e.name.as_str()).collect();
            assert!(names.contains(&"S0-2cpu-4") && names.contains(&"S1-1cpu"), "{names:?}");
        }
    }

    #[test]
    fn a_workload_file_is_read_once_and_warned_of_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("w.json");
        let task = "{\"tasks\": {\"t\": {\"run\": 5}}, \"global\": \
                    {\"gnuplot\": true}}";
        std::fs::write(&file, task).unwrap();
        let study = "name = 'x'\n[[experiment]]\nname = 'x'\nworkload = './w.json'\n\
                     axes.cpus = [1, 2]\n[[experiment.runs]]\nlane = 'sim'\n\
                     schedulers = ['rr', 'fcfs']\n";
        let source = Source::new("x.toml", study.into(), Some(folder.path().into())).unwrap();
        let input = PlanInput {
            host_cpus: schedlab_model::CpuMask::first(2),
            seed: 1,
            lanes: Vec::new(),
            host_repetitions: None,
            runs_max: 10,
            has_views: false,
        };
        let mut plan = Plan::default();
        source.plan(&mut plan, &input, &Presets, &SimLane::default()).unwrap();
        std::fs::remove_file(&file).unwrap();
        let warnings = source.take_warnings();
        assert!(!warnings.is_empty() && source.take_warnings().is_empty());
        assert_eq!(source.files()["./w.json"], task);
        let again = Source::of_manifest("x.toml", study.into(), source.files(), None).unwrap();
        let mut same = Plan::default();
        again.plan(&mut same, &input, &Presets, &SimLane::default()).unwrap();
        assert_eq!(same, plan);
    }
}
