// SPDX-License-Identifier: MIT OR Apache-2.0
//! The analysis of a trace: what tasks did with their lives, who kept them waiting, how deep the
//! run queues were. One file a measure; [`Analyser`] computes all of them in one pass.
//!
//! It reads the trace and [`Context`] only, so that it is the same for the simulator, the host and
//! traces that others recorded. Memory grows with the tasks and CPUs and not with time. It costs
//! more than the plain measures and is made only when asked for.

pub mod antagonists;
pub mod breakdown;
pub mod context;
pub mod depth;
mod follow;
pub mod series;
mod stays;
#[cfg(test)]
pub(crate) mod testing;

pub use antagonists::{Antagonist, Antagonists};
pub use breakdown::StateTime;
pub use context::{Context, GroupFacts, SpecFacts, Thresholds};
pub use depth::{Depth, DepthTime};
pub use series::Curve;

use antagonists::Witnesses;
use breakdown::Breakdown;
use depth::Depths;
use follow::{Change, Follower};
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{Event, Nanos, ObjectId, TaskId, TraceSink};
use serde::{Deserialize, Serialize};
use stays::StayLog;

/// What the analysis says of one task.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskAnalysis {
    /// Number in the run.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Release (or first event) to exit, or to the end of the run.
    pub life_ns: u64,
    /// What it did; the times add up to `life_ns`.
    pub states: Vec<StateTime>,
    /// Who ran while it waited.
    pub antagonists: Antagonists,
}

/// The analysis of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Analysis {
    /// Each task that was released, by id.
    pub tasks: Vec<TaskAnalysis>,
    /// Runnable tasks of the whole run.
    pub depth: Depth,
    /// Runnable tasks of each CPU.
    pub cpus: Vec<Depth>,
}

impl Analysis {
    /// Sets the names of tasks wherever they are named, by number; an empty one changes nothing.
    pub fn rename(&mut self, names: &[String]) {
        let rename = |id: u32, name: &mut String| match names.get(id as usize) {
            Some(new) if !new.is_empty() => name.clone_from(new),
            _ => {}
        };
        for task in &mut self.tasks {
            rename(task.id, &mut task.name);
            task.antagonists.tasks.iter_mut().for_each(|one| rename(one.task, &mut one.name));
        }
    }

    /// Leaves out what is about other tasks than those that `is_wanted`.
    pub fn retain(&mut self, is_wanted: impl Fn(u32) -> bool) {
        self.tasks.retain(|task| is_wanted(task.id));
    }
}

/// The sink.
#[derive(Clone, Debug)]
pub struct Analyser {
    context: Context,
    names: Vec<String>,
    follower: Follower,
    log: StayLog,
    breakdown: Breakdown,
    witnesses: Witnesses,
    depths: Depths,
    end_ns: Nanos,
}

impl Analyser {
    /// An analysis with this context.
    pub fn new(context: Context) -> Self {
        let follower = Follower::new(&context);
        Self {
            names: Vec::new(),
            log: StayLog::new(&follower),
            breakdown: Breakdown::default(),
            witnesses: Witnesses::default(),
            depths: Depths::new(),
            end_ns: 0,
            follower,
            context,
        }
    }

    fn change(&mut self, change: &Change) {
        self.breakdown.change(change);
        self.witnesses.change(&self.log, change);
        self.depths.change(change);
    }

    /// The result. Without a call of `end`, the run ends with its last event.
    pub fn finish(mut self) -> Analysis {
        let end_ns = self.end_ns.max(self.follower.last_ns);
        let nr_cpus = self.context.cpus.iter().last().map_or(0, |cpu| cpu.index() + 1);
        let (depth, cpus) = self.depths.clone().finish(nr_cpus, end_ns);
        let ids = (0..self.names.len() as u32).map(TaskId);
        let released: Vec<TaskId> =
            ids.filter(|id| self.follower.tasks[id.index()].life.is_released()).collect();
        for id in &released {
            if let Some(change) = self.follower.close(*id, end_ns) {
                self.change(&change);
            }
        }
        let name = |id: TaskId| self.names.get(id.index()).cloned().unwrap_or_default();
        let task = |id: &TaskId| {
            let (life_ns, states) = self.breakdown.states(*id);
            TaskAnalysis {
                id: id.0,
                name: name(*id),
                life_ns,
                states,
                antagonists: self.witnesses.of(*id, name),
            }
        };
        Analysis { tasks: released.iter().map(task).collect(), depth, cpus }
    }
}

impl TraceSink for Analyser {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        if id.index() != self.names.len() {
            return;
        }
        self.names.push(info.name.clone());
        self.follower.task();
        self.breakdown.task();
        self.witnesses.task();
    }

    fn object(&mut self, _id: ObjectId, info: &ObjectInfo) {
        self.breakdown.object(info);
    }

    fn event(&mut self, event: &Event) {
        let effects = self.follower.event(event);
        if let Some(turn) = effects.turn {
            self.log.turn(&turn);
        }
        for change in effects.changes.iter().flatten() {
            self.change(change);
        }
        if let Some(moved) = effects.moved {
            self.witnesses.moved(&self.log, &moved);
            self.depths.moved(&moved);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        self.end_ns = end_ns;
    }
}
