// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduler features: the switches of /sys/kernel/debug/sched/features, in kernels built with
//! CONFIG_SCHED_DEBUG.
//!
//! Source: Linux kernel/sched/features.h of 6.1.158, 6.6, 6.12.63, 6.18.2, 7.1.5, 7.2, and where
//! fair.c uses them. Features without effect here are refused by name
//! ([`crate::boundary::tunable_names`]). Those of real-time and deadline tasks are with their
//! classes.

use super::rules::{Protection, Rules};
use crate::balance::BalanceFeatures;
use crate::boundary::options::{Options, Tunable, TunableKind};

const fn feature(name: &'static str, text: &'static str) -> Tunable {
    Tunable::new(name, TunableKind::words(&["no", "yes"]), 1, text)
}

/// A feature that is off when the kernel boots.
const fn off(name: &'static str, text: &'static str) -> Tunable {
    Tunable::new(name, TunableKind::words(&["no", "yes"]), 0, text)
}

const HRTICK: Tunable = off("HRTICK", "feature: a timer ends slices between ticks, if others wait");
const WAKEUP_PREEMPTION: Tunable =
    feature("WAKEUP_PREEMPTION", "feature: a waking task may preempt the running one");
const NEXT_BUDDY: Tunable =
    off("NEXT_BUDDY", "feature: the task that woke last is picked next if that is fair");
const RUN_TO_PARITY: Tunable =
    feature("RUN_TO_PARITY", "feature: a picked task is protected until its request is done");
const PLACE_LAG: Tunable = feature("PLACE_LAG", "feature: a task that comes keeps its lag");

/// Features of CFS (6.1).
pub const CFS: &[Tunable] = &[
    feature("GENTLE_FAIR_SLEEPERS", "feature: a sleeper gains half of the latency, else all of it"),
    feature("START_DEBIT", "feature: a new task starts one slice behind"),
    NEXT_BUDDY,
    feature("LAST_BUDDY", "feature: a task preempted by a wake-up on a full queue runs next"),
    WAKEUP_PREEMPTION,
    HRTICK,
    off("DOUBLE_TICK", "feature: ticks end slices, too, while HRTICK's timer is under way"),
    feature(
        "ALT_PERIOD",
        "feature: the period grows with all fair tasks of the CPU, else a group's",
    ),
    feature("BASE_SLICE", "feature: no slice is shorter than the minimum granularity"),
];

/// Features of EEVDF in 6.6.
pub const EEVDF_6_6: &[Tunable] =
    &[PLACE_LAG, RUN_TO_PARITY, NEXT_BUDDY, WAKEUP_PREEMPTION, HRTICK];

/// Features of EEVDF from 6.12.0 on.
pub const EEVDF_6_12: &[Tunable] = &[
    PLACE_LAG,
    feature("PLACE_DEADLINE_INITIAL", "feature: a new task's first deadline is half a slice away"),
    feature("PLACE_REL_DEADLINE", "feature: deadlines survive a move as distances"),
    RUN_TO_PARITY,
    feature("PREEMPT_SHORT", "feature: a waking task with a shorter slice ends protection"),
    NEXT_BUDDY,
    feature("DELAY_DEQUEUE", "feature: a sleeper with negative lag stays queued"),
    feature("DELAY_ZERO", "feature: a sleeper that stayed queued keeps no positive lag"),
    WAKEUP_PREEMPTION,
    HRTICK,
];

/// The feature that later releases of 6.12 added.
pub const PICK_BUDDY: &[Tunable] =
    &[feature("PICK_BUDDY", "feature: an eligible buddy is picked before all others")];

/// Features of placement and balancing that all versions have.
pub const BALANCE: &[Tunable] = &[
    feature("CACHE_HOT_BUDDY", "feature: the buddy of a queue counts as cache-hot"),
    feature("WA_IDLE", "feature: idle CPUs decide whether a task wakes on the waker's CPU"),
    feature("WA_WEIGHT", "feature: loads do, where idle CPUs do not"),
    feature("WA_BIAS", "feature: the load of the previous CPU counts for some percent more"),
    feature("SIS_UTIL", "feature: the busier a cache, the fewer of its CPUs a wake-up looks at"),
    off("LB_MIN", "feature: balancing leaves tasks of a load below 16, until it has failed"),
];

/// The feature of CPUs about to go idle, from 7.0, 6.12.65 and 6.1.160 on.
pub const NI_RANDOM: &[Tunable] =
    &[feature("NI_RANDOM", "feature: a CPU about to go idle looks around as often as that helps")];

/// What 7.1 adds to it.
pub const NI_RATE: &[Tunable] =
    &[feature("NI_RATE", "feature: and the more often, the rarer it is about to go idle")];

/// Features that do not replace another rule of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// GENTLE_FAIR_SLEEPERS.
    pub gentle_fair_sleepers: bool,
    /// START_DEBIT.
    pub start_debit: bool,
    /// LAST_BUDDY.
    pub last_buddy: bool,
    /// WAKEUP_PREEMPTION.
    pub wakeup_preemption: bool,
    /// PLACE_LAG.
    pub place_lag: bool,
    /// PLACE_DEADLINE_INITIAL.
    pub place_deadline_initial: bool,
    /// RUN_TO_PARITY.
    pub run_to_parity: bool,
    /// HRTICK.
    pub hrtick: bool,
    /// DOUBLE_TICK.
    pub double_tick: bool,
    /// NEXT_BUDDY.
    pub next_buddy: bool,
    /// ALT_PERIOD.
    pub alt_period: bool,
    /// BASE_SLICE.
    pub base_slice: bool,
    /// DELAY_ZERO.
    pub delay_zero: bool,
    /// Features of balancing.
    pub balance: BalanceFeatures,
}

impl Features {
    /// Defaults of kernels at boot.
    pub const DEFAULT: Self = Self {
        gentle_fair_sleepers: true,
        start_debit: true,
        last_buddy: true,
        wakeup_preemption: true,
        place_lag: true,
        place_deadline_initial: true,
        run_to_parity: true,
        hrtick: false,
        double_tick: false,
        next_buddy: false,
        alt_period: true,
        base_slice: true,
        delay_zero: true,
        balance: BalanceFeatures::DEFAULT,
    };
}

impl Rules {
    /// Applies the features that `options` turn on or off. Features that a version lacks are not
    /// declared there and stay unchanged.
    pub fn with_features(mut self, options: &Options) -> Self {
        let on = |name: &str| options.iter().all(|(known, value)| known != name || value == 1);
        let is_set = |name: &str| options.iter().any(|(known, value)| known == name && value == 1);
        let had = self.features.balance;
        self.features = Features {
            gentle_fair_sleepers: on("GENTLE_FAIR_SLEEPERS"),
            start_debit: on("START_DEBIT"),
            last_buddy: on("LAST_BUDDY"),
            wakeup_preemption: on("WAKEUP_PREEMPTION"),
            place_lag: on("PLACE_LAG"),
            place_deadline_initial: on("PLACE_DEADLINE_INITIAL"),
            run_to_parity: on("RUN_TO_PARITY"),
            hrtick: is_set("HRTICK"),
            double_tick: is_set("DOUBLE_TICK"),
            next_buddy: is_set("NEXT_BUDDY"),
            alt_period: on("ALT_PERIOD"),
            base_slice: on("BASE_SLICE"),
            delay_zero: on("DELAY_ZERO"),
            balance: BalanceFeatures {
                cache_hot_buddy: on("CACHE_HOT_BUDDY"),
                wa_idle: on("WA_IDLE"),
                wa_weight: on("WA_WEIGHT"),
                wa_bias: on("WA_BIAS"),
                sis_util: on("SIS_UTIL"),
                lb_min: is_set("LB_MIN"),
                ni_random: had.ni_random && on("NI_RANDOM"),
                ni_rate: had.ni_rate && on("NI_RATE"),
            },
        };
        self.place_rel_deadline &= on("PLACE_REL_DEADLINE");
        self.delay_dequeue &= on("DELAY_DEQUEUE");
        self.pick_buddy &= on("PICK_BUDDY");
        // Up to 6.12.0 the pick itself checks NEXT_BUDDY before it looks at buddies.
        let asks_itself = self.is_eevdf() && options.iter().all(|(known, _)| known != "PICK_BUDDY");
        self.pick_buddy |= asks_itself && is_set("NEXT_BUDDY");
        if !on("PREEMPT_SHORT") {
            self.preempt_short = false;
            // The check of 6.12's tick (did_preempt_short) is part of the feature.
            if self.protection == Protection::RescheduleIneligible {
                self.protection = Protection::WhileEligible;
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    /// Turning a feature over changes only that feature, and every feature changes something.
    #[test]
    fn features_are_as_in_the_kernel_unless_turned_over() {
        let late: &[&[Tunable]] = &[EEVDF_6_12, PICK_BUDDY, BALANCE];
        let newest: &[&[Tunable]] = &[EEVDF_6_12, PICK_BUDDY, BALANCE, NI_RANDOM, NI_RATE];
        let all: [(&str, Rules, &[&[Tunable]]); 8] = [
            ("linux-6.1", Rules::LINUX_6_1, &[CFS, BALANCE]),
            ("linux-6.6", Rules::LINUX_6_6, &[EEVDF_6_6, BALANCE]),
            ("linux-6.12.0", Rules::LINUX_6_12_0, &[EEVDF_6_12, BALANCE]),
            ("linux-6.12", Rules::LINUX_6_12, late),
            ("linux-6.18.44", Rules::LINUX_6_18_44, late),
            ("linux-6.18", Rules::LINUX_6_18, late),
            ("linux-7.1", Rules::LINUX_7_1, newest),
            ("linux-7.2", Rules::LINUX_7_2, newest),
        ];
        for (name, rules, tables) in all {
            let tunables = &registry::find(name).expect("it is in the registry").tunables;
            let defaults = Options::defaults(tunables);
            assert_eq!(rules.with_features(&defaults), rules, "{name}");
            for feature in tables.iter().copied().flatten() {
                let mut options = defaults.clone();
                let declared = tunables.iter().find(|t| t.name == feature.name);
                let default = declared.expect("the scheduler has it").default;
                options.set(tunables, &feature.name, 1 - default).unwrap();
                assert_ne!(rules.with_features(&options), rules, "{name} {}", feature.name);
            }
        }
    }
}
