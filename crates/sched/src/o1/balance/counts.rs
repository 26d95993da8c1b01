// SPDX-License-Identifier: MIT OR Apache-2.0
//! Balancing of 2.6.0 by number of tasks: every 200 ms on a busy CPU, at each tick on an idle one,
//! and when a CPU becomes idle.
//!
//! A busy CPU also uses the counts of its last search. For itself it takes the greater of the two
//! counts, for the others the lesser, so that a short peak moves nothing.
//!
//! Source: Linux 2.6.0, kernel/sched.c (`rebalance_tick`, `load_balance`, `find_busiest_queue`).

use super::super::OrderOne;
use super::super::arrays::Side;
use super::Method;
use crate::boundary::core::Core;
use schedlab_model::{CpuId, Machine, TaskId};

/// The state of balancing in 2.6.0.
#[derive(Debug)]
pub struct Counts {
    nr_cpus: usize,
    /// Ticks between two searches of a busy CPU (BUSY_REBALANCE_TICK), and of an idle one.
    busy_ticks: u64,
    idle_ticks: u64,
    /// Number of tasks that each CPU saw on each CPU at its last search (`prev_cpu_load`).
    seen: Vec<u32>,
}

/// The CPU to pull from, and its excess of tasks.
struct Busiest {
    cpu: CpuId,
    imbalance: i64,
}

impl Counts {
    /// The state for `machine`.
    pub fn new(machine: &Machine) -> Self {
        let nr_cpus = machine.nr_cpus() as usize;
        Self {
            nr_cpus,
            busy_ticks: u64::from((machine.hz / 5).max(1)),
            idle_ticks: u64::from((machine.hz / 1000).max(1)),
            seen: vec![0; nr_cpus * nr_cpus],
        }
    }

    /// Number of ticks from `jiffies` on at which no busy CPU searches.
    pub fn quiet_ticks(&self, jiffies: u64) -> u64 {
        jiffies.next_multiple_of(self.busy_ticks) - jiffies
    }

    /// Records that all CPUs have searched while they were idle.
    pub fn forget(&mut self) {
        self.seen.fill(0);
    }

    /// The CPU with the most tasks, at least 2, if it has sufficiently more than `this_cpu`
    /// (`find_busiest_queue`).
    fn find_busiest(&mut self, core: &Core, this_cpu: CpuId, idle: bool) -> Option<Busiest> {
        let row = this_cpu.index() * self.nr_cpus;
        let seen = &mut self.seen[row..row + self.nr_cpus];
        let nr = |cpu: usize| core.rqs[cpu].nr_running;
        let here = nr(this_cpu.index());
        let this_load = if idle { here } else { here.max(seen[this_cpu.index()]) };
        let (mut busiest, mut max_load) = (None, 1);
        for (cpu, last) in seen.iter_mut().enumerate() {
            let load = if idle { nr(cpu) } else { nr(cpu).min(*last) };
            *last = nr(cpu);
            if load > max_load && cpu != this_cpu.index() {
                busiest = Some(CpuId(cpu as u32));
                max_load = load;
            }
        }
        let cpu = busiest?;
        let imbalance = i64::from(max_load) - i64::from(this_load);
        let is_enough = idle || imbalance * 4 >= i64::from(max_load);
        (is_enough && nr(cpu.index()) > this_load).then_some(Busiest { cpu, imbalance })
    }
}

impl OrderOne {
    /// Handles the tick of `cpu`.
    pub(super) fn rebalance_tick_counts(&mut self, core: &mut Core, cpu: CpuId) {
        let Method::Counts(counts) = &self.balance.method else { return };
        let idle = core.rq(cpu).curr.is_none();
        let ticks = if idle { counts.idle_ticks } else { counts.busy_ticks };
        if core.jiffies().is_multiple_of(ticks) {
            self.load_balance_counts(core, cpu, idle);
        }
    }

    /// Pulls tasks to `cpu`: one if it is idle, otherwise half of the imbalance. Half of an
    /// imbalance of 1 is 0, and the kernel's count then continues below 0, so all allowed tasks are
    /// pulled.
    pub(in crate::o1) fn load_balance_counts(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        idle: bool,
    ) -> bool {
        let Method::Counts(counts) = &mut self.balance.method else { return false };
        let Some(busiest) = counts.find_busiest(core, cpu, idle) else { return false };
        let wanted = if idle { 1 } else { busiest.imbalance / 2 };
        let wanted = if wanted == 0 { usize::MAX } else { wanted as usize };
        let pullable: Vec<TaskId> = [Side::Expired, Side::Active]
            .into_iter()
            .flat_map(|side| self.arrays.iter_from_tails(busiest.cpu, side))
            .filter(|task| self.can_migrate_counts(core, *task, cpu, idle))
            .take(wanted)
            .collect();
        for task in &pullable {
            self.pull_task_of(core, *task, busiest.cpu, cpu, Side::Active);
        }
        !pullable.is_empty()
    }

    /// Whether `task`, which is queued on another CPU, may move to `cpu` (`can_migrate_task`).
    fn can_migrate_counts(&self, core: &Core, task: TaskId, cpu: CpuId, idle: bool) -> bool {
        let since = core.now.saturating_sub(self.tasks[task.index()].timestamp);
        let is_hot = since / self.scale.tick <= self.balance.cache_hot / self.scale.tick;
        !core.is_running(task) && core.task(task).cpus_allowed.contains(cpu) && (idle || !is_hot)
    }
}
