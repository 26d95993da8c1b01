// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab diff`: equal schedulers are equal, the first decision that differs is explained, and a
//! random search leaves a small workload.

mod common;
use common::{Done, flat, ok, schedlab_in};
use serde_json::Value;

/// A SCHED_IDLE task and a normal one that wakes often.
const IDLE: &str = r#"{ "name": "idle", "global": { "duration": "20ms" },
  "tasks": {
    "low": { "policy": "SCHED_IDLE", "loop": -1, "run": 1000 },
    "high": { "loop": -1, "sleep": 300, "run": 50 } } }"#;

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).expect("stdout is JSON")
}

#[test]
fn equal_schedulers_are_equal() {
    let text = ok(&["diff", "linux-6.12", "6.12", "interactive", "--until", "200ms"]).stdout;
    assert!(text.starts_with("A and B make the same "), "{text}");
    let result = json(&ok(&["diff", "rr", "rr", "hogs:n=3,work=1s", "--json"]));
    assert_eq!(result["same"], true);
    assert!(result["first"].is_null() && result["nr_equal"].as_u64().unwrap() > 10, "{result}");
}

#[test]
fn the_first_difference_is_told_with_its_reasons() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("idle.json"), IDLE).unwrap();
    let args = ["diff", "linux-6.12.0", "linux-6.12", "idle.json", "--costs", "zero"];
    let done = schedlab_in(folder.path(), &args);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let first = done.stdout.lines().next().unwrap();
    assert!(first.contains("A lets low run on, B picks high."), "{first}");
    for part in ["The first number that differs:", "B picks high\n", "it disagrees in "] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    let done = schedlab_in(folder.path(), &[&args[..], &["--json"]].concat());
    let result = json(&done);
    assert_eq!(result["first"]["kind"], "switch");
    assert_eq!(result["first"]["sides"][1]["running"], "high");
    let time = result["first"]["time_ns"].as_u64().unwrap();
    assert!(result["state"]["time_ns"].as_u64().unwrap() <= time, "{result}");
    let followed = &result["followed"];
    assert!(followed["nr_only_b"].as_u64().unwrap() > 0, "{followed}");
    assert!(followed["nr_decisions"].as_u64() > followed["nr_differing"].as_u64(), "{followed}");
}

#[test]
fn one_scheduler_with_two_settings_is_compared() {
    let workload = "hogs:n=3,work=50ms";
    let args = ["diff", "rr", "rr", workload, "--set-b", "quantum=10ms", "--json"];
    let done = schedlab_in(std::path::Path::new("."), &args);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let result = json(&done);
    assert_eq!(result["schedulers"][1]["tunables"][0][0], "quantum");
    assert_eq!(result["first"]["time_ns"], 10_000_000, "{result}");
    let done = schedlab_in(std::path::Path::new("."), &["diff", "rr", "no", workload]);
    assert_eq!(done.code, 2, "{}", done.stdout);
    assert!(done.stderr.contains("no scheduler is called \"no\""), "{}", done.stderr);
}

#[test]
fn measures_are_compared_over_seeds() {
    let workload = "interactive:n=4";
    let args = ["diff", "linux-6.12", "rr", workload, "--until", "500ms", "--seeds", "5"];
    let here = std::path::Path::new(".");
    let done = schedlab_in(here, &args);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let text = flat(&done.stdout);
    assert!(text.contains("B's mean run delay is ") && text.contains("over 5 seeds"), "{text}");
    let result = json(&schedlab_in(here, &[&args[..], &["--json"]].concat()));
    let measures = result["measures"]["measures"].as_array().unwrap();
    let switches = measures.iter().find(|one| one["measure"] == "nr_switches").unwrap();
    let [base, new] = ["base_mean", "new_mean"].map(|name| switches[name].as_f64().unwrap());
    let ratio = switches["ratio"]["ratio"].as_f64().unwrap();
    assert!(base > new && (ratio - new / base).abs() < 1e-9, "{switches}");
    // The runs are those of `compare`.
    let compared = ["compare", workload, "--until", "500ms", "--scheduler", "linux-6.12"];
    let more = ["--repetitions", "5", "--json"];
    let runs = json(&ok(&[&compared[..], &more].concat()));
    let runs = runs.as_array().unwrap();
    let nr_switches = |run: &Value| run["measures"]["totals"]["nr_switches"].as_f64().unwrap();
    assert_eq!(runs.len(), 5);
    assert_eq!(runs.iter().map(nr_switches).sum::<f64>() / 5.0, base, "{switches}");
    let alone = schedlab_in(here, &["diff", "rr", "rr", workload, "--seeds", "1"]);
    assert!(alone.code == 2 && alone.stderr.contains("2..=100000"), "{}", alone.stderr);
}

#[test]
fn a_random_search_leaves_a_small_workload_that_differs() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["diff", "linux-6.12.0", "linux-6.12", "--random", "500", "--json"];
    let done = schedlab_in(folder.path(), &args);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let result = json(&done);
    assert!(result["workload_text"].as_str().unwrap().lines().count() <= 10, "{result}");
    // The printed command shows the same difference.
    let command = result["command"].as_str().unwrap();
    let mut words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words.remove(0), "schedlab");
    words.push("--json");
    let again = schedlab_in(folder.path(), &words);
    assert_eq!(again.code, 1, "{command}: {}", again.stderr);
    assert_eq!(json(&again)["sentence"], result["sentence"]);
    let equal = ["diff", "linux-6.12", "linux-6.12", "--random", "30"];
    let done = schedlab_in(folder.path(), &equal);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("decide alike in 30 random workloads"), "{}", done.stdout);
}

/// A scheduler for sched_ext against a copy with another quantum.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_changed_copy_of_a_file_differs() {
    let folder = tempfile::tempdir().unwrap();
    let source = common::rr_source(folder.path());
    let changed = source.replace("quantum_ns, 100000000", "quantum_ns, 30000000");
    assert_ne!(source, changed);
    for (name, text) in [("old.bpf.c", &source), ("new.bpf.c", &changed)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let compare =
        |a: &str, b: &str| schedlab_in(folder.path(), &["diff", a, b, "hogs:n=3,work=1s"]);
    let done = compare("./old.bpf.c", "./old.bpf.c");
    if done.code == 3 {
        return schedlab_testing::skip(&done.stderr);
    }
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let done = compare("./old.bpf.c", "./new.bpf.c");
    assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.starts_with("After "), "{}", done.stdout);
    // The new one follows, and would preempt after 32 ms, which the old one does after 100 ms.
    assert!(done.stdout.contains("If B follows A's decisions"), "{}", done.stdout);
    assert!(done.stdout.contains("only B would preempt the running task"), "{}", done.stdout);
}

/// Two kernels whose slices end at ticks and between them; and a model against its kernel.
#[test]
fn real_kernels_are_compared_in_guests() {
    if !common::kernel_ready("6.12") || !common::kernel_ready("7.2") {
        return;
    }
    let here = std::path::Path::new(".");
    let args = ["diff", "vm:6.12", "vm:7.2", "hogs:n=3,work=50ms", "--json"];
    let done = schedlab_in(here, &args);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let result = json(&done);
    assert_eq!(result["sides"][1]["lane"], "vm");
    assert!(result["sides"][0]["kernel"].as_str().unwrap().starts_with("6.12."), "{result}");
    let first = &result["first"];
    assert!(first["timing"].is_null(), "{first}");
    let did = |side: usize| first["sides"][side]["did"].as_str().unwrap().to_owned();
    // The tick is after 4 ms; 7.2 ends slices of 0.7 ms by a timer.
    assert!(did(0).starts_with("lets hog-") && did(0).contains(" run on, for 3."), "{}", did(0));
    assert!(did(1).starts_with("preempts hog-"), "{}", did(1));
    assert!([" after 0.6", " after 0.7"].iter().any(|at| did(1).contains(at)), "{}", did(1));
    assert_eq!(first["sides"][0]["runnable"].as_array().unwrap().len(), 3);
    // Counted time: the same again.
    assert_eq!(json(&schedlab_in(here, &args)), result);
    let same = ok(&["diff", "linux-6.12", "vm:6.12", "hogs:n=2,work=50ms", "--until", "60ms"]);
    assert!(same.stdout.starts_with("A and B make the same 15 turns."), "{}", same.stdout);
    assert!(same.stdout.contains("linux-6.12 (a model)"), "{}", same.stdout);
    // With the costs of a guest: to the end, or until a last turn that costs decide.
    let near =
        ["diff", "linux-6.12", "vm:6.12", "hogs:n=2,work=50ms", "--machine", "guest-counted"];
    let near = schedlab_in(here, &near);
    assert!(near.code <= 1, "{}{}", near.stdout, near.stderr);
    assert!(near.stdout.contains("Equal turns begin at most"), "{}", near.stdout);
    let words: Vec<&str> = near.stdout.split_whitespace().collect();
    let turns: u32 = words.iter().find_map(|word| word.parse().ok()).expect("a number of turns");
    assert!(turns >= 24, "{}", near.stdout);
    let seeds = ["diff", "vm:6.12", "vm:7.2", "hogs:n=3,work=20ms", "--seeds", "3"];
    let text = flat(&schedlab_in(here, &seeds).stdout);
    assert!(text.contains("Of 3 runs with other seeds and starts, 3 differ first by a choice"));
    assert!(text.contains("B's mean turnaround is 1.0"), "{text}");
}

#[test]
fn what_a_comparison_with_a_kernel_cannot_have_is_refused() {
    let here = std::path::Path::new(".");
    for (sides, more, wanted) in [
        (["rr", "vm:6.12"], ["--cpus", "2"], "compared on one CPU"),
        (["vm:6.1", "vm:6.12"], ["--machine", "laptop"], "a guest is QEMU's own machine"),
    ] {
        let args = [&["diff"], &sides[..], &["hogs"], &more[..]].concat();
        let done = schedlab_in(here, &args);
        assert!(done.code == 2 && flat(&done.stderr).contains(wanted), "{}", done.stderr);
    }
    let done = schedlab_in(here, &["diff", "rr", "rr", "hogs", "--tolerance", "1ms"]);
    assert!(done.code == 2 && done.stderr.contains("with kernels"), "{}", done.stderr);
}

/// A kernel against its model with a slice of 20 ms: random search finds a workload that shows it.
#[test]
fn a_random_search_finds_where_a_kernel_and_a_wrong_model_choose_otherwise() {
    if !common::kernel_ready("6.12") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let args = ["diff", "vm:6.12", "linux-6.12", "--set-b", "base_slice=20ms"];
    let done = schedlab_in(folder.path(), &[&args[..], &["--random", "40", "--json"]].concat());
    assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
    let result = json(&done);
    assert!(result["workload_text"].as_str().unwrap().lines().count() <= 12, "{result}");
    let words: Vec<&str> = result["command"].as_str().unwrap().split(' ').skip(1).collect();
    let again = json(&schedlab_in(folder.path(), &[&words[..], &["--json"]].concat()));
    assert_eq!(again["sentence"], result["sentence"]);
}
