// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stack of classes around a sched_ext scheduler, and registry entries for schedulers that are
//! made at run time.
//!
//! Source: the order of classes of Linux kernel/sched/sched.h, 6.18. There ext is below fair. In
//! full mode no fair tasks exist, so here ext is above fair, and the fair class exists only if
//! tasks may return to it.
//!
//! Deadline servers: the fair server of 6.18 serves no task in full mode, so real-time tasks starve
//! those of the scheduler. 7.x has a second server for each CPU, the ext server, which serves the
//! tasks of the scheduler (`schedlab_sched::deadline::fair_server`). Here one of the two is active
//! at a time: the ext server while the scheduler has all fair tasks, otherwise the fair server. A
//! scheduler in partial mode has its own tasks below fair ones; these have no server.

use super::class::ExtClass;
use super::ops::{Ops, OpsInfo};
use super::options::{self, ExtOptions};
use super::rules::CoreRules;
use schedlab_model::{CgroupSpec, Costs, Machine, Preempt};
use schedlab_sched::deadline::tunables::EXT_SERVER;
use schedlab_sched::{Claims, Make, Options, Scheduler, Stack, Tunable};

/// Tunables of the core and of the other classes.
fn tunables() -> Vec<Tunable> {
    let kernel = CoreRules::default().model().tunables();
    [&options::tunables(), &*kernel, EXT_SERVER].concat()
}

/// A scheduler without callbacks, so that only the core decides.
struct NoOps;

impl Ops for NoOps {
    fn info(&self) -> OpsInfo {
        OpsInfo { name: "none".into(), ..OpsInfo::default() }
    }
}

/// The common part of all sched_ext schedulers.
pub fn scheduler() -> Scheduler {
    Scheduler {
        name: "sched_ext".into(),
        summary:
            "sched_ext without callbacks: one queue for each node, first come first served, 20 ms"
                .into(),
        source: "Linux 6.18 and 7.1, kernel/sched/ext.c, ext_idle.c".into(),
        leaves_out: "sub-schedulers, hotplug, core scheduling, SCX_ENQ_IMMED, the wait of \
                 SCX_KICK_WAIT, idle masks for each node, frequencies, the ext server of 7.1 \
                 beside a scheduler that takes some tasks only (SCX_OPS_SWITCH_PARTIAL)"
            .into(),
        claims: Claims {
            work_conserving: false,
            starvation_free: false,
            fair: false,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::DEFAULT,
        tunables: tunables(),
        digest: None,
        make: Make::new(|options, machine, cgroups| {
            stack(Box::new(NoOps), options, machine, cgroups)
        }),
    }
}

/// The stack around `ops`: deadline > real-time > ext, or, with SCX_OPS_SWITCH_PARTIAL, fair > ext.
pub fn stack(
    ops: Box<dyn Ops>,
    options: &Options,
    machine: &Machine,
    cgroups: &[CgroupSpec],
) -> Stack {
    let settings = ExtOptions::from_options(options);
    let ext = ExtClass::new(ops, settings, machine, cgroups);
    let is_full = ext.is_full();
    // Without an ext server there are servers of fair tasks only, and no such tasks in full mode.
    let has_servers = !is_full || settings.core.has_ext_server;
    let [deadline, rt, fair] =
        settings.core.model().classes(has_servers, options, machine, cgroups);
    if !is_full {
        vec![deadline, rt, fair, Box::new(ext)]
    } else if settings.needs_fair() {
        vec![deadline, rt, Box::new(ext), fair]
    } else {
        vec![deadline, rt, Box::new(ext)]
    }
}

/// The scheduler called `name`. `make` returns a new instance for each run, or an error.
pub fn named(
    name: impl Into<String>,
    make: impl Fn() -> Result<Box<dyn Ops>, String> + Send + Sync + 'static,
) -> Scheduler {
    Scheduler {
        name: name.into().into(),
        make: Make::fallible(move |options, machine, cgroups| {
            stack_checked(make()?, options, machine, cgroups)
        }),
        ..scheduler()
    }
}

/// The stack around `ops`; or why the kernel would not accept it.
pub fn stack_checked(
    ops: Box<dyn Ops>,
    options: &Options,
    machine: &Machine,
    cgroups: &[CgroupSpec],
) -> Result<Stack, String> {
    super::life::check(&ops.info(), &ExtOptions::from_options(options).core)
        .map_err(|what| format!("sched_ext scheduler {:?}: {what}", ops.info().name))?;
    Ok(stack(ops, options, machine, cgroups))
}
