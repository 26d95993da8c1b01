// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which tasks count as active: from a wake-up to the 0-lag time after the task has blocked.
//!
//! Source: Linux kernel/sched/deadline.c (task_contending, task_non_contending,
//! inactive_task_timer, migrate_task_rq_dl, enqueue_dl_entity, dequeue_dl_entity).

use super::{DlClass, TimerKind, token};
use crate::boundary::core::Core;
use schedlab_model::{CpuId, Policy, TaskId};

/// How the bandwidth of a task counts (`this_bw` and `running_bw` of a CPU).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counted {
    /// Where, and how much.
    on: Option<(CpuId, u64)>,
    /// Among the active ones.
    active: bool,
    /// Whether the task has blocked, left the class or exited, and the timer of its 0-lag time
    /// runs.
    non_contending: bool,
    /// Whether its bandwidth returns to admission when it is no longer active.
    gone: bool,
}

impl DlClass {
    /// `task` is runnable on `cpu`: it counts there, as active.
    pub(super) fn contend(&mut self, core: &Core, cpu: CpuId, task: TaskId) {
        if core.task(task).attr.policy != Policy::Deadline {
            // It runs on what it is lent, which counts with the one that lends.
            return;
        }
        let state = &mut self.tasks[task.index()];
        if state.counted.non_contending {
            state.departure += 1;
            state.counted.non_contending = false;
        }
        let bandwidth = state.admitted;
        if state.counted.on != Some((cpu, bandwidth)) {
            self.uncount(task);
            self.tasks[task.index()].counted.on = Some((cpu, bandwidth));
            self.grub.add(cpu, bandwidth);
        }
        let counted = &mut self.tasks[task.index()].counted;
        if !std::mem::replace(&mut counted.active, true) {
            self.grub.activate(cpu, bandwidth);
        }
    }

    /// `task` counts nowhere.
    pub(super) fn uncount(&mut self, task: TaskId) {
        let counted = &mut self.tasks[task.index()].counted;
        let active = std::mem::take(&mut counted.active);
        let Some((cpu, bandwidth)) = counted.on.take() else { return };
        if active {
            self.grub.deactivate(cpu, bandwidth);
        }
        self.grub.remove(cpu, bandwidth);
    }

    /// `task` blocks, leaves the class or exits. If `gone`, its bandwidth is free when it is no
    /// longer active.
    pub(super) fn stop_contending(&mut self, core: &mut Core, task: TaskId, gone: bool) {
        let state = &mut self.tasks[task.index()];
        if state.entity.dl_runtime == 0 {
            return;
        }
        state.counted.gone = gone;
        let at = state.entity.zero_lag();
        if at <= core.now {
            self.become_inactive(task);
        } else {
            state.counted.non_contending = true;
            state.departure += 1;
            core.start_timer(at, token(TimerKind::Inactive, task, state.departure));
        }
    }

    /// The 0-lag time has passed (`inactive_task_timer`).
    pub(super) fn become_inactive(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        state.counted.non_contending = false;
        if std::mem::take(&mut state.counted.gone) {
            let bandwidth = std::mem::take(&mut state.admitted);
            self.admission.release(bandwidth);
            self.grub.admitted(bandwidth, 0);
            self.uncount(task);
        } else if std::mem::take(&mut state.counted.active)
            && let Some((cpu, bandwidth)) = state.counted.on
        {
            self.grub.deactivate(cpu, bandwidth);
        }
    }

    /// What the running `task` is charged for `ns` on `cpu`.
    pub(super) fn charged(&self, cpu: CpuId, task: TaskId, ns: u64) -> u64 {
        let state = &self.tasks[task.index()];
        match state.counted.on {
            Some((_, bandwidth)) if state.entity.reclaim => self.grub.charge(cpu, bandwidth, ns),
            _ => ns,
        }
    }
}
