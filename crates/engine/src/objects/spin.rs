// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spinning for a mutex with priority inheritance.
//!
//! Since 5.15 the first waiter of such a mutex does not sleep while its owner runs on another CPU:
//! it spins, and so uses its own CPU. It goes to sleep when the owner leaves its CPU, when another
//! waiter comes before it, or when its CPU has to reschedule.
//!
//! Source: Linux kernel/locking/rtmutex.c (`rt_mutex_slowlock_block`, `rtmutex_spin_on_owner`),
//! which a futex with inheritance waits in. Left out: a spinner that is preempted in a preemptible
//! kernel stays queued there, and here goes to sleep; a sleeper that another one has made the first
//! is woken to spin by nobody, in both.

use super::Object;
use crate::engine::Engine;
use crate::exec::Waiting;
use crate::step::Next;
use schedlab_model::{CpuId, EventKind, Nanos, ObjectId, TaskId, TraceSink};
use schedlab_sched::boundary::core::TaskState;

impl<S: TraceSink> Engine<'_, S> {
    /// Whether a task of the run may spin: with several CPUs, a mutex with inheritance, and a
    /// kernel that does so.
    pub(crate) fn may_spin(&self) -> bool {
        self.stack.spins_on_owner
            && self.core.rqs.len() > 1
            && self.objects.objects.iter().any(|object| match object {
                Object::Mutex(mutex) => mutex.inherits(),
                _ => false,
            })
    }

    /// Whether `task`, which waits for the mutex of `object`, need not sleep.
    pub(super) fn spins_for(&mut self, task: TaskId, object: ObjectId) -> bool {
        if !self.stack.spins_on_owner {
            return false;
        }
        let mutex = self.objects.mutex(object);
        let (Some(holder), first) = (mutex.holder, mutex.waiters.first()) else { return false };
        first == Some(task) && self.core.is_running(holder) && !self.spins_for_one_of(task, holder)
    }

    /// Whether `holder` spins for a mutex of `task`, or for one whose owner does. The kernel
    /// refuses such a wait (EDEADLK).
    fn spins_for_one_of(&mut self, task: TaskId, holder: TaskId) -> bool {
        let mut at = holder;
        while let Some(object) = self.spun_for(at) {
            match self.objects.mutex(object).holder {
                Some(next) if next != task => at = next,
                found => return found.is_some(),
            }
        }
        false
    }

    /// `task`, running on `cpu`, begins to spin for the mutex of `object`.
    pub(super) fn begin_spin(&mut self, task: TaskId, object: ObjectId) -> Next {
        debug_assert_eq!(self.tasks[task].waiting, Waiting::No, "task {task} waits twice");
        self.tasks[task].waiting = Waiting::On(object);
        self.objects.spinners.push((task, object));
        Next::Spin
    }

    /// Whether `task` spins. If so, it looks at the mutex again.
    pub(crate) fn spins_on(&mut self, task: TaskId) -> Option<Next> {
        let object = self.spun_for(task)?;
        if self.spins_for(task, object) {
            return Some(Next::Spin);
        }
        self.begin_sleep(task, object);
        Some(Next::Block(TaskState::Sleeping))
    }

    /// Whether `task` spins.
    pub(crate) fn spins(&self, task: TaskId) -> bool {
        self.spun_for(task).is_some()
    }

    fn spun_for(&self, task: TaskId) -> Option<ObjectId> {
        let spinners = &self.objects.spinners;
        spinners.iter().find(|(spinner, _)| *spinner == task).map(|(_, object)| *object)
    }

    /// `task` stops spinning and goes to sleep.
    fn begin_sleep(&mut self, task: TaskId, object: ObjectId) {
        self.objects.spinners.retain(|(spinner, _)| *spinner != task);
        let cpu = self.core.task(task).cpu;
        self.emit(cpu, EventKind::Block { task, object });
        self.reads_clock_first(task);
    }

    /// `cpu` reschedules: a task that spins there goes to sleep.
    pub(crate) fn stops_spinning(&mut self, cpu: CpuId) {
        let Some(curr) = self.core.rq(cpu).curr else { return };
        let Some(object) = self.spun_for(curr) else { return };
        self.begin_sleep(curr, object);
        self.tasks[curr].wall_until = None;
        self.clock.burst_ends.set(cpu, self.core.now);
        self.core.tasks[curr.index()].state = TaskState::Sleeping;
    }

    /// A task has come to wait for the mutex of `object`: one that spins may not be the first now.
    pub(super) fn waiter_comes(&mut self, object: ObjectId) {
        self.look_again(|_, spun_for| spun_for == object);
    }

    /// `owner` leaves its CPU: who spins for a mutex of its sees that.
    pub(crate) fn owner_leaves(&mut self, owner: TaskId) {
        self.look_again(|engine, object| engine.objects.mutex(object).holder == Some(owner));
    }

    /// Ends the bursts of those that spin for `wanted` objects, so that they look at it again.
    fn look_again(&mut self, wanted: impl Fn(&mut Self, ObjectId) -> bool) {
        for index in 0..self.objects.spinners.len() {
            let (task, object) = self.objects.spinners[index];
            let cpu = self.core.task(task).cpu;
            if self.core.rq(cpu).curr == Some(task) && wanted(self, object) {
                self.tasks[task].wall_until = None;
                self.clock.burst_ends.set(cpu, self.core.now);
            }
        }
    }

    /// `task` has got the mutex of `object`. Returns whether it spun for it: then it goes on, when
    /// what it owes has passed.
    pub(super) fn ends_spin(&mut self, task: TaskId) -> bool {
        if self.spun_for(task).is_none() {
            return false;
        }
        self.objects.spinners.retain(|(spinner, _)| *spinner != task);
        self.tasks[task].waiting = Waiting::No;
        self.tasks[task].wall_until = None;
        self.start_owed_burst(self.core.task(task).cpu, task, 0, 0);
        true
    }
}

/// Until when a task spins.
pub(crate) const SPIN_ENDS: Nanos = Nanos::MAX;
