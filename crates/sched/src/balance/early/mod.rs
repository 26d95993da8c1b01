// SPDX-License-Identifier: MIT OR Apache-2.0
//! How Linux 2.6.11 to 2.6.32 balance load along scheduling domains: at ticks, when a CPU becomes
//! idle, when a task wakes and when a program starts.
//!
//! A CPU searches one of its domains when the domain's interval has ended. It compares the groups
//! of the domain by their loads, each as an average that moves at ticks, so that a short peak has
//! no effect. It takes waiting tasks from the busiest CPU of the busiest group, as many as bring
//! loads nearer to the average. After failed attempts the running task is pushed away.
//!
//! The kernels had one such function that changed a little with each version, and so does this
//! module. [`versions`] has the differences between versions, [`levels`] the constants of the
//! domains. [`busiest`] finds where to take tasks from, [`amount`] how much, [`moves`] which tasks;
//! [`look`] decides when, and what follows; [`select`] chooses the CPU for a waking or new task;
//! [`catch_up`] executes the ticks of idle CPUs.
//!
//! Other rules are elsewhere: 2.6.0 compares numbers of tasks of all CPUs with what it saw last
//! time (`o1/balance/counts.rs`). Which tasks a CPU gives away in which order, and the wake-ups of
//! 2.6.11 and 2.6.32, are with their schedulers. RSDL and SD, patches of 2.6.20 to 2.6.22, balance
//! like 2.6.22. Later kernels use measured load: [`crate::balance`].
//!
//! Source: Linux 2.6.11, 2.6.22, 2.6.23.17, 2.6.24 and 2.6.32.67, kernel/sched.c. Left out:
//! `rq->next_balance`, which delays a search beyond the domain's own interval if it was last
//! computed for another state of the CPU; the nomination of a CPU that balances for idle ones
//! (NO_HZ): idle CPUs search at their own ticks; power savings; the serialisation of NUMA
//! balancing.

pub mod amount;
pub mod busiest;
pub mod catch_up;
pub mod levels;
pub mod look;
pub mod moves;
pub mod select;
pub mod versions;

use crate::boundary::core::Core;
use crate::boundary::domains::{Domain, Domains};
use crate::boundary::options::{Tunable, TunableKind};
use catch_up::TickCatchUp;
use levels::Level;
use moves::{Move, Moved};
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC};
use schedlab_model::{CpuId, Machine, TaskId};
use versions::Version;

/// Averages of a CPU's load (CPU_LOAD_IDX_MAX).
const NR_AVERAGES: usize = 5;

/// When a task is cache-hot, up to 2.6.22.
pub const CACHE_HOT: Tunable = Tunable::new(
    "cache_hot",
    TunableKind::Time { min: 0, max: NSEC_PER_SEC },
    5 * NSEC_PER_MSEC / 2,
    "a task that ran less long ago is pulled only by an idle CPU or after failed attempts \
           (cache_hot_time; 2.6.22 measures it at boot)",
);

/// A load that no CPU has.
const NO_LOAD: u64 = u64::MAX;

/// Why a CPU balances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// It runs a task.
    Not,
    /// It is idle, and this is its tick.
    AtTick,
    /// It is about to become idle.
    Newly,
}

/// The searching CPU, and the domain.
#[derive(Clone, Copy, Debug)]
pub struct Looker {
    /// The CPU.
    pub cpu: CpuId,
    /// Index of the domain among its domains; 0 is the smallest.
    pub position: usize,
    /// Why it balances.
    pub idle: Idle,
}

/// The view of the runqueues that balancing needs.
pub trait Runqueues {
    /// The state of balancing.
    fn balancer(&self) -> &Balancer;

    /// The state of balancing, mutable.
    fn balancer_mut(&mut self) -> &mut Balancer;

    /// Present load of `cpu` (`weighted_cpuload`).
    fn cpu_weight(&self, core: &Core, cpu: CpuId) -> u64 {
        let _ = core;
        self.balancer().load[cpu.index()]
    }

    /// Average load of a task of `cpu` (`cpu_avg_load_per_task`).
    fn load_per_task(&self, core: &Core, cpu: CpuId) -> u64 {
        let nr_running = u64::from(core.rq(cpu).nr_running);
        let version = &self.balancer().version;
        let of_none = if version.counts_capacity { 0 } else { version.scale };
        self.cpu_weight(core, cpu).checked_div(nr_running).unwrap_or(of_none)
    }

    /// Load of `task`.
    fn task_weight(&self, core: &Core, task: TaskId) -> u64;

    /// Its priority for balancing; a lower value is better.
    fn prio(&self, core: &Core, task: TaskId) -> i32 {
        core.task(task).prio
    }

    /// Whether the cache of its CPU probably holds the data of `task`, which `looker` would take.
    fn is_hot(&self, core: &Core, looker: Looker, task: TaskId) -> bool;

    /// Whether searches use the averages of loads (LB_BIAS).
    fn sees_averages(&self) -> bool {
        true
    }

    /// The load of `cpu` that its averages move towards at a tick.
    fn load_at_tick(&mut self, core: &Core, cpu: CpuId) -> u64 {
        self.cpu_weight(core, cpu)
    }

    /// Updates state before a search of a domain, and after one that moved a task
    /// (`update_shares`).
    fn refresh(&mut self, core: &Core, looker: Looker) {
        let _ = (core, looker);
    }

    /// Moves waiting tasks from `from` to the looker, up to `most` tasks or weight (`move_tasks`).
    fn move_tasks(&mut self, core: &mut Core, looker: Looker, from: CpuId, most: u64) -> Moved;

    /// The tasks that a CPU may give away, in order.
    fn movable(&self, core: &Core, from: CpuId) -> Vec<TaskId>;

    /// Moves waiting `task` from one CPU to the looker (`pull_task`).
    fn pull_task(&mut self, core: &mut Core, task: TaskId, run: &Move);
}

/// State of a domain for one CPU.
#[derive(Clone, Copy, Debug)]
pub struct DomainState {
    /// Time of the last search, in jiffies.
    pub last_balance: u64,
    /// Time to the next search (ms) while idle.
    pub interval: u64,
    /// Number of failed attempts since the last successful one.
    pub nr_failed: u32,
}

/// State of a CPU.
#[derive(Clone, Debug)]
struct CpuState {
    averages: [u64; NR_AVERAGES],
    /// The load at which a tick changes none of the averages; [`NO_LOAD`]: unknown.
    settled_at: u64,
    domains: Vec<DomainState>,
    /// The first tick at which it searches a domain while it is busy; `None`: a domain's state has
    /// changed since this was known.
    busy_look: Option<u64>,
    /// The CPU to which a task of this one is to be pushed.
    push_cpu: Option<CpuId>,
}

/// The state of balancing.
#[derive(Debug)]
pub struct Balancer {
    /// The rules of the version.
    pub version: Version,
    /// Domains of the machine.
    pub domains: Domains,
    /// Power of each CPU.
    pub cpu_power: Vec<u64>,
    /// Sum of the loads of the queued tasks, by CPU, if the scheduler counts them here.
    pub load: Vec<u64>,
    /// Constants, by domain.
    levels: Vec<Level>,
    /// Power of the groups of each domain.
    powers: Vec<Vec<u64>>,
    cpus: Vec<CpuState>,
    nr_pushing: u32,
    ticks: TickCatchUp,
    hz: u64,
}

impl Balancer {
    /// A balancer for a version on `machine`.
    pub fn new(version: Version, machine: &Machine) -> Self {
        let nr_cpus = machine.nr_cpus();
        let domains = levels::domains(&version, machine);
        let levels = levels::of(&version, &domains);
        let cpu_power = levels::cpu_power(&version, &domains, nr_cpus);
        let powers = levels::powers(&version, &domains, &cpu_power);
        let cpus = (0..nr_cpus).map(CpuId).map(|cpu| {
            let states = domains.of_cpu(cpu).iter().map(|entry| DomainState {
                last_balance: 0,
                interval: levels[entry.domain as usize].first_interval,
                nr_failed: 0,
            });
            CpuState {
                averages: [0; NR_AVERAGES],
                settled_at: NO_LOAD,
                domains: states.collect(),
                busy_look: None,
                push_cpu: None,
            }
        });
        let cpus = cpus.collect();
        let hz = u64::from(machine.hz);
        Self {
            version,
            domains,
            cpu_power,
            load: vec![0; nr_cpus as usize],
            levels,
            powers,
            cpus,
            nr_pushing: 0,
            ticks: TickCatchUp::default(),
            hz,
        }
    }

    fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Number of domains of `cpu`.
    pub fn nr_levels(&self, cpu: CpuId) -> usize {
        self.domains.of_cpu(cpu).len()
    }

    /// Constants of a domain of `cpu`.
    pub fn level(&self, cpu: CpuId, position: usize) -> &Level {
        &self.levels[self.domains.of_cpu(cpu)[position].domain as usize]
    }

    /// Power of the groups of a domain of `cpu`.
    fn group_power(&self, cpu: CpuId, position: usize) -> &[u64] {
        &self.powers[self.domains.of_cpu(cpu)[position].domain as usize]
    }

    /// The searched domain, and the looker's group.
    fn domain_of(&self, looker: Looker) -> (&Domain, usize) {
        let entry = self.domains.of_cpu(looker.cpu)[looker.position];
        (self.domains.domain(entry.domain), entry.local_group as usize)
    }

    /// State of a domain for `cpu`.
    pub fn state(&self, cpu: CpuId, position: usize) -> &DomainState {
        &self.cpus[cpu.index()].domains[position]
    }

    fn state_mut(&mut self, cpu: CpuId, position: usize) -> &mut DomainState {
        let cpu = &mut self.cpus[cpu.index()];
        cpu.busy_look = None;
        &mut cpu.domains[position]
    }

    /// The smallest domain of `cpu` that includes `other`.
    pub fn position_with(&self, cpu: CpuId, other: CpuId) -> Option<usize> {
        self.domains.iter(cpu).position(|domain| domain.span.contains(other))
    }

    /// Whether `cpu` and the other threads of its core are idle.
    pub fn core_is_idle(&self, core: &Core, cpu: CpuId) -> bool {
        self.domains.smt_mask(cpu).iter().all(|cpu| core.rq(cpu).curr.is_none())
    }

    /// Whether a task of `cpu` is about to be pushed away. Until then the CPU picks nothing.
    #[inline]
    pub fn is_pushing(&self, cpu: CpuId) -> bool {
        self.nr_pushing > 0 && self.cpus[cpu.index()].push_cpu.is_some()
    }

    /// The average of a CPU's load that moves by 1 / 2^`power` of the difference at each tick
    /// (`cpu_load[]`).
    pub fn average(&self, cpu: CpuId, power: usize) -> u64 {
        self.cpus[cpu.index()].averages[power]
    }

    /// Handles the tick of `cpu`: its averages move towards `load`. Returns whether any changed
    /// (`update_cpu_load`).
    pub fn move_averages(&mut self, cpu: CpuId, load: u64) -> bool {
        let cpu = &mut self.cpus[cpu.index()];
        // With a constant load for a long time, as on most CPUs, they do not change.
        if cpu.settled_at == load {
            return false;
        }
        let before = cpu.averages;
        for (power, average) in cpu.averages.iter_mut().enumerate() {
            let scale = 1 << power;
            let rises = load > *average && self.version.rounds_up;
            let rounding = if rises { scale - 1 } else { 0 };
            *average = (*average * (scale - 1) + load + rounding) >> power;
        }
        let moved = cpu.averages != before;
        cpu.settled_at = if moved { NO_LOAD } else { load };
        moved
    }

    /// Handles this many ticks while all CPUs were idle: loads fell, and each CPU found its domains
    /// in balance.
    pub fn all_were_idle(&mut self, jiffies: u64, ticks: u64) {
        for cpu in (0..self.nr_cpus() as u32).map(CpuId) {
            // After some hundred ticks the slowest average is 0, except for the last few.
            for _ in 0..ticks {
                if !self.move_averages(cpu, 0) {
                    break;
                }
            }
            let offset = self.offset(cpu);
            for position in 0..self.nr_levels(cpu) {
                let interval = self.level(cpu, position).max_interval;
                let last_balance = jiffies - 1 + offset;
                let keeps = self.version.counts_tasks;
                let state = self.state_mut(cpu, position);
                let nr_failed = if keeps { state.nr_failed } else { 0 };
                *state = DomainState { last_balance, interval, nr_failed };
            }
        }
    }

    /// Offset of the CPU's searches, which are at different ticks in 2.6.11 (CPU_OFFSET).
    fn offset(&self, cpu: CpuId) -> u64 {
        match self.version.counts_tasks {
            true => self.hz * u64::from(cpu.0) / self.nr_cpus() as u64,
            false => 0,
        }
    }

    /// Ticks between two searches of a domain by `cpu`.
    fn interval_ticks(&self, cpu: CpuId, position: usize, idle: Idle) -> u64 {
        let level = self.level(cpu, position);
        let factor = if idle == Idle::Not { level.busy_factor } else { 1 };
        let ticks = (self.state(cpu, position).interval * factor * self.hz).div_ceil(1000);
        match self.version.limits_interval {
            true => ticks.min(self.hz * self.nr_cpus() as u64 / 10).max(1),
            false => ticks.max(1),
        }
    }

    /// Number of ticks, from the next one on, at which neither busy `cpu` nor an idle CPU searches
    /// for work.
    pub fn quiet_ticks(&self, core: &Core, cpu: CpuId) -> u64 {
        // An idle CPU searches at nearly every tick, and other CPUs' ticks execute its ticks.
        if !self.ticks.is_next(core) || !core.idle_cpus.is_empty() {
            return 0;
        }
        let known = self.cpus[cpu.index()].busy_look;
        let look = known.unwrap_or_else(|| self.first_busy_look(cpu));
        look.saturating_sub(core.jiffies() + self.offset(cpu))
    }

    /// The first tick, by its own count, at which `cpu` searches a domain if it stays busy.
    fn first_busy_look(&self, cpu: CpuId) -> u64 {
        let looks = (0..self.nr_levels(cpu)).map(|position| {
            let last = self.state(cpu, position).last_balance;
            last + self.interval_ticks(cpu, position, Idle::Not)
        });
        looks.min().unwrap_or(u64::MAX)
    }

    /// Whether busy `cpu` certainly searches no domain at tick `jiffies`.
    fn looks_later(&self, cpu: CpuId, jiffies: u64) -> bool {
        self.cpus[cpu.index()].busy_look.is_some_and(|look| jiffies < look)
    }

    /// Records that the CPU has searched its domains as far as this tick requires.
    fn note_looked(&mut self, cpu: CpuId) {
        if self.cpus[cpu.index()].busy_look.is_none() {
            self.cpus[cpu.index()].busy_look = Some(self.first_busy_look(cpu));
        }
    }

    /// Passes this many such ticks at a load of `load`.
    pub fn pass_ticks(&mut self, core: &Core, cpu: CpuId, nr: u64, load: u64) {
        self.ticks.pass(core);
        for _ in 0..nr {
            if !self.move_averages(cpu, load) {
                break;
            }
        }
    }
}

/// The load average with this `index` for a present load `now`; index 0 is the load itself.
fn past<R: Runqueues>(rqs: &R, cpu: CpuId, index: usize) -> Option<u64> {
    let power = index.checked_sub(1).filter(|_| rqs.sees_averages());
    power.map(|power| rqs.balancer().average(cpu, power))
}

/// Load of a CPU as a source of tasks: the lesser of present and past load.
pub fn source_load<R: Runqueues>(rqs: &R, core: &Core, cpu: CpuId, index: usize) -> u64 {
    let now = rqs.cpu_weight(core, cpu);
    past(rqs, cpu, index).map_or(now, |past| past.min(now))
}

/// Load of a CPU as a target for a task: the greater of present and past load.
pub fn target_load<R: Runqueues>(rqs: &R, core: &Core, cpu: CpuId, index: usize) -> u64 {
    let now = rqs.cpu_weight(core, cpu);
    past(rqs, cpu, index).map_or(now, |past| past.max(now))
}
