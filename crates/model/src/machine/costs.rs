// SPDX-License-Identifier: MIT OR Apache-2.0
//! What things cost on a machine.

use crate::{Nanos, Policy};

/// CPU time (ns) of what the kernel does: switches, wake-ups, ticks, system calls. The machine
/// charges it; a scheduler never does.
///
/// A cost is charged to the task that runs when it arises, as the kernel's accounting does. It
/// delays that task's program and is reported as overhead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Costs {
    /// Switching from one task to another, on the CPU that switches.
    pub context_switch_ns: Nanos,
    /// Each entry of a run queue that the pick examined, after the first.
    pub pick_entry_ns: Nanos,
    /// Waking a task, on the waker's CPU.
    pub wakeup_ns: Nanos,
    /// What it takes more if that task is fair, with half of `preempt_check_ns` if the waker is,
    /// too.
    pub wakeup_fair_ns: Nanos,
    /// Delay of a timer: from the time it is set for (the end of a sleep, a tick, a scheduler's own
    /// timer) until its handler is done. It is charged to no task: the running task continues.
    pub timer_delay_ns: Nanos,
    /// A timer's wake-up, taken from the running task of the CPU: entry of the interrupt, the
    /// timer's own work, the wake-up.
    pub timer_wakeup_ns: Nanos,
    /// Each further wake-up by timers of the CPU that expire at the same time: one interrupt
    /// handles them one after another, with `timer_fair_ns` for a fair task, or half of it while
    /// another class runs. The switch comes after the last.
    pub timer_next_ns: Nanos,
    /// How much earlier a timer wakes a real-time task on a busy CPU than other tasks.
    pub timer_rt_ns: Nanos,
    /// How much later than `timer_delay_ns` says a release after time 0 comes.
    pub start_delay_ns: Nanos,
    /// How much later it comes for each level of groups below the root.
    pub start_entity_ns: Nanos,
    /// How much earlier it comes if a task of FIFO, RR or DEADLINE is released on a busy CPU.
    pub start_rt_ns: Nanos,
    /// How much later a sleep until a point in time ends than one for a duration, which begins
    /// before the call reaches the switch.
    pub timer_absolute_ns: Nanos,
    /// Entry and return of an interrupt. A tick and a timer of its CPU wait for each other, and
    /// what finds an interrupt in progress is spared this.
    pub interrupt_entry_ns: Nanos,
    /// After a switch: interrupts are disabled around it, so a timer that would wake a task of the
    /// CPU in this time does so at its end. So does one in half of this time before a task sleeps.
    pub switch_closed_ns: Nanos,
    /// What a timer's wake-up of a fair task takes in addition: putting it on its queue.
    pub timer_fair_ns: Nanos,
    /// What a timer's wake-up of a fair task takes from the running task, if it preempts that one.
    pub timer_fair_preempt_ns: Nanos,
    /// What a timer's wake-up of a real-time task that does not preempt takes in addition.
    pub timer_wakeup_rt_ns: Nanos,
    /// What comparing a fair task that a timer wakes with a running fair task takes.
    pub preempt_check_ns: Nanos,
    /// A timer of a class, such as that which renews the budget of a SCHED_DEADLINE task, taken
    /// from the running task.
    pub class_timer_ns: Nanos,
    /// How much earlier than `timer_delay_ns` says such a timer takes effect.
    pub class_timer_early_ns: Nanos,
    /// The timer of the 0-lag time of a SCHED_DEADLINE task, taken from the running task.
    pub inactive_timer_ns: Nanos,
    /// From a wake-up that preempts to the switch: the return from the interrupt or the system
    /// call, and the pick. The running task is charged for it. It is the last part of
    /// `timer_delay_ns`: a sleeper wakes that much earlier than it runs. It is no part of
    /// `context_switch_ns`.
    pub wakeup_switch_ns: Nanos,
    /// The part of `wakeup_switch_ns` that puts a preempted fair task back: on a CPU that is idle
    /// or runs a task of another class the switch comes this much earlier.
    pub put_fair_ns: Nanos,
    /// How much later the switch from a preempted fair task of a group to a task of FIFO, RR or
    /// DEADLINE comes that a timer has woken.
    pub put_group_ns: Nanos,
    /// For each level of groups below the root: putting a fair task on its queue when a timer wakes
    /// it, also where the group is on its queue already. And putting back one that is preempted:
    /// by a timer, before the switch, or else on the next task's time, if that is not of the group.
    pub queue_entity_ns: Nanos,
    /// From the start of a sleep (its timer is set) to the switch: the running task is charged for
    /// it, while the time of its sleep passes. Also what other blocking and yielding tasks use up
    /// to the switch. It is no part of `context_switch_ns`.
    pub block_ns: Nanos,
    /// What a sleep of a fair task takes in addition to `block_ns` if another task waits for its
    /// CPU: taking it off its queue, and the pick. The next one is charged for it, likewise.
    pub block_fair_ns: Nanos,
    /// What a sleep of a task of SCHED_DEADLINE takes in addition to `block_ns`, for its timers.
    pub block_deadline_ns: Nanos,
    /// The part of `block_ns` that the pick of a fair task takes. A sleep of a task of FIFO, RR or
    /// DEADLINE is so much shorter if another one of them waits that was not preempted. Its turn
    /// is as much longer, if it has slept.
    pub pick_fair_ns: Nanos,
    /// What the switch from a task that blocks, yields or exits takes in addition to
    /// `context_switch_ns`: the kernel has read the clock before it takes that task off its queue,
    /// so the next one pays.
    pub block_switch_ns: Nanos,
    /// What the switch from a task that is preempted takes in addition to `context_switch_ns`,
    /// likewise, and `tick_entity_ns` more if it is a fair one. On a kernel with `hrtick_ns` a fair
    /// task that was preempted, too, pays `block_switch_ns` instead.
    pub preempt_switch_ns: Nanos,
    /// A reschedule after which the same task goes on: the pick, on its CPU.
    pub repick_ns: Nanos,
    /// For each level of groups below the root, what a fair task takes in addition when it has
    /// slept: taking it off the queues, and putting it back.
    pub block_entity_ns: Nanos,
    /// For each level of groups below the root: a switch to a fair task.
    pub pick_entity_ns: Nanos,
    /// What such a switch takes instead for each level at which the previous task is in the same
    /// group, unless that one is in a deeper group, too. 0: as for others.
    pub pick_shared_ns: Nanos,
    /// For each level of groups below the root: what the switch from a fair task that blocks or
    /// exits takes more, with [`Costs::pick_shared_ns`] instead where the next one is in the same
    /// group. The kernel has read the clock before, so the next task pays.
    pub dequeue_entity_ns: Nanos,
    /// What the switch from a task takes more that sleeps and stays on its queue (delayed dequeue):
    /// putting it back there. The next one pays.
    pub delay_dequeue_ns: Nanos,
    /// Each task that a pick takes off its queue, where it has waited asleep (delayed dequeue).
    pub dequeue_delayed_ns: Nanos,
    /// From the wake-up until an idle CPU executes its first instruction (interrupt and idle exit).
    pub idle_exit_ns: Nanos,
    /// How much less the switch from the idle task takes if the next task is of FIFO, RR or
    /// DEADLINE.
    pub idle_rt_ns: Nanos,
    /// From the wake-up to the switch on a CPU that was idle at a tick, in addition to
    /// `wakeup_switch_ns`: it had stopped its tick. Charged to no task.
    pub idle_tick_ns: Nanos,
    /// First run of a task on a CPU other than its last one, within the same last-level cache.
    pub migration_ns: Nanos,
    /// First run of a task on a CPU with another last-level cache than its last one.
    pub migration_llc_ns: Nanos,
    /// One timer tick, on the CPU that takes it.
    pub tick_ns: Nanos,
    /// What a tick that ends the turn of a task of FIFO, RR or DEADLINE takes more before the
    /// switch, if the next task is fair.
    pub tick_pick_fair_ns: Nanos,
    /// The part of a tick (`tick_ns` and `tick_entity_ns`) after it has charged the running task:
    /// the rest of the interrupt and the return from it. If the tick requests a reschedule, the CPU
    /// picks the next task only after this time. The running task is charged for it. A quantum of
    /// exactly n ticks is therefore not used up at the n-th tick.
    pub tick_resched_ns: Nanos,
    /// How long before a switch the kernel has read the clock from which the next task is charged.
    /// A tick charges a fair task so much more than since its switch.
    pub clock_lead_ns: Nanos,
    /// How long before a switch that a tick has asked for the kernel has read the clock from which
    /// the next task is charged.
    pub tick_lead_ns: Nanos,
    /// How much more a tick charges a task of SCHED_DEADLINE than since its switch.
    pub tick_budget_lead_ns: Nanos,
    /// What a tick takes beyond `tick_ns` for each level of groups at which it accounts a task of
    /// the fair class: one for a task of the root group, two in a group below it.
    pub tick_entity_ns: Nanos,
    /// What a tick takes beyond `tick_ns` for a task of FIFO, RR or DEADLINE.
    pub tick_rt_ns: Nanos,
    /// Starting the timer that ends a slice (HRTICK), on the CPU of the task whose slice begins.
    /// The slice counts after it and, at a switch, `context_switch_ns`.
    pub hrtick_ns: Nanos,
    /// What the expiry of that timer takes from a fair task, without `hrtick_resched_ns`.
    pub hrtick_end_ns: Nanos,
    /// From the expiry of that timer, when the running task has been charged, to the switch: the
    /// rest of the interrupt and the pick. The running task is charged for it.
    pub hrtick_resched_ns: Nanos,
    /// The timer of a slice or a budget that expires while a task of another class runs, taken from
    /// that task.
    pub hrtick_stray_ns: Nanos,
    /// What the update of a load average takes more there, at each level, if one of its periods has
    /// ended since the task was picked: they are multiples of 2^20 ns. Tasks whose slices would be
    /// equal differ by it. Half of it falls on the switch to a task that was preempted before.
    pub load_period_ns: Nanos,
    /// From the switch to a task whose group has used its quota (cpu.max) to its return to user
    /// mode, where it is throttled (Linux 6.18 on). 0: it is throttled when it is picked.
    pub throttle_ns: Nanos,
    /// What a timer's wake-up of a fair task takes in addition if no other one is on the CPU, such
    /// as for the fair server. The switch to it on an idle CPU comes as much later.
    pub first_fair_ns: Nanos,
    /// A timer that lets a group run again which had used its quota, on a machine with one CPU.
    pub unthrottle_ns: Nanos,
    /// What it takes more for each throttled task (Linux 6.18 on).
    pub unthrottle_task_ns: Nanos,
    /// Beginning a new period of the fair server, whose budget fair tasks have used up without its
    /// help. A tick that does it takes this longer, before the switch that it asks for.
    pub server_refill_ns: Nanos,
    /// How much earlier than time 0 a fair server starts, or a period of real-time throttling: a
    /// launcher wakes the tasks of time 0 before it. The next two costs come on top.
    pub server_lead_ns: Nanos,
    /// How much earlier it starts for each task of time 0 with policy OTHER, BATCH or IDLE.
    pub server_lead_fair_ns: Nanos,
    /// How much earlier it starts for each task of time 0 with policy FIFO or RR.
    pub server_lead_rt_ns: Nanos,
    /// How long a CPU idles between the start of its fair server by a launcher and time 0, in
    /// addition to the lead: kernels from 7.0 on start a server whose parameters are written. 0:
    /// servers start with the first fair task.
    pub server_idle_ns: Nanos,
    /// From a tick that asks an idle CPU to look for tasks until it does: a message, the way out of
    /// idle, a softirq.
    pub nohz_kick_ns: Nanos,
    /// A search for tasks of other CPUs by one that is about to go idle, before its task has left.
    /// The next cost comes on top.
    pub newidle_ns: Nanos,
    /// What such a search takes for each CPU that it compares.
    pub newidle_cpu_ns: Nanos,
    /// 1,000 instructions of the programs of a scheduler for sched_ext, and of the functions of the
    /// kernel that they call. 0: programs take no time.
    pub bpf_kinsn_ns: Nanos,
    /// Creating a task, on the parent's CPU. The child exists after this time.
    pub fork_ns: Nanos,
    /// What the first fork of a task takes in addition to `fork_ns` (page faults of shared memory).
    pub first_fork_ns: Nanos,
    /// What a parent takes when it continues after a fork, in user mode: it copies shared pages.
    pub fork_after_ns: Nanos,
    /// The part of `fork_after_ns` that the child takes instead if it runs before that.
    pub fork_copy_ns: Nanos,
    /// What a parent takes more than `fork_after_ns`, and its child less than `child_start_ns`, if
    /// the parent is switched out in the fork or after it, and runs again before the child.
    pub fork_switch_ns: Nanos,
    /// What a fork takes in addition if the kernel has no stack of an ended task for the child.
    pub fork_stack_ns: Nanos,
    /// What a fork takes in addition in a run with control groups: more pages to share.
    pub fork_groups_ns: Nanos,
    /// What a fork takes in addition for each launched task of the run beyond the first: what the
    /// program keeps of it is shared, too.
    pub fork_task_ns: Nanos,
    /// What a parent that writes to the file of a group after a fork takes more, and its child
    /// less, if the child has not run: pages of the heap.
    pub fork_heap_ns: Nanos,
    /// The first part of `fork_ns`, in which a kernel that is not preemptible cannot switch.
    pub fork_held_ns: Nanos,
    /// The part of `exit_ns` just before `exit_freed_ns`, in which such a kernel cannot switch.
    pub exit_held_ns: Nanos,
    /// The part of `exit_ns` between that and `exit_after_ns`.
    pub exit_freed_ns: Nanos,
    /// The last part of `exit_ns`, before which the task hands its first memory to RCU.
    pub exit_rcu_ns: Nanos,
    /// From a tick to the wake-up of RCU's thread, in the softirq after it. Meanwhile the running
    /// task's program continues: what a visit takes from it is in other costs.
    pub rcu_wakeup_ns: Nanos,
    /// Freeing what a task that has ended leaves, in the softirq of the tick after the last visit
    /// of RCU's thread: time of the running task.
    pub rcu_free_ns: Nanos,
    /// Waiting for children: what a call that sleeps takes in addition to `syscall_ns`.
    pub join_ns: Nanos,
    /// What a task that slept in a wait for children takes when it is woken, until it continues:
    /// releasing the child.
    pub reap_ns: Nanos,
    /// The part of `reap_ns` that comes after the last child.
    pub reap_last_ns: Nanos,
    /// What a wait for children takes for each child that has exited before its turn.
    pub join_child_ns: Nanos,
    /// Start of a task that no other one forked, from its release until its program begins, on the
    /// CPU that runs it first.
    pub task_start_ns: Nanos,
    /// From time 0 to the first wake-up of a task of time 0, if a launcher wakes them one after
    /// another from then on. 0: all are awake at time 0.
    pub release_ns: Nanos,
    /// How much later than others a task of SCHED_DEADLINE is released at time 0, because a
    /// launcher wakes it after the tick. Without `release_ns` only.
    pub release_deadline_ns: Nanos,
    /// How much longer the launcher runs at time 0 for each task of that time that it has woken
    /// before, on one CPU. 0: it takes `run_ns` only. Otherwise, if the first one is fair, it takes
    /// `pick_fair_ns` more and, for each level of groups below the root, `pick_entity_ns`.
    pub launch_task_ns: Nanos,
    /// Start of a forked task before its program begins (page faults of memory shared with its
    /// parent, setup), on the CPU that runs it first.
    pub child_start_ns: Nanos,
    /// How much less a forked task takes there if its parent has ended, and all its other children:
    /// it shares its memory with no task, and copies no page.
    pub child_alone_ns: Nanos,
    /// The part of `exit_ns` that a forked task takes just before its first sleep instead, if it
    /// sleeps: the pages to which it writes then.
    pub child_sleep_ns: Nanos,
    /// End of a task after its program (freeing its memory), on its CPU.
    pub exit_ns: Nanos,
    /// What the first exit of a run takes in addition to `exit_ns`.
    pub first_exit_ns: Nanos,
    /// What an exit takes in addition where tasks of the run fork: all tasks share memory with
    /// those that may come.
    pub exit_shared_ns: Nanos,
    /// What the exit of a task that no other one forked then takes for each event and condition
    /// variable: their queues have room for every task.
    pub exit_queue_ns: Nanos,
    /// What the exit of a task that no other one forked takes in addition where the run has
    /// control groups.
    pub exit_groups_ns: Nanos,
    /// How much longer the exit of a launched task takes than that of a forked one.
    pub exit_launched_ns: Nanos,
    /// What the exit of a forked task takes in addition for each launched task of the run beyond
    /// the first: it frees what the program keeps of it.
    pub exit_task_ns: Nanos,
    /// What a forked task and its exit take in addition there.
    pub child_groups_ns: Nanos,
    /// What the exit of a task takes in addition whose program records what it does, as every
    /// phase, yield and wait for children does. Operations on objects do, too, unless the task was
    /// forked.
    pub exit_marks_ns: Nanos,
    /// The last part of `exit_ns`: what an exit takes after it has woken the parent that waits.
    pub exit_after_ns: Nanos,
    /// Changing scheduling attributes: what the call takes in addition to `syscall_ns`, before the
    /// change.
    pub set_attr_ns: Nanos,
    /// What that call takes after the change.
    pub set_attr_after_ns: Nanos,
    /// Moving to another control group: what it takes before the move, in addition to a change of
    /// attributes. If it is not 0, one task moves at a time: a task that loses the CPU during its
    /// move keeps the others waiting.
    pub group_move_ns: Nanos,
    /// The part of `group_move_ns` before a task waits for another one's move.
    pub group_lock_ns: Nanos,
    /// What a move to a group without tasks takes in addition, before the move.
    pub group_first_ns: Nanos,
    /// What the move of a fair task takes in addition, before the move.
    pub group_fair_ns: Nanos,
    /// What that move takes after it.
    pub group_move_after_ns: Nanos,
    /// Writing a control file of a group, in addition to `syscall_ns`.
    pub group_change_ns: Nanos,
    /// Setting a limit (cpu.max), in addition to `group_change_ns`.
    pub cpu_max_ns: Nanos,
    /// Setting the first limit of any group, or removing the last one, in addition to `cpu_max_ns`:
    /// the kernel rewrites its own code (a static key).
    pub cpu_max_switch_ns: Nanos,
    /// Any other system call of a program (sleep, yield, timer, I/O submission, exit).
    pub syscall_ns: Nanos,
    /// What a wait on a mutex, a semaphore, a barrier or a condition, or the wake-up of a waiter,
    /// takes in addition to `syscall_ns`.
    pub futex_ns: Nanos,
    /// What a program takes to begin to run for a time, in user mode.
    pub run_step_ns: Nanos,
    /// Recording a phase, in user mode.
    pub phase_ns: Nanos,
    /// A lock or unlock of a mutex that is no system call.
    pub mutex_ns: Nanos,
    /// An operation on a semaphore that is no system call.
    pub semaphore_ns: Nanos,
    /// What a wait for a mutex with priority inheritance takes before it, beyond other mutexes: the
    /// owner gets the waiter's priority.
    pub pi_wait_ns: Nanos,
    /// What such a wait takes after it, beyond other mutexes, if no other task waits.
    pub pi_acquire_ns: Nanos,
    /// What the unlock of such a mutex with waiters takes beyond other mutexes, before the wake-up:
    /// the owner returns the priority.
    pub pi_unlock_ns: Nanos,
    /// A write to a pipe or a read from it, including the system call. The copy
    /// ([`Device::copy_kib_ns`]) and the wake-ups are extra.
    pub pipe_ns: Nanos,
    /// A write to a socket pair or a read from it, including the system call.
    pub socket_ns: Nanos,
    /// How long a wake-up or a pick holds the lock of its run queue. [`Costs::pick_entry_ns`] is
    /// added for each entry examined under the lock. This time is part of `wakeup_ns` and
    /// `context_switch_ns`; a pick that keeps the running task costs `repick_ns` besides. CPUs that
    /// need the same lock wait.
    pub lock_hold_ns: Nanos,
    /// Taking a run queue's lock, and the cache lines that it protects, from the CPU that held it
    /// last.
    pub lock_transfer_ns: Nanos,
    /// A transfer on a pipe or a socket pair whose other end was last used on another CPU: the
    /// message and the channel's data are in that CPU's cache.
    pub channel_transfer_ns: Nanos,
    /// Reading a cache line of a task's structure, where the kernel reads one line for every task
    /// of a list: at an exit, and at a wait for children under Linux 2.4.
    pub task_line_ns: Nanos,
}

/// Defines the list of the costs' names, and the cost of each name.
macro_rules! names_of_costs {
    ($($name:ident),* $(,)?) => {
        impl Costs {
            /// Names of the costs, in the order of the fields. A costs file has one `name =
            /// integer` per line.
            pub const NAMES: [&'static str; [$(stringify!($name)),*].len()] =
                [$(stringify!($name)),*];

            /// The cost called `name`, to be changed.
            pub fn field_mut(&mut self, name: &str) -> Option<&mut Nanos> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

names_of_costs! {
    context_switch_ns,
    pick_entry_ns,
    wakeup_ns,
    wakeup_fair_ns,
    timer_delay_ns,
    timer_wakeup_ns,
    timer_next_ns,
    timer_rt_ns,
    start_delay_ns,
    start_entity_ns,
    start_rt_ns,
    timer_absolute_ns,
    interrupt_entry_ns,
    switch_closed_ns,
    timer_fair_ns,
    timer_fair_preempt_ns,
    timer_wakeup_rt_ns,
    preempt_check_ns,
    class_timer_ns,
    class_timer_early_ns,
    inactive_timer_ns,
    wakeup_switch_ns,
    put_fair_ns,
    put_group_ns,
    queue_entity_ns,
    block_ns,
    block_fair_ns,
    block_deadline_ns,
    pick_fair_ns,
    block_switch_ns,
    preempt_switch_ns,
    repick_ns,
    block_entity_ns,
    pick_entity_ns,
    pick_shared_ns,
    dequeue_entity_ns,
    delay_dequeue_ns,
    dequeue_delayed_ns,
    idle_exit_ns,
    idle_rt_ns,
    idle_tick_ns,
    migration_ns,
    migration_llc_ns,
    tick_ns,
    tick_pick_fair_ns,
    tick_resched_ns,
    clock_lead_ns,
    tick_lead_ns,
    tick_budget_lead_ns,
    tick_entity_ns,
    tick_rt_ns,
    hrtick_ns,
    hrtick_end_ns,
    hrtick_resched_ns,
    hrtick_stray_ns,
    load_period_ns,
    throttle_ns,
    first_fair_ns,
    unthrottle_ns,
    unthrottle_task_ns,
    server_refill_ns,
    server_lead_ns,
    server_lead_fair_ns,
    server_lead_rt_ns,
    server_idle_ns,
    nohz_kick_ns,
    newidle_ns,
    newidle_cpu_ns,
    bpf_kinsn_ns,
    fork_ns,
    first_fork_ns,
    fork_after_ns,
    fork_copy_ns,
    fork_switch_ns,
    fork_stack_ns,
    fork_groups_ns,
    fork_task_ns,
    fork_heap_ns,
    fork_held_ns,
    exit_held_ns,
    exit_freed_ns,
    exit_rcu_ns,
    rcu_wakeup_ns,
    rcu_free_ns,
    join_ns,
    reap_ns,
    reap_last_ns,
    join_child_ns,
    task_start_ns,
    release_ns,
    release_deadline_ns,
    launch_task_ns,
    child_start_ns,
    child_alone_ns,
    child_sleep_ns,
    exit_ns,
    first_exit_ns,
    exit_shared_ns,
    exit_queue_ns,
    exit_groups_ns,
    exit_launched_ns,
    exit_task_ns,
    child_groups_ns,
    exit_marks_ns,
    exit_after_ns,
    set_attr_ns,
    set_attr_after_ns,
    group_move_ns,
    group_lock_ns,
    group_first_ns,
    group_fair_ns,
    group_move_after_ns,
    group_change_ns,
    cpu_max_ns,
    cpu_max_switch_ns,
    syscall_ns,
    futex_ns,
    run_step_ns,
    phase_ns,
    mutex_ns,
    semaphore_ns,
    pi_wait_ns,
    pi_acquire_ns,
    pi_unlock_ns,
    pipe_ns,
    socket_ns,
    lock_hold_ns,
    lock_transfer_ns,
    channel_transfer_ns,
    task_line_ns,
}

impl Costs {
    /// How much earlier than time 0 fair servers started, with tasks of these policies at time 0.
    pub fn server_lead(&self, policies: impl Iterator<Item = Policy>) -> Nanos {
        policies.fold(self.server_lead_ns, |sum, policy| {
            let more = match policy {
                policy if policy.is_fair() => self.server_lead_fair_ns,
                policy if policy.is_rt() => self.server_lead_rt_ns,
                _ => 0,
            };
            sum.saturating_add(more)
        })
    }

    /// All costs are 0, so textbook formulas hold exactly.
    pub const ZERO: Self = Self {
        context_switch_ns: 0,
        pick_entry_ns: 0,
        wakeup_ns: 0,
        wakeup_fair_ns: 0,
        timer_delay_ns: 0,
        timer_wakeup_ns: 0,
        timer_next_ns: 0,
        timer_rt_ns: 0,
        start_delay_ns: 0,
        start_entity_ns: 0,
        start_rt_ns: 0,
        timer_absolute_ns: 0,
        interrupt_entry_ns: 0,
        switch_closed_ns: 0,
        timer_fair_ns: 0,
        timer_fair_preempt_ns: 0,
        timer_wakeup_rt_ns: 0,
        preempt_check_ns: 0,
        class_timer_ns: 0,
        class_timer_early_ns: 0,
        inactive_timer_ns: 0,
        wakeup_switch_ns: 0,
        put_fair_ns: 0,
        put_group_ns: 0,
        queue_entity_ns: 0,
        block_ns: 0,
        block_fair_ns: 0,
        block_deadline_ns: 0,
        pick_fair_ns: 0,
        block_switch_ns: 0,
        preempt_switch_ns: 0,
        repick_ns: 0,
        block_entity_ns: 0,
        pick_entity_ns: 0,
        pick_shared_ns: 0,
        dequeue_entity_ns: 0,
        delay_dequeue_ns: 0,
        dequeue_delayed_ns: 0,
        idle_exit_ns: 0,
        idle_rt_ns: 0,
        idle_tick_ns: 0,
        migration_ns: 0,
        migration_llc_ns: 0,
        tick_ns: 0,
        tick_pick_fair_ns: 0,
        tick_resched_ns: 0,
        clock_lead_ns: 0,
        tick_lead_ns: 0,
        tick_budget_lead_ns: 0,
        tick_entity_ns: 0,
        tick_rt_ns: 0,
        hrtick_ns: 0,
        hrtick_end_ns: 0,
        hrtick_resched_ns: 0,
        hrtick_stray_ns: 0,
        load_period_ns: 0,
        throttle_ns: 0,
        first_fair_ns: 0,
        unthrottle_ns: 0,
        unthrottle_task_ns: 0,
        server_refill_ns: 0,
        server_lead_ns: 0,
        server_lead_fair_ns: 0,
        server_lead_rt_ns: 0,
        server_idle_ns: 0,
        nohz_kick_ns: 0,
        newidle_ns: 0,
        newidle_cpu_ns: 0,
        bpf_kinsn_ns: 0,
        fork_ns: 0,
        first_fork_ns: 0,
        fork_after_ns: 0,
        fork_copy_ns: 0,
        fork_switch_ns: 0,
        fork_stack_ns: 0,
        fork_groups_ns: 0,
        fork_task_ns: 0,
        fork_heap_ns: 0,
        fork_held_ns: 0,
        exit_held_ns: 0,
        exit_freed_ns: 0,
        exit_rcu_ns: 0,
        rcu_wakeup_ns: 0,
        rcu_free_ns: 0,
        join_ns: 0,
        reap_ns: 0,
        reap_last_ns: 0,
        join_child_ns: 0,
        task_start_ns: 0,
        release_ns: 0,
        release_deadline_ns: 0,
        launch_task_ns: 0,
        child_start_ns: 0,
        child_alone_ns: 0,
        child_sleep_ns: 0,
        exit_ns: 0,
        first_exit_ns: 0,
        exit_shared_ns: 0,
        exit_queue_ns: 0,
        exit_groups_ns: 0,
        exit_launched_ns: 0,
        exit_task_ns: 0,
        child_groups_ns: 0,
        exit_marks_ns: 0,
        exit_after_ns: 0,
        set_attr_ns: 0,
        set_attr_after_ns: 0,
        group_move_ns: 0,
        group_lock_ns: 0,
        group_first_ns: 0,
        group_fair_ns: 0,
        group_move_after_ns: 0,
        group_change_ns: 0,
        cpu_max_ns: 0,
        cpu_max_switch_ns: 0,
        syscall_ns: 0,
        futex_ns: 0,
        run_step_ns: 0,
        phase_ns: 0,
        mutex_ns: 0,
        semaphore_ns: 0,
        pi_wait_ns: 0,
        pi_acquire_ns: 0,
        pi_unlock_ns: 0,
        pipe_ns: 0,
        socket_ns: 0,
        lock_hold_ns: 0,
        lock_transfer_ns: 0,
        channel_transfer_ns: 0,
        task_line_ns: 0,
    };

    /// Typical costs of a current x86 server, used when the host has not been calibrated. They are
    /// orders of magnitude from `perf bench sched pipe` and `lat_ctx`; `schedlab calibrate`
    /// measures this machine. Costs of locks and of cache lines on other CPUs are 0: with a queue
    /// for each CPU they matter little, and no program can measure them alone.
    pub const DEFAULT: Self = Self {
        context_switch_ns: 1_200,
        pick_entry_ns: 20,
        wakeup_ns: 900,
        idle_exit_ns: 2_500,
        migration_ns: 1_500,
        migration_llc_ns: 6_000,
        tick_ns: 1_500,
        fork_ns: 60_000,
        syscall_ns: 250,
        pipe_ns: 400,
        socket_ns: 800,
        ..Self::ZERO
    };

    /// Costs that are caused by memory, not by instructions. A faster clock does not reduce them.
    pub const OF_MEMORY: [&'static str; 6] = [
        "pick_entry_ns",
        "migration_ns",
        "migration_llc_ns",
        "lock_transfer_ns",
        "channel_transfer_ns",
        "task_line_ns",
    ];

    /// Converts costs measured at a clock of `from_mhz` to a clock of `to_mhz` (both >= 1), rounded
    /// to the nearest nanosecond. Costs caused by memory stay.
    pub fn at_clock(mut self, from_mhz: u32, to_mhz: u32) -> Self {
        for name in Self::NAMES {
            if !Self::OF_MEMORY.contains(&name)
                && let Some(ns) = self.field_mut(name)
            {
                let (from, to) = (u128::from(from_mhz), u128::from(to_mhz.max(1)));
                let scaled = (u128::from(*ns) * from + to / 2) / to;
                *ns = Nanos::try_from(scaled).unwrap_or(Nanos::MAX);
            }
        }
        self
    }

    /// A wait on an object of the C library, or the wake-up of a waiter, with the system call.
    pub const fn futex_call_ns(&self) -> Nanos {
        self.syscall_ns.saturating_add(self.futex_ns)
    }

    /// Whether CPUs wait for each other when they need the lock of the same run queue.
    pub const fn has_locks(&self) -> bool {
        self.lock_hold_ns > 0 || self.lock_transfer_ns > 0
    }

    /// Whether the searches of CPUs that are about to go idle take time.
    pub const fn has_newidle(&self) -> bool {
        self.newidle_ns > 0 || self.newidle_cpu_ns > 0
    }

    /// The cost called `name`.
    pub fn field(&self, name: &str) -> Option<Nanos> {
        let mut copy = *self;
        copy.field_mut(name).map(|value| *value)
    }
}
