// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deadlocks, waits that never end and misuse are found and named.

use super::*;
use schedlab_engine::{SimError, SimOutcome};
use schedlab_model::{MutexProtocol, Op};
use schedlab_sched::Make;

fn attempt(workload: &Workload, until_ns: Option<Nanos>) -> Result<SimOutcome, SimError> {
    let info = find("linux-6.12").expect("registered");
    let case = Case { until_ns, ..Case::new(workload, info, 2) };
    case.run().map(|run| run.outcome)
}

fn error(workload: &Workload) -> String {
    attempt(workload, None).map(|_| ()).unwrap_err().to_string()
}

fn crossing() -> Workload {
    let locks = |first, second| {
        build(|b| {
            b.lock(first).run(5 * MS).lock(second).unlock(second).unlock(first);
        })
    };
    let tasks = vec![task("x", 0, 0, locks(A, B)), task("y", 1, 1, locks(B, A))];
    workload(&[ObjectKind::MUTEX; 2], tasks)
}

#[test]
fn two_mutexes_taken_crosswise() {
    for protocol in [MutexProtocol::None, MutexProtocol::Inherit] {
        let mut made = crossing();
        for object in &mut made.objects {
            object.kind = ObjectKind::Mutex { protocol };
        }
        let text = error(&made);
        assert_eq!(
            text,
            "deadlock: from 6000000 ns on every task that lives waits for ever: task \"x\" waits \
             for mutex \"b\", held by \"y\"; task \"y\" waits for mutex \"a\", held by \"x\". Let \
             somebody wake them, or end the run at a time (--until)"
        );
    }
}

#[test]
fn a_run_that_ends_at_a_time_ends_then_and_says_who_waits() {
    let outcome = attempt(&crossing(), Some(50 * MS)).unwrap();
    assert_eq!((outcome.end_ns, outcome.nr_exited), (50 * MS, 0));
    let names: Vec<String> = outcome.blocked.iter().map(ToString::to_string).collect();
    assert_eq!(names[1], "task \"y\" waits for mutex \"a\", held by \"x\"");
    assert_eq!(names.len(), 2);
}

#[test]
fn waits_that_nobody_ends() {
    let kinds = [
        ObjectKind::PIPE,
        ObjectKind::Event,
        ObjectKind::Barrier { parties: 2 },
        ObjectKind::Semaphore { initial: 1 },
    ];
    let cases = [
        (
            build(|b| {
                b.receive(A, 5);
            }),
            "task \"t\" reads from pipe \"a\".",
        ),
        (
            build(|b| {
                b.send(A, 70_000);
            }),
            "task \"t\" writes to pipe \"a\".",
        ),
        (
            build(|b| {
                b.op(Op::Suspend { object: B });
            }),
            "task \"t\" waits for event \"b\".",
        ),
        (
            build(|b| {
                b.op(Op::Barrier { object: C });
            }),
            "task \"t\" waits for barrier \"c\".",
        ),
        (
            build(|b| {
                b.op(Op::WaitAny { set: 0 });
            }),
            "task \"t\" waits for any of \"a\".",
        ),
    ];
    for (program, text) in cases {
        let mut made = workload(&kinds, vec![task("t", 0, 0, program)]);
        made.wait_sets.push(vec![A]);
        let found = error(&made);
        assert!(found.contains(text), "{found}");
    }
}

#[test]
fn a_join_of_a_child_that_waits_names_both() {
    let parent = build(|b| {
        b.op(Op::Fork { task: 1 }).op(Op::Join { task: 1 });
    });
    let child = build(|b| {
        b.op(Op::Suspend { object: A });
    });
    let child = TaskSpec { instances: 0, ..task("child", 1, 0, child) };
    let found = error(&workload(&[ObjectKind::Event], vec![task("parent", 0, 0, parent), child]));
    assert!(
        found.contains("task \"parent\" waits for the task \"child-0\" it forked; "),
        "{found}"
    );
    assert!(found.contains("task \"child-0\" waits for event \"a\""), "{found}");
}

#[test]
fn misuse_is_named() {
    let kinds = [ObjectKind::MUTEX, ObjectKind::Condvar];
    let cases = [
        (
            build(|b| {
                b.run(MS).unlock(A);
            }),
            "unlocks, though it does not hold it, mutex \"a\"",
        ),
        (
            build(|b| {
                b.run(MS).lock(A);
            }),
            "exits while it holds mutex \"a\"",
        ),
        (
            build(|b| {
                b.run(MS).lock(A).lock(A);
            }),
            "locks, though it holds it already, mutex \"a\"",
        ),
        (
            build(|b| {
                b.run(MS).op(Op::Wait { condvar: B, mutex: A });
            }),
            "waits with, though it does not hold it, mutex \"a\"",
        ),
    ];
    for (program, text) in cases {
        let made = workload(&kinds, vec![task("t", 0, 0, program)]);
        let wanted = format!("task \"t\" {text}, at 1000000 ns: mend its program");
        assert_eq!(error(&made), wanted);
    }
}

#[test]
fn what_no_scheduler_models_is_refused_by_name() {
    use schedlab_model::{CpuMax, DeadlineParams, Policy};
    use schedlab_sched::Scheduler;
    use schedlab_sched::fair::{FairClass, rules::Rules};
    let mut made = workload(
        &[],
        vec![task(
            "t",
            0,
            0,
            build(|b| {
                b.run(MS);
            }),
        )],
    );
    let refused = |made: &schedlab_model::Workload, name: &str| {
        let info = find(name).expect("registered");
        Case::new(made, info, 1).run().err().expect("refused").to_string()
    };
    made.cgroups[0].cpu_max = Some(CpuMax { quota_ns: 5 * MS, period_ns: 10 * MS, burst_ns: 0 });
    assert_eq!(
        refused(&made, "linux-6.12"),
        "group \"/\": the root group has no cpu.max: limit a group below it"
    );
    for name in ["rr", "wrr", "linux-2.6.22", "linux-2.4.18"] {
        assert_eq!(
            refused(&made, name),
            format!(
                "group \"/\": scheduler {name:?} leaves out cpu.max: take one of linux-6.1 and \
                 later, or leave the limit out"
            )
        );
    }
    made.cgroups[0].cpu_max = None;
    made.tasks[0].attr.policy = Policy::Deadline;
    made.tasks[0].attr.deadline =
        DeadlineParams { runtime_ns: MS, deadline_ns: 5 * MS, period_ns: 5 * MS, reclaim: false };
    let fair_only = Scheduler {
        name: "fair-only".into(),
        make: Make::new(|options, machine, groups| {
            vec![Box::new(FairClass::new(Rules::LINUX_6_12, options, machine, groups))]
        }),
        ..Scheduler::clone(find("linux-6.12").expect("registered"))
    };
    let text = Case::new(&made, &fair_only, 1).run().err().expect("refused").to_string();
    assert_eq!(text, "task \"t\": scheduler \"fair-only\" leaves out policy DEADLINE");
}
