// SPDX-License-Identifier: MIT OR Apache-2.0
//! Condition variables, barriers, semaphores and events.

use super::Object;
use crate::engine::Engine;
use crate::step::Next;
use schedlab_model::objects::SEM_VALUE_MAX;
use schedlab_model::{CpuId, ObjectId, Step, TaskId, TraceSink};

impl<S: TraceSink> Engine<'_, S> {
    pub(super) fn wait(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        condvar: ObjectId,
        mutex: ObjectId,
    ) -> Next {
        if self.objects.mutex(mutex).holder != Some(task) {
            return self.misuse(task, mutex, "waits with, though it does not hold it,");
        }
        self.charge(task, self.costs.futex_call_ns());
        let prio = self.core.task(task).attr.kernel_prio();
        self.objects.condvar(condvar).push(task, prio);
        self.release_mutex(cpu, task, mutex);
        self.block_on(cpu, task, condvar, Some(Step::Lock { object: mutex }))
    }

    /// Wakes at most `most` tasks that wait on a condition variable.
    pub(super) fn signal(&mut self, cpu: CpuId, task: TaskId, id: ObjectId, most: usize) -> Next {
        if !self.objects.condvar(id).is_empty() {
            self.charge(task, self.costs.futex_call_ns());
        }
        for _ in 0..most {
            let Some(waiter) = self.objects.condvar(id).pop() else { break };
            self.wake_waiter(cpu, task, waiter, false);
        }
        Next::Call
    }

    pub(super) fn barrier(&mut self, cpu: CpuId, task: TaskId, id: ObjectId) -> Next {
        let Object::Barrier { parties, waiters } = &mut self.objects.objects[id.index()] else {
            unreachable!("the workload was checked: object {id} is a barrier");
        };
        debug_assert!((waiters.len() as u32) < *parties, "barrier {id} was not opened");
        if (waiters.len() as u32) + 1 < *parties {
            waiters.push(task);
            self.charge(task, self.costs.futex_call_ns());
            return self.block_on(cpu, task, id, None);
        }
        let waiters = std::mem::take(waiters);
        debug_assert!(!waiters.contains(&task), "task {task} waits at barrier {id} and comes");
        self.wake_all(cpu, task, &waiters);
        Next::Call
    }

    /// Wakes all waiters with one system call.
    fn wake_all(&mut self, cpu: CpuId, waker: TaskId, waiters: &[TaskId]) {
        if !waiters.is_empty() {
            self.charge(waker, self.costs.futex_call_ns());
        }
        for waiter in waiters {
            self.wake_waiter(cpu, waker, *waiter, false);
        }
    }

    pub(super) fn sem_wait(&mut self, cpu: CpuId, task: TaskId, id: ObjectId) -> Next {
        let prio = self.core.task(task).attr.kernel_prio();
        let Object::Semaphore { value, waiters, .. } = &mut self.objects.objects[id.index()] else {
            unreachable!("the workload was checked: object {id} is a semaphore");
        };
        if *value > 0 {
            *value -= 1;
            self.charge(task, self.costs.semaphore_ns);
            return Next::Call;
        }
        waiters.push(task, prio);
        self.charge(task, self.costs.futex_call_ns());
        self.block_on(cpu, task, id, Some(Step::SemWait { object: id }))
    }

    pub(super) fn sem_post(&mut self, cpu: CpuId, task: TaskId, id: ObjectId) -> Next {
        let Object::Semaphore { value, waiters, .. } = &mut self.objects.objects[id.index()] else {
            unreachable!("the workload was checked: object {id} is a semaphore");
        };
        if *value == SEM_VALUE_MAX {
            return self.misuse(task, id, "posts above the greatest value");
        }
        *value += 1;
        if let Some(waiter) = waiters.pop() {
            self.charge(task, self.costs.futex_call_ns());
            self.wake_waiter(cpu, task, waiter, false);
        } else {
            self.charge(task, self.costs.semaphore_ns);
        }
        self.wake_pollers(cpu, task, id);
        Next::Call
    }

    pub(super) fn suspend(&mut self, cpu: CpuId, task: TaskId, id: ObjectId) -> Next {
        self.event_waiters(id).push(task);
        self.charge(task, self.costs.futex_call_ns());
        self.block_on(cpu, task, id, None)
    }

    pub(super) fn resume(&mut self, cpu: CpuId, task: TaskId, id: ObjectId) -> Next {
        let waiters = std::mem::take(self.event_waiters(id));
        self.wake_all(cpu, task, &waiters);
        Next::Call
    }

    fn event_waiters(&mut self, id: ObjectId) -> &mut Vec<TaskId> {
        match &mut self.objects.objects[id.index()] {
            Object::Event { waiters } => waiters,
            _ => unreachable!("the workload was checked: object {id} is an event"),
        }
    }
}
