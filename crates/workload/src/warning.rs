// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings of the reader of rt-app's files. Results contain them too, and are also read where no
//! workload file exists.

/// What a warning of the reader is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarningKind {
    /// `calibration`: has no effect, because lanes calibrate themselves.
    Calibration,
    /// Logs, ftrace marks and plots: have no effect, because schedlab records its own trace.
    Logging,
    /// `lock_pages`, `frag`: no lane supports them.
    Unused,
    /// `nodes_membind`, `ref` of a `memrun`: memory belongs to no node and to no other task.
    Memory,
    /// `io_device`: the lane chooses the device.
    IoDevice,
    /// `resources`: rt-app itself creates resources where they are used.
    Resources,
    /// A key that has no effect under the task's policy.
    PolicyIgnores,
    /// A custom slice outside the kernel's range.
    SliceClamped,
    /// Some of the CPUs do not exist on the machine.
    CpusAbsent,
    /// An event key with a suffix that looks like a spelling mistake.
    OddSuffix,
    /// `delay` of a task that is also forked: forked instances ignore it.
    ForkIgnoresDelay,
}

impl WarningKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Calibration,
        Self::Logging,
        Self::Unused,
        Self::Memory,
        Self::IoDevice,
        Self::Resources,
        Self::PolicyIgnores,
        Self::SliceClamped,
        Self::CpusAbsent,
        Self::OddSuffix,
        Self::ForkIgnoresDelay,
    ];

    /// Short name for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Calibration => "calibration-ignored",
            Self::Logging => "logging-ignored",
            Self::Unused => "setting-unused",
            Self::Memory => "memory-placement-ignored",
            Self::IoDevice => "io-device-ignored",
            Self::Resources => "resources-ignored",
            Self::PolicyIgnores => "policy-ignores-key",
            Self::SliceClamped => "slice-clamped",
            Self::CpusAbsent => "cpus-absent",
            Self::OddSuffix => "odd-suffix",
            Self::ForkIgnoresDelay => "fork-ignores-delay",
        }
    }
}
