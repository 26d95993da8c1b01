// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sweep: an experiment file as a plan, with everything that decides its results.

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

/// Settings that decide the results, in addition to the experiment file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Seed of the first repetition if the file names no seeds, and of the order of runs on a real
    /// machine.
    pub seed: u64,
    /// CPUs of the host that runs may use; their number is the value of `all`.
    pub host_cpus: String,
    /// Only these lanes; empty: all.
    #[serde(default)]
    pub lanes: Vec<LaneKind>,
    /// Repetitions on the host instead of the study's, if requested.
    #[serde(default)]
    pub host_repetitions: Option<u32>,
    /// Whether to use the quick form of the study.
    #[serde(default)]
    pub quick: bool,
    /// Thresholds (ns) of an analysis of each point's first run. The first is the length of a wait
    /// that counts as starvation. The second is how long a CPU idles while a task waits before it
    /// counts as wasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<[u64; 2]>,
    /// Ticks per second of modelled machines, instead of their own.
    pub hz: Option<u32>,
    /// Costs of modelled machines (ns) instead of their own.
    pub costs: Option<BTreeMap<String, u64>>,
    /// Preemption model instead of the machine's or the scheduler's.
    pub preempt: Option<String>,
    /// Longest wait of a runnable task: `auto`, `off`, or a time in ns.
    pub watchdog: String,
    /// CPU model and kernel of the host; empty without measured runs.
    pub host: String,
    /// QEMU and guest of runs in virtual machines; empty without such runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vm: String,
    /// The requested part of a study's pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Wanted>,
}

impl Settings {
    /// The input of a plan with these settings; runs on the host may use `host_cpus`.
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

    /// The thresholds for findings of the analysis; `None`: no analysis.
    pub fn thresholds(&self) -> Option<Thresholds> {
        self.analysis.map(|[starved_ns, wasted_ns]| Thresholds { starved_ns, wasted_ns })
    }
}

/// A sweep before its first run.
#[derive(Debug)]
pub struct Sweep {
    /// The file.
    pub source: Source,
    /// Other settings that decide the results.
    pub settings: Settings,
    /// All runs.
    pub plan: Plan,
    /// Key of each run.
    pub keys: Vec<String>,
    /// Key of the whole plan.
    pub plan_key: String,
}

impl Sweep {
    /// Makes a sweep from a plan, with the keys by `program`. For a scheduler, `model` returns
    /// everything in the simulating lane that decides its runs.
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

    /// Runs what `log` does not hold yet, and stores each run when it ends. The first error of the
    /// log stops the sweep.
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

    /// Every stored result in the plan's order. Unless `has_tasks`, drops tasks that no figure
    /// needs, because a sweep may have a million.
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
