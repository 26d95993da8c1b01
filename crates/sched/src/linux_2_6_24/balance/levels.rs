// SPDX-License-Identifier: MIT OR Apache-2.0
//! Constants of the scheduling domains, and the strength of CPUs and groups.
//!
//! Source: Linux 2.6.32, include/linux/topology.h (SD_SIBLING_INIT, SD_MC_INIT, SD_CPU_INIT), and
//! kernel/sched.c (`update_cpu_power`, `update_group_power`). Those of 2.6.24 and of NUMA nodes
//! (SD_NODE_INIT of x86) are from memory, as is that a group of 2.6.24 whose CPUs share resources
//! is as strong as one CPU (`init_sched_groups_power`).

use super::super::rules::Rules;
use super::super::weights::NICE_0_LOAD;
use crate::domains::{Domains, Level as Kind};
use schedlab_model::CpuId;

/// What a core of two threads gets done, of 1024 (smt_gain, 15 % more).
const SMT_GAIN: u64 = 1178;

/// Constants of a domain.
#[derive(Clone, Debug)]
pub struct Level {
    /// Intervals in ms.
    pub first_interval: u64,
    pub min_interval: u64,
    pub max_interval: u64,
    /// By how much a busy CPU's are longer.
    pub busy_factor: u64,
    pub imbalance_pct: u64,
    pub cache_nice_tries: u32,
    /// Which average of a load each kind of look goes by: 0 is the load itself.
    pub busy_idx: usize,
    pub idle_idx: usize,
    pub newidle_idx: usize,
    pub wake_idx: usize,
    pub forkexec_idx: usize,
    /// SD_BALANCE_NEWIDLE, SD_BALANCE_FORK, SD_WAKE_AFFINE, SD_WAKE_BALANCE, SD_WAKE_IDLE.
    pub newidle: bool,
    pub fork: bool,
    pub wake_affine: bool,
    pub wake_balance: bool,
    pub wake_idle: bool,
    /// SD_SHARE_CPUPOWER: threads of a core.
    pub is_core: bool,
    /// SD_SHARE_PKG_RESOURCES.
    pub shares_cache: bool,
    /// The domain below prefers that tasks go to siblings of it (SD_PREFER_SIBLING).
    pub spreads_siblings: bool,
    /// Strength of each group.
    pub power: Vec<u64>,
}

/// Strength of each CPU.
pub fn cpu_power(rules: &Rules, domains: &Domains, nr_cpus: u32) -> Vec<u64> {
    let power = |cpu| match domains.smt_mask(cpu).weight() {
        threads @ 2.. if rules.is_later => SMT_GAIN / u64::from(threads),
        _ => NICE_0_LOAD,
    };
    (0..nr_cpus).map(CpuId).map(power).collect()
}

/// The constants of every domain.
pub fn of(rules: &Rules, domains: &Domains, nr_cpus: u32) -> Vec<Level> {
    let powers = cpu_power(rules, domains, nr_cpus);
    let mut levels: Vec<Level> = Vec::new();
    for index in 0..domains.nr_domains() {
        let domain = domains.domain(index as u32);
        let mut level = match rules.is_later {
            true => later(domain.level),
            false => first(domain.level),
        };
        level.power = domain
            .groups
            .iter()
            .map(|group| {
                let has_caches_below = group.weight > 1 && domain.level <= Kind::Pkg;
                match rules.is_later {
                    // All that is below counts as one CPU where it shares a core or cache.
                    false if has_caches_below => NICE_0_LOAD,
                    false if group.weight == 1 => NICE_0_LOAD,
                    false => parts_below(domains, group.first, domain.level) * NICE_0_LOAD,
                    true => group.span.iter().map(|cpu| powers[cpu.index()]).sum(),
                }
            })
            .collect();
        let below = domains.iter(domain.groups[0].first).take_while(|d| d.level < domain.level);
        level.spreads_siblings =
            rules.is_later && below.last().is_some_and(|d| d.level != Kind::Smt);
        levels.push(level);
    }
    levels
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
    power: Vec::new(),
};

/// Constants of 2.6.24.
fn first(kind: Kind) -> Level {
    match kind {
        Kind::Smt => Level {
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
        },
        Kind::Mc => Level { shares_cache: true, ..CPU },
        Kind::Pkg => CPU,
        Kind::Numa => Level {
            first_interval: 8,
            min_interval: 8,
            max_interval: 32,
            busy_factor: 32,
            cache_nice_tries: 2,
            busy_idx: 3,
            idle_idx: 2,
            newidle_idx: 0,
            newidle: false,
            fork: true,
            wake_affine: false,
            wake_balance: true,
            ..CPU
        },
    }
}

/// Constants of 2.6.32.
fn later(kind: Kind) -> Level {
    let cpu = Level { newidle_idx: 0, wake_idx: 0, forkexec_idx: 0, fork: true, ..CPU };
    match kind {
        Kind::Smt => Level {
            max_interval: 2,
            imbalance_pct: 110,
            cache_nice_tries: 0,
            busy_idx: 0,
            idle_idx: 0,
            is_core: true,
            shares_cache: true,
            ..cpu
        },
        Kind::Mc => Level { idle_idx: 0, shares_cache: true, ..cpu },
        Kind::Pkg => cpu,
        Kind::Numa => Level {
            first_interval: 8,
            min_interval: 8,
            max_interval: 32,
            busy_factor: 32,
            busy_idx: 3,
            idle_idx: 2,
            ..cpu
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::Topology;

    /// Two packages of two cores of two threads.
    fn topology() -> Topology {
        Topology {
            core: (0..8).map(|cpu| cpu / 2).collect(),
            llc: (0..8).map(|cpu| cpu / 4).collect(),
            node: vec![0; 8],
        }
    }

    fn powers(rules: &Rules) -> Vec<(Kind, Vec<u64>)> {
        let domains = Domains::new(&topology());
        let levels = of(rules, &domains, 8);
        let of_cpu = domains.of_cpu(CpuId(0)).iter();
        let power = |entry: &crate::domains::CpuDomain| {
            let index = entry.domain;
            (domains.domain(index).level, levels[index as usize].power.clone())
        };
        of_cpu.map(power).collect()
    }

    #[test]
    fn strength_of_groups() {
        let first = vec![
            (Kind::Smt, vec![1024, 1024]),
            (Kind::Mc, vec![1024, 1024]),
            (Kind::Pkg, vec![1024, 1024]),
        ];
        assert_eq!(powers(&Rules::LINUX_2_6_24), first);
        let later = vec![
            (Kind::Smt, vec![589, 589]),
            (Kind::Mc, vec![1178, 1178]),
            (Kind::Pkg, vec![2356, 2356]),
        ];
        assert_eq!(powers(&Rules::LINUX_2_6_32), later);
    }

    #[test]
    fn section_5_3_intervals_and_thresholds() {
        for rules in [Rules::LINUX_2_6_24, Rules::LINUX_2_6_32] {
            let domains = Domains::new(&Topology::flat(4));
            let level = &of(&rules, &domains, 4)[0];
            let found = (level.min_interval, level.max_interval, level.busy_factor);
            assert_eq!((found, level.imbalance_pct), ((1, 4, 64), 125));
            assert_eq!(level.fork, rules.is_later);
        }
    }
}
