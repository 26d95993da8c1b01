// SPDX-License-Identifier: MIT OR Apache-2.0
//! The task of a scheduler's user half: CPU time for a step, the step itself, then sleep or another
//! step. It never exits, and a run does not wait for it.

use crate::engine::Engine;
use crate::exec::Waiting;
use crate::step::Next;
use schedlab_model::arrivals::Arrival;
use schedlab_model::{CpuId, Nanos, TaskId, TraceSink, Workload};
use schedlab_sched::boundary::core::TaskState;
use schedlab_sched::{Scheduler, UserNext};

/// State of the user half's task.
#[derive(Debug)]
pub(crate) struct User {
    /// Its description, the last of the workload.
    spec: u32,
    step_ns: Nanos,
    /// Whether the CPU time of the next step is used up.
    has_worked: bool,
    sleeps: bool,
}

impl User {
    /// The user half of `scheduler` in `workload`, if it has one.
    pub fn of(scheduler: &Scheduler, workload: &Workload) -> Option<Self> {
        let half = scheduler.user_half()?;
        let spec = u32::try_from(workload.tasks.len()).ok()?.checked_sub(1)?;
        let step_ns = half.step_ns.max(1);
        Some(Self { spec, step_ns, has_worked: false, sleeps: false })
    }

    /// Lets its arrival be the first one: a program that loads a scheduler is there before the
    /// tasks that the scheduler gets.
    pub fn comes_first(&self, arrivals: &mut [Arrival]) {
        arrivals.sort_by_key(|arrival| arrival.spec != self.spec);
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Whether a task of description `spec` is the user half.
    #[inline]
    pub(crate) fn is_user(&self, spec: u32) -> bool {
        self.user.as_ref().is_some_and(|user| user.spec == spec)
    }

    /// The user half goes on.
    pub(crate) fn user_step(&mut self, cpu: CpuId, task: TaskId) -> Next {
        let Some(user) = &mut self.user else { return Next::Call };
        user.has_worked = !user.has_worked;
        if user.has_worked {
            return Next::Busy(user.step_ns);
        }
        let mut next = None;
        for index in 0..self.stack.len() {
            let (class, core) = self.class(index);
            next = class.user_step(core, cpu, task);
            if next.is_some() {
                break;
            }
        }
        self.drain();
        self.charge(task, self.costs.syscall_ns);
        match next {
            Some(UserNext::Work) => Next::Call,
            Some(UserNext::Yield) => self.yields(cpu, task),
            Some(UserNext::Sleep) | None => {
                if let Some(user) = &mut self.user {
                    user.sleeps = true;
                }
                self.tasks[task].waiting = Waiting::Event;
                Next::Block(TaskState::Sleeping)
            }
        }
    }

    /// A class wants the user half to wake.
    pub(crate) fn wake_user(&mut self) {
        let sleeps = self.user.as_mut().is_some_and(|user| std::mem::take(&mut user.sleeps));
        if let Some(task) = self.core.user_half.filter(|_| sleeps) {
            self.wake_from_event(task);
        }
    }
}
