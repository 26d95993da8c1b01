// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab grade`, and policies in JavaScript under other commands.

mod common;
use common::{flat, ok, schedlab};
use std::fs;
use std::path::Path;

const ASSIGNMENT: &str = r#"
title = "Round robin"
[[test]]
name = "slices"
points = 3
workload = "hogs:n=3,work=20ms"
same_slices_as = "rr:quantum=4ms"
[[test]]
name = "random cases, both"
points = 2
cases = 20
"#;

const RIGHT: &str = "policy({ pick: (cpu, waiting) => waiting[0], quantum: () => 4 });\n";

/// A class of five, one of whom wrote in C, and what `schedlab grade` gets.
fn class(folder: &Path) -> [String; 2] {
    let handed_in = folder.join("handed-in");
    fs::create_dir(&handed_in).unwrap();
    fs::write(folder.join("rr.toml"), ASSIGNMENT).unwrap();
    for (name, text) in [
        ("ann.js", RIGHT),
        ("bo.js", RIGHT),
        ("=cmd.js", "policy({ pick: (cpu, waiting) => waiting.at(-1) });"),
        ("dee.js", "policy({\n  pick(cpu, waiting) { return waitin[0]; } });"),
        ("eve.js", "policy({"),
        ("notes.txt", "no scheduler"),
    ] {
        fs::write(handed_in.join(name), text).unwrap();
    }
    ["rr.toml", "handed-in"].map(|name| folder.join(name).display().to_string())
}

#[test]
fn a_class_gets_points_and_first_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let [assignment, handed_in] = class(folder.path());
    let csv = folder.path().join("marks.csv");
    let done = schedlab(&["grade", &assignment, &handed_in, "--csv", csv.to_str().unwrap()]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let text = flat(&done.stdout);
    for expected in [
        "Round robin: 5 points",
        "bo.js has the same text as",
        "=cmd.js, slices: slice 1 of",
        "at 0 ns: line 2: ReferenceError: waitin is not defined",
        "eve.js: line 1: SyntaxError",
    ] {
        assert!(text.contains(expected), "{expected}: {}", done.stdout);
    }
    let marks = fs::read_to_string(csv).unwrap();
    let lines: Vec<&str> = marks.lines().collect();
    assert_eq!(lines.len(), 6, "{marks}");
    assert_eq!(lines[0], "scheduler,points,slices,\"random cases, both\"");
    assert!(lines.iter().any(|line| line.ends_with("ann.js,5,3,2")), "{marks}");
    assert!(lines.iter().any(|line| line.ends_with("eve.js,0,0,0")), "{marks}");
}

#[test]
fn a_right_policy_alone_is_exit_code_0_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let [assignment, handed_in] = class(folder.path());
    let policy = format!("{handed_in}/ann.js");
    let done = ok(&["grade", &assignment, &policy, "--json"]);
    let graded: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(graded[0]["points"], 5);
    assert_eq!(graded[0]["tests"][1]["problem"], serde_json::Value::Null);
}

#[test]
fn a_scheduler_in_c_is_graded_by_the_same_tests() {
    let folder = tempfile::tempdir().unwrap();
    let [assignment, _] = class(folder.path());
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/scx");
    let done = schedlab(&["grade", &assignment, &format!("{root}/bad/stall.bpf.c")]);
    if done.code == 3 {
        schedlab_testing::skip(&done.stderr);
        return;
    }
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(flat(&done.stdout).contains("random case"), "{}", done.stdout);
}

const IN_PYTHON: &str = "import schedlab

class RoundRobin(schedlab.Policy):
    def pick(self, cpu, *, now, waiting):
        return waiting[0]

    def quantum(self, task):
        return 4_000_000
";

#[test]
fn policies_in_python_are_graded_by_the_same_tests() {
    let folder = tempfile::tempdir().unwrap();
    let [assignment, handed_in] = class(folder.path());
    let wrong = IN_PYTHON.replace("waiting[0]", "open('/etc/passwd')");
    for (name, text) in [("fay.py", IN_PYTHON), ("gus.py", &wrong)] {
        fs::write(Path::new(&handed_in).join(name), text).unwrap();
    }
    let done = schedlab(&["grade", &assignment, &handed_in, "--json"]);
    if done.code == 3 {
        schedlab_testing::skip(&done.stderr);
        return;
    }
    assert_eq!(done.code, 1, "{}", done.stderr);
    let graded: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let graded = graded.as_array().unwrap();
    assert_eq!(graded.len(), 7, "five in JavaScript, two in Python");
    let of = |end: &str| {
        let is = |one: &&serde_json::Value| one["file"].as_str().unwrap().ends_with(end);
        graded.iter().find(is).unwrap()
    };
    assert_eq!(of("fay.py")["points"], 5, "{}", of("fay.py"));
    assert_eq!(of("gus.py")["points"], 0);
    let problem = of("gus.py")["tests"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("line 5: NameError: name 'open' is not defined"), "{problem}");
}

#[test]
fn without_python_its_policies_are_not_graded() {
    let folder = tempfile::tempdir().unwrap();
    let [assignment, handed_in] = class(folder.path());
    let policy = format!("{handed_in}/fay.py");
    fs::write(&policy, IN_PYTHON).unwrap();
    let mut command = common::command();
    command.args(["grade", &assignment, &policy]).env("SCHEDLAB_PYTHON", "/no/python3");
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(3));
    let text = flat(&String::from_utf8(done.stderr).unwrap());
    assert!(text.contains("/no/python3: No such file"), "{text}");
    assert!(text.contains("SCHEDLAB_PYTHON=/path/to/python3"), "{text}");
}

#[test]
fn what_cannot_be_graded_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [assignment, handed_in] = class(folder.path());
    let notes = format!("{handed_in}/notes.txt");
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let wrong = folder.path().join("wrong.toml");
    fs::write(&wrong, ASSIGNMENT.replace("hogs:", "hogz:")).unwrap();
    for (args, expected) in [
        ([&assignment, &notes], "is no scheduler that can be graded"),
        ([&assignment, &empty.display().to_string()], "has no scheduler"),
        ([&wrong.display().to_string(), &handed_in], "test \"slices\": "),
        ([&notes, &handed_in], "notes.txt: "),
    ] {
        let done = schedlab(&["grade", args[0], args[1]]);
        assert_eq!(done.code, 2, "{expected}");
        assert!(flat(&done.stderr).contains(expected), "{expected}: {}", done.stderr);
    }
}

#[test]
fn a_policy_is_a_scheduler_of_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("own.js");
    fs::write(&policy, RIGHT).unwrap();
    let policy = policy.to_str().unwrap();
    let slices = |scheduler: &str, more: &[&str]| {
        let args = ["sim", "hogs:n=3,work=20ms", "--scheduler", scheduler, "--costs", "zero"];
        ok(&[&args[..], &["--slices"], more].concat()).stdout
    };
    let (own, built_in) = (slices(policy, &[]), slices("rr", &["--set", "quantum=4ms"]));
    let turns = |text: &str| text.lines().filter(|line| line.contains("hog-")).count();
    assert!(turns(&own) >= 15 && turns(&own) == turns(&built_in), "{own}\n{built_in}");
    let explained = ok(&["explain", "hogs:n=3", "--scheduler", policy, "--at", "30ms"]).stdout;
    assert!(explained.contains("the policy picked it"), "{explained}");
    ok(&["check", policy, "--seeds", "20", "--cpus", "2"]);
    let rr = ["--set-b", "quantum=4ms"];
    let same = ["diff", policy, "rr", "hogs:n=3,work=20ms", "--costs", "zero"];
    ok(&[&same[..], &rr].concat());
    let both = schedlab(&["sim", "hogs", "--scheduler", policy, "--coverage"]);
    assert!(both.code == 2 && flat(&both.stderr).contains("is no .bpf.c"), "{}", both.stderr);
}
