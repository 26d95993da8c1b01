// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the scheduler: every answer is checked, and no task may get lost.

use crate::engine::Engine;
use crate::error::{SchedulerFault, SimError};
use crate::exec::Waiting;
use schedlab_model::time::NSEC_PER_SEC;
use schedlab_model::{CpuId, Nanos, TaskId, TraceSink};
use schedlab_sched::TaskState;
use schedlab_sched::boundary::core::{Rq, Task};

/// Program steps and reschedules at one instant after which the run counts as hanging.
const ROUNDS_MAX: u64 = 1_000_000;

/// Number of successive slices without work after which the run counts as making no progress: a
/// switch costs as much as a slice lasts.
const FRUITLESS_MAX: u32 = 100_000;

/// State of the checks of a run.
#[derive(Debug)]
pub(crate) struct Custody {
    next_check: Nanos,
    /// A second; or half of the watchdog's limit if that is shorter.
    check_interval: Nanos,
    /// When all tasks were last checked, and the number of events and ticks up to then.
    last_check: (Nanos, u64),
    /// CPUs that became idle although they have runnable tasks.
    idle_suspects: Vec<CpuId>,
    /// Steps and reschedules since time last advanced.
    rounds: u64,
    /// Successive slices that ended before the task began its work.
    fruitless: u32,
    /// Why the run ends early.
    error: Option<SimError>,
    /// Whether nothing more is handled: the run has failed, or waits for a decision.
    is_stopped: bool,
}

impl Custody {
    /// Checks of a run with this limit of waits.
    pub fn new(watchdog_ns: Option<Nanos>) -> Self {
        let half = watchdog_ns.unwrap_or(Nanos::MAX) / 2;
        let check_interval = half.clamp(1, NSEC_PER_SEC);
        Self {
            next_check: check_interval,
            check_interval,
            last_check: (0, 0),
            idle_suspects: Vec::new(),
            rounds: 0,
            fruitless: 0,
            error: None,
            is_stopped: false,
        }
    }

    /// When all tasks are checked next.
    #[inline]
    pub fn next_check(&self) -> Nanos {
        self.next_check
    }

    /// Whether the run ends before the next instant.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Whether nothing more is handled: the run has failed, or waits for a decision.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The run waits for a decision, or goes on after one.
    pub fn wait(&mut self, waits: bool) {
        self.is_stopped = waits || self.has_failed();
    }

    /// Why the run ended early, if it did.
    pub fn take_error(&mut self) -> Option<SimError> {
        self.error.take()
    }

    /// `cpu` becomes idle although it has runnable tasks.
    #[inline]
    pub fn suspect(&mut self, cpu: CpuId) {
        self.idle_suspects.push(cpu);
    }

    #[inline]
    pub fn has_suspects(&self) -> bool {
        !self.idle_suspects.is_empty()
    }

    /// Time advances: resets the count of steps.
    #[inline]
    pub fn time_moves(&mut self) {
        self.rounds = 0;
    }

    /// A task has finished a burst: resets the count of slices without work.
    #[inline]
    pub fn bursts_end(&mut self) {
        self.fruitless = 0;
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// The run cannot continue and ends before the next instant. Only the first error counts.
    pub(crate) fn fail(&mut self, error: SimError) {
        self.custody.error.get_or_insert(error);
        self.custody.is_stopped = true;
    }

    /// Counts a step; ends the run if this instant does not end.
    #[inline]
    pub(crate) fn count_round(&mut self, cpu: CpuId) {
        self.custody.rounds += 1;
        if self.custody.rounds > ROUNDS_MAX {
            self.report_hang(cpu);
        }
    }

    /// `task` leaves its CPU. `has_worked`: its burst became shorter. Ends the run if no task makes
    /// progress.
    #[inline(always)]
    pub(crate) fn count_work(&mut self, task: TaskId, has_worked: bool) {
        let fruitless = if has_worked { 0 } else { self.custody.fruitless + 1 };
        self.custody.fruitless = fruitless;
        if fruitless > FRUITLESS_MAX {
            self.report_no_work(task);
        }
    }

    /// Reports that no task makes progress. A task that is busy until a wall time makes progress by
    /// running.
    #[cold]
    #[inline(never)]
    fn report_no_work(&mut self, task: TaskId) {
        self.custody.fruitless = 0;
        if self.tasks[task].wall_until.is_none() {
            self.fail(SimError::NoWork { nr_switches: FRUITLESS_MAX, time_ns: self.core.now });
        }
    }

    /// Reports that an instant does not end. Names the running task of `cpu`.
    #[cold]
    #[inline(never)]
    fn report_hang(&mut self, cpu: CpuId) {
        let task = match self.core.rq(cpu).curr {
            Some(curr) => self.tasks[curr].name.clone(),
            None => "none".into(),
        };
        self.fail(SimError::NoProgress { task, time_ns: self.core.now });
    }

    /// Reports that the scheduler broke a rule. The run ends before the next instant.
    #[cold]
    pub(crate) fn fault(
        &mut self,
        fault: SchedulerFault,
        callback: &'static str,
        task: TaskId,
        cpu: CpuId,
    ) {
        let class = self.stack.classes().get(usize::from(self.core.task(task).class));
        self.fail(SimError::Scheduler {
            fault,
            scheduler: self.config.scheduler.name.to_string(),
            class: class.map_or("none", |class| class.name()).into(),
            callback,
            task: self.tasks[task].name.clone(),
            cpu,
            time_ns: self.core.now,
        });
    }

    /// Checks that `cpu` may run `task`, which class number `class` picked.
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
        } else if !t.cpus_allowed.contains(cpu) && !self.tasks[task].must_move {
            SchedulerFault::ForbiddenCpu
        } else {
            return true;
        };
        self.fault(fault, "pick_task", task, cpu);
        false
    }

    /// A task that waits on `cpu`'s runqueue and is not throttled.
    fn waiting_task(&self, cpu: CpuId) -> Option<TaskId> {
        self.tasks.ids().find(|&id| {
            let t = self.core.task(id);
            let waits = t.on_rq && !t.sched_delayed && t.cpu == cpu && t.cpus_allowed.contains(cpu);
            waits
                && !self.core.is_running(id)
                && !self.stack.class(t.class).is_throttled(&self.core, id)
        })
    }

    /// At the end of an instant, checks CPUs that became idle although they have runnable tasks.
    /// While a reschedule must wait for the end of a system call, a scheduler with one queue may
    /// have chosen the task for that CPU. The check then waits until that CPU has rescheduled.
    pub(crate) fn check_idle_suspects(&mut self) {
        if self.core.has_parked_resched() {
            return;
        }
        while let Some(cpu) = self.custody.idle_suspects.pop() {
            let rq = self.core.rq(cpu);
            if rq.curr.is_some() || rq.nr_running == 0 {
                continue;
            }
            if let Some(task) = self.waiting_task(cpu) {
                self.fault(SchedulerFault::Lost, "pick_task", task, cpu);
            }
        }
    }

    /// Checks all tasks after an interval. With many tasks it does so only after as much other
    /// work, so that the check adds only a constant to each event. The watchdog's limit always
    /// holds.
    pub(crate) fn check_if_worth(&mut self) {
        const MANY: usize = 1_000;
        let nr_tasks = self.core.tasks.len();
        let (checked_at, done_then) = self.custody.last_check;
        let done = self.outcome.nr_events + self.outcome.nr_ticks;
        let longest = self.config.watchdog_ns.unwrap_or(Nanos::MAX) / 2;
        let waited = self.core.now.saturating_add(self.custody.check_interval) - checked_at;
        let is_worth = nr_tasks <= MANY || done - done_then >= nr_tasks as u64 || waited > longest;
        if is_worth {
            self.check_all();
        } else {
            self.custody.next_check = self.core.now.saturating_add(self.custody.check_interval);
        }
    }

    /// Checks between instants that the engine's own state is consistent, whatever a scheduler
    /// does.
    fn check_own_state(&self) {
        let (core, clock) = (&self.core, &self.clock);
        let cpus = || (0..core.nr_cpus()).map(CpuId);
        let nr_busy = cpus().filter(|cpu| core.rq(*cpu).curr.is_some()).count();
        assert_eq!(clock.nr_busy() as usize, nr_busy, "busy CPUs are miscounted");
        for cpu in cpus() {
            let rq = core.rq(cpu);
            assert_eq!(core.idle_cpus.contains(cpu), core.idle_cpu(cpu), "idle CPU {cpu}");
            let parts: u32 = rq.class_nr_running.iter().sum();
            assert_eq!(rq.nr_running, parts, "the classes' tasks of CPU {cpu} are not its tasks");
            match rq.curr {
                Some(curr) => assert!(self.is_on(cpu, curr), "task {curr} runs off CPU {cpu}"),
                None => assert_eq!(clock.burst_ends.get(cpu), Nanos::MAX, "idle CPU {cpu}"),
            }
        }
        for task in self.tasks.ids() {
            let t = core.task(task);
            assert!(t.class < self.stack.len(), "task {task} is of class {}", t.class);
            assert!(!t.sched_delayed || t.on_rq, "task {task} is delayed on no queue");
            // A CPU that spins or searches before it takes its task off still has it.
            let sleeps = t.state != TaskState::Running && !t.sched_delayed;
            assert!(!(t.on_rq && sleeps) || self.keeps_task(t.cpu), "task {task} sleeps queued");
            let waits = self.tasks[task].waiting != Waiting::No;
            let spins = self.spins(task) && core.is_running(task);
            let is_runnable = t.state == TaskState::Running;
            assert!(!waits || !is_runnable || spins, "task {task} waits and is runnable");
        }
    }

    /// Checks at the end that the sums over CPUs equal those over tasks.
    pub(crate) fn check_sums(&self) {
        let core = &self.core;
        let ran = |rq: &Rq| rq.class_exec_runtime.iter().sum::<Nanos>();
        let by_cpu: Nanos = core.rqs.iter().map(ran).sum();
        let by_task: Nanos = core.tasks.iter().map(|task| task.sum_exec_runtime).sum();
        assert_eq!(by_cpu, by_task, "CPU time of all CPUs and of all tasks");
        let switches: u64 = core.rqs.iter().map(|rq| rq.nr_switches).sum();
        let nr_out = |t: &Task| t.nr_voluntary_switches + t.nr_involuntary_switches;
        let left: u64 = core.tasks.iter().map(nr_out).sum();
        assert!(left <= switches, "{left} of {switches} switches left a task");
        let children: u64 = self.tasks.ids().map(|id| u64::from(self.tasks[id].children)).sum();
        let lives = |id: &TaskId| core.task(*id).state != TaskState::Dead;
        let is_counted = |id: &TaskId| {
            let exec = &self.tasks[*id];
            // An exiting task may have left its parent before it is dead.
            exec.parent.is_some() && exec.shared.as_ref().is_none_or(|shared| !shared.has_left)
        };
        let living = self.tasks.ids().filter(|id| lives(id) && is_counted(id)).count();
        assert_eq!(children, living as u64, "living children and those that parents count");
    }

    /// Checks once per interval and at the end: counts of tasks, and the watchdog.
    pub(crate) fn check_all(&mut self) {
        self.check_own_state();
        self.custody.next_check = self.core.now.saturating_add(self.custody.check_interval);
        self.custody.last_check = (self.core.now, self.outcome.nr_events + self.outcome.nr_ticks);
        let mut held = vec![0u32; self.core.rqs.len()];
        let mut throttled = vec![false; self.core.rqs.len()];
        let mut last = vec![TaskId(0); self.core.rqs.len()];
        let limit = self.config.watchdog_ns;
        for id in self.tasks.ids() {
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
                // A throttled task is not starved: its wait counts from here.
                self.tasks[id].runnable_since = self.core.now;
            }
            let since = self.tasks[id].runnable_since;
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
