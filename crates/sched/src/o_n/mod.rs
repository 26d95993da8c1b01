// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler of Linux 2.4: one queue for all CPUs, searched from end to end at every pick.
//!
//! A task has `counter` ticks in an epoch. The pick is the task of greatest [`goodness`]; of equal
//! ones the first in the queue. A new epoch begins when all tasks that a CPU may run have used
//! their ticks. Every task of the system then gets half of the rest of its ticks plus the ticks of
//! its nice value. A task that becomes runnable takes an idle CPU, or the CPU whose task is worse
//! by the greatest difference. There are no classes: real-time tasks are better by 1000.
//!
//! Source: Linux 2.4.16 and 2.4.17, kernel/{sched,timer,fork,exit}.c; 2.4.18 is assumed to be
//! equal; 2.4.0 (`prev_first`) and 2.4.22 (`wake_to`). A pristine tree of 2.4.18 was not available.
//! A woken task goes to the head of the queue, as in 2.4.17. This is known from the patch to 2.4.19
//! that changed it to the tail (Bhavesh Davda, linux-kernel, August 2002).
//!
//! Where the rules are incomplete:
//!
//! - A task forked by the launcher has no parent whose ticks it could share: it starts with those
//!   of its nice value, as at the start of an epoch. One that the launcher wakes had these at the
//!   start of the run. It has slept since, so every epoch has given it new ticks.
//! - A child's rest of ticks goes to its parent when it leaves its CPU for the last time. A parent
//!   in wait() runs next at that time; a parent that waits later gets it earlier than in the
//!   kernel.
//! - An idle CPU that was informed of one task is no longer idle for the next one. In the kernel
//!   two wake-ups within the microsecond that the interrupt between CPUs takes both count on it.
//! - Two CPUs that recalculate at the same time give double credit in the kernel; here they take
//!   turns.
//! - Policies that 2.4 did not know (BATCH, IDLE) are SCHED_OTHER.
//!
//! Left out: every lock except the queue's (whose cost the machine defines), and the tick that
//! nanosleep() adds and rounds up to; busy waiting of real-time tasks for 2 ms or less, priority
//! inheritance (unknown to 2.4), control groups.

mod explain;
pub mod goodness;
mod place;
#[cfg(test)]
mod tests;

use crate::boundary::class::{ClassTraits, SchedClass};
use crate::boundary::core::{Core, LockDomain};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::kernels;
use crate::scheduler::{Claims, Make, Scheduler};
use goodness::{Look, NOBODY, goodness, max_counter, nice_to_ticks, recalculated};
use schedlab_model::{Costs, CpuId, KernelVersion, Machine, Nanos, Policy, SchedAttr, TaskId};

/// The kernel of this scheduler.
const VERSION: KernelVersion = KernelVersion::release(2, 4, 18);

const NO_YES: &[&str] = &["no", "yes"];

const PREV_FIRST: Tunable = Tunable::new(
    "prev_first",
    TunableKind::words(NO_YES),
    0,
    "as in 2.4.0: the running task is looked at first and so wins ties, and sched_yield does \
           not move it in the queue",
);

const WAKE_TO: Tunable = Tunable::new(
    "wake_to",
    TunableKind::words(&["head", "tail"]),
    0,
    "end of the queue at which a woken or new task is put: head up to 2.4.17, tail in 2.4.22",
);

const SYNC_WAKEUPS: Tunable = Tunable::new(
    "sync_wakeups",
    TunableKind::words(NO_YES),
    0,
    "whether a synchronous wake-up looks for no CPU; the modelled pipes and sockets are \
           those of recent kernels, whose every write is synchronous; in 2.4 only one that blocks \
           was",
);

/// Registry entry.
pub fn scheduler() -> Scheduler {
    Scheduler {
        name: "linux-2.4.18".into(),
        summary:
            "Linux 2.4: one queue for all CPUs, goodness() of every task at each choice, epochs"
                .into(),
        source: "Linux 2.4.16 and 2.4.17, kernel/{sched,timer,fork,exit}.c; 2.4.0 and 2.4.22 as \
             options; that 2.4.18 equals 2.4.17 is uncertain"
            .into(),
        leaves_out: "every lock but the queue's, the tick that nanosleep adds, busy waiting of \
                 real-time sleepers, priority inheritance, control groups; BATCH and IDLE are \
                 OTHER"
            .into(),
        claims: Claims {
            // A task that yields is not placed again. It may wait although a CPU is idle, if that
            // CPU has no other task that may run there.
            work_conserving: false,
            starvation_free: true,
            fair: true,
            needs_burst: false,
        },
        preempt: kernels::preempt(VERSION),
        costs: Costs::DEFAULT,
        tunables: vec![PREV_FIRST, WAKE_TO, SYNC_WAKEUPS],
        digest: None,
        make: Make::new(|options, machine, _cgroups| {
            vec![Box::new(GlobalQueue::new(options, machine))]
        }),
    }
}

const NONE: u32 = u32::MAX;

/// The scheduler's state of a task: the fields of `struct task_struct` that the search reads, close
/// together.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Neighbours in the queue.
    prev: u32,
    next: u32,
    queued: bool,
    /// The CPU that runs it, or NONE (`cpus_runnable`).
    running_on: u32,
    /// The CPU that last ran it (`processor`).
    processor: u32,
    mm: u32,
    /// Ticks left, as of `epoch`.
    counter: i32,
    epoch: u64,
    /// Ticks of its nice value.
    ticks: i32,
    nice: i8,
    /// Real-time priority; 0 for SCHED_OTHER.
    rt_priority: u8,
    is_rr: bool,
    yielded: bool,
    /// Whether its affinity excludes some CPU.
    is_bound: bool,
    /// Whether a present change of attributes moves it to the head of the queue.
    to_head: bool,
    is_dead: bool,
    parent: Option<TaskId>,
}

/// The scheduler's state of a CPU.
#[derive(Clone, Copy, Default, Debug)]
struct Cpu {
    /// The address space loaded (`active_mm`): that of the last task that ran.
    active_mm: Option<u32>,
    /// The task because of which the idle CPU must search the queue.
    told: Option<TaskId>,
    /// The task that it has just preempted, which may run on another CPU.
    preempted: Option<TaskId>,
    /// Whether the CPU did not search the queue last time, because it is idle and was not notified.
    stayed_idle: bool,
    /// Whether the last choice began a new epoch.
    recalculated: bool,
}

/// The scheduler.
#[derive(Debug)]
pub struct GlobalQueue {
    hz: u32,
    prev_first: bool,
    wake_to_tail: bool,
    honours_sync: bool,
    is_smp: bool,
    /// Ends of the queue.
    head: u32,
    tail: u32,
    /// Number of tasks in the queue, including the running ones.
    nr_running: u32,
    /// Number of tasks that have not exited.
    nr_live: u32,
    /// Number of recalculations. A task's own ticks are updated when they are read.
    epoch: u64,
    tasks: Vec<Entry>,
    cpus: Vec<Cpu>,
}

impl GlobalQueue {
    /// The scheduler for `machine`.
    pub fn new(options: &Options, machine: &Machine) -> Self {
        Self {
            hz: machine.hz,
            prev_first: options.get(&PREV_FIRST.name) == 1,
            wake_to_tail: options.get(&WAKE_TO.name) == 1,
            honours_sync: options.get(&SYNC_WAKEUPS.name) == 1,
            is_smp: machine.nr_cpus() > 1,
            head: NONE,
            tail: NONE,
            nr_running: 0,
            nr_live: 0,
            epoch: 0,
            tasks: Vec::new(),
            cpus: vec![Cpu::default(); machine.nr_cpus() as usize],
        }
    }

    fn entry(&mut self, task: TaskId) -> &mut Entry {
        &mut self.tasks[task.index()]
    }

    /// Puts `task`, which is not in the queue, at one of its ends.
    fn link(&mut self, task: TaskId, at_tail: bool) {
        let (prev, next) = if at_tail { (self.tail, NONE) } else { (NONE, self.head) };
        let entry = self.entry(task);
        assert!(!entry.queued, "task {task} is queued twice");
        entry.queued = true;
        (entry.prev, entry.next) = (prev, next);
        match prev {
            NONE => self.head = task.0,
            prev => self.tasks[prev as usize].next = task.0,
        }
        match next {
            NONE => self.tail = task.0,
            next => self.tasks[next as usize].prev = task.0,
        }
    }

    fn unlink(&mut self, task: TaskId) {
        let entry = self.entry(task);
        let (prev, next) = (entry.prev, entry.next);
        assert!(entry.queued, "task {task} is not in the queue");
        entry.queued = false;
        match prev {
            NONE => self.head = next,
            prev => self.tasks[prev as usize].next = next,
        }
        match next {
            NONE => self.tail = prev,
            next => self.tasks[next as usize].prev = prev,
        }
    }

    /// Moves queued `task` to an end of the queue.
    fn requeue(&mut self, task: TaskId, at_tail: bool) {
        self.unlink(task);
        self.link(task, at_tail);
    }

    /// Updates the ticks of `task` to the present epoch.
    #[inline]
    fn settle(&mut self, task: TaskId) {
        let epoch = self.epoch;
        let entry = self.entry(task);
        if entry.epoch != epoch {
            entry.counter = recalculated(entry.counter, entry.ticks, epoch - entry.epoch);
            entry.epoch = epoch;
        }
    }

    /// Ticks that `task` has left.
    pub fn counter(&self, task: TaskId) -> i32 {
        let entry = &self.tasks[task.index()];
        recalculated(entry.counter, entry.ticks, self.epoch - entry.epoch)
    }

    /// Applies the attributes that the search reads.
    fn adopt(&mut self, task: TaskId, attr: &SchedAttr) {
        let ticks = nice_to_ticks(self.hz, attr.nice);
        let entry = self.entry(task);
        entry.nice = attr.nice;
        entry.ticks = ticks;
        entry.rt_priority = if attr.policy.is_rt() { attr.rt_priority } else { 0 };
        entry.is_rr = attr.policy == Policy::Rr;
    }

    /// The goodness of a task, whose ticks are up to date, for `cpu` with `this_mm` loaded.
    #[inline]
    fn goodness(&self, entry: &Entry, cpu: CpuId, this_mm: Option<u32>) -> i32 {
        goodness(&Look {
            yielded: entry.yielded,
            rt_priority: entry.rt_priority,
            counter: recalculated(entry.counter, entry.ticks, self.epoch - entry.epoch),
            nice: entry.nice,
            affine: self.is_smp && entry.processor == cpu.0,
            same_mm: this_mm == Some(entry.mm),
        })
    }

    /// Whether `cpu` may take `task`: it runs nowhere else (`can_schedule`).
    #[inline]
    fn can_schedule(&self, core: &Core, task: u32, cpu: CpuId) -> bool {
        let entry = &self.tasks[task as usize];
        (entry.running_on == NONE || entry.running_on == cpu.0)
            && (!entry.is_bound || core.task(TaskId(task)).cpus_allowed.contains(cpu))
    }

    /// The best task of the queue for `cpu`, with its goodness. Counts the tasks that it examines.
    fn search(&mut self, core: &Core, cpu: CpuId, scanned: &mut u32) -> (u32, i32) {
        let this_mm = self.cpus[cpu.index()].active_mm;
        let (mut next, mut best) = (NONE, NOBODY);
        if self.prev_first
            && let Some(prev) = core.rq(cpu).curr
            && self.tasks[prev.index()].queued
        {
            self.settle(prev);
            next = prev.0;
            best = self.goodness(&self.tasks[prev.index()], cpu, this_mm);
        }
        let mut at = self.head;
        while at != NONE {
            *scanned += 1;
            if self.can_schedule(core, at, cpu) {
                self.settle(TaskId(at));
                let weight = self.goodness(&self.tasks[at as usize], cpu, this_mm);
                if weight > best {
                    (next, best) = (at, weight);
                }
            }
            at = self.tasks[at as usize].next;
        }
        (next, best)
    }

    /// Gives a SCHED_RR task that used its ticks new ones, and moves it to the tail.
    fn renew_rr(&mut self, prev: TaskId) {
        self.settle(prev);
        let entry = self.entry(prev);
        if entry.is_rr && entry.counter == 0 {
            entry.counter = entry.ticks;
            if entry.queued {
                self.requeue(prev, true);
            }
        }
    }
}

impl SchedClass for GlobalQueue {
    fn owns(&self, policy: Policy) -> bool {
        policy.is_rt() || policy.is_fair()
    }

    fn traits(&self) -> ClassTraits {
        ClassTraits {
            lock_domain: LockDomain::Global,
            walks_tasks: true,
            has_quiet_ticks: true,
            timers_follow_tick: !VERSION.has_high_resolution_timers(),
            ..ClassTraits::DEFAULT
        }
    }

    fn task_new(&mut self, core: &mut Core, task: TaskId) {
        let t = core.task(task);
        self.tasks.push(Entry {
            prev: NONE,
            next: NONE,
            queued: false,
            running_on: NONE,
            processor: t.cpu.0,
            mm: t.mm,
            counter: nice_to_ticks(self.hz, t.attr.nice),
            // If the launcher wakes it, it has slept since the start; a fork sets the epoch anew.
            epoch: 0,
            ticks: 0,
            nice: 0,
            rt_priority: 0,
            is_rr: false,
            yielded: false,
            is_bound: false,
            to_head: false,
            is_dead: false,
            parent: None,
        });
        self.adopt(task, &t.attr);
        self.nr_live += 1;
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        core.add_nr_running(cpu, 1);
        let is_bound = core.task(task).nr_cpus_allowed < core.nr_cpus();
        self.entry(task).is_bound = is_bound;
        if flags.restore {
            if std::mem::take(&mut self.entry(task).to_head) {
                self.requeue(task, false);
                core.resched_curr(cpu);
            }
            return;
        }
        self.link(task, self.wake_to_tail);
        self.nr_running += 1;
        let wake = core.wake_flags;
        let is_sync = self.honours_sync && wake.sync;
        if !(is_sync && core.task(task).cpus_allowed.contains(wake.this_cpu)) {
            self.reschedule_idle(core, task);
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
        // A change of attributes leaves the task in place until the change is known.
        if !flags.save {
            self.unlink(task);
            self.nr_running -= 1;
        }
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(curr) = core.rq(cpu).curr else { return };
        let busy = (0..core.nr_cpus()).filter(|cpu| self.occupant(core, CpuId(*cpu)).is_some());
        let nr_busy = busy.count() as u32;
        if self.nr_running <= nr_busy {
            return;
        }
        let entry = self.entry(curr);
        entry.yielded = entry.rt_priority == 0;
        if !self.prev_first {
            self.requeue(curr, true);
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
        // reschedule_idle() has decided in enqueue_task, for all CPUs.
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        core.queue_balance_callback(cpu);
        let prev = core.rq(cpu).curr;
        let told = self.cpus[cpu.index()].told.take();
        let state = &mut self.cpus[cpu.index()];
        state.stayed_idle = prev.is_none() && told.is_none();
        state.recalculated = false;
        if state.stayed_idle {
            return None;
        }
        if let Some(prev) = prev {
            self.renew_rr(prev);
        }
        let mut scanned = 0;
        let (mut next, mut best) = self.search(core, cpu, &mut scanned);
        if best == 0 {
            self.epoch += 1;
            self.cpus[cpu.index()].recalculated = true;
            // The lock is dropped while every task of the system gets its ticks.
            let unlocked = &mut core.work.entries_unlocked;
            *unlocked = unlocked.saturating_add(self.nr_live);
            scanned = scanned.saturating_add(self.nr_live);
            (next, best) = self.search(core, cpu, &mut scanned);
        }
        let work = &mut core.work.entries_scanned;
        *work = work.saturating_add(scanned.saturating_sub(1));
        if best == NOBODY {
            return None;
        }
        let next = TaskId(next);
        let from = core.task(next).cpu;
        if from != cpu {
            core.sub_nr_running(from, 1);
            core.set_task_cpu(next, cpu);
            core.add_nr_running(cpu, 1);
        }
        Some(next)
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, prev: TaskId, next: Option<TaskId>) {
        let entry = self.entry(prev);
        entry.running_on = NONE;
        let yielded = std::mem::take(&mut entry.yielded);
        if self.is_smp && next != Some(prev) && core.task(prev).on_rq && !yielded {
            self.cpus[cpu.index()].preempted = Some(prev);
        }
    }

    fn set_next_task(&mut self, _core: &mut Core, cpu: CpuId, task: TaskId, _first: bool) {
        let entry = self.entry(task);
        entry.running_on = cpu.0;
        entry.processor = cpu.0;
        self.cpus[cpu.index()].active_mm = Some(entry.mm);
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId) {
        if let Some(curr) = core.rq(cpu).curr {
            self.entry(curr).yielded = false;
        }
        if let Some(prev) = self.cpus[cpu.index()].preempted.take()
            && self.tasks[prev.index()].queued
            && self.tasks[prev.index()].running_on == NONE
        {
            self.reschedule_idle(core, prev);
        }
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        _: WakeFlags,
    ) -> CpuId {
        core.allowed_cpu(task, prev)
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        self.settle(curr);
        let entry = self.entry(curr);
        entry.counter = (entry.counter - 1).max(0);
        if entry.counter == 0 {
            core.resched_curr(cpu);
        }
    }

    fn quiet_ticks(&self, _core: &Core, _cpu: CpuId, curr: Option<TaskId>) -> u64 {
        curr.map_or(u64::MAX, |curr| u64::try_from(self.counter(curr) - 1).unwrap_or(0))
    }

    fn pass_ticks(&mut self, _core: &Core, _cpu: CpuId, curr: Option<TaskId>, nr: u64) {
        if let Some(curr) = curr {
            self.settle(curr);
            self.entry(curr).counter -= nr as i32;
        }
    }

    fn task_fork(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, parent: Option<TaskId>) {
        let epoch = self.epoch;
        self.entry(task).epoch = epoch;
        self.entry(task).processor = cpu.0;
        let Some(parent) = parent else { return };
        self.settle(parent);
        let counter = self.entry(parent).counter;
        self.entry(parent).counter = counter >> 1;
        if counter >> 1 == 0 {
            core.resched_curr(cpu);
        }
        let child = self.entry(task);
        child.counter = (counter + 1) >> 1;
        child.parent = Some(parent);
    }

    fn task_dead(&mut self, _core: &mut Core, task: TaskId) {
        self.nr_live -= 1;
        self.settle(task);
        let entry = self.entry(task);
        entry.is_dead = true;
        let (rest, parent) = (entry.counter, entry.parent);
        if let Some(parent) = parent.filter(|parent| !self.tasks[parent.index()].is_dead) {
            self.settle(parent);
            let most = max_counter(self.hz);
            let entry = self.entry(parent);
            entry.counter = (entry.counter + rest).min(most);
        }
    }

    fn prio_changed(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId, _old_prio: i32) {
        // A change of the nice value causes no pick; for sched_setscheduler() enqueue_task has
        // already requested one.
    }

    fn attr_changing(&mut self, core: &mut Core, task: TaskId, attr: &SchedAttr) {
        self.settle(task);
        let old = &core.task(task).attr;
        let to_head = (old.policy, old.rt_priority) != (attr.policy, attr.rt_priority);
        self.adopt(task, attr);
        let entry = self.entry(task);
        entry.to_head = to_head && entry.queued;
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        match core.task(task).attr.policy {
            Policy::Fifo => 0,
            _ => self.tasks[task.index()].ticks as Nanos * core.tick_nsec,
        }
    }
}
