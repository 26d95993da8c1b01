// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of one run, in the same form for every lane. `--json` prints it and the report reads
//! it.

use crate::expect::Expected;
use crate::{LaneKind, Origin, Recorded, RunRequest, Warning};
use schedlab_metrics::{Analysis, RunMeasures};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A setting of the machine or the kernel that influences the result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Name, such as `kernel.sched_rt_runtime_us`.
    pub name: String,
    /// Value as text.
    pub value: String,
}

/// The machine a run used, real or modelled.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineInfo {
    /// CPU model, or `modelled`.
    pub cpu_model: String,
    /// Number of CPUs that the run could use.
    pub nr_cpus: u32,
    /// Ticks per second, if known.
    pub hz: Option<u32>,
    /// Kernel release, or the modelled scheduler.
    pub kernel: String,
    /// Other settings that influence the result.
    pub settings: Vec<Setting>,
}

impl MachineInfo {
    /// Value of the setting with this name.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|setting| setting.name == name);
        found.map(|setting| setting.value.as_str())
    }
}

/// One uninterrupted stay of a task on a CPU.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slice {
    /// CPU.
    pub cpu: u32,
    /// Task number.
    pub task: u32,
    /// Start (ns).
    pub start_ns: u64,
    /// End (ns).
    pub end_ns: u64,
    /// How it ended: `preempted`, `yielded`, `sleeping`, `blocked-io`, `exited`, `running` (the run
    /// ended).
    pub end: String,
}

/// When a task finished each unit of its progress.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressCurve {
    /// Task number.
    pub task: u32,
    /// Times (ns) of the first, second, ... unit.
    pub times_ns: Vec<u64>,
}

/// What bandwidth control did to a control group, as in cpu.stat of cgroup v2.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupResult {
    /// Path of the group.
    pub path: String,
    /// Periods that ended while the group had running or waiting tasks.
    pub nr_periods: u64,
    /// Periods at whose end the group was throttled on some CPU.
    pub nr_throttled: u64,
    /// Time throttled (ns), summed over the CPUs.
    pub throttled_ns: u64,
    /// Periods in which the group used more than its quota (cpu.max.burst).
    pub nr_bursts: u64,
    /// CPU time (ns) beyond the quota in those periods.
    pub burst_ns: u64,
}

/// One copy of a command that was run on the host.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyResult {
    /// Task number.
    pub task: u32,
    /// Process id.
    pub pid: u32,
    /// Release to exit (ns); `None` if the exit was not recorded.
    pub wall_ns: Option<u64>,
    /// User time (ns) of the copy and of the children that it waited for, from wait4(2).
    pub user_ns: u64,
    /// System time (ns) of the copy and of the children that it waited for.
    pub system_ns: u64,
    /// Time (ns) that the copy's main thread was runnable but not running.
    pub run_delay_ns: u64,
    /// Voluntary switches.
    pub nr_voluntary_switches: u64,
    /// Involuntary switches.
    pub nr_involuntary_switches: u64,
    /// Exit code; or the negative number of the signal that ended it.
    pub exit_code: Option<i32>,
}

/// The result of one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    /// Version of this form, [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// schedlab's version.
    pub schedlab_version: String,
    /// `sim`, `host`, `vm`, or `trace` (read from a file).
    pub lane: Origin,
    /// `sim`, `host`, `vm`; or `trace` for a trace read from a file.
    pub scheduler: String,
    /// Workload name.
    pub workload: String,
    /// Parameters of this run, such as n and CPUs: the axes of figures.
    pub parameters: BTreeMap<String, String>,
    /// Seed.
    pub seed: u64,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// Machine.
    pub machine: MachineInfo,
    /// Source of the numbers: `bpf`, `schedstat`, `simulated`, or the format of a trace.
    pub source: String,
    /// What may distort the result.
    pub warnings: Vec<Warning>,
    /// Measures.
    pub measures: RunMeasures,
    /// The timeline, if it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
    /// Progress of tasks that mark it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<ProgressCurve>,
    /// The analysis: how tasks spent their time and what kept them waiting, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// The workload's expectations with their results, in the workload's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expected>,
    /// Copies of a command, if the workload was a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<CopyResult>,
    /// Figures from the output of a third-party program, by their names in the experiment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
    /// What bandwidth control did to each group with a cpu.max, in the simulator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupResult>,
}

impl RunResult {
    /// A result with the parts that are the same in every lane: the request and what was recorded.
    /// The lane adds machine, source and warnings.
    pub fn of(lane: LaneKind, request: &RunRequest, recorded: Recorded) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            schedlab_version: env!("CARGO_PKG_VERSION").into(),
            lane: lane.into(),
            scheduler: request.scheduler.clone(),
            workload: request.workload.name.clone(),
            parameters: request.parameters.clone(),
            seed: request.seed,
            repetition: request.repetition,
            measures: recorded.measures,
            slices: recorded.slices,
            progress: recorded.progress,
            analysis: recorded.analysis,
            ..Self::default()
        }
    }
}

/// Version of the form of [`RunResult`]. It increases when a field changes its meaning or is
/// removed.
///
/// 2: the simulator's counters moved from `measures.totals` to `measures.model`, which other lanes
/// lack; a measure without a value is null instead of 0.
pub const SCHEMA_VERSION: u32 = 2;

/// Refuses the JSON of a run of another version, before its fields are read. The error tells what
/// to do.
pub fn check_version(run: &serde_json::Value) -> Result<(), String> {
    let version = run.get("schema_version").and_then(serde_json::Value::as_u64);
    let found = match version {
        Some(version) if version == u64::from(SCHEMA_VERSION) => return Ok(()),
        Some(version) => format!("schema_version is {version}"),
        None => "it has no schema_version".into(),
    };
    let by = run.get("schedlab_version").and_then(serde_json::Value::as_str);
    Err(format!(
        "{found}, this program reads {SCHEMA_VERSION}: run the experiment again, or read the \
         result with schedlab {}, which wrote it",
        by.unwrap_or("of its version")
    ))
}
