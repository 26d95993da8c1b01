// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of 2.6.11 and 2.6.22 for balancing along domains ([`crate::balance::early`]): the
//! load and priority of a task, the order in which tasks move, and the wake-ups of 2.6.11.
//!
//! Source: Linux 2.6.11 and 2.6.22, kernel/sched.c (`move_tasks`, `can_migrate_task`, `pull_task`,
//! `rq_best_prio`, `try_to_wake_up`).

use super::super::arrays::Side;
use super::super::rules::{MAX_PRIO, Scale};
use super::super::{Entry, OrderOne};
use super::Method;
use crate::balance::early::moves::{Move, Moved, move_some};
use crate::balance::early::select::{Waking, wake_cpu, wake_idle};
use crate::balance::early::versions::Version;
use crate::balance::early::{Balancer, Looker, Runqueues, source_load, target_load};
use crate::boundary::core::Core;
use crate::boundary::flags::WakeFlags;
use schedlab_model::{CpuId, TaskId};

/// Load of a task.
fn task_load(version: &Version, entry: &Entry, scale: &Scale) -> u64 {
    let of_nice_0 = version.scale;
    match entry.rt_prio {
        _ if version.counts_tasks => of_nice_0,
        Some(prio) => 8 * of_nice_0 + u64::from(99 - prio) * of_nice_0 / 100,
        None => {
            let slice = u64::from(scale.timeslice(entry.static_prio));
            slice * of_nice_0 / u64::from(scale.def_timeslice)
        }
    }
}

impl OrderOne {
    /// Adds the load of `task` to `cpu`, or subtracts it.
    pub(in crate::o1) fn count_load(&mut self, cpu: CpuId, task: TaskId, comes: bool) {
        if let Method::Domains(balancer) = &mut self.balance.method {
            let load = task_load(&balancer.version, &self.tasks[task.index()], &self.scale);
            let sum = &mut balancer.load[cpu.index()];
            *sum = if comes { *sum + load } else { *sum - load };
        }
    }

    /// The best priority of `cpu` for balancing (`rq_best_prio`): that of the running task, or the
    /// static one of an expired task.
    fn best_prio(&self, core: &Core, cpu: CpuId) -> u8 {
        let runs = core.rq(cpu).curr.map_or(MAX_PRIO as u8, |curr| self.tasks[curr.index()].prio);
        runs.min(self.cpus[cpu.index()].best_expired_prio)
    }

    /// The CPU for `task`, which a task or an interrupt on another CPU wakes.
    pub(super) fn wake_cpu(
        &self,
        core: &Core,
        balancer: &Balancer,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let (this, is_sync) = (flags.this_cpu, self.honours_sync && flags.sync);
        if balancer.version.counts_tasks {
            let here = this != prev
                && core.task(task).cpus_allowed.contains(this)
                && self.pulls_waking(core, balancer, (task, prev), this, is_sync);
            return wake_idle(self, core, task, if here { this } else { prev });
        }
        let leaves = core.rq(this).curr.filter(|_| is_sync);
        let leaves = leaves.map_or(0, |curr| self.task_weight(core, curr));
        wake_cpu(self, core, Waking { task, prev, this, leaves, comes: false })
    }

    /// Whether `task` should move to the CPU that wakes it instead of its own (2.6.11).
    fn pulls_waking(
        &self,
        core: &Core,
        balancer: &Balancer,
        (task, prev): (TaskId, CpuId),
        this: CpuId,
        is_sync: bool,
    ) -> bool {
        let scale = balancer.version.scale;
        let index = balancer.level(this, 0).wake_idx;
        let load = source_load(self, core, prev, index);
        let this_load = target_load(self, core, this, index);
        let this_load = this_load.saturating_sub(if is_sync { scale } else { 0 });
        if load < scale / 2 && this_load > scale / 2 {
            return false;
        }
        balancer.domains.iter(this).enumerate().any(|(position, domain)| {
            let pct = balancer.level(this, position).imbalance_pct;
            let pct = pct + (pct - 100) / 2;
            let is_cold = !self.was_hot(core, balancer, (this, position), task);
            domain.span.contains(prev) && (is_cold || pct * this_load <= 100 * load)
        })
    }

    /// Whether `task` ran so recently that it is cache-hot for a domain; threads share their cache.
    fn was_hot(
        &self,
        core: &Core,
        balancer: &Balancer,
        (cpu, position): (CpuId, usize),
        task: TaskId,
    ) -> bool {
        let is_core = balancer.level(cpu, position).is_core;
        let last_ran = self.tasks[task.index()].last_ran;
        !is_core && core.now.saturating_sub(last_ran) < self.balance.cache_hot
    }
}

impl Runqueues for OrderOne {
    fn balancer(&self) -> &Balancer {
        match &self.balance.method {
            Method::Domains(balancer) => balancer,
            Method::Counts(_) => unreachable!("only versions with domains balance along them"),
        }
    }

    fn balancer_mut(&mut self) -> &mut Balancer {
        match &mut self.balance.method {
            Method::Domains(balancer) => balancer,
            Method::Counts(_) => unreachable!("only versions with domains balance along them"),
        }
    }

    fn task_weight(&self, _: &Core, task: TaskId) -> u64 {
        task_load(&self.balancer().version, &self.tasks[task.index()], &self.scale)
    }

    fn prio(&self, _: &Core, task: TaskId) -> i32 {
        i32::from(self.tasks[task.index()].prio)
    }

    fn is_hot(&self, core: &Core, looker: Looker, task: TaskId) -> bool {
        let balancer = self.balancer();
        let takes_hot = balancer.version.counts_tasks && balancer.core_is_idle(core, looker.cpu);
        !takes_hot && self.was_hot(core, balancer, (looker.cpu, looker.position), task)
    }

    fn move_tasks(&mut self, core: &mut Core, looker: Looker, from: CpuId, most: u64) -> Moved {
        let candidates = self.movable(core, from);
        let mut run = Move::new(looker, from, i32::from(self.best_prio(core, looker.cpu)));
        let most = if self.balancer().version.counts_tasks {
            run.most_tasks = most;
            i64::MAX
        } else {
            run.most_tasks = u64::from(core.rq(from).nr_running) - 1;
            let best = i32::from(self.best_prio(core, from));
            let runs = core.rq(from).curr.map(|curr| self.prio(core, curr));
            run.only_best = Some(best).filter(|best| runs != Some(*best));
            most as i64
        };
        let any = move_some(self, core, &mut run, &candidates, most) > 0;
        Moved { any, all_pinned: run.all_pinned }
    }

    /// Waiting tasks of `from`, expired ones first, each list from its tail.
    fn movable(&self, _: &Core, from: CpuId) -> Vec<TaskId> {
        let of_side = |side| self.arrays.iter_from_tails(from, side);
        [Side::Expired, Side::Active].into_iter().flat_map(of_side).collect()
    }

    fn pull_task(&mut self, core: &mut Core, task: TaskId, run: &Move) {
        let side = self.arrays.side(task).expect("what is moved waits in an array");
        self.pull_task_of(core, task, run.from, run.looker.cpu, side);
    }
}
