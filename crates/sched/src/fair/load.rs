// SPDX-License-Identifier: MIT OR Apache-2.0
//! Load averages of entities, queues and groups, and the weights of groups that follow from them.
//!
//! Source: Linux kernel/sched/fair.c (update_load_avg, update_cfs_rq_load_avg,
//! attach_entity_load_avg, propagate_entity_load_avg, update_tg_load_avg, calc_group_shares,
//! reweight_entity, update_cfs_rq_h_load), 6.1 and 6.12. Unlike in the kernel, h_load is computed
//! each time, instead of once per tick.

use super::FairClass;
use super::entity::{CfsRq, Entity};
use super::pelt::{CAPACITY_SCALE, MIN_DIVIDER};
use super::rbtree::NIL;
use super::rules::{Algorithm, FairBug, Reweight, Throttling};
use super::weights::{LoadWeight, scale_load_down};
use crate::boundary::core::Core;
use schedlab_model::Nanos;
use schedlab_model::time::NSEC_PER_MSEC;
use schedlab_model::weights::MIN_SHARES;

/// An additional effect of a load update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Nothing.
    None,
    /// An entity whose load is not part of its queue's joins it (DO_ATTACH).
    Attach,
}

/// Adds a signed change, not below 0 (add_positive).
fn add_positive(value: &mut u64, change: i64) {
    *value = value.saturating_add_signed(change);
}

impl FairClass {
    /// Updates the load of `e` and its queue `q` (update_load_avg with UPDATE_TG).
    #[inline(always)]
    pub(super) fn update_load_avg(&mut self, now: Nanos, q: u32, e: u32, change: Change) {
        if self.owes_update(now, q, e) {
            self.update_due_load_avg(now, q, e, change);
        }
    }

    /// Inlined [`FairClass::update_load_avg`], for the path of every switch.
    #[inline(always)]
    pub(super) fn update_load_avg_in_place(&mut self, now: Nanos, q: u32, e: u32, change: Change) {
        let (rq, se) = (&mut self.cfs[q as usize], &mut self.ents[e as usize]);
        if !Self::refresh_at_root(now, rq, se, e) {
            self.update_due_load_avg(now, q, e, change);
        } else if self.tracks_touched {
            self.touch(q);
        }
    }

    /// As [`FairClass::update_load_avg`], for queue `rq` and its entity `se`, number `e`. Returns
    /// false and does nothing unless `se` is a task at the root: then no queue below and no group
    /// above needs an update.
    #[inline(always)]
    pub(super) fn refresh_at_root(now: Nanos, rq: &mut CfsRq, se: &mut Entity, e: u32) -> bool {
        if !(Self::is_plain(rq, se) & (rq.se == NIL)) {
            return false;
        }
        // Usually the last update covered both, so the same time has the same effect on both. If
        // several callbacks at one instant request an update, only the first one has an effect.
        let step = se.refresh_task_avg(now, rq.curr == e);
        rq.refresh_avg(now, step.as_ref());
        true
    }

    /// Whether an update is due. Several callbacks at one instant request it; mostly only the first
    /// has an effect.
    #[inline(always)]
    fn owes_update(&self, now: Nanos, q: u32, e: u32) -> bool {
        let (rq, se) = (&self.cfs[q as usize], &self.ents[e as usize]);
        se.avg.is_due(now) || rq.avg.is_due(now) || !Self::is_plain(rq, se)
    }

    /// Whether only time changes the load: there is no group below `se`, and no entity left `rq`.
    #[inline(always)]
    fn is_plain(rq: &CfsRq, se: &Entity) -> bool {
        se.avg.is_attached() & (se.my_q == NIL) & (rq.removed.nr == 0)
    }

    #[inline(never)]
    fn update_due_load_avg(&mut self, now: Nanos, q: u32, e: u32, change: Change) {
        self.touch(q);
        let (rq, se) = (&mut self.cfs[q as usize], &mut self.ents[e as usize]);
        if !Self::refresh_at_root(now, rq, se, e) && self.owes_update(now, q, e) {
            self.refresh_with_groups(now, q, e, change);
        }
    }

    #[inline(never)]
    fn refresh_with_groups(&mut self, now: Nanos, q: u32, e: u32, change: Change) {
        let rq = &mut self.cfs[q as usize];
        let se = &mut self.ents[e as usize];
        if se.avg.is_attached() {
            se.refresh_avg(now, rq.curr == e);
        }
        let joins = change == Change::Attach && !se.avg.is_attached();
        let (is_group, is_root) = (se.my_q != NIL, rq.se == NIL);
        let mut decayed = self.update_cfs_rq_load_avg(now, q);
        if is_group {
            decayed |= self.propagate_entity(q, e);
        }
        if joins {
            self.attach_entity(q, e);
            decayed = true;
        }
        if decayed && !is_root {
            self.update_tg_load_avg(now, q);
        }
    }

    /// Updates the load of queue `q`; returns whether its averages changed.
    #[inline]
    pub(super) fn update_cfs_rq_load_avg(&mut self, now: Nanos, q: u32) -> bool {
        self.touch(q);
        let mut decayed = false;
        if self.cfs[q as usize].removed.nr > 0 {
            self.take_off_removed(q);
            decayed = true;
        }
        decayed | self.cfs[q as usize].refresh_avg(now, None)
    }

    fn take_off_removed(&mut self, q: u32) {
        let rq = &mut self.cfs[q as usize];
        let removed = std::mem::take(&mut rq.removed);
        let avg = &mut rq.avg;
        let divider = avg.divider();
        avg.load_avg = avg.load_avg.saturating_sub(removed.load_avg);
        avg.load_sum = avg.load_sum.saturating_sub(removed.load_avg * divider);
        avg.load_sum = avg.load_sum.max(avg.load_avg * MIN_DIVIDER);
        avg.util_avg = avg.util_avg.saturating_sub(removed.util_avg);
        avg.util_sum = avg.util_sum.saturating_sub(removed.util_avg * divider);
        avg.util_sum = avg.util_sum.max(avg.util_avg * MIN_DIVIDER);
        avg.runnable_avg = avg.runnable_avg.saturating_sub(removed.runnable_avg);
        avg.runnable_sum = avg.runnable_sum.saturating_sub(removed.runnable_avg * divider);
        avg.runnable_sum = avg.runnable_sum.max(avg.runnable_avg * MIN_DIVIDER);
        let runnable = (removed.runnable_avg * divider) as i64;
        self.add_propagate(q, -runnable >> 10);
    }

    /// Adds the load of `e` to that of `q` (attach_entity_load_avg).
    fn attach_entity(&mut self, q: u32, e: u32) {
        let queue_avg = self.rq(q).avg;
        let divider = queue_avg.divider();
        let se = &mut self.ents[e as usize];
        let weight = se.load.scaled;
        let avg = se.avg.settled();
        avg.last_update_time = queue_avg.last_update_time;
        avg.period_contrib = queue_avg.period_contrib;
        avg.util_sum = avg.util_avg * divider;
        avg.runnable_sum = avg.runnable_avg * divider;
        avg.load_sum = avg.load_avg * divider;
        avg.load_sum = if weight < avg.load_sum { avg.load_sum / weight } else { 1 };
        avg.attached = true;
        let avg = *avg;
        let total = &mut self.cfs[q as usize].avg;
        total.load_avg += avg.load_avg;
        total.load_sum += weight * avg.load_sum;
        total.util_avg += avg.util_avg;
        total.util_sum += avg.util_sum;
        total.runnable_avg += avg.runnable_avg;
        total.runnable_sum += avg.runnable_sum;
        self.add_propagate(q, avg.load_sum as i64);
    }

    /// Subtracts the current load of `e` from its queue at once (detach_entity_cfs_rq).
    pub(super) fn detach_entity(&mut self, now: Nanos, e: u32) {
        if !self.ent(e).avg.is_attached() {
            return;
        }
        let q = self.ent(e).cfs;
        self.touch(q);
        self.update_load_avg(now, q, e, Change::None);
        self.ents[e as usize].avg.settled().attached = false;
        let (avg, weight) = (self.ent(e).avg.get(), self.ent(e).load.scaled);
        let total = &mut self.cfs[q as usize].avg;
        total.load_avg = total.load_avg.saturating_sub(avg.load_avg);
        total.load_sum = total.load_sum.saturating_sub(weight * avg.load_sum);
        total.load_sum = total.load_sum.max(total.load_avg * MIN_DIVIDER);
        total.util_avg = total.util_avg.saturating_sub(avg.util_avg);
        total.util_sum = total.util_sum.saturating_sub(avg.util_sum);
        total.util_sum = total.util_sum.max(total.util_avg * MIN_DIVIDER);
        total.runnable_avg = total.runnable_avg.saturating_sub(avg.runnable_avg);
        total.runnable_sum = total.runnable_sum.saturating_sub(avg.runnable_sum);
        total.runnable_sum = total.runnable_sum.max(total.runnable_avg * MIN_DIVIDER);
        self.add_propagate(q, -(avg.load_sum as i64));
        self.update_tg_load_avg(now, q);
        self.propagate_upwards(now, self.rq(q).se);
    }

    /// Handles a blocked entity about to leave its CPU: the next update of its queue subtracts its
    /// load (remove_entity_load_avg).
    pub(super) fn remove_entity_load_avg(&mut self, now: Nanos, e: u32) {
        if !self.ent(e).avg.is_attached() {
            return;
        }
        debug_assert!(self.ent(e).on_rq || now >= self.ent(e).avg.get().last_update_time);
        let q = self.ent(e).cfs as usize;
        let queue_time = self.cfs[q].avg.last_update_time;
        let se = &mut self.ents[e as usize];
        se.avg.update_blocked(queue_time, se.load.scaled);
        let avg = se.avg.settled();
        avg.attached = false;
        let removed = &mut self.cfs[q].removed;
        removed.nr += 1;
        removed.load_avg += avg.load_avg;
        removed.util_avg += avg.util_avg;
        removed.runnable_avg += avg.runnable_avg;
    }

    /// Propagates a change of load from entity `e` upwards (propagate_entity_cfs_rq).
    fn propagate_upwards(&mut self, now: Nanos, mut e: u32) {
        while e != NIL {
            let q = self.ent(e).cfs;
            self.update_load_avg(now, q, e, Change::None);
            e = self.ent(e).parent;
        }
    }

    fn add_propagate(&mut self, q: u32, runnable_sum: i64) {
        let rq = &mut self.cfs[q as usize];
        if rq.se != NIL {
            rq.propagate = true;
            rq.prop_runnable_sum += runnable_sum;
        }
    }

    /// Applies to group entity `e` of queue `q` the load that joined or left below it. Returns
    /// whether there was any.
    fn propagate_entity(&mut self, q: u32, e: u32) -> bool {
        let my_q = self.ents[e as usize].my_q;
        if my_q == NIL || !self.cfs[my_q as usize].propagate {
            return false;
        }
        self.cfs[my_q as usize].propagate = false;
        self.add_propagate(q, self.rq(my_q).prop_runnable_sum);
        let below = self.rq(my_q).avg;
        let total = &mut self.cfs[q as usize].avg;
        let divider = total.divider();
        let avg = self.ents[e as usize].avg.settled();
        if below.util_avg != avg.util_avg {
            let sum = below.util_avg * divider;
            add_positive(&mut total.util_avg, below.util_avg.wrapping_sub(avg.util_avg) as i64);
            add_positive(&mut total.util_sum, sum.wrapping_sub(avg.util_sum) as i64);
            total.util_sum = total.util_sum.max(total.util_avg * MIN_DIVIDER);
            (avg.util_avg, avg.util_sum) = (below.util_avg, sum);
        }
        if below.runnable_avg != avg.runnable_avg {
            let sum = below.runnable_avg * divider;
            let change = below.runnable_avg.wrapping_sub(avg.runnable_avg) as i64;
            add_positive(&mut total.runnable_avg, change);
            add_positive(&mut total.runnable_sum, sum.wrapping_sub(avg.runnable_sum) as i64);
            total.runnable_sum = total.runnable_sum.max(total.runnable_avg * MIN_DIVIDER);
            (avg.runnable_avg, avg.runnable_sum) = (below.runnable_avg, sum);
        }
        self.propagate_load(q, e, my_q);
        true
    }

    /// The load part of [`Self::propagate_entity`] (update_tg_cfs_load).
    fn propagate_load(&mut self, q: u32, e: u32, my_q: u32) {
        let change = std::mem::take(&mut self.rq_mut(my_q).prop_runnable_sum);
        if change == 0 {
            return;
        }
        let divider = self.rq(q).avg.divider();
        let below_weight = scale_load_down(self.rq(my_q).load);
        let below_sum = self.rq(my_q).avg.load_sum;
        let se = self.ent(e);
        let avg = se.avg.get();
        let own = avg.load_sum as i64;
        let mut runnable_sum = if change >= 0 {
            (own + change).min(divider as i64)
        } else {
            // Assume that all tasks below are equally runnable.
            own.min(below_sum.checked_div(below_weight).unwrap_or(0) as i64)
        };
        runnable_sum = runnable_sum.max((avg.util_sum >> 10) as i64);
        let weight = se.load.scaled;
        let load_sum = weight * runnable_sum as u64;
        let load_avg = load_sum / divider;
        if load_avg == avg.load_avg {
            return;
        }
        let change_avg = load_avg.wrapping_sub(avg.load_avg) as i64;
        let change_sum = load_sum.wrapping_sub(weight * avg.load_sum) as i64;
        let avg = self.ent_mut(e).avg.settled();
        (avg.load_sum, avg.load_avg) = (runnable_sum as u64, load_avg);
        let total = &mut self.rq_mut(q).avg;
        add_positive(&mut total.load_avg, change_avg);
        add_positive(&mut total.load_sum, change_sum);
        total.load_sum = total.load_sum.max(total.load_avg * MIN_DIVIDER);
    }

    /// Reports the load of queue `q` to its group if it changed by more than 1/64.
    pub(super) fn update_tg_load_avg(&mut self, now: Nanos, q: u32) {
        let limited = self.rules.tg_load_rate_limited;
        let rq = &mut self.cfs[q as usize];
        if rq.se == NIL
            || (limited && now.saturating_sub(rq.last_update_tg_load_avg) < NSEC_PER_MSEC)
        {
            return;
        }
        let change = rq.avg.load_avg.wrapping_sub(rq.tg_load_avg_contrib) as i64;
        if change.unsigned_abs() > rq.tg_load_avg_contrib / 64 {
            rq.tg_load_avg_contrib = rq.avg.load_avg;
            rq.last_update_tg_load_avg = now;
            add_positive(&mut self.groups[rq.group as usize].load_avg, change);
        }
    }

    /// Utilisation of a new task, from that of its queue (post_init_entity_util_avg).
    pub(super) fn init_util_avg(&mut self, e: u32) {
        let q = self.ent(e).cfs;
        let total = self.rq(q).avg;
        let weight = self.ent(e).load.scaled;
        let cap = CAPACITY_SCALE.saturating_sub(total.util_avg) / 2;
        let avg = self.ent_mut(e).avg.settled();
        if avg.attached {
            return;
        }
        if cap > 0 {
            avg.util_avg = if total.util_avg == 0 {
                cap
            } else {
                (total.util_avg * weight / (total.load_avg + 1)).min(cap)
            };
        }
        avg.runnable_avg = avg.util_avg;
    }

    /// Updates the number of tasks that the load of group entity `e` counts (se_update_runnable).
    #[inline]
    pub(super) fn update_runnable(&mut self, e: u32) {
        let se = &mut self.ents[e as usize];
        if se.my_q != NIL {
            se.runnable_weight = self.cfs[se.my_q as usize].h_nr_runnable;
        }
    }

    /// Gives group entity `e` its part of the group's shares, by its CPU's load.
    #[inline]
    pub(super) fn update_cfs_group(&mut self, core: &mut Core, e: u32) {
        let my_q = self.ents[e as usize].my_q;
        if my_q != NIL {
            self.renew_shares(core, e, my_q);
        }
    }

    /// Updates both the runnable tasks and the shares of group entity `e`.
    #[inline]
    pub(super) fn update_group_weight(&mut self, core: &mut Core, e: u32) {
        if self.ents[e as usize].my_q != NIL {
            self.update_runnable(e);
            self.update_cfs_group(core, e);
        }
    }

    #[inline(never)]
    fn renew_shares(&mut self, core: &mut Core, e: u32, my_q: u32) {
        let is_empty = self.rules.group_keeps_weight_when_empty && self.rq(my_q).load == 0;
        let is_throttled =
            self.rules.throttling == Throttling::Queues && self.is_hierarchy_throttled(my_q);
        if is_empty || is_throttled {
            return;
        }
        let shares = self.group_shares(my_q);
        // 6.1 does this even if the weight is unchanged, which only rounds the load average again.
        if shares != self.ent(e).load.weight || self.rules.algorithm == Algorithm::Cfs {
            let load = self.rules.weight_of(LoadWeight::of_load(shares));
            if self.is_odd {
                self.reweight_odd(core, e, load, false);
            } else {
                self.reweight_entity(core, e, load);
            }
        }
    }

    /// cpu.weight of `group` was written (sched_group_set_shares): on each CPU the entities of the
    /// group and of those above it get new weights.
    pub(super) fn set_group_shares(&mut self, core: &mut Core, group: u32, shares: u64) {
        if std::mem::replace(&mut self.groups[group as usize].shares, shares) == shares {
            return;
        }
        for cpu in 0..self.nr_cpus {
            let mut e = self.rq(group * self.nr_cpus + cpu).se;
            while e != NIL {
                self.update_load_avg(core.now, self.ent(e).cfs, e, Change::None);
                self.update_cfs_group(core, e);
                e = self.ent(e).parent;
            }
        }
    }

    /// Weight of the entity of queue `q` (calc_group_shares).
    fn group_shares(&self, q: u32) -> u64 {
        let rq = self.rq(q);
        let group = self.groups[rq.group as usize];
        if self.nr_cpus == 1 {
            return group.shares;
        }
        let load = scale_load_down(rq.load).max(rq.avg.load_avg);
        let total = (group.load_avg + load).saturating_sub(rq.tg_load_avg_contrib);
        let shares = (group.shares * load).checked_div(total).unwrap_or(group.shares * load);
        shares.clamp(MIN_SHARES, group.shares)
    }

    /// Changes the weight of `e`, queued or not.
    pub(super) fn reweight_entity(&mut self, core: &mut Core, e: u32, load: LoadWeight) {
        let q = self.ent(e).cfs;
        let on_rq = self.ent(e).on_rq;
        let is_curr = self.rq(q).curr == e;
        let eevdf = self.rules.is_eevdf();
        let scales_relative =
            !matches!(self.rules.reweight, Reweight::Scale | Reweight::KeepVruntime);
        let mut average = 0;
        if on_rq {
            if eevdf || is_curr {
                self.update_curr(core, q);
            }
            if eevdf {
                average = self.lift_for_reweight(core, q, e, is_curr);
            }
            let old = self.ent(e).load.weight;
            self.rq_mut(q).load -= old;
        }
        self.reweight_load_avg(q, e, load, |class| {
            let old = class.ent(e).load.weight;
            let place = class.rules.reweight == Reweight::Place;
            if eevdf && on_rq && !place {
                class.scale_around(e, average, load.weight);
            } else if eevdf {
                let se = class.ent_mut(e);
                se.vlag = super::eevdf::scale_signed(se.vlag, old as i64, load.weight as i64);
                if se.rel_deadline && scales_relative {
                    let distance = se.deadline as i64;
                    let scaled =
                        super::eevdf::scale_signed(distance, old as i64, load.weight as i64);
                    se.deadline = scaled as u64;
                }
            }
        });
        if on_rq {
            self.rq_mut(q).load += load.weight;
            if eevdf {
                self.settle_after_reweight(q, e, is_curr);
            }
        }
    }

    /// Removes queued `e` from the averages before its weight changes; returns the average.
    fn lift_for_reweight(&mut self, core: &Core, q: u32, e: u32, is_curr: bool) -> u64 {
        if !is_curr && self.rules.has(FairBug::AverageWithoutIt) {
            self.tree_remove(q, e);
            let average = self.avg_vruntime(q);
            self.update_entity_lag(core, q, e);
            return average;
        }
        let average = self.avg_vruntime(q);
        self.update_entity_lag(core, q, e);
        if self.rules.reweight == Reweight::Place {
            let se = self.ent_mut(e);
            se.deadline = se.deadline.wrapping_sub(se.vruntime);
            se.rel_deadline = true;
            self.rq_mut(q).nr_queued -= 1;
        }
        if !is_curr {
            self.tree_remove(q, e);
        }
        average
    }

    /// Adds `e` to the averages again.
    fn settle_after_reweight(&mut self, q: u32, e: u32, is_curr: bool) {
        let place = self.rules.reweight == Reweight::Place;
        if place {
            self.place_entity_eevdf(q, e, false);
        }
        if is_curr {
            self.protection_after_reweight(q, e);
        } else {
            self.tree_insert(q, e);
        }
        if place {
            self.rq_mut(q).nr_queued += 1;
        }
        if !is_curr || !self.rules.has(FairBug::StaleMinVruntime) {
            self.update_min_vruntime(q);
        }
    }

    /// Scales the bounded lag and the distance to the deadline around `average` (reweight_eevdf).
    fn scale_around(&mut self, e: u32, average: u64, weight: u64) {
        let scales_all = self.rules.reweight == Reweight::ScaleAll;
        let is_protected = scales_all && self.rq(self.ent(e).cfs).curr == e && self.is_protected(e);
        let keeps = self.rules.reweight == Reweight::KeepVruntime;
        let se = self.ent_mut(e);
        let (old, new) = (se.load.weight as i64, weight as i64);
        if se.vruntime != average && !keeps {
            let lag = super::eevdf::scale_signed(se.vlag, old, new);
            se.vruntime = average.wrapping_sub(lag as u64);
        }
        if keeps {
            let distance = se.deadline.wrapping_sub(se.vruntime) as i64;
            let scaled = super::eevdf::scale_signed(distance, old, new);
            se.deadline = se.vruntime.wrapping_add(scaled as u64);
            return;
        }
        let scale = |time: u64| {
            let distance = time.wrapping_sub(average) as i64;
            average.wrapping_add(super::eevdf::scale_signed(distance, old, new) as u64)
        };
        se.deadline = scale(se.deadline);
        if is_protected {
            se.vprot = scale(se.vprot);
        }
    }

    /// Changes the weight within the load averages. `scale` runs while the old weight is still set.
    fn reweight_load_avg(
        &mut self,
        q: u32,
        e: u32,
        load: LoadWeight,
        scale: impl FnOnce(&mut Self),
    ) {
        self.touch(q);
        let attached = self.ent(e).avg.is_attached();
        if attached {
            let (avg, old) = (self.ent(e).avg.get(), self.ent(e).load.scaled);
            let total = &mut self.rq_mut(q).avg;
            total.load_avg = total.load_avg.saturating_sub(avg.load_avg);
            total.load_sum = total.load_sum.saturating_sub(old * avg.load_sum);
            total.load_sum = total.load_sum.max(total.load_avg * MIN_DIVIDER);
        }
        scale(self);
        let weight = load.scaled;
        let se = self.ent_mut(e);
        let is_task = se.my_q == NIL;
        se.load = load;
        let avg = se.avg.settled();
        if attached {
            avg.load_avg = weight * avg.load_sum / avg.divider();
            let avg = *avg;
            let total = &mut self.rq_mut(q).avg;
            total.load_avg += avg.load_avg;
            total.load_sum += weight * avg.load_sum;
        } else if is_task {
            // A new task's load is its weight.
            avg.load_avg = weight;
        }
    }

    /// Load of queue `q` as a part of the load of its CPU's root queue (update_cfs_rq_h_load).
    pub(super) fn queue_h_load(&self, q: u32) -> u64 {
        let se = self.rq(q).se;
        if se == NIL {
            return self.rq(q).avg.load_avg;
        }
        let above = self.ent(se).cfs;
        self.queue_h_load(above) * self.ent(se).avg.get().load_avg
            / (self.rq(above).avg.load_avg + 1)
    }
}
