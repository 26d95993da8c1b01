// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows tasks and CPUs through the events, once for all measures of the analysis, and reports
//! what each event ends and begins. Memory: some words for each task and CPU.

use super::context::Context;
use crate::life::{Life, Past, State};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{Found, TaskInfo};
use schedlab_model::{CpuId, CpuMask, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId};

/// The activity of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Runs {
    /// Unknown: no event has shown it yet, or events were lost.
    #[default]
    Unknown,
    /// The CPU runs no task of the run.
    Idle,
    Task(TaskId),
}

/// A change of a CPU's activity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turn {
    pub now: Nanos,
    pub cpu: CpuId,
    pub was: Runs,
    pub since_ns: Nanos,
    pub runs: Runs,
}

/// A change of a task's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub now: Nanos,
    pub task: TaskId,
    pub past: Past,
    /// The CPU before the change.
    pub from: CpuId,
    /// The state after the change.
    pub state: State,
    /// The CPU after the change.
    pub cpu: CpuId,
    /// The object of the sleep that ends.
    pub blocked_on: Option<ObjectId>,
}

/// A move of a waiting task to the queue of another CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    pub now: Nanos,
    pub task: TaskId,
    pub from: CpuId,
    pub to: CpuId,
}

/// The effects of one event, in this order: the CPU's turn, the tasks' changes, the move.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effects {
    pub turn: Option<Turn>,
    /// Changes of the task that vanished, the one that left, and the one that came; or of the one
    /// that was woken.
    pub changes: [Option<Change>; 3],
    pub moved: Option<Move>,
    /// Whether the recording begins at this event, while tasks are already running.
    pub is_attached: bool,
}

/// The followed state of a task.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    pub life: Life,
    /// The CPU where it runs or waits, or last did.
    pub cpu: CpuId,
    /// Index of its description.
    pub spec: Option<u32>,
    /// The object on which it announced to block.
    announced: Option<ObjectId>,
    /// The object of its sleep.
    blocked_on: Option<ObjectId>,
    /// CPUs on which the trace has shown it running.
    pub seen_on: CpuMask,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    runs: Runs,
    since_ns: Nanos,
    /// The last task seen to come, whether or not events were lost.
    came: Option<TaskId>,
}

/// The follower.
#[derive(Clone, Debug, Default)]
pub(crate) struct Follower {
    pub tasks: Vec<Followed>,
    cpus: Vec<Cpu>,
    is_attached: bool,
    pub last_ns: Nanos,
}

impl Follower {
    pub fn new(context: &Context) -> Self {
        let mut follower = Self::default();
        if context.is_whole {
            for cpu in context.cpus.iter() {
                follower.slot(cpu).runs = Runs::Idle;
            }
        }
        follower
    }

    fn slot(&mut self, cpu: CpuId) -> &mut Cpu {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Cpu::default());
        }
        &mut self.cpus[cpu.index()]
    }

    /// Each CPU with its activity and the start of that.
    pub fn cpus(&self) -> impl Iterator<Item = (CpuId, Runs, Nanos)> {
        (0..).zip(&self.cpus).map(|(number, cpu)| (CpuId(number), cpu.runs, cpu.since_ns))
    }

    pub fn task(&mut self, info: &TaskInfo) {
        self.tasks.push(Followed {
            life: Life::new(self.is_attached),
            cpu: CpuId(0),
            spec: info.spec,
            announced: None,
            blocked_on: None,
            seen_on: CpuMask::empty(),
        });
    }

    /// The effects of `event`. A time that goes backwards counts as the latest one.
    #[inline]
    pub fn event(&mut self, event: &Event) -> Effects {
        let mut effects = Effects::default();
        if event.cpu.index() >= NR_CPUS_MAX {
            return effects;
        }
        self.last_ns = self.last_ns.max(event.time_ns);
        let (now, cpu) = (self.last_ns, event.cpu);
        match event.kind {
            EventKind::Switch { prev, next, out } => {
                self.switch(&mut effects, (now, cpu), (prev, next), out);
            }
            EventKind::Wakeup { task, .. } => {
                effects.changes[0] = self.change(now, task, cpu, |life| life.wakeup(now).past);
            }
            EventKind::Fork { task, .. } => {
                effects.changes[0] = self.change(now, task, cpu, |life| life.fork(now).past);
            }
            EventKind::Exit { task } => {
                if let Some(task) = self.tasks.get_mut(task.index()) {
                    task.life.exit(now);
                }
            }
            EventKind::Migrate { task, .. } => effects.moved = self.migrate(now, task, cpu),
            EventKind::Block { task, object } => {
                if let Some(task) = self.tasks.get_mut(task.index()) {
                    task.announced = Some(object);
                }
            }
            EventKind::Lost { count: 0 } => {
                if !std::mem::replace(&mut self.is_attached, true) {
                    self.tasks.iter_mut().for_each(|task| task.life.attach());
                    effects.is_attached = true;
                }
                // The activity of every CPU is unknown.
                self.cpus.iter_mut().for_each(|cpu| cpu.runs = Runs::Unknown);
                effects.turn = self.turn(now, cpu, Runs::Unknown);
            }
            EventKind::Lost { .. } => effects.turn = self.turn(now, cpu, Runs::Unknown),
            EventKind::Phase { .. } | EventKind::Progress { .. } => {}
        }
        effects
    }

    /// Records the state in which a part of a longer trace begins.
    pub fn found(&mut self, found: Found) -> Effects {
        let (mut effects, now) = (Effects::default(), self.last_ns);
        if let Found::Runs { cpu, task } = found {
            effects.turn = self.turn(now, cpu, task.map_or(Runs::Idle, Runs::Task));
            self.slot(cpu).came = task;
        }
        if let Some((task, cpu, state)) = State::found(found) {
            effects.changes[0] = self.change(now, task, cpu, |life| Some(life.found(state, now)));
            if let (State::Running(_), Some(task)) = (state, self.tasks.get_mut(task.index())) {
                task.seen_on.set(cpu);
            }
        }
        effects
    }

    fn turn(&mut self, now: Nanos, cpu: CpuId, runs: Runs) -> Option<Turn> {
        let slot = self.slot(cpu);
        let was = std::mem::replace(slot, Cpu { runs, since_ns: now, ..*slot });
        debug_assert!(was.since_ns <= now, "CPU {cpu} was {was:?} before {now}");
        (was.runs != runs).then_some(Turn { now, cpu, was: was.runs, since_ns: was.since_ns, runs })
    }

    fn switch(
        &mut self,
        effects: &mut Effects,
        (now, cpu): (Nanos, CpuId),
        (prev, next): (Option<TaskId>, Option<TaskId>),
        out: SwitchOut,
    ) {
        let expected = prev.map_or(Runs::Idle, Runs::Task);
        let mut turn = self.turn(now, cpu, next.map_or(Runs::Idle, Runs::Task));
        if let Some(turn) = turn.as_mut().filter(|turn| turn.was != expected) {
            // A switch is missing, so the CPU's activity since the last one is unknown.
            turn.was = Runs::Unknown;
        }
        effects.turn = turn;
        let came = std::mem::replace(&mut self.slot(cpu).came, next);
        if let Some(task) = came.filter(|_| came != prev) {
            effects.changes[0] = self.change(now, task, cpu, |life| life.vanish(now, cpu));
        }
        if let Some(prev) = prev {
            effects.changes[1] =
                self.change(now, prev, cpu, |life| life.switch_out(now, cpu, out).past);
            if let Some(task) = self.tasks.get_mut(prev.index()) {
                let announced = task.announced.take();
                task.blocked_on = announced.filter(|_| out == SwitchOut::Sleeping);
            }
        }
        if let Some(next) = next {
            effects.changes[2] = self.change(now, next, cpu, |life| life.switch_in(now, cpu).past);
            if let Some(task) = self.tasks.get_mut(next.index()) {
                task.seen_on.set(cpu);
            }
        }
    }

    #[inline]
    fn change(
        &mut self,
        now: Nanos,
        id: TaskId,
        cpu: CpuId,
        step: impl FnOnce(&mut Life) -> Option<Past>,
    ) -> Option<Change> {
        let task = self.tasks.get_mut(id.index())?;
        let past = step(&mut task.life)?;
        debug_assert!(past.ns <= now, "task {id} was {past:?} before {now}");
        let from = std::mem::replace(&mut task.cpu, cpu);
        let blocked_on = task.blocked_on.take();
        Some(Change { now, task: id, past, from, state: task.life.state, cpu, blocked_on })
    }

    fn migrate(&mut self, now: Nanos, id: TaskId, to: CpuId) -> Option<Move> {
        let task = self.tasks.get_mut(id.index())?;
        let is_waiting = task.life.state == State::Queued;
        if matches!(task.life.state, State::Running(_)) || task.cpu == to {
            return None;
        }
        let from = std::mem::replace(&mut task.cpu, to);
        is_waiting.then_some(Move { now, task: id, from, to })
    }

    /// The stay of a task that the end of the run cuts off.
    pub fn close(&mut self, id: TaskId, end_ns: Nanos) -> Option<Change> {
        let task = self.tasks.get(id.index())?;
        let (cpu, since_ns) = (task.cpu, task.life.since_ns);
        let change = self.change(end_ns, id, cpu, |life| life.close(end_ns))?;
        // If the trace shows a task's exit but not the switch after it, the task ended before the
        // end of the run.
        Some(Change { now: since_ns + change.past.ns, ..change })
    }
}
