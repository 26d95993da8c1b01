// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which tasks balancing moves: first real-time ones (2.6.24), then group by group.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched.c (`move_tasks`, `task_hot`, `pull_task`),
//! sched_fair.c (`load_balance_fair`).

use super::super::Fair;
use crate::balance::early::moves::{Move, Moved, move_some};
use crate::balance::early::{Idle, Looker};
use crate::boundary::core::Core;
use crate::fair::rbtree::NIL;
use schedlab_model::{CpuId, TaskId};

/// Priority of an idle CPU (MAX_PRIO).
const MAX_PRIO: i32 = 140;

impl Fair {
    /// Moves up to the weight `most` from one CPU to another. Returns whether a task moved, and
    /// whether affinity kept all of them.
    pub(super) fn move_tasks_of(
        &mut self,
        core: &mut Core,
        looker: Looker,
        from: CpuId,
        most: u64,
    ) -> Moved {
        let curr = core.rq(looker.cpu).curr;
        let best_prio = curr.map_or(MAX_PRIO, |curr| core.task(curr).prio);
        let mut run = Move::new(looker, from, best_prio);
        let most = most as i64;
        let moved = if self.rules.is_later {
            self.move_by_h_load(core, &mut run, most)
        } else {
            // Real-time tasks move first.
            let rt = self.rt.iter_to_balance(from);
            let rt: Vec<TaskId> = rt.take(self.values.nr_migrate as usize + 1).collect();
            let moved = move_some(self, core, &mut run, &rt, most);
            let left = most - moved;
            if left > 0 { moved + self.move_by_group(core, &mut run, left) } else { moved }
        };
        Moved { any: moved > 0, all_pinned: run.all_pinned }
    }

    /// Moves group by group, from each at most half of its difference (2.6.24).
    fn move_by_group(&mut self, core: &mut Core, run: &mut Move, most: i64) -> i64 {
        let (to, mut left) = (run.looker.cpu, most);
        // The kernel's list has the newest group first.
        for group in (0..self.nr_groups()).rev() {
            let (busy, this) = (self.group_queue(group, run.from), self.group_queue(group, to));
            let difference = self.rq(busy).load as i64 - self.rq(this).load as i64;
            if difference <= 0 {
                continue;
            }
            run.best_prio = self.best_prio(core, this);
            left -= self.move_from_queue(core, run, busy, left.min(difference / 2));
            if left <= 0 {
                break;
            }
        }
        most - left
    }

    /// Priority of the first task of a queue.
    fn best_prio(&self, core: &Core, q: u32) -> i32 {
        let rq = self.rq(q);
        let first = if rq.curr == NIL { rq.tree.leftmost } else { rq.curr };
        match first {
            NIL => MAX_PRIO,
            e if self.is_task(e) => core.task(self.entity_task(e)).prio,
            _ => MAX_PRIO,
        }
    }

    /// Moves group by group; the load of a group counts as its share of the load of its CPU
    /// (2.6.32).
    fn move_by_h_load(&mut self, core: &mut Core, run: &mut Move, most: i64) -> i64 {
        self.update_h_load(run.from);
        let mut left = most;
        for group in (0..self.nr_groups()).rev() {
            let q = self.group_queue(group, run.from);
            let rq = self.rq(q);
            let (h_load, weight) = (i128::from(rq.h_load), i128::from(rq.load));
            if rq.task_weight == 0 {
                continue;
            }
            let part = i128::from(left) * weight / (h_load + 1);
            let moved = self.move_from_queue(core, run, q, part as i64);
            if moved == 0 {
                continue;
            }
            left -= (i128::from(moved) * h_load / (weight + 1)) as i64;
            if left < 0 {
                break;
            }
        }
        most - left
    }

    /// Moves tasks of queue `q`, up to the weight `most`. Returns the moved weight.
    fn move_from_queue(&mut self, core: &mut Core, run: &mut Move, q: u32, most: i64) -> i64 {
        let candidates = self.candidates(q, self.values.nr_migrate as usize + 1);
        move_some(self, core, run, &candidates, most)
    }

    /// The first tasks of queue `q` in balancing's order: that of the tree (2.6.24), or the last
    /// queued first, including the running one (2.6.32).
    fn candidates(&self, q: u32, count: usize) -> Vec<TaskId> {
        let rq = self.rq(q);
        let is_later = self.rules.is_later;
        let first = if is_later { rq.tasks_head } else { rq.tree.leftmost };
        let next = |e: &u32| match is_later {
            true => self.ent(*e).list_next,
            false => rq.tree.next(&self.nodes, *e),
        };
        let exists = |e: &u32| *e != NIL;
        let first = Some(first).filter(exists);
        let all = std::iter::successors(first, |e| Some(next(e)).filter(exists));
        let tasks = all.filter(|e| self.is_task(*e)).map(|e| self.entity_task(e));
        tasks.take(count).collect()
    }

    /// Whether the data of `task` is probably in the cache of its CPU (`task_hot`). `cpu` would
    /// take the task.
    pub(in crate::cfs_groups) fn is_cache_hot(
        &self,
        core: &Core,
        cpu: CpuId,
        task: TaskId,
    ) -> bool {
        let e = self.task_entity(task);
        let se = self.ent(e);
        if Self::is_rt(core, task) {
            return false;
        }
        if self.rules.is_later {
            if se.is_idle {
                return false;
            }
            let rq = self.rq(se.cfs);
            let is_buddy = rq.next == e || rq.last == e;
            let counts = self.values.features.cache_hot_buddy && core.rq(cpu).nr_running > 0;
            if counts && is_buddy {
                return true;
            }
        }
        core.now - se.exec_start < self.values.migration_cost
    }

    pub(super) fn pull(&mut self, core: &mut Core, task: TaskId, run: &Move) {
        let (e, to) = (self.task_entity(task), run.looker.cpu);
        let is_rt = Self::is_rt(core, task);
        if is_rt {
            self.rt.dequeue(task);
        } else {
            self.dequeue_levels(core.now, run.from, e, false);
        }
        core.sub_nr_running(run.from, 1);
        core.set_task_cpu(task, to);
        let q = self.queue_of(core, task, to);
        self.enter_queue(e, q);
        if is_rt {
            self.rt.enqueue(core, to, task);
        } else {
            self.enqueue_levels(core.now, to, e, false);
        }
        core.add_nr_running(to, 1);
        // A CPU that is about to become idle picks anyway.
        if run.looker.idle != Idle::Newly {
            self.check_preempt_any(core, to, task);
        }
    }

    /// Tasks of `from`, real-time ones first, then group by group.
    pub(super) fn movable_of(&self, from: CpuId) -> Vec<TaskId> {
        let mut tasks: Vec<TaskId> = self.rt.iter_to_balance(from).collect();
        for group in (0..self.nr_groups()).rev() {
            tasks.extend(self.candidates(self.group_queue(group, from), usize::MAX));
        }
        tasks
    }
}
