// SPDX-License-Identifier: MIT OR Apache-2.0
//! A launcher that wakes the tasks of time 0 one after another.
//!
//! The launcher of a guest with several CPUs runs on the last one, and wakes the tasks from there
//! at time 0 (crates/host, `launcher/release.rs`). Those of SCHED_DEADLINE wait on a word of their
//! own. The waiters of a word are woken in the order of their real-time priorities, then of their
//! numbers (futex_wake in kernel/futex/waitwake.c). A CPU that was idle for the first task is busy
//! for the next one, so the order decides where tasks begin.
//!
//! On one CPU it has woken all others before time 0, and wakes those of SCHED_DEADLINE after the
//! tick.
//!
//! A task of SCHED_DEADLINE preempts the launcher: at the end of the call that wakes all of a word,
//! or at once if the preemption model lets calls be preempted. The launcher goes on where it runs
//! next, which may be another CPU.

use crate::clock::Due;
use crate::engine::Engine;
use schedlab_model::{Costs, CpuId, Nanos, Policy, TaskId, TraceSink};
use std::cmp::Reverse;

/// Tasks of time 0 that the launcher has not woken yet.
#[derive(Debug, Default)]
pub struct Launch {
    /// In the order of their numbers.
    waiting: Vec<TaskId>,
    /// Whether the tasks of SCHED_DEADLINE are woken before the others: the first task is one.
    deadline_first: bool,
    /// The launcher, preempted when it was to wake the next task.
    held: Option<TaskId>,
}

impl Launch {
    /// Whether a task waits for the launcher.
    pub fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Whether `task` of time 0 waits for the launcher. On one CPU only those of SCHED_DEADLINE do:
    /// it has woken the others before.
    pub(crate) fn awaits_launch(&self, task: TaskId) -> bool {
        let Costs { release_ns, release_deadline_ns, .. } = self.costs;
        release_ns > 0 || release_deadline_ns > 0 && self.is_deadline(task)
    }

    fn is_deadline(&self, task: TaskId) -> bool {
        self.core.task(task).attr.policy == Policy::Deadline
    }

    /// A task of time 0 waits for the launcher.
    pub(crate) fn await_launch(&mut self, task: TaskId) {
        if self.launch.waiting.is_empty() {
            let Costs { release_ns, release_deadline_ns, .. } = self.costs;
            self.launch.deadline_first = self.is_deadline(task);
            let first_ns = match release_ns {
                0 => release_deadline_ns.saturating_add(self.launcher_delay_ns()),
                _ => release_ns,
            };
            self.clock.events.push(first_ns, Due::Launch);
        }
        self.launch.waiting.push(task);
    }

    /// How much later the launcher wakes tasks of SCHED_DEADLINE on one CPU: it has woken the
    /// others of time 0 first.
    fn launcher_delay_ns(&self) -> Nanos {
        let is_other =
            |spec: u32| self.workload.tasks[spec as usize].attr.policy != Policy::Deadline;
        let nr = self.tasks.at_start().filter(|arrival| is_other(arrival.spec)).count();
        self.costs.launch_task_ns.saturating_mul(nr as Nanos)
    }

    /// The launcher wakes the next task, if it runs.
    pub(crate) fn launch(&mut self) {
        let this_cpu = match self.launcher() {
            Some(launcher) if self.core.task(launcher).on_rq => {
                if !self.core.is_running(launcher) {
                    self.launch.held = Some(launcher);
                    return;
                }
                self.core.task(launcher).cpu
            }
            _ => self.set_up_on(&self.core.cpus),
        };
        let Some(task) = self.next_to_launch() else { return };
        if self.costs.release_ns == 0 && self.launch.waiting.is_empty() {
            // What follows is in `release_deadline_ns`, and in the launcher's visit at time 0.
            return self.begin_released(task, None);
        }
        self.start_released(task, this_cpu);
        self.interrupt_returns(this_cpu);
        let took_ns = self.launch_took(task, this_cpu);
        let is_deadline = self.is_deadline(task);
        let goes_on = self.launch.waiting.iter().any(|o| self.is_deadline(*o) == is_deadline);
        if self.costs.release_ns == 0 {
            // One call wakes all, unless a task preempts it.
            let is_preemptible = self.cpus.kernel_mode.is_preemptible();
            let is_asked = self.core.rq(this_cpu).need_resched;
            self.switches_later(if goes_on && !is_preemptible { took_ns } else { 0 });
            self.launch.held = self
                .launcher()
                .filter(|launcher| is_preemptible && is_asked && self.core.is_running(*launcher));
            if self.launch.held.is_some() {
                return;
            }
        }
        if self.core.rq(this_cpu).curr.is_some() {
            self.extend_burst(this_cpu, took_ns);
            self.cpus.kernel_mode.stay(this_cpu, self.core.now, took_ns, goes_on);
        }
        if !self.launch.waiting.is_empty() {
            self.clock.events.push(self.core.now.saturating_add(took_ns), Due::Launch);
        }
    }

    /// The thread that wakes the tasks, if the machine has it.
    fn launcher(&self) -> Option<TaskId> {
        self.threads.as_ref().and_then(|threads| threads.launcher())
    }

    fn next_to_launch(&mut self) -> Option<TaskId> {
        let Launch { waiting, deadline_first, .. } = &self.launch;
        let order = |task: &TaskId| {
            let attr = &self.core.task(*task).attr;
            let priority = if attr.policy.is_rt() { attr.rt_priority } else { 0 };
            ((attr.policy == Policy::Deadline) != *deadline_first, Reverse(priority), task.0)
        };
        let next = (0..waiting.len()).min_by_key(|at| order(&waiting[*at]))?;
        Some(self.launch.waiting.remove(next))
    }

    /// `task` comes to `cpu`. The launcher goes on to the next task when the switch is over.
    #[inline]
    pub(crate) fn launcher_comes(&mut self, cpu: CpuId, task: TaskId) {
        if self.launch.held == Some(task) {
            self.launch.held = None;
            let Costs { context_switch_ns, wakeup_ns, release_ns, .. } = self.costs;
            let nr = if release_ns == 0 { 1 } else { 3 };
            let after_ns = context_switch_ns.saturating_add(wakeup_ns.saturating_mul(nr));
            self.extend_burst(cpu, after_ns);
            self.clock.events.push(self.core.now.saturating_add(after_ns), Due::Launch);
        }
    }

    /// How long the wake-up of `task` takes the launcher. An idle CPU queues the task itself: 10 us
    /// in a guest, where a plain wake-up takes 7 us. On its own CPU the launcher queues it, 14 us,
    /// on another busy one with the lock of its queue, 20 to 26 us. On a single CPU it takes 8 us.
    fn launch_took(&self, task: TaskId, this_cpu: CpuId) -> Nanos {
        let cpu = self.core.task(task).cpu;
        let halves = match self.core.rq(cpu).curr {
            _ if self.costs.release_ns == 0 => 2,
            None => 3,
            Some(_) if cpu == this_cpu => 4,
            Some(_) => 6,
        };
        self.costs.wakeup_ns.saturating_mul(halves) / 2
    }
}
