// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the reader of rt-app's files warns of. Results name these too, and are read where no file
//! is.

/// What a warning of the reader is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarningKind {
    /// `calibration`: lanes calibrate themselves.
    Calibration,
    /// Logs, ftrace marks and plots: schedlab records a trace of its own.
    Logging,
    /// `lock_pages`, `frag`: no lane has anything for it.
    Unused,
    /// `nodes_membind`, `ref` of a `memrun`: memory belongs to no node and to no other task.
    Memory,
    /// `io_device`: the lane chooses the device.
    IoDevice,
    /// `resources`: rt-app itself creates resources where they are used.
    Resources,
    /// A key that the task's policy does not look at.
    PolicyIgnores,
    /// A custom slice outside what the kernel takes.
    SliceClamped,
    /// CPUs that the machine does not have, beside others that it has.
    CpusAbsent,
    /// An event key with a suffix that looks like a slip of the pen.
    OddSuffix,
    /// `delay` of a task that is also forked.
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
