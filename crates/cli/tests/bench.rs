// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `schedlab bench` gives: JSON that keeps to its schema, counts that are those of the job.
//! How fast it is, is no matter of a test.

mod common;
use common::{ok, schedlab};
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&ok(args).stdout).expect("the output is JSON")
}

#[test]
fn the_result_keeps_to_its_schema_and_says_what_was_run() {
    let validator = jsonschema::validator_for(&json(&["schema", "bench"])).unwrap();
    let plain = json(&["bench", "P8", "--until", "200ms", "--json"]);
    let traced = json(&["bench", "P8", "--until", "200ms", "--trace", "binary", "--json"]);
    for result in [&plain, &traced] {
        let errors: Vec<String> = validator.iter_errors(result).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!((&result["nr_tasks"], &result["nr_cpus"]), (&32.into(), &8.into()));
        assert_eq!(result["simulated_ns"], 200_000_000);
        let number = |name: &str| result[name].as_u64().unwrap();
        assert_eq!(number("nr_events"), number("nr_records") + number("nr_ticks"));
        // Each of the 32 tasks runs about 40 times in 200 ms.
        assert!(number("nr_switches") > 32 * 30 && number("nr_records") > number("nr_switches"));
        assert!(number("max_rss_bytes") > 1 << 20);
    }
    // The trace changes nothing but its own length.
    for name in ["nr_switches", "nr_ticks", "nr_records"] {
        assert_eq!(plain[name], traced[name], "{name}");
    }
    assert_eq!(plain["trace_bytes"], 0);
    let bytes = traced["trace_bytes"].as_u64().unwrap();
    assert!(bytes > 2 * traced["nr_records"].as_u64().unwrap(), "{bytes}");
    let mut wrong = plain;
    wrong["nr_switches"] = "many".into();
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn repetitions_and_several_jobs_run_in_processes_of_their_own() {
    let args = ["bench", "J1", "J8", "--until", "100ms", "--hz", "1000", "-n", "3", "--json"];
    let results = json(&args);
    let names: Vec<&str> =
        results.as_array().unwrap().iter().map(|r| r["job"].as_str().unwrap()).collect();
    assert_eq!(names, ["J1", "J8"]);
    assert_eq!(results[0]["nr_repetitions"], 3);
    assert_eq!(results[0]["nr_ticks"], 99);
    assert_eq!(results[1]["hz"], 1000);
}

#[test]
fn tasks_and_cpus_can_be_set() {
    let args = ["bench", "J1", "--tasks", "100", "--cpus", "4", "--until", "1s", "--json"];
    let result = json(&args);
    assert_eq!((&result["nr_tasks"], &result["nr_cpus"]), (&100.into(), &4.into()));
    let table = ok(&["bench", "J1", "--until", "1s"]).stdout;
    assert!(table.contains("switches/CPU-s") && table.contains("J1"), "{table}");
}

/// The machine's ticks and CPUs are its own, also in processes of their own.
#[test]
fn a_job_runs_on_a_machine_of_ones_choice() {
    let args = ["bench", "J8", "--machine", "laptop", "--until", "1s", "-n", "2", "--json"];
    let (flat, laptop) = (json(&["bench", "J8", "--until", "1s", "--json"]), json(&args));
    assert_eq!((&flat["machine"], &laptop["machine"]), (&"flat".into(), &"laptop".into()));
    assert_eq!((&laptop["nr_cpus"], &laptop["hz"]), (&8.into(), &250.into()));
    let hz = json(&["bench", "J1", "--machine", "S3-a", "--until", "1s", "--json"]);
    assert_eq!((&hz["hz"], &hz["nr_ticks"]), (&100.into(), &99.into()));
    let few = schedlab(&["bench", "J8", "--machine", "pi", "--until", "1s"]);
    assert_eq!(few.code, 2);
    assert!(few.stderr.contains("has 4 CPUs"), "{}", few.stderr);
}

#[test]
fn what_is_not_there_is_named() {
    let wrong = schedlab(&["bench", "J9"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("J9") && wrong.stderr.contains("P8"), "{}", wrong.stderr);
    let wrong = schedlab(&["bench", "J1", "--scheduler", "linux-9"]);
    assert_eq!(wrong.code, 2);
    let wrong = schedlab(&["bench"]);
    assert_eq!(wrong.code, 2);
    let wrong = schedlab(&["bench", "J1", "--curve", "tasks"]);
    assert_eq!(wrong.code, 2);
}
