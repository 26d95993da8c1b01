// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timers of one CPU that expire together: one interrupt handles them, one after another
//! (`hrtimer_interrupt`), and the CPU switches when it has handled all.
//!
//! The clock goes on between two wake-ups, so the second one charges the running task for the
//! first, and may find that its slice is over.

use crate::clock::Due;
use crate::engine::Engine;
use schedlab_model::{CpuId, Nanos, TaskId, TraceSink};

/// The last timer interrupt of a CPU that woke a task.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TimerInterrupt {
    /// When it is done with its last wake-up so far. A timer that expires before is next.
    until: Nanos,
    /// Time by which it puts off the switch that the CPU was asked for.
    delay_ns: Nanos,
}

impl<S: TraceSink> Engine<'_, S> {
    /// Whether a timer interrupt of `cpu` still wakes another task. Then `due` follows it.
    #[inline]
    pub(crate) fn is_in_timer(&mut self, cpu: CpuId, due: Due) -> bool {
        self.costs.timer_next_ns > 0 && self.follows_timer(cpu, due)
    }

    #[inline(never)]
    fn follows_timer(&mut self, cpu: CpuId, due: Due) -> bool {
        let until = self.cpus.timers[cpu.index()].until;
        let waits = self.core.now < until;
        if waits {
            self.clock.events.push(until, due);
        }
        waits
    }

    /// The timer interrupt of `cpu` has woken `task`, which takes time; `was_asked`: the CPU had to
    /// reschedule before. Returns whether another wake-up came before this one in the same
    /// interrupt. If so, the running task has lost what this one takes.
    pub(crate) fn wakes_in_timer(&mut self, cpu: CpuId, task: TaskId, was_asked: bool) -> bool {
        if self.costs.timer_next_ns == 0 {
            return false;
        }
        let ns = self.next_wakeup_ns(cpu, task);
        let now = self.core.now;
        let timer = &mut self.cpus.timers[cpu.index()];
        let is_next = timer.until == now && now > 0;
        timer.until = now.saturating_add(ns);
        if !is_next || (!was_asked && self.core.is_asked(cpu)) {
            return false;
        }
        if was_asked {
            timer.delay_ns = timer.delay_ns.saturating_add(ns);
        }
        if self.core.rq(cpu).curr.is_some() {
            self.extend_burst(cpu, ns);
        }
        true
    }

    /// What the wake-up of `task` takes in an interrupt of `cpu`, without entry and return.
    fn next_wakeup_ns(&self, cpu: CpuId, task: TaskId) -> Nanos {
        let costs = &self.costs;
        if self.levels_of(task) == 0 {
            return costs.timer_next_ns;
        }
        let is_fair = self.core.rq(cpu).curr.is_some_and(|curr| self.levels_of(curr) > 0);
        let fair_ns = if is_fair { costs.timer_fair_ns } else { costs.timer_fair_ns / 2 };
        costs.timer_next_ns.saturating_add(fair_ns)
    }

    /// Whether the switch of `cpu` is put off, because its interrupt has woken further tasks.
    #[inline]
    pub(crate) fn is_put_off_by_timer(&mut self, cpu: CpuId) -> bool {
        self.costs.timer_next_ns > 0 && self.timer_puts_off(cpu)
    }

    #[inline(never)]
    fn timer_puts_off(&mut self, cpu: CpuId) -> bool {
        let delay_ns = std::mem::take(&mut self.cpus.timers[cpu.index()].delay_ns);
        if delay_ns > 0 {
            let at = self.core.now.saturating_add(delay_ns);
            self.clock.events.push(at, Due::ReturnToUser(cpu));
        }
        delay_ns > 0
    }
}
