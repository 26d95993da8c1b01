// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the CPU for a waking fair task.
//!
//! Source: Linux kernel/sched/fair.c (select_task_rq_fair, record_wakee, wake_wide, wake_affine,
//! select_idle_sibling, select_idle_cpu, select_idle_core, select_idle_smt).

use super::{Balancer, FairQueues};
use crate::boundary::core::Core;
use crate::boundary::domains::Domain;
use crate::boundary::explain::{Fact, StepKind};
use crate::boundary::flags::WakeFlags;
use schedlab_model::{CpuId, CpuMask, TaskId};

impl Balancer {
    /// The CPU for `task`, whose previous CPU is `prev`.
    pub fn select_task_rq(
        &mut self,
        core: &Core,
        fair: &mut impl FairQueues,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let this = flags.this_cpu;
        let allowed = &core.task(task).cpus_allowed;
        let cpu = if flags.is_fork() {
            let largest = self.domains.of_cpu(this).len();
            self.find_idlest_cpu(core, fair, task, this, prev, largest)
        } else {
            self.select_for_wakeup(core, fair, task, prev, flags)
        };
        if allowed.contains(cpu) {
            return cpu;
        }
        // The core's fallback: first the same node, then any CPU.
        let node = core.topology.node_span(prev).and(allowed);
        node.first_cpu().or(allowed.first_cpu()).expect("affinity lies within the machine")
    }

    fn select_for_wakeup(
        &mut self,
        core: &Core,
        fair: &mut impl FairQueues,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let this = flags.this_cpu;
        if let Some(waker) = flags.waker {
            fair.record_wakee(core, waker, task);
        }
        let want_affine = this != prev
            && core.task(task).cpus_allowed.contains(this)
            && !self.is_wide(fair, flags.waker, task, this);
        let mut target = prev;
        if want_affine
            && let Some(domain) = self.domains.iter(this).find(|domain| domain.span.contains(prev))
        {
            target = self.wake_affine(core, fair, domain, task, this, prev, flags);
        }
        self.select_idle_sibling(core, fair, task, prev, target)
    }

    /// Whether waker and task are in a one-to-many relation too large for one cache (wake_wide).
    fn is_wide(
        &self,
        fair: &impl FairQueues,
        waker: Option<TaskId>,
        task: TaskId,
        this: CpuId,
    ) -> bool {
        let llc_size = u64::from(self.domains.llc(this).map_or(1, |llc| llc.weight));
        let waker = waker.map_or(0, |waker| fair.wakee_flips(waker));
        let wakee = fair.wakee_flips(task);
        let (most, least) = (u64::from(waker.max(wakee)), u64::from(waker.min(wakee)));
        least >= llc_size && most >= least * llc_size
    }

    /// Chooses between the waker's CPU and the task's previous one.
    #[allow(clippy::too_many_arguments)]
    fn wake_affine(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        domain: &Domain,
        task: TaskId,
        this: CpuId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let features = self.options.features;
        if features.wa_idle
            && let Some(cpu) = self.wake_affine_idle(core, fair, this, prev, flags.sync)
        {
            return cpu;
        }
        if !features.wa_weight {
            return prev;
        }
        let mut this_load = fair.cpu_load(this);
        if flags.sync {
            let waker = flags.waker.map_or(0, |waker| fair.task_h_load(waker));
            if waker > this_load {
                return this;
            }
            this_load -= waker;
        }
        let load = fair.task_h_load(task);
        let (percent, bias) = match features.wa_bias {
            true => (100, 100 + (domain.imbalance_pct - 100) / 2),
            false => (1, 1),
        };
        let this_effect = (this_load + load) * percent * self.capacity_of(core, prev);
        let prev_load = fair.cpu_load(prev).saturating_sub(load);
        let prev_effect = prev_load * bias * self.capacity_of(core, this) + u64::from(flags.sync);
        if this_effect < prev_effect { this } else { prev }
    }

    /// The CPU that the rule about idle CPUs chooses, if any.
    fn wake_affine_idle(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        this: CpuId,
        prev: CpuId,
        sync: bool,
    ) -> Option<CpuId> {
        if core.idle_cpu(this) && self.domains.share_cache(this, prev) {
            return Some(if core.idle_cpu(prev) { prev } else { this });
        }
        let counts_all = self.options.rules.sync_counts_delayed;
        let chosen = if sync
            && core.rq(this).nr_running - if counts_all { 0 } else { fair.h_nr_delayed(this) } == 1
        {
            Some(this)
        } else {
            core.idle_cpu(prev).then_some(prev)
        };
        self.note(StepKind::SyncWakeup, this, || {
            vec![
                Fact::flag("sync", sync),
                Fact::number("nr_running", core.rq(this).nr_running),
                Fact::number("nr_delayed", fair.h_nr_delayed(this)),
                Fact::flag("chosen", chosen == Some(this)),
            ]
        });
        chosen
    }

    /// An idle CPU that shares a cache with `target`, else `target`.
    fn select_idle_sibling(
        &mut self,
        core: &Core,
        fair: &mut impl FairQueues,
        task: TaskId,
        prev: CpuId,
        target: CpuId,
    ) -> CpuId {
        let allowed = &core.task(task).cpus_allowed;
        let fits = |cpu: CpuId| allowed.contains(cpu) && self.is_idle_for(core, fair, task, cpu);
        if fits(target) {
            return target;
        }
        if prev != target && self.domains.share_cache(prev, target) && fits(prev) {
            return prev;
        }
        let recent = fair.swap_recent_used_cpu(task, prev);
        let fits = |cpu: CpuId| allowed.contains(cpu) && self.is_idle_for(core, fair, task, cpu);
        if let Some(recent) = recent
            && recent != prev
            && recent != target
            && self.domains.share_cache(recent, target)
            && fits(recent)
        {
            return recent;
        }
        let Some(llc) = self.domains.llc_id(target) else { return target };
        let mut has_idle_core = false;
        if self.domains.smt_active() {
            has_idle_core = self.llcs[llc as usize].has_idle_cores;
            if !has_idle_core && self.domains.share_cache(prev, target) {
                let siblings = self.domains.smt_mask(prev);
                if let Some(cpu) = siblings.iter().find(|cpu| *cpu != prev && fits(*cpu)) {
                    return cpu;
                }
            }
        }
        // Most tasks may run on all CPUs.
        let is_free = core.task(task).nr_cpus_allowed == core.nr_cpus();
        let span = &self.domains.domain(llc).span;
        let found = if has_idle_core {
            let candidates = if is_free { *span } else { span.and(allowed) };
            self.select_idle_core(core, fair, task, &candidates, target, llc)
        } else if is_free {
            self.scan_llc(core, fair, task, span, target, llc)
        } else {
            self.scan_llc(core, fair, task, &span.and(allowed), target, llc)
        };
        found.unwrap_or(target)
    }

    /// Searches a few CPUs after `target`; the busier the cache is, the fewer.
    fn scan_llc(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        task: TaskId,
        candidates: &CpuMask,
        target: CpuId,
        llc: u32,
    ) -> Option<CpuId> {
        let budget = match self.options.features.sis_util {
            true => self.llcs[llc as usize].nr_idle_scan,
            false => u32::MAX,
        };
        let start = CpuId(target.0 + 1);
        let walk = || {
            let mut few = candidates.iter_from(start).take(budget as usize);
            few.find(|cpu| self.is_idle_for(core, fair, task, *cpu))
        };
        if fair.may_have_sched_idle() {
            return walk();
        }
        let found = match core.idle_cpus.is_empty() {
            true => None,
            false => candidates.first_common_from(start, &core.idle_cpus, budget),
        };
        debug_assert_eq!(found, walk());
        found
    }

    /// Finds a core whose hardware threads are all idle; otherwise the first idle CPU.
    fn select_idle_core(
        &mut self,
        core: &Core,
        fair: &impl FairQueues,
        task: TaskId,
        candidates: &CpuMask,
        target: CpuId,
        llc: u32,
    ) -> Option<CpuId> {
        let mut visited = CpuMask::empty();
        let mut idle_cpu = None;
        for cpu in candidates.iter_from(CpuId(target.0 + 1)) {
            if visited.contains(cpu) {
                continue;
            }
            let siblings = self.domains.smt_mask(cpu);
            if self.is_core_idle(core, cpu) {
                return Some(cpu);
            }
            visited = visited.or(siblings);
            if idle_cpu.is_none() {
                idle_cpu = siblings
                    .iter()
                    .find(|c| candidates.contains(*c) && self.is_idle_for(core, fair, task, *c));
            }
        }
        self.llcs[llc as usize].has_idle_cores = false;
        idle_cpu
    }
}
