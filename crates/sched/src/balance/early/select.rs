// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the CPU for a waking task of 2.6.22 to 2.6.24, and for a new task or program.
//!
//! Source: Linux 2.6.11 (`sched_exec`), 2.6.22, 2.6.23.17 and 2.6.24, kernel/sched.c
//! (`try_to_wake_up`, `wake_idle`, `sched_balance_self`, `find_idlest_group`, `find_idlest_cpu`),
//! and 2.6.32.67, kernel/sched_fair.c (`select_task_rq_fair`).

use super::levels::Level;
use super::versions::Exec;
use super::{Runqueues, source_load, target_load};
use crate::boundary::core::Core;
use crate::boundary::flags::WakeFlags;
use schedlab_model::{CpuId, TaskId};

/// A waking task.
#[derive(Clone, Copy, Debug)]
pub struct Waking {
    /// The task.
    pub task: TaskId,
    /// Its previous CPU.
    pub prev: CpuId,
    /// The waker's CPU.
    pub this: CpuId,
    /// Load of a waker that is about to sleep.
    pub leaves: u64,
    /// Whether the waker is about to sleep and the task is cold anyway (2.6.24).
    pub comes: bool,
}

/// Why a new task needs a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A task forks.
    Fork,
    /// The launcher starts a program.
    Exec,
}

impl Reason {
    /// The reason to place a task that is not waking. If the launcher forks, the new program also
    /// calls exec; otherwise only the fork counts.
    pub fn of(flags: WakeFlags) -> Option<Self> {
        flags.is_fork().then_some(if flags.waker.is_some() { Self::Fork } else { Self::Exec })
    }

    fn applies(self, level: &Level) -> bool {
        self == Self::Exec || level.fork
    }
}

/// The CPU for a new task, or for a woken one, which `wake` chooses. If the task may no longer run
/// on `prev`, loads are not compared.
pub fn place<R: Runqueues>(
    rqs: &R,
    core: &Core,
    task: TaskId,
    prev: CpuId,
    flags: WakeFlags,
    wake: impl FnOnce() -> CpuId,
) -> CpuId {
    let allowed = core.allowed_cpu(task, prev);
    match Reason::of(flags) {
        _ if allowed != prev => allowed,
        Some(reason) => new_cpu(rqs, core, task, prev, reason),
        None => wake(),
    }
}

/// The CPU for a woken task.
pub fn wake_cpu<R: Runqueues>(rqs: &R, core: &Core, waking: Waking) -> CpuId {
    let cpu = if wakes_here(rqs, core, waking) { waking.this } else { waking.prev };
    wake_idle(rqs, core, waking.task, cpu)
}

/// Whether a woken task moves to the waker's CPU.
fn wakes_here<R: Runqueues>(rqs: &R, core: &Core, waking: Waking) -> bool {
    let Waking { task, prev, this, leaves, comes } = waking;
    if prev == this || !core.task(task).cpus_allowed.contains(this) {
        return false;
    }
    let balancer = rqs.balancer();
    let Some(position) = balancer.position_with(this, prev) else { return false };
    let level = balancer.level(this, position);
    let (pct, index) = (level.half_imbalance_pct(), level.wake_idx);
    let load = source_load(rqs, core, prev, index);
    let this_load = target_load(rqs, core, this, index);
    if level.wake_affine {
        let rest = this_load.saturating_sub(leaves);
        let fits = rest <= load
            && rest + target_load(rqs, core, prev, index) <= rqs.load_per_task(core, this);
        if comes || fits || 100 * (rest + rqs.task_weight(core, task)) <= pct * load {
            return true;
        }
    }
    level.wake_balance && pct * this_load <= 100 * load
}

/// An idle thread of the core of `cpu`, or else `cpu`.
pub fn wake_idle<R: Runqueues>(rqs: &R, core: &Core, task: TaskId, cpu: CpuId) -> CpuId {
    let is_idle = |cpu: CpuId| core.rq(cpu).curr.is_none();
    let balancer = rqs.balancer();
    let others_wait = balancer.version.wakes_beside_one_only && core.rq(cpu).nr_running > 1;
    if is_idle(cpu) || others_wait {
        return cpu;
    }
    let allowed = &core.task(task).cpus_allowed;
    for (position, domain) in balancer.domains.iter(cpu).enumerate() {
        if !balancer.level(cpu, position).wake_idle {
            break;
        }
        if let Some(idle) = domain.span.and(allowed).iter().find(|other| is_idle(*other)) {
            return idle;
        }
    }
    cpu
}

/// The CPU for new `task`, which was forked on `prev`; or for a program that was forked there and
/// calls exec.
pub fn new_cpu<R: Runqueues>(
    rqs: &R,
    core: &Core,
    task: TaskId,
    prev: CpuId,
    reason: Reason,
) -> CpuId {
    let exec = rqs.balancer().version.exec;
    // A program that is alone on its CPU finds no less loaded CPU.
    let is_alone = reason == Reason::Exec && core.rq(prev).nr_running == 0;
    match (exec, reason) {
        (Exec::LeastLoaded | Exec::GroupsWithCaller, _) if is_alone => prev,
        (Exec::LeastLoaded, Reason::Exec) => least_loaded(rqs, core, task, prev),
        _ => balance_self(rqs, core, task, prev, reason),
    }
}

/// The CPU with the least load, if that is clearly less than on the program's present CPU, where
/// the program counts.
fn least_loaded<R: Runqueues>(rqs: &R, core: &Core, task: TaskId, prev: CpuId) -> CpuId {
    let balancer = rqs.balancer();
    let Some(widest) = balancer.nr_levels(prev).checked_sub(1) else { return prev };
    let level = balancer.level(prev, widest);
    let load = |cpu: &CpuId| target_load(rqs, core, *cpu, level.forkexec_idx);
    let Some(least) = core.task(task).cpus_allowed.iter().min_by_key(load) else { return prev };
    let here = source_load(rqs, core, prev, level.forkexec_idx) + balancer.version.scale;
    if load(&least) * level.half_imbalance_pct() < here * 100 { least } else { prev }
}

/// The least loaded CPU of the least loaded group, from the widest domain inwards.
fn balance_self<R: Runqueues>(
    rqs: &R,
    core: &Core,
    task: TaskId,
    prev: CpuId,
    reason: Reason,
) -> CpuId {
    let balancer = rqs.balancer();
    let counts = reason == Reason::Exec && balancer.version.exec == Exec::GroupsWithCaller;
    let mut cpu = prev;
    let mut width = u32::MAX;
    loop {
        let domains = balancer.domains.iter(cpu).enumerate();
        let fits = domains.filter(|(position, domain)| {
            domain.weight < width && reason.applies(balancer.level(cpu, *position))
        });
        let Some((position, domain)) = fits.last() else { return cpu };
        width = domain.weight;
        // A task that calls exec is already counted on its CPU.
        let own = if counts && cpu == prev { rqs.task_weight(core, task) } else { 0 };
        if let Some(idlest) = find_idlest(rqs, core, task, (cpu, position), own) {
            cpu = idlest;
        }
    }
}

/// The least loaded CPU of the least loaded group, if the group of `cpu` has sufficiently more
/// load. `extra` is added to the load of that own group.
fn find_idlest<R: Runqueues>(
    rqs: &R,
    core: &Core,
    task: TaskId,
    (cpu, position): (CpuId, usize),
    extra: u64,
) -> Option<CpuId> {
    let balancer = rqs.balancer();
    let entry = balancer.domains.of_cpu(cpu)[position];
    let (level, powers) = (balancer.level(cpu, position), balancer.group_power(cpu, position));
    let allowed = &core.task(task).cpus_allowed;
    let groups = &balancer.domains.domain(entry.domain).groups;
    let own = entry.local_group as usize;
    let (mut this_load, mut least) = (0, None);
    for index in (own..groups.len()).chain(0..own) {
        let span = &groups[index].span;
        if !span.intersects(allowed) {
            continue;
        }
        let load = |cpu| match index == own {
            true => source_load(rqs, core, cpu, level.forkexec_idx),
            false => target_load(rqs, core, cpu, level.forkexec_idx),
        };
        let load: u64 = span.iter().map(load).sum();
        let load = if index == own { load + extra } else { load };
        let load = load * balancer.version.scale / powers[index];
        if index == own {
            this_load = load;
        } else if least.is_none_or(|(least, _)| load < least) {
            least = Some((load, index));
        }
    }
    let (least_load, index) = least?;
    if 100 * this_load < level.half_imbalance_pct() * least_load {
        return None;
    }
    let candidates = groups[index].span.and(allowed);
    candidates.iter().min_by_key(|candidate| rqs.cpu_weight(core, *candidate))
}
