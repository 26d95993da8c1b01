// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler of Linux 6.1: real-time class and CFS.
//!
//! Source: Linux kernel/sched/, 6.1.158. See [`crate::fair`] and [`crate::rt`] for the rules and what
//! is left out.

use crate::class::SchedClass;
use crate::fair::{FairClass, rules::Rules, tunables};
use crate::options::{Options, Tunable};
use crate::registry::{Claims, SchedulerInfo};
use crate::rt::{RtClass, RtOptions, tunables as rt};
use schedlab_model::{CgroupSpec, Machine};

/// Registry entry.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "linux-6.1",
    summary: "Linux 6.1: CFS below the real-time class",
    source: "Linux 6.1.158, kernel/sched/{fair,rt,core}.c",
    leaves_out: "SCHED_DEADLINE, HRTICK, cpu.max, autogroup, core scheduling, NUMA balancing, \
                 cpu.idle groups",
    claims: Claims { work_conserving: true, starvation_free: true, fair: true, needs_burst: false },
    tunables: TUNABLES,
    build: |options, machine, cgroups| stack(Rules::LINUX_6_1, options, machine, cgroups),
};

const TUNABLES: &[Tunable] = &[
    tunables::LATENCY,
    tunables::MIN_GRANULARITY,
    tunables::IDLE_MIN_GRANULARITY,
    tunables::WAKEUP_GRANULARITY,
    tunables::CHILD_RUNS_FIRST,
    tunables::MIGRATION_COST,
    tunables::NR_MIGRATE,
    tunables::SCALING,
    tunables::SCALING_CPUS,
    rt::RR_TIMESLICE_MS,
    rt::RT_BANDWIDTH,
    rt::RT_RUNTIME,
    rt::RT_PERIOD,
    rt::FAIR_SERVER_RUNTIME,
    rt::FAIR_SERVER_PERIOD,
];

/// The real-time class above the fair class with `rules`.
pub(crate) fn stack(
    rules: Rules,
    options: &Options,
    machine: &Machine,
    cgroups: &[CgroupSpec],
) -> Vec<Box<dyn SchedClass>> {
    vec![
        Box::new(RtClass::new(&RtOptions::from_options(options), machine)),
        Box::new(FairClass::new(rules, options, machine, cgroups)),
    ]
}
