// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weighted round robin: turns whose length follows the nice value.
//!
//! Source: docs/guide/write-a-scheduler.md. Each CPU has a FIFO queue whose first task runs. Turns
//! are counted in ticks as for SCHED_RR (Linux kernel/sched/rt.c, `task_tick_rt`): nice 0 has
//! `slice`, another nice value as much more or less as its weight says, and at least one tick.
//! Left out: policies (every task is treated alike); balancing but for a CPU that runs dry.

use crate::boundary::class::SchedClass;
use crate::boundary::core::Core;
use crate::boundary::explain::Explain;
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::boundary::options::{Tunable, TunableKind};
use crate::scheduler::{Claims, Make, Scheduler};
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC};
use schedlab_model::weights::nice_weight;
use schedlab_model::{Costs, CpuId, Nanos, Policy, Preempt, TaskId};
use std::collections::VecDeque;

const SLICE: Tunable = Tunable::new(
    "slice",
    TunableKind::Time { min: NSEC_PER_MSEC, max: NSEC_PER_SEC },
    40 * NSEC_PER_MSEC,
    "length of a turn at nice 0",
);

/// Registry entry.
pub fn scheduler() -> Scheduler {
    Scheduler {
        name: "weighted-rr".into(),
        summary: "round robin in turns as long as the nice value's weight says".into(),
        source: "docs/guide/write-a-scheduler.md".into(),
        leaves_out: "policies; balancing but for a CPU that runs dry".into(),
        claims: Claims {
            // Only a CPU that runs dry looks for work elsewhere.
            work_conserving: false,
            starvation_free: true,
            fair: true,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::DEFAULT,
        tunables: vec![SLICE],
        digest: None,
        make: Make::new(|options, machine, _cgroups| {
            vec![Box::new(WeightedRr {
                slice_ns: options.get(&SLICE.name),
                queues: vec![VecDeque::new(); machine.nr_cpus() as usize],
                ticks_left: Vec::new(),
            })]
        }),
    }
}

struct WeightedRr {
    slice_ns: Nanos,
    /// Runnable tasks by CPU, the running one included.
    queues: Vec<VecDeque<TaskId>>,
    /// Rest of the turn, by task.
    ticks_left: Vec<u64>,
}

impl WeightedRr {
    fn turn_ticks(&self, core: &Core, task: TaskId) -> u64 {
        let weight = nice_weight(core.task(task).attr.nice);
        (self.slice_ns * weight / nice_weight(0) / core.tick_nsec).max(1)
    }

    fn forget(&mut self, cpu: CpuId, task: TaskId) {
        self.queues[cpu.index()].retain(|other| *other != task);
    }

    fn requeue(&mut self, cpu: CpuId, task: TaskId) {
        self.forget(cpu, task);
        self.queues[cpu.index()].push_back(task);
    }
}

impl Explain for WeightedRr {
    fn name(&self) -> &'static str {
        "weighted-rr"
    }
}

impl SchedClass for WeightedRr {
    fn owns(&self, _policy: Policy) -> bool {
        true
    }

    fn task_new(&mut self, _core: &mut Core, task: TaskId) {
        self.ticks_left.resize(task.index() + 1, 0);
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        let turn = self.turn_ticks(core, task);
        let left = &mut self.ticks_left[task.index()];
        if flags.restore {
            *left = turn.min(*left);
            self.queues[cpu.index()].push_front(task);
        } else {
            *left = turn;
            self.queues[cpu.index()].push_back(task);
        }
        core.add_nr_running(cpu, 1);
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        _flags: DequeueFlags,
    ) -> bool {
        self.forget(cpu, task);
        core.sub_nr_running(cpu, 1);
        true
    }

    fn pick_task(&mut self, _core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        self.queues[cpu.index()].front().copied()
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        self.ticks_left[curr.index()] -= 1;
        if self.ticks_left[curr.index()] == 0 {
            self.ticks_left[curr.index()] = self.turn_ticks(core, curr);
            self.requeue(cpu, curr);
            core.resched_curr(cpu);
        }
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        if let Some(curr) = core.rq(cpu).curr {
            self.requeue(cpu, curr);
        }
    }

    fn wakeup_preempt(
        &mut self,
        _core: &mut Core,
        _cpu: CpuId,
        _task: TaskId,
        _curr: TaskId,
        _flags: WakeFlags,
    ) {
        // A task that wakes waits for its turn.
    }

    fn newidle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        // A CPU that runs nothing has a reschedule under way and takes its tasks itself.
        let busy = (0..core.nr_cpus()).map(CpuId).filter(|c| core.rq(*c).curr.is_some());
        let may_come =
            |task: &TaskId| !core.is_running(*task) && core.task(*task).cpus_allowed.contains(cpu);
        let first_waiting = busy.filter(|from| *from != cpu).find_map(|from| {
            self.queues[from.index()].iter().copied().find(may_come).map(|task| (from, task))
        });
        let Some((from, task)) = first_waiting else { return false };
        self.forget(from, task);
        core.sub_nr_running(from, 1);
        core.set_task_cpu(task, cpu);
        self.queues[cpu.index()].push_back(task);
        core.add_nr_running(cpu, 1);
        true
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        self.turn_ticks(core, task) * core.tick_nsec
    }
}
