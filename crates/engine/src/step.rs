// SPDX-License-Identifier: MIT OR Apache-2.0
//! Continues a running program: its CPU time is used up, and the next operations are executed.

use crate::clock::Due;
use crate::engine::Engine;
use crate::error::SimError;
use crate::exec::Waiting;
use crate::objects::SPIN_ENDS;
use schedlab_model::program::{IoDirection, SchedTunable, TimerMode};
use schedlab_model::{Costs, CpuId, EventKind, Nanos, Policy, Step, TaskId, TraceSink};
use schedlab_sched::boundary::core::TaskState;

/// The result of a step.
pub(crate) enum Next {
    /// Continue with the next step.
    Continue,
    /// The task is busy for this long.
    Busy(Nanos),
    /// The task is busy until this time.
    BusyUntil(Nanos),
    /// The task spins for a mutex until another one ends that.
    Spin,
    /// The task is busy for this long with what its program did not ask for.
    Faults(Nanos),
    /// A system call is done. Its time passes before the program continues, and the CPU reschedules
    /// if that was requested.
    Call,
    /// The task called sched_yield.
    Yield,
    /// The task blocks or exits.
    Block(TaskState),
}

impl<S: TraceSink> Engine<'_, S> {
    /// Continues the program of the running task of `cpu`.
    pub(crate) fn step(&mut self, cpu: CpuId) {
        let task = self.core.rq(cpu).curr.expect("an idle CPU has no burst to end");
        debug_assert!(self.clock.burst_ends.get(cpu) <= self.core.now, "a burst ends too early");
        debug_assert_eq!(self.core.task(task).state, TaskState::Running, "task {task} goes on");
        self.burst_ended(cpu, task);
        self.tasks[task].wall_until = None;
        self.custody.bursts_end();
        if self.reschedules_on_return(cpu) {
            self.pause(cpu, task);
            self.schedule(cpu);
            return;
        }
        loop {
            self.count_round(cpu);
            if self.custody.has_failed() {
                return;
            }
            debug_assert_eq!(self.core.rq(cpu).curr, Some(task), "CPU {cpu} has switched");
            match self.step_once(cpu, task) {
                Next::Continue => {}
                Next::Busy(ns) => {
                    self.outcome.work_ns = self.outcome.work_ns.saturating_add(ns);
                    self.start_owed_burst(cpu, task, 0, ns);
                    return;
                }
                Next::Faults(ns) => {
                    // Between two faults it is in user mode, where a lazy request takes effect.
                    let is_user = self.cpus.kernel_mode.is_preemptible();
                    let (in_kernel, ns) = if is_user { (0, ns) } else { (ns, 0) };
                    self.start_owed_burst(cpu, task, in_kernel, ns);
                    return;
                }
                Next::BusyUntil(at) => {
                    self.tasks[task].wall_until = Some(at);
                    self.start_burst(cpu, task, 0, 0);
                    return;
                }
                Next::Spin => {
                    self.tasks[task].wall_until = Some(SPIN_ENDS);
                    self.start_burst(cpu, task, 0, 0);
                    return;
                }
                Next::Call => {
                    if self.leaves_call(cpu, task) {
                        return;
                    }
                }
                Next::Yield => {
                    self.pause(cpu, task);
                    self.schedule(cpu);
                    return;
                }
                Next::Block(state) => {
                    self.core.tasks[task.index()].state = state;
                    self.finish_burst(cpu, task);
                    self.schedule(cpu);
                    return;
                }
            }
        }
    }

    /// At the end of a call: whether the program stops here for now, because a reschedule was
    /// requested or because the call's time must pass first.
    fn leaves_call(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let rq = self.core.rq(cpu);
        let reschedules = rq.need_resched || rq.need_resched_lazy;
        let owed_ns = self.tasks[task].overhead;
        let leaves = reschedules || owed_ns > 0;
        if leaves {
            self.pause(cpu, task);
        }
        if reschedules && self.stays_in_kernel(cpu) {
            // The rest of the call takes the task on the way to the switch, too: further wake-ups.
            let takes_time = self.costs.wakeup_switch_ns > 0;
            if takes_time && owed_ns > 0 && self.core.rq(cpu).need_resched {
                let exits = self.tasks[task].shared.as_ref().is_some_and(|own| own.has_left);
                // A preemptible kernel switches before the end of an exit.
                let is_held = !exits || !self.cpus.kernel_mode.is_preemptible();
                let rest_ns = if is_held { owed_ns } else { self.costs.wakeup_ns };
                self.resched_after(cpu, rest_ns.min(owed_ns));
            }
        } else if reschedules {
            if self.costs.wakeup_switch_ns > 0 {
                self.core.resched_curr(cpu);
                self.switches_later(0);
            } else {
                self.schedule(cpu);
            }
        }
        leaves
    }

    /// The program continues after a reschedule, if one was requested, once the call's time has
    /// passed.
    fn pause(&mut self, cpu: CpuId, task: TaskId) {
        self.start_owed_burst(cpu, task, 0, 0);
    }

    pub(crate) fn charge(&mut self, task: TaskId, ns: Nanos) {
        let exec = &mut self.tasks[task];
        exec.overhead = exec.overhead.saturating_add(ns);
    }

    /// Charges `task`, which has woken another one, for the programs of a scheduler that ran then.
    #[inline]
    pub(crate) fn charge_programs(&mut self, task: Option<TaskId>) {
        if let Some(task) = task
            && self.core.work.bpf_insns > 0
        {
            let ns = self.class_cost();
            self.charge(task, ns);
        }
    }

    fn step_once(&mut self, cpu: CpuId, task: TaskId) -> Next {
        if self.is_user(self.tasks[task].spec) {
            return self.user_step(cpu, task);
        }
        if self.has_followers
            && let Some(next) = self.spins_on(task)
        {
            return next;
        }
        if let Some(threads) = &self.threads
            && let Some(number) = threads.number(self.tasks[task].spec)
        {
            return self.thread_step(number, task);
        }
        let exec = &mut self.tasks[task];
        let workload = self.workload;
        let program = &workload.tasks[exec.spec as usize].program;
        let (pending, is_paid) = match exec.shared.as_mut() {
            Some(shared) if shared.copies_ns > 0 => {
                return Next::Faults(std::mem::take(&mut shared.copies_ns));
            }
            Some(shared) => (shared.pending.take(), std::mem::take(&mut shared.is_paid)),
            None => (None, false),
        };
        let step = match pending {
            Some(step) if is_paid => return self.paid_step(cpu, task, step),
            Some(step @ (Step::JoinAll | Step::Join { .. })) => {
                if self.walks.is_none() && !self.would_block(task, step) {
                    self.charge(task, self.costs.reap_last_ns);
                    return Next::Call;
                }
                step
            }
            Some(Step::SetAttr(op)) => return self.sets_attr(cpu, task, op),
            Some(Step::Change(op)) => return self.changes_group(cpu, task, op),
            Some(Step::Sleep(ns)) => return self.sleep_rest(task, ns),
            Some(Step::Exit) => return self.exit(cpu, task),
            Some(Step::Fork { task: spec }) => return self.fork_goes_on(cpu, task, spec),
            Some(step) => return self.object_step(cpu, task, step, true),
            None => exec.interpreter.next(program),
        };
        self.charge_call(task, &step, pending.is_none());
        self.begin_step(cpu, task, step)
    }

    /// Charges `task` for the call that `step` is. `is_new`: it has not waited in it.
    #[inline(always)]
    fn charge_call(&mut self, task: TaskId, step: &Step, is_new: bool) {
        if is_syscall(step) {
            self.charge(task, self.costs.syscall_ns);
        }
        if is_new && matches!(step, Step::JoinAll | Step::Join { .. }) {
            if self.costs.join_ns > 0 && self.would_block(task, *step) {
                self.charge(task, self.costs.join_ns);
            }
            self.reaps_children(task);
        }
    }

    /// The program of `task` comes to `step`, whose call is charged.
    fn begin_step(&mut self, cpu: CpuId, task: TaskId, step: Step) -> Next {
        let now = self.core.now;
        match step {
            Step::Run(0) | Step::RunWall(0) => Next::Continue,
            Step::Run(ns) => {
                if self.costs.run_step_ns > 0 {
                    self.charge(task, self.costs.run_step_ns);
                }
                Next::Busy(ns)
            }
            Step::RunWall(ns) => Next::BusyUntil(now.saturating_add(ns)),
            Step::Sleep(0) => Next::Call,
            Step::Sleep(ns) => self.sleep(task, ns),
            Step::Timer { timer, period, mode } => self.timer(task, timer, period, mode),
            Step::Io { direction, bytes, sync } => self.io(task, direction, bytes, sync),
            Step::Yield => self.yields(cpu, task),
            // The child exists, and may preempt, when the work of the fork is done.
            Step::Fork { .. } if self.costs.fork_ns > 0 => {
                let held_ns = self.held_ns(self.costs.fork_held_ns);
                if held_ns > 0 {
                    self.shared(task).has_no_point = true;
                    return self.call_first(task, held_ns, step);
                }
                let ns = self.fork_ns(task);
                self.call_first(task, ns, step)
            }
            Step::Fork { task: spec } => self.fork(cpu, task, spec),
            Step::JoinAll if self.pays_first(task, step) => Next::Call,
            Step::JoinAll => self.wait_for_children(cpu, task, None),
            Step::SetAttr(op) => match self.begin_set_attr_ns(task, op) {
                0 => self.sets_attr(cpu, task, op),
                ns => self.call_first(task, ns, step),
            },
            Step::Change(op) => match self.first_change_ns(task, op) {
                0 => self.changes_group(cpu, task, op),
                ns => self.call_first(task, ns, step),
            },
            Step::Tune { tunable, value } => self.tune(task, tunable, value),
            Step::Phase(phase) => {
                self.emit(cpu, EventKind::Phase { task, phase });
                match self.costs.phase_ns {
                    0 => Next::Continue,
                    ns => Next::Faults(ns),
                }
            }
            Step::Progress => {
                self.emit(cpu, EventKind::Progress { task });
                Next::Continue
            }
            Step::Exit => self.begin_exit(cpu, task),
            Step::Mem { .. } | Step::MemRun { .. } => {
                match self.config.machine.memory.cpu_ns(&step) {
                    0 => Next::Continue,
                    ns => Next::Busy(ns),
                }
            }
            step => self.first_object_step(cpu, task, step),
        }
    }

    /// The running task of `cpu` calls sched_yield.
    pub(crate) fn yields(&mut self, cpu: CpuId, task: TaskId) -> Next {
        let (class, core) = self.class(self.core.task(task).class);
        class.yield_task(core, cpu);
        self.drain();
        self.tasks[task].yielded = true;
        self.charge(task, self.costs.block_ns);
        Next::Yield
    }

    /// A task sets a tunable of the scheduler.
    fn tune(&mut self, task: TaskId, tunable: SchedTunable, value: u64) -> Next {
        if let Err(why) = self.rt_limit.set(tunable, value) {
            let (task, time_ns) = (self.tasks[task].name.clone(), self.core.now);
            self.fail(SimError::Refused { task, why, time_ns });
            return Next::Call;
        }
        self.each_class(|class, core| class.tunable_changed(core, tunable, value));
        self.drain();
        Next::Call
    }

    /// Lets the time of a call pass (`ns` in addition to pending costs), then executes `step`.
    pub(crate) fn call_first(&mut self, task: TaskId, ns: Nanos, step: Step) -> Next {
        self.charge(task, ns);
        debug_assert!(self.shared(task).pending.is_none(), "task {task} is in two calls at once");
        self.shared(task).pending = Some(step);
        Next::Call
    }

    /// The program reaches a step on objects.
    fn first_object_step(&mut self, cpu: CpuId, task: TaskId, step: Step) -> Next {
        if self.pays_first(task, step) {
            return Next::Call;
        }
        let next = self.object_step(cpu, task, step, false);
        if step.ends_burst() && matches!(next, Next::Call) {
            // It was there to wait and need not: another burst begins.
            self.note_burst(task);
        }
        next
    }

    /// The task sets a timer and goes to sleep. Its time passes on the way to the switch, too.
    fn sleep(&mut self, task: TaskId, ns: Nanos) -> Next {
        let costs = &self.costs;
        if costs.block_ns | costs.block_deadline_ns | costs.child_sleep_ns == 0 {
            return self.sleep_until(task, self.core.now.saturating_add(ns));
        }
        self.sleep_later(task, ns)
    }

    /// [`Engine::sleep`] where it takes time. The pages of a child are copied before its timer is
    /// set.
    #[inline(never)]
    fn sleep_later(&mut self, task: TaskId, ns: Nanos) -> Next {
        let class_ns = match self.core.task(task).attr.policy {
            Policy::Deadline => self.costs.block_deadline_ns,
            _ => 0,
        };
        let pick_ns = self.costs.pick_fair_ns;
        let less_ns = if pick_ns > 0 && self.finds_no_fair(task) { pick_ns } else { 0 };
        let before = self.block_ns(task).saturating_add(class_ns).saturating_sub(less_ns);
        match before.saturating_add(self.first_sleep_ns(task)) {
            0 => self.sleep_until(task, self.core.now.saturating_add(ns)),
            all => self.call_first(task, all, Step::Sleep(ns.saturating_sub(before))),
        }
    }

    /// What the sleep of `task` takes before the switch, without what is of its class alone.
    fn block_ns(&self, task: TaskId) -> Nanos {
        let Costs { block_ns, block_fair_ns, .. } = self.costs;
        let t = self.core.task(task);
        let waits = block_fair_ns > 0 && self.core.rq(t.cpu).nr_running > 1;
        let is_fair = waits && self.levels_of(task) > 0;
        block_ns.saturating_add(if is_fair { block_fair_ns } else { 0 })
    }

    /// Whether `task` is a real-time or deadline task, and another one waits for its CPU that has
    /// slept or is new. One that was preempted is as late as a fair one.
    #[inline(never)]
    fn finds_no_fair(&self, task: TaskId) -> bool {
        let fair = self.core.class_of(Policy::Normal);
        let cpu = self.core.task(task).cpu;
        let above = &self.core.rq(cpu).class_nr_running[..usize::from(fair)];
        let waits = |other: u32| {
            let t = &self.core.tasks[other as usize];
            let is_fresh = self.tasks[TaskId(other)].remaining == 0;
            other != task.0 && t.class < fair && t.cpu == cpu && t.on_rq && is_fresh
        };
        self.core.task(task).class < fair
            && above.iter().sum::<u32>() > 1
            && (0..self.core.tasks.len() as u32).any(waits)
    }

    /// The task arrives at the switch with `ns` of its sleep left. If none is left, its timer
    /// expires behind the switch, which runs with interrupts disabled.
    fn sleep_rest(&mut self, task: TaskId, ns: Nanos) -> Next {
        if self.core.task(task).attr.policy == Policy::Deadline {
            // Its dequeue, its timers and the pick follow the update of the clock.
            let Costs { block_ns, block_deadline_ns, .. } = self.costs;
            self.core.work.after_clock_ns = block_ns.saturating_add(block_deadline_ns);
        } else {
            self.reads_clock_before(task, self.block_ns(task));
        }
        self.sleep_until(task, self.core.now.saturating_add(ns.max(1)))
    }

    /// `task`, whose call blocks, has used the time on the way to the switch. The kernel reads the
    /// clock of the CPU before (`update_rq_clock` in `__schedule`), so the next task is charged for
    /// that time, unless a wake-up has stopped the clock already.
    pub(crate) fn reads_clock_first(&mut self, task: TaskId) {
        self.reads_clock_before(task, self.costs.block_ns);
    }

    /// [`Engine::reads_clock_first`] of a call that takes `block_ns` from there to the switch.
    #[inline(never)]
    fn reads_clock_before(&mut self, task: TaskId, block_ns: Nanos) {
        if block_ns == 0 || !self.stack.wakeups_stop_clock {
            return;
        }
        let t = self.core.task(task);
        let (cpu, since) = (t.cpu, t.exec_start);
        let at = self.core.now.saturating_sub(block_ns).max(since);
        self.core.rqs[cpu.index()].clock_stopped.stop_at(at);
    }

    fn sleep_until(&mut self, task: TaskId, at: Nanos) -> Next {
        // The wake-up comes first, and the switch when the timer's delay is over.
        let mut wakes = self.core.timer_comes(at).saturating_sub(self.costs.wakeup_switch_ns);
        let mut due = Due::Wake(task);
        if self.costs.timer_rt_ns > 0 && self.core.task(task).attr.policy.is_rt() {
            wakes = wakes.saturating_sub(self.costs.timer_rt_ns);
            due = Due::WakeOnBusy(task);
        }
        self.block_until(task, wakes.max(self.core.now), due, TaskState::Sleeping)
    }

    fn block_until(&mut self, task: TaskId, at: Nanos, due: Due, state: TaskState) -> Next {
        debug_assert!(at >= self.core.now, "task {task} is to wake in the past");
        debug_assert_eq!(self.tasks[task].waiting, Waiting::No, "task {task} waits twice");
        self.tasks[task].waiting = Waiting::Event;
        self.clock.events.push(at, due);
        Next::Block(state)
    }

    fn timer(&mut self, task: TaskId, timer: u32, period_ns: Nanos, mode: TimerMode) -> Next {
        let now = self.core.now;
        let boundary = &mut self.tasks[task].timers[timer as usize];
        *boundary = boundary.saturating_add(period_ns);
        let at = *boundary;
        if at > now {
            return self.sleep(task, at.saturating_add(self.costs.timer_absolute_ns) - now);
        }
        if mode == TimerMode::Relative {
            *boundary = now;
        }
        Next::Call
    }

    /// A transfer through the page cache costs CPU time for the copy. A write also uses the device,
    /// but the task does not wait for it. A cached read does not use the device.
    fn io(&mut self, task: TaskId, direction: IoDirection, bytes: u64, sync: bool) -> Next {
        let copy_ns = self.device.copy_ns(bytes);
        self.charge(task, copy_ns);
        let now = self.core.now;
        if sync {
            let done = self.device.submit(now, direction, bytes);
            return self.block_until(task, done, Due::Wake(task), TaskState::BlockedIo);
        }
        if direction == IoDirection::Write {
            self.device.submit(now, direction, bytes);
        }
        Next::Busy(0)
    }

    /// The program of `task` ends before its last step.
    pub(crate) fn exits(&mut self, cpu: CpuId, task: TaskId) -> Next {
        self.charge(task, self.costs.syscall_ns);
        self.begin_exit(cpu, task)
    }

    fn begin_exit(&mut self, cpu: CpuId, task: TaskId) -> Next {
        if self.costs.exit_ns == 0 {
            return self.exit(cpu, task);
        }
        self.core.tasks[task.index()].is_exiting = true;
        let last_ns = self.exit_last_ns().max(self.costs.exit_rcu_ns);
        let ns = self.exit_ns(task).saturating_sub(last_ns);
        self.call_first(task, ns, Step::Exit)
    }

    /// The parts of an exit from the one on that no task preempts, or from the parent's wake-up.
    fn exit_last_ns(&self) -> Nanos {
        let Costs { exit_held_ns, exit_freed_ns, exit_after_ns, .. } = self.costs;
        match self.held_ns(exit_held_ns) {
            0 => exit_after_ns,
            ns => exit_after_ns.saturating_add(ns).saturating_add(exit_freed_ns),
        }
    }

    /// The length of a part of a call in which no task preempts, which takes `ns` in a kernel that
    /// is not preemptible.
    fn held_ns(&self, ns: Nanos) -> Nanos {
        if self.cpus.kernel_mode.is_preemptible() { 0 } else { ns }
    }

    /// Part of the time of a fork of `task` has passed, or all of it.
    fn fork_goes_on(&mut self, cpu: CpuId, task: TaskId, spec: u32) -> Next {
        if !self.leaves_held_part(task) {
            return self.fork(cpu, task, spec);
        }
        let ns = self.fork_ns(task).saturating_sub(self.costs.fork_held_ns);
        self.call_first(task, ns, Step::Fork { task: spec })
    }

    /// Whether `task` has been in such a part, which ends.
    fn leaves_held_part(&mut self, task: TaskId) -> bool {
        std::mem::take(&mut self.shared(task).has_no_point)
    }

    /// The next part (ns) of the exit of `task` before its parent wakes: the one in which no task
    /// preempts it, or what follows it.
    fn exit_part(&mut self, task: TaskId) -> Option<Nanos> {
        let held_ns = self.held_ns(self.costs.exit_held_ns);
        if held_ns == 0 || self.shared(task).has_freed {
            return None;
        }
        if self.leaves_held_part(task) {
            self.shared(task).has_freed = true;
            return Some(self.costs.exit_freed_ns).filter(|ns| *ns > 0);
        }
        self.shared(task).has_no_point = true;
        Some(held_ns)
    }

    fn exit(&mut self, cpu: CpuId, task: TaskId) -> Next {
        self.check_exit(task);
        let rcu_ns = self.costs.exit_rcu_ns.saturating_sub(self.exit_last_ns());
        if rcu_ns > 0 && !std::mem::replace(&mut self.shared(task).has_called_rcu, true) {
            self.call_rcu(false);
            return self.call_first(task, rcu_ns, Step::Exit);
        }
        if self.costs.exit_after_ns > 0 && !self.shared(task).has_left {
            if let Some(ns) = self.exit_part(task) {
                return self.call_first(task, ns, Step::Exit);
            }
            if self.stack.group_moves_resched
                && self.cpus.kernel_mode.is_preemptible()
                && !std::mem::replace(&mut self.shared(task).has_left_group, true)
            {
                self.leave_autogroup(task);
                return self.call_first(task, 0, Step::Exit);
            }
            self.shared(task).has_left = true;
            self.close_ends(cpu, task);
            self.leave_parent(cpu, task);
            self.launcher_sees_exit(cpu, task);
            return self.call_first(task, self.costs.exit_after_ns, Step::Exit);
        }
        self.emit(cpu, EventKind::Exit { task });
        debug_assert_eq!(self.core.rq(cpu).curr, Some(task), "task {task} exits without a CPU");
        self.tasks.exited();
        self.stacks.put(cpu);
        self.outcome.nr_exited += 1;
        if self.costs.exit_after_ns == 0 {
            self.close_ends(cpu, task);
            self.leave_parent(cpu, task);
            self.launcher_sees_exit(cpu, task);
        }
        self.threads_see_exit(task);
        if self.threads.is_some() {
            self.threads_see_move(cpu, task, None);
        }
        Next::Block(TaskState::Dead)
    }

    /// The exiting task is no child any more. Its parent wakes if it waited for that.
    fn leave_parent(&mut self, cpu: CpuId, task: TaskId) {
        let Some(parent) = self.tasks[task].parent else { return };
        if self.threads.is_some() {
            self.note_zombie(task, parent);
        }
        if self.ends_wait(task, parent) {
            self.charge(task, self.costs.wakeup_ns);
            let Costs { reap_ns, reap_last_ns, .. } = self.costs;
            self.charge(parent, reap_ns.saturating_sub(reap_last_ns));
            self.wake(parent, cpu, Some(task));
        }
    }
}

/// Whether a step is always a system call. Operations on objects decide themselves, because many
/// need no call while no task waits.
fn is_syscall(step: &Step) -> bool {
    matches!(
        step,
        Step::Sleep(_)
            | Step::Timer { .. }
            | Step::Io { .. }
            | Step::Yield
            | Step::Fork { .. }
            | Step::JoinAll
            | Step::SetAttr(_)
            | Step::Change(_)
            | Step::Tune { .. }
            | Step::Exit
    )
}
