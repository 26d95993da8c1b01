// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throttling of real-time tasks: at most `runtime` in each `period` on each CPU.
//!
//! CPU time is charged at ticks and whenever a task leaves its CPU. When the sum exceeds the
//! runtime, the CPU's real-time tasks are hidden until the period timer, one for the whole machine,
//! has taken off enough. The timer starts with the first runnable real-time task and stops when no
//! CPU has a debt or a real-time task. With `runtime` equal to `period` nothing is ever throttled
//! (`sched_rt_runtime_us = -1`).
//!
//! With the feature RT_RUNTIME_SHARE a CPU that has used up its runtime borrows from all others. It
//! takes from each the n-th part of the rest (n is the number of CPUs), until it has the whole
//! period. The borrowed time is not returned.
//!
//! Source: Linux kernel/sched/rt.c (sched_rt_runtime_exceeded, do_sched_rt_period_timer,
//! do_balance_runtime), 6.1; from 6.12 only in kernels with CONFIG_RT_GROUP_SCHED.

use super::TOKEN_PERIOD;
use crate::boundary::core::Core;
use schedlab_model::{CpuId, Nanos, Policy};

/// State of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct RtTime {
    /// CPU time charged and not yet subtracted (`rt_time`).
    rt_time: Nanos,
    /// CPU time that the CPU may use in a period (`rt_runtime`).
    runtime: Nanos,
    /// CPU time of the class up to the last charge.
    exec_seen: Nanos,
    throttled: bool,
}

/// CPU time of real-time tasks on `cpu`, and of deadline tasks, which counts too.
fn exec_runtime(core: &Core, cpu: CpuId) -> Nanos {
    (0..=core.class_of(Policy::Fifo)).map(|class| core.class_exec_runtime(cpu, class)).sum()
}

/// Throttling of all CPUs.
#[derive(Debug)]
pub struct Throttling {
    runtime: Nanos,
    period: Nanos,
    cpus: Vec<RtTime>,
    timer_active: bool,
    /// End of the present period, if the timer runs.
    expires: Nanos,
    /// Whether the feature RT_RUNTIME_SHARE is on.
    shares: bool,
    /// A limit was set while real-time tasks were queued, so no task has started the timer.
    is_late: bool,
    /// Bug P13 on purpose: a late limit starts no timer.
    forgets_timer: bool,
}

impl Throttling {
    /// Allows `runtime` ns of real-time execution in each `period` ns on each CPU. With `shares`,
    /// CPUs lend each other unused runtime.
    pub fn new(runtime: Nanos, period: Nanos, shares: bool, nr_cpus: u32) -> Self {
        let cpus = vec![RtTime { runtime, ..RtTime::default() }; nr_cpus as usize];
        Self {
            runtime,
            period,
            cpus,
            timer_active: false,
            expires: 0,
            shares,
            is_late: false,
            forgets_timer: false,
        }
    }

    /// sched_rt_runtime_us was written (`sched_rt_global_constraints`): every CPU gets it at once,
    /// and what it has borrowed or lent is forgotten. No limit is more than any period.
    pub fn set_runtime(&mut self, runtime: Nanos) {
        self.runtime = runtime;
        self.is_late = self.enabled() && !self.timer_active;
        self.cpus.iter_mut().for_each(|cpu| cpu.runtime = runtime);
    }

    /// sched_rt_period_us was written: the next period is as long.
    pub fn set_period(&mut self, period: Nanos) {
        self.period = period;
        // Writing either file gives every CPU the runtime again.
        self.set_runtime(self.runtime);
    }

    /// The feature RT_RUNTIME_SHARE was switched.
    pub fn set_sharing(&mut self, shares: bool) {
        self.shares = shares;
    }

    /// Whether the real-time tasks of `cpu` are throttled.
    #[inline]
    pub fn is_throttled(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].throttled
    }

    /// Whether the timer runs that ends the period.
    pub fn is_timer_active(&self) -> bool {
        self.timer_active
    }

    /// Whether throttling is enabled.
    fn enabled(&self) -> bool {
        self.runtime < self.period
    }

    /// Charges the execution of the class on `cpu` since the last call. Returns whether that
    /// throttles it.
    pub fn charge(&mut self, core: &Core, cpu: CpuId) -> bool {
        let exec = exec_runtime(core, cpu);
        let counts = self.enabled() && (self.timer_active || self.is_late);
        let rt = &mut self.cpus[cpu.index()];
        let delta = exec.saturating_sub(rt.exec_seen);
        rt.exec_seen = exec;
        if delta == 0 || !counts {
            return false;
        }
        rt.rt_time += delta;
        if rt.throttled || rt.runtime >= self.period {
            return false;
        }
        self.borrow(cpu);
        let rt = &mut self.cpus[cpu.index()];
        rt.throttled = rt.rt_time > rt.runtime;
        rt.throttled
    }

    /// Borrows runtime for `cpu`, which has used more than its own, from other CPUs
    /// (`balance_runtime`).
    fn borrow(&mut self, cpu: CpuId) {
        let borrower = self.cpus[cpu.index()];
        if !self.shares || borrower.rt_time <= borrower.runtime {
            return;
        }
        let mut runtime = borrower.runtime;
        let nr_cpus = self.cpus.len() as u64;
        for (index, other) in self.cpus.iter_mut().enumerate() {
            if runtime == self.period {
                break;
            }
            if index != cpu.index() {
                let lent = other.runtime.saturating_sub(other.rt_time) / nr_cpus;
                let lent = lent.min(self.period - runtime);
                other.runtime -= lent;
                runtime += lent;
            }
        }
        self.cpus[cpu.index()].runtime = runtime;
    }

    /// Starts the period timer, if it does not run, because a real-time task is runnable.
    pub fn start_period_timer(&mut self, core: &mut Core) {
        if self.enabled() && !self.timer_active {
            (self.timer_active, self.is_late) = (true, false);
            for (rt, cpu) in self.cpus.iter_mut().zip((0..).map(CpuId)) {
                rt.exec_seen = exec_runtime(core, cpu);
            }
            // The launcher, a real-time task, has started the timer before time 0.
            let lead = if core.now == 0 { core.server_lead_ns % self.period } else { 0 };
            self.expires = core.now + self.period - lead;
            core.start_timer(self.expires, TOKEN_PERIOD);
        }
    }

    /// Starts the timer for a limit that was set late, and just exceeded (`do_start_rt_bandwidth`):
    /// it ends a period at once.
    pub fn start_late(&mut self, core: &mut Core) {
        if self.timer_active || self.forgets_timer {
            return;
        }
        (self.timer_active, self.is_late) = (true, false);
        self.expires = core.hrtimer_now();
        core.start_timer(self.expires, TOKEN_PERIOD);
    }

    /// The throttling with bug P13: real-time tasks that exceed a late limit stay throttled.
    pub fn with_forgotten_timer(self) -> Self {
        Self { forgets_timer: true, ..self }
    }

    /// Ends a period. `nr_running` returns how many real-time tasks a CPU has, throttled or not.
    /// Calls `unthrottled` for each CPU that may run them again.
    pub fn period_timer(
        &mut self,
        core: &mut Core,
        nr_running: impl Fn(CpuId) -> u32,
        unthrottled: impl Fn(&mut Core, CpuId),
    ) {
        let (mut idle, mut throttled) = (true, false);
        for cpu in (0..core.nr_cpus()).map(CpuId) {
            if self.cpus[cpu.index()].throttled {
                self.borrow(cpu);
            }
            let rt = &mut self.cpus[cpu.index()];
            rt.rt_time -= rt.rt_time.min(rt.runtime);
            if rt.throttled && rt.rt_time < rt.runtime {
                rt.throttled = false;
                unthrottled(core, cpu);
            }
            idle &= rt.rt_time == 0 && nr_running(cpu) == 0;
            throttled |= rt.throttled;
        }
        // Without a limit there are no periods.
        idle |= !throttled && !self.enabled();
        self.timer_active = !idle;
        if !idle {
            self.expires += self.period;
            core.start_timer(self.expires, TOKEN_PERIOD);
        }
    }
}
