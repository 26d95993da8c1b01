// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--machine`, `--preempt` and `list machines`.

mod common;

use common::{ok, schedlab};

#[test]
fn a_machine_gives_its_cpus_its_tick_and_its_name() {
    let head = |args: &[&str]| ok(args).stdout.lines().next().unwrap().to_owned();
    let all = head(&["sim", "hogs", "--machine", "laptop"]);
    assert!(all.contains("simulated on laptop, 8 CPUs, HZ 250"), "{all}");
    let part = head(&["sim", "hogs", "--machine", "s3-d", "--cpus", "2", "--hz", "1000"]);
    assert!(part.contains("simulated on S3-d, 2 CPUs, HZ 1000"), "{part}");
    let flat = head(&["sim", "hogs"]);
    assert!(flat.contains("simulated, 1 CPU, HZ 250"), "{flat}");
    let own = head(&["sim", "hogs", "--machine", "host"]);
    assert!(own.contains("simulated on host"), "{own}");
}

#[test]
fn a_listed_machine_is_a_machine_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.json");
    let listed = ok(&["list", "machines", "server-2x32", "--json"]).stdout;
    std::fs::write(&path, &listed).unwrap();
    let path = path.to_str().unwrap();
    let run = |machine: &str| {
        let args = ["sim", "hogs:n=200,work=20ms", "--machine", machine, "--json"];
        let mut json: serde_json::Value = serde_json::from_str(&ok(&args).stdout).unwrap();
        json["parameters"].take();
        json
    };
    let (from_file, preset) = (run(path), run("server-2x32"));
    assert_eq!(from_file, preset);
    assert_eq!(preset["machine"]["nr_cpus"], 128);
}

#[test]
fn list_machines_shows_every_machine() {
    let table = ok(&["list", "machines"]).stdout;
    for name in ["laptop", "server-2x32", "pi", "S0", "S2", "S3-a", "S3-d", "host"] {
        assert!(table.contains(name), "{name}: {table}");
    }
    let one = ok(&["list", "machines", "S2"]).stdout;
    assert!(one.contains("i7-3820") && one.contains("source:"), "{one}");
    assert!(one.contains("8 on 4 cores") && one.contains("voluntary"), "{one}");
}

#[test]
fn preempt_is_said_in_the_result() {
    let model = |args: &[&str]| {
        let json: serde_json::Value = serde_json::from_str(&ok(args).stdout).unwrap();
        let settings = json["machine"]["settings"].as_array().unwrap().clone();
        let found = settings.iter().find(|setting| setting["name"] == "machine.preempt");
        found.unwrap()["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(model(&["sim", "hogs", "--json"]), "voluntary");
    assert_eq!(model(&["sim", "hogs", "--json", "--preempt", "lazy"]), "lazy");
    assert_eq!(model(&["sim", "hogs", "--json", "--machine", "pi"]), "full");
    assert_eq!(model(&["sim", "hogs", "--json", "--scheduler", "rr"]), "full");
}

#[test]
fn wrong_machines_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.toml");
    std::fs::write(&path, "name = 'x'\n[topology]\ncores = 4\n").unwrap();
    let bad = path.to_str().unwrap();
    let cases = [
        (vec!["sim", "hogs", "--machine", "latop"], "did you mean `laptop`?"),
        (vec!["sim", "hogs", "--machine", "./nowhere.toml"], "cannot read"),
        (vec!["sim", "hogs", "--machine", bad], "unknown field `cores`"),
        (vec!["sim", "hogs", "--machine", "laptop", "--cpus", "9"], "has 8 CPUs"),
        (vec!["sim", "hogs", "--preempt", "rt"], "none, voluntary, full, lazy"),
        (vec!["list", "machines", "lap"], "allowed: laptop"),
    ];
    for (args, expected) in cases {
        let done = schedlab(&args);
        assert_eq!(done.code, 2, "{args:?}");
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
    }
}
