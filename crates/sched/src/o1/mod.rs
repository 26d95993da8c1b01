// SPDX-License-Identifier: MIT OR Apache-2.0
//! The O(1) scheduler of Linux 2.6.0 to 2.6.22: two arrays of priority lists for each CPU.
//!
//! A task runs for a time slice in the active array and then moves to the expired array. When the
//! active array is empty the two are swapped. The head of the best list runs; a bitmap finds it at
//! the same cost however many tasks exist. How much a task sleeps (`sleep_avg`) changes its
//! priority by up to 5. An interactive task, whose priority is well above its nice value, stays in
//! the active array when its slice is over.
//!
//! Source: Linux 2.6.0, 2.6.11 and 2.6.22.19, kernel/{sched,fork}.c, include/linux/topology.h.
//! [`rules`] has the differences between the versions. There are no classes: real-time tasks have
//! the first 100 lists.
//!
//! Where the rules are incomplete:
//!
//! - A task forked by the launcher has no parent: it starts with a whole slice and without sleep.
//!   One that the launcher wakes had these at the start of the run, and has slept since.
//! - If a child's attributes differ from its parent's, they are changed at once: the child then
//!   goes to the tail of its own list.
//! - When a fork uses the parent's last tick, the tick function runs for the parent only, without
//!   its balancing.
//! - A child returns the rest of its slice when it leaves its CPU for the last time, even if its
//!   parent waits for it later.
//! - In 2.6.0 a busy CPU that finds an imbalance of 1 pulls all tasks that may move, because a
//!   counter wraps. The model does the same.
//! - Policies that a version did not know (BATCH before 2.6.16, IDLE) are SCHED_OTHER.
//!
//! Left out: the tick that nanosleep() adds, NUMA nodes, priority inheritance, and the per-CPU
//! clocks that drift apart; the mark of 2.6.22 that a wait in a pipe is not interactive (the
//! modelled channels do not distinguish pipes from sockets here); the synchronous wake-up of 2.6.0
//! that moves a task to the waker's CPU.

mod arrays;
mod balance;
mod explain;
pub mod rules;
mod sleep;
#[cfg(test)]
mod tests;
mod tick;

use crate::balance::early::CACHE_HOT;
use crate::boundary::class::{ClassTraits, SchedClass};
use crate::boundary::core::{Core, TaskState};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::kernels;
use crate::scheduler::{Claims, Make, Scheduler};
use arrays::{Arrays, Side};
use balance::Balance;
use rules::{MAX_PRIO, MAX_RT_PRIO, ON_RUNQUEUE_WEIGHT, Rules, Scale};
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC};
use schedlab_model::{Costs, CpuId, KernelVersion, Machine, Nanos, Policy, SchedAttr, TaskId};

/// The last kernel with this scheduler.
const NEWEST: KernelVersion = KernelVersion::release(2, 6, 22);

const SYNC_WAKEUPS: Tunable = Tunable::new(
    "sync_wakeups",
    TunableKind::words(&["no", "yes"]),
    0,
    "whether a synchronous wake-up on the waker's CPU preempts nobody; the modelled pipes \
           and sockets are those of recent kernels, whose every write is synchronous; in these \
           kernels only one that blocks was",
);

const CACHE_DECAY: Tunable = Tunable::new(
    "cache_decay",
    TunableKind::Time { min: 0, max: NSEC_PER_SEC },
    2 * NSEC_PER_MSEC,
    "a task that was switched less long ago is not pulled by a busy CPU (cache_decay_ticks; \
           the kernel computes 1 to 3 ms from the size of the cache)",
);

const UNSIGNED_LONG: Tunable = Tunable::new(
    "unsigned_long",
    TunableKind::words(&["64", "32"]),
    0,
    "bits of the kernel's unsigned long, in which it counts sleep in ns: with 32 (i386) the \
           count wraps at 4.295 s",
);

const CLAIMS: Claims = Claims {
    work_conserving: true,
    // Interactive tasks may keep expired ones waiting for a second for each runnable task.
    starvation_free: false,
    fair: true,
    needs_burst: false,
};

/// Linux 2.6.0.
pub fn linux_2_6_0() -> Scheduler {
    Scheduler {
        name: "linux-2.6.0".into(),
        summary: "Linux 2.6.0: O(1), two arrays a CPU, sleep_avg and interactive credits".into(),
        source: "Linux 2.6.0, kernel/{sched,fork}.c".into(),
        leaves_out:
            "the tick that nanosleep adds, NUMA nodes, priority inheritance, control groups, \
                 synchronous wake-ups that take a task to the waker's CPU; BATCH and IDLE are \
                 OTHER"
                .into(),
        claims: CLAIMS,
        preempt: kernels::preempt(KernelVersion::release(2, 6, 0)),
        costs: Costs::DEFAULT,
        tunables: vec![SYNC_WAKEUPS, CACHE_DECAY, UNSIGNED_LONG],
        digest: None,
        make: Make::new(|options, machine, _| {
            let cache_decay = options.get(&CACHE_DECAY.name);
            vec![Box::new(OrderOne::new(Rules::LINUX_2_6_0, options, cache_decay, machine))]
        }),
    }
}

/// With domains, an idle CPU compares load averages. If the difference is small, it pulls no task
/// and stays idle. A hog that woke and had to wait is interactive for a second or more, in which
/// the others get nothing.
const CLAIMS_OF_DOMAINS: Claims = Claims { work_conserving: false, fair: false, ..CLAIMS };

/// Linux 2.6.11.
pub fn linux_2_6_11() -> Scheduler {
    Scheduler {
        name: "linux-2.6.11".into(),
        summary: "Linux 2.6.11: O(1), slices of 5 to 800 ms, sleep_avg without credits, domains"
            .into(),
        source: "Linux 2.6.11, kernel/{sched,fork}.c, include/linux/topology.h".into(),
        leaves_out:
            "the tick that nanosleep adds, NUMA nodes, priority inheritance, control groups; \
                 BATCH and IDLE are OTHER; a program is taken to exec when the launcher releases \
                 it"
            .into(),
        claims: CLAIMS_OF_DOMAINS,
        preempt: kernels::preempt(KernelVersion::release(2, 6, 11)),
        costs: Costs::DEFAULT,
        tunables: vec![SYNC_WAKEUPS, CACHE_HOT, UNSIGNED_LONG],
        digest: None,
        make: Make::new(|options, machine, _| {
            let cache_hot = options.get(&CACHE_HOT.name);
            vec![Box::new(OrderOne::new(Rules::LINUX_2_6_11, options, cache_hot, machine))]
        }),
    }
}

/// Linux 2.6.22.
pub fn linux_2_6_22() -> Scheduler {
    Scheduler {
        name: "linux-2.6.22".into(),
        summary: "Linux 2.6.22: O(1), sleep counts as it is, domains balanced by weight".into(),
        source: "Linux 2.6.22.19, kernel/{sched,fork}.c, include/linux/topology.h".into(),
        leaves_out:
            "the tick that nanosleep adds, NUMA nodes, priority inheritance, control groups, \
                 the mark that a wait in a pipe is not interactive, the measured cache_hot_time; \
                 IDLE is OTHER; a program is taken to exec when the launcher releases it"
                .into(),
        preempt: kernels::preempt(NEWEST),
        costs: Costs::DEFAULT,
        make: Make::new(|options, machine, _| {
            let cache_hot = options.get(&CACHE_HOT.name);
            vec![Box::new(OrderOne::new(Rules::LINUX_2_6_22, options, cache_hot, machine))]
        }),
        ..linux_2_6_11()
    }
}

/// What woke a task, if it matters for its pick (`activated`, `sleep_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Woken {
    /// It has run since, or is new.
    No,
    /// It slept uninterruptibly, or for so long that it counts as idle.
    Uninterruptible,
    /// A task.
    ByTask,
    /// An interrupt.
    ByInterrupt,
}

/// The attributes that a change affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    None,
    Nice,
    Policy,
}

/// The scheduler's state of a task.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Sleep average, ns.
    sleep_avg: Nanos,
    /// When it was last woken, switched in or out.
    timestamp: Nanos,
    /// When it last left a CPU.
    last_ran: Nanos,
    /// Ticks left of its slice.
    time_slice: u32,
    /// Interactive credit (2.6.0).
    credit: i32,
    parent: Option<TaskId>,
    /// Priority; while it is queued, that of its list.
    prio: u8,
    static_prio: u8,
    /// Priority if it is real-time.
    rt_prio: Option<u8>,
    woken: Woken,
    change: Change,
    first_time_slice: bool,
    is_rr: bool,
    is_batch: bool,
    is_dead: bool,
}

impl Entry {
    #[inline]
    fn is_rt(&self) -> bool {
        self.rt_prio.is_some()
    }
}

/// Why the last pick of a CPU chose its task, for explanations.
#[derive(Clone, Copy, Default, Debug)]
struct Pick {
    task: Option<TaskId>,
    /// Its priority before it was queued again.
    prio: u8,
    swapped: bool,
}

/// The scheduler's state of a CPU.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    /// When the first task of the expired array arrived there, in jiffies.
    expired_timestamp: Option<u64>,
    /// Best static priority in the expired array.
    best_expired_prio: u8,
    pick: Pick,
}

const FRESH: Cpu = Cpu {
    expired_timestamp: None,
    best_expired_prio: MAX_PRIO as u8,
    pick: Pick { task: None, prio: 0, swapped: false },
};

/// The scheduler.
#[derive(Debug)]
pub struct OrderOne {
    scale: Scale,
    honours_sync: bool,
    /// Greatest value of the kernel's unsigned long.
    ulong_max: Nanos,
    arrays: Arrays,
    tasks: Vec<Entry>,
    cpus: Vec<Cpu>,
    balance: Balance,
}

impl OrderOne {
    /// The scheduler of a version for `machine`; a task that ran less than `cache_hot` ns ago is
    /// cache-hot.
    pub fn new(rules: Rules, options: &Options, cache_hot: Nanos, machine: &Machine) -> Self {
        let nr_cpus = machine.nr_cpus();
        Self {
            scale: Scale::new(rules, machine.hz, nr_cpus),
            honours_sync: options.get(&SYNC_WAKEUPS.name) == 1,
            ulong_max: match options.get(&UNSIGNED_LONG.name) {
                1 => u32::MAX.into(),
                _ => Nanos::MAX,
            },
            arrays: Arrays::new(nr_cpus),
            tasks: Vec::new(),
            cpus: vec![FRESH; nr_cpus as usize],
            balance: Balance::new(&rules, cache_hot, machine),
        }
    }

    /// Applies the relevant attributes.
    fn adopt(&mut self, task: TaskId, attr: &SchedAttr) {
        let knows_batch = self.scale.rules.knows_batch;
        let entry = &mut self.tasks[task.index()];
        entry.static_prio = (120 + i32::from(attr.nice)) as u8;
        entry.rt_prio = attr.policy.is_rt().then(|| MAX_RT_PRIO - 1 - attr.rt_priority);
        entry.is_rr = attr.policy == Policy::Rr;
        entry.is_batch = knows_batch && attr.policy == Policy::Batch;
    }

    /// Puts a woken task into its list (`activate_task`).
    fn activate(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let wake = core.wake_flags;
        let skips = self.scale.rules.sleep == rules::SleepRule::Credits
            && self.honours_sync
            && wake.sync
            && wake.this_cpu == cpu;
        let sleep_counts = self.scale.rules.rt_sleep_counts || !self.tasks[task.index()].is_rt();
        if sleep_counts && !skips {
            self.recalc_task_prio(task, core.now);
            let entry = &mut self.tasks[task.index()];
            if entry.woken == Woken::No {
                let by_task = wake.waker.is_some();
                entry.woken = if by_task { Woken::ByTask } else { Woken::ByInterrupt };
            }
            entry.timestamp = core.now;
        }
        self.add_activated(cpu, task);
    }

    /// Puts a task that becomes runnable or changes its policy into its list (`__activate_task`).
    fn add_activated(&mut self, cpu: CpuId, task: TaskId) {
        let entry = &self.tasks[task.index()];
        let side = if entry.is_batch { Side::Expired } else { Side::Active };
        self.arrays.add(cpu, side, task, entry.prio);
    }

    /// Counts the time that picked `task` waited on the queue as sleep too; only a part of it if a
    /// task woke it. The task changes its list but still runs now.
    fn count_wait(&mut self, core: &Core, cpu: CpuId, task: TaskId) {
        let entry = &self.tasks[task.index()];
        let waited = core.now - entry.timestamp;
        let counted = match entry.woken {
            Woken::ByTask => waited * ON_RUNQUEUE_WEIGHT / 128,
            Woken::ByInterrupt => waited,
            Woken::No | Woken::Uninterruptible => return,
        };
        if entry.is_rt() && !self.scale.rules.requeues_woken_rt {
            return;
        }
        let (old_prio, until) = (entry.prio, entry.timestamp + counted);
        self.recalc_task_prio(task, until);
        let prio = self.tasks[task.index()].prio;
        if prio != old_prio || !self.scale.rules.requeues_if_changed {
            self.arrays.remove(task);
            self.arrays.add(cpu, Side::Active, task, prio);
        }
    }
}

impl OrderOne {
    /// The head of the best list of `cpu`; `None` while its migration thread has work.
    fn choose(&mut self, cpu: CpuId) -> Option<TaskId> {
        if self.is_pushing(cpu) {
            self.cpus[cpu.index()].pick = Pick { task: None, prio: 0, swapped: false };
            return None;
        }
        let mut swapped = false;
        if self.arrays.nr_active(cpu, Side::Active) == 0
            && self.arrays.nr_active(cpu, Side::Expired) > 0
        {
            self.arrays.swap(cpu);
            swapped = true;
            let state = &mut self.cpus[cpu.index()];
            state.expired_timestamp = None;
            state.best_expired_prio = MAX_PRIO as u8;
        }
        let next = self.arrays.first(cpu);
        let prio = next.map_or(0, |next| self.tasks[next.index()].prio);
        self.cpus[cpu.index()].pick = Pick { task: next, prio, swapped };
        next
    }
}

impl SchedClass for OrderOne {
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
        self.arrays.add_task();
        self.tasks.push(Entry {
            sleep_avg: 0,
            // If the launcher wakes it, it has slept since the start; a fork sets the time anew.
            timestamp: 0,
            last_ran: 0,
            time_slice: 0,
            credit: 0,
            parent: None,
            prio: 0,
            static_prio: 0,
            rt_prio: None,
            woken: Woken::No,
            change: Change::None,
            first_time_slice: false,
            is_rr: false,
            is_batch: false,
            is_dead: false,
        });
        self.adopt(task, &attr);
        let entry = &mut self.tasks[task.index()];
        entry.time_slice = self.scale.timeslice(entry.static_prio);
        entry.prio = entry.rt_prio.unwrap_or(0);
        self.set_effective_prio(task);
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        core.add_nr_running(cpu, 1);
        self.count_load(cpu, task, true);
        if flags.restore {
            self.restore(core, cpu, task);
        } else if flags.initial {
            self.enqueue_new(core, cpu, task);
        } else {
            self.activate(core, cpu, task);
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
        self.count_load(cpu, task, false);
        // A change of attributes leaves the task in its list until the change is known.
        if !flags.save {
            self.arrays.remove(task);
        }
        if flags.sleep && core.task(task).state == TaskState::BlockedIo {
            self.tasks[task.index()].woken = Woken::Uninterruptible;
        }
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(curr) = core.rq(cpu).curr else { return };
        let entry = &self.tasks[curr.index()];
        let side = if entry.is_rt() { Side::Active } else { Side::Expired };
        self.arrays.remove(curr);
        self.arrays.add(cpu, side, curr, entry.prio);
    }

    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        flags: WakeFlags,
    ) {
        let is_sync = self.honours_sync && flags.sync && flags.this_cpu == cpu;
        // A new thread on its parent's CPU is queued last and not compared with any task.
        let is_thread = flags.is_fork()
            && self.scale.rules.threads_run_last
            && flags.waker == Some(curr)
            && core.task(task).mm == core.task(curr).mm;
        let is_better = self.tasks[task.index()].prio < self.tasks[curr.index()].prio;
        if is_better && !is_sync && !is_thread {
            core.resched_curr(cpu);
        }
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        let now = core.now;
        let prev = core.rq(cpu).curr;
        let ran = prev.map_or(0, |prev| self.run_time(prev, now));
        let next = self.choose(cpu);
        if let Some(next) = next
            && self.tasks[next.index()].woken != Woken::No
        {
            self.count_wait(core, cpu, next);
            self.tasks[next.index()].woken = Woken::No;
        }
        if let Some(prev) = prev {
            self.charge(prev, ran, now);
        }
        if let Some(next) = next
            && Some(next) != prev
        {
            self.tasks[next.index()].timestamp = now;
        }
        next
    }

    fn newidle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        let pulled = self.balance_newly_idle(core, cpu);
        if !pulled {
            self.cpus[cpu.index()].expired_timestamp = None;
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
            self.rebalance_ticks(core, cpu);
        }
    }

    fn quiet_ticks(&self, core: &Core, cpu: CpuId, curr: Option<TaskId>) -> u64 {
        match curr.map_or(u64::MAX, |curr| self.quiet_ticks_of(curr)) {
            nr if nr > 0 && core.nr_cpus() > 1 => nr.min(self.quiet_balance_ticks(core, cpu)),
            nr => nr,
        }
    }

    fn pass_ticks(&mut self, core: &Core, cpu: CpuId, curr: Option<TaskId>, nr: u64) {
        if let Some(curr) = curr {
            self.pass_ticks_of(curr, nr);
        }
        if core.nr_cpus() > 1 {
            self.pass_balance_ticks(core, cpu, nr);
        }
    }

    fn task_fork(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, parent: Option<TaskId>) {
        self.tasks[task.index()].timestamp = core.now;
        if let Some(parent) = parent {
            self.fork(core, cpu, task, parent);
        }
    }

    fn task_dead(&mut self, core: &mut Core, task: TaskId) {
        self.exit(core, task);
        self.tasks[task.index()].is_dead = true;
    }

    fn switched_to(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId) {}

    fn prio_changed(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId, _old_prio: i32) {
        // Nothing to do: the callback that put the task back has decided.
    }

    fn attr_changing(&mut self, core: &mut Core, task: TaskId, attr: &SchedAttr) {
        self.attributes_change(core, task, attr);
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        match core.task(task).attr.policy {
            Policy::Fifo => 0,
            _ => {
                let ticks = self.scale.timeslice(self.tasks[task.index()].static_prio);
                Nanos::from(ticks) * core.tick_nsec
            }
        }
    }
}
