// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user half of a scheduler as a task: when its steps are, what they cost, what ends its sleep.

use crate::support;

use schedlab_engine::{SimConfig, SimError, SimOutcome, grouped, simulate};
use schedlab_model::trace::MemorySink;
use schedlab_model::{Nanos, TaskId};
use schedlab_sched::{Make, Scheduler, UserHalf};
use schedlab_scx::consts::OPS_SWITCH_PARTIAL;
use schedlab_scx::kernel::USER_PID;
use schedlab_scx::{
    Callback, Callbacks, Kernel, Ops, OpsFault, OpsInfo, OpsResult, UserWait, scheduler, stack,
};
use std::sync::{Arc, Mutex};
use support::{Case, MS, later, nice};

type Steps = Arc<Mutex<Vec<Nanos>>>;

/// Wakes its user half when task 1 starts to run, and notes the times of the steps.
struct Woken {
    flags: u64,
    waits: Vec<Result<UserWait, String>>,
    steps: Steps,
}

impl Ops for Woken {
    fn info(&self) -> OpsInfo {
        let callbacks = Callbacks::of(&[Callback::Running]);
        OpsInfo { name: "woken".into(), flags: self.flags, callbacks, ..OpsInfo::default() }
    }

    fn running(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        // Before that it only goes to sleep.
        if p == TaskId(1) && k.now() > 15 * MS {
            // Twice at one instant is once.
            k.wake_user_half();
            k.wake_user_half();
        }
        Ok(())
    }

    fn user_step(&mut self, k: &mut Kernel<'_>, p: TaskId) -> Result<UserWait, OpsFault> {
        assert_eq!((p, k.pid(p), k.tgid(p)), (TaskId(0), USER_PID, USER_PID));
        assert_eq!(k.task_from_pid(USER_PID), Some(p));
        assert_eq!((k.pid(TaskId(1)), k.comm(p)), (1_001, "scx_woken"));
        self.steps.lock().unwrap().push(k.now());
        match self.waits.is_empty() {
            true => Ok(UserWait::Until(None)),
            false => self.waits.remove(0).map_err(OpsFault),
        }
    }
}

/// Runs two tasks, at 21 ms for 2 ms and at 41 ms for 1 ms, with steps of 1 ms. Returns the times
/// of the steps.
fn run(
    flags: u64,
    waits: Vec<Result<UserWait, String>>,
) -> (Result<SimOutcome, SimError>, Vec<Nanos>) {
    let tasks = vec![later("one", nice(0), 20 * MS, 2 * MS), later("two", nice(0), 40 * MS, MS)];
    let case = Case::new(1, 100, tasks);
    let steps = Steps::default();
    let ops = Mutex::new(Some(Woken { flags, waits, steps: Arc::clone(&steps) }));
    let command = vec!["./bin/scx_woken".into(), "--fast".into()];
    let made = Make::new(move |options, machine, cgroups| {
        stack(Box::new(ops.lock().unwrap().take().unwrap()), options, machine, cgroups)
    });
    let make = made.with_user_half(Some(UserHalf { command, step_ns: MS }));
    let scheduler = Scheduler { name: "test".into(), make, ..scheduler() };
    let config = SimConfig {
        machine: &case.machine,
        scheduler: &scheduler,
        options: &case.options,
        seed: 1,
        until_ns: Some(case.until_ns),
        watchdog_ns: None,
    };
    assert_eq!(grouped(&case.workload, &config).unwrap().tasks[2].name, "scx_woken");
    let result = simulate(&case.workload, &config, MemorySink::default(), None);
    let steps = steps.lock().unwrap().clone();
    (result, steps)
}

#[test]
fn steps_come_after_their_cpu_time() {
    let waits = vec![
        Ok(UserWait::Until(Some(10 * MS))),
        Ok(UserWait::Yield),
        // A time that is over is another step at once.
        Ok(UserWait::Until(Some(5 * MS))),
        Ok(UserWait::Until(None)),
    ];
    let (result, steps) = run(0, waits);
    // The task that wakes it at 21 ms has the CPU until 23 ms.
    assert_eq!(steps, [1, 11, 12, 13, 24].map(|ms| ms * MS));
    // The run ends with the last task that is not the user half.
    let outcome = result.unwrap();
    assert_eq!((outcome.end_ns, outcome.nr_exited), (42 * MS, 2));
}

#[test]
fn in_partial_mode_the_fair_class_schedules_it() {
    let (result, steps) = run(OPS_SWITCH_PARTIAL, vec![Ok(UserWait::Until(Some(30 * MS)))]);
    assert_eq!(steps, [1, 31].map(|ms| ms * MS), "no task is of the scheduler's class");
    assert_eq!(result.unwrap().end_ns, 42 * MS);
}

#[test]
fn an_error_of_the_program_ends_the_run() {
    let waits = vec![Ok(UserWait::Until(Some(4 * MS))), Err("the user program fails".into())];
    let (result, steps) = run(0, waits);
    assert_eq!(steps, [1, 5].map(|ms| ms * MS));
    let error = result.unwrap_err().to_string();
    assert!(error.contains("the user program fails") && error.contains("5"), "{error}");
}
