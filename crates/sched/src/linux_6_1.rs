// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler of Linux 6.1: CFS.
//!
//! Source: Linux kernel/sched/, 6.1.158. See [`crate::fair`] for the rules and what is left out.

use crate::fair::{FairClass, rules::Rules, tunables};
use crate::registry::{Claims, SchedulerInfo};

/// Registry entry.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "linux-6.1",
    summary: "Linux 6.1: CFS",
    source: "Linux 6.1.158, kernel/sched/fair.c",
    leaves_out: "HRTICK, cpu.max, autogroup, core scheduling, NUMA balancing, cpu.idle groups",
    claims: Claims { work_conserving: true, starvation_free: true, fair: true, needs_burst: false },
    tunables: tunables::CFS,
    build: |options, machine, cgroups| {
        vec![Box::new(FairClass::new(Rules::LINUX_6_1, options, machine, cgroups))]
    },
};
