// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks of the root group under EEVDF, which join and leave one queue with no group above it.
//!
//! The steps equal those of [`super::queue`] for one level, but look up queue and entity once for
//! several steps: sleeping tasks use these paths at nearly every switch.
//!
//! Source: Linux kernel/sched/fair.c (enqueue_task_fair, dequeue_entities), 6.6 to 7.1.

use super::FairClass;
use super::load::Change;
use super::rbtree::NIL;
use crate::boundary::core::Core;
use crate::boundary::flags::EnqueueFlags;
use schedlab_model::CpuId;

impl FairClass {
    /// Whether `e` is a task of the root group, no group has a limit, and nothing is odd.
    #[inline(always)]
    pub(super) fn is_at_root(&self, e: u32) -> bool {
        self.is_plain && self.is_task(e) && self.ent(e).parent == NIL
    }

    /// Whether `e` is on its queue; or runs there without being on it, while its attributes change.
    #[inline(always)]
    pub(super) fn is_queued_or_runs(&self, e: u32) -> bool {
        let se = self.ent(e);
        se.on_rq || self.rq(se.cfs).curr == e
    }

    /// [`FairClass::enqueue_task_fair`] of `e`, a task at the root that is not queued and does not
    /// run.
    #[inline(always)]
    pub(super) fn enqueue_at_root(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        e: u32,
        flags: EnqueueFlags,
    ) {
        let q = cpu.0;
        self.update_curr(core, q);
        self.update_load_avg_in_place(core.now, q, e, Change::Attach);
        self.place_entity_in_place(q, e, flags.initial);
        let (rq, se) = (&mut self.cfs[q as usize], &mut self.ents[e as usize]);
        rq.insert_waiting(self.rules.algorithm, se, e, &mut self.nodes);
        se.on_rq = true;
        rq.count_in(se);
        rq.h_nr_queued += 1;
        rq.h_nr_runnable += u32::from(flags.wakeup || !se.delayed);
        rq.h_nr_idle += u32::from(se.idle);
        self.list_add_head(e);
        core.add_nr_running(cpu, 1);
    }

    /// [`FairClass::complete_delayed`] of `e`, a task at the root.
    #[inline(always)]
    pub(super) fn complete_at_root(&mut self, core: &mut Core, cpu: CpuId, e: u32) {
        let q = cpu.0;
        self.update_curr(core, q);
        self.clear_buddies_of(q, e);
        self.update_load_avg_in_place(core.now, q, e, Change::None);
        self.leave_root(core, cpu, e);
        core.dequeue_delayed(self.entity_task(e));
    }

    /// Removes `e`, a task at the root, from its queue because it sleeps, or has been asleep there:
    /// the second half of its dequeue.
    #[inline(always)]
    pub(super) fn leave_root(&mut self, core: &mut Core, cpu: CpuId, e: u32) {
        let q = cpu.0;
        self.update_entity_lag_in_place(core, q, e);
        let (rq, se) = (&mut self.cfs[q as usize], &mut self.ents[e as usize]);
        let was_delayed = std::mem::take(&mut se.delayed);
        if was_delayed && self.rules.features.delay_zero {
            se.vlag = se.vlag.min(0);
        }
        if rq.curr != e {
            rq.remove_waiting(self.rules.algorithm, se, e, &mut self.nodes);
        }
        se.on_rq = false;
        rq.count_out(se);
        rq.h_nr_queued -= 1;
        // A task with a delayed dequeue no longer counted.
        rq.h_nr_runnable -= u32::from(!was_delayed);
        rq.h_nr_idle -= u32::from(se.idle);
        self.update_min_vruntime(q);
        self.list_remove(e);
        self.touch(q);
        core.sub_nr_running(cpu, 1);
    }
}
