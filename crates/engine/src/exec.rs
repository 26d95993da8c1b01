// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the engine knows of a task beside the scheduler's view: its program and its family.

use crate::objects::Shared;
use schedlab_model::arrivals::Arrival;
use schedlab_model::{Interpreter, Nanos, ObjectId, TaskId, Workload};
use std::ops::{Index, IndexMut};

/// Why a task sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// It does not.
    No,
    /// For a time or the device: one event is under way.
    Event,
    /// For its children.
    Children,
    /// For its children of one description.
    ChildrenOf(u32),
    /// On an object or a wait set, by its number in the trace.
    On(ObjectId),
}

/// A task's execution.
#[derive(Debug)]
pub struct Exec {
    /// Index of its description.
    pub spec: u32,
    /// Position in its program.
    pub interpreter: Interpreter,
    /// CPU time until the program goes on, while it does not run.
    pub remaining: Nanos,
    /// Part of the last nanosecond of its next burst that is done already, in thousandths: what
    /// rounding to whole nanoseconds has left over on a hardware thread.
    pub ahead: u32,
    /// Cost that arose and was not yet charged to its CPU time.
    pub overhead: Nanos,
    /// Busy until this wall time.
    pub wall_until: Option<Nanos>,
    /// What it waits for.
    pub waiting: Waiting,
    /// Boundary of each periodic timer.
    pub timers: Vec<Nanos>,
    /// Parent.
    pub parent: Option<TaskId>,
    /// Children that live.
    pub children: u32,
    /// What it keeps for its use of objects; `None` before the first.
    pub shared: Option<Box<Shared>>,
    /// It must leave its CPU, which its new affinity forbids.
    pub must_move: bool,
    /// It called sched_yield and has not been rescheduled since.
    pub yielded: bool,
    /// Since when it is runnable without running (meaningful while it waits).
    pub runnable_since: Nanos,
    /// It has run before.
    pub has_run: bool,
    /// The CPU it ran on last.
    pub last_cpu: u32,
    /// Name.
    pub name: String,
}

impl Exec {
    /// When a burst ends that begins now, where nothing but time counts: `in_kernel`, then `ns` of
    /// work; one that is busy until a wall time ends no earlier.
    #[inline]
    pub fn plain_end(&self, now: Nanos, in_kernel: Nanos, ns: Nanos) -> Nanos {
        let end = now.saturating_add(in_kernel).saturating_add(ns);
        self.wall_until.map_or(end, |wall| end.max(wall))
    }
}

/// All tasks of a run.
#[derive(Debug)]
pub struct Tasks {
    execs: Vec<Exec>,
    /// Those that the launcher releases.
    arrivals: Vec<Arrival>,
    /// Forked so far of each description, for names.
    nr_forked: Vec<u32>,
    /// Those that have not exited, the arrivals to come included.
    nr_live: u64,
}

impl Tasks {
    /// Nobody exists yet; these are to come.
    pub fn new(workload: &Workload, arrivals: Vec<Arrival>) -> Self {
        let nr_live = arrivals.len() as u64;
        Self { execs: Vec::new(), arrivals, nr_forked: vec![0; workload.tasks.len()], nr_live }
    }

    /// Arrival number `index`: its description and its name.
    pub fn arrival(&self, index: u32) -> (u32, String) {
        let arrival = &self.arrivals[index as usize];
        (arrival.spec, arrival.name.clone())
    }

    /// One of description `spec` is forked: how many were before it.
    pub fn fork(&mut self, spec: u32) -> u32 {
        self.nr_live += 1;
        let nr_forked = &mut self.nr_forked[spec as usize];
        *nr_forked += 1;
        *nr_forked - 1
    }

    /// `task`, the next one, exists.
    pub fn push(&mut self, task: TaskId, exec: Exec) {
        assert_eq!(task.index(), self.execs.len(), "tasks are created in the order of their ids");
        self.execs.push(exec);
    }

    /// Everybody who was to come is alive or has exited.
    pub fn check_counts(&self, nr_exited: u64) {
        let forked: u64 = self.nr_forked.iter().map(|nr| u64::from(*nr)).sum();
        let created = self.arrivals.len() as u64 + forked;
        assert_eq!(self.nr_live + nr_exited, created, "tasks came from nowhere or were forgotten");
        assert!(self.execs.len() as u64 <= created, "a task was created twice");
    }

    /// One has exited.
    pub fn exited(&mut self) {
        assert!(self.nr_live > 0, "more tasks exit than were created");
        self.nr_live -= 1;
    }

    /// Tasks that have not exited, those to be released included.
    #[inline]
    pub fn nr_live(&self) -> u64 {
        self.nr_live
    }

    /// All that exist or existed.
    pub fn ids(&self) -> impl Iterator<Item = TaskId> + use<> {
        (0..self.execs.len() as u32).map(TaskId)
    }
}

impl Index<TaskId> for Tasks {
    type Output = Exec;

    #[inline(always)]
    fn index(&self, task: TaskId) -> &Exec {
        &self.execs[task.index()]
    }
}

impl IndexMut<TaskId> for Tasks {
    #[inline(always)]
    fn index_mut(&mut self, task: TaskId) -> &mut Exec {
        &mut self.execs[task.index()]
    }
}
