// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locking and unlocking.

use super::queue::WaitQueue;
use crate::engine::Engine;
use crate::exec::Waiting;
use crate::step::Next;
use schedlab_model::{CpuId, MutexProtocol, ObjectId, Step, TaskId, TraceSink};

/// A mutex.
#[derive(Debug)]
pub(crate) struct Mutex {
    pub protocol: MutexProtocol,
    /// The holder. After a handover it may not run yet.
    pub holder: Option<TaskId>,
    /// Whether a task may wait in the kernel (the futex word is 2), so that the unlock is a system
    /// call.
    pub contended: bool,
    pub waiters: WaitQueue,
}

impl Mutex {
    pub fn new(protocol: MutexProtocol) -> Self {
        Self { protocol, holder: None, contended: false, waiters: WaitQueue::default() }
    }

    pub(super) fn inherits(&self) -> bool {
        self.protocol == MutexProtocol::Inherit
    }
}

impl<S: TraceSink> Engine<'_, S> {
    pub(super) fn lock(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        object: ObjectId,
        retried: bool,
    ) -> Next {
        let mutex = self.objects.mutex(object);
        match mutex.holder {
            None => {
                let is_left = mutex.inherits() && !mutex.waiters.is_empty();
                debug_assert!(!is_left, "{object} was not handed over to its waiter");
                mutex.holder = Some(task);
                // A task that waited does not know whether others still wait.
                mutex.contended = retried;
                self.hold(task, object);
                Next::Call
            }
            Some(holder) if holder == task => {
                self.misuse(task, object, "locks, though it holds it already,")
            }
            Some(holder) => {
                debug_assert!(
                    !mutex.waiters.contains(task),
                    "task {task} waits for {object} twice"
                );
                mutex.contended = true;
                let inherits = mutex.inherits();
                self.charge(task, self.costs.futex_call_ns());
                let t = self.core.task(task);
                let prio = if inherits { t.prio } else { t.attr.kernel_prio() };
                let deadline = if inherits && prio < 0 { self.deadline(task) } else { 0 };
                self.objects.mutex(object).waiters.push_by_deadline(task, prio, deadline);
                if inherits {
                    self.charge(task, self.costs.pi_wait_ns);
                    self.adjust_priority(holder);
                    // The mutex was handed over: nothing is left to do when the task runs.
                    return self.block_on(cpu, task, object, None);
                }
                self.block_on(cpu, task, object, Some(Step::Lock { object }))
            }
        }
    }

    /// `task` gets the mutex.
    fn hold(&mut self, task: TaskId, object: ObjectId) {
        debug_assert_eq!(self.objects.mutex(object).holder, Some(task), "{object} is another's");
        debug_assert!(!self.shared(task).held.contains(&object), "{object} is held twice");
        self.shared(task).held.push(object);
        if let MutexProtocol::Ceiling { .. } = self.objects.mutex(object).protocol {
            self.adjust_own_priority(task);
        }
    }

    /// Charges a task for a system call, if it changes its own priority.
    fn adjust_own_priority(&mut self, task: TaskId) {
        if self.adjust_priority(task) {
            self.charge(task, self.costs.futex_call_ns());
        }
    }

    pub(super) fn unlock(&mut self, cpu: CpuId, task: TaskId, object: ObjectId) -> Next {
        if self.objects.mutex(object).holder != Some(task) {
            return self.misuse(task, object, "unlocks, though it does not hold it,");
        }
        self.release_mutex(cpu, task, object);
        Next::Call
    }

    /// `task` releases the mutex.
    pub(super) fn release_mutex(&mut self, cpu: CpuId, task: TaskId, object: ObjectId) {
        debug_assert!(self.shared(task).held.contains(&object), "task {task} lost {object}");
        self.shared(task).held.retain(|held| *held != object);
        let mutex = self.objects.mutex(object);
        debug_assert_eq!(mutex.holder, Some(task), "task {task} gives up {object} of another");
        mutex.holder = None;
        let was_contended = std::mem::take(&mut mutex.contended);
        let next = if was_contended { mutex.waiters.pop() } else { None };
        let protocol = mutex.protocol;
        if was_contended {
            self.charge(task, self.costs.futex_call_ns());
        }
        match protocol {
            MutexProtocol::None => {}
            MutexProtocol::Ceiling { .. } => self.adjust_own_priority(task),
            MutexProtocol::Inherit => {
                if let Some(next) = next {
                    debug_assert_eq!(self.tasks[next].waiting, Waiting::On(object));
                    debug_assert_ne!(next, task, "task {task} waits for {object}, which it holds");
                    let mutex = self.objects.mutex(object);
                    mutex.holder = Some(next);
                    mutex.contended = !mutex.waiters.is_empty();
                    self.shared(next).held.push(object);
                    self.charge(task, self.costs.pi_unlock_ns);
                    self.charge(next, self.costs.pi_acquire_ns);
                    self.adjust_priority(task);
                    self.adjust_priority(next);
                }
            }
        }
        if let Some(next) = next {
            self.wake_waiter(cpu, task, next, false);
        }
    }
}
