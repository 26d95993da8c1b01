// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of the fair class: the files of /sys/kernel/debug/sched/, with the kernel's defaults.
//!
//! Source: Linux kernel/sched/fair.c (sysctl_sched_*, get_update_sysctl_factor, update_sysctl), 6.1
//! and 6.12. A time of 0 means the kernel's own default, scaled by the number of CPUs.

use super::rules::Rules;
use crate::boundary::options::{Options, Tunable, TunableKind};
use schedlab_model::Nanos;
use schedlab_model::time::{NSEC_PER_SEC, NSEC_PER_USEC};

const SCALING_WORDS: &[&str] = &["none", "log", "linear"];

const fn time(name: &'static str, default: Nanos, text: &'static str) -> Tunable {
    Tunable::new(name, TunableKind::Time { min: 0, max: NSEC_PER_SEC }, default, text)
}

/// How times grow with the number of CPUs (tunable_scaling).
pub const SCALING: Tunable = Tunable::new(
    "tunable_scaling",
    TunableKind::words(SCALING_WORDS),
    1,
    "how default times grow with the number of CPUs, at most 8: none, 1 + log2, or linear",
);

/// Number of CPUs for the scaling.
pub const SCALING_CPUS: Tunable = Tunable::new(
    "scaling_cpus",
    TunableKind::Count { min: 0, max: 1024 },
    0,
    "number of CPUs by which default times are scaled; 0: the machine's own",
);

/// How long a task that ran counts as cache-hot (migration_cost_ns).
pub const MIGRATION_COST: Tunable = time(
    "migration_cost",
    500_000,
    "a task that ran less long ago than this counts as cache-hot and is not moved",
);

/// Maximum number of tasks that one balancing attempt examines (nr_migrate).
pub const NR_MIGRATE: Tunable = Tunable::new(
    "nr_migrate",
    TunableKind::Count { min: 1, max: 1024 },
    32,
    "most tasks that one load balancing looks at",
);

/// Period of CFS (latency_ns).
pub const LATENCY: Tunable =
    time("latency", 0, "period in which every task of a short queue runs once; 0: 6 ms, scaled");

/// Least slice of CFS (min_granularity_ns).
pub const MIN_GRANULARITY: Tunable = time("min_granularity", 0, "least slice; 0: 0.75 ms, scaled");

/// Least slice of SCHED_IDLE tasks when other tasks are runnable (idle_min_granularity_ns).
pub const IDLE_MIN_GRANULARITY: Tunable = time(
    "idle_min_granularity",
    0,
    "least slice of SCHED_IDLE tasks beside other tasks; 0: 0.75 ms, never scaled",
);

/// Head start that a waking task must have (wakeup_granularity_ns).
pub const WAKEUP_GRANULARITY: Tunable = time(
    "wakeup_granularity",
    0,
    "virtual time that a waking task must be behind the running one to preempt it; 0: 1 ms, scaled",
);

/// Whether the child of a fork runs before its parent (child_runs_first).
pub const CHILD_RUNS_FIRST: Tunable = Tunable::new(
    "child_runs_first",
    TunableKind::words(&["no", "yes"]),
    0,
    "whether the child of a fork runs before its parent",
);

/// Slice of EEVDF (base_slice_ns).
pub const BASE_SLICE: Tunable = time(
    "base_slice",
    0,
    "slice of a task without a custom one; 0: 0.70 ms (0.75 ms up to 6.12.0), scaled",
);

/// CPU time that a queue takes from its group's pool at once (sched_cfs_bandwidth_slice_us).
pub const BANDWIDTH_SLICE_US: Tunable = Tunable::new(
    "sched_cfs_bandwidth_slice_us",
    TunableKind::Count { min: 1, max: 1_000_000 },
    5_000,
    "CPU time in us that a CPU takes at once from what a group's cpu.max leaves",
);

/// Whether the tasks of a session are a group (sched_autogroup_enabled).
pub const AUTOGROUP: Tunable = Tunable::new(
    "sched_autogroup_enabled",
    TunableKind::words(&["no", "yes"]),
    0,
    "whether the tasks of a session that are in no control group are a group of their own",
);

/// Whether `options` put each session into a group.
pub fn has_autogroups(options: &Options) -> bool {
    options.iter().any(|(name, value)| name == AUTOGROUP.name && value == 1)
}

/// Tunables of CFS.
pub const CFS: &[Tunable] = &[
    LATENCY,
    MIN_GRANULARITY,
    IDLE_MIN_GRANULARITY,
    WAKEUP_GRANULARITY,
    CHILD_RUNS_FIRST,
    BANDWIDTH_SLICE_US,
    MIGRATION_COST,
    NR_MIGRATE,
    AUTOGROUP,
    SCALING,
    SCALING_CPUS,
];

/// Tunables of EEVDF.
pub const EEVDF: &[Tunable] =
    &[BASE_SLICE, BANDWIDTH_SLICE_US, MIGRATION_COST, NR_MIGRATE, AUTOGROUP, SCALING, SCALING_CPUS];

/// Values in force, scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FairTunables {
    /// Period of CFS.
    pub latency_ns: Nanos,
    /// Least slice of CFS.
    pub min_granularity_ns: Nanos,
    /// Least slice of SCHED_IDLE tasks when other tasks are runnable, CFS.
    pub idle_min_granularity_ns: Nanos,
    /// Head start of a waking task, CFS.
    pub wakeup_granularity_ns: Nanos,
    /// Tasks beyond which the period of CFS grows (sched_nr_latency).
    pub nr_latency: u32,
    /// Whether the child of a fork runs first, CFS.
    pub child_runs_first: bool,
    /// Slice of EEVDF.
    pub base_slice_ns: Nanos,
    /// Slice of EEVDF before scaling (normalized_sysctl_sched_base_slice).
    pub normalized_base_slice_ns: Nanos,
    /// How long a task stays cache-hot.
    pub migration_cost_ns: Nanos,
    /// Maximum number of tasks that one balancing attempt examines.
    pub nr_migrate: u32,
    /// CPU time that a queue takes from its group's pool at once.
    pub bandwidth_slice_ns: Nanos,
}

/// Factor of default times for `nr_cpus` (get_update_sysctl_factor); `scaling` is the index of the
/// word.
pub const fn scaling_factor(scaling: u64, nr_cpus: u32) -> u64 {
    let cpus = if nr_cpus < 1 {
        1
    } else if nr_cpus > 8 {
        8
    } else {
        nr_cpus
    };
    match scaling {
        0 => 1,
        1 => 1 + cpus.ilog2() as u64,
        _ => cpus as u64,
    }
}

impl FairTunables {
    /// The values of `options` for `rules` on `nr_cpus`. A tunable of the other algorithm keeps its
    /// default.
    pub fn new(rules: &Rules, options: &Options, nr_cpus: u32) -> Self {
        let declared =
            |name: &str| options.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
        let scaling_cpus = declared(&SCALING_CPUS.name).unwrap_or(0);
        let cpus = if scaling_cpus == 0 { nr_cpus } else { scaling_cpus as u32 };
        let factor = scaling_factor(declared(&SCALING.name).unwrap_or(SCALING.default), cpus);
        let value = |tunable: &Tunable, default: Nanos| match declared(&tunable.name) {
            None | Some(0) => default,
            Some(set) => set,
        };
        let latency_ns = value(&LATENCY, 6_000_000 * factor);
        let min_granularity_ns = value(&MIN_GRANULARITY, 750_000 * factor);
        let written = declared(&LATENCY.name).unwrap_or(0) != 0
            || declared(&MIN_GRANULARITY.name).unwrap_or(0) != 0;
        // Writing either file recomputes it (sched_update_scaling); otherwise it is 8.
        let nr_latency = if written { latency_ns.div_ceil(min_granularity_ns) as u32 } else { 8 };
        let base_slice_ns = value(&BASE_SLICE, rules.base_slice_ns * factor);
        Self {
            latency_ns,
            min_granularity_ns,
            idle_min_granularity_ns: value(&IDLE_MIN_GRANULARITY, 750_000),
            wakeup_granularity_ns: value(&WAKEUP_GRANULARITY, 1_000_000 * factor),
            nr_latency,
            child_runs_first: declared(&CHILD_RUNS_FIRST.name) == Some(1),
            base_slice_ns,
            normalized_base_slice_ns: base_slice_ns / factor,
            migration_cost_ns: declared(&MIGRATION_COST.name).unwrap_or(MIGRATION_COST.default),
            nr_migrate: declared(&NR_MIGRATE.name).unwrap_or(NR_MIGRATE.default) as u32,
            bandwidth_slice_ns: NSEC_PER_USEC
                * declared(&BANDWIDTH_SLICE_US.name).unwrap_or(BANDWIDTH_SLICE_US.default),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_1_3_tunables_by_number_of_cpus() {
        for (cpus, latency, gran, wakeup) in [
            (1, 6_000_000, 750_000, 1_000_000),
            (2, 12_000_000, 1_500_000, 2_000_000),
            (4, 18_000_000, 2_250_000, 3_000_000),
            (8, 24_000_000, 3_000_000, 4_000_000),
            (64, 24_000_000, 3_000_000, 4_000_000),
        ] {
            let t = FairTunables::new(&Rules::LINUX_6_1, &Options::defaults(CFS), cpus);
            assert_eq!(
                (t.latency_ns, t.min_granularity_ns, t.wakeup_granularity_ns, t.nr_latency),
                (latency, gran, wakeup, 8)
            );
            assert_eq!(t.idle_min_granularity_ns, 750_000);
        }
        assert_eq!(scaling_factor(0, 8), 1);
        assert_eq!(scaling_factor(2, 6), 6);
    }

    #[test]
    fn section_2_1_base_slices() {
        let slice = |rules: &Rules, cpus| {
            FairTunables::new(rules, &Options::defaults(EEVDF), cpus).base_slice_ns
        };
        for (cpus, old, new) in
            [(1, 750_000, 700_000), (2, 1_500_000, 1_400_000), (4, 2_250_000, 2_100_000)]
        {
            assert_eq!(slice(&Rules::LINUX_6_6, cpus), old);
            assert_eq!(slice(&Rules::LINUX_6_12_0, cpus), old);
            assert_eq!(slice(&Rules::LINUX_6_12, cpus), new);
            assert_eq!(slice(&Rules::LINUX_6_18, cpus), new);
        }
        assert_eq!(slice(&Rules::LINUX_6_12, 16), 2_800_000);
    }

    #[test]
    fn a_set_time_is_used_as_it_is() {
        let mut options = Options::defaults(CFS);
        options.set(CFS, "latency", 10_000_000).unwrap();
        options.set(CFS, "min_granularity", 3_000_000).unwrap();
        let t = FairTunables::new(&Rules::LINUX_6_1, &options, 4);
        assert_eq!((t.latency_ns, t.min_granularity_ns, t.nr_latency), (10_000_000, 3_000_000, 4));
    }
}
