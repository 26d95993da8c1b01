// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums over the CPUs of a large domain, and the busiest of them, kept from one attempt to the
//! next.
//!
//! The kernel asks every CPU of a domain whenever one of them goes idle (update_sd_lb_stats). Here
//! only the CPUs of which something has changed since the last attempt are asked again: a tree over
//! the CPUs has the sums of each subtree and the busiest CPU of it, so that an attempt costs a step
//! for each level and each changed CPU. The numbers and the choice are the kernel's: sums do not
//! depend on the order, and of equally busy CPUs the order after the balancing one decides, which
//! the tree keeps.
//!
//! Only where each group is one CPU (no hardware threads) and the fair class is the highest of the
//! stack: the share that higher classes take depends on when it was last asked for.

use super::stats::{GroupStats, GroupType, is_highest};
use super::{Balancer, FairQueues, Generation};
use crate::core::{Core, TOUCHED_MIN_CPUS};
use crate::domains::{Domain, Domains};
use schedlab_model::CpuId;

/// No CPU: none of the subtree runs a fair task.
const NOBODY: u32 = u32::MAX;

/// A subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Node {
    load: u64,
    util: u64,
    /// Some CPU has two tasks or more.
    overload: bool,
    /// Number of the group that is the busiest, or [`NOBODY`].
    busiest: u32,
}

const EMPTY: Node = Node { load: 0, util: 0, overload: false, busiest: NOBODY };

/// Sums of one domain.
#[derive(Debug)]
pub(super) struct CpuSums {
    generation: Generation,
    imbalance_pct: u64,
    /// The CPU of each group, and its figures.
    cpus: Vec<CpuId>,
    stats: Vec<GroupStats>,
    /// The root is 1, the children of n are 2n and 2n + 1, the leaf of group g is `width` + g.
    nodes: Vec<Node>,
    width: usize,
    /// Nodes whose sums are to be added up anew; kept for its memory.
    stale: Vec<u32>,
}

impl CpuSums {
    /// Of `domain`, if it is worth it.
    pub fn new(generation: Generation, domain: &Domain) -> Option<Self> {
        if !domain.has_single_cpus || domain.groups.len() < TOUCHED_MIN_CPUS as usize {
            return None;
        }
        let width = domain.groups.len().next_power_of_two();
        Some(Self {
            generation,
            imbalance_pct: domain.imbalance_pct,
            cpus: domain.groups.iter().map(|group| group.first).collect(),
            stats: vec![GroupStats::of_nobody(&domain.groups[0]); domain.groups.len()],
            nodes: vec![EMPTY; 2 * width],
            width,
            stale: Vec::new(),
        })
    }

    /// Asks the CPU of `group` again.
    fn ask(&mut self, core: &Core, fair: &impl FairQueues, group: u32) {
        let index = group as usize;
        let mut stats = GroupStats::of_cpu(core, fair, self.cpus[index]);
        stats.kind = stats.classify(self.imbalance_pct, false, false);
        if stats.kind == GroupType::Overloaded {
            stats.avg_load = stats.load_by_capacity();
        }
        let leaf = self.width + index;
        self.nodes[leaf] = Node {
            load: stats.load,
            util: stats.util,
            overload: stats.overload,
            busiest: if stats.h_nr_running == 0 { NOBODY } else { group },
        };
        self.stats[index] = stats;
        self.stale.push(leaf as u32 / 2);
    }

    /// Adds up what lies above the CPUs that were asked again, in ascending order.
    fn settle(&mut self) {
        let mut stale = std::mem::take(&mut self.stale);
        while stale.first().is_some_and(|node| *node > 0) {
            stale.dedup();
            for node in &mut stale {
                let at = *node as usize;
                let (left, right) = (self.nodes[2 * at], self.nodes[2 * at + 1]);
                self.nodes[at] = Node {
                    load: left.load + right.load,
                    util: left.util + right.util,
                    overload: left.overload | right.overload,
                    busiest: self.busier(left.busiest, right.busiest),
                };
                *node /= 2;
            }
        }
        stale.clear();
        self.stale = stale;
    }

    /// The busier of two groups, of which `second` comes after `first` in the order that counts.
    fn busier(&self, first: u32, second: u32) -> u32 {
        if second == NOBODY {
            return first;
        }
        if first == NOBODY {
            return second;
        }
        let (a, b) = (&self.stats[first as usize], &self.stats[second as usize]);
        if b.is_busier_than(a, self.generation) { second } else { first }
    }

    /// The busiest of the groups `from .. to`.
    fn busiest_between(&self, from: usize, to: usize) -> u32 {
        let (mut left, mut right) = (NOBODY, NOBODY);
        let (mut a, mut b) = (self.width + from, self.width + to);
        while a < b {
            if a % 2 == 1 {
                left = self.busier(left, self.nodes[a].busiest);
                a += 1;
            }
            if b % 2 == 1 {
                b -= 1;
                right = self.busier(self.nodes[b].busiest, right);
            }
            (a, b) = (a / 2, b / 2);
        }
        self.busier(left, right)
    }

    /// The busiest of the groups but `local`, the first of equals after it.
    pub fn busiest_beside(&self, local: usize) -> Option<usize> {
        let after = self.busiest_between(local + 1, self.cpus.len());
        let busiest = self.busier(after, self.busiest_between(0, local));
        (busiest != NOBODY).then_some(busiest as usize)
    }

    /// Load and utilisation of all CPUs, and whether one has two tasks or more.
    pub fn totals(&self) -> (u64, u64, bool) {
        let Node { load, util, overload, .. } = self.nodes[1];
        (load, util, overload)
    }
}

/// The sums of each domain that has some, by number.
pub(super) fn all(generation: Generation, domains: &Domains) -> Vec<Option<CpuSums>> {
    let numbers = 0..domains.nr_domains() as u32;
    numbers.map(|number| CpuSums::new(generation, domains.domain(number))).collect()
}

impl Balancer {
    /// Brings the sums up to date before an attempt in domain number `domain`, if it has some and
    /// they hold.
    pub(super) fn refresh_sums(
        &mut self,
        core: &mut Core,
        fair: &mut impl FairQueues,
        domain: u32,
    ) -> bool {
        if self.sums[domain as usize].is_none() || !is_highest(core) {
            return false;
        }
        let Some(touched) = fair.take_touched() else { return false };
        let touched = touched.or(&core.take_touched());
        for cpu in touched.iter() {
            if let Some(entry) = self.domains.of_cpu(cpu).first()
                && let Some(sums) = &mut self.sums[entry.domain as usize]
            {
                sums.ask(core, fair, entry.local_group);
            }
        }
        for sums in self.sums.iter_mut().flatten() {
            sums.settle();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::Machine;
    use schedlab_model::random::{Purpose, Stream};

    /// A CPU with figures from a few values, so that equals are frequent.
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

    /// Against a plain search in the order of the kernel.
    #[test]
    fn the_tree_finds_whom_a_search_in_order_finds() {
        let mut random = Stream::new(11, Purpose::Scheduler, 0);
        for (generation, nr_cpus) in
            [(Generation::V6_1, 32u32), (Generation::V6_12, 33), (Generation::V7_1, 100)]
        {
            let domains = Domains::new(&Machine::flat(nr_cpus).topology);
            let mut sums = CpuSums::new(generation, domains.domain(0)).unwrap();
            for _ in 0..300 {
                let changed = 1 + random.below(6);
                let mut groups: Vec<u32> =
                    (0..changed).map(|_| random.below(u64::from(nr_cpus)) as u32).collect();
                groups.sort_unstable();
                for group in groups {
                    let stats = figures(&mut random);
                    let leaf = sums.width + group as usize;
                    sums.nodes[leaf] = Node {
                        load: stats.load,
                        util: stats.util,
                        overload: stats.overload,
                        busiest: if stats.h_nr_running == 0 { NOBODY } else { group },
                    };
                    sums.stats[group as usize] = stats;
                    sums.stale.push(leaf as u32 / 2);
                }
                sums.settle();
                let local = random.below(u64::from(nr_cpus)) as usize;
                let mut found: Option<usize> = None;
                for step in 1..nr_cpus as usize {
                    let index = (local + step) % nr_cpus as usize;
                    let stats = &sums.stats[index];
                    let is_busier =
                        |other: usize| stats.is_busier_than(&sums.stats[other], generation);
                    if stats.h_nr_running > 0 && found.is_none_or(is_busier) {
                        found = Some(index);
                    }
                }
                assert_eq!(sums.busiest_beside(local), found);
                let load: u64 = sums.stats.iter().map(|stats| stats.load).sum();
                let util: u64 = sums.stats.iter().map(|stats| stats.util).sum();
                let overload = sums.stats.iter().any(|stats| stats.overload);
                assert_eq!(sums.totals(), (load, util, overload));
            }
        }
    }
}
