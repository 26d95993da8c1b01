// SPDX-License-Identifier: MIT OR Apache-2.0
//! Balancing along scheduling domains (2.6.11, 2.6.22): at ticks, when a CPU runs dry, and when a
//! task wakes.
//!
//! When 2.6.22 looks, and from where it takes how much, is that of [`crate::domains_2_6::revised`].
//!
//! Source: Linux 2.6.11 and 2.6.22, kernel/sched.c (`rebalance_tick`, `load_balance`, `move_tasks`,
//! `can_migrate_task`, `idle_balance`, `try_to_wake_up`, `wake_idle`,
//! `sched_exec`).

use super::super::arrays::Side;
use super::super::rules::{MAX_PRIO, Scale};
use super::super::{Entry, OrderOne};
use super::Method;
use crate::core::Core;
use crate::domains_2_6::group::Busiest;
use crate::domains_2_6::revised::{self, Moved, Runqueues};
use crate::domains_2_6::{Domains, Idle, LOAD_SCALE};
use crate::flags::WakeFlags;
use schedlab_model::{CpuId, TaskId};

/// How a look at a domain went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Balanced,
    Moved,
    Failed,
}

/// Load of a task.
fn task_load(domains: &Domains, entry: &Entry, scale: &Scale) -> u64 {
    match entry.rt_prio {
        _ if !domains.weighs() => LOAD_SCALE,
        Some(prio) => 8 * LOAD_SCALE + u64::from(99 - prio) * LOAD_SCALE / 100,
        None => {
            let slice = u64::from(scale.timeslice(entry.static_prio));
            slice * LOAD_SCALE / u64::from(scale.def_timeslice)
        }
    }
}

impl OrderOne {
    pub(in crate::linux_2_6) fn domains(&mut self) -> Option<&mut Domains> {
        match &mut self.balance.method {
            Method::Domains(domains) => Some(domains),
            Method::Counts(_) => None,
        }
    }

    /// The load of `task` comes to `cpu`, or leaves it.
    pub(in crate::linux_2_6) fn count_load(&mut self, cpu: CpuId, task: TaskId, comes: bool) {
        if let Method::Domains(domains) = &mut self.balance.method {
            let load = task_load(domains, &self.tasks[task.index()], &self.scale);
            let sum = &mut domains.load[cpu.index()];
            *sum = if comes { *sum + load } else { *sum - load };
        }
    }

    /// The tick of `cpu`.
    pub(in crate::linux_2_6) fn rebalance_tick_domains(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(domains) = self.domains() else { return };
        domains.update_load(cpu);
        if domains.weighs() {
            if core.nr_cpus() > 1 {
                revised::rebalance_tick(self, core, cpu);
            }
            return;
        }
        let jiffies = core.jiffies() + domains.offset(cpu);
        let nr_levels = domains.intervals[cpu.index()].len();
        let is_idle = core.rq(cpu).curr.is_none();
        let mut idle = if is_idle { Idle::AtTick } else { Idle::Not };
        for level in 0..nr_levels {
            let Some(domains) = self.domains() else { return };
            let ticks = domains.interval_ticks(cpu, level, idle);
            let last = domains.intervals[cpu.index()][level].last_balance;
            if jiffies.saturating_sub(last) < ticks {
                continue;
            }
            if self.load_balance(core, cpu, level, idle) == Outcome::Moved {
                idle = Idle::Not;
            }
            if let Some(domains) = self.domains() {
                domains.intervals[cpu.index()][level].last_balance += ticks;
            }
        }
    }

    /// `cpu` is about to become idle.
    pub(super) fn idle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        let Some(domains) = self.domains() else { return false };
        if domains.weighs() {
            return core.nr_cpus() > 1 && revised::idle_balance(self, core, cpu);
        }
        let nr_levels = domains.intervals[cpu.index()].len();
        (0..nr_levels).any(|level| {
            let Some((busiest, from)) = self.find_work(core, cpu, level, Idle::Newly) else {
                return false;
            };
            self.move_tasks(core, cpu, level, busiest, from) > 0
        })
    }

    fn find_work(
        &mut self,
        core: &Core,
        cpu: CpuId,
        level: usize,
        idle: Idle,
    ) -> Option<(Busiest, CpuId)> {
        let domains = &*self.domains()?;
        let state = domains.intervals[cpu.index()][level];
        let domain = &domains.domains[state.domain];
        let busiest = domains.find_busiest_group(core, domain, state.own_group, idle)?;
        let from = domains.find_busiest_queue(domain, busiest)?;
        (from != cpu).then_some((busiest, from))
    }

    /// Looks at a domain of `cpu`, and sets when to look again.
    fn load_balance(&mut self, core: &mut Core, cpu: CpuId, level: usize, idle: Idle) -> Outcome {
        let work = self.find_work(core, cpu, level, idle);
        let outcome = match work {
            None => Outcome::Balanced,
            Some((busiest, from)) => {
                let several = core.rq(from).nr_running > 1;
                if several && self.move_tasks(core, cpu, level, busiest, from) > 0 {
                    Outcome::Moved
                } else {
                    Outcome::Failed
                }
            }
        };
        let Some(domains) = self.domains() else { return outcome };
        let state = &mut domains.intervals[cpu.index()][level];
        let most = domains.domains[state.domain].max_interval;
        match outcome {
            Outcome::Balanced => {
                state.nr_failed = 0;
                state.interval = (state.interval * 2).min(most);
            }
            Outcome::Moved => {
                state.nr_failed = 0;
                state.interval = 1;
            }
            Outcome::Failed => {
                state.nr_failed += 1;
                let interval = state.interval + 1;
                if let Some((_, from)) = work {
                    self.ask_to_push(core, cpu, level, from);
                }
                if let Some(domains) = self.domains() {
                    domains.intervals[cpu.index()][level].interval = interval.min(most);
                }
            }
        }
        outcome
    }

    /// Waiting tasks of `from` in the order in which they are looked at.
    fn candidates(&self, from: CpuId) -> Vec<(Side, TaskId)> {
        let of_side = |side| self.arrays.iter_from_tails(from, side).map(move |task| (side, task));
        [Side::Expired, Side::Active].into_iter().flat_map(of_side).collect()
    }

    /// Moves as many waiting tasks to `cpu` as wanted, or as there are; says how many (2.6.11).
    fn move_tasks(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        level: usize,
        wanted: Busiest,
        from: CpuId,
    ) -> usize {
        let candidates = self.candidates(from).into_iter();
        let may_come = |(_, task): &(Side, TaskId)| self.can_migrate(core, *task, cpu, level);
        let coming: Vec<_> = candidates.filter(may_come).take(wanted.imbalance as usize).collect();
        for (side, task) in &coming {
            self.pull_task(core, *task, from, cpu, *side);
        }
        coming.len()
    }

    /// What counts as the best priority of `cpu` (`rq_best_prio`): of what runs, or the static one
    /// of what has expired.
    fn best_prio(&self, core: &Core, cpu: CpuId) -> u8 {
        let runs = core.rq(cpu).curr.map_or(MAX_PRIO as u8, |curr| self.tasks[curr.index()].prio);
        runs.min(self.cpus[cpu.index()].best_expired_prio)
    }

    /// Whether waiting `task` may come to `cpu`.
    pub(super) fn can_migrate(&self, core: &Core, task: TaskId, cpu: CpuId, level: usize) -> bool {
        let Method::Domains(domains) = &self.balance.method else { return false };
        if core.is_running(task) || !core.task(task).cpus_allowed.contains(cpu) {
            return false;
        }
        let state = &domains.intervals[cpu.index()][level];
        let domain = &domains.domains[state.domain];
        let is_hot = core.now - self.tasks[task.index()].last_ran.min(core.now) < domain.cache_hot;
        let takes_hot = !domains.weighs() && domains.core_is_idle(core, cpu);
        !is_hot || state.nr_failed > domain.cache_nice_tries || takes_hot
    }

    /// The CPU for `task`, which a task or an interrupt on another CPU wakes.
    pub(super) fn wake_cpu(
        &self,
        core: &Core,
        domains: &Domains,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let this = flags.this_cpu;
        let allowed = &core.task(task).cpus_allowed;
        let here = this != prev
            && allowed.contains(this)
            && self.pulls_waking(core, domains, task, prev, flags);
        let cpu = if here { this } else { prev };
        // With several threads a core, one that is idle.
        let Some(threads) = domains.core_of(cpu).filter(|_| !core.idle_cpu(cpu)) else {
            return cpu;
        };
        let others = threads.groups.iter().flat_map(|group| &group.cpus).copied();
        let mut idle = others.filter(|other| allowed.contains(*other) && core.idle_cpu(*other));
        idle.next().unwrap_or(cpu)
    }

    /// Whether the CPU that wakes `task` should have it rather than the task's own.
    fn pulls_waking(
        &self,
        core: &Core,
        domains: &Domains,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> bool {
        let (this, is_sync) = (flags.this_cpu, self.honours_sync && flags.sync);
        if domains.weighs() {
            let load = |task: TaskId| task_load(domains, &self.tasks[task.index()], &self.scale);
            let leaves = core.rq(this).curr.filter(|_| is_sync).map_or(0, load);
            return domains.wakes_here(core, this, prev, load(task), leaves);
        }
        let (load, this_load) = (domains.source_load(prev, 1), domains.target_load(this, 1));
        let this_load = this_load.saturating_sub(if is_sync { LOAD_SCALE } else { 0 });
        if load < LOAD_SCALE / 2 && this_load > LOAD_SCALE / 2 {
            return false;
        }
        let last_ran = self.tasks[task.index()].last_ran;
        domains.intervals[this.index()].iter().any(|state| {
            let domain = &domains.domains[state.domain];
            let spans = domain.groups.iter().any(|group| group.cpus.contains(&prev));
            let is_cold = core.now.saturating_sub(last_ran) >= domain.cache_hot;
            let pct = domain.imbalance_pct + (domain.imbalance_pct - 100) / 2;
            spans && (is_cold || pct * this_load <= 100 * load)
        })
    }

    /// The CPU for a program that the launcher starts: fork on `prev`, then exec, which may go to
    /// the CPU with least load.
    pub(super) fn exec_cpu(
        &self,
        core: &Core,
        domains: &Domains,
        task: TaskId,
        prev: CpuId,
    ) -> CpuId {
        if core.rq(prev).nr_running == 0 {
            return prev;
        }
        let load = |cpu: &CpuId| domains.target_load(*cpu, 1);
        let allowed = core.task(task).cpus_allowed.iter();
        let Some(least) = allowed.min_by_key(load) else { return prev };
        let is_less = load(&least) * 112 < (domains.source_load(prev, 1) + LOAD_SCALE) * 100;
        if is_less { least } else { prev }
    }
}

impl Runqueues for OrderOne {
    fn domains(&mut self) -> &mut Domains {
        OrderOne::domains(self).expect("only versions with domains balance along them")
    }

    fn move_tasks(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        level: usize,
        from: CpuId,
        most: u64,
    ) -> Moved {
        let (mut left, mut nr_moved, mut all_pinned) = (most, 0, true);
        let most_tasks = core.rq(from).nr_running - 1;
        let (mut here, there) = (self.best_prio(core, cpu), self.best_prio(core, from));
        let runs = core.rq(from).curr.map(|curr| self.tasks[curr.index()].prio);
        let mut best_seen = runs == Some(there);
        if most == 0 || most_tasks == 0 {
            return Moved { any: false, all_pinned: false };
        }
        for (side, task) in self.candidates(from) {
            let entry = self.tasks[task.index()];
            let Method::Domains(domains) = &self.balance.method else { break };
            let load = task_load(domains, &entry, &self.scale);
            // One that is too heavy comes only if it is better than all that is here, and not the
            // only one of the best that are there.
            let is_only_best = !best_seen && entry.prio == there;
            let is_skipped = load > left && (entry.prio >= here || is_only_best);
            all_pinned &= is_skipped || !core.task(task).cpus_allowed.contains(cpu);
            if is_skipped || !self.can_migrate(core, task, cpu, level) {
                best_seen |= entry.prio == there;
                continue;
            }
            self.pull_task(core, task, from, cpu, side);
            nr_moved += 1;
            left = left.saturating_sub(load);
            if nr_moved >= most_tasks || left == 0 {
                break;
            }
            here = here.min(entry.prio);
        }
        Moved { any: nr_moved > 0, all_pinned }
    }

    fn push_running(&mut self, core: &mut Core, from: CpuId, cpu: CpuId) -> bool {
        let push_to = &mut self.balance.push_to[from.index()];
        let is_new = push_to.is_none();
        if is_new {
            *push_to = Some(cpu);
            core.queue_balance_callback(from);
            core.resched_curr(from);
        }
        is_new
    }
}
