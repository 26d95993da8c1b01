// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of the kernel's scheduler that tasks may set.

/// A file of /sys/kernel/debug/sched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum SchedTunable {
    /// Slice of EEVDF.
    BaseSlice,
    /// Period of CFS.
    Latency,
    /// Least slice of CFS.
    MinGranularity,
    /// Head start that a waking task must have, CFS.
    WakeupGranularity,
    /// How long a task that ran counts as cache-hot.
    MigrationCost,
    /// Most tasks that one attempt of the load balancer examines.
    NrMigrate,
}

impl SchedTunable {
    /// Every tunable.
    pub const ALL: [Self; 6] = [
        Self::BaseSlice,
        Self::Latency,
        Self::MinGranularity,
        Self::WakeupGranularity,
        Self::MigrationCost,
        Self::NrMigrate,
    ];

    /// Name in workloads, and of the tunable of a modelled scheduler.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BaseSlice => "base_slice",
            Self::Latency => "latency",
            Self::MinGranularity => "min_granularity",
            Self::WakeupGranularity => "wakeup_granularity",
            Self::MigrationCost => "migration_cost",
            Self::NrMigrate => "nr_migrate",
        }
    }

    /// Name of the kernel's file.
    pub const fn file(self) -> &'static str {
        match self {
            Self::BaseSlice => "base_slice_ns",
            Self::Latency => "latency_ns",
            Self::MinGranularity => "min_granularity_ns",
            Self::WakeupGranularity => "wakeup_granularity_ns",
            Self::MigrationCost => "migration_cost_ns",
            Self::NrMigrate => "nr_migrate",
        }
    }

    /// Whether its values are times (ns); otherwise they are numbers.
    pub const fn is_time(self) -> bool {
        !matches!(self, Self::NrMigrate)
    }

    /// Least and greatest value: up to a second, or 1024 tasks.
    pub const fn range(self) -> (u64, u64) {
        match self {
            Self::BaseSlice | Self::Latency | Self::MinGranularity => (100_000, 1_000_000_000),
            Self::WakeupGranularity | Self::MigrationCost => (0, 1_000_000_000),
            Self::NrMigrate => (1, 1_024),
        }
    }
}
