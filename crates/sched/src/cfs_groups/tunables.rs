// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables: the files of /proc/sys/kernel, and the bits of sched_features, which are a sum of
//! numbers in 2.6.24 and words since then.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sysctl.c, kernel/sched{,_fair}.c, sched_features.h. A
//! time of 0 means the kernel's own default, scaled by the number of CPUs.

use super::rules::Rules;
use crate::boundary::options::{Options, Tunable, TunableKind};
use schedlab_model::Nanos;
use schedlab_model::time::NSEC_PER_SEC;

const fn time(name: &'static str, default: Nanos, text: &'static str) -> Tunable {
    Tunable::new(name, TunableKind::Time { min: 0, max: NSEC_PER_SEC }, default, text)
}

const fn switch(name: &'static str, on: bool, text: &'static str) -> Tunable {
    Tunable::new(name, TunableKind::words(&["no", "yes"]), on as u64, text)
}

const LATENCY: Tunable = time(
    "sched_latency",
    0,
    "period in which every task of a short queue runs once; 0: 20 ms (2.6.32: 5 ms), scaled",
);
const MIN_GRANULARITY: Tunable =
    time("sched_min_granularity", 0, "least slice; 0: 4 ms (2.6.32: 1 ms), scaled");
const WAKEUP_GRANULARITY: Tunable = time(
    "sched_wakeup_granularity",
    0,
    "virtual time by which a waking task must be behind the running one to preempt it; 0: 10 ms \
     (2.6.32: 1 ms, at most), scaled",
);
const BATCH_WAKEUP_GRANULARITY: Tunable = time(
    "sched_batch_wakeup_granularity",
    0,
    "the same for SCHED_BATCH; 2.6.24 has the file but reads it nowhere: they do not preempt",
);
const MIGRATION_COST: Tunable = time(
    "sched_migration_cost",
    500_000,
    "a task that ran less long ago than this is cache-hot and not moved",
);
const NR_MIGRATE: Tunable = Tunable::new(
    "sched_nr_migrate",
    TunableKind::Count { min: 1, max: 1024 },
    32,
    "most tasks that one balancing looks at (the kernel looks at one more)",
);
const CHILD_RUNS_FIRST: &str = "whether the child of a fork runs before its parent";
const COMPAT_YIELD: Tunable = switch(
    "sched_compat_yield",
    false,
    "whether sched_yield goes behind all others, as under the schedulers before CFS",
);
const SHARES_RATELIMIT: Tunable = time(
    "sched_shares_ratelimit",
    0,
    "least time between two distributions of the shares of groups over the CPUs of a domain; 0: \
     0.25 ms, scaled",
);
const SHARES_THRESH: Tunable = Tunable::new(
    "sched_shares_thresh",
    TunableKind::Count { min: 0, max: 1 << 18 },
    4,
    "by how much the shares of a group on a CPU must differ to be changed",
);
const USER_GROUPS: Tunable = Tunable::new(
    "group_basis",
    TunableKind::words(&["cgroup", "user"]),
    0,
    "what the groups of a workload are: control groups (CONFIG_FAIR_CGROUP_SCHED), or users \
           (CONFIG_FAIR_USER_SCHED), where root, the root group, has twice the shares",
);

const SYNC_WAKEUPS: Tunable = switch(
    "sync_wakeups",
    false,
    "whether a waker's hint that it is about to sleep counts; the modelled pipes and sockets are \
     those of recent kernels, whose every write gives it; in this kernel only one that blocks did",
);

const FEATURES_2_6_24: Tunable = Tunable::new(
    "sched_features",
    TunableKind::Count { min: 0, max: 31 },
    7,
    "sum of feature bits: 1 sleepers are credited (NEW_FAIR_SLEEPERS), 2 a waking task may \
           preempt (WAKEUP_PREEMPT), 4 a new task waits for a slice (START_DEBIT), 8 tasks are \
           placed between the first and the last (TREE_AVG), 16 half a slice later (APPROX_AVG)",
);

/// Tunables of 2.6.24.
pub const TUNABLES_2_6_24: &[Tunable] = &[
    LATENCY,
    MIN_GRANULARITY,
    WAKEUP_GRANULARITY,
    BATCH_WAKEUP_GRANULARITY,
    MIGRATION_COST,
    NR_MIGRATE,
    switch("sched_child_runs_first", true, CHILD_RUNS_FIRST),
    COMPAT_YIELD,
    USER_GROUPS,
    SYNC_WAKEUPS,
    FEATURES_2_6_24,
];

/// Tunables of 2.6.32.
pub const TUNABLES_2_6_32: &[Tunable] = &[
    LATENCY,
    MIN_GRANULARITY,
    WAKEUP_GRANULARITY,
    MIGRATION_COST,
    NR_MIGRATE,
    switch("sched_child_runs_first", false, CHILD_RUNS_FIRST),
    COMPAT_YIELD,
    SHARES_RATELIMIT,
    SHARES_THRESH,
    switch("FAIR_SLEEPERS", true, "feature: a sleeper is credited up to sched_latency"),
    switch("GENTLE_FAIR_SLEEPERS", true, "feature: half of that"),
    switch("NORMALIZED_SLEEPER", false, "feature: the credit is divided by the weight"),
    switch("START_DEBIT", true, "feature: a new task waits for one slice"),
    switch("WAKEUP_PREEMPT", true, "feature: a waking task may preempt"),
    switch(
        "ADAPTIVE_GRAN",
        true,
        "feature: the wakeup granularity is less for tasks that soon wake others",
    ),
    switch("ASYM_GRAN", true, "feature: it is divided by the weight of the waking task"),
    switch("WAKEUP_SYNC", false, "feature: a synchronous wake-up always preempts"),
    switch("WAKEUP_OVERLAP", false, "feature: tasks that do not overlap always preempt"),
    switch("WAKEUP_RUNNING", false, "feature: a task that runs for shorter preempts"),
    switch("SYNC_WAKEUPS", true, "feature: a waker's hint that it is about to sleep counts"),
    switch("AFFINE_WAKEUPS", true, "feature: a waking task may come to the CPU of its waker"),
    switch("SYNC_LESS", true, "feature: the hint does not count for tasks that overlap"),
    switch("SYNC_MORE", false, "feature: it is assumed of tasks that do not"),
    switch("NEXT_BUDDY", false, "feature: the task that was woken last is preferred"),
    switch("LAST_BUDDY", true, "feature: the task that was preempted last is preferred"),
    switch("CACHE_HOT_BUDDY", true, "feature: such tasks are cache-hot"),
    switch("LB_BIAS", true, "feature: balancing rather sees too little of an imbalance"),
    switch("LB_SHARES_UPDATE", true, "feature: choosing a CPU distributes shares of groups"),
    switch("ASYM_EFF_LOAD", true, "feature: the load that leaves a CPU is not scaled by shares"),
];

/// Bits of sched_features, each with its names in both versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's own list of switches")]
pub struct Features {
    /// FAIR_SLEEPERS, NEW_FAIR_SLEEPERS.
    pub fair_sleepers: bool,
    /// GENTLE_FAIR_SLEEPERS.
    pub gentle_fair_sleepers: bool,
    /// NORMALIZED_SLEEPER.
    pub normalized_sleeper: bool,
    /// START_DEBIT.
    pub start_debit: bool,
    /// TREE_AVG.
    pub tree_avg: bool,
    /// APPROX_AVG.
    pub approx_avg: bool,
    /// WAKEUP_PREEMPT.
    pub wakeup_preempt: bool,
    /// ADAPTIVE_GRAN.
    pub adaptive_gran: bool,
    /// ASYM_GRAN.
    pub asym_gran: bool,
    /// WAKEUP_SYNC.
    pub wakeup_sync: bool,
    /// WAKEUP_OVERLAP.
    pub wakeup_overlap: bool,
    /// WAKEUP_RUNNING.
    pub wakeup_running: bool,
    /// SYNC_WAKEUPS; 2.6.24 does not have it.
    pub sync_wakeups: bool,
    /// AFFINE_WAKEUPS.
    pub affine_wakeups: bool,
    /// SYNC_LESS.
    pub sync_less: bool,
    /// SYNC_MORE.
    pub sync_more: bool,
    /// NEXT_BUDDY.
    pub next_buddy: bool,
    /// LAST_BUDDY.
    pub last_buddy: bool,
    /// CACHE_HOT_BUDDY.
    pub cache_hot_buddy: bool,
    /// LB_BIAS.
    pub lb_bias: bool,
    /// LB_SHARES_UPDATE.
    pub lb_shares_update: bool,
    /// ASYM_EFF_LOAD.
    pub asym_eff_load: bool,
}

/// Values in force, scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Values {
    /// Period.
    pub latency: Nanos,
    /// Least slice.
    pub min_granularity: Nanos,
    /// Head start of a waking task.
    pub wakeup_granularity: Nanos,
    /// Tasks beyond which the period grows (sched_nr_latency).
    pub nr_latency: u64,
    /// How long a task stays cache-hot.
    pub migration_cost: Nanos,
    /// Maximum number of tasks that one balancing attempt examines.
    pub nr_migrate: u32,
    /// Whether a child runs first.
    pub child_runs_first: bool,
    /// Whether sched_yield moves the task after all others.
    pub compat_yield: bool,
    /// Time between two distributions of shares.
    pub shares_ratelimit: Nanos,
    /// Least change of shares.
    pub shares_thresh: u64,
    /// Shares of the root group, if it is an entity next to other groups.
    pub root_shares: u64,
    /// Feature bits.
    pub features: Features,
}

impl Values {
    /// The values of `options` for `rules` on `nr_cpus`. Features unknown to a version are off.
    pub fn new(rules: &Rules, options: &Options, nr_cpus: u32) -> Self {
        let declared =
            |name: &str| options.iter().find(|(n, _)| *n == name).map_or(0, |(_, value)| value);
        let factor = rules.scaling(nr_cpus);
        let value = |tunable: &Tunable, default: Nanos, most: Nanos| match declared(&tunable.name) {
            0 => (default * factor).min(most),
            set => set,
        };
        let latency = value(&LATENCY, rules.latency, rules.scaled_max);
        let min_granularity = value(&MIN_GRANULARITY, rules.min_granularity, rules.scaled_max);
        let written = declared(&LATENCY.name) != 0 || declared(&MIN_GRANULARITY.name) != 0;
        let on = |name: &str| declared(name) == 1;
        Self {
            latency,
            min_granularity,
            wakeup_granularity: value(&WAKEUP_GRANULARITY, rules.wakeup_granularity, Nanos::MAX),
            // Writing either file recomputes it (`sched_nr_latency_handler`).
            nr_latency: if written { latency.div_ceil(min_granularity) } else { 5 },
            migration_cost: declared(&MIGRATION_COST.name),
            nr_migrate: declared(&NR_MIGRATE.name) as u32,
            child_runs_first: on("sched_child_runs_first"),
            compat_yield: on(&COMPAT_YIELD.name),
            shares_ratelimit: value(&SHARES_RATELIMIT, 250_000, Nanos::MAX),
            shares_thresh: declared(&SHARES_THRESH.name),
            root_shares: if on(&USER_GROUPS.name) { 2048 } else { 1024 },
            features: Features::new(rules, on, declared(&FEATURES_2_6_24.name)),
        }
    }
}

impl Features {
    /// Reads words, or the sum `bits` of the features that 2.6.24 has.
    fn new(rules: &Rules, on: impl Fn(&str) -> bool, bits: u64) -> Self {
        let bit = |value: u64| bits & value != 0;
        Self {
            fair_sleepers: on("FAIR_SLEEPERS") || bit(1),
            gentle_fair_sleepers: on("GENTLE_FAIR_SLEEPERS"),
            normalized_sleeper: on("NORMALIZED_SLEEPER"),
            start_debit: on("START_DEBIT") || bit(4),
            tree_avg: bit(8),
            approx_avg: bit(16),
            wakeup_preempt: on("WAKEUP_PREEMPT") || bit(2),
            adaptive_gran: on("ADAPTIVE_GRAN"),
            asym_gran: on("ASYM_GRAN"),
            wakeup_sync: on("WAKEUP_SYNC"),
            wakeup_overlap: on("WAKEUP_OVERLAP"),
            wakeup_running: on("WAKEUP_RUNNING"),
            sync_wakeups: on("SYNC_WAKEUPS") || on(&SYNC_WAKEUPS.name),
            affine_wakeups: !rules.is_later || on("AFFINE_WAKEUPS"),
            sync_less: on("SYNC_LESS"),
            sync_more: on("SYNC_MORE"),
            next_buddy: on("NEXT_BUDDY"),
            last_buddy: on("LAST_BUDDY"),
            cache_hot_buddy: on("CACHE_HOT_BUDDY"),
            lb_bias: !rules.is_later || on("LB_BIAS"),
            lb_shares_update: on("LB_SHARES_UPDATE"),
            asym_eff_load: on("ASYM_EFF_LOAD"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::time::NSEC_PER_MSEC as MS;

    fn values(rules: &Rules, nr_cpus: u32) -> Values {
        let tunables = if rules.is_later { TUNABLES_2_6_32 } else { TUNABLES_2_6_24 };
        Values::new(rules, &Options::defaults(tunables), nr_cpus)
    }

    #[test]
    fn section_5_5_constants_of_2_6_24_by_number_of_cpus() {
        let found = |cpus| {
            let v = values(&Rules::LINUX_2_6_24, cpus);
            assert_eq!((v.nr_latency, v.migration_cost, v.nr_migrate), (5, MS / 2, 32));
            assert!(v.child_runs_first && !v.compat_yield);
            [v.latency, v.min_granularity, v.wakeup_granularity].map(|time| time / MS)
        };
        assert_eq!(found(1), [20, 4, 10]);
        assert_eq!(found(2), [40, 8, 20]);
        assert_eq!(found(4), [60, 12, 30]);
        assert_eq!(found(8), [80, 16, 40]);
        assert_eq!(found(1024), [200, 44, 110]);
        let features = values(&Rules::LINUX_2_6_24, 1).features;
        assert!(features.fair_sleepers && features.wakeup_preempt && features.start_debit);
        assert!(!features.tree_avg && !features.approx_avg && !features.last_buddy);
    }

    #[test]
    fn section_5_6_constants_of_2_6_32_by_number_of_cpus() {
        let found = |cpus| {
            let v = values(&Rules::LINUX_2_6_32, cpus);
            assert_eq!(v.shares_ratelimit, 250_000 * Rules::LINUX_2_6_32.scaling(cpus));
            assert!(!v.child_runs_first && v.nr_latency == 5 && v.shares_thresh == 4);
            [v.latency, v.min_granularity, v.wakeup_granularity].map(|time| time / MS)
        };
        assert_eq!(found(1), [5, 1, 1]);
        assert_eq!(found(2), [10, 2, 2]);
        assert_eq!(found(8), [20, 4, 4]);
        assert_eq!(found(64), [20, 4, 4]);
        let features = values(&Rules::LINUX_2_6_32, 1).features;
        assert!(features.gentle_fair_sleepers && !features.normalized_sleeper);
        assert!(features.last_buddy && !features.next_buddy && features.adaptive_gran);
    }

    #[test]
    fn a_written_file_is_not_scaled_and_computes_nr_latency_anew() {
        let mut options = Options::defaults(TUNABLES_2_6_24);
        options.set(TUNABLES_2_6_24, "sched_latency", 30 * MS).unwrap();
        options.set(TUNABLES_2_6_24, "sched_min_granularity", 7 * MS).unwrap();
        let v = Values::new(&Rules::LINUX_2_6_24, &options, 4);
        assert_eq!((v.latency, v.min_granularity, v.nr_latency), (30 * MS, 7 * MS, 5));
        assert_eq!(v.wakeup_granularity, 30 * MS, "not written: scaled");
    }
}
