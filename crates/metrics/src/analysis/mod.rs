// SPDX-License-Identifier: MIT OR Apache-2.0
//! The analysis of a trace: the states of tasks, what kept them waiting, and the depth of the run
//! queues. Each measure has a file; [`Analyser`] computes all of them in one pass.
//!
//! It reads only the trace and [`Context`], so it works alike for the simulator, the host and
//! foreign traces. Memory grows with the number of tasks and CPUs, not with time. It costs more
//! than the plain measures and runs only on request.

pub mod antagonists;
pub mod breakdown;
pub mod context;
pub mod depth;
pub mod findings;
mod fluid;
mod follow;
pub mod lag;
mod names;
pub mod progress;
pub mod series;
pub mod starvation;
mod stays;
#[cfg(test)]
pub(crate) mod testing;
pub mod wasted;

pub use antagonists::{Antagonist, Antagonists, NamedAntagonist};
pub use breakdown::StateTime;
pub use context::{Context, GroupFacts, SpecFacts, Thresholds, Wanted};
pub use depth::{Depth, DepthTime, QueueDepth};
pub use findings::{Findings, LISTED_MAX};
pub use lag::Lag;
pub use progress::Progress;
pub use series::Curve;
pub use starvation::Starved;
pub use wasted::Wasted;

use antagonists::Witnesses;
use breakdown::Breakdown;
use depth::{Depths, Queues};
use findings::View;
use follow::{Change, Effects, Follower};
use lag::Lags;
use names::Names;
use progress::Advances;
use schedlab_model::trace::{DispatchQueue, Found, ObjectInfo, TaskInfo};
use schedlab_model::{Event, EventKind, Nanos, ObjectId, TaskId, TraceSink};
use serde::{Deserialize, Serialize};
use starvation::Starvation;
use stays::StayLog;
use wasted::Violations;

/// The analysis of one task.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskAnalysis {
    /// Number in the run.
    pub id: u32,
    /// Process id; null in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Name.
    pub name: String,
    /// Release (or first event) to exit, or to the end of the run.
    pub life_ns: u64,
    /// Time in each state; the times add up to `life_ns`.
    pub states: Vec<StateTime>,
    /// The tasks that ran while it waited.
    pub antagonists: Antagonists,
    /// Deviation from ideal fair sharing; null if the CPUs are unknown.
    pub lag: Option<Lag>,
    /// CPU time and units of work over time, for the first 64 tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

impl TaskAnalysis {
    /// Time in the states of this name (ns), such as `runnable`.
    pub fn time_in(&self, state: &str) -> u64 {
        self.states.iter().filter(|one| one.state == state).map(|one| one.ns).sum()
    }
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
    /// Tasks in the dispatch queues of a simulated sched_ext scheduler: at most 32 queues, by mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueDepth>,
    /// Waits at or above the threshold.
    pub starved: Findings<Starved>,
    /// CPUs that were idle while a task waited elsewhere.
    pub wasted: Findings<Wasted>,
}

impl Analysis {
    /// Shifts the times of findings to those of a longer trace, in which this run begins at
    /// `from_ns`. Curves and lengths stay as they are.
    pub fn shift(&mut self, from_ns: Nanos) {
        let shift = |time: &mut u64| *time = time.saturating_add(from_ns);
        for one in &mut self.starved.longest {
            shift(&mut one.from_ns);
            shift(&mut one.to_ns);
        }
        for one in &mut self.wasted.longest {
            shift(&mut one.from_ns);
            shift(&mut one.to_ns);
        }
        let queues = self.queues.iter_mut().map(|queue| &mut queue.depth);
        for depth in self.cpus.iter_mut().chain([&mut self.depth]).chain(queues) {
            shift(&mut depth.max_at_ns);
        }
        for lag in self.tasks.iter_mut().filter_map(|task| task.lag.as_mut()) {
            shift(&mut lag.behind_at_ns);
            shift(&mut lag.ahead_at_ns);
        }
    }

    /// Removes the rows of tasks that are not `is_wanted`. Findings are selected when they are
    /// made: [`Context::wanted`].
    pub fn retain(&mut self, is_wanted: impl Fn(u32) -> bool) {
        self.tasks.retain(|task| is_wanted(task.id));
    }
}

/// The sink that computes the analysis.
#[derive(Clone, Debug)]
pub struct Analyser {
    context: Context,
    names: Names,
    follower: Follower,
    log: StayLog,
    breakdown: Breakdown,
    witnesses: Witnesses,
    depths: Depths,
    queues: Queues,
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
        let names = Names::default();
        let view = view(&context, &names, &follower, &log);
        Self {
            lags: Lags::new(&context),
            advances: Advances::new(),
            starvation: Starvation::new(&context),
            violations: Violations::new(view),
            log,
            breakdown: Breakdown::default(),
            witnesses: Witnesses::default(),
            depths: Depths::new(),
            queues: Queues::default(),
            end_ns: 0,
            names,
            follower,
            context,
        }
    }

    fn change(&mut self, change: &Change) {
        self.breakdown.change(change);
        self.witnesses.change(&self.log, &self.names, change);
        self.depths.change(change);
        self.advances.change(change);
        if let Some(lags) = &mut self.lags {
            lags.change(change);
        }
        let view = view(&self.context, &self.names, &self.follower, &self.log);
        self.starvation.change(view, change);
        self.violations.change(view, change);
    }

    fn apply(&mut self, effects: &Effects) {
        if effects.is_attached {
            self.log = StayLog::new(&self.follower);
            self.violations.attach();
        }
        if let Some(turn) = effects.turn {
            self.log.turn(&turn);
            let view = view(&self.context, &self.names, &self.follower, &self.log);
            self.violations.turn(view, &turn);
        }
        for change in effects.changes.iter().flatten() {
            self.change(change);
        }
        if let Some(moved) = effects.moved {
            self.witnesses.moved(&self.log, &self.names, &moved);
            self.depths.moved(&moved);
            let view = view(&self.context, &self.names, &self.follower, &self.log);
            self.violations.moved(view, &moved);
        }
    }

    /// Returns the result. Without a call of `end`, the run ends with its last event.
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
        let task = |id: &TaskId| {
            let (life_ns, states) = self.breakdown.states(*id);
            let most = end_ns - self.follower.tasks[id.index()].life.release_ns;
            assert!(life_ns <= most, "{life_ns} ns of {most} ns in the life of task {id}");
            TaskAnalysis {
                id: id.0,
                pid: self.names.pid(*id),
                name: self.names.name(*id).into(),
                life_ns,
                states,
                antagonists: self.witnesses.of(*id, &self.names),
                lag: self.lags.as_ref().and_then(|lags| lags.of(*id)),
                progress: self.advances.of(*id),
            }
        };
        let tasks = released.iter().map(task).collect();
        let starved = self.starvation.finish(&self.names);
        let wasted = self.violations.finish(&self.names);
        let queues = self.queues.finish(end_ns);
        Analysis { tasks, depth, cpus, queues, starved, wasted }
    }
}

/// The parts of the analysis that findings use.
const fn view<'a>(
    context: &'a Context,
    names: &'a Names,
    follower: &'a Follower,
    log: &'a StayLog,
) -> View<'a> {
    View { context, names, follower, log }
}

impl TraceSink for Analyser {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        if id.index() != self.names.len() {
            return;
        }
        self.names.task(info);
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

    fn renamed(&mut self, id: TaskId, name: &str) {
        self.names.renamed(id, name);
    }

    fn found(&mut self, found: Found) {
        let effects = self.follower.found(found);
        self.apply(&effects);
    }

    fn event(&mut self, event: &Event) {
        let effects = self.follower.event(event);
        if let EventKind::Progress { task } = event.kind {
            self.advances.unit(self.follower.last_ns, task);
        }
        self.apply(&effects);
    }

    fn wants_queues(&self) -> bool {
        true
    }

    fn queue_length(&mut self, time_ns: Nanos, queue: DispatchQueue, nr_tasks: u32) {
        self.queues.set(time_ns, queue, nr_tasks);
    }

    fn end(&mut self, end_ns: Nanos) {
        self.end_ns = end_ns;
    }
}
