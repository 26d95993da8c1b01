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
