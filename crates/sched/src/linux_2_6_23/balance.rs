// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spreading tasks over CPUs: which are moved, and the load of a CPU.
//!
//! Whom to take from and when is that of [`crate::domains_2_6::revised`]. What is moved: real-time
//! tasks from the tails of their lists, the best list first, then fair tasks from the left of the
//! tree, that is, those that would run next; no task is cache-hot. The running one is pushed away
//! after failed attempts: the CPU that runs it goes through an idle moment, for the migration
//! thread.
//!
//! Source: Linux 2.6.23.17, kernel/sched.c (`move_tasks`, `balance_tasks`, `can_migrate_task`,
//! `pull_task`, `active_load_balance`, `update_cpu_load`, `update_curr_load`).

use super::FairClock;
use super::entity::Class;
use super::rules::PRECISE_CPU_LOAD;
use crate::core::Core;
use crate::domains_2_6::revised::{self, FUZZ, Moved, Runqueues};
use crate::domains_2_6::{Domains, LOAD_SCALE_REVISED, TickCatchUp};
use crate::flags::WakeFlags;
use crate::wmult::{LoadWeight, calc_delta_fair};
use schedlab_model::{CpuId, Nanos, TaskId};

/// Priority of the idle task (MAX_PRIO).
const MAX_PRIO: i32 = 140;

/// The load of a CPU since its last tick, as the kernel sums it up where PRECISE_CPU_LOAD is on
/// (`struct load_stat`).
#[derive(Clone, Copy, Default, Debug)]
struct LoadStat {
    /// When the sums were brought up to date, and when they were used last.
    update_start: Nanos,
    update_last: Nanos,
    /// Time that passed by the fair clock of all tasks, and by the clock of a CPU that is not idle.
    delta_fair: u64,
    delta_exec: u64,
    /// Time that is too short to be summed up yet.
    delta_stat: u64,
}

/// What balancing remembers.
#[derive(Debug)]
pub struct Balance {
    ticks: TickCatchUp,
    stats: Vec<LoadStat>,
    /// The CPU to which what runs is to be pushed, by CPU (`push_cpu`).
    push: Vec<Option<CpuId>>,
    nr_pushing: u32,
}

impl Balance {
    pub fn new(nr_cpus: u32) -> Self {
        Self {
            ticks: TickCatchUp::default(),
            stats: vec![LoadStat::default(); nr_cpus as usize],
            push: vec![None; nr_cpus as usize],
            nr_pushing: 0,
        }
    }

    /// Whether what `cpu` ran is being pushed away.
    #[inline]
    pub fn is_pushing(&self, cpu: CpuId) -> bool {
        self.nr_pushing > 0 && self.push[cpu.index()].is_some()
    }
}

impl FairClock {
    /// Weight of a task in the load of its CPU.
    fn weight(&self, task: TaskId) -> u64 {
        u64::from(self.fair.entity(task).weight)
    }

    /// The weight of `task` comes to the load of `cpu`, or leaves it.
    #[inline]
    pub(super) fn count_load(&mut self, core: &Core, cpu: CpuId, task: TaskId, comes: bool) {
        if self.fair.values.has(PRECISE_CPU_LOAD) {
            self.update_curr_load(core, cpu);
        }
        let weight = self.weight(task);
        let sum = &mut self.domains.load[cpu.index()];
        *sum = if comes { *sum + weight } else { *sum - weight };
    }

    /// Sums up the time since the last change of load.
    fn update_curr_load(&mut self, core: &Core, cpu: CpuId) {
        let weight = self.domains.load[cpu.index()];
        let stat = &mut self.balance.stats[cpu.index()];
        stat.delta_stat += core.now - stat.update_start;
        stat.update_start = core.now;
        let is_enough = stat.delta_stat >= self.fair.values.stat_granularity;
        if is_enough && core.rq(cpu).curr.is_some() && weight > 0 {
            stat.delta_exec += stat.delta_stat;
            stat.delta_fair += calc_delta_fair(stat.delta_stat, LoadWeight::of_load(weight));
            stat.delta_stat = 0;
        }
    }

    /// The load of `cpu` over the time since its last tick: its weight while it was not idle, times
    /// the part of the time that it was not.
    fn precise_load(&mut self, core: &Core, cpu: CpuId) -> u64 {
        self.update_curr_load(core, cpu);
        let stat = &mut self.balance.stats[cpu.index()];
        let fair = std::mem::take(&mut stat.delta_fair) + 1;
        let exec = std::mem::take(&mut stat.delta_exec) + 1;
        let interval = (core.now - stat.update_last).max(core.tick_nsec);
        stat.update_last = core.now;
        let exec = exec.min(interval);
        LOAD_SCALE_REVISED * exec / fair * exec / interval
    }

    /// The tick of busy `cpu`, after those of the idle CPUs before it.
    pub(super) fn rebalance_ticks(&mut self, core: &mut Core, cpu: CpuId) {
        let (missed, cpus) = self.balance.ticks.due(core, cpu);
        if missed > 0 {
            self.domains.all_were_idle(core.jiffies(), missed);
        }
        for cpu in cpus.map(CpuId) {
            if self.fair.values.has(PRECISE_CPU_LOAD) {
                let load = self.precise_load(core, cpu);
                self.domains.move_averages(cpu, load);
            } else {
                self.domains.update_load(cpu);
            }
            if core.nr_cpus() > 1 {
                revised::rebalance_tick(self, core, cpu);
            }
        }
    }

    /// Ticks of busy `cpu`, from the one that is due, at which no CPU looks for work.
    pub(super) fn quiet_balance_ticks(&self, core: &Core, cpu: CpuId) -> u64 {
        let precise = self.fair.values.has(PRECISE_CPU_LOAD);
        if precise || !self.balance.ticks.is_next(core) || !core.idle_cpus.is_empty() {
            return 0;
        }
        match core.nr_cpus() {
            1 => u64::MAX,
            _ => self.domains.quiet_ticks(core.jiffies(), cpu),
        }
    }

    /// As many such ticks have passed.
    pub(super) fn pass_balance_ticks(&mut self, core: &Core, cpu: CpuId, nr: u64) {
        self.balance.ticks.pass(core);
        self.domains.pass_ticks(cpu, nr);
    }

    /// `cpu` has nothing left to run. Says whether it got something.
    pub(super) fn balance_newly_idle(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        core.nr_cpus() > 1
            && !self.balance.is_pushing(cpu)
            && revised::idle_balance(self, core, cpu)
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
        match flags.waker {
            // The launcher forks and the new program calls exec; a fork alone stays.
            None if flags.is_fork() => self.domains.exec_cpu(core, task, prev),
            Some(_) if flags.is_fork() => prev,
            waker => {
                let is_sync = flags.sync && self.fair.values.sync_wakeups;
                let leaves = waker.filter(|_| is_sync).map_or(0, |waker| self.weight(waker));
                let loads = (self.weight(task), leaves);
                self.domains.wake_cpu(core, task, prev, flags, loads)
            }
        }
    }

    /// Moves waiting `task` from one CPU to another.
    fn pull_task(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId) {
        core.sub_nr_running(from, 1);
        self.deactivate(core, from, task, false);
        self.fair.migrate(task, from, to);
        core.set_task_cpu(task, to);
        core.add_nr_running(to, 1);
        self.activate(core, to, task, false);
        match core.rq(to).curr {
            // Also what has just left its CPU for good: that CPU chooses anew anyway.
            Some(curr) if self.fair.entity(curr).on_rq => {
                self.check_preempt_curr(core, to, task, curr);
            }
            _ => core.resched_curr(to),
        }
    }

    /// Of the tasks of a class that wait on `from`, moves those that may come to `cpu`, at most
    /// `most_tasks` of them, until their weights amount to `most` (`balance_tasks`). Says how much
    /// weight came, and whether nothing may come at all.
    fn balance_tasks(
        &mut self,
        core: &mut Core,
        (from, cpu): (CpuId, CpuId),
        class: Class,
        (most_tasks, most): (u32, u64),
        best_prio: &mut i32,
    ) -> (u64, bool) {
        if most == 0 {
            return (0, false);
        }
        let tasks: Vec<TaskId> = match class {
            Class::Rt => self.rt.iter_to_balance(from).collect(),
            Class::Fair => self.fair.iter(from).collect(),
        };
        let (mut left, mut nr_moved, mut all_pinned) = (most as i64, 0, true);
        for task in tasks {
            let t = core.task(task);
            let weight = self.weight(task);
            let is_heavy = (weight / 2) as i64 > left.saturating_add(FUZZ as i64);
            if is_heavy && t.prio >= *best_prio {
                continue;
            }
            if !t.cpus_allowed.contains(cpu) {
                continue;
            }
            all_pinned = false;
            if core.is_running(task) {
                continue;
            }
            let prio = t.prio;
            self.pull_task(core, task, from, cpu);
            nr_moved += 1;
            left = left.saturating_sub(weight as i64);
            if nr_moved >= most_tasks || left <= 0 {
                break;
            }
            *best_prio = prio.min(*best_prio);
        }
        (most.wrapping_sub(left as u64), all_pinned)
    }

    /// What ran on `cpu` has left it to be pushed: moves the first task that may, and lets the CPU
    /// go on.
    pub(super) fn finish_push(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(to) = self.balance.push[cpu.index()].take() else { return };
        self.balance.nr_pushing -= 1;
        let mut best_prio = MAX_PRIO;
        for class in [Class::Rt, Class::Fair] {
            let most = (1, i64::MAX as u64);
            let (moved, _) = self.balance_tasks(core, (cpu, to), class, most, &mut best_prio);
            if moved > 0 {
                break;
            }
        }
        if core.rq(cpu).nr_running > 0 {
            core.resched_curr(cpu);
        }
    }
}

impl Runqueues for FairClock {
    fn domains(&mut self) -> &mut Domains {
        &mut self.domains
    }

    fn move_tasks(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        _level: usize,
        from: CpuId,
        most: u64,
    ) -> Moved {
        let mut best_prio = core.rq(cpu).curr.map_or(MAX_PRIO, |curr| core.task(curr).prio);
        let (mut moved, mut all_pinned) = (0, false);
        for class in [Class::Rt, Class::Fair] {
            let left = (u32::MAX, most - moved);
            let (weight, pinned) =
                self.balance_tasks(core, (from, cpu), class, left, &mut best_prio);
            moved += weight;
            all_pinned = pinned;
            if moved >= most {
                break;
            }
        }
        Moved { any: moved > 0, all_pinned }
    }

    fn push_running(&mut self, core: &mut Core, from: CpuId, cpu: CpuId) -> bool {
        if self.balance.push[from.index()].is_some() {
            return false;
        }
        self.balance.push[from.index()] = Some(cpu);
        self.balance.nr_pushing += 1;
        core.queue_balance_callback(from);
        core.resched_curr(from);
        true
    }
}
