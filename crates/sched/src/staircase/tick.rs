// SPDX-License-Identifier: MIT OR Apache-2.0
//! The charges of a task, and the tick: SD counts us of CPU time, RSDL whole ticks.
//!
//! Source: 2.6.22-ck1, kernel/sched.c (`update_cpu_clock`, `task_running_tick`); RSDL from memory.

use super::tasks::Kind;
use super::{Staircase, variants::Rules};
use crate::boundary::core::Core;
use schedlab_model::time::NSEC_PER_USEC;
use schedlab_model::{CpuId, Nanos, TaskId};

/// A time in whole us.
const fn us(time: Nanos) -> i64 {
    (time / NSEC_PER_USEC) as i64
}

impl Staircase {
    /// CPU time of running `task` since the last charge; starts the next one.
    fn take_uncharged(&mut self, core: &Core, task: TaskId) -> Nanos {
        let used = core.sum_exec_runtime(task);
        used - std::mem::replace(&mut self.entry_mut(task).charged, used)
    }

    /// Charges `task` for its time since the last charge when it leaves its CPU, or when the CPU
    /// picks it again; SD only. The kernel does not believe in a time of 0 and charges 1 us: so
    /// much costs a switch at the very time of a tick, which has charged everything already.
    ///
    /// This comes after the pick, which therefore does not see what the task has run since the
    /// last tick.
    pub(super) fn charge_at_switch(&mut self, core: &Core, task: TaskId) {
        if self.rules == Rules::Sd {
            let since = self.take_uncharged(core, task);
            self.charge(task, if since == 0 { NSEC_PER_USEC } else { since });
        }
    }

    /// Takes whole us of `time` off what `task` has left.
    fn charge(&mut self, task: TaskId, time: Nanos) {
        let entry = self.entry_mut(task);
        if entry.kind != Kind::Fifo {
            entry.left -= us(time);
        }
    }

    /// Handles a tick of `cpu`, which runs `curr`.
    pub(super) fn tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        match self.rules {
            Rules::Sd => {
                let since = self.take_uncharged(core, curr);
                self.charge(curr, since);
            }
            Rules::Rsdl if self.entry(curr).kind != Kind::Fifo => self.entry_mut(curr).left -= 1,
            Rules::Rsdl => {}
        }
        let entry = self.entry(curr);
        let (has_slots, is_over) =
            (entry.kind.has_slots(), entry.left <= 0 && entry.kind != Kind::Fifo);
        if is_over {
            core.resched_curr(cpu);
            self.entitlement_is_over(cpu, curr);
        }
        if self.rules == Rules::Rsdl && has_slots && self.tick_level(cpu) {
            core.resched_curr(cpu);
        }
    }

    /// Number of ticks of running `curr`, from the next one on, after which it still has time left.
    pub(super) fn quiet_ticks_of(&self, core: &Core, cpu: CpuId, curr: TaskId) -> u64 {
        let entry = self.entry(curr);
        if entry.kind == Kind::Fifo {
            return u64::MAX;
        }
        match self.rules {
            Rules::Sd => {
                let uncharged = core.sum_exec_runtime(curr) - entry.charged;
                // The rest after the next tick, less the last us.
                let left = entry.left - us(uncharged) - 1;
                let tick = us(core.tick_nsec);
                if left < 0 { 0 } else { (left / tick) as u64 + 1 }
            }
            Rules::Rsdl => {
                let rq = self.rq(cpu);
                let of_level = rq.quota[usize::from(rq.level)];
                let of_level = if entry.kind.has_slots() { of_level } else { i64::MAX };
                (entry.left - 1).min(of_level).max(0) as u64
            }
        }
    }

    /// Passes this many such ticks.
    pub(super) fn pass_ticks_of(&mut self, core: &Core, cpu: CpuId, curr: TaskId, nr: u64) {
        let kind = self.entry(curr).kind;
        let charge = match self.rules {
            Rules::Sd => {
                // Each tick is charged separately, in whole us.
                let later = nr - 1;
                let first = self.take_uncharged(core, curr) - later * core.tick_nsec;
                us(first) + later as i64 * us(core.tick_nsec)
            }
            Rules::Rsdl => nr as i64,
        };
        if kind != Kind::Fifo {
            self.entry_mut(curr).left -= charge;
        }
        if self.rules == Rules::Rsdl && kind.has_slots() {
            let rq = self.rq_mut(cpu);
            rq.quota[usize::from(rq.level)] -= charge;
        }
    }
}
