// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the CPU for a new fair task: the idlest CPU of the idlest group, from the largest domain
//! down.
//!
//! Source: Linux kernel/sched/fair.c (find_idlest_cpu, find_idlest_group, update_pick_idlest,
//! find_idlest_group_cpu). Left out: exit latencies of idle states. Of several idle CPUs, the model
//! takes the one that became idle last.

use super::busiest::adjust_numa_imbalance;
use super::stats::{GroupStats, GroupType};
use super::{Balancer, FairQueues};
use crate::boundary::core::Core;
use crate::boundary::domains::{Domain, Group};
use schedlab_model::{CpuId, TaskId};

impl Balancer {
    /// Walks down from the domain below position `largest` of `cpu`.
    pub(super) fn find_idlest_cpu(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        task: TaskId,
        cpu: CpuId,
        prev: CpuId,
        largest: usize,
    ) -> CpuId {
        let domains = &self.domains;
        let allowed = &core.task(task).cpus_allowed;
        let Some(top) = largest.checked_sub(1) else { return prev };
        let span = &domains.domain(domains.of_cpu(cpu)[top].domain).span;
        if span.and(allowed).is_empty() {
            return prev;
        }
        let (mut cpu, mut above) = (cpu, largest);
        while let Some(position) = above.checked_sub(1) {
            above = position;
            let entry = domains.of_cpu(cpu)[position];
            let domain = domains.domain(entry.domain);
            let local = entry.local_group as usize;
            let Some(group) = self.find_idlest_group(core, fair, task, domain, local) else {
                continue;
            };
            let found = self.find_idlest_group_cpu(core, fair, task, &domain.groups[group], cpu);
            if found != cpu {
                // Continue with the domains below, as the chosen CPU sees them.
                cpu = found;
                above = domains
                    .iter(cpu)
                    .position(|lower| lower.weight >= domain.weight)
                    .unwrap_or(domains.of_cpu(cpu).len());
            }
        }
        cpu
    }

    /// The idlest group; `None` if the local group is as idle.
    fn find_idlest_group(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        task: TaskId,
        domain: &Domain,
        local_group: usize,
    ) -> Option<usize> {
        let allowed = &core.task(task).cpus_allowed;
        let mut local = None;
        let mut idlest: Option<(usize, GroupStats)> = None;
        let nr_groups = domain.groups.len();
        for step in 0..nr_groups {
            let index = (local_group + step) % nr_groups;
            let group = &domain.groups[index];
            if !group.span.intersects(allowed) {
                continue;
            }
            let mut stats = self.group_sums(core, fair, group, &group.span);
            stats.kind = stats.classify(domain.imbalance_pct, false, false);
            if matches!(stats.kind, GroupType::FullyBusy | GroupType::Overloaded) {
                stats.avg_load = stats.load_by_capacity();
            }
            if step == 0 {
                local = Some(stats);
            } else if idlest.as_ref().is_none_or(|(_, best)| is_idler(&stats, best)) {
                idlest = Some((index, stats));
            }
        }
        let (index, idlest) = idlest?;
        let Some(local) = local else { return Some(index) };
        let stays = match local.kind.cmp(&idlest.kind) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => {
                let local_cpus = domain.groups[local_group].span.and(allowed).weight();
                stays_local(domain, &local, &idlest, local_cpus)
            }
        };
        (!stays).then_some(index)
    }

    fn find_idlest_group_cpu(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        task: TaskId,
        group: &Group,
        this: CpuId,
    ) -> CpuId {
        if group.weight == 1 {
            return group.span.first_cpu().expect("a group has a CPU");
        }
        let mut idle: Option<(CpuId, u64)> = None;
        let mut least: Option<(CpuId, u64)> = None;
        for cpu in group.span.and(&core.task(task).cpus_allowed).iter() {
            if self.counts_as_idle(core, task) && fair.sched_idle_cpu(core, cpu) {
                return cpu;
            }
            if core.idle_cpu(cpu) {
                let since = core.rq(cpu).idle_since;
                if idle.is_none_or(|(_, latest)| since > latest) {
                    idle = Some((cpu, since));
                }
            } else if idle.is_none() {
                let load = fair.cpu_load(cpu);
                if least.is_none_or(|(_, min)| load < min) {
                    least = Some((cpu, load));
                }
            }
        }
        idle.or(least).map_or(this, |(cpu, _)| cpu)
    }
}

/// Whether `group` replaces `best` as the idlest.
fn is_idler(group: &GroupStats, best: &GroupStats) -> bool {
    if group.kind != best.kind {
        return group.kind < best.kind;
    }
    match group.kind {
        GroupType::Overloaded | GroupType::FullyBusy => group.avg_load < best.avg_load,
        GroupType::HasSpare => {
            group.idle_cpus > best.idle_cpus
                || (group.idle_cpus == best.idle_cpus && group.util < best.util)
        }
        GroupType::Misfit | GroupType::SmtBalance | GroupType::Imbalanced => false,
    }
}

/// Whether a task should stay in the local group although `idlest` is of the same kind.
/// `local_cpus`: CPUs of the local group that the task may use.
fn stays_local(domain: &Domain, local: &GroupStats, idlest: &GroupStats, local_cpus: u32) -> bool {
    match local.kind {
        GroupType::Overloaded | GroupType::FullyBusy => {
            let imbalance = 1024 * (domain.imbalance_pct - 100) / 100;
            (domain.is_numa() && idlest.avg_load + imbalance >= local.avg_load)
                || idlest.avg_load >= local.avg_load + imbalance
                || 100 * local.avg_load <= domain.imbalance_pct * idlest.avg_load
        }
        GroupType::Misfit | GroupType::SmtBalance | GroupType::Imbalanced => true,
        GroupType::HasSpare => {
            if domain.is_numa() {
                let tolerated = domain.imb_numa_nr.min(local_cpus);
                let apart = i64::from(local.idle_cpus.abs_diff(idlest.idle_cpus));
                if adjust_numa_imbalance(apart, local.nr_running + 1, tolerated) == 0 {
                    return true;
                }
            }
            local.idle_cpus >= idlest.idle_cpus
        }
    }
}
