// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling domains of 2.6.11, 2.6.22 and 2.6.23, and the load of CPUs.
//!
//! Two levels: the hardware threads of a core, where there are several, and all CPUs, of which each
//! core is a group. Nodes are not told apart, nor caches that several cores share.
//!
//! Files: [`group`] from where and how much in 2.6.11, [`revised`] the same in 2.6.22 and 2.6.23,
//! with the times at which they look.
//!
//! Source: Linux 2.6.11, 2.6.22 and 2.6.23, include/linux/topology.h (SD_SIBLING_INIT,
//! SD_CPU_INIT), kernel/sched.c (`source_load`, `target_load`, the averages of `rebalance_tick`,
//! `update_load` and `update_cpu_load`), arch/i386/kernel/smpboot.c (power of a core of two
//! threads).

pub mod group;
pub mod revised;

use crate::core::Core;
use schedlab_model::{CpuId, Machine, Nanos};

/// Load of one task of nice 0, and power of one CPU, up to 2.6.22 (SCHED_LOAD_SCALE).
pub const LOAD_SCALE: u64 = 128;
/// The same from 2.6.23 on.
pub const LOAD_SCALE_REVISED: u64 = 1024;

/// What a version's loads are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Numbers of tasks (2.6.11).
    Tasks,
    /// Weights of tasks, of which a core of threads gets no more done than one CPU; looks are not
    /// spread over the ticks (2.6.22).
    Weights,
    /// The same with finer weights, and averages that are rounded down (2.6.23).
    Revised,
}

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
    /// Its CPUs, in order.
    pub cpus: Vec<CpuId>,
    /// What it gets done, one CPU being SCHED_LOAD_SCALE.
    pub power: u64,
}

/// A domain: its groups and constants.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Groups.
    pub groups: Vec<Group>,
    /// Longest interval in ms; the shortest is 1.
    pub max_interval: u64,
    /// By how much a busy CPU's intervals are longer.
    pub busy_factor: u64,
    /// Percent of its own load that another group must exceed.
    pub imbalance_pct: u64,
    /// A task that ran less long ago is cache-hot, ns.
    pub cache_hot: Nanos,
    /// Failed attempts after which heat does not count.
    pub cache_nice_tries: u32,
    /// Hardware threads of one core.
    pub is_core: bool,
}

/// What a CPU remembers of a domain.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Number of the domain.
    pub domain: usize,
    /// The group that the CPU is in.
    pub own_group: usize,
    /// In jiffies.
    pub last_balance: u64,
    /// Time to the next look, ms, while idle.
    pub interval: u64,
    /// Attempts that failed, since one did not.
    pub nr_failed: u32,
}

/// The domains of a machine, and the loads.
#[derive(Debug)]
pub struct Domains {
    /// All domains; number 0 has all CPUs.
    pub domains: Vec<Domain>,
    /// By CPU, the smallest first.
    pub intervals: Vec<Vec<Interval>>,
    /// Sum of the loads of the queued tasks, by CPU.
    pub load: Vec<u64>,
    averages: Vec<[u64; NR_AVERAGES]>,
    style: Style,
    hz: u64,
}

impl Domains {
    /// For a version on `machine`.
    pub fn new(style: Style, cache_hot: Nanos, machine: &Machine) -> Self {
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
        let mut domains = vec![all_cpus(style, &members, cache_hot)];
        let mut intervals: Vec<Vec<Interval>> = vec![Vec::new(); nr_cpus as usize];
        for core in members.iter().filter(|core| core.len() > 1) {
            for (own_group, cpu) in core.iter().enumerate() {
                intervals[cpu.index()].push(Interval::new(domains.len(), own_group));
            }
            domains.push(threads_of(style, core));
        }
        for cpu in 0..nr_cpus as usize {
            intervals[cpu].push(Interval::new(0, core_index[cpu]));
        }
        Self {
            domains,
            intervals,
            load: vec![0; nr_cpus as usize],
            averages: vec![[0; NR_AVERAGES]; nr_cpus as usize],
            style,
            hz: u64::from(machine.hz),
        }
    }

    /// Whether loads are weights of tasks rather than their number.
    pub fn weighs(&self) -> bool {
        self.style != Style::Tasks
    }

    /// Load of one task of nice 0, and power of one CPU (SCHED_LOAD_SCALE).
    pub const fn scale(&self) -> u64 {
        match self.style {
            Style::Revised => LOAD_SCALE_REVISED,
            Style::Tasks | Style::Weights => LOAD_SCALE,
        }
    }

    /// What a load of the past is called `index` for (`source_load`): the load itself, or one of
    /// its averages. 2.6.11 has but one.
    fn past(&self, cpu: CpuId, index: usize) -> Option<u64> {
        match self.style {
            Style::Tasks => Some(self.average(cpu, index)),
            _ => index.checked_sub(1).map(|power| self.average(cpu, power)),
        }
    }

    /// Load of a CPU from which a task would be taken: the less of present and past.
    pub fn source_load(&self, cpu: CpuId, index: usize) -> u64 {
        let now = self.load[cpu.index()];
        self.past(cpu, index).map_or(now, |past| past.min(now))
    }

    /// Load of a CPU to which a task would come: the more.
    pub fn target_load(&self, cpu: CpuId, index: usize) -> u64 {
        let now = self.load[cpu.index()];
        self.past(cpu, index).map_or(now, |past| past.max(now))
    }

    /// The average of a CPU's load that moves by 1 / 2^`power` of the difference at each tick
    /// (`cpu_load[]`).
    pub fn average(&self, cpu: CpuId, power: usize) -> u64 {
        self.averages[cpu.index()][power]
    }

    /// The tick of `cpu` moves its averages towards its load.
    pub fn update_load(&mut self, cpu: CpuId) {
        self.move_averages(cpu, self.load[cpu.index()]);
    }

    /// The tick of `cpu` moves its averages towards `now`.
    pub fn move_averages(&mut self, cpu: CpuId, now: u64) {
        for (power, average) in self.averages[cpu.index()].iter_mut().enumerate() {
            let scale = 1 << power;
            let rises = now > *average && self.style != Style::Revised;
            let rounding = if rises { scale - 1 } else { 0 };
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
            let before = self.averages[cpu.index()];
            self.update_load(cpu);
            if self.averages[cpu.index()] == before {
                break;
            }
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

    /// CPUs look at different ticks in 2.6.11 (CPU_OFFSET).
    pub fn offset(&self, cpu: CpuId) -> u64 {
        if self.weighs() {
            return 0;
        }
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

/// Which ticks of idle CPUs are still to be made up for: the engine ticks on busy CPUs only.
#[derive(Debug, Default)]
pub struct TickCatchUp {
    /// The tick under way, and the first CPU that has not had it.
    jiffy: u64,
    next_cpu: u32,
}

impl TickCatchUp {
    /// At the tick of busy `cpu`: how many ticks before this one found every CPU idle, and the CPUs
    /// whose tick it is now: those between the last busy CPU and this one, and those behind it if
    /// none of them is busy.
    pub fn due(&mut self, core: &Core, cpu: CpuId) -> (u64, std::ops::Range<u32>) {
        let jiffies = core.jiffies();
        let mut missed = 0;
        if jiffies != self.jiffy {
            missed = jiffies - self.jiffy - 1;
            self.jiffy = jiffies;
            self.next_cpu = 0;
        }
        let is_busy = |cpu: u32| core.rq(CpuId(cpu)).curr.is_some();
        let is_last = !(cpu.0 + 1..core.nr_cpus()).any(is_busy);
        let end = if is_last { core.nr_cpus() } else { cpu.0 + 1 };
        let begin = self.next_cpu;
        self.next_cpu = begin.max(end);
        (missed, begin..end)
    }

    /// Whether the present tick follows the last one that was seen.
    pub fn is_next(&self, core: &Core) -> bool {
        self.jiffy + 1 == core.jiffies()
    }

    /// All CPUs have had their ticks up to now.
    pub fn pass(&mut self, core: &Core) {
        self.jiffy = core.jiffies();
        self.next_cpu = core.nr_cpus();
    }
}

impl Interval {
    fn new(domain: usize, own_group: usize) -> Self {
        Self { domain, own_group, last_balance: 0, interval: 1, nr_failed: 0 }
    }
}

/// What a core gets done: two threads a tenth more than one, but from 2.6.22 on as one CPU.
fn core_power(style: Style, core: &[CpuId]) -> u64 {
    match style {
        Style::Tasks => LOAD_SCALE + LOAD_SCALE * (core.len() as u64 - 1) / 10,
        Style::Weights => LOAD_SCALE,
        Style::Revised => LOAD_SCALE_REVISED,
    }
}

/// The domain of all CPUs.
fn all_cpus(style: Style, cores: &[Vec<CpuId>], cache_hot: Nanos) -> Domain {
    let groups =
        cores.iter().map(|core| Group { cpus: core.clone(), power: core_power(style, core) });
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
fn threads_of(style: Style, core: &[CpuId]) -> Domain {
    // A thread has its part of what the core has as a group, from 2.6.22 on that of a whole CPU.
    let power = match style {
        Style::Tasks => core_power(style, core) / core.len() as u64,
        Style::Weights | Style::Revised => core_power(style, core),
    };
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
