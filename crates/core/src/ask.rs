// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions about the run of a request, as data: what `schedlab explain` says with its options.

use crate::explain::{ExplainResult, Query, Question, explain};
use crate::run::Prepared;
use crate::{Error, Request};
use schedlab_model::CpuId;
use schedlab_run::LaneKind;
use schedlab_sched::Scheduler;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A question about a run. Without a time and a task it asks for the longest wait of any task.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ask {
    /// What each CPU runs at this time (ns), and why.
    pub at_ns: Option<u64>,
    /// Every pick from this time (ns) on.
    pub from_ns: Option<u64>,
    /// Every pick up to this time (ns).
    pub to_ns: Option<u64>,
    /// Why this task waited.
    pub task: Option<String>,
    /// Which wait of the task, from 1. Default: its longest.
    pub nth: Option<u64>,
    /// Only picks of this CPU.
    pub cpu: Option<u32>,
    /// Most picks in the answer. Default: 20.
    pub decisions_max: u32,
    /// Most candidates of a pick, besides the picked and the running task. Default: 8.
    pub candidates_max: u32,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            at_ns: None,
            from_ns: None,
            to_ns: None,
            task: None,
            nth: None,
            cpu: None,
            decisions_max: 20,
            candidates_max: 8,
        }
    }
}

impl Ask {
    fn query(&self) -> Query {
        let question = match (self.at_ns, &self.task, self.from_ns, self.to_ns) {
            (Some(at), ..) => Question::At(at),
            (None, Some(task), ..) => Question::Task(task.clone(), self.nth),
            (None, None, None, None) => Question::LongestWait,
            (None, None, from, to) => Question::Between(from.unwrap_or(0), to.unwrap_or(u64::MAX)),
        };
        Query {
            question,
            cpu: self.cpu.map(CpuId),
            decisions_max: self.decisions_max as usize,
            candidates_max: self.candidates_max as usize,
        }
    }
}

/// Answers a question about the run of `request`, as `schedlab explain --json` prints it.
pub fn explain_request(request: &Request, ask: &Ask) -> Result<ExplainResult, Error> {
    explain_request_with(request, None, ask)
}

/// As [`explain_request`], under `scheduler`, if there is one, in place of the one that the request
/// names.
pub fn explain_request_with(
    request: &Request,
    scheduler: Option<Arc<Scheduler>>,
    ask: &Ask,
) -> Result<ExplainResult, Error> {
    let prepared = Prepared::new(request, scheduler)?;
    let (bounded, _) = prepared.run.bounded(LaneKind::Sim);
    Ok(explain(&prepared.lane, &bounded, &ask.query())?)
}
