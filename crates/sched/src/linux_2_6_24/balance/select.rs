// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU for a waking or a new task.
//!
//! Source: Linux 2.6.24, kernel/sched.c (`try_to_wake_up`, `wake_idle`, `sched_balance_self`,
//! `find_idlest_group`, `find_idlest_cpu`), and 2.6.32.67, kernel/sched_fair.c
//! (`select_task_rq_fair`, `wake_affine`, `effective_load`, `select_idle_sibling`).

use super::super::Fair;
use super::busiest::LOAD_SCALE;
use super::levels::Level;
use crate::core::Core;
use crate::fair::rbtree::NIL;
use crate::flags::WakeFlags;
use schedlab_model::{CpuId, TaskId};

/// Why a CPU is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    Fork,
    /// The launcher starts a program.
    Exec,
}

impl Reason {
    fn applies(self, level: &Level) -> bool {
        self == Self::Exec || level.fork
    }
}

impl Fair {
    /// The CPU for `task`, which was last on `prev` or is forked there.
    pub(in crate::linux_2_6_24) fn select_cpu(
        &mut self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let allowed = &core.task(task).cpus_allowed;
        let prev = match allowed.contains(prev) {
            true => prev,
            false => allowed.first_cpu().expect("affinity was checked to be within the machine"),
        };
        if self.nr_cpus == 1 {
            return prev;
        }
        if flags.is_fork() {
            let reason = if flags.waker.is_some() { Reason::Fork } else { Reason::Exec };
            // A program that is alone on its CPU finds none that is less loaded.
            let stays = reason == Reason::Exec && core.rq(prev).nr_running == 0;
            return if stays { prev } else { self.balance_self(core, task, prev, reason) };
        }
        let sync = flags.sync && self.values.features.sync_wakeups;
        match self.rules.is_later {
            true => self.wake_later(core, task, prev, flags.this_cpu, sync),
            false => {
                let cpu = self.wake_first(core, task, prev, flags.this_cpu, sync);
                self.wake_idle(core, task, cpu)
            }
        }
    }

    /// The waker's CPU if it should have `task`, else `prev` (2.6.24).
    fn wake_first(&self, core: &Core, task: TaskId, prev: CpuId, this: CpuId, sync: bool) -> CpuId {
        if prev == this || !core.task(task).cpus_allowed.contains(this) {
            return prev;
        }
        let mut domains = self.balance.domains.iter(this);
        let Some(position) = domains.position(|domain| domain.span.contains(prev)) else {
            return prev;
        };
        let level = self.balance.level(this, position);
        let imbalance = 100 + (level.imbalance_pct - 100) / 2;
        let load = self.source_load(core, prev, level.wake_idx);
        let this_load = self.target_load(core, this, level.wake_idx);
        let e = self.task_entity(task);
        if level.wake_affine {
            // Tasks that are cold anyway come on a synchronous wake-up.
            if sync && !self.is_hot(core, this, e) {
                return this;
            }
            let leaves = core.rq(this).curr.filter(|_| sync);
            let leaves = leaves.map_or(0, |curr| self.weight_of(core, curr));
            let rest = this_load.saturating_sub(leaves);
            let fits = rest <= load
                && rest + self.target_load(core, prev, level.wake_idx)
                    <= self.load_per_task(core, this);
            if fits || 100 * (rest + self.weight_of(core, task)) <= imbalance * load {
                return this;
            }
        }
        if level.wake_balance && imbalance * this_load <= 100 * load {
            return this;
        }
        prev
    }

    /// Weight of a task of any class.
    pub(super) fn weight_of(&self, core: &Core, task: TaskId) -> u64 {
        match self.is_fair(core, task) {
            true => self.ent(self.task_entity(task)).load.weight,
            false => self.rules.rt_weight,
        }
    }

    /// An idle thread of the core of `cpu`, if that runs one task; else `cpu` (2.6.24).
    fn wake_idle(&self, core: &Core, task: TaskId, cpu: CpuId) -> CpuId {
        if core.rq(cpu).curr.is_none() || core.rq(cpu).nr_running > 1 {
            return cpu;
        }
        let allowed = &core.task(task).cpus_allowed;
        for (position, domain) in self.balance.domains.iter(cpu).enumerate() {
            if !self.balance.level(cpu, position).wake_idle {
                break;
            }
            let span = domain.span.and(allowed);
            if let Some(idle) = span.iter().find(|other| core.rq(*other).curr.is_none()) {
                return idle;
            }
        }
        cpu
    }

    /// The least loaded CPU of the least loaded group, from the widest domain inwards.
    fn balance_self(&self, core: &Core, task: TaskId, prev: CpuId, reason: Reason) -> CpuId {
        let applies = |cpu, position| reason.applies(self.balance.level(cpu, position));
        let mut cpu = prev;
        let mut width = u32::MAX;
        loop {
            let domains = self.balance.domains.iter(cpu);
            let fits = domains
                .enumerate()
                .filter(|(position, domain)| domain.weight < width && applies(cpu, *position));
            let Some((position, domain)) = fits.last() else { return cpu };
            width = domain.weight;
            // Who calls exec is counted on its CPU already.
            let own = if reason == Reason::Exec && cpu == prev { LOAD_SCALE } else { 0 };
            if let Some(idlest) = self.find_idlest(core, task, (cpu, position), own) {
                cpu = idlest;
            }
        }
    }

    /// The least loaded CPU of the least loaded group other than that of `cpu`, if that has enough
    /// more; `extra` is added to the load of the own group.
    fn find_idlest(
        &self,
        core: &Core,
        task: TaskId,
        (cpu, position): (CpuId, usize),
        extra: u64,
    ) -> Option<CpuId> {
        let entry = self.balance.domains.of_cpu(cpu)[position];
        let level = self.balance.level(cpu, position);
        let allowed = &core.task(task).cpus_allowed;
        let groups = &self.balance.domains.domain(entry.domain).groups;
        let own = entry.local_group as usize;
        let (mut this_load, mut least) = (0, None);
        for step in 0..groups.len() {
            let index = (own + step) % groups.len();
            let span = &groups[index].span;
            if !span.intersects(allowed) {
                continue;
            }
            let load = |cpu| match index == own {
                true => self.source_load(core, cpu, level.forkexec_idx),
                false => self.target_load(core, cpu, level.forkexec_idx),
            };
            let load: u64 = span.iter().map(load).sum();
            let load = if index == own { load + extra } else { load };
            let load = load * LOAD_SCALE / level.power[index];
            if index == own {
                this_load = load;
            } else if least.is_none_or(|(least, _)| load < least) {
                least = Some((load, index));
            }
        }
        let (least_load, index) = least?;
        let imbalance = 100 + (level.imbalance_pct - 100) / 2;
        if 100 * this_load < imbalance * least_load {
            return None;
        }
        let candidates = groups[index].span.and(allowed);
        candidates.iter().min_by_key(|candidate| self.cpu_weight(core, *candidate))
    }

    /// A CPU near the waker's or the task's own (2.6.32).
    fn wake_later(
        &mut self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        this: CpuId,
        sync: bool,
    ) -> CpuId {
        let allowed = core.task(task).cpus_allowed;
        let affine = self.values.features.affine_wakeups && allowed.contains(this);
        let spans = self.balance.domains.iter(this).position(|domain| domain.span.contains(prev));
        let Some(position) = spans.filter(|_| affine) else { return prev };
        if !self.balance.level(this, position).wake_affine {
            return prev;
        }
        if self.values.features.lb_shares_update {
            self.update_shares(core, this, position);
        }
        let comes = this == prev || self.wake_affine(core, task, prev, this, position, sync);
        self.idle_sibling(core, task, prev, this, if comes { this } else { prev })
    }

    /// Whether the waker's CPU should have `task`.
    fn wake_affine(
        &self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        this: CpuId,
        position: usize,
        sync: bool,
    ) -> bool {
        let level = self.balance.level(this, position);
        let curr = core.rq(this).curr;
        let sync = self.is_sync(core, task, curr, sync);
        let mut load = self.source_load(core, prev, level.wake_idx) as i64;
        let mut this_load = self.target_load(core, this, level.wake_idx) as i64;
        if let Some(curr) = curr.filter(|_| sync) {
            let weight = self.weight_of(core, curr) as i64;
            let group = core.task(curr).attr.cgroup.0;
            this_load += self.effective_load(group, this, -weight, -weight);
            load += self.effective_load(group, prev, 0, -weight);
        }
        let weight = self.ent(self.task_entity(task)).load.weight as i64;
        let group = core.task(task).attr.cgroup.0;
        let balanced = this_load == 0 || {
            let power = |cpu: CpuId| self.balance.cpu_power[cpu.index()] as i64;
            let here = this_load + self.effective_load(group, this, weight, weight);
            let there = load + self.effective_load(group, prev, 0, weight);
            let pct = 100 + (level.imbalance_pct as i64 - 100) / 2;
            100 * power(prev) * here <= pct * power(this) * there
        };
        let target = self.target_load(core, prev, level.wake_idx) as i64;
        balanced
            || (this_load <= load && this_load + target <= self.load_per_task(core, this) as i64)
    }

    /// Whether the waker's hint counts, given how long the two overlap.
    fn is_sync(&self, core: &Core, task: TaskId, curr: Option<TaskId>, sync: bool) -> bool {
        let features = self.values.features;
        let cost = self.values.migration_cost;
        let overlap = |task: TaskId| self.habits(self.task_entity(task)).avg_overlap;
        let Some(curr) = curr.filter(|curr| self.is_fair(core, *curr)) else { return sync };
        let (mine, theirs) = (overlap(curr), overlap(task));
        match sync {
            true => !(features.sync_less && (mine > cost || theirs > cost)),
            false => features.sync_more && mine < cost && theirs < cost,
        }
    }

    /// By how much the load of `cpu` changes if the weight of `group` there changes by `wl`, and on
    /// all CPUs together by `wg`.
    fn effective_load(&self, group: u32, cpu: CpuId, wl: i64, wg: i64) -> i64 {
        if group == 0 || (wl == 0 && self.values.features.asym_eff_load) {
            return wl;
        }
        let (mut wl, mut wg) = (wl, wg);
        let mut e = self.rq(self.group_queue(group, cpu)).se;
        while e != NIL {
            let rq = self.rq(self.ent(e).my_q);
            // The shares were computed for another load than there is now.
            let more = rq.load as i64 - rq.rq_weight as i64;
            wl += more;
            wg += more;
            let all = self.groups[rq.group as usize].shares as i64;
            let (shares, weight) = (rq.shares as i64, rq.rq_weight as i64);
            let a = all * (weight + wl);
            let b = all * weight + shares * wg;
            wl = shares.saturating_mul(a - b);
            if b != 0 {
                wl /= b;
            }
            wg = 0;
            e = self.ent(e).parent;
        }
        wl
    }

    /// An idle CPU that shares a cache with `target`, or `target`.
    fn idle_sibling(
        &self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        this: CpuId,
        target: CpuId,
    ) -> CpuId {
        let is_idle = |cpu: CpuId| core.rq(cpu).curr.is_none();
        if is_idle(target) {
            return target;
        }
        let allowed = &core.task(task).cpus_allowed;
        let mut found = target;
        for (position, domain) in self.balance.domains.iter(target).enumerate() {
            if !self.balance.level(target, position).shares_cache {
                break;
            }
            // A wider domain may find another one, as in the kernel.
            if let Some(idle) = domain.span.and(allowed).iter().find(|cpu| is_idle(*cpu)) {
                found = idle;
            }
            if domain.span.contains(this) && domain.span.contains(prev) {
                break;
            }
        }
        found
    }
}
