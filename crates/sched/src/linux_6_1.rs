// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler of Linux 6.1: deadline tasks above real-time tasks above CFS.
//!
//! Source: Linux kernel/sched/, 6.1.158. See [`crate::deadline`], [`crate::rt`],
//! [`crate::fair`] and [`crate::balance`] for the rules and what is left out.

use crate::SchedClass;
use crate::boundary::options::{Options, Tunable, concat};
use crate::deadline::tunables::{self as dl, DlRules};
use crate::deadline::{DlClass, DlOptions};
use crate::fair::{FairClass, features, rules::Rules, tunables};
use crate::registry::{Claims, SchedulerInfo};
use crate::rt::{RtClass, RtOptions, tunables as rt};
use schedlab_model::{CgroupSpec, Machine};

/// Tunables of the classes above fair.
const ABOVE_FAIR: [Tunable; rt::TUNABLES.len() + dl::TUNABLES.len()] =
    concat(rt::TUNABLES, dl::TUNABLES);
const WITHOUT_FEATURES: [Tunable; tunables::CFS.len() + ABOVE_FAIR.len()] =
    concat(tunables::CFS, &ABOVE_FAIR);
const NOT_OF_FAIR: [Tunable; features::BALANCE.len() + rt::FEATURES.len()] =
    concat(features::BALANCE, rt::FEATURES);
const FEATURES: [Tunable; NOT_OF_FAIR.len() + features::CFS.len()] =
    concat(&NOT_OF_FAIR, features::CFS);
const TUNABLES: [Tunable; WITHOUT_FEATURES.len() + FEATURES.len()] =
    concat(&WITHOUT_FEATURES, &FEATURES);

/// Registry entry.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "linux-6.1",
    summary: "Linux 6.1: deadline > real-time (FIFO, RR) > fair (CFS)",
    source: "Linux 6.1.158, kernel/sched/{deadline,rt,fair,topology}.c",
    leaves_out: "the threads of the stop class, core scheduling, NUMA balancing, cpu.idle \
                 groups, control groups of real-time tasks",
    claims: Claims { work_conserving: true, starvation_free: true, fair: true, needs_burst: false },
    tunables: &TUNABLES,
    build: |options, machine, cgroups| {
        stack(Rules::LINUX_6_1, DlRules::LINUX_6_1, options, machine, cgroups)
    },
};

/// Deadline above real-time above fair, for a version whose tunables contain those of both.
pub(crate) fn stack(
    rules: Rules,
    deadline: DlRules,
    options: &Options,
    machine: &Machine,
    cgroups: &[CgroupSpec],
) -> Vec<Box<dyn SchedClass>> {
    classes(rules, deadline, true, options, machine, cgroups).into()
}

/// The same one by one; with `fair_server` deadline servers serve the fair class, where the version
/// has them.
pub(crate) fn classes(
    rules: Rules,
    deadline: DlRules,
    fair_server: bool,
    options: &Options,
    machine: &Machine,
    cgroups: &[CgroupSpec],
) -> [Box<dyn SchedClass>; 3] {
    let rules = rules.with_features(options);
    let mut deadline = DlOptions::from_options(options, deadline);
    if !fair_server {
        (deadline.server, deadline.ext_server) = (None, None);
    }
    [
        Box::new(DlClass::new(deadline, machine)),
        Box::new(RtClass::new(&RtOptions::from_options(options), machine)),
        Box::new(FairClass::new(rules, options, machine, cgroups)),
    ]
}
