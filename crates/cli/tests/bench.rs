// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `schedlab bench` prints: JSON that follows its schema, with the counts of the job. The
//! tests do not check speed.

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
    // Tracing leaves the run as it is; only the length of the trace differs.
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

/// Ticks and CPUs are those of the chosen machine, also in processes of their own.
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

/// The model's own count shows the order of the algorithm. The test does not check times.
#[test]
fn the_curve_of_picks_counts_entries_and_leaves_out_the_start() {
    let schedulers = "linux-2.4.18,linux-2.6.22,fcfs";
    let args = ["--scheduler", schedulers, "--tasks", "100", "--switches", "300", "--json"];
    let results = json(&[&["bench", "--curve", "pick"], &args[..]].concat());
    let points = results.as_array().unwrap();
    let entries = |scheduler: &str| -> Vec<f64> {
        let of = points.iter().filter(|p| p["scheduler"] == scheduler);
        of.map(|p| p["steady"]["entries_per_switch"].as_f64().unwrap()).collect()
    };
    // Of n runnable tasks 2.4 looks at all; the first is in the price of the switch.
    let old = entries("linux-2.4.18");
    assert_eq!(old.len(), 3, "2, 10 and 100 tasks");
    assert!(old[2] > 9.0 * old[1] && old[1] >= 9.0 && old[0] >= 1.0, "{old:?}");
    assert_eq!(entries("linux-2.6.22"), [0.0; 3]);
    for point in points {
        let steady = &point["steady"];
        assert!(steady["nr_switches"].as_u64().unwrap() >= 250, "{point}");
        // For a scheduler that never preempts, the command measures tasks that block.
        let job = if point["scheduler"] == "fcfs" { "S1" } else { "J1" };
        assert_eq!(point["job"], job);
    }
    let validator = jsonschema::validator_for(&json(&["schema", "bench"])).unwrap();
    assert!(points.iter().all(|point| validator.is_valid(point)));
}

#[test]
fn one_command_measures_a_job_under_every_scheduler() {
    let results = json(&["bench", "J8", "--scheduler", "all", "--until", "40ms", "--json"]);
    let found: Vec<&str> =
        results.as_array().unwrap().iter().map(|r| r["scheduler"].as_str().unwrap()).collect();
    let listed = json(&["list", "schedulers", "--json"]);
    let all: Vec<&str> =
        listed.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(found, all);
}

#[test]
fn a_number_of_switches_decides_how_long_a_job_runs() {
    let args = ["bench", "J1", "--scheduler", "rr,linux-6.12", "--switches", "4000", "--json"];
    for result in json(&args).as_array().unwrap() {
        let switches = result["nr_switches"].as_u64().unwrap();
        assert!((3_000..=6_000).contains(&switches), "{result}");
    }
    // Under fcfs no task is ever preempted, so the job keeps its own time.
    let args = ["bench", "J1", "--scheduler", "fcfs", "--switches", "4000", "--json"];
    assert_eq!(json(&args)["simulated_ns"], 10_000_000_000_000_u64);
    for wrong in [
        &["bench", "J1", "--switches", "10", "--until", "1s"][..],
        &["bench", "J1", "--switches", "0"],
        &["bench", "--curve", "cpus", "--switches", "10"],
        &["bench", "--curve", "tasks", "--tasks", "10"],
    ] {
        assert_eq!(schedlab(wrong).code, 2, "{wrong:?}");
    }
}
