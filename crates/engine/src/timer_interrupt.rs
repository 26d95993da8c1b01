// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timers of one CPU that expire together: one interrupt handles them, one after another
//! (`hrtimer_interrupt`), and the CPU switches when it has handled all.
//!
//! The clock goes on between two wake-ups, so the second one charges the running task for the
//! first, and may find that its slice is over.
//!
//! The tick is such a timer, too. One that expires during a tick is handled when it ends; a tick
//! that expires while the interrupt of another timer goes on is handled before the CPU switches.

use crate::clock::Due;
use crate::engine::Engine;
use schedlab_model::{Costs, CpuId, Nanos, Step, TaskId, TraceSink};

/// The last timer interrupt of a CPU that woke a task or renewed a budget, and what the timer of a
/// slice needs.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TimerInterrupt {
    /// When it is done with its last wake-up so far. A timer that expires before is next.
    until: Nanos,
    /// When the running task was picked. Kept only if [`Costs::load_period_ns`] or
    /// [`Costs::switch_closed_ns`] needs it.
    pub(crate) picked: Nanos,
    /// Time by which it puts off the switch that the CPU was asked for.
    delay_ns: Nanos,
    /// Whether its last wake-up followed another one.
    is_next: bool,
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

    /// Whether a timer of `cpu` that wakes a task now follows another one in the same interrupt.
    fn follows_now(&self, cpu: CpuId) -> bool {
        let now = self.core.now;
        self.cpus.timers[cpu.index()].until == now && now > 0
    }

    /// Whether `due`, a timer of `cpu`, expires while its tick goes on: it comes at the end.
    /// `earlier_ns`: how much earlier than the timer's delay its event is.
    #[inline]
    pub(crate) fn waits_for_tick(&mut self, cpu: CpuId, earlier_ns: i64, due: Due) -> bool {
        self.costs.interrupt_entry_ns > 0 && self.finds_tick(cpu, earlier_ns, due)
    }

    #[inline(never)]
    fn finds_tick(&mut self, cpu: CpuId, earlier_ns: i64, due: Due) -> bool {
        if self.core.now > 0 && self.cpus.timers[cpu.index()].until >= self.core.now {
            // Its interrupt began before the tick, which is the last of the timers then.
            return false;
        }
        let Some((since_ns, tick_ns)) = self.at_tick(cpu, earlier_ns) else { return false };
        let waits = (0..tick_ns as i64).contains(&since_ns);
        if waits {
            let at = self.core.now.saturating_add(tick_ns - since_ns as Nanos);
            self.clock.events.push(at, due);
        }
        waits
    }

    /// Whether `due`, a timer of `cpu` that wakes a task, expires around the last switch: it comes
    /// when interrupts are enabled again.
    #[inline]
    pub(crate) fn waits_for_switch(&mut self, cpu: CpuId, due: Due) -> bool {
        self.costs.switch_closed_ns > 0 && !self.wakes_thread(due) && self.finds_switch(cpu, due)
    }

    /// Whether `due` wakes a thread of the kernel, which no timer interrupt does.
    fn wakes_thread(&self, due: Due) -> bool {
        let nr_threads = self.threads.as_ref().map_or(0, |threads| threads.nr());
        matches!(due, Due::Wake(task) if task.0 < nr_threads)
    }

    #[inline(never)]
    fn finds_switch(&mut self, cpu: CpuId, due: Due) -> bool {
        let rq = self.core.rq(cpu);
        let switched = match rq.curr {
            Some(curr) => {
                self.switches_at(cpu, curr).unwrap_or_else(|| self.cpus.timers[cpu.index()].picked)
            }
            None => rq.idle_since,
        };
        let open = switched.saturating_add(self.costs.switch_closed_ns);
        let waits = self.core.now < open && switched > 0;
        if waits {
            self.clock.events.push(open, due);
        }
        waits
    }

    /// When running `task` of `cpu` switches, if it has set its timer and is so near to its switch
    /// that interrupts are disabled (`__schedule`).
    fn switches_at(&self, cpu: CpuId, task: TaskId) -> Option<Nanos> {
        let own = self.tasks[task].shared.as_ref()?;
        let at = self.clock.burst_ends.get(cpu);
        let closed_ns = self.costs.switch_closed_ns / 2;
        let is_near = at.saturating_sub(self.core.now) <= closed_ns;
        (is_near && matches!(own.pending, Some(Step::Sleep(_)))).then_some(at)
    }

    /// How long after the nearest tick of `cpu` a timer has expired whose event is now, and what
    /// that tick takes without its entry. `None`: the CPU is idle, and has none.
    fn at_tick(&self, cpu: CpuId, earlier_ns: i64) -> Option<(i64, Nanos)> {
        let curr = self.core.rq(cpu).curr?;
        let ns = self.costs.tick_ns.saturating_add(self.tick_class_ns(curr));
        let period_ns = self.core.tick_nsec as i64;
        let expired = self.core.now as i64 - self.core.tick_delay_ns() as i64 + earlier_ns;
        let since_ns = (expired + period_ns / 2).rem_euclid(period_ns) - period_ns / 2;
        Some((since_ns, ns.saturating_sub(self.costs.interrupt_entry_ns)))
    }

    /// A timer of `cpu` has woken `task`. The tick puts off the switch for that if it expires
    /// before the interrupt ends, and the timer puts off the switch that the tick asked for
    /// (`was_asked`) if it expires before the tick ends.
    pub(crate) fn meets_tick(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        earlier_ns: i64,
        was_asked: bool,
    ) {
        let entry_ns = self.costs.interrupt_entry_ns;
        let is_asked = self.core.is_asked(cpu);
        if entry_ns == 0 || !is_asked && !was_asked {
            return;
        }
        let Some((since_ns, tick_ns)) = self.at_tick(cpu, earlier_ns) else { return };
        let wakeup_ns = self.next_wakeup_ns(cpu, task);
        // The time of the first wake-up includes the entry of the interrupt.
        let is_next = self.cpus.timers[cpu.index()].is_next;
        let before_ns = if is_next { entry_ns as i64 } else { 0 };
        let expires = 1 - wakeup_ns.saturating_add(entry_ns) as i64..-before_ns;
        let ends = 0..=tick_ns.saturating_add(entry_ns) as i64;
        let ns = if (is_asked || is_next) && expires.contains(&since_ns) {
            tick_ns
        } else if !is_asked && !is_next && ends.contains(&since_ns) {
            wakeup_ns.saturating_sub(entry_ns)
        } else {
            0
        };
        let timer = &mut self.cpus.timers[cpu.index()];
        timer.delay_ns = timer.delay_ns.saturating_add(ns);
    }

    /// The tick of `cpu` asks for a switch. If it came during the interrupt of a timer that asked
    /// for it before, that switch is still to come.
    #[inline]
    pub(crate) fn is_asked_by_timer(&self, cpu: CpuId) -> bool {
        self.costs.interrupt_entry_ns > 0 && self.cpus.timers[cpu.index()].delay_ns > 0
    }

    /// The timer interrupt of `cpu` has woken `task`, which takes time; `was_asked`: the CPU had to
    /// reschedule before. Returns whether another wake-up came before this one in the same
    /// interrupt. If so, the running task has lost what this one takes.
    pub(crate) fn wakes_in_timer(&mut self, cpu: CpuId, task: TaskId, was_asked: bool) -> bool {
        if self.costs.timer_next_ns == 0 {
            return false;
        }
        let ns = self.next_wakeup_ns(cpu, task);
        self.is_next_in_timer(cpu, ns, was_asked)
    }

    /// The timer interrupt of `cpu` has handled a timer, which takes `ns` without entry and return.
    /// Returns as [`Self::wakes_in_timer`].
    pub(crate) fn is_next_in_timer(&mut self, cpu: CpuId, ns: Nanos, was_asked: bool) -> bool {
        if self.costs.timer_next_ns == 0 {
            return false;
        }
        let is_next = self.follows_now(cpu);
        let timer = &mut self.cpus.timers[cpu.index()];
        timer.is_next = is_next;
        timer.until = self.core.now.saturating_add(ns);
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
        let Costs { timer_next_ns, interrupt_entry_ns, .. } = self.costs;
        timer_next_ns | interrupt_entry_ns > 0 && self.timer_puts_off(cpu)
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
