// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers that break one rule each, and the check that must catch each of them by name.
//!
//! All are one class: queues by CPU, served in turn, a new turn at each tick. [`Sin`] says what is
//! wrong with it; without a sin it passes the conformance suite, so that what is caught is the sin.

use crate::common;

use common::checks::{Broken, check_case, check_fair};
use common::workloads::{all, burst, bursts, endless_hogs, nice, on, task};
use common::{Case, MS, S};
use schedlab_engine::{SchedulerFault, SimError};
use schedlab_model::{Costs, CpuId, Machine, Policy, Preempt, TaskId, TaskSpec, Workload};
use schedlab_sched::boundary::class::select_idle_cpu;
use schedlab_sched::{
    Claims, Core, DequeueFlags, EnqueueFlags, Explain, Make, SchedClass, Scheduler, TaskState,
    WakeFlags,
};
use std::collections::VecDeque;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the class does wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sin {
    None,
    /// Counts task 1 at its third wake-up but queues it nowhere.
    Loses,
    /// Serves task 1 only if nobody else waits.
    Starves,
    /// Sends waking tasks to CPU 0, whatever their affinity.
    Forbids,
    /// Pulls waiting tasks to an idle CPU, whatever their affinity.
    PullsForbidden,
    /// On an idle CPU names the task that runs on CPU 0.
    PicksTwice,
    /// On an idle CPU names a task that waits on CPU 0.
    PicksElsewhere,
    /// Counts each fifth task twice.
    CountsTwice,
    /// Names a task that sleeps.
    PicksSleeper,
    /// Keeps a task that exits.
    DelaysExit,
    /// Gives task 0 three turns in a row.
    Unfair,
    /// Queues tasks only where they were.
    LeavesIdle,
    /// Decides by what happened in earlier runs.
    Remembers,
}

struct Canary {
    sin: Sin,
    queues: Vec<VecDeque<TaskId>>,
    expired: Vec<bool>,
    /// Turns or wake-ups of each task, as the sin counts them.
    turns: Vec<u32>,
    nr_enqueued: u32,
}

impl Canary {
    fn waits_elsewhere(&self, cpu: CpuId) -> Option<TaskId> {
        let other = self
            .queues
            .iter()
            .enumerate()
            .find(|(index, queue)| *index != cpu.index() && !queue.is_empty())?;
        other.1.front().copied()
    }

    /// What an idle CPU with an empty queue runs: a sin each.
    fn pick_nothing(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        match self.sin {
            Sin::PicksTwice if cpu != CpuId(0) => core.rq(CpuId(0)).curr,
            Sin::PicksElsewhere => self.waits_elsewhere(cpu),
            Sin::PicksSleeper => (0..core.tasks.len() as u32)
                .map(TaskId)
                .find(|&id| core.task(id).state == TaskState::Sleeping),
            Sin::PullsForbidden => {
                let task = self.waits_elsewhere(cpu)?;
                let from = core.task(task).cpu;
                self.queues[from.index()].retain(|&other| other != task);
                core.sub_nr_running(from, 1);
                core.set_task_cpu(task, cpu);
                core.add_nr_running(cpu, 1);
                self.queues[cpu.index()].push_back(task);
                Some(task)
            }
            _ => None,
        }
    }
}

impl Explain for Canary {
    fn name(&self) -> &'static str {
        "canary-class"
    }
}

impl SchedClass for Canary {
    fn owns(&self, _policy: Policy) -> bool {
        true
    }

    fn task_new(&mut self, _core: &mut Core, _task: TaskId) {
        self.turns.push(0);
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        self.nr_enqueued += 1;
        let twice = self.sin == Sin::CountsTwice && self.nr_enqueued.is_multiple_of(5);
        core.add_nr_running(cpu, 1 + u32::from(twice));
        if self.sin == Sin::Loses && task == TaskId(1) {
            self.turns[1] += 1;
            if self.turns[1] == 3 {
                return;
            }
        }
        // A running task that changes its attributes is put back by put_prev_task.
        if !flags.restore {
            self.queues[cpu.index()].push_back(task);
        }
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        if self.sin == Sin::DelaysExit && flags.special {
            return false;
        }
        core.sub_nr_running(cpu, 1);
        self.queues[cpu.index()].retain(|&other| other != task);
        true
    }

    fn wakeup_preempt(
        &mut self,
        _core: &mut Core,
        _cpu: CpuId,
        _task: TaskId,
        _curr: TaskId,
        _flags: WakeFlags,
    ) {
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        static NR_PICKS: AtomicU32 = AtomicU32::new(0);
        let curr = core.rq(cpu).curr.filter(|&curr| core.task(curr).on_rq);
        if curr.is_some() && !self.expired[cpu.index()] {
            return curr;
        }
        let queue = &self.queues[cpu.index()];
        let starves = self.sin == Sin::Starves;
        let mut first = queue.iter().copied().find(|&task| !starves || task != TaskId(1));
        if self.sin == Sin::Remembers && NR_PICKS.fetch_add(1, Ordering::Relaxed) < 10 {
            first = queue.back().copied();
        }
        let next = first.or(curr).or(queue.front().copied());
        next.or_else(|| self.pick_nothing(core, cpu))
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, prev: TaskId, _next: Option<TaskId>) {
        if core.task(prev).on_rq {
            self.queues[cpu.index()].push_back(prev);
        }
    }

    fn set_next_task(&mut self, _core: &mut Core, cpu: CpuId, task: TaskId, _first: bool) {
        self.queues[cpu.index()].retain(|&other| other != task);
        self.expired[cpu.index()] = false;
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        _: WakeFlags,
    ) -> CpuId {
        match self.sin {
            Sin::Forbids => CpuId(0),
            Sin::LeavesIdle if core.task(task).cpus_allowed.contains(prev) => prev,
            _ => select_idle_cpu(core, task, prev),
        }
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        if self.sin == Sin::Unfair && curr == TaskId(0) {
            self.turns[0] += 1;
            if !self.turns[0].is_multiple_of(3) {
                return;
            }
        }
        self.expired[cpu.index()] = true;
        core.resched_curr(cpu);
    }
}

const CLAIMS: Claims =
    Claims { work_conserving: false, starvation_free: true, fair: true, needs_burst: false };

fn class(sin: Sin, machine: &Machine) -> Vec<Box<dyn SchedClass>> {
    let nr_cpus = machine.nr_cpus() as usize;
    vec![Box::new(Canary {
        sin,
        queues: vec![VecDeque::new(); nr_cpus],
        expired: vec![false; nr_cpus],
        turns: Vec::new(),
        nr_enqueued: 0,
    })]
}

/// A registry entry of its own, for each sin.
macro_rules! canary {
    ($name:ident, $sin:ident) => {
        static $name: LazyLock<Scheduler> = LazyLock::new(|| Scheduler {
            name: "canary".into(),
            summary: "round robin by CPU with a fault".into(),
            source: "this test".into(),
            leaves_out: "everything else".into(),
            claims: CLAIMS,
            preempt: Preempt::Full,
            costs: Costs::DEFAULT,
            tunables: Vec::new(),
            digest: None,
            make: Make::new(|_, machine, _| class(Sin::$sin, machine)),
        });
    };
}

canary!(HONEST, None);
canary!(LOSES, Loses);
canary!(STARVES, Starves);
canary!(FORBIDS, Forbids);
canary!(PULLS_FORBIDDEN, PullsForbidden);
canary!(PICKS_TWICE, PicksTwice);
canary!(PICKS_ELSEWHERE, PicksElsewhere);
canary!(COUNTS_TWICE, CountsTwice);
canary!(PICKS_SLEEPER, PicksSleeper);
canary!(DELAYS_EXIT, DelaysExit);
canary!(UNFAIR, Unfair);
canary!(LEAVES_IDLE, LeavesIdle);
canary!(REMEMBERS, Remembers);

/// Runs `workload` and expects that the engine names this fault, callback, task and time.
fn assert_fault(
    case: &Case<'_>,
    fault: SchedulerFault,
    callback: &str,
    task: &str,
    times: std::ops::RangeInclusive<u64>,
) {
    let Err(error) = case.run() else { panic!("{} goes unnoticed", fault.name()) };
    let SimError::Scheduler { fault: found, time_ns, .. } = error else {
        panic!("expected {}, got {error}", fault.name());
    };
    assert_eq!(found, fault, "{error}");
    assert!(times.contains(&time_ns), "{error}");
    let text = error.to_string();
    for part in [
        "scheduler \"canary\"".to_string(),
        "class \"canary-class\"".into(),
        format!("callback {callback}"),
        format!("task {task:?}"),
        format!("at {time_ns} ns"),
        format!("({})", fault.name()),
    ] {
        assert!(text.contains(&part), "{part} is missing: {text}");
    }
}

fn two_sleepers() -> Workload {
    let sleepers = task("sleeper", nice(0), bursts(10, MS, 9 * MS));
    Workload::new("two sleepers", vec![TaskSpec { instances: 2, ..sleepers }])
}

fn hogs(count: u32, ms: u64) -> Workload {
    let hog = task("hog", nice(0), burst(ms * MS));
    Workload::new("hogs", vec![TaskSpec { instances: count, ..hog }])
}

#[test]
fn without_a_sin_it_passes() {
    for nr_cpus in [1, 2, 4] {
        let workloads = all(nr_cpus);
        // The canary knows no change of attributes or of priority.
        let is_plain = |workload: &&Workload| !["changes", "locks"].contains(&&*workload.name);
        for workload in workloads.iter().filter(is_plain) {
            if let Err(Broken { text, .. }) = check_case(&Case::new(workload, &HONEST, nr_cpus)) {
                panic!("{text}");
            }
        }
    }
    check_fair(&HONEST, 3).unwrap();
}

#[test]
fn a_lost_task_is_named() {
    let workload = two_sleepers();
    let case = Case::new(&workload, &LOSES, 1);
    // It runs from 1 to 2 ms and from 12 to 13 ms and wakes for the third time, its release
    // included, at 22 ms, when CPU 0 goes idle.
    assert_fault(&case, SchedulerFault::Lost, "pick_task", "sleeper-1", 20 * MS..=22 * MS);
}

#[test]
fn a_starved_task_is_named() {
    let workload = hogs(3, 20_000);
    let case = Case { watchdog_ns: Some(2 * S), ..Case::new(&workload, &STARVES, 1) };
    assert_fault(&case, SchedulerFault::Starved, "pick_task", "hog-1", 2 * S + 1..=3 * S + 4 * MS);
}

#[test]
fn a_forbidden_cpu_at_wake_up_is_named() {
    let pinned = task("pinned", on(&[1, 2]), burst(MS));
    let workload = Workload::new("pinned", vec![pinned]);
    let case = Case::new(&workload, &FORBIDS, 4);
    assert_fault(&case, SchedulerFault::ForbiddenCpu, "select_task_rq", "pinned", 0..=0);
}

#[test]
fn a_task_pulled_to_a_forbidden_cpu_is_named() {
    let pinned = TaskSpec { instances: 2, ..task("pinned", on(&[0]), burst(50 * MS)) };
    let free = task("free", on(&[1]), burst(5 * MS));
    let workload = Workload::new("pull", vec![pinned, free]);
    let case = Case::new(&workload, &PULLS_FORBIDDEN, 2);
    // CPU 1 goes idle at 5 ms, while one of the two waits on CPU 0: since 4 ms task 0.
    assert_fault(&case, SchedulerFault::ForbiddenCpu, "pick_task", "pinned-0", 5 * MS..=5 * MS);
}

#[test]
fn a_task_picked_twice_is_named() {
    let workload = Workload::new(
        "two CPUs",
        vec![task("long", on(&[0]), burst(50 * MS)), task("short", on(&[1]), burst(5 * MS))],
    );
    let case = Case::new(&workload, &PICKS_TWICE, 2);
    assert_fault(&case, SchedulerFault::PickedTwice, "pick_task", "long", 5 * MS..=5 * MS);
}

#[test]
fn a_task_picked_from_another_queue_is_named() {
    let long = TaskSpec { instances: 2, ..task("long", on(&[0]), burst(50 * MS)) };
    let workload = Workload::new("two CPUs", vec![long, task("short", on(&[1]), burst(5 * MS))]);
    let case = Case::new(&workload, &PICKS_ELSEWHERE, 2);
    assert_fault(&case, SchedulerFault::WrongCpu, "pick_task", "long-0", 5 * MS..=5 * MS);
}

#[test]
fn a_drifting_count_is_named() {
    let workload = hogs(8, 3_000);
    let case = Case::new(&workload, &COUNTS_TWICE, 1);
    let callback = "enqueue_task or dequeue_task";
    // Counts are compared once a second.
    assert_fault(&case, SchedulerFault::CountDrifted, callback, "hog-7", S..=S + 4 * MS);
}

#[test]
fn a_picked_sleeper_is_named() {
    let workload = two_sleepers();
    let case = Case::new(&workload, &PICKS_SLEEPER, 1);
    let fault = SchedulerFault::PickedNotRunnable;
    // Both sleep for the first time at 2 ms.
    assert_fault(&case, fault, "pick_task", "sleeper-0", 2 * MS..=2 * MS);
}

#[test]
fn a_delayed_exit_is_named() {
    let workload = hogs(1, 7);
    let case = Case::new(&workload, &DELAYS_EXIT, 1);
    assert_fault(&case, SchedulerFault::DelayedExit, "dequeue_task", "hog", 7 * MS..=7 * MS);
}

/// The check of the suite that fails, with scheduler, task and time in its message.
fn assert_check(checked: Result<(), Broken>, check: &str, parts: &[&str]) {
    let broken = checked.expect_err("the sin goes unnoticed");
    assert_eq!(broken.check, check, "{}", broken.text);
    for part in parts.iter().chain(&["canary"]) {
        assert!(broken.text.contains(part), "{part} is missing: {}", broken.text);
    }
}

#[test]
fn shares_that_drift_from_fair_are_named() {
    assert_check(check_fair(&UNFAIR, 3), "fair", &["hog-0", "30000000000 ns"]);
}

#[test]
fn a_cpu_that_idles_beside_a_waiting_task_is_named() {
    let info =
        Scheduler { claims: Claims { work_conserving: true, ..CLAIMS }, ..LEAVES_IDLE.clone() };
    let workload = hogs(2, 40);
    let case = Case::new(&workload, &info, 2);
    let parts = ["CPU 1 idles", "hog-1"];
    assert_check(check_case(&case).map(|_| ()), "work-conserving", &parts);
}

#[test]
fn a_run_that_depends_on_earlier_ones_is_named() {
    let workload = hogs(5, 41);
    let case = Case::new(&workload, &REMEMBERS, 1);
    assert_check(check_case(&case).map(|_| ()), "determinism", &["event", "differs", "time_ns"]);
}

/// A scheduler may starve a task if nobody asks the watchdog.
#[test]
fn without_a_watchdog_starving_is_no_fault() {
    let workload = endless_hogs(3);
    let until_ns = Some(5 * S);
    let case = Case { until_ns, watchdog_ns: None, ..Case::new(&workload, &STARVES, 1) };
    let run = common::checks::simulated(&case).unwrap();
    assert_eq!(common::checks::measures(&case, &run).tasks[1].cpu_time_ns, 0);
}
