// SPDX-License-Identifier: MIT OR Apache-2.0
//! Iterates over queues (`bpf_for_each(scx_dsq, ...)`), and moves the tasks found.

use crate::consts::{DSQ_FLAG_BUILTIN, DSQ_ITER_REV, EINVAL, ENOENT, ENQ_DSQ_PRIQ};
use crate::consts::{DSQ_FLAG_LOCAL_ON, DSQ_LOCAL, ENQ_INTERNAL_MASK};
use crate::dsq::is_later;
use crate::kernel::Kernel;
use crate::ops::Callback;
use schedlab_model::TaskId;

/// An iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DsqIter(
    /// Handle, which the caller keeps between the calls.
    pub u32,
);

impl Kernel<'_> {
    /// `bpf_iter_scx_dsq_new`: begins an iteration over a queue of the scheduler. Errors: -ENOENT;
    /// -EINVAL for unknown flags. It ends with [`Kernel::iter_dsq_destroy`], or with the callback.
    pub fn iter_dsq_new(&mut self, dsq_id: u64, flags: u64) -> Result<DsqIter, i32> {
        if flags & !DSQ_ITER_REV != 0 {
            return Err(-EINVAL);
        }
        if dsq_id & DSQ_FLAG_BUILTIN != 0 {
            return Err(-ENOENT);
        }
        let dsq = self.state.dsqs.find(dsq_id).ok_or(-ENOENT)?;
        Ok(DsqIter(self.state.dsqs.walk(dsq, flags & DSQ_ITER_REV != 0)))
    }

    /// `bpf_iter_scx_dsq_next`: the next task.
    pub fn iter_dsq_next(&mut self, iter: DsqIter) -> Option<TaskId> {
        self.state.dsqs.next(&self.state.tasks, iter.0).map(TaskId)
    }

    /// `bpf_iter_scx_dsq_destroy`: ends the iteration.
    pub fn iter_dsq_destroy(&mut self, iter: DsqIter) {
        self.state.dsqs.end_walk(iter.0);
    }

    /// `scx_bpf_dsq_move_set_slice`: sets the slice of the next task that is moved.
    pub fn dsq_move_set_slice(&mut self, iter: DsqIter, slice: u64) {
        if let Some(cursor) = self.state.dsqs.cursor(iter.0) {
            cursor.slice = Some(slice);
        }
    }

    /// `scx_bpf_dsq_move_set_vtime`: sets the virtual time of the next task that is moved.
    pub fn dsq_move_set_vtime(&mut self, iter: DsqIter, vtime: u64) {
        if let Some(cursor) = self.state.dsqs.cursor(iter.0) {
            cursor.vtime = Some(vtime);
        }
    }

    /// `scx_bpf_dsq_move`: moves `p` from the queue of the iteration to the end of `dsq_id`.
    /// Returns false if it has left the queue.
    pub fn dsq_move(&mut self, iter: DsqIter, p: TaskId, dsq_id: u64, enq_flags: u64) -> bool {
        self.dsq_move_with("dsq_move", iter, p, dsq_id, enq_flags)
    }

    /// `scx_bpf_dsq_move_vtime`: moves `p` to its place by virtual time.
    pub fn dsq_move_vtime(
        &mut self,
        iter: DsqIter,
        p: TaskId,
        dsq_id: u64,
        enq_flags: u64,
    ) -> bool {
        self.dsq_move_with("dsq_move_vtime", iter, p, dsq_id, enq_flags | ENQ_DSQ_PRIQ)
    }

    fn dsq_move_with(
        &mut self,
        kfunc: &str,
        iter: DsqIter,
        p: TaskId,
        dsq_id: u64,
        enq_flags: u64,
    ) -> bool {
        if !self.is_unlocked() && !self.allowed(kfunc, &[Callback::Dispatch]) {
            return false;
        }
        if enq_flags & ENQ_INTERNAL_MASK & !ENQ_DSQ_PRIQ != 0 {
            self.scx_error(format!("invalid enq_flags 0x{enq_flags:x}"));
            return false;
        }
        let Some(cursor) = self.state.dsqs.cursor(iter.0) else { return false };
        let (dsq, seq) = (cursor.dsq, cursor.seq);
        let (slice, vtime) = (cursor.slice.take(), cursor.vtime.take());
        let task = self.state.task(p);
        if task.dsq != dsq || is_later(task.dsq_seq, seq) {
            return false;
        }
        if let Some(slice) = slice {
            task.entity.set_slice(slice);
        }
        self.move_from_dsq(p, dsq_id, vtime, enq_flags);
        true
    }

    fn move_from_dsq(&mut self, p: TaskId, dsq_id: u64, vtime: Option<u64>, enq_flags: u64) {
        // From a timer the CPU in question is the task's own.
        let rq = self.state.context.rq.unwrap_or(self.core.task(p).cpu);
        self.note_move(p);
        self.state.dsqs.remove(&mut self.state.tasks, p.0);
        if let Some(vtime) = vtime {
            self.state.task(p).entity.set_dsq_vtime(vtime);
        }
        let is_local = dsq_id == DSQ_LOCAL || dsq_id & DSQ_FLAG_LOCAL_ON != 0;
        let dst = self.find_dsq(rq, dsq_id, p);
        match self.state.dsqs.local_cpu(dst) {
            Some(cpu) if is_local => self.dispatch_to_local(cpu, p, enq_flags),
            _ => self.dispatch_enqueue(dst, p, enq_flags),
        }
    }
}
