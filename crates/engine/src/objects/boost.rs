// SPDX-License-Identifier: MIT OR Apache-2.0
//! The priority that a task has for what it holds.
//!
//! As `rt_mutex_setprio` (kernel/sched/core.c) and `rt_mutex_adjust_prio_chain`
//! (kernel/locking/rtmutex.c): a holder has the priority of the top waiter of each mutex it holds,
//! or its own if that is better; a changed priority is passed on to the holder of the mutex that
//! the task itself waits for. The class follows from the priority. Weight, slice and policy stay:
//! a fair task that inherits from a fair one gains nothing in the kernel's fair class, but does
//! under a scheduler that picks by priority. A deadline task lends its parameters as well
//! ([`SchedClass::lend`]), to a deadline task only if its own deadline is the earlier one.
//!
//! [`SchedClass::lend`]: schedlab_sched::SchedClass::lend

use super::Object;
use crate::engine::Engine;
use crate::exec::Waiting;
use schedlab_model::{MutexProtocol, Nanos, ObjectId, Policy, SchedAttr, TaskId, TraceSink};

impl<S: TraceSink> Engine<'_, S> {
    /// Kernel priority and class of `task`, from attributes `attr` and the mutexes that it holds.
    pub(crate) fn effective(&self, task: TaskId, attr: &SchedAttr) -> (i32, u8) {
        let normal = attr.kernel_prio();
        let held = self.tasks[task].shared.iter().flat_map(|shared| &shared.held);
        let prio = held.map(|id| self.lent_prio(*id)).fold(normal, i32::min);
        let policy = match prio {
            _ if prio == normal => attr.policy,
            ..0 => Policy::Deadline,
            0..100 if !attr.policy.is_rt() => Policy::Fifo,
            _ => attr.policy,
        };
        (prio, self.core.class_of(policy))
    }

    /// The priority that a mutex lends its holder.
    fn lent_prio(&self, id: ObjectId) -> i32 {
        let Object::Mutex(mutex) = &self.objects.objects[id.index()] else { return i32::MAX };
        match mutex.protocol {
            MutexProtocol::None => i32::MAX,
            MutexProtocol::Inherit => {
                mutex.waiters.first().map_or(i32::MAX, |top| self.core.task(top).prio)
            }
            MutexProtocol::Ceiling { rt_priority } => 99 - i32::from(rt_priority),
        }
    }

    /// The absolute deadline of `task`, from the deadline class.
    pub(super) fn deadline(&self, task: TaskId) -> Nanos {
        let class = usize::from(self.core.class_of(Policy::Deadline));
        self.stack.classes().get(class).map_or(0, |class| class.waiter_key(task))
    }

    /// The deadline task whose parameters `task`, with attributes `attr`, uses.
    pub(crate) fn donor(&self, task: TaskId, attr: &SchedAttr) -> Option<TaskId> {
        let held = self.tasks[task].shared.iter().flat_map(|shared| &shared.held);
        let top = held.filter_map(|id| match &self.objects.objects[id.index()] {
            Object::Mutex(mutex) if mutex.protocol == MutexProtocol::Inherit => {
                mutex.waiters.first().filter(|top| self.core.task(*top).prio < 0)
            }
            _ => None,
        });
        let top = top.min_by_key(|top| self.deadline(*top))?;
        let lends = attr.policy != Policy::Deadline || self.deadline(top) < self.deadline(task);
        lends.then_some(top)
    }

    /// The deadline task whose parameters `task` uses now.
    pub(crate) fn current_donor(&self, task: TaskId) -> Option<TaskId> {
        self.tasks[task].shared.as_ref().and_then(|shared| shared.donor)
    }

    /// Tells the deadline class whose parameters `task` uses. `task` is in no queue.
    pub(crate) fn lend(&mut self, task: TaskId, donor: Option<TaskId>) {
        self.shared(task).donor = donor;
        let (class, core) = self.class(self.core.class_of(Policy::Deadline));
        class.lend(core, task, donor);
    }

    /// Updates the priority of `task`, and passes a change on along the chain of mutexes. Returns
    /// whether its own priority changed.
    pub(super) fn adjust_priority(&mut self, task: TaskId) -> bool {
        let mut at = task;
        let mut first = None;
        loop {
            let t = self.core.task(at);
            let (attr, old) = (*t.attr, t.prio);
            let (prio, _) = self.effective(at, &attr);
            let is_same = prio == old && self.donor(at, &attr) == self.current_donor(at);
            first.get_or_insert(!is_same);
            if is_same {
                break;
            }
            self.change(at, &attr);
            debug_assert_eq!(self.core.task(at).prio, prio, "task {at} has another priority");
            let Waiting::On(object) = self.tasks[at].waiting else { break };
            let deadline = if prio < 0 { self.deadline(at) } else { 0 };
            let Some(Object::Mutex(mutex)) = self.objects.objects.get_mut(object.index()) else {
                break;
            };
            if mutex.protocol != MutexProtocol::Inherit {
                break;
            }
            mutex.waiters.move_to(at, prio, deadline);
            let Some(holder) = mutex.holder else { break };
            at = holder;
        }
        first == Some(true)
    }
}
