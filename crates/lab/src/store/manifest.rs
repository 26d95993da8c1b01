// SPDX-License-Identifier: MIT OR Apache-2.0
//! `manifest.json`: everything that determines a sweep, and the sum of each of its results.
//!
//! It needs no other file: it contains the texts of the experiment and of the workload files. It
//! holds no date and no number of threads, so that equal sweeps have equal manifests.

use super::log::RunLog;
use super::sweep::{Settings, Sweep};
use crate::identity::{Program, result_sum};
use crate::{Failure, LabError, View};
use schedlab_run::file::{AtomicFile, FileError, read_text};
use schedlab_run::sha::sha256;
use schedlab_run::{LaneKind, RunResult, values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Name of the file in the directory of results.
pub const MANIFEST_NAME: &str = "manifest.json";
/// Size limit for a manifest.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Version of the format.
const SCHEMA_VERSION: u32 = 2;

/// One run of a sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestRun {
    /// Experiment, lane, scheduler, workload and parameters, for people.
    pub label: String,
    /// `sim` or `host`.
    pub lane: LaneKind,
    /// Seed.
    pub seed: u64,
    /// SHA-256 of everything that determines the run.
    pub key: String,
    /// SHA-256 of its result without the program's version; `None` without a result.
    pub result_sha256: Option<String>,
    /// The measures of the experiment's table.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, f64>,
    /// Why the run has no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The manifest of a sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the format.
    pub schema_version: u32,
    /// Version of the program.
    pub schedlab_version: String,
    /// Sum of the sources that decide its simulated runs' results; empty: unknown.
    #[serde(default)]
    pub models: String,
    /// Name of the experiment file.
    pub experiment_file: String,
    /// Its text.
    pub experiment_text: String,
    /// Texts of the named workload files.
    pub workload_files: BTreeMap<String, String>,
    /// Other settings that decide the results.
    pub settings: Settings,
    /// SHA-256 of the keys of all runs.
    pub plan_key: String,
    /// Number of runs.
    pub nr_runs: u64,
    /// Whether every run was tried. While a sweep continues, the manifest lists no runs.
    pub is_complete: bool,
    /// The runs, in the order of the plan.
    pub runs: Vec<ManifestRun>,
    /// SHA-256 of the files next to the manifest.
    pub files: BTreeMap<String, String>,
}

impl Manifest {
    /// The manifest of a sweep that begins.
    pub fn of(sweep: &Sweep) -> Self {
        let Program { version, models } = Program::this();
        Self {
            schema_version: SCHEMA_VERSION,
            schedlab_version: version,
            models,
            experiment_file: sweep.source.file_name(),
            experiment_text: sweep.source.text.clone(),
            workload_files: sweep.source.files(),
            settings: sweep.settings.clone(),
            plan_key: sweep.plan_key.clone(),
            nr_runs: sweep.plan.runs.len() as u64,
            is_complete: false,
            runs: Vec::new(),
            files: BTreeMap::new(),
        }
    }

    /// The program that made the runs.
    pub fn program(&self) -> Program {
        Program { version: self.schedlab_version.clone(), models: self.models.clone() }
    }

    /// Reads the manifest of a directory, if it has one.
    pub fn read_from(folder: &Path) -> Result<Option<Self>, LabError> {
        let path = folder.join(MANIFEST_NAME);
        if !path.exists() {
            return Ok(None);
        }
        Self::read(&path).map(Some)
    }

    /// Reads a manifest.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text = read_text(path, FILE_BYTES_MAX)?;
        let wrong = |what: String| {
            LabError::refused(
                format!("{} is no manifest of a sweep: {what}", path.display()),
                "`schedlab compare EXPERIMENT.toml` writes one; --fresh begins anew",
            )
        };
        let manifest: Self =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if manifest.schema_version != SCHEMA_VERSION {
            return Err(wrong(format!(
                "schema_version is {}, this program reads {SCHEMA_VERSION}",
                manifest.schema_version
            )));
        }
        Ok(manifest)
    }

    /// Writes it into a directory.
    pub fn write(&self, folder: &Path) -> Result<(), FileError> {
        let path = folder.join(MANIFEST_NAME);
        let mut file = AtomicFile::create(&path)?;
        let written = serde_json::to_writer_pretty(&mut file, self)
            .map_err(std::io::Error::from)
            .and_then(|()| file.write_all(b"\n"));
        written.map_err(|source| FileError { what: "write", path, source })?;
        file.commit()
    }
}

/// The view's measures that a run has.
fn measures(view: Option<&View>, run: &RunResult) -> BTreeMap<String, f64> {
    let wanted = view.cloned().unwrap_or_default().measures();
    let all = values::run_values(run).into_iter();
    all.filter(|(name, _)| wanted.contains(name)).filter_map(|(n, v)| Some((n, v?))).collect()
}

impl Sweep {
    /// The manifest's entry for run number `index`, whose result is `run`.
    pub fn entry(&self, index: usize, run: Option<&RunResult>) -> ManifestRun {
        let planned = &self.plan.runs[index];
        let experiment = &self.plan.experiments[planned.experiment];
        ManifestRun {
            label: format!("{}: {}", experiment.name, planned.label()),
            lane: planned.lane,
            seed: planned.request.seed,
            key: self.keys[index].clone(),
            result_sha256: run.map(result_sum),
            measures: run.map_or_else(BTreeMap::new, |run| measures(experiment.view.as_ref(), run)),
            error: None,
        }
    }

    /// Writes the manifest after every run was tried; `files` are those next to it.
    pub fn write_manifest(
        &self,
        log: &mut RunLog,
        failures: &[Failure],
        folder: &Path,
        files: &[String],
    ) -> Result<(), LabError> {
        let mut manifest = Manifest { is_complete: true, ..Manifest::of(self) };
        for (index, key) in self.keys.iter().enumerate() {
            let wrong =
                |source| FileError { what: "read the runs in", path: folder.into(), source };
            let run = if log.contains(key) { Some(log.read(key).map_err(wrong)?) } else { None };
            let failure = failures.iter().find(|failure| failure.run == index);
            let error = failure.map(|failure| failure.error.text().to_string());
            manifest.runs.push(ManifestRun { error, ..self.entry(index, run.as_ref()) });
        }
        for name in files {
            let path = folder.join(name);
            let bytes =
                std::fs::read(&path).map_err(|source| FileError { what: "read", path, source })?;
            manifest.files.insert(name.clone(), sha256(&bytes));
        }
        Ok(manifest.write(folder)?)
    }
}
