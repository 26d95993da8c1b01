// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether a domain is out of balance, which CPU has too much, and how much of it.
//!
//! Source: Linux kernel/sched/fair.c (update_sd_pick_busiest, find_busiest_group,
//! calculate_imbalance, sibling_imbalance, find_busiest_queue, adjust_numa_imbalance).

use super::detach::{Activity, Attempt};
use super::stats::{GroupStats, GroupType, SCALE, is_highest};
use super::{Balancer, FairQueues};
use crate::boundary::core::Core;
use crate::boundary::domains::Domain;
use schedlab_model::CpuId;

/// The quantity to move (`enum migration_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MigrationType {
    Load,
    Util,
    Task,
}

/// Statistics of a domain (`struct sd_lb_stats`).
struct DomainStats {
    local: GroupStats,
    busiest: Option<(usize, GroupStats)>,
    total_load: u64,
    total_capacity: u64,
    prefer_sibling: bool,
}

/// Sums over the groups of a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Totals {
    load: u64,
    capacity: u64,
    util: u64,
    overload: bool,
}

impl Totals {
    #[inline]
    fn add(&mut self, stats: &GroupStats) {
        self.load += stats.load;
        self.capacity += stats.capacity;
        self.util += stats.util;
        self.overload |= stats.overload;
    }
}

impl DomainStats {
    fn avg_load(&self) -> u64 {
        self.total_load * SCALE / self.total_capacity
    }
}

/// The imbalance between nodes that counts. On a lightly used node, a pair of tasks may stay apart.
pub(super) fn adjust_numa_imbalance(imbalance: i64, dst_running: u32, imb_numa_nr: u32) -> i64 {
    const NUMA_IMBALANCE_MIN: i64 = 2;
    if dst_running <= imb_numa_nr && imbalance <= NUMA_IMBALANCE_MIN { 0 } else { imbalance }
}

impl Balancer {
    /// The busiest group of the attempt's domain, if tasks should be pulled from it. Sets the
    /// quantity and the amount.
    pub(super) fn find_busiest_group(
        &mut self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &mut Attempt,
    ) -> Option<usize> {
        let stats = self.domain_stats(core, fair, attempt);
        let domain = self.domains.domain(attempt.domain);
        let (group, busiest) = stats.busiest?;
        if !self.is_unbalanced(attempt, domain, &stats, &busiest) {
            return None;
        }
        let (kind, amount) = self.imbalance(attempt, domain, &stats, &busiest);
        attempt.kind = kind;
        attempt.imbalance = amount;
        (amount > 0).then_some(group)
    }

    /// Quickly tests whether `cpu`, which becomes idle, would find no task to pull: no other CPU
    /// has two tasks that would run, and none is overloaded. The test applies only if its single
    /// domain consists of whole CPUs that only the fair class uses; otherwise it returns false.
    ///
    /// Such CPUs have room or are fully busy. A CPU of the same domain takes a task from one of
    /// these only if more than one would run there (see [`Self::is_unbalanced`]). No domain above
    /// needs to know about a failure.
    pub(super) fn finds_nobody(&mut self, core: &Core, fair: &impl FairQueues, cpu: CpuId) -> bool {
        let [entry] = self.domains.of_cpu(cpu) else { return false };
        let domain = self.domains.domain(entry.domain);
        let is_plain = domain.has_single_cpus && is_highest(core) && !core.tracks_touched();
        if !is_plain || self.nr_imbalanced[entry.domain as usize] > 0 || core.rq(cpu).nr_running > 0
        {
            return false;
        }
        let mut overload = false;
        for group in &domain.groups {
            let stats = GroupStats::of_cpu(core, fair, group.first);
            if stats.h_nr_running > 1 || stats.is_overloaded(domain.imbalance_pct) {
                return false;
            }
            overload |= stats.overload;
        }
        self.overload = overload;
        debug_assert!(self.agrees_on_nobody(core, fair, cpu, overload));
        true
    }

    /// Whether the complete attempt has the same result.
    fn agrees_on_nobody(
        &mut self,
        core: &Core,
        fair: &impl FairQueues,
        cpu: CpuId,
        overload: bool,
    ) -> bool {
        let mut attempt = self.attempt(cpu, 0, Activity::NewlyIdle);
        let group = self.find_busiest_group(core, fair, &mut attempt);
        let found = group.and_then(|group| self.find_busiest_queue(core, fair, &attempt, group));
        found.is_none() && self.overload == overload
    }

    fn domain_stats(
        &mut self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &Attempt,
    ) -> DomainStats {
        if attempt.position == 0 {
            self.update_capacity(core, attempt.dst, attempt.is_newly_idle());
        }
        let mut totals = Totals::default();
        let is_plain = !attempt.has_kept() && self.has_plain_cpus(core, attempt);
        let stats_of = |index| match is_plain {
            true => self.stats_of_cpu(core, fair, attempt, index),
            false => self.stats_of(core, fair, attempt, index),
        };
        let local = stats_of(attempt.local_group);
        totals.add(&local);
        let busiest = if is_plain {
            self.busiest_cpu(core, fair, attempt, &mut totals)
        } else if attempt.has_kept() {
            self.busiest_by_sums(core, fair, attempt, &mut totals)
        } else {
            self.busiest_group(core, fair, attempt, &mut totals)
        };
        // The loop keeps only the compared values of the busiest group, so sum up the rest again.
        let busiest = busiest.map(|index| (index, stats_of(index)));
        let is_root = self.domains.of_cpu(attempt.this_cpu).len() == attempt.position + 1;
        if is_root {
            self.overload = totals.overload;
        }
        if !attempt.is_newly_idle() {
            self.update_idle_scan(attempt.dst, attempt.domain, totals.util);
        }
        DomainStats {
            local,
            busiest,
            total_load: totals.load,
            total_capacity: totals.capacity,
            prefer_sibling: self.prefers_sibling(attempt),
        }
    }

    /// The busiest of the other groups. Of equally busy groups, takes the first after the local
    /// one. Adds all of them to `totals`.
    fn busiest_group(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &Attempt,
        totals: &mut Totals,
    ) -> Option<usize> {
        let groups = &self.domains.domain(attempt.domain).groups;
        let by_core = self.options.rules.by_core;
        let mut busiest: Option<(usize, GroupStats)> = None;
        let mut index = attempt.local_group;
        for _ in 1..groups.len() {
            index = if index + 1 < groups.len() { index + 1 } else { 0 };
            let mut stats = self.group_sums(core, fair, &groups[index], &attempt.cpus);
            totals.add(&stats);
            if stats.h_nr_running == 0 {
                continue;
            }
            stats.misfit_load = self.misfit_load(core, fair, attempt, index);
            let stats = self.classified(attempt, index, stats);
            if busiest.as_ref().is_none_or(|(_, most)| stats.is_busier_than(most, by_core)) {
                busiest = Some((index, stats));
            }
        }
        busiest.map(|(index, _)| index)
    }

    /// Whether each group of the attempt's domain is one participating CPU with full capacity.
    /// [`Self::busiest_cpu`] then returns the same result as [`Self::busiest_group`].
    #[inline]
    fn has_plain_cpus(&self, core: &Core, attempt: &Attempt) -> bool {
        let domain = self.domains.domain(attempt.domain);
        domain.has_single_cpus && !attempt.has_left_out && is_highest(core)
    }

    /// Finds the busiest group if each group is a CPU of full capacity, as on most machines without
    /// hardware threads. Most attempts of idle CPUs spend their time in this loop. Returns the same
    /// result as [`Self::busiest_group`].
    fn busiest_cpu(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &Attempt,
        totals: &mut Totals,
    ) -> Option<usize> {
        let domain = self.domains.domain(attempt.domain);
        let pct = domain.imbalance_pct;
        let imbalanced = &self.imbalanced[attempt.domain as usize];
        let by_core = self.options.rules.by_core;
        let mut busiest: Option<(usize, GroupStats)> = None;
        let (groups, local) = (&domain.groups[..], attempt.local_group);
        for (groups, first) in [(&groups[local + 1..], local + 1), (&groups[..local], 0)] {
            for (group, index) in groups.iter().zip(first..) {
                let stats = GroupStats::of_cpu(core, fair, group.first);
                totals.add(&stats);
                if stats.h_nr_running == 0 {
                    continue;
                }
                let stats = stats.judged(pct, imbalanced[index], false);
                if busiest.as_ref().is_none_or(|(_, most)| stats.is_busier_than(most, by_core)) {
                    busiest = Some((index, stats));
                }
            }
        }
        busiest.map(|(index, _)| index)
    }

    /// Statistics of a group of the attempt's domain, which is one CPU of full capacity.
    #[inline]
    fn stats_of_cpu(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &Attempt,
        index: usize,
    ) -> GroupStats {
        let cpu = self.domains.domain(attempt.domain).groups[index].first;
        self.classified(attempt, index, GroupStats::of_cpu(core, fair, cpu))
    }

    /// Statistics of a group of the attempt's domain, from the kept sums if they are valid.
    fn stats_of(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &Attempt,
        index: usize,
    ) -> GroupStats {
        let plain = || {
            let group = &self.domains.domain(attempt.domain).groups[index];
            let mut stats = self.group_sums(core, fair, group, &attempt.cpus);
            stats.misfit_load = self.misfit_load(core, fair, attempt, index);
            self.classified(attempt, index, stats)
        };
        let sums = if attempt.has_kept() { self.sums.of(attempt.domain) } else { None };
        match sums {
            Some(sums) => {
                let stats = self.classified(attempt, index, sums.stats_of(index));
                debug_assert_eq!(stats, plain(), "sums of group {index} are out of date");
                stats
            }
            None => plain(),
        }
    }

    /// The greatest load of a CPU of a group other than the local one that an idle CPU should
    /// relieve: higher classes take much of it, and it has a single fair task
    /// (sched_reduced_capacity).
    fn misfit_load(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &Attempt,
        index: usize,
    ) -> u64 {
        if !attempt.is_idle() || index == attempt.local_group || is_highest(core) {
            return 0;
        }
        let domain = self.domains.domain(attempt.domain);
        let cpus = domain.groups[index].span.and(&attempt.cpus);
        let suffers = |cpu: &CpuId| {
            fair.h_nr_running(*cpu) == 1
                && self.is_capacity_reduced(core, *cpu, domain.imbalance_pct)
        };
        cpus.iter().filter(suffers).map(|cpu| fair.cpu_load(cpu)).max().unwrap_or(0)
    }

    /// Finds the busiest group from the kept sums. Returns the same result as
    /// [`Self::busiest_group`].
    fn busiest_by_sums(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &Attempt,
        totals: &mut Totals,
    ) -> Option<usize> {
        let sums = self.sums.of(attempt.domain)?;
        let busiest = sums.busiest_beside(attempt.local_group, attempt.is_idle());
        let mut found = Totals::default();
        (found.load, found.util, found.overload) = sums.totals();
        found.capacity = SCALE * u64::from(self.domains.domain(attempt.domain).weight);
        if cfg!(debug_assertions) {
            let mut plain = *totals;
            assert_eq!(self.busiest_group(core, fair, attempt, &mut plain), busiest);
            assert_eq!(plain, found, "sums of domain {} are out of date", attempt.domain);
        }
        *totals = found;
        busiest
    }

    /// The sums of a group of the attempt's domain, with its classification.
    #[inline(always)]
    fn classified(&self, attempt: &Attempt, index: usize, stats: GroupStats) -> GroupStats {
        let pct = self.domains.domain(attempt.domain).imbalance_pct;
        let is_local = index == attempt.local_group;
        let imbalanced = self.imbalanced[attempt.domain as usize][index];
        let smt_balance =
            attempt.is_idle() && !is_local && stats.is_smt_balance(self.options.rules.by_core);
        stats.judged(pct, imbalanced, smt_balance)
    }

    /// Whether the domain below has SD_PREFER_SIBLING.
    fn prefers_sibling(&self, attempt: &Attempt) -> bool {
        let below = attempt.position.checked_sub(1);
        below.is_some_and(|position| {
            let entry = self.domains.of_cpu(attempt.this_cpu)[position];
            self.domains.domain(entry.domain).prefer_sibling
        })
    }

    /// How many more tasks the busiest group has than the local one; with `by_core`, relative to
    /// the number of cores.
    fn sibling_imbalance(&self, idle: bool, busiest: &GroupStats, local: &GroupStats) -> u32 {
        let excess = busiest.nr_running.saturating_sub(local.nr_running);
        if !self.options.rules.by_core {
            return excess;
        }
        if !idle || busiest.nr_running == 0 {
            return 0;
        }
        if busiest.cores == local.cores {
            return excess;
        }
        let cores = local.cores + busiest.cores;
        let scaled =
            (local.cores * busiest.nr_running).saturating_sub(busiest.cores * local.nr_running);
        let imbalance = (2 * scaled + cores) / cores;
        if imbalance <= 1 && local.nr_running == 0 && busiest.nr_running > 1 {
            2
        } else {
            imbalance
        }
    }

    fn is_unbalanced(
        &self,
        attempt: &Attempt,
        domain: &Domain,
        stats: &DomainStats,
        busiest: &GroupStats,
    ) -> bool {
        let local = &stats.local;
        if matches!(busiest.kind, GroupType::Imbalanced | GroupType::Misfit) {
            return true;
        }
        if local.kind > busiest.kind {
            return false;
        }
        if local.kind == GroupType::Overloaded
            && (local.avg_load >= busiest.avg_load
                || local.avg_load >= stats.avg_load()
                || 100 * busiest.avg_load <= domain.imbalance_pct * local.avg_load)
        {
            return false;
        }
        if stats.prefer_sibling
            && local.kind == GroupType::HasSpare
            && self.sibling_imbalance(attempt.is_idle(), busiest, local) > 1
        {
            return true;
        }
        if busiest.kind != GroupType::Overloaded {
            if busiest.kind == GroupType::SmtBalance && local.is_core != busiest.is_core {
                // A CPU without siblings relieves a core, whatever the counts are.
                return attempt.is_idle();
            }
            let spreads = busiest.weight == 1 || local.idle_cpus > busiest.idle_cpus + 1;
            return attempt.is_idle() && spreads && busiest.h_nr_running != 1;
        }
        true
    }

    /// The quantity and the amount to move.
    fn imbalance(
        &self,
        attempt: &Attempt,
        domain: &Domain,
        stats: &DomainStats,
        busiest: &GroupStats,
    ) -> (MigrationType, i64) {
        let local = &stats.local;
        if matches!(busiest.kind, GroupType::Imbalanced | GroupType::SmtBalance) {
            return (MigrationType::Task, 1);
        }
        if busiest.kind == GroupType::Misfit {
            return (MigrationType::Load, busiest.misfit_load as i64);
        }
        if local.kind == GroupType::HasSpare {
            if busiest.kind > GroupType::FullyBusy && !domain.shares_llc() {
                let room = local.capacity.saturating_sub(local.util);
                return match room {
                    0 if attempt.is_idle() => (MigrationType::Task, 1),
                    room => (MigrationType::Util, room as i64),
                };
            }
            return (MigrationType::Task, self.spare_imbalance(attempt, domain, stats, busiest));
        }
        let local_load = local.load_by_capacity();
        let average = stats.avg_load();
        if local.kind < GroupType::Overloaded
            && (local_load >= busiest.avg_load || local_load >= average)
        {
            return (MigrationType::Load, 0);
        }
        let give = busiest.avg_load.saturating_sub(average) * busiest.capacity;
        let take = average.saturating_sub(local_load) * local.capacity;
        (MigrationType::Load, (give.min(take) / SCALE) as i64)
    }

    /// Number of tasks to move to a group with spare capacity.
    fn spare_imbalance(
        &self,
        attempt: &Attempt,
        domain: &Domain,
        stats: &DomainStats,
        busiest: &GroupStats,
    ) -> i64 {
        let local = &stats.local;
        let mut imbalance = if busiest.weight == 1 || stats.prefer_sibling {
            i64::from(self.sibling_imbalance(attempt.is_idle(), busiest, local))
        } else {
            i64::from(local.idle_cpus.saturating_sub(busiest.idle_cpus))
        };
        if domain.is_numa() {
            let running = local.nr_running + 1;
            imbalance = adjust_numa_imbalance(imbalance, running, domain.imb_numa_nr);
        }
        imbalance >> 1
    }

    /// The CPU of `group` to pull from.
    pub(super) fn find_busiest_queue(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &Attempt,
        group: usize,
    ) -> Option<CpuId> {
        let domain = self.domains.domain(attempt.domain);
        let mut busiest = None;
        let (mut most, mut most_capacity) = (0, 1);
        for cpu in domain.groups[group].span.and(&attempt.cpus).iter() {
            let nr_running = fair.h_nr_running(cpu);
            if nr_running == 0 {
                continue;
            }
            let (figure, capacity) = match attempt.kind {
                MigrationType::Load => {
                    let load = fair.cpu_load(cpu);
                    let too_big = nr_running == 1 && load as i64 > attempt.imbalance;
                    if too_big && !self.is_capacity_reduced(core, cpu, domain.imbalance_pct) {
                        continue;
                    }
                    (load, self.capacity_of(core, cpu))
                }
                MigrationType::Util if nr_running <= 1 => continue,
                MigrationType::Util => (fair.cpu_util(cpu), 1),
                MigrationType::Task => (u64::from(nr_running), 1),
            };
            if figure * most_capacity > most * capacity {
                (busiest, most, most_capacity) = (Some(cpu), figure, capacity);
            }
        }
        busiest
    }
}

#[cfg(test)]
mod tests {
    use super::adjust_numa_imbalance;

    #[test]
    fn a_pair_of_tasks_may_be_apart_on_a_quiet_node() {
        assert_eq!(adjust_numa_imbalance(2, 1, 2), 0);
        assert_eq!(adjust_numa_imbalance(3, 1, 2), 3);
        assert_eq!(adjust_numa_imbalance(2, 3, 2), 2);
    }
}
