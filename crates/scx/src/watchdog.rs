// SPDX-License-Identifier: MIT OR Apache-2.0
//! The watchdog: a task that waits longer than the scheduler's limit ends the scheduler.
//!
//! Source: Linux kernel/sched/ext.c, `scx_watchdog_workfn()`, `check_rq_for_timeouts()`, 6.18. It
//! checks after every half of the limit, from the loading on. Checks between which no task waits
//! are skipped. Left out: the tick's check that the watchdog itself still runs.

use super::consts::ExitKind;
use super::kernel::{Kernel, TIMER_OF_CORE};
use super::task::NIL;
use schedlab_model::{CpuId, TaskId};

/// The watchdog's timer.
pub const TIMER_WATCHDOG: u64 = TIMER_OF_CORE | 1;

impl Kernel<'_> {
    /// Sets the timer of the next check.
    pub(crate) fn arm_watchdog(&mut self) {
        let half = (self.state.timeout_ns() / 2).max(1);
        let since = self.core.now - self.state.loaded_at;
        let at = self.state.loaded_at + (since / half + 1) * half;
        self.state.next_check = Some(at);
        self.core.start_timer(at, TIMER_WATCHDOG);
    }

    /// The timer expired: checks all waiting tasks.
    pub(crate) fn check_stalls(&mut self) {
        if self.state.next_check != Some(self.core.now) {
            return;
        }
        self.state.next_check = None;
        let mut somebody_waits = false;
        for cpu in (0..self.core.nr_cpus()).map(CpuId) {
            somebody_waits |= self.state.cpu(cpu).runnable_head != NIL;
            if let Some(stalled) = self.stalled_on(cpu) {
                let waited_ms = (self.core.now - self.state.task(stalled).runnable_at) / 1_000_000;
                let (seconds, ms) = (waited_ms / 1_000, waited_ms % 1_000);
                let named = self.named(stalled);
                let msg = format!("{named} failed to run for {seconds}.{ms:03}s");
                self.exit_with(ExitKind::ErrorStall, 0, msg);
                return;
            }
        }
        if somebody_waits {
            self.arm_watchdog();
        }
    }

    fn stalled_on(&self, cpu: CpuId) -> Option<TaskId> {
        let limit = self.state.timeout_ns();
        let mut at = self.state.cpu(cpu).runnable_head;
        while at != NIL {
            let task = &self.state.tasks[at as usize];
            if self.core.now - task.runnable_at > limit {
                return Some(TaskId(at));
            }
            at = task.runnable_links.next;
        }
        None
    }
}
