// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enqueue, dequeue, pick, put and set through the levels of groups, common to CFS and EEVDF.
//!
//! Source: Linux kernel/sched/fair.c (enqueue_task_fair, enqueue_entity, dequeue_entities,
//! dequeue_entity, pick_next_task_fair, put_prev_entity, set_next_entity, update_curr), 6.1 and
//! 6.12.

use super::FairClass;
use super::average::Sums;
use super::entity::{CfsRq, Entity};
use super::load::Change;
use super::rbtree::{NIL, before};
use super::rules::{Algorithm, FairBug, Protection};
use super::weights::calc_delta_fair;
use crate::boundary::core::Core;
use crate::boundary::flags::{DequeueFlags, EnqueueFlags};
use schedlab_model::{CpuId, TaskId};

/// Why an entity is dequeued: the interface's reasons and those of the class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dequeue {
    sleep: bool,
    save: bool,
    moved: bool,
    special: bool,
    /// Whether it completes a delayed dequeue (DEQUEUE_DELAYED).
    delayed: bool,
    /// Whether bandwidth control takes the entity off (DEQUEUE_THROTTLE), so that the dequeue is
    /// not delayed.
    throttle: bool,
}

impl Dequeue {
    /// A dequeue by bandwidth control; `delayed`: the dequeue of the entity was delayed.
    pub(super) const fn throttle(delayed: bool) -> Self {
        Self { sleep: true, save: false, moved: false, special: true, delayed, throttle: true }
    }
}

impl FairClass {
    /// Accounts the running entity of queue `q` up to now.
    #[inline]
    pub(super) fn update_curr(&mut self, core: &mut Core, q: u32) {
        let curr = self.cfs[q as usize].curr;
        // No entity has the number NIL.
        if let Some(se) = self.ents.get(curr as usize)
            && se.exec_start < core.now
        {
            self.account_curr(core, q, curr);
        }
    }

    /// Accounts what runs on queue `q` at a tick. Its turn has begun with a clock that was read
    /// before the switch, so the kernel charges it more than since then.
    pub(super) fn update_curr_ahead(&mut self, core: &mut Core, q: u32) {
        let now = core.now;
        core.now += core.clock_lead_ns;
        self.update_curr(core, q);
        core.now = now;
    }

    /// Accounts `curr`, which runs on queue `q` and has run since its last accounting.
    #[inline(never)]
    fn account_curr(&mut self, core: &mut Core, q: u32, curr: u32) {
        if self.bandwidth.is_some() {
            self.account_limited(core, q, curr);
        } else {
            self.account_time(core, q, curr);
        }
    }

    /// As `account_curr`, where groups are limited.
    #[cold]
    fn account_limited(&mut self, core: &mut Core, q: u32, curr: u32) {
        let delta = core.now - self.ent(curr).exec_start;
        self.charge_runtime(core, q, delta);
        self.account_time(core, q, curr);
    }

    /// Accounts `curr` of queue `q`; returns whether its slice has ended.
    #[inline(always)]
    fn account_time(&mut self, core: &mut Core, q: u32, curr: u32) -> bool {
        let rq = &mut self.cfs[q as usize];
        let se = &mut self.ents[curr as usize];
        let delta = core.now - se.exec_start;
        se.exec_start = core.now;
        se.sum_exec_runtime += delta;
        se.vruntime = se.vruntime.wrapping_add(calc_delta_fair(delta, se.load));
        let renewed = self.rules.is_eevdf() && se.renew_deadline(self.tunables.base_slice_ns);
        let queued = se.on_rq.then_some(se.vruntime);
        rq.raise_min_vruntime(self.rules.algorithm, queued, &self.nodes);
        if rq.nr_queued == 1 {
            if self.rules.has(FairBug::LoneRescheduled) {
                self.end_lone_slice(core, q, renewed);
            }
            return false;
        }
        let ends = Self::ends_slice(self.rules.protection, rq, se, renewed);
        if ends {
            core.resched_curr_lazy(CpuId(rq.cpu));
            self.clear_buddies(curr);
        }
        ends
    }

    /// Whether running `se` of `rq` should give way, now that it has been charged; `renewed`: its
    /// deadline has moved.
    #[inline(always)]
    pub(super) fn ends_slice(rule: Protection, rq: &CfsRq, se: &Entity, renewed: bool) -> bool {
        renewed
            || match rule {
                Protection::WhileEligible => false,
                rule if se.is_protected(rule) => false,
                Protection::ShortestSlice => true,
                Protection::RescheduleIneligible => {
                    let running = se.on_rq.then_some(se);
                    !Sums::of(rq, running).is_eligible(se.vruntime)
                }
            }
    }

    /// Moves `min_vruntime` up to the least virtual runtime of the queue, never back.
    #[inline(always)]
    pub(super) fn update_min_vruntime(&mut self, q: u32) {
        let rq = &mut self.cfs[q as usize];
        let queued = Self::running(&self.ents, rq).map(|se| se.vruntime);
        rq.raise_min_vruntime(self.rules.algorithm, queued, &self.nodes);
    }

    /// Inserts an entity into the tree (__enqueue_entity).
    pub(super) fn tree_insert(&mut self, q: u32, e: u32) {
        let (rq, se) = (&mut self.cfs[q as usize], &self.ents[e as usize]);
        rq.insert_waiting(self.rules.algorithm, se, e, &mut self.nodes);
    }

    /// Removes an entity from the tree (__dequeue_entity).
    pub(super) fn tree_remove(&mut self, q: u32, e: u32) {
        let (rq, se) = (&mut self.cfs[q as usize], &self.ents[e as usize]);
        rq.remove_waiting(self.rules.algorithm, se, e, &mut self.nodes);
    }

    #[inline(always)]
    fn account_enqueue(&mut self, q: u32, e: u32) {
        self.cfs[q as usize].count_in(&self.ents[e as usize]);
        if self.is_task(e) {
            self.list_add_head(e);
        }
    }

    #[inline(always)]
    fn account_dequeue(&mut self, q: u32, e: u32) {
        self.cfs[q as usize].count_out(&self.ents[e as usize]);
        if self.is_task(e) {
            self.list_remove(e);
        }
    }

    /// Adds `queued`, `runnable` and `idle` tasks to the counts of queue `q`; the numbers may be
    /// negative. A change of `queued` goes with a change of the CPU's number of tasks, which
    /// records it. A caller that changes only the others must call [`FairClass::touch`].
    pub(super) fn count(&mut self, q: u32, queued: i32, runnable: i32, idle: i32) {
        let rq = self.rq_mut(q);
        rq.h_nr_queued = rq.h_nr_queued.wrapping_add_signed(queued);
        rq.h_nr_runnable = rq.h_nr_runnable.wrapping_add_signed(runnable);
        rq.h_nr_idle = rq.h_nr_idle.wrapping_add_signed(idle);
    }

    #[inline(always)]
    fn enqueue_entity(&mut self, core: &mut Core, q: u32, e: u32, flags: EnqueueFlags) {
        let is_curr = self.rq(q).curr == e;
        let cfs = self.rules.algorithm == Algorithm::Cfs;
        if is_curr && !cfs {
            self.place_entity_eevdf(q, e, flags.initial);
        }
        self.update_curr(core, q);
        if cfs && self.ent(e).v_relative {
            let min_vruntime = self.rq(q).min_vruntime;
            let se = self.ent_mut(e);
            se.vruntime = se.vruntime.wrapping_add(min_vruntime);
            se.v_relative = false;
        }
        self.update_load_avg_in_place(core.now, q, e, Change::Attach);
        self.update_group_weight(core, e);
        if !is_curr && !cfs {
            self.place_entity_eevdf(q, e, flags.initial);
        }
        self.account_enqueue(q, e);
        if cfs && flags.wakeup {
            if self.is_odd {
                self.place_cfs_odd(core.now, q, e);
            } else {
                self.place_entity_cfs(core.now, q, e, false);
            }
        }
        if !is_curr {
            self.tree_insert(q, e);
        }
        self.ent_mut(e).on_rq = true;
        if self.bandwidth.is_some() && self.rq(q).nr_queued == 1 {
            self.check_enqueue_throttle(core, q);
        }
    }

    /// The first half of a dequeue: accounts the running entity. Returns whether the dequeue is
    /// delayed and thus finished for now.
    #[inline(always)]
    fn begin_dequeue(&mut self, core: &mut Core, q: u32, e: u32, flags: Dequeue) -> bool {
        self.update_curr(core, q);
        self.clear_buddies_of(q, e);
        let exempt = flags.special || flags.throttle || flags.delayed;
        let delay = self.rules.delay_dequeue && flags.sleep && !exempt;
        self.update_load_avg_in_place(core.now, q, e, Change::None);
        if !delay || self.entity_eligible(q, e) {
            return false;
        }
        if self.rules.delayed_lag_only_rises {
            self.update_entity_lag(core, q, e);
        }
        self.set_delayed(e);
        true
    }

    /// The second half of a dequeue: removes `e` from its queue.
    #[inline(always)]
    fn finish_dequeue(&mut self, core: &mut Core, q: u32, e: u32, flags: Dequeue) {
        self.update_runnable(e);
        if self.rules.is_eevdf() {
            if self.is_odd {
                self.update_lag_odd(core, q, e);
            } else {
                self.update_entity_lag(core, q, e);
            }
            if self.rules.place_rel_deadline && !flags.sleep {
                let se = self.ent_mut(e);
                se.deadline = se.deadline.wrapping_sub(se.vruntime);
                se.rel_deadline = true;
            }
        }
        if self.rq(q).curr != e {
            self.tree_remove(q, e);
        }
        self.ent_mut(e).on_rq = false;
        self.account_dequeue(q, e);
        if self.rules.algorithm == Algorithm::Cfs && !flags.sleep {
            let min_vruntime = self.rq(q).min_vruntime;
            let se = self.ent_mut(e);
            se.vruntime = se.vruntime.wrapping_sub(min_vruntime);
            se.v_relative = true;
        }
        if self.bandwidth.is_some() && self.rq(q).nr_queued == 0 {
            self.return_runtime(core, q);
        }
        self.update_cfs_group(core, e);
        if !flags.save || flags.moved {
            self.update_min_vruntime(q);
        }
        if flags.delayed {
            self.clear_delayed(e);
            if self.rules.features.delay_zero {
                let se = self.ent_mut(e);
                se.vlag = se.vlag.min(0);
            }
        }
    }

    /// [`Self::enqueue_entity`] for bandwidth control.
    #[inline(never)]
    pub(super) fn put_back_entity(&mut self, core: &mut Core, q: u32, e: u32) {
        self.enqueue_entity(core, q, e, EnqueueFlags::WAKEUP);
    }

    /// Dequeues one entity for bandwidth control, which never delays it.
    #[inline(never)]
    pub(super) fn take_entity_off(&mut self, core: &mut Core, q: u32, e: u32, delayed: bool) {
        let flags = Dequeue::throttle(delayed);
        self.begin_dequeue(core, q, e, flags);
        self.finish_dequeue(core, q, e, flags);
    }

    #[inline(always)]
    pub(super) fn enqueue_task_fair(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: EnqueueFlags,
    ) {
        let e = self.task_entity(task);
        if flags.delayed {
            self.util_est_enqueue(cpu, e);
            self.requeue_delayed_entity(core, e);
            return;
        }
        self.prepare_enqueue(core, cpu, task, flags);
        let visits = flags.wakeup && core.throttle_ns > 0;
        let q = self.ent(e).cfs;
        if self.bandwidth.is_some() && !visits && self.goes_to_limbo(core, task, q) {
            self.add_to_limbo(e);
            return;
        }
        if flags.wakeup || !self.ent(e).delayed {
            self.util_est_enqueue(cpu, e);
        }
        if self.rules.is_eevdf() && self.is_at_root(e) && !self.is_queued_or_runs(e) {
            self.enqueue_at_root(core, cpu, e, flags);
        } else {
            self.enqueue_upwards(core, cpu, e, flags);
        }
    }

    /// Enqueues task entity `e` and those above it that were empty.
    #[inline(never)]
    fn enqueue_upwards(&mut self, core: &mut Core, cpu: CpuId, first: u32, flags: EnqueueFlags) {
        let mut e = first;
        let mut idle = i32::from(self.ent(e).idle);
        let runnable = i32::from(flags.wakeup || !self.ent(e).delayed);
        let mut flags = flags;
        let mut slice = 0;
        while e != NIL {
            if self.ent(e).on_rq {
                if self.ent(e).delayed {
                    self.requeue_delayed_entity(core, e);
                }
                break;
            }
            let q = self.ent(e).cfs;
            if slice != 0 && self.rules.custom_slice {
                let se = self.ent_mut(e);
                se.slice = slice;
                se.custom_slice = true;
            }
            self.enqueue_entity(core, q, e, flags);
            self.count(q, 1, runnable, idle);
            if self.ends_at(q) {
                return;
            }
            idle = idle.min(1);
            flags = EnqueueFlags::WAKEUP;
            e = self.ent(e).parent;
            if e != NIL {
                slice = self.min_slice(q);
            }
        }
        if e == NIL || self.update_levels_above(core, e, slice, (1, runnable, idle)) {
            core.add_nr_running(cpu, 1);
        }
    }

    /// Prepares the enqueue of the first level: queue, attributes, utilisation.
    #[inline(always)]
    fn prepare_enqueue(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        let e = self.task_entity(task);
        if flags.restore {
            let attr = *core.task(task).attr;
            // Within the class it has them already.
            self.take_attr(e, &attr);
        }
        let q = self.queue_of(core, task, cpu);
        if self.ent(e).cfs != q {
            self.change_queue(core, e, q);
        }
        if flags.initial {
            self.init_util_avg(e);
        }
        if flags.wakeup {
            self.note_wakeup(core.now, cpu);
        }
    }

    /// Moves task entity `e`, which is on no queue, to queue `q`.
    #[inline(never)]
    fn change_queue(&mut self, core: &mut Core, e: u32, q: u32) {
        let min_vruntime = self.rq(self.ent(e).cfs).min_vruntime;
        let se = self.ent_mut(e);
        if !se.v_relative {
            se.vruntime = se.vruntime.wrapping_sub(min_vruntime);
            se.v_relative = true;
        }
        self.move_entity_to(core, e, q);
    }

    /// Updates the levels of `e` and above, whose entities stay queued: counts, load, shares,
    /// slices. Returns whether it reached the root: counts end at a throttled queue.
    fn update_levels_above(
        &mut self,
        core: &mut Core,
        mut e: u32,
        mut slice: u64,
        (queued, runnable, idle): (i32, i32, i32),
    ) -> bool {
        while e != NIL {
            let q = self.ent(e).cfs;
            self.update_load_avg(core.now, q, e, Change::None);
            self.update_group_weight(core, e);
            if self.rules.custom_slice {
                self.ent_mut(e).slice = slice;
                let carries = !self.rules.has(FairBug::SliceNotCarriedUp);
                if self.rq(q).curr != e && self.ent(e).on_rq && carries {
                    self.cfs[q as usize].waiting.set_slice(&mut self.nodes, e, slice);
                }
                slice = self.min_slice(q);
            }
            self.count(q, queued, runnable, idle);
            if self.ends_at(q) {
                return false;
            }
            e = self.ent(e).parent;
        }
        true
    }

    pub(super) fn dequeue_task_fair(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        let DequeueFlags { sleep, save, moved, special } = flags;
        let e = self.task_entity(task);
        if self.ent(e).limbo {
            self.leave_limbo(e);
            return true;
        }
        if sleep || !self.ent(e).delayed {
            self.util_est_dequeue(cpu, e, sleep);
        }
        // A queued sleeper with a delayed dequeue leaves for good (change of class or affinity,
        // exit): complete its dequeue.
        let delayed = sleep && self.ent(e).delayed;
        let flags = Dequeue { sleep, save, moved, special, delayed, throttle: false };
        self.dequeue_entities(core, cpu, e, flags)
    }

    /// Dequeues `e` and those entities above it that become empty. Returns false if `e` is a task
    /// whose dequeue is delayed.
    #[inline(never)]
    pub(super) fn dequeue_entities(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        first: u32,
        flags: Dequeue,
    ) -> bool {
        let is_task = self.is_task(first);
        if is_task && self.begin_dequeue(core, self.ent(first).cfs, first, flags) {
            return false;
        }
        if flags.sleep && !flags.save && self.rules.is_eevdf() && self.is_at_root(first) {
            self.leave_root(core, cpu, first);
        } else {
            self.dequeue_upwards(core, cpu, first, flags, is_task);
        }
        true
    }

    /// Dequeues `first`, whose own dequeue may have `begun`, and those entities above it that
    /// become empty.
    #[inline(never)]
    fn dequeue_upwards(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        first: u32,
        mut flags: Dequeue,
        mut begun: bool,
    ) {
        let task_sleep = flags.sleep;
        let (mut queued, mut runnable, mut idle) = (0, 0, 0);
        if self.is_task(first) {
            let se = self.ent(first);
            (queued, idle) = (-1, -i32::from(se.idle));
            runnable = -i32::from(flags.sleep || flags.delayed || !se.delayed);
        }
        let forgets_slice = self.rules.has(FairBug::SliceOfEmptyGroup);
        let mut slice = 0;
        if forgets_slice && !self.is_task(first) {
            slice = self.min_slice(self.ent(first).my_q);
        }
        let mut e = first;
        while e != NIL {
            let q = self.ent(e).cfs;
            if !begun && self.begin_dequeue(core, q, e, flags) {
                if !forgets_slice {
                    slice = self.min_slice(q);
                }
                break;
            }
            begun = false;
            self.finish_dequeue(core, q, e, flags);
            self.count(q, queued, runnable, idle);
            if self.ends_at(q) {
                return;
            }
            e = self.ent(e).parent;
            if e == NIL {
                break;
            }
            if self.rq(q).load != 0 {
                slice = self.min_slice(q);
                if task_sleep && !self.is_hierarchy_throttled(q) {
                    self.set_next_buddy(e);
                }
                break;
            }
            flags.sleep = true;
            flags.delayed = false;
            flags.special = false;
        }
        let at_root =
            e == NIL || self.update_levels_above(core, e, slice, (queued, runnable, idle));
        if at_root && queued != 0 {
            core.sub_nr_running(cpu, 1);
        }
    }

    /// Ends the delayed dequeue of `e`, which the pick has chosen (EEVDF 6.12).
    #[inline(never)]
    pub(super) fn complete_delayed(&mut self, core: &mut Core, cpu: CpuId, e: u32) {
        core.work.delayed_dequeued += 1;
        if self.is_at_root(e) {
            self.complete_at_root(core, cpu, e);
            return;
        }
        let flags = Dequeue { special: false, throttle: false, ..Dequeue::throttle(true) };
        self.dequeue_upwards(core, cpu, e, flags, false);
        if self.is_task(e) {
            core.dequeue_delayed(self.entity_task(e));
        }
    }

    /// Marks the dequeue of `e` as delayed.
    #[inline(always)]
    pub(super) fn set_delayed(&mut self, e: u32) {
        self.ent_mut(e).delayed = true;
        if self.is_task(e) || self.rules.has(FairBug::DelayedGroupCounted) {
            self.count_runnable_upwards(e, -1);
        }
    }

    /// Clears the mark of a delayed dequeue: `e` runs again, or its dequeue is completed.
    #[inline(always)]
    pub(super) fn clear_delayed(&mut self, e: u32) {
        self.ent_mut(e).delayed = false;
        if self.is_task(e) || self.rules.has(FairBug::DelayedGroupCounted) {
            self.count_runnable_upwards(e, 1);
        }
    }

    #[inline(always)]
    fn count_runnable_upwards(&mut self, mut e: u32, runnable: i32) {
        if self.tracks_touched {
            self.touch(self.rq(self.ent(e).cfs).cpu);
        }
        while let Some(se) = self.ents.get(e as usize) {
            let rq = &mut self.cfs[se.cfs as usize];
            rq.h_nr_runnable = rq.h_nr_runnable.wrapping_add_signed(runnable);
            if self.bandwidth.is_some() && self.ends_at(se.cfs) {
                return;
            }
            e = se.parent;
        }
    }

    pub(super) fn pick_task_fair(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        if self.bandwidth.is_some() {
            self.begin_pick(core, cpu);
        }
        let mut picked = None;
        while picked.is_none() && self.rq(cpu.0).nr_queued != 0 {
            picked = self.pick_from_root(core, cpu);
        }
        if self.bandwidth.is_some() {
            self.end_pick(cpu);
        }
        picked
    }

    /// Walks down from the root queue of `cpu` to the task to run. `None`: the entity found may not
    /// run now and has left its queue, so the pick must restart.
    #[inline(always)]
    fn pick_from_root(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        let mut q = cpu.0;
        loop {
            let mut curr = self.rq(q).curr;
            if curr != NIL {
                if self.ent(curr).on_rq {
                    self.update_curr(core, q);
                } else {
                    curr = NIL;
                }
            }
            if self.bandwidth.is_some() && self.check_runtime(core, q) && self.ends_at(q) {
                return None;
            }
            let e = match self.rules.algorithm {
                Algorithm::Cfs => self.pick_cfs(q, curr),
                _ => self.pick_next_eevdf(q),
            };
            assert!(e != NIL, "a queue of {} entities names none", self.rq(q).nr_queued);
            if self.ent(e).delayed {
                self.complete_delayed(core, cpu, e);
                return None;
            }
            if self.is_task(e) {
                let may_run = !self.has_extras || self.may_run(core, cpu, q, e);
                return may_run.then(|| self.entity_task(e));
            }
            q = self.ent(e).my_q;
        }
    }

    /// Whether task entity `e`, chosen in queue `q`, may run. If its group has used its quota, the
    /// entity leaves, after a visit to its CPU if that takes time. Otherwise the high-resolution
    /// tick receives the choice.
    #[cold]
    fn may_run(&mut self, core: &mut Core, cpu: CpuId, q: u32, e: u32) -> bool {
        if self.bandwidth.is_some() && self.has_to_leave(core, e) {
            core.work.is_visit = core.throttle_ns > 0 && !core.is_running(self.entity_task(e));
            if core.work.is_visit {
                self.begin_visit(core, cpu, e);
            } else {
                self.throttle_task(core, cpu, e);
            }
            return core.work.is_visit;
        }
        self.hrtick_pick(core, q, e);
        true
    }

    /// Stops `prev`. Entities that it shares with `next` continue.
    #[inline(never)]
    pub(super) fn put_prev_task_fair(&mut self, core: &mut Core, prev: u32, next: Option<u32>) {
        let mut next = next.unwrap_or(NIL);
        let mut e = prev;
        while e != NIL {
            let depth = self.ent(e).depth;
            while next != NIL && self.ent(next).depth > depth {
                next = self.ent(next).parent;
            }
            if next == e {
                return;
            }
            let q = self.ent(e).cfs;
            self.put_prev_entity(core, q, e);
            e = self.ent(e).parent;
        }
    }

    /// Stops `e`.
    #[inline(always)]
    pub(super) fn put_prev_entity(&mut self, core: &mut Core, q: u32, e: u32) {
        if self.rq(q).curr != e {
            return;
        }
        let mut on_rq = self.ent(e).on_rq;
        if on_rq {
            self.update_curr(core, q);
        }
        if self.bandwidth.is_some() {
            self.check_runtime(core, q);
            on_rq = self.ent(e).on_rq;
        }
        if on_rq {
            let (rq, se) = (&mut self.cfs[q as usize], &self.ents[e as usize]);
            rq.insert_waiting(self.rules.algorithm, se, e, &mut self.nodes);
            self.update_load_avg(core.now, q, e, Change::None);
        }
        self.rq_mut(q).curr = NIL;
    }

    /// Starts `e`, with the entities above it that do not run yet. `is_pick`: it was picked;
    /// otherwise it continues after a change.
    pub(super) fn set_next_task_fair(&mut self, core: &mut Core, first: u32, is_pick: bool) {
        // Only balancing uses the order.
        if self.nr_cpus > 1 && self.ent(first).on_rq {
            self.list_move_to_head(first);
        }
        let mut e = first;
        while e != NIL {
            let q = self.ent(e).cfs;
            if self.rq(q).curr == e {
                return;
            }
            self.set_next_entity(core, q, e, is_pick);
            e = self.ent(e).parent;
        }
    }

    #[inline(always)]
    fn set_next_entity(&mut self, core: &mut Core, q: u32, e: u32, is_pick: bool) {
        self.clear_buddies_of(q, e);
        let (rq, se) = (&mut self.cfs[q as usize], &self.ents[e as usize]);
        if se.on_rq {
            rq.remove_waiting(self.rules.algorithm, se, e, &mut self.nodes);
            self.update_load_avg_in_place(core.now, q, e, Change::None);
            if self.rules.is_eevdf() && (is_pick || !self.rules.only_picks_protect) {
                self.protect(q, e);
            }
        }
        let (rq, se) = (&mut self.cfs[q as usize], &mut self.ents[e as usize]);
        se.exec_start = core.now;
        se.prev_sum_exec_runtime = se.sum_exec_runtime;
        rq.curr = e;
        if self.has_extras {
            if is_pick {
                self.hrtick_set_next(core, q, e);
            } else if self.bandwidth.is_some() {
                self.charge_runtime(core, q, 0);
            }
        }
    }

    /// Makes `e` and the entities above it the next to be picked.
    pub(super) fn set_next_buddy(&mut self, mut e: u32) {
        while e != NIL && self.ent(e).on_rq && !self.ent(e).idle {
            let q = self.ent(e).cfs;
            self.rq_mut(q).next = e;
            e = self.ent(e).parent;
        }
    }

    /// Removes `e` as a buddy of its queue, and the entities above it that were buddies because of
    /// it.
    #[inline]
    pub(super) fn clear_buddies(&mut self, e: u32) {
        self.clear_buddies_of(self.ent(e).cfs, e);
    }

    /// Clears the buddies of `e`, whose queue `q` is known.
    #[inline(always)]
    pub(super) fn clear_buddies_of(&mut self, q: u32, e: u32) {
        if self.rq(q).has_buddies() {
            self.clear_buddies_upwards(e);
        }
    }

    #[inline(never)]
    fn clear_buddies_upwards(&mut self, first: u32) {
        let slots: [fn(&mut CfsRq) -> &mut u32; 3] =
            [|rq| &mut rq.next, |rq| &mut rq.last, |rq| &mut rq.skip];
        for buddy in slots {
            let mut e = first;
            while e != NIL {
                let q = self.ent(e).cfs;
                let slot = buddy(self.rq_mut(q));
                if *slot != e {
                    break;
                }
                *slot = NIL;
                e = self.ent(e).parent;
            }
        }
    }

    /// Whether virtual time `a` is before `b` in queue order.
    #[inline]
    pub(super) fn deadline_before(&self, a: u32, b: u32) -> bool {
        before(self.ent(a).deadline, self.ent(b).deadline)
    }

    /// Moves task entity `e` to the head of its CPU's list, which contains it.
    #[inline]
    pub(super) fn list_move_to_head(&mut self, e: u32) {
        let se = &mut self.ents[e as usize];
        let (prev, next) = (se.list_prev, se.list_next);
        if prev == NIL {
            return;
        }
        let list = &mut self.cpus[self.cfs[se.cfs as usize].cpu as usize];
        (se.list_prev, se.list_next) = (NIL, list.tasks_head);
        self.ents[list.tasks_head as usize].list_prev = e;
        list.tasks_head = e;
        self.ents[prev as usize].list_next = next;
        if next == NIL {
            list.tasks_tail = prev;
        } else {
            self.ents[next as usize].list_prev = prev;
        }
    }

    /// Puts task entity `e` at the head of its CPU's list.
    #[inline(always)]
    pub(super) fn list_add_head(&mut self, e: u32) {
        let cpu = self.rq(self.ent(e).cfs).cpu as usize;
        let head = self.cpus[cpu].tasks_head;
        let se = self.ent_mut(e);
        (se.list_prev, se.list_next) = (NIL, head);
        if head == NIL {
            self.cpus[cpu].tasks_tail = e;
        } else {
            self.ent_mut(head).list_prev = e;
        }
        self.cpus[cpu].tasks_head = e;
    }

    /// Takes task entity `e` off its CPU's list.
    #[inline(always)]
    pub(super) fn list_remove(&mut self, e: u32) {
        let cpu = self.rq(self.ent(e).cfs).cpu as usize;
        let (prev, next) = (self.ent(e).list_prev, self.ent(e).list_next);
        if prev == NIL {
            self.cpus[cpu].tasks_head = next;
        } else {
            self.ent_mut(prev).list_next = next;
        }
        if next == NIL {
            self.cpus[cpu].tasks_tail = prev;
        } else {
            self.ent_mut(next).list_prev = prev;
        }
    }
}
