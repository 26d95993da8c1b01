// SPDX-License-Identifier: MIT OR Apache-2.0
//! EEVDF: placement with lag, pick, protection, preemption. The average virtual runtime that it
//! uses is in [`super::average`].
//!
//! Source: Linux kernel/sched/fair.c (place_entity, update_deadline, pick_eevdf,
//! check_preempt_wakeup_fair, requeue_delayed_entity), 6.6, 6.12.0, 6.12.63, 6.18.2, 7.1.5; the
//! algorithm: Stoica and Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995. From 6.19
//! on the kernel counts virtual times from the average (zero_vruntime) instead of the least one
//! (min_vruntime). From 7.1 on it drops bits of weights before a sum overflows. The model's sums
//! are wide enough for both, so neither change shows.

use super::average::Sums;
use super::entity::{CfsRq, Entity};
use super::rbtree::{NIL, before, min_time};
use super::rules::{Algorithm, FairBug, LagLimit, Protection, Wakeup, YieldRule};
use super::weights::calc_delta_fair;
use super::{FairClass, Wake};
use crate::boundary::core::Core;
use schedlab_model::CpuId;

/// value * num / den, truncated towards 0.
#[inline]
pub(super) fn scale_signed(value: i64, num: i64, den: i64) -> i64 {
    if value == 0 {
        return 0;
    }
    let product = i128::from(value) * i128::from(num);
    match i64::try_from(product) {
        // Nearly always the value fits, and the narrow division is faster.
        Ok(small) => small / den,
        Err(_) => (product / i128::from(den)) as i64,
    }
}

impl FairClass {
    /// The running entity of `rq`, if it is queued.
    #[inline]
    pub(super) fn running<'e>(ents: &'e [Entity], rq: &CfsRq) -> Option<&'e Entity> {
        // No entity has the number NIL.
        ents.get(rq.curr as usize).filter(|se| se.on_rq)
    }

    /// Sums over the queued entities of queue `q`.
    #[inline]
    fn sums(&self, q: u32) -> Sums {
        let rq = self.rq(q);
        Sums::of(rq, Self::running(&self.ents, rq))
    }

    /// V: the weighted average of virtual runtimes, rounded down; `min_vruntime` if there are none.
    pub(super) fn avg_vruntime(&self, q: u32) -> u64 {
        self.sums(q).average()
    }

    /// Whether `e` has received no more than its share.
    #[inline]
    pub(super) fn entity_eligible(&self, q: u32, e: u32) -> bool {
        self.sums(q).is_eligible(self.ent(e).vruntime)
    }

    /// Stores how far `e` is behind (positive) or ahead of the average, within bounds.
    #[inline(never)]
    pub(super) fn update_entity_lag(&mut self, core: &Core, q: u32, e: u32) {
        self.update_entity_lag_in_place(core, q, e);
    }

    /// Inlined [`Self::update_entity_lag`].
    #[inline(always)]
    pub(super) fn update_entity_lag_in_place(&mut self, core: &Core, q: u32, e: u32) {
        let limit = self.lag_limit(core, q, e);
        let se = self.ent(e);
        let lag = self.sums(q).average().wrapping_sub(se.vruntime) as i64;
        let mut lag = lag.clamp(-limit, limit);
        if se.delayed && self.rules.delayed_lag_only_rises {
            lag = lag.max(se.vlag);
            if self.rules.features.delay_zero {
                lag = lag.min(0);
            }
        }
        self.ent_mut(e).vlag = lag;
    }

    /// The greatest lag of `e`.
    #[inline(always)]
    pub(super) fn lag_limit(&self, core: &Core, q: u32, e: u32) -> i64 {
        let se = self.ent(e);
        let longest = match self.rules.lag_limit {
            LagLimit::OwnSlice => (2 * se.slice).max(core.tick_nsec),
            LagLimit::LongestSlice => self.max_slice(q) + core.tick_nsec,
        };
        calc_delta_fair(longest, se.load) as i64
    }

    /// Gives `e`, which is not among the queued, a virtual runtime that preserves its lag, and a
    /// deadline.
    #[inline(never)]
    pub(super) fn place_entity_eevdf(&mut self, q: u32, e: u32, initial: bool) {
        self.place_entity_in_place(q, e, initial);
        if self.is_odd {
            self.place_odd(q, e);
        }
    }

    /// Inlined [`Self::place_entity_eevdf`].
    #[inline(always)]
    pub(super) fn place_entity_in_place(&mut self, q: u32, e: u32, initial: bool) {
        let base_slice = self.tunables.base_slice_ns;
        let rq = &self.cfs[q as usize];
        let sums = Sums::of(rq, Self::running(&self.ents, rq));
        let se = &mut self.ents[e as usize];
        let mut lag = 0;
        if rq.nr_queued > 0 && self.rules.features.place_lag {
            // An entity that joins moves the average towards itself. So scale its lag up: after the
            // entity has joined, it is what it was before.
            lag = scale_signed(se.vlag, sums.load + se.load.averaged, sums.load.max(1));
        }
        if !se.custom_slice {
            se.slice = base_slice;
        }
        se.vruntime = sums.average().wrapping_sub(lag as u64);
        if se.rel_deadline {
            se.deadline = se.deadline.wrapping_add(se.vruntime);
            se.rel_deadline = false;
            return;
        }
        let mut vslice = calc_delta_fair(se.slice, se.load);
        if initial
            && self.rules.algorithm == Algorithm::EevdfByDeadline
            && self.rules.features.place_deadline_initial
        {
            vslice /= 2;
        }
        se.deadline = se.vruntime.wrapping_add(vslice);
    }

    /// Least slice of the queued entities of `q`; the greatest number if there are none.
    pub(super) fn min_slice(&self, q: u32) -> u64 {
        if !self.rules.custom_slice {
            return 0;
        }
        let rq = self.rq(q);
        let least = Self::running(&self.ents, rq).map_or(u64::MAX, |se| se.slice);
        least.min(rq.waiting.min_slice(&self.nodes))
    }

    /// Greatest slice of the queued entities of `q`.
    #[inline(never)]
    fn max_slice(&self, q: u32) -> u64 {
        let rq = self.rq(q);
        let running = Self::running(&self.ents, rq);
        running.map_or(0, |se| se.slice).max(rq.waiting.max_slice(&self.nodes))
    }

    /// Starts the protection of `e`, which is about to run.
    #[inline(always)]
    pub(super) fn protect(&mut self, q: u32, e: u32) {
        if self.rules.protection == Protection::ShortestSlice {
            self.protect_shortest(q, e);
        } else {
            let se = self.ent_mut(e);
            se.vprot = se.deadline;
        }
    }

    /// Starts a protection of the length of the shortest slice in the queue.
    #[inline(never)]
    fn protect_shortest(&mut self, q: u32, e: u32) {
        let least = if self.rules.features.run_to_parity {
            self.min_slice(q)
        } else {
            self.tunables.normalized_base_slice_ns
        };
        let se = self.ent_mut(e);
        let slice = least.min(se.slice);
        se.vprot = if slice == se.slice {
            se.deadline
        } else {
            min_time(se.deadline, se.vruntime.wrapping_add(calc_delta_fair(slice, se.load)))
        };
    }

    /// Whether the running entity `e` is still protected.
    pub(super) fn is_protected(&self, e: u32) -> bool {
        self.ent(e).is_protected(self.rules.protection)
    }

    fn cancel_protection(&mut self, e: u32) {
        if self.is_protected(e) {
            let shortest = self.rules.protection == Protection::ShortestSlice;
            let se = self.ent_mut(e);
            se.vprot = if shortest { se.vruntime } else { se.deadline.wrapping_add(1) };
        }
    }

    /// After a change of weight of the running `e` of queue `q`: the mark of protection no longer
    /// fits the deadline, or has become the lag (`union` of vlag and vprot).
    pub(super) fn protection_after_reweight(&mut self, q: u32, e: u32) {
        // The queue of a CPU has run since the boot, so that no lag is as far as its virtual time.
        let is_old = self.rq(q).se == NIL;
        let ends = self.rules.lag_ends_protection;
        let shortest = self.rules.protection == Protection::ShortestSlice;
        let se = self.ent_mut(e);
        if !shortest {
            se.vprot = se.deadline.wrapping_add(1);
        } else if ends {
            se.vprot = if is_old { se.vruntime } else { se.vlag as u64 };
        }
    }

    /// The next entity of queue `q`: the buddy if eligible, or else the result of
    /// [`Self::pick_eevdf`].
    #[inline(always)]
    pub(super) fn pick_next_eevdf(&self, q: u32) -> u32 {
        // From 6.19 on [`Self::pick_eevdf`] itself looks for buddies.
        if self.rules.wakeup == Wakeup::ByDeadline && self.rq(q).next != NIL {
            return self.pick_with_buddy(q);
        }
        self.pick_eevdf_in_place(q, true)
    }

    /// Picks from a queue with a buddy (up to 6.18).
    #[inline(never)]
    fn pick_with_buddy(&self, q: u32) -> u32 {
        if self.rq(q).nr_queued == 1 && self.rules.algorithm == Algorithm::EevdfByDeadline {
            // With one entity there is no choice under any rule.
            return self.only_one(q);
        }
        self.eligible_buddy(q).unwrap_or_else(|| self.pick_eevdf(q, true))
    }

    /// The only entity of queue `q`.
    #[inline]
    fn only_one(&self, q: u32) -> u32 {
        let rq = self.rq(q);
        let runs = Self::running(&self.ents, rq).is_some();
        if runs { rq.curr } else { rq.waiting.first() }
    }

    /// The buddy that precedes all others.
    #[inline]
    fn eligible_buddy(&self, q: u32) -> Option<u32> {
        let next = self.rq(q).next;
        let goes_first = next != NIL && self.rules.pick_buddy && self.entity_eligible(q, next);
        goes_first.then_some(next)
    }

    /// The eligible entity with the earliest deadline; the running one while it is protected,
    /// unless `protect` is false. From 6.19 on, the buddy before either.
    #[inline(never)]
    pub(super) fn pick_eevdf(&self, q: u32, protect: bool) -> u32 {
        self.pick_eevdf_in_place(q, protect)
    }

    /// Inlined [`Self::pick_eevdf`], for the pick itself.
    #[inline(always)]
    fn pick_eevdf_in_place(&self, q: u32, protect: bool) -> u32 {
        let rq = &self.cfs[q as usize];
        let by_deadline = self.rules.algorithm == Algorithm::EevdfByDeadline;
        if by_deadline && rq.nr_queued == 1 {
            return self.only_one(q);
        }
        if self.rules.wakeup == Wakeup::ByPick
            && protect
            && let Some(next) = self.eligible_buddy(q)
        {
            return next;
        }
        let running = Self::running(&self.ents, rq);
        let sums = Sums::of(rq, running);
        let curr = running.filter(|se| sums.is_eligible(se.vruntime));
        if let Some(curr) = curr
            && protect
        {
            // From 6.18 on the feature decides how long protection is, not whether.
            let protects = self.rules.features.run_to_parity
                || self.rules.protection == Protection::ShortestSlice;
            if protects && curr.is_protected(self.rules.protection) {
                return rq.curr;
            }
        }
        if by_deadline {
            let best = rq.waiting.first_that(&self.nodes, move |v| sums.is_eligible(v));
            match curr {
                Some(curr) if best == NIL || before(curr.deadline, self.ent(best).deadline) => {
                    rq.curr
                }
                _ => best,
            }
        } else {
            let (root, curr) = (rq.waiting.tree().root, curr.map_or(NIL, |_| rq.curr));
            let best = self.earliest_eligible_by_vruntime(root, curr, move |v| sums.is_eligible(v));
            // None is eligible: possible only by rounding.
            if best == NIL { rq.waiting.first() } else { best }
        }
    }

    /// Earliest deadline among the eligible, in a tree ordered by virtual runtime (6.6). Among
    /// equal deadlines the shape of the tree decides, as in the kernel.
    fn earliest_eligible_by_vruntime(
        &self,
        root: u32,
        curr: u32,
        eligible: impl Fn(u64) -> bool,
    ) -> u32 {
        let node = |id: u32| &self.nodes[id as usize];
        if self.rules.has(FairBug::PickMissesLeft) {
            return self.pick_missing_left(root, curr, eligible);
        }
        let (mut best, mut best_left) = (curr, NIL);
        let mut at = root;
        while at != NIL {
            if !eligible(node(at).key) {
                at = node(at).left;
                continue;
            }
            if best == NIL || before(node(at).time, self.ent(best).deadline) {
                best = at;
            }
            let left = node(at).left;
            if left != NIL {
                let earlier =
                    best_left == NIL || before(node(left).min_time, node(best_left).min_time);
                if earlier {
                    best_left = left;
                }
                if node(left).min_time == node(at).min_time {
                    break;
                }
            }
            if node(at).time == node(at).min_time {
                break;
            }
            at = node(at).right;
        }
        // An equal deadline on the left wins over the running entity and the path.
        if best_left == NIL || before(self.ent(best).deadline, node(best_left).min_time) {
            return best;
        }
        let least = node(best_left).min_time;
        let mut at = best_left;
        while at != NIL {
            if node(at).time == least {
                return at;
            }
            let left = node(at).left;
            at = if left != NIL && node(left).min_time == least { left } else { node(at).right };
        }
        best
    }

    /// `woken` was queued while `running` runs: preempts if it is now the one to pick.
    pub(super) fn check_preempt_eevdf(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        (running, woken): (u32, u32),
        wake: Wake,
    ) {
        let (se, pse) = self.matching(running, woken);
        let (curr_idle, woken_idle) = (self.ent(se).idle, self.ent(pse).idle);
        // 6.6 checks the feature after it has checked for idle tasks, later versions before.
        let by_deadline = self.rules.algorithm == Algorithm::EevdfByDeadline;
        let may = self.rules.features.wakeup_preemption;
        if !may && (by_deadline || !curr_idle || woken_idle) {
            return;
        }
        if curr_idle && !woken_idle {
            if self.rules.idle_loses_protection {
                self.cancel_protection(se);
            }
            if self.is_odd {
                self.note_idle_preempted(cpu, se);
            }
            core.resched_curr_lazy(cpu);
            return;
        }
        if curr_idle != woken_idle || !self.ent(woken).normal {
            return;
        }
        let q = self.ent(se).cfs;
        self.update_curr(core, q);
        let shorter = self.rules.preempt_short && self.ent(pse).slice < self.ent(se).slice;
        if self.rules.wakeup == Wakeup::ByPick {
            self.check_preempt_by_pick(core, cpu, (se, pse), shorter, wake);
            return;
        }
        if self.rules.protection == Protection::ShortestSlice {
            if self.pick_eevdf(q, !shorter) == pse {
                if shorter {
                    self.cancel_protection(se);
                }
                core.resched_curr_lazy(cpu);
            } else if shorter {
                self.shorten_protection(q, se);
            }
            return;
        }
        if shorter
            && self.entity_eligible(q, pse)
            && (self.deadline_before(pse, se) || !self.entity_eligible(q, se))
        {
            self.cancel_protection(se);
        }
        if self.pick_eevdf(q, true) == pse {
            core.resched_curr_lazy(cpu);
        }
    }

    /// Preempts running `se` if the pick would take `pse`, from 6.19 on.
    fn check_preempt_by_pick(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        (se, pse): (u32, u32),
        shorter: bool,
        wake: Wake,
    ) {
        if !shorter && (wake.is_fork || self.ent(pse).delayed) {
            return;
        }
        let q = self.ent(se).cfs;
        let is_buddy = self.rules.features.next_buddy && !shorter && self.becomes_buddy(q, pse);
        if is_buddy && wake.is_sync {
            // Its account has just been updated, so this is long only if no task counts as
            // cache-hot.
            let ran = core.now.saturating_sub(self.ent(se).exec_start);
            if self.deadline_before(pse, se) && ran >= self.tunables.migration_cost_ns {
                core.resched_curr_lazy(cpu);
            }
            return;
        }
        // Each round but the last completes a delayed dequeue.
        let next = loop {
            let next = self.pick_eevdf(q, !shorter);
            if next == NIL || !self.ent(next).delayed {
                break next;
            }
            self.complete_delayed(core, cpu, next);
            if self.rq(q).nr_queued == 0 {
                break NIL;
            }
        };
        if next != pse {
            self.shorten_protection(q, se);
            return;
        }
        if shorter {
            self.cancel_protection(se);
            self.clear_buddies(se);
        }
        core.resched_curr_lazy(cpu);
    }

    /// Makes `pse` the buddy of its queue, unless that has one with an earlier deadline
    /// (set_preempt_buddy).
    #[cold]
    fn becomes_buddy(&mut self, q: u32, pse: u32) -> bool {
        let next = self.rq(q).next;
        let may = next == NIL || !self.deadline_before(next, pse);
        if may {
            self.set_next_buddy(pse);
        }
        may
    }

    /// Limits the protection of running `e` to the shortest slice in its queue
    /// (update_protect_slice).
    fn shorten_protection(&mut self, q: u32, e: u32) {
        if !self.rules.features.run_to_parity {
            return;
        }
        let least = self.min_slice(q);
        let se = self.ent_mut(e);
        let end = se.vruntime.wrapping_add(calc_delta_fair(least, se.load));
        se.vprot = min_time(se.vprot, end);
    }

    /// Handles a yield of the running `e`.
    pub(super) fn yield_eevdf(&mut self, core: &mut Core, e: u32) {
        let q = self.ent(e).cfs;
        self.update_curr(core, q);
        let forfeits = match self.rules.yield_rule {
            YieldRule::DeadlineOnly => false,
            YieldRule::ForfeitRequest if self.entity_eligible(q, e) => true,
            YieldRule::ForfeitRequest => return,
        };
        let se = self.ent_mut(e);
        if forfeits {
            se.vruntime = se.deadline;
        }
        se.deadline = se.deadline.wrapping_add(calc_delta_fair(se.slice, se.load));
        if forfeits {
            self.update_min_vruntime(q);
        }
    }

    /// Makes a delayed entity runnable again: a delayed sleeper wakes, or its group gets a task. It
    /// loses a positive lag that the sleep would have earned (DELAY_ZERO).
    pub(super) fn requeue_delayed_entity(&mut self, core: &mut Core, e: u32) {
        let q = self.ent(e).cfs;
        let delay_zero = self.rules.features.delay_zero;
        if self.rules.requeue_updates_curr {
            self.update_curr(core, q);
        }
        self.update_entity_lag(core, q, e);
        let moves = if self.rules.delayed_lag_only_rises {
            let se = self.ent(e);
            self.avg_vruntime(q).wrapping_sub(se.vruntime) as i64 != se.vlag
        } else {
            self.ent(e).vlag > 0 && delay_zero
        };
        if moves {
            let is_curr = self.rq(q).curr == e;
            self.rq_mut(q).nr_queued -= 1;
            if !is_curr {
                self.tree_remove(q, e);
            }
            if delay_zero {
                let se = self.ent_mut(e);
                se.vlag = se.vlag.min(0);
            }
            self.place_entity_eevdf(q, e, false);
            if !is_curr {
                self.tree_insert(q, e);
            }
            self.rq_mut(q).nr_queued += 1;
        }
        self.update_load_avg(core.now, q, e, super::load::Change::None);
        self.clear_delayed(e);
    }
}
