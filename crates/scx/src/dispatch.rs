// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves tasks into queues and out of them: insertion, consumption, the dispatch buffer, moves
//! between CPUs.
//!
//! Source: Linux kernel/sched/ext.c, 6.18: `dispatch_enqueue()`, `consume_dispatch_q()`,
//! `dispatch_to_local_dsq()`, `move_remote_task_to_local_dsq()`, `finish_dispatch()`,
//! `flush_dispatch_buf()`, `process_ddsp_deferred_locals()`.

use super::consts::{
    DSQ_FLAG_BUILTIN, DSQ_FLAG_LOCAL_ON, DSQ_GLOBAL, DSQ_LOCAL, DSQ_LOCAL_CPU_MASK, DSQ_LOCAL_ON,
    ENQ_DSQ_PRIQ, ENQ_PREEMPT,
};
use super::dsq::Place;
use super::kernel::Kernel;
use super::state::Buffered;
use super::task::{NIL, OpsState};
use schedlab_model::{CpuId, TaskId};

impl Kernel<'_> {
    /// The index of queue `dsq_id` for a task that `rq` dispatches. If there is no such queue, it
    /// reports an error and returns the global queue.
    #[inline(always)]
    pub(crate) fn find_dsq(&mut self, rq: CpuId, dsq_id: u64, p: TaskId) -> u32 {
        if dsq_id & DSQ_FLAG_BUILTIN == 0
            && let Some(dsq) = self.state.dsqs.find(dsq_id)
        {
            return dsq;
        }
        self.find_other_dsq(rq, dsq_id, p)
    }

    /// As [`Self::find_dsq`], for queues of the core, and for those that do not exist.
    #[inline(never)]
    fn find_other_dsq(&mut self, rq: CpuId, dsq_id: u64, p: TaskId) -> u32 {
        if dsq_id == DSQ_LOCAL {
            return self.state.dsqs.local(rq);
        }
        if dsq_id & DSQ_LOCAL_ON == DSQ_LOCAL_ON {
            let cpu = (dsq_id & DSQ_LOCAL_CPU_MASK) as u32;
            return match self.valid_cpu(cpu as i32) {
                Some(cpu) => self.state.dsqs.local(cpu),
                None => self.global_of(p),
            };
        }
        if dsq_id == DSQ_GLOBAL {
            return self.global_of(p);
        }
        let named = self.named(p);
        self.scx_error(format!("non-existent DSQ 0x{dsq_id:x} for {named}"));
        self.global_of(p)
    }

    /// The global queue of the node of `p`.
    pub(crate) fn global_of(&self, p: TaskId) -> u32 {
        self.global_at(self.core.task(p).cpu)
    }

    /// The global queue of the node of `cpu`.
    #[inline]
    pub(crate) fn global_at(&self, cpu: CpuId) -> u32 {
        self.state.dsqs.global(self.core.topology.node[cpu.index()])
    }

    /// Puts `p`, which is in no queue, into `dsq`. After an insertion into a local queue its CPU
    /// reschedules, if necessary.
    pub(crate) fn dispatch_enqueue(&mut self, dsq: u32, p: TaskId, enq_flags: u64) {
        let place = self.place_in(dsq, enq_flags);
        self.state.dsqs.insert(&mut self.state.tasks, dsq, p.0, place);
        if let Some(notes) = &mut self.state.notes {
            notes.placed(p);
        }
        let task = self.state.task_mut(p);
        task.clear_direct_dispatch();
        task.ops_state = OpsState::None;
        let is_builtin = self.state.dsqs.is_builtin(dsq);
        if self.state.options.core.has_custody {
            self.note_custody(p, !is_builtin);
        }
        if is_builtin && let Some(cpu) = self.state.dsqs.local_cpu(dsq) {
            self.local_arrival(cpu, p, enq_flags);
        }
    }

    fn place_in(&mut self, dsq: u32, enq_flags: u64) -> Place {
        let queue = self.state.dsqs.get(dsq);
        let id = queue.id;
        if enq_flags & ENQ_DSQ_PRIQ != 0 {
            if self.state.dsqs.is_builtin(dsq) {
                self.scx_error("cannot use vtime ordering for built-in DSQs".into());
                return Place::Tail;
            }
            if queue.holds_fifo() {
                self.scx_error(format!("DSQ ID 0x{id:016x} already had FIFO-enqueued tasks"));
            }
            return Place::ByVtime;
        }
        if queue.holds_priq() {
            self.scx_error(format!("DSQ ID 0x{id:016x} already had PRIQ-enqueued tasks"));
        }
        if enq_flags & (self.state.options.core.bits.head | ENQ_PREEMPT) != 0 {
            Place::Head
        } else {
            Place::Tail
        }
    }

    /// `p` entered a queue of the scheduler, or left the scheduler's custody for a queue of the
    /// core.
    fn note_custody(&mut self, p: TaskId, to_user: bool) {
        let task = self.state.task_mut(p);
        let was_in_custody = std::mem::replace(&mut task.in_custody, to_user);
        if was_in_custody && !to_user {
            self.state.left_custody.push(p);
        }
    }

    /// `p` entered the local queue of `cpu`.
    fn local_arrival(&mut self, cpu: CpuId, p: TaskId, enq_flags: u64) {
        let curr = self.core.rq(cpu).curr;
        let mut resched = match curr {
            None => true,
            Some(curr) => self.core.task(curr).class > self.state.class,
        };
        let picks_balance = self.state.options.core.picks_balance;
        resched |= picks_balance && self.state.cpu(cpu).goes_lower;
        let may_preempt = !picks_balance || !self.state.cpu(cpu).in_balance;
        if enq_flags & ENQ_PREEMPT != 0
            && may_preempt
            && let Some(curr) = curr
            && curr != p
            && self.is_ext(curr)
        {
            self.state.task(curr).entity.set_slice(0);
            resched = true;
        }
        if resched {
            if self.state.notes.is_some() {
                let kick = self.state.kick_now(self.core.now);
                self.state
                    .notes
                    .iter_mut()
                    .for_each(|notes| notes.arrived(cpu, p, enq_flags, kick));
            }
            self.core.resched_curr(cpu);
        }
    }

    /// Whether `p` is of this class.
    #[inline]
    pub(crate) fn is_ext(&self, p: TaskId) -> bool {
        self.core.task(p).class == self.state.class
    }

    /// Moves the first task of `dsq` that `cpu` may run to the local queue of `cpu`.
    #[inline]
    pub(crate) fn consume(&mut self, cpu: CpuId, dsq: u32) -> bool {
        let head = self.state.dsqs.get(dsq).head;
        head != NIL && self.consume_from(cpu, head)
    }

    /// As [`Self::consume`], from position `at` on.
    fn consume_from(&mut self, cpu: CpuId, mut at: u32) -> bool {
        while at != NIL {
            let p = TaskId(at);
            let task = self.core.task(p);
            if task.cpu == cpu {
                self.note_move(p);
                self.state.dsqs.remove(&mut self.state.tasks, at);
                let local = self.state.dsqs.local(cpu);
                self.state.dsqs.insert(&mut self.state.tasks, local, at, Place::Tail);
                if self.state.options.core.has_custody {
                    self.note_custody(p, false);
                }
                return true;
            }
            if task.cpus_allowed.contains(cpu) {
                self.note_move(p);
                self.state.dsqs.remove(&mut self.state.tasks, at);
                self.move_remote(p, cpu, 0);
                return true;
            }
            self.core.work.entries_scanned += 1;
            at = self.state.task(p).links.next;
        }
        false
    }

    /// Notes the position of `p`, which is about to move to another queue.
    #[inline]
    pub(crate) fn note_move(&mut self, p: TaskId) {
        if self.state.notes.is_some() {
            let (stand, by) = (self.state.stand_of(p), self.state.context.callback);
            self.state.notes.iter_mut().for_each(|notes| notes.moves(p, stand, by));
        }
    }

    /// Moves runnable `p`, which is in no queue, to the local queue of `cpu`.
    fn move_remote(&mut self, p: TaskId, cpu: CpuId, enq_flags: u64) {
        let from = self.core.task(p).cpu;
        self.clear_runnable(p);
        self.state.cpu_mut(from).nr_running -= 1;
        self.core.sub_nr_running(from, 1);
        self.core.set_task_cpu(p, cpu);
        self.core.add_nr_running(cpu, 1);
        self.state.cpu_mut(cpu).nr_running += 1;
        self.set_runnable(p);
        let local = self.state.dsqs.local(cpu);
        self.dispatch_enqueue(local, p, enq_flags);
    }

    /// Dispatches `p` to the local queue of `cpu`.
    pub(crate) fn dispatch_to_local(&mut self, cpu: CpuId, p: TaskId, enq_flags: u64) {
        let task = self.core.task(p);
        let from = task.cpu;
        if from == cpu {
            let local = self.state.dsqs.local(cpu);
            self.dispatch_enqueue(local, p, enq_flags);
            return;
        }
        if !task.cpus_allowed.contains(cpu) {
            let named = self.named(p);
            self.scx_error(format!(
                "SCX_DSQ_LOCAL[_ON] target CPU {cpu} not allowed for {named} (from CPU {from})"
            ));
            let global = self.global_of(p);
            self.dispatch_enqueue(global, p, enq_flags & !ENQ_DSQ_PRIQ);
            return;
        }
        self.move_remote(p, cpu, enq_flags);
    }

    /// Dispatches the tasks that `ops.dispatch` has buffered, in order.
    #[inline]
    pub(crate) fn flush_buffer(&mut self) {
        if !self.state.buffer.is_empty() {
            self.flush_entries();
        }
    }

    fn flush_entries(&mut self) {
        let rq = self.this_cpu();
        let nr = self.state.buffer.len();
        for index in 0..nr {
            let entry = self.state.buffer[index];
            self.finish_dispatch(rq, entry);
        }
        self.state.nr_dispatched += nr as u32;
        self.state.buffer.clear();
    }

    fn finish_dispatch(&mut self, rq: CpuId, entry: Buffered) {
        let Buffered { task: p, qseq, dsq_id, enq_flags } = entry;
        let task = self.state.task(p);
        // Dequeued or enqueued again meanwhile: the scheduler has it in a new turn, or not at all.
        if task.ops_state != OpsState::Queued || task.qseq != qseq {
            if self.state.options.core.has_custody {
                self.state.events.insert_not_owned += 1;
            }
            return;
        }
        let dsq = self.find_dsq(rq, dsq_id, p);
        match self.state.dsqs.local_cpu(dsq) {
            Some(cpu) => self.dispatch_to_local(cpu, p, enq_flags),
            None => self.dispatch_enqueue(dsq, p, enq_flags),
        }
    }

    /// `p` was inserted directly while it is enqueued on `rq`. Executes the insertion, or defers it
    /// if it needs another CPU's run queue.
    pub(crate) fn direct_dispatch(&mut self, rq: CpuId, p: TaskId, enq_flags: u64) {
        let task = self.state.task_mut(p);
        task.ddsp_enq_flags |= enq_flags;
        let (dsq_id, flags) = (task.ddsp_dsq_id, task.ddsp_enq_flags);
        let dsq = self.find_dsq(rq, dsq_id, p);
        let is_remote = self.state.dsqs.local_cpu(dsq).is_some_and(|cpu| cpu != rq);
        if is_remote && dsq_id & DSQ_FLAG_LOCAL_ON != 0 {
            let task = self.state.task_mut(p);
            task.ops_state = OpsState::None;
            task.deferred = true;
            if self.state.cpu(rq).deferred.is_empty() {
                self.state.deferring.push(rq);
            }
            self.state.cpu_mut(rq).deferred.push(p);
            return;
        }
        self.dispatch_enqueue(dsq, p, flags);
    }

    /// Executes the deferred dispatches of all CPUs, in the order in which they were deferred.
    pub(crate) fn run_deferred(&mut self) {
        while !self.state.deferring.is_empty() {
            let rq = self.state.deferring.remove(0);
            for p in std::mem::take(&mut self.state.cpu_mut(rq).deferred) {
                let task = self.state.task_mut(p);
                task.deferred = false;
                let (dsq_id, flags) = (task.ddsp_dsq_id, task.ddsp_enq_flags);
                task.clear_direct_dispatch();
                let dsq = self.find_dsq(rq, dsq_id, p);
                match self.state.dsqs.local_cpu(dsq) {
                    Some(cpu) => self.dispatch_to_local(cpu, p, flags),
                    None => self.dispatch_enqueue(dsq, p, flags),
                }
            }
        }
    }

    /// Removes `p` from its queue or list, if it is in one (`dispatch_dequeue()`).
    pub(crate) fn dispatch_dequeue(&mut self, p: TaskId) {
        let task = self.state.task_mut(p);
        if task.dsq != NIL {
            self.state.dsqs.remove(&mut self.state.tasks, p.0);
        } else if std::mem::take(&mut task.deferred) {
            task.clear_direct_dispatch();
            let cpu = self.core.task(p).cpu;
            let deferred = &mut self.state.cpu_mut(cpu).deferred;
            deferred.retain(|other| *other != p);
            if deferred.is_empty() {
                self.state.deferring.retain(|other| *other != cpu);
            }
        }
    }
}

/// The list of runnable tasks of each CPU, in the order in which they became runnable.
impl Kernel<'_> {
    /// `p` is runnable on its CPU but does not run (`set_task_runnable()`).
    pub(crate) fn set_runnable(&mut self, p: TaskId) {
        let cpu = self.core.task(p).cpu.index();
        let now = self.core.now;
        let state = &mut *self.state;
        let task = &mut state.tasks[p.index()];
        if std::mem::take(&mut task.reset_runnable_at) {
            task.runnable_at = now;
        }
        let rq = &mut state.cpus[cpu];
        let tail = std::mem::replace(&mut rq.runnable_tail, p.0);
        task.runnable_links.prev = tail;
        task.runnable_links.next = NIL;
        task.on_runnable_list = true;
        match tail {
            NIL => rq.runnable_head = p.0,
            tail => state.tasks[tail as usize].runnable_links.next = p.0,
        }
        if state.next_check.is_none() {
            self.arm_watchdog();
        }
    }

    /// `p` runs, or is no longer runnable (`clr_task_runnable()`).
    pub(crate) fn clear_runnable(&mut self, p: TaskId) {
        let cpu = self.core.task(p).cpu.index();
        let state = &mut *self.state;
        let task = &mut state.tasks[p.index()];
        if !std::mem::take(&mut task.on_runnable_list) {
            return;
        }
        state.longest_wait = state.longest_wait.max(self.core.now - task.runnable_at);
        let (next, prev) = (task.runnable_links.next, task.runnable_links.prev);
        match prev {
            NIL => state.cpus[cpu].runnable_head = next,
            prev => state.tasks[prev as usize].runnable_links.next = next,
        }
        match next {
            NIL => state.cpus[cpu].runnable_tail = prev,
            next => state.tasks[next as usize].runnable_links.prev = prev,
        }
    }
}
