// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for any of several objects, as with epoll_wait(2).
//!
//! Every task has its own level-triggered epoll instance. When an object becomes ready, all tasks
//! that wait for it wake, and each checks its objects again when it runs.

use super::Object;
use crate::engine::Engine;
use crate::step::Next;
use schedlab_model::{CpuId, ObjectId, Step, TaskId, TraceSink};

impl Object {
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Semaphore { value, .. } => *value > 0,
            Self::Channel(channel) => channel.bytes > 0 || channel.nr_writers == 0,
            _ => false,
        }
    }

    fn pollers(&mut self) -> Option<&mut Vec<TaskId>> {
        match self {
            Self::Semaphore { pollers, .. } => Some(pollers),
            Self::Channel(channel) => Some(&mut channel.pollers),
            _ => None,
        }
    }
}

impl<S: TraceSink> Engine<'_, S> {
    pub(super) fn wait_any(&mut self, cpu: CpuId, task: TaskId, set: u32) -> Next {
        self.charge(task, self.costs.syscall_ns);
        let workload = self.workload;
        let members = &workload.wait_sets[set as usize];
        if members.iter().any(|id| self.objects.objects[id.index()].is_ready()) {
            return Next::Call;
        }
        for id in members {
            if let Some(pollers) = self.objects.objects[id.index()].pollers()
                && !pollers.contains(&task)
            {
                pollers.push(task);
            }
        }
        self.block_on(cpu, task, workload.trace_set(set), Some(Step::WaitAny { set }))
    }

    /// `object` is ready: wakes all tasks that wait for a set with it.
    pub(super) fn wake_pollers(&mut self, cpu: CpuId, waker: TaskId, object: ObjectId) {
        debug_assert!(self.objects.objects[object.index()].is_ready(), "{object} is not ready");
        let pollers = match self.objects.objects[object.index()].pollers() {
            Some(pollers) if !pollers.is_empty() => std::mem::take(pollers),
            _ => return,
        };
        for task in pollers {
            self.forget_poller(task);
            self.wake_waiter(cpu, waker, task, true);
        }
    }

    /// `task` no longer waits for the objects of its set.
    fn forget_poller(&mut self, task: TaskId) {
        let workload = self.workload;
        let pending = self.shared(task).pending;
        let Some(Step::WaitAny { set }) = pending else {
            unreachable!("task {task} waits at a set, and then for {pending:?}");
        };
        for id in &workload.wait_sets[set as usize] {
            if let Some(pollers) = self.objects.objects[id.index()].pollers() {
                pollers.retain(|other| *other != task);
            }
        }
    }
}
