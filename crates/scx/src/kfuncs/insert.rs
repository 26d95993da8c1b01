// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inserts a task into a queue: at once for the task of the callback, buffered in `ops.dispatch`.

use crate::consts::{DSQ_INVALID, ENQ_DSQ_PRIQ, ENQ_INTERNAL_MASK};
use crate::kernel::Kernel;
use crate::ops::Callback;
use crate::state::{Buffered, Direct};
use schedlab_model::TaskId;

/// Callbacks that may insert tasks.
const MAY_INSERT: &[Callback] = &[Callback::Enqueue, Callback::Dispatch, Callback::SelectCpu];

impl Kernel<'_> {
    /// `scx_bpf_dsq_insert` (`scx_bpf_dispatch` before 6.13): inserts `p` at the end of queue
    /// `dsq_id`. A `slice` of 0 keeps the present slice. Returns whether it was accepted.
    pub fn dsq_insert(&mut self, p: TaskId, dsq_id: u64, slice: u64, enq_flags: u64) -> bool {
        if !self.may_insert("dsq_insert", enq_flags) {
            return false;
        }
        self.set_inserted_slice(p, slice);
        self.commit(p, dsq_id, enq_flags)
    }

    /// `scx_bpf_dsq_insert_vtime`: inserts `p` by virtual time.
    #[inline(always)]
    pub fn dsq_insert_vtime(
        &mut self,
        p: TaskId,
        dsq_id: u64,
        slice: u64,
        vtime: u64,
        enq_flags: u64,
    ) -> bool {
        if !self.may_insert("dsq_insert_vtime", enq_flags) {
            return false;
        }
        self.set_inserted_slice(p, slice);
        self.state.task(p).entity.set_dsq_vtime(vtime);
        self.commit(p, dsq_id, enq_flags | ENQ_DSQ_PRIQ)
    }

    /// `scx_bpf_dispatch_nr_slots`: free entries of the dispatch buffer.
    pub fn dispatch_nr_slots(&mut self) -> u32 {
        if !self.allowed("dispatch_nr_slots", &[Callback::Dispatch]) {
            return 0;
        }
        self.state.max_batch.saturating_sub(self.state.buffer.len() as u32)
    }

    /// `scx_bpf_dispatch_cancel`: removes the newest entry.
    pub fn dispatch_cancel(&mut self) {
        if self.allowed("dispatch_cancel", &[Callback::Dispatch])
            && self.state.buffer.pop().is_none()
        {
            self.scx_error("dispatch buffer underflow".into());
        }
    }

    /// `scx_bpf_task_set_slice` (6.19): sets the slice.
    pub fn task_set_slice(&mut self, p: TaskId, slice: u64) -> bool {
        self.state.task(p).entity.set_slice(slice);
        true
    }

    /// `scx_bpf_task_set_dsq_vtime` (6.19): sets the virtual time.
    pub fn task_set_dsq_vtime(&mut self, p: TaskId, vtime: u64) -> bool {
        self.state.task(p).entity.set_dsq_vtime(vtime);
        true
    }

    #[inline(always)]
    fn may_insert(&mut self, kfunc: &str, enq_flags: u64) -> bool {
        if !self.allowed(kfunc, MAY_INSERT) {
            return false;
        }
        if enq_flags & ENQ_INTERNAL_MASK != 0 {
            self.scx_error(format!("invalid enq_flags 0x{enq_flags:x}"));
            return false;
        }
        true
    }

    /// Sets the slice of an inserted task. 0 keeps the present one; if nothing of it is left, it
    /// becomes a nanosecond.
    fn set_inserted_slice(&self, p: TaskId, slice: u64) {
        let entity = &self.state.task(p).entity;
        entity.set_slice(if slice != 0 { slice } else { entity.slice().max(1) });
    }

    #[inline(always)]
    fn commit(&mut self, p: TaskId, dsq_id: u64, enq_flags: u64) -> bool {
        if let Some(notes) = &mut self.state.notes {
            notes.put(p, self.state.context.callback);
        }
        match self.state.context.direct {
            Direct::Task(task) if task == p => {
                self.state.context.direct = Direct::Done;
                let task = self.state.task_mut(p);
                if task.ddsp_dsq_id != DSQ_INVALID {
                    return self.direct_twice(p);
                }
                task.ddsp_dsq_id = dsq_id;
                task.ddsp_enq_flags = enq_flags;
                true
            }
            Direct::Task(task) => {
                let (task, other) = (self.named(task), self.named(p));
                self.scx_error(format!(
                    "scheduling for {task} but trying to direct-dispatch {other}"
                ));
                false
            }
            Direct::Done => self.direct_twice(p),
            Direct::No => self.buffer(p, dsq_id, enq_flags),
        }
    }

    #[cold]
    fn direct_twice(&mut self, p: TaskId) -> bool {
        let task = self.named(p);
        self.scx_error(format!("{task} already direct-dispatched"));
        false
    }

    fn buffer(&mut self, p: TaskId, dsq_id: u64, enq_flags: u64) -> bool {
        if self.state.buffer.len() as u32 >= self.state.max_batch {
            self.scx_error("dispatch buffer overflow".into());
            return false;
        }
        let qseq = self.state.task(p).qseq;
        self.state.buffer.push(Buffered { task: p, qseq, dsq_id, enq_flags });
        true
    }
}
