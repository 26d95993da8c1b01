// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab check`: a broken rule gives files and commands that show it; a sound scheduler passes.

mod common;
use common::{Done, ok, schedlab_in};
use serde_json::Value;
use std::path::{Path, PathBuf};

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
    for part in [
        "rt-strict: No task",
        "holds for:",
        "tolerance:",
        "traps:",
        "source:",
        "Known limits",
        "What no rule checks:\nA task wakes as soon as",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let rules: Value = json(&ok(&["check", "--rules", "--json"]));
    assert!(rules.as_array().unwrap().len() > 12);
}

/// A run that fails has no explanation, so none is promised.
#[test]
fn a_policy_that_throws_is_not_said_to_be_explained() {
    let folder = tempfile::tempdir().unwrap();
    let policy = "policy({ pick(cpu, waiting, now) { throw new Error('oops'); } });";
    std::fs::write(folder.path().join("x.js"), policy).unwrap();
    let done = schedlab_in(folder.path(), &["check", "./x.js", "--seeds", "10"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stdout.contains("schedlab-check holds it and the trace.\n"), "{}", done.stdout);
    assert!(!done.stdout.contains("Explain it"), "{}", done.stdout);
}

#[test]
fn a_rule_can_be_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let check = |args: &[&str]| schedlab_in(folder.path(), &[&["check"][..], args].concat());
    let found = check(&["linux-6.12+P22", "--seeds", "400"]);
    assert_eq!(found.code, 1, "{}{}", found.stdout, found.stderr);
    let file = "schedlab-check/linux-6.12-P22-idle-protection.finding.json";
    assert!(folder.path().join(file).exists(), "{}", found.stdout);
    let args = ["linux-6.12+P22", "--case", file];
    assert_eq!(check(&args).code, 1);
    let skipped = check(&[&args[..], &["--skip", "idle-protection"]].concat());
    assert_eq!(skipped.code, 0, "{}{}", skipped.stdout, skipped.stderr);
    let wrong = check(&["rr", "--skip", "nonsense"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("`schedlab check --rules` lists them"), "{}", wrong.stderr);
}

#[test]
fn known_bugs_are_listed_and_found_by_name() {
    let text = ok(&["check", "--bugs"]).stdout;
    for part in ["P22: a SCHED_IDLE task", "schedulers: linux-", "not modelled: ", "kernels: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let bugs: Value = json(&ok(&["check", "--bugs", "--json"]));
    assert_eq!(bugs.as_array().unwrap().len(), 39);
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
fn lane_host_is_refused() {
    let done = schedlab_in(Path::new("."), &["check", "rr", "--lane", "host"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("cases are checked in lanes sim and vm only"), "{}", done.stderr);
}

/// The files of a corpus.
fn corpus(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn found_cases_are_kept_and_checked_first() {
    let folder = tempfile::tempdir().unwrap();
    let check = |args: &[&str]| {
        let words: Vec<&str> = ["check", "linux-6.12+P22"].iter().chain(args).copied().collect();
        schedlab_in(folder.path(), &words)
    };
    let found = check(&["--seeds", "400", "--corpus", "kept", "-o", "one"]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    let kept = corpus(&folder.path().join("kept"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    let name = kept[0].file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with("linux-6.12-P22-idle-protection-"), "{name}");
    // Another directory for findings: the corpus alone decides what is checked first.
    let again = check(&["--seeds", "1", "--corpus", "kept", "-o", "two"]);
    assert_eq!(again.code, 1, "{}", again.stderr);
    assert!(again.stderr.contains("still breaks rule idle-protection"), "{}", again.stderr);
    assert!(again.stdout.contains("in a stored case"), "{}", again.stdout);
    assert_eq!(corpus(&folder.path().join("kept")), kept, "nothing is stored twice");
    // Its file stands for the case; a scheduler without the bug passes it.
    let file = format!("kept/{name}");
    let cured = schedlab_in(folder.path(), &["check", "linux-6.12", "--case", &file]);
    assert_eq!(cured.code, 0, "{}", cured.stderr);
    let buggy = check(&["--case", &file, "-o", "three"]);
    assert_eq!(buggy.code, 1, "{}", buggy.stderr);
    // A damaged file is skipped; the good one still counts.
    std::fs::write(folder.path().join("kept/a.case.json"), "{").unwrap();
    let done = check(&["--seeds", "1", "--corpus", "kept", "-o", "two"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stderr.contains("a stored case is skipped"), "{}", done.stderr);
    std::fs::remove_file(&kept[0]).unwrap();
    let done = check(&["--seeds", "1", "--corpus", "kept", "-o", "two"]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
}

/// A rule of pairs: both workloads are there, and a command for each.
#[test]
fn a_pair_that_differs_has_two_workloads() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["check", "lottery", "--known", "--seeds", "200", "-o", "found", "--json"];
    let done = schedlab_in(folder.path(), &args);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let result = json(&done);
    let finding = &result["schedulers"][0]["finding"];
    assert_eq!(finding["rule"], "other-cpu", "{result}");
    let text = |name: &str| finding[name].as_str().unwrap().to_owned();
    let read =
        |name: &str| std::fs::read_to_string(folder.path().join("found").join(text(name))).unwrap();
    assert!(!read("workload").contains("elsewhere") && read("changed").contains("elsewhere"));
    for command in ["command", "changed_command", "explain_command"] {
        let done = schedlab_in(folder.path(), &words(&text(command)));
        assert_eq!(done.code, 0, "{command}: {}", done.stderr);
    }
    // Without --known the corpus has a case of a known limit, which breaks nothing.
    let args = ["check", "lottery", "--seeds", "5", "-o", "found"];
    let done = schedlab_in(folder.path(), &args);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("does not break rule other-cpu"), "{}", done.stderr);
    assert!(done.stdout.contains("in 1 stored case and 5 cases"), "{}", done.stdout);
}

/// Random cases on a real kernel: none breaks a rule of the trace, and a case repeats.
#[test]
fn a_real_kernel_passes_random_cases() {
    if !common::kernel_ready("6.12") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let args = ["check", "6.12", "--lane", "vm", "--seeds", "12", "--json"];
    let done = schedlab_in(folder.path(), &args);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let result = json(&done);
    let checked = &result["schedulers"][0];
    assert_eq!(
        (&checked["nr_cases"], &checked["finding"]),
        (&12.into(), &Value::Null),
        "{checked}"
    );
    assert!(checked["nr_refused"].as_u64().unwrap() < 4, "{checked}");
}

/// The reweight that starves (P01) on a real kernel, and on a mended one. Two CPUs need QEMU 8.1.
#[test]
fn a_real_kernel_starves_a_task_and_a_later_one_does_not() {
    const STARVED: &str = r#"{ "global": { "duration": "2s" }, "tasks": {
      "sleepy": { "cpus": [0], "taskgroup": "/g", "loop": -1, "run": "50us", "sleep": "50us" },
      "near":   { "cpus": [0], "taskgroup": "/g", "loop": -1, "run": "1ms" },
      "far":    { "cpus": [1], "taskgroup": "/g", "loop": -1, "run": "1ms" },
      "victim": { "cpus": [0], "loop": -1, "run": "1ms" } } }"#;
    if !common::kernel_ready("6.18") || !common::kernel_ready("7.2") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w.json"), STARVED).unwrap();
    // CPU time of the victim (ms), and the release.
    let victim = |kernel: &str| {
        let args = ["vm", "w.json", "--kernel", kernel, "--cpus", "2", "--json"];
        let done = schedlab_in(folder.path(), &args);
        // Without a QEMU that is new enough, or if three runs differ.
        if matches!(done.code, 1 | 3) {
            schedlab_testing::skip(&done.stderr);
            return None;
        }
        assert_eq!(done.code, 0, "{}", done.stderr);
        let run = json(&done);
        let tasks = run["measures"]["tasks"].as_array().unwrap().clone();
        let victim = tasks.iter().find(|task| task["name"] == "victim").unwrap();
        let release = run["machine"]["kernel"].as_str().unwrap().to_owned();
        Some((victim["cpu_time_ns"].as_u64().unwrap() / 1_000_000, release))
    };
    // The rules of the trace see it, too.
    std::fs::write(folder.path().join("w.case.json"), case_file(STARVED)).unwrap();
    let judged = |kernel: &str| {
        let args = ["check", kernel, "--lane", "vm", "--known", "--case", "w.case.json"];
        schedlab_in(folder.path(), &args)
    };
    let (Some((buggy, release)), Some((mended, _))) = (victim("6.18"), victim("7.2")) else {
        return;
    };
    assert!(mended > 500, "{mended} ms");
    let done = judged("7.2");
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    // Releases from 6.18.45 on are mended, too.
    let patch = release.split(['.', '+', '-']).nth(2).and_then(|text| text.parse::<u32>().ok());
    if patch.is_some_and(|patch| patch < 45) {
        assert!(buggy < 100, "{release}: {buggy} ms");
        let done = judged("6.18");
        assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
        assert!(done.stdout.starts_with("wait: ") && done.stdout.contains("\"victim\""));
    }
}

/// A file of a corpus with this workload, on two CPUs of a guest.
fn case_file(workload: &str) -> String {
    let file = serde_json::json!({
        "schema_version": 1, "scheduler": "6.18", "tunables": [], "lane": "vm", "rule": "wait",
        "seed": 1, "hz": 250, "has_costs": false, "core": [0, 1], "llc": [0, 0], "node": [0, 0],
        "workload": workload,
    });
    file.to_string()
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
    // The rule, the recipe and the workload are in the corpus, too.
    assert_eq!(corpus(&folder.path().join("found/corpus")).len(), 1);
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
