// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes for explanations of picks: which callback put each waiting task into a queue, what took it
//! from there, and what kicked a CPU. Recorded only in runs with an observer.

use super::consts::{ENQ_PREEMPT, KICK_IDLE, KICK_PREEMPT};
use super::ops::Callback;
use schedlab_model::{CpuId, Nanos, TaskId};

/// Why the previous task continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Part of its slice was left at the pick.
    SliceLeft,
    /// `ops.dispatch` gave it a new slice.
    NewSlice,
    /// No other task was runnable.
    NothingElse,
}

/// Notes about a task that waits, or waited until it was picked.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskNote {
    /// The callback that chose its queue; `None`: the core.
    pub put_by: Option<Callback>,
    /// When it entered the first queue of this wait.
    pub since: Nanos,
    /// The queue from which it moved to its present one.
    pub from: Option<u64>,
    /// Its position there; 0 is the head.
    pub from_position: u64,
    /// Its key there, if that queue is ordered by virtual time.
    pub from_vtime: Option<u64>,
    /// The callback that took it from there; `None`: the core.
    pub moved_by: Option<Callback>,
    /// Whether a callback chose a queue that the task has not entered yet.
    is_put: bool,
}

/// A kick of a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Kick {
    /// Time (ns).
    pub at: Nanos,
    /// The callback; `None`: the core.
    pub by: Option<Callback>,
    /// The CPU that executed it.
    pub from_cpu: CpuId,
    /// The kind of kick.
    pub how: &'static str,
}

/// Notes about a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuNote {
    /// The last kick.
    pub kick: Option<Kick>,
    /// Why the running task continues; valid only while it does.
    pub kept: Option<Kept>,
    /// When `ops.dispatch` was called last.
    pub dispatched_at: Option<Nanos>,
}

/// The notes of a run.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    tasks: Vec<TaskNote>,
    cpus: Vec<CpuNote>,
}

impl Notes {
    /// No notes yet.
    pub fn new(nr_cpus: u32) -> Self {
        Self { tasks: Vec::new(), cpus: vec![CpuNote::default(); nr_cpus as usize] }
    }

    /// What is known of a task.
    pub fn task(&self, p: TaskId) -> TaskNote {
        self.tasks.get(p.index()).copied().unwrap_or_default()
    }

    /// What is known of a CPU.
    pub fn cpu(&self, cpu: CpuId) -> CpuNote {
        self.cpus[cpu.index()]
    }

    /// The same, to be changed.
    pub fn cpu_mut(&mut self, cpu: CpuId) -> &mut CpuNote {
        &mut self.cpus[cpu.index()]
    }

    fn task_mut(&mut self, p: TaskId) -> &mut TaskNote {
        if self.tasks.len() <= p.index() {
            self.tasks.resize(p.index() + 1, TaskNote::default());
        }
        &mut self.tasks[p.index()]
    }

    /// The wait of `p` begins. `is_put`: `ops.select_cpu` has already chosen its queue.
    pub fn waits(&mut self, p: TaskId, now: Nanos, is_put: bool) {
        let put_by = self.task(p).put_by.filter(|_| is_put);
        *self.task_mut(p) = TaskNote { since: now, put_by, is_put, ..TaskNote::default() };
    }

    /// A callback chooses a queue for `p`.
    pub fn put(&mut self, p: TaskId, by: Option<Callback>) {
        let note = self.task_mut(p);
        (note.put_by, note.is_put) = (by, true);
    }

    /// `p` enters a queue, chosen by a callback or by the core.
    pub fn placed(&mut self, p: TaskId) {
        let note = self.task_mut(p);
        if !std::mem::take(&mut note.is_put) {
            note.put_by = None;
        }
    }

    /// `p` moves from queue `from` to another one.
    pub fn moves(&mut self, p: TaskId, from: Stand, by: Option<Callback>) {
        let note = self.task_mut(p);
        note.from = Some(from.dsq_id);
        note.from_position = from.position;
        note.from_vtime = from.vtime;
        note.moved_by = by;
        // The callback that chose the first queue stays.
        note.is_put = true;
    }

    /// `cpu` was kicked.
    pub fn kicked(&mut self, cpu: CpuId, flags: u64, mut kick: Kick) {
        kick.how = match flags {
            flags if flags & KICK_PREEMPT != 0 => "SCX_KICK_PREEMPT",
            flags if flags & KICK_IDLE != 0 => "SCX_KICK_IDLE",
            _ => "scx_bpf_kick_cpu",
        };
        self.cpu_mut(cpu).kick = Some(kick);
    }

    /// `p` was inserted into the local queue of `cpu`.
    pub fn arrived(&mut self, cpu: CpuId, p: TaskId, enq_flags: u64, mut kick: Kick) {
        kick.by = kick.by.or(self.task(p).put_by);
        kick.how = match enq_flags & ENQ_PREEMPT {
            0 => "insertion into the local queue",
            _ => "SCX_ENQ_PREEMPT",
        };
        self.cpu_mut(cpu).kick = Some(kick);
    }
}

/// The position of a task in a queue.
#[derive(Clone, Copy, Debug)]
pub struct Stand {
    /// The queue.
    pub dsq_id: u64,
    /// Its position; 0 is the head.
    pub position: u64,
    /// Its key, if the queue is ordered by virtual time.
    pub vtime: Option<u64>,
}
