// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab check`: a broken rule gives files and commands that show it; a sound scheduler passes.

mod common;
use common::{Done, ok, schedlab_in};
use serde_json::Value;
use std::path::Path;

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).expect("stdout is JSON")
}

/// The words of a printed command, without the program.
fn words(command: &str) -> Vec<&str> {
    let mut words = command.split(' ');
    assert_eq!(words.next(), Some("schedlab"));
    words.collect()
}

#[test]
fn the_rules_are_listed() {
    let text = ok(&["check", "--rules"]).stdout;
    for part in ["rt-strict: No task", "holds for:", "tolerance:", "traps:", "source:"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let rules: Value = json(&ok(&["check", "--rules", "--json"]));
    assert!(rules.as_array().unwrap().len() > 12);
}

#[test]
fn known_bugs_are_listed_and_found_by_name() {
    let text = ok(&["check", "--bugs"]).stdout;
    for part in ["P22: a SCHED_IDLE task", "schedulers: linux-", "not modelled: ", "kernels: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let bugs: Value = json(&ok(&["check", "--bugs", "--json"]));
    assert_eq!(bugs.as_array().unwrap().len(), 38);
    let folder = tempfile::tempdir().unwrap();
    let done = schedlab_in(folder.path(), &["check", "6.12+P22", "--seeds", "400"]);
    assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("linux-6.12+P22 breaks rule idle-protection"), "{}", done.stdout);
    let done = schedlab_in(folder.path(), &["check", "linux-7.1+P11"]);
    assert_eq!(done.code, 2, "{}", done.stderr);
}

#[test]
fn a_sound_scheduler_passes() {
    let folder = tempfile::tempdir().unwrap();
    let done = schedlab_in(folder.path(), &["check", "rr", "linux-7.1", "--seeds", "40"]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("rr breaks no rule in 40 cases"), "{}", done.stdout);
    assert!(done.stdout.contains("linux-7.1 breaks no rule in "), "{}", done.stdout);
    assert!(!folder.path().join("schedlab-check").exists(), "nothing was found");
}

#[test]
fn only_lane_sim_is_checked() {
    let done = schedlab_in(Path::new("."), &["check", "rr", "--lane", "vm"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("cases are checked in lane sim only"), "{}", done.stderr);
}

/// A scheduler for sched_ext that forgets tasks.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_finding_has_files_commands_and_is_checked_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/scx/bad/stall.bpf.c");
    let args = ["check", file, "--seeds", "400", "-o", "found", "--json"];
    let done = schedlab_in(folder.path(), &args);
    if done.code == 3 {
        return schedlab_testing::skip(&done.stderr);
    }
    assert_eq!(done.code, 1, "{}", done.stderr);
    let result = json(&done);
    let finding = &result["schedulers"][0]["finding"];
    let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    assert!(finding["rule"].is_string(), "{result}");
    let workload = folder.path().join("found").join(text("workload"));
    let lines = std::fs::read_to_string(&workload).unwrap().lines().count();
    assert!(lines <= 10, "{lines} lines");
    for command in ["command", "explain_command"] {
        let command = text(command);
        let done = schedlab_in(folder.path(), &words(&command));
        assert!(done.code <= 1, "{command}: {}", done.stderr);
    }
    // Another scheduler plays the same case.
    let stored = format!("found/{}", text("workload").replace(".json", ".finding.json"));
    let other = schedlab_in(folder.path(), &["check", "linux-7.1", "--case", &stored]);
    assert_eq!(other.code, 0, "{}", other.stderr);
    assert!(other.stdout.contains("breaks no rule in the stored case"), "{}", other.stdout);
    let again = schedlab_in(folder.path(), &args[..args.len() - 1]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("still breaks rule"), "{}", again.stderr);
    assert!(again.stdout.contains("in a stored case"), "{}", again.stdout);
}

#[test]
fn an_unknown_bug_is_refused_with_the_list_of_bugs() {
    let here = std::path::Path::new(".");
    let done = schedlab_in(here, &["sim", "hogs", "--scheduler", "linux-7.1+P99"]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(done.stderr.contains("check --bugs"), "{}", done.stderr);
}
