// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums over the CPUs of large domains, and their busiest groups, kept between attempts.
//!
//! The kernel reads every CPU of a domain whenever one of them becomes idle (update_sd_lb_stats).
//! The model reads only the CPUs that changed since the last attempt. It subtracts the old values
//! of such a CPU from the sums of its group in each domain, and adds the new ones. A tree over the
//! groups of a domain holds the sums of each subtree and its busiest group. So an attempt costs a
//! step for each level and each changed CPU. The numbers and the choice equal the kernel's. Sums do
//! not depend on the order. Among equally busy groups, the order after the balancing group decides,
//! and the tree keeps that order.
//!
//! Used only if the fair class is the highest of the stack, because the share that higher classes
//! take depends on when it was last read. Used only for attempts that include all CPUs of the
//! domain and know of no group whose CPUs failed to balance because of affinity.

use super::stats::{GroupStats, GroupType, SCALE, is_highest};
use super::{Balancer, FairQueues};
use crate::boundary::core::{Core, TOUCHED_MIN_CPUS};
use crate::boundary::domains::{Domain, Domains};

/// No group: the subtree runs no fair task.
const NOBODY: u32 = u32::MAX;

/// A node of the tree: a subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Node {
    load: u64,
    util: u64,
    /// Whether some CPU has two or more tasks.
    overload: bool,
    /// Number of the busiest group for a busy CPU and for an idle one, or [`NOBODY`].
    busiest: [u32; 2],
}

const EMPTY: Node = Node { load: 0, util: 0, overload: false, busiest: [NOBODY; 2] };

/// Sums of one domain.
#[derive(Debug)]
pub(super) struct DomainSums {
    by_core: bool,
    imbalance_pct: u64,
    /// Figures of each group for a busy CPU. A second set is for an idle one; it exists only if
    /// groups are cores, which idle CPUs relieve.
    stats: [Vec<GroupStats>; 2],
    /// Number of CPUs with two or more tasks, by group.
    nr_overloaded: Vec<u32>,
    /// The root is 1, the children of n are 2n and 2n + 1, the leaf of group g is `width` + g.
    nodes: Vec<Node>,
    width: usize,
    /// Nodes whose sums must be recomputed. The vector stays to reuse its memory.
    stale: Vec<u32>,
}

impl DomainSums {
    /// Sums of `domain`, if it is large enough.
    fn new(by_core: bool, domain: &Domain) -> Option<Self> {
        if domain.weight < TOUCHED_MIN_CPUS {
            return None;
        }
        let groups = &domain.groups;
        let full = |weight: u32| SCALE * u64::from(weight);
        let stats: Vec<GroupStats> = groups
            .iter()
            .map(|group| GroupStats {
                capacity: full(group.weight),
                ..GroupStats::of_nobody(group)
            })
            .collect();
        let has_cores = by_core && groups.iter().any(|g| g.is_core);
        let width = groups.len().next_power_of_two();
        Some(Self {
            by_core,
            imbalance_pct: domain.imbalance_pct,
            nr_overloaded: vec![0; groups.len()],
            stats: [stats.clone(), if has_cores { stats } else { Vec::new() }],
            nodes: vec![EMPTY; 2 * width],
            width,
            stale: Vec::new(),
        })
    }

    /// Replaces the values `old` of a CPU of `group` by `new`.
    fn exchange(&mut self, group: u32, old: &GroupStats, new: &GroupStats) {
        let index = group as usize;
        let nr_overloaded = &mut self.nr_overloaded[index];
        *nr_overloaded = *nr_overloaded + u32::from(new.overload) - u32::from(old.overload);
        let overload = *nr_overloaded > 0;
        for (is_idle, stats) in [false, true].into_iter().zip(&mut self.stats) {
            if let Some(stats) = stats.get_mut(index) {
                stats.exchange(old, new);
                stats.overload = overload;
                let relieves = is_idle && stats.is_smt_balance(self.by_core);
                stats.kind = stats.classify(self.imbalance_pct, false, relieves);
                let is_overloaded = stats.kind == GroupType::Overloaded;
                stats.avg_load = if is_overloaded { stats.load_by_capacity() } else { 0 };
            }
        }
        self.put(group);
    }

    /// Stores the changed figures of `group`.
    fn put(&mut self, group: u32) {
        let stats = &self.stats[0][group as usize];
        let leaf = self.width + group as usize;
        let busiest = if stats.h_nr_running == 0 { NOBODY } else { group };
        let Self { nodes, stale, .. } = self;
        nodes[leaf] = Node {
            load: stats.load,
            util: stats.util,
            overload: stats.overload,
            busiest: [busiest; 2],
        };
        stale.push(leaf as u32 / 2);
    }

    /// Recomputes the sums above the groups that changed.
    fn settle(&mut self) {
        let mut stale = std::mem::take(&mut self.stale);
        stale.sort_unstable();
        while stale.first().is_some_and(|node| *node > 0) {
            stale.dedup();
            for node in &mut stale {
                let at = *node as usize;
                let (left, right) = (self.nodes[2 * at], self.nodes[2 * at + 1]);
                let busiest = self.busier(false, left.busiest[0], right.busiest[0]);
                let for_idle = match self.has_two() {
                    true => self.busier(true, left.busiest[1], right.busiest[1]),
                    false => busiest,
                };
                self.nodes[at] = Node {
                    load: left.load + right.load,
                    util: left.util + right.util,
                    overload: left.overload | right.overload,
                    busiest: [busiest, for_idle],
                };
                *node /= 2;
            }
        }
        stale.clear();
        self.stale = stale;
    }

    /// Whether an idle CPU judges groups differently from a busy one.
    fn has_two(&self) -> bool {
        !self.stats[1].is_empty()
    }

    /// The busier of two groups for a CPU that is idle or not. `second` follows `first` in the
    /// order that decides ties.
    fn busier(&self, is_idle: bool, first: u32, second: u32) -> u32 {
        if second == NOBODY {
            return first;
        }
        if first == NOBODY {
            return second;
        }
        let stats = &self.stats[usize::from(is_idle && self.has_two())];
        let (a, b) = (&stats[first as usize], &stats[second as usize]);
        if b.is_busier_than(a, self.by_core) { second } else { first }
    }

    /// The busiest of the groups `from .. to`.
    fn busiest_between(&self, is_idle: bool, from: usize, to: usize) -> u32 {
        let (mut left, mut right) = (NOBODY, NOBODY);
        let (mut a, mut b) = (self.width + from, self.width + to);
        let of = |node: usize| self.nodes[node].busiest[usize::from(is_idle)];
        while a < b {
            if a % 2 == 1 {
                left = self.busier(is_idle, left, of(a));
                a += 1;
            }
            if b % 2 == 1 {
                b -= 1;
                right = self.busier(is_idle, of(b), right);
            }
            (a, b) = (a / 2, b / 2);
        }
        self.busier(is_idle, left, right)
    }

    /// The busiest group except `local`, for a CPU that is idle or busy. Of equally busy groups,
    /// the first after `local`.
    pub fn busiest_beside(&self, local: usize, is_idle: bool) -> Option<usize> {
        let after = self.busiest_between(is_idle, local + 1, self.stats[0].len());
        let before = self.busiest_between(is_idle, 0, local);
        let busiest = self.busier(is_idle, after, before);
        (busiest != NOBODY).then_some(busiest as usize)
    }

    /// Figures of a group; the attempt classifies it.
    pub fn stats_of(&self, group: usize) -> GroupStats {
        self.stats[0][group]
    }

    /// Load and utilisation of all CPUs, and whether one has two or more tasks.
    pub fn totals(&self) -> (u64, u64, bool) {
        let Node { load, util, overload, .. } = self.nodes[1];
        (load, util, overload)
    }
}

/// The kept sums of a machine.
#[derive(Debug)]
pub(super) struct Sums {
    /// The last counted values of each CPU.
    cpus: Vec<GroupStats>,
    /// Sums, by domain number.
    domains: Vec<Option<DomainSums>>,
    /// Numbers of the domains that have sums.
    kept: Vec<u32>,
}

impl Sums {
    /// Sums of the large domains of a machine.
    pub fn new(by_core: bool, domains: &Domains) -> Self {
        let numbers = 0..domains.nr_domains() as u32;
        let sums: Vec<Option<DomainSums>> =
            numbers.clone().map(|n| DomainSums::new(by_core, domains.domain(n))).collect();
        let kept: Vec<u32> = numbers.filter(|number| sums[*number as usize].is_some()).collect();
        let nr_cpus = if kept.is_empty() { 0 } else { domains.nr_cpus() };
        Self { cpus: vec![GroupStats::NOTHING; nr_cpus as usize], domains: sums, kept }
    }

    /// Sums of domain number `domain`, if it has any.
    pub fn of(&self, domain: u32) -> Option<&DomainSums> {
        self.domains[domain as usize].as_ref()
    }
}

impl Balancer {
    /// Updates the sums before an attempt in domain number `domain`, if it has any and they are
    /// valid.
    pub(super) fn refresh_sums(
        &mut self,
        core: &mut Core,
        fair: &mut impl FairQueues,
        domain: u32,
    ) -> bool {
        let is_kept = self.sums.of(domain).is_some() && is_highest(core);
        if !is_kept || self.nr_imbalanced[domain as usize] > 0 {
            return false;
        }
        let Some(touched) = fair.take_touched() else { return false };
        let touched = touched.or(&core.take_touched());
        let Sums { cpus, domains, kept } = &mut self.sums;
        for cpu in touched.iter() {
            let new = GroupStats::of_cpu(core, fair, cpu);
            let old = std::mem::replace(&mut cpus[cpu.index()], new);
            if old == new {
                continue;
            }
            for entry in self.domains.of_cpu(cpu) {
                if let Some(sums) = &mut domains[entry.domain as usize] {
                    sums.exchange(entry.local_group, &old, &new);
                }
            }
        }
        for number in kept {
            if let Some(sums) = &mut domains[*number as usize] {
                sums.settle();
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::Machine;
    use schedlab_model::random::{Purpose, Stream};

    /// A group with figures from a few values, so that ties are frequent.
    fn figures(random: &mut Stream) -> GroupStats {
        let domains = Domains::new(&Machine::flat(2).topology);
        let nr_running = random.below(4) as u32;
        let mut stats = GroupStats {
            load: random.below(3) * 700,
            util: random.below(3) * 512,
            runnable: random.below(3) * 1024,
            nr_running,
            h_nr_running: nr_running.min(random.below(4) as u32),
            idle_cpus: u32::from(nr_running == 0),
            overload: nr_running > 1,
            capacity: 1024,
            ..GroupStats::of_nobody(&domains.domain(0).groups[0])
        };
        stats.kind = stats.classify(117, false, false);
        stats.avg_load = if stats.kind == GroupType::Overloaded { stats.load } else { 0 };
        stats
    }

    /// Compares the tree with a plain search in the kernel's order.
    #[test]
    fn the_tree_finds_whom_a_search_in_order_finds() {
        let mut random = Stream::new(11, Purpose::Scheduler, 0);
        for (by_core, nr_cpus) in [(false, 32u32), (true, 33), (true, 100)] {
            let domains = Domains::new(&Machine::flat(nr_cpus).topology);
            let mut sums = DomainSums::new(by_core, domains.domain(0)).unwrap();
            for _ in 0..300 {
                let changed = 1 + random.below(6);
                let mut groups: Vec<u32> =
                    (0..changed).map(|_| random.below(u64::from(nr_cpus)) as u32).collect();
                groups.sort_unstable();
                for group in groups {
                    sums.stats[0][group as usize] = figures(&mut random);
                    sums.put(group);
                }
                sums.settle();
                let local = random.below(u64::from(nr_cpus)) as usize;
                let mut found: Option<usize> = None;
                for step in 1..nr_cpus as usize {
                    let index = (local + step) % nr_cpus as usize;
                    let stats = &sums.stats[0][index];
                    let is_busier =
                        |other: usize| stats.is_busier_than(&sums.stats[0][other], by_core);
                    if stats.h_nr_running > 0 && found.is_none_or(is_busier) {
                        found = Some(index);
                    }
                }
                assert_eq!(sums.busiest_beside(local, false), found);
                assert_eq!(sums.busiest_beside(local, true), found);
                let load: u64 = sums.stats[0].iter().map(|stats| stats.load).sum();
                let util: u64 = sums.stats[0].iter().map(|stats| stats.util).sum();
                let overload = sums.stats[0].iter().any(|stats| stats.overload);
                assert_eq!(sums.totals(), (load, util, overload));
            }
        }
    }
}
