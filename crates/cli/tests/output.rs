// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output that cannot be written: stdout, stderr or a file on a full disk, and readers that close
//! the pipe. Every command reports what happened and returns an exit code. None panics (code 101),
//! and no file is left partially written.

mod common;
use common::{Done, command, done, schedlab_in};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

const EXPERIMENT: &str = "name = 'x'
[[experiment]]
name = 'x'
workload = 'hogs'
parameters = { cpus = 1, work = '20ms' }
axes.n = [1, 2, 3, 4]
seeds = { first = 1, count = 20 }
[[experiment.runs]]
lane = 'sim'
schedulers = ['rr', 'fcfs']
";

/// Commands that print, run in a directory with an experiment and a trace.
const PRINTING: [&[&str]; 18] = [
    &["--help"],
    &["sim", "--help"],
    &["--version"],
    &["list"],
    &["list", "--json"],
    &["list", "schedulers", "--long"],
    &["schema"],
    &["schema", "experiment"],
    &["completion", "bash"],
    &["doctor"],
    &["sim", "hogs:work=5ms"],
    &["sim", "hogs:work=5ms", "--json", "--keep"],
    &["sim", "hogs:work=5ms", "--slices"],
    &["sim", "hogs:work=5ms", "--scheduler", "rr,fcfs"],
    &["compare", "hogs:work=5ms", "--json"],
    &["compare", "x.toml", "--dry-run"],
    &["compare", "x.toml", "--json"],
    &["export", "t.slt", "-", "--format", "ndjson"],
];

/// A directory with an experiment and a trace.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), EXPERIMENT).unwrap();
    let made = schedlab_in(folder.path(), &["sim", "hogs:work=50ms", "--trace", "t.slt"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    folder
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

#[test]
fn a_full_disk_behind_stdout_is_an_error_with_a_cause() {
    let folder = folder();
    for args in PRINTING {
        let output =
            command().args(args).current_dir(folder.path()).stdout(full()).output().unwrap();
        let done = done(&output);
        assert_eq!(done.code, 3, "{args:?}: {}", done.stderr);
        let text = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("cannot write the output: No space left"), "{args:?}: {text}");
    }
}

#[test]
fn a_full_disk_behind_stderr_changes_no_exit_code() {
    let folder = folder();
    for (args, code) in [
        (vec!["sim", "hogs", "--scheduler", "nobody"], 2),
        (vec!["frobnicate"], 2),
        (vec!["compare", "x.toml"], 0),
        (vec!["export", "t.slt", "t.csv"], 0),
        (vec!["sim", "none.json"], 2),
    ] {
        let output =
            command().args(&args).current_dir(folder.path()).stderr(full()).output().unwrap();
        assert_eq!(done(&output).code, code, "{args:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder();
    for args in PRINTING {
        let mut child = command()
            .args(args)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0u8; 1];
        child.stdout.take().unwrap().read_exact(&mut byte).unwrap();
        let done = done(&child.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        assert!(!done.stderr.contains("panicked") && !done.stderr.contains("Error"), "{args:?}");
    }
}

/// Runs the program with a limit of `blocks` of 512 bytes for any file. This acts like a full disk
/// and needs no special rights.
fn limited(folder: &Path, blocks: u32, args: &[&str]) -> Done {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_schedlab")]).args(args);
    done(&shell.env("NO_COLOR", "1").current_dir(folder).output().unwrap())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_file_that_cannot_grow_is_an_error_and_leaves_nothing() {
    let folder = folder();
    let before = names(folder.path());
    let long = "hogs:n=40,work=1s";
    let mut cases: Vec<Vec<&str>> = Vec::new();
    for file in ["a.slt", "a.ndjson", "a.pftrace", "a.ftrace", "a.csv", "a.parquet"] {
        cases.push(vec!["sim", long, "--scheduler", "rr", "--set", "quantum=1ms", "--trace", file]);
    }
    cases.push(vec!["sim", "hogs", "--report", "a.html", "--until", "1s"]);
    cases.push(vec!["compare", "hogs:work=5ms", "--report", "a.html"]);
    for args in cases {
        let done = limited(folder.path(), 1, &args);
        assert_eq!(done.code, 3, "{args:?}: {}", done.stderr);
        let text = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("cannot write a.") && text.contains("make room"), "{args:?}: {text}");
        assert_eq!(names(folder.path()), before, "{args:?}");
    }
}

/// A disk that fills up in the middle of a sweep stops it; the stored runs count.
#[test]
fn a_sweep_that_fills_the_disk_goes_on_when_there_is_room() {
    let folder = folder();
    let whole = schedlab_in(folder.path(), &["compare", "x.toml", "-o", "whole"]);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    // Room for some runs, but not for all of them.
    let stopped = limited(folder.path(), 200, &["compare", "x.toml", "-o", "cut"]);
    assert_eq!(stopped.code, 3, "{}", stopped.stderr);
    assert!(stopped.stderr.contains("of 160 runs are stored in cut"), "{}", stopped.stderr);
    let log = std::fs::read(folder.path().join("cut/runs.jsonl")).unwrap();
    assert!(!log.is_empty() && log.ends_with(b"}\n"), "no line is cut");
    let done = schedlab_in(folder.path(), &["compare", "x.toml", "-o", "cut", "--resume"]);
    assert_eq!((done.code, &done.stdout), (0, &whole.stdout));
    for name in names(&folder.path().join("whole")) {
        let read = |part: &str| std::fs::read(folder.path().join(part).join(&name)).unwrap();
        assert!(read("cut") == read("whole"), "{name} differs");
    }
    assert_eq!(names(&folder.path().join("cut")), names(&folder.path().join("whole")));
}
