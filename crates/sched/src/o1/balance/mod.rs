// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spreads tasks over CPUs: when each version searches, and how a task is pulled.
//!
//! 2.6.0 compares all CPUs by number of tasks (`counts`); 2.6.11 and 2.6.22 balance along domains
//! as [`crate::balance::early`] does (`spread`).
//!
//! Source: Linux 2.6.0, kernel/sched.c (`rebalance_tick`, `pull_task`).

mod counts;
mod spread;

use super::OrderOne;
use super::arrays::Side;
use super::rules::{BalanceRule, Rules};
use crate::balance::early::catch_up::TickCatchUp;
use crate::balance::early::select::place;
use crate::balance::early::{Balancer, look, moves, versions};
use crate::boundary::core::Core;
use crate::boundary::flags::WakeFlags;
use counts::Counts;
use schedlab_model::{CpuId, Machine, Nanos, TaskId};

/// The method of a version.
#[derive(Debug)]
enum Method {
    Counts(Counts),
    Domains(Box<Balancer>),
}

/// The state of balancing.
#[derive(Debug)]
pub struct Balance {
    method: Method,
    /// A task switched out more recently than this (ns) is cache-hot.
    cache_hot: Nanos,
    /// Ticks of idle CPUs in 2.6.0.
    ticks: TickCatchUp,
}

impl Balance {
    /// The state for a version on `machine`.
    pub fn new(rules: &Rules, cache_hot: Nanos, machine: &Machine) -> Self {
        let method = match rules.balance {
            BalanceRule::Counts => Method::Counts(Counts::new(machine)),
            BalanceRule::Domains => {
                Method::Domains(Box::new(Balancer::new(versions::LINUX_2_6_11, machine)))
            }
            BalanceRule::Weights => {
                Method::Domains(Box::new(Balancer::new(versions::LINUX_2_6_22, machine)))
            }
        };
        Self { method, cache_hot, ticks: TickCatchUp::default() }
    }
}

impl OrderOne {
    /// Handles the tick of busy `cpu` after those of the idle CPUs before it. The last busy CPU
    /// also executes the ticks of the CPUs after it.
    pub(super) fn rebalance_ticks(&mut self, core: &mut Core, cpu: CpuId) {
        let Method::Counts(counts) = &mut self.balance.method else {
            look::rebalance_ticks(self, core, cpu);
            return;
        };
        let (missed, cpus) = self.balance.ticks.due(core, cpu);
        if missed > 0 {
            counts.forget();
        }
        for cpu in cpus {
            self.rebalance_tick_counts(core, CpuId(cpu));
        }
    }

    /// Number of ticks of busy `cpu`, from the next one on, at which no CPU searches for work.
    pub(super) fn quiet_balance_ticks(&self, core: &Core, cpu: CpuId) -> u64 {
        match &self.balance.method {
            // An idle CPU searches at every tick, and other CPUs' ticks execute its ticks.
            Method::Counts(_) if !self.balance.ticks.is_next(core) => 0,
            Method::Counts(_) if !core.idle_cpus.is_empty() => 0,
            Method::Counts(counts) => counts.quiet_ticks(core.jiffies()),
            Method::Domains(balancer) => balancer.quiet_ticks(core, cpu),
        }
    }

    /// Passes this many such ticks.
    pub(super) fn pass_balance_ticks(&mut self, core: &Core, cpu: CpuId, nr: u64) {
        match &mut self.balance.method {
            Method::Counts(_) => self.balance.ticks.pass(core),
            Method::Domains(balancer) => {
                let load = balancer.load[cpu.index()];
                balancer.pass_ticks(core, cpu, nr, load);
            }
        }
    }

    /// Handles `cpu` having no task left. Returns whether it got one.
    pub(super) fn balance_newly_idle(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        match self.balance.method {
            Method::Counts(_) => self.load_balance_counts(core, cpu, true),
            Method::Domains(_) => {
                core.nr_cpus() > 1
                    && !self.is_pushing(cpu)
                    && look::idle_balance(self, core, cpu) == look::Outcome::Moved
            }
        }
    }

    /// Whether `cpu` is about to give a task away. Until then it picks nothing.
    #[inline]
    pub(super) fn is_pushing(&self, cpu: CpuId) -> bool {
        match &self.balance.method {
            Method::Counts(_) => false,
            Method::Domains(balancer) => balancer.is_pushing(cpu),
        }
    }

    /// Does the work of the migration thread of `cpu`.
    pub(super) fn push_tasks(&mut self, core: &mut Core, cpu: CpuId) {
        if matches!(self.balance.method, Method::Domains(_)) {
            moves::push_running(self, core, cpu);
        }
    }

    /// The CPU for waking or new `task`.
    pub(super) fn select_cpu(
        &self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let Method::Domains(balancer) = &self.balance.method else {
            return core.allowed_cpu(task, prev);
        };
        place(self, core, task, prev, flags, || self.wake_cpu(core, balancer, task, prev, flags))
    }

    /// Moves waiting `task` from one CPU to another (`pull_task`).
    fn pull_task_of(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId, side: Side) {
        let prio = self.tasks[task.index()].prio;
        self.arrays.remove(task);
        core.sub_nr_running(from, 1);
        self.count_load(from, task, false);
        core.set_task_cpu(task, to);
        self.arrays.add(to, side, task, prio);
        core.add_nr_running(to, 1);
        self.count_load(to, task, true);
        let preempts = core.rq(to).curr.is_none_or(|curr| prio < self.tasks[curr.index()].prio);
        if preempts {
            core.resched_curr(to);
        }
    }
}
