// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--analysis`: the same code for simulated runs, runs on this machine and traces that are read.

mod common;
use common::{ok, schedlab};
use serde_json::Value;

/// Two tasks that share a mutex on one CPU: each holds it for 2 ms in every round, 20 rounds.
const LOCKS: &str = r#"{
  "tasks": {
    "a": { "loop": 20, "lock": "m", "run": 2000, "unlock": "m", "sleep": 500 },
    "b": { "loop": 20, "lock": "m", "run": 2000, "sleep": 1000, "unlock": "m", "run1": 100 }
  },
  "global": { "default_policy": "SCHED_OTHER" }
}"#;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&ok(args).stdout).expect("the output is JSON")
}

/// Every part of the analysis of a run that must hold in any lane.
fn assert_it_holds(run: &Value) {
    let tasks = run["analysis"]["tasks"].as_array().expect("an analysis");
    let measured = run["measures"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), measured.len());
    for (task, measured) in tasks.iter().zip(measured) {
        assert_eq!(task["name"], measured["name"]);
        let states = task["states"].as_array().unwrap();
        let sum = |state: &str| -> u64 {
            let of = states.iter().filter(|one| one["state"] == state);
            of.map(|one| one["ns"].as_u64().unwrap()).sum()
        };
        assert_eq!(sum("running"), measured["cpu_time_ns"], "{task}");
        assert_eq!(sum("runnable"), measured["run_delay_ns"], "{task}");
        let all: u64 = states.iter().map(|one| one["ns"].as_u64().unwrap()).sum();
        assert_eq!(all, task["life_ns"], "{task}");
        let who = &task["antagonists"];
        let waited: u64 =
            ["ran_ns", "idle_ns", "unnamed_ns"].iter().map(|n| who[n].as_u64().unwrap()).sum();
        assert_eq!(waited, measured["run_delay_ns"], "{task}");
    }
    let schema: Value = serde_json::from_str(&ok(&["schema", "result"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(run).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// Time of a task blocked on an object.
fn blocked_ns(run: &Value, task: &str, object: &str) -> u64 {
    let tasks = run["analysis"]["tasks"].as_array().unwrap();
    let task = tasks.iter().find(|one| one["name"] == task).expect("the task");
    let states = task["states"].as_array().unwrap().iter();
    states.filter(|one| one["object"] == object).map(|one| one["ns"].as_u64().unwrap()).sum()
}

#[test]
fn a_simulated_run_and_its_trace_give_the_same_analysis() {
    let folder = tempfile::tempdir().unwrap();
    let (workload, trace) = (folder.path().join("locks.json"), folder.path().join("run.slt"));
    std::fs::write(&workload, LOCKS).unwrap();
    let (workload, trace) = (workload.to_str().unwrap(), trace.to_str().unwrap());
    let run = json(&["sim", workload, "--analysis", "--json", "--trace", trace]);
    assert_it_holds(&run);
    // b sleeps 1 ms and runs 2 ms in each of 20 rounds while it holds the mutex.
    assert!(blocked_ns(&run, "a", "m") > 20_000_000, "{}", run["analysis"]);
    assert_eq!(run["analysis"]["tasks"][0]["antagonists"]["tasks"][0]["name"], "b");
    let read = json(&["analyse", trace, "--analysis", "--json"]);
    assert_it_holds(&read);
    for key in ["tasks", "depth", "cpus"] {
        assert_eq!(read["analysis"][key], run["analysis"][key], "{key}");
    }
    let one = json(&["analyse", trace, "--analysis", "--json", "--task", "b"]);
    assert_eq!(one["analysis"]["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn nothing_is_analysed_unless_asked_for() {
    let run = json(&["sim", "hogs:n=2,work=5ms", "--json"]);
    assert!(run.get("analysis").is_none());
    assert_eq!(schedlab(&["sim", "hogs", "--analysis", "--slices"]).code, 2);
}

#[test]
fn the_tables_and_the_report_show_it() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("r.html");
    let args = ["sim", "hogs:n=3,work=50ms", "--cpus", "2", "--analysis", "--report"];
    let shown = ok(&[&args[..], &[report.to_str().unwrap()]].concat()).stdout;
    for text in ["runnable", "ran meanwhile", "hog-1", "p99"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let html = std::fs::read_to_string(&report).unwrap();
    assert!(html.contains("class=\"analysis\"") && html.contains("<svg class=\"curve\""));
}

/// On this machine, with what the machine allows: a trace, or counters and no analysis.
#[test]
fn a_run_on_this_machine_is_analysed() {
    let folder = tempfile::tempdir().unwrap();
    let workload = folder.path().join("locks.json");
    std::fs::write(&workload, LOCKS).unwrap();
    let run = json(&["run", workload.to_str().unwrap(), "--cpus", "0", "--analysis", "--json"]);
    if run["source"] != "bpf" {
        assert!(run.get("analysis").is_none());
        return;
    }
    assert_it_holds(&run);
    assert!(blocked_ns(&run, "a", "m") > 1_000_000, "{}", run["analysis"]);
    let run = json(&["run", "-n", "2", "--cpus", "0", "--analysis", "--json", "--", "true"]);
    assert_it_holds(&run);
}
