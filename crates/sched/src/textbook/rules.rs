// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between textbook schedulers: the trait [`Discipline`], from which
//! [`crate::textbook::Global`] makes a scheduling class, and the queue positions that most of them
//! use.

use crate::boundary::core::Core;
use crate::boundary::explain::{Fact, Rule};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags};
use crate::textbook::pool::Pool;
use schedlab_model::{CpuId, Nanos, TaskId};

/// Why a task's turn on a CPU ends, although it stays runnable or may return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnEnd {
    /// Another task outranks it, or its attributes change.
    Preempted,
    /// It has used its whole quantum.
    Expired,
    /// It called sched_yield.
    Yielded,
    /// It sleeps, waits or exits.
    Blocked,
}

/// What an alarm of a discipline requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ring {
    /// These waiting tasks rank better than before: they may take a CPU now.
    Raised(Vec<TaskId>),
    /// The order among running and waiting tasks has changed: every busy CPU picks again.
    Reschedule,
    /// Running tasks for which [`Discipline::refresh`] returns true start a new quantum on their
    /// CPU.
    Refresh,
    /// The turns of these running tasks end; for the other ones as [`Ring::Refresh`].
    End(Vec<TaskId>),
}

/// The rules of one textbook scheduler. State of its own is indexed by task.
pub trait Discipline: Send {
    /// Holds the waiting tasks.
    type Pool: Pool;

    /// The class's name.
    fn name(&self) -> &'static str;

    /// Makes room for a new task. Ids ascend. Default: nothing.
    fn task_new(&mut self, _core: &Core, _task: TaskId) {}

    /// `task` becomes runnable, or (`running`) continues after a change of attributes.
    fn join(&mut self, core: &Core, task: TaskId, running: bool, flags: EnqueueFlags);

    /// `task` leaves a CPU after `ran` ns and stays runnable.
    fn requeue(&mut self, core: &Core, task: TaskId, why: TurnEnd, ran: Nanos);

    /// `task` is no longer runnable, or about to change its attributes (`flags.save`). If it was
    /// running, it ran for `ran` ns in this turn. Default: nothing.
    fn leave(&mut self, _core: &Core, _task: TaskId, _flags: DequeueFlags, _ran: Option<Nanos>) {}

    /// The present key of waiting `task` in the pool.
    fn key(&self, core: &Core, task: TaskId) -> <Self::Pool as Pool>::Key;

    /// Whether a task may take the CPU of one that ranks worse. Default: no.
    fn preemptive(&self) -> bool {
        false
    }

    /// Rank of a runnable or waking task, lower is better. Only a strictly better rank preempts.
    /// Default: all are equal.
    fn rank(&self, _core: &Core, _task: TaskId) -> u64 {
        0
    }

    /// Quantum of `task`; `None`: it runs until it blocks or is preempted. Default: none.
    fn quantum(&self, _core: &Core, _task: TaskId) -> Option<Nanos> {
        None
    }

    /// Whether the rest of a quantum is kept for the next turn. Default: only after preemption.
    fn keeps_quantum(&self, why: TurnEnd) -> bool {
        why == TurnEnd::Preempted
    }

    /// A turn of `task` begins. `left` is the kept rest of its last quantum. Returns the length.
    /// Default: the rest, or else a whole quantum.
    fn begin_turn(&mut self, core: &Core, task: TaskId, left: Option<Nanos>) -> Option<Nanos> {
        left.or_else(|| self.quantum(core, task))
    }

    /// The waiting task that `cpu` should run; it stays in the pool. Default: the pool's best.
    fn best(&mut self, core: &mut Core, pool: &mut Self::Pool, cpu: CpuId) -> Option<TaskId> {
        pool.best(core, cpu)
    }

    /// Whether the next task is picked before the one that ends its turn is queued, so that the
    /// latter is not a candidate while another waits. Default: no.
    fn asks_before_requeue(&self) -> bool {
        false
    }

    /// When [`Discipline::ring`] should be called, while tasks are runnable. After that call it
    /// must return a later time. Called after each change. Default: never.
    fn alarm(&self, _core: &Core) -> Option<Nanos> {
        None
    }

    /// The time of [`Discipline::alarm`]. Default: does nothing.
    fn ring(&mut self, _core: &Core, _pool: &mut Self::Pool) -> Ring {
        Ring::Raised(Vec::new())
    }

    /// Whether running `task` gets a new quantum at [`Ring::Refresh`]. Default: no.
    fn refresh(&mut self, _core: &Core, _task: TaskId) -> bool {
        false
    }

    /// Whether [`Discipline::tick`] is called. Default: no.
    fn watches_ticks(&self) -> bool {
        false
    }

    /// A tick while `task` runs, for `ran` ns in this turn. Returns whether its turn ends. Default:
    /// no.
    fn tick(&mut self, _core: &Core, _task: TaskId, _ran: Nanos) -> bool {
        false
    }

    /// Whether the turn of the task that runs on the CPU of the task that joined last ends. Read
    /// once. Default: no.
    fn take_gives_way(&mut self) -> bool {
        false
    }

    /// Why the run cannot continue, once. Default: it can.
    fn take_failure(&mut self) -> Option<String> {
        None
    }

    /// Whether an agent outside the run picks: [`crate::SchedClass::asks`]. Default: no.
    fn is_asked(&self) -> bool {
        false
    }

    /// The agent has picked `task` for the next [`Discipline::best`]. Default: nothing.
    fn decided(&mut self, _task: TaskId) {}

    /// The rule by which the pool's best is found, over the names in [`Discipline::facts`].
    fn rule(&self) -> Rule;

    /// The values that decide about `task`: the parts of its key, under the names in the rule.
    fn facts(&self, core: &Core, task: TaskId) -> Vec<Fact>;

    /// Values of the queue as a whole. Default: none.
    fn queue_facts(&self, _core: &Core) -> Vec<Fact> {
        Vec::new()
    }
}

/// Numbers that order tasks by when they were queued: the tail grows, the head falls.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sequence {
    tail: i64,
    head: i64,
}

impl Sequence {
    /// A position after all others.
    pub fn next_tail(&mut self) -> i64 {
        self.tail += 1;
        self.tail
    }

    /// A position before all others.
    pub fn next_head(&mut self) -> i64 {
        self.head -= 1;
        self.head
    }

    /// Position of a task that ends its turn: the head if it was preempted, so that it loses no
    /// place, otherwise the tail.
    pub fn after(&mut self, why: TurnEnd) -> i64 {
        if why == TurnEnd::Preempted { self.next_head() } else { self.next_tail() }
    }
}

/// Queue positions of tasks under disciplines that keep first-come order within a queue.
#[derive(Clone, Default, Debug)]
pub struct Positions {
    sequence: Sequence,
    by_task: Vec<i64>,
}

impl Positions {
    /// Places `task` after all others.
    pub fn arrive(&mut self, task: TaskId) {
        let position = self.sequence.next_tail();
        self.set(task, position);
    }

    /// Places `task`, which ended its turn, at head or tail: [`Sequence::after`].
    pub fn give_up(&mut self, task: TaskId, why: TurnEnd) {
        let position = self.sequence.after(why);
        self.set(task, position);
    }

    fn set(&mut self, task: TaskId, position: i64) {
        if self.by_task.len() <= task.index() {
            self.by_task.resize(task.index() + 1, 0);
        }
        self.by_task[task.index()] = position;
    }

    /// Position of `task`, lower is nearer to the head.
    pub fn of(&self, task: TaskId) -> i64 {
        self.by_task[task.index()]
    }
}
