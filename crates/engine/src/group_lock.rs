// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks of moves between control groups: `cgroup_mutex`, and around it that of the file to
//! which a task writes (`kernfs_open_file`), which all tasks of a run have open together.
//!
//! A move changes the queue of the running task half way, which requests a reschedule
//! (`sched_move_task`). A task that then loses the CPU, often because its new group has less
//! weight, keeps the locks until it runs again: until then no other task can move.
//!
//! The locks are those of kernel/locking/mutex.c: an unlock wakes the first waiter, which tries
//! again when it runs. A task that comes in between may take it first. Once it has lost the lock
//! so, the first waiter is handed it. Left out: spinning while the holder runs on another CPU,
//! other users of the lock.

use crate::engine::Engine;
use crate::exec::Waiting;
use crate::step::Next;
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::{CgroupId, Costs, CpuId, Nanos, Step, TaskId, TraceSink};
use schedlab_sched::boundary::core::TaskState;
use std::collections::VecDeque;

/// A lock.
#[derive(Clone, Debug, Default)]
struct Lock {
    holder: Option<TaskId>,
    /// Tasks that sleep, in the order of their arrival. The first may have been woken.
    waiters: VecDeque<TaskId>,
    /// Whether the next unlock hands the lock to the first of them (MUTEX_FLAG_HANDOFF).
    hands_over: bool,
}

/// The locks.
#[derive(Debug)]
pub(crate) struct GroupLocks {
    /// `cgroup_mutex`.
    all: Lock,
    /// By the group to which a task moves.
    files: Vec<Lock>,
}

impl GroupLocks {
    /// Nobody moves between `nr_groups` groups.
    pub fn new(nr_groups: usize) -> Self {
        Self { all: Lock::default(), files: vec![Lock::default(); nr_groups] }
    }

    /// Whether `task` holds what a move needs.
    pub fn are_held_by(&self, task: TaskId) -> bool {
        self.all.is_held_by(task)
    }

    /// `task`, which moves to `group`, takes what it can get. Returns whether it has all.
    pub fn take(&mut self, task: TaskId, group: CgroupId) -> bool {
        self.files[group.index()].take(task) && self.all.take(task)
    }

    /// `task`, which moves to `group`, did not get all.
    fn wait(&mut self, task: TaskId, group: CgroupId) {
        let file = &mut self.files[group.index()];
        if file.is_held_by(task) {
            self.all.wait(task);
        } else {
            file.wait(task);
        }
    }

    /// A task has moved to `group`. Returns the tasks to wake.
    fn release(&mut self, group: CgroupId) -> [Option<TaskId>; 2] {
        [self.all.release(), self.files[group.index()].release()]
    }
}

impl Lock {
    fn is_held_by(&self, task: TaskId) -> bool {
        self.holder == Some(task)
    }

    /// `task` takes the lock, if it is free or has been handed to it. Returns whether it has it.
    fn take(&mut self, task: TaskId) -> bool {
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
        let Some(group) = self.attr_of(task, op).map(|attr| attr.cgroup) else {
            return Next::Call;
        };
        if self.group_locks.take(task, group) {
            let rest = self.move_ns(task, group).saturating_sub(self.costs.group_lock_ns);
            return self.call_first(task, rest, Step::SetAttr(op));
        }
        self.group_locks.wait(task, group);
        debug_assert_eq!(self.tasks[task].waiting, Waiting::No, "task {task} waits twice");
        self.tasks[task].waiting = Waiting::Move;
        self.shared(task).pending = Some(Step::SetAttr(op));
        Next::Block(TaskState::BlockedIo)
    }

    /// What the call takes that moves `task` to `group`, up to the move.
    pub(crate) fn move_ns(&self, task: TaskId, group: CgroupId) -> Nanos {
        let Costs { group_move_ns, group_fair_ns, .. } = self.costs;
        let fair_ns = if self.levels_of(task) > 0 { group_fair_ns } else { 0 };
        group_move_ns.saturating_add(fair_ns).saturating_add(self.first_move_ns(group))
    }

    /// What it takes in addition, if no task is in the group: the kernel makes the set of groups
    /// that its tasks share (`css_set`, find_css_set). The root group has one always.
    fn first_move_ns(&self, group: CgroupId) -> Nanos {
        let is_in = |task| {
            let t = self.core.task(task);
            t.attr.cgroup == group && t.state != TaskState::Dead
        };
        let has_set =
            self.costs.group_first_ns == 0 || group == ROOT_CGROUP || self.tasks.ids().any(is_in);
        if has_set { 0 } else { self.costs.group_first_ns }
    }

    /// `task`, which runs on `cpu`, has moved.
    pub(crate) fn unlock_groups(&mut self, cpu: CpuId, task: TaskId) {
        let group = self.core.task(task).attr.cgroup;
        for first in self.group_locks.release(group).into_iter().flatten() {
            // It may run already, and find the lock free.
            if self.tasks[first].waiting == Waiting::Move {
                self.charge(task, self.costs.wakeup_ns);
                self.wake(first, cpu, Some(task));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_that_lost_the_lock_is_handed_it() {
        let (a, b, c) = (TaskId(0), TaskId(1), TaskId(2));
        let mut lock = Lock::default();
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

    #[test]
    fn moves_to_one_group_wait_at_its_file() {
        let (a, b, c) = (TaskId(0), TaskId(1), TaskId(2));
        let (one, two) = (CgroupId(0), CgroupId(1));
        let mut locks = GroupLocks::new(2);
        assert!(locks.take(a, one) && locks.are_held_by(a));
        for (task, group) in [(b, one), (c, two)] {
            assert!(!locks.take(task, group));
            locks.wait(task, group);
        }
        assert_eq!(locks.release(one), [Some(c), Some(b)]);
        assert!(locks.take(c, two) && !locks.take(b, one));
        locks.wait(b, one);
        assert_eq!(locks.release(two), [Some(b), None]);
        assert!(locks.take(b, one));
    }
}
