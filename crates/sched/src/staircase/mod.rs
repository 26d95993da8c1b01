// SPDX-License-Identifier: MIT OR Apache-2.0
//! The staircase schedulers of Con Kolivas (2007): the Rotating Staircase Deadline scheduler (RSDL)
//! and its successor, Staircase Deadline (SD).
//!
//! Sleep is not measured. A nice value determines in how many of 40 slots a task may run in a
//! rotation, and for how long in each. The tasks of the best slot with tasks run in turn. A task
//! that has used its time in a slot moves down to its next one, and after the last one to the
//! expired array. When the active array is empty, the two are swapped and a new rotation begins. A
//! task that sleeps keeps its slot and its time, so when it wakes it is ahead of tasks that moved
//! down meanwhile.
//!
//! `sd.rs` and `rsdl.rs` have the differences between the two. There are no classes: real-time
//! tasks have separate lists before all slots.
//!
//! Source: SD is the patch 2.6.22-ck1 (SD 0.48) to Linux 2.6.22, kernel/sched.c. No source of RSDL
//! was available. Its outline is that of its announcement (linux-kernel, 4 March 2007) and of LWN,
//! "The Rotating Staircase Deadline Scheduler"; its constants and details are from memory.
//!
//! Where the rules are incomplete:
//!
//! - A task released by the launcher has no parent: it starts a new rotation.
//! - A child inherits its parent's slot and used part of the rotation, if it has the same policy
//!   and nice value.
//! - SCHED_IDLE is SD's SCHED_IDLEPRIO: such tasks run only when no other is runnable. The kernel
//!   gives them the ms of a rotation as a number of us, so a turn of nice 0 ends at the next tick.
//!   RSDL has neither it nor SCHED_BATCH: both are SCHED_OTHER there.
//! - The kernel doubts its clock: more than two ticks since the last charge at a tick, or more than
//!   one at a switch, are wrong. Here a tick comes every 1/HZ, so neither happens. A time of 0 at a
//!   switch counts as 1 us, as in the kernel.
//!
//! On several CPUs both balance like 2.6.22 ([`crate::balance::early`]); `balance.rs` has the
//! differences.
//!
//! Left out: SCHED_ISO, which the model does not have; the tick that nanosleep() adds; priority
//! inheritance; for balancing, what `balance.rs` and [`crate::balance::early`] list.

mod balance;
mod explain;
pub mod matrix;
mod rsdl;
mod sd;
mod tasks;
#[cfg(test)]
mod testing;
mod tick;
mod variants;

use crate::balance::early::{Balancer, CACHE_HOT, look, versions};
use crate::boundary::class::{ClassTraits, SchedClass};
use crate::boundary::core::Core;
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::boundary::options::Options;
use crate::rt::queue::PrioLists;
use matrix::SLOTS;
use schedlab_model::{CpuId, Machine, Nanos, Policy, SchedAttr, TaskId};
use tasks::{Entry, Kind};
use variants::{NEWEST, Rules};
pub use variants::{rsdl_0_31, sd_0_48};

/// No array.
const NO_ARRAY: u8 = 2;
/// Priority of the first slot.
const FIRST_SLOT: i32 = 100;
/// Priority of tasks that run when no other does.
const IDLE_PRIO: i32 = 140;

/// Why the last pick of a CPU chose its task, for explanations.
#[derive(Clone, Copy, Debug)]
struct Pick {
    task: Option<TaskId>,
    /// The CPU's rotation at that time.
    rotation: u64,
    /// Whether it was the first pick of that rotation.
    is_first: bool,
}

/// The scheduler's state of a CPU.
#[derive(Clone, Debug)]
struct Rq {
    /// Which of the two arrays is active.
    active: u8,
    /// Number of the rotation (`prio_rotation`).
    rotation: u64,
    /// Best user priority that has run from, or waits in, each array (`best_static_prio`).
    best_static: [u8; 2],
    /// SD: the slot that each user priority has reached (`prio_level`).
    reached: [u8; SLOTS as usize],
    /// RSDL: ticks left of each level.
    quota: [i64; SLOTS as usize],
    /// RSDL: the running level.
    level: u8,
    pick: Pick,
}

impl Rq {
    const NEW: Self = Self {
        active: 0,
        rotation: 1,
        best_static: [SLOTS - 1; 2],
        reached: [0; SLOTS as usize],
        quota: [0; SLOTS as usize],
        level: 0,
        pick: Pick { task: None, rotation: 1, is_first: false },
    };

    const fn expired(&self) -> u8 {
        1 - self.active
    }

    /// Starts the slots of all tasks again (`reset_prio_levels`).
    fn reset_levels(&mut self) {
        self.best_static = [SLOTS - 1; 2];
        self.reached = [0; SLOTS as usize];
        self.quota = [0; SLOTS as usize];
    }

    /// Swaps the arrays.
    fn swap(&mut self) {
        self.active = self.expired();
        self.rotation += 1;
        self.reset_levels();
    }
}

/// The scheduler.
#[derive(Debug)]
pub struct Staircase {
    rules: Rules,
    /// Length of the interval: ms (SD) or ticks (RSDL).
    rr: i64,
    /// SD: whether only a task's own history limits its slots.
    interactive: bool,
    honours_sync: bool,
    /// Real-time tasks by priority.
    rt: PrioLists,
    /// Tasks by slot; two arrays for each CPU.
    slots: PrioLists,
    /// Tasks that run when no other does, in one list for each CPU.
    idle: PrioLists,
    tasks: Vec<Entry>,
    rqs: Vec<Rq>,
    /// A task that ran more recently than this (ns) is cache-hot.
    cache_hot: Nanos,
    balancer: Balancer,
}

impl Staircase {
    fn new(rules: Rules, options: &Options, machine: &Machine) -> Self {
        let nr_cpus = machine.nr_cpus();
        Self {
            rules,
            rr: rules.interval(options, machine),
            interactive: rules.interactive(options),
            honours_sync: variants::honours_sync(options),
            rt: PrioLists::new(nr_cpus),
            slots: PrioLists::new(2 * nr_cpus),
            idle: PrioLists::new(nr_cpus),
            tasks: Vec::new(),
            rqs: vec![Rq::NEW; nr_cpus as usize],
            cache_hot: options.get(&CACHE_HOT.name),
            balancer: Balancer::new(versions::LINUX_2_6_22, machine),
        }
    }

    fn entry(&self, task: TaskId) -> &Entry {
        &self.tasks[task.index()]
    }

    fn entry_mut(&mut self, task: TaskId) -> &mut Entry {
        &mut self.tasks[task.index()]
    }

    fn rq(&self, cpu: CpuId) -> &Rq {
        &self.rqs[cpu.index()]
    }

    fn rq_mut(&mut self, cpu: CpuId) -> &mut Rq {
        &mut self.rqs[cpu.index()]
    }

    /// The lists of one of the two arrays of `cpu`.
    fn lists(cpu: CpuId, array: u8) -> CpuId {
        CpuId(2 * cpu.0 + u32::from(array))
    }

    /// Priority, lower is better: real-time below 100, then the slots.
    fn prio(&self, task: TaskId) -> i32 {
        let entry = self.entry(task);
        match entry.kind {
            Kind::Fifo | Kind::Rr => i32::from(entry.rt_prio),
            Kind::Normal | Kind::Batch => FIRST_SLOT + i32::from(entry.slot),
            Kind::Idle => IDLE_PRIO,
        }
    }

    /// Whether queued `task` may be picked before the arrays are swapped.
    fn is_active(&self, cpu: CpuId, task: TaskId) -> bool {
        let entry = self.entry(task);
        !entry.kind.has_slots() || entry.array == self.rq(cpu).active
    }

    /// Queues `task`, which is in no list, on `cpu`.
    fn queue(&mut self, cpu: CpuId, task: TaskId) {
        let entry = *self.entry(task);
        match entry.kind {
            Kind::Fifo | Kind::Rr => self.rt.add(cpu, task, usize::from(entry.rt_prio), false),
            Kind::Idle => {
                self.entry_mut(task).begin_idle();
                self.idle.add(cpu, task, 0, false);
            }
            Kind::Normal | Kind::Batch => {
                self.come_from(cpu, task);
                match self.rules {
                    Rules::Sd => self.queue_sd(cpu, task),
                    Rules::Rsdl => self.queue_rsdl(cpu, task),
                }
            }
        }
    }

    /// Removes `task` from its list.
    fn unqueue(&mut self, task: TaskId) {
        self.rt.remove(task);
        self.slots.remove(task);
        self.idle.remove(task);
    }

    /// Handles a task whose last CPU was another one. It keeps its rotation if it took part in this
    /// CPU's present one; otherwise it starts from the beginning.
    fn come_from(&mut self, cpu: CpuId, task: TaskId) {
        let entry = *self.entry(task);
        if entry.cpu == cpu {
            return;
        }
        let (from, here) = (self.rq(entry.cpu), self.rq(cpu));
        let carries = entry.rotation == from.rotation && entry.array != NO_ARRAY;
        let array = if entry.array == from.active { here.active } else { here.expired() };
        let rotation = if carries { here.rotation } else { 0 };
        let array = if carries { array } else { NO_ARRAY };
        let entry = self.entry_mut(task);
        (entry.cpu, entry.rotation, entry.array) = (cpu, rotation, array);
    }

    /// Puts `task` into list `slot` of `array`.
    fn add_to(&mut self, cpu: CpuId, task: TaskId, array: u8, slot: u8) {
        let entry = self.entry_mut(task);
        (entry.array, entry.slot) = (array, slot);
        self.slots.add(Self::lists(cpu, array), task, usize::from(slot), false);
    }

    /// Queues `task` for the next rotation.
    fn queue_expired(&mut self, cpu: CpuId, task: TaskId) {
        let (rotation, array) = (self.rq(cpu).rotation, self.rq(cpu).expired());
        let slot = match self.rules {
            Rules::Sd => self.first_slot(task),
            Rules::Rsdl => self.entry(task).user,
        };
        let entry = self.entry_mut(task);
        entry.begin_rotation(rotation);
        let user = entry.user;
        let best = &mut self.rq_mut(cpu).best_static[usize::from(array)];
        *best = (*best).min(user);
        self.add_to(cpu, task, array, slot);
    }

    /// Handles the end of the time of `task`, which is queued on `cpu`: it moves to its next slot,
    /// or to the tail of its list.
    fn entitlement_is_over(&mut self, cpu: CpuId, task: TaskId) {
        match self.entry(task).kind {
            Kind::Normal | Kind::Batch => {
                let overrun = self.entry(task).left.min(0);
                self.slots.remove(task);
                self.queue(cpu, task);
                self.entry_mut(task).left += overrun;
            }
            Kind::Fifo | Kind::Rr => {
                let entry = self.entry_mut(task);
                entry.left += entry.quota;
                entry.first_time_slice = false;
                self.rt.requeue(task, false);
            }
            Kind::Idle => {
                self.entry_mut(task).renew_idle();
                self.idle.requeue(task, false);
            }
        }
    }

    /// The task that `cpu` should run if only SCHED_IDLE tasks are runnable. Each such pick begins
    /// a rotation, as going idle does, and does not look at the time that the task has left.
    fn choose_idle(&mut self, cpu: CpuId) -> Option<TaskId> {
        let task = self.idle.first(cpu)?;
        let rq = self.rq_mut(cpu);
        rq.rotation += 1;
        rq.reset_levels();
        Some(task)
    }

    /// The task that `cpu` should run; swaps the arrays if needed.
    fn choose(&mut self, cpu: CpuId) -> Option<TaskId> {
        loop {
            let task = match self.rt.first(cpu) {
                Some(task) => task,
                None => match self.slots.first(Self::lists(cpu, self.rq(cpu).active)) {
                    Some(task) => task,
                    None if !self.slots.is_empty(Self::lists(cpu, self.rq(cpu).expired())) => {
                        self.rq_mut(cpu).swap();
                        continue;
                    }
                    None => return self.choose_idle(cpu),
                },
            };
            if self.rules == Rules::Rsdl && self.entry(task).kind.has_slots() {
                self.enter_level(cpu, task);
            }
            let entry = self.entry(task);
            // A real-time task is renewed at a tick only (schedule() looks at other tasks' time).
            if entry.left > 0 || matches!(entry.kind, Kind::Fifo | Kind::Rr) {
                return Some(task);
            }
            // Its time ran out between ticks.
            self.entitlement_is_over(cpu, task);
        }
    }
}

impl SchedClass for Staircase {
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
        self.rt.add_task(task);
        self.slots.add_task(task);
        self.idle.add_task(task);
        self.tasks.push(Entry::new(core.task(task).cpu));
        let attr = *core.task(task).attr;
        self.adopt(task, &attr);
        let entry = self.entry_mut(task);
        entry.left = entry.quota;
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        core.add_nr_running(cpu, 1);
        self.count_load(cpu, task, true);
        if flags.restore {
            self.restore(core, cpu, task);
        } else {
            self.queue(cpu, task);
        }
        self.entry_mut(task).cpu = cpu;
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        core.sub_nr_running(cpu, 1);
        self.count_load(cpu, task, false);
        // A change of attributes leaves the task in its list until the change is known.
        if !flags.save {
            self.unqueue(task);
            self.entry_mut(task).last_ran = core.now;
        }
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(curr) = core.rq(cpu).curr else { return };
        if core.rq(cpu).nr_running == 1 {
            return;
        }
        match self.entry(curr).kind {
            Kind::Normal | Kind::Batch => {
                self.slots.remove(curr);
                self.queue_expired(cpu, curr);
            }
            Kind::Idle => {
                self.entry_mut(curr).begin_idle();
                self.idle.requeue(curr, false);
            }
            Kind::Fifo | Kind::Rr => {
                self.rt.requeue(curr, false);
            }
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
        if flags.is_fork() && flags.waker == Some(curr) {
            // A new process makes its parent's CPU pick again. A thread does not, unless it has
            // received attributes of its own.
            if core.task(task).mm != core.task(curr).mm {
                core.resched_curr(cpu);
            }
            if self.entry(task).inherits(self.entry(curr)) {
                return;
            }
        }
        let is_sync = self.honours_sync && flags.sync && flags.this_cpu == cpu;
        if !is_sync && self.is_active(cpu, task) && self.prio(task) < self.prio(curr) {
            core.resched_curr(cpu);
        }
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        // Its migration thread runs first if it has work.
        let next = if self.is_pushing(cpu) { None } else { self.choose(cpu) };
        if let Some(next) = next
            && core.rq(cpu).curr == Some(next)
        {
            self.charge_at_switch(core, next);
        }
        let has_slots = next.is_some_and(|next| self.entry(next).kind.has_slots());
        if let Some(next) = next.filter(|_| has_slots) {
            self.enter_slot(cpu, next);
        }
        let rq = self.rq_mut(cpu);
        let is_first = rq.rotation != rq.pick.rotation && has_slots;
        rq.pick = Pick { task: next, rotation: rq.rotation, is_first };
        next
    }

    fn put_prev_task(&mut self, core: &mut Core, _cpu: CpuId, prev: TaskId, next: Option<TaskId>) {
        self.entry_mut(prev).last_ran = core.now;
        // A change of its attributes puts the running task back at once and charges nothing.
        if next != Some(prev) {
            self.charge_at_switch(core, prev);
        }
    }

    fn set_next_task(&mut self, core: &mut Core, _cpu: CpuId, task: TaskId, first: bool) {
        if first {
            self.entry_mut(task).charged = core.sum_exec_runtime(task);
        }
    }

    fn newidle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        if self.is_pushing(cpu) {
            return false;
        }
        let pulled = self.balance_newly_idle(core, cpu);
        if !pulled {
            let rq = self.rq_mut(cpu);
            rq.rotation += 1;
            rq.reset_levels();
        }
        pulled
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId) {
        self.push_tasks(core, cpu);
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

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        self.tick(core, cpu, curr);
    }

    fn tick_balance(&mut self, core: &mut Core, cpu: CpuId) {
        if core.nr_cpus() > 1 {
            look::rebalance_ticks(self, core, cpu);
        }
    }

    fn quiet_ticks(&self, core: &Core, cpu: CpuId, curr: Option<TaskId>) -> u64 {
        match curr.map_or(u64::MAX, |curr| self.quiet_ticks_of(core, cpu, curr)) {
            nr if nr > 0 && core.nr_cpus() > 1 => nr.min(self.balancer.quiet_ticks(core, cpu)),
            nr => nr,
        }
    }

    fn pass_ticks(&mut self, core: &Core, cpu: CpuId, curr: Option<TaskId>, nr: u64) {
        if let Some(curr) = curr {
            self.pass_ticks_of(core, cpu, curr, nr);
        }
        if core.nr_cpus() > 1 {
            let load = self.balancer.load[cpu.index()];
            self.balancer.pass_ticks(core, cpu, nr, load);
        }
    }

    fn task_fork(&mut self, _core: &mut Core, _cpu: CpuId, task: TaskId, parent: Option<TaskId>) {
        if let Some(parent) = parent {
            self.fork(task, parent);
        }
    }

    fn task_dead(&mut self, core: &mut Core, task: TaskId) {
        self.exit(core, task);
    }

    fn switched_to(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId) {}

    fn prio_changed(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId, _old_prio: i32) {
        // Nothing to do: the callback that put the task back has decided.
    }

    fn attr_changing(&mut self, core: &mut Core, task: TaskId, attr: &SchedAttr) {
        self.attributes_change(core, task, attr);
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        let entry = self.entry(task);
        let slots = match entry.kind {
            Kind::Fifo => 0,
            Kind::Rr => 1,
            _ => i64::from(SLOTS - entry.user),
        };
        (entry.quota * slots) as Nanos * self.rules.unit_ns(core)
    }
}
