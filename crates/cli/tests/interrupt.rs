// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C in the middle of a sweep on this machine: nothing remains of the current run, the results
//! directory is consistent, and the same command resumes there.

#![cfg(target_os = "linux")]

mod common;
use common::{command, schedlab_in};
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An environment variable of the sweep and of every task that it starts.
const MARK: &str = "SCHEDLAB_TEST_SWEEP";
const NR_RUNS: usize = 24;
/// Exit code after SIGINT, as shells report it.
const INTERRUPTED: i32 = 130;

/// Three tasks of some 40 ms that write into files, in a control group where the machine has them.
fn write_experiment(folder: &Path) {
    let workload = |group: &str| {
        format!(
            r#"{{ "tasks": {{ "a": {{ "instance": 3, "loop": 20, "run": 1000, "sleep": 1000,
                 "iorun": 4096{group} }} }} }}"#
        )
    };
    let path = folder.join("w.json");
    std::fs::write(&path, workload(r#", "taskgroup": "/g""#)).unwrap();
    let probe = schedlab_in(folder, &["run", "w.json"]);
    if probe.code != 0 {
        println!("without a control group: {}", probe.stderr);
        std::fs::write(&path, workload("")).unwrap();
    }
    let experiment = "name = 'cut'\n[[experiment]]\nname = 'cut'\nworkload = 'w.json'\n\
                      axes.cpus = [1]\nseeds = { first = 1, count = 12 }\n\
                      measure = ['nr_switches']\n[[experiment.runs]]\nlane = 'host'\n\
                      schedulers = ['OTHER', 'BATCH']\n";
    std::fs::write(folder.join("cut.toml"), experiment).unwrap();
}

/// Processes of the sweep that carries `mark`, zombies left out.
fn marked(mark: &str) -> BTreeSet<u32> {
    let wanted = format!("{MARK}={mark}");
    let is_marked = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_marked).collect()
}

/// What remains of launchers with these ids: control groups and directories of files.
fn remains(pids: &BTreeSet<u32>) -> Vec<String> {
    let mut left = Vec::new();
    if let Some(controller) = schedlab_host::cgroup::CpuController::detect() {
        let groups = pids.iter().map(|pid| controller.root().join(format!("schedlab-{pid}")));
        left.extend(groups.filter(|group| group.exists()).map(|group| group.display().to_string()));
    }
    for parent in schedlab_host::files::candidates() {
        let Ok(entries) = std::fs::read_dir(parent) else { continue };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let is_ours =
            |name: &String| pids.iter().any(|pid| name.starts_with(&format!("schedlab-io-{pid}-")));
        left.extend(names.filter(is_ours));
    }
    left
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Lines of the log; each must be complete.
fn stored(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("out/runs.jsonl")).unwrap_or_default();
    assert!(text.is_empty() || text.ends_with('\n'), "the log ends within a line");
    for line in text.lines() {
        let run: serde_json::Value = serde_json::from_str(line).expect("a line is a whole result");
        assert_eq!(run["result"]["lane"], "host");
    }
    text.lines().map(String::from).collect()
}

/// Waits until all processes of a run after the first `before` runs exist. Returns the processes.
fn in_full_swing(child: &mut Child, mark: &str, folder: &Path, before: usize) -> BTreeSet<u32> {
    let mut seen = BTreeSet::new();
    let log = folder.join("out/runs.jsonl");
    wait_for("tasks of a run", || {
        assert!(child.try_wait().unwrap().is_none(), "the sweep was over before it was stopped");
        let running = marked(mark);
        let lines = std::fs::read_to_string(&log).unwrap_or_default().lines().count();
        seen.extend(&running);
        // The program, its launcher and three tasks.
        running.len() >= 5 && lines > before
    });
    seen
}

#[test]
fn ctrl_c_leaves_nothing_and_the_sweep_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    write_experiment(folder.path());
    let arguments = ["compare", "cut.toml", "-o", "out"];
    let mut before = Vec::new();
    // A terminal sends the signal to the whole group; `kill` sends it to the program alone.
    for (round, whole_group) in [(0, true), (1, false), (2, true)] {
        let mark = format!("{}-{round}", std::process::id());
        let mut child = command()
            .args(arguments)
            .current_dir(folder.path())
            .env(MARK, &mark)
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut seen = in_full_swing(&mut child, &mark, folder.path(), before.len());
        std::thread::sleep(Duration::from_millis(13 * round));
        seen.extend(marked(&mark));
        let struck = format!("{}{}", if whole_group { "-" } else { "" }, child.id());
        let killed = Command::new("kill").args(["-s", "INT", "--", &struck]).status().unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(INTERRUPTED), "{stderr}");

        wait_for("the end of every task", || marked(&mark).is_empty());
        wait_for("the end of groups and files", || remains(&seen).is_empty());
        let lines = stored(folder.path());
        assert!((before.len() + 1..NR_RUNS).contains(&lines.len()), "{}", lines.len());
        let said = format!("interrupted: {} of {NR_RUNS} runs are stored in out", lines.len());
        assert!(stderr.contains(&said), "{said}: {stderr}");
        assert!(before.iter().all(|line| lines.contains(line)), "a stored run is gone");
        // The files made from results appear at the end, and complete.
        let names = std::fs::read_dir(folder.path().join("out")).unwrap().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        let is_known = |name: &_| ["runs.jsonl", "manifest.json"].iter().any(|known| name == known);
        assert!(names.iter().all(is_known), "{names:?}");
        before = lines;
    }
    let done = schedlab_in(folder.path(), &arguments);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains(&format!("{} are stored", before.len())), "{}", done.stderr);
    let lines = stored(folder.path());
    assert_eq!(lines.len(), NR_RUNS);
    assert!(done.stdout.contains("BATCH"), "{}", done.stdout);
    assert!(before.iter().all(|line| lines.contains(line)), "a stored run was repeated");
    let text = std::fs::read_to_string(folder.path().join("out/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["is_complete"], true);
}

/// A shell under FIFO leaves a busy child on its only CPU, so the killed shell cannot end before
/// that child. The test needs permission to use real-time policies.
#[test]
fn a_real_time_hog_that_a_command_started_does_not_outlive_it() {
    if !schedlab_host::lane::may_set_policies() {
        return schedlab_testing::skip("real-time policies need CAP_SYS_NICE");
    }
    let mark = format!("{}-hog", std::process::id());
    // The loop ends by itself if nothing kills it.
    let script = "(end=$(($(date +%s) + 40)); while [ $(date +%s) -lt $end ]; do i=0; \
                  while [ $i -lt 100000 ]; do i=$((i + 1)); done; done) & sleep 30";
    let mut child = command()
        .args(["run", "--policy", "fifo", "--cpus", "1", "--", "sh", "-c", script])
        .env(MARK, &mark)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the hog", || marked(&mark).len() >= 4);
    std::thread::sleep(Duration::from_millis(300));
    let struck = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", "--", &struck]).status().unwrap().success());
    wait_for("the end of the command", || child.try_wait().unwrap().is_some());
    wait_for("the end of the hog", || marked(&mark).is_empty());
}

/// SIGKILL gives the launcher no chance to clean up. The program itself must kill a process in a
/// session of its own.
#[test]
fn a_killed_launcher_leaves_no_process_of_another_session() {
    let mark = format!("{}-launcher", std::process::id());
    let script = "setsid sh -c 'sleep 40 & sleep 41' & sleep 42";
    let mut child = command()
        .args(["run", "--", "sh", "-c", script])
        .env(MARK, &mark)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let command_of = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let nr_sleeping =
        || marked(&mark).into_iter().filter(|pid| command_of(*pid).starts_with(b"sleep")).count();
    wait_for("all sleepers", || nr_sleeping() == 3);
    let parent = child.id();
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let launcher = children.unwrap().split_whitespace().next().unwrap().to_owned();
    assert!(Command::new("kill").args(["-s", "KILL", "--", &launcher]).status().unwrap().success());
    wait_for("the end of the program", || child.try_wait().unwrap().is_some());
    wait_for("the end of all processes", || marked(&mark).is_empty());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(3) && text.contains("launcher"), "{text}");
}

/// An unfinished trace has no name yet, so a kill leaves no file. File systems without nameless
/// files are the exception.
#[test]
fn a_killed_simulation_leaves_no_part_of_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = command()
        .current_dir(folder.path())
        .args(["sim", "hogs:n=4,work=10h", "--until", "10h", "--trace", "t.slt"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // While the trace is being written, the program has an open file of this folder without a name.
    let writes = || {
        let Ok(files) = std::fs::read_dir(format!("/proc/{}/fd", child.id())) else { return false };
        let targets = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
        targets.into_iter().any(|target| target.starts_with(folder.path()))
    };
    wait_for("the trace's file", writes);
    child.kill().unwrap();
    child.wait().unwrap();
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    match has_nameless_files(folder.path()) {
        true => assert!(left.is_empty(), "{left:?}"),
        false => assert!(left.iter().all(|file| {
            file.file_name().to_string_lossy().starts_with(schedlab_run::file::UNFINISHED)
        })),
    }
}

/// Whether the file system has files without a name (O_TMPFILE, open(2)).
fn has_nameless_files(folder: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    const O_TMPFILE: i32 = 0o20_200_000;
    std::fs::OpenOptions::new().write(true).custom_flags(O_TMPFILE).open(folder).is_ok()
}
