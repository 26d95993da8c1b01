// SPDX-License-Identifier: MIT OR Apache-2.0
//! Preemption models: how long a request to reschedule waits while the task is in the kernel.
//!
//! A task is in the kernel from the start of a system call, or from the switch to it, until that
//! cost has passed; then it is in user mode. Under `full` no request waits, and nothing here is
//! used.
//!
//! Source: Linux kernel/Kconfig.preempt, kernel/entry/common.c (exit_to_user_mode_loop,
//! irqentry_exit), kernel/sched/core.c (resched_curr_lazy, sched_tick), 6.12 and 6.13.

use crate::clock::Due;
use crate::engine::Engine;
use schedlab_model::{CpuId, Machine, Nanos, Preempt, Step, TaskId, TraceSink};

/// Whether each CPU's task is in the kernel, and until when.
#[derive(Debug)]
pub struct KernelMode {
    model: Preempt,
    point_ns: Nanos,
    /// When the task of each CPU entered the kernel.
    entered: Vec<Nanos>,
    /// When it returns to user mode.
    until: Vec<Nanos>,
    /// Whether it passes no point at which it might sleep, as at the end of an exit.
    has_no_point: Vec<bool>,
}

impl KernelMode {
    /// All CPUs idle.
    pub fn new(machine: &Machine) -> Self {
        let nr_cpus = machine.nr_cpus() as usize;
        Self {
            model: machine.preempt,
            point_ns: machine.preempt_point_ns.max(1),
            entered: vec![0; nr_cpus],
            until: vec![0; nr_cpus],
            has_no_point: vec![false; nr_cpus],
        }
    }

    /// Whether a reschedule may have to wait on this machine.
    #[inline]
    pub fn is_tracked(&self) -> bool {
        self.model != Preempt::Full
    }

    /// Whether a full request to reschedule preempts a task in the kernel at once.
    pub fn is_preemptible(&self) -> bool {
        matches!(self.model, Preempt::Full | Preempt::Lazy)
    }

    /// Whether the fair class makes lazy requests.
    pub fn is_lazy(&self) -> bool {
        self.model == Preempt::Lazy
    }

    /// The task of `cpu` is in the kernel from `now` until `until`.
    #[inline]
    pub fn enter(&mut self, cpu: CpuId, now: Nanos, until: Nanos, has_no_point: bool) {
        self.has_no_point[cpu.index()] = has_no_point;
        debug_assert!(until >= now, "the task of CPU {cpu} leaves the kernel before it enters");
        self.entered[cpu.index()] = now;
        self.until[cpu.index()] = until;
    }

    /// The task of `cpu` makes a call for another `ns`, or for longer if it `goes_on` then, and may
    /// not sleep before.
    pub fn stay(&mut self, cpu: CpuId, now: Nanos, ns: Nanos, goes_on: bool) {
        self.enter(cpu, now, now.saturating_add(ns), goes_on);
    }

    /// When the task of `cpu` returns to user mode, or did.
    #[inline]
    pub fn until(&self, cpu: CpuId) -> Nanos {
        self.until[cpu.index()]
    }

    /// When a request that waits for the return of `cpu`'s task to user mode takes effect. A task
    /// at the end of its exit does not return: it leaves the CPU then, and is not preempted before.
    fn returns_at(&self, cpu: CpuId) -> Nanos {
        self.until[cpu.index()].saturating_add(self.has_no_point[cpu.index()].into())
    }

    /// The return to user mode moves to `until`, because interrupts or a sibling took time.
    pub fn move_return(&mut self, cpu: CpuId, until: Nanos) {
        let entered = self.entered[cpu.index()];
        debug_assert!(until >= entered, "CPU {cpu} is in the kernel from {entered} to {until}");
        self.until[cpu.index()] = until;
    }

    /// When a full request to reschedule takes effect.
    fn acts_at(&self, cpu: CpuId, now: Nanos) -> Nanos {
        let (entered, until) = (self.entered[cpu.index()], self.until[cpu.index()]);
        if now >= until {
            return now;
        }
        match self.model {
            Preempt::Full | Preempt::Lazy => now,
            Preempt::None => self.returns_at(cpu),
            Preempt::Voluntary if self.has_no_point[cpu.index()] => self.returns_at(cpu),
            Preempt::Voluntary => {
                let points = (now - entered).div_ceil(self.point_ns);
                entered.saturating_add(points.saturating_mul(self.point_ns)).min(until)
            }
        }
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Whether the reschedule of `cpu` must wait because its task is in the kernel. If so, it is
    /// postponed.
    #[inline]
    pub(crate) fn puts_off(&mut self, cpu: CpuId) -> bool {
        if self.has_followers && self.keeps_task(cpu) {
            self.core.park_resched(cpu);
            return true;
        }
        self.cpus.kernel_mode.is_tracked() && self.put_off(cpu)
    }

    fn put_off(&mut self, cpu: CpuId) -> bool {
        let now = self.core.now;
        let at = self.cpus.kernel_mode.acts_at(cpu, now);
        let until = self.cpus.kernel_mode.returns_at(cpu);
        debug_assert!((now..=until.max(now)).contains(&at), "at {at}, in the kernel to {until}");
        if at <= now || self.core.rq(cpu).curr.is_none() {
            return false;
        }
        self.core.park_resched(cpu);
        self.clock.events.push(at, Due::ReturnToUser(cpu));
        true
    }

    /// The task of `cpu` reaches a point at which it may be preempted. It may be another task by
    /// now; then a request that is still there is postponed again.
    pub(crate) fn return_to_user(&mut self, cpu: CpuId) {
        if self.is_put_off_by_timer(cpu) {
            return;
        }
        self.core.unpark_resched(cpu);
        self.interrupt_returns(cpu);
    }

    /// CPUs whose reschedule a wake-up has just requested switch after
    /// [`schedlab_model::Costs::wakeup_switch_ns`], and after `programs_ns`, which the interrupt's
    /// CPU has lost already. Their running tasks do no work meanwhile.
    #[inline]
    pub(crate) fn switches_later(&mut self, programs_ns: Nanos) {
        if self.costs.wakeup_switch_ns > 0 || programs_ns > 0 {
            self.park_woken(programs_ns);
        }
    }

    #[inline(never)]
    fn park_woken(&mut self, programs_ns: Nanos) {
        let at = self.core.now.saturating_add(programs_ns);
        while let Some(cpu) = self.core.next_resched() {
            self.park_switch(cpu, at);
        }
    }

    /// `waker`, or an interrupt without one, has made a task runnable on `cpu`, another CPU. If
    /// that also started the timer of a slice there, after `nr_starts` others, it took an interrupt
    /// of `cpu` (hrtick_start), at whose end a lazy request takes effect.
    pub(crate) fn woken_from_afar(&mut self, cpu: CpuId, nr_starts: u32, waker: Option<TaskId>) {
        if self.core.work.hrtick_starts > nr_starts {
            self.interrupt_returns(cpu);
        }
        let Some(waker) = waker else { return };
        if self.costs.wakeup_switch_ns > 0 && self.core.rq(cpu).curr.is_some() {
            // It queues the task there itself, for 14 us more in a guest. An idle CPU does that.
            self.charge(waker, self.costs.wakeup_ns.saturating_mul(2));
        }
        self.switches_after_message(cpu, 0);
    }

    /// A task has become runnable on `cpu` by what another CPU did, or will have done after
    /// `later_ns`. The message takes as long to the switch as an interrupt that wakes the task
    /// there.
    pub(crate) fn switches_after_message(&mut self, cpu: CpuId, later_ns: Nanos) {
        if self.costs.wakeup_switch_ns > 0 && self.core.is_asked(cpu) {
            self.park_switch(cpu, self.core.now.saturating_add(later_ns));
        }
    }

    /// The switch that `cpu` was asked for takes place when the way to it, from `from` on, is over.
    fn park_switch(&mut self, cpu: CpuId, from: Nanos) {
        self.core.park_resched(cpu);
        let after = self.wakeup_switch_ns(cpu);
        let at = from.saturating_add(after).saturating_add(self.idle_tick_ns(cpu));
        self.core.rqs[cpu.index()].switches_at = at;
        self.clock.events.push(at, Due::ReturnToUser(cpu));
        if after > 0 && self.core.rq(cpu).curr.is_some() {
            self.extend_burst(cpu, after);
        }
    }

    /// The time from a wake-up to the switch on `cpu`.
    pub(crate) fn wakeup_switch_ns(&self, cpu: CpuId) -> Nanos {
        let is_fair = self.core.rq(cpu).curr.is_some_and(|curr| self.levels_of(curr) > 0);
        let less_ns = if is_fair { 0 } else { self.costs.put_fair_ns };
        self.costs.wakeup_switch_ns.saturating_sub(less_ns)
    }

    /// A timer of a class has made a task runnable on an idle CPU, such as by new quota: the rest
    /// of the interrupt and the way out of idle are as after a wake-up.
    #[inline]
    pub(crate) fn idle_switches_later(&mut self) {
        if self.costs.wakeup_switch_ns == 0 {
            return;
        }
        while let Some(cpu) = self.core.next_resched()
            && self.core.rq(cpu).curr.is_none()
        {
            self.park_switch(cpu, self.core.now);
        }
    }

    /// What a wake-up takes `cpu` longer because it was idle at a tick.
    fn idle_tick_ns(&self, cpu: CpuId) -> Nanos {
        let (rq, late) = (self.core.rq(cpu), self.core.tick_delay_ns());
        let nr_ticks = |ns: Nanos| ns.saturating_sub(late) / self.core.tick_nsec;
        let has_stopped = rq.curr.is_none() && nr_ticks(rq.idle_since) < nr_ticks(self.core.now);
        if has_stopped { self.costs.idle_tick_ns } else { 0 }
    }

    /// The task of `cpu` is in the kernel from now until `until`. A lazy request that already
    /// exists takes effect at its return.
    pub(crate) fn enter_kernel(&mut self, cpu: CpuId, until: Nanos) {
        let now = self.core.now;
        debug_assert!(self.core.rq(cpu).curr.is_some(), "CPU {cpu} enters the kernel idle");
        let curr = self.core.rq(cpu).curr.map(|task| &self.tasks[task]);
        let own = curr.and_then(|exec| exec.shared.as_ref());
        let has_no_point = own.is_some_and(|own| own.has_left || own.has_no_point);
        self.cpus.kernel_mode.enter(cpu, now, until, has_no_point);
        if until > now && self.core.rq(cpu).need_resched_lazy {
            let at = self.cpus.kernel_mode.returns_at(cpu);
            self.clock.events.push(at, Due::ReturnToUser(cpu));
        }
    }

    /// Whether a task with a request to reschedule is still in the kernel at the end of a system
    /// call, because the call takes time. The request then takes effect as in other kernel code.
    pub(crate) fn stays_in_kernel(&self, cpu: CpuId) -> bool {
        self.cpus.kernel_mode.is_tracked() && self.cpus.kernel_mode.until(cpu) > self.core.now
    }

    /// An interrupt of `cpu`, or the task's system call, ends. In user mode a lazy request takes
    /// effect; in the kernel it waits for the return to user mode.
    #[inline]
    pub(crate) fn interrupt_returns(&mut self, cpu: CpuId) {
        let is_lazy = self.core.rq(cpu).need_resched_lazy;
        if is_lazy && self.core.now >= self.cpus.kernel_mode.until(cpu) && !self.call_goes_on(cpu) {
            self.core.resched_lazy_now(cpu);
        }
    }

    /// Whether the task of `cpu` is in a call whose effect is yet to come, such as the child of a
    /// fork or a sleep. The end of this part of its time is no return to user mode.
    fn call_goes_on(&self, cpu: CpuId) -> bool {
        let curr = self.core.rq(cpu).curr.map(|task| &self.tasks[task]);
        curr.and_then(|exec| exec.shared.as_ref()).is_some_and(|own| match own.pending {
            Some(Step::Fork { .. } | Step::Sleep(_) | Step::Exit | Step::SetAttr(_)) => true,
            Some(Step::Send { .. } | Step::Receive { .. }) => true,
            // A task that was woken to try again does so in user mode.
            Some(_) => own.is_paid,
            None => false,
        })
    }

    /// New lazy requests wait for the return to user mode, if their CPU's task is in the kernel.
    pub(crate) fn await_lazy(&mut self) {
        while let Some(cpu) = self.core.take_lazy() {
            if self.cpus.kernel_mode.until(cpu) > self.core.now {
                let at = self.cpus.kernel_mode.returns_at(cpu);
                self.clock.events.push(at, Due::ReturnToUser(cpu));
            }
        }
    }

    /// Whether the burst of `cpu` ended together with its time in the kernel, with a request to
    /// reschedule. The CPU then reschedules before the program continues.
    pub(crate) fn reschedules_on_return(&self, cpu: CpuId) -> bool {
        let rq = self.core.rq(cpu);
        if self.cpus.kernel_mode.is_tracked() && self.cpus.kernel_mode.has_no_point[cpu.index()] {
            return false;
        }
        if self.costs.wakeup_switch_ns > 0 && rq.need_resched {
            return true;
        }
        if !self.cpus.kernel_mode.is_tracked() {
            return false;
        }
        (rq.need_resched || rq.need_resched_lazy && !self.call_goes_on(cpu))
            && self.cpus.kernel_mode.until(cpu) == self.core.now
    }
}
