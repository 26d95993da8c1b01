// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--analysis`: the same code serves simulated runs, runs on this machine, and recorded traces.

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

/// Checks every part of a run's analysis that must hold in any lane.
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
    for key in ["tasks", "depth", "cpus", "starved", "wasted"] {
        assert_eq!(read["analysis"][key], run["analysis"][key], "{key}");
    }
    let one = json(&["analyse", trace, "--analysis", "--json", "--task", "b"]);
    assert_eq!(one["analysis"]["tasks"].as_array().unwrap().len(), 1);
}

/// A FIFO hog and a fair task on one CPU: the fair one is starved by a higher class until the
/// real-time limit of 950 ms in each second lets it run.
const STARVED: &str = r#"{
  "tasks": {
    "hog": { "policy": "SCHED_FIFO", "priority": 10, "run": 3000000 },
    "fair": { "run": 1000 }
  },
  "global": { "default_policy": "SCHED_OTHER" }
}"#;

#[test]
fn starvation_and_its_cause_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starved.json");
    std::fs::write(&path, STARVED).unwrap();
    let workload = path.to_str().unwrap();
    let args = ["sim", workload, "--until", "900ms", "--analysis", "--json", "--starved-after"];
    let run = json(&[&args[..], &["500ms"]].concat());
    let found = run["analysis"]["starved"]["longest"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["name"], &found[0]["cause"]), (&"fair".into(), &"higher-class".into()));
    assert_eq!((&found[0]["is_open"], &found[0]["ns"]), (&true.into(), &900_000_000.into()));
    assert_eq!(found[0]["ran"][0]["name"], "hog");
    // Under ideal sharing it would have run half of the time.
    let fair = &run["analysis"]["tasks"][1]["lag"];
    let behind = fair["behind_ns_max"].as_u64().unwrap();
    assert!(behind.abs_diff(450_000_000) <= 1, "{fair}");
    let none = json(&[&args[..], &["901ms"]].concat());
    assert_eq!(none["analysis"]["starved"]["count"], 0);
    let shown = ok(&["sim", workload, "--until", "900ms", "--analysis"]).stdout;
    assert!(shown.contains("starved: 1 wait of 100.0 ms or longer"), "{shown}");
    assert_eq!(schedlab(&["sim", workload, "--starved-after", "1s"]).code, 2);
}

/// Two tasks are bound to one CPU and leave the other one idle. That is no violation.
#[test]
fn affinity_is_no_violation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pinned.json");
    let text = r#"{ "tasks": { "a": { "instance": 2, "loop": 1, "cpus": [0], "run": 50000 } } }"#;
    std::fs::write(&path, text).unwrap();
    let args = ["sim", path.to_str().unwrap(), "--cpus", "2", "--analysis", "--json"];
    let run = json(&args);
    assert_eq!(run["analysis"]["wasted"]["count"], 0);
    assert!(run["analysis"]["depth"]["max"] == 2 && run["analysis"]["cpus"][1]["max"] == 0);
    // The lag counts CPU 0 alone: no task is behind by more than a slice.
    let lag = run["analysis"]["tasks"][0]["lag"]["behind_ns_max"].as_u64().unwrap();
    assert!(lag < 10_000_000, "{lag}");
}

/// A Perfetto trace shows the virtual runtimes of a scheduler that has them, and the run stays the
/// same.
#[test]
fn a_perfetto_trace_has_the_virtual_runtimes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.pftrace");
    let has_vruntime = |scheduler: &str, more: &[&str]| {
        let args = ["sim", "hogs:n=3,work=20ms", "--scheduler", scheduler, "--json"];
        let plain = ok(&args).stdout;
        let trace = ["--trace", path.to_str().unwrap()];
        let traced = ok(&[&args[..], &trace, more].concat()).stdout;
        assert_eq!(plain, traced);
        let bytes = std::fs::read(&path).unwrap();
        bytes.windows(8).any(|window| window == b"vruntime")
    };
    assert!(has_vruntime("linux-6.12", &[]) && has_vruntime("linux-6.1", &[]));
    assert!(!has_vruntime("fcfs", &[]) && !has_vruntime("linux-6.12", &["--no-counters"]));
    assert_eq!(schedlab(&["sim", "hogs", "--no-counters"]).code, 2);
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
    let (_, analysis) =
        html.split_once("<section class=\"analysis\"").expect("a section of its own");
    assert!(analysis.contains("<svg class=\"chart\""), "the section has its figures");
}

/// On this machine, within what it allows: a trace, or else counters and no analysis.
#[test]
fn a_run_on_this_machine_is_analysed() {
    let folder = tempfile::tempdir().unwrap();
    let workload = folder.path().join("locks.json");
    std::fs::write(&workload, LOCKS).unwrap();
    let run = json(&["run", workload.to_str().unwrap(), "--cpus", "1", "--analysis", "--json"]);
    if run["source"] != "bpf" {
        assert!(run.get("analysis").is_none());
        return schedlab_testing::skip("no trace of this machine can be recorded");
    }
    assert_it_holds(&run);
    assert!(blocked_ns(&run, "a", "m") > 1_000_000, "{}", run["analysis"]);
    let run = json(&["run", "-n", "2", "--cpus", "1", "--analysis", "--json", "--", "true"]);
    assert_it_holds(&run);
}

#[test]
fn compared_runs_are_analysed_too() {
    let args = ["compare", "hogs:n=3,work=50ms", "--scheduler", "rr,linux-6.12", "--json"];
    let runs = json(&[&args[..], &["--analysis", "--starved-after", "5ms"]].concat());
    let runs = runs.as_array().expect("two runs");
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_it_holds(run);
        assert_eq!(run["analysis"]["starved"]["threshold_ns"], 5_000_000);
    }
    assert!(json(&args)[0].get("analysis").is_none());
    let refused = schedlab(&["compare", "sweep.toml", "--analysis"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("--analysis"), "{}", refused.stderr);
}

/// Four hogs of 50 ms on one CPU, first come, first served: 3, 2, 1 and no task wait, each for
/// 50 ms.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn dispatch_queues_have_a_row_and_a_counter() {
    let fifo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/scx/fifo.bpf.c");
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("run.pftrace");
    let trace = trace.to_str().unwrap();
    let args = ["sim", "hogs:n=4,work=50ms", "--cpus", "1", "--scheduler", fifo, "--analysis"];
    let done = schedlab(&[&args[..], &["--json", "--trace", trace]].concat());
    if done.code == 3 {
        return schedlab_testing::skip(done.stderr);
    }
    let run: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_it_holds(&run);
    let [queue] = &run["analysis"]["queues"].as_array().unwrap()[..] else {
        panic!("only the queue of CPU 0 ever held a task: {}", run["analysis"]["queues"])
    };
    let (name, depth) = (queue["queue"].as_str().unwrap(), &queue["depth"]);
    let (mean, max) = (depth["mean"].as_f64().unwrap(), depth["max"].as_u64().unwrap());
    assert!((mean - 1.5).abs() < 0.01 && max == 3, "{depth}");
    assert!(depth["curve"]["mean"].as_array().unwrap().len() > 10, "{depth}");
    let trace = std::fs::read(trace).unwrap();
    assert!(trace.windows(name.len()).any(|text| text == name.as_bytes()), "{name}");
    let text = ok(&args).stdout;
    assert!(text.contains("tasks in dispatch queues") && text.contains(name), "{text}");
    let plain = json(&["sim", "hogs:n=4,work=50ms", "--cpus", "1", "--analysis", "--json"]);
    assert!(plain["analysis"]["queues"].is_null(), "linux-6.12 has no dispatch queue");
}
