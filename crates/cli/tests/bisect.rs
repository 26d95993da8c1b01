// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab bisect`: names the first bad scheduler of a list, and the first bad commit of a file.

mod common;
use common::{Done, schedlab_in};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).expect("stdout is JSON")
}

/// A woken normal task waits for a SCHED_IDLE task's slice up to Linux 6.12.0.
const IDLE: &str = r#"{ "name": "idle", "global": { "duration": "20ms" },
  "tasks": {
    "low": { "policy": "SCHED_IDLE", "loop": -1, "run": 1000 },
    "high": { "loop": -1, "sleep": 300, "run": 50 } } }"#;

#[test]
fn the_first_bad_scheduler_is_named_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("idle.json"), IDLE).unwrap();
    let args = ["bisect", "linux-7.2", "linux-7.1", "linux-6.18", "linux-6.12", "linux-6.12.0"];
    let rest = ["--bad", "high:wait_ns_max>300us", "--costs", "zero"];
    let end = ["--", "idle.json"];
    let done = schedlab_in(folder.path(), &[&args[..], &rest, &end].concat());
    assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.starts_with("step 1, linux-7.2: good\n"), "{}", done.stdout);
    let sentence = "The first bad version is linux-6.12.0; the last good one is linux-6.12.";
    assert!(done.stdout.contains(sentence), "{}", done.stdout);
    assert!(done.stdout.contains("A picks high, B lets low run on."), "{}", done.stdout);
    let result = json(&schedlab_in(folder.path(), &[&args[..], &rest, &["--json"], &end].concat()));
    assert_eq!(result["first_bad"], "linux-6.12.0");
    assert_eq!(result["diff"]["first"]["kind"], "switch");
    // The other way round, the first is bad already.
    let args = ["bisect", "linux-6.12.0", "linux-6.12"];
    let done = schedlab_in(folder.path(), &[&args[..], &rest, &end].concat());
    assert_eq!(done.code, 2, "{}", done.stdout);
    assert!(done.stderr.contains("is bad already"), "{}", done.stderr);
    // Without --bad no rule is broken and no expectation fails.
    let done = schedlab_in(folder.path(), &["bisect", "rr", "fcfs", "--", "hogs:n=2,work=1ms"]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("No version is bad: fcfs is good."), "{}", done.stdout);
}

#[test]
fn an_expectation_of_the_workload_decides() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{ "name": "w", "tasks": { "a": { "instance": 2, "run": 300000 } },
      "expect": [ { "measure": "nr_switches", "at_most": 5 } ] }"#;
    std::fs::write(folder.path().join("w.json"), text).unwrap();
    let done = schedlab_in(folder.path(), &["bisect", "fcfs", "linux-6.12", "--", "w.json"]);
    assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("linux-6.12: bad: nr_switches is "), "{}", done.stdout);
    let done = schedlab_in(folder.path(), &["bisect", "fcfs", "--", "w.json"]);
    assert!(done.code == 2 && done.stderr.contains("one scheduler is no list"), "{}", done.stderr);
    let bad = ["bisect", "fcfs", "rr", "--bad", "nr_switches", "--", "w.json"];
    assert_eq!(schedlab_in(folder.path(), &bad).code, 2);
}

fn git(folder: &Path, args: &[&str]) {
    let settings =
        ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    let done = Command::new("git").current_dir(folder).args(settings).args(args).output();
    let done = done.expect("git can be started");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A repository whose fourth commit makes the quantum short; the third does not compile. The names
/// of directory and file look like options.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_first_bad_commit_is_named() {
    if Command::new("git").arg("--version").output().is_err() {
        return schedlab_testing::skip("git is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("--all $(x)");
    std::fs::create_dir(&place).unwrap();
    let source = common::rr_source(&place);
    let short = source.replace("quantum_ns, 100000000", "quantum_ns, 2000000");
    git(folder.path(), &["init", "-q"]);
    let versions = [
        ("first", source.clone()),
        ("a remark", source.clone() + "// A remark.\n"),
        ("broken", source.clone() + "this does not compile\n"),
        ("shorten the quantum", short.clone()),
        ("another remark", short + "// Another remark.\n"),
    ];
    for (subject, text) in &versions {
        std::fs::write(place.join("--rr x.bpf.c"), text).unwrap();
        git(folder.path(), &["add", "."]);
        git(folder.path(), &["commit", "-q", "-m", subject]);
    }
    let range = ["bisect", "--git", "HEAD~4..HEAD", "./--rr x.bpf.c", "--bad", "nr_switches>100"];
    let done = schedlab_in(&place, &[&range[..], &["--", "hogs:n=2,work=400ms"]].concat());
    if done.code == 3 {
        return schedlab_testing::skip(&done.stderr);
    }
    assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
    let line = done.stdout.lines().find(|line| line.starts_with("The first bad version is "));
    let line = line.expect("there is a result");
    assert!(line.contains("(shorten the quantum)"), "{line}");
    assert!(line.contains("one of 1 before it that cannot be tried"), "{line}");
    assert!(line.contains("(a remark)"), "{line}");
    assert!(done.stdout.contains("What they decide differently"), "{}", done.stdout);
    for bad in ["--output=x..HEAD", "HEAD..--output=x", "nowhere..HEAD", "HEAD"] {
        let option = format!("--git={bad}");
        let args = ["bisect", &option, "./--rr x.bpf.c", "--", "hogs"];
        let done = schedlab_in(&place, &args);
        assert_eq!(done.code, 2, "{bad}: {}{}", done.stdout, done.stderr);
    }
    assert!(!place.join("x").exists(), "git took a name for an option");
}
