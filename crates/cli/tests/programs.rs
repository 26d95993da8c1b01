// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab export` in the formats of the studies' own programs: the very columns.

mod common;
use common::{command, done, ok, schedlab_in};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Two children of six records of 1 ms take turns of 2 ms; nothing costs anything.
const SCHED: [&str; 10] = [
    "sim",
    "sched:n=2,total=6ms,resol=1ms",
    "--scheduler",
    "rr",
    "--set",
    "quantum=2ms",
    "--costs",
    "zero",
    "--json",
    "--keep",
];

/// What `sched 2 6 1` would have printed.
const SCHED_TSV: &str = "0\t1\t16\n0\t2\t33\n0\t5\t50\n0\t6\t66\n0\t9\t83\n0\t10\t100\n\
                         1\t3\t16\n1\t4\t33\n1\t7\t50\n1\t8\t66\n1\t11\t83\n1\t12\t100\n";

/// Runs the program with `text` on stdin.
fn piped(args: &[&str], text: &str) -> common::Done {
    let mut child = command()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    done(&child.wait_with_output().unwrap())
}

fn json_of(folder: &Path, name: &str, args: &[&str]) {
    std::fs::write(folder.join(name), ok(args).stdout).unwrap();
}

#[test]
fn records_of_sched_from_a_result_and_from_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    json_of(folder, "run.json", &SCHED);
    let made = schedlab_in(folder, &["export", "run.json", "sched.tsv"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert_eq!(std::fs::read_to_string(folder.join("sched.tsv")).unwrap(), SCHED_TSV);
    let mut traced = SCHED[..8].to_vec();
    traced.extend(["--trace", "run.slt"]);
    assert_eq!(schedlab_in(folder, &traced).code, 0);
    let shown = schedlab_in(folder, &["export", "run.slt", "-", "--format", "tsv"]);
    assert_eq!(shown.stdout, SCHED_TSV, "{}", shown.stderr);
    let made = schedlab_in(folder, &["export", "run.json", "python", "--format", "data"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let file = |name: &str| std::fs::read_to_string(folder.join("python").join(name)).unwrap();
    assert_eq!(
        file("0.data"),
        "1.000000\t0\n2.000000\t1\n5.000000\t2\n6.000000\t3\n9.000000\t4\n10.000000\t5\n"
    );
    assert!(file("1.data").starts_with("3.000000\t0\n"));
}

/// The second child runs at nice 5: of CFS's weights it gets a quarter.
#[test]
fn records_of_sched_nice() {
    let args = ["sim", "sched_nice", "--scheduler", "linux-6.1", "--json", "--keep"];
    let shown = piped(&["export", "-", "-", "--format", "tsv"], &ok(&args).stdout);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let lines: Vec<Vec<u64>> = shown
        .stdout
        .lines()
        .map(|line| line.split('\t').map(|part| part.parse().unwrap()).collect())
        .collect();
    assert_eq!((lines.len(), &lines[99][..], lines[100][0]), (200, &[0, 136, 100][..], 1));
    let behind = lines[100..].iter().filter(|line| line[1] <= 136).count();
    assert!((30..=36).contains(&behind), "{behind} records at weight 335 against 1024");
}

#[test]
fn times_of_load_and_multiload() {
    let args = "sim multiload:n=3,work=100ms --scheduler fcfs --costs zero --json";
    let text = ok(&args.split(' ').collect::<Vec<_>>()).stdout;
    assert_eq!(
        piped(&["export", "-", "-", "--format", "time"], &text).stdout,
        "\nreal\t0m0.100s\nuser\t0m0.100s\nsys\t0m0.000s\n\
         \nreal\t0m0.200s\nuser\t0m0.100s\nsys\t0m0.000s\n\
         \nreal\t0m0.300s\nuser\t0m0.100s\nsys\t0m0.000s\n"
    );
    let one = ok(&["sim", "load:work=61s", "--costs", "zero", "--json"]).stdout;
    assert_eq!(
        piped(&["export", "-", "-", "--format", "time"], &one).stdout,
        "\nreal\t1m1.000s\nuser\t1m1.000s\nsys\t0m0.000s\n"
    );
}

/// One run of cpuperf, and a directory of single runs of multiload: the same figures.
#[test]
fn lines_of_cpuperf() {
    let wanted = "1\t0.100\t10.000\n2\t0.150\t10.000\n3\t0.200\t10.000\n";
    let args = "sim cpuperf:max=3,work=100ms --scheduler fcfs --costs zero --json";
    let text = ok(&args.split(' ').collect::<Vec<_>>()).stdout;
    assert_eq!(piped(&["export", "-", "-", "--format", "cpuperf"], &text).stdout, wanted);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let study = "name='p'\n[[experiment]]\nname='p'\nworkload='multiload:work=100ms'\n\
                 axes={n=[3,1,2],cpus=[1]}\n[[experiment.runs]]\nlane='sim'\n\
                 schedulers=['fcfs','rr']\n";
    std::fs::write(folder.join("p.toml"), study).unwrap();
    let made = schedlab_in(folder, &["compare", "p.toml", "--costs", "zero"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let args = ["export", "p.results", "cpuperf.data", "--which", "scheduler=fcfs"];
    let made = schedlab_in(folder, &args);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert_eq!(std::fs::read_to_string(folder.join("cpuperf.data")).unwrap(), wanted);
    let several = schedlab_in(folder, &["export", "p.results", "cpuperf.data"]);
    assert_eq!(several.code, 2);
    assert!(several.stderr.contains("scheduler=fcfs|rr"), "{}", several.stderr);
}

/// Study S2's raw data: a file a cell, of one model, other workloads of the study left out.
#[test]
fn raw_data_of_study_s2() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let study = "name='p'\n[[experiment]]\nname='p'\n\
                 workload=['prime:work=10ms','hogs:work=10ms']\n\
                 axes={n=[10],cpus=[1]}\n[[experiment.runs]]\nlane='sim'\n\
                 schedulers=['linux-6.1','linux-6.1:RR','linux-6.12']\n";
    std::fs::write(folder.join("p.toml"), study).unwrap();
    let made = schedlab_in(folder, &["compare", "p.toml", "--costs", "zero"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let args = ["export", "p.results", "raw", "--format", "schedmark"];
    let several = schedlab_in(folder, &args);
    assert_eq!(several.code, 2);
    assert!(several.stderr.contains("model=linux-6.1|linux-6.12"), "{}", several.stderr);
    let made = schedlab_in(folder, &[&args[..], &["--which", "model=linux-6.1"]].concat());
    assert_eq!(made.code, 0, "{}", made.stderr);
    let file = |name: &str| std::fs::read_to_string(folder.join("raw").join(name)).unwrap();
    // Ten jobs of 10 ms under RR end one after another: no switch is involuntary.
    assert_eq!(file("rr-cpu-light.dat"), "0.10\t 0.10\t 0.00\t 100%\t 0\t 12\n");
    assert!(file("cfs-cpu-light.dat").starts_with("0.10\t 0.10\t 0.00\t 100%\t "));
    assert_eq!(std::fs::read_dir(folder.join("raw")).unwrap().count(), 2);
}

/// The files of study S0 under their own names, so that its script finds them.
#[test]
fn a_directory_of_the_study() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let study = "name='p'\n[[experiment]]\nname='p'\nworkload='sched:total=6ms'\n\
                 axes={n=[1,2],cpus=[1,2]}\nkeep_progress=true\n[[experiment.runs]]\nlane='sim'\n\
                 schedulers=['rr','fcfs']\n";
    std::fs::write(folder.join("p.toml"), study).unwrap();
    let made = schedlab_in(folder, &["reproduce", "p.toml", "--costs", "zero"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let args = ["export", "reproduction", "out/", "--format", "tsv", "--which", "scheduler=rr"];
    let made = schedlab_in(folder, &args);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let mut names: Vec<String> = std::fs::read_dir(folder.join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["1core-1process.tsv", "1core-2process.tsv", "2core-1process.tsv", "2core-2process.tsv"]
    );
    let first = std::fs::read_to_string(folder.join("out/1core-1process.tsv")).unwrap();
    assert_eq!(first, "0\t1\t16\n0\t2\t33\n0\t3\t50\n0\t4\t66\n0\t5\t83\n0\t6\t100\n");
}

#[test]
fn what_cannot_be_printed_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    json_of(folder, "run.json", &SCHED[..9]);
    json_of(folder, "kept.json", &SCHED);
    for (args, wanted) in [
        (&["run.json", "a.tsv"][..], "no progress"),
        (&["kept.json", "a.tsv", "--which", "n=3"][..], "no run has n=3"),
        (&["kept.json", "a.tsv", "--which", "shceduler=rr"][..], "did you mean `scheduler`"),
        (&["kept.json", "a.tsv", "--which", "n"][..], "write NAME=VALUE"),
        (&["kept.json", "-", "--format", "data"][..], "give a directory"),
        (&["kept.json", "a.csv", "--which", "n=2"][..], "chooses among runs"),
        (&[".", "a.tsv"][..], "holds no runs.jsonl"),
        (&["nothing.json", "a.tsv"][..], "nothing.json"),
    ] {
        let mut all = vec!["export"];
        all.extend(args);
        let made = schedlab_in(folder, &all);
        assert!(made.code == 2 && made.stderr.contains(wanted), "{args:?}: {}", made.stderr);
        assert!(!folder.join("a.tsv").exists());
    }
}
