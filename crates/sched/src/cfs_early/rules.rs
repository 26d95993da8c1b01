// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between CFS v19 and Linux 2.6.23, as data, and the tunables of both.
//!
//! Source: Linux 2.6.23.17, kernel/sched_fair.c, kernel/sched.c (`sched_init_granularity`),
//! kernel/sysctl.c; CFS v19: kernel/sched_fair.c as it was merged for 2.6.23-rc1. That v19 limits
//! its granularity to 10 ms and has a runtime limit of 4 times that is from memory:
//! `sched_init_granularity` of that time was not found.

use crate::boundary::options::{Options, Tunable, TunableKind};
use schedlab_model::Nanos;
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC};

/// The rules of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Name of the scheduler.
    pub name: &'static str,
    /// Whether the granularity adapts: it is the latency divided by the number of runnable tasks,
    /// and is 0 for a task that has run for its part of the latency. Otherwise it is constant.
    pub adapts: bool,
    /// Whether a whole share of the sleepers' bonus is paid back at each update, without a limit.
    /// Otherwise the payment is at most what the running task is due.
    pub pays_bonus_by_share: bool,
    /// Whether the end of a wait that never began is skipped.
    pub guards_wait: bool,
    /// Whether a fork updates the parent's account.
    pub updates_at_fork: bool,
    /// Right shift by which an inverse weight scales the granularity of a negative nice value. In
    /// v19 it is 10 too high, so such tasks have nearly no granularity.
    pub niced_shift: u32,
    /// Whether sched_yield may move the task to the end of the tree (`sched_compat_yield`), and
    /// does nothing for a task that is alone.
    pub knows_compat_yield: bool,
}

impl Rules {
    /// Linux 2.6.23.
    pub const LINUX_2_6_23: Self = Self {
        name: "linux-2.6.23",
        adapts: true,
        pays_bonus_by_share: false,
        guards_wait: true,
        updates_at_fork: true,
        niced_shift: 22,
        knows_compat_yield: true,
    };

    /// CFS v19.
    pub const CFS_V19: Self = Self {
        name: "cfs-v19",
        adapts: false,
        pays_bonus_by_share: true,
        guards_wait: false,
        updates_at_fork: false,
        niced_shift: 32,
        knows_compat_yield: false,
    };
}

const fn time(name: &'static str, text: &'static str) -> Tunable {
    Tunable::new(name, TunableKind::Time { min: 0, max: NSEC_PER_SEC }, 0, text)
}

const fn switch(name: &'static str, default: u64, text: &'static str) -> Tunable {
    Tunable::new(name, TunableKind::words(&["no", "yes"]), default, text)
}

const fn features(default: u64) -> Tunable {
    Tunable::new(
        "sched_features",
        TunableKind::Count { min: 0, max: 63 },
        default,
        "sum of feature bits: 1 sleepers are credited, 2 by the load that they would have \
               added, 4 as an average over ticks, 8 loads of CPUs are those over a tick, 16 a new \
               task starts with a debit, 32 its first wait does not count",
    )
}

const LATENCY: Tunable =
    time("sched_latency", "time in which every runnable task is to run once; 0: 20 ms, scaled");
const MIN_GRANULARITY: Tunable = time(
    "sched_min_granularity",
    "least granularity, and least bonus of sleepers that is paid back; 0: 2 ms, scaled",
);
const GRANULARITY: Tunable = time(
    "sched_granularity",
    "lead that a waiting task must have over the running one at a tick; 0: 2 ticks, scaled, at \
     most 10 ms",
);
const WAKEUP_GRANULARITY: Tunable = time(
    "sched_wakeup_granularity",
    "lead that a waking task must have to preempt; 0: half of the default granularity",
);
const BATCH_WAKEUP_GRANULARITY: Tunable =
    time("sched_batch_wakeup_granularity", "the same for a waking SCHED_BATCH task; 0: 25 ms");
const BATCH_WAKEUP_GRANULARITY_V19: Tunable =
    time("sched_batch_wakeup_granularity", "the same for a waking SCHED_BATCH task; 0: 10 ticks");
const RUNTIME_LIMIT: Tunable =
    time("sched_runtime_limit", "greatest wait_runtime, either way; 0: the default latency");
const RUNTIME_LIMIT_V19: Tunable = time(
    "sched_runtime_limit",
    "greatest wait_runtime, either way; 0: 4 times the default granularity",
);
const STAT_GRANULARITY: Tunable = time(
    "sched_stat_granularity",
    "accounts are brought up to date only where at least so much has passed",
);
const CHILD_RUNS_FIRST: Tunable =
    switch("sched_child_runs_first", 1, "whether the child of a fork runs before its parent");
const COMPAT_YIELD: Tunable = switch(
    "sched_compat_yield",
    0,
    "whether sched_yield goes behind all others, as under the schedulers before CFS",
);
const SYNC_WAKEUPS: Tunable = switch(
    "sync_wakeups",
    0,
    "whether a synchronous wake-up on the waker's CPU preempts nobody; the modelled pipes and \
     sockets are those of recent kernels, whose every write is synchronous; in this kernel only \
     one that blocks was",
);

/// Tunables of 2.6.23.
pub const TUNABLES: &[Tunable] = &[
    LATENCY,
    MIN_GRANULARITY,
    WAKEUP_GRANULARITY,
    BATCH_WAKEUP_GRANULARITY,
    RUNTIME_LIMIT,
    STAT_GRANULARITY,
    CHILD_RUNS_FIRST,
    COMPAT_YIELD,
    features(FAIR_SLEEPERS | SLEEPER_LOAD_AVG | START_DEBIT),
    SYNC_WAKEUPS,
];

/// Tunables of CFS v19.
pub const TUNABLES_V19: &[Tunable] = &[
    GRANULARITY,
    WAKEUP_GRANULARITY,
    BATCH_WAKEUP_GRANULARITY_V19,
    RUNTIME_LIMIT_V19,
    STAT_GRANULARITY,
    CHILD_RUNS_FIRST,
    features(FAIR_SLEEPERS | SLEEPER_AVG | SLEEPER_LOAD_AVG | PRECISE_CPU_LOAD | START_DEBIT),
    SYNC_WAKEUPS,
];

/// Feature: sleepers get credit (SCHED_FEAT_FAIR_SLEEPERS).
pub const FAIR_SLEEPERS: u64 = 1;
/// Feature: the credit is what the task would have been owed if it had been runnable.
pub const SLEEPER_AVG: u64 = 2;
/// Feature: the computation uses an average load over ticks.
pub const SLEEPER_LOAD_AVG: u64 = 4;
/// Feature: averages of a CPU's load use the load over the whole tick.
pub const PRECISE_CPU_LOAD: u64 = 8;
/// Feature: a new task starts with a debit.
pub const START_DEBIT: u64 = 16;
/// Feature: the first wait of a new task does not count.
pub const SKIP_INITIAL: u64 = 32;

/// Maximum latency and granularity after scaling by the number of CPUs.
const SCALED_MAX: Nanos = 100 * NSEC_PER_MSEC;
const SCALED_MAX_V19: Nanos = 10 * NSEC_PER_MSEC;

/// Values in force, scaled (ns).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Values {
    /// Time in which every task should run once; 0 under v19.
    pub latency: Nanos,
    /// Least granularity; under v19 the only one.
    pub min_granularity: Nanos,
    /// Required lead of a waking task.
    pub wakeup_granularity: Nanos,
    /// Required lead of a waking SCHED_BATCH task.
    pub batch_wakeup_granularity: Nanos,
    /// Greatest `wait_runtime`.
    pub runtime_limit: i64,
    /// Accounts are not updated for less time than this.
    pub stat_granularity: Nanos,
    /// Whether a child runs before its parent.
    pub child_runs_first: bool,
    /// Whether sched_yield moves the task to the end of the tree.
    pub compat_yield: bool,
    /// Whether synchronous wake-ups get special treatment.
    pub sync_wakeups: bool,
    /// Sum of features.
    features: u64,
}

impl Values {
    /// The values of `options` on a machine with `nr_cpus` CPUs.
    pub fn new(rules: &Rules, options: &Options, nr_cpus: u32, hz: u32) -> Self {
        let declared =
            |name: &str| options.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
        let value = |tunable: &Tunable, default: Nanos| match declared(&tunable.name) {
            None | Some(0) => default,
            Some(set) => set,
        };
        let is_set = |tunable: &Tunable| declared(&tunable.name) == Some(1);
        let factor = 1 + u64::from(nr_cpus.max(1).ilog2());
        let tick = NSEC_PER_SEC / u64::from(hz);
        // The limit is fixed at boot, before a user can set another latency.
        let (latency, granularity, limit, batch) = if rules.adapts {
            let latency = (20 * NSEC_PER_MSEC * factor).min(SCALED_MAX);
            let granularity = (2 * NSEC_PER_MSEC * factor).min(SCALED_MAX);
            (latency, granularity, latency, 25 * NSEC_PER_MSEC)
        } else {
            let granularity = (2 * tick * factor).min(SCALED_MAX_V19);
            (0, granularity, 4 * granularity, 10 * tick)
        };
        let least = if rules.adapts { &MIN_GRANULARITY } else { &GRANULARITY };
        Self {
            latency: value(&LATENCY, latency),
            min_granularity: value(least, granularity),
            wakeup_granularity: value(&WAKEUP_GRANULARITY, granularity / 2),
            batch_wakeup_granularity: value(&BATCH_WAKEUP_GRANULARITY, batch),
            runtime_limit: value(&RUNTIME_LIMIT, limit) as i64,
            stat_granularity: value(&STAT_GRANULARITY, 0),
            child_runs_first: is_set(&CHILD_RUNS_FIRST),
            compat_yield: is_set(&COMPAT_YIELD),
            sync_wakeups: is_set(&SYNC_WAKEUPS),
            features: options.get("sched_features"),
        }
    }

    /// Whether a feature is on.
    #[inline]
    pub const fn has(&self, feature: u64) -> bool {
        self.features & feature != 0
    }

    /// The lead that a waiting task needs at a tick, by the number of tasks (`sched_granularity`).
    #[inline]
    pub fn granularity(&self, rules: &Rules, nr_running: u32) -> Nanos {
        let nr = u64::from(nr_running);
        match nr {
            _ if !rules.adapts => self.min_granularity,
            0 | 1 => self.latency,
            _ => (self.latency / nr - self.latency / nr / nr).max(self.min_granularity),
        }
    }

    /// How long a task runs before a lead counts; `None`: no limit.
    #[inline]
    pub fn ideal_runtime(&self, rules: &Rules, nr_running: u32) -> Option<Nanos> {
        let nr = u64::from(nr_running.max(1));
        rules.adapts.then(|| (self.latency / nr).max(self.min_granularity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(nr_cpus: u32) -> Values {
        Values::new(&Rules::LINUX_2_6_23, &Options::defaults(TUNABLES), nr_cpus, 1000)
    }

    #[test]
    fn section_5_3_constants_by_number_of_cpus() {
        let expected = [(1, 20, 2, 1_000), (2, 40, 4, 2_000), (4, 60, 6, 3_000), (8, 80, 8, 4_000)];
        for (nr_cpus, latency, least, wakeup_us) in expected {
            let values = values(nr_cpus);
            assert_eq!(values.latency, latency * NSEC_PER_MSEC, "{nr_cpus} CPUs");
            assert_eq!(values.min_granularity, least * NSEC_PER_MSEC);
            assert_eq!(values.wakeup_granularity, wakeup_us * 1000);
            assert_eq!(values.runtime_limit as u64, values.latency);
            assert_eq!(values.batch_wakeup_granularity, 25 * NSEC_PER_MSEC);
        }
        assert_eq!(values(1024).latency, SCALED_MAX);
        assert_eq!(values(1024).min_granularity, 22 * NSEC_PER_MSEC);
    }

    #[test]
    fn section_5_3_features() {
        let values = values(1);
        assert!([FAIR_SLEEPERS, SLEEPER_LOAD_AVG, START_DEBIT].iter().all(|f| values.has(*f)));
        assert!(![SLEEPER_AVG, PRECISE_CPU_LOAD, SKIP_INITIAL].iter().any(|f| values.has(*f)));
    }

    #[test]
    fn section_5_3_granularity() {
        let values = values(1);
        let rules = Rules::LINUX_2_6_23;
        let granularities = [1, 2, 3, 4, 5, 8, 9, 100].map(|nr| values.granularity(&rules, nr));
        let expected =
            [20_000_000, 5_000_000, 4_444_444, 3_750_000, 3_200_000, 2_187_500, 2_000_000];
        assert_eq!(granularities[..7], expected);
        assert_eq!(granularities[7], 2_000_000);
        let ideals = [1, 2, 3, 20].map(|nr| values.ideal_runtime(&rules, nr).unwrap());
        assert_eq!(ideals, [20_000_000, 10_000_000, 6_666_666, 2_000_000]);
    }

    #[test]
    fn section_5_4_v19_goes_by_the_tick() {
        let v19 = |nr_cpus, hz| {
            Values::new(&Rules::CFS_V19, &Options::defaults(TUNABLES_V19), nr_cpus, hz)
        };
        let in_us = |values: Values| {
            let (limit, batch) = (values.runtime_limit as u64, values.batch_wakeup_granularity);
            let all = [values.min_granularity, values.wakeup_granularity, limit, batch];
            all.map(|ns| ns / 1000)
        };
        assert_eq!(in_us(v19(1, 1000)), [2_000, 1_000, 8_000, 10_000]);
        assert_eq!(in_us(v19(4, 1000)), [6_000, 3_000, 24_000, 10_000]);
        assert_eq!(in_us(v19(1, 250)), [8_000, 4_000, 32_000, 40_000]);
        assert_eq!(in_us(v19(2, 250)), [10_000, 5_000, 40_000, 40_000]);
        let values = v19(1, 1000);
        assert_eq!(values.granularity(&Rules::CFS_V19, 50), 2_000_000);
        assert_eq!(values.ideal_runtime(&Rules::CFS_V19, 2), None);
    }

    #[test]
    fn a_latency_that_is_set_leaves_the_limit_of_boot() {
        let mut options = Options::defaults(TUNABLES);
        options.set(TUNABLES, "sched_latency", 50_000_000).unwrap();
        let values = Values::new(&Rules::LINUX_2_6_23, &options, 1, 1000);
        assert_eq!((values.latency, values.runtime_limit), (50_000_000, 20_000_000));
    }
}
