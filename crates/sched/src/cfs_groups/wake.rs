// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a woken task preempts, the buddies that this makes, and averages of how tasks wake each
//! other.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched_fair.c (`check_preempt_wakeup`,
//! `wakeup_preempt_entity`, `wakeup_gran`, `adaptive_gran`, `set_last_buddy`, `yield_task_fair`),
//! kernel/sched.c (`try_to_wake_up`, `dequeue_task`).

use super::Fair;
use super::entity::{is_before, update_avg};
use super::weights::{NICE_0_LOAD, calc_delta_fair};
use crate::boundary::core::Core;
use crate::boundary::flags::WakeFlags;
use crate::fair::rbtree::NIL;
use schedlab_model::{CpuId, Nanos, Policy, TaskId};

impl Fair {
    /// Walks up from both entities to their common queue.
    pub(super) fn matching(&self, mut a: u32, mut b: u32) -> (u32, u32) {
        while self.ent(a).depth > self.ent(b).depth {
            a = self.ent(a).parent;
        }
        while self.ent(b).depth > self.ent(a).depth {
            b = self.ent(b).parent;
        }
        while self.ent(a).cfs != self.ent(b).cfs {
            a = self.ent(a).parent;
            b = self.ent(b).parent;
        }
        (a, b)
    }

    /// Compares queued `task` with running `curr`.
    pub(super) fn check_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        flags: WakeFlags,
    ) {
        let (se, pse) = (self.task_entity(curr), self.task_entity(task));
        if se == pse {
            return;
        }
        let [rt_curr, rt_woken] = [curr, task].map(|task| Self::is_rt(core, task));
        if rt_curr || rt_woken {
            if core.task(task).prio < core.task(curr).prio {
                self.update_curr(core.now, self.ent(se).cfs);
                core.resched_curr(cpu);
            }
            return;
        }
        if self.rules.is_later {
            self.update_curr(core.now, self.ent(se).cfs);
            self.check_preempt_later(core, cpu, se, pse, flags);
            return;
        }
        let is_batch = core.task(task).attr.policy == Policy::Batch;
        if is_batch || !self.values.features.wakeup_preempt {
            return;
        }
        let (se, pse) = self.matching(se, pse);
        let limit = self.ent(pse).vruntime.wrapping_add(self.granularity(se));
        if is_before(limit, self.ent(se).vruntime) {
            core.resched_curr(cpu);
        }
    }

    /// The wakeup granularity in the virtual time of `e`.
    #[inline]
    pub(super) fn granularity(&self, e: u32) -> u64 {
        calc_delta_fair(self.values.wakeup_granularity, self.ent(e).load)
    }

    fn check_preempt_later(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        se: u32,
        pse: u32,
        flags: WakeFlags,
    ) {
        let features = self.values.features;
        let is_long = u64::from(self.rq(self.ent(se).cfs).nr_running) >= self.values.nr_latency;
        if features.next_buddy && is_long && !flags.is_fork() {
            self.set_next_buddy(pse);
        }
        if core.rq(cpu).need_resched || !self.ent(pse).is_normal {
            return;
        }
        if self.ent(se).is_idle || self.always_preempts(se, pse, flags) {
            core.resched_curr(cpu);
            return;
        }
        let [mine, theirs] = [se, pse].map(|e| self.habits(e).avg_running);
        if features.wakeup_running && theirs < mine {
            self.set_next_buddy(pse);
            core.resched_curr(cpu);
            return;
        }
        if !features.wakeup_preempt {
            return;
        }
        let (se, pse) = self.matching(se, pse);
        if self.preempts(se, pse) {
            core.resched_curr(cpu);
            if features.last_buddy && is_long && self.is_task(se) {
                self.set_last_buddy(se);
            }
        }
    }

    /// WAKEUP_SYNC, WAKEUP_OVERLAP.
    fn always_preempts(&self, se: u32, pse: u32, flags: WakeFlags) -> bool {
        let features = self.values.features;
        let short = |e: u32| self.habits(e).avg_overlap < self.values.migration_cost;
        (features.wakeup_sync && features.sync_wakeups && flags.sync)
            || (features.wakeup_overlap && short(se) && short(pse))
    }

    /// Whether `curr` is so far ahead of `e`, of the same queue, that `e` should preempt it
    /// (`wakeup_preempt_entity` is 1).
    pub(super) fn preempts(&self, curr: u32, e: u32) -> bool {
        let ahead = self.ent(curr).vruntime.wrapping_sub(self.ent(e).vruntime) as i64;
        ahead > 0 && ahead as u64 > self.wakeup_gran(curr, e)
    }

    /// By how much `e` must be behind `curr` to preempt it (`wakeup_gran`).
    pub(super) fn wakeup_gran(&self, curr: u32, e: u32) -> u64 {
        let features = self.values.features;
        let mut granularity = self.values.wakeup_granularity;
        if features.adaptive_gran && self.rq(self.ent(curr).cfs).curr != NIL {
            granularity = self.adaptive_gran(curr, e);
        }
        let of = if features.asym_gran { e } else { curr };
        let load = self.ent(of).load;
        if load.weight == NICE_0_LOAD { granularity } else { calc_delta_fair(granularity, load) }
    }

    /// Reduces the granularity for a task that soon wakes others: `curr` should run for twice that
    /// time for each task.
    fn adaptive_gran(&self, curr: u32, e: u32) -> Nanos {
        let se = self.ent(curr);
        let ran = se.sum_exec_runtime - se.prev_sum_exec_runtime;
        let nr_running = u64::from(self.rq(self.ent(e).cfs).nr_running);
        let expected = 2 * self.habits(e).avg_wakeup * nr_running;
        expected.saturating_sub(ran).min(self.values.wakeup_granularity)
    }

    fn set_last_buddy(&mut self, e: u32) {
        let mut at = if self.ent(e).is_idle { NIL } else { e };
        while at != NIL {
            let q = self.ent(at).cfs;
            self.cfs[q as usize].last = at;
            at = self.ent(at).parent;
        }
    }

    fn set_next_buddy(&mut self, e: u32) {
        let mut at = if self.ent(e).is_idle { NIL } else { e };
        while at != NIL {
            let q = self.ent(at).cfs;
            self.cfs[q as usize].next = at;
            at = self.ent(at).parent;
        }
    }

    /// Handles sched_yield of the running task of `cpu`.
    pub(super) fn do_yield(&mut self, core: &Core, cpu: CpuId) {
        let Some(curr) = core.rq(cpu).curr else { return };
        let e = self.task_entity(curr);
        let q = self.ent(e).cfs;
        if self.rq(q).nr_running == 1 {
            return;
        }
        if self.rules.is_later {
            self.clear_buddies(e);
        }
        if !self.values.compat_yield && core.task(curr).attr.policy != Policy::Batch {
            self.update_curr(core.now, q);
            return;
        }
        let last = self.rq(q).rightmost(&self.nodes);
        if last == NIL || is_before(self.ent(last).vruntime, self.ent(e).vruntime) {
            return;
        }
        self.ents[e as usize].vruntime = self.ent(last).vruntime.wrapping_add(1);
    }

    /// Records that task entity `e` goes to sleep (2.6.32).
    pub(super) fn note_sleep(&mut self, e: u32) {
        let ran = self.ent(e).sum_exec_runtime;
        let granularity = self.values.wakeup_granularity;
        let habits = self.habits_mut(e);
        if habits.last_wakeup != 0 {
            let overlap = ran - habits.last_wakeup;
            update_avg(&mut habits.avg_overlap, overlap);
            habits.last_wakeup = 0;
        } else {
            update_avg(&mut habits.avg_wakeup, granularity);
        }
    }

    /// Records that task entity `e` has woken another (2.6.32).
    pub(super) fn note_wakeup(&mut self, e: u32) {
        let ran = self.ent(e).sum_exec_runtime;
        let habits = self.habits_mut(e);
        let since = if habits.last_wakeup != 0 { habits.last_wakeup } else { habits.start_runtime };
        update_avg(&mut habits.avg_wakeup, ran - since);
        habits.last_wakeup = ran;
    }
}
