// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lock of moves between control groups (`cgroup_mutex`).
//!
//! A move changes the queue of the running task half way, which requests a reschedule
//! (`sched_move_task`). A task that then loses the CPU, often because its new group has less weight,
//! keeps the lock until it runs again: until then no other task can move.
//!
//! The lock is that of kernel/locking/mutex.c: an unlock wakes the first waiter, which tries again
//! when it runs. A task that comes in between may take it first; once it has lost the lock so, the
//! first waiter is handed it. Left out: spinning while the holder runs on another CPU, other users
//! of the lock.

use crate::engine::Engine;
use crate::exec::Waiting;
use crate::step::Next;
use schedlab_model::{CpuId, Step, TaskId, TraceSink};
use schedlab_sched::boundary::core::TaskState;
use std::collections::VecDeque;

/// The lock.
#[derive(Debug, Default)]
pub(crate) struct GroupLock {
    holder: Option<TaskId>,
    /// Tasks that sleep, in the order of their arrival. The first may have been woken.
    waiters: VecDeque<TaskId>,
    /// Whether the next unlock hands the lock to the first of them (MUTEX_FLAG_HANDOFF).
    hands_over: bool,
}

impl GroupLock {
    /// Whether `task` holds the lock.
    pub fn is_held_by(&self, task: TaskId) -> bool {
        self.holder == Some(task)
    }

    /// `task` takes the lock, if it is free or has been handed to it. Returns whether it has it.
    pub fn take(&mut self, task: TaskId) -> bool {
        if *self.holder.get_or_insert(task) != task {
            return false;
        }
        if self.waiters.front() == Some(&task) {
            self.waiters.pop_front();
            self.hands_over = false;
        }
        true
    }

    /// `task` did not get the lock and goes to sleep, perhaps again.
    fn wait(&mut self, task: TaskId) {
        if self.waiters.front() == Some(&task) {
            self.hands_over = true;
        } else {
            self.waiters.push_back(task);
        }
    }

    /// The holder gives the lock up. Returns the task to wake.
    fn release(&mut self) -> Option<TaskId> {
        let first = self.waiters.front().copied();
        self.holder = first.filter(|_| self.hands_over);
        first
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// `task` is at the lock, with the step `op` of its program, and another one held it when it
    /// came.
    pub(crate) fn waits_to_move(&mut self, task: TaskId, op: u32) -> Next {
        if self.group_lock.take(task) {
            let rest = self.costs.group_move_ns.saturating_sub(self.costs.group_lock_ns);
            return self.call_first(task, rest, Step::SetAttr(op));
        }
        self.group_lock.wait(task);
        debug_assert_eq!(self.tasks[task].waiting, Waiting::No, "task {task} waits twice");
        self.tasks[task].waiting = Waiting::Move;
        self.shared(task).pending = Some(Step::SetAttr(op));
        Next::Block(TaskState::BlockedIo)
    }

    /// `task`, which runs on `cpu`, has moved.
    pub(crate) fn unlock_groups(&mut self, cpu: CpuId, task: TaskId) {
        let Some(first) = self.group_lock.release() else { return };
        // It may run already, and find the lock free.
        if self.tasks[first].waiting == Waiting::Move {
            self.charge(task, self.costs.wakeup_ns);
            self.wake(first, cpu, Some(task));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_that_lost_the_lock_is_handed_it() {
        let (a, b, c) = (TaskId(0), TaskId(1), TaskId(2));
        let mut lock = GroupLock::default();
        assert!(lock.take(a) && lock.is_held_by(a));
        assert!(!lock.take(b));
        lock.wait(b);
        assert_eq!(lock.release(), Some(b));
        assert!(lock.take(c), "it comes before the woken task runs");
        assert!(!lock.take(b));
        lock.wait(b);
        assert_eq!(lock.release(), Some(b));
        assert!(lock.is_held_by(b) && !lock.take(c));
        lock.wait(c);
        assert!(lock.take(b), "it runs");
        assert_eq!(lock.release(), Some(c));
        assert!(lock.take(c));
        assert_eq!(lock.release(), None);
        assert!(!lock.is_held_by(c));
    }
}
