// SPDX-License-Identifier: MIT OR Apache-2.0
//! Picks a task, runs it, charges it and stops it.
//!
//! Source: Linux kernel/sched/ext.c, 6.18: `pick_task_scx()`, `set_next_task_scx()`,
//! `put_prev_task_scx()`, `switch_class()`, `update_curr_scx()`, `task_tick_scx()`,
//! `yield_task_scx()`.

use super::consts::{CPU_PREEMPT_DL, CPU_PREEMPT_RT, CPU_PREEMPT_UNKNOWN, ENQ_LAST, SLICE_INF};
use super::ext::Ext;
use super::kernel::Kernel;
use super::ops::Callback;
use super::task::NIL;
use schedlab_model::{CpuId, TaskId};

impl Kernel<'_> {
    /// Charges running `p` up to now.
    #[inline]
    pub(crate) fn charge(&mut self, p: TaskId) {
        self.state.charge(self.core.now, p);
    }
}

impl Ext<'_> {
    /// Picks the next task of `cpu`.
    #[inline(always)]
    pub fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        let kept = if self.k.state.cpu(cpu).bal_keep {
            self.curr_ext(cpu).filter(|prev| self.k.state.task(*prev).queued)
        } else {
            None
        };
        let head = || {
            let head = self.k.state.dsqs.get(self.k.state.dsqs.local(cpu)).head;
            (head != NIL).then_some(TaskId(head))
        };
        let next = kept.or_else(head)?;
        if self.k.state.task(next).entity.slice() == 0 {
            self.refill(next);
        }
        Some(next)
    }

    /// `p` starts to run on its CPU.
    #[inline(always)]
    pub fn set_next(&mut self, p: TaskId) {
        let is_queued = self.k.state.task(p).queued;
        if is_queued {
            self.k.dispatch_dequeue(p);
        }
        self.k.state.task_mut(p).charged_at = self.k.core.now;
        if is_queued {
            self.tell(Callback::Running, |ops, k| ops.running(k, p));
        }
        self.k.clear_runnable(p);
        self.k.state.task_mut(p).reset_runnable_at = true;
    }

    /// `p` stops running on `cpu`, which runs `next`.
    #[inline(always)]
    pub fn put_prev(&mut self, cpu: CpuId, p: TaskId, next: Option<TaskId>) {
        self.k.charge(p);
        self.k.state.cpu_mut(cpu).bal_keep = false;
        if self.k.state.task(p).queued {
            self.tell(Callback::Stopping, |ops, k| ops.stopping(k, p, true));
            self.k.set_runnable(p);
            self.note_wait(p);
            if self.k.state.task(p).entity.slice() > 0 && !self.k.state.bypass {
                // A higher class preempts it: it is the first to go on.
                let local = self.k.state.dsqs.local(cpu);
                let head = self.k.state.options.core.bits.head;
                self.k.dispatch_enqueue(local, p, head);
            } else {
                let is_lower = next.is_none_or(|n| self.k.core.task(n).class > self.k.state.class);
                self.k.state.cpu_mut(cpu).goes_lower = is_lower;
                // The scheduler sees the task's state at the time when it stopped.
                self.k.state.is_shown = self.k.state.has(Callback::Stopping);
                self.do_enqueue(cpu, p, if is_lower { ENQ_LAST } else { 0 }, None);
                self.k.state.is_shown = false;
                self.k.state.cpu_mut(cpu).goes_lower = false;
            }
        }
        if let Some(next) = next
            && self.k.core.task(next).class < self.k.state.class
        {
            self.release_cpu(cpu, next);
        }
    }

    /// A higher class takes `cpu` for `next`.
    fn release_cpu(&mut self, cpu: CpuId, next: TaskId) {
        let watches = self.k.state.has(Callback::CpuRelease);
        let acquires = self.k.state.has(Callback::CpuAcquire);
        if self.k.state.cpu(cpu).released || !(watches || acquires) {
            return;
        }
        self.k.state.cpu_mut(cpu).released = true;
        let reason = match self.k.core.task(next).prio {
            ..0 => CPU_PREEMPT_DL,
            0..100 => CPU_PREEMPT_RT,
            _ => CPU_PREEMPT_UNKNOWN,
        };
        self.tell(Callback::CpuRelease, |ops, k| ops.cpu_release(k, cpu, reason, next));
        self.enqueue_taken_back();
    }

    /// A tick while `p` runs.
    #[inline(always)]
    pub fn tick(&mut self, cpu: CpuId, p: TaskId) {
        self.k.charge(p);
        if self.k.state.bypass {
            self.k.state.task(p).entity.set_slice(0);
        } else {
            self.tell(Callback::Tick, |ops, k| ops.tick(k, p));
        }
        if self.k.state.task(p).entity.slice() == 0 {
            self.k.core.resched_curr(cpu);
        }
    }

    /// Running `p` yields.
    pub fn yield_task(&mut self, p: TaskId) {
        if self.k.state.has(Callback::Yield) {
            self.call(Callback::Yield, |ops, k| ops.yield_(k, p, None));
        } else {
            self.k.state.task(p).entity.set_slice(0);
        }
    }

    /// How many of the next ticks only charge `p`.
    pub fn quiet_ticks(k: &super::state::ExtState, now: u64, tick: u64, p: TaskId) -> u64 {
        if k.has(Callback::Tick) || k.bypass || k.exit.is_some() {
            return 0;
        }
        let task = k.task(p);
        match task.entity.slice() {
            SLICE_INF => u64::MAX,
            slice => slice.saturating_sub(now - task.charged_at).div_ceil(tick),
        }
    }
}
