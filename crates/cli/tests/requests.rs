// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests to the core give the bytes that the command line gives: the 200 requests of
//! tests/requests are run by both. `cargo xtask wasm` and the tests of the Python package run them
//! too, and compare with the same digests.

mod common;

use common::{command, done};
use schedlab_core::{Digest, Keep, Request, simulate};
use schedlab_run::sha::sha256;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn requests() -> Vec<Request> {
    let text = std::fs::read_to_string(root().join("tests/requests/requests.jsonl")).unwrap();
    text.lines().map(|line| Request::from_json(line).unwrap()).collect()
}

/// The words of the command line that asks for the same.
fn words(request: &Request) -> Vec<String> {
    let workload = request.workload_name.as_ref().unwrap_or(&request.workload);
    let mut words = vec!["sim".to_string(), workload.clone(), "--json".into()];
    let mut option = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name}={value}")));
    };
    option("scheduler", Some(request.scheduler.clone()));
    option("cpus", request.cpus.map(|cpus| cpus.to_string()));
    option("machine", request.machine.clone());
    option("hz", request.hz.map(|hz| hz.to_string()));
    option("preempt", request.preempt.clone());
    option("costs", request.costs.clone());
    option("watchdog", request.watchdog.clone());
    option("policy", request.policy.clone());
    option("nice", request.nice.map(|nice| nice.to_string()));
    option("until", request.until.clone());
    option("seed", Some(request.seed.to_string()));
    for (name, value) in &request.tunables {
        option("set", Some(format!("{name}={value}")));
    }
    words
}

/// The letters and digits of a text: the command line breaks its errors into lines.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[test]
fn the_command_line_gives_the_bytes_of_the_core() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("run.slt");
    let mut lines = String::new();
    let mut nr_refused = 0;
    for (number, request) in requests().into_iter().enumerate() {
        let keep = Keep { digest: true, ..Keep::default() };
        let outcome = simulate(&Request { keep, ..request.clone() });
        let output = command()
            .args(words(&request))
            .arg("--trace")
            .arg(&trace)
            .current_dir(root())
            .output()
            .unwrap();
        let done = done(&output);
        match outcome {
            Ok(outcome) => {
                assert!(done.code <= 1, "request {}: {}", number + 1, done.stderr);
                let events = sha256(&std::fs::read(&trace).unwrap());
                let own = Digest { result: sha256(&output.stdout), events };
                assert_eq!(done.stdout, outcome.result_json(), "request {}", number + 1);
                assert_eq!(outcome.digest.as_ref(), Some(&own), "request {}", number + 1);
                for note in &outcome.notes {
                    assert!(done.stderr.contains(note), "{note:?}: {}", done.stderr);
                }
                lines += &format!("{} {}\n", own.result, own.events);
            }
            Err(error) => {
                nr_refused += 1;
                let (found, wanted) = (letters(&done.stderr), letters(&error.text));
                assert!(done.code > 0 && found.contains(&wanted), "{error}: {}", done.stderr);
                assert!(found.contains(&letters(&error.help)), "{}: {}", error.help, done.stderr);
                lines += &format!("{}: {}\n", error.kind.name(), error.one_line());
            }
        }
    }
    assert_eq!(lines.lines().count(), 200);
    assert!(nr_refused < 20, "{nr_refused} requests are refused: too few are compared");
    let golden = root().join("tests/requests/digests.txt");
    schedlab_testing::golden(&golden, &lines).unwrap_or_else(|difference| {
        panic!("a result changed; if that is meant, run `cargo xtask bless`: {difference}")
    });
}

#[test]
fn a_scheduler_has_one_spelling() {
    for scheduler in [
        "rr:quantum=3ms",
        "rr:quantum=3ms:FIFO",
        "linux-6.12:FIFO:base_slice=1ms",
        "cfs:min_granularity=1ms",
        "rr: quantum = 3ms",
    ] {
        let request = Request::new("hogs:n=3,work=20ms", scheduler);
        let words = words(&request);
        let done = common::ok(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(done.stdout, simulate(&request).unwrap().result_json(), "{scheduler}");
    }
    let run = |scheduler: &str, set: &str| {
        common::ok(&["sim", "hogs:n=3,work=20ms", "-S", scheduler, "--json", "--set", set]).stdout
    };
    // `--set` has the last word, as `tunables` in a request.
    assert_eq!(run("rr:quantum=3ms", "quantum=5ms"), run("rr", "quantum=5ms"));
}

#[test]
fn errors_are_those_of_the_command_line() {
    let broken = "{\n  \"taks\": {}\n}";
    for (request, kind) in [
        (Request::new("hogs:n=0", "rr"), "usage"),
        (Request::new("hog", "rr"), "usage"),
        (Request::new("hogs", "linux-6.13"), "usage"),
        (Request { hz: Some(7), ..Request::new("hogs", "rr") }, "usage"),
        (Request { machine: Some("laptp".into()), ..Request::new("hogs", "rr") }, "usage"),
        (Request::new("hogs", "rr:quantum=1"), "usage"),
        (Request::new("hogs", "rr:quantun=1ms"), "usage"),
        (Request::new("hogs", "rr:FFO"), "usage"),
        (Request::new("hogs", "rr:=1ms"), "usage"),
        (Request::new(broken, "rr"), "usage"),
    ] {
        let error = simulate(&request).unwrap_err();
        assert_eq!(error.kind.name(), kind, "{error}");
        assert_eq!(error.position(), (request.workload == broken).then_some((2, 3)));
        if request.workload == broken || request.hz.is_some() {
            continue;
        }
        let words = words(&request);
        let done = common::schedlab(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let common = error.text.replace("allowed: ", "").replace(", host", "");
        let found = done.stderr.replace("allowed: ", "").replace(", host", "");
        assert_eq!(done.code, 2, "{}", done.stderr);
        assert!(letters(&found).contains(&letters(&common)), "{error}: {}", done.stderr);
    }
    let unknown = Request::from_json(r#"{"workload": "hogs", "scheduler": "rr", "cpu": 2}"#);
    assert!(unknown.unwrap_err().text.contains("unknown field `cpu`"));
}
