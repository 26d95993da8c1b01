// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling attributes of a task, as in `sched_setattr(2)` and the files of its control group.

use crate::{CgroupId, CpuMask, Nanos, ids::ROOT_CGROUP};

/// Scheduling policy, with the kernel's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
#[cfg_attr(feature = "borsh", borsh(use_discriminant = true))]
#[repr(u8)]
pub enum Policy {
    /// SCHED_OTHER / SCHED_NORMAL.
    #[default]
    Normal = 0,
    /// SCHED_FIFO.
    Fifo = 1,
    /// SCHED_RR.
    Rr = 2,
    /// SCHED_BATCH.
    Batch = 3,
    /// SCHED_IDLE.
    Idle = 5,
    /// SCHED_DEADLINE.
    Deadline = 6,
    /// SCHED_EXT.
    Ext = 7,
}

impl Policy {
    /// The name as rt-app and the manual pages write it, without `SCHED_`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "OTHER",
            Self::Fifo => "FIFO",
            Self::Rr => "RR",
            Self::Batch => "BATCH",
            Self::Idle => "IDLE",
            Self::Deadline => "DEADLINE",
            Self::Ext => "EXT",
        }
    }

    /// Whether the policy belongs to the real-time class (FIFO or RR).
    pub const fn is_rt(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }

    /// Whether the policy belongs to the fair class (OTHER, BATCH or IDLE).
    pub const fn is_fair(self) -> bool {
        matches!(self, Self::Normal | Self::Batch | Self::Idle)
    }
}

/// Parameters of SCHED_DEADLINE, times in nanoseconds: runtime <= deadline <= period.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct DeadlineParams {
    /// Budget per period.
    pub runtime_ns: Nanos,
    /// Relative deadline.
    pub deadline_ns: Nanos,
    /// Period.
    pub period_ns: Nanos,
    /// SCHED_FLAG_RECLAIM: it may use the bandwidth that other DEADLINE tasks leave unused (GRUB).
    pub reclaim: bool,
}

/// Scheduling attributes of one task, as set by `sched_setattr(2)`, `sched_setaffinity(2)` and the
/// files of its control group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct SchedAttr {
    /// Policy.
    pub policy: Policy,
    /// Nice value, -20 (most weight) to 19; used by the fair policies.
    pub nice: i8,
    /// `sched_priority`, 1 to 99 (99 is the most important) for FIFO and RR, else 0.
    pub rt_priority: u8,
    /// Custom slice (ns) of a fair task (kernel 6.12 and later); `None`: the scheduler's default.
    pub slice_ns: Option<Nanos>,
    /// Least utilisation that the frequency governor assumes for the task, 0 to 1024
    /// (`sched_util_min`, kernel 5.3 and later); `None`: the system's default.
    pub util_min: Option<u16>,
    /// Greatest utilisation that the governor assumes for the task, 0 to 1024 (`sched_util_max`);
    /// `None`: the system's default.
    pub util_max: Option<u16>,
    /// SCHED_DEADLINE parameters.
    pub deadline: DeadlineParams,
    /// CPUs the task may use; `None` is every CPU of the machine.
    pub affinity: Option<CpuMask>,
    /// Control group the task is in.
    pub cgroup: CgroupId,
}

impl Default for SchedAttr {
    fn default() -> Self {
        Self {
            policy: Policy::Normal,
            nice: 0,
            rt_priority: 0,
            slice_ns: None,
            util_min: None,
            util_max: None,
            deadline: DeadlineParams::default(),
            affinity: None,
            cgroup: ROOT_CGROUP,
        }
    }
}

impl SchedAttr {
    /// The kernel's internal priority: lower is more important.
    /// -1 DEADLINE, 0..=98 real-time, 100..=139 fair.
    pub fn kernel_prio(&self) -> i32 {
        match self.policy {
            Policy::Deadline => -1,
            Policy::Fifo | Policy::Rr => 99 - i32::from(self.rt_priority),
            _ => 120 + i32::from(self.nice),
        }
    }
}
