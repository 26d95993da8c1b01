// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of the fair class of 2.6.24 and 2.6.32 for balancing along domains
//! ([`crate::balance::early`]). They define the load of a CPU, the order in which tasks move
//! (`moves`), and the CPU for a waking task (`select`). For 2.6.32 also what a CPU does when it
//! becomes idle.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched.c (`weighted_cpuload`, `idle_balance`,
//! `update_shares`), sched_fair.c.

mod moves;
mod select;

use super::Fair;
use super::rules::Rules;
use super::tunables::Values;
use crate::balance::early::look::{self, Outcome};
use crate::balance::early::moves::{Move, Moved};
use crate::balance::early::{Balancer, Looker, Runqueues, versions};
use crate::boundary::core::Core;
use schedlab_model::{CpuId, Machine, Nanos, TaskId};

/// The state of a CPU in addition to that of all versions (2.6.32).
#[derive(Clone, Debug)]
struct CpuState {
    /// When it became idle, and its average idle time.
    idle_stamp: Option<Nanos>,
    avg_idle: Nanos,
    /// Time of the last distribution of groups' shares over each of its domains.
    last_update: Vec<Option<Nanos>>,
}

/// The state of balancing.
#[derive(Debug)]
pub struct Balance {
    balancer: Balancer,
    cpus: Vec<CpuState>,
}

impl Balance {
    /// The state for a version on `machine`.
    pub fn new(rules: &Rules, machine: &Machine) -> Self {
        let version = if rules.is_later { versions::LINUX_2_6_32 } else { versions::LINUX_2_6_24 };
        let balancer = Balancer::new(version, machine);
        let cpus = (0..machine.nr_cpus()).map(|cpu| CpuState {
            idle_stamp: None,
            // 2 * sched_migration_cost of the kernel at boot.
            avg_idle: 1_000_000,
            last_update: vec![None; balancer.nr_levels(CpuId(cpu))],
        });
        let cpus = cpus.collect();
        Self { balancer, cpus }
    }

    /// Whether a task of `cpu` is about to be pushed away.
    #[inline]
    pub fn is_pushing(&self, cpu: CpuId) -> bool {
        self.balancer.is_pushing(cpu)
    }

    /// Handles a wake-up on `cpu`: if it was idle, its idle time is now known (2.6.32).
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
}

impl Fair {
    /// Number of ticks of busy `cpu`, from the next one on, at which no CPU searches for work.
    pub(super) fn quiet_balance_ticks(&self, core: &Core, cpu: CpuId) -> u64 {
        self.balance.balancer.quiet_ticks(core, cpu)
    }

    /// Passes this many such ticks.
    pub(super) fn pass_balance_ticks(&mut self, core: &Core, cpu: CpuId, nr: u64) {
        let load = self.cpu_weight(core, cpu);
        self.balance.balancer.pass_ticks(core, cpu, nr, load);
    }

    /// Handles `cpu` becoming idle. Returns whether it got a task.
    pub(super) fn idle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        if self.rules.is_later {
            let state = &mut self.balance.cpus[cpu.index()];
            state.idle_stamp = Some(core.now);
            if state.avg_idle < self.values.migration_cost {
                return false;
            }
        }
        if look::idle_balance(self, core, cpu) != Outcome::Nothing {
            self.balance.cpus[cpu.index()].idle_stamp = None;
        }
        // A task of a group without weight here moves, but the result does not count it.
        core.rq(cpu).nr_running > 0
    }

    /// Distributes the shares of groups over a domain of `cpu`, if that was not done recently
    /// (2.6.32).
    fn update_shares(&mut self, core: &Core, cpu: CpuId, position: usize) {
        if !self.rules.is_later || self.nr_groups() == 1 {
            return;
        }
        let limit = self.values.shares_ratelimit;
        let last_update = &mut self.balance.cpus[cpu.index()].last_update[position];
        if last_update.is_some_and(|last| core.now - last < limit) {
            return;
        }
        *last_update = Some(core.now);
        let domains = &self.balance.balancer.domains;
        let span = domains.domain(domains.of_cpu(cpu)[position].domain).span;
        let is_top = position + 1 == domains.of_cpu(cpu).len();
        self.spread_shares(core, &span, is_top);
    }
}

impl Runqueues for Fair {
    fn balancer(&self) -> &Balancer {
        &self.balance.balancer
    }

    fn balancer_mut(&mut self) -> &mut Balancer {
        &mut self.balance.balancer
    }

    /// Sum of the queued weights: of all tasks under 2.6.24, of the entities in its own queue under
    /// 2.6.32.
    #[inline]
    fn cpu_weight(&self, core: &Core, cpu: CpuId) -> u64 {
        if self.rules.is_later {
            return self.rq(self.root_queue(cpu)).load;
        }
        let part = &self.cpus[cpu.index()];
        let others = core.rq(cpu).nr_running - part.nr_running;
        part.task_weight + u64::from(others) * self.rules.rt_weight
    }

    /// Weight of a task of any class.
    fn task_weight(&self, core: &Core, task: TaskId) -> u64 {
        match self.is_fair(core, task) {
            true => self.ent(self.task_entity(task)).load.weight,
            false => self.rules.rt_weight,
        }
    }

    fn is_hot(&self, core: &Core, looker: Looker, task: TaskId) -> bool {
        self.is_cache_hot(core, looker.cpu, task)
    }

    fn sees_averages(&self) -> bool {
        self.values.features.lb_bias
    }

    fn refresh(&mut self, core: &Core, looker: Looker) {
        self.update_shares(core, looker.cpu, looker.position);
    }

    fn move_tasks(&mut self, core: &mut Core, looker: Looker, from: CpuId, most: u64) -> Moved {
        self.move_tasks_of(core, looker, from, most)
    }

    fn movable(&self, _: &Core, from: CpuId) -> Vec<TaskId> {
        self.movable_of(from)
    }

    fn pull_task(&mut self, core: &mut Core, task: TaskId, run: &Move) {
        self.pull(core, task, run);
    }
}
