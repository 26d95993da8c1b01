// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a task in the staircase schedulers, and the effects of fork, exit and changes of
//! attributes on it.
//!
//! Source: 2.6.22-ck1, kernel/sched.c (`sched_fork`, `sched_exit`, `set_user_nice`,
//! `setscheduler`); the model uses these rules for RSDL too.

use super::{NO_ARRAY, SLOTS, Staircase, matrix, variants::Rules};
use crate::boundary::core::Core;
use schedlab_model::{CpuId, Nanos, Policy, SchedAttr, TaskId};

/// The rules by which a task runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Fifo,
    Rr,
    Normal,
    Batch,
    /// Runs only if no other task is runnable.
    Idle,
}

impl Kind {
    pub const fn has_slots(self) -> bool {
        matches!(self, Self::Normal | Self::Batch)
    }
}

/// The attributes that a change affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    None,
    /// The task had this priority before.
    From(i32),
}

/// State of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub kind: Kind,
    /// User priority, 0 to 39: nice value and 20.
    pub user: u8,
    /// Priority if it is real-time, 0 to 98.
    pub rt_prio: u8,
    /// Slots that it may not use (SD).
    pub row: u64,
    /// Slot or level, 0 to 39.
    pub slot: u8,
    /// Which of its CPU's arrays it is in, or was last in.
    pub array: u8,
    /// Its CPU's rotation when it was last queued.
    pub rotation: u64,
    /// Slots that it has used in this rotation.
    pub used: u64,
    /// Time in a slot: us (SD) or ticks (RSDL).
    pub quota: i64,
    /// Rest of the quota; negative after an overrun.
    pub left: i64,
    /// Whether it still runs on the time from its parent.
    pub first_time_slice: bool,
    /// The CPU on which it was last queued.
    pub cpu: CpuId,
    /// CPU time up to the last charge.
    pub charged: Nanos,
    /// When it last left a CPU or a queue.
    pub last_ran: Nanos,
    /// Its part of its CPU's load (`load_weight`).
    pub weight: u64,
    pub change: Change,
    pub parent: Option<TaskId>,
    pub is_dead: bool,
}

impl Entry {
    /// A task that is in no rotation yet.
    pub const fn new(cpu: CpuId) -> Self {
        Self {
            kind: Kind::Normal,
            user: 20,
            rt_prio: 0,
            row: 0,
            slot: 0,
            array: NO_ARRAY,
            rotation: 0,
            used: 0,
            quota: 0,
            left: 0,
            first_time_slice: false,
            cpu,
            charged: 0,
            last_ran: 0,
            weight: 0,
            change: Change::None,
            parent: None,
            is_dead: false,
        }
    }

    /// Whether it has the attributes of `other`.
    pub fn inherits(&self, other: &Self) -> bool {
        (self.kind, self.user, self.rt_prio) == (other.kind, other.user, other.rt_prio)
    }

    /// Gives a SCHED_IDLE task (of SD) a new turn, less what it ran over in the last one. The
    /// kernel takes a number of ms (`task_timeslice`) for us: 120 at nice 0, where a rotation gives
    /// 120 ms.
    pub fn renew_idle(&mut self) {
        self.left += self.quota * i64::from(SLOTS - self.user) / 1_000;
    }

    /// Queues a SCHED_IDLE task: without time left it gets a whole turn.
    pub fn begin_idle(&mut self) {
        if self.left <= 0 {
            self.left = 0;
            self.renew_idle();
        }
    }

    /// Begins a rotation: all slots are free again, with a whole quota.
    pub fn begin_rotation(&mut self, rotation: u64) {
        self.used = 0;
        self.rotation = rotation;
        self.left = self.quota;
        self.first_time_slice = false;
    }
}

impl Staircase {
    /// Applies the relevant attributes.
    pub(super) fn adopt(&mut self, task: TaskId, attr: &SchedAttr) {
        let kind = match (attr.policy, self.rules) {
            (Policy::Fifo, _) => Kind::Fifo,
            (Policy::Rr, _) => Kind::Rr,
            (Policy::Batch, Rules::Sd) => Kind::Batch,
            (Policy::Idle, Rules::Sd) => Kind::Idle,
            _ => Kind::Normal,
        };
        let nice = attr.nice;
        let quota = match (self.rules, kind) {
            (Rules::Sd, Kind::Fifo | Kind::Rr) => self.rr * 1_000,
            (Rules::Sd, _) => matrix::sd_quota_us(nice, self.rr as u64),
            (Rules::Rsdl, Kind::Fifo | Kind::Rr) => self.rr,
            (Rules::Rsdl, _) => matrix::rsdl_quota_ticks(nice, self.rr),
        };
        let user = matrix::user_priority(nice);
        let weight = self.load_weight(kind, quota, attr);
        let entry = self.entry_mut(task);
        entry.kind = kind;
        entry.user = user;
        entry.row = match kind {
            Kind::Batch => matrix::batch_row(user),
            _ => matrix::row(user),
        };
        entry.rt_prio = 99_u8.saturating_sub(attr.rt_priority);
        entry.quota = quota;
        entry.weight = weight;
    }

    /// Splits the parent's time.
    pub(super) fn fork(&mut self, task: TaskId, parent: TaskId) {
        let from = *self.entry(parent);
        let child = self.entry_mut(task);
        child.parent = Some(parent);
        if !child.inherits(&from) {
            return;
        }
        (child.slot, child.array, child.rotation) = (from.slot, from.array, from.rotation);
        (child.used, child.cpu) = (from.used, from.cpu);
        if from.kind == Kind::Fifo {
            return;
        }
        if from.left <= 0 {
            child.left = 0;
            return;
        }
        child.left = (from.left / 2).max(1);
        child.first_time_slice = true;
        self.entry_mut(parent).left = from.left / 2;
    }

    /// Handles an exit: a child that never began its own quota returns the rest to its parent.
    pub(super) fn exit(&mut self, core: &Core, task: TaskId) {
        self.entry_mut(task).is_dead = true;
        let child = *self.entry(task);
        let Some(parent) = child.parent.filter(|parent| !self.entry(*parent).is_dead) else {
            return;
        };
        if child.first_time_slice && core.task(task).cpu == core.task(parent).cpu {
            let entry = self.entry_mut(parent);
            entry.left = (entry.left + child.left.max(0)).min(entry.quota);
        }
    }

    /// Applies new attributes; a queued task changes its place when it is put back.
    pub(super) fn attributes_change(&mut self, core: &Core, task: TaskId, attr: &SchedAttr) {
        let old = *core.task(task).attr;
        let policy_changes = (old.policy, old.rt_priority) != (attr.policy, attr.rt_priority);
        if !policy_changes && old.nice == attr.nice {
            return;
        }
        let from = self.prio(task);
        self.unqueue(task);
        self.adopt(task, attr);
        let entry = self.entry_mut(task);
        entry.change = Change::From(from);
        if policy_changes {
            entry.array = NO_ARRAY;
            entry.left = entry.quota;
        }
    }

    /// Queues a task on `cpu` again after a change of its attributes.
    pub(super) fn restore(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let change = std::mem::replace(&mut self.entry_mut(task).change, Change::None);
        let Change::From(old_prio) = change else { return };
        self.queue(cpu, task);
        let prio = self.prio(task);
        let worse = core.is_running(task) && (prio > old_prio || !self.is_active(cpu, task));
        let better = core
            .rq(cpu)
            .curr
            .is_none_or(|curr| curr != task && self.is_active(cpu, task) && prio < self.prio(curr));
        if worse || better {
            core.resched_curr(cpu);
        }
    }
}
