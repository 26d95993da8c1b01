// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds work for a CPU: the task that it ran, its local queue, the global queue, `ops.dispatch`.
//!
//! Source: Linux kernel/sched/ext.c, `balance_one()`, 6.18. 6.12 to 6.18 balance before every pick;
//! from 6.19 on it is part of the class's pick.

use super::consts::{DSP_MAX_LOOPS, OPS_ENQ_LAST};
use super::ext::Ext;
use super::notes::Kept;
use super::ops::Callback;
use schedlab_model::{CpuId, TaskId};

impl Ext<'_> {
    /// Finds work for `cpu`. Returns whether there is some.
    #[inline]
    pub fn balance(&mut self, cpu: CpuId) -> bool {
        let rq = self.k.state.cpu_mut(cpu);
        (rq.in_balance, rq.bal_keep) = (true, false);
        if std::mem::take(&mut rq.released) {
            self.tell(Callback::CpuAcquire, |ops, k| ops.cpu_acquire(k, cpu));
        }
        let has_work = self.find_work(cpu);
        self.k.state.cpu_mut(cpu).in_balance = false;
        has_work
    }

    fn find_work(&mut self, cpu: CpuId) -> bool {
        // If the migration thread takes a task away, that thread ran before, not the task.
        let moving = self.k.state.cpu_mut(cpu).moving.take();
        let prev = self.curr_ext(cpu).filter(|prev| Some(*prev) != moving);
        if let Some(prev) = prev {
            self.k.charge(prev);
            if self.goes_on(prev) && !self.k.state.bypass {
                return self.keep(cpu, Kept::SliceLeft);
            }
        }
        if self.has_local(cpu) {
            return true;
        }
        let global = self.k.global_at(cpu);
        if self.k.consume(cpu, global) {
            return true;
        }
        if self.k.state.bypass {
            let bypass = self.k.state.dsqs.bypass(cpu);
            if self.k.state.options.core.bypasses_by_cpu && self.k.consume(cpu, bypass) {
                return true;
            }
        } else if self.k.state.has(Callback::Dispatch) && self.dispatch(cpu, prev, global) {
            return true;
        }
        // No other task is runnable: the previous one continues, unless the scheduler wants to be
        // asked.
        let wants_last = self.k.state.has_flag(OPS_ENQ_LAST) && !self.k.state.bypass;
        let is_runnable = prev.is_some_and(|prev| self.k.state.task(prev).queued);
        if is_runnable && !wants_last {
            self.k.state.events.dispatch_keep_last += 1;
            return self.keep(cpu, Kept::NothingElse);
        }
        false
    }

    /// Rounds of `ops.dispatch` until there is work, or a round that dispatched nothing.
    fn dispatch(&mut self, cpu: CpuId, prev: Option<TaskId>, global: u32) -> bool {
        if let Some(notes) = &mut self.k.state.notes {
            notes.cpu_mut(cpu).dispatched_at = Some(self.k.core.now);
        }
        for _ in 0..DSP_MAX_LOOPS {
            self.k.state.nr_dispatched = 0;
            self.call(Callback::Dispatch, |ops, k| ops.dispatch(k, cpu, prev));
            self.k.flush_buffer();
            if !self.k.state.left_custody.is_empty() {
                self.tell_left_custody();
            }
            if prev.is_some_and(|prev| self.goes_on(prev)) {
                return self.keep(cpu, Kept::NewSlice);
            }
            if self.has_local(cpu) || self.k.consume(cpu, global) {
                return true;
            }
            if self.k.state.nr_dispatched == 0 {
                return false;
            }
        }
        // Other work on this CPU must not wait for ever: the scheduler is asked again a moment
        // later.
        self.k.kick_cpu(cpu.0 as i32, 0);
        false
    }

    /// Whether `prev` is runnable and part of its slice is left.
    fn goes_on(&self, prev: TaskId) -> bool {
        let task = self.k.state.task(prev);
        task.queued && task.entity.slice() > 0
    }

    fn keep(&mut self, cpu: CpuId, why: Kept) -> bool {
        if let Some(notes) = &mut self.k.state.notes {
            notes.cpu_mut(cpu).kept = Some(why);
        }
        self.k.state.cpu_mut(cpu).bal_keep = true;
        true
    }

    fn has_local(&self, cpu: CpuId) -> bool {
        self.k.state.dsqs.get(self.k.state.dsqs.local(cpu)).nr > 0
    }
}
