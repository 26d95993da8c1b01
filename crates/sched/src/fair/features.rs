// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduler features: the switches of /sys/kernel/debug/sched/features, which kernels built with
//! CONFIG_SCHED_DEBUG let one turn.
//!
//! Source: Linux kernel/sched/features.h of 6.1.158, 6.6, 6.12.63, 6.18.2, 7.1.5, 7.2, and where
//! fair.c asks for them. Left out: those of load balancing and of real-time tasks, NEXT_BUDDY, and
//! DELAY_ZERO apart from DELAY_DEQUEUE.

use super::rules::{Protection, Rules};
use crate::options::{Options, Tunable, TunableKind};

const fn feature(name: &'static str, text: &'static str) -> Tunable {
    Tunable { name, kind: TunableKind::Choice(&["no", "yes"]), default: 1, text }
}

/// One that is off when the kernel boots.
const fn off(name: &'static str, text: &'static str) -> Tunable {
    Tunable { default: 0, ..feature(name, text) }
}

const HRTICK: Tunable = off("HRTICK", "feature: a timer ends slices between ticks, if others wait");
const WAKEUP_PREEMPTION: Tunable =
    feature("WAKEUP_PREEMPTION", "feature: a waking task may preempt the running one");
const RUN_TO_PARITY: Tunable =
    feature("RUN_TO_PARITY", "feature: a picked task is protected until its request is done");
const PLACE_LAG: Tunable = feature("PLACE_LAG", "feature: a task that comes keeps its lag");

/// Features of CFS (6.1).
pub const CFS: &[Tunable] = &[
    feature("GENTLE_FAIR_SLEEPERS", "feature: a sleeper gains half of the latency, else all of it"),
    feature("START_DEBIT", "feature: a new task starts one slice behind"),
    feature("LAST_BUDDY", "feature: a task preempted by a wake-up on a full queue runs next"),
    WAKEUP_PREEMPTION,
    HRTICK,
    off("DOUBLE_TICK", "feature: ticks end slices, too, while HRTICK's timer is under way"),
];

/// Features of EEVDF in 6.6.
pub const EEVDF_6_6: &[Tunable] = &[PLACE_LAG, RUN_TO_PARITY, WAKEUP_PREEMPTION, HRTICK];

/// Features of EEVDF from 6.12.0 on.
pub const EEVDF_6_12: &[Tunable] = &[
    PLACE_LAG,
    feature("PLACE_DEADLINE_INITIAL", "feature: a new task's first deadline is half a slice away"),
    feature("PLACE_REL_DEADLINE", "feature: deadlines survive a move as distances"),
    RUN_TO_PARITY,
    feature("PREEMPT_SHORT", "feature: a waking task with a shorter slice ends protection"),
    feature("DELAY_DEQUEUE", "feature: a sleeper with negative lag stays queued"),
    WAKEUP_PREEMPTION,
    HRTICK,
];

/// The feature that later releases of 6.12 added.
pub const PICK_BUDDY: &[Tunable] =
    &[feature("PICK_BUDDY", "feature: an eligible buddy is picked before all others")];

/// Features that no other rule of a version stands for.
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
}

impl Features {
    /// As kernels have them when they boot.
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
    };
}

impl Rules {
    /// These rules with the features that `options` turn on or off. What a version does not have is
    /// not declared there and stays as it is.
    pub(crate) fn with_features(mut self, options: &Options) -> Self {
        let on = |name: &str| options.iter().all(|(known, value)| known != name || value == 1);
        let is_set = |name: &str| options.iter().any(|(known, value)| known == name && value == 1);
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
        };
        self.place_rel_deadline &= on("PLACE_REL_DEADLINE");
        self.delay_dequeue &= on("DELAY_DEQUEUE");
        self.pick_buddy &= on("PICK_BUDDY");
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

    /// Only what is turned off changes, and every feature changes something.
    #[test]
    fn features_are_as_in_the_kernel_unless_turned_off() {
        for (name, rules) in [
            ("linux-6.1", Rules::LINUX_6_1),
            ("linux-6.6", Rules::LINUX_6_6),
            ("linux-6.12.0", Rules::LINUX_6_12_0),
            ("linux-6.12", Rules::LINUX_6_12),
            ("linux-6.18", Rules::LINUX_6_18),
            ("linux-7.1", Rules::LINUX_7_1),
            ("linux-7.2", Rules::LINUX_7_2),
        ] {
            let tunables = registry::find(name).expect("it is in the registry").tunables;
            let defaults = Options::defaults(tunables);
            assert_eq!(rules.with_features(&defaults), rules, "{name}");
            // Those of the deadline class are not for these rules.
            let is_fair = |t: &&Tunable| t.text.starts_with("feature: ") && t.name != "HRTICK_DL";
            let features = tunables.iter().filter(is_fair);
            let mut found = 0;
            for feature in features {
                let mut options = defaults.clone();
                options.set(tunables, feature.name, 1 - feature.default).unwrap();
                assert_ne!(rules.with_features(&options), rules, "{name} {}", feature.name);
                found += 1;
            }
            let expected = match name {
                "linux-6.1" => CFS.len(),
                "linux-6.6" => EEVDF_6_6.len(),
                "linux-6.12.0" => EEVDF_6_12.len(),
                _ => EEVDF_6_12.len() + 1,
            };
            assert_eq!(found, expected, "{name}");
        }
    }
}
