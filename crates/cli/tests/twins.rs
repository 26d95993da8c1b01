// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sched_ext schedulers of bpf/scx, compiled for this machine and simulated, decide like the
//! models of the same rules. They give the same slices to the nanosecond, on one CPU without costs.
//! docs/reference/sched-ext-schedulers.md lists the differences and their reasons.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;
use common::schedlab;
use serde_json::Value;
use std::path::Path;

/// A slice: task, begin and end.
type Slice = (String, u64, u64);

fn folder(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).display().to_string()
}

/// Runs `workload` and returns its slices, with adjacent ones joined. `None` means that this
/// machine cannot compile schedulers, and the test is skipped.
fn slices(workload: &str, hz: &str, scheduler: &str, settings: &[&str]) -> Option<Vec<Slice>> {
    let mut args: Vec<&str> = workload.split(' ').collect();
    args.insert(0, "sim");
    args.extend(["--scheduler", scheduler, "--hz", hz, "--costs", "zero", "--slices"]);
    for setting in settings {
        args.extend(["--set", setting]);
    }
    let done = schedlab(&args);
    if done.code == 3 {
        schedlab_testing::skip(done.stderr);
        return None;
    }
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    let mut slices: Vec<Slice> = Vec::new();
    for line in done.stdout.lines() {
        let slice: Value = serde_json::from_str(line).unwrap();
        let name = slice["name"].as_str().unwrap();
        let (start, end) = (slice["start_ns"].as_u64().unwrap(), slice["end_ns"].as_u64().unwrap());
        match slices.last_mut() {
            Some(last) if last.0 == name && last.2 == start => last.2 = end,
            _ => slices.push((name.into(), start, end)),
        }
    }
    assert!(slices.len() >= 4, "{args:?}");
    Some(slices)
}

/// Checks that `scheduler` of bpf/scx and its `model` agree on `workloads`.
fn agree(scheduler: &str, model: &str, hz: &str, workloads: &[&str], settings: &[&str]) {
    let source = folder(&format!("../../bpf/scx/{scheduler}.bpf.c"));
    for workload in workloads {
        let workload = match workload.strip_suffix(".json") {
            Some(_) => folder(&format!("tests/twins/{workload}")),
            None => (*workload).into(),
        };
        let Some(compiled) = slices(&workload, hz, &source, settings) else { return };
        let modelled = slices(&workload, hz, model, &[]).unwrap();
        let differs = compiled.iter().zip(&modelled).position(|(one, other)| one != other);
        assert!(
            compiled == modelled,
            "{scheduler} and {model} under {workload} at {hz} ticks a second: slice {differs:?}"
        );
    }
}

const HOGS: &str = "hogs:n=4,work=300ms";
const FORKS: &str = "cpu_bound:n=12";
const INTERACTIVE: &str = "interactive:n=3 --until 1s";
const EVERY: [&str; 7] =
    [HOGS, FORKS, INTERACTIVE, "nice.json", "sleep.json", "yield.json", "groups.json"];
/// Workloads in which tasks stop between ticks only by yielding.
const AT_TICKS: [&str; 6] = [HOGS, FORKS, INTERACTIVE, "nice.json", "sleep.json", "groups.json"];
/// Workloads in which no task sleeps or yields.
const BUSY: [&str; 4] = [HOGS, FORKS, "nice.json", "groups.json"];

#[test]
fn fifo_is_first_come_first_served() {
    agree("fifo", "fcfs", "250", &[HOGS, FORKS, "nice.json", "sleep.json", "yield.json"], &[]);
}

#[test]
fn round_robin() {
    agree("rr", "rr", "1000", &AT_TICKS, &[]);
    agree("rr", "rr", "250", &BUSY, &[]);
}

#[test]
fn virtual_time() {
    agree("vtime", "vtime", "1000", &BUSY, &[]);
    agree("vtime", "vtime", "250", &BUSY, &[]);
}

#[test]
fn feedback_queues() {
    agree("mlfq", "mlfq", "1000", &AT_TICKS, &[]);
    agree("mlfq", "mlfq", "250", &BUSY, &[]);
}

#[test]
fn weighted_round_robin() {
    agree("wrr", "wrr", "250", &EVERY, &[]);
    agree("wrr", "wrr", "1000", &EVERY, &[]);
}

#[test]
fn groups_take_turns() {
    agree("group-wrr", "group-wrr", "250", &EVERY, &[]);
    agree("group-wrr", "group-wrr", "1000", &EVERY, &[]);
}

#[test]
fn random_moves_draw_the_same_numbers() {
    agree("rmlfq", "rmlfq-design", "250", &EVERY, &["seed=1"]);
    agree("rmlfq", "rmlfq-as-built-64", "250", &BUSY, &["seed=1", "variant=1"]);
    agree("rmlfq", "rmlfq-as-built-32", "250", &BUSY, &["seed=1", "variant=2"]);
}

#[test]
fn staircase() {
    for hz in ["100", "250", "1000"] {
        agree("sd", "sd-0.48", hz, &EVERY, &[]);
    }
}
