// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `schedlab sim` prints: JSON that follows its schema, slices that cover the time without
//! overlap, traces in every format, and the same bytes for the same input.

mod common;
use common::{command, done, ok, schedlab, schedlab_in};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::process::Stdio;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&ok(args).stdout).expect("the output is JSON")
}

#[test]
fn a_tunable_may_be_meant_for_one_scheduler() {
    let switches = |settings: &[&str]| -> Vec<u64> {
        let mut args = vec!["sim", "hogs:n=2,work=20ms", "--scheduler", "rr,linux-6.12", "--json"];
        settings.iter().for_each(|setting| args.extend(["--set", setting]));
        let runs = json(&args);
        let count =
            |run: &Value| run["measures"]["totals"]["nr_switches"].as_u64().expect("a number");
        runs.as_array().unwrap().iter().map(count).collect()
    };
    let plain = switches(&[]);
    let only_rr = switches(&["rr:quantum=4ms"]);
    assert!(only_rr[0] > plain[0] && only_rr[1] == plain[1], "{plain:?} {only_rr:?}");
    let both = switches(&["rr:quantum=4ms", "linux-6.12:base_slice=8ms"]);
    assert!(both[0] == only_rr[0] && both[1] < plain[1], "{plain:?} {both:?}");
}

#[test]
fn a_scheduler_runs_beside_itself_with_other_tunables() {
    let schedulers = "rr:quantum=3ms,rr,linux-6.12:FIFO:base_slice=1ms";
    for command in ["sim", "compare"] {
        let done = ok(&[command, "hogs:n=2,work=20ms", "-S", schedulers]);
        for label in ["rr quantum=3ms ", "rr ", "linux-6.12 FIFO base_slice=1ms "] {
            let rows = done.stdout.lines().filter(|line| line.contains(&format!("{label} ")));
            assert!(rows.count() > 0, "{command}: {label}: {}", done.stdout);
        }
    }
    for (words, expected) in [
        (vec!["sim", "hogs", "-S", "rr:quantum=3ms,slice=1ms"], "follow the scheduler's name"),
        (vec!["sim", "hogs", "-S", "rr:quantun=3ms"], "did you mean `quantum`"),
        (vec!["sim", "hogs", "-S", "rr:3ms"], "a tunable (rr:quantum=3ms)"),
        (vec!["check", "rr:FIFO", "--seeds", "1"], "takes no policy"),
    ] {
        let refused = schedlab(&words);
        assert_eq!(refused.code, 2, "{words:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{words:?}: {}", refused.stderr);
    }
    ok(&["check", "rr:quantum=3ms", "--seeds", "2"]);
    ok(&["explain", "hogs:n=3,work=20ms", "-S", "rr:quantum=3ms", "--at", "4ms"]);
    let same = ["diff", "rr:quantum=3ms", "rr", "hogs:n=2,work=20ms"];
    assert_eq!(schedlab(&same).code, 1);
    ok(&[&same[..], &["--set-b", "quantum=3ms"]].concat());
}

#[test]
fn tunables_go_by_the_names_and_units_of_the_kernels_files() {
    let switches = |settings: &[&str]| -> u64 {
        let args = ["sim", "hogs:n=2,work=100ms", "--scheduler", "linux-2.6.23", "--cpus", "1"];
        let mut args: Vec<&str> = args.into_iter().chain(["--hz", "1000", "--json"]).collect();
        settings.iter().for_each(|setting| args.extend(["--set", setting]));
        json(&args)["measures"]["totals"]["nr_switches"].as_u64().expect("a number")
    };
    let plain = switches(&[]);
    let in_ns = switches(&["linux-2.6.23:sched_latency_ns=100000000"]);
    assert!(in_ns < plain, "{in_ns} {plain}");
    assert_eq!(in_ns, switches(&["sched_latency=100ms"]));
    let refused = schedlab(&["sim", "hogs", "--scheduler", "linux-2.6.23", "--set", "slice=1ms"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("sched_min_granularity"), "{}", refused.stderr);
}

#[test]
fn json_keeps_to_the_published_schema() {
    let schema = json(&["schema", "result"]);
    let validator = jsonschema::validator_for(&schema).unwrap();
    for args in [
        vec!["sim", "hogs:n=3,work=20ms", "--json", "--keep"],
        vec!["sim", "interactive", "--until", "200ms", "--cpus", "2", "--json"],
        vec!["sim", "sched:n=2", "--scheduler", "fcfs", "--json", "--keep"],
    ] {
        let value = json(&args);
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{args:?}: {errors:?}");
    }
    // The schema must refuse something; otherwise the check above could not fail.
    let mut wrong = json(&["sim", "hogs:work=1ms", "--json"]);
    wrong["seed"] = "one".into();
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn the_result_says_what_was_run() {
    let run = json(&["sim", "hogs:n=3,work=20ms", "--hz", "1000", "--seed", "9", "--json"]);
    assert_eq!(run["seed"], 9);
    assert_eq!(run["lane"], "sim");
    assert_eq!(run["scheduler"], "linux-6.12");
    assert_eq!(run["machine"]["hz"], 1000);
    assert_eq!(run["parameters"]["n"], "3");
    assert_eq!(run["schedlab_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run["measures"]["totals"]["nr_exited"], 3);
    assert!(run.get("slices").is_none());
    let names: Vec<&str> = run["machine"]["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|setting| setting["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"costs.context_switch_ns"), "{names:?}");
}

#[test]
fn several_runs_make_an_array_in_the_order_asked_for() {
    let runs = json(&["sim", "hogs:work=5ms", "--scheduler", "fcfs,linux-6.1", "--json"]);
    let names: Vec<&str> =
        runs.as_array().unwrap().iter().map(|run| run["scheduler"].as_str().unwrap()).collect();
    assert_eq!(names, ["fcfs", "linux-6.1"]);
}

/// On each CPU slices do not overlap, and their sum is the tasks' CPU time. A task is never on two
/// CPUs at once.
#[test]
fn slices_tile_the_time() {
    let args = ["sim", "sched:n=5,total=40ms", "--cpus", "2", "--slices"];
    let lines = ok(&args).stdout;
    let mut by_cpu: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    let mut by_task: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for line in lines.lines() {
        let slice: Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| slice[name].as_u64().unwrap();
        let span = (number("start_ns"), number("end_ns"));
        assert!(span.0 <= span.1, "{line}");
        by_cpu.entry(number("cpu")).or_default().push(span);
        by_task.entry(number("task")).or_default().push(span);
    }
    assert_eq!(by_cpu.len(), 2);
    for spans in by_cpu.values_mut().chain(by_task.values_mut()) {
        spans.sort_unstable();
        for pair in spans.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{pair:?} overlap");
        }
    }
    let run = json(&["sim", "sched:n=5,total=40ms", "--cpus", "2", "--json"]);
    for task in run["measures"]["tasks"].as_array().unwrap() {
        let id = task["id"].as_u64().unwrap();
        let sum: u64 = by_task.get(&id).into_iter().flatten().map(|(start, end)| end - start).sum();
        assert_eq!(Some(sum), task["cpu_time_ns"].as_u64(), "task {id}");
    }
}

/// Without costs, n equal hogs on one CPU end after exactly n times their work, and a CPU with work
/// is never idle.
#[test]
fn without_costs_the_closed_form_holds() {
    for scheduler in ["fcfs", "rr", "linux-6.1", "linux-6.12"] {
        let run = json(&[
            "sim",
            "hogs:n=4,work=25ms",
            "--scheduler",
            scheduler,
            "--costs",
            "zero",
            "--json",
        ]);
        let totals = &run["measures"]["totals"];
        assert_eq!(totals["makespan_ns"], 100_000_000, "{scheduler}");
        assert_eq!(totals["utilisation"], 1.0, "{scheduler}");
    }
    let run =
        json(&["sim", "hogs:n=4,work=25ms", "--scheduler", "fcfs", "--costs", "zero", "--json"]);
    // (1 + 2 + 3 + 4) / 4 * 25 ms
    assert_eq!(run["measures"]["totals"]["turnaround_ns_mean"], 62_500_000);
}

/// A launcher lives as long as its jobs, but the measures do not count it as a job.
#[test]
fn a_parent_that_only_waits_is_not_counted() {
    let run = json(&[
        "sim",
        "multiload:n=2,work=10ms",
        "--scheduler",
        "fcfs",
        "--costs",
        "zero",
        "--json",
    ]);
    let totals = &run["measures"]["totals"];
    assert_eq!((totals["nr_tasks"].as_u64(), totals["nr_launchers"].as_u64()), (Some(2), Some(1)));
    assert_eq!(totals["turnaround_ns_mean"], 15_000_000);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let base = ["sim", "interactive:n=3,sleepers=3", "--until", "300ms", "--cpus", "2", "--json"];
    let all = "linux-6.1,linux-6.12,rr,fcfs";
    let with = |more: &[&str]| {
        let mut args = base.to_vec();
        args.extend(["--scheduler", all, "--keep"]);
        args.extend(more);
        ok(&args).stdout
    };
    let first = with(&["--threads", "1"]);
    assert_eq!(first, with(&["--threads", "1"]), "twice");
    assert_eq!(first, with(&["--threads", "4"]), "on four threads");
    assert_ne!(first, with(&["--seed", "2"]), "another seed changes the draws");
}

#[test]
fn a_trace_in_every_format_converts_and_checks() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let done = schedlab_in(folder.path(), args);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        done
    };
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    for format in ["slt", "pftrace", "parquet", "ndjson", "ftrace", "csv"] {
        let direct = format!("direct.{format}");
        run(&["sim", "hogs:n=3,work=20ms", "--trace", &direct]);
        assert!(!read(&direct).is_empty(), "{format}");
        if format != "slt" {
            run(&["export", "direct.slt", &format!("export.{format}")]);
        }
    }
    // These formats do not show task priorities, which the log does not hold.
    for format in ["ndjson", "csv", "parquet"] {
        let (direct, export) = (format!("direct.{format}"), format!("export.{format}"));
        assert_eq!(read(&direct), read(&export), "{format}");
    }
    assert_eq!(&read("direct.parquet")[..4], b"PAR1");
    assert!(folder.path().join("direct.tasks.parquet").exists());
    let csv = run(&["export", "direct.slt", "-", "--format", "csv"]);
    assert_eq!(csv.stdout.as_bytes(), read("direct.csv"));
    assert_eq!(csv.stderr, "", "what went to stdout has no name");
    // The timeline of a result gives the same table, sorted by start.
    let result = run(&["sim", "hogs:n=3,work=20ms", "--json", "--keep"]).stdout;
    std::fs::write(folder.path().join("result.json"), result).unwrap();
    let from_result = run(&["export", "result.json", "-", "--format", "csv"]).stdout;
    let sorted = |text: &str| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    assert_eq!(sorted(&from_result), sorted(&csv.stdout));
    let done = schedlab_in(folder.path(), &["export", "result.json", "x.pftrace"]);
    assert_eq!(done.code, 2);
}

#[test]
fn a_truncated_trace_is_refused_whole() {
    let folder = tempfile::tempdir().unwrap();
    let done = schedlab_in(folder.path(), &["sim", "hogs", "--trace", "run.slt"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let path = folder.path().join("run.slt");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let done = schedlab_in(folder.path(), &["export", "run.slt", "run.csv"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("truncated"), "{}", done.stderr);
    assert!(!folder.path().join("run.csv").exists());
}

#[test]
fn results_become_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["sim", "sched:n=2", "--scheduler", "rr,fcfs", "--report", "direct.html"];
    assert_eq!(schedlab_in(folder.path(), &args).code, 0);
    let args = ["sim", "sched:n=2", "--scheduler", "rr,fcfs", "--json", "--keep"];
    let result = schedlab_in(folder.path(), &args).stdout;
    std::fs::write(folder.path().join("r.json"), result).unwrap();
    let done = schedlab_in(folder.path(), &["report", "r.json", "--plots", "plots"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for name in ["direct.html", "report.html"] {
        let page = std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));
        assert!(page.contains("fcfs"));
    }
    assert!(std::fs::read_dir(folder.path().join("plots")).unwrap().count() > 0);
    let done = schedlab_in(folder.path(), &["report", "plots"]);
    assert_eq!(done.code, 2);
}

/// The complete simulated half of the demo. Every run gives a result. Every check on a model has
/// its number, unless the quick reproduction leaves it out: no selection is empty or covers more
/// than one condition.
#[test]
fn the_studies_simulations_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["reproduce", "--quick", "--lane", "sim", "--json"];
    let done = schedlab_in(folder.path(), &args);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!done.stderr.contains("no result"), "{}", done.stderr);
    let claims: Value = serde_json::from_str(&done.stdout).unwrap();
    let schema = json(&["schema", "claims"]);
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&claims));
    let mut nr_checks = 0;
    for claim in claims.as_array().unwrap() {
        for check in claim["checks"].as_array().unwrap() {
            nr_checks += 1;
            let left_out = check["reason"] == "a quick reproduction leaves it out";
            assert!(check["found"].is_number() || left_out, "{}: {check}", claim["id"]);
        }
    }
    assert!(nr_checks > 100, "{nr_checks}");
    assert!(folder.path().join("reproduction/report.html").exists());
}

/// Under first come, first served the second hog waits while the first one runs, longer than the
/// watchdog allows.
#[test]
fn a_starved_task_fails_the_check() {
    let args = ["sim", "hogs:n=2,work=1s", "--scheduler", "fcfs", "--watchdog", "500ms"];
    let done = schedlab(&args);
    assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
    assert!(done.stderr.contains("hog"), "{}", done.stderr);
    let mut patient = args.to_vec();
    patient[5] = "off";
    assert_eq!(schedlab(&patient).code, 0);
}

#[test]
fn slices_into_a_closed_pipe_end_at_once() {
    let mut child = command()
        .args(["sim", "hogs:n=4,work=endless", "--until", "1h", "--slices"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut byte = [0u8; 1];
    child.stdout.take().unwrap().read_exact(&mut byte).unwrap();
    let done = done(&child.wait_with_output().unwrap());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
}
