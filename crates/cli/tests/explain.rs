// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers of `schedlab explain`, for people and for programs.

mod common;
use common::{ok, schedlab};
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&ok(args).stdout).expect("the output is JSON")
}

#[test]
fn the_json_keeps_to_its_schema_under_every_scheduler() {
    let schema = json(&["schema", "explain"]);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let schedulers = json(&["list", "schedulers", "--json"]);
    let names: Vec<&str> = schedulers["schedulers"]
        .as_array()
        .or(schedulers.as_array())
        .unwrap()
        .iter()
        .map(|info| info["name"].as_str().unwrap())
        .collect();
    assert!(names.len() > 10);
    for name in names {
        let args = ["explain", "interactive", "--until", "300ms", "--scheduler", name, "--json"];
        let answer = json(&args);
        let errors: Vec<String> = validator.iter_errors(&answer).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert_eq!(answer["scheduler"], name);
        let wait = &answer["wait"];
        // The choice that ended the wait names the task that waited.
        let last = answer["decisions"].as_array().unwrap().last().unwrap();
        if wait["end_ns"].is_null() {
            // Without preemption an endless hog keeps the others waiting forever.
            assert_ne!(last["next"], wait["task"], "{name}");
        } else {
            assert_eq!(last["next"], wait["task"], "{name}");
            assert_eq!(last["time_ns"], wait["end_ns"], "{name}");
        }
        let own = &wait["cpus"][0];
        let ran: u64 =
            own["ran"].as_array().unwrap().iter().map(|r| r["ran_ns"].as_u64().unwrap()).sum();
        // On one CPU, some task runs at every moment of a wait.
        assert_eq!(Some(ran), wait["wait_ns"].as_u64(), "{name}");
    }
}

/// The wait that is explained is the greatest of the measure `wait`.
#[test]
fn the_longest_wait_is_the_measures_greatest() {
    for scheduler in ["linux-6.12", "linux-6.1", "rr", "mlfq"] {
        let run = ["sched:n=5,total=80ms", "--cpus", "2", "--scheduler", scheduler, "--json"];
        let result = json(&[&["sim"], &run[..]].concat());
        let answer = json(&[&["explain"], &run[..]].concat());
        let longest = &result["measures"]["totals"]["wait"]["ns_max"];
        assert_eq!(&answer["wait"]["wait_ns"], longest, "{scheduler}");
        for task in result["measures"]["tasks"].as_array().unwrap() {
            let name = task["name"].as_str().unwrap();
            let count = task["wait"]["count"].as_u64().unwrap();
            let args = [&["explain"], &run[..], &["--task", name]].concat();
            let answer = json(&args);
            assert_eq!(answer["wait"]["wait_ns"], task["wait"]["ns_max"], "{name}");
            assert_eq!(answer["wait"]["nr_waits"].as_u64(), Some(count), "{name}");
        }
    }
}

#[test]
fn people_see_the_numbers_and_the_choice() {
    let args = ["explain", "hogs:n=3,work=50ms", "--scheduler", "sjf", "--at", "10ms"];
    let text = ok(&args).stdout;
    assert!(text.contains("the shortest remaining CPU burst"), "{text}");
    let chosen: Vec<&str> =
        text.lines().filter(|line| line.trim_start().starts_with("->")).collect();
    assert!(chosen.len() == 1 && chosen[0].contains("50.000000 ms"), "{text}");
    let text = ok(&["explain", "hogs:n=3,work=50ms"]).stdout;
    assert!(text.contains("CPU 0, its own") && text.contains("eligible"), "{text}");
    assert!(text.contains("the earliest virtual deadline among the eligible"), "{text}");
}

#[test]
fn a_window_is_cut_where_the_limit_is() {
    let args = ["explain", "hogs:n=3,work=50ms", "--from", "0", "--to", "60ms", "--json"];
    let whole = json(&args);
    let count = whole["decisions"].as_array().unwrap().len() as u64;
    assert!(count > 5, "{count}");
    let cut = json(&[&args[..], &["--limit", "2"]].concat());
    assert_eq!(
        cut["decisions"].as_array().unwrap()[..],
        whole["decisions"].as_array().unwrap()[..2]
    );
    assert_eq!(cut["nr_decisions_omitted"].as_u64(), Some(count - 2));
}

#[test]
fn questions_that_cannot_be_answered_are_refused() {
    for (args, text) in [
        (vec!["--task", "x"], "hog-0, hog-1"),
        (vec!["--task", "hog-0", "--nth", "999"], "no wait number 999"),
        (vec!["--at", "1h"], "the run ends at"),
        (vec!["--cpu", "7"], "CPUs 0 to 0"),
        (vec!["--nth", "2"], "--task"),
        (vec!["--at", "1ms", "--task", "x"], "cannot be used with"),
        (vec!["--scheduler", "rr,fcfs"], "about one run"),
        (vec!["--from", "1"], "unit"),
    ] {
        let mut all = vec!["explain", "hogs:n=2,work=9ms"];
        all.extend(args);
        let done = schedlab(&all);
        assert_eq!(done.code, 2, "{all:?}: {}", done.stderr);
        assert!(done.stderr.contains(text), "{all:?}: {}", done.stderr);
        assert_eq!(done.stdout, "");
    }
}
