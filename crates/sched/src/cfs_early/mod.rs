// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first CFS: Linux 2.6.23, and the patch v19 before it was merged. Real-time above fair.
//!
//! Every task has an account, `wait_runtime`. While the task waits, it grows by a fair share of the
//! time; while the task runs, it shrinks by the time beyond the share. A CPU's `fair_clock` counts
//! the time that a task of nice 0 would have got. The task with the least `fair_clock -
//! wait_runtime`, in proportion to its weight, is leftmost in a tree. It runs, and stays in the
//! tree. At each tick it is inserted again, and is preempted if the leftmost is ahead by more than
//! a granularity, which shrinks with the number of tasks. A task that slept is credited as if it
//! had waited, up to `runtime_limit`; running tasks are charged for that (`sleeper_bonus`).
//!
//! Files: [`account`] has clocks, accounts and keys; `tick` the effects of ticks, wake-ups, forks
//! and changes of attributes; `balance` several CPUs; [`rules`] versions and tunables. The
//! real-time class is [`crate::rt::early`]. The model has both classes in one [`SchedClass`],
//! because a CPU's load includes both and one function balances both. An idle class needs no code.
//!
//! Source: Linux 2.6.23.17 (a vendor's tree whose scheduler is that of 2.6.23), kernel/sched.c,
//! sched_fair.c, sysctl.c; kernel/sched_fair.c of v19 as it was merged for 2.6.23-rc1.
//!
//! Where the rules are incomplete:
//!
//! - A task released by the launcher has no parent in the run: it is queued with an empty account.
//!   One that exists and wakes has slept since the start.
//! - A child whose attributes differ from its parent's changes them itself at once.
//! - The clock of a runqueue is exact: the kernel lets it run at most a tick ahead of its last
//!   tick, and advances it if time goes backwards.
//!
//! Uncertain: how granularity grows with CPUs in v19, its runtime limit and its balancing (that of
//! 2.6.23 is used); the first slice of SCHED_RR tasks; the constants of domains.
//!
//! Left out: the tick that nanosleep() adds, NUMA nodes and shared caches in balancing, and group
//! scheduling (the code existed, but could not be configured). Also left out: priority inheritance
//! beyond the inherited priority itself.

pub mod account;
mod balance;
mod entity;
mod explain;
pub mod rules;
#[cfg(test)]
mod tests;
mod tick;

use crate::balance::early::{Balancer, versions};
use crate::boundary::class::{ClassTraits, SchedClass};
use crate::boundary::core::Core;
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::boundary::options::Options;
use crate::fair::wmult::LoadWeight;
use crate::kernels;
use crate::rt::early::{RtQueues, SliceRule};
use crate::scheduler::{Claims, Make, Scheduler};
use account::Fair;
use balance::LoadStats;
use entity::{Class, Entity};
use rules::{Rules, TUNABLES, TUNABLES_V19, Values};
use schedlab_model::{Costs, CpuId, KernelVersion, Machine, Nanos, Policy, SchedAttr, TaskId};

/// The kernel of this scheduler; version 19 was a patch to the one before it.
const NEWEST: KernelVersion = KernelVersion::release(2, 6, 23);

const CLAIMS: Claims = Claims {
    // An idle CPU compares load averages. If the difference is small, it pulls no task and stays
    // idle.
    work_conserving: false,
    starvation_free: true,
    fair: true,
    needs_burst: false,
};

/// Linux 2.6.23.
pub fn scheduler() -> Scheduler {
    Scheduler {
        name: "linux-2.6.23".into(),
        summary: "Linux 2.6.23: real-time > fair (CFS by wait_runtime and fair_clock)".into(),
        source: "Linux 2.6.23.17, kernel/sched.c, sched_fair.c, sched_rt.c; the first slice of RR \
             tasks from memory"
            .into(),
        leaves_out:
            "the tick that nanosleep adds, NUMA nodes and shared caches in balancing, group \
                 scheduling (not configurable in this version), the limits of the runqueue clock; \
                 a program is taken to exec when the launcher releases it"
                .into(),
        claims: CLAIMS,
        preempt: kernels::preempt(NEWEST),
        costs: Costs::DEFAULT,
        tunables: TUNABLES.to_vec(),
        digest: None,
        make: Make::new(|options, machine, _| {
            vec![Box::new(FairClock::new(Rules::LINUX_2_6_23, options, machine))]
        }),
    }
}

/// CFS v19.
pub fn cfs_v19() -> Scheduler {
    Scheduler {
        name: "cfs-v19".into(),
        summary: "CFS v19 of July 2007: real-time > fair, with one constant granularity".into(),
        source:
            "kernel/sched_fair.c as merged for Linux 2.6.23-rc1; scaling by CPUs and runtime limit \
             from memory, the rest as in Linux 2.6.23"
                .into(),
        tunables: TUNABLES_V19.to_vec(),
        make: Make::new(|options, machine, _| {
            vec![Box::new(FairClock::new(Rules::CFS_V19, options, machine))]
        }),
        ..scheduler()
    }
}

/// The attributes that a change affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    None,
    Nice,
    Policy,
}

/// The scheduler.
#[derive(Debug)]
pub struct FairClock {
    fair: Fair,
    rt: RtQueues,
    balancer: Balancer,
    load_stats: LoadStats,
    /// The present change of attributes, and the priority before the change.
    change: Change,
    old_prio: i32,
}

impl FairClock {
    /// The scheduler of a version for `machine`.
    pub fn new(rules: Rules, options: &Options, machine: &Machine) -> Self {
        let nr_cpus = machine.nr_cpus();
        let values = Values::new(&rules, options, nr_cpus, machine.hz);
        Self {
            fair: Fair::new(rules, values, nr_cpus),
            rt: RtQueues::new(SliceRule::ByNice, nr_cpus, machine.hz),
            balancer: Balancer::new(versions::LINUX_2_6_23, machine),
            load_stats: LoadStats::new(nr_cpus),
            change: Change::None,
            old_prio: 0,
        }
    }

    /// The class that a task's present priority belongs to.
    #[inline]
    fn class_by_prio(core: &Core, task: TaskId) -> Class {
        if core.task(task).prio < crate::rt::queue::MAX_RT_PRIO as i32 {
            Class::Rt
        } else {
            Class::Fair
        }
    }

    /// Updates the account of the running task of `cpu`.
    #[inline]
    fn update_curr(&mut self, core: &Core, cpu: CpuId) {
        self.fair.update_curr(cpu, core.rq(cpu).curr, core.now);
    }

    /// Puts `task` on the runqueue of its class (`activate_task`).
    fn activate(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, wakeup: bool) {
        let class = Self::class_by_prio(core, task);
        self.fair.entities[task.index()].class = class;
        match class {
            Class::Rt => {
                self.rt.enqueue(core, cpu, task);
                self.fair.entities[task.index()].on_rq = true;
            }
            Class::Fair => self.enqueue_fair(core, cpu, task, wakeup),
        }
        self.count_load(core, cpu, task, true);
    }

    /// Takes `task` off its runqueue (`deactivate_task`).
    fn deactivate(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, sleep: bool) {
        match self.fair.entity(task).class {
            Class::Rt => {
                self.rt.dequeue(task);
                self.fair.entities[task.index()].on_rq = false;
            }
            Class::Fair => self.dequeue_fair(core, cpu, task, sleep),
        }
        self.count_load(core, cpu, task, false);
    }
}

impl SchedClass for FairClock {
    fn owns(&self, policy: Policy) -> bool {
        policy.is_rt() || policy.is_fair()
    }

    fn traits(&self) -> ClassTraits {
        ClassTraits {
            has_quiet_ticks: true,
            timers_follow_tick: !NEWEST.has_high_resolution_timers(),
            ..ClassTraits::DEFAULT
        }
    }

    fn task_new(&mut self, core: &mut Core, task: TaskId) {
        let attr = *core.task(task).attr;
        let is_batch = attr.policy == Policy::Batch;
        let class = Self::class_by_prio(core, task);
        self.fair.add_task(Entity::new(LoadWeight::of_task(&attr), class, is_batch));
    }

    fn task_fork(&mut self, _core: &mut Core, _cpu: CpuId, task: TaskId, parent: Option<TaskId>) {
        self.fair.entities[task.index()].sleep_start_fair = 0;
        if let Some(parent) = parent {
            self.rt.fork(task, parent);
        }
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        core.add_nr_running(cpu, 1);
        if flags.restore {
            self.restore(core, cpu, task);
        } else if flags.initial && self.runs_before_parent(core, cpu, task) {
            self.enqueue_child(core, cpu, task);
        } else {
            self.activate(core, cpu, task, flags.wakeup);
        }
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        core.sub_nr_running(cpu, 1);
        if flags.save {
            // The task stays in place until the change is known.
            self.old_prio = core.task(task).prio;
        } else {
            self.deactivate(core, cpu, task, flags.sleep);
        }
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(curr) = core.rq(cpu).curr else { return };
        match self.fair.entity(curr).class {
            Class::Rt => self.rt.requeue(curr),
            Class::Fair => self.yield_fair(core, cpu, curr),
        }
    }

    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        flags: WakeFlags,
    ) {
        let is_wakeup = !flags.is_fork();
        let is_sync = self.fair.values.sync_wakeups && flags.sync && flags.this_cpu == cpu;
        if !(is_wakeup && is_sync) {
            self.check_preempt_curr(core, cpu, task, curr);
        }
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        self.pick(core, cpu)
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, prev: TaskId, next: Option<TaskId>) {
        let entity = self.fair.entity(prev);
        // After a change of its attributes it continues as before.
        if next != Some(prev) && entity.on_rq && entity.class == Class::Fair {
            self.update_curr(core, cpu);
            self.fair.wait_start(cpu, prev);
        }
    }

    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, first: bool) {
        if first {
            self.start(core, cpu, task);
        }
    }

    fn newidle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        self.balance_newly_idle(core, cpu)
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId) {
        self.finish_push(core, cpu);
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        self.select_cpu(core, task, prev, flags)
    }

    fn migrate_task_rq(&mut self, core: &mut Core, task: TaskId, cpu: CpuId) {
        self.fair.migrate(task, core.task(task).cpu, cpu);
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        match self.fair.entity(curr).class {
            Class::Rt => self.rt.tick(core, cpu, curr),
            Class::Fair => self.tick_fair(core, cpu, curr),
        }
    }

    fn tick_balance(&mut self, core: &mut Core, cpu: CpuId) {
        self.rebalance_ticks(core, cpu);
    }

    fn quiet_ticks(&self, core: &Core, cpu: CpuId, curr: Option<TaskId>) -> u64 {
        let quiet = curr.map_or(u64::MAX, |curr| match self.fair.entity(curr).class {
            Class::Rt => self.rt.quiet_ticks(core, curr),
            Class::Fair => self.fair.quiet_ticks(cpu, curr, core.now, core.tick_nsec),
        });
        if quiet == 0 { 0 } else { quiet.min(self.quiet_balance_ticks(core, cpu)) }
    }

    fn pass_ticks(&mut self, core: &Core, cpu: CpuId, curr: Option<TaskId>, nr: u64) {
        if let Some(curr) = curr {
            match self.fair.entity(curr).class {
                Class::Rt => self.rt.pass_ticks(core, curr, nr),
                Class::Fair => self.fair.pass_ticks(cpu, curr, nr, core.now, core.tick_nsec),
            }
        }
        self.pass_balance_ticks(core, cpu, nr);
    }

    fn prio_changed(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId, _old_prio: i32) {
        // Nothing to do: the callback that put the task back has decided.
    }

    fn attr_changing(&mut self, core: &mut Core, task: TaskId, attr: &SchedAttr) {
        let old = *core.task(task).attr;
        self.change = if (old.policy, old.rt_priority) != (attr.policy, attr.rt_priority) {
            Change::Policy
        } else if old.nice != attr.nice {
            Change::Nice
        } else {
            Change::None
        };
        if !self.fair.entity(task).on_rq {
            self.adopt(task, attr);
        }
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        self.rt.get_rr_interval(core, task)
    }
}
