// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling domains of 2.6.11 and 2.6.22, and the load of CPUs.
//!
//! Two levels: the hardware threads of a core, where there are several, and all CPUs, of which each
//! core is a group. Nodes are not told apart.
//!
//! Source: Linux 2.6.11 and 2.6.22, include/linux/topology.h (SD_SIBLING_INIT, SD_CPU_INIT),
//! kernel/sched.c (`source_load`, `target_load`, the averages of `rebalance_tick` and
//! `update_load`), arch/i386/kernel/smpboot.c (power of a core of two threads).

use super::super::Entry;
use super::super::rules::{BalanceRule, Rules, Scale};
use crate::core::Core;
use schedlab_model::{CpuId, Machine, Nanos};

/// Load of one task of nice 0, and power of one CPU (SCHED_LOAD_SCALE).
pub const LOAD_SCALE: u64 = 128;

/// Averages of a CPU's load; number 0 is the load itself.
const NR_AVERAGES: usize = 3;

/// Why a CPU balances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// It runs something.
    Not,
    /// At the tick of an idle CPU.
    AtTick,
    /// It is about to become idle.
    Newly,
}

/// CPUs that count as one at a level.
#[derive(Clone, Debug)]
pub struct Group {
    pub cpus: Vec<CpuId>,
    pub power: u64,
}

/// A domain: its groups and constants.
#[derive(Clone, Debug)]
pub struct Domain {
    pub groups: Vec<Group>,
    /// Intervals in ms, and by how much a busy CPU's are longer.
    pub max_interval: u64,
    pub busy_factor: u64,
    pub imbalance_pct: u64,
    /// A task that ran less long ago is cache-hot, ns.
    pub cache_hot: Nanos,
    pub cache_nice_tries: u32,
    /// Hardware threads of one core.
    pub is_core: bool,
}

/// What a CPU remembers of a domain.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    pub domain: usize,
    /// The group that the CPU is in.
    pub own_group: usize,
    pub last_balance: u64,
    /// ms.
    pub interval: u64,
    pub nr_failed: u32,
}

/// The domains of a machine, and the loads.
#[derive(Debug)]
pub struct Domains {
    pub domains: Vec<Domain>,
    /// By CPU, the smallest first.
    pub intervals: Vec<Vec<Interval>>,
    /// Sum of the loads of the queued tasks, by CPU.
    pub load: Vec<u64>,
    averages: Vec<[u64; NR_AVERAGES]>,
    weighs: bool,
    hz: u64,
}

impl Domains {
    /// For a version on `machine`.
    pub fn new(rules: &Rules, cache_hot: Nanos, machine: &Machine) -> Self {
        let nr_cpus = machine.nr_cpus();
        let cores = &machine.topology.core;
        let mut members: Vec<Vec<CpuId>> = Vec::new();
        let mut core_index = vec![0; nr_cpus as usize];
        for cpu in (0..nr_cpus).map(CpuId) {
            let mine = cores[cpu.index()];
            let known = members.iter().position(|core| cores[core[0].index()] == mine);
            core_index[cpu.index()] = known.unwrap_or(members.len());
            match known {
                Some(index) => members[index].push(cpu),
                None => members.push(vec![cpu]),
            }
        }
        let mut domains = vec![all_cpus(&members, cache_hot)];
        let mut intervals: Vec<Vec<Interval>> = vec![Vec::new(); nr_cpus as usize];
        for core in members.iter().filter(|core| core.len() > 1) {
            for (own_group, cpu) in core.iter().enumerate() {
                intervals[cpu.index()].push(Interval::new(domains.len(), own_group));
            }
            domains.push(threads_of(core));
        }
        for cpu in 0..nr_cpus as usize {
            intervals[cpu].push(Interval::new(0, core_index[cpu]));
        }
        Self {
            domains,
            intervals,
            load: vec![0; nr_cpus as usize],
            averages: vec![[0; NR_AVERAGES]; nr_cpus as usize],
            weighs: rules.balance == BalanceRule::Weights,
            hz: u64::from(machine.hz),
        }
    }

    /// Whether loads are weights of tasks rather than their number.
    pub fn weighs(&self) -> bool {
        self.weighs
    }

    /// Load of a task.
    pub fn task_load(&self, entry: &Entry, scale: &Scale) -> u64 {
        match entry.rt_prio {
            _ if !self.weighs => LOAD_SCALE,
            Some(prio) => 8 * LOAD_SCALE + u64::from(99 - prio) * LOAD_SCALE / 100,
            None => {
                let slice = u64::from(scale.timeslice(entry.static_prio));
                slice * LOAD_SCALE / u64::from(scale.def_timeslice)
            }
        }
    }

    /// Which average the kind of balancing goes by.
    pub fn index_of(&self, idle: Idle) -> usize {
        match idle {
            Idle::AtTick => 1,
            _ if !self.weighs => 1,
            Idle::Not | Idle::Newly => 2,
        }
    }

    /// Load of a CPU from which a task would be taken: rather too little than too much.
    pub fn source_load(&self, cpu: CpuId, index: usize) -> u64 {
        self.averages[cpu.index()][index].min(self.load[cpu.index()])
    }

    /// Load of a CPU to which a task would come: rather too much.
    pub fn target_load(&self, cpu: CpuId, index: usize) -> u64 {
        self.averages[cpu.index()][index].max(self.load[cpu.index()])
    }

    /// The tick of `cpu` moves its averages.
    pub fn update_load(&mut self, cpu: CpuId) {
        let now = self.load[cpu.index()];
        for (power, average) in self.averages[cpu.index()].iter_mut().enumerate() {
            let scale = 1 << power;
            let rounding = if now > *average { scale - 1 } else { 0 };
            *average = (*average * (scale - 1) + now + rounding) >> power;
        }
    }

    /// Ticks from `jiffies` on at which busy `cpu` does not look at any of its domains.
    pub fn quiet_ticks(&self, jiffies: u64, cpu: CpuId) -> u64 {
        let jiffies = jiffies + self.offset(cpu);
        let intervals = self.intervals[cpu.index()].iter().enumerate();
        let left = intervals.map(|(level, state)| {
            let due = state.last_balance + self.interval_ticks(cpu, level, Idle::Not);
            due.saturating_sub(jiffies)
        });
        left.min().unwrap_or(u64::MAX)
    }

    /// As many such ticks have passed.
    pub fn pass_ticks(&mut self, cpu: CpuId, nr: u64) {
        for _ in 0..nr {
            if self.averages[cpu.index()] == [self.load[cpu.index()]; NR_AVERAGES] {
                break;
            }
            self.update_load(cpu);
        }
    }

    /// Every CPU was idle for so many ticks: loads fell, and each found its domains in balance.
    pub fn all_were_idle(&mut self, jiffies: u64, ticks: u64) {
        for cpu in 0..self.load.len() {
            let now = std::mem::take(&mut self.load[cpu]);
            // 64 ticks leave nothing of any average that a machine can have, but the last 1 to 3.
            for _ in 0..ticks.min(64) {
                self.update_load(CpuId(cpu as u32));
            }
            self.load[cpu] = now;
            let offset = self.offset(CpuId(cpu as u32));
            for state in &mut self.intervals[cpu] {
                state.interval = self.domains[state.domain].max_interval;
                state.last_balance = jiffies - 1 + offset;
            }
        }
    }

    /// CPUs look at different ticks (CPU_OFFSET).
    pub fn offset(&self, cpu: CpuId) -> u64 {
        self.hz * u64::from(cpu.0) / self.load.len() as u64
    }

    /// Ticks between two looks of `cpu` at its domain number `level`.
    pub fn interval_ticks(&self, cpu: CpuId, level: usize, idle: Idle) -> u64 {
        let state = &self.intervals[cpu.index()][level];
        let factor = match idle {
            Idle::Not => self.domains[state.domain].busy_factor,
            Idle::AtTick | Idle::Newly => 1,
        };
        (state.interval * factor * self.hz).div_ceil(1000).max(1)
    }

    /// The domain of the hardware threads of `cpu`'s core.
    pub fn core_of(&self, cpu: CpuId) -> Option<&Domain> {
        let smallest = &self.domains[self.intervals[cpu.index()][0].domain];
        smallest.is_core.then_some(smallest)
    }

    /// Whether `cpu` and the other threads of its core run nothing.
    pub fn core_is_idle(&self, core: &Core, cpu: CpuId) -> bool {
        let is_idle = |cpu: CpuId| core.rq(cpu).curr.is_none();
        let threads = self.core_of(cpu).map_or(&[][..], |domain| &domain.groups);
        is_idle(cpu) && threads.iter().all(|group| group.cpus.iter().all(|cpu| is_idle(*cpu)))
    }
}

impl Interval {
    fn new(domain: usize, own_group: usize) -> Self {
        Self { domain, own_group, last_balance: 0, interval: 1, nr_failed: 0 }
    }
}

/// The domain of all CPUs.
fn all_cpus(cores: &[Vec<CpuId>], cache_hot: Nanos) -> Domain {
    let power = |core: &Vec<CpuId>| LOAD_SCALE + LOAD_SCALE * (core.len() as u64 - 1) / 10;
    let groups = cores.iter().map(|core| Group { cpus: core.clone(), power: power(core) });
    Domain {
        groups: groups.collect(),
        max_interval: 4,
        busy_factor: 64,
        imbalance_pct: 125,
        cache_hot,
        cache_nice_tries: 1,
        is_core: false,
    }
}

/// The domain of the threads of a core.
fn threads_of(core: &[CpuId]) -> Domain {
    // A thread has its part of what the core has as a group.
    let whole = LOAD_SCALE + LOAD_SCALE * (core.len() as u64 - 1) / 10;
    let power = whole / core.len() as u64;
    Domain {
        groups: core.iter().map(|cpu| Group { cpus: vec![*cpu], power }).collect(),
        max_interval: 2,
        busy_factor: 8,
        imbalance_pct: 110,
        cache_hot: 0,
        cache_nice_tries: 0,
        is_core: true,
    }
}
