// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delivers kicks.
//!
//! Source: Linux kernel/sched/ext.c, `kick_cpus_irq_workfn()`, `kick_one_cpu()`, 6.18. A CPU's own
//! kicks are delivered when it has released its run queue. Left out: the wait of SCX_KICK_WAIT,
//! because the kicked CPU picks at the same instant.
//!
//! A scheduler may kick an idle CPU at each of its dispatches, or let each task that it preempts
//! preempt another one. In a kernel the CPU spins or switches back and forth, and time passes. Here
//! a CPU that was kicked [`AT_ONCE`] times at one instant takes the next kick [`LATER_NS`] later,
//! and from then on one at a time, until a kick comes later than that. The delay of the machine's
//! timers adds to [`LATER_NS`]. A CPU that switches takes the interrupt only after the switch.
//! Kicks of a task that has run since its switch do not count.

use super::kernel::{Kernel, TIMER_OF_CORE};
use schedlab_model::{CpuId, Nanos};

/// Kicks that a CPU takes at one instant.
const AT_ONCE: u32 = 100;

/// Time from a kick to the next one that a CPU takes beyond those (ns): about that of an interrupt
/// between processors.
const LATER_NS: Nanos = 1_000;

/// The timer of late kicks.
pub const TIMER_KICK: u64 = TIMER_OF_CORE | 4;

/// How often a CPU was kicked that did nothing since the last kick.
#[derive(Clone, Copy, Debug, Default)]
pub struct FruitlessKicks {
    /// When it took the last kick.
    at: Nanos,
    /// Kicks since it began to spin, or at this instant.
    nr: u32,
}

impl FruitlessKicks {
    /// Counts a kick at `now`, of a CPU that takes late ones within `later_ns`. Returns whether the
    /// CPU takes it at once.
    fn takes(&mut self, now: Nanos, later_ns: Nanos) -> bool {
        let is_first = now != self.at;
        if is_first {
            let goes_on = self.nr >= AT_ONCE && now - self.at <= later_ns;
            *self = Self { at: now, nr: if goes_on { self.nr } else { 0 } };
        }
        self.nr = self.nr.saturating_add(1);
        is_first || self.nr <= AT_ONCE
    }
}

impl Kernel<'_> {
    /// Makes `cpu` pick again; one that was kicked too often later.
    fn take_kick(&mut self, cpu: CpuId) {
        let now = self.core.now;
        let (is_fruitless, later_ns) = match self.core.rq(cpu).curr {
            Some(curr) => {
                let has_run = self.core.task(curr).exec_start < now;
                (!has_run, LATER_NS + self.state.switch_ns)
            }
            None => (true, LATER_NS),
        };
        // The timer of late kicks comes as late as any other of the machine.
        let within_ns = later_ns + self.core.timer_delay_ns;
        if is_fruitless && !self.state.cpu_mut(cpu).fruitless_kicks.takes(now, within_ns) {
            self.state.late_kicks.insert(cpu);
            self.core.start_timer(now + later_ns, TIMER_KICK);
            return;
        }
        self.core.resched_curr(cpu);
    }

    /// Delivers the kicks that came too often.
    pub(crate) fn deliver_late_kicks(&mut self) {
        for cpu in std::mem::take(&mut self.state.late_kicks) {
            self.take_kick(cpu);
        }
    }

    /// Delivers all kicks: by calling CPU in order of their calls, then by target.
    pub(crate) fn deliver_kicks(&mut self) {
        if self.state.kicking.is_empty() {
            return;
        }
        for caller in std::mem::take(&mut self.state.kicking) {
            let Some(kicks) = self.state.cpu_mut(caller).kicks.take() else { continue };
            for cpu in kicks.plain.iter() {
                self.kick_one(cpu, kicks.preempt.contains(cpu));
            }
            for cpu in kicks.if_idle.and_not(&kicks.plain).iter() {
                if self.core.rq(cpu).curr.is_none() || self.state.cpu(cpu).in_balance {
                    self.take_kick(cpu);
                }
            }
        }
    }

    fn kick_one(&mut self, cpu: CpuId, preempt: bool) {
        if let Some(curr) = self.core.rq(cpu).curr {
            if self.state.options.core.kicks_spare_higher
                && self.core.task(curr).class < self.state.class
            {
                return;
            }
            if preempt && self.is_ext(curr) {
                self.state.task(curr).entity.set_slice(0);
            }
        }
        self.take_kick(cpu);
    }
}
