// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queueing through the levels of groups: enqueue and dequeue, putting back the running entity,
//! picking.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched_fair.c (`enqueue_task_fair`, `enqueue_entity`,
//! `dequeue_task_fair`, `dequeue_entity`, `put_prev_entity`, `pick_next_task_fair`,
//! `set_next_entity`), kernel/sched.c (`set_task_cpu`, `put_prev_task`).

use super::Fair;
use super::entity::update_avg;
use crate::boundary::core::Core;
use crate::fair::rbtree::NIL;
use schedlab_model::{CpuId, Nanos, TaskId};

impl Fair {
    /// Assigns `e` to another queue. Its virtual time does not change.
    pub(super) fn enter_group(&mut self, e: u32, q: u32) {
        if self.ent(e).cfs == q {
            return;
        }
        let parent = self.rq(q).se;
        let depth = if parent == NIL { 0 } else { self.ent(parent).depth + 1 };
        let se = &mut self.ents[e as usize];
        (se.cfs, se.parent, se.depth) = (q, parent, depth);
    }

    /// Prepares `e`, which is on no queue, to join `q`: converts its virtual time to that queue.
    pub(super) fn enter_queue(&mut self, e: u32, q: u32) {
        let se = self.ent(e);
        let (old, is_relative) = (se.cfs, se.is_relative);
        let min_vruntime = self.rq(q).min_vruntime;
        let shift = match is_relative {
            true => min_vruntime,
            false if old == q => return,
            false => min_vruntime.wrapping_sub(self.rq(old).min_vruntime),
        };
        self.enter_group(e, q);
        let se = &mut self.ents[e as usize];
        se.vruntime = se.vruntime.wrapping_add(shift);
        se.is_relative = false;
    }

    /// Queues task entity `e` and the groups above it that are not queued yet.
    pub(super) fn enqueue_levels(&mut self, now: Nanos, cpu: CpuId, e: u32, wakeup: bool) {
        let weight = self.ent(e).load.weight;
        let part = &mut self.cpus[cpu.index()];
        part.nr_running += 1;
        part.task_weight += weight;
        let (mut at, mut wakeup) = (e, wakeup);
        while at != NIL && !self.ent(at).on_rq {
            self.enqueue_entity(now, at, wakeup);
            wakeup = true;
            at = self.ent(at).parent;
        }
    }

    pub(super) fn enqueue_entity(&mut self, now: Nanos, e: u32, wakeup: bool) {
        let q = self.ent(e).cfs;
        self.update_curr(now, q);
        // The order matters only to APPROX_AVG.
        if self.rules.is_later {
            self.account(q, e);
        }
        if wakeup {
            self.place_entity(q, e, false);
        }
        if !self.rules.is_later {
            self.account(q, e);
        }
        if self.rq(q).curr != e {
            self.tree_insert(q, e);
        }
    }

    /// Counts `e` in its queue (`account_entity_enqueue`).
    fn account(&mut self, q: u32, e: u32) {
        let weight = self.ent(e).load.weight;
        let is_task = self.is_task(e);
        let rq = &mut self.cfs[q as usize];
        rq.load += weight;
        rq.nr_running += 1;
        let head = rq.tasks_head;
        if is_task {
            rq.task_weight += weight;
            rq.tasks_head = e;
        }
        let se = &mut self.ents[e as usize];
        se.on_rq = true;
        if is_task {
            (se.list_prev, se.list_next) = (NIL, head);
            if head != NIL {
                self.ents[head as usize].list_prev = e;
            }
        }
    }

    /// Removes `e` from the counts of its queue (`account_entity_dequeue`).
    fn unaccount(&mut self, q: u32, e: u32) {
        let weight = self.ent(e).load.weight;
        let is_task = self.is_task(e);
        let rq = &mut self.cfs[q as usize];
        rq.load -= weight;
        rq.nr_running -= 1;
        let se = &mut self.ents[e as usize];
        se.on_rq = false;
        if is_task {
            rq.task_weight -= weight;
            let (prev, next) = (se.list_prev, se.list_next);
            match prev {
                NIL => rq.tasks_head = next,
                prev => self.ents[prev as usize].list_next = next,
            }
            if next != NIL {
                self.ents[next as usize].list_prev = prev;
            }
        }
    }

    /// Takes task entity `e` off its queue, and the groups above it that become empty.
    pub(super) fn dequeue_levels(&mut self, now: Nanos, cpu: CpuId, e: u32, sleep: bool) {
        let weight = self.ent(e).load.weight;
        let part = &mut self.cpus[cpu.index()];
        part.nr_running -= 1;
        part.task_weight -= weight;
        let (mut at, mut sleep) = (e, sleep);
        while at != NIL {
            let q = self.ent(at).cfs;
            self.dequeue_entity(now, at, sleep);
            if self.rq(q).nr_running > 0 {
                break;
            }
            sleep = true;
            at = self.ent(at).parent;
        }
    }

    pub(super) fn dequeue_entity(&mut self, now: Nanos, e: u32, sleep: bool) {
        let q = self.ent(e).cfs;
        self.update_curr(now, q);
        if self.rules.is_later {
            self.clear_buddies(e);
        }
        if self.rq(q).curr != e {
            self.cfs[q as usize].tree.remove(&mut self.nodes, e);
        }
        self.unaccount(q, e);
        if self.rules.is_later {
            self.update_min_vruntime(q);
            if !sleep {
                let min_vruntime = self.rq(q).min_vruntime;
                let se = &mut self.ents[e as usize];
                se.vruntime = se.vruntime.wrapping_sub(min_vruntime);
                se.is_relative = true;
            }
        }
    }

    #[inline]
    fn tree_insert(&mut self, q: u32, e: u32) {
        self.nodes[e as usize].key = self.ent(e).vruntime;
        self.cfs[q as usize].tree.insert(&mut self.nodes, e);
    }

    /// Stops task entity `e` and the groups above it; those still queued wait again.
    pub(super) fn put_prev(&mut self, now: Nanos, e: u32) {
        if self.rq(self.ent(e).cfs).curr != e {
            return;
        }
        if self.rules.is_later {
            self.note_stretch(e);
        }
        let mut at = e;
        while at != NIL {
            let q = self.ent(at).cfs;
            if self.rq(q).curr == at {
                if self.ent(at).on_rq {
                    self.update_curr(now, q);
                    self.tree_insert(q, at);
                }
                self.cfs[q as usize].curr = NIL;
            }
            at = self.ent(at).parent;
        }
    }

    /// Records the run of `e` without interruption until now (`put_prev_task`). As in the kernel,
    /// time since its last charge does not count.
    fn note_stretch(&mut self, e: u32) {
        let se = self.ent(e);
        let (ran, on_rq) = (se.sum_exec_runtime - se.prev_sum_exec_runtime, se.on_rq);
        let most = 2 * self.values.migration_cost;
        let habits = self.habits_mut(e);
        update_avg(&mut habits.avg_running, ran);
        if on_rq {
            update_avg(&mut habits.avg_overlap, ran.min(most));
        } else {
            update_avg(&mut habits.avg_running, 0);
        }
    }

    /// Picks a task of `cpu` and sets it running, with the groups above it.
    pub(super) fn pick(&mut self, core: &Core, cpu: CpuId) -> Option<TaskId> {
        let mut q = self.root_queue(cpu);
        if self.rq(q).nr_running == 0 {
            return None;
        }
        if let Some(prev) = core.rq(cpu).curr.filter(|prev| self.is_fair(core, *prev)) {
            self.put_prev(core.now, self.task_entity(prev));
        }
        loop {
            let e = self.pick_entity(q);
            self.set_next_entity(core.now, q, e);
            if self.is_task(e) {
                return Some(self.entity_task(e));
            }
            q = self.ent(e).my_q;
        }
    }

    /// The first entity of queue `q`; or (2.6.32) a buddy that is not too far behind it.
    fn pick_entity(&mut self, q: u32) -> u32 {
        let rq = self.rq(q);
        let (first, next, last) = (rq.tree.leftmost, rq.next, rq.last);
        if !self.rules.is_later {
            return first;
        }
        let mut e = first;
        for buddy in [next, last] {
            if buddy != NIL && !self.preempts(buddy, first) {
                e = buddy;
            }
        }
        self.clear_buddies(e);
        e
    }

    fn set_next_entity(&mut self, now: Nanos, q: u32, e: u32) {
        if self.ent(e).on_rq {
            self.cfs[q as usize].tree.remove(&mut self.nodes, e);
        }
        let se = &mut self.ents[e as usize];
        se.exec_start = now;
        se.prev_sum_exec_runtime = se.sum_exec_runtime;
        self.cfs[q as usize].curr = e;
    }

    /// Sets task entity `e` running, with the groups above it, unless the pick has done so.
    pub(super) fn set_next(&mut self, now: Nanos, e: u32) {
        let mut at = e;
        while at != NIL {
            let q = self.ent(at).cfs;
            if self.rq(q).curr == at {
                return;
            }
            self.set_next_entity(now, q, at);
            at = self.ent(at).parent;
        }
    }

    /// Removes `e` and the groups above it as buddies of their queues.
    #[inline]
    pub(super) fn clear_buddies(&mut self, e: u32) {
        let mut at = e;
        while at != NIL {
            let se = self.ent(at);
            let (q, parent) = (se.cfs, se.parent);
            let rq = &mut self.cfs[q as usize];
            if rq.next == at {
                rq.next = NIL;
            }
            if rq.last == at {
                rq.last = NIL;
            }
            at = parent;
        }
    }
}
