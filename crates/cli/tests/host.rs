// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab run`, `doctor` and the demo on the machine that runs the tests, with or without root.
//! No test depends on the machine's speed or load.

mod common;
use common::{ok, schedlab, schedlab_in};
use serde_json::Value;
use std::process::Command;

fn validator(kind: &str) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(&ok(&["schema", kind]).stdout).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn a_workload_runs_and_its_result_keeps_to_the_schema() {
    let args = ["run", "hogs:n=3,work=5ms", "--cpus", "1", "--json"];
    let run: Value = serde_json::from_str(&ok(&args).stdout).unwrap();
    let errors: Vec<String> =
        validator("result").iter_errors(&run).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(run["lane"], "host");
    assert!(matches!(run["source"].as_str(), Some("bpf" | "schedstat")), "{}", run["source"]);
    let totals = &run["measures"]["totals"];
    assert_eq!((&totals["nr_tasks"], &totals["nr_exited"]), (&3.into(), &3.into()));
    // The requested work is CPU time, whatever else runs on the machine.
    for task in run["measures"]["tasks"].as_array().unwrap() {
        assert!(task["cpu_time_ns"].as_u64().unwrap() >= 4_900_000, "{task}");
    }
    assert!(!run["machine"]["kernel"].as_str().unwrap().is_empty());
}

#[test]
fn copies_of_a_command_have_a_line_each() {
    let done = ok(&["run", "-n", "3", "--", "true"]);
    assert!(done.stdout.starts_with("3 x true under OTHER"), "{}", done.stdout);
    for word in ["wall", "user", "system", "run delay", "voluntary", "involuntary", "mean"] {
        assert!(done.stdout.contains(word), "{word}: {}", done.stdout);
    }
    let args = ["run", "-n", "2", "--json", "--", "sh", "-c", "echo not json"];
    let run: Value = serde_json::from_str(&ok(&args).stdout).unwrap();
    assert!(validator("result").is_valid(&run));
    let copies = run["copies"].as_array().unwrap();
    assert_eq!(copies.len(), 2);
    assert!(copies.iter().all(|copy| copy["exit_code"] == 0 && copy["pid"].as_u64() > Some(0)));
}

#[test]
fn a_command_that_fails_is_a_failed_check() {
    let done = schedlab(&["run", "-n", "2", "--", "false"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stdout.contains("2 x false"), "{}", done.stdout);
    assert!(done.stderr.contains("2 of the copies"), "{}", done.stderr);
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_starts() {
    for (args, code, wanted) in [
        (vec!["run", "hogs", "--cpus", "1000"], 3, "--cpus asks for 1000"),
        (vec!["run", "hogs", "--cpus", "1000-1001"], 3, "--cpus names 1000-1001"),
        (vec!["run", "--", "no-such-command-here"], 2, "no-such-command-here"),
        (vec!["run", "--param", "n=2", "--", "true"], 2, "--param is given"),
        (vec!["run", "--policy", "deadline", "--", "true"], 2, "runtime and a period"),
        (vec!["compare", "hogs", "--host", "OTHER", "--cpus", "1024"], 3, "--cpus asks for 1024"),
        (vec!["compare", "hogs", "--host", "FAIR"], 2, "no policy or attribute is called \"FAIR\""),
    ] {
        let done = schedlab(&args);
        assert_eq!(done.code, code, "{args:?}: {}{}", done.stdout, done.stderr);
        assert_eq!(done.stdout, "", "{args:?}");
        let text = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(wanted), "{args:?}: {text}");
    }
}

#[test]
fn the_doctor_answers_with_remedies() {
    let checks: Value = serde_json::from_str(&ok(&["doctor", "--json"]).stdout).unwrap();
    let checks = checks.as_array().unwrap();
    assert!(checks.len() >= 5);
    let text = ok(&["doctor"]).stdout;
    for check in checks {
        assert!(text.contains(check["name"].as_str().unwrap()), "{check}");
        let remedy = check["remedy"].as_str().unwrap();
        assert!(check["is_ok"] == true || !remedy.is_empty(), "{check}: no remedy");
    }
}

/// A study on this machine, from its file to the report, names what the machine cannot do.
#[test]
fn a_study_runs_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let study = "name = 'T'\ntitle = 'test'\ntext = ''\n[[experiment]]\nname = 'T-{n}'\n\
                 title = '{n} hogs'\ntext = ''\nfigures = ['timeline', 'boxes']\n\
                 workload = 'hogs'\nsplit = ['n']\nparameters.work = '2ms'\naxes.n = [1, 2]\n\
                 axes.cpus = [1]\nkeep_slices = true\n[[experiment.runs]]\nlane = 'host'\n\
                 schedulers = ['OTHER', 'BATCH']\nrepetitions = 2\n";
    std::fs::write(folder.path().join("t.toml"), study).unwrap();
    let done = schedlab_in(folder.path(), &["reproduce", "t.toml", "--output", "out"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let text = std::fs::read_to_string(folder.path().join("out/T/runs.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 8);
    for line in text.lines() {
        let stored: Value = serde_json::from_str(line).unwrap();
        assert!(validator("result").is_valid(&stored["result"]), "{line}");
    }
    let pages = std::fs::read_dir(folder.path().join("out")).unwrap().flatten();
    let pages = pages.filter(|file| file.file_name().to_string_lossy().ends_with(".html"));
    let report: String = pages.map(|page| std::fs::read_to_string(page.path()).unwrap()).collect();
    assert!(report.contains("T-1") && report.contains("T-2"));
    std::fs::write(folder.path().join("bad.toml"), study.replace("lane", "lain")).unwrap();
    let done = schedlab_in(folder.path(), &["reproduce", "bad.toml"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("no key is called `lain`"), "{}", done.stderr);
}

/// In a PID namespace the recorder would wait for process ids that the kernel never traces, and
/// show tasks that did nothing.
#[test]
fn in_a_container_the_numbers_come_from_proc() {
    let unshare = ["--pid", "--fork", "--mount-proc"];
    let can = Command::new("unshare").args(unshare).arg("true").output();
    if !can.is_ok_and(|output| output.status.success()) {
        return schedlab_testing::skip("PID namespaces need root and unshare");
    }
    let output = Command::new("unshare")
        .args(unshare)
        .arg(env!("CARGO_BIN_EXE_schedlab"))
        .args(["run", "hogs:n=2,work=5ms", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let run: Value = serde_json::from_slice(&output.stdout).expect(&said);
    assert_eq!(run["source"], "schedstat", "{said}");
    assert_eq!(run["measures"]["totals"]["nr_exited"], 2, "{said}");
    assert!(said.contains("PID namespace"), "{said}");
}

#[test]
fn a_command_is_compared_under_several_attributes() {
    if !schedlab_host::lane::may_set_policies() {
        return schedlab_testing::skip("real-time policies need CAP_SYS_NICE");
    }
    let args = ["compare", "--host", "OTHER,FIFO,nice=5", "--repetitions", "2", "--cpus", "1"];
    let done = schedlab(&[&args[..], &["-n", "2", "--json", "--", "sh", "-c", "exit 0"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let runs: Vec<Value> = serde_json::from_str(&done.stdout).unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["scheduler"].as_str().unwrap()).collect();
    assert_eq!(names, ["OTHER", "OTHER", "FIFO", "FIFO", "nice=5", "nice=5"]);
    assert!(runs.iter().all(|run| run["copies"].as_array().unwrap().len() == 2));
    let failed = schedlab(&["compare", "--repetitions", "1", "--", "sh", "-c", "exit 3"]);
    assert!(failed.code == 1 && failed.stderr.contains("exit code 0"), "{}", failed.stderr);
    let mixed = schedlab(&["compare", "--scheduler", "rr", "--", "true"]);
    assert!(mixed.code == 2 && mixed.stderr.contains("cannot be used with"), "{}", mixed.stderr);
}

#[test]
fn a_program_that_its_user_cannot_reach_is_named_with_what_to_do() {
    if !schedlab_host::lane::is_root() {
        return schedlab_testing::skip("needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    std::fs::copy("/bin/true", &program).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(folder.path(), private).unwrap();
    let done = schedlab(&["run", "--", program.to_str().unwrap()]);
    assert!(done.code == 3 && done.stderr.contains("chmod it"), "{}", done.stderr);
}

#[test]
fn more_processes_than_there_is_room_for_are_refused() {
    let done = schedlab(&["run", "-n", "100000", "--", "true"]);
    let pid_max = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    if pid_max.trim().parse::<u32>().unwrap() > 100_000 {
        return schedlab_testing::skip("this machine may have room for 100,000 processes");
    }
    assert!(done.code == 3 && done.stderr.contains("there is room for"), "{}", done.stderr);
}
