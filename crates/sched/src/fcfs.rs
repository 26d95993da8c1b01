// SPDX-License-Identifier: MIT OR Apache-2.0
//! First come, first served: one FIFO queue for all CPUs, no preemption.
//!
//! Source: Silberschatz, Galvin, Gagne, "Operating System Concepts", chapter CPU scheduling.
//! A task that blocks goes to the tail when it wakes, as an arrival does. Policies, priorities and
//! nice values are ignored: every task is equal.

use crate::class::SchedClass;
use crate::core::Core;
use crate::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::registry::{Claims, SchedulerInfo};
use schedlab_model::{CpuId, Policy, TaskId};
use std::collections::VecDeque;

/// Registry entry.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "fcfs",
    summary: "first come, first served; no preemption",
    source: "Silberschatz, Galvin, Gagne: Operating System Concepts, CPU scheduling",
    leaves_out: "policies, priorities and nice values are ignored",
    claims: Claims {
        work_conserving: true,
        starvation_free: false,
        fair: false,
        needs_burst: false,
    },
    tunables: &[],
    build: |_, _, _| vec![Box::new(Fcfs::default())],
};

/// The class.
#[derive(Default, Debug)]
pub struct Fcfs {
    /// Waiting tasks, oldest first; running tasks are not in it.
    queue: VecDeque<TaskId>,
}

impl SchedClass for Fcfs {
    fn name(&self) -> &'static str {
        "fcfs"
    }

    fn owns(&self, _policy: Policy) -> bool {
        true
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _flags: EnqueueFlags) {
        core.add_nr_running(cpu, 1);
        if !core.is_running(task) {
            self.queue.push_back(task);
        }
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        _flags: DequeueFlags,
    ) -> bool {
        core.sub_nr_running(cpu, 1);
        self.queue.retain(|queued| *queued != task);
        true
    }

    fn yield_task(&mut self, _core: &mut Core, _cpu: CpuId) {}

    fn wakeup_preempt(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: TaskId, _: WakeFlags) {}

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        if let Some(curr) = core.rq(cpu).curr
            && core.task(curr).on_rq
        {
            return Some(curr);
        }
        let index =
            self.queue.iter().position(|task| core.task(*task).cpus_allowed.contains(cpu))?;
        let task = self.queue[index];
        let from = core.task(task).cpu;
        if from != cpu {
            core.sub_nr_running(from, 1);
            core.set_task_cpu(task, cpu);
            core.add_nr_running(cpu, 1);
        }
        Some(task)
    }

    fn put_prev_task(&mut self, core: &mut Core, _: CpuId, prev: TaskId, _: Option<TaskId>) {
        if core.task(prev).on_rq {
            self.queue.push_front(prev);
        }
    }

    fn set_next_task(&mut self, _: &mut Core, _: CpuId, task: TaskId, _first: bool) {
        self.queue.retain(|queued| *queued != task);
    }
}
