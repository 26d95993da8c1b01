// SPDX-License-Identifier: MIT OR Apache-2.0
//! The five tasks of docs/guide/five-tasks.md as a user types them. The test runs every command of
//! the page as written, checks its answer, counts its keystrokes and measures its time.

mod common;
use common::{Done, command, done};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Maximum number of keystrokes of a task, including the Enter key.
const KEYS_MAX: usize = 100;
/// Time limit for a command. A loaded machine needs several times as long as an idle one.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The heading and the commands of each task of the page.
fn tasks() -> Vec<(String, Vec<String>)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/five-tasks.md");
    let text = std::fs::read_to_string(page).unwrap();
    let sections = text.split("\n## ").skip(1);
    let commands = |section: &str| {
        let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
        lines.map(String::from).collect()
    };
    let heading = |section: &str| section.lines().next().unwrap_or_default().to_owned();
    sections.map(|section| (heading(section), commands(section))).collect()
}

/// Runs a command of the page in `folder`, without a shell.
fn run(folder: &Path, line: &str) -> Done {
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some("schedlab"), "{line}");
    let output = command().current_dir(folder).args(words).stdin(Stdio::null()).output();
    done(&output.unwrap())
}

#[test]
fn each_of_the_five_tasks_is_one_command_with_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/samples/perf.data");
    std::fs::copy(sample, folder.path().join("perf.data")).unwrap();
    let tasks = tasks();
    assert_eq!(tasks.len(), 5);
    for (task, commands) in tasks {
        let keys: usize = commands.iter().map(|line| line.len() + 1).sum();
        assert!(commands.len() <= 2 && keys <= KEYS_MAX, "{task}: {keys} keys, {commands:?}");
        let started = Instant::now();
        let mut stdout = String::new();
        for line in &commands {
            if line.contains("FIFO") && !schedlab_host::lane::may_set_policies() {
                schedlab_testing::skip("real-time policies need CAP_SYS_NICE");
                continue;
            }
            let done = run(folder.path(), line);
            assert_eq!(done.code, 0, "{line}\n{}", done.stderr);
            stdout += &done.stdout;
            check(&task, &done.stdout, folder.path());
        }
        let took = started.elapsed();
        println!("{task}: {} command, {keys} keys, {:.1} s", commands.len(), took.as_secs_f64());
        assert!(took < TIME_MAX, "{task} took {took:?}");
    }
}

/// Checks that the output has the answer that the user wants.
fn check(task: &str, stdout: &str, folder: &Path) {
    let first = stdout.lines().next().unwrap_or_default();
    let file = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    match task.split(' ').next().unwrap_or_default() {
        "A" if task.starts_with("A Gantt") => {
            let files = std::fs::read_dir(folder.join("slides")).unwrap().flatten();
            let texts = files.map(|file| std::fs::read_to_string(file.path()).unwrap());
            let drawn: Vec<String> = texts.filter(|text| text.contains("linux-6.12")).collect();
            assert!(drawn.iter().any(|text| text.starts_with("<svg")), "{}", drawn.len());
        }
        "A" => {
            assert!(stdout.contains("rr quantum=100ms"), "{stdout}");
            assert!(file("sweep.html").contains("quantum"), "the report draws the sweep");
        }
        "Why" => assert!(stdout.contains("waited") || stdout.contains("wait"), "{stdout}"),
        "Which" => {
            assert!(first.contains("nice=5") || first.contains("FIFO") || first.contains("OTHER"));
            assert!(stdout.lines().any(|line| line.contains("nice=5")), "{stdout}");
        }
        "The" => assert!(first.contains("lost most time"), "{first}"),
        _ => panic!("no check for {task:?}"),
    }
}
