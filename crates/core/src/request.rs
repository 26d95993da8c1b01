// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request as data: what the command line says with its options.

use crate::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of one workload under one scheduler. Only `workload` and `scheduler` have no default.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// A built-in workload with parameters (`hogs:n=4,work=100ms`), or the text of a workload file.
    pub workload: String,
    /// Name of the workload file, for results and errors. Default: `workload.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_name: Option<String>,
    /// Scheduler of the registry, with a policy and tunables if wanted: `linux-6.12`,
    /// `linux-6.12:FIFO`, `linux-6.12:base_slice=3ms`.
    pub scheduler: String,
    /// Number of CPUs. Default: all of the machine, or 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Modelled machine: the name of a preset, or the text of a machine file. Default: equal CPUs
    /// without caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Ticks per second: 100, 250, 300 or 1000. Default: the machine's, or 250.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hz: Option<u32>,
    /// Preemption model: none, voluntary, full or lazy. Default: the machine's, or the scheduler's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt: Option<String>,
    /// Costs: `zero`, `default`, or the text of a costs file. Default: the machine's, or the
    /// scheduler's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<String>,
    /// How long (with a unit) a runnable task may wait before the run fails, or `auto` or `off`.
    /// Default: `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<String>,
    /// Tunables of the scheduler with their values as text, times with a unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
    /// Parameters of a built-in workload, in addition to those of its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Policy of tasks that name none: OTHER, BATCH, IDLE, FIFO or RR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Real-time priority for FIFO and RR, 1 to 99. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Nice value of tasks that set none, -20 to 19.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i8>,
    /// Ends the run at this time, such as `500ms`. Default: the workload's own end, or 10 s for a
    /// workload that never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Seed of every random draw. Default: 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Number of the repetition, from 0. It is added to the seed.
    #[serde(default)]
    pub repetition: u32,
    /// What the outcome holds besides the measures.
    #[serde(default)]
    pub keep: Keep,
}

/// What an outcome holds besides the measures. All but the analysis and the digest grow with the
/// length of the run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    /// Every slice: who ran where, from when to when, and why it left.
    pub slices: bool,
    /// Every change of a task's state: runnable, running, sleeping, blocked-io.
    pub states: bool,
    /// Number of runnable tasks of each CPU over time.
    pub queues: bool,
    /// When each unit of progress ended.
    pub progress: bool,
    /// The analysis, as with `--analysis`.
    pub analysis: bool,
    /// SHA-256 of the result and of all events.
    pub digest: bool,
    /// Leaves out the measures of each task.
    pub totals_only: bool,
}

const fn one() -> u64 {
    1
}

impl Request {
    /// A request with the defaults.
    pub fn new(workload: impl Into<String>, scheduler: impl Into<String>) -> Self {
        Self {
            workload: workload.into(),
            workload_name: None,
            scheduler: scheduler.into(),
            cpus: None,
            machine: None,
            hz: None,
            preempt: None,
            costs: None,
            watchdog: None,
            tunables: BTreeMap::new(),
            params: BTreeMap::new(),
            policy: None,
            priority: None,
            nice: None,
            until: None,
            seed: one(),
            repetition: 0,
            keep: Keep::default(),
        }
    }

    /// Reads a request from JSON. The error names the key and the place.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| {
            Error::usage(
                format!("the request is not valid: {error}"),
                "`schedlab schema request` prints what it may hold",
            )
        })
    }
}
