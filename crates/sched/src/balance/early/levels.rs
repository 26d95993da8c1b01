// SPDX-License-Identifier: MIT OR Apache-2.0
//! Constants of the scheduling domains, and the power of CPUs and groups.
//!
//! Source: include/linux/topology.h (SD_SIBLING_INIT, SD_MC_INIT, SD_CPU_INIT) of Linux 2.6.11, of
//! versions between 2.6.17 and 2.6.24 (these constants did not change there) for 2.6.22 and 2.6.23,
//! and of 2.6.32; kernel/sched.c of 2.6.32 (`update_cpu_power`, `update_group_power`). The
//! constants of 2.6.24 and of NUMA nodes (SD_NODE_INIT of x86) are from memory. So is the rule that
//! a group of 2.6.24 whose CPUs share resources has the power of one CPU
//! (`init_sched_groups_power`).
//!
//! Up to 2.6.23 the model has two levels: the hardware threads of a core, if it has several, and
//! all CPUs, with each core as a group. It distinguishes neither nodes nor caches that several
//! cores share.

use super::versions::{Power, Version};
use crate::boundary::domains::{Domain, Domains, Group, Level as Kind};
use schedlab_model::{CpuId, Machine, Topology};

/// Power of a core with two threads under 2.6.32, on the scale of 1024 (smt_gain, 15 % more).
const SMT_GAIN: u64 = 1178;

/// Constants of a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// First interval between two searches (ms).
    pub first_interval: u64,
    /// Shortest interval (ms).
    pub min_interval: u64,
    /// Longest interval (ms).
    pub max_interval: u64,
    /// Factor by which a busy CPU's intervals are longer.
    pub busy_factor: u64,
    /// Percentage of the own load that another group must exceed.
    pub imbalance_pct: u64,
    /// Number of failed attempts after which cache-hot tasks move too.
    pub cache_nice_tries: u32,
    /// Index of the average that a busy CPU's search uses: 0 is the load itself.
    pub busy_idx: usize,
    /// Index of the average that an idle CPU's search uses.
    pub idle_idx: usize,
    /// Index of the average that a CPU uses when it becomes idle.
    pub newidle_idx: usize,
    /// Index of the average that a wake-up uses.
    pub wake_idx: usize,
    /// Index of the average that a new task or program uses.
    pub forkexec_idx: usize,
    /// Whether a CPU that becomes idle searches (SD_BALANCE_NEWIDLE).
    pub newidle: bool,
    /// Whether new tasks are spread (SD_BALANCE_FORK).
    pub fork: bool,
    /// Whether woken tasks move to the waker's CPU (SD_WAKE_AFFINE).
    pub wake_affine: bool,
    /// Whether woken tasks move to a waker's CPU with less load (SD_WAKE_BALANCE).
    pub wake_balance: bool,
    /// Whether woken tasks go to an idle CPU of the domain (SD_WAKE_IDLE).
    pub wake_idle: bool,
    /// Whether its CPUs are threads of a core (SD_SHARE_CPUPOWER).
    pub is_core: bool,
    /// Whether its CPUs share a cache (SD_SHARE_PKG_RESOURCES).
    pub shares_cache: bool,
    /// Whether the domain below prefers to place tasks in sibling domains (SD_PREFER_SIBLING).
    pub spreads_siblings: bool,
}

impl Level {
    /// Percentage by which another load may be greater at a wake-up or start.
    pub const fn half_imbalance_pct(&self) -> u64 {
        100 + (self.imbalance_pct - 100) / 2
    }
}

/// The domains of a machine under this version.
pub fn domains(version: &Version, machine: &Machine) -> Domains {
    if version.knows_caches {
        return Domains::new(&machine.topology);
    }
    let one = vec![0; machine.nr_cpus() as usize];
    let core = machine.topology.core.clone();
    Domains::new(&Topology { core, llc: one.clone(), node: one })
}

/// Power of each CPU.
pub fn cpu_power(version: &Version, domains: &Domains, nr_cpus: u32) -> Vec<u64> {
    let power = |cpu| match domains.smt_mask(cpu).weight() {
        threads @ 2.. if version.power == Power::Sum => SMT_GAIN / u64::from(threads),
        _ => version.scale,
    };
    (0..nr_cpus).map(CpuId).map(power).collect()
}

/// The constants of every domain.
pub fn of(version: &Version, domains: &Domains) -> Vec<Level> {
    let level = |domain: &Domain| {
        let below = domains.iter(domain.groups[0].first).take_while(|d| d.level < domain.level);
        let spreads = below.last().is_some_and(|d| d.level != Kind::Smt);
        let spreads_siblings = version.counts_capacity && spreads;
        Level { spreads_siblings, ..constants(version, domain.level) }
    };
    (0..domains.nr_domains()).map(|index| level(domains.domain(index as u32))).collect()
}

/// Power of the groups of every domain.
pub fn powers(version: &Version, domains: &Domains, cpu_power: &[u64]) -> Vec<Vec<u64>> {
    let of_domain = |domain: &Domain| {
        let power = |group| group_power(version, domains, domain, group, cpu_power);
        domain.groups.iter().map(power).collect()
    };
    (0..domains.nr_domains()).map(|index| of_domain(domains.domain(index as u32))).collect()
}

fn group_power(
    version: &Version,
    domains: &Domains,
    domain: &Domain,
    group: &Group,
    powers: &[u64],
) -> u64 {
    let scale = version.scale;
    let of_threads = |threads: u32| scale + scale * (u64::from(threads) - 1) / 10;
    match version.power {
        // A thread gets its share of the core's power as a group.
        Power::Threads if domain.is_smt() => of_threads(domain.weight) / u64::from(domain.weight),
        Power::Threads => of_threads(group.weight),
        Power::OneCpu => scale,
        // Everything below counts as one CPU if it shares a core or cache.
        Power::OneCpuByCache if group.weight == 1 || domain.level <= Kind::Pkg => scale,
        Power::OneCpuByCache => parts_below(domains, group.first, domain.level) * scale,
        Power::Sum => group.span.iter().map(|cpu| powers[cpu.index()]).sum(),
    }
}

/// Groups of the domain of `cpu` right below `kind`.
fn parts_below(domains: &Domains, cpu: CpuId, kind: Kind) -> u64 {
    let below = domains.iter(cpu).take_while(|domain| domain.level < kind).last();
    below.map_or(1, |domain| match domain.level {
        Kind::Smt | Kind::Mc => 1,
        _ => domain.groups.len() as u64,
    })
}

const CPU: Level = Level {
    first_interval: 1,
    min_interval: 1,
    max_interval: 4,
    busy_factor: 64,
    imbalance_pct: 125,
    cache_nice_tries: 1,
    busy_idx: 2,
    idle_idx: 1,
    newidle_idx: 2,
    wake_idx: 1,
    forkexec_idx: 1,
    newidle: true,
    fork: false,
    wake_affine: true,
    wake_balance: false,
    wake_idle: false,
    is_core: false,
    shares_cache: false,
    spreads_siblings: false,
};

const THREADS: Level = Level {
    max_interval: 2,
    imbalance_pct: 110,
    cache_nice_tries: 0,
    busy_idx: 0,
    idle_idx: 0,
    newidle_idx: 0,
    wake_idx: 0,
    forkexec_idx: 0,
    wake_idle: true,
    is_core: true,
    ..CPU
};

const NODE: Level =
    Level { first_interval: 8, min_interval: 8, max_interval: 32, busy_factor: 32, ..CPU };

fn constants(version: &Version, kind: Kind) -> Level {
    if version.counts_capacity {
        later(kind)
    } else if version.knows_caches {
        with_caches(kind)
    } else {
        let level = early(kind);
        // 2.6.11 has a single average of a load, for all purposes.
        let only = |idx: usize| if version.counts_tasks { 2 } else { idx };
        Level {
            busy_idx: only(level.busy_idx),
            idle_idx: only(level.idle_idx),
            newidle_idx: only(level.newidle_idx),
            wake_idx: only(level.wake_idx),
            forkexec_idx: only(level.forkexec_idx),
            ..level
        }
    }
}

/// Constants of 2.6.11 to 2.6.23.
fn early(kind: Kind) -> Level {
    match kind {
        Kind::Smt => Level { busy_factor: 8, newidle_idx: 1, ..THREADS },
        Kind::Mc | Kind::Pkg | Kind::Numa => CPU,
    }
}

/// Constants of 2.6.24.
fn with_caches(kind: Kind) -> Level {
    match kind {
        Kind::Smt => THREADS,
        Kind::Mc => Level { shares_cache: true, ..CPU },
        Kind::Pkg => CPU,
        Kind::Numa => Level {
            cache_nice_tries: 2,
            busy_idx: 3,
            idle_idx: 2,
            newidle_idx: 0,
            newidle: false,
            fork: true,
            wake_affine: false,
            wake_balance: true,
            ..NODE
        },
    }
}

/// Constants of 2.6.32.
fn later(kind: Kind) -> Level {
    let level = match kind {
        Kind::Smt => Level { wake_idle: false, shares_cache: true, ..THREADS },
        Kind::Mc => Level { idle_idx: 0, shares_cache: true, ..CPU },
        Kind::Pkg => CPU,
        Kind::Numa => Level { busy_idx: 3, idle_idx: 2, ..NODE },
    };
    Level { newidle_idx: 0, wake_idx: 0, forkexec_idx: 0, fork: true, ..level }
}

#[cfg(test)]
mod tests {
    use super::super::versions::*;
    use super::*;

    /// Two packages with two cores of two threads each.
    fn machine() -> Machine {
        let topology = Topology {
            core: (0..8).map(|cpu| cpu / 2).collect(),
            llc: (0..8).map(|cpu| cpu / 4).collect(),
            node: vec![0; 8],
        };
        Machine { topology, ..Machine::flat(8) }
    }

    fn powers_of(version: &Version) -> Vec<Vec<u64>> {
        let domains = domains(version, &machine());
        let powers = powers(version, &domains, &cpu_power(version, &domains, 8));
        let of_cpu = domains.of_cpu(CpuId(0)).iter();
        of_cpu.map(|entry| powers[entry.domain as usize].clone()).collect()
    }

    #[test]
    fn strength_of_groups() {
        assert_eq!(powers_of(&LINUX_2_6_11), [vec![70; 2], vec![140; 4]]);
        assert_eq!(powers_of(&LINUX_2_6_22), [vec![128; 2], vec![128; 4]]);
        assert_eq!(powers_of(&LINUX_2_6_23), [vec![1024; 2], vec![1024; 4]]);
        assert_eq!(powers_of(&LINUX_2_6_24), [vec![1024; 2], vec![1024; 2], vec![1024; 2]]);
        assert_eq!(powers_of(&LINUX_2_6_32), [vec![589; 2], vec![1178; 2], vec![2356; 2]]);
    }

    #[test]
    fn section_5_3_intervals_and_thresholds() {
        for version in [LINUX_2_6_24, LINUX_2_6_32] {
            let domains = domains(&version, &Machine::flat(4));
            let level = &of(&version, &domains)[0];
            let found = (level.min_interval, level.max_interval, level.busy_factor);
            assert_eq!((found, level.imbalance_pct), ((1, 4, 64), 125));
            assert_eq!(level.fork, version.counts_capacity);
        }
    }

    #[test]
    fn section_3_11_intervals_and_thresholds() {
        for version in [LINUX_2_6_11, LINUX_2_6_22, LINUX_2_6_23] {
            let domains = domains(&version, &machine());
            let levels = of(&version, &domains);
            let of_cpu = domains.of_cpu(CpuId(0)).iter();
            let constants = |level: &Level| {
                (level.max_interval, level.busy_factor, level.imbalance_pct, level.is_core)
            };
            let found: Vec<_> =
                of_cpu.map(|entry| constants(&levels[entry.domain as usize])).collect();
            assert_eq!(found, [(2, 8, 110, true), (4, 64, 125, false)]);
        }
    }
}
