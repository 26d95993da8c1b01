// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files and commands of first-time users: an endless workload gets an end, textbook exercises give
//! the textbook's answer, and the program understands other names for things.

mod common;
use common::{Done, ok, schedlab_in};
use serde_json::Value;

/// Simulates a workload file.
fn sim(file: &str, args: &[&str]) -> Done {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w.json"), file).unwrap();
    schedlab_in(folder.path(), &[&["sim", "w.json"], args].concat())
}

#[test]
fn an_endless_workload_ends_after_ten_simulated_seconds_and_says_so() {
    let endless = r#"{ "tasks": { "A": { "run": "80ms" } } }"#;
    let done = sim(endless, &["--json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let run: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(run["measures"]["totals"]["makespan_ns"], Value::Null, "nothing has ended");
    assert_eq!(run["measures"]["totals"]["end_ns"], 10_000_000_000_u64);
    assert_eq!(run["warnings"][0]["code"], "endless");
    let said =
        "Task \"A\" loops for ever and the workload has no duration: the run ends after 10 s";
    assert!(done.stderr.contains(said), "{}", done.stderr);
    for args in [vec!["--until", "1s"], vec!["--scheduler", "rr", "--until", "20s"]] {
        let done = sim(endless, &args);
        assert!(!done.stderr.contains("loops for ever"), "{args:?}: {}", done.stderr);
    }
    let once = sim(r#"{ "tasks": { "A": { "run": "80ms", "loop": 1 } } }"#, &[]);
    assert!(!once.stderr.contains("loops for ever"), "{}", once.stderr);
}

#[test]
fn an_endless_workload_can_be_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = r#"{ "tasks": { "A": { "run": "80ms" }, "B": { "run": "80ms" } } }"#;
    std::fs::write(folder.path().join("w.json"), file).unwrap();
    let done = schedlab_in(folder.path(), &["explain", "w.json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("loops for ever"), "{}", done.stderr);
}

/// Round robin with a quantum of 10 ms over bursts of 80, 20, 40 and 10 ms, as on paper.
#[test]
fn round_robin_gives_the_textbook_s_completion_times() {
    let jobs = r#"{ "tasks": {
        "A": { "loop": 1, "run": "80ms" }, "B": { "loop": 1, "run": "20ms" },
        "C": { "loop": 1, "run": "40ms" }, "D": { "loop": 1, "run": "10ms" } } }"#;
    let times = |args: &[&str]| {
        let done = sim(jobs, &[&["--json", "--set", "quantum=10ms"], args].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let run: Value = serde_json::from_str(&done.stdout).unwrap();
        let tasks = run["measures"]["tasks"].as_array().unwrap().clone();
        let times: Vec<u64> =
            tasks.iter().map(|task| task["turnaround_ns"].as_u64().unwrap()).collect();
        (times, done.stderr)
    };
    let (free, said) = times(&["--scheduler", "rr"]);
    assert_eq!(free, [150_000_000, 60_000_000, 110_000_000, 40_000_000]);
    assert!(said.contains("cost nothing under rr, as in textbooks; --costs default"), "{said}");
    let (charged, said) = times(&["--scheduler", "rr", "--costs", "default"]);
    assert!(charged[0] > free[0], "{charged:?}");
    assert!(!said.contains("textbooks"), "{said}");
    let (flat, _) = times(&["--scheduler", "rr", "--machine", "laptop", "--cpus", "1"]);
    assert!(flat[0] > free[0], "a machine that is named has its own costs: {flat:?}");
}

#[test]
fn linux_models_cost_what_switching_costs() {
    let text = ok(&["sim", "hogs:n=2,work=20ms", "--json"]).stdout;
    let run: Value = serde_json::from_str(&text).unwrap();
    assert!(run["measures"]["totals"]["makespan_ns"].as_u64().unwrap() > 40_000_000, "{text}");
}

#[test]
fn names_that_people_type_are_resolved_and_said() {
    for (typed, name) in
        [("cfs", "linux-6.1"), ("6.12", "linux-6.12"), ("o1", "linux-2.6.22"), ("fifo", "fcfs")]
    {
        let done = ok(&["sim", "hogs:n=2,work=20ms", "--scheduler", typed, "--json"]);
        let run: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(run["scheduler"], name);
        assert_eq!(done.stderr.matches(&format!("note: {typed} stands for {name}")).count(), 1);
    }
    ok(&["analyze", "--help"]);
    ok(&["sim", "hogs:n=2,work=20ms", "-S", "rr"]);
}

#[test]
fn what_gets_nowhere_ends_with_an_error_that_names_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("costs"), "context_switch_ns = 900000000\n").unwrap();
    let ages = r#"{ "tasks": { "A": { "run": "1ms", "sleep": "87600h", "loop": 70 } } }"#;
    std::fs::write(folder.path().join("ages.json"), ages).unwrap();
    let spin = r#"{ "tasks": { "A": { "loop": -1, "lock": "m", "unlock": "m" } } }"#;
    std::fs::write(folder.path().join("spin.json"), spin).unwrap();
    for (args, cause) in [
        (vec!["hogs:n=3,work=50ms", "--costs", "costs"], "as a slice lasts; lower --costs"),
        (
            vec!["hogs:n=3,work=50ms", "-S", "rr", "-s", "quantum=1us", "--costs", "default"],
            "as a slice lasts; lower --costs",
        ),
        (vec!["hogs", "-S", "rr", "-s", "quantum=1ns"], "quantum"),
        (vec!["ages.json", "-S", "rr"], "292 years of simulated time"),
        (vec!["spin.json"], "a million steps"),
    ] {
        let done = schedlab_in(folder.path(), &[&["sim"], &args[..]].concat());
        assert_ne!(done.code, 0, "{args:?}: {}", done.stdout);
        let text = done.stderr.split_whitespace().filter(|word| *word != "\u{2502}");
        let text = text.collect::<Vec<_>>().join(" ");
        assert!(text.contains(cause), "{args:?}: {text}");
    }
}
