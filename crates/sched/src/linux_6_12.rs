// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedulers of Linux 6.6, 6.12 and 6.18: EEVDF.
//!
//! Source: Linux kernel/sched/, 6.6, 6.12.0, 6.12.63, 6.18.2. See [`crate::fair`] for the rules and
//! what is left out.

use crate::fair::{FairClass, rules::Rules, tunables};
use crate::registry::{Claims, SchedulerInfo};

const LEAVES_OUT: &str =
    "HRTICK, cpu.max, autogroup, core scheduling, NUMA balancing, cpu.idle groups";
const CLAIMS: Claims =
    Claims { work_conserving: true, starvation_free: true, fair: true, needs_burst: false };

/// Linux 6.6, the first with EEVDF.
pub const INFO_6_6: SchedulerInfo = SchedulerInfo {
    name: "linux-6.6",
    summary: "Linux 6.6: EEVDF, first version",
    source: "Linux 6.6.87, kernel/sched/fair.c",
    leaves_out: LEAVES_OUT,
    claims: CLAIMS,
    tunables: tunables::EEVDF,
    build: |options, machine, cgroups| {
        vec![Box::new(FairClass::new(Rules::LINUX_6_6, options, machine, cgroups))]
    },
};

/// Linux 6.12.0.
pub const INFO_6_12_0: SchedulerInfo = SchedulerInfo {
    name: "linux-6.12.0",
    summary: "Linux 6.12.0: EEVDF with delayed dequeue and custom slices, base slice 0.75 ms",
    source: "Linux 6.12.0, kernel/sched/fair.c",
    build: |options, machine, cgroups| {
        vec![Box::new(FairClass::new(Rules::LINUX_6_12_0, options, machine, cgroups))]
    },
    ..INFO_6_6
};

/// Linux 6.12, later point releases.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "linux-6.12",
    summary: "Linux 6.12 (later point releases): EEVDF",
    source: "Linux 6.12.63, kernel/sched/fair.c",
    build: |options, machine, cgroups| {
        vec![Box::new(FairClass::new(Rules::LINUX_6_12, options, machine, cgroups))]
    },
    ..INFO_6_6
};

/// Linux 6.18.
pub const INFO_6_18: SchedulerInfo = SchedulerInfo {
    name: "linux-6.18",
    summary: "Linux 6.18: EEVDF, running tasks protected for the shortest slice queued",
    source: "Linux 6.18.2, kernel/sched/fair.c",
    build: |options, machine, cgroups| {
        vec![Box::new(FairClass::new(Rules::LINUX_6_18, options, machine, cgroups))]
    },
    ..INFO_6_6
};
