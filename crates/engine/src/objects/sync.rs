// SPDX-License-Identifier: MIT OR Apache-2.0
//! Condition variables, barriers, semaphores and events.

use super::Object;
use crate::engine::Engine;
use crate::step::Next;
use schedlab_model::objects::SEM_VALUE_MAX;
use schedlab_model::{Costs, CpuId, ObjectId, Step, TaskId, TraceSink};

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

    /// Wakes a task that waits on a condition variable.
    pub(super) fn signal(&mut self, cpu: CpuId, task: TaskId, id: ObjectId) -> Next {
        if let Some(waiter) = self.objects.condvar(id).pop() {
            self.charge(task, self.costs.futex_call_ns());
            self.wake_waiter(cpu, task, waiter, false);
        }
        Next::Call
    }

    /// Wakes all tasks that wait on a condition variable.
    pub(super) fn broadcast(&mut self, cpu: CpuId, task: TaskId, id: ObjectId) -> Next {
        let condvar = self.objects.condvar(id);
        let waiters = std::iter::from_fn(|| condvar.pop()).collect();
        self.wake_each(cpu, task, Step::Broadcast { object: id }, waiters)
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
        if !waiters.is_empty() {
            self.charge(task, self.costs.futex_call_ns());
        }
        self.wake_in_one_call(cpu, task, Step::Barrier { object: id }, waiters)
    }

    /// `waker` goes on with `step`, in which it has yet to wake tasks.
    pub(crate) fn wakes_on(&mut self, cpu: CpuId, waker: TaskId, step: Step) -> Next {
        let waiters = std::mem::take(&mut self.shared(waker).wakes);
        match step {
            Step::Barrier { .. } => self.wake_in_one_call(cpu, waker, step, waiters),
            _ => self.wake_first(cpu, waker, step, waiters, false),
        }
    }

    /// Wakes `waiters` with one system call (`wake_up_q`). In a kernel that can be preempted there,
    /// each wake-up takes its time before the next one, and a waiter with a full request to
    /// reschedule comes between them. Left out: the time between them in other kernels.
    fn wake_in_one_call(
        &mut self,
        cpu: CpuId,
        waker: TaskId,
        step: Step,
        waiters: Vec<TaskId>,
    ) -> Next {
        let Costs { block_ns, wakeup_ns, .. } = self.costs;
        let takes_time = block_ns > 0 && wakeup_ns > 0;
        if takes_time && !waiters.is_empty() && self.cpus.kernel_mode.is_preemptible() {
            return self.wake_first(cpu, waker, step, waiters, true);
        }
        self.wake_all(cpu, waker, waiters)
    }

    /// Wakes `waiters` with a system call for each, as the player does. Where calls take no time,
    /// nothing happens between them.
    fn wake_each(&mut self, cpu: CpuId, waker: TaskId, step: Step, waiters: Vec<TaskId>) -> Next {
        if waiters.is_empty() {
            return Next::Call;
        }
        self.charge(waker, self.costs.futex_call_ns());
        if self.costs.block_ns > 0 {
            return self.wake_first(cpu, waker, step, waiters, false);
        }
        self.wake_all(cpu, waker, waiters)
    }

    /// Wakes `waiters`. Nothing happens between them.
    fn wake_all(&mut self, cpu: CpuId, waker: TaskId, waiters: Vec<TaskId>) -> Next {
        for waiter in waiters {
            self.wake_waiter(cpu, waker, waiter, false);
        }
        Next::Call
    }

    /// Wakes the first of `waiters`. The others follow, each with its own call, or in this one if
    /// it `is_paid`.
    fn wake_first(
        &mut self,
        cpu: CpuId,
        waker: TaskId,
        step: Step,
        mut waiters: Vec<TaskId>,
        is_paid: bool,
    ) -> Next {
        let first = waiters.remove(0);
        self.wake_waiter(cpu, waker, first, false);
        self.keeps_to_wake(waker, step, waiters, is_paid);
        Next::Call
    }

    /// `waker` has yet to wake `waiters` in `step`; `is_paid`: in the call that it is in.
    fn keeps_to_wake(&mut self, waker: TaskId, step: Step, waiters: Vec<TaskId>, is_paid: bool) {
        if !waiters.is_empty() {
            let shared = self.shared(waker);
            (shared.pending, shared.is_paid, shared.wakes) = (Some(step), is_paid, waiters);
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
        self.wake_each(cpu, task, Step::Resume { object: id }, waiters)
    }

    fn event_waiters(&mut self, id: ObjectId) -> &mut Vec<TaskId> {
        match &mut self.objects.objects[id.index()] {
            Object::Event { waiters } => waiters,
            _ => unreachable!("the workload was checked: object {id} is an event"),
        }
    }
}
