// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sweep: an experiment file made into a plan, with everything that decides its results.

use super::held;
use super::log::{LOG_NAME, RunLog};
use crate::execute::Progress;
use crate::identity::{Program, plan_key, run_keys};
use crate::pairs::Wanted;
use crate::studies::Source;
use crate::{ExecuteOptions, ExperimentResult, Failure, LabError, Plan, PlanInput, execute_some};
use schedlab_metrics::analysis::Thresholds;
use schedlab_model::CpuMask;
use schedlab_run::file::FileError;
use schedlab_run::{Keep, Lane, LaneKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hash;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

/// What decides the results beside the experiment file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Seed of the first repetition where the file names no seeds, and of the order of runs on a
    /// real machine.
    pub seed: u64,
    /// CPUs of the host that runs may use; their number is what `all` counts.
    pub host_cpus: String,
    /// Only these lanes, if any is named.
    #[serde(default)]
    pub lanes: Vec<LaneKind>,
    /// Repetitions on the host instead of the study's, if any were asked for.
    #[serde(default)]
    pub host_repetitions: Option<u32>,
    /// The quick form of the study.
    #[serde(default)]
    pub quick: bool,
    /// The first run of each point is analysed too: lengths (ns) from which a wait is starvation,
    /// and a CPU that idles beside a waiting task wasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<[u64; 2]>,
    /// Ticks a second of modelled machines instead of their own.
    pub hz: Option<u32>,
    /// Costs of modelled machines (ns) instead of their own.
    pub costs: Option<BTreeMap<String, u64>>,
    /// Preemption model instead of the machine's or the scheduler's.
    pub preempt: Option<String>,
    /// Longest wait of a runnable task: `auto`, `off`, or a time in ns.
    pub watchdog: String,
    /// CPU model and kernel of the host; empty where nothing was measured.
    pub host: String,
    /// QEMU and guest of runs in virtual machines; empty where there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vm: String,
    /// What was wanted of a study's pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Wanted>,
}

impl Settings {
    /// What a plan with these settings depends on; runs on the host may use `host_cpus`.
    pub fn input(&self, host_cpus: CpuMask, runs_max: usize) -> PlanInput {
        PlanInput {
            host_cpus,
            seed: self.seed,
            lanes: self.lanes.clone(),
            host_repetitions: self.host_repetitions,
            runs_max,
            has_views: true,
        }
    }

    /// What counts as a finding of the analysis; `None`: no analysis.
    pub fn thresholds(&self) -> Option<Thresholds> {
        self.analysis.map(|[starved_ns, wasted_ns]| Thresholds { starved_ns, wasted_ns })
    }
}

/// A sweep before its first run.
#[derive(Debug)]
pub struct Sweep {
    /// The file.
    pub source: Source,
    /// What decides the results beside it.
    pub settings: Settings,
    /// All runs.
    pub plan: Plan,
    /// Key of each run.
    pub keys: Vec<String>,
    /// Key of all.
    pub plan_key: String,
}

impl Sweep {
    /// From a plan, with the keys that `program` gives. `model` is all of the lane that simulates
    /// that decides the runs of a scheduler.
    pub fn new<M: Hash>(
        source: Source,
        settings: Settings,
        plan: Plan,
        program: &Program,
        model: impl Fn(&str) -> M,
    ) -> Self {
        let keys = run_keys(&plan, &settings, program, model);
        let names = plan.runs.iter().map(|run| plan.experiments[run.experiment].name.as_str());
        let plan_key = plan_key(names.zip(keys.iter().map(String::as_str)));
        Self { source, settings, plan, keys, plan_key }
    }

    /// Title of the report.
    pub fn title(&self) -> String {
        let study = &self.source.study;
        if study.title.is_empty() { study.name.clone() } else { study.title.clone() }
    }

    /// Number of runs in `lane`.
    pub fn nr_runs(&self, lane: LaneKind) -> usize {
        self.plan.runs.iter().filter(|run| run.lane == lane).count()
    }

    /// Number of runs that `log` holds.
    pub fn nr_stored(&self, log: &RunLog) -> usize {
        self.keys.iter().filter(|key| log.contains(key)).count()
    }

    /// Runs what `log` does not hold yet, and stores each run as it ends. The first error of the
    /// log ends it.
    pub fn run_missing(
        &self,
        log: &Mutex<RunLog>,
        lanes: &[&dyn Lane],
        threads: usize,
        progress: &Progress<'_>,
    ) -> io::Result<Vec<Failure>> {
        let plan = &self.plan;
        let is_stored: Vec<bool> = {
            let log = held(log);
            self.keys.iter().map(|key| log.contains(key)).collect()
        };
        let failures = Mutex::new(Vec::new());
        let broken: Mutex<Option<io::Error>> = Mutex::new(None);
        let options = ExecuteOptions { threads, seed: self.settings.seed };
        execute_some(plan, lanes, options, &|run| !is_stored[run], &|run, result| {
            progress(run, result.as_ref().err());
            match result {
                Ok(result) => {
                    if let Err(error) = held(log).append(&self.keys[run], &result) {
                        held(&broken).get_or_insert(error);
                        return ControlFlow::Break(());
                    }
                }
                Err(error) => {
                    let label = plan.runs[run].label();
                    held(&failures).push(Failure { run, label, error });
                }
            }
            ControlFlow::Continue(())
        });
        if let Some(error) = held(&broken).take() {
            return Err(error);
        }
        let mut failures = std::mem::take(&mut *held(&failures));
        failures.sort_by_key(|failure| failure.run);
        Ok(failures)
    }

    /// Every stored result in the plan's order. Unless `has_tasks`, tasks are dropped where no
    /// figure needs them: a sweep may have a million.
    pub fn load(
        &self,
        log: &mut RunLog,
        folder: &Path,
        has_tasks: bool,
    ) -> Result<Vec<ExperimentResult>, LabError> {
        let wrong = |what| move |source| FileError { what, path: folder.join(LOG_NAME), source };
        log.sort(self.keys.iter().map(String::as_str)).map_err(wrong("write"))?;
        let experiments = self.plan.experiments.iter().cloned();
        let mut results: Vec<ExperimentResult> = experiments
            .map(|experiment| ExperimentResult { experiment, runs: Vec::new() })
            .collect();
        for (planned, key) in self.plan.runs.iter().zip(&self.keys) {
            if !log.contains(key) {
                continue;
            }
            let mut run = log.read(key).map_err(wrong("read"))?;
            let result = &mut results[planned.experiment];
            let is_needed = has_tasks || planned.request.keep != Keep::NOTHING;
            if !is_needed && result.experiment.figures.is_empty() {
                run.measures.tasks = Vec::new();
            }
            result.runs.push(run);
        }
        Ok(results)
    }
}
