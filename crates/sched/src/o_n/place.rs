// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the CPU to notify of a task that becomes runnable: an idle one, or one whose task is
//! worse.
//!
//! Source: Linux 2.4.17, kernel/sched.c (`reschedule_idle`, `preemption_goodness`). With a single
//! CPU, that CPU is notified if it is idle or if its task is worse.

use super::GlobalQueue;
use crate::boundary::core::Core;
use schedlab_model::{CpuId, Nanos, TaskId};

/// The CPU found so far.
#[derive(Clone, Copy, Debug)]
enum Target {
    Nobody,
    /// An idle CPU, and the start of its idle time.
    Idle(CpuId, Nanos),
    /// A CPU whose task is worse, and the difference.
    Busy(CpuId, i32),
}

impl GlobalQueue {
    /// The task that `cpu` runs, or is about to run because it was idle and was notified.
    pub(super) fn occupant(&self, core: &Core, cpu: CpuId) -> Option<TaskId> {
        core.rq(cpu).curr.or(self.cpus[cpu.index()].told)
    }

    /// How much better `task` is than `curr` on `cpu`, where `curr`'s address space is loaded.
    pub(super) fn preemption_goodness(&self, curr: TaskId, task: TaskId, cpu: CpuId) -> i32 {
        let (curr, task) = (&self.tasks[curr.index()], &self.tasks[task.index()]);
        let this_mm = Some(curr.mm);
        self.goodness(task, cpu, this_mm) - self.goodness(curr, cpu, this_mm)
    }

    /// Notifies a CPU of `task`, which waits in the queue.
    pub(super) fn reschedule_idle(&mut self, core: &mut Core, task: TaskId) {
        let entry = &self.tasks[task.index()];
        let last = CpuId(entry.processor);
        let allowed = &core.task(task).cpus_allowed;
        let target = if allowed.contains(last) && self.occupant(core, last).is_none() {
            Target::Idle(last, 0)
        } else {
            let mut compared: u32 = 0;
            let target = self.find_cpu(core, task, &mut compared);
            let work = &mut core.work.cpus_compared;
            *work = work.saturating_add(compared.saturating_sub(1));
            target
        };
        match target {
            Target::Idle(cpu, _) => {
                self.cpus[cpu.index()].told = Some(task);
                core.resched_curr(cpu);
            }
            Target::Busy(cpu, _) => core.resched_curr(cpu),
            Target::Nobody => {}
        }
    }

    /// The CPU that has been idle longest, or else the one whose task is worse by the greatest
    /// difference. Counts the comparisons.
    fn find_cpu(&self, core: &Core, task: TaskId, compared: &mut u32) -> Target {
        let mut target = Target::Nobody;
        for cpu in core.task(task).cpus_allowed.iter() {
            let Some(curr) = self.occupant(core, cpu) else {
                let since = core.rq(cpu).idle_since;
                if self.has_idle_sibling(core, cpu) {
                    return Target::Idle(cpu, since);
                }
                if !matches!(target, Target::Idle(_, oldest) if since >= oldest) {
                    target = Target::Idle(cpu, since);
                }
                continue;
            };
            let by = match target {
                Target::Idle(..) => continue,
                Target::Busy(_, by) => by,
                Target::Nobody => 0,
            };
            *compared += 1;
            let better = self.preemption_goodness(curr, task, cpu);
            if better > by {
                target = Target::Busy(cpu, better);
            }
        }
        target
    }

    /// Whether `cpu` is one of two hardware threads of a core and the other one is idle too.
    fn has_idle_sibling(&self, core: &Core, cpu: CpuId) -> bool {
        let cores = &core.topology.core;
        let mine = cores[cpu.index()];
        let others = (0..core.nr_cpus()).map(CpuId);
        let mut others = others.filter(|other| *other != cpu && cores[other.index()] == mine);
        match (others.next(), others.next()) {
            (Some(sibling), None) => self.occupant(core, sibling).is_none(),
            _ => false,
        }
    }
}
