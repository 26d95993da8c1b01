// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers that access what is not theirs: each loses its run, with a message that names the
//! object, and nothing else.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "../../scx/tests/scx/support/mod.rs"]
mod support;

use schedlab_scx_native::{CompileOptions, NativeScheduler, find_clang};
use std::path::Path;
use support::{Case, MS, Ran, hog, later, nice};

fn compile(is_checked: bool) -> Option<NativeScheduler> {
    find_clang().map_err(schedlab_testing::skip).ok()?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native/hostile.bpf.c");
    let options = CompileOptions { is_checked, ..CompileOptions::default() };
    Some(NativeScheduler::compile(&path, &options).unwrap())
}

fn run(scheduler: &NativeScheduler, what: &str, case: &Case) -> Ran {
    let scheduler = scheduler.with_options(&[("what".into(), what.into())]).unwrap();
    let ops = scheduler.ops(case.machine.nr_cpus(), case.machine.hz).unwrap();
    case.run_boxed(ops, Default::default())
}

#[test]
fn an_access_out_of_bounds_ends_the_run_and_names_the_object() {
    let Some(hostile) = compile(true) else { return };
    let case = Case::new(1, 50, vec![hog("hog", nice(0)), hog("other", nice(0))]);
    for (what, expected) in [
        (
            "ARRAY",
            "it wrote 8 bytes at offset 24 of element 0 of map array, which has 24 bytes, in set (",
        ),
        // Where values are packed with 16 bytes between them, this is a byte of another element.
        (
            "ARRAY_NEXT",
            "it wrote 8 bytes at offset 224 of element 0 of map array, which has 24 bytes, in set",
        ),
        ("ARRAY_FAR", "it used bytes that belong to no object of the scheduler, in set ("),
        (
            "PERCPU",
            "it wrote 8 bytes at offset 8 of element 0 of map percpu, which has 8 bytes, in set (",
        ),
        (
            "HASH",
            "it wrote 8 bytes at offset 24 of an element of map hash, which has 24 bytes, in set (",
        ),
        (
            "STORAGE",
            "at offset 32 of the storage of a task of map storage, which has 24 bytes, in set (",
        ),
        (
            "GLOBAL",
            "it wrote 8 bytes at offset 32 of variable global, which has 32 bytes, in set (",
        ),
        (
            "STATIC",
            "it wrote 1 byte at offset 13 of variable bytes, which has 13 bytes, in do_it (",
        ),
        (
            "LOCAL",
            "it wrote 8 bytes at offset 32 of local variable room, which has 32 bytes, in set (",
        ),
        ("LOCAL_READ", "it read 8 bytes at offset 56 of local variable room, which has 32 bytes"),
        ("PLAIN_RECURSION", "stack overflow, in recurse (hostile.bpf.c:"),
        ("RECURSION_WITH_CALLS", "stack overflow, in recurse_with_calls (hostile.bpf.c:"),
        ("STALE_OBJECT", "it wrote 8 bytes at offset 16 of freed memory, which has 24 bytes"),
        ("OBJECT", "it wrote 8 bytes at offset 48 of an allocated object, which has 24 bytes"),
        ("ARENA", "at offset 16384 of the pages of map arena, which has 16384 bytes, in set ("),
        ("OTHER_TASK", "of the task_struct of task 0, which has "),
        ("RETURN_ADDRESS", "it used bytes of its stack that are no variable's, in set ("),
        ("WILD_CALL", "it called 0x123456789000, which is no function of its own, in do_it ("),
        (
            "HELPER",
            "it passed a pointer to 8 bytes of its stack that are no variable's, in do_it (",
        ),
        ("COPY", "it wrote 32 bytes at offset 32 of local variable room, which has 32 bytes"),
        ("UNCHECKED", "at offset 32 of variable global, which has 32 bytes, in unchecked ("),
        ("ADDRESS_SPACE", "at offset 32 of variable global, which has 32 bytes, in do_it ("),
        ("BARRIER_FAR", "it wrote 8 bytes at offset 32 of local variable room, which has 32 bytes"),
        ("RETURNED", "a local variable of a function that has returned"),
    ] {
        let text = run(&hostile, what, &case).error();
        assert!(text.contains("ops.enqueue failed: "), "{what}: {text}");
        assert!(text.contains(expected), "{what}: {text}");
    }
    let tasks = vec![later("short", nice(0), MS, MS), hog("hog", nice(0)), hog("hog", nice(0))];
    let exits = Case::new(1, 100, tasks);
    let text = run(&hostile, "STALE_TASK", &exits).error();
    assert!(text.contains("of the task_struct of a task that has exited, which has "), "{text}");
    run(&hostile, "STALE_TASK", &case).outcome();
    run(&hostile, "BARRIER", &case).outcome();
    run(&hostile, "NOTHING", &exits).outcome();
}

#[test]
fn checks_change_no_result_and_can_be_left_out() {
    let (Some(checked), Some(fast)) = (compile(true), compile(false)) else { return };
    let tasks = vec![later("short", nice(5), MS, 3 * MS), hog("a", nice(0)), hog("b", nice(-5))];
    let case = Case::new(1, 300, tasks);
    let [one, two] = [&checked, &fast].map(|scheduler| run(scheduler, "NOTHING", &case));
    assert!(one.trace.events.len() > 20 && one.trace.events == two.trace.events);
    // What needs no shadow is found anyway.
    for (what, expected) in [
        ("PLAIN_RECURSION", "stack overflow, in recurse (hostile.bpf.c:"),
        ("RECURSION_WITH_CALLS", "stack overflow, in recurse_with_calls (hostile.bpf.c:"),
        ("ARRAY_FAR", "it touched memory that is not there (0x"),
        ("WILD_CALL", "it called 0x123456789000, which is no function of its own, in do_it ("),
    ] {
        let text = run(&fast, what, &case).error();
        assert!(text.contains(expected), "{what}: {text}");
    }
}

#[test]
fn errors_of_sched_ext_name_the_callback_and_the_line() {
    let Some(hostile) = compile(true) else { return };
    let case = Case::new(1, 50, vec![hog("hog", nice(0)), hog("other", nice(0))]);
    for (what, expected) in [
        ("ERROR", ": no more; ops.enqueue, in do_it (hostile.bpf.c:"),
        ("MISUSE", ": hog[1000] already direct-dispatched; ops.enqueue, in hostile_enqueue (host"),
    ] {
        let text = run(&hostile, what, &case).error();
        assert!(text.contains(expected), "{what}: {text}");
    }
}
