// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual time: charging the running entity, periods and slices, placement of an entity, fork.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched_fair.c (`update_curr`, `__sched_period`,
//! `sched_slice`, `sched_vslice`, `place_entity`, `task_new_fair`, `task_fork_fair`,
//! `check_preempt_tick`).

use super::Fair;
use super::entity::{is_before, later_of};
use super::weights::{NICE_0_LOAD, calc_delta_fair, calc_delta_mine, of_sum};
use crate::boundary::core::Core;
use crate::fair::rbtree::NIL;
use schedlab_model::{CpuId, Nanos, Policy, TaskId};

impl Fair {
    /// Charges the running entity of queue `q` for the time since it was last charged.
    #[inline]
    pub(super) fn update_curr(&mut self, now: Nanos, q: u32) {
        let curr = self.rq(q).curr;
        if curr == NIL {
            return;
        }
        let se = &mut self.ents[curr as usize];
        let delta = now - se.exec_start;
        if self.rules.is_later && delta == 0 {
            return;
        }
        se.sum_exec_runtime += delta;
        se.vruntime = se.vruntime.wrapping_add(calc_delta_fair(delta, se.load));
        se.exec_start = now;
        self.update_min_vruntime(q);
    }

    /// Updates the least virtual time of a queue, which never falls.
    #[inline]
    pub(super) fn update_min_vruntime(&mut self, q: u32) {
        let rq = &self.cfs[q as usize];
        let (curr, first) = (rq.curr, rq.tree.leftmost);
        let least = match (curr, first) {
            (NIL, NIL) => return,
            (NIL, first) => self.ent(first).vruntime,
            (curr, NIL) => self.ent(curr).vruntime,
            (curr, first) => {
                let (a, b) = (self.ent(curr).vruntime, self.ent(first).vruntime);
                if is_before(b, a) { b } else { a }
            }
        };
        let rq = &mut self.cfs[q as usize];
        rq.min_vruntime = later_of(rq.min_vruntime, least);
    }

    /// Time in which `nr_running` entities run once each.
    pub(super) fn period(&self, nr_running: u64) -> Nanos {
        let values = &self.values;
        if nr_running <= values.nr_latency {
            values.latency
        } else if self.rules.is_later {
            values.min_granularity * nr_running
        } else {
            values.latency * nr_running / values.nr_latency
        }
    }

    /// How long `e`, which is or will be in queue `q`, may run without interruption. In 2.6.32 this
    /// includes a group's share of its CPU.
    pub(super) fn slice(&self, q: u32, e: u32) -> Nanos {
        let rq = self.rq(q);
        if !self.rules.is_later {
            // At a change of weight the queue may be empty.
            let weights = rq.load.max(1);
            let period = self.period(u64::from(rq.nr_running));
            return period.saturating_mul(self.ent(e).load.weight) / weights;
        }
        let adds = !self.ent(e).on_rq;
        let mut slice = self.period(u64::from(rq.nr_running) + u64::from(adds));
        let mut at = e;
        while at != NIL {
            let se = self.ent(at);
            let mut load = self.rq(se.cfs).load;
            if !se.on_rq {
                load += se.load.weight;
            }
            let of = of_sum(load, &self.rules);
            slice = calc_delta_mine(slice, se.load.weight, of);
            at = se.parent;
        }
        slice
    }

    /// The slice of `e`, which is about to be queued for the first time, in virtual time.
    fn vslice_of_new(&self, q: u32, e: u32) -> u64 {
        if self.rules.is_later {
            return calc_delta_fair(self.slice(q, e), self.ent(e).load);
        }
        let rq = self.rq(q);
        let weights = rq.load + self.ent(e).load.weight;
        self.period(u64::from(rq.nr_running) + 1) * NICE_0_LOAD / weights
    }

    /// Places `e` in queue `q`, which it will join: a new one (`initial`), or one after a sleep.
    pub(super) fn place_entity(&mut self, q: u32, e: u32, initial: bool) {
        let features = self.values.features;
        let mut vruntime = self.rq(q).min_vruntime;
        if features.tree_avg || features.approx_avg {
            vruntime = self.average_place(q);
        }
        if initial && features.start_debit {
            vruntime = vruntime.wrapping_add(self.vslice_of_new(q, e));
        }
        let own = self.ent(e).vruntime;
        if !initial && features.fair_sleepers {
            vruntime = vruntime.wrapping_sub(self.sleeper_credit(e));
        }
        // Placement never moves an entity backwards; only a new task of 2.6.24 has no virtual time
        // of its own.
        if !initial || self.rules.is_later {
            vruntime = later_of(own, vruntime);
        }
        self.ents[e as usize].vruntime = vruntime;
    }

    /// The start for TREE_AVG and APPROX_AVG.
    fn average_place(&self, q: u32) -> u64 {
        let rq = self.rq(q);
        if self.values.features.tree_avg {
            return match rq.rightmost(&self.nodes) {
                NIL => rq.min_vruntime,
                // The kernel's sum wraps; the mean of two near times does not.
                last => {
                    let ahead = self.ent(last).vruntime.wrapping_sub(rq.min_vruntime) as i64;
                    rq.min_vruntime.wrapping_add((ahead >> 1) as u64)
                }
            };
        }
        if rq.nr_running == 0 {
            return rq.min_vruntime;
        }
        let vslice = self.period(u64::from(rq.nr_running)) * NICE_0_LOAD / rq.load;
        rq.min_vruntime.wrapping_add(vslice / 2)
    }

    /// How far before the others a sleeper is placed.
    fn sleeper_credit(&self, e: u32) -> u64 {
        let (features, se) = (self.values.features, self.ent(e));
        if !self.rules.is_later {
            return if self.is_task(e) { self.values.latency } else { 0 };
        }
        let mut credit = self.values.latency;
        if features.normalized_sleeper && !(self.is_task(e) && se.is_idle) {
            credit = calc_delta_fair(credit, se.load);
        }
        if features.gentle_fair_sleepers { credit >> 1 } else { credit }
    }

    /// First enqueue under 2.6.24: places `task` on the CPU where it starts. It takes the place of
    /// its parent, which runs after it.
    pub(super) fn place_new(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let e = self.task_entity(task);
        let q = self.ent(e).cfs;
        self.update_curr(core.now, q);
        self.place_entity(q, e, true);
        let flags = core.wake_flags;
        if flags.waker.is_some() {
            if flags.this_cpu == cpu {
                self.child_first(q, e);
            }
            core.resched_curr(cpu);
        }
    }

    /// Fork under 2.6.32: places `task` on its parent's CPU, relative to that queue.
    pub(super) fn task_fork_later(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let e = self.task_entity(task);
        let q = self.queue_of(core, task, cpu);
        self.enter_group(e, q);
        self.update_curr(core.now, q);
        let curr = self.rq(q).curr;
        let from = if curr == NIL { self.rq(q).min_vruntime } else { self.ent(curr).vruntime };
        self.ents[e as usize].vruntime = from;
        self.place_entity(q, e, true);
        if self.child_first(q, e) {
            core.resched_curr(cpu);
        }
        let min_vruntime = self.rq(q).min_vruntime;
        let se = &mut self.ents[e as usize];
        se.vruntime = se.vruntime.wrapping_sub(min_vruntime);
        se.is_relative = true;
    }

    /// If the running entity of its queue is before child `e`, the two exchange their places.
    fn child_first(&mut self, q: u32, e: u32) -> bool {
        let curr = self.rq(q).curr;
        if !self.values.child_runs_first || curr == NIL {
            return false;
        }
        let (parent, child) = (self.ent(curr).vruntime, self.ent(e).vruntime);
        let swaps = is_before(parent, child);
        if swaps {
            self.ents[curr as usize].vruntime = child;
            self.ents[e as usize].vruntime = parent;
        }
        swaps
    }

    /// Handles the tick of running `e` in queue `q`.
    pub(super) fn entity_tick(&mut self, core: &mut Core, cpu: CpuId, q: u32, e: u32) {
        self.update_curr(core.now, q);
        if self.rq(q).nr_running <= 1 && self.values.features.wakeup_preempt {
            return;
        }
        let ideal = self.slice(q, e);
        let se = self.ent(e);
        let ran = se.sum_exec_runtime - se.prev_sum_exec_runtime;
        if ran > ideal {
            core.resched_curr(cpu);
            if self.rules.is_later {
                self.clear_buddies(e);
            }
            return;
        }
        let looks_at_first = self.rules.is_later
            && self.values.features.wakeup_preempt
            && ran >= self.values.min_granularity;
        let first = self.rq(q).tree.leftmost;
        if looks_at_first && first != NIL {
            let ahead = self.ent(e).vruntime.wrapping_sub(self.ent(first).vruntime) as i64;
            if ahead >= 0 && ahead as u64 > ideal {
                core.resched_curr(cpu);
            }
        }
    }

    /// Number of ticks of running `curr`, from the next one on, that only charge it: those within
    /// its slice. Levels of groups, and the other test of 2.6.32, are checked tick by tick.
    pub(super) fn quiet_ticks_of(&self, core: &Core, curr: TaskId) -> u64 {
        if Self::is_rt(core, curr) {
            return if core.task(curr).attr.policy == Policy::Fifo { u64::MAX } else { 0 };
        }
        let e = self.task_entity(curr);
        let se = self.ent(e);
        if self.rules.is_later || se.parent != NIL {
            return 0;
        }
        if self.rq(se.cfs).nr_running <= 1 && self.values.features.wakeup_preempt {
            return u64::MAX;
        }
        let ran = se.sum_exec_runtime - se.prev_sum_exec_runtime + (core.now - se.exec_start);
        match self.slice(se.cfs, e).checked_sub(ran) {
            Some(left) => left / core.tick_nsec + 1,
            None => 0,
        }
    }

    /// Passes `nr` such ticks. Each is charged separately, because each is rounded.
    pub(super) fn pass_ticks_of(&mut self, core: &Core, curr: TaskId, nr: u64) {
        let (e, others) = (self.task_entity(curr), nr - 1);
        let se = &mut self.ents[e as usize];
        let first = core.now - others * core.tick_nsec - se.exec_start;
        let virt =
            calc_delta_fair(first, se.load) + others * calc_delta_fair(core.tick_nsec, se.load);
        se.sum_exec_runtime += core.now - se.exec_start;
        se.vruntime = se.vruntime.wrapping_add(virt);
        se.exec_start = core.now;
        let q = se.cfs;
        self.update_min_vruntime(q);
    }
}
