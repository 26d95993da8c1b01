// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of an experiment file, as `schedlab compare` plans, names and makes them.

use crate::error::raise;
use pyo3::prelude::*;
use schedlab_core::{Error, SimLane, machine};
use schedlab_lab::identity::Program;
use schedlab_lab::plan::RUNS_MAX_DEFAULT;
use schedlab_lab::store::{Settings, Sweep};
use schedlab_lab::studies::{Machines, Source};
use schedlab_lab::{LabError, PlannedRun};
use schedlab_model::CpuMask;
use schedlab_model::trace::NullSink;
use schedlab_run::{LaneKind, MachineSpec, run_and_check, values};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Columns that every run has; its other parameters follow.
const FIXED: [&str; 8] =
    ["experiment", "run", "lane", "scheduler", "workload", "cpus", "seed", "repetition"];

/// The machines of the simulator. Workers differ, so none of them is a machine of the plan.
struct Presets;

impl Machines for Presets {
    fn preset(&self, name: &str) -> Result<MachineSpec, String> {
        machine::preset(name).ok_or_else(|| machine::unknown(name, &[]).one_line())
    }

    fn parse(&self, text: &str) -> Result<MachineSpec, String> {
        machine::parse(text)
    }

    fn this_machine(&self) -> Result<String, String> {
        Err("a sweep has no machine \"host\", because its workers may differ: name a machine file \
             (`schedlab list machines host --json` prints one of this machine)"
            .into())
    }
}

/// All runs of an experiment file, each with the key that identifies its stored result.
#[pyclass(frozen, module = "schedlab._core")]
pub struct Plan {
    sweep: Sweep,
    lane: SimLane,
    parameters: Vec<String>,
}

fn refused(error: &LabError) -> PyErr {
    raise(Error::usage(error.to_string(), error.help()))
}

/// Refuses runs that only the program can make.
fn refuse_other_lanes(source: &Source) -> Result<(), LabError> {
    let experiments = source.study.experiments.iter();
    let lanes = experiments.flat_map(|spec| spec.runs.iter().map(|runs| runs.lane));
    match lanes.into_iter().find(|lane| *lane != LaneKind::Sim) {
        None => Ok(()),
        Some(lane) => Err(LabError::refused(
            format!("{} has runs in lane {lane}; a sweep only simulates", source.name),
            "measure these with `schedlab compare`, or give the experiment only runs in lane sim",
        )),
    }
}

impl Plan {
    fn planned(&self, index: usize) -> PyResult<&PlannedRun> {
        let runs = &self.sweep.plan.runs;
        runs.get(index).ok_or_else(|| {
            raise(Error::usage(
                format!("no run has the number {index}: the plan has {} runs", runs.len()),
                "",
            ))
        })
    }
}

#[pymethods]
impl Plan {
    /// Plans the experiment file `name` with this text. Relative paths are those of `folder`;
    /// without it, `files` has the text of every file that the experiment names. `host_cpus` lists
    /// the CPUs that stand for `all`.
    #[new]
    #[pyo3(signature = (name, text, host_cpus, folder=None, files=None, runs_max=None))]
    fn new(
        py: Python<'_>,
        name: &str,
        text: String,
        host_cpus: &str,
        folder: Option<PathBuf>,
        files: Option<BTreeMap<String, String>>,
        runs_max: Option<usize>,
    ) -> PyResult<Self> {
        let cpus: CpuMask = host_cpus.parse().map_err(|error| {
            raise(Error::usage(format!("host_cpus is {host_cpus:?}: {error}"), ""))
        })?;
        let settings = Settings {
            seed: 1,
            host_cpus: host_cpus.into(),
            watchdog: "auto".into(),
            ..Settings::default()
        };
        let lane = SimLane { charges_textbooks: true, ..SimLane::default() };
        let planned = py.detach(|| {
            let mut source = Source::new(name, text, folder)?;
            if let Some(files) = files {
                source = source.with_files(files);
            }
            refuse_other_lanes(&source)?;
            let input = settings.input(cpus, runs_max.unwrap_or(RUNS_MAX_DEFAULT));
            let mut plan = schedlab_lab::Plan::default();
            source.plan(&mut plan, &input, &Presets, &lane)?;
            plan.analyse_first(settings.thresholds());
            let model = |scheduler: &str| lane.identity(scheduler);
            Ok(Sweep::new(source, settings, plan, &Program::this(), model))
        });
        let sweep = planned.map_err(|error: LabError| refused(&error))?;
        let runs = sweep.plan.runs.iter();
        let names: BTreeSet<&String> = runs.flat_map(|run| run.request.parameters.keys()).collect();
        let named = |name: &&String| !FIXED.contains(&name.as_str()) && *name != "policy";
        let parameters = names.into_iter().filter(named).cloned().collect();
        Ok(Self { sweep, lane, parameters })
    }

    /// The key of each run, by which a stored result is known.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.sweep.keys.clone()
    }

    /// The key of the whole plan.
    #[getter]
    fn key(&self) -> &str {
        &self.sweep.plan_key
    }

    /// Title of the experiment file, or else its name.
    #[getter]
    fn title(&self) -> String {
        self.sweep.title()
    }

    /// Remarks about runs that the plan leaves out.
    #[getter]
    fn notes(&self) -> Vec<String> {
        let warnings = self.sweep.source.take_warnings().into_iter().map(|one| one.text);
        self.sweep.plan.notes.iter().map(ToString::to_string).chain(warnings).collect()
    }

    /// Text of each file that the experiment names.
    #[getter]
    fn files(&self) -> BTreeMap<String, String> {
        self.sweep.source.files()
    }

    /// Names of parameters, axes and tunables.
    #[getter]
    fn parameters(&self) -> Vec<String> {
        self.parameters.clone()
    }

    fn __len__(&self) -> usize {
        self.sweep.plan.runs.len()
    }

    /// What a run is: experiment, scheduler, workload, CPUs, seed, repetition, and the value of
    /// each parameter.
    #[allow(clippy::type_complexity)]
    fn describe(
        &self,
        index: usize,
    ) -> PyResult<(String, String, String, u32, u64, u32, Vec<Option<String>>)> {
        let planned = self.planned(index)?;
        let request = &planned.request;
        let scheduler = match request.parameters.get("policy") {
            Some(policy) => format!("{}:{policy}", request.scheduler),
            None => request.scheduler.clone(),
        };
        let of = |name: &String| request.parameters.get(name).cloned();
        Ok((
            self.sweep.plan.experiments[planned.experiment].name.clone(),
            scheduler,
            request.workload.name.clone(),
            request.cpus.weight(),
            request.seed,
            request.repetition,
            self.parameters.iter().map(of).collect(),
        ))
    }

    /// Makes a run. Gives its result as stored (JSON) and the value of each measure, or else the
    /// text of its error.
    #[allow(clippy::type_complexity)]
    fn run(
        &self,
        py: Python<'_>,
        index: usize,
    ) -> PyResult<(Option<String>, Vec<Option<f64>>, Option<String>)> {
        let request = &self.planned(index)?.request;
        let result = py.detach(|| run_and_check(&self.lane, request, &mut NullSink));
        let result = match result {
            Ok(result) => result,
            Err(error) => return Ok((None, Vec::new(), Some(error.text().to_owned()))),
        };
        let json = serde_json::to_string(&result)
            .map_err(|error| raise(Error::usage(error.to_string(), "")))?;
        let measured = values::measure_values(&result.measures);
        Ok((Some(json), measured.into_iter().map(|(_, value)| value).collect(), None))
    }
}

/// Names and units of all measures of a run, in the order of [`Plan::run`].
#[pyfunction]
pub fn list_measures() -> Vec<(String, &'static str)> {
    let named = |name: String| {
        let unit = values::unit(&name);
        (name, unit)
    };
    values::measure_names().into_iter().map(named).collect()
}

/// The 0.975 quantile of Student's t distribution.
#[pyfunction]
pub fn t_975(degrees: u64) -> f64 {
    schedlab_metrics::stats::t_975(degrees.max(1))
}

/// Version of the program, and the sum of its models' sources, which are part of every key.
#[pyfunction]
pub fn program() -> (String, String) {
    let Program { version, models } = Program::this();
    (version, models)
}

/// The report's timeline as a script, for a widget.
#[pyfunction]
pub fn timeline_script() -> &'static str {
    concat!(
        include_str!("../../crates/report/assets/data.js"),
        include_str!("../../crates/report/assets/timeline.js")
    )
}
