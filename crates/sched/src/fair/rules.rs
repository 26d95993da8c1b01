// SPDX-License-Identifier: MIT OR Apache-2.0
//! What distinguishes one kernel version's fair class from another's, as data.
//!
//! Source: Linux kernel/sched/fair.c and features.h of the versions named.

use super::features::Features;
use super::weights::LoadWeight;
use crate::balance::{BalanceFeatures, BalanceRules};
use crate::boundary::hrtick::HrtickRule;
use schedlab_model::Nanos;

/// Which algorithm orders a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// Least virtual runtime first; slices from a latency target (up to 6.5).
    Cfs,
    /// Earliest eligible virtual deadline first, tree ordered by virtual runtime (6.6 to 6.11).
    EevdfByVruntime,
    /// Earliest eligible virtual deadline first, tree ordered by deadline (6.12 and later).
    EevdfByDeadline,
}

/// What a task gives up by sched_yield under EEVDF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum YieldRule {
    /// Its deadline moves on by one slice.
    DeadlineOnly,
    /// If eligible it gives up the rest of its request: its virtual runtime becomes its deadline.
    ForfeitRequest,
}

/// How long the running entity is protected from others under EEVDF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// Until its deadline moves, while it is eligible (6.6).
    WhileEligible,
    /// The same, and once it is neither protected nor eligible it is rescheduled (6.12).
    RescheduleIneligible,
    /// For the shortest slice in its queue (6.18).
    ShortestSlice,
}

/// When a waking task preempts under EEVDF, between entities of equal idleness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wakeup {
    /// If the pick by deadline, which ignores buddies, would take it (to 6.18).
    ByDeadline,
    /// If the pick itself would take it; on the way delayed dequeues are completed. A new task
    /// never preempts, unless its slice is shorter. A running task that continues is protected for
    /// no longer than the shortest slice in its queue (6.19, 7.0; completion 7.1).
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

/// How a group that has used up its cpu.max is kept from running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Throttling {
    /// The group's entity leaves the queue above (to 6.17).
    Queues,
    /// Each task leaves when it is to return to user mode (6.18 and later).
    Tasks,
}

/// What changing the weight of a queued entity does to its place under EEVDF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reweight {
    /// Lag and distance to the deadline are scaled around the average (to 6.12.10).
    Scale,
    /// The entity is placed again with its scaled lag (6.12.11 to 6.18).
    Place,
    /// Lag and the distances to deadline and end of protection are scaled around the average
    /// (7.1).
    ScaleAll,
}

/// One version's rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Features that can be turned off.
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
    /// sched_yield.
    pub yield_rule: YieldRule,
    /// Protection of the running entity.
    pub protection: Protection,
    /// Only a pick starts a protection; else a change of attributes of the running task does, too
    /// (to 6.18).
    pub only_picks_protect: bool,
    /// Wake-up preemption.
    pub wakeup: Wakeup,
    /// Bound of lag.
    pub lag_limit: LagLimit,
    /// Whether a delayed sleeper falls no further behind than it was when it fell asleep.
    pub delayed_lag_only_rises: bool,
    /// Exact divisions, and averages with undiminished weights.
    pub exact_arithmetic: bool,
    /// Weight changes.
    pub reweight: Reweight,
    /// A group without tasks on a CPU keeps its weight there.
    pub group_keeps_weight_when_empty: bool,
    /// A CPU's part of a group's load is refreshed at most once a millisecond.
    pub tg_load_rate_limited: bool,
    /// Load balancing does not count delayed sleepers (later releases of 6.12).
    pub counts_runnable_only: bool,
    /// The high-resolution tick, with the feature HRTICK.
    pub hrtick: HrtickRule,
    /// Bandwidth control.
    pub throttling: Throttling,
    /// The periods of bandwidth control begin at a random time (6.6 and later), not at multiples
    /// of the period.
    pub random_period_offset: bool,
    /// Rules of placement and load balancing.
    pub balance: BalanceRules,
}

impl Rules {
    /// CFS as in 6.1.
    pub const LINUX_6_1: Self = Self {
        algorithm: Algorithm::Cfs,
        features: Features::DEFAULT,
        base_slice_ns: 0,
        place_rel_deadline: false,
        preempt_short: false,
        delay_dequeue: false,
        pick_buddy: true,
        custom_slice: false,
        yield_rule: YieldRule::DeadlineOnly,
        protection: Protection::WhileEligible,
        only_picks_protect: false,
        wakeup: Wakeup::ByDeadline,
        lag_limit: LagLimit::OwnSlice,
        delayed_lag_only_rises: false,
        exact_arithmetic: false,
        reweight: Reweight::Scale,
        group_keeps_weight_when_empty: false,
        tg_load_rate_limited: false,
        counts_runnable_only: false,
        hrtick: HrtickRule::LINUX_6_1,
        throttling: Throttling::Queues,
        random_period_offset: false,
        balance: BalanceRules::LINUX_6_1,
    };
    /// EEVDF as in 6.6.
    pub const LINUX_6_6: Self = Self {
        algorithm: Algorithm::EevdfByVruntime,
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
    /// EEVDF as in the later point releases of 6.12 (6.12.63).
    pub const LINUX_6_12: Self = Self {
        base_slice_ns: 700_000,
        pick_buddy: true,
        yield_rule: YieldRule::ForfeitRequest,
        reweight: Reweight::Place,
        group_keeps_weight_when_empty: true,
        counts_runnable_only: true,
        ..Self::LINUX_6_12_0
    };
    /// EEVDF as in 6.18.
    pub const LINUX_6_18: Self = Self {
        protection: Protection::ShortestSlice,
        throttling: Throttling::Tasks,
        balance: BalanceRules::LINUX_6_18,
        ..Self::LINUX_6_12
    };
    /// EEVDF as in 7.1.
    pub const LINUX_7_1: Self = Self {
        features: Features { balance: BalanceFeatures::LINUX_7_1, ..Features::DEFAULT },
        only_picks_protect: true,
        wakeup: Wakeup::ByPick,
        lag_limit: LagLimit::LongestSlice,
        delayed_lag_only_rises: true,
        exact_arithmetic: true,
        reweight: Reweight::ScaleAll,
        hrtick: HrtickRule::LINUX_7_1,
        balance: BalanceRules::LINUX_7_1,
        ..Self::LINUX_6_18
    };
    /// EEVDF as in 7.2, on an architecture that rearms timers late.
    pub const LINUX_7_2: Self =
        Self { features: Features { hrtick: true, ..Self::LINUX_7_1.features }, ..Self::LINUX_7_1 };

    /// A weight with the arithmetic of this version.
    #[inline]
    pub(super) const fn weight_of(&self, load: LoadWeight) -> LoadWeight {
        if self.exact_arithmetic { load.exact() } else { load }
    }

    /// Whether the rules are those of EEVDF.
    pub const fn is_eevdf(&self) -> bool {
        !matches!(self.algorithm, Algorithm::Cfs)
    }
}
