// SPDX-License-Identifier: MIT OR Apache-2.0
//! The deadline class: SCHED_DEADLINE, earliest deadline first with a constant bandwidth server for
//! each task.
//!
//! A task has a budget (runtime) in each period. While it has budget, its deadline decides: the
//! runnable task with the earliest one runs. When the budget is used up the task is throttled until
//! its next period, so it cannot take more than runtime/period of a CPU. Its overrun is subtracted
//! from the next budgets. Overruns happen because the budget is checked only at ticks and when the
//! CPU reschedules, unless a timer ends it (the feature HRTICK_DL). Tasks are admitted only if the
//! sum of their shares, and of the [fair servers](fair_server) from 6.12 on, which are in the same
//! queues, stays below the share that `sched_rt_runtime_us` leaves. On several CPUs the m earliest
//! deadlines run on m CPUs: tasks are pushed and pulled as in [`crate::rt`]. A task that holds a
//! mutex for which a task of this class waits runs with the parameters of the latter.
//!
//! Source: Linux kernel/sched/deadline.c, cpudeadline.c and core.c (rt_mutex_setprio), 6.12.63. The
//! modelled part of 6.1.158 is identical, except [`grub`]. Left out: SCHED_FLAG_DL_OVERRUN (a
//! signal), and the rotation among equally good targets. The model takes the lowest of several free
//! CPUs, and the highest of several CPUs with the latest deadline.

mod active;
mod admission;
mod balance;
pub mod cbs;
mod explain;
pub mod fair_server;
pub mod grub;
mod hrtick;
mod queue;
mod serving;
pub mod tunables;

use crate::boundary::class::{Balances, ClassTraits, SchedClass};
use crate::boundary::core::Core;
use crate::boundary::domains::Domains;
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::boundary::hrtick::Hrticks;
use active::Counted;
use admission::Admission;
use cbs::Entity;
use grub::Grub;
use queue::{CpuDl, DeadlineQueues, First};
use schedlab_model::{CpuId, CpuMask, Machine, Nanos, Policy, SchedAttr, TaskId};
use serving::Serving;
pub use tunables::DlOptions;

/// The class's state of a task.
#[derive(Clone, Copy, Debug, Default)]
struct DlTask {
    entity: Entity,
    /// CPU time charged so far (ns).
    exec_seen: Nanos,
    /// Share of a CPU that admission counts for it. After the task leaves, it counts until the
    /// 0-lag time.
    admitted: u64,
    counted: Counted,
    /// Number of the last renewal timer; older timers are invalid.
    replenishment: u32,
    /// Number of the last departure timer; older timers are invalid.
    departure: u32,
    /// Whether parameters have been lent to it since it was last queued.
    lent_anew: bool,
}

/// The purpose of a timer; with the numbers of task and timer it forms a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimerKind {
    /// Renews the budget (`dl_timer`).
    Replenish,
    /// The 0-lag time of a task that blocked or left (`inactive_timer`).
    Inactive,
}

/// The class.
#[derive(Debug)]
pub struct DlClass {
    options: DlOptions,
    domains: Domains,
    /// Runnable tasks with budget, including the running one.
    queues: DeadlineQueues,
    /// Waiting tasks that may use another CPU.
    pushable: DeadlineQueues,
    /// CPUs with pushable tasks (`dlo_mask`).
    overloaded: CpuMask,
    cpudl: CpuDl,
    tasks: Vec<DlTask>,
    admission: Admission,
    grub: Grub,
    /// Servers, from 6.12 on.
    serving: Option<Serving>,
    /// High-resolution ticks, only with the feature HRTICK_DL.
    hrtick: Option<Box<Hrticks>>,
}

impl DlClass {
    /// The class for `machine`.
    pub fn new(options: DlOptions, machine: &Machine) -> Self {
        let nr_cpus = machine.nr_cpus();
        Self {
            options,
            domains: Domains::new(&machine.topology),
            queues: DeadlineQueues::new(nr_cpus),
            pushable: DeadlineQueues::new(nr_cpus),
            overloaded: CpuMask::empty(),
            cpudl: CpuDl::new(nr_cpus),
            tasks: Vec::new(),
            admission: Admission::new(&options, nr_cpus),
            grub: Self::grub(&options, machine),
            serving: Serving::new(&options, nr_cpus),
            hrtick: options.hrtick.map(|rule| Hrticks::new(rule, machine)),
        }
    }

    /// Bandwidths with the fair servers admitted.
    fn grub(options: &DlOptions, machine: &Machine) -> Grub {
        let mut grub = Grub::new(options.grub, options.limit, machine.nr_cpus());
        // A machine on which tasks exist before the run has made its domains again for it.
        let renews = machine.set_up_ns > 0;
        grub.admit_servers(options.server_bandwidth(), options.servers_taken, renews);
        grub
    }

    /// Budget and deadline of `task`, for tests.
    pub fn entity(&self, task: TaskId) -> &Entity {
        &self.tasks[task.index()].entity
    }

    fn deadline(&self, task: TaskId) -> Nanos {
        self.entity(task).deadline
    }

    /// The running task of `cpu` if it is of this class.
    fn dl_curr(core: &Core, cpu: CpuId) -> Option<TaskId> {
        let curr = core.rq(cpu).curr?;
        (core.task(curr).class == core.class_of(Policy::Deadline)).then_some(curr)
    }

    fn add_pushable(&mut self, core: &Core, cpu: CpuId, task: TaskId) {
        if core.task(task).nr_cpus_allowed > 1 {
            self.pushable.add(cpu, task, self.tasks[task.index()].entity.deadline);
            self.overloaded.set(cpu);
        }
    }

    fn remove_pushable(&mut self, cpu: CpuId, task: TaskId) {
        self.pushable.remove(task);
        if self.pushable.is_empty(cpu) {
            self.overloaded.clear(cpu);
        }
    }

    /// Handles a change in the queue of `cpu`: updates its earliest deadline, and whether real-time
    /// tasks avoid it.
    fn update_cpu(&mut self, core: &mut Core, cpu: CpuId) {
        self.cpudl.set(cpu, self.queues.earliest(cpu));
        core.claim_cpu(cpu, !self.queues.is_empty(cpu));
    }

    /// Adds `task`, which has budget, to the runnable tasks of `cpu`.
    fn queue(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        self.queues.add(cpu, task, self.tasks[task.index()].entity.deadline);
        core.add_nr_running(cpu, 1);
        self.update_cpu(core, cpu);
        if !core.is_running(task) {
            self.add_pushable(core, cpu, task);
        }
    }

    fn unqueue(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        if self.queues.contains(task) {
            self.queues.remove(task);
            core.sub_nr_running(cpu, 1);
            self.update_cpu(core, cpu);
        }
        self.remove_pushable(cpu, task);
    }

    /// Charges the running task of `cpu` for the CPU time since the last call. Throttles it if its
    /// budget is used up or given up (`update_curr_dl`).
    fn update_curr(&mut self, core: &mut Core, cpu: CpuId) {
        self.update_curr_ahead(core, cpu, 0);
    }

    /// As `update_curr`, with `ahead_ns` that a turn began before its switch.
    fn update_curr_ahead(&mut self, core: &mut Core, cpu: CpuId, ahead_ns: Nanos) {
        let Some(curr) = Self::dl_curr(core, cpu) else { return };
        let exec = core.sum_exec_runtime(curr) + ahead_ns;
        let task = &mut self.tasks[curr.index()];
        let delta = exec.saturating_sub(task.exec_seen);
        task.exec_seen = task.exec_seen.max(exec);
        if !self.queues.contains(curr) {
            // A throttled task is not charged for the way to the switch.
            return;
        }
        let charged = self.charged(cpu, curr, delta);
        let entity = &mut self.tasks[curr.index()].entity;
        entity.runtime -= charged as i64;
        let is_over = delta > 0 && entity.is_exceeded();
        if !(is_over || entity.yielded) || entity.throttled {
            return;
        }
        self.unqueue(core, cpu, curr);
        // A task that runs for a waiting deadline task is not throttled: it gets another period.
        let is_lent = self.entity(curr).lent.is_some();
        if is_lent || !self.throttle(core, curr) {
            self.tasks[curr.index()].entity.replenish(core.now);
            self.queue(core, cpu, curr);
        }
        if !self.is_first(cpu, curr) {
            core.resched_curr(cpu);
        }
    }

    /// Whether the deadline of `task` is the earliest of `cpu`.
    fn is_first(&self, cpu: CpuId, task: TaskId) -> bool {
        self.queues.first(cpu) == Some(First::Task(task))
    }

    /// Throttles `task` until its next period. Returns false if that has already begun.
    fn throttle(&mut self, core: &mut Core, task: TaskId) -> bool {
        let state = &mut self.tasks[task.index()];
        let Some(at) = state.entity.timer_at(core.now) else { return false };
        state.entity.throttled = true;
        state.replenishment += 1;
        let at = core.at_hrtimer_clock(at);
        core.start_timer(at, token(TimerKind::Replenish, task, state.replenishment));
        true
    }

    /// Sets budget and deadline of a task that becomes runnable.
    fn refresh(&mut self, core: &mut Core, task: TaskId, flags: EnqueueFlags) {
        let now = core.now;
        let attr = &core.task(task).attr;
        let own = if attr.policy == Policy::Deadline { attr.deadline } else { Default::default() };
        let state = &mut self.tasks[task.index()];
        let entity = &mut state.entity;
        entity.set_params(&own);
        if flags.restore {
            if std::mem::take(&mut state.lent_anew) {
                entity.replenish(now);
            } else if !entity.throttled
                && entity.lent.is_none()
                && (entity.is_new() || entity.deadline < now)
            {
                entity.start_period(now);
            }
            return;
        }
        let waits = !entity.throttled && entity.lent.is_none() && entity.wakes_between(now);
        if waits && self.throttle(core, task) {
            let entity = &mut self.tasks[task.index()].entity;
            entity.runtime = entity.runtime.min(0);
            return;
        }
        let entity = &mut self.tasks[task.index()].entity;
        if !entity.throttled {
            entity.wake(now);
        }
    }

    /// Whether `task` is before `other` (`dl_entity_preempt`).
    fn is_earlier(&self, task: TaskId, other: TaskId) -> bool {
        self.deadline(task) < self.deadline(other)
    }

    /// `task` has the deadline of `curr`. If `curr` could run elsewhere and `task` could not,
    /// `task` preempts `curr`, which is pushed (`check_preempt_equal_dl`).
    fn check_preempt_equal(&self, core: &mut Core, cpu: CpuId, task: TaskId, curr: TaskId) {
        let can_leave = |id: TaskId| {
            let t = core.task(id);
            let target = self.cpudl.find(&t.cpus_allowed, self.deadline(id));
            t.nr_cpus_allowed > 1 && target.is_some()
        };
        if can_leave(curr) && !can_leave(task) {
            core.resched_curr(cpu);
        }
    }

    /// Handles `task` leaving the class or exiting: its budget is lost.
    fn depart(&mut self, core: &mut Core, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        state.replenishment += 1;
        (state.entity.throttled, state.entity.yielded) = (false, false);
        self.stop_contending(core, task, true);
    }

    /// Handles the renewal of the budget of `task` (`dl_task_timer`).
    fn replenish_timer(&mut self, core: &mut Core, task: TaskId) {
        let t = core.task(task);
        let (cpu, on_rq) = (t.cpu, t.on_rq);
        self.tasks[task.index()].entity.replenish(core.now);
        if !on_rq {
            return;
        }
        self.queue(core, cpu, task);
        match Self::dl_curr(core, cpu) {
            Some(curr) => self.preempt(core, cpu, task, curr),
            None => core.resched_curr(cpu),
        }
        if !self.pushable.is_empty(cpu) {
            self.push(core, cpu, cpu);
        }
    }

    fn preempt(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, curr: TaskId) {
        if self.is_earlier(task, curr) {
            core.resched_curr(cpu);
        } else if self.deadline(task) == self.deadline(curr) && !core.rq(cpu).need_resched {
            self.check_preempt_equal(core, cpu, task, curr);
        }
    }
}

/// Bit of a token that marks a timer of a fair server. The low bits are then its CPU.
const SERVER: u64 = 1 << 62;

fn token(kind: TimerKind, task: TaskId, number: u32) -> u64 {
    // Thirty bits distinguish the timers of a task: old ones expire long before they wrap.
    u64::from(kind == TimerKind::Inactive) << 63
        | u64::from(number & (u32::MAX >> 2)) << 32
        | u64::from(task.0)
}

impl DlClass {
    /// The timer of a task with this token, unless it is not set any more.
    fn task_timer(&self, token_seen: u64) -> Option<(TimerKind, TaskId)> {
        let task = TaskId(token_seen as u32);
        let state = &self.tasks[task.index()];
        if token_seen == token(TimerKind::Replenish, task, state.replenishment) {
            return state.entity.throttled.then_some((TimerKind::Replenish, task));
        }
        let is_inactive = token_seen == token(TimerKind::Inactive, task, state.departure);
        is_inactive.then_some((TimerKind::Inactive, task))
    }
}

/// Token of the timer that queues the fair server of `cpu`.
fn token_of_server(cpu: CpuId) -> u64 {
    SERVER | u64::from(cpu.0)
}

/// Token of the 0-lag time of the fair server of `cpu`.
fn token_of_inactive_server(cpu: CpuId, number: u32) -> u64 {
    SERVER | token(TimerKind::Inactive, TaskId(cpu.0), number)
}

/// Token of the high-resolution tick of `cpu`.
const fn token_of_hrtick(cpu: CpuId) -> u64 {
    SERVER | 1 << 32 | cpu.0 as u64
}

impl SchedClass for DlClass {
    fn owns(&self, policy: Policy) -> bool {
        policy == Policy::Deadline
    }

    fn traits(&self) -> ClassTraits {
        ClassTraits {
            acts_without_tasks: false,
            // It has none of those that may change.
            follows_tunables: true,
            group_moves_resched: true,
            balances: Balances::BelowPrev,
            ..ClassTraits::DEFAULT
        }
    }

    fn serves(&self, policy: Policy) -> bool {
        // Without tasks that could starve them, fair tasks need no server.
        self.owns(policy) || (policy.is_rt() && self.serving.is_some())
    }

    fn admit(&mut self, core: &Core, task: TaskId, attr: &SchedAttr) -> Result<(), String> {
        self.admit_task(core, task, attr)
    }

    fn run_begins(&mut self, core: &mut Core) {
        self.start_servers(core);
    }

    fn task_new(&mut self, _core: &mut Core, task: TaskId) {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, DlTask::default());
        }
        self.queues.add_task(task);
        self.pushable.add_task(task);
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        self.contend(core, cpu, task);
        self.refresh(core, task, flags);
        if !self.tasks[task.index()].entity.throttled {
            self.queue(core, cpu, task);
        }
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        let after_clock_ns = std::mem::take(&mut core.work.after_clock_ns);
        if Self::dl_curr(core, cpu) == Some(task) {
            // What it takes on the way to the switch is not charged any more.
            self.tasks[task.index()].exec_seen += after_clock_ns;
        }
        self.update_curr(core, cpu);
        self.unqueue(core, cpu, task);
        if flags.special {
            self.depart(core, task);
        } else if flags.sleep {
            self.stop_contending(core, task, false);
        } else {
            self.uncount(task);
        }
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        if let Some(curr) = Self::dl_curr(core, cpu) {
            self.tasks[curr.index()].entity.yielded = true;
            self.update_curr(core, cpu);
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
        self.preempt(core, cpu, task, curr);
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        self.update_curr(core, cpu);
        let picked = self.pick(core, cpu);
        if self.hrtick.is_some() {
            self.hrtick_pick(core, cpu, picked);
        }
        picked
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, prev: TaskId, _: Option<TaskId>) {
        self.update_curr(core, cpu);
        if self.queues.contains(prev) {
            self.add_pushable(core, cpu, prev);
        }
    }

    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, first: bool) {
        self.tasks[task.index()].exec_seen = core.sum_exec_runtime(task);
        self.remove_pushable(cpu, task);
        if first && !self.pushable.is_empty(cpu) {
            core.queue_balance_callback(cpu);
        }
        if first {
            self.hrtick_start(core, cpu, task);
        }
    }

    fn balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        if let Some(prev) = Self::dl_curr(core, cpu)
            && !self.queues.contains(prev)
        {
            self.pull(core, cpu);
        }
        !self.queues.is_empty(cpu)
    }

    fn newidle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        self.server_found_nobody(core, cpu)
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId) {
        if Self::dl_curr(core, cpu).is_some() {
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
        self.select_cpu(core, task, prev, flags)
    }

    fn task_woken(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let Some(curr) = Self::dl_curr(core, cpu) else { return };
        let stays = core.task(curr).nr_cpus_allowed < 2 || !self.is_earlier(task, curr);
        let may_leave = core.task(task).nr_cpus_allowed > 1;
        if curr != task && !core.rq(cpu).need_resched && may_leave && stays {
            let this_cpu = core.wake_flags.this_cpu;
            while self.push(core, cpu, this_cpu) {}
        }
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, _curr: TaskId) {
        self.update_curr_ahead(core, cpu, core.tick_budget_lead_ns);
    }

    fn tick_balance(&mut self, core: &mut Core, cpu: CpuId) {
        if self.update_server(core, cpu) {
            core.resched_curr(cpu);
        }
    }

    fn woken_below(&mut self, core: &mut Core, cpu: CpuId) {
        self.server_hears(core, cpu);
    }

    fn switched_from(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        self.depart(core, task);
        if core.task(task).on_rq && self.queues.is_empty(cpu) {
            self.pull(core, cpu);
        }
    }

    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        if !core.task(task).on_rq {
            return;
        }
        if core.is_running(task) {
            if !self.is_first(cpu, task) {
                core.resched_curr(cpu);
            }
            return;
        }
        if core.task(task).nr_cpus_allowed > 1 && self.overloaded.contains(cpu) {
            while self.push(core, cpu, cpu) {}
        }
        match Self::dl_curr(core, cpu) {
            Some(curr) => self.preempt(core, cpu, task, curr),
            None => core.resched_curr(cpu),
        }
    }

    fn lend(&mut self, _core: &Core, task: TaskId, donor: Option<TaskId>) {
        // A task with lent parameters lends these on.
        let lent = donor.map(|donor| self.entity(donor).params());
        let state = &mut self.tasks[task.index()];
        state.entity.lent = lent;
        state.lent_anew = lent.is_some();
        if state.lent_anew {
            // It may have been throttled when it began to wait for another mutex.
            state.entity.throttled = false;
            state.replenishment += 1;
        }
    }

    fn waiter_key(&self, task: TaskId) -> Nanos {
        self.deadline(task)
    }

    fn prio_changed(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _old_prio: i32) {
        if !core.task(task).on_rq {
            return;
        }
        if !self.overloaded.contains(cpu) {
            self.pull(core, cpu);
        }
        let gives_way = match Self::dl_curr(core, cpu) {
            Some(curr) if curr == task => {
                self.queues.earliest(cpu).is_some_and(|first| first < self.deadline(task))
            }
            Some(curr) => self.is_earlier(task, curr),
            None => true,
        };
        if gives_way {
            core.resched_curr(cpu);
        }
    }

    fn timer(&mut self, core: &mut Core, token_seen: u64) {
        if token_seen & SERVER != 0 {
            let cpu = CpuId(token_seen as u32);
            if token_seen == token_of_server(cpu) {
                self.server_timer(core, cpu);
            } else if token_seen == token_of_hrtick(cpu) {
                self.hrtick_timer(core, cpu);
            } else {
                self.server_inactive(cpu, (token_seen >> 32) as u32 & (u32::MAX >> 2));
            }
            return;
        }
        let Some((kind, task)) = self.task_timer(token_seen) else { return };
        core.work.timer_ended = Some(core.task(task).cpu);
        match kind {
            TimerKind::Replenish => self.replenish_timer(core, task),
            TimerKind::Inactive => {
                core.work.is_inactive_timer = true;
                self.become_inactive(task);
            }
        }
    }

    fn timer_cpu(&self, core: &Core, token_seen: u64) -> Option<CpuId> {
        if token_seen & SERVER != 0 {
            return None;
        }
        self.task_timer(token_seen).map(|(_, task)| core.task(task).cpu)
    }

    fn is_throttled(&self, _core: &Core, task: TaskId) -> bool {
        self.entity(task).throttled
    }
}
