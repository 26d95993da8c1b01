// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that stop before a decision, so that an agent outside can make it without a thread of its
//! own.
//!
//! A CPU that reschedules is held before it looks for its next task, as it is held when it must
//! spin for a lock. The run then handles no other event, and returns to its caller in the middle of
//! the instant. It goes on at the same point, so it has the same events as a run whose scheduler
//! makes the same choices itself.

use crate::engine::Engine;
use schedlab_model::{CpuId, Nanos, TaskId, TraceSink};

/// A decision that the run waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeedsDecision {
    /// Present time (ns).
    pub time_ns: Nanos,
    /// The CPU that looks for its next task.
    pub cpu: CpuId,
    /// The tasks among which to choose, two or more.
    pub candidates: Vec<TaskId>,
}

/// The part of an instant in which the run stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Step 1 or 2.
    Events,
    /// Step 4.
    Bursts,
    /// Step 5.
    Reschedules,
}

/// The state of a run that stops before decisions.
#[derive(Debug)]
pub(crate) struct Asking {
    pending: Option<NeedsDecision>,
    phase: Phase,
}

impl Asking {
    /// A run that waits for nothing yet.
    pub fn new() -> Self {
        Self { pending: None, phase: Phase::Reschedules }
    }

    /// The decision that the run waits for.
    pub fn pending(&self) -> Option<&NeedsDecision> {
        self.pending.as_ref()
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Whether an agent must choose before `cpu` picks. The run stops then.
    #[inline(never)]
    pub(crate) fn must_ask(&mut self, cpu: CpuId) -> bool {
        let asked = self.stack.classes().iter().map(|class| class.asks(&self.core, cpu));
        let Some(candidates) = asked.into_iter().find(|candidates| candidates.len() > 1) else {
            return false;
        };
        let time_ns = self.core.now;
        if let Some(asking) = &mut self.asking {
            asking.pending = Some(NeedsDecision { time_ns, cpu, candidates });
        }
        self.custody.wait(true);
        true
    }

    /// Whether the run waits for a decision since this phase of the present instant.
    #[inline(always)]
    pub(crate) fn waits_in(&mut self, phase: Phase) -> bool {
        self.custody.is_stopped() && self.note_wait(phase)
    }

    #[inline(never)]
    fn note_wait(&mut self, phase: Phase) -> bool {
        let Some(asking) = &mut self.asking else { return false };
        asking.phase = phase;
        asking.pending.is_some()
    }

    /// Tells the classes what the agent has chosen.
    pub(crate) fn decided(&mut self, task: TaskId) {
        let (class, _) = self.class(self.core.task(task).class);
        class.decided(task);
    }

    /// Goes on after a decision, or without one: then the scheduler picks itself. Does nothing in a
    /// run that does not wait.
    #[inline(never)]
    pub(crate) fn go_on(&mut self) {
        let Some(asking) = &mut self.asking else { return };
        let phase = asking.phase;
        let Some(needs) = asking.pending.take() else { return };
        self.custody.wait(false);
        self.schedule_now(needs.cpu);
        let now = self.core.now;
        match phase {
            Phase::Events => self.instant(now),
            Phase::Bursts => self.end_bursts(now),
            Phase::Reschedules => self.end_instant(now),
        }
    }
}
