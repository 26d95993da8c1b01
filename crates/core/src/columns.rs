// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a run as plain vectors, one for each column: what timelines, tables and Arrow
//! arrays are made from without a copy.

use crate::Keep;
use schedlab_model::trace::TaskInfo;
use schedlab_model::{CpuId, Event, EventKind, Nanos, SwitchOut, TaskId, TraceSink};
use schedlab_run::RunResult;
use schedlab_trace::{Slice, SliceTracker, slices::SliceEnd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a slice ended, by the number in [`Slices::end`].
pub const END_NAMES: [&str; 6] =
    ["running", "preempted", "yielded", "sleeping", "blocked-io", "exited"];

/// The state of a task, by the number in [`States::state`].
pub const STATE_NAMES: [&str; 4] = ["runnable", "running", "sleeping", "blocked-io"];

const RUNNABLE: u8 = 0;
const RUNNING: u8 = 1;
const SLEEPING: u8 = 2;
const BLOCKED_IO: u8 = 3;

/// The columns that a request keeps; the others are empty.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Columns {
    /// Name of each task, by its number.
    pub names: Vec<String>,
    /// End of the run (ns).
    pub end_ns: u64,
    /// Slices.
    pub slices: Slices,
    /// States of tasks.
    pub states: States,
    /// Runnable tasks of each CPU.
    pub queues: Queues,
    /// Progress of tasks that mark it.
    pub progress: Progress,
}

/// Slices in order of their start, then CPU: who ran where.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Slices {
    /// CPU.
    pub cpu: Vec<u32>,
    /// Task number.
    pub task: Vec<u32>,
    /// Start (ns).
    pub start_ns: Vec<u64>,
    /// End (ns).
    pub end_ns: Vec<u64>,
    /// Why it ended: an index into [`END_NAMES`].
    pub end: Vec<u8>,
}

/// Intervals in which a task was in one state, in order of their start, then task.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct States {
    /// Task number.
    pub task: Vec<u32>,
    /// Start (ns).
    pub start_ns: Vec<u64>,
    /// End (ns).
    pub end_ns: Vec<u64>,
    /// The state: an index into [`STATE_NAMES`].
    pub state: Vec<u8>,
}

/// Changes of the number of runnable tasks of a CPU, in order of time, then CPU. The running task
/// counts. Before its first change a CPU has none.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Queues {
    /// Time (ns).
    pub time_ns: Vec<u64>,
    /// CPU.
    pub cpu: Vec<u32>,
    /// Runnable tasks from this time on.
    pub nr_running: Vec<u32>,
}

/// Units of progress in order of time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// Task number.
    pub task: Vec<u32>,
    /// Time (ns) at which it finished a unit.
    pub time_ns: Vec<u64>,
}

impl Columns {
    /// The timeline and the progress that a result of any lane has kept. States and queues are not
    /// in results.
    pub fn of_result(result: &RunResult) -> Self {
        let mut columns = Self::default();
        for task in &result.measures.tasks {
            let at = task.id as usize;
            columns.names.resize(columns.names.len().max(at + 1), String::new());
            columns.names[at].clone_from(&task.name);
        }
        let mut slices: Vec<_> = result.slices.iter().collect();
        slices.sort_by_key(|slice| (slice.start_ns, slice.cpu, slice.end_ns));
        for slice in slices {
            let end = END_NAMES.iter().position(|name| *name == slice.end).unwrap_or_default();
            columns.slices.push((slice.cpu, slice.task, slice.start_ns, slice.end_ns, end as u8));
        }
        let mut units: Vec<(u64, u32)> = Vec::new();
        for curve in &result.progress {
            units.extend(curve.times_ns.iter().map(|time| (*time, curve.task)));
        }
        units.sort_unstable();
        for (time_ns, task) in units {
            columns.progress.task.push(task);
            columns.progress.time_ns.push(time_ns);
        }
        let last = columns.slices.end_ns.iter().chain(&columns.progress.time_ns).max();
        columns.end_ns = last.copied().unwrap_or_default();
        columns
    }
}

impl Slices {
    /// Adds a slice: CPU, task, start, end and why it ended.
    fn push(&mut self, (cpu, task, start_ns, end_ns, end): (u32, u32, u64, u64, u8)) {
        self.cpu.push(cpu);
        self.task.push(task);
        self.start_ns.push(start_ns);
        self.end_ns.push(end_ns);
        self.end.push(end);
    }
}

/// What is known of a task while events come in.
#[derive(Clone, Copy, Debug)]
struct Task {
    /// The state, and since when.
    state: u8,
    since: Nanos,
    /// The CPU on which it counts as runnable.
    cpu: Option<CpuId>,
    /// Whether it has begun and not exited.
    lives: bool,
}

/// The number of runnable tasks of a CPU.
#[derive(Clone, Copy, Default, Debug)]
struct Queue {
    now: u32,
    shown: u32,
}

/// The sink that fills the columns.
#[derive(Debug)]
pub(crate) struct Filler {
    keep: Keep,
    columns: Columns,
    tracker: SliceTracker,
    slices: Vec<Slice>,
    tasks: Vec<Task>,
    /// Intervals: start, task, end, state.
    states: Vec<(Nanos, u32, Nanos, u8)>,
    queues: Vec<Queue>,
    /// CPUs whose queue changed at `changed_at`.
    changed: Vec<CpuId>,
    changed_at: Nanos,
}

impl Filler {
    /// A sink for a run on `nr_cpus` CPUs.
    pub fn new(keep: Keep, nr_cpus: u32) -> Self {
        Self {
            keep,
            columns: Columns::default(),
            tracker: SliceTracker::default(),
            slices: Vec::new(),
            tasks: Vec::new(),
            states: Vec::new(),
            queues: vec![Queue::default(); nr_cpus as usize],
            changed: Vec::new(),
            changed_at: 0,
        }
    }

    /// The columns. Call it after `end`.
    pub fn finish(mut self) -> Columns {
        let columns = &mut self.columns;
        self.slices.sort_by_key(|slice| (slice.start_ns, slice.cpu, slice.end_ns));
        for slice in &self.slices {
            let (start_ns, end_ns) = (slice.start_ns, slice.end_ns);
            let end = end_number(slice.end);
            columns.slices.push((slice.cpu.0, slice.task.0, start_ns, end_ns, end));
        }
        self.states.sort_unstable();
        for (start_ns, task, end_ns, state) in self.states {
            columns.states.task.push(task);
            columns.states.start_ns.push(start_ns);
            columns.states.end_ns.push(end_ns);
            columns.states.state.push(state);
        }
        self.columns
    }

    /// `task` is in `state` from `now` on; `None`: it has exited. If runnable, it counts on `cpu`.
    fn enter(&mut self, task: TaskId, now: Nanos, state: Option<u8>, cpu: CpuId) {
        let Some(entry) = self.tasks.get_mut(task.index()) else { return };
        if entry.lives && now > entry.since && self.keep.states && Some(entry.state) != state {
            self.states.push((entry.since, task.0, now, entry.state));
        }
        if !entry.lives || Some(entry.state) != state {
            entry.since = now;
        }
        entry.lives = state.is_some();
        entry.state = state.unwrap_or(entry.state);
        let on = state.filter(|state| *state <= RUNNING).map(|_| cpu);
        let before = std::mem::replace(&mut entry.cpu, on);
        if before != on && self.keep.queues {
            self.count(now, before, on);
        }
    }

    fn count(&mut self, now: Nanos, from: Option<CpuId>, to: Option<CpuId>) {
        if now != self.changed_at {
            self.show_queues();
            self.changed_at = now;
        }
        for (cpu, more) in [(from, false), (to, true)] {
            let Some(cpu) = cpu else { continue };
            let Some(queue) = self.queues.get_mut(cpu.index()) else { continue };
            queue.now = if more { queue.now + 1 } else { queue.now.saturating_sub(1) };
            if !self.changed.contains(&cpu) {
                self.changed.push(cpu);
            }
        }
    }

    /// Adds the queues that changed at the last time.
    fn show_queues(&mut self) {
        self.changed.sort_unstable();
        for cpu in self.changed.drain(..) {
            let queue = &mut self.queues[cpu.index()];
            if queue.now != std::mem::replace(&mut queue.shown, queue.now) {
                self.columns.queues.time_ns.push(self.changed_at);
                self.columns.queues.cpu.push(cpu.0);
                self.columns.queues.nr_running.push(queue.now);
            }
        }
    }

    fn follow(&mut self, event: &Event) {
        let (now, cpu) = (event.time_ns, event.cpu);
        match event.kind {
            EventKind::Fork { task, .. } | EventKind::Wakeup { task, .. } => {
                self.enter(task, now, Some(RUNNABLE), cpu);
            }
            EventKind::Migrate { task, .. } => {
                let state = self.tasks.get(task.index()).filter(|entry| entry.cpu.is_some());
                if let Some(state) = state.map(|entry| entry.state) {
                    self.enter(task, now, Some(state), cpu);
                }
            }
            EventKind::Switch { prev, next, out } => {
                if let Some(prev) = prev {
                    let state = match out {
                        SwitchOut::Sleeping => Some(SLEEPING),
                        SwitchOut::BlockedIo => Some(BLOCKED_IO),
                        SwitchOut::Dead => None,
                        SwitchOut::Idle | SwitchOut::Preempted | SwitchOut::Yielded => {
                            Some(RUNNABLE)
                        }
                    };
                    self.enter(prev, now, state, cpu);
                }
                if let Some(next) = next {
                    self.enter(next, now, Some(RUNNING), cpu);
                }
            }
            EventKind::Exit { .. }
            | EventKind::Phase { .. }
            | EventKind::Progress { .. }
            | EventKind::Block { .. }
            | EventKind::Lost { .. } => {}
        }
    }
}

/// The number of a slice's end in [`END_NAMES`].
const fn end_number(end: SliceEnd) -> u8 {
    match end {
        SliceEnd::Running | SliceEnd::Left(SwitchOut::Idle) => 0,
        SliceEnd::Left(out) => out as u8,
    }
}

impl TraceSink for Filler {
    fn task(&mut self, _id: TaskId, info: &TaskInfo) {
        self.columns.names.push(info.name.clone());
        self.tasks.push(Task { state: RUNNABLE, since: 0, cpu: None, lives: false });
    }

    fn event(&mut self, event: &Event) {
        if self.keep.slices {
            self.slices.extend(self.tracker.event(event));
        }
        if self.keep.states || self.keep.queues {
            self.follow(event);
        }
        if let (true, EventKind::Progress { task }) = (self.keep.progress, event.kind) {
            self.columns.progress.task.push(task.0);
            self.columns.progress.time_ns.push(event.time_ns);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        self.columns.end_ns = end_ns;
        if self.keep.slices {
            self.slices.extend(self.tracker.end(end_ns));
        }
        if self.keep.queues {
            self.show_queues();
        }
        for (number, task) in self.tasks.iter().enumerate() {
            if self.keep.states && task.lives && end_ns > task.since {
                self.states.push((task.since, number as u32, end_ns, task.state));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Keep {
        Keep { slices: true, states: true, queues: true, progress: true, ..Keep::default() }
    }

    fn filled(events: &[(Nanos, u32, EventKind)], end_ns: Nanos) -> Columns {
        let mut filler = Filler::new(all(), 2);
        for id in 0..2 {
            filler.task(TaskId(id), &TaskInfo { name: format!("t{id}"), ..TaskInfo::default() });
        }
        for (time_ns, cpu, kind) in events {
            filler.event(&Event { time_ns: *time_ns, cpu: CpuId(*cpu), kind: *kind });
        }
        filler.end(end_ns);
        filler.finish()
    }

    fn switch(prev: Option<u32>, next: Option<u32>, out: SwitchOut) -> EventKind {
        EventKind::Switch { prev: prev.map(TaskId), next: next.map(TaskId), out }
    }

    #[test]
    fn every_end_has_its_name() {
        for out in SwitchOut::ALL.into_iter().filter(|out| *out != SwitchOut::Idle) {
            assert_eq!(END_NAMES[usize::from(end_number(SliceEnd::Left(out)))], out.name());
        }
        assert_eq!(END_NAMES[usize::from(end_number(SliceEnd::Running))], "running");
    }

    #[test]
    fn states_and_queues_follow_the_events() {
        let fork = |id| EventKind::Fork { task: TaskId(id), parent: None };
        let wakeup = EventKind::Wakeup { task: TaskId(0), waker: None };
        let columns = filled(
            &[
                (0, 0, fork(0)),
                (0, 0, switch(None, Some(0), SwitchOut::Idle)),
                (2, 0, fork(1)),
                (5, 0, switch(Some(0), Some(1), SwitchOut::Sleeping)),
                (7, 1, wakeup),
                (7, 1, switch(None, Some(0), SwitchOut::Idle)),
                (8, 0, EventKind::Exit { task: TaskId(1) }),
                (8, 0, switch(Some(1), None, SwitchOut::Dead)),
                (9, 1, EventKind::Progress { task: TaskId(0) }),
            ],
            10,
        );
        let states = &columns.states;
        let rows: Vec<_> = (0..states.task.len())
            .map(|at| {
                let name = STATE_NAMES[usize::from(states.state[at])];
                (states.task[at], states.start_ns[at], states.end_ns[at], name)
            })
            .collect();
        assert_eq!(
            rows,
            [
                (0, 0, 5, "running"),
                (1, 2, 5, "runnable"),
                (0, 5, 7, "sleeping"),
                (1, 5, 8, "running"),
                (0, 7, 10, "running"),
            ]
        );
        let queues = &columns.queues;
        assert_eq!(queues.time_ns, [0, 2, 5, 7, 8]);
        assert_eq!(queues.cpu, [0, 0, 0, 1, 0]);
        assert_eq!(queues.nr_running, [1, 2, 1, 1, 0]);
        assert_eq!(columns.slices.task, [0, 1, 0]);
        assert_eq!(columns.slices.end, [3, 5, 0]);
        assert_eq!((columns.progress.task, columns.progress.time_ns), (vec![0], vec![9]));
        assert_eq!((columns.names.len(), columns.end_ns), (2, 10));
    }

    #[test]
    fn a_migrated_task_counts_on_its_new_cpu() {
        let fork = EventKind::Fork { task: TaskId(0), parent: None };
        let migrate = EventKind::Migrate { task: TaskId(0), from: CpuId(0) };
        let columns = filled(&[(0, 0, fork), (4, 1, migrate)], 6);
        assert_eq!(columns.queues.time_ns, [0, 4, 4]);
        assert_eq!(columns.queues.nr_running, [1, 0, 1]);
        assert_eq!(columns.states.end_ns, [6]);
    }
}
