// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the CPU of a deadline task: at wake-up, by push and by pull.
//!
//! Source: Linux kernel/sched/deadline.c (select_task_rq_dl, find_later_rq, push_dl_task,
//! pull_dl_task).

use super::DlClass;
use crate::boundary::core::Core;
use crate::boundary::flags::WakeFlags;
use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

impl DlClass {
    /// The CPU for waking `task`: its previous one, unless a task of this class runs there that is
    /// earlier or cannot leave.
    pub(super) fn select_cpu(
        &self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let stays = Self::dl_curr(core, prev).is_some_and(|curr| {
            core.task(curr).nr_cpus_allowed < 2 || !self.is_earlier(task, curr)
        });
        if !flags.is_fork()
            && stays
            && let Some(target) = self.find_later_rq(core, task, flags.this_cpu)
            && self.is_earliest_on(task, target)
        {
            return target;
        }
        core.allowed_cpu(task, prev)
    }

    /// Whether `task` would run at once on `cpu` (`dl_task_is_earliest_deadline`).
    fn is_earliest_on(&self, task: TaskId, cpu: CpuId) -> bool {
        self.queues.earliest(cpu).is_none_or(|earliest| self.deadline(task) < earliest)
    }

    fn find_later_rq(&self, core: &mut Core, task: TaskId, this_cpu: CpuId) -> Option<CpuId> {
        let t = core.task(task);
        if t.nr_cpus_allowed == 1 {
            return None;
        }
        let later = self.cpudl.find(&t.cpus_allowed, self.deadline(task))?;
        self.domains.nearest(&later, t.cpu, this_cpu, core)
    }

    /// Pushes the earliest waiting task of `cpu` to a CPU where it runs at once, which `this_cpu`
    /// chooses. Returns whether it moved.
    pub(super) fn push(&mut self, core: &mut Core, cpu: CpuId, this_cpu: CpuId) -> bool {
        let Some(task) = self.pushable.first_task(cpu) else { return false };
        if let Some(curr) = Self::dl_curr(core, cpu)
            && self.is_earlier(task, curr)
            && core.task(curr).nr_cpus_allowed > 1
        {
            core.resched_curr(cpu);
            return false;
        }
        match self.find_later_rq(core, task, this_cpu) {
            Some(target) if target != cpu && self.is_earliest_on(task, target) => {
                self.move_task(core, task, cpu, target);
                core.resched_curr(target);
                if self.moves_stop_clock() {
                    core.stop_clock(target, true);
                }
                true
            }
            _ => false,
        }
    }

    /// Pulls to `cpu` waiting tasks of other CPUs that are earlier than all of its own.
    pub(super) fn pull(&mut self, core: &mut Core, cpu: CpuId) {
        let mut earliest_pulled = Nanos::MAX;
        let others = self.overloaded.and_not(&CpuMask::only(cpu));
        for from in others.iter() {
            let next = self.pushable.earliest(from).unwrap_or(Nanos::MAX);
            if self.queues.earliest(cpu).is_some_and(|own| own < next) {
                continue;
            }
            let candidate =
                self.pushable.iter(from).find(|task| core.task(*task).cpus_allowed.contains(cpu));
            // A task that is about to run on its own CPU stays there.
            if let Some(task) = candidate
                && self.deadline(task) < earliest_pulled
                && self.is_earliest_on(task, cpu)
                && !Self::dl_curr(core, from).is_some_and(|curr| self.is_earlier(task, curr))
            {
                earliest_pulled = self.deadline(task);
                self.move_task(core, task, from, cpu);
            }
        }
        if earliest_pulled < Nanos::MAX {
            core.resched_curr(cpu);
        }
    }

    /// Whether a moved task is compared with the running one as a woken one is, which stops the
    /// clock until the switch (`move_queued_task_locked` calls `wakeup_preempt`). In guests of 7.2
    /// with several CPUs a task on an idle CPU uses 499.5 us of a budget of 500, of one CPU 512.
    const fn moves_stop_clock(&self) -> bool {
        self.hrtick.is_some()
    }

    fn move_task(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId) {
        self.unqueue(core, from, task);
        core.set_task_cpu(task, to);
        self.contend(core, to, task);
        self.queue(core, to, task);
    }
}
