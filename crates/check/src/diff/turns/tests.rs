// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the comparison of recorded runs.

use super::*;
use schedlab_model::CpuId;
use schedlab_workload::read_rtapp;

const MS: Nanos = 1_000_000;

/// Two equal tasks and one that sleeps.
fn workload() -> Workload {
    let text = r#"{ "global": { "duration": "1s" }, "tasks": {
        "hog": { "instance": 2, "loop": -1, "run": 1000 },
        "sleepy": { "loop": -1, "run": 100, "sleep": 5000 } } }"#;
    read_rtapp("w.json", text, 1).unwrap().workload
}

/// What happens in a run: a wake-up, or a switch from one task to another.
#[derive(Clone, Copy)]
enum Did {
    Wakes(u32),
    Switches(Option<u32>, Option<u32>, SwitchOut),
}
use Did::{Switches, Wakes};
use SwitchOut::{Idle, Preempted, Sleeping};

fn recording(events: &[(Nanos, Did)]) -> Recording {
    let mut recording = Recording::default();
    for (id, (name, spec)) in [("hog-0", 0), ("hog-1", 0), ("sleepy", 1)].into_iter().enumerate() {
        let info = TaskInfo { name: name.into(), spec: Some(spec), pid: 1 };
        recording.task(TaskId(id as u32), &info);
    }
    let mut event = |time_ns, kind| recording.event(&Event { time_ns, cpu: CpuId(0), kind });
    for task in [0, 1].map(TaskId) {
        event(0, EventKind::Fork { task, parent: None });
    }
    for (time_ns, did) in events {
        let kind = match *did {
            Wakes(task) => EventKind::Wakeup { task: TaskId(task), waker: None },
            Switches(prev, next, out) => {
                EventKind::Switch { prev: prev.map(TaskId), next: next.map(TaskId), out }
            }
        };
        event(*time_ns, kind);
    }
    recording.end(40 * MS);
    recording
}

fn diff(a: &[(Nanos, Did)], b: &[(Nanos, Did)]) -> TurnDiff {
    compare_turns(&workload(), &[recording(a), recording(b)], 2 * MS)
}

/// Two hogs that take turns of 4 ms.
const TURNS: [(Nanos, Did); 4] = [
    (1_000, Switches(None, Some(0), Idle)),
    (4 * MS, Switches(Some(0), Some(1), Preempted)),
    (8 * MS, Switches(Some(1), Some(0), Preempted)),
    (12 * MS, Switches(Some(0), Some(1), Preempted)),
];

#[test]
fn times_and_threads_outside_of_the_run_make_no_difference() {
    let real = [
        (200_000, Switches(None, Some(1), Idle)),
        // A thread of the kernel passes.
        (2 * MS, Switches(Some(1), None, Preempted)),
        (2 * MS + 90_000, Switches(None, Some(1), Idle)),
        (4 * MS + 300_000, Switches(Some(1), None, Preempted)),
        (4 * MS + 400_000, Switches(None, Some(0), Idle)),
        (8 * MS, Switches(Some(0), Some(1), Preempted)),
        (12 * MS, Switches(Some(1), Some(0), Preempted)),
    ];
    let diff = diff(&TURNS, &real);
    assert_eq!((diff.first, diff.nr_equal), (None, 4));
    assert_eq!(diff.apart_ns_max, 400_000, "the second turn begins so much later");
}

#[test]
fn a_longer_turn_is_a_choice() {
    let mut longer = TURNS;
    longer[2].0 = 12 * MS;
    longer[3].0 = 16 * MS;
    let diff = diff(&TURNS, &longer);
    let first = diff.first.unwrap();
    assert_eq!((diff.nr_equal, &first.timing), (1, &None));
    assert_eq!(first.sides[0].did, "preempts hog-1 after 4.000 ms and picks hog-0");
    assert_eq!(first.sides[1].did, "lets hog-1 run on, for 8.000 ms in all");
    assert_eq!(first.sides[1].time_ns, 8 * MS);
    let waits = |side: usize| {
        let tasks = first.sides[side].runnable.iter();
        tasks.map(|task| (task.name.as_str(), task.waited_ns, task.ran_ns)).collect::<Vec<_>>()
    };
    let ran = 4 * MS - 1_000;
    assert_eq!(waits(0), [("hog-1", None, 4 * MS), ("hog-0", Some(4 * MS), ran)]);
    assert_eq!(waits(0), waits(1));
}

#[test]
fn another_pick_is_a_choice_only_if_the_same_tasks_wait() {
    let wakes_at = |at, next| {
        let mut events = TURNS.to_vec();
        events.insert(2, (at, Wakes(2)));
        events[3] = (8 * MS, Switches(Some(1), Some(next), Preempted));
        events.truncate(4);
        events
    };
    let choice = diff(&wakes_at(6 * MS, 0), &wakes_at(7 * MS, 2)).first.unwrap();
    assert_eq!(choice.timing, None);
    assert_eq!(choice.sides[0].did, "picks hog-0");
    assert_eq!(choice.sides[1].did, "picks sleepy");
    assert_eq!(choice.sides[1].runnable[2].name, "sleepy");
    // In A the task wakes too late to be picked.
    let mut late = TURNS.to_vec();
    late.push((9 * MS, Wakes(2)));
    late.sort_by_key(|(time_ns, _)| *time_ns);
    let timing = diff(&late, &wakes_at(7 * MS, 2)).first.unwrap().timing;
    assert_eq!(timing.as_deref(), Some("other tasks can run: sleepy in B only"));
}

#[test]
fn a_preemption_of_a_task_that_would_have_left_is_a_matter_of_time() {
    let ends = |at, next, out| {
        let mut events = TURNS[..2].to_vec();
        events.push((at, Switches(Some(1), next, out)));
        events
    };
    let near =
        diff(&ends(8 * MS, Some(0), Preempted), &ends(9 * MS, Some(0), Sleeping)).first.unwrap();
    assert!(near.timing.unwrap().contains("just before it is preempted"));
    // Both leave by themselves: that is the program's.
    let both = diff(&ends(8 * MS, Some(0), Sleeping), &ends(30 * MS, Some(0), Sleeping));
    assert_eq!(both.first, None);
    // The run ends before the turn could differ.
    assert_eq!(diff(&TURNS, &TURNS[..3]).first.map(|first| first.timing), Some(None));
    assert_eq!(diff(&TURNS[..1], &TURNS[..1]).first, None);
}

#[test]
fn the_order_of_starts_is_the_launchers() {
    let starts = |task| [(MS, Wakes(2)), (2 * MS, Switches(None, Some(task), Idle))];
    let diff = diff(&starts(0), &starts(2));
    assert!(diff.first.unwrap().timing.unwrap().contains("the launcher's"));
}

#[test]
fn a_preemptor_that_is_not_awake_yet_is_a_matter_of_time() {
    let mut early = TURNS[..2].to_vec();
    early.extend([(5 * MS, Wakes(2)), (5 * MS, Switches(Some(1), Some(2), Preempted))]);
    let mut late = TURNS[..2].to_vec();
    late.extend([(11 * MS, Wakes(2)), (12 * MS, Switches(Some(1), Some(2), Preempted))]);
    let first = diff(&early, &late).first.unwrap();
    assert_eq!(first.timing.as_deref(), Some("sleepy is not runnable at that time in B"));
    // Awake, but not let in.
    late[2].0 = 5 * MS;
    let first = diff(&early, &late).first.unwrap();
    assert_eq!(first.timing, None);
    assert_eq!(first.sides[0].did, "preempts hog-1 after 1.000 ms and picks sleepy");
}

#[test]
fn a_loss_of_events_ends_the_comparison() {
    let mut lossy = recording(&TURNS[..2]);
    lossy.event(&Event { time_ns: 5 * MS, cpu: CpuId(0), kind: EventKind::Lost { count: 3 } });
    let diff = compare_turns(&workload(), &[recording(&TURNS[..2]), lossy], 2 * MS);
    assert_eq!(diff.stopped.as_deref(), Some("the trace of B lost events"));
}
