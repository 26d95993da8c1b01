// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the CPU for a waking or a new task.
//!
//! Source: Linux 2.6.24, kernel/sched.c (`try_to_wake_up`), and 2.6.32.67, kernel/sched_fair.c
//! (`select_task_rq_fair`, `wake_affine`, `effective_load`, `select_idle_sibling`).

use super::super::Fair;
use crate::balance::early::select::{Reason, Waking, new_cpu, wake_cpu};
use crate::balance::early::{Runqueues, source_load, target_load};
use crate::boundary::core::Core;
use crate::boundary::flags::WakeFlags;
use crate::fair::rbtree::NIL;
use schedlab_model::{CpuId, TaskId};

impl Fair {
    /// The CPU for `task`, which last ran on `prev` or is forked there.
    pub(in crate::cfs_groups) fn select_cpu(
        &mut self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let prev = core.allowed_cpu(task, prev);
        if self.nr_cpus == 1 {
            return prev;
        }
        if let Some(reason) = Reason::of(flags) {
            return new_cpu(self, core, task, prev, reason);
        }
        let sync = flags.sync && self.values.features.sync_wakeups;
        match self.rules.is_later {
            true => self.wake_later(core, task, prev, flags.this_cpu, sync),
            false => {
                let this = flags.this_cpu;
                let leaves = core.rq(this).curr.filter(|_| sync);
                let leaves = leaves.map_or(0, |curr| self.task_weight(core, curr));
                // Cache-cold tasks move on a synchronous wake-up.
                let comes = sync && !self.is_cache_hot(core, this, task);
                wake_cpu(self, core, Waking { task, prev, this, leaves, comes })
            }
        }
    }

    /// A CPU near the waker's CPU or near the task's own (2.6.32).
    fn wake_later(
        &mut self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        this: CpuId,
        sync: bool,
    ) -> CpuId {
        let allowed = *core.task(task).cpus_allowed;
        let affine = self.values.features.affine_wakeups && allowed.contains(this);
        let spans = self.balancer().position_with(this, prev);
        let Some(position) = spans.filter(|_| affine) else { return prev };
        if !self.balancer().level(this, position).wake_affine {
            return prev;
        }
        if self.values.features.lb_shares_update {
            self.update_shares(core, this, position);
        }
        let comes = this == prev || self.wake_affine(core, task, prev, this, position, sync);
        self.idle_sibling(core, task, prev, this, if comes { this } else { prev })
    }

    /// Whether `task` should move to the waker's CPU.
    fn wake_affine(
        &self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        this: CpuId,
        position: usize,
        sync: bool,
    ) -> bool {
        let level = self.balancer().level(this, position);
        let curr = core.rq(this).curr;
        let sync = self.is_sync(core, task, curr, sync);
        let mut load = source_load(self, core, prev, level.wake_idx) as i64;
        let mut this_load = target_load(self, core, this, level.wake_idx) as i64;
        if let Some(curr) = curr.filter(|_| sync) {
            let weight = self.task_weight(core, curr) as i64;
            let group = core.task(curr).attr.cgroup.0;
            this_load += self.effective_load(group, this, -weight, -weight);
            load += self.effective_load(group, prev, 0, -weight);
        }
        let weight = self.ent(self.task_entity(task)).load.weight as i64;
        let group = core.task(task).attr.cgroup.0;
        let balanced = this_load == 0 || {
            let power = |cpu: CpuId| self.balancer().cpu_power[cpu.index()] as i64;
            let here = this_load + self.effective_load(group, this, weight, weight);
            let there = load + self.effective_load(group, prev, 0, weight);
            let pct = level.half_imbalance_pct() as i64;
            100 * power(prev) * here <= pct * power(this) * there
        };
        let target = target_load(self, core, prev, level.wake_idx) as i64;
        balanced
            || (this_load <= load && this_load + target <= self.load_per_task(core, this) as i64)
    }

    /// Whether the waker's hint counts, given how long waker and task overlap.
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

    /// The change in the load of `cpu` if the weight of `group` changes by `wl` there, and by `wg`
    /// on all CPUs together.
    fn effective_load(&self, group: u32, cpu: CpuId, wl: i64, wg: i64) -> i64 {
        if group == 0 || (wl == 0 && self.values.features.asym_eff_load) {
            return wl;
        }
        let (mut wl, mut wg) = (wl, wg);
        let mut e = self.rq(self.group_queue(group, cpu)).se;
        while e != NIL {
            let rq = self.rq(self.ent(e).my_q);
            // The shares were computed for another load than the present one.
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

    /// An idle CPU that shares a cache with `target`, or else `target`.
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
        for (position, domain) in self.balancer().domains.iter(target).enumerate() {
            if !self.balancer().level(target, position).shares_cache {
                break;
            }
            // A wider domain can find another one, as in the kernel.
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
