// SPDX-License-Identifier: MIT OR Apache-2.0
//! A task becomes runnable, and stops being so.
//!
//! Source: Linux kernel/sched/ext.c, 6.18: `select_task_rq_scx()`, `enqueue_task_scx()`,
//! `do_enqueue_task()`, `ops_dequeue()`, `dequeue_task_scx()`.

use super::consts::{
    DEQ_SCHED_CHANGE, DEQ_SLEEP, DSQ_INVALID, DSQ_LOCAL, ENQ_RESTORE, OPS_ENQ_EXITING,
    SLICE_BYPASS, SLICE_DFL,
};
use super::ext::Ext;
use super::ops::Callback;
use super::state::Direct;
use super::task::OpsState;
use schedlab_model::{CpuId, TaskId};

/// Why a task is removed from its run queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaves {
    /// It is no longer runnable, or its attributes change.
    Off,
    /// It only moves to another CPU.
    ToOtherCpu,
}

impl Ext<'_> {
    /// The CPU for a waking task that may use several.
    pub fn select_cpu(&mut self, p: TaskId, prev: CpuId, wake_flags: u64) -> CpuId {
        self.k.state.selected = Some(p);
        if !self.k.state.has(Callback::SelectCpu) || self.k.state.bypass {
            return self.select_built_in(p, prev, wake_flags);
        }
        self.k.state.context.direct = Direct::Task(p);
        let answer =
            self.call(Callback::SelectCpu, |ops, k| ops.select_cpu(k, p, prev, wake_flags));
        self.k.state.context.direct = Direct::No;
        let Some(answer) = answer else { return self.usable(p, prev) };
        let nr_cpus = self.k.core.nr_cpus();
        let cpu = match u32::try_from(answer) {
            Ok(cpu) if cpu < nr_cpus => CpuId(cpu),
            _ => {
                self.k.scx_error(format!("invalid CPU {answer} from ops.select_cpu()"));
                prev
            }
        };
        self.usable(p, cpu)
    }

    fn select_built_in(&mut self, p: TaskId, prev: CpuId, wake_flags: u64) -> CpuId {
        if !self.k.state.idle.is_on {
            return self.usable(p, prev);
        }
        match self.k.choose_idle(p, prev, wake_flags, None, 0) {
            Ok(cpu) => {
                let task = self.k.state.task_mut(p);
                task.entity.set_slice(SLICE_DFL);
                task.ddsp_dsq_id = DSQ_LOCAL;
                cpu
            }
            Err(_) => self.usable(p, prev),
        }
    }

    /// Returns `cpu` if `p` may use it; or else another CPU, of the same node if possible
    /// (`select_fallback_rq()`).
    fn usable(&mut self, p: TaskId, cpu: CpuId) -> CpuId {
        let allowed = &self.k.core.task(p).cpus_allowed;
        if allowed.contains(cpu) {
            return cpu;
        }
        self.k.state.events.select_cpu_fallback += 1;
        let node = &self.k.core.topology.node;
        let near = allowed.iter().find(|other| node[other.index()] == node[cpu.index()]);
        near.or_else(|| allowed.first_cpu()).unwrap_or(cpu)
    }

    /// `p` becomes runnable on `cpu`. `is_move`: it was runnable on another CPU.
    pub fn enqueue(&mut self, cpu: CpuId, p: TaskId, enq_flags: u64, is_move: bool) {
        let is_curr = self.k.core.rq(cpu).curr == Some(p);
        let sticky = (enq_flags & ENQ_RESTORE != 0 && is_curr).then_some(cpu);
        self.k.set_runnable(p);
        if !is_move {
            self.note_wait(p);
        }
        self.k.state.task_mut(p).queued = true;
        self.k.state.cpu_mut(cpu).nr_running += 1;
        self.k.core.add_nr_running(cpu, 1);
        if !is_move {
            self.tell(Callback::Runnable, |ops, k| ops.runnable(k, p, enq_flags));
        }
        self.do_enqueue(cpu, p, enq_flags, sticky);
    }

    /// Notes that `p` waits from now on.
    #[inline]
    pub fn note_wait(&mut self, p: TaskId) {
        let (now, is_put) = (self.k.core.now, self.k.state.task(p).ddsp_dsq_id != DSQ_INVALID);
        if let Some(notes) = &mut self.k.state.notes {
            notes.waits(p, now, is_put);
        }
    }

    /// Finds a queue for runnable `p` on `rq`.
    pub fn do_enqueue(&mut self, rq: CpuId, p: TaskId, enq_flags: u64, sticky: Option<CpuId>) {
        let local = self.k.state.dsqs.local(rq);
        if sticky == Some(rq) {
            self.k.dispatch_enqueue(local, p, enq_flags);
            return;
        }
        if self.k.state.bypass {
            self.enqueue_bypassed(rq, p, enq_flags);
            return;
        }
        let task = self.k.state.task(p);
        if task.ddsp_dsq_id != DSQ_INVALID {
            self.k.direct_dispatch(rq, p, enq_flags);
            return;
        }
        if task.exiting && !self.k.state.has_flag(OPS_ENQ_EXITING) {
            self.k.state.events.enq_skip_exiting += 1;
            self.refill(p);
            self.k.dispatch_enqueue(local, p, enq_flags);
            return;
        }
        if !self.k.state.has(Callback::Enqueue) {
            self.refill(p);
            let global = self.k.global_at(rq);
            self.k.dispatch_enqueue(global, p, enq_flags);
            return;
        }
        let qseq = self.k.state.cpu(rq).qseq;
        self.k.state.cpu_mut(rq).qseq += 1;
        let task = self.k.state.task_mut(p);
        task.ops_state = OpsState::Queueing;
        task.qseq = qseq;
        self.k.state.context.direct = Direct::Task(p);
        self.call(Callback::Enqueue, |ops, k| ops.enqueue(k, p, enq_flags));
        self.k.state.context.direct = Direct::No;
        let has_custody = self.k.state.options.core.has_custody;
        let task = self.k.state.task_mut(p);
        if task.ddsp_dsq_id != DSQ_INVALID {
            self.k.direct_dispatch(rq, p, enq_flags);
            return;
        }
        task.ops_state = OpsState::Queued;
        task.in_custody = has_custody;
    }

    fn enqueue_bypassed(&mut self, rq: CpuId, p: TaskId, enq_flags: u64) {
        let by_cpu = self.k.state.options.core.bypasses_by_cpu;
        self.k.state.events.bypass_dispatch += 1;
        let slice = if by_cpu { SLICE_BYPASS } else { SLICE_DFL };
        self.k.state.task(p).entity.set_slice(slice);
        let dsq = if by_cpu { self.k.state.dsqs.bypass(rq) } else { self.k.global_at(rq) };
        self.k.dispatch_enqueue(dsq, p, enq_flags);
    }

    /// Gives `p` a whole slice.
    pub fn refill(&mut self, p: TaskId) {
        self.k.state.task(p).entity.set_slice(SLICE_DFL);
        self.k.state.events.refill_slice_dfl += 1;
    }

    /// `p`, queued or running on `cpu`, leaves its run queue.
    pub fn dequeue(&mut self, cpu: CpuId, p: TaskId, deq_flags: u64, leaves: Leaves) {
        if !self.k.state.task(p).queued {
            return;
        }
        self.ops_dequeue(p, deq_flags);
        let is_curr = self.k.core.rq(cpu).curr == Some(p);
        if is_curr {
            self.k.charge(p);
            let still_runnable = leaves == Leaves::ToOtherCpu;
            self.tell(Callback::Stopping, |ops, k| ops.stopping(k, p, still_runnable));
            self.k.state.cpu_mut(cpu).moving = still_runnable.then_some(p);
        }
        if leaves == Leaves::Off {
            self.tell(Callback::Quiescent, |ops, k| ops.quiescent(k, p, deq_flags));
        }
        self.k.state.task_mut(p).queued = false;
        self.k.state.cpu_mut(cpu).nr_running -= 1;
        self.k.core.sub_nr_running(cpu, 1);
        self.k.dispatch_dequeue(p);
    }

    /// Removes `p` from the scheduler, if that has it.
    fn ops_dequeue(&mut self, p: TaskId, deq_flags: u64) {
        self.k.clear_runnable(p);
        let has_custody = self.k.state.options.core.has_custody;
        let task = self.k.state.task_mut(p);
        let was_queued = std::mem::replace(&mut task.ops_state, OpsState::None) == OpsState::Queued;
        let was_in_custody = std::mem::take(&mut task.in_custody);
        if !has_custody && was_queued {
            self.tell(Callback::Dequeue, |ops, k| ops.dequeue(k, p, deq_flags));
        } else if has_custody && was_in_custody {
            let change = if deq_flags & DEQ_SLEEP == 0 { DEQ_SCHED_CHANGE } else { 0 };
            self.tell(Callback::Dequeue, |ops, k| ops.dequeue(k, p, deq_flags | change));
        }
    }
}
