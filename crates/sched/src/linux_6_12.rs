// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedulers of Linux 6.6, 6.12 and 6.18: real-time class and EEVDF.
//!
//! Source: Linux kernel/sched/, 6.6, 6.12.0, 6.12.63, 6.18.2. See [`crate::fair`] and [`crate::rt`] for
//! the rules and what is left out.

use crate::fair::{rules::Rules, tunables};
use crate::linux_6_1::stack;
use crate::options::Tunable;
use crate::registry::{Claims, SchedulerInfo};
use crate::rt::tunables as rt;

const LEAVES_OUT: &str = "SCHED_DEADLINE, HRTICK, cpu.max, autogroup, core scheduling, NUMA \
                          balancing, cpu.idle groups";

const fn eevdf(rt_bandwidth: Tunable) -> [Tunable; 11] {
    [
        tunables::BASE_SLICE,
        tunables::MIGRATION_COST,
        tunables::NR_MIGRATE,
        tunables::SCALING,
        tunables::SCALING_CPUS,
        rt::RR_TIMESLICE_MS,
        rt_bandwidth,
        rt::RT_RUNTIME,
        rt::RT_PERIOD,
        rt::FAIR_SERVER_RUNTIME,
        rt::FAIR_SERVER_PERIOD,
    ]
}

const TUNABLES_6_6: &[Tunable] = &eevdf(rt::RT_BANDWIDTH);
const TUNABLES_6_12: &[Tunable] = &eevdf(rt::RT_BANDWIDTH_6_12);

/// Linux 6.6, the first with EEVDF.
pub const INFO_6_6: SchedulerInfo = SchedulerInfo {
    name: "linux-6.6",
    summary: "Linux 6.6: EEVDF, first version, below the real-time class",
    source: "Linux 6.6.87, kernel/sched/{fair,rt,core}.c",
    leaves_out: LEAVES_OUT,
    claims: Claims { work_conserving: true, starvation_free: true, fair: true, needs_burst: false },
    tunables: TUNABLES_6_6,
    build: |options, machine, cgroups| stack(Rules::LINUX_6_6, options, machine, cgroups),
};

/// Linux 6.12.0.
pub const INFO_6_12_0: SchedulerInfo = SchedulerInfo {
    name: "linux-6.12.0",
    summary: "Linux 6.12.0: EEVDF with delayed dequeue and custom slices, base slice 0.75 ms",
    source: "Linux 6.12.0, kernel/sched/{fair,rt,core}.c",
    tunables: TUNABLES_6_12,
    build: |options, machine, cgroups| stack(Rules::LINUX_6_12_0, options, machine, cgroups),
    ..INFO_6_6
};

/// Linux 6.12, later point releases.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "linux-6.12",
    summary: "Linux 6.12 (later point releases): EEVDF below the real-time class",
    source: "Linux 6.12.63, kernel/sched/{fair,rt,core}.c",
    tunables: TUNABLES_6_12,
    build: |options, machine, cgroups| stack(Rules::LINUX_6_12, options, machine, cgroups),
    ..INFO_6_6
};

/// Linux 6.18.
pub const INFO_6_18: SchedulerInfo = SchedulerInfo {
    name: "linux-6.18",
    summary: "Linux 6.18: EEVDF, the running task protected for the shortest slice queued",
    source: "Linux 6.18.2, kernel/sched/{fair,rt,core}.c",
    tunables: TUNABLES_6_12,
    build: |options, machine, cgroups| stack(Rules::LINUX_6_18, options, machine, cgroups),
    ..INFO_6_6
};
