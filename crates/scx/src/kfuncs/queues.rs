// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues: creating, destroying, counting, taking from them.

use crate::consts::{
    DSQ_FLAG_BUILTIN, DSQ_FLAG_LOCAL_ON, DSQ_LOCAL, DSQ_LOCAL_CPU_MASK, DSQ_LOCAL_ON, EEXIST,
    EINVAL, ENOENT, REENQ_ANY, REENQ_REPEAT_MAX,
};
use crate::kernel::Kernel;
use crate::ops::Callback;
use crate::task::NIL;
use schedlab_model::TaskId;

/// Callbacks that may sleep, so that they may create queues.
const MAY_CREATE: &[Callback] = &[
    Callback::Init,
    Callback::InitTask,
    Callback::CgroupInit,
    Callback::CgroupPrepMove,
    Callback::CpuOnline,
    Callback::CpuOffline,
    Callback::CgroupExit,
    Callback::Exit,
];

impl Kernel<'_> {
    /// `scx_bpf_create_dsq`: returns 0; -EINVAL for an invalid id or node; -EEXIST.
    pub fn create_dsq(&mut self, dsq_id: u64, node: i32) -> i32 {
        if !self.allowed("create_dsq", MAY_CREATE) {
            return -EINVAL;
        }
        let is_node = node == -1 || u32::try_from(node).is_ok_and(|n| n < self.state.nr_nodes);
        if dsq_id & DSQ_FLAG_BUILTIN != 0 || !is_node {
            return -EINVAL;
        }
        if self.state.dsqs.create(dsq_id) { 0 } else { -EEXIST }
    }

    /// `scx_bpf_destroy_dsq`: removes an empty queue. A queue with tasks is an error; one that does
    /// not exist is ignored.
    pub fn destroy_dsq(&mut self, dsq_id: u64) {
        let Some(dsq) = self.state.dsqs.find(dsq_id) else { return };
        if self.state.dsqs.get(dsq).nr > 0 {
            let nr = self.state.dsqs.get(dsq).nr;
            self.scx_error(format!("attempting to destroy in-use dsq 0x{dsq_id:016x} (nr={nr})"));
            return;
        }
        self.state.dsqs.destroy(dsq_id);
    }

    /// `scx_bpf_dsq_nr_queued`: number of tasks in a local queue or one of the scheduler's; -ENOENT
    /// for all others, the global one included.
    pub fn dsq_nr_queued(&mut self, dsq_id: u64) -> i32 {
        let dsq = if dsq_id & DSQ_FLAG_BUILTIN == 0 {
            self.state.dsqs.find(dsq_id)
        } else if dsq_id == DSQ_LOCAL {
            Some(self.state.dsqs.local(self.this_cpu()))
        } else if dsq_id & DSQ_FLAG_LOCAL_ON != 0 {
            let cpu = (dsq_id & DSQ_LOCAL_CPU_MASK) as u32;
            self.valid_cpu(cpu as i32).map(|cpu| self.state.dsqs.local(cpu))
        } else {
            None
        };
        dsq.map_or(-ENOENT, |dsq| self.state.dsqs.get(dsq).nr as i32)
    }

    /// `scx_bpf_dsq_move_to_local` (`scx_bpf_consume` before 6.13): flushes the dispatch buffer,
    /// then moves the first task that the dispatching CPU may run from a queue of the scheduler to
    /// the local queue.
    pub fn dsq_move_to_local(&mut self, dsq_id: u64) -> bool {
        if !self.allowed("dsq_move_to_local", &[Callback::Dispatch]) {
            return false;
        }
        self.flush_buffer();
        let Some(dsq) = self.state.dsqs.find(dsq_id) else {
            self.scx_error(format!("invalid DSQ ID 0x{dsq_id:016x}"));
            return false;
        };
        let moved = self.consume(self.this_cpu(), dsq);
        if moved {
            // The task may be re-enqueued before the round's end; the round has done something.
            self.state.nr_dispatched += 1;
        }
        moved
    }

    /// `scx_bpf_dsq_peek` (6.19): the first task of a queue of the scheduler.
    pub fn dsq_peek(&mut self, dsq_id: u64) -> Option<TaskId> {
        if dsq_id & DSQ_FLAG_BUILTIN != 0 {
            self.scx_error(format!("peek disallowed on builtin DSQ 0x{dsq_id:x}"));
            return None;
        }
        let Some(dsq) = self.state.dsqs.find(dsq_id) else {
            self.scx_error(format!("peek on non-existent DSQ 0x{dsq_id:x}"));
            return None;
        };
        let head = self.state.dsqs.get(dsq).head;
        (head != NIL).then_some(TaskId(head))
    }

    /// `scx_bpf_reenqueue_local`: removes every task from the local queue of the CPU that is being
    /// released. `ops.enqueue` is called for each of them after `ops.cpu_release` has returned.
    /// Returns their number.
    pub fn reenqueue_local(&mut self) -> u32 {
        if !self.allowed("reenqueue_local", &[Callback::CpuRelease]) {
            return 0;
        }
        let cpu = self.this_cpu();
        self.take_back_local(cpu)
    }

    /// `scx_bpf_dsq_reenq` (7.1): takes every task back from a local queue, or from one of the
    /// scheduler's, when the calling CPU has finished its present work; `ops.enqueue` gets each
    /// with SCX_ENQ_REENQ. The bits of `p->scx.flags` that say why are not modelled.
    pub fn dsq_reenq(&mut self, dsq_id: u64, flags: u64) {
        if flags & !REENQ_ANY != 0 {
            self.scx_error(format!("invalid SCX_REENQ flags 0x{flags:x}"));
            return;
        }
        if self.state.bypass {
            return;
        }
        let dsq = if dsq_id == DSQ_LOCAL {
            self.state.dsqs.local(self.this_cpu())
        } else if dsq_id & DSQ_LOCAL_ON == DSQ_LOCAL_ON {
            let cpu = (dsq_id & DSQ_LOCAL_CPU_MASK) as u32;
            let Some(cpu) = self.valid_cpu(cpu as i32) else { return };
            self.state.dsqs.local(cpu)
        } else if dsq_id & DSQ_FLAG_BUILTIN != 0 {
            self.scx_error(format!("DSQ 0x{dsq_id:x} not allowed for reenq"));
            return;
        } else {
            let Some(dsq) = self.state.dsqs.find(dsq_id) else {
                self.scx_error(format!("non-existent DSQ 0x{dsq_id:x}"));
                return;
            };
            dsq
        };
        if !self.state.reenqueuing.contains(&dsq) {
            self.state.reenqueuing.push(dsq);
        }
    }

    /// Whether queues may be taken back again at this instant; if not, it is an error of the
    /// scheduler. A kernel counts local queues only: with others its CPU would never end.
    pub(crate) fn may_reenqueue_again(&mut self) -> bool {
        let (at, nr) = &mut self.state.reenqueued;
        if *at != self.core.now {
            (*at, *nr) = (self.core.now, 0);
        }
        *nr += 1;
        let nr = *nr;
        if nr > REENQ_REPEAT_MAX {
            self.scx_error(format!("SCX_ENQ_REENQ repeated {nr} times at one instant"));
        }
        nr <= REENQ_REPEAT_MAX
    }

    /// Removes every task from the local queue of `cpu`.
    pub(crate) fn take_back_local(&mut self, cpu: schedlab_model::CpuId) -> u32 {
        let dsq = self.state.dsqs.local(cpu);
        let mut nr = 0;
        loop {
            let head = self.state.dsqs.get(dsq).head;
            if head == NIL {
                return nr;
            }
            self.state.dsqs.remove(&mut self.state.tasks, head);
            self.state.taken_back.push((cpu, TaskId(head)));
            nr += 1;
        }
    }
}
