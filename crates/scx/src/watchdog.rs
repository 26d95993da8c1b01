// SPDX-License-Identifier: MIT OR Apache-2.0
//! The watchdog: a task that waits longer than the scheduler's limit ends the scheduler.
//!
//! Source: Linux kernel/sched/ext.c, `scx_watchdog_workfn()`, `check_rq_for_timeouts()`, 6.18. It
//! checks after every half of the limit, from the loading on. Checks between which no task waits
//! are skipped. Left out: the tick's check that the watchdog itself still runs.

use super::consts::{DSQ_GLOBAL, DSQ_LOCAL, ExitKind, SLICE_DFL};
use super::kernel::{Kernel, TIMER_OF_CORE};
use super::task::{ExtTask, NIL};
use schedlab_model::{CpuId, Nanos, TaskId};

/// The watchdog's timer.
pub const TIMER_WATCHDOG: u64 = TIMER_OF_CORE | 1;

/// Waits below this are not noted at the end of a run: a few slices of the default length.
const SHORTEST_NOTED: Nanos = 5 * SLICE_DFL;

const SECOND: Nanos = 1_000_000_000;

/// A time in seconds, to the millisecond.
fn seconds(ns: Nanos) -> String {
    let ms = ns / 1_000_000;
    format!("{}.{:03} s", ms / 1_000, ms % 1_000)
}

impl Kernel<'_> {
    /// Sets the timer of the next check.
    pub(crate) fn arm_watchdog(&mut self) {
        let half = (self.state.timeout_ns() / 2).max(1);
        let since = self.core.now - self.state.loaded_at;
        let at = self.state.loaded_at + (since / half + 1) * half;
        self.state.next_check = Some(self.core.timer_comes(at));
        self.core.start_timer(at, TIMER_WATCHDOG);
    }

    /// Time between two checks of a kernel (ns). The check's timer is rounded up to a multiple of
    /// 1, 8, 64 or 512 ticks, by its length, which the last check was too (`calc_wheel_index()`).
    pub(crate) fn check_period_ns(&self) -> Nanos {
        let ticks = (self.state.timeout_ns() / 2).div_ceil(self.core.tick_nsec);
        let step = match ticks {
            0..63 => 1,
            63..504 => 8,
            504..4_032 => 64,
            _ => 512,
        };
        (ticks / step + 1) * step * self.core.tick_nsec
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
                let place = self.whereabouts(stalled);
                if let Some(exit) = &mut self.state.exit {
                    exit.place = Some(place);
                }
                return;
            }
        }
        if somebody_waits {
            self.arm_watchdog();
        }
    }

    /// The run ends: notes the task that has waited longest, if that looks like the beginning of a
    /// stall. Nothing can be said of a wait that is not much longer than those that have ended: the
    /// task's turn may have been near.
    pub(crate) fn note_waiting(&mut self) {
        let cpus = (0..self.core.nr_cpus()).map(CpuId);
        // Lists are in order of waiting time.
        let first = cpus.map(|cpu| self.state.cpu(cpu).runnable_head).filter(|head| *head != NIL);
        let Some(p) = first.min_by_key(|p| self.state.tasks[*p as usize].runnable_at) else {
            return;
        };
        let (since, longest) = (self.state.tasks[p as usize].runnable_at, self.state.longest_wait);
        let waited = self.core.now - since;
        // A turn for each task that waits is no stall either.
        let round = SLICE_DFL * self.nr_waiting();
        if waited < SHORTEST_NOTED + round || waited < longest.saturating_mul(2) {
            return;
        }
        let timeout = self.state.timeout_ns();
        let p = TaskId(p);
        let never_ran = match self.core.task(p).sum_exec_runtime {
            0 => ", has never run",
            _ => "",
        };
        // The watchdog looks twice in each timeout, and not at the very end of a run.
        let until = (since + timeout + timeout / 2) / SECOND + 1;
        self.state.short_text = Some(format!(
            "{} had waited for {} when the run ended{never_ran}, and no wait before took longer \
             than {}; {}. It may stall: the watchdog decides after {}. To see it, add --until \
             {until}s.",
            self.named(p),
            seconds(waited),
            seconds(longest),
            self.whereabouts(p),
            seconds(timeout)
        ));
    }

    /// Number of runnable tasks that do not run.
    fn nr_waiting(&self) -> u64 {
        let waits = |task: &&ExtTask| task.on_runnable_list;
        self.state.tasks.iter().filter(waits).count() as u64
    }

    /// Where a waiting task is.
    fn whereabouts(&self, p: TaskId) -> String {
        /// From this number on, an id is more likely made of bits than counted.
        const IN_BITS: u64 = 1 << 16;
        let (task, cpu) = (self.state.task(p), self.core.task(p).cpu.0);
        if task.dsq == NIL {
            return format!("task of CPU {cpu}, in no queue: the scheduler keeps it");
        }
        let name = match self.state.dsqs.get(task.dsq).id {
            DSQ_LOCAL => "its local queue".to_owned(),
            DSQ_GLOBAL => "the global queue".to_owned(),
            id @ IN_BITS.. => format!("queue {id:#x}"),
            id => format!("queue {id}"),
        };
        let mut members = self.state.dsqs.members(&self.state.tasks, task.dsq);
        match members.position(|id| id == p.0).unwrap_or_default() {
            0 => format!("task of CPU {cpu}, the first in {name}"),
            1 => format!("task of CPU {cpu}, in {name} after 1 other"),
            before => format!("task of CPU {cpu}, in {name} after {before} others"),
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
