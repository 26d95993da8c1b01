// SPDX-License-Identifier: MIT OR Apache-2.0
//! How sleep raises a task's sleep average, and running lowers it.
//!
//! Source: Linux 2.6.0, 2.6.11 and 2.6.22, kernel/sched.c (`recalc_task_prio`, `activate_task`, and
//! what `schedule` does with `prev`).

use super::rules::{CREDIT_LIMIT, MAX_BONUS, SleepRule};
use super::{Entry, OrderOne, Woken};
use schedlab_model::{Nanos, TaskId};

impl OrderOne {
    /// Updates the sleep average to `now`, and with it the priority. The task has slept or waited
    /// since its timestamp.
    pub(super) fn recalc_task_prio(&mut self, task: TaskId, now: Nanos) {
        let entry = self.tasks[task.index()];
        let slept = now.saturating_sub(entry.timestamp);
        if slept > 0 {
            match self.scale.rules.sleep {
                SleepRule::Credits => self.add_with_credits(task, slept),
                SleepRule::Multiplied => self.add_multiplied(task, slept),
                SleepRule::Plain if entry.is_batch => {}
                SleepRule::Plain => self.add_plain(task, slept),
            }
        }
        self.set_effective_prio(task);
    }

    /// Sets the priority that follows from the sleep average. The task is in no list.
    pub(super) fn set_effective_prio(&mut self, task: TaskId) {
        let entry = &self.tasks[task.index()];
        if !entry.is_rt() {
            let prio = self.scale.effective_prio(entry.static_prio, entry.sleep_avg);
            self.tasks[task.index()].prio = prio;
        }
    }

    /// The lower the bonus, the more sleep counts.
    fn multiplier(&self, entry: &Entry) -> Nanos {
        MAX_BONUS.saturating_sub(self.scale.current_bonus(entry.sleep_avg)).max(1)
    }

    /// What an unsigned long of the kernel keeps of `value`: its lower bits.
    fn ulong(&self, value: Nanos) -> Nanos {
        value & self.ulong_max
    }

    /// Limits sleep in an uninterruptible wait: it makes a task at most just interactive.
    fn limited(&mut self, task: TaskId, slept: Nanos, limit: Nanos) -> Nanos {
        let entry = &self.tasks[task.index()];
        if entry.sleep_avg >= limit {
            return 0;
        }
        if self.ulong(entry.sleep_avg.saturating_add(slept)) >= limit {
            self.tasks[task.index()].sleep_avg = limit;
            return 0;
        }
        slept
    }

    fn add_with_credits(&mut self, task: TaskId, slept: Nanos) {
        let mut entry = self.tasks[task.index()];
        let limit = self.scale.interactive_sleep(entry.static_prio);
        let most = self.scale.max_sleep;
        let mut slept = slept.min(most);
        if entry.woken != Woken::Uninterruptible && slept > limit {
            entry.sleep_avg = most - Nanos::from(self.scale.def_timeslice) * self.scale.tick;
            entry.earn_credit();
            self.tasks[task.index()] = entry;
            return;
        }
        slept = self.ulong(slept * self.multiplier(&entry));
        if entry.credit < -CREDIT_LIMIT {
            let slice = self.scale.timeslice(entry.static_prio);
            slept = slept.min(Nanos::from(slice) * self.scale.tick);
        }
        if entry.woken == Woken::Uninterruptible && entry.credit <= CREDIT_LIMIT {
            slept = self.limited(task, slept, limit);
        }
        let sum = self.ulong(self.tasks[task.index()].sleep_avg + slept);
        let entry = &mut self.tasks[task.index()];
        entry.sleep_avg = sum;
        if entry.sleep_avg > most {
            entry.sleep_avg = most;
            entry.earn_credit();
        }
    }

    fn add_multiplied(&mut self, task: TaskId, slept: Nanos) {
        let entry = self.tasks[task.index()];
        let limit = self.scale.interactive_sleep(entry.static_prio);
        let most = self.scale.max_sleep;
        let mut slept = slept.min(most);
        if entry.woken != Woken::Uninterruptible && slept > limit {
            let slice = Nanos::from(self.scale.def_timeslice) * self.scale.tick;
            self.tasks[task.index()].sleep_avg = most - slice;
            return;
        }
        slept = self.ulong(slept * self.multiplier(&entry));
        if entry.woken == Woken::Uninterruptible {
            slept = self.limited(task, slept, limit);
        }
        let sum = self.ulong(self.tasks[task.index()].sleep_avg + slept);
        self.tasks[task.index()].sleep_avg = sum.min(most);
    }

    fn add_plain(&mut self, task: TaskId, slept: Nanos) {
        let entry = self.tasks[task.index()];
        let ceiling = self.scale.interactive_sleep(entry.static_prio);
        let mut slept = self.ulong(slept);
        if slept > ceiling && entry.sleep_avg < ceiling {
            let entry = &mut self.tasks[task.index()];
            entry.sleep_avg = ceiling.min(self.scale.max_sleep);
            entry.woken = Woken::Uninterruptible;
            return;
        }
        if entry.woken == Woken::Uninterruptible {
            slept = self.limited(task, slept, ceiling);
        }
        let most = self.scale.max_sleep;
        let sum = self.ulong(self.tasks[task.index()].sleep_avg.saturating_add(slept));
        self.tasks[task.index()].sleep_avg = sum.min(most);
    }

    /// The time since its timestamp that `schedule` charges to a task.
    pub(super) fn run_time(&self, task: TaskId, now: Nanos) -> Nanos {
        let entry = &self.tasks[task.index()];
        let ran = now.saturating_sub(entry.timestamp).min(self.scale.max_sleep);
        let is_spared = self.scale.rules.sleep != SleepRule::Credits || entry.credit > CREDIT_LIMIT;
        if is_spared && ran > 0 {
            ran / self.scale.current_bonus(entry.sleep_avg).max(1)
        } else {
            ran
        }
    }

    /// Subtracts `ran` from the sleep average of a task that has run until `now`.
    pub(super) fn charge(&mut self, task: TaskId, ran: Nanos, now: Nanos) {
        let uses_credits = self.scale.rules.sleep == SleepRule::Credits;
        let entry = &mut self.tasks[task.index()];
        entry.sleep_avg = entry.sleep_avg.saturating_sub(ran);
        if uses_credits && entry.sleep_avg == 0 && entry.credit.abs() <= CREDIT_LIMIT {
            entry.credit -= 1;
        }
        entry.timestamp = now;
        entry.last_ran = now;
    }
}

impl Entry {
    /// Adds an interactive credit, up to the limit.
    fn earn_credit(&mut self) {
        if self.credit <= CREDIT_LIMIT {
            self.credit += 1;
        }
    }
}
