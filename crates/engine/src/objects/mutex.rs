// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locking and unlocking.

use super::queue::{WaitKey, WaitQueue, key};
use crate::engine::Engine;
use crate::exec::Waiting;
use crate::step::Next;
use schedlab_model::{CpuId, MutexProtocol, Nanos, ObjectId, Step, TaskId, TraceSink};

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
    /// With inheritance: the CPU time of `holder` when it was handed over, if the holder waited.
    handed_at: Option<Nanos>,
    /// A waiter of this key that was woken as the holder, and lost the mutex before it ran.
    robbed: Option<(WaitKey, TaskId)>,
}

impl Mutex {
    pub fn new(protocol: MutexProtocol) -> Self {
        Self {
            protocol,
            holder: None,
            contended: false,
            waiters: WaitQueue::default(),
            handed_at: None,
            robbed: None,
        }
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
        if self.steals(task, object) {
            return self.steal(task, object);
        }
        let mutex = self.objects.mutex(object);
        if mutex.robbed.is_some_and(|(_, robbed)| robbed == task) {
            mutex.robbed = None;
        }
        match mutex.holder {
            None => {
                let is_left = mutex.inherits() && !mutex.waiters.is_empty();
                debug_assert!(!is_left, "{object} was not handed over to its waiter");
                mutex.holder = Some(task);
                // A task that waited does not know whether others still wait.
                mutex.contended = retried;
                self.hold(task, object);
                if !retried {
                    self.charge(task, self.costs.mutex_ns);
                }
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
                // A waiter that was robbed is in the call still.
                if !(inherits && retried) {
                    self.charge(task, self.costs.futex_call_ns());
                }
                let t = self.core.task(task);
                let prio = if inherits { t.prio } else { t.attr.kernel_prio() };
                let deadline = if inherits && prio < 0 { self.deadline(task) } else { 0 };
                self.objects.mutex(object).waiters.push_by_deadline(task, prio, deadline);
                if inherits {
                    if !retried {
                        self.charge(task, self.costs.pi_wait_ns);
                    }
                    self.adjust_priority(holder);
                    self.waiter_comes(object);
                    if self.spins_for(task, object) {
                        return self.begin_spin(task, object);
                    }
                    // The mutex was handed over: nothing is left to do when the task runs.
                    return self.block_on(cpu, task, object, None);
                }
                self.block_on(cpu, task, object, Some(Step::Lock { object }))
            }
        }
    }

    /// The key of `task` as a waiter, from its own attributes.
    fn own_key(&self, task: TaskId) -> WaitKey {
        let prio = self.core.task(task).attr.kernel_prio();
        key(prio, if prio < 0 { self.deadline(task) } else { 0 })
    }

    /// Whether `task` takes a mutex with inheritance from a less important one, to which it was
    /// handed over and which has not run since (rt_mutex_steal).
    pub(super) fn steals(&mut self, task: TaskId, object: ObjectId) -> bool {
        let mutex = self.objects.mutex(object);
        let (Some(holder), Some(handed_at)) = (mutex.holder, mutex.handed_at) else {
            return false;
        };
        holder != task
            && !self.core.is_running(holder)
            && self.core.task(holder).sum_exec_runtime == handed_at
            && self.own_key(task) < self.own_key(holder)
    }

    /// `task` takes the mutex from its holder, which will find that when it runs.
    fn steal(&mut self, task: TaskId, object: ObjectId) -> Next {
        let mutex = self.objects.mutex(object);
        let robbed = mutex.holder.replace(task).expect("a holder loses it");
        mutex.handed_at = None;
        mutex.contended = true;
        let robbed_key = self.own_key(robbed);
        self.objects.mutex(object).robbed = Some((robbed_key, robbed));
        self.shared(robbed).held.retain(|held| *held != object);
        self.shared(robbed).pending = Some(Step::Lock { object });
        self.charge(task, self.costs.futex_call_ns());
        self.hold(task, object);
        self.adjust_priority(robbed);
        self.adjust_priority(task);
        Next::Call
    }

    /// The task that gets the mutex of `object` from `task`, if one waits, and whether it was
    /// robbed of it: then it is awake.
    fn heir(&mut self, object: ObjectId) -> Option<(TaskId, bool)> {
        let mutex = self.objects.mutex(object);
        let top = mutex.waiters.first_key();
        match mutex.robbed {
            Some((own, robbed)) if top.is_none_or(|top| own <= top) => {
                mutex.robbed = None;
                Some((robbed, true))
            }
            _ => mutex.waiters.pop().map(|next| (next, false)),
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
        mutex.handed_at = None;
        let protocol = mutex.protocol;
        let next = if was_contended { self.heir(object) } else { None };
        let call_ns = self.costs.futex_call_ns();
        self.charge(task, if was_contended { call_ns } else { self.costs.mutex_ns });
        match protocol {
            MutexProtocol::None => {}
            MutexProtocol::Ceiling { .. } => self.adjust_own_priority(task),
            MutexProtocol::Inherit => {
                if let Some((next, was_robbed)) = next {
                    self.hand_over(task, next, was_robbed, object);
                }
            }
        }
        if let Some((next, false)) = next {
            if self.ends_spin(next) {
                self.charge(task, self.costs.wakeup_ns);
            } else {
                self.wake_waiter(cpu, task, next, false);
            }
        }
    }

    /// `task` hands a mutex with inheritance over to `next`.
    fn hand_over(&mut self, task: TaskId, next: TaskId, was_robbed: bool, object: ObjectId) {
        debug_assert_ne!(next, task, "task {task} waits for {object}, which it holds");
        let handed_at = self.core.task(next).sum_exec_runtime;
        let mutex = self.objects.mutex(object);
        mutex.holder = Some(next);
        mutex.handed_at = Some(handed_at);
        mutex.contended = mutex.robbed.is_some() || !mutex.waiters.is_empty();
        self.shared(next).held.push(object);
        self.charge(task, self.costs.pi_unlock_ns);
        if was_robbed {
            self.shared(next).pending = None;
        } else {
            debug_assert_eq!(self.tasks[next].waiting, Waiting::On(object));
            if self.objects.mutex(object).waiters.is_empty() {
                // The last waiter frees what waits share (`pi_state`).
                self.charge(next, self.costs.pi_acquire_ns);
            }
        }
        self.adjust_priority(task);
        self.adjust_priority(next);
    }
}
