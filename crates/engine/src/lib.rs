// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modelled kernel core: clock, ticks, wake-ups, schedule(), fork and exit, a block device, the
//! costs of the machine, and checks of a scheduler's answers.
//!
//! The engine calls a stack of scheduling classes, as kernel/sched/core.c does, and knows none of
//! them by name. The same input gives the same events on every machine.
//!
//! # Order of simultaneous events
//!
//! At one instant the engine handles, in this order:
//!
//! 1. releases, wake-ups by timers, completions of the device: in the order in which they were set;
//! 2. timers of scheduling classes, and ends of kernel code that may not be preempted: in the order
//!    in which they were set; then interrupts of the machine's sources;
//! 3. the tick, CPU by CPU in ascending order: `task_tick`, then `tick_balance` of every class;
//! 4. ends of CPU bursts, CPU by CPU: the program continues; a task that blocks, yields or exits
//!    reschedules its CPU at once, and so does a system call after which a reschedule is requested;
//! 5. requested reschedules, CPU by CPU, until none is left; then, if a class takes over other
//!    policies than before, the class of every task is determined again, and step 5 is repeated.
//!
//! In kernels without high-resolution timers (before 2.6.24) step 3 comes first: these kernels look
//! for timers that are due after the tick.
//!
//! Events that steps 4 and 5 set for the same instant are handled in another round at that instant.

mod asking;
mod attr;
mod burst;
mod clock;
mod cold_cache;
mod config;
mod custody;
mod device;
mod engine;
mod error;
mod exec;
mod family;
mod fork_costs;
mod group_lock;
mod groups;
mod interrupts;
mod jitter;
mod kernel_mode;
mod launch;
mod locks;
mod newidle;
mod objects;
mod observe;
mod pace;
mod refuse;
mod rt_limit;
mod schedule;
mod simulation;
mod stack;
mod start;
mod step;
mod threads;
mod ticks;
mod timer_interrupt;
mod user;
mod wake;

pub use asking::NeedsDecision;
pub use config::{SimConfig, SimOutcome};
pub use error::{SchedulerFault, SimError};
pub use objects::BlockedTask;
pub use observe::{Cause, Decision, Observer};
pub use simulation::Simulation;

use schedlab_model::{TraceSink, Workload};
use schedlab_sched::fair::tunables::has_autogroups;
use std::borrow::Cow;

/// Simulates `workload` as `config` describes. Every event goes to `sink`, and `end` at the end.
/// The observer, if there is one, sees every pick and does not change the run.
///
/// # Errors
/// If the workload does not fit the machine, if the scheduler cannot run, or if it breaks a rule.
/// The sink then has the events up to that point.
pub fn simulate<S: TraceSink>(
    workload: &Workload,
    config: &SimConfig<'_>,
    sink: S,
    observer: Option<&mut dyn Observer>,
) -> Result<SimOutcome, SimError> {
    let workload = &*grouped(workload, config)?;
    let mut engine = prepare(workload, config, sink)?;
    engine.watch = observer.map(|observer| observe::Watch::new(observer, config.machine.nr_cpus()));
    engine.run()
}

/// The engine before its first instant.
fn prepare<'a, S: TraceSink>(
    workload: &'a Workload,
    config: &'a SimConfig<'a>,
    sink: S,
) -> Result<engine::Engine<'a, S>, SimError> {
    workload
        .check(config.machine.nr_cpus())
        .map_err(|error| SimError::Workload(error.to_string()))?;
    config.machine.check().map_err(SimError::Machine)?;
    let scheduler = config.scheduler;
    let classes = scheduler
        .stack(config.options, config.machine, &workload.cgroups)
        .map_err(SimError::Unavailable)?;
    let engine = engine::Engine::new(workload, config, classes, sink);
    refuse::check(workload, scheduler, engine.stack.classes()).map_err(SimError::Workload)?;
    Ok(engine)
}

/// The workload with the groups for its sessions, if the scheduler makes such groups, with the
/// threads of the machine's kernel, and with the task of the scheduler's user half, if it has one.
pub fn grouped<'w>(
    workload: &'w Workload,
    config: &SimConfig<'_>,
) -> Result<Cow<'w, Workload>, SimError> {
    let mut grouped = Cow::Borrowed(workload);
    if has_autogroups(config.options) {
        let own = workload.with_autogroups();
        grouped = Cow::Owned(own.map_err(|error| SimError::Workload(error.to_string()))?);
    }
    if !config.machine.threads.is_empty() {
        grouped = Cow::Owned(threads::added_to(&grouped, &config.machine.threads));
    }
    if let Some(half) = config.scheduler.user_half() {
        grouped = Cow::Owned(half.added_to(&grouped));
    }
    Ok(grouped)
}
