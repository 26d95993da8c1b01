// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of a task: enqueue, pick, ticks, wake-up, fork, yield, change of attributes.
//!
//! Source: Linux 2.6.23.17, kernel/sched_fair.c (`enqueue_entity`, `dequeue_entity`, `entity_tick`,
//! `check_preempt_curr_fair`, `task_new_fair`, `yield_task_fair`), kernel/sched.c
//! (`wake_up_new_task`, `set_user_nice`, `sched_setscheduler`, `rt_mutex_setprio`).

use super::entity::Class;
use super::rules::{SKIP_INITIAL, START_DEBIT};
use super::{Change, FairClock};
use crate::boundary::core::Core;
use crate::fair::wmult::LoadWeight;
use schedlab_model::{CpuId, Policy, SchedAttr, TaskId};

impl FairClock {
    /// Inserts `task` into the tree.
    pub(super) fn enqueue_fair(&mut self, core: &Core, cpu: CpuId, task: TaskId, wakeup: bool) {
        self.update_curr(core, cpu);
        if wakeup {
            let cpu_load = self.balancer.average(cpu, 2);
            self.fair.credit_sleep(cpu, task, cpu_load);
        }
        if core.rq(cpu).curr != Some(task) {
            self.fair.wait_start(cpu, task);
        }
        self.fair.insert(cpu, task);
    }

    /// Removes `task` from the tree.
    pub(super) fn dequeue_fair(&mut self, core: &Core, cpu: CpuId, task: TaskId, sleep: bool) {
        self.update_curr(core, cpu);
        if core.rq(cpu).curr != Some(task) {
            self.fair.wait_end(cpu, task);
        }
        if sleep {
            let clock = self.fair.cfs[cpu.index()].fair_clock;
            self.fair.entities[task.index()].sleep_start_fair = clock;
        }
        self.fair.remove(cpu, task);
    }

    /// Chooses the task that `cpu` should run.
    pub(super) fn pick(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        if self.balancer.is_pushing(cpu) {
            // The migration thread has precedence.
            return None;
        }
        let curr = core.rq(cpu).curr;
        let stays = curr.filter(|curr| self.fair.entity(*curr).on_rq);
        if stays.is_some() {
            self.update_curr(core, cpu);
        }
        let next = match self.rt.first(cpu) {
            None => self.fair.cfs[cpu.index()].leftmost(),
            first => first,
        };
        if let Some(next) = next.filter(|next| Some(*next) == curr) {
            // A new pick restarts the count of its running time.
            self.fair.entities[next.index()].ran = 0;
        }
        next
    }

    /// Starts to run `task`.
    pub(super) fn start(&mut self, core: &Core, cpu: CpuId, task: TaskId) {
        if self.fair.entity(task).class == Class::Fair {
            self.fair.wait_end(cpu, task);
            self.fair.cfs[cpu.index()].exec_start = core.now;
            self.fair.entities[task.index()].ran = 0;
        }
    }

    /// Handles a tick of running `curr`.
    pub(super) fn tick_fair(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        self.update_curr(core, cpu);
        self.fair.rekey(cpu, curr);
        let rq = &self.fair.cfs[cpu.index()];
        let Some(best) = rq.leftmost().filter(|best| *best != curr) else { return };
        let granularity = self.fair.values.granularity(&self.fair.rules, rq.nr_running);
        if self.fair.gives_way(cpu, best, curr, granularity) {
            core.resched_curr(cpu);
        }
    }

    /// The lead that waking `task` needs.
    pub(super) fn wakeup_granularity(&self, task: TaskId) -> u64 {
        let values = &self.fair.values;
        match self.fair.entity(task).is_batch {
            true => values.batch_wakeup_granularity,
            false => values.wakeup_granularity,
        }
    }

    /// Handles `task` newly queued on `cpu`, which runs `curr`.
    pub(super) fn check_preempt_curr(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
    ) {
        let (woken, running) = (self.fair.entity(task).class, self.fair.entity(curr).class);
        let gives_way = match (woken, running) {
            (_, Class::Rt) => core.task(task).prio < core.task(curr).prio,
            (Class::Rt, Class::Fair) => {
                self.update_curr(core, cpu);
                true
            }
            (Class::Fair, Class::Fair) => {
                let granularity = self.wakeup_granularity(task);
                self.fair.gives_way(cpu, task, curr, granularity)
            }
        };
        if gives_way {
            core.resched_curr(cpu);
        }
    }

    /// Whether new `task` should run before its parent: a process that the running task forked on
    /// this CPU.
    pub(super) fn runs_before_parent(&self, core: &Core, cpu: CpuId, task: TaskId) -> bool {
        let Some(parent) = core.wake_flags.waker else { return false };
        let entity = self.fair.entity(parent);
        self.fair.values.child_runs_first
            && core.rq(cpu).curr == Some(parent)
            && entity.on_rq
            && entity.class == Class::Fair
            && Self::class_by_prio(core, task) == Class::Fair
            && core.task(task).mm != core.task(parent).mm
    }

    /// Inserts new `task` right before its parent, which runs here.
    pub(super) fn enqueue_child(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let Some(parent) = core.rq(cpu).curr else { return };
        let values = self.fair.values;
        if self.fair.rules.updates_at_fork {
            self.update_curr(core, cpu);
        }
        self.fair.entities[task.index()].class = Class::Fair;
        self.fair.wait_start(cpu, task);
        if values.has(SKIP_INITIAL) {
            self.fair.entities[task.index()].wait_start_fair = 0;
        }
        let nr_running = self.fair.cfs[cpu.index()].nr_running;
        let granularity = values.granularity(&self.fair.rules, nr_running);
        if values.has(START_DEBIT) {
            self.fair.entities[task.index()].wait_runtime = -(granularity as i64 / 2);
        }
        let lead = self.fair.niced_granularity(parent, granularity) + 1;
        let key = self.fair.key(parent).wrapping_sub(lead);
        self.fair.insert_at(cpu, task, key as u64);
        self.count_load(core, cpu, task, true);
    }

    /// Handles sched_yield of running `curr`.
    pub(super) fn yield_fair(&mut self, core: &Core, cpu: CpuId, curr: TaskId) {
        let rules = &self.fair.rules;
        if rules.knows_compat_yield && self.fair.cfs[cpu.index()].nr_running == 1 {
            return;
        }
        if !self.fair.values.compat_yield {
            self.update_curr(core, cpu);
            self.fair.rekey(cpu, curr);
            return;
        }
        let last = self.fair.rightmost(cpu);
        if last != curr {
            let key = self.fair.key(last).wrapping_add(1);
            self.fair.move_to(cpu, curr, key as u64);
        }
    }

    /// Takes over the relevant new attributes, and ends the change.
    pub(super) fn adopt(&mut self, task: TaskId, attr: &SchedAttr) {
        let change = std::mem::replace(&mut self.change, Change::None);
        let entity = &mut self.fair.entities[task.index()];
        // A real-time task keeps its weight, whatever its nice value is.
        if change == Change::Policy || (change == Change::Nice && !attr.policy.is_rt()) {
            entity.set_load(LoadWeight::of_task(attr));
        }
        entity.is_batch = attr.policy == Policy::Batch;
    }

    /// Requeues a task after a change of attributes or priority, and acts on the change.
    pub(super) fn restore(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let (old_prio, prio) = (self.old_prio, core.task(task).prio);
        let change = self.change;
        if change == Change::None && old_prio == prio {
            return;
        }
        let attr = *core.task(task).attr;
        let is_running = core.is_running(task);
        self.deactivate(core, cpu, task, false);
        self.adopt(task, &attr);
        self.activate(core, cpu, task, false);
        if is_running && self.fair.entity(task).class == Class::Fair {
            self.fair.cfs[cpu.index()].exec_start = core.now;
        }
        match core.rq(cpu).curr {
            Some(curr) if is_running => {
                debug_assert_eq!(curr, task);
                if prio > old_prio {
                    core.resched_curr(cpu);
                }
            }
            Some(_) | None if change == Change::Nice => {
                if prio < old_prio {
                    core.resched_curr(cpu);
                }
            }
            Some(curr) => self.check_preempt_curr(core, cpu, task, curr),
            None => core.resched_curr(cpu),
        }
    }
}
