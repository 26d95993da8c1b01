// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distrust of the scheduler: every answer is checked, and nothing it holds may get lost.

use crate::engine::Engine;
use crate::error::{SchedulerFault, SimError};
use schedlab_model::{CpuId, Nanos, TaskId, TraceSink};

impl<S: TraceSink> Engine<'_, S> {
    /// Remembers the first fault; the run ends before the next instant.
    #[cold]
    pub(crate) fn fault(
        &mut self,
        fault: SchedulerFault,
        callback: &'static str,
        task: TaskId,
        cpu: CpuId,
    ) {
        let class = self.stack.classes().get(usize::from(self.core.task(task).class));
        self.error.get_or_insert_with(|| SimError::Scheduler {
            fault,
            scheduler: self.config.scheduler.name.to_string(),
            class: class.map_or("none", |class| class.name()).into(),
            callback,
            task: self.execs[task.index()].name.clone(),
            cpu,
            time_ns: self.core.now,
        });
    }

    /// Whether `cpu` may run `task`, which class number `class` picked. Faults if not.
    #[inline(always)]
    pub(crate) fn check_pick(&mut self, cpu: CpuId, task: TaskId, class: u8) -> bool {
        let t = self.core.task(task);
        let fault = if !t.on_rq || t.sched_delayed || t.class != class {
            SchedulerFault::PickedNotRunnable
        } else if t.cpu != cpu {
            if self.core.is_running(task) {
                SchedulerFault::PickedTwice
            } else {
                SchedulerFault::WrongCpu
            }
        } else if !t.cpus_allowed.contains(cpu) && !self.execs[task.index()].must_move {
            SchedulerFault::ForbiddenCpu
        } else {
            return true;
        };
        self.fault(fault, "pick_task", task, cpu);
        false
    }

    /// A task that waits on `cpu`'s runqueue and is not held back on purpose.
    fn waiting_task(&self, cpu: CpuId) -> Option<TaskId> {
        (0..self.core.tasks.len() as u32).map(TaskId).find(|&id| {
            let t = self.core.task(id);
            let waits = t.on_rq && !t.sched_delayed && t.cpu == cpu && t.cpus_allowed.contains(cpu);
            waits
                && !self.core.is_running(id)
                && !self.stack.class(t.class).is_throttled(&self.core, id)
        })
    }

    /// At the end of an instant: CPUs that went idle beside counted tasks must have a reason.
    /// While a reschedule must wait for the end of a system call, a scheduler with one queue may
    /// have meant the task for that CPU: the suspects are judged when it has rescheduled.
    pub(crate) fn check_idle_suspects(&mut self) {
        if self.core.has_parked_resched() {
            return;
        }
        while let Some(cpu) = self.idle_suspects.pop() {
            let rq = self.core.rq(cpu);
            if rq.curr.is_some() || rq.nr_running == 0 {
                continue;
            }
            if let Some(task) = self.waiting_task(cpu) {
                self.fault(SchedulerFault::Lost, "pick_task", task, cpu);
            }
        }
    }

    /// An interval is over. Many tasks are checked only when as much has been done since the last
    /// time, so that the check adds no more than a constant to each event; the watchdog's promise
    /// is kept whatever happens.
    pub(crate) fn check_if_worth(&mut self) {
        const MANY: usize = 1_000;
        let nr_tasks = self.core.tasks.len();
        let (checked_at, done_then) = self.last_check;
        let done = self.outcome.nr_events + self.outcome.nr_ticks;
        let longest = self.config.watchdog_ns.unwrap_or(Nanos::MAX) / 2;
        let waited = self.core.now.saturating_add(self.check_interval) - checked_at;
        let is_worth = nr_tasks <= MANY || done - done_then >= nr_tasks as u64 || waited > longest;
        if is_worth {
            self.check_all();
        } else {
            self.next_check = self.core.now.saturating_add(self.check_interval);
        }
    }

    /// Once in each interval and at the end: counts against tasks held, and the watchdog.
    pub(crate) fn check_all(&mut self) {
        self.next_check = self.core.now.saturating_add(self.check_interval);
        self.last_check = (self.core.now, self.outcome.nr_events + self.outcome.nr_ticks);
        let mut held = vec![0u32; self.core.rqs.len()];
        let mut throttled = vec![false; self.core.rqs.len()];
        let mut last = vec![TaskId(0); self.core.rqs.len()];
        let limit = self.config.watchdog_ns;
        for id in (0..self.core.tasks.len() as u32).map(TaskId) {
            let t = self.core.task(id);
            if !t.on_rq {
                continue;
            }
            let cpu = t.cpu;
            held[cpu.index()] += 1;
            last[cpu.index()] = id;
            let is_throttled = self.stack.class(t.class).is_throttled(&self.core, id);
            throttled[cpu.index()] |= is_throttled;
            let waits = !self.core.is_running(id) && !t.sched_delayed && !is_throttled;
            if is_throttled {
                // What is held back on purpose starves nobody: the wait counts from here.
                self.execs[id.index()].runnable_since = self.core.now;
            }
            let since = self.execs[id.index()].runnable_since;
            if waits && limit.is_some_and(|limit| self.core.now - since > limit) {
                self.fault(SchedulerFault::Starved, "pick_task", id, cpu);
            }
        }
        for cpu in (0..self.core.nr_cpus()).map(CpuId) {
            let counted = self.core.rq(cpu).nr_running;
            let expected = held[cpu.index()];
            let wrong =
                if throttled[cpu.index()] { counted > expected } else { counted != expected };
            if wrong && !self.core.tasks.is_empty() {
                let task = last[cpu.index()];
                self.fault(SchedulerFault::CountDrifted, "enqueue_task or dequeue_task", task, cpu);
            }
        }
    }
}
