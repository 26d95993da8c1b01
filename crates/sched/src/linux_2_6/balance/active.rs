// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pushing away what a CPU runs, after attempts to pull have failed (active balancing).
//!
//! A CPU that runs one task has nothing that could be pulled, though its core may run two and
//! another core none. After some failures the looking CPU asks the other one's migration thread to
//! give a task away. That thread takes the CPU for a moment: here the CPU picks nothing once, and
//! gives the task away right after that.
//!
//! Source: Linux 2.6.11 and 2.6.22, kernel/sched.c (`load_balance`, `active_load_balance`). 2.6.11
//! gives to every CPU whose core is idle, 2.6.22 to the one that asked.

use super::super::OrderOne;
use super::super::arrays::Side;
use crate::core::Core;
use crate::domains_2_6::revised::Runqueues;
use schedlab_model::{CpuId, TaskId};

impl OrderOne {
    /// A look of `cpu` at `from` has failed: after several, `from` is to give a task away (2.6.11).
    pub(super) fn ask_to_push(&mut self, core: &mut Core, cpu: CpuId, level: usize, from: CpuId) {
        let Some(domains) = self.domains() else { return };
        let state = &mut domains.intervals[cpu.index()][level];
        let tries = domains.domains[state.domain].cache_nice_tries;
        if state.nr_failed > tries + 2 {
            state.nr_failed = tries;
            self.push_running(core, from, cpu);
        }
    }

    /// Whether `cpu` is about to give a task away: it picks nothing before.
    #[inline]
    pub(in crate::linux_2_6) fn is_pushing(&self, cpu: CpuId) -> bool {
        self.balance.push_to[cpu.index()].is_some()
    }

    /// What the migration thread of `cpu` does.
    pub(in crate::linux_2_6) fn push_tasks(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(target) = self.balance.push_to[cpu.index()].take() else { return };
        if self.domains().is_some_and(|domains| domains.weighs()) {
            self.push_one(core, cpu, target);
        } else {
            for target in self.idle_targets(core, cpu) {
                self.push_one(core, cpu, target);
            }
        }
        if core.rq(cpu).nr_running > 0 {
            core.resched_curr(cpu);
        }
    }

    /// CPUs whose cores are idle, nearest first.
    fn idle_targets(&mut self, core: &Core, cpu: CpuId) -> Vec<CpuId> {
        let Some(domains) = self.domains() else { return Vec::new() };
        // The thread that pushes makes its own core a busy one.
        let own = domains.core_of(cpu).map_or(&[][..], |core| &core.groups);
        let is_own = |other: CpuId| own.iter().any(|thread| thread.cpus.contains(&other));
        let mut targets: Vec<CpuId> = Vec::new();
        for state in &domains.intervals[cpu.index()] {
            let groups = &domains.domains[state.domain].groups;
            let (before, from_own) = groups.split_at(state.own_group);
            for other in from_own.iter().chain(before).flat_map(|group| &group.cpus) {
                let is_free = *other != cpu && domains.core_is_idle(core, *other);
                if is_free && !is_own(*other) && !targets.contains(other) {
                    targets.push(*other);
                }
            }
        }
        targets
    }

    /// Gives `target` the first task of `cpu` that may go there.
    fn push_one(&mut self, core: &mut Core, cpu: CpuId, target: CpuId) {
        // A CPU that got a task a moment ago is idle no more.
        let Some(level) = self.level_with(target, cpu) else { return };
        let found = [Side::Expired, Side::Active].into_iter().find_map(|side| {
            let mut tasks = self.arrays.iter_from_tails(cpu, side);
            let task: TaskId = tasks.find(|task| self.can_migrate(core, *task, target, level))?;
            Some((task, side))
        });
        if let Some((task, side)) = found {
            self.pull_task(core, task, cpu, target, side);
        }
    }

    /// The smallest domain of `cpu` that `other` is in too.
    fn level_with(&mut self, cpu: CpuId, other: CpuId) -> Option<usize> {
        let domains = self.domains()?;
        domains.intervals[cpu.index()].iter().position(|state| {
            let groups = &domains.domains[state.domain].groups;
            groups.iter().any(|group| group.cpus.contains(&other))
        })
    }
}
