// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stack of classes around a sched_ext scheduler, and its entry for schedulers made at run
//! time.
//!
//! Source: the order of classes of Linux kernel/sched/sched.h, 6.18. There ext lies below fair; in
//! full mode no fair task exists beside it, so here it lies above, and the fair class is present
//! only if tasks may ever go back to it.

use super::class::ExtClass;
use super::ops::{Ops, OpsInfo};
use super::options::{self, CoreVersion, ExtOptions};
use schedlab_model::{CgroupSpec, Machine};
use schedlab_sched::SchedClass;
use schedlab_sched::linux_6_12::{INFO_6_18, KernelVersion, kernel_classes};
use schedlab_sched::options::{Options, Tunable, concat};
use schedlab_sched::registry::{Claims, MadeScheduler, MadeStack, SchedulerInfo};

/// Tunables: those of the core, and of the classes beside it.
const TUNABLES: [Tunable; options::TUNABLES.len() + INFO_6_18.tunables.len()] =
    concat(options::TUNABLES, INFO_6_18.tunables);

/// A scheduler without callbacks: what the core does by itself.
struct NoOps;

impl Ops for NoOps {
    fn info(&self) -> OpsInfo {
        OpsInfo { name: "none".into(), ..OpsInfo::default() }
    }
}

/// What all sched_ext schedulers have in common.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "sched_ext",
    summary: "sched_ext without callbacks: one queue for each node, first come first served, 20 ms",
    source: "Linux 6.18 and 7.1, kernel/sched/ext.c, ext_idle.c",
    leaves_out: "sub-schedulers, hotplug, core scheduling, SCX_ENQ_IMMED, the wait of \
                 SCX_KICK_WAIT, idle masks for each node, frequencies, the ext server of 7.x",
    claims: Claims {
        work_conserving: false,
        starvation_free: false,
        fair: false,
        needs_burst: false,
    },
    tunables: &TUNABLES,
    build: |options, machine, cgroups| stack(Box::new(NoOps), options, machine, cgroups),
};

/// The stack around `ops`: deadline > real-time > ext, or, with SCX_OPS_SWITCH_PARTIAL, fair > ext.
pub fn stack(
    ops: Box<dyn Ops>,
    options: &Options,
    machine: &Machine,
    cgroups: &[CgroupSpec],
) -> Vec<Box<dyn SchedClass>> {
    let settings = ExtOptions::from_options(options);
    let ext = ExtClass::new(ops, settings, machine, cgroups);
    let version = match settings.core {
        CoreVersion::V6_18 => KernelVersion::V6_18,
        CoreVersion::V7_1 => KernelVersion::V7_1,
    };
    let is_full = ext.is_full();
    // The fair server serves fair tasks only; in full mode there are none.
    let [deadline, rt, fair] = kernel_classes(version, !is_full, options, machine, cgroups);
    if !is_full {
        vec![deadline, rt, fair, Box::new(ext)]
    } else if settings.needs_fair() {
        vec![deadline, rt, Box::new(ext), fair]
    } else {
        vec![deadline, rt, Box::new(ext)]
    }
}

/// A scheduler that can be simulated by its name: `make` gives a fresh instance for each run, or
/// says why it cannot.
pub fn made(
    name: impl Into<String>,
    make: impl Fn() -> Result<Box<dyn Ops>, String> + Send + Sync + 'static,
) -> MadeScheduler {
    MadeScheduler::new(name, &INFO, move |options, machine, cgroups| {
        stack_checked(make()?, options, machine, cgroups)
    })
}

/// The stack around `ops`, or why the kernel would not take it.
pub fn stack_checked(
    ops: Box<dyn Ops>,
    options: &Options,
    machine: &Machine,
    cgroups: &[CgroupSpec],
) -> MadeStack {
    super::life::check(&ops.info(), ExtOptions::from_options(options).core)
        .map_err(|what| format!("sched_ext scheduler {:?}: {what}", ops.info().name))?;
    Ok(stack(ops, options, machine, cgroups))
}
