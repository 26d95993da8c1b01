// SPDX-License-Identifier: MIT OR Apache-2.0
//! Natively compiled schedulers at work: what they are offered, faults, many runs side by side.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "../../scx/tests/scx/support/mod.rs"]
mod support;

use schedlab_model::program::ProgramBuilder;
use schedlab_model::{EventKind, Nanos, Op, SchedAttr, TaskSpec};
use schedlab_scx::Ops;
use schedlab_scx::inspect::{Value, Wanted, WantedMaps};
use schedlab_scx_native::{CompileOptions, Inspector, NativeScheduler, find_clang};
use std::path::Path;
use std::sync::Arc;
use support::{Case, MS, Ran, hog, nice, sleeper, task};

fn compile(name: &str) -> Option<NativeScheduler> {
    find_clang().map_err(schedlab_testing::skip).ok()?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native").join(name);
    Some(NativeScheduler::compile(&path, &CompileOptions::default()).unwrap())
}

/// The scheduler as the class takes it.
struct Boxed(Box<dyn Ops>);

fn run(scheduler: &NativeScheduler, case: &Case) -> Ran {
    let ops = scheduler.ops(case.machine.nr_cpus(), case.machine.hz).unwrap();
    case.run_boxed(ops, Default::default())
}

fn hogs(count: usize) -> Vec<schedlab_model::TaskSpec> {
    (0..count).map(|index| hog("hog", nice(if index % 3 == 0 { 5 } else { 0 }))).collect()
}

fn set(scheduler: &NativeScheduler, name: &str, value: &str) -> NativeScheduler {
    scheduler.with_options(&[(name.into(), value.into())]).unwrap()
}

#[test]
fn what_a_scheduler_is_offered_is_as_the_kernel_says() {
    let Some(checks) = compile("checks.bpf.c") else { return };
    for (nr_cpus, until_ms) in [(3, 30), (64, 30), (1024, 6)] {
        let ran = run(&checks, &Case::new(nr_cpus, until_ms, hogs(2 * nr_cpus as usize + 1)));
        ran.outcome();
    }
}

#[test]
fn weights_decide_and_options_count() {
    let Some(weighted) = compile("weighted.bpf.c") else { return };
    let time = |scheduler: &NativeScheduler| -> Vec<Nanos> {
        let case = Case::new(1, 2_000, hogs(3)).at_hz(1000);
        let ran = run(scheduler, &case);
        ran.outcome();
        let mut times = vec![0; 3];
        let mut since: Option<(usize, Nanos)> = None;
        for event in &ran.trace.events {
            if let EventKind::Switch { next, .. } = event.kind {
                if let Some((task, start)) = since {
                    times[task] += event.time_ns - start;
                }
                since = next.map(|next| (next.index(), event.time_ns));
            }
        }
        times
    };
    // Weights 33, 100, 100.
    let shared = time(&weighted);
    let ratio = shared[1] as f64 / shared[0] as f64;
    assert!((2.7..3.4).contains(&ratio), "{shared:?}");
    let equal = time(&set(&weighted, "fifo", "true"));
    assert!(equal.iter().all(|ns| ns.abs_diff(equal[0]) <= 20 * MS), "{equal:?}");
}

/// Runs tasks until their `until_ms`, and returns what these variables of the scheduler count.
fn counts(
    scheduler: &NativeScheduler,
    names: &[&str],
    (nr_cpus, until_ms): (u32, u64),
    tasks: Vec<TaskSpec>,
) -> Vec<u64> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let maps = Some(WantedMaps { names, elements: 1 });
    let inspector = Arc::new(Inspector::new(Wanted { maps, ..Wanted::default() }));
    let case = Case::new(nr_cpus, until_ms, tasks);
    run(&scheduler.inspected_by(&inspector), &case).outcome();
    let variables = inspector.take().state.unwrap().variables;
    let count = |value| match value {
        Value::Unsigned(count) => count,
        other => panic!("{other:?} is no count"),
    };
    variables.into_iter().map(|variable| count(variable.value)).collect()
}

#[test]
fn interrupts_are_told_from_tasks() {
    let Some(scheduler) = compile("interrupts.bpf.c") else { return };
    let names = ["nr_from_task", "nr_from_timer", "nr_ticks", "nr_expired"];
    let parent = ProgramBuilder::new().run(5 * MS).op(Op::Fork { task: 2 }).op(Op::JoinAll).build();
    let child = ProgramBuilder::new().run(3 * MS).build();
    let tasks = vec![
        sleeper("sleeper", nice(0), 4 * MS, MS),
        task("parent", nice(0), parent),
        TaskSpec { instances: 0, ..TaskSpec::new("child", child) },
    ];
    let counts = counts(&scheduler, &names, (2, 50), tasks);
    assert!(counts.len() == 4 && counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn forked_tasks_are_called_as_their_parent_until_they_run() {
    let Some(scheduler) = compile("names.bpf.c") else { return };
    let mut boss = ProgramBuilder::new();
    for _ in 0..3 {
        boss.op(Op::Fork { task: 1 }).run(2 * MS);
    }
    let errand = ProgramBuilder::new().run(50 * MS).build();
    let tasks = vec![
        task("boss", nice(0), boss.op(Op::JoinAll).build()),
        TaskSpec { instances: 0, ..TaskSpec::new("errand", errand) },
    ];
    let counts = counts(&scheduler, &["nr_inherited", "nr_own"], (1, 300), tasks);
    assert_eq!(counts[0], 3, "each is called so when it begins to run");
    assert!(counts[1] > 6, "{counts:?}: each has several turns under its own name");
}

#[test]
fn faults_end_the_run_and_say_where_and_later_runs_work() {
    let Some(faults) = compile("faults.bpf.c") else { return };
    let case = Case::new(1, 50, hogs(2));
    let inside = "in do_fault (";
    for (what, expected, place) in [
        ("NULL_POINTER", "it followed a null pointer", inside),
        ("WILD_POINTER", "at 0x123456789000, which is no memory of the scheduler's", inside),
        ("RECURSION", "stack overflow", "in recurse ("),
        ("ABSENT", "it called scx_bpf_teleport, which the modelled kernel does not have", ""),
        ("UNLOCK", "bpf_spin_unlock of a lock that is not held, in do_fault (", "unlocking 7"),
        ("BAD_KEY", "it followed a null pointer (0x10)", "in do_fault ("),
        ("BAD_TASK", "scx_bpf_task_cpu was given 0x", "which is no task"),
        ("NULL_CALL", "it called a function through a null pointer", ""),
        ("DOUBLE_DROP", "bpf_obj_drop of an object that was dropped before", ""),
    ] {
        let text = run(&set(&faults, "what", what), &case).error();
        assert!(text.contains("ops.enqueue failed: "), "{what}: {text}");
        assert!(text.contains(expected) && text.contains(place), "{what}: {text}");
    }
    let text = run(&set(&faults, "what", "NULL_POINTER"), &case).error();
    assert!(text.contains("in do_fault (faults.bpf.c:80)"), "{text}");
    let text = run(&set(&faults, "what", "TIMER_FAULT"), &case).error();
    assert!(text.contains("ops.timer failed: it followed a null pointer"), "{text}");
    run(&faults, &case).outcome();
    run(&set(&faults, "what", "DIVISION"), &case).outcome();
}

#[test]
fn endless_loops_end_with_the_name_of_the_callback() {
    let Some(faults) = compile("faults.bpf.c") else { return };
    let case = Case::new(1, 50, hogs(2));
    std::thread::scope(|scope| {
        for what in ["ENDLESS", "ENDLESS_HELPER"] {
            let (faults, case) = (set(&faults, "what", what), &case);
            scope.spawn(move || {
                let text = run(&faults, case).error();
                let expected = "ops.enqueue failed: it ran for more than 3 s of CPU time";
                assert!(text.contains(expected), "{text}");
                run(&set(&faults, "what", "NOTHING"), case).outcome();
            });
        }
    });
}

#[test]
fn many_runs_go_side_by_side_and_are_all_the_same() {
    let Some(weighted) = compile("weighted.bpf.c") else { return };
    let mut tasks = hogs(20);
    tasks[3].attr = SchedAttr { nice: -5, ..SchedAttr::default() };
    let case = Case::new(4, 200, tasks);
    let alone = run(&weighted, &case).trace.events;
    assert!(alone.len() > 100);
    // All images exist at the same time.
    let mut instances: Vec<Boxed> =
        (0..40).map(|_| Boxed(weighted.ops(4, case.machine.hz).unwrap())).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let batch: Vec<Boxed> = instances.split_off(instances.len() - 10);
            let (alone, case) = (&alone, &case);
            scope.spawn(move || {
                for Boxed(ops) in batch {
                    let ran = case.run_boxed(ops, Default::default());
                    assert!(ran.trace.events == *alone);
                }
            });
        }
    });
}
