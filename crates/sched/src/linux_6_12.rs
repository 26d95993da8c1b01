// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedulers of Linux 6.6, 6.12, 6.18, 7.1 and 7.2: deadline tasks above real-time tasks above
//! EEVDF.
//!
//! Source: Linux kernel/sched/, 6.6, 6.12.0, 6.12.63, 6.18.2, 7.1.5, 7.2.9. See
//! [`crate::deadline`], [`crate::rt`], [`crate::fair`] and [`crate::balance`] for the rules and
//! what is left out.

use crate::SchedClass;
use crate::boundary::options::{Options, Tunable, concat, with_default};
use crate::deadline::tunables::{self as dl, DlRules};
use crate::fair::{features, rules::Rules, tunables};
use crate::linux_6_1::{classes, stack};
use crate::registry::{Claims, SchedulerInfo};
use crate::rt::tunables as rt;
use schedlab_model::{CgroupSpec, Machine};

/// Features that all versions have.
const FEATURES: [Tunable; features::BALANCE.len() + rt::FEATURES.len()] =
    concat(features::BALANCE, rt::FEATURES);
/// Tunables of the deadline and the fair class.
const DL_AND_FAIR: [Tunable; tunables::EEVDF.len() + dl::TUNABLES.len()] =
    concat(tunables::EEVDF, dl::TUNABLES);
const COMMON: [Tunable; DL_AND_FAIR.len() + FEATURES.len()] = concat(&DL_AND_FAIR, &FEATURES);
const ALL_6_6: [Tunable; COMMON.len() + rt::TUNABLES.len()] = concat(&COMMON, rt::TUNABLES);
const TUNABLES_6_6: [Tunable; ALL_6_6.len() + features::EEVDF_6_6.len()] =
    concat(&ALL_6_6, features::EEVDF_6_6);
const ALL_6_12: [Tunable; COMMON.len() + rt::TUNABLES_6_12.len()] =
    concat(&COMMON, rt::TUNABLES_6_12);
const TUNABLES_6_12_0: [Tunable; ALL_6_12.len() + features::EEVDF_6_12.len()] =
    concat(&ALL_6_12, features::EEVDF_6_12);
const TUNABLES: [Tunable; TUNABLES_6_12_0.len() + features::PICK_BUDDY.len()] =
    concat(&TUNABLES_6_12_0, features::PICK_BUDDY);
const TUNABLES_7: [Tunable; TUNABLES.len() + features::NEWIDLE.len()] =
    concat(&with_default(TUNABLES, "RT_PUSH_IPI", 0), features::NEWIDLE);
const TUNABLES_7_1: [Tunable; TUNABLES_7.len() + dl::EXT_SERVER.len()] =
    concat(&TUNABLES_7, dl::EXT_SERVER);
/// Architectures that rearm timers late have both high-resolution ticks.
const TUNABLES_7_2: [Tunable; TUNABLES_7.len()] =
    with_default(with_default(TUNABLES_7, "HRTICK", 1), "HRTICK_DL", 1);

const LEAVES_OUT: &str = "the threads of the stop class, core scheduling, \
     NUMA balancing, cpu.idle groups, control groups of real-time tasks";
const CLAIMS: Claims =
    Claims { work_conserving: true, starvation_free: true, fair: true, needs_burst: false };

/// Linux 6.6, the first with EEVDF.
pub const INFO_6_6: SchedulerInfo = SchedulerInfo {
    name: "linux-6.6",
    summary: "Linux 6.6: deadline > real-time (FIFO, RR) > fair (EEVDF, first version)",
    source: "Linux 6.6.87, kernel/sched/{deadline,rt,fair,topology}.c",
    leaves_out: LEAVES_OUT,
    claims: CLAIMS,
    tunables: &TUNABLES_6_6,
    build: |options, machine, cgroups| {
        stack(Rules::LINUX_6_6, DlRules::LINUX_6_6, options, machine, cgroups)
    },
};

/// Linux 6.12.0.
pub const INFO_6_12_0: SchedulerInfo = SchedulerInfo {
    name: "linux-6.12.0",
    summary: "Linux 6.12.0: deadline > real-time, fair server > fair (EEVDF, delayed \
              dequeue, custom slices)",
    source: "Linux 6.12.0, kernel/sched/{deadline,rt,fair,topology}.c",
    tunables: &TUNABLES_6_12_0,
    build: |options, machine, cgroups| {
        stack(Rules::LINUX_6_12_0, DlRules::LINUX_6_12, options, machine, cgroups)
    },
    ..INFO_6_6
};

/// Linux 6.12, later point releases.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "linux-6.12",
    summary: "Linux 6.12 (later releases): deadline > real-time (FIFO, RR), fair server > fair \
              (EEVDF)",
    source: "Linux 6.12.63, kernel/sched/{deadline,rt,fair,topology}.c",
    tunables: &TUNABLES,
    build: |options, machine, cgroups| {
        stack(Rules::LINUX_6_12, DlRules::LINUX_6_12, options, machine, cgroups)
    },
    ..INFO_6_6
};

/// Linux 6.18.
pub const INFO_6_18: SchedulerInfo = SchedulerInfo {
    name: "linux-6.18",
    summary: "Linux 6.18: deadline > real-time, fair server > fair (EEVDF, shortest slice \
              protects)",
    source: "Linux 6.18.2, kernel/sched/{deadline,rt,fair,topology}.c",
    tunables: &TUNABLES,
    build: |options, machine, cgroups| {
        stack(Rules::LINUX_6_18, DlRules::LINUX_6_18, options, machine, cgroups)
    },
    ..INFO_6_6
};

/// Linux 7.1.
pub const INFO_7_1: SchedulerInfo = SchedulerInfo {
    name: "linux-7.1",
    summary: "Linux 7.1: deadline > real-time, fair server > fair (EEVDF, exact arithmetic, new \
              tasks do not preempt)",
    source: "Linux 7.1.5, kernel/sched/{deadline,rt,fair,topology}.c",
    tunables: &TUNABLES_7_1,
    build: |options, machine, cgroups| {
        stack(Rules::LINUX_7_1, DlRules::LINUX_7_1, options, machine, cgroups)
    },
    ..INFO_6_6
};

const LEAVES_OUT_7_2: &str = "the threads of the stop class, core scheduling, NUMA balancing, \
     cpu.idle groups, control groups of real-time tasks, the preference of a \
     process's threads for one last-level cache (SCHED_CACHE), what a timer of HRTICK \
     takes off the time slice of a SCHED_RR task";

/// Linux 7.2.
pub const INFO_7_2: SchedulerInfo = SchedulerInfo {
    name: "linux-7.2",
    summary: "Linux 7.2 as on x86: deadline > real-time, fair server > fair (EEVDF, a timer ends \
              slices: HRTICK)",
    source: "Linux 7.2.9, kernel/sched/{core,fair,features.h}; deadline, rt, topology.c of 7.1.5; \
             which servers admission counts by the type information of 7.2.9",
    leaves_out: LEAVES_OUT_7_2,
    tunables: &TUNABLES_7_2,
    build: |options, machine, cgroups| {
        stack(Rules::LINUX_7_2, DlRules::LINUX_7_2, options, machine, cgroups)
    },
    ..INFO_6_6
};

/// Kernels that have sched_ext.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelVersion {
    /// Linux 6.18.
    V6_18,
    /// Linux 7.1.
    V7_1,
}

/// The classes of such a kernel beside ext: deadline, real-time, fair. The tunables are those of
/// [`INFO_6_18`], for 7.1 with those of the ext server. Without `fair_server` nothing keeps
/// real-time tasks from starving others.
pub fn kernel_classes(
    version: KernelVersion,
    fair_server: bool,
    options: &Options,
    machine: &Machine,
    cgroups: &[CgroupSpec],
) -> [Box<dyn SchedClass>; 3] {
    let (rules, deadline) = match version {
        KernelVersion::V6_18 => (Rules::LINUX_6_18, DlRules::LINUX_6_18),
        KernelVersion::V7_1 => (Rules::LINUX_7_1, DlRules::LINUX_7_1),
    };
    classes(rules, deadline, fair_server, options, machine, cgroups)
}
