// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler of Linux 6.1: real-time tasks above CFS.
//!
//! Source: Linux kernel/sched/, 6.1.158. See [`crate::rt`], [`crate::fair`] and [`crate::balance`]
//! for the rules and what is left out. SCHED_DEADLINE is not there yet.

use crate::SchedClass;
use crate::fair::{FairClass, rules::Rules, tunables};
use crate::options::{Options, Tunable, concat};
use crate::registry::{Claims, SchedulerInfo};
use crate::rt::{RtClass, RtOptions, tunables as rt};
use schedlab_model::{CgroupSpec, Machine};

const TUNABLES: [Tunable; tunables::CFS.len() + rt::TUNABLES.len()] =
    concat(tunables::CFS, rt::TUNABLES);

/// Registry entry.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "linux-6.1",
    summary: "Linux 6.1: real-time (FIFO, RR) > fair (CFS)",
    source: "Linux 6.1.158, kernel/sched/{rt,fair,topology}.c",
    leaves_out: "SCHED_DEADLINE, HRTICK, cpu.max, autogroup, core scheduling, NUMA balancing, \
                 cpu.idle groups, control groups of real-time tasks, priority inheritance",
    claims: Claims { work_conserving: true, starvation_free: true, fair: true, needs_burst: false },
    tunables: &TUNABLES,
    build: |options, machine, cgroups| stack(Rules::LINUX_6_1, options, machine, cgroups),
};

/// Real-time above fair, for a version whose tunables contain those of both.
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
