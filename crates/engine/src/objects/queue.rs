// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiters in the kernel's order: by real-time priority; for a mutex with inheritance then by
//! deadline; then first come, first served.

use schedlab_model::{Nanos, TaskId};
use std::collections::VecDeque;

/// The key of all fair tasks (`MAX_RT_PRIO`): among them only the order of arrival counts.
const FAIR_KEY: i32 = 100;

/// A place in the order of waiters: the lower key comes first.
pub(super) type WaitKey = (i32, Nanos);

/// The key of a waiter of kernel priority `prio`.
pub(super) fn key(prio: i32, deadline: Nanos) -> WaitKey {
    (prio.min(FAIR_KEY), deadline)
}

/// A queue of waiters.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    waiters: VecDeque<(WaitKey, TaskId)>,
}

impl WaitQueue {
    /// Adds a waiter of kernel priority `prio` after those of the same priority.
    pub fn push(&mut self, task: TaskId, prio: i32) {
        self.push_by_deadline(task, prio, 0);
    }

    /// Adds a waiter; among those of equal priority `deadline` decides.
    pub fn push_by_deadline(&mut self, task: TaskId, prio: i32, deadline: Nanos) {
        debug_assert!(!self.contains(task), "task {task} waits here twice");
        let key = key(prio, deadline);
        let at = self.waiters.partition_point(|(other, _)| *other <= key);
        self.waiters.insert(at, (key, task));
    }

    /// Removes the first waiter.
    pub fn pop(&mut self) -> Option<TaskId> {
        self.waiters.pop_front().map(|(_, task)| task)
    }

    /// The first waiter.
    pub fn first(&self) -> Option<TaskId> {
        self.waiters.front().map(|(_, task)| *task)
    }

    /// The key of the first waiter.
    pub fn first_key(&self) -> Option<WaitKey> {
        self.waiters.front().map(|(key, _)| *key)
    }

    /// Removes the first waiter for which `fits` is true.
    pub fn pop_if(&mut self, fits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let at = self.waiters.iter().position(|(_, task)| fits(*task))?;
        self.waiters.remove(at).map(|(_, task)| task)
    }

    /// Moves a waiter to its new place after its priority changed.
    pub fn move_to(&mut self, task: TaskId, prio: i32, deadline: Nanos) {
        if self.pop_if(|other| other == task).is_some() {
            self.push_by_deadline(task, prio, deadline);
        }
    }

    /// Whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Whether `task` waits.
    pub fn contains(&self, task: TaskId) -> bool {
        self.waiters.iter().any(|(_, other)| *other == task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_first_then_in_order_of_coming() {
        let mut queue = WaitQueue::default();
        for (task, prio) in [(0, 139), (1, 100), (2, 50), (3, 98), (4, 50), (5, 120)] {
            queue.push(TaskId(task), prio);
        }
        queue.move_to(TaskId(5), 10, 0);
        assert_eq!(queue.pop_if(|task| task.0 == 0), Some(TaskId(0)));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|task| task.0).collect();
        assert_eq!(order, [5, 2, 4, 3, 1]);
    }
}
