// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between Linux 2.6.24 and 2.6.32, as data.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched{,_fair}.c, sched_features.h.

use schedlab_model::Nanos;

/// The rules of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Name of the scheduler.
    pub name: &'static str,
    /// Period on one CPU (ns, sched_latency).
    pub latency: Nanos,
    /// Least slice on one CPU (ns, sched_min_granularity).
    pub min_granularity: Nanos,
    /// Head start of a waking task on one CPU (ns, sched_wakeup_granularity).
    pub wakeup_granularity: Nanos,
    /// Maximum number of CPUs that scale the defaults.
    pub scaling_cpus_max: u32,
    /// Maximum of the scaled latency and least slice (ns).
    pub scaled_max: Nanos,
    /// Weight of SCHED_IDLE.
    pub idle_weight: u64,
    /// Whether the inverse of a sum is computed from the sum plus 1.
    pub inverse_adds_one: bool,
    /// Whether the root group is an entity next to the other groups, instead of the queue that
    /// contains them.
    pub root_is_group: bool,
    /// The rules of 2.6.32. Shares of groups are spread over CPUs, slices shrink level by level,
    /// and there are buddies and averages of wake-ups. Virtual times are relative while a task is
    /// on no queue.
    pub is_later: bool,
    /// Shares of a real-time task in the load of its CPU.
    pub rt_weight: u64,
}

impl Rules {
    /// Linux 2.6.24.
    pub const LINUX_2_6_24: Self = Self {
        name: "linux-2.6.24",
        latency: 20_000_000,
        min_granularity: 4_000_000,
        wakeup_granularity: 10_000_000,
        scaling_cpus_max: u32::MAX,
        scaled_max: 200_000_000,
        idle_weight: 2,
        inverse_adds_one: false,
        root_is_group: true,
        is_later: false,
        rt_weight: super::weights::RT_WEIGHT,
    };

    /// Linux 2.6.32.
    pub const LINUX_2_6_32: Self = Self {
        name: "linux-2.6.32",
        latency: 5_000_000,
        min_granularity: 1_000_000,
        wakeup_granularity: 1_000_000,
        scaling_cpus_max: 8,
        scaled_max: Nanos::MAX,
        idle_weight: 3,
        inverse_adds_one: true,
        root_is_group: false,
        is_later: true,
        rt_weight: 0,
    };

    /// Factor of default times on a machine (`sched_init_granularity`, `update_sysctl`).
    pub const fn scaling(&self, nr_cpus: u32) -> u64 {
        let most = self.scaling_cpus_max;
        let cpus = if nr_cpus > most { most } else { nr_cpus };
        1 + cpus.ilog2() as u64
    }
}
