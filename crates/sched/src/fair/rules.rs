// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between kernel versions in the fair class, as data.
//!
//! Source: Linux kernel/sched/fair.c and features.h of the versions named.

use super::features::Features;
use super::timeline::Timeline;
use super::weights::LoadWeight;
use crate::balance::{BalanceFeatures, BalanceRules};
use crate::boundary::hrtick::HrtickRule;
use schedlab_model::Nanos;

/// The algorithm that orders a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// Least virtual runtime first; slices from a latency target (up to 6.5).
    Cfs,
    /// Earliest eligible virtual deadline first, tree ordered by virtual runtime (6.6 to 6.11).
    EevdfByVruntime,
    /// Earliest eligible virtual deadline first, tree ordered by deadline (6.12 and later).
    EevdfByDeadline,
}

/// What a task loses by sched_yield under EEVDF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum YieldRule {
    /// Its deadline advances by one slice.
    DeadlineOnly,
    /// If eligible it gives up the rest of its request: its virtual runtime becomes its deadline.
    ForfeitRequest,
}

/// How long the running entity is protected from others under EEVDF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// Until its deadline moves, while it is eligible (6.6).
    WhileEligible,
    /// As `WhileEligible`; an entity that is neither protected nor eligible is then rescheduled
    /// (6.12).
    RescheduleIneligible,
    /// For the shortest slice in its queue (6.18).
    ShortestSlice,
}

/// When a waking task preempts under EEVDF, between entities of equal idleness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wakeup {
    /// If the pick by deadline, which ignores buddies, would take it (to 6.18).
    ByDeadline,
    /// If the pick itself would take it, after completing delayed dequeues on the way. A new task
    /// never preempts, unless its slice is shorter. A running task that continues is protected for
    /// at most the shortest slice in its queue (6.19, 7.0; completion 7.1).
    ByPick,
}

/// Greatest lag, as real time, that an entity keeps under EEVDF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LagLimit {
    /// Twice its slice, or a tick if that is longer (to 6.18).
    OwnSlice,
    /// The longest slice in its queue and a tick (6.19 and later).
    LongestSlice,
}

/// How a group without remaining cpu.max time is kept from running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Throttling {
    /// The group's entity leaves the queue above (to 6.17).
    Queues,
    /// Each task leaves when it is to return to user mode (6.18 and later).
    Tasks,
}

/// How a change of weight affects the place of a queued entity under EEVDF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reweight {
    /// Lag and distance to the deadline are scaled around the average (to 6.12, all releases).
    Scale,
    /// The entity is placed again with its scaled lag (6.13 to 7.0, and 6.18 up to 6.18.44). This
    /// counts the running entity twice and enlarges its lag, so that others can starve. Commit
    /// 101f3498b4bd removed the rule.
    Place,
    /// Lag and the distances to deadline and end of protection are scaled around the average
    /// (7.1, 6.18.45).
    ScaleAll,
    /// The virtual runtime stays, so the lag in service time changes with the weight (6.6 up to
    /// 6.6-rc; commit eab03c23c2a1 of 6.7 mended it).
    KeepVruntime,
}

/// A bug of the fair class that no modelled version has. [`crate::bugs`] describes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FairBug {
    /// The lag of an entity that leaves is taken when it no longer counts.
    LagAfterDequeue,
    /// A running group is not told that its quota is used up.
    QuotaNotTaken,
    /// A group whose dequeue is delayed gets the least slice of an empty queue.
    SliceOfEmptyGroup,
    /// The least virtual runtime is not renewed after a change of the running entity's weight.
    StaleMinVruntime,
    /// A queue of one is rescheduled if its CPU has other tasks.
    LoneRescheduled,
    /// A group whose dequeue is delayed counts as a delayed task.
    DelayedGroupCounted,
    /// A throttled queue gets what it owes and nothing more.
    UnthrottledWithNothing,
    /// The lag is not scaled when a task becomes SCHED_IDLE.
    IdleNotRescaled,
    /// A migration reads as a long sleep.
    MigrationForgives,
    /// A group's new slice does not reach the tree.
    SliceNotCarriedUp,
    /// The pick goes right although the earliest deadline is on the left.
    PickMissesLeft,
    /// The average for a change of weight is taken when the queued entity no longer counts.
    AverageWithoutIt,
    /// A negative average is rounded towards 0.
    RoundsTowardsZero,
    /// A group whose dequeue is delayed is not put back when its queue is unthrottled.
    UnthrottledOverDelayed,
    /// The burst of a group is a thousandth of what was written.
    BurstDivided,
}

/// The rules of one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Switchable features.
    pub features: Features,
    /// Slice before scaling (EEVDF).
    pub base_slice_ns: Nanos,
    /// Deadlines survive requeues as distances (PLACE_REL_DEADLINE).
    pub place_rel_deadline: bool,
    /// A waking entity with a shorter slice overrides protection (PREEMPT_SHORT).
    pub preempt_short: bool,
    /// Sleepers with negative lag stay queued until picked (DELAY_DEQUEUE, DELAY_ZERO).
    pub delay_dequeue: bool,
    /// The buddy of a queue is picked before all others if eligible (PICK_BUDDY).
    pub pick_buddy: bool,
    /// Custom slices of tasks, and of groups from their members.
    pub custom_slice: bool,
    /// Rule of sched_yield.
    pub yield_rule: YieldRule,
    /// Protection of the running entity.
    pub protection: Protection,
    /// Whether only a pick starts a protection. Otherwise a change of the running task's attributes
    /// does too (up to 6.18).
    pub only_picks_protect: bool,
    /// Whether the lag and the end of the protection share their memory, so that a change of the
    /// running entity's weight ends its protection (up to 6.18.44).
    pub lag_ends_protection: bool,
    /// Wake-up preemption.
    pub wakeup: Wakeup,
    /// Limit of lag.
    pub lag_limit: LagLimit,
    /// Whether a delayed sleeper falls no further behind than it was when it fell asleep.
    pub delayed_lag_only_rises: bool,
    /// Whether a delayed sleeper that wakes finds the running entity's virtual runtime up to date
    /// (`update_curr` in `requeue_delayed_entity`; in 7.2.13, not in 6.12.117). Otherwise that is
    /// as of the last tick or pick, and its lag too small.
    pub requeue_updates_curr: bool,
    /// Whether divisions are exact and averages use full weights.
    pub exact_arithmetic: bool,
    /// Rule of weight changes.
    pub reweight: Reweight,
    /// Whether a waking task of another policy ends the protection of a running SCHED_IDLE task
    /// (6.15, and later releases of 6.12; commit f553741ac8c0).
    pub idle_loses_protection: bool,
    /// Whether a group without tasks on a CPU keeps its weight there.
    pub group_keeps_weight_when_empty: bool,
    /// Whether a CPU's part of a group's load is updated at most once a millisecond.
    pub tg_load_rate_limited: bool,
    /// Whether load balancing ignores delayed sleepers (later releases of 6.12).
    pub counts_runnable_only: bool,
    /// Rule of the high-resolution tick, with the feature HRTICK.
    pub hrtick: HrtickRule,
    /// Rule of bandwidth control.
    pub throttling: Throttling,
    /// Whether a group is throttled when its time is charged, and the running task leaves as it
    /// returns to user mode, unless it is to be rescheduled ("Unify cfs_rq throttling via
    /// account_cfs_rq_runtime", May 2026; in 7.2.12, not in 7.0). Otherwise the next pick does it.
    pub throttles_when_charged: bool,
    /// Whether the periods of bandwidth control begin at a random time (6.6 and later), instead of
    /// at multiples of the period.
    pub random_period_offset: bool,
    /// Rules of placement and load balancing.
    pub balance: BalanceRules,
    /// A bug that the version does not have.
    pub bug: Option<FairBug>,
}

impl Rules {
    /// CFS as in 6.1.
    pub const LINUX_6_1: Self = Self {
        algorithm: Algorithm::Cfs,
        features: Features { balance: BalanceFeatures::LINUX_7_0, ..Features::DEFAULT },
        base_slice_ns: 0,
        place_rel_deadline: false,
        preempt_short: false,
        delay_dequeue: false,
        pick_buddy: true,
        custom_slice: false,
        yield_rule: YieldRule::DeadlineOnly,
        protection: Protection::WhileEligible,
        only_picks_protect: false,
        lag_ends_protection: false,
        wakeup: Wakeup::ByDeadline,
        lag_limit: LagLimit::OwnSlice,
        delayed_lag_only_rises: false,
        requeue_updates_curr: false,
        exact_arithmetic: false,
        reweight: Reweight::Scale,
        idle_loses_protection: false,
        group_keeps_weight_when_empty: false,
        tg_load_rate_limited: false,
        counts_runnable_only: false,
        hrtick: HrtickRule::LINUX_6_1,
        throttling: Throttling::Queues,
        throttles_when_charged: false,
        random_period_offset: false,
        balance: BalanceRules::LINUX_6_1,
        bug: None,
    };
    /// EEVDF as in 6.6.
    pub const LINUX_6_6: Self = Self {
        algorithm: Algorithm::EevdfByVruntime,
        features: Features::DEFAULT,
        base_slice_ns: 750_000,
        pick_buddy: false,
        hrtick: HrtickRule::LINUX_6_6,
        tg_load_rate_limited: true,
        random_period_offset: true,
        ..Self::LINUX_6_1
    };
    /// EEVDF as in 6.12.0.
    pub const LINUX_6_12_0: Self = Self {
        algorithm: Algorithm::EevdfByDeadline,
        place_rel_deadline: true,
        preempt_short: true,
        delay_dequeue: true,
        custom_slice: true,
        protection: Protection::RescheduleIneligible,
        hrtick: HrtickRule::LINUX_6_12,
        balance: BalanceRules::LINUX_6_12,
        ..Self::LINUX_6_6
    };
    /// EEVDF as in the later point releases of 6.12 (6.12.65).
    pub const LINUX_6_12: Self = Self {
        features: Features { balance: BalanceFeatures::LINUX_7_0, ..Features::DEFAULT },
        base_slice_ns: 700_000,
        pick_buddy: true,
        yield_rule: YieldRule::ForfeitRequest,
        idle_loses_protection: true,
        group_keeps_weight_when_empty: true,
        counts_runnable_only: true,
        ..Self::LINUX_6_12_0
    };
    /// EEVDF as in 6.18 up to 6.18.44.
    pub const LINUX_6_18_44: Self = Self {
        reweight: Reweight::Place,
        protection: Protection::ShortestSlice,
        lag_ends_protection: true,
        throttling: Throttling::Tasks,
        balance: BalanceRules::LINUX_6_18,
        ..Self::LINUX_6_12
    };
    /// EEVDF as in 6.18.45 and later.
    pub const LINUX_6_18: Self =
        Self { reweight: Reweight::ScaleAll, lag_ends_protection: false, ..Self::LINUX_6_18_44 };
    /// EEVDF as in 7.1.
    pub const LINUX_7_1: Self = Self {
        features: Features { balance: BalanceFeatures::LINUX_7_1, ..Features::DEFAULT },
        only_picks_protect: true,
        wakeup: Wakeup::ByPick,
        lag_limit: LagLimit::LongestSlice,
        delayed_lag_only_rises: true,
        exact_arithmetic: true,
        hrtick: HrtickRule::LINUX_7_1,
        balance: BalanceRules::LINUX_7_1,
        ..Self::LINUX_6_18
    };
    /// EEVDF as in 7.2, on an architecture that rearms timers late.
    pub const LINUX_7_2: Self = Self {
        features: Features { hrtick: true, ..Self::LINUX_7_1.features },
        requeue_updates_curr: true,
        throttles_when_charged: true,
        ..Self::LINUX_7_1
    };

    /// A weight with the arithmetic of this version.
    #[inline]
    pub(super) const fn weight_of(&self, load: LoadWeight) -> LoadWeight {
        if self.exact_arithmetic { load.exact() } else { load }
    }

    /// Whether they have `bug`.
    #[inline]
    pub(super) fn has(&self, bug: FairBug) -> bool {
        self.bug == Some(bug)
    }

    /// An empty queue of waiting entities.
    pub(super) fn timeline(&self) -> Timeline {
        let has_longest = self.lag_limit == LagLimit::LongestSlice;
        let shape_counts = self.algorithm != Algorithm::EevdfByDeadline;
        Timeline::new(self.is_eevdf(), has_longest, shape_counts)
    }

    /// Whether the rules are those of EEVDF.
    pub const fn is_eevdf(&self) -> bool {
        !matches!(self.algorithm, Algorithm::Cfs)
    }
}
