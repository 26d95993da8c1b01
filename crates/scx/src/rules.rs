// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences between the sched_ext cores of kernels, as data.

use super::consts::{
    EnqBits, OPS_ALLOW_QUEUED_WAKEUP, OPS_ALWAYS_ENQ_IMMED, OPS_BUILTIN_IDLE_PER_NODE,
    OPS_ENQ_EXITING, OPS_ENQ_LAST, OPS_ENQ_MIGRATION_DISABLED, OPS_HAS_CGROUP_WEIGHT,
    OPS_KEEP_BUILTIN_IDLE, OPS_SWITCH_PARTIAL, OPS_TID_TO_TASK,
};
use schedlab_model::KernelVersion;
use schedlab_sched::kernels::Model;

/// One kernel's rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreRules {
    /// The kernel.
    pub version: KernelVersion,
    /// The kernel whose models the other classes are.
    pub classes: KernelVersion,
    /// Flags whose numbers differ between kernels.
    pub bits: EnqBits,
    /// All SCX_OPS_* bits that it supports.
    pub ops_flags: u64,
    /// Whether the class balances within its pick, not before every pick of the CPU.
    pub picks_balance: bool,
    /// Whether the core tracks which tasks the scheduler has, and `ops.dequeue` ends that.
    pub has_custody: bool,
    /// Whether bypassed tasks wait in a queue for each CPU with a shorter slice, instead of the
    /// global queue.
    pub bypasses_by_cpu: bool,
    /// Whether kicks do not disturb tasks of higher classes.
    pub kicks_spare_higher: bool,
    /// Whether each CPU has a deadline server for tasks of the scheduler.
    pub has_ext_server: bool,
}

/// Every kernel whose core is modelled, oldest first.
pub const CORES: [CoreRules; 4] =
    [CoreRules::LINUX_6_18, CoreRules::LINUX_7_1, CoreRules::LINUX_7_2, CoreRules::LINUX_7_3];

impl CoreRules {
    /// The rules of 6.18.
    pub const LINUX_6_18: Self = Self {
        version: KernelVersion::series(6, 18),
        classes: KernelVersion::series(6, 18),
        bits: EnqBits { head: 0x10, cpu_selected: 0x400, migrated: 0x40, initial: 0x80 },
        ops_flags: OPS_KEEP_BUILTIN_IDLE
            | OPS_ENQ_LAST
            | OPS_ENQ_EXITING
            | OPS_SWITCH_PARTIAL
            | OPS_ENQ_MIGRATION_DISABLED
            | OPS_ALLOW_QUEUED_WAKEUP
            | OPS_BUILTIN_IDLE_PER_NODE
            | OPS_HAS_CGROUP_WEIGHT,
        picks_balance: false,
        has_custody: false,
        bypasses_by_cpu: false,
        kicks_spare_higher: false,
        has_ext_server: false,
    };
    /// The rules of 7.1.
    pub const LINUX_7_1: Self = Self {
        version: KernelVersion::series(7, 1),
        classes: KernelVersion::series(7, 1),
        bits: EnqBits {
            head: 0x1_0000,
            cpu_selected: 0x10_0000,
            migrated: 0x4_0000,
            initial: 0x8_0000,
        },
        ops_flags: Self::LINUX_6_18.ops_flags & !OPS_HAS_CGROUP_WEIGHT | OPS_ALWAYS_ENQ_IMMED,
        picks_balance: true,
        has_custody: true,
        bypasses_by_cpu: true,
        kicks_spare_higher: true,
        has_ext_server: true,
    };
    /// The rules of 7.2: those of 7.1, with topological CPU numbers (cid) and task numbers (tid).
    /// Schedulers below a scheduler (sub-schedulers) are not modelled.
    pub const LINUX_7_2: Self = Self {
        version: KernelVersion::series(7, 2),
        classes: KernelVersion::series(7, 2),
        ops_flags: Self::LINUX_7_1.ops_flags | OPS_TID_TO_TASK,
        ..Self::LINUX_7_1
    };
    /// The rules of 7.3: those of 7.2, with topological CPU numbers in shards. The other classes
    /// are those of 7.2.
    pub const LINUX_7_3: Self = Self { version: KernelVersion::series(7, 3), ..Self::LINUX_7_2 };

    /// The rules of exactly this kernel.
    pub fn of(version: KernelVersion) -> Option<&'static Self> {
        CORES.iter().find(|core| core.version == version)
    }

    /// The model of the other classes.
    pub fn model(&self) -> &'static Model {
        Model::of(self.classes).expect("the kernels of the core are modelled")
    }
}

impl Default for CoreRules {
    fn default() -> Self {
        CORES[0]
    }
}
