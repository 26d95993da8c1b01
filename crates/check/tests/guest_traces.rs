// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of real kernels: what their threads and their exits do is no breach.

use schedlab_check::{Case, Judge, Subject};
use schedlab_model::trace::TaskInfo;
use schedlab_model::{CpuId, Event, EventKind, Machine, Op, SwitchOut, TaskId, TraceSink};
use schedlab_sched::registry;
use schedlab_workload::read_rtapp;
use std::sync::Arc;

const MS: u64 = 1_000_000;

/// The rule that a trace of two equal SCHED_FIFO tasks breaks under `kernel`. Its switches are
/// times, the task that leaves, the task that runs next, and why the first left.
fn broken(
    kernel: &str,
    is_real: bool,
    switches: &[(u64, Option<u32>, Option<u32>, SwitchOut)],
) -> Option<&'static str> {
    let text = r#"{ "global": { "duration": "1s" }, "tasks": { "b": {
        "instance": 2, "policy": "SCHED_FIFO", "priority": 1, "loop": -1, "run": 1000 } } }"#;
    let workload = read_rtapp("w.json", text, 1).unwrap().workload;
    let case = Case { workload, machine: Machine::flat(1), seed: 1 };
    let scheduler = Arc::clone(registry::find(kernel).unwrap());
    let outside_ns = if is_real { 10 * MS } else { 0 };
    let subject = Subject { outside_ns, ..Subject::new(scheduler) };
    let mut judge = Judge::new(&case, &subject);
    for id in [0, 1] {
        let name = format!("b-{id}");
        judge.task(TaskId(id), &TaskInfo { name, spec: Some(0), pid: 1 + id });
    }
    let mut event = |time_ns, kind| judge.event(&Event { time_ns, cpu: CpuId(0), kind });
    for task in [TaskId(0), TaskId(1)] {
        event(1_000, EventKind::Fork { task, parent: None });
    }
    for (time_ns, prev, next, out) in switches {
        let (prev, next) = (prev.map(TaskId), next.map(TaskId));
        if let Some(task) = prev.filter(|_| *out == SwitchOut::Dead) {
            event(*time_ns, EventKind::Exit { task });
        }
        event(*time_ns, EventKind::Switch { prev, next, out: *out });
    }
    judge.end(100 * MS);
    judge.finish().map(|breach| breach.rule.name)
}

#[test]
fn an_exiting_task_of_a_real_kernel_may_move_to_the_tail() {
    use SwitchOut::{Dead, Idle, Preempted, Sleeping};
    let exits = [
        (2_000, None, Some(0), Idle),
        (4 * MS, Some(0), Some(1), Preempted),
        (9 * MS, Some(1), Some(0), Preempted),
        // A thread of the kernel.
        (9 * MS + 90_000, Some(0), None, Preempted),
        (9 * MS + 200_000, None, Some(0), Idle),
        (9 * MS + 300_000, Some(0), Some(1), Dead),
        (9 * MS + 400_000, Some(1), None, Dead),
    ];
    assert_eq!(broken("linux-6.18", true, &exits), None);
    // The models, and kernels that keep the place of an exiting task, are judged at once.
    assert_eq!(broken("linux-6.18", false, &exits), Some("rt-order"));
    assert_eq!(broken("linux-6.12", true, &exits), Some("rt-order"));
    let mut sleeps = exits;
    sleeps[5].3 = Sleeping;
    assert_eq!(broken("linux-6.18", true, &sleeps[..6]), Some("rt-order"), "it did not exit");
    let mut late = exits;
    late[3].0 = 12 * MS;
    late[4].0 = 12 * MS;
    late[5].0 = 13 * MS;
    late[6].0 = 14 * MS;
    assert_eq!(broken("linux-6.18", true, &late), Some("rt-order"), "it ran on for 3 ms");
}

#[test]
fn a_thread_of_the_kernel_may_hold_a_cpu_for_a_while() {
    use SwitchOut::{Idle, Preempted};
    let held = |until| {
        [
            (2_000, None, Some(0), Idle),
            (2 * MS, Some(0), None, Preempted),
            (until, None, Some(0), Idle),
        ]
    };
    assert_eq!(broken("linux-6.12", true, &held(11 * MS)), None);
    assert_eq!(broken("linux-6.12", true, &held(30 * MS)), Some("idle-own-queue"));
    assert_eq!(broken("linux-6.12", false, &held(11 * MS)), Some("idle-own-queue"));
}

/// A group that has the second one and then the first, and its task.
const CONFINED: &str = r#"{ "global": { "duration": "1s" },
  "cgroups": { "/g": { "cpus": [1] } }, "tasks": {
    "a": { "taskgroup": "/g", "loop": -1, "run": 1000 },
    "b": { "loop": -1, "phases": {
      "before": { "loop": 1, "run": 1000 },
      "change": { "loop": 1, "change": { "taskgroup": "/g", "cpus": [0] } },
      "after": { "loop": 1, "run": 1000 } } } } }"#;

/// The rule that is broken if task a runs on `cpu` at `time_ns`. Task b marks its phases at 10 ms,
/// changes the group, and marks the next at 12 ms.
fn broken_on(cpu: u32, time_ns: u64) -> Option<&'static str> {
    let mut workload = read_rtapp("w.json", CONFINED, 3).unwrap().workload;
    // The change between the marks has no mark of its own.
    let ops = &mut workload.tasks[1].program.ops;
    let change = ops.iter().position(|op| matches!(op, Op::Change(_))).unwrap();
    assert!(matches!(ops[change - 1], Op::Phase(1)) && matches!(ops[change + 1], Op::Phase(2)));
    let case = Case { workload, machine: Machine::flat(3), seed: 1 };
    let subject = Subject::new(Arc::clone(registry::find("linux-6.18").unwrap()));
    let mut judge = Judge::new(&case, &subject);
    for (id, name) in [(0, "a"), (1, "b")] {
        judge.task(TaskId(id), &TaskInfo { name: name.into(), spec: Some(id), pid: 1 });
    }
    let (a, b) = (TaskId(0), TaskId(1));
    let mut events = vec![
        (0, 0, EventKind::Fork { task: b, parent: None }),
        (0, 0, EventKind::Switch { prev: None, next: Some(b), out: SwitchOut::Idle }),
        (10 * MS, 0, EventKind::Phase { task: b, phase: 1 }),
        (12 * MS, 0, EventKind::Phase { task: b, phase: 2 }),
        (12 * MS, 0, EventKind::Switch { prev: Some(b), next: None, out: SwitchOut::Sleeping }),
        (time_ns, cpu, EventKind::Fork { task: a, parent: None }),
        (time_ns, cpu, EventKind::Switch { prev: None, next: Some(a), out: SwitchOut::Idle }),
    ];
    if cpu == 0 && time_ns < 12 * MS {
        // Its CPU is free.
        events[4].0 = 1;
    }
    events.sort_by_key(|event| event.0);
    for (time_ns, cpu, kind) in events {
        judge.event(&Event { time_ns, cpu: CpuId(cpu), kind });
    }
    judge.end(time_ns + MS);
    judge.finish().map(|breach| breach.rule.name)
}

#[test]
fn a_task_outside_of_its_groups_cpus_is_found() {
    assert_eq!(broken_on(1, 5 * MS), None);
    assert_eq!(broken_on(0, 5 * MS), Some("cpuset"));
    // In between, the CPUs are unknown.
    assert_eq!(broken_on(2, 5 * MS), Some("cpuset"));
    assert_eq!(broken_on(2, 11 * MS), None);
    assert_eq!(broken_on(0, 20 * MS), None);
    assert_eq!(broken_on(1, 20 * MS), Some("cpuset"));
}
