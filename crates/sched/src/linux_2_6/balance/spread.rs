// SPDX-License-Identifier: MIT OR Apache-2.0
//! Balancing along scheduling domains (2.6.11, 2.6.22): at ticks, when a CPU runs dry, and when a
//! task wakes.
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
        let from = domains.find_busiest_queue(core, domain, busiest, idle)?;
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
        let weighs = domains.weighs();
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
                let interval = state.interval;
                let pushes = work.is_some_and(|(_, from)| self.ask_to_push(core, cpu, level, from));
                let interval = match (weighs, pushes) {
                    (true, false) => 1,
                    (true, true) => interval * 2,
                    (false, _) => interval + 1,
                };
                if let Some(domains) = self.domains() {
                    domains.intervals[cpu.index()][level].interval = interval.min(most);
                }
            }
        }
        outcome
    }

    /// Moves waiting tasks to `cpu`, as many or as much as wanted; says how many.
    fn move_tasks(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        level: usize,
        wanted: Busiest,
        from: CpuId,
    ) -> usize {
        let candidates: Vec<(Side, TaskId)> = [Side::Expired, Side::Active]
            .into_iter()
            .flat_map(|side| self.arrays.iter_from_tails(from, side).map(move |task| (side, task)))
            .filter(|(_, task)| self.can_migrate(core, *task, cpu, level))
            .collect();
        let weighs = self.domains().is_some_and(|domains| domains.weighs());
        let (mut left, mut moved) = (wanted.imbalance, 0);
        for (side, task) in candidates {
            if left == 0 {
                break;
            }
            let entry = self.tasks[task.index()];
            let load = match &self.balance.method {
                Method::Domains(domains) if weighs => task_load(domains, &entry, &self.scale),
                _ => 1,
            };
            // One that is too heavy comes only if it is better than all that is here.
            if load > left && entry.prio >= self.best_prio(core, cpu) {
                continue;
            }
            self.pull_task(core, task, from, cpu, side);
            left = left.saturating_sub(load);
            moved += 1;
        }
        moved
    }

    /// The best priority of what `cpu` runs and has in its active array.
    fn best_prio(&self, core: &Core, cpu: CpuId) -> u8 {
        let first = self.arrays.first(cpu);
        let prios = [core.rq(cpu).curr, first].into_iter().flatten();
        prios.map(|task| self.tasks[task.index()].prio).min().unwrap_or(MAX_PRIO as u8)
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
        !is_hot || state.nr_failed > domain.cache_nice_tries || domains.core_is_idle(core, cpu)
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
        let (load, this_load) = (domains.source_load(prev, 1), domains.target_load(this, 1));
        if domains.weighs() {
            let entry = |task: TaskId| &self.tasks[task.index()];
            let curr = core.rq(this).curr.filter(|_| is_sync);
            let leaves = curr.map_or(0, |curr| task_load(domains, entry(curr), &self.scale));
            let this_load = this_load.saturating_sub(leaves);
            let nr_running = u64::from(core.rq(this).nr_running);
            let per_task = domains.load[this.index()].checked_div(nr_running);
            let per_task = per_task.unwrap_or(LOAD_SCALE);
            let comes = task_load(domains, entry(task), &self.scale);
            let fits = this_load <= load && this_load + domains.target_load(prev, 1) <= per_task;
            return fits || 100 * (this_load + comes) <= 112 * load;
        }
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
