// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of a CPU's runqueue, where a pick leaves it as it is.

use crate::boundary::core::Core;
use schedlab_model::{CpuId, Nanos};

/// The clock of a CPU while its next pick is to leave it as it is (`rq_clock_skip_update`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoppedClock(Nanos);

impl StoppedClock {
    /// The clock runs.
    pub(super) const RUNS: Self = Self(Nanos::MAX);

    /// Whether the clock has stopped.
    #[inline]
    pub fn is_stopped(self) -> bool {
        self != Self::RUNS
    }

    /// Stops the clock at `at`, unless it has stopped.
    #[inline]
    pub fn stop_at(&mut self, at: Nanos) {
        if !self.is_stopped() {
            self.0 = at;
        }
    }

    /// Something updates the clock at `now`; it stays stopped if it was.
    #[inline]
    pub fn update(&mut self, now: Nanos) {
        if self.is_stopped() {
            self.0 = now;
        }
    }

    /// Lets the clock run again from `now` on. Returns the time that it showed before.
    #[inline]
    pub fn resume(&mut self, now: Nanos) -> Nanos {
        std::mem::replace(self, Self::RUNS).0.min(now)
    }
}

impl Core {
    /// A wake-up has updated the clock of `cpu`. If it is to reschedule, the pick leaves the clock
    /// as it is. A lazy request that is older than the wake-up is none, even if it has become a
    /// full one on the way out of the interrupt that goes on here; `is_new`: the wake-up has made a
    /// full one.
    ///
    /// It reads the clock [`Core::wakeup_clock_ns`] later than its other effects take place here.
    #[doc(hidden)]
    #[inline]
    pub fn stop_clock(&mut self, cpu: CpuId, is_new: bool) {
        let rq = &self.rqs[cpu.index()];
        let is_full = rq.need_resched && (is_new || !rq.need_resched_lazy);
        if is_full || rq.clock_stopped.is_stopped() {
            let at = self.now + self.wakeup_clock_ns(cpu);
            self.rqs[cpu.index()].clock_stopped = StoppedClock(at);
        }
    }

    /// How much later a wake-up on `cpu` reads the clock than its other effects take place here. On
    /// an idle CPU a third of the lead passes, on a busy one a sixth (guests of 6.1, 6.12, 6.18 and
    /// 7.2).
    #[doc(hidden)]
    #[inline]
    pub fn wakeup_clock_ns(&self, cpu: CpuId) -> Nanos {
        match self.clock_lead_ns {
            0 => 0,
            lead_ns => lead_ns / if self.rqs[cpu.index()].curr.is_none() { 3 } else { 6 },
        }
    }

    /// Something else has updated the clock of `cpu`.
    #[doc(hidden)]
    #[inline]
    pub fn update_stopped_clock(&mut self, cpu: CpuId) {
        self.rqs[cpu.index()].clock_stopped.update(self.now);
    }

    /// A timer has updated the clock of a CPU.
    #[doc(hidden)]
    pub fn update_stopped_clocks(&mut self) {
        let now = self.now;
        for rq in &mut self.rqs {
            rq.clock_stopped.update(now);
        }
    }
}
