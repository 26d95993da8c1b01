// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of the kernel's scheduler that tasks may set.

use super::SchedFeature;

/// A file of /sys/kernel/debug/sched, or a sysctl.
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
    /// CPU time that a CPU takes at once from what a group's cpu.max leaves.
    BandwidthSlice,
    /// Most CPU time of real-time tasks in each period; [`SchedTunable::NO_LIMIT`]: all of it.
    RtRuntime,
    /// Period of that.
    RtPeriod,
    /// A feature: 1 switches it on, 0 off.
    Feature(SchedFeature),
}

const DEBUGFS: &str = "/sys/kernel/debug/sched/";
const SYSCTL: &str = "/proc/sys/kernel/";

/// Greatest number of us that a sysctl takes (INT_MAX).
const SYSCTL_MAX_NS: u64 = i32::MAX as u64 * 1_000;

impl SchedTunable {
    /// Every tunable but the features.
    pub const ALL: [Self; 9] = [
        Self::BaseSlice,
        Self::Latency,
        Self::MinGranularity,
        Self::WakeupGranularity,
        Self::MigrationCost,
        Self::NrMigrate,
        Self::BandwidthSlice,
        Self::RtRuntime,
        Self::RtPeriod,
    ];

    /// The value of [`SchedTunable::RtRuntime`] that means no limit: -1 in the kernel's file.
    pub const NO_LIMIT: u64 = u64::MAX;

    /// Name in workloads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BaseSlice => "base_slice",
            Self::Latency => "latency",
            Self::MinGranularity => "min_granularity",
            Self::WakeupGranularity => "wakeup_granularity",
            Self::MigrationCost => "migration_cost",
            Self::NrMigrate => "nr_migrate",
            Self::BandwidthSlice => "cfs_bandwidth_slice",
            Self::RtRuntime => "rt_runtime",
            Self::RtPeriod => "rt_period",
            Self::Feature(feature) => feature.name(),
        }
    }

    /// Name of the tunable of a modelled scheduler.
    pub const fn model_name(self) -> &'static str {
        match self {
            Self::BandwidthSlice => "sched_cfs_bandwidth_slice_us",
            other => other.name(),
        }
    }

    /// The directory of the kernel's file, and its name.
    pub const fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::BaseSlice => (DEBUGFS, "base_slice_ns"),
            Self::Latency => (DEBUGFS, "latency_ns"),
            Self::MinGranularity => (DEBUGFS, "min_granularity_ns"),
            Self::WakeupGranularity => (DEBUGFS, "wakeup_granularity_ns"),
            Self::MigrationCost => (DEBUGFS, "migration_cost_ns"),
            Self::NrMigrate => (DEBUGFS, "nr_migrate"),
            Self::BandwidthSlice => (SYSCTL, "sched_cfs_bandwidth_slice_us"),
            Self::RtRuntime => (SYSCTL, "sched_rt_runtime_us"),
            Self::RtPeriod => (SYSCTL, "sched_rt_period_us"),
            Self::Feature(_) => (DEBUGFS, "features"),
        }
    }

    /// What is written to the kernel's file for `value`.
    pub fn text(self, value: u64) -> String {
        match self {
            Self::RtRuntime if value == Self::NO_LIMIT => "-1".into(),
            Self::BandwidthSlice | Self::RtRuntime | Self::RtPeriod => (value / 1_000).to_string(),
            Self::Feature(feature) if value == 0 => format!("NO_{}", feature.name()),
            Self::Feature(feature) => feature.name().into(),
            _ => value.to_string(),
        }
    }

    /// Whether its values are times (ns); otherwise they are numbers.
    pub const fn is_time(self) -> bool {
        !matches!(self, Self::NrMigrate | Self::Feature(_))
    }

    /// Least and greatest value, apart from [`SchedTunable::NO_LIMIT`].
    pub const fn range(self) -> (u64, u64) {
        match self {
            Self::BaseSlice | Self::Latency | Self::MinGranularity => (100_000, 1_000_000_000),
            Self::WakeupGranularity | Self::MigrationCost => (0, 1_000_000_000),
            Self::NrMigrate => (1, 1_024),
            Self::BandwidthSlice => (1_000, 1_000_000_000),
            Self::RtRuntime => (0, SYSCTL_MAX_NS),
            Self::RtPeriod => (1_000, SYSCTL_MAX_NS),
            Self::Feature(_) => (0, 1),
        }
    }

    /// The step of its values: the unit (ns) of the kernel's file, or 1.
    pub const fn step(self) -> u64 {
        match self {
            Self::BandwidthSlice | Self::RtRuntime | Self::RtPeriod => 1_000,
            _ => 1,
        }
    }

    /// Whether the kernel's file takes `value`.
    ///
    /// # Errors
    /// What is allowed.
    pub fn check(self, value: u64) -> Result<(), String> {
        let (least, most) = self.range();
        let is_no_limit = self == Self::RtRuntime && value == Self::NO_LIMIT;
        if is_no_limit || ((least..=most).contains(&value) && value.is_multiple_of(self.step())) {
            return Ok(());
        }
        let step = match self.step() {
            1 => String::new(),
            step => format!(" in steps of {step}"),
        };
        let name = self.name();
        Err(format!("tunable {name} is {value}, allowed are {least} to {most}{step}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_get_their_units() {
        assert_eq!(SchedTunable::RtRuntime.text(950_000_000), "950000");
        assert_eq!(SchedTunable::RtRuntime.text(SchedTunable::NO_LIMIT), "-1");
        assert_eq!(SchedTunable::BaseSlice.text(3_000_000), "3000000");
        let parity = SchedTunable::Feature(SchedFeature::RunToParity);
        assert_eq!([parity.text(0), parity.text(1)], ["NO_RUN_TO_PARITY", "RUN_TO_PARITY"]);
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused() {
        use SchedTunable::{BandwidthSlice, RtPeriod, RtRuntime};
        assert_eq!(RtRuntime.check(SchedTunable::NO_LIMIT), Ok(()));
        assert!(RtPeriod.check(SchedTunable::NO_LIMIT).is_err());
        assert_eq!(BandwidthSlice.check(5_000_000), Ok(()));
        let odd = BandwidthSlice.check(5_000_001).unwrap_err();
        assert!(odd.ends_with("allowed are 1000 to 1000000000 in steps of 1000"), "{odd}");
        assert!(SchedTunable::Feature(SchedFeature::RunToParity).check(2).is_err());
    }
}
