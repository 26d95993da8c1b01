// SPDX-License-Identifier: MIT OR Apache-2.0
//! The view of CPU selection and load balancing: loads, lists of tasks, moves between CPUs.
//!
//! Source: Linux kernel/sched/fair.c (cpu_load, task_h_load, record_wakee, detach_task,
//! attach_task, sched_idle_cpu, update_blocked_averages), core.c (avg_idle in ttwu_do_activate),
//! 6.1 and 6.12.

use super::FairClass;
use super::load::Change;
use super::pelt::CAPACITY_SCALE;
use super::rbtree::NIL;
use crate::balance::{CpuFigures, FairQueues};
use crate::boundary::core::Core;
use crate::boundary::flags::{DequeueFlags, EnqueueFlags};
use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

impl FairQueues for FairClass {
    fn h_nr_running(&self, cpu: CpuId) -> u32 {
        let rq = self.rq(cpu.0);
        if self.rules.counts_runnable_only { rq.h_nr_runnable } else { rq.h_nr_queued }
    }

    fn h_nr_delayed(&self, cpu: CpuId) -> u32 {
        let rq = self.rq(cpu.0);
        rq.h_nr_queued - rq.h_nr_runnable
    }

    fn sched_idle_cpu(&self, core: &Core, cpu: CpuId) -> bool {
        let nr_running = core.rq(cpu).nr_running;
        nr_running > 0 && nr_running == self.rq(cpu.0).h_nr_idle
    }

    fn update_averages(&mut self, core: &Core, cpu: CpuId) {
        // Parents have lower numbers than their children: from the last to the first.
        for group in (0..self.groups.len() as u32).rev() {
            let q = group * self.nr_cpus + cpu.0;
            self.update_cfs_rq_load_avg(core.now, q);
            self.update_tg_load_avg(core.now, q);
            let se = self.rq(q).se;
            if se != NIL && self.ent(se).avg.is_attached() {
                let above = self.ent(se).cfs;
                self.update_load_avg(core.now, above, se, Change::None);
            }
        }
    }

    fn cpu_load(&self, cpu: CpuId) -> u64 {
        self.rq(cpu.0).avg.load_avg
    }

    fn cpu_util(&self, cpu: CpuId) -> u64 {
        let estimate = self.cpus[cpu.index()].util_est;
        self.rq(cpu.0).avg.util_avg.max(estimate).min(CAPACITY_SCALE)
    }

    fn cpu_runnable(&self, cpu: CpuId) -> u64 {
        self.rq(cpu.0).avg.runnable_avg
    }

    #[inline]
    fn cpu_figures(&self, cpu: CpuId) -> CpuFigures {
        let rq = self.rq(cpu.0);
        CpuFigures {
            load: rq.avg.load_avg,
            util: self.cpu_util(cpu),
            runnable: rq.avg.runnable_avg,
            h_nr_running: self.h_nr_running(cpu),
        }
    }

    fn take_touched(&mut self) -> Option<CpuMask> {
        Some(std::mem::replace(&mut self.touched, CpuMask::empty()))
    }

    fn may_have_sched_idle(&self) -> bool {
        self.has_sched_idle
    }

    fn task_h_load(&self, task: TaskId) -> u64 {
        let se = self.ent(self.task_entity(task));
        let q = se.cfs;
        if self.rq(q).se == NIL {
            return se.avg.get().load_avg;
        }
        se.avg.get().load_avg * self.queue_h_load(q) / (self.rq(q).avg.load_avg + 1)
    }

    fn task_util(&self, task: TaskId) -> u64 {
        self.ent(self.task_entity(task)).avg.get().util_avg
    }

    fn exec_start(&self, task: TaskId) -> Nanos {
        self.ent(self.task_entity(task)).exec_start
    }

    fn is_buddy(&self, task: TaskId) -> bool {
        let e = self.task_entity(task);
        let rq = self.rq(self.ent(e).cfs);
        rq.next == e || rq.last == e
    }

    fn tasks_tail(&self, cpu: CpuId) -> Option<TaskId> {
        self.listed(self.cpus[cpu.index()].tasks_tail)
    }

    fn tasks_before(&self, task: TaskId) -> Option<TaskId> {
        self.listed(self.ent(self.task_entity(task)).list_prev)
    }

    fn tasks_move_to_head(&mut self, task: TaskId) {
        self.list_move_to_head(self.task_entity(task));
    }

    fn record_wakee(&mut self, core: &Core, waker: TaskId, task: TaskId) {
        let jiffies = core.jiffies();
        let e = self.task_entity(waker);
        let wake = &mut self.ent_mut(e).wake;
        if jiffies > wake.flip_decay_jiffies + u64::from(core.hz) {
            wake.flips >>= 1;
            wake.flip_decay_jiffies = jiffies;
        }
        if wake.last_wakee != task.0 {
            wake.last_wakee = task.0;
            wake.flips += 1;
        }
    }

    fn wakee_flips(&self, task: TaskId) -> u32 {
        self.ent(self.task_entity(task)).wake.flips
    }

    fn swap_recent_used_cpu(&mut self, task: TaskId, cpu: CpuId) -> Option<CpuId> {
        let e = self.task_entity(task);
        let old = std::mem::replace(&mut self.ent_mut(e).wake.recent_used_cpu, cpu.0);
        (old != NIL).then_some(CpuId(old))
    }

    fn avg_idle(&self, cpu: CpuId) -> Nanos {
        self.cpus[cpu.index()].avg_idle
    }

    fn set_idle_stamp(&mut self, cpu: CpuId, now: Option<Nanos>) {
        self.cpus[cpu.index()].idle_stamp = now;
    }

    fn set_max_idle_balance_cost(&mut self, cpu: CpuId, cost: Nanos) {
        self.cpus[cpu.index()].max_idle_balance_cost = cost;
    }

    fn is_throttled_on(&self, core: &Core, task: TaskId, cpu: CpuId) -> bool {
        self.bandwidth.is_some() && self.is_hierarchy_throttled(self.queue_of(core, task, cpu))
    }

    fn detach_task(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId) {
        self.dequeue_task_fair(core, from, task, DequeueFlags::NONE);
        core.set_task_cpu(task, to);
    }

    fn attach_task(&mut self, core: &mut Core, task: TaskId, to: CpuId, preempt: bool) {
        let flags = EnqueueFlags { migrated: true, ..EnqueueFlags::NONE };
        self.enqueue_task_fair(core, to, task, flags);
        self.ent_mut(self.task_entity(task)).exec_start = 0;
        if preempt {
            self.check_preempt_any(core, to, task);
        }
    }
}

impl FairClass {
    fn listed(&self, e: u32) -> Option<TaskId> {
        (e != NIL).then(|| self.entity_task(e))
    }

    /// Handles a wake-up on `cpu`: ends the idle period (ttwu_do_activate).
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

    /// Whether `task` sleeps with a delayed dequeue (EEVDF from 6.12 on).
    pub fn is_delayed(&self, task: TaskId) -> bool {
        self.ent(self.task_entity(task)).delayed
    }

    /// Fair tasks of `cpu` whose dequeue is delayed.
    pub fn h_nr_delayed(&self, cpu: CpuId) -> u32 {
        self.rq(cpu.0).h_nr_queued - self.rq(cpu.0).h_nr_runnable
    }

    /// Slice of `task` (EEVDF).
    pub fn slice(&self, task: TaskId) -> Nanos {
        self.ent(self.task_entity(task)).slice
    }

    /// Average virtual runtime of the root queue of `cpu` (EEVDF).
    pub fn root_avg_vruntime(&self, cpu: CpuId) -> u64 {
        self.avg_vruntime(cpu.0)
    }
}
