// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFS: slices, placement, pick, preemption at ticks and wake-ups, fork.
//!
//! Source: Linux kernel/sched/fair.c, 6.1.158 (sched_slice, place_entity, pick_next_entity,
//! check_preempt_tick, check_preempt_wakeup, task_fork_fair), with the default features of
//! features.h.

use super::FairClass;
use super::rbtree::{NIL, before};
use super::weights::{LoadWeight, calc_delta, calc_delta_fair};
use crate::boundary::core::Core;
use schedlab_model::{CpuId, Nanos, TaskId};

/// A sleep so long that virtual runtimes may have wrapped: 2^63 ns at nice 0, divided by 1,024.
const LONG_SLEEP_NS: Nanos = 1 << 53;

impl FairClass {
    /// Real time that `e` may run in a row in queue `q`.
    pub(super) fn sched_slice(&self, q: u32, e: u32) -> Nanos {
        let t = &self.tunables;
        let first = self.ent(e);
        let counted = match self.rules.features.alt_period {
            true => self.rq(self.rq(q).cpu).h_nr_queued,
            false => self.rq(q).nr_queued,
        };
        let nr = counted + u32::from(!first.on_rq);
        let mut slice =
            if nr > t.nr_latency { u64::from(nr) * t.min_granularity_ns } else { t.latency_ns };
        let mut at = e;
        while at != NIL {
            let se = self.ent(at);
            let mut load = self.rq(se.cfs).load;
            if !se.on_rq {
                load += se.load.weight;
            }
            slice = calc_delta(slice, se.load.weight, LoadWeight::of_load(load));
            at = se.parent;
        }
        if !self.rules.features.base_slice {
            return slice;
        }
        let rq = self.rq(q);
        let only_idle = rq.nr_queued > 0 && rq.nr_queued == rq.nr_idle;
        let least =
            if first.idle && !only_idle { t.idle_min_granularity_ns } else { t.min_granularity_ns };
        slice.max(least)
    }

    /// Gives `e` a virtual runtime in queue `q`: not before its own, and near the least one.
    pub(super) fn place_entity_cfs(&mut self, now: Nanos, q: u32, e: u32, initial: bool) {
        let mut vruntime = self.rq(q).min_vruntime;
        if initial {
            if self.rules.features.start_debit {
                let vslice = calc_delta_fair(self.sched_slice(q, e), self.ent(e).load);
                vruntime = vruntime.wrapping_add(vslice);
            }
        } else {
            let credit = if self.ent(e).idle {
                self.tunables.min_granularity_ns
            } else {
                self.tunables.latency_ns
            };
            let gentle = self.rules.features.gentle_fair_sleepers;
            vruntime = vruntime.wrapping_sub(if gentle { credit >> 1 } else { credit });
        }
        let se = self.ent_mut(e);
        let slept_long = se.exec_start != 0 && now.saturating_sub(se.exec_start) > LONG_SLEEP_NS;
        if slept_long || before(se.vruntime, vruntime) {
            se.vruntime = vruntime;
        }
    }

    /// The next entity of queue `q`; `curr` is the running one if it may continue.
    pub(super) fn pick_cfs(&self, q: u32, curr: u32) -> u32 {
        let rq = self.rq(q);
        let mut left = rq.waiting.first();
        if left == NIL || (curr != NIL && self.v_before(curr, left)) {
            left = curr;
        }
        let mut e = left;
        if rq.skip != NIL && rq.skip == e {
            let second = if e == curr {
                rq.waiting.first()
            } else {
                let next = rq.waiting.next(&self.nodes, e);
                let curr_first = next == NIL || (curr != NIL && self.v_before(curr, next));
                if curr_first { curr } else { next }
            };
            if second != NIL && self.wakeup_preempt_entity(second, left) < 1 {
                e = second;
            }
        }
        if rq.next != NIL && self.wakeup_preempt_entity(rq.next, left) < 1 {
            rq.next
        } else if rq.last != NIL && self.wakeup_preempt_entity(rq.last, left) < 1 {
            rq.last
        } else {
            e
        }
    }

    /// -1: `a` is not ahead of `b` in virtual time; 0: by no more than the wakeup granularity; 1:
    /// more.
    fn wakeup_preempt_entity(&self, a: u32, b: u32) -> i32 {
        let ahead = self.ent(a).vruntime.wrapping_sub(self.ent(b).vruntime) as i64;
        if ahead <= 0 {
            return -1;
        }
        let granularity = calc_delta_fair(self.tunables.wakeup_granularity_ns, self.ent(b).load);
        i32::from(ahead > granularity as i64)
    }

    /// At a tick: preempts `e` if its slice is over or another entity is far behind it.
    pub(super) fn check_preempt_tick(&mut self, core: &mut Core, q: u32, e: u32) {
        let cpu = CpuId(self.rq(q).cpu);
        let slice = self.sched_slice(q, e);
        let se = self.ent(e);
        let ran = se.sum_exec_runtime - se.prev_sum_exec_runtime;
        if ran > slice {
            core.resched_curr_lazy(cpu);
            self.clear_buddies(e);
            return;
        }
        let left = self.rq(q).waiting.first();
        if ran < self.tunables.min_granularity_ns || left == NIL {
            return;
        }
        let ahead = se.vruntime.wrapping_sub(self.ent(left).vruntime) as i64;
        if ahead >= 0 && ahead as u64 > slice {
            core.resched_curr_lazy(cpu);
        }
    }

    /// `woken` was queued while `running` runs: preempts if it is more than a granularity behind.
    pub(super) fn check_preempt_cfs(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        running: u32,
        woken: u32,
    ) {
        // Compare on the running task's own queue, before the running entities are updated.
        let crowded = self.rq(self.ent(running).cfs).nr_queued >= self.tunables.nr_latency;
        let (mut se, mut pse) = (running, woken);
        let preempt = if self.ent(se).idle && !self.ent(pse).idle {
            true
        } else if !self.ent(pse).normal || !self.rules.features.wakeup_preemption {
            false
        } else {
            (se, pse) = self.matching(se, pse);
            let (curr_idle, woken_idle) = (self.ent(se).idle, self.ent(pse).idle);
            if curr_idle != woken_idle {
                curr_idle
            } else {
                self.update_curr(core, self.ent(se).cfs);
                let preempt = self.wakeup_preempt_entity(se, pse) == 1;
                if preempt {
                    self.set_next_buddy(pse);
                }
                preempt
            }
        };
        if !preempt {
            return;
        }
        core.resched_curr_lazy(cpu);
        let remembers = self.rules.features.last_buddy && crowded;
        if self.ent(se).on_rq && remembers && self.is_task(se) {
            self.set_last_buddy(se);
        }
    }

    fn set_last_buddy(&mut self, mut e: u32) {
        while e != NIL && self.ent(e).on_rq && !self.ent(e).idle {
            let q = self.ent(e).cfs;
            self.rq_mut(q).last = e;
            e = self.ent(e).parent;
        }
    }

    /// Handles a yield of `e`: the next pick skips it, unless that is unfair.
    pub(super) fn set_skip_buddy(&mut self, mut e: u32) {
        while e != NIL {
            let q = self.ent(e).cfs;
            self.rq_mut(q).skip = e;
            e = self.ent(e).parent;
        }
    }

    /// Gives the child `e` a virtual runtime on its parent's CPU: one slice behind.
    pub(super) fn task_fork_cfs(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        e: u32,
        parent: Option<TaskId>,
    ) {
        let q = self.ent(e).cfs;
        self.update_curr(core, q);
        let curr = self.rq(q).curr;
        let from_parent = parent.is_some() && curr != NIL;
        // The launcher runs outside the model, so a parent with the least virtual runtime is
        // assumed.
        let start = if from_parent { self.ent(curr).vruntime } else { self.rq(q).min_vruntime };
        self.ent_mut(e).vruntime = start;
        self.ent_mut(e).v_relative = false;
        self.place_entity_cfs(core.now, q, e, true);
        if self.tunables.child_runs_first && from_parent && self.v_before(curr, e) {
            let child = self.ent(e).vruntime;
            let parent = std::mem::replace(&mut self.ent_mut(curr).vruntime, child);
            self.ent_mut(e).vruntime = parent;
            core.resched_curr(cpu);
        }
        let min_vruntime = self.rq(q).min_vruntime;
        let se = self.ent_mut(e);
        se.vruntime = se.vruntime.wrapping_sub(min_vruntime);
        se.v_relative = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::Rules;
    use super::super::testing;
    use super::*;
    use crate::boundary::class::SchedClass;
    use crate::boundary::flags::EnqueueFlags;

    /// CFS with tasks of these nice values queued on one CPU, scaled for `scaling_cpus`.
    fn queued(scaling_cpus: u64, nice: &[i8]) -> (FairClass, Core) {
        testing::queued(Rules::LINUX_6_1, scaling_cpus, nice)
    }

    #[test]
    fn section_1_6_sched_slice() {
        let cases: [(u64, &[i8], &[u64]); 10] = [
            (1, &[0], &[5_999_998]),
            (1, &[0, 0], &[2_999_998, 2_999_998]),
            (1, &[0, 0, 0], &[1_999_999]),
            (1, &[0; 8], &[750_000]),
            (1, &[0; 10], &[750_000]),
            (1, &[0, 5], &[4_520_971, 1_479_028]),
            (1, &[0, 19], &[5_913_378, 750_000]),
            (1, &[-20, 0], &[5_931_553, 750_000]),
            (4, &[0, 0], &[8_999_995]),
            (8, &[0, 5], &[18_083_885, 5_916_114]),
        ];
        for (cpus, nice, slices) in cases {
            let (class, _) = queued(cpus, nice);
            for (index, slice) in slices.iter().enumerate() {
                assert_eq!(class.sched_slice(0, index as u32), *slice, "{cpus} CPUs, {nice:?}");
            }
        }
        assert_eq!(queued(8, &[0, 0]).0.sched_slice(0, 0), 11_999_994);
        assert_eq!(queued(8, &[0, 0, 0]).0.sched_slice(0, 0), 7_999_998);
        assert_eq!(queued(1, &[0; 9]).0.sched_slice(0, 0), 750_000);
    }

    #[test]
    fn section_1_11_wakeup_granularity() {
        let cases: [(i8, [u64; 3]); 5] = [
            (-20, [11_536, 34_609, 46_146]),
            (-5, [328_099, 984_299, 1_312_399]),
            (0, [1_000_000, 3_000_000, 4_000_000]),
            (5, [3_056_716, 9_170_149, 12_226_865]),
            (19, [68_266_666, 204_799_999, 273_066_666]),
        ];
        for (nice, expected) in cases {
            for (cpus, expected) in [1, 4, 8].into_iter().zip(expected) {
                let (mut class, _) = queued(cpus, &[0, nice]);
                class.ent_mut(0).vruntime = expected;
                class.ent_mut(1).vruntime = 0;
                assert_eq!(class.wakeup_preempt_entity(0, 1), 0);
                class.ent_mut(0).vruntime = expected + 1;
                assert_eq!(class.wakeup_preempt_entity(0, 1), 1);
            }
        }
    }

    #[test]
    fn section_1_19_rr_interval() {
        let (class, mut core) = queued(1, &[0, 0]);
        assert_eq!(class.get_rr_interval(&core, TaskId(0)), 0);
        core.tick_nsec = 1_000_000;
        assert_eq!(class.get_rr_interval(&core, TaskId(0)), 2_000_000);
        let (class, mut core) = queued(8, &[0]);
        assert_eq!(class.sched_slice(0, 0), 23_999_994);
        assert_eq!(class.get_rr_interval(&core, TaskId(0)), 20_000_000);
        core.tick_nsec = 1_000_000;
        assert_eq!(class.get_rr_interval(&core, TaskId(0)), 23_000_000);
    }

    #[test]
    fn section_1_13_child_starts_one_slice_behind() {
        let (mut class, mut core) = queued(1, &[0, 0]);
        class.dequeue_task(
            &mut core,
            CpuId(0),
            TaskId(1),
            crate::boundary::flags::DequeueFlags::SLEEP,
        );
        class.set_next_task(&mut core, CpuId(0), TaskId(0), true);
        core.rqs[0].curr = Some(TaskId(0));
        core.now = 10_000_000;
        class.task_fork(&mut core, CpuId(0), TaskId(1), Some(TaskId(0)));
        class.enqueue_task(&mut core, CpuId(0), TaskId(1), EnqueueFlags::INITIAL);
        let parent = class.ent(0).vruntime;
        assert_eq!(class.ent(1).vruntime, parent + 2_999_998);
        assert!(!class.ent(1).v_relative);
        let wake = super::super::Wake { is_fork: true, is_sync: false };
        class.check_preempt(&mut core, CpuId(0), TaskId(1), TaskId(0), wake);
        assert!(!core.rqs[0].need_resched);
    }
}
