// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling domains: which CPUs balance with which, and how often.
//!
//! They are built once from the machine's topology, smallest first: SMT (one core), MC (last-level
//! cache), PKG (node), NUMA (machine). Levels that add nothing are removed. A domain's groups are
//! the spans of the domains below it. Domains and their masks are shared by the CPUs they span, so
//! a machine of 1,024 CPUs takes a few hundred KiB.
//!
//! Source: Linux kernel/sched/topology.c (sd_init, cpu_attach_domain, build_sched_groups,
//! build_sched_domains), 6.1.158 and 6.12.63. Left out: clusters inside a cache, asymmetric
//! capacity, and NUMA distances: all nodes are equally near.

use super::core::Core;
use schedlab_model::{CpuId, CpuMask, Topology};
use std::collections::BTreeMap;

/// Level of a domain, smallest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Hardware threads of one core.
    Smt,
    /// CPUs that share a last-level cache.
    Mc,
    /// CPUs of one node.
    Pkg,
    /// All nodes.
    Numa,
}

/// A set of CPUs that a domain balances as a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// CPUs.
    pub span: CpuMask,
    /// Its first CPU.
    pub first: CpuId,
    /// Number of CPUs.
    pub weight: u32,
    /// Number of cores.
    pub cores: u32,
    /// Whether the group is the hardware threads of one core (SD_SHARE_CPUCAPACITY).
    pub is_core: bool,
}

/// A scheduling domain (`struct sched_domain`): the part that does not change while the system
/// runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domain {
    /// Level.
    pub level: Level,
    /// CPUs.
    pub span: CpuMask,
    /// Number of CPUs.
    pub weight: u32,
    /// Groups, in order of their first CPU. Together they are the span.
    pub groups: Vec<Group>,
    /// Least imbalance that counts, in percent (imbalance_pct).
    pub imbalance_pct: u64,
    /// Failed attempts before a cache-hot task may move.
    pub cache_nice_tries: u32,
    /// SD_PREFER_SIBLING: the domain above spreads tasks over domains like this one.
    pub prefer_sibling: bool,
    /// Whether each group is one CPU.
    pub has_single_cpus: bool,
    /// Tolerated imbalance between nodes, in tasks; 0 for domains without such a rule.
    pub imb_numa_nr: u32,
}

impl Domain {
    /// Shortest time between two attempts to balance, in ms.
    pub fn min_interval_ms(&self) -> u64 {
        u64::from(self.weight)
    }

    /// Longest time between two attempts to balance, in ms.
    pub fn max_interval_ms(&self) -> u64 {
        2 * u64::from(self.weight)
    }

    /// Whether its CPUs are hardware threads of one core (SD_SHARE_CPUCAPACITY).
    pub fn is_smt(&self) -> bool {
        self.level == Level::Smt
    }

    /// Whether its CPUs share a cache (SD_SHARE_PKG_RESOURCES, SD_SHARE_LLC).
    pub fn shares_llc(&self) -> bool {
        self.level <= Level::Mc
    }

    /// Whether it spans nodes (SD_NUMA, SD_SERIALIZE).
    pub fn is_numa(&self) -> bool {
        self.level == Level::Numa
    }
}

/// A domain with the position of one CPU in it.
#[derive(Clone, Copy, Debug)]
pub struct CpuDomain {
    /// Index of the domain, for [`Domains::domain`].
    pub domain: u32,
    /// Index of the group that holds the CPU.
    pub local_group: u32,
}

/// All domains of a machine.
#[derive(Debug)]
pub struct Domains {
    domains: Vec<Domain>,
    /// Domains of each CPU, smallest first.
    of_cpu: Vec<Vec<CpuDomain>>,
    /// Domain of each CPU's last-level cache.
    llc_of: Vec<Option<u32>>,
    cores: Vec<CpuMask>,
    core_of: Vec<u32>,
    smt_active: bool,
}

impl Domains {
    /// The domains of a machine.
    pub fn new(topology: &Topology) -> Self {
        let nr_cpus = topology.nr_cpus();
        let spans = LevelSpans::new(topology);
        let mut domains = Vec::new();
        let mut known: BTreeMap<(Level, u32), u32> = BTreeMap::new();
        let mut of_cpu = Vec::with_capacity(nr_cpus as usize);
        for cpu in (0..nr_cpus).map(CpuId) {
            of_cpu.push(
                spans
                    .chain(cpu)
                    .iter()
                    .map(|(level, span_index)| {
                        let domain = *known.entry((*level, *span_index)).or_insert_with(|| {
                            domains.push(spans.domain(cpu, *level));
                            domains.len() as u32 - 1
                        });
                        let groups = &domains[domain as usize].groups;
                        let local = groups.iter().position(|group| group.span.contains(cpu));
                        let local = local.expect("groups cover the span");
                        CpuDomain { domain, local_group: local as u32 }
                    })
                    .collect(),
            );
        }
        let (cores, core_of) = (spans.spans[0].clone(), spans.of_cpu[0].clone());
        let smt_active = cores.iter().any(|core| core.weight() > 1);
        let llc_of = of_cpu
            .iter()
            .map(|chain: &Vec<CpuDomain>| Some(chain[llc_position(&domains, chain)?].domain))
            .collect();
        Self { domains, of_cpu, llc_of, cores, core_of, smt_active }
    }

    /// A domain.
    #[inline]
    pub fn domain(&self, index: u32) -> &Domain {
        &self.domains[index as usize]
    }

    /// Number of different domains.
    pub fn nr_domains(&self) -> usize {
        self.domains.len()
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> u32 {
        self.of_cpu.len() as u32
    }

    /// Domains of `cpu`, smallest first. A CPU alone in the machine has none.
    #[inline]
    pub fn of_cpu(&self, cpu: CpuId) -> &[CpuDomain] {
        &self.of_cpu[cpu.index()]
    }

    /// Domains of `cpu`, smallest first.
    pub fn iter(&self, cpu: CpuId) -> impl Iterator<Item = &Domain> + '_ {
        self.of_cpu(cpu).iter().map(|entry| self.domain(entry.domain))
    }

    /// Of the CPUs in `candidates` the nearest to `cpu`: `cpu` itself; or else one of its smallest
    /// domain with a candidate. There `this_cpu`, the CPU that asks, is preferred, and then the one
    /// whose turn it is.
    pub fn nearest(
        &self,
        candidates: &CpuMask,
        cpu: CpuId,
        this_cpu: CpuId,
        core: &mut Core,
    ) -> Option<CpuId> {
        if candidates.contains(cpu) {
            return Some(cpu);
        }
        let this = candidates.contains(this_cpu);
        for domain in self.iter(cpu) {
            if this && domain.span.contains(this_cpu) {
                return Some(this_cpu);
            }
            if let Some(cpu) = core.one_of(&candidates.and(&domain.span), this_cpu) {
                return Some(cpu);
            }
        }
        if this { Some(this_cpu) } else { core.one_of(candidates, this_cpu) }
    }

    /// Position, among the domains of `cpu`, of the largest that shares a cache (`sd_llc`).
    pub fn llc_position(&self, cpu: CpuId) -> Option<usize> {
        llc_position(&self.domains, self.of_cpu(cpu))
    }

    /// The largest domain of `cpu` that shares a cache (`sd_llc`).
    #[inline]
    pub fn llc(&self, cpu: CpuId) -> Option<&Domain> {
        self.llc_id(cpu).map(|id| self.domain(id))
    }

    /// Index of the domain of [`Domains::llc`]: CPUs with equal numbers share a cache.
    #[inline]
    pub fn llc_id(&self, cpu: CpuId) -> Option<u32> {
        self.llc_of[cpu.index()]
    }

    /// Whether two CPUs share a last-level cache (`cpus_share_cache`).
    #[inline]
    pub fn share_cache(&self, a: CpuId, b: CpuId) -> bool {
        a == b || self.llc_id(a).is_some_and(|id| self.llc_id(b) == Some(id))
    }

    /// Hardware threads of the core of `cpu`, `cpu` included.
    #[inline]
    pub fn smt_mask(&self, cpu: CpuId) -> &CpuMask {
        &self.cores[self.core_of[cpu.index()] as usize]
    }

    /// Number of the core of `cpu`.
    #[inline]
    pub fn core_of(&self, cpu: CpuId) -> u32 {
        self.core_of[cpu.index()]
    }

    /// Whether any core has more than one hardware thread.
    pub fn smt_active(&self) -> bool {
        self.smt_active
    }
}

/// Position of the largest domain that shares a cache. Domains are ordered by size, and only the
/// smaller ones share a cache.
fn llc_position(domains: &[Domain], chain: &[CpuDomain]) -> Option<usize> {
    chain.iter().rposition(|entry| domains[entry.domain as usize].shares_llc())
}

const LEVELS: [Level; 4] = [Level::Smt, Level::Mc, Level::Pkg, Level::Numa];

/// Spans of each level, before levels are removed.
struct LevelSpans {
    /// Different spans of each level.
    spans: [Vec<CpuMask>; 4],
    /// Index into `spans` of each level, by CPU.
    of_cpu: [Vec<u32>; 4],
}

impl LevelSpans {
    /// Each level's span is within that of the next, as the kernel requires of an architecture.
    fn new(topology: &Topology) -> Self {
        let nr_cpus = topology.nr_cpus() as usize;
        let key = |cpu: usize| (topology.node[cpu], topology.llc[cpu], topology.core[cpu]);
        let mut this = Self { spans: Default::default(), of_cpu: Default::default() };
        for (index, level) in LEVELS.into_iter().enumerate() {
            let mut known = BTreeMap::new();
            for cpu in 0..nr_cpus {
                let (node, llc, core) = key(cpu);
                let key = match level {
                    Level::Smt => (node, llc, core),
                    Level::Mc => (node, llc, 0),
                    Level::Pkg => (node, 0, 0),
                    Level::Numa => (0, 0, 0),
                };
                let spans = &mut this.spans[index];
                let span = *known.entry(key).or_insert_with(|| {
                    spans.push(CpuMask::empty());
                    spans.len() - 1
                });
                spans[span].set(CpuId(cpu as u32));
                this.of_cpu[index].push(span as u32);
            }
        }
        this
    }

    fn span(&self, cpu: CpuId, level: Level) -> &CpuMask {
        let level = level as usize;
        &self.spans[level][self.of_cpu[level][cpu.index()] as usize]
    }

    fn weight(&self, cpu: CpuId, level: Level) -> u32 {
        self.span(cpu, level).weight()
    }

    /// Levels of `cpu` that are kept, with the number of their span. A level whose span equals that
    /// of the level below is removed, and so is a level of a single CPU.
    fn chain(&self, cpu: CpuId) -> Vec<(Level, u32)> {
        let mut below = 1;
        let mut kept = Vec::new();
        for level in LEVELS {
            let weight = self.weight(cpu, level);
            if weight > below {
                kept.push((level, self.of_cpu[level as usize][cpu.index()]));
                below = weight;
            }
        }
        kept
    }

    fn domain(&self, cpu: CpuId, level: Level) -> Domain {
        let span = *self.span(cpu, level);
        let mut groups: Vec<Group> = Vec::new();
        let mut covered = CpuMask::empty();
        for member in span.iter() {
            if !covered.contains(member) {
                let group = self.group(member, level);
                covered = covered.or(&group.span);
                groups.push(group);
            }
        }
        Domain {
            level,
            weight: span.weight(),
            has_single_cpus: groups.iter().all(|group| group.weight == 1 && !group.is_core),
            groups,
            imbalance_pct: if level == Level::Smt { 110 } else { 117 },
            cache_nice_tries: match level {
                Level::Smt => 0,
                Level::Mc | Level::Pkg => 1,
                Level::Numa => 2,
            },
            prefer_sibling: level != Level::Numa,
            imb_numa_nr: self.imb_numa_nr(cpu, level),
            span,
        }
    }

    /// The group that contains `member`, in a domain at `level`: the span of the level below.
    fn group(&self, member: CpuId, level: Level) -> Group {
        let below = self.chain(member).into_iter().rev().find(|(lower, _)| *lower < level);
        let span = match below {
            Some((lower, _)) => *self.span(member, lower),
            None => CpuMask::only(member),
        };
        let cores = span.iter().filter(|c| self.span(*c, Level::Smt).first_cpu() == Some(*c));
        Group {
            first: span.first_cpu().unwrap_or(member),
            weight: span.weight(),
            cores: cores.count() as u32,
            is_core: below.is_some_and(|(lower, _)| lower == Level::Smt),
            span,
        }
    }

    /// How many tasks nodes may differ by: one for each cache of a node; or an eighth of its CPUs
    /// if it has one cache.
    fn imb_numa_nr(&self, cpu: CpuId, level: Level) -> u32 {
        if level < Level::Pkg {
            return 0;
        }
        let node = self.weight(cpu, Level::Pkg);
        let nr_llcs = node / self.weight(cpu, Level::Mc);
        if nr_llcs == 1 { (node / 8).max(1) } else { nr_llcs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `nodes` nodes of `llcs` caches of `cores` cores of `threads` threads; siblings are numbered
    /// apart, as firmware usually does.
    fn machine(nodes: u32, llcs: u32, cores: u32, threads: u32) -> Topology {
        let per_thread = nodes * llcs * cores;
        let cpus = 0..per_thread * threads;
        Topology {
            core: cpus.clone().map(|cpu| cpu % per_thread).collect(),
            llc: cpus.clone().map(|cpu| cpu % per_thread / cores).collect(),
            node: cpus.map(|cpu| cpu % per_thread / (cores * llcs)).collect(),
        }
    }

    fn levels(domains: &Domains, cpu: u32) -> Vec<(Level, String, usize)> {
        domains
            .iter(CpuId(cpu))
            .map(|domain| (domain.level, domain.span.to_string(), domain.groups.len()))
            .collect()
    }

    #[test]
    fn one_cpu_has_no_domain() {
        let domains = Domains::new(&Topology::flat(1));
        assert!(domains.of_cpu(CpuId(0)).is_empty());
        assert_eq!(domains.llc_id(CpuId(0)), None);
        assert!(domains.share_cache(CpuId(0), CpuId(0)));
    }

    #[test]
    fn a_flat_machine_has_one_domain_of_single_cpus() {
        let domains = Domains::new(&Topology::flat(4));
        assert_eq!(levels(&domains, 2), [(Level::Mc, "0-3".into(), 4)]);
        assert_eq!(domains.of_cpu(CpuId(2))[0].local_group, 2);
        let domain = domains.llc(CpuId(0)).unwrap();
        assert_eq!((domain.min_interval_ms(), domain.max_interval_ms()), (4, 8));
        assert!(!domains.smt_active());
    }

    #[test]
    fn all_levels_nest() {
        let domains = Domains::new(&machine(2, 2, 2, 2));
        assert_eq!(
            levels(&domains, 9),
            [
                (Level::Smt, "1,9".into(), 2),
                (Level::Mc, "0-1,8-9".into(), 2),
                (Level::Pkg, "0-3,8-11".into(), 2),
                (Level::Numa, "0-15".into(), 2),
            ]
        );
        let entry = domains.of_cpu(CpuId(9))[1];
        let mc = domains.domain(entry.domain);
        assert_eq!(mc.groups[entry.local_group as usize].span.to_string(), "1,9");
        assert!(mc.groups[0].is_core && mc.groups[0].cores == 1);
        assert_eq!(domains.llc(CpuId(9)).unwrap().span.to_string(), "0-1,8-9");
        assert!(domains.share_cache(CpuId(0), CpuId(9)));
        assert!(!domains.share_cache(CpuId(0), CpuId(2)));
        let numa: Vec<&Domain> = domains.iter(CpuId(9)).collect();
        assert_eq!((numa[3].imb_numa_nr, numa[3].prefer_sibling), (2, false));
        assert_eq!((numa[0].imbalance_pct, numa[1].imbalance_pct), (110, 117));
    }

    #[test]
    fn a_thousand_cpus_share_their_masks() {
        let domains = Domains::new(&machine(4, 8, 16, 2));
        assert_eq!(domains.of_cpu(CpuId(1023)).len(), 4);
        assert_eq!(domains.nr_domains(), 512 + 32 + 4 + 1);
        for cpu in (0..1024).map(CpuId) {
            for entry in domains.of_cpu(cpu) {
                let domain = domains.domain(entry.domain);
                assert!(domain.groups[entry.local_group as usize].span.contains(cpu));
                let weights: u32 = domain.groups.iter().map(|group| group.weight).sum();
                assert_eq!(weights, domain.weight);
            }
        }
    }
}
