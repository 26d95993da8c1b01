// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spreading tasks over CPUs along scheduling domains, by the sum of their weights: at ticks, when
//! a CPU runs dry, when a task wakes or is new.
//!
//! Files: `levels` the constants of the domains and the strength of their groups, `busiest` from
//! where and how much, `moves` which tasks, `select` the CPU for a waking or new task.
//!
//! Every CPU balances at its own tick, an idle one too. The engine ticks only while some CPU is
//! busy, and busy CPUs only; so the ticks of idle CPUs are made up for here, in the order of the
//! CPUs. While all are idle nothing could be pulled; the averages of their loads are brought up to
//! date at the next tick.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched.c (`update_cpu_load`, `source_load`,
//! `target_load`, `rebalance_domains`, `idle_balance`, `load_balance_newidle`), sched_fair.c.

mod busiest;
mod levels;
mod moves;
mod select;

use super::Fair;
use super::rules::Rules;
use super::tunables::Values;
use super::weights::NICE_0_LOAD;
use crate::core::Core;
use crate::domains::Domains;
use crate::domains_2_6::TickCatchUp;
use levels::Level;
use schedlab_model::{CpuId, Machine, Nanos};

/// Averages of a CPU's load (CPU_LOAD_IDX_MAX).
const NR_AVERAGES: usize = 5;

/// Why a CPU balances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Idle {
    /// It runs something.
    Not,
    /// At the tick of an idle CPU.
    AtTick,
    /// It is about to become idle.
    Newly,
}

/// What a CPU remembers of a domain.
#[derive(Clone, Copy, Debug)]
struct DomainState {
    /// In jiffies.
    last_balance: u64,
    /// In ms.
    balance_interval: u64,
    nr_balance_failed: u32,
    /// When shares of groups were spread over it last.
    last_update: Option<Nanos>,
}

/// What is kept of a CPU.
#[derive(Clone, Debug)]
struct CpuState {
    cpu_load: [u64; NR_AVERAGES],
    domains: Vec<DomainState>,
    /// The CPU to which a task of this one is to be pushed.
    push_cpu: Option<CpuId>,
    /// 2.6.32: when it ran dry, and how long it idles on average.
    idle_stamp: Option<Nanos>,
    avg_idle: Nanos,
}

/// What balancing remembers.
#[derive(Debug)]
pub struct Balance {
    domains: Domains,
    /// Constants by domain.
    levels: Vec<Level>,
    cpus: Vec<CpuState>,
    /// Strength of a CPU: 1024, or a hardware thread's part.
    cpu_power: Vec<u64>,
    ticks: TickCatchUp,
    hz: u64,
}

impl Balance {
    /// For a version on `machine`.
    pub fn new(rules: &Rules, machine: &Machine) -> Self {
        let domains = Domains::new(&machine.topology);
        let levels = levels::of(rules, &domains, machine.nr_cpus());
        let cpu_power = levels::cpu_power(rules, &domains, machine.nr_cpus());
        let cpus = (0..machine.nr_cpus()).map(CpuId).map(|cpu| {
            let first = |entry: &crate::domains::CpuDomain| DomainState {
                last_balance: 0,
                balance_interval: levels[entry.domain as usize].first_interval,
                nr_balance_failed: 0,
                last_update: None,
            };
            CpuState {
                cpu_load: [0; NR_AVERAGES],
                domains: domains.of_cpu(cpu).iter().map(first).collect(),
                push_cpu: None,
                idle_stamp: None,
                // 2 * sched_migration_cost of the kernel at boot.
                avg_idle: 1_000_000,
            }
        });
        let cpus = cpus.collect();
        let hz = u64::from(machine.hz);
        Self { domains, levels, cpus, cpu_power, ticks: TickCatchUp::default(), hz }
    }

    /// Whether a task of `cpu` is about to be pushed away.
    #[inline]
    pub fn is_pushing(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].push_cpu.is_some()
    }

    /// A task wakes on `cpu`: if it was idle it is known for how long (2.6.32).
    #[inline]
    pub fn not_idle(&mut self, values: &Values, now: Nanos, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if let Some(since) = state.idle_stamp.take() {
            let (idle, most) = (now - since, 2 * values.migration_cost);
            if idle > most {
                state.avg_idle = most;
            } else {
                super::entity::update_avg(&mut state.avg_idle, idle);
            }
        }
    }

    fn level(&self, cpu: CpuId, position: usize) -> &Level {
        &self.levels[self.domains.of_cpu(cpu)[position].domain as usize]
    }

    fn state(&mut self, cpu: CpuId, position: usize) -> &mut DomainState {
        &mut self.cpus[cpu.index()].domains[position]
    }

    /// Whether the domain is the last one of `cpu`.
    fn is_top(&self, cpu: CpuId, position: usize) -> bool {
        position + 1 == self.domains.of_cpu(cpu).len()
    }

    /// Ticks between two looks of `cpu` at a domain.
    fn interval(&self, cpu: CpuId, position: usize, idle: Idle) -> u64 {
        let level = self.level(cpu, position);
        let factor = if idle == Idle::AtTick { 1 } else { level.busy_factor };
        let ms = self.cpus[cpu.index()].domains[position].balance_interval * factor;
        let most = self.hz * self.cpus.len() as u64 / 10;
        (ms * self.hz).div_ceil(1000).min(most).max(1)
    }
}

/// `load` seen through the averages of its CPU after a tick.
fn update_cpu_load(averages: &mut [u64; NR_AVERAGES], load: u64) {
    for (power, average) in averages.iter_mut().enumerate() {
        let scale = 1 << power;
        let rounding = if load > *average { scale - 1 } else { 0 };
        *average = (*average * (scale - 1) + load + rounding) >> power;
    }
}

impl Fair {
    /// Sum of the weights of what is queued on `cpu` (`weighted_cpuload`): of all tasks under
    /// 2.6.24, of the entities of its own queue under 2.6.32.
    #[inline]
    fn cpu_weight(&self, core: &Core, cpu: CpuId) -> u64 {
        if self.rules.is_later {
            return self.rq(self.root_queue(cpu)).load;
        }
        let part = &self.cpus[cpu.index()];
        let others = core.rq(cpu).nr_running - part.nr_running;
        part.task_weight + u64::from(others) * self.rules.rt_weight
    }

    /// Load of a CPU from which a task would be taken: rather too little.
    fn source_load(&self, core: &Core, cpu: CpuId, index: usize) -> u64 {
        let load = self.cpu_weight(core, cpu);
        match index.checked_sub(1).filter(|_| self.values.features.lb_bias) {
            Some(average) => load.min(self.balance.cpus[cpu.index()].cpu_load[average]),
            None => load,
        }
    }

    /// Load of a CPU to which a task would come: rather too much.
    fn target_load(&self, core: &Core, cpu: CpuId, index: usize) -> u64 {
        let load = self.cpu_weight(core, cpu);
        match index.checked_sub(1).filter(|_| self.values.features.lb_bias) {
            Some(average) => load.max(self.balance.cpus[cpu.index()].cpu_load[average]),
            None => load,
        }
    }

    /// Average weight of a task of `cpu` (`cpu_avg_load_per_task`).
    fn load_per_task(&self, core: &Core, cpu: CpuId) -> u64 {
        let nr_running = u64::from(core.rq(cpu).nr_running);
        let of_none = if self.rules.is_later { 0 } else { NICE_0_LOAD };
        self.cpu_weight(core, cpu).checked_div(nr_running).unwrap_or(of_none)
    }

    /// The tick of busy `cpu`, after those of the idle CPUs before it; the last busy CPU sees to
    /// those behind it.
    pub(super) fn rebalance_ticks(&mut self, core: &mut Core, cpu: CpuId) {
        let (missed, cpus) = self.balance.ticks.due(core, cpu);
        if missed > 0 {
            self.all_were_idle(core.jiffies(), missed);
        }
        for cpu in cpus {
            self.rebalance_tick(core, CpuId(cpu));
        }
    }

    /// Ticks of busy `cpu`, from the one that is due, at which no CPU looks for work.
    pub(super) fn quiet_balance_ticks(&self, core: &Core, cpu: CpuId) -> u64 {
        // An idle CPU looks at nearly every tick, and its ticks are made up for here.
        if !self.balance.ticks.is_next(core) || !core.idle_cpus.is_empty() {
            return 0;
        }
        let states = self.balance.cpus[cpu.index()].domains.iter().enumerate();
        let left = states.map(|(position, state)| {
            let due = state.last_balance + self.balance.interval(cpu, position, Idle::Not);
            due.saturating_sub(core.jiffies())
        });
        left.min().unwrap_or(u64::MAX)
    }

    /// As many such ticks have passed.
    pub(super) fn pass_balance_ticks(&mut self, core: &Core, cpu: CpuId, nr: u64) {
        self.balance.ticks.pass(core);
        let load = self.cpu_weight(core, cpu);
        let averages = &mut self.balance.cpus[cpu.index()].cpu_load;
        for _ in 0..nr {
            if *averages == [load; NR_AVERAGES] {
                break;
            }
            update_cpu_load(averages, load);
        }
    }

    /// All CPUs were idle for `ticks` ticks up to now: loads fell, and each found its domains in
    /// balance.
    fn all_were_idle(&mut self, jiffies: u64, ticks: u64) {
        for cpu in (0..self.nr_cpus).map(CpuId) {
            // 1024 ticks leave nothing of the slowest average, but the last few.
            for _ in 0..ticks.min(1024) {
                update_cpu_load(&mut self.balance.cpus[cpu.index()].cpu_load, 0);
            }
            for position in 0..self.balance.domains.of_cpu(cpu).len() {
                let most = self.balance.level(cpu, position).max_interval;
                let state = self.balance.state(cpu, position);
                state.balance_interval = most;
                state.last_balance = jiffies - 1;
                state.nr_balance_failed = 0;
            }
        }
    }

    fn rebalance_tick(&mut self, core: &mut Core, cpu: CpuId) {
        let load = self.cpu_weight(core, cpu);
        update_cpu_load(&mut self.balance.cpus[cpu.index()].cpu_load, load);
        let is_idle = core.rq(cpu).curr.is_none();
        let mut idle = if is_idle { Idle::AtTick } else { Idle::Not };
        let jiffies = core.jiffies();
        for position in 0..self.balance.domains.of_cpu(cpu).len() {
            let interval = self.balance.interval(cpu, position, idle);
            if jiffies < self.balance.state(cpu, position).last_balance + interval {
                continue;
            }
            let outcome = self.load_balance(core, cpu, position, idle);
            self.balance.state(cpu, position).last_balance = jiffies;
            match outcome {
                moves::Outcome::OtherCpu => break,
                moves::Outcome::Moved | moves::Outcome::Stop => idle = Idle::Not,
                moves::Outcome::Nothing => {}
            }
        }
    }

    /// `cpu` is about to become idle. Says whether it got something.
    pub(super) fn idle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        if self.rules.is_later {
            let state = &mut self.balance.cpus[cpu.index()];
            state.idle_stamp = Some(core.now);
            if state.avg_idle < self.values.migration_cost {
                return false;
            }
        }
        for position in 0..self.balance.domains.of_cpu(cpu).len() {
            if !self.balance.level(cpu, position).newidle {
                continue;
            }
            let outcome = self.load_balance_newidle(core, cpu, position);
            // That a sibling is busy the kernel takes for success too, and looks no further.
            if matches!(outcome, moves::Outcome::Moved | moves::Outcome::Stop) {
                self.balance.cpus[cpu.index()].idle_stamp = None;
                break;
            }
        }
        // A task of a group that counts for nothing here is moved without being counted.
        core.rq(cpu).nr_running > 0
    }
}
