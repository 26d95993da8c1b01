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
use crate::boundary::user::UserNext;
use schedlab_model::program::SchedTunable;
use schedlab_model::{CgroupSpec, Change, CpuId, Nanos, Policy, TaskId};

/// When the core calls [`SchedClass::balance`] before a pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Balances {
    /// Never: the class does nothing there. A stack of such classes is not asked at switches.
    Never,
    /// If the previous task is of this class or a higher one.
    BelowPrev,
    /// Before every pick, also after idle and after tasks of lower classes.
    Always,
}

/// Properties of a class that stay constant during a run. The engine reads them once, when it
/// builds the stack, and omits calls that would do nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassTraits {
    /// Whether the class acts even in a run without tasks of its policies. If not, the engine
    /// leaves it out of the stack of such a run.
    pub acts_without_tasks: bool,
    /// Which run queues share a lock that wake-ups and picks take. A stack in which one class has
    /// `Global` has one lock. The machine defines its cost.
    pub lock_domain: LockDomain,
    /// Whether the kernel looks at every task of the system when a task exits, and at every child
    /// of a task that waits for one. The machine defines the cost.
    pub walks_tasks: bool,
    /// When the core calls [`SchedClass::balance`].
    pub balances: Balances,
    /// Whether the core calls [`SchedClass::idle_changed`].
    pub watches_idle: bool,
    /// Whether [`SchedClass::quiet_ticks`] may return more than 0. If a class of the stack has
    /// none, the engine does not ask at every tick.
    pub has_quiet_ticks: bool,
    /// Whether a sleeper that is due at a tick wakes after it, as in kernels without
    /// high-resolution timers ([`KernelVersion::has_high_resolution_timers`]).
    pub timers_follow_tick: bool,
    /// Whether a running task that moves to another group requests a reschedule and goes to the
    /// tail of its priority, and so does one at the end of its exit, which leaves its autogroup.
    pub group_moves_resched: bool,
    /// Whether a task that waits for a mutex with priority inheritance spins while the owner runs
    /// on another CPU, as since 5.15 (`rtmutex_spin_on_owner`).
    pub spins_on_owner: bool,
    /// A wake-up that preempts has updated the clock of its CPU, and the pick does not update it
    /// again (`rq_clock_skip_update` in `wakeup_preempt`).
    pub wakeups_stop_clock: bool,
    /// Whether a change of a group's cpuset.cpus replaces the affinity that its tasks have set, as
    /// before 6.2. Later kernels remember both.
    pub cpuset_forgets_affinity: bool,
    /// Whether the kernel takes CPUs that are equally good in turn ([`super::turns`]), and moves a
    /// task that may not stay on its CPU to the next one, be it idle or not.
    pub takes_turns: bool,
    /// Whether the class follows [`SchedClass::tunable_changed`]. If no class of a stack does, a
    /// workload that sets a tunable is refused.
    pub follows_tunables: bool,
    /// Whether the class enforces the cpu.max of groups. If the class of SCHED_OTHER does not, a
    /// workload with a limit is refused.
    pub enforces_cpu_max: bool,
}

impl ClassTraits {
    /// The default: a lock for each CPU, and none of the optional calls.
    pub const DEFAULT: Self = Self {
        acts_without_tasks: true,
        lock_domain: LockDomain::Cpu,
        walks_tasks: false,
        balances: Balances::Never,
        watches_idle: false,
        has_quiet_ticks: false,
        timers_follow_tick: false,
        group_moves_resched: false,
        spins_on_owner: false,
        wakeups_stop_clock: false,
        cpuset_forgets_affinity: false,
        takes_turns: false,
        follows_tunables: false,
        enforces_cpu_max: false,
    };
}

/// A scheduling class (`struct sched_class`). Its own state is indexed by task and CPU. [`Explain`]
/// has the callbacks that explain its decisions; nothing here depends on them.
pub trait SchedClass: Explain + Send {
    /// Whether tasks of `policy` belong to this class. They belong to the first class of a stack
    /// that returns true.
    fn owns(&self, policy: Policy) -> bool;

    /// Properties that stay constant during a run. Default: [`ClassTraits::DEFAULT`].
    fn traits(&self) -> ClassTraits {
        ClassTraits::DEFAULT
    }

    /// Whether the class takes over tasks of `policy` that a higher class of the stack owns. When
    /// the answer changes, the class calls [`Core::request_reclass`]. A class that takes a policy
    /// over need not own it. Default: no.
    fn takes_over(&self, _policy: Policy) -> bool {
        false
    }

    /// Whether the class acts in a run with a task of `policy`. Default: if it owns the policy.
    fn serves(&self, policy: Policy) -> bool {
        self.owns(policy)
    }

    /// Whether sched_setattr with `attr` does something to `task` of this class. Default: if one of
    /// its attributes differs.
    fn is_changed_by(&self, core: &Core, task: TaskId, attr: &schedlab_model::SchedAttr) -> bool {
        *core.task(task).attr != *attr
    }

    /// Called before `task` of this class starts with `attr`, or gets them by sched_setattr. An
    /// error tells why they are refused and what to do, and ends the run. Default: accepted.
    fn admit(
        &mut self,
        _core: &Core,
        _task: TaskId,
        _attr: &schedlab_model::SchedAttr,
    ) -> Result<(), String> {
        Ok(())
    }

    /// The run begins. No task exists yet. Default: nothing.
    fn run_begins(&mut self, _core: &mut Core) {}

    /// The run has ended. Requests have no effect any more. Default: nothing.
    fn run_ends(&mut self, _core: &mut Core) {}

    /// A new task exists (sched_fork). The class makes room for it in its own state. Called for
    /// every class of the stack, whatever the task's class is, in order of task ids. Default:
    /// nothing.
    fn task_new(&mut self, _core: &mut Core, _task: TaskId) {}

    /// Puts runnable `task` on the queue of `cpu`. Must call [`Core::add_nr_running`], unless
    /// `flags.delayed` is set (the task is still counted). Required.
    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags);

    /// Removes `task`, queued or running on `cpu`. Must call [`Core::sub_nr_running`]. Returns
    /// `false` to delay the dequeue: the class keeps the task, which stays counted, and the core
    /// sets `sched_delayed` and leaves it `on_rq`. Later the class completes the dequeue (in
    /// [`SchedClass::pick_task`]) with [`Core::sub_nr_running`] and [`Core::dequeue_delayed`], or
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

    /// The running task of `cpu` calls sched_yield. The core reschedules afterwards. Default:
    /// nothing else.
    fn yield_task(&mut self, _core: &mut Core, _cpu: CpuId) {}

    /// `task` was queued on `cpu`, which runs `curr`; both are of this class. Calls
    /// [`Core::resched_curr`] if `task` should preempt `curr`. Required, so that each class decides
    /// this explicitly.
    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        flags: WakeFlags,
    );

    /// A wake-up of `task` of this class reads the clock `ns` from now. Accounts what runs
    /// on the queue where the two compete up to then.
    fn account_ahead(&mut self, core: &mut Core, task: TaskId, ns: Nanos) {
        let _ = (core, task, ns);
    }

    /// Returns the task of this class that `cpu` should run, or `None` if it has none. The running
    /// task is a candidate if it is still runnable. The core does not ask again. A class with one
    /// queue for several CPUs first moves the task here with [`Core::set_task_cpu`]. Required.
    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId>;

    /// The tasks among which an agent outside the run chooses before `cpu` picks; with less than
    /// two there is no choice. Asked only in runs that stop before decisions, when `cpu` is about
    /// to reschedule and its previous task has not left it yet. Default: none.
    fn asks(&self, _core: &Core, _cpu: CpuId) -> Vec<TaskId> {
        Vec::new()
    }

    /// The agent has chosen `task`, one of those that [`SchedClass::asks`] has just returned. The
    /// pick follows. Default: nothing.
    fn decided(&mut self, _task: TaskId) {}

    /// `prev` (of this class) stops running on `cpu`, and `next` runs instead (`None`: idle). If
    /// `prev` is still `on_rq`, the class puts it back into its queue. Default: nothing.
    fn put_prev_task(
        &mut self,
        _core: &mut Core,
        _cpu: CpuId,
        _prev: TaskId,
        _next: Option<TaskId>,
    ) {
    }

    /// `task` (of this class) starts to run on `cpu`. `first`: it was picked. Otherwise it
    /// continues after a change of its attributes. Default: nothing.
    fn set_next_task(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId, _first: bool) {}

    /// Called before a pick: may pull tasks of this class to `cpu`, as RT does. Returns whether the
    /// class has a task for this CPU. Called from the class of the previous task downwards, until
    /// one returns true. Default: no.
    fn balance(&mut self, _core: &mut Core, _cpu: CpuId) -> bool {
        false
    }

    /// `cpu` becomes idle; or a task of any class is about to start on it. `again`: it was idle,
    /// and the pick found no task again. Default: nothing.
    fn idle_changed(&mut self, _core: &mut Core, _cpu: CpuId, _idle: bool, _again: bool) {}

    /// `cpu` found no task in any class: the class may pull one. Returns whether it did; then the
    /// pick is repeated. Default: no.
    fn newidle_balance(&mut self, _core: &mut Core, _cpu: CpuId) -> bool {
        false
    }

    /// How many CPUs [`SchedClass::newidle_balance`] will compare, now that `prev` leaves `cpu`.
    /// `None`: the CPU has other tasks, or does not search. Asked on machines whose searches take
    /// time, which passes before `prev` has left. Default: `None`.
    fn foresee_newidle(&mut self, _core: &mut Core, _cpu: CpuId, _prev: TaskId) -> Option<u32> {
        None
    }

    /// Called after a reschedule of `cpu` if the class has requested it before
    /// ([`Core::queue_balance_callback`]): may push tasks away, as RT does. Default: nothing.
    fn balance_callback(&mut self, _core: &mut Core, _cpu: CpuId) {}

    /// Chooses the CPU for a waking or new task that may use more than one CPU. The core does not
    /// ask again, and refuses a CPU that the task may not use. Default: an idle allowed CPU (its
    /// own first), or else its own, or else the lowest allowed one.
    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        _flags: WakeFlags,
    ) -> CpuId {
        select_idle_cpu(core, task, prev)
    }

    /// The waking task is about to move to `cpu`. It is in no queue. Default: nothing.
    fn migrate_task_rq(&mut self, _core: &mut Core, _task: TaskId, _cpu: CpuId) {}

    /// `task` was woken on `cpu` and does not preempt at once: the class may push it, as RT does.
    /// Default: nothing.
    fn task_woken(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId) {}

    /// A task of a lower class than the running one was woken on `cpu`. Default: nothing.
    fn woken_below(&mut self, _core: &mut Core, _cpu: CpuId) {}

    /// A tick of `cpu` while it runs `curr` (of this class). Default: nothing (no time slices).
    fn task_tick(&mut self, _core: &mut Core, _cpu: CpuId, _curr: TaskId) {}

    /// The CPU whose interrupt handles the timer of `token` with others that expire meanwhile, one
    /// after another. Default: none, as for timers that are not set any more.
    fn timer_cpu(&self, _core: &Core, _token: u64) -> Option<CpuId> {
        None
    }

    /// How many levels of groups a tick of `task` goes through. The machine has a cost for each.
    /// Default: none.
    fn tick_levels(&self, _task: TaskId) -> u32 {
        0
    }

    /// Called after [`SchedClass::task_tick`] for every class of the stack, on a CPU that is not
    /// idle: periodic balancing. Default: nothing.
    fn tick_balance(&mut self, _core: &mut Core, _cpu: CpuId) {}

    /// How many of the next ticks of busy `cpu`, the due one included, do only what
    /// [`SchedClass::pass_ticks`] can do for all of them at once, if no other callback comes
    /// between. `curr` is the running task if it is of this class. The engine then processes these
    /// ticks in one step. Default: none.
    fn quiet_ticks(&self, _core: &Core, _cpu: CpuId, _curr: Option<TaskId>) -> u64 {
        0
    }

    /// `nr` quiet ticks of busy `cpu` have passed. This call replaces as many calls of
    /// [`SchedClass::task_tick`] and [`SchedClass::tick_balance`]. The present time is that of the
    /// last tick. It may make no requests. Default: nothing.
    fn pass_ticks(&mut self, _core: &Core, _cpu: CpuId, _curr: Option<TaskId>, _nr: u64) {}

    /// A new task of this class is forked on `cpu` (the parent's), before its own CPU is chosen.
    /// `parent` is `None` for the launcher. Default: nothing.
    fn task_fork(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId, _parent: Option<TaskId>) {
    }

    /// `task` has exited and left its CPU. Default: nothing.
    fn task_dead(&mut self, _core: &mut Core, _task: TaskId) {}

    /// `task`, of any class, has exited and left its CPU. Called for every class of the stack.
    /// Default: nothing.
    fn task_exited(&mut self, _core: &mut Core, _task: TaskId) {}

    /// `task` is of this class now. Before, it was of class number `old_class` and had the
    /// attributes `old`; `core` has the new ones. It is in no queue yet. Default: nothing.
    fn attr_changed(
        &mut self,
        _core: &mut Core,
        _task: TaskId,
        _old_class: u8,
        _old: &schedlab_model::SchedAttr,
    ) {
    }

    /// After [`Core::request_reclass`]: all tasks have their new classes. Default: nothing.
    fn reclassed(&mut self, _core: &mut Core) {}

    /// `task` leaves this class for another. Its attributes are the new ones. Default: nothing.
    fn switched_from(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId) {}

    /// `task` comes from another class and is already queued if runnable. Default: reschedules its
    /// CPU if it is running; otherwise compares it with the running task.
    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        if core.task(task).on_rq {
            let is_first = core.preempt_check(cpu, task) != PreemptCheck::Nothing;
            if core.is_running(task) || is_first {
                core.resched_curr(cpu);
            }
        }
    }

    /// `task` stays in this class, but its attributes changed. Its kernel priority was `old_prio`.
    /// Default: reschedules its CPU if it is queued.
    fn prio_changed(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _old_prio: i32) {
        if core.task(task).on_rq {
            core.resched_curr(cpu);
        }
    }

    /// `task` holds a mutex with priority inheritance, and `donor`, a task of this class, waits for
    /// it. `task` runs with the parameters of `donor` until the next call with `None`. It is in no
    /// queue, and may be of another class. Called only for the class of SCHED_DEADLINE. Default:
    /// nothing.
    fn lend(&mut self, _core: &Core, _task: TaskId, _donor: Option<TaskId>) {}

    /// Orders waiters of this class with equal priority at a mutex with inheritance: the least key
    /// is first. Called only for the class of SCHED_DEADLINE. Default: 0, so first come, first
    /// served.
    fn waiter_key(&self, _task: TaskId) -> Nanos {
        0
    }

    /// Attributes other than the class are about to change from those in `core` to `attr`. The task
    /// is in no queue. Default: nothing (the class reads `core.task(task).attr` when it needs
    /// them).
    fn attr_changing(
        &mut self,
        _core: &mut Core,
        _task: TaskId,
        _attr: &schedlab_model::SchedAttr,
    ) {
    }

    /// A task set a tunable of the scheduler. Called for every class of the stack. Default:
    /// nothing.
    fn tunable_changed(&mut self, _core: &mut Core, _tunable: SchedTunable, _value: u64) {}

    /// The running task of `cpu` wrote a control file of a group. `core` has the new description of
    /// the group, `old` is the one before. Called for every class of the stack. Default: nothing.
    fn cgroup_changed(
        &mut self,
        _core: &mut Core,
        _cpu: CpuId,
        _change: &Change,
        _old: &CgroupSpec,
    ) {
    }

    /// A timer of this class, started with [`Core::start_timer`], has expired. Default: nothing.
    fn timer(&mut self, _core: &mut Core, _token: u64) {}

    /// `task`, the user half of the scheduler, has used the CPU time of a step on `cpu`: its
    /// program does the step. `None`: the user half is not of this class. Default: it is not.
    fn user_step(&mut self, _core: &mut Core, _cpu: CpuId, _task: TaskId) -> Option<UserNext> {
        None
    }

    /// The slice (ns) that sched_rr_get_interval(2) reports; 0: none. Default: 0.
    fn get_rr_interval(&self, _core: &Core, _task: TaskId) -> Nanos {
        0
    }

    /// Whether the class holds `task` back on purpose (throttled), so that its CPU may be idle.
    /// Default: no.
    fn is_throttled(&self, _core: &Core, _task: TaskId) -> bool {
        false
    }
}

/// The default choice of CPU: `prev` if it is idle and allowed, or else the next idle allowed CPU
/// after it, or else `prev` if allowed, or else the lowest allowed CPU.
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
