// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab load` and `schedlab attach`, as far as tests can check them without sched_ext in the
//! kernel.
#![cfg(target_os = "linux")]

mod common;
use common::{flat, ok, schedlab};
use std::process::Command;

fn has_sched_ext() -> bool {
    std::path::Path::new("/sys/kernel/sched_ext").exists()
}

/// Whether this build has schedulers. A build without clang has none and skips the test.
fn is_built() -> bool {
    let done = schedlab(&["load", "rr", "--describe"]);
    if done.code == 3 {
        schedlab_testing::skip(&done.stderr);
    }
    done.code == 0
}

#[test]
fn schedulers_are_listed_with_their_twins() {
    let text = ok(&["load", "--list"]).stdout;
    for name in ["fifo", "rr", "vtime", "mlfq", "wrr", "group-wrr", "rmlfq", "sd"] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {text}");
    }
    let json = ok(&["load", "--list", "--json"]).stdout;
    let list: serde_json::Value = serde_json::from_str(&json).unwrap();
    for entry in list.as_array().unwrap() {
        let twin = entry["twin"].as_str().unwrap();
        ok(&["list", "schedulers", twin]);
    }
}

#[test]
fn a_scheduler_describes_itself() {
    if !is_built() {
        return;
    }
    let text = ok(&["load", "wrr", "--describe"]).stdout;
    assert!(text.contains("slice_foreground, slice"), "{text}");
    assert!(text.contains("100ms") && text.contains("1ms..3600s"), "{text}");
    assert!(text.contains("nr_picked") && text.contains("wait_ns"), "{text}");
    let json = ok(&["load", "rmlfq", "--describe", "--json"]).stdout;
    let description: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(description["name"], "rmlfq");
    let options = description["options"].as_array().unwrap();
    let variant = options.iter().find(|option| option["name"] == "variant").unwrap();
    assert_eq!(variant["kind"]["choice"][0], "design");
}

#[test]
fn what_cannot_be_loaded_says_why() {
    let done = schedlab(&["load", "cfs"]);
    assert_eq!(done.code, 2);
    assert!(flat(&done.stderr).contains("known: fifo, rr"), "{}", done.stderr);
    assert_eq!(schedlab(&["load"]).code, 2);
    if !is_built() {
        return;
    }
    let done = schedlab(&["load", "wrr", "--set", "slize_ms=50"]);
    assert_eq!(done.code, 2);
    let text = flat(&done.stderr);
    assert!(text.contains("no option \"slize_ms\"") && text.contains("slice_foreground"), "{text}");
    let done = schedlab(&["load", "wrr", "--set", "slice_ms=0"]);
    assert_eq!(done.code, 2);
    assert!(flat(&done.stderr).contains("outside of 1ms..3600s"), "{}", done.stderr);
    let done = schedlab(&["load", "./no-such.bpf.c"]);
    assert_eq!(done.code, 2);
    assert!(flat(&done.stderr).contains("no such file"), "{}", done.stderr);
    if !has_sched_ext() {
        let done = schedlab(&["load", "wrr", "--set", "slice_ms=50", "--once"]);
        assert_eq!(done.code, 3, "{}", done.stderr);
        let text = flat(&done.stderr);
        assert!(text.contains("has no sched_ext") && text.contains("schedlab vm"), "{text}");
    }
}

#[test]
fn a_running_task_is_shown_and_switched() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = child.id().to_string();
    // A new process has its parent's name until it executes its program.
    let name = || std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    while name().trim() != "sleep" {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let shown = schedlab(&["attach", &pid]);
    let switched = schedlab(&["attach", &pid, "--policy", "batch", "--json"]);
    let ext = schedlab(&["attach", &pid, "--policy", "ext"]);
    let mixed = schedlab(&["attach", &pid, "--policy", "batch", "--priority", "5"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("sleep") && shown.stdout.contains(&pid), "{}", shown.stdout);
    assert_eq!(switched.code, 0, "{}", switched.stderr);
    let tasks: serde_json::Value = serde_json::from_str(&switched.stdout).unwrap();
    assert_eq!(tasks[0]["policy"], "BATCH");
    if !has_sched_ext() {
        assert_eq!(ext.code, 3, "{}", ext.stdout);
        assert!(flat(&ext.stderr).contains("this kernel has no sched_ext"), "{}", ext.stderr);
    }
    assert_eq!(mixed.code, 2);
    assert!(flat(&mixed.stderr).contains("BATCH has no priority"), "{}", mixed.stderr);
}

#[test]
fn tasks_that_do_not_exist_and_policies() {
    let done = schedlab(&["attach", "2000000000"]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(flat(&done.stderr).contains("there is no task 2000000000"), "{}", done.stderr);
    let text = ok(&["attach", "--list"]).stdout;
    for name in ["OTHER", "FIFO", "RR", "BATCH", "IDLE", "DEADLINE", "EXT"] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {text}");
    }
    assert!(text.contains("1 to 99"), "{text}");
}
