// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler boundary: the kernel's own table of callbacks.
//!
//! Life of a task, as the core calls it:
//!
//! ```text
//! created:  task_new, task_fork, select_task_rq, enqueue_task(initial), wakeup_preempt, task_woken
//! runs:     pick_task names it, [put_prev_task of the one before], set_next_task
//! tick:     task_tick, then tick_balance
//! sleeps:   dequeue_task(sleep), [balance], pick_task, put_prev_task, set_next_task of the next
//! wakes:    select_task_rq, [migrate_task_rq], enqueue_task(wakeup), wakeup_preempt, task_woken
//! changes:  dequeue_task(save), [put_prev_task], (attributes change), attr_changed,
//!           enqueue_task(restore), [set_next_task], then switched_from and switched_to, or
//!           prio_changed
//! exits:    dequeue_task(sleep, special), ..., task_dead, task_exited
//! ```
//!
//! The core trusts no class: it checks every answer (task lost, picked twice, on a forbidden CPU,
//! starved) and names class, callback, task and time in the error. A class therefore asserts its
//! own invariants and need not defend against the core.

use crate::boundary::core::{Core, LockDomain, PreemptCheck};
use crate::boundary::explain::Explain;
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use schedlab_model::{CpuId, Nanos, Policy, TaskId};

/// When [`SchedClass::balance`] is called before a pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Balances {
    /// It does nothing. A stack of such classes is spared the question at every switch.
    Never,
    /// If the previous task is of this class or a higher one.
    BelowPrev,
    /// Before every pick, also from idle and from lower classes.
    Always,
}

/// What a class is during a whole run. The engine asks once, when it builds the stack, and leaves
/// out the calls that would do nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassTraits {
    /// The class does something even in a run in which no task is ever of its policies. If not, the
    /// engine leaves it out of the stack of such a run.
    pub acts_without_tasks: bool,
    /// What the lock that wake-ups and choices take protects. A stack in which one class says
    /// `Global` has one lock. The machine says what it costs.
    pub lock_domain: LockDomain,
    /// The kernel looks at every task of the system when one exits, and at every child of a task
    /// that waits for one. The machine says what that costs.
    pub walks_tasks: bool,
    /// When [`SchedClass::balance`] is called.
    pub balances: Balances,
    /// [`SchedClass::idle_changed`] is called.
    pub watches_idle: bool,
    /// [`SchedClass::quiet_ticks`] may be more than 0. A stack with a class that says no is not
    /// asked at every tick.
    pub has_quiet_ticks: bool,
    /// The class keeps its tasks within the cpu.max of their groups. A workload with a limit is
    /// refused if the class of SCHED_OTHER does not.
    pub enforces_cpu_max: bool,
}

impl ClassTraits {
    /// Those of a class that says nothing: a lock for each CPU, and no call that it must ask for.
    pub const DEFAULT: Self = Self {
        acts_without_tasks: true,
        lock_domain: LockDomain::Cpu,
        walks_tasks: false,
        balances: Balances::Never,
        watches_idle: false,
        has_quiet_ticks: false,
        enforces_cpu_max: false,
    };
}

/// A scheduling class (`struct sched_class`). State of its own is indexed by task and CPU. What it
/// says of its choices, which nothing here depends on, is the part of [`Explain`].
pub trait SchedClass: Explain + Send {
    /// Whether tasks of `policy` belong to this class. The first class of a stack that says yes has
    /// them.
    fn owns(&self, policy: Policy) -> bool;

    /// What stays the same during a run. Default: [`ClassTraits::DEFAULT`].
    fn traits(&self) -> ClassTraits {
        ClassTraits::DEFAULT
    }

    /// Whether the class has tasks of `policy` although a higher class of the stack owns them, from
    /// now on; it says [`Core::request_reclass`] when the answer changes. A class that takes a
    /// policy over need not own it. Default: no.
    fn takes_over(&self, _policy: Policy) -> bool {
        false
    }

    /// Whether it does something in a run with a task of `policy`. Default: if they are its own.
    fn serves(&self, policy: Policy) -> bool {
        self.owns(policy)
    }

    /// `task` is about to start with `attr`, or to get them by sched_setattr; they are of this
    /// class. A refusal says why and what to do, and ends the run. Default: admitted.
    fn admit(
        &mut self,
        _core: &Core,
        _task: TaskId,
        _attr: &schedlab_model::SchedAttr,
    ) -> Result<(), String> {
        Ok(())
    }

    /// The run begins, before any task exists. Default: nothing.
    fn run_begins(&mut self, _core: &mut Core) {}

    /// The run is over; nothing that is asked for has any effect. Default: nothing.
    fn run_ends(&mut self, _core: &mut Core) {}

    /// A task exists now (sched_fork). Makes room for it in the class's own state. Called for every
    /// class of the stack, whatever class the task is in, in order of task ids. Default: nothing.
    fn task_new(&mut self, _core: &mut Core, _task: TaskId) {}

    /// Takes custody of runnable `task` on `cpu`. Must count it with [`Core::add_nr_running`],
    /// unless
    /// `flags.delayed` (it is still counted). Required.
    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags);

    /// Gives up `task`, queued or running on `cpu`. Must uncount it with [`Core::sub_nr_running`].
    /// Returning `false` delays it: the class keeps the task, still counted; the core sets
    /// `sched_delayed` and leaves it `on_rq`. The class completes the dequeue later (in
    /// [`SchedClass::pick_task`]) by uncounting the task and calling [`Core::dequeue_delayed`], or
    /// the task wakes before that (`EnqueueFlags::delayed`). Only a sleep that is not `special` may
    /// be delayed. A `special` sleep of a task whose dequeue is delayed completes it (before its
    /// class or affinity changes). Required.
    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool;

    /// The running task of `cpu` calls sched_yield; the core reschedules afterwards. Default:
    /// nothing but that reschedule.
    fn yield_task(&mut self, _core: &mut Core, _cpu: CpuId) {}

    /// `task`, of this class, was queued on `cpu`, which runs `curr`, of this class too: calls
    /// [`Core::resched_curr`] if `curr` must give way. Required, since leaving it out is a
    /// decision.
    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        flags: WakeFlags,
    );

    /// Names the task of this class that `cpu` should run, or `None` if there is none. The running
    /// task, if still runnable, is a candidate. Final. A class with one queue for several CPUs
    /// moves the task here with [`Core::set_task_cpu`] first. Required.
    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId>;

    /// `prev` (of this class) stops running on `cpu`; `next` runs instead (`None`: idle). If `prev`
    /// is still `on_rq` the class puts it back among the waiting. Default: nothing.
    fn put_prev_task(
        &mut self,
        _core: &mut Core,
        _cpu: CpuId,
        _prev: TaskId,
        _next: Option<TaskId>,
    ) {
    }

    /// `task` (of this class) starts to run on `cpu`. `first`: it was picked; otherwise it goes on
    /// running after a change of its attributes. Default: nothing.
    fn set_next_task(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId, _first: bool) {}

    /// Before a pick: may pull tasks of this class to `cpu` (RT pull). Returns whether the class
    /// has something to run here. Called from the class of the previous task downwards until one
    /// says yes. Default: no.
    fn balance(&mut self, _core: &mut Core, _cpu: CpuId) -> bool {
        false
    }

    /// `cpu` becomes idle, or busy with a task of any class, which starts right after. `again`: it
    /// was idle and found nothing to run once more. Default: nothing.
    fn idle_changed(&mut self, _core: &mut Core, _cpu: CpuId, _idle: bool, _again: bool) {}

    /// `cpu` found nothing to run in any class: may pull. Returns whether it pulled; then the pick
    /// is repeated. Default: no.
    fn newidle_balance(&mut self, _core: &mut Core, _cpu: CpuId) -> bool {
        false
    }

    /// After a reschedule of `cpu`, if the class has asked for it since the one before
    /// ([`Core::queue_balance_callback`]): may push tasks away (RT push). Default: nothing.
    fn balance_callback(&mut self, _core: &mut Core, _cpu: CpuId) {}

    /// Chooses the CPU for a waking or new task that may use more than one CPU. Final; the core
    /// refuses a CPU that the task may not use. Default: an idle allowed CPU, its own first, else
    /// its own, else the lowest allowed.
    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        _flags: WakeFlags,
    ) -> CpuId {
        select_idle_cpu(core, task, prev)
    }

    /// The waking task is about to move to `cpu`; it is on no queue. Default: nothing.
    fn migrate_task_rq(&mut self, _core: &mut Core, _task: TaskId, _cpu: CpuId) {}

    /// `task` was woken on `cpu` and will not preempt at once: may push (RT). Default: nothing.
    fn task_woken(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId) {}

    /// The tick hits `cpu` while it runs `curr` (of this class). Default: nothing (no time slices).
    fn task_tick(&mut self, _core: &mut Core, _cpu: CpuId, _curr: TaskId) {}

    /// After [`SchedClass::task_tick`], for every class of the stack, on a CPU that is not idle:
    /// periodic balancing. Default: nothing.
    fn tick_balance(&mut self, _core: &mut Core, _cpu: CpuId) {}

    /// How many of the coming ticks of busy `cpu`, the one that is due included, do no more than
    /// [`SchedClass::pass_ticks`] can do at once, if no other callback comes between. `curr` is the
    /// running task if it is of this class. The engine then passes over them. Default: none.
    fn quiet_ticks(&self, _core: &Core, _cpu: CpuId, _curr: Option<TaskId>) -> u64 {
        0
    }

    /// `nr` ticks of busy `cpu` that were promised to be quiet have passed, in place of as many
    /// calls of [`SchedClass::task_tick`] and [`SchedClass::tick_balance`]; it is the time of the
    /// last one. May ask for nothing. Default: nothing.
    fn pass_ticks(&mut self, _core: &Core, _cpu: CpuId, _curr: Option<TaskId>, _nr: u64) {}

    /// A new task of this class is being forked on `cpu` (the parent's), before its CPU is chosen.
    /// `parent` is `None` for the launcher. Default: nothing.
    fn task_fork(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId, _parent: Option<TaskId>) {
    }

    /// `task` has exited and left its CPU. Default: nothing.
    fn task_dead(&mut self, _core: &mut Core, _task: TaskId) {}

    /// `task`, of whatever class, has exited and left its CPU; called for every class of the stack.
    /// Default: nothing.
    fn task_exited(&mut self, _core: &mut Core, _task: TaskId) {}

    /// `task`, which is of this class now, was of class number `old_class` and had the attributes
    /// `old`: those in `core` are the new ones. It is on no queue yet. Default: nothing.
    fn attr_changed(
        &mut self,
        _core: &mut Core,
        _task: TaskId,
        _old_class: u8,
        _old: &schedlab_model::SchedAttr,
    ) {
    }

    /// All tasks have the class that they belong to since [`Core::request_reclass`]. Default:
    /// nothing.
    fn reclassed(&mut self, _core: &mut Core) {}

    /// `task` leaves this class for another (its attributes are the new ones). Default: nothing.
    fn switched_from(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId) {}

    /// `task` comes from another class and is already queued if runnable. Default: reschedule if it
    /// is running, else compare with what runs.
    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        if core.task(task).on_rq {
            let is_first = core.preempt_check(cpu, task) != PreemptCheck::Nothing;
            if core.is_running(task) || is_first {
                core.resched_curr(cpu);
            }
        }
    }

    /// `task` stays in this class but its attributes changed from kernel priority `old_prio`.
    /// Default: reschedule its CPU if it is queued.
    fn prio_changed(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _old_prio: i32) {
        if core.task(task).on_rq {
            core.resched_curr(cpu);
        }
    }

    /// `task` holds a mutex that `donor`, a task of this class, waits for with inheritance: until
    /// it is told `None` it runs with the parameters of `donor`. It is on no queue; its own class
    /// may be another one. Only the class of SCHED_DEADLINE is told. Default: nothing.
    fn lend(&mut self, _core: &Core, _task: TaskId, _donor: Option<TaskId>) {}

    /// By what waiters of this class and equal priority stand at a mutex with inheritance, the
    /// least first. Asked of the class of SCHED_DEADLINE only. Default: nothing, first come first.
    fn waiter_key(&self, _task: TaskId) -> Nanos {
        0
    }

    /// Attributes other than class are about to change from those in `core` to `attr`; the task is
    /// on no queue. Default: nothing (the class reads `core.task(task).attr` when it needs them).
    fn attr_changing(
        &mut self,
        _core: &mut Core,
        _task: TaskId,
        _attr: &schedlab_model::SchedAttr,
    ) {
    }

    /// A timer that this class asked for with [`Core::start_timer`]. Default: nothing.
    fn timer(&mut self, _core: &mut Core, _token: u64) {}

    /// The slice that sched_rr_get_interval(2) reports; 0: none. Default: 0.
    fn get_rr_interval(&self, _core: &Core, _task: TaskId) -> Nanos {
        0
    }

    /// Whether the class holds `task` back on purpose (throttled), so that an idle CPU beside it is
    /// no error. Default: no.
    fn is_throttled(&self, _core: &Core, _task: TaskId) -> bool {
        false
    }
}

/// The default choice of CPU: `prev` if idle and allowed, else the first idle allowed CPU after it,
/// else `prev` if allowed, else the lowest allowed CPU.
pub fn select_idle_cpu(core: &Core, task: TaskId, prev: CpuId) -> CpuId {
    let allowed = &core.task(task).cpus_allowed;
    if allowed.contains(prev) && core.idle_cpu(prev) {
        return prev;
    }
    let idle = allowed.and(&core.idle_cpus);
    if let Some(cpu) = idle.iter_from(prev).next() {
        return cpu;
    }
    core.allowed_cpu(task, prev)
}
