// SPDX-License-Identifier: MIT OR Apache-2.0
//! Balancing: which tasks move, and the load of a CPU.
//!
//! [`crate::balance::early`] decides when tasks move and from which CPU. First come real-time tasks
//! from the tails of their lists, the best list first. Then come fair tasks from the left of the
//! tree, which would run next. No task is cache-hot. After failed attempts the running task is
//! pushed away; its CPU is then idle for a moment, for the migration thread.
//!
//! Source: Linux 2.6.23.17, kernel/sched.c (`move_tasks`, `balance_tasks`, `can_migrate_task`,
//! `pull_task`, `active_load_balance`, `update_cpu_load`, `update_curr_load`).

use super::FairClock;
use super::entity::Class;
use super::rules::PRECISE_CPU_LOAD;
use crate::balance::early::moves::{Move, Moved, move_some, push_running};
use crate::balance::early::select::{Waking, place, wake_cpu};
use crate::balance::early::{Balancer, Looker, Runqueues, look};
use crate::boundary::core::Core;
use crate::boundary::flags::WakeFlags;
use crate::fair::wmult::{LoadWeight, calc_delta_fair};
use schedlab_model::{CpuId, Nanos, TaskId};

/// Priority of the idle task (MAX_PRIO).
const MAX_PRIO: i32 = 140;

/// The load of a CPU since its last tick, as the kernel sums it with PRECISE_CPU_LOAD (`struct
/// load_stat`).
#[derive(Clone, Copy, Default, Debug)]
struct LoadStat {
    /// Time of the last update of the sums, and time of their last use.
    update_start: Nanos,
    update_last: Nanos,
    /// Elapsed time on the fair clock of all tasks, and on the clock of a CPU that is not idle.
    delta_fair: u64,
    delta_exec: u64,
    /// Time that is still too short to be added.
    delta_stat: u64,
}

/// Loads of CPUs over time.
#[derive(Debug)]
pub struct LoadStats(Vec<LoadStat>);

impl LoadStats {
    pub fn new(nr_cpus: u32) -> Self {
        Self(vec![LoadStat::default(); nr_cpus as usize])
    }
}

impl FairClock {
    /// Weight of a task in the load of its CPU.
    fn weight(&self, task: TaskId) -> u64 {
        u64::from(self.fair.entity(task).weight)
    }

    /// Adds the weight of `task` to the load of `cpu`, or subtracts it.
    #[inline]
    pub(super) fn count_load(&mut self, core: &Core, cpu: CpuId, task: TaskId, comes: bool) {
        if self.fair.values.has(PRECISE_CPU_LOAD) {
            self.update_curr_load(core, cpu);
        }
        let weight = self.weight(task);
        let sum = &mut self.balancer.load[cpu.index()];
        *sum = if comes { *sum + weight } else { *sum - weight };
    }

    /// Adds the time since the last change of load.
    fn update_curr_load(&mut self, core: &Core, cpu: CpuId) {
        let weight = self.balancer.load[cpu.index()];
        let stat = &mut self.load_stats.0[cpu.index()];
        stat.delta_stat += core.now - stat.update_start;
        stat.update_start = core.now;
        let is_enough = stat.delta_stat >= self.fair.values.stat_granularity;
        if is_enough && core.rq(cpu).curr.is_some() && weight > 0 {
            stat.delta_exec += stat.delta_stat;
            stat.delta_fair += calc_delta_fair(stat.delta_stat, LoadWeight::of_load(weight));
            stat.delta_stat = 0;
        }
    }

    /// The load of `cpu` since its last tick: its weight while it was not idle, times the share of
    /// the time in which it was not.
    fn precise_load(&mut self, core: &Core, cpu: CpuId) -> u64 {
        self.update_curr_load(core, cpu);
        let stat = &mut self.load_stats.0[cpu.index()];
        let fair = std::mem::take(&mut stat.delta_fair) + 1;
        let exec = std::mem::take(&mut stat.delta_exec) + 1;
        let interval = (core.now - stat.update_last).max(core.tick_nsec);
        stat.update_last = core.now;
        let exec = exec.min(interval);
        self.balancer.version.scale * exec / fair * exec / interval
    }

    /// Number of ticks of busy `cpu`, from the next one on, at which no CPU searches for work.
    pub(super) fn quiet_balance_ticks(&self, core: &Core, cpu: CpuId) -> u64 {
        match self.fair.values.has(PRECISE_CPU_LOAD) {
            true => 0,
            false => self.balancer.quiet_ticks(core, cpu),
        }
    }

    /// Passes this many such ticks.
    pub(super) fn pass_balance_ticks(&mut self, core: &Core, cpu: CpuId, nr: u64) {
        let load = self.balancer.load[cpu.index()];
        self.balancer.pass_ticks(core, cpu, nr, load);
    }

    /// Handles `cpu` having no task left. Returns whether it got one.
    pub(super) fn balance_newly_idle(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        core.nr_cpus() > 1
            && !self.balancer.is_pushing(cpu)
            && look::idle_balance(self, core, cpu) == look::Outcome::Moved
    }

    /// The CPU for waking or new `task`.
    pub(super) fn select_cpu(
        &self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        place(self, core, task, prev, flags, || {
            let is_sync = flags.sync && self.fair.values.sync_wakeups;
            let leaves = flags.waker.filter(|_| is_sync).map_or(0, |waker| self.weight(waker));
            let this = flags.this_cpu;
            wake_cpu(self, core, Waking { task, prev, this, leaves, comes: false })
        })
    }

    /// Moves waiting `task` from one CPU to another.
    fn pull_from(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId) {
        core.sub_nr_running(from, 1);
        self.deactivate(core, from, task, false);
        self.fair.migrate(task, from, to);
        core.set_task_cpu(task, to);
        core.add_nr_running(to, 1);
        self.activate(core, to, task, false);
        match core.rq(to).curr {
            // This includes a task that has just left its CPU for good. That CPU picks again
            // anyway.
            Some(curr) if self.fair.entity(curr).on_rq => {
                self.check_preempt_curr(core, to, task, curr);
            }
            _ => core.resched_curr(to),
        }
    }

    /// Finishes the push of the task that has left `cpu`.
    pub(super) fn finish_push(&mut self, core: &mut Core, cpu: CpuId) {
        push_running(self, core, cpu);
    }

    /// Handles the tick of busy `cpu`, after those of the idle CPUs before it.
    pub(super) fn rebalance_ticks(&mut self, core: &mut Core, cpu: CpuId) {
        look::rebalance_ticks(self, core, cpu);
    }

    /// Waiting tasks of a class on `from`, in the order in which they move.
    fn movable_of(&self, from: CpuId, class: Class) -> Vec<TaskId> {
        match class {
            Class::Rt => self.rt.iter_to_balance(from).collect(),
            Class::Fair => self.fair.iter(from).collect(),
        }
    }
}

impl Runqueues for FairClock {
    fn balancer(&self) -> &Balancer {
        &self.balancer
    }

    fn balancer_mut(&mut self) -> &mut Balancer {
        &mut self.balancer
    }

    fn task_weight(&self, _: &Core, task: TaskId) -> u64 {
        self.weight(task)
    }

    /// No task is cache-hot in this version.
    fn is_hot(&self, _: &Core, _: Looker, _: TaskId) -> bool {
        false
    }

    fn load_at_tick(&mut self, core: &Core, cpu: CpuId) -> u64 {
        match self.fair.values.has(PRECISE_CPU_LOAD) {
            true => self.precise_load(core, cpu),
            false => self.cpu_weight(core, cpu),
        }
    }

    fn move_tasks(&mut self, core: &mut Core, looker: Looker, from: CpuId, most: u64) -> Moved {
        let best_prio = core.rq(looker.cpu).curr.map_or(MAX_PRIO, |curr| core.task(curr).prio);
        let mut run = Move::new(looker, from, best_prio);
        let (most, mut moved) = (most as i64, 0);
        for class in [Class::Rt, Class::Fair] {
            let candidates = self.movable_of(from, class);
            moved += move_some(self, core, &mut run, &candidates, most - moved);
            if moved >= most {
                break;
            }
        }
        Moved { any: moved > 0, all_pinned: run.all_pinned }
    }

    fn movable(&self, _: &Core, from: CpuId) -> Vec<TaskId> {
        let mut tasks = self.movable_of(from, Class::Rt);
        tasks.extend(self.movable_of(from, Class::Fair));
        tasks
    }

    fn pull_task(&mut self, core: &mut Core, task: TaskId, run: &Move) {
        self.pull_from(core, task, run.from, run.looker.cpu);
    }
}
