// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workload files with expectations: exit codes, the table, the JSON; and the schema of workload
//! files.

mod common;
use common::{ok, schedlab_in};
use serde_json::Value;

/// Two hogs of nice 0 and 5 for 2 s on one CPU: weights 1024 and 335, shares 0.7535 and 0.2465.
fn file(expect: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        r#"{{ "global": {{ "duration": 2 }},
             "tasks": {{ "a": {{ "run": 100000 }}, "b": {{ "run": 100000, "priority": 5 }} }},
             "expect": {expect} }}"#
    );
    std::fs::write(folder.path().join("w.json"), text).unwrap();
    folder
}

const HOLDS: &str = r#"[{ "measure": "cpu_share", "task": "a", "at_least": 0.74, "at_most": 0.77 },
    { "measure": "nr_migrations", "equal": 0 }]"#;
const FAILS: &str = r#"[{ "measure": "cpu_share", "task": "a", "above": 0.5 },
    { "measure": "wait_ns_max", "task": "b", "below": "1us" },
    { "measure": "turnaround_ns", "task": "b", "at_most": "1h" }]"#;

/// A file whose one expectation holds under every scheduler.
const HOLDS_TEXT: &str = r#"{ "global": { "duration": 2 }, "tasks": { "a": { "run": 100000 } },
    "expect": [{ "measure": "nr_migrations", "equal": 0 }] }"#;

#[test]
fn what_holds_ends_with_success() {
    let folder = file(HOLDS);
    let output = schedlab_in(folder.path(), &["sim", "w.json"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!output.stdout.contains("do not hold"), "{}", output.stdout);
}

#[test]
fn what_fails_is_a_failed_check_and_stands_in_a_table() {
    let folder = file(FAILS);
    let output = schedlab_in(folder.path(), &["sim", "w.json", "--scheduler", "linux-6.12,rr"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("5 of 6 expectations of w do not hold"), "{}", output.stderr);
    let table: Vec<&str> = output.stdout.lines().filter(|line| line.contains("seed 1")).collect();
    assert!(table.iter().any(|line| line.contains("wait_ns_max") && line.contains("< 1.000 us")));
    assert!(table.iter().any(|line| line.contains("turnaround_ns") && line.contains("none")));
    // Round robin ignores weights, so the share is not above one half.
    assert!(table.iter().any(|line| line.contains("rr") && line.contains("> 0.5")), "{table:?}");
}

#[test]
fn json_has_every_expectation_and_keeps_to_the_schema() {
    let folder = file(FAILS);
    let output = schedlab_in(folder.path(), &["sim", "w.json", "--json"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let run: Value = serde_json::from_str(&output.stdout).unwrap();
    let holds: Vec<_> =
        run["expectations"].as_array().unwrap().iter().map(|one| one["holds"].clone()).collect();
    assert_eq!(holds, [true, false, false]);
    assert!(run["expectations"][0]["found"].as_f64().unwrap() > 0.7);
    assert!(run["expectations"][2]["found"].is_null());
    let schema = serde_json::from_str(&ok(&["schema", "result"]).stdout).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&run));
}

#[test]
fn an_unknown_measure_is_refused_before_the_run() {
    let folder = file(r#"[{ "measure": "cpu_shares", "task": "a", "above": 0.5 }]"#);
    let output = schedlab_in(folder.path(), &["sim", "w.json"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    let text = output.stderr.replace('\n', " ");
    assert!(text.contains("cpu_shares") && text.contains("cpu_share,"), "{text}");
}

#[test]
fn the_schema_of_workload_files_accepts_them() {
    let schema: Value = serde_json::from_str(&ok(&["schema", "workload"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let folder = file(HOLDS);
    let text = std::fs::read_to_string(folder.path().join("w.json")).unwrap();
    assert!(validator.is_valid(&serde_json::from_str(&text).unwrap()));
    let wrong = text.replace("at_least", "at_lest");
    assert!(!validator.is_valid(&serde_json::from_str(&wrong).unwrap()));
}

/// `compare` with a workload, and with an experiment file, also when all its runs are stored.
#[test]
fn comparisons_fail_too() {
    let folder = file(FAILS);
    let output = schedlab_in(folder.path(), &["compare", "w.json", "--scheduler", "linux-6.12,rr"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("5 of 6 expectations of w do not hold"), "{}", output.stderr);
    assert!(output.stdout.contains("wait_ns_max"), "{}", output.stdout);

    let sweep = "name = 'sweep'\n[[experiment]]\nname = 'sweep'\nworkload = 'w.json'\n\
                 axes.cpus = [1]\nseeds = [7]\nmeasure = ['nr_switches']\n\
                 [[experiment.runs]]\nlane = 'sim'\n\
                 schedulers = ['linux-6.12', 'rr']\n";
    std::fs::write(folder.path().join("sweep.toml"), sweep).unwrap();
    for stored in [false, true] {
        let output = schedlab_in(folder.path(), &["compare", "sweep.toml"]);
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert_eq!(output.stderr.contains("2 are stored"), stored, "{}", output.stderr);
        assert!(output.stderr.contains("5 of 6 expectations"), "{}", output.stderr);
        let row = |line: &&str| line.contains("rr") && line.contains("> 0.5");
        assert!(output.stdout.lines().any(|line| row(&line)), "{}", output.stdout);
        assert!(folder.path().join("sweep.results/report.html").exists());
    }
    // The JSON of tables has no room for them, so stderr has the list.
    let output = schedlab_in(folder.path(), &["compare", "sweep.toml", "--json"]);
    assert_eq!(output.code, 1);
    serde_json::from_str::<Value>(&output.stdout).unwrap();
    assert!(output.stderr.contains("wait_ns_max"), "{}", output.stderr);

    std::fs::write(folder.path().join("w.json"), HOLDS_TEXT).unwrap();
    let output = schedlab_in(folder.path(), &["compare", "sweep.toml", "--fresh"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!output.stdout.contains("do not hold"), "{}", output.stdout);
}
