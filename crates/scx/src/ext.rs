// SPDX-License-Identifier: MIT OR Apache-2.0
//! Core and scheduler together: calls callbacks and processes their requests.
//!
//! In the kernel a few callbacks are called within a function that another callback has called:
//! `ops.enqueue` from `reenqueue_local`, and in 7.1 `ops.dequeue` when an insertion ends the
//! scheduler's custody. Here they follow after the running callback has returned.

use super::consts::ENQ_REENQ;
use super::kernel::Kernel;
use super::ops::{Callback, Ops, OpsFault};
use super::state::{Context, Interrupt, Status};
use schedlab_model::{CpuId, TaskId};

/// The scheduler and the core that calls it.
pub(crate) struct Ext<'a> {
    pub ops: &'a mut dyn Ops,
    pub k: Kernel<'a>,
}

impl Ext<'_> {
    /// Calls a callback if it exists. `None`: it crashed, or an earlier one did.
    pub fn call<R>(
        &mut self,
        callback: Callback,
        call: impl FnOnce(&mut dyn Ops, &mut Kernel<'_>) -> Result<R, OpsFault>,
    ) -> Option<R> {
        if self.k.state.fault.is_some() {
            return None;
        }
        let outer = self.k.state.context.callback.replace(callback);
        let answer = call(self.ops, &mut self.k);
        self.k.state.context.callback = outer;
        self.k.state.dsqs.end_walks();
        if !self.k.state.left_custody.is_empty() {
            self.tell_left_custody();
        }
        match answer {
            Ok(answer) => Some(answer),
            Err(fault) => {
                self.k.state.fault = Some((callback, fault.0));
                None
            }
        }
    }

    /// Calls a callback about `p`, if it exists.
    #[inline]
    pub fn tell(
        &mut self,
        callback: Callback,
        call: impl FnOnce(&mut dyn Ops, &mut Kernel<'_>) -> Result<(), OpsFault>,
    ) {
        if self.k.state.has(callback) {
            self.call(callback, call);
        }
    }

    /// 7.1: calls `ops.dequeue` for tasks that entered queues of the core, which ends the
    /// scheduler's custody.
    pub fn tell_left_custody(&mut self) {
        for p in std::mem::take(&mut self.k.state.left_custody) {
            self.tell(Callback::Dequeue, |ops, k| ops.dequeue(k, p, 0));
        }
    }

    /// Sets the CPU on which callbacks are executed, and whether its run queue is held.
    pub fn on(&mut self, cpu: CpuId, is_held: bool) {
        self.k.state.context = Context::new(cpu, is_held.then_some(cpu));
    }

    /// Executes callbacks in this interrupt, until [`Self::on`] is called again.
    pub fn within(&mut self, interrupt: Interrupt) {
        self.k.state.context.interrupt = interrupt;
    }

    /// Whether work is pending until the run queue is released.
    #[inline]
    pub fn has_leftovers(&self) -> bool {
        let state = &*self.k.state;
        !state.kicking.is_empty()
            || !state.deferring.is_empty()
            || !state.taken_back.is_empty()
            || !state.reenqueuing.is_empty()
            || !state.dead.is_empty()
            || state.exit.is_some()
            || state.fault.is_some()
    }

    /// The run queue is about to be released within a pick: pending work is done after it.
    #[inline]
    pub fn leave_rest_for(&mut self, cpu: CpuId) {
        if self.has_leftovers() {
            self.k.core.queue_balance_callback(cpu);
        }
    }

    /// No run queue is held: does the pending work.
    #[inline]
    pub fn settle(&mut self) {
        if self.has_leftovers() {
            self.settle_rest();
        }
    }

    fn settle_rest(&mut self) {
        loop {
            self.k.run_deferred();
            self.reenqueue_queues();
            if !self.k.state.left_custody.is_empty() {
                self.tell_left_custody();
            }
            self.k.deliver_kicks();
            self.bury_dead();
            let state = &*self.k.state;
            let is_quiet = state.kicking.is_empty()
                && state.deferring.is_empty()
                && state.reenqueuing.is_empty();
            if is_quiet {
                break;
            }
        }
        if let Some((callback, what)) = &self.k.state.fault {
            let what = format!("ops.{} failed: {what}", callback.name());
            self.ops.before_unload(&mut self.k);
            self.k.core.fail(what);
            return;
        }
        if self.k.state.exit.is_some() && self.k.state.status == Status::Enabled {
            self.eject();
        }
    }

    /// Calls `ops.enqueue` for the tasks that `reenqueue_local` took back.
    pub fn enqueue_taken_back(&mut self) {
        for (cpu, p) in std::mem::take(&mut self.k.state.taken_back) {
            self.do_enqueue(cpu, p, ENQ_REENQ, None);
        }
    }

    /// Takes back the tasks of the queues that `dsq_reenq` was called for. Those of a local queue
    /// are enqueued after all have left it, those of the scheduler's queues one after the other. A
    /// task that comes back meanwhile stays.
    fn reenqueue_queues(&mut self) {
        for dsq in std::mem::take(&mut self.k.state.reenqueuing) {
            if self.k.state.bypass || !self.k.may_reenqueue_again() {
                return;
            }
            if let Some(cpu) = self.k.state.dsqs.local_cpu(dsq) {
                self.k.take_back_local(cpu);
                self.enqueue_taken_back();
                continue;
            }
            let state = &*self.k.state;
            let members: Vec<u32> = state.dsqs.members(&state.tasks, dsq).collect();
            for p in members.into_iter().map(TaskId) {
                if self.k.state.task(p).dsq == dsq {
                    self.k.dispatch_dequeue(p);
                    let cpu = self.k.core.task(p).cpu;
                    self.do_enqueue(cpu, p, ENQ_REENQ, None);
                }
            }
        }
    }

    /// Removes tasks that have exited and left their CPUs.
    fn bury_dead(&mut self) {
        for p in std::mem::take(&mut self.k.state.dead) {
            self.exit_task(p, false);
        }
    }

    /// The running task of `cpu`, if it is of this class.
    #[inline]
    pub fn curr_ext(&self, cpu: CpuId) -> Option<TaskId> {
        self.k.core.rq(cpu).curr.filter(|curr| self.k.is_ext(*curr))
    }
}
