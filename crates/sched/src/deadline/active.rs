// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which tasks count as active: from a wake-up to the 0-lag time after the task blocks.
//!
//! Source: Linux kernel/sched/deadline.c (task_contending, task_non_contending,
//! inactive_task_timer, migrate_task_rq_dl, enqueue_dl_entity, dequeue_dl_entity).

use super::{DlClass, TimerKind, token};
use crate::boundary::core::Core;
use schedlab_model::{CpuId, Policy, TaskId};

/// How the bandwidth of a task counts (`this_bw` and `running_bw` of a CPU).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counted {
    /// The CPU where it counts, and its bandwidth.
    on: Option<(CpuId, u64)>,
    /// Whether it counts as active.
    active: bool,
    /// Whether the task has blocked, left the class or exited, and the timer of its 0-lag time
    /// runs.
    non_contending: bool,
    /// Whether its bandwidth returns to admission when it is no longer active.
    gone: bool,
}

impl DlClass {
    /// Counts `task`, which is runnable on `cpu`, there and as active.
    pub(super) fn contend(&mut self, core: &Core, cpu: CpuId, task: TaskId) {
        if core.task(task).attr.policy != Policy::Deadline {
            // It runs on lent parameters, which count with the lender.
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

    /// Removes `task` from all counts.
    pub(super) fn uncount(&mut self, task: TaskId) {
        let counted = &mut self.tasks[task.index()].counted;
        let active = std::mem::take(&mut counted.active);
        let Some((cpu, bandwidth)) = counted.on.take() else { return };
        if active {
            self.grub.deactivate(cpu, bandwidth);
        }
        self.grub.remove(cpu, bandwidth);
    }

    /// Handles `task` blocking, leaving the class or exiting. If `gone`, its bandwidth becomes free
    /// when it is no longer active.
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
            let at = core.at_hrtimer_clock(at);
            core.start_timer(at, token(TimerKind::Inactive, task, state.departure));
        }
    }

    /// Handles the end of the 0-lag time (`inactive_task_timer`).
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

    /// The charge of the running `task` for `ns` on `cpu`.
    pub(super) fn charged(&self, cpu: CpuId, task: TaskId, ns: u64) -> u64 {
        let state = &self.tasks[task.index()];
        match state.counted.on {
            Some((_, bandwidth)) if state.entity.reclaim => self.grub.charge(cpu, bandwidth, ns),
            _ => ns,
        }
    }
}
