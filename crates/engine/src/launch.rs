// SPDX-License-Identifier: MIT OR Apache-2.0
//! A launcher that wakes the tasks of time 0 one after another.
//!
//! The launcher of a guest with several CPUs runs on the last one, and wakes the tasks from there
//! at time 0 (crates/host, `launcher/release.rs`). Those of SCHED_DEADLINE wait on a word of their
//! own. The waiters of a word are woken in the order of their real-time priorities, then of their
//! numbers (futex_wake in kernel/futex/waitwake.c). A CPU that was idle for the first task is busy
//! for the next one, so the order decides where tasks begin.

use crate::clock::Due;
use crate::engine::Engine;
use schedlab_model::{Nanos, Policy, TaskId, TraceSink};
use std::cmp::Reverse;

/// Tasks of time 0 that the launcher has not woken yet.
#[derive(Debug, Default)]
pub struct Launch {
    /// In the order of their numbers.
    waiting: Vec<TaskId>,
    /// Whether the tasks of SCHED_DEADLINE are woken before the others: the first task is one.
    deadline_first: bool,
}

impl<S: TraceSink> Engine<'_, S> {
    /// A task of time 0 waits for the launcher.
    pub(crate) fn await_launch(&mut self, task: TaskId) {
        if self.launch.waiting.is_empty() {
            self.launch.deadline_first = self.core.task(task).attr.policy == Policy::Deadline;
            self.clock.events.push(self.costs.release_ns, Due::Launch);
        }
        self.launch.waiting.push(task);
    }

    /// The launcher wakes the next task.
    pub(crate) fn launch(&mut self) {
        let Launch { waiting, deadline_first } = &self.launch;
        let order = |task: &TaskId| {
            let attr = &self.core.task(*task).attr;
            let priority = if attr.policy.is_rt() { attr.rt_priority } else { 0 };
            ((attr.policy == Policy::Deadline) != *deadline_first, Reverse(priority), task.0)
        };
        let Some(next) = (0..waiting.len()).min_by_key(|at| order(&waiting[*at])) else { return };
        let task = self.launch.waiting.remove(next);
        let this_cpu = self.set_up_on(&self.core.cpus);
        self.start_released(task, this_cpu);
        self.interrupt_returns(this_cpu);
        let took_ns = self.launch_took(task);
        if self.core.rq(this_cpu).curr.is_some() {
            self.extend_burst(this_cpu, took_ns);
        }
        if !self.launch.waiting.is_empty() {
            self.clock.events.push(self.core.now.saturating_add(took_ns), Due::Launch);
        }
    }

    /// How long the wake-up of `task` takes the launcher. An idle CPU queues the task itself: 10 us
    /// in a guest, where a plain wake-up takes 7 us. On its own CPU the launcher queues it, 14 us,
    /// on another busy one with the lock of its queue, 20 to 26 us.
    fn launch_took(&self, task: TaskId) -> Nanos {
        let cpu = self.core.task(task).cpu;
        let halves = match self.core.rq(cpu).curr {
            None => 3,
            Some(_) if cpu == self.set_up_on(&self.core.cpus) => 4,
            Some(_) => 6,
        };
        self.costs.wakeup_ns.saturating_mul(halves) / 2
    }
}
