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
pub mod findings;
mod fluid;
mod follow;
pub mod lag;
pub mod progress;
pub mod series;
pub mod starvation;
mod stays;
#[cfg(test)]
pub(crate) mod testing;
pub mod wasted;

pub use antagonists::{Antagonist, Antagonists};
pub use breakdown::StateTime;
pub use context::{Context, GroupFacts, SpecFacts, Thresholds};
pub use depth::{Depth, DepthTime};
pub use findings::Findings;
pub use lag::Lag;
pub use progress::Progress;
pub use series::Curve;
pub use starvation::Starved;
pub use wasted::Wasted;

use antagonists::Witnesses;
use breakdown::Breakdown;
use depth::Depths;
use findings::View;
use follow::{Change, Follower};
use lag::Lags;
use progress::Advances;
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{Event, EventKind, Nanos, ObjectId, TaskId, TraceSink};
use serde::{Deserialize, Serialize};
use starvation::Starvation;
use stays::StayLog;
use wasted::Violations;

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
    /// How far it was from ideal fair sharing; null where the CPUs are not known.
    pub lag: Option<Lag>,
    /// CPU time and units of work over time; the first 64 tasks have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
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
    /// Waits that were too long.
    pub starved: Findings<Starved>,
    /// CPUs that were idle while a task waited elsewhere.
    pub wasted: Findings<Wasted>,
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
        for one in &mut self.starved.longest {
            rename(one.task, &mut one.name);
            one.ran.iter_mut().for_each(|one| rename(one.task, &mut one.name));
        }
        self.wasted.longest.iter_mut().for_each(|one| rename(one.task, &mut one.name));
    }

    /// Leaves out what is about other tasks than those that `is_wanted`; the counts of findings
    /// stay those of all tasks.
    pub fn retain(&mut self, is_wanted: impl Fn(u32) -> bool) {
        self.tasks.retain(|task| is_wanted(task.id));
        self.starved.longest.retain(|one| is_wanted(one.task));
        self.wasted.longest.retain(|one| is_wanted(one.task));
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
    lags: Option<Lags>,
    advances: Advances,
    starvation: Starvation,
    violations: Violations,
    end_ns: Nanos,
}

impl Analyser {
    /// An analysis with this context.
    pub fn new(context: Context) -> Self {
        let follower = Follower::new(&context);
        let log = StayLog::new(&follower);
        let view = View { context: &context, follower: &follower, log: &log };
        Self {
            names: Vec::new(),
            lags: Lags::new(&context),
            advances: Advances::new(),
            starvation: Starvation::new(&context),
            violations: Violations::new(view),
            log,
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
        self.advances.change(change);
        if let Some(lags) = &mut self.lags {
            lags.change(change);
        }
        let view = View { context: &self.context, follower: &self.follower, log: &self.log };
        self.starvation.change(view, change);
        self.violations.change(view, change);
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
            let most = end_ns - self.follower.tasks[id.index()].life.release_ns;
            assert!(life_ns <= most, "{life_ns} ns of {most} ns in the life of task {id}");
            TaskAnalysis {
                id: id.0,
                name: name(*id),
                life_ns,
                states,
                antagonists: self.witnesses.of(*id, name),
                lag: self.lags.as_ref().and_then(|lags| lags.of(*id)),
                progress: self.advances.of(*id),
            }
        };
        let tasks = released.iter().map(task).collect();
        let starved = self.starvation.clone().finish();
        let wasted = self.violations.clone().finish();
        let mut analysis = Analysis { tasks, depth, cpus, starved, wasted };
        analysis.rename(&self.names);
        analysis
    }
}

impl TraceSink for Analyser {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        if id.index() != self.names.len() {
            return;
        }
        self.names.push(info.name.clone());
        self.follower.task(info);
        self.breakdown.task();
        self.witnesses.task();
        self.advances.task();
        self.violations.task();
        if let Some(lags) = &mut self.lags {
            lags.task(&self.context, info.spec);
        }
    }

    fn object(&mut self, _id: ObjectId, info: &ObjectInfo) {
        self.breakdown.object(info);
    }

    fn event(&mut self, event: &Event) {
        let effects = self.follower.event(event);
        if let EventKind::Progress { task } = event.kind {
            self.advances.unit(self.follower.last_ns, task);
        }
        if effects.is_attached {
            self.log = StayLog::new(&self.follower);
            self.violations.attach();
        }
        if let Some(turn) = effects.turn {
            self.log.turn(&turn);
            let view = View { context: &self.context, follower: &self.follower, log: &self.log };
            self.violations.turn(view, &turn);
        }
        for change in effects.changes.iter().flatten() {
            self.change(change);
        }
        if let Some(moved) = effects.moved {
            self.witnesses.moved(&self.log, &moved);
            self.depths.moved(&moved);
            let view = View { context: &self.context, follower: &self.follower, log: &self.log };
            self.violations.moved(view, &moved);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        self.end_ns = end_ns;
    }
}
