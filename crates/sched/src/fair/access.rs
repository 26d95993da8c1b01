// SPDX-License-Identifier: MIT OR Apache-2.0
//! What CPU selection and load balancing know and do: loads, lists of tasks, moves between CPUs.
//!
//! Source: Linux kernel/sched/fair.c (cpu_load, task_h_load, record_wakee, detach_task, attach_task,
//! sched_idle_cpu, task_hot), core.c (update of avg_idle in ttwu_do_activate).

use super::FairClass;
use super::rbtree::NIL;
use crate::core::Core;
use crate::flags::{DequeueFlags, EnqueueFlags};
use schedlab_model::{CpuId, Nanos, Policy, TaskId};

impl FairClass {
    /// Brings the load averages of `cpu` up to date, blocked ones included (update_blocked_averages):
    /// all its queues, lowest groups first.
    pub fn update_blocked_averages(&mut self, now: Nanos, cpu: CpuId) {
        for group in (0..self.groups.len() as u32).rev() {
            let q = group * self.nr_cpus + cpu.0;
            self.update_cfs_rq_load_avg(now, q);
            let se = self.rq(q).se;
            if se != NIL && self.ent(se).avg.attached {
                let above = self.ent(se).cfs;
                self.update_load_avg(now, above, se, super::load::Change::None);
            }
        }
    }

    /// Load average of `cpu`: that of its root queue (cpu_load).
    pub fn cpu_load(&self, cpu: CpuId) -> u64 {
        self.rq(cpu.0).avg.load_avg
    }

    /// Utilisation average of `cpu`, at most its capacity (cpu_util without estimates).
    pub fn cpu_util(&self, cpu: CpuId) -> u64 {
        self.rq(cpu.0).avg.util_avg.min(super::pelt::CAPACITY_SCALE)
    }

    /// Runnable average of `cpu` (cpu_runnable).
    pub fn cpu_runnable(&self, cpu: CpuId) -> u64 {
        self.rq(cpu.0).avg.runnable_avg
    }

    /// Fair tasks of `cpu` that load balancing counts: from the later releases of 6.12 on without those
    /// whose dequeue is delayed (h_nr_running, h_nr_runnable).
    pub fn h_nr_running(&self, cpu: CpuId) -> u32 {
        let rq = self.rq(cpu.0);
        if self.rules.counts_runnable_only { rq.h_nr_runnable } else { rq.h_nr_queued }
    }

    /// Fair tasks of `cpu` whose dequeue is delayed.
    pub fn h_nr_delayed(&self, cpu: CpuId) -> u32 {
        self.rq(cpu.0).h_nr_queued - self.rq(cpu.0).h_nr_runnable
    }

    /// Whether `cpu` has tasks and all of them are SCHED_IDLE (sched_idle_cpu).
    pub fn sched_idle_cpu(&self, core: &Core, cpu: CpuId) -> bool {
        let nr_running = core.rq(cpu).nr_running;
        nr_running > 0 && nr_running == self.rq(cpu.0).h_nr_idle
    }

    /// Load of `task` as a part of its CPU's root queue (task_h_load).
    pub fn task_h_load(&self, task: TaskId) -> u64 {
        let se = self.ent(self.task_entity(task));
        let q = se.cfs;
        if self.rq(q).se == NIL {
            return se.avg.load_avg;
        }
        se.avg.load_avg * self.queue_h_load(q) / (self.rq(q).avg.load_avg + 1)
    }

    /// Utilisation of `task` (task_util).
    pub fn task_util(&self, task: TaskId) -> u64 {
        self.ent(self.task_entity(task)).avg.util_avg
    }

    /// The fair task of `cpu` that was enqueued or set running least recently: the tail of its list.
    pub fn tasks_tail(&self, cpu: CpuId) -> Option<TaskId> {
        self.listed(self.cpus[cpu.index()].tasks_tail)
    }

    /// The task before `task` in its CPU's list, towards the head.
    pub fn tasks_before(&self, task: TaskId) -> Option<TaskId> {
        self.listed(self.ent(self.task_entity(task)).list_prev)
    }

    fn listed(&self, e: u32) -> Option<TaskId> {
        (e != NIL).then(|| self.entity_task(e))
    }

    /// Moves queued `task` to the head of its CPU's list (a task that balancing passed over).
    pub fn tasks_move_to_head(&mut self, task: TaskId) {
        self.list_move_to_head(self.task_entity(task));
    }

    /// Whether `task` is a buddy of its queue, so that it is about to run where it is.
    pub fn is_buddy(&self, task: TaskId) -> bool {
        let e = self.task_entity(task);
        let rq = self.rq(self.ent(e).cfs);
        rq.next == e || rq.last == e
    }

    /// When the running time of `task` was last accounted; 0 if it has just been moved. For the test
    /// of cache-hot tasks.
    pub fn exec_start(&self, task: TaskId) -> Nanos {
        self.ent(self.task_entity(task)).exec_start
    }

    /// Whether the dequeue of `task` is delayed.
    pub fn is_delayed(&self, task: TaskId) -> bool {
        self.ent(self.task_entity(task)).delayed
    }

    /// Takes queued, not running `task` off `cpu` to move it to `dst` (detach_task).
    pub fn detach_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, dst: CpuId) {
        assert!(!core.is_running(task), "task {task} is detached while it runs on CPU {cpu}");
        self.dequeue_task_fair(core, cpu, task, DequeueFlags::NONE);
        core.set_task_cpu(task, dst);
    }

    /// Queues detached `task` on `dst`, with the wake-up preemption check (attach_task).
    pub fn attach_task(&mut self, core: &mut Core, dst: CpuId, task: TaskId) {
        let flags = EnqueueFlags { migrated: true, ..EnqueueFlags::NONE };
        self.enqueue_task_fair(core, dst, task, flags);
        self.check_preempt_any(core, dst, task);
    }

    /// `waker` wakes `wakee`: counts how often it wakes another task than before (record_wakee).
    pub fn record_wakee(&mut self, core: &Core, waker: TaskId, wakee: TaskId) {
        let jiffies = core.jiffies();
        let hz = u64::from(core.hz);
        let e = self.task_entity(waker);
        let wake = &mut self.ent_mut(e).wake;
        if jiffies > wake.flip_decay_jiffies + hz {
            wake.flips >>= 1;
            wake.flip_decay_jiffies = jiffies;
        }
        if wake.last_wakee != wakee.0 {
            wake.last_wakee = wakee.0;
            wake.flips += 1;
        }
    }

    /// How often `task` woke another task than the time before.
    pub fn wakee_flips(&self, task: TaskId) -> u32 {
        self.ent(self.task_entity(task)).wake.flips
    }

    /// Replaces the CPU that `task` used recently by `cpu`; returns the old one.
    pub fn swap_recent_used_cpu(&mut self, task: TaskId, cpu: CpuId) -> Option<CpuId> {
        let e = self.task_entity(task);
        let old = std::mem::replace(&mut self.ent_mut(e).wake.recent_used_cpu, cpu.0);
        (old != NIL).then_some(CpuId(old))
    }

    /// Average length of the idle periods of `cpu` (rq->avg_idle).
    pub fn avg_idle(&self, cpu: CpuId) -> Nanos {
        self.cpus[cpu.index()].avg_idle
    }

    /// `cpu` is about to go idle at `now` (`Some`), or found work after all (`None`) (rq->idle_stamp).
    pub fn set_idle_stamp(&mut self, cpu: CpuId, now: Option<Nanos>) {
        self.cpus[cpu.index()].idle_stamp = now;
    }

    /// Bounds `avg_idle` of `cpu` by twice `cost` (rq->max_idle_balance_cost).
    pub fn set_max_idle_balance_cost(&mut self, cpu: CpuId, cost: Nanos) {
        self.cpus[cpu.index()].max_idle_balance_cost = cost;
    }

    /// A task wakes on `cpu`: ends the idle period (ttwu_do_activate).
    pub(super) fn note_wakeup(&mut self, now: Nanos, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if let Some(stamp) = state.idle_stamp.take() {
            let delta = now.saturating_sub(stamp) as i64;
            let moved = state.avg_idle as i64 + (delta - state.avg_idle as i64) / 8;
            state.avg_idle = (moved.max(0) as u64).min(2 * state.max_idle_balance_cost);
        }
    }

    /// Virtual runtime of `task`, relative to its queue's least one while it is on no queue after a
    /// change (CFS).
    pub fn vruntime(&self, task: TaskId) -> u64 {
        self.ent(self.task_entity(task)).vruntime
    }

    /// Virtual deadline of `task` (EEVDF).
    pub fn deadline(&self, task: TaskId) -> u64 {
        self.ent(self.task_entity(task)).deadline
    }

    /// Lag of `task` in virtual time at its last dequeue (EEVDF).
    pub fn vlag(&self, task: TaskId) -> i64 {
        self.ent(self.task_entity(task)).vlag
    }

    /// Slice of `task` (EEVDF).
    pub fn slice(&self, task: TaskId) -> Nanos {
        self.ent(self.task_entity(task)).slice
    }

    /// Average virtual runtime of the root queue of `cpu` (EEVDF).
    pub fn root_avg_vruntime(&self, cpu: CpuId) -> u64 {
        self.avg_vruntime(cpu.0)
    }

    /// Whether `task` is of policy SCHED_IDLE.
    pub fn has_idle_policy(core: &Core, task: TaskId) -> bool {
        core.task(task).attr.policy == Policy::Idle
    }
}
