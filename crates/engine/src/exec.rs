// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine's state of a task in addition to [`schedlab_sched::Task`]: its program and its
//! relatives.

use crate::objects::Shared;
use schedlab_model::arrivals::Arrival;
use schedlab_model::{CpuId, CpuMask, Interpreter, Nanos, ObjectId, SchedAttr, TaskId, Workload};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// Why a task sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// It does not sleep.
    No,
    /// For a time or the device: one event will wake it.
    Event,
    /// For another task's move between groups.
    Move,
    /// For any of its children.
    AnyChild,
    /// For one of its children.
    Child(TaskId),
    /// On an object or a set of objects, by its number in the trace.
    On(ObjectId),
}

/// The execution of a task.
#[derive(Debug)]
pub struct Exec {
    /// Index of its description.
    pub spec: u32,
    /// Position in its program.
    pub interpreter: Interpreter,
    /// CPU time (ns) left of its burst, while it does not run.
    pub remaining: Nanos,
    /// The part of the last nanosecond of its next burst that is already done, in thousandths,
    /// because bursts on hardware threads are rounded to whole nanoseconds.
    pub ahead: u32,
    /// Cost (ns) that is not yet charged to its CPU time.
    pub overhead: Nanos,
    /// Busy until this wall time.
    pub wall_until: Option<Nanos>,
    /// What it waits for.
    pub waiting: Waiting,
    /// Next period boundary of each timer.
    pub timers: Vec<Nanos>,
    /// Parent.
    pub parent: Option<TaskId>,
    /// Number of living children.
    pub children: u32,
    /// Whether it has exited, as its parent sees it.
    pub has_left: bool,
    /// State for its use of objects; `None` before the first use.
    pub shared: Option<Box<Shared>>,
    /// Whether it must leave its CPU, because its new affinity excludes it.
    pub must_move: bool,
    /// Where it moves then, if that was decided with its affinity.
    pub move_to: Option<CpuId>,
    /// Whether it called sched_yield and was not rescheduled since.
    pub yielded: bool,
    /// Since when it is runnable but not running (valid while it waits).
    pub runnable_since: Nanos,
    /// Whether it has run before.
    pub has_run: bool,
    /// The CPU it ran on last.
    pub last_cpu: u32,
    /// Name.
    pub name: String,
}

impl Exec {
    /// When a plain burst ends that begins now: `in_kernel`, then `ns` of work. A task that is busy
    /// until a wall time ends it no earlier than that.
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
    /// The tasks that the launcher releases.
    arrivals: Vec<Arrival>,
    /// Number of forked tasks of each description, for names.
    nr_forked: Vec<u32>,
    /// With which attributes and CPUs a task of each description begins, once one exists.
    begins_with: Vec<Option<(Arc<SchedAttr>, Arc<CpuMask>)>>,
    /// Tasks that have not exited, future arrivals included.
    nr_live: u64,
    /// Tasks that the launcher releases, without those that never exit.
    nr_launched: u64,
    /// Tasks that no run waits for: they are not counted above.
    nr_uncounted: u64,
}

impl Tasks {
    /// Number of tasks that the launcher releases, without those that never exit.
    pub fn nr_launched(&self) -> u64 {
        self.nr_launched
    }

    /// No task exists yet; `arrivals` will be released, `nr_uncounted` of which never exit.
    pub fn new(workload: &Workload, arrivals: Vec<Arrival>, nr_uncounted: u64) -> Self {
        Self {
            execs: Vec::new(),
            nr_live: arrivals.len() as u64 - nr_uncounted,
            nr_launched: arrivals.len() as u64 - nr_uncounted,
            nr_uncounted,
            arrivals,
            nr_forked: vec![0; workload.tasks.len()],
            begins_with: vec![None; workload.tasks.len()],
        }
    }

    /// Description and name of arrival number `index`, which is released now: the name goes to
    /// its task.
    pub fn arrival_spec(&self, index: u32) -> u32 {
        self.arrivals[index as usize].spec
    }

    /// Takes the name of the task of arrival number `index`, which is released once.
    pub fn take_arrival_name(&mut self, index: u32) -> String {
        std::mem::take(&mut self.arrivals[index as usize].name)
    }

    /// What is released at time 0.
    pub fn at_start(&self) -> impl Iterator<Item = &Arrival> {
        self.arrivals.iter().take_while(|arrival| arrival.release_ns == 0)
    }

    /// Arrival number `index`.
    pub fn arrival(&self, index: u32) -> &Arrival {
        &self.arrivals[index as usize]
    }

    /// When arrival number `index` is released, by the workload.
    pub fn release_ns(&self, index: u32) -> Nanos {
        self.arrivals[index as usize].release_ns
    }

    /// Counts a fork of description `spec`. Returns the number of forks before it.
    pub fn fork(&mut self, spec: u32) -> u32 {
        self.nr_live += 1;
        let nr_forked = &mut self.nr_forked[spec as usize];
        *nr_forked += 1;
        *nr_forked - 1
    }

    /// Attributes and allowed CPUs with which a task of description `spec` begins, on a machine
    /// with these CPUs. All tasks of a description share them.
    pub fn begin_with(
        &mut self,
        spec: u32,
        attr: &SchedAttr,
        cpus: &CpuMask,
    ) -> (Arc<SchedAttr>, Arc<CpuMask>) {
        let make = || {
            let allowed = attr.affinity.unwrap_or(*cpus).and(cpus);
            (Arc::new(*attr), Arc::new(allowed))
        };
        self.begins_with[spec as usize].get_or_insert_with(make).clone()
    }

    /// Adds `task`, whose id is the next one.
    pub fn push(&mut self, task: TaskId, exec: Exec) {
        assert_eq!(task.index(), self.execs.len(), "tasks are created in the order of their ids");
        self.execs.push(exec);
    }

    /// Checks that every expected task is alive or has exited. Threads of the kernel come on top.
    pub fn check_counts(&self, nr_exited: u64, nr_threads: u64) {
        let forked: u64 = self.nr_forked.iter().map(|nr| u64::from(*nr)).sum();
        let created = self.arrivals.len() as u64 + forked;
        let counted = self.nr_live + self.nr_uncounted + nr_exited;
        assert_eq!(counted, created, "tasks came from nowhere or were forgotten");
        assert!(self.execs.len() as u64 <= created + nr_threads, "a task was created twice");
    }

    /// Counts an exit.
    pub fn exited(&mut self) {
        assert!(self.nr_live > 0, "more tasks exit than were created");
        self.nr_live -= 1;
    }

    /// Tasks that have not exited, future arrivals included.
    #[inline]
    pub fn nr_live(&self) -> u64 {
        self.nr_live
    }

    /// All tasks that exist or have exited.
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
