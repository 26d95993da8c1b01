// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real-time class: SCHED_FIFO and SCHED_RR.
//!
//! Each CPU has 100 FIFO lists, one for each priority, and runs the head of the best one. The
//! running task stays in its list. Tasks that wait behind a better one are pushed to CPUs with less
//! important work, or pulled by a CPU whose own work became less important. So the m best tasks run
//! on m CPUs. Two mechanisms keep lower classes from starving. Either the class is throttled after
//! a share of each period ([`throttling`]), or an entity of the deadline class reserves a share for
//! the fair class ([`crate::deadline::fair_server`]).
//!
//! Source: Linux kernel/sched/rt.c, 6.1.158 and 6.12.63. Left out: control groups of real-time
//! tasks, RLIMIT_RTTIME, and the rotation among equally good targets (the model takes the lowest
//! CPU). The time of the chain of interrupts by which a kernel with RT_PUSH_IPI makes others push
//! is left out too.

mod balance;
mod cpupri;
pub mod early;
mod explain;
pub(crate) mod queue;

pub mod throttling;
pub mod tunables;

use crate::boundary::class::{Balances, ClassTraits, SchedClass};
use crate::boundary::core::Core;
use crate::boundary::domains::Domains;
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use cpupri::CpuPri;
use queue::PrioLists;
use schedlab_model::program::{SchedFeature, SchedTunable};
use schedlab_model::{CpuId, CpuMask, Machine, Nanos, Policy, TaskId};
use throttling::Throttling;
pub use tunables::{Bandwidth, RtOptions};

/// Kernel priority of the idle task (MAX_PRIO): worse than that of any task.
const IDLE_PRIO: i32 = 140;

/// Best kernel priority of a fair task (MAX_RT_PRIO): worse than that of any real-time task.
const FAIR_PRIO: i32 = 100;

/// Token of the period timer of throttling.
const TOKEN_PERIOD: u64 = u64::MAX;

/// The class's state of a task.
#[derive(Clone, Copy, Debug)]
struct RtTask {
    /// Ticks left of its SCHED_RR slice.
    time_slice: u32,
    /// Whether it counts among the runnable tasks of its CPU (`on_rt_rq`).
    queued: bool,
}

/// The class.
#[derive(Debug)]
pub struct RtClass {
    domains: Domains,
    /// Runnable tasks, including the running one.
    queues: PrioLists,
    /// Runnable tasks that do not run and may use another CPU.
    pushable: PrioLists,
    /// CPUs with pushable tasks (`rto_mask`).
    overloaded: CpuMask,
    cpupri: CpuPri,
    tasks: Vec<RtTask>,
    nr_running: Vec<u32>,
    /// SCHED_RR slice, in ticks.
    rr_timeslice: u32,
    throttling: Option<Throttling>,
    owns_rr: bool,
    /// Whether the feature RT_PUSH_IPI is on.
    push_ipi: bool,
    /// Whether tunables may change during a run.
    follows_tunables: bool,
}

impl RtClass {
    /// The class for `machine`.
    pub fn new(options: &RtOptions, machine: &Machine) -> Self {
        let nr_cpus = machine.nr_cpus();
        let throttling = match options.bandwidth {
            Bandwidth::Throttling { runtime, period } => {
                Some(Throttling::new(runtime, period, options.runtime_share, nr_cpus))
            }
            Bandwidth::Off | Bandwidth::FairServer { .. } => None,
        };
        Self {
            domains: Domains::new(&machine.topology),
            queues: PrioLists::new(nr_cpus),
            pushable: PrioLists::new(nr_cpus),
            overloaded: CpuMask::empty(),
            cpupri: CpuPri::new(nr_cpus),
            tasks: Vec::new(),
            nr_running: vec![0; nr_cpus as usize],
            rr_timeslice: options.rr_timeslice_ticks(machine.hz),
            throttling,
            owns_rr: true,
            push_ipi: options.push_ipi,
            follows_tunables: false,
        }
    }

    /// The class, of a stack whose tunables may change during a run.
    pub(crate) fn following_tunables(self) -> Self {
        Self { follows_tunables: true, ..self }
    }

    /// The class with bug P13: a limit that is switched on again has no timer.
    pub(crate) fn with_forgotten_timer(self) -> Self {
        let throttling = self.throttling.map(Throttling::with_forgotten_timer);
        Self { throttling, ..self }
    }

    /// The class without SCHED_RR, which a lower class takes.
    pub(crate) fn without_rr(self) -> Self {
        Self { owns_rr: false, ..self }
    }

    fn task(&self, task: TaskId) -> RtTask {
        self.tasks[task.index()]
    }

    /// Runnable tasks of `cpu` in the order in which they would run, for tests and explanations.
    pub fn queued(&self, cpu: CpuId) -> Vec<TaskId> {
        self.queues.iter(cpu).collect()
    }

    fn is_cpu_throttled(&self, cpu: CpuId) -> bool {
        self.throttling.as_ref().is_some_and(|throttling| throttling.is_throttled(cpu))
    }

    /// Charges the CPU time since the last call. Returns true if this throttles the class here.
    fn update_curr(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        let Some(throttling) = &mut self.throttling else { return false };
        let exceeded = throttling.charge(core, cpu);
        if exceeded {
            throttling.start_late(core);
            // The CPU does not see its waiting tasks until the period timer restores them.
            core.sub_nr_running(cpu, self.nr_running[cpu.index()]);
        }
        exceeded
    }

    fn update_cpupri(&mut self, cpu: CpuId) {
        self.cpupri.set(cpu, self.queues.best_prio(cpu));
    }

    fn add_pushable(&mut self, core: &Core, cpu: CpuId, task: TaskId) {
        let t = core.task(task);
        if t.nr_cpus_allowed > 1 {
            self.pushable.remove(task);
            self.pushable.add(cpu, task, t.prio as usize, false);
            self.overloaded.set(cpu);
        }
    }

    fn remove_pushable(&mut self, cpu: CpuId, task: TaskId) {
        self.pushable.remove(task);
        if self.pushable.is_empty(cpu) {
            self.overloaded.clear(cpu);
        }
    }

    /// Takes over `task` on `cpu`, which is its CPU already.
    fn enqueue(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        let prio = core.task(task).prio as usize;
        // A save and restore without a move keeps the place in the list.
        let kept = flags.restore && !flags.moved && self.queues.position(task) == Some((cpu, prio));
        if !kept {
            self.queues.remove(task);
            self.queues.add(cpu, task, prio, flags.head);
        }
        self.tasks[task.index()].queued = true;
        self.nr_running[cpu.index()] += 1;
        if !self.is_cpu_throttled(cpu) {
            core.add_nr_running(cpu, 1);
        }
        self.update_cpupri(cpu);
        if !core.is_running(task) {
            self.add_pushable(core, cpu, task);
        }
        if let Some(throttling) = &mut self.throttling {
            throttling.start_period_timer(core);
        }
    }

    /// Removes `task` from `cpu`. `keep_place` leaves it in its list for the following restore.
    fn dequeue(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, keep_place: bool) {
        self.tasks[task.index()].queued = false;
        if !keep_place {
            self.queues.remove(task);
        }
        self.remove_pushable(cpu, task);
        self.nr_running[cpu.index()] -= 1;
        if !self.is_cpu_throttled(cpu) {
            core.sub_nr_running(cpu, 1);
        }
        self.update_cpupri(cpu);
    }

    /// Priority of the running task of `cpu`.
    fn curr_prio(core: &Core, cpu: CpuId) -> i32 {
        core.rq(cpu).curr.map_or(IDLE_PRIO, |curr| core.task(curr).prio)
    }

    /// The running task of `cpu` if it is of this class.
    fn rt_curr(core: &Core, cpu: CpuId) -> Option<TaskId> {
        let curr = core.rq(cpu).curr?;
        (core.task(curr).class == core.class_of(Policy::Fifo)).then_some(curr)
    }

    /// Handles `task` waiting on `cpu` with the priority of `curr`. If `curr` could run elsewhere
    /// and `task` could not, `task` is placed first so that `curr` is pushed away
    /// (`check_preempt_equal_prio`).
    fn check_preempt_equal_prio(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
    ) {
        let can_leave =
            |id: TaskId| core.task(id).nr_cpus_allowed > 1 && self.lowest_cpus(core, id).is_some();
        if can_leave(curr) && !can_leave(task) {
            self.queues.requeue(task, true);
            core.resched_curr(cpu);
        }
    }
}

impl SchedClass for RtClass {
    fn owns(&self, policy: Policy) -> bool {
        policy == Policy::Fifo || (policy == Policy::Rr && self.owns_rr)
    }

    fn traits(&self) -> ClassTraits {
        ClassTraits {
            acts_without_tasks: false,
            follows_tunables: self.follows_tunables,
            // Both from 6.1 on.
            group_moves_resched: self.follows_tunables,
            balances: Balances::BelowPrev,
            ..ClassTraits::DEFAULT
        }
    }

    fn task_new(&mut self, _core: &mut Core, task: TaskId) {
        let fresh = RtTask { time_slice: self.rr_timeslice, queued: false };
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, fresh);
        }
        self.queues.add_task(task);
        self.pushable.add_task(task);
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        self.enqueue(core, cpu, task, flags);
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        if self.update_curr(core, cpu) && !flags.sleep {
            core.resched_curr(cpu);
        }
        self.dequeue(core, cpu, task, flags.save && !flags.moved);
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        if let Some(curr) = core.rq(cpu).curr {
            self.queues.requeue(curr, false);
        }
    }

    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        _flags: WakeFlags,
    ) {
        let (prio, curr_prio) = (core.task(task).prio, core.task(curr).prio);
        if prio < curr_prio {
            core.resched_curr(cpu);
        } else if prio == curr_prio && !core.rq(cpu).need_resched {
            self.check_preempt_equal_prio(core, cpu, task, curr);
        }
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        self.update_curr(core, cpu);
        let first = self.queues.first(cpu)?;
        if self.is_cpu_throttled(cpu) || core.is_pick_passed_down(cpu) {
            return None;
        }
        core.queue_balance_callback(cpu);
        Some(first)
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, prev: TaskId, _: Option<TaskId>) {
        self.update_curr(core, cpu);
        if self.task(prev).queued {
            self.add_pushable(core, cpu, prev);
        }
    }

    fn set_next_task(&mut self, _core: &mut Core, cpu: CpuId, task: TaskId, _first: bool) {
        self.remove_pushable(cpu, task);
    }

    fn balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        // A DEADLINE task that leaves makes the CPU less important, too (need_pull_rt_task).
        if let Some(prev) = core.rq(cpu).curr
            && !self.task(prev).queued
            && self.queues.best_prio(cpu) as i32 > core.task(prev).prio
        {
            self.pull(core, cpu);
        }
        !self.queues.is_empty(cpu) && !self.is_cpu_throttled(cpu)
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId) {
        if Self::rt_curr(core, cpu).is_some() {
            while self.push(core, cpu, cpu) {}
        }
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        self.select_cpu(core, task, prev, flags.this_cpu)
    }

    fn task_woken(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let t = core.task(task);
        // A DEADLINE task keeps the CPU from it as well as a real-time one.
        let Some(curr) = core.rq(cpu).curr.filter(|curr| core.task(*curr).prio < FAIR_PRIO) else {
            return;
        };
        let stays = core.task(curr).nr_cpus_allowed < 2 || core.task(curr).prio <= t.prio;
        if curr != task && !core.rq(cpu).need_resched && t.nr_cpus_allowed > 1 && stays {
            let this_cpu = core.wake_flags.this_cpu;
            while self.push(core, cpu, this_cpu) {}
        }
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        if self.update_curr(core, cpu) {
            core.resched_curr(cpu);
        }
        if core.task(curr).attr.policy != Policy::Rr {
            return;
        }
        let slice = &mut self.tasks[curr.index()].time_slice;
        *slice = slice.saturating_sub(1);
        if *slice > 0 {
            return;
        }
        *slice = self.rr_timeslice;
        if !self.queues.is_alone(curr) {
            self.queues.requeue(curr, false);
            core.resched_curr(cpu);
        }
    }

    fn switched_from(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        self.queues.remove(task);
        self.update_cpupri(cpu);
        if core.task(task).on_rq && self.nr_running[cpu.index()] == 0 {
            self.pull(core, cpu);
        }
    }

    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        self.tasks[task.index()].time_slice = self.rr_timeslice;
        if !core.task(task).on_rq {
            return;
        }
        if core.is_running(task) {
            // It may have run while better real-time tasks were held back in favour of its old
            // class.
            if core.task(task).prio > self.queues.best_prio(cpu) as i32 {
                core.resched_curr(cpu);
            }
            return;
        }
        if core.task(task).prio < Self::curr_prio(core, cpu) {
            core.resched_curr(cpu);
        } else if core.task(task).nr_cpus_allowed > 1 && Self::rt_curr(core, cpu).is_some() {
            while self.push(core, cpu, cpu) {}
        }
    }

    fn prio_changed(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, old_prio: i32) {
        let prio = core.task(task).prio;
        if !core.task(task).on_rq {
            return;
        }
        if core.is_running(task) {
            if old_prio < prio {
                self.pull(core, cpu);
            }
            if prio > self.queues.best_prio(cpu) as i32 {
                core.resched_curr(cpu);
            }
        } else if prio < Self::curr_prio(core, cpu) {
            core.resched_curr(cpu);
        }
    }

    fn tunable_changed(&mut self, _core: &mut Core, tunable: SchedTunable, value: u64) {
        if tunable == SchedTunable::Feature(SchedFeature::RtPushIpi) {
            self.push_ipi = value == 1;
        }
        let Some(throttling) = &mut self.throttling else { return };
        match tunable {
            SchedTunable::RtRuntime => throttling.set_runtime(value),
            SchedTunable::RtPeriod => throttling.set_period(value),
            SchedTunable::Feature(SchedFeature::RtRuntimeShare) => {
                throttling.set_sharing(value == 1);
            }
            _ => {}
        }
    }

    fn timer(&mut self, core: &mut Core, token: u64) {
        if token == TOKEN_PERIOD {
            self.period_timer(core);
        }
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        match core.task(task).attr.policy {
            Policy::Rr => Nanos::from(self.rr_timeslice) * core.tick_nsec,
            _ => 0,
        }
    }

    fn is_throttled(&self, core: &Core, task: TaskId) -> bool {
        let cpu = core.task(task).cpu;
        self.is_cpu_throttled(cpu) || core.is_pick_passed_down(cpu)
    }
}

impl RtClass {
    /// Ends a period of throttling: CPUs without debt run real-time tasks again.
    fn period_timer(&mut self, core: &mut Core) {
        let nr_running = &self.nr_running;
        let Some(throttling) = &mut self.throttling else { return };
        throttling.period_timer(
            core,
            |cpu| nr_running[cpu.index()],
            |core, cpu| {
                if nr_running[cpu.index()] > 0 {
                    core.add_nr_running(cpu, nr_running[cpu.index()]);
                    core.resched_curr(cpu);
                }
            },
        );
    }
}
