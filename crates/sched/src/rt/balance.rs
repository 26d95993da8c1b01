// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the CPU of a real-time task: at wake-up, by push and by pull.
//!
//! Source: Linux kernel/sched/rt.c (select_task_rq_rt, find_lowest_rq, push_rt_task, pull_rt_task,
//! tell_cpu_to_push).

use super::RtClass;
use crate::boundary::core::Core;
use crate::boundary::flags::EnqueueFlags;
use schedlab_model::{CpuId, CpuMask, TaskId};

impl RtClass {
    /// The CPU for waking `task`: its previous one, unless a real-time task runs there that is as
    /// important or cannot leave.
    pub(super) fn select_cpu(
        &self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        this_cpu: CpuId,
    ) -> CpuId {
        let t = core.task(task);
        let prio = t.prio;
        let stays = Self::rt_curr(core, prev).is_some_and(|curr| {
            let curr = core.task(curr);
            curr.nr_cpus_allowed < 2 || curr.prio <= prio
        });
        if (stays || !t.cpus_allowed.contains(prev))
            && let Some(target) = self.find_lowest_rq(core, task, this_cpu)
            && prio < self.queues.best_prio(target) as i32
        {
            return target;
        }
        core.allowed_cpu(task, prev)
    }

    /// The best of the CPUs with the least important work, if that is less important than `task`.
    /// It is the task's own CPU, or else the nearest one, with preference for the searching CPU.
    pub(super) fn find_lowest_rq(
        &self,
        core: &mut Core,
        task: TaskId,
        this_cpu: CpuId,
    ) -> Option<CpuId> {
        if core.task(task).nr_cpus_allowed == 1 {
            return None;
        }
        let lowest = self.lowest_cpus(core, task)?;
        self.domains.nearest(&lowest, core.task(task).cpu, this_cpu, core)
    }

    /// The CPUs with the least important work that `task` may use, if less important than `task`.
    pub(super) fn lowest_cpus(&self, core: &Core, task: TaskId) -> Option<CpuMask> {
        let t = core.task(task);
        let open = t.cpus_allowed.and_not(&core.claimed_above(t.class));
        self.cpupri.find(&open, t.prio as usize)
    }

    /// Pushes the best waiting task of `cpu` to a CPU with less important work, which `this_cpu`
    /// chooses. Returns whether it moved.
    pub(super) fn push(&mut self, core: &mut Core, cpu: CpuId, this_cpu: CpuId) -> bool {
        let Some(task) = self.pushable.first(cpu) else { return false };
        let prio = core.task(task).prio;
        if prio < Self::curr_prio(core, cpu) {
            core.resched_curr(cpu);
            return false;
        }
        match self.find_lowest_rq(core, task, this_cpu) {
            Some(target) if target != cpu && (self.queues.best_prio(target) as i32) > prio => {
                self.move_task(core, task, cpu, target);
                core.resched_curr(target);
                true
            }
            _ => false,
        }
    }

    /// Gets work for `cpu` from other CPUs: pulls waiting tasks that are better than its best one.
    /// With RT_PUSH_IPI it makes all CPUs that have such tasks push them (`tell_cpu_to_push`).
    pub(super) fn pull(&mut self, core: &mut Core, cpu: CpuId) {
        if self.push_ipi {
            let overloaded = self.overloaded;
            let only_here = overloaded == CpuMask::only(cpu);
            for from in overloaded.iter().filter(|_| !only_here) {
                while self.push(core, from, from) {}
            }
            return;
        }
        let others = self.overloaded.and_not(&CpuMask::only(cpu));
        let mut pulled = false;
        for from in others.iter() {
            let best = self.queues.best_prio(cpu) as i32;
            if self.pushable.best_prio(from) as i32 >= best {
                continue;
            }
            let candidate =
                self.pushable.iter(from).find(|task| core.task(*task).cpus_allowed.contains(cpu));
            // A task that is about to run on its own CPU stays there.
            if let Some(task) = candidate
                && core.task(task).prio < best
                && core.task(task).prio >= Self::curr_prio(core, from)
            {
                self.move_task(core, task, from, cpu);
                pulled = true;
            }
        }
        if pulled {
            core.resched_curr(cpu);
        }
    }

    fn move_task(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId) {
        self.dequeue(core, from, task, false);
        core.set_task_cpu(task, to);
        self.enqueue(core, to, task, EnqueueFlags { migrated: true, ..EnqueueFlags::NONE });
    }
}
