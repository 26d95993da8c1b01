// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time from a call that will block to the switch passes before the task waits, on machines on
//! which blocking takes time ([`schedlab_model::Costs::block_ns`]). It used to be paid when the
//! task ran again, which moved everything that other tasks do meanwhile.
//!
//! When the time has passed, the task looks at its object again, so it may find that it need not
//! wait any more. Left out: a wake-up between the entry into an object's queue and the switch.
//!
//! On these machines a call that wakes a waiter takes its time first, too, the copy of a message
//! included: the kernel wakes at the end of the call. Whom it has yet to wake then, in the same
//! call or with one call each, it wakes when it runs again.

use super::Object;
use crate::engine::Engine;
use crate::step::Next;
use schedlab_model::{CpuId, Nanos, Step, TaskId, TraceSink};

impl<S: TraceSink> Engine<'_, S> {
    /// Whether `step` will block, or wake another task, and its time must pass first. If so, `task`
    /// is charged.
    pub(crate) fn pays_first(&mut self, task: TaskId, step: Step) -> bool {
        if self.costs.block_ns == 0 {
            return false;
        }
        let (ns, wake_ns) = match self.would_block(task, step) {
            true => (self.call_ns(step), 0),
            false if self.would_wake(step) => self.waking_call_ns(step),
            false => return false,
        };
        self.charge(task, ns);
        let shared = self.shared(task);
        debug_assert!(shared.pending.is_none(), "task {task} is in two calls at once");
        shared.pending = Some(step);
        shared.is_paid = true;
        shared.wake_paid_ns = wake_ns;
        true
    }

    /// `task` makes another call in `step`, which wakes the next of several tasks. Its time passes
    /// first.
    pub(super) fn calls_again(&mut self, task: TaskId, step: Step) -> Next {
        self.charge(task, self.costs.futex_call_ns());
        let shared = self.shared(task);
        (shared.pending, shared.is_paid, shared.wake_paid_ns) = (Some(step), true, 0);
        Next::Call
    }

    /// The time of `step` has passed. What it charges for blocking is paid already.
    pub(crate) fn paid_step(&mut self, cpu: CpuId, task: TaskId, step: Step) -> Next {
        if step == Step::JoinAll {
            let next = self.wait_for_children(cpu, task, None);
            if matches!(next, Next::Block(_)) {
                self.reads_clock_first(task);
            }
            return next;
        }
        let mut paid = std::mem::take(&mut self.shared(task).wake_paid_ns);
        let next = match self.shared(task).wakes.is_empty() {
            true => self.object_step(cpu, task, step, true),
            false => self.wakes_on(cpu, task, step),
        };
        if matches!(next, Next::Block(_)) {
            self.reads_clock_first(task);
            paid = self.charged_again(step);
        } else if matches!(next, Next::Spin) {
            paid = self.charged_again(step).saturating_sub(self.costs.block_ns);
        } else if step.ends_burst() {
            self.note_burst(task);
        }
        let exec = &mut self.tasks[task];
        exec.overhead = exec.overhead.saturating_sub(paid);
        next
    }

    /// What a call takes up to the wake-up, and the part of it that its step charges after that.
    fn waking_call_ns(&mut self, step: Step) -> (Nanos, Nanos) {
        match step {
            Step::Send { channel, bytes } | Step::Receive { channel, bytes } => {
                let copy_ns = self.device.copy_ns(bytes);
                (self.transfer_ns(channel).saturating_add(copy_ns), copy_ns)
            }
            // `pi_unlock_ns` comes after the wake-up.
            _ => (self.costs.futex_call_ns(), self.costs.futex_call_ns()),
        }
    }

    /// Whether `step`, which does not block, wakes a task that waits for its object.
    fn would_wake(&mut self, step: Step) -> bool {
        match step {
            Step::Unlock { object } => self.objects.mutex(object).contended,
            Step::Signal { object } | Step::Broadcast { object } => {
                !self.objects.condvar(object).is_empty()
            }
            Step::Barrier { object } | Step::SemPost { object } | Step::Resume { object } => {
                match &self.objects.objects[object.index()] {
                    Object::Barrier { waiters, .. } | Object::Event { waiters } => {
                        !waiters.is_empty()
                    }
                    Object::Semaphore { waiters, .. } => !waiters.is_empty(),
                    _ => false,
                }
            }
            Step::Send { channel, .. } => !self.objects.channel(channel).readers.is_empty(),
            Step::Receive { channel, .. } => !self.objects.channel(channel).writers.is_empty(),
            _ => false,
        }
    }

    /// What the call takes up to the switch.
    fn call_ns(&mut self, step: Step) -> Nanos {
        let costs = self.costs;
        match step {
            Step::JoinAll => 0, // Charged with the step.
            Step::Join { .. } => costs.syscall_ns,
            Step::Send { channel, .. } | Step::Receive { channel, .. } => {
                costs.block_ns + self.transfer_ns(channel)
            }
            _ => costs.block_ns + costs.futex_call_ns() + self.inheriting_ns(step),
        }
    }

    /// What `step` takes, if it waits for a mutex with priority inheritance.
    fn inheriting_ns(&mut self, step: Step) -> Nanos {
        match step {
            Step::Lock { object } if self.objects.mutex(object).inherits() => self.costs.pi_wait_ns,
            _ => 0,
        }
    }

    /// The part of [`Self::call_ns`] that the step charges when it blocks.
    fn charged_again(&mut self, step: Step) -> Nanos {
        let costs = self.costs;
        match step {
            Step::Join { .. } => costs.syscall_ns,
            // A transfer that is tried again charges no call.
            Step::Send { .. } | Step::Receive { .. } => costs.block_ns,
            _ => costs.block_ns + costs.futex_call_ns() + self.inheriting_ns(step),
        }
    }

    pub(crate) fn would_block(&mut self, task: TaskId, step: Step) -> bool {
        match step {
            Step::JoinAll => self.tasks[task].children > 0,
            Step::Join { task: spec } => self.next_child(task, Some(spec)).is_some(),
            Step::Wait { .. } | Step::Sync { .. } | Step::Suspend { .. } => true,
            Step::Lock { object } => {
                self.objects.mutex(object).holder.is_some_and(|holder| holder != task)
                    && !self.steals(task, object)
            }
            Step::Barrier { object } => match &self.objects.objects[object.index()] {
                Object::Barrier { parties, waiters } => (waiters.len() as u32) + 1 < *parties,
                _ => false,
            },
            Step::SemWait { object } => !self.objects.objects[object.index()].is_ready(),
            Step::Send { channel, bytes } => {
                let channel = self.objects.channel(channel);
                channel.nr_readers > 0 && channel.room_for(bytes) < bytes
            }
            Step::Receive { channel, bytes } => {
                let channel = self.objects.channel(channel);
                channel.nr_writers > 0 && channel.bytes < bytes
            }
            Step::WaitAny { set } => {
                let members = &self.workload.wait_sets[set as usize];
                !members.iter().any(|id| self.objects.objects[id.index()].is_ready())
            }
            _ => false,
        }
    }
}
