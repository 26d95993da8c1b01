// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spreading tasks over CPUs: when each version looks, and how a task is pulled.
//!
//! Every CPU balances at its own tick, an idle one too. The engine ticks only while some CPU is
//! busy, and busy CPUs only; so the ticks of idle CPUs are made up for here, in the order of the
//! CPUs. While all are idle nothing could be pulled; what is remembered of their load is brought up
//! to date at the next tick.
//!
//! Source: Linux 2.6.0, kernel/sched.c (`rebalance_tick`, `pull_task`).

mod active;
mod counts;
mod spread;

use super::OrderOne;
use super::arrays::Side;
use super::rules::{BalanceRule, Rules};
use crate::core::Core;
use crate::domains_2_6::{Domains, Style, TickCatchUp};
use crate::flags::WakeFlags;
use counts::Counts;
use schedlab_model::{CpuId, Machine, Nanos, TaskId};

/// How a version spreads tasks.
#[derive(Debug)]
enum Method {
    Counts(Counts),
    Domains(Domains),
}

/// What balancing remembers.
#[derive(Debug)]
pub struct Balance {
    method: Method,
    /// A task that was switched less long ago is cache-hot, ns.
    cache_hot: Nanos,
    ticks: TickCatchUp,
    /// By CPU: it is to give what it runs to this one.
    push_to: Vec<Option<CpuId>>,
}

impl Balance {
    /// For a version on `machine`.
    pub fn new(rules: &Rules, cache_hot: Nanos, machine: &Machine) -> Self {
        let method = match rules.balance {
            BalanceRule::Counts => Method::Counts(Counts::new(machine)),
            BalanceRule::Domains => Method::Domains(Domains::new(Style::Tasks, cache_hot, machine)),
            BalanceRule::Weights => {
                Method::Domains(Domains::new(Style::Weights, cache_hot, machine))
            }
        };
        let push_to = vec![None; machine.nr_cpus() as usize];
        Self { method, cache_hot, ticks: TickCatchUp::default(), push_to }
    }
}

impl OrderOne {
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

    fn rebalance_tick(&mut self, core: &mut Core, cpu: CpuId) {
        match self.balance.method {
            Method::Counts(_) => self.rebalance_tick_counts(core, cpu),
            Method::Domains(_) => self.rebalance_tick_domains(core, cpu),
        }
    }

    /// Ticks of busy `cpu`, from the one that is due, at which no CPU looks for work.
    pub(super) fn quiet_balance_ticks(&self, core: &Core, cpu: CpuId) -> u64 {
        // An idle CPU looks at nearly every tick, and its ticks are made up for here.
        if !self.balance.ticks.is_next(core) || !core.idle_cpus.is_empty() {
            return 0;
        }
        match &self.balance.method {
            Method::Counts(counts) => counts.quiet_ticks(core.jiffies()),
            Method::Domains(domains) => domains.quiet_ticks(core.jiffies(), cpu),
        }
    }

    /// As many such ticks have passed.
    pub(super) fn pass_balance_ticks(&mut self, core: &Core, cpu: CpuId, nr: u64) {
        self.balance.ticks.pass(core);
        if let Method::Domains(domains) = &mut self.balance.method {
            domains.pass_ticks(cpu, nr);
        }
    }

    /// All CPUs were idle for `ticks` ticks up to now.
    fn all_were_idle(&mut self, jiffies: u64, ticks: u64) {
        match &mut self.balance.method {
            Method::Counts(counts) => counts.forget(),
            Method::Domains(domains) => domains.all_were_idle(jiffies, ticks),
        }
    }

    /// `cpu` has nothing left to run. Says whether it got something.
    pub(super) fn balance_newly_idle(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        if self.is_pushing(cpu) {
            return false;
        }
        match self.balance.method {
            Method::Counts(_) => self.load_balance_counts(core, cpu, true),
            Method::Domains(_) => self.idle_balance(core, cpu),
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
        let allowed = &core.task(task).cpus_allowed;
        if !allowed.contains(prev) {
            return allowed.first_cpu().expect("affinity was checked to be within the machine");
        }
        match &self.balance.method {
            Method::Counts(_) => prev,
            Method::Domains(domains) if !flags.is_fork() => {
                self.wake_cpu(core, domains, task, prev, flags)
            }
            Method::Domains(domains) if flags.waker.is_none() => {
                self.exec_cpu(core, domains, task, prev)
            }
            Method::Domains(_) => prev,
        }
    }

    /// Moves waiting `task` from one CPU to another (`pull_task`).
    fn pull_task(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId, side: Side) {
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
