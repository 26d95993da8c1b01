// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of groups of CPUs, and a classification of groups by how busy they are.
//!
//! Source: Linux kernel/sched/fair.c (update_sg_lb_stats, update_sg_wakeup_stats, group_classify,
//! scale_rt_capacity, update_idle_cpu_scan).

use super::{Balancer, FairQueues};
use crate::boundary::core::Core;
use crate::boundary::domains::Group;
use crate::fair::pelt::decay;
use schedlab_model::{CpuId, CpuMask, Nanos, Policy};

/// Capacity of a CPU (SCHED_CAPACITY_SCALE).
pub(super) const SCALE: u64 = 1024;

/// How busy a group is, least first (`enum group_type`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum GroupType {
    HasSpare,
    FullyBusy,
    /// An idle CPU may relieve a CPU whose only fair task has to share it with higher classes.
    Misfit,
    /// From 6.12: an idle CPU may relieve a core whose hardware threads are all in use.
    SmtBalance,
    Imbalanced,
    Overloaded,
}

/// Statistics of a group (`struct sg_lb_stats`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupStats {
    pub load: u64,
    pub util: u64,
    pub runnable: u64,
    pub capacity: u64,
    pub nr_running: u32,
    pub h_nr_running: u32,
    pub idle_cpus: u32,
    pub weight: u32,
    pub cores: u32,
    pub is_core: bool,
    pub kind: GroupType,
    pub avg_load: u64,
    /// Whether some CPU has more than one task.
    pub overload: bool,
    /// The greatest load of a CPU that an idle CPU should relieve, see [`GroupType::Misfit`].
    pub misfit_load: u64,
}

impl GroupStats {
    /// Statistics of a CPU that was never counted.
    pub const NOTHING: Self = Self {
        load: 0,
        util: 0,
        runnable: 0,
        capacity: 0,
        nr_running: 0,
        h_nr_running: 0,
        idle_cpus: 0,
        weight: 0,
        cores: 0,
        is_core: false,
        kind: GroupType::HasSpare,
        avg_load: 0,
        overload: false,
        misfit_load: 0,
    };

    /// Statistics of `group`, without its CPUs.
    #[inline(always)]
    pub fn of_nobody(group: &Group) -> Self {
        Self { weight: group.weight, cores: group.cores, is_core: group.is_core, ..Self::NOTHING }
    }

    /// Statistics of one CPU with full capacity, without hardware threads.
    #[inline(always)]
    pub fn of_cpu(core: &Core, fair: &impl FairQueues, cpu: CpuId) -> Self {
        let (rq, figures) = (core.rq(cpu), fair.cpu_figures(cpu));
        Self {
            load: figures.load,
            util: figures.util,
            runnable: figures.runnable,
            capacity: SCALE,
            nr_running: rq.nr_running,
            h_nr_running: figures.h_nr_running,
            idle_cpus: u32::from(rq.curr.is_none() && rq.nr_running == 0),
            weight: 1,
            cores: 1,
            is_core: false,
            kind: GroupType::HasSpare,
            avg_load: 0,
            overload: rq.nr_running > 1,
            misfit_load: 0,
        }
    }

    /// Replaces a CPU's values `old` by `new`. Sums cannot show whether some CPU has more than one
    /// task.
    #[inline]
    pub fn exchange(&mut self, old: &Self, new: &Self) {
        self.load = self.load - old.load + new.load;
        self.util = self.util - old.util + new.util;
        self.runnable = self.runnable - old.runnable + new.runnable;
        self.nr_running = self.nr_running - old.nr_running + new.nr_running;
        self.h_nr_running = self.h_nr_running - old.h_nr_running + new.h_nr_running;
        self.idle_cpus = self.idle_cpus - old.idle_cpus + new.idle_cpus;
    }

    /// Whether the group is a core with several runnable tasks that an idle CPU outside it should
    /// relieve. `by_core`: see [`super::BalanceRules`].
    #[inline(always)]
    pub fn is_smt_balance(&self, by_core: bool) -> bool {
        by_core && self.is_core && self.h_nr_running > 1
    }

    /// Load for each unit of capacity.
    #[inline]
    pub fn load_by_capacity(&self) -> u64 {
        self.load * SCALE / self.capacity
    }

    /// Whether there are more tasks than CPUs, and more work than they can do.
    #[inline(always)]
    pub fn is_overloaded(&self, pct: u64) -> bool {
        self.nr_running > self.weight
            && (self.capacity * 100 < self.util * pct || self.capacity * pct < self.runnable * 100)
    }

    #[inline(always)]
    fn has_capacity(&self, pct: u64) -> bool {
        self.nr_running < self.weight
            || (self.capacity * pct >= self.runnable * 100 && self.capacity * 100 > self.util * pct)
    }

    /// Whether this group, which runs a fair task, replaces the earlier group `busiest` as the
    /// busiest (update_sd_pick_busiest).
    #[inline(always)]
    pub fn is_busier_than(&self, busiest: &Self, by_core: bool) -> bool {
        if self.kind != busiest.kind {
            return self.kind > busiest.kind;
        }
        match self.kind {
            GroupType::Overloaded => self.avg_load > busiest.avg_load,
            GroupType::Imbalanced => false,
            // Of equal ones 6.1 takes the last.
            GroupType::Misfit => {
                self.misfit_load > busiest.misfit_load
                    || (!by_core && self.misfit_load == busiest.misfit_load)
            }
            // For these groups the average load is not computed. The first group stays; by core,
            // the last one replaces it, unless that would leave a core for a single CPU.
            GroupType::SmtBalance if self.idle_cpus == 0 && busiest.idle_cpus == 0 => {
                by_core && !busiest.is_core
            }
            GroupType::FullyBusy => by_core && !busiest.is_core,
            GroupType::HasSpare | GroupType::SmtBalance => {
                self.idle_cpus < busiest.idle_cpus
                    || (self.idle_cpus == busiest.idle_cpus && self.nr_running > busiest.nr_running)
            }
        }
    }

    /// The class of the group. `imbalanced`: a lower level failed because of affinity.
    #[inline(always)]
    pub fn classify(&self, pct: u64, imbalanced: bool, smt_balance: bool) -> GroupType {
        if self.is_overloaded(pct) {
            GroupType::Overloaded
        } else if imbalanced {
            GroupType::Imbalanced
        } else if smt_balance {
            GroupType::SmtBalance
        } else if self.misfit_load > 0 {
            GroupType::Misfit
        } else if self.has_capacity(pct) {
            GroupType::HasSpare
        } else {
            GroupType::FullyBusy
        }
    }

    /// Sets the class of the group; see [`GroupStats::classify`].
    #[inline(always)]
    pub fn judged(mut self, pct: u64, imbalanced: bool, smt_balance: bool) -> Self {
        self.kind = self.classify(pct, imbalanced, smt_balance);
        if self.kind == GroupType::Overloaded {
            self.avg_load = self.load_by_capacity();
        }
        self
    }
}

/// Average share of a CPU that classes above the fair one use. It is an exponential average with a
/// half-life of 32 periods of 2^20 ns, like the kernel's `avg_rt`, but updated only at ticks and
/// when the CPU balances.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HigherShare {
    /// Average on the scale of 1,024, times 2^10.
    average: u64,
    at: Nanos,
    exec_seen: Nanos,
}

impl HigherShare {
    /// The share at its last update, 0 to 1,024.
    #[inline]
    fn get(&self) -> u64 {
        self.average >> 10
    }

    /// Updates the share to `now`; higher classes have used `exec` in total.
    fn update(&mut self, now: Nanos, exec: Nanos) {
        let elapsed = now - self.at;
        let periods = elapsed >> 20;
        if periods == 0 {
            return;
        }
        let used = exec.saturating_sub(self.exec_seen).min(elapsed);
        if used > 0 || self.average > 0 {
            let recent = ((u128::from(used) << 20) / u128::from(elapsed)) as u64;
            self.average = decay(self.average, periods) + recent - decay(recent, periods);
        }
        self.at = now;
        self.exec_seen = exec;
    }
}

/// Whether the fair class is the highest of the stack, and so has the whole capacity of each CPU.
#[inline]
pub(super) fn is_highest(core: &Core) -> bool {
    core.class_of(Policy::Batch) == 0
}

/// `nr_idle_scan`: how many CPUs of a last-level cache a wake-up searches, from their utilisation.
pub(super) fn nr_idle_scan(sum_util: u64, llc_weight: u64, pct: u64) -> u32 {
    let x = sum_util / llc_weight;
    let busy = (x * x * pct * pct / (10_000 * SCALE)).min(SCALE);
    ((SCALE - busy) * llc_weight / SCALE) as u32
}

impl Balancer {
    /// Capacity left to fair tasks on `cpu`, 1 to 1,024, when it balanced last (`capacity_of`).
    #[inline]
    pub(super) fn capacity_of(&self, core: &Core, cpu: CpuId) -> u64 {
        if is_highest(core) { SCALE } else { self.cpus[cpu.index()].capacity }
    }

    /// `cpu` balances and computes its capacity (`update_cpu_capacity`). If it is about to go idle,
    /// it does so no more often than it would balance anyway.
    pub(super) fn update_capacity(&mut self, core: &Core, cpu: CpuId, is_newly_idle: bool) {
        let state = &mut self.cpus[cpu.index()];
        if is_highest(core) || (is_newly_idle && core.jiffies() < state.next_capacity) {
            return;
        }
        state.higher.update(core.now, core.higher_exec_runtime(cpu));
        state.capacity = SCALE.saturating_sub(state.higher.get()).max(1);
        let interval_ms = state.domains.first().map_or(0, |domain| domain.balance_interval);
        let interval = interval_ms * u64::from(core.hz) / 1_000;
        state.next_capacity = core.jiffies() + interval.max(1);
    }

    /// A tick of `cpu` updates the share that higher classes use.
    pub(super) fn update_higher_share(&mut self, core: &Core, cpu: CpuId) {
        if !is_highest(core) {
            let exec = core.higher_exec_runtime(cpu);
            self.cpus[cpu.index()].higher.update(core.now, exec);
        }
    }

    /// Whether higher classes use more of `cpu` than the threshold `pct` allows
    /// (`check_cpu_capacity`).
    pub(super) fn is_capacity_reduced(&self, core: &Core, cpu: CpuId, pct: u64) -> bool {
        self.capacity_of(core, cpu) * pct < SCALE * 100
    }

    /// Sums over the CPUs of `group` that are in `cpus`; `kind` and `avg_load` are not set yet.
    #[inline(always)]
    pub(super) fn group_sums(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        group: &Group,
        cpus: &CpuMask,
    ) -> GroupStats {
        if group.weight > 1 {
            return self.sums_of_several(core, fair, group, cpus);
        }
        let mut stats = GroupStats::of_nobody(group);
        self.add_cpu(core, fair, group.first, cpus, &mut stats);
        stats
    }

    #[inline(never)]
    fn sums_of_several(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        group: &Group,
        cpus: &CpuMask,
    ) -> GroupStats {
        let mut stats = GroupStats::of_nobody(group);
        for cpu in group.span.iter() {
            self.add_cpu(core, fair, cpu, cpus, &mut stats);
        }
        stats
    }

    #[inline(always)]
    fn add_cpu(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        cpu: CpuId,
        cpus: &CpuMask,
        stats: &mut GroupStats,
    ) {
        stats.capacity += self.capacity_of(core, cpu);
        if !cpus.contains(cpu) {
            return;
        }
        let rq = core.rq(cpu);
        let figures = fair.cpu_figures(cpu);
        stats.load += figures.load;
        stats.util += figures.util;
        stats.runnable += figures.runnable;
        stats.h_nr_running += figures.h_nr_running;
        stats.nr_running += rq.nr_running;
        stats.overload |= rq.nr_running > 1;
        stats.idle_cpus += u32::from(rq.curr.is_none() && rq.nr_running == 0);
    }

    /// If domain `index` is the last-level cache of `cpu`, stores how many of its CPUs a wake-up
    /// should search.
    pub(super) fn update_idle_scan(&mut self, cpu: CpuId, index: u32, util: u64) {
        if self.domains.llc_id(cpu) == Some(index) {
            let domain = self.domains.domain(index);
            let scan = nr_idle_scan(util, u64::from(domain.weight), domain.imbalance_pct);
            self.llcs[index as usize].nr_idle_scan = scan;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_7_3_nr_idle_scan() {
        let utils = [0, 128, 256, 384, 512, 640, 768, 870, 1024];
        let vectors: [(u64, [u32; 9]); 4] = [
            (4, [4, 3, 3, 3, 2, 1, 0, 0, 0]),
            (8, [8, 7, 7, 6, 5, 3, 1, 0, 0]),
            (16, [16, 15, 14, 12, 10, 7, 3, 0, 0]),
            (32, [32, 31, 29, 25, 21, 14, 7, 0, 0]),
        ];
        for (weight, expected) in vectors {
            let got = utils.map(|util| nr_idle_scan(util * weight, weight, 117));
            assert_eq!(got, expected, "{weight} CPUs");
        }
    }

    #[test]
    fn share_of_higher_classes_follows_use_with_the_half_life_of_pelt() {
        let period = 1 << 20;
        let mut share = HigherShare::default();
        let mut after = |now: Nanos, exec: Nanos| {
            share.update(now * period, exec * period);
            share.get()
        };
        assert!((511..=512).contains(&after(32, 32)));
        assert!((255..=256).contains(&after(64, 32)));
        assert!((1020..=1024).contains(&after(664, 632)));
    }

    fn group(nr_running: u32, util: u64, runnable: u64) -> GroupStats {
        GroupStats {
            load: 0,
            util,
            runnable,
            capacity: 2048,
            nr_running,
            h_nr_running: nr_running,
            idle_cpus: 0,
            weight: 2,
            cores: 2,
            is_core: false,
            kind: GroupType::HasSpare,
            avg_load: 0,
            overload: false,
            misfit_load: 0,
        }
    }

    #[test]
    fn groups_are_classified_by_tasks_and_utilisation() {
        assert_eq!(group(1, 2048, 2048).classify(117, false, false), GroupType::HasSpare);
        assert_eq!(group(2, 1000, 1000).classify(117, false, false), GroupType::HasSpare);
        assert_eq!(group(2, 2048, 2048).classify(117, false, false), GroupType::FullyBusy);
        assert_eq!(group(3, 2048, 3072).classify(117, false, false), GroupType::Overloaded);
        assert_eq!(group(3, 1000, 1500).classify(117, false, false), GroupType::HasSpare);
        assert_eq!(group(2, 2048, 2048).classify(117, true, false), GroupType::Imbalanced);
        assert_eq!(group(2, 2048, 2048).classify(117, false, true), GroupType::SmtBalance);
        let misfit = GroupStats { misfit_load: 1, ..group(1, 1000, 1000) };
        assert_eq!(misfit.classify(117, false, false), GroupType::Misfit);
        assert_eq!(misfit.classify(117, true, false), GroupType::Imbalanced);
    }
}
