// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups that change while a workload runs: in the simulator and on a real kernel in a guest. One
//! CPU and counted time, so that nothing depends on the machine's load.

mod common;
use common::{kernel_ready, schedlab};
use serde_json::Value;
use std::path::Path;

/// Two groups of equal weight; one gets three times the weight after half of the time, and a limit
/// after three quarters.
const WORKLOAD: &str = r#"{ "name": "changes", "global": { "duration": "2s" },
  "tasks": {
    "a": { "taskgroup": "/a", "loop": -1, "run": 1000 },
    "b": { "taskgroup": "/b", "loop": -1, "run": 1000 },
    "boss": {
      "sleep0": "1s", "change0": { "taskgroup": "/a", "weight": 300 },
      "sleep1": "500ms",
      "change1": { "taskgroup": "/a", "cpu_max": { "quota": "10ms", "period": "100ms" } },
      "sleep2": "400ms" } } }"#;

/// CPU time (ms) of the tasks of both groups.
fn cpu_ms(args: &[&str]) -> [u64; 2] {
    let done = schedlab(args);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    let run: Value = serde_json::from_str(&done.stdout).unwrap();
    let tasks = run["measures"]["tasks"].as_array().unwrap();
    ["a", "b"].map(|name| {
        let task = tasks.iter().find(|task| task["name"] == name).expect("it ran");
        task["cpu_time_ns"].as_u64().unwrap() / 1_000_000
    })
}

fn file(dir: &Path) -> String {
    let path = dir.join("changes.json");
    std::fs::write(&path, WORKLOAD).unwrap();
    path.to_str().unwrap().to_owned()
}

/// 500 ms, then 375 of 500 ms, then 10 of each 100 ms.
const DUE: [u64; 2] = [930, 1_070];

fn assert_due(got: [u64; 2], who: &str) {
    let is_near = got.iter().zip(DUE).all(|(got, due)| got.abs_diff(due) <= 25);
    assert!(is_near, "{who}: {got:?} ms, due are {DUE:?} ms");
}

#[test]
fn groups_change_in_the_simulator() {
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path());
    for scheduler in ["linux-6.1", "linux-6.6", "linux-6.12", "linux-6.18", "linux-7.1"] {
        assert_due(cpu_ms(&["sim", &file, "--scheduler", scheduler, "--json"]), scheduler);
    }
}

#[test]
fn groups_change_on_a_kernel_as_in_its_model() {
    if !kernel_ready("6.12") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path());
    let kernel = cpu_ms(&["vm", &file, "--kernel", "6.12", "--json"]);
    assert_due(kernel, "kernel 6.12");
    let model = cpu_ms(&["sim", &file, "--scheduler", "linux-6.12", "--json"]);
    for (kernel, model) in kernel.into_iter().zip(model) {
        assert!(kernel.abs_diff(model) <= 15, "kernel {kernel} ms, model {model} ms");
    }
}

/// A FIFO hog next to a fair one. The limit of real-time tasks is 500 ms of each second at first,
/// and none after two seconds: only kernels before 6.12 throttle.
const LIMITED: &str = r#"{ "name": "limited", "global": { "duration": "4s" },
  "tasks": {
    "a": { "policy": "SCHED_FIFO", "priority": 1, "loop": -1, "run": 1000 },
    "b": { "loop": -1, "run": 1000 },
    "boss": { "policy": "SCHED_FIFO", "priority": 2, "loop": 1,
      "tune0": { "rt_runtime": "500ms" }, "sleep0": "2s",
      "tune1": { "rt_runtime": -1 }, "sleep1": "1s" } } }"#;

/// Tasks that sleep often next to hogs, and a task that switches protection off after half of the
/// time.
const SWITCHED: &str = r#"{ "name": "switched", "global": { "duration": "1s" },
  "tasks": {
    "a": { "instance": 2, "loop": -1, "run": 300, "sleep": 2000 },
    "b": { "instance": 2, "loop": -1, "run": 1000 },
    "boss": { "loop": 1, "sleep0": "500ms",
      "tune0": { "features": ["NO_RUN_TO_PARITY"] },
      "sleep1": "400ms" } } }"#;

fn written(dir: &Path, text: &str) -> String {
    let path = dir.join("tuned.json");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_limit_of_real_time_tasks_changes_in_models_and_is_refused_by_kernels() {
    let dir = tempfile::tempdir().unwrap();
    let file = written(dir.path(), LIMITED);
    let model = cpu_ms(&["sim", &file, "--scheduler", "linux-6.1", "--json"]);
    // Half of two seconds, then nothing.
    assert!(model[1].abs_diff(1_000) <= 40, "{model:?}");
    if !kernel_ready("6.1") {
        return;
    }
    // The kernel checks who writes a sysctl at each write, and tasks have no rights.
    let done = schedlab(&["vm", &file, "--kernel", "6.1"]);
    assert!(done.code != 0 && done.stderr.contains("rt_runtime"), "{}", done.stderr);
    assert!(done.stderr.contains("at each write"), "{}", done.stderr);
}

#[test]
fn a_kernel_switches_features_during_a_run() {
    if !kernel_ready("6.12") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = written(dir.path(), SWITCHED);
    let switches = |args: &[&str]| {
        let done = schedlab(args);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        let run: Value = serde_json::from_str(&done.stdout).unwrap();
        run["measures"]["totals"]["nr_switches"].as_u64().unwrap()
    };
    let kernel = switches(&["vm", &file, "--kernel", "6.12", "--json"]);
    let model = switches(&["sim", &file, "--scheduler", "linux-6.12", "--json"]);
    assert!(kernel.abs_diff(model) * 8 <= model, "kernel {kernel}, model {model} switches");
    // A feature that the kernel does not have is refused by its name.
    let text = SWITCHED.replace("NO_RUN_TO_PARITY", "NO_LAST_BUDDY");
    let file = written(dir.path(), &text);
    let done = schedlab(&["vm", &file, "--kernel", "6.12"]);
    assert!(done.code != 0 && done.stderr.contains("LAST_BUDDY"), "{}", done.stderr);
    let done = schedlab(&["sim", &file, "--scheduler", "linux-6.12"]);
    assert!(done.code == 2 && done.stderr.contains("LAST_BUDDY"), "{}", done.stderr);
}
