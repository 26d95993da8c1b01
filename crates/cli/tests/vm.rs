// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab vm` and `schedlab kernel` on real kernels under QEMU. Without QEMU, the guest's init
//! or the archive, the tests are skipped. No test depends on the machine's load; one test loads the
//! machine itself.

mod common;
use common::{Done, command, done, kernel_ready as ready, schedlab};
use schedlab_vm::qemu::build;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn json(args: &[&str]) -> Value {
    let done = schedlab(args);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

fn setting<'r>(run: &'r Value, name: &str) -> &'r str {
    let settings = run["machine"]["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["name"] == name);
    found.unwrap_or_else(|| panic!("no setting {name}"))["value"].as_str().unwrap()
}

/// Boots each kernel, runs twice and compares the runs.
fn boots_and_repeats(kernel: &str) {
    if !ready(kernel) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let golden = dir.path().join("empty.json");
    std::fs::write(&golden, r#"{"format": "schedlab golden 1", "entries": []}"#).unwrap();
    let golden = golden.to_str().unwrap();
    let args = ["vm", "hogs:n=4,work=50ms", "--kernel", kernel, "--json", "--golden", golden];
    let done = schedlab(&args);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("run twice, both runs equal"), "{}", done.stderr);
    let run: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&run["lane"], &run["source"]), (&"vm".into(), &"bpf".into()));
    let release = run["machine"]["kernel"].as_str().unwrap();
    assert!(release.starts_with(&format!("{kernel}.")), "{release}");
    let totals = &run["measures"]["totals"];
    assert_eq!((&totals["nr_exited"], &totals["nr_lost_events"]), (&4.into(), &0.into()));
    for task in run["measures"]["tasks"].as_array().unwrap() {
        let cpu_ms = task["cpu_time_ns"].as_u64().unwrap() / 1_000_000;
        assert!((50..60).contains(&cpu_ms), "work and a little overhead: {task}");
        assert!(task["exit_ns"].is_u64(), "its last switch was seen: {task}");
    }
    // A tick of 4 ms ends slices; in 7.2 the high-resolution tick ends them after 0.7 ms.
    let switches = totals["nr_switches"].as_u64().unwrap();
    let expected = if kernel == "7.2" { 200..500 } else { 40..100 };
    assert!(expected.contains(&switches), "{switches} switches");
    assert_eq!(setting(&run, "vm.clock"), "counted");
    assert_eq!(setting(&run, "vm.identity").len(), 64);
}

#[test]
fn linux_6_1_boots_and_repeats() {
    boots_and_repeats("6.1");
}

#[test]
fn linux_6_12_boots_and_repeats() {
    boots_and_repeats("6.12");
}

#[test]
fn linux_7_0_boots_and_repeats() {
    boots_and_repeats("7.0");
}

#[test]
fn linux_7_2_boots_and_repeats() {
    boots_and_repeats("7.2");
}

/// One object file of each scheduler of bpf/scx loads on every kernel since 6.16. This test covers
/// kernels that the goldens of turns do not have.
#[test]
fn schedulers_load_on_the_kernels_between() {
    const ALL: [&str; 8] = ["fifo", "rr", "wrr", "group-wrr", "rmlfq", "mlfq", "sd", "vtime"];
    for kernel in ["6.16", "6.17", "6.19"] {
        if !ready(kernel) {
            return;
        }
        let all = ALL.join(",");
        let args = ["vm", "hogs:n=3,work=30ms", "--kernel", kernel, "--scheduler", &all, "--json"];
        let runs = json(&args);
        let runs = runs.as_array().unwrap();
        let names: Vec<&str> = runs.iter().map(|run| run["scheduler"].as_str().unwrap()).collect();
        assert_eq!(names, ALL.map(|scheduler| format!("{kernel}:{scheduler}")));
        for run in runs {
            let totals = &run["measures"]["totals"];
            assert_eq!((&totals["nr_exited"], &totals["nr_lost_events"]), (&3.into(), &0.into()));
        }
    }
}

/// Runs `work` next to four threads of busy loops.
fn beside_busy_loops<T>(work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn the_trace_is_the_same_from_a_snapshot_from_a_boot_and_on_a_busy_host() {
    if !ready("6.18") {
        return;
    }
    let args = ["vm", "interactive", "--until", "300ms", "--kernel", "6.18", "--json"];
    let first = json(&args);
    let busy = beside_busy_loops(|| json(&args));
    let booted = json(&[&args[..], &["--no-snapshot"]].concat());
    for other in [&busy, &booted] {
        for name in ["vm.identity", "vm.trace"] {
            assert_eq!(setting(&first, name), setting(other, name), "{name}");
        }
        assert_eq!(first["measures"], other["measures"]);
    }
    let other_seed = json(&[&args[..], &["--seed", "2"]].concat());
    assert_ne!(setting(&first, "vm.identity"), setting(&other_seed, "vm.identity"));
}

#[test]
fn a_golden_holds_until_a_decision_changes() {
    if !ready("6.18") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("golden.json");
    let golden = path.to_str().unwrap();
    let run = |more: &[&str]| {
        let args = ["vm", "hogs:n=2,work=20ms", "--kernel", "6.18", "--scheduler", "kernel,rr"];
        schedlab(&[&args[..], &["--golden", golden], more].concat())
    };
    let missing = run(&[]);
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    let blessed = run(&["--bless"]);
    assert_eq!(blessed.code, 0, "{}", blessed.stderr);
    let same = run(&[]);
    assert_eq!(same.code, 0, "{}", same.stderr);
    assert_eq!(same.stderr.matches("the same").count(), 2, "{}", same.stderr);
    // Change one decision of one scheduler.
    let mut goldens: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(goldens["entries"][1]["scheduler"], "6.18:rr");
    goldens["entries"][1]["decisions"][2][1] = "cpu 0: hog-9 runs".into();
    std::fs::write(&path, goldens.to_string()).unwrap();
    let changed = run(&[]);
    assert_eq!(changed.code, 1, "{}", changed.stderr);
    let text = changed.stderr.split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
    assert!(text.contains("hogs under 6.18:rr: decision 3 of"), "{text}");
    assert!(text.contains("expected cpu 0: hog-9 runs"), "{text}");
}

#[test]
fn sched_ext_schedulers_are_loaded_and_decide() {
    if !ready("6.18") {
        return;
    }
    let args = ["vm", "hogs:n=3,work=30ms", "--kernel", "6.18", "--scheduler", "fifo", "--json"];
    let run = json(&args);
    assert_eq!(run["scheduler"], "6.18:fifo");
    assert_eq!(setting(&run, "vm.sched_ext_before"), "disabled");
    assert!(setting(&run, "vm.sched_ext_after").starts_with("enabled "));
    // Under first come, first served no hog preempts another.
    let mut exits: Vec<u64> = run["measures"]["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["turnaround_ns"].as_u64().unwrap() / 1_000_000)
        .collect();
    exits.sort_unstable();
    assert!(exits[0] < 45 && (60..85).contains(&exits[1]) && exits[2] > 90, "{exits:?}");
    let wrong = schedlab(&[&args[..], &["--set", "no_such_option=1"]].concat());
    assert_ne!(wrong.code, 0);
    assert!(wrong.stderr.contains("no_such_option"), "{}", wrong.stderr);
    if ready("6.12") {
        let old = schedlab(&["vm", "hogs", "--kernel", "6.12", "--scheduler", "rr"]);
        assert_eq!(old.code, 3, "{}", old.stderr);
        assert!(old.stderr.contains("without sched_ext"), "{}", old.stderr);
    }
}

#[test]
fn slices_keep_to_the_schema_and_wrong_requests_are_refused() {
    if !ready("6.18") {
        return;
    }
    let schema: Value = serde_json::from_str(&schedlab(&["schema", "slice"]).stdout).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let done = schedlab(&["vm", "hogs:n=2,work=10ms", "--kernel", "6.18", "--slices"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.lines().count() >= 4, "{}", done.stdout);
    for line in done.stdout.lines() {
        assert!(schema.is_valid(&serde_json::from_str(line).unwrap()), "{line}");
    }
    let refused = |args: &[&str], code: i32, words: &[&str]| {
        let done = schedlab(&[&["vm", "hogs"], args].concat());
        assert_eq!(done.code, code, "{args:?}: {}", done.stderr);
        let text = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(text.contains(word), "{word}: {text}");
        }
    };
    refused(&["--kernel", "9.9"], 2, &["no kernel is called", "6.18"]);
    refused(&["--kernel", "./no/such/image"], 3, &["cannot read"]);
    refused(&["--kernel", "6.18", "--set", "slice=1ms"], 2, &["tunable"]);
    refused(&["--kernel", "6.18", "--golden", "x", "--clock", "live"], 2, &["x"]);
    refused(&["--scheduler", "rr:quantum=3ms"], 2, &["--scheduler rr --set quantum=3ms"]);
    refused(&["--scheduler", "6.18:rr"], 2, &["--kernel 6.18 --scheduler rr"]);
    refused(&["--kernel", "6.18", "--sysctl", "kernel.none=1"], 3, &["kernel/none"]);
}

/// Runs with several CPUs on the installed QEMU, whether or not schedlab's own is built.
#[test]
fn without_the_own_qemu_several_cpus_take_turns_or_are_refused() {
    if !ready("6.12") {
        return;
    }
    let installed = schedlab_vm::qemu::Qemu::find().unwrap();
    let run = |more: &[&str]| {
        let mut command = command();
        command.args(["vm", "hogs:n=2,work=20ms", "--kernel", "6.12", "--cpus", "2"]).args(more);
        done(&command.env("SCHEDLAB_QEMU", &installed.program).output().unwrap())
    };
    let with_quantum = run(&["--quantum", "4us"]);
    assert_eq!(with_quantum.code, 3, "{}", with_quantum.stderr);
    assert!(with_quantum.stderr.contains("qemu build"), "{}", with_quantum.stderr);
    let done = run(&["--json"]);
    if installed.number < (8, 1) {
        assert_eq!(done.code, 3, "{}", done.stderr);
        for words in ["QEMU 8.1", "qemu build", "live"] {
            assert!(common::flat(&done.stderr).contains(words), "{words}: {}", done.stderr);
        }
        return;
    }
    // Two runs in turns may differ, which is an error of its own.
    if done.code == 0 {
        assert!(done.stdout.contains("cpus-take-turns"), "{}", done.stdout);
    }
}

/// Two tasks of fixed work on two CPUs take as long as one alone, in the same trace from a boot
/// and from a snapshot. Skipped where `schedlab qemu build` has not been run.
#[test]
fn cpus_run_at_the_same_time_in_the_own_qemu() {
    let own = schedlab_vm::Cache::of_user().ok().and_then(|cache| build::find(&cache));
    if own.is_none() {
        return schedlab_testing::skip("`schedlab qemu build` has not been run");
    }
    if !ready("6.18") {
        return;
    }
    // Each has a CPU of its own, so that where the kernel places them does not matter.
    let task = |cpu: u32| (format!("t{cpu}"), json!({ "cpus": [cpu], "loop": 1, "run": "60ms" }));
    let tasks: serde_json::Map<String, Value> = (0..2).map(task).collect();
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), json!({ "tasks": tasks }).to_string()).unwrap();
    let file = file.path().to_str().unwrap();
    let args = ["vm", file, "--kernel", "6.18", "--cpus", "2", "--json"];
    let run = json(&args);
    assert_eq!(setting(&run, "vm.checked"), "2/2");
    assert!(setting(&run, "vm.machine").contains("quantum=2000"));
    let warnings = run["warnings"].to_string();
    assert!(!warnings.contains("cpus-take-turns"), "{warnings}");
    for task in run["measures"]["tasks"].as_array().unwrap() {
        let ms = |name: &str| task[name].as_u64().unwrap() / 1_000_000;
        assert!((60..63).contains(&ms("cpu_time_ns")), "{task}");
        assert!((60..80).contains(&ms("turnaround_ns")), "a CPU for each: {task}");
    }
    let booted = json(&[&args[..], &["--no-snapshot"]].concat());
    assert_eq!(setting(&run, "vm.trace"), setting(&booted, "vm.trace"));
    let coarse = json(&[&args[..], &["--quantum", "32us"]].concat());
    assert_ne!(setting(&run, "vm.identity"), setting(&coarse, "vm.identity"));
    let loaded = json(&[&args[..], &["--scheduler", "rr"]].concat());
    assert_eq!(setting(&loaded, "vm.checked"), "2/2");
    assert_eq!(loaded["measures"]["totals"]["nr_exited"], 2);
}

/// The command says what it would do, and does nothing without consent.
#[test]
fn qemu_is_not_built_without_consent() {
    let cache = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = command();
        command.arg("qemu").args(args).env("SCHEDLAB_CACHE", cache.path()).stdin(Stdio::null());
        done(&command.output().unwrap())
    };
    let asked = run(&["build"]);
    // Code 3: packages for building are missing here, and are named.
    let wanted = if asked.code == 3 { "apt-get install " } else { "--yes" };
    assert!([2, 3].contains(&asked.code) && asked.stderr.contains(wanted), "{}", asked.stderr);
    assert!(std::fs::read_dir(cache.path()).unwrap().next().is_none(), "nothing was written");
    let listed = run(&["list"]);
    assert!(listed.code == 0 && listed.stdout.contains("not built"), "{}", listed.stdout);
    assert_eq!(run(&["list", "--json"]).stdout.trim(), "[]");
    assert_eq!(run(&["remove"]).stdout.trim(), "nothing to remove");
}

/// Writes a program for a guest, without a library: a 64-bit ELF file with one segment that holds
/// this code.
fn program(path: &Path, code: &[u8]) {
    let base: u64 = 0x40_0000;
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [2u16, 62] {
        bytes.extend_from_slice(&half.to_le_bytes());
    }
    bytes.extend_from_slice(&1u32.to_le_bytes());
    for word in [base + 120, 64, 0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&0u32.to_le_bytes());
    for half in [64u16, 56, 1, 0, 0, 0] {
        bytes.extend_from_slice(&half.to_le_bytes());
    }
    for half in [1u32, 5] {
        bytes.extend_from_slice(&half.to_le_bytes());
    }
    let len = 120 + code.len() as u64;
    for word in [0, base, base, len, len, 0x1000] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(code);
    std::fs::write(path, bytes).unwrap();
}

/// mov edi, 3; mov eax, SYS_exit; syscall
const EXITS: &[u8] = &[0xbf, 3, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];
/// jmp to itself
const HANGS: &[u8] = &[0xeb, 0xfe];

fn with_init(init: &Path) -> Command {
    let mut command = command();
    command.env("SCHEDLAB_GUEST", init).args(["vm", "hogs", "--kernel", "6.18"]);
    command
}

#[test]
fn a_guest_that_panics_or_hangs_is_an_error_with_its_last_lines() {
    if !ready("6.18") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let init = dir.path().join("init");
    let fails = |code: &[u8], more: &[&str]| -> Done {
        program(&init, code);
        let done = done(&with_init(&init).args(more).output().unwrap());
        assert_eq!(done.code, 3, "{}", done.stderr);
        done
    };
    let panicked = fails(EXITS, &[]).stderr;
    assert!(panicked.contains("the guest's kernel panicked"), "{panicked}");
    assert!(panicked.contains("Attempted to kill init"), "{panicked}");
    let hung = fails(HANGS, &["--limit", "8s"]).stderr;
    assert!(hung.contains("was not ready within 8 s"), "{hung}");
    std::fs::write(&init, "#!/bin/sh\n").unwrap();
    let script = done(&with_init(&init).output().unwrap());
    assert_eq!(script.code, 2, "{}", script.stderr);
    assert!(script.stderr.contains("no 64-bit ELF program"), "{}", script.stderr);
}

/// Child processes of `pid`.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn signal(name: &str, pid: u32) {
    Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
}

fn exists(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie counts as gone, even if its new parent has not reaped it yet.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_guest_is_an_error_and_a_killed_lab_leaves_no_guest() {
    if !ready("6.18") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let init = dir.path().join("init");
    program(&init, HANGS);
    let start = || {
        let child = with_init(&init).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // The process that asks for QEMU's version is a child too, and exits; the machine stays.
        let is_machine = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("icount")
        };
        let mut qemu = None;
        wait_until("a machine", || {
            qemu = children(child.id()).into_iter().find(is_machine);
            qemu.is_some()
        });
        (child, qemu.unwrap())
    };
    let (child, qemu) = start();
    signal("-KILL", qemu);
    let done = done(&child.wait_with_output().unwrap());
    assert_eq!(done.code, 3, "{}", done.stderr);
    assert!(done.stderr.contains("QEMU was killed by signal 9"), "{}", done.stderr);
    let (mut child, qemu) = start();
    signal("-KILL", child.id());
    child.wait().unwrap();
    wait_until("the end of the machine", || !exists(qemu));
}

#[test]
fn kernels_are_listed_with_what_they_can_do() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output = command().env("SCHEDLAB_CACHE", dir.path()).args(args).output().unwrap();
        done(&output)
    };
    let listed = run(&["kernel", "list", "--json"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["kernels"].as_array().unwrap().len(), 0);
    let names: Vec<&str> =
        listed["series"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    for name in ["6.1", "6.12", "6.18", "7.0", "7.2"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let unknown = run(&["kernel", "get", "5.4"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("allowed are"), "{}", unknown.stderr);
    let file = dir.path().join("text");
    std::fs::write(&file, "no kernel").unwrap();
    let no_kernel = run(&["kernel", "get", file.to_str().unwrap()]);
    assert_eq!(no_kernel.code, 2);
    assert!(no_kernel.stderr.contains("no Linux kernel"), "{}", no_kernel.stderr);
    let absent = run(&["kernel", "remove", "6.18"]);
    assert_eq!(absent.code, 2, "{}", absent.stderr);
}

#[test]
fn a_kernels_hz_is_its_own_and_dry_runs_count_guests() {
    if !ready("6.18") {
        return;
    }
    let refused =
        schedlab(&["compare", "hogs", "--scheduler", "rr", "--vm", "6.18", "--hz", "100"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let text = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("kernel 6.18 has HZ 250"), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("both.toml");
    let study = |hz: &str| {
        let text = format!(
            "name = \"both\"\n[[experiment]]\nname = \"e\"\nworkload = \"hogs\"\n\
             [experiment.parameters]\nn = 2\nwork = \"10ms\"\ncpus = 1\n[[experiment.runs]]\n\
             lane = \"sim\"\nschedulers = [\"rr\"]\n{hz}[[experiment.runs]]\nlane = \"vm\"\n\
             schedulers = [\"6.18\"]\n"
        );
        std::fs::write(&file, text).unwrap();
        let done = schedlab(&["compare", file.to_str().unwrap(), "--dry-run"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stderr
    };
    let told = study("");
    let counts = "1 runs simulated, 0 on this machine, 1 in virtual machines";
    assert!(told.contains(counts) && !told.contains("note"), "{told}");
    let told = study("hz = 1000\n");
    assert!(told.contains("models have HZ 1000, kernel 6.18 in a guest has HZ 250"), "{told}");
    let run = json(&["vm", "hogs:n=1,work=5ms", "--kernel", "6.18", "--json"]);
    assert_eq!(run["machine"]["hz"], 250);
}

/// Refills of cpu.max come at multiples of the period, by which the limit is kept, too. 30 ms of
/// each 70, 300 of 1,000 (so long that the kernel allows few lengths between) and both together.
#[test]
fn periods_of_cpu_max_begin_with_a_run() {
    if !ready("7.2") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let limit =
        |quota: u64, period: u64| json!({ "cpu_max": { "quota": quota, "period": period } });
    for (groups, group, period_ns, share) in [
        (json!({ "/g": limit(30_000, 70_000) }), "/g", 70_000_000, 0.43),
        (json!({ "/g": limit(300_000, 1_000_000) }), "/g", 1_000_000_000, 0.30),
        (
            json!({ "/g": limit(300_000, 1_000_000), "/g/h": limit(30_000, 70_000) }),
            "/g/h",
            70_000_000,
            0.30,
        ),
    ] {
        let hog = json!({ "taskgroup": group, "loop": 1, "run": "9s" });
        let workload = json!({
            "global": { "duration": "3s" }, "cgroups": groups, "tasks": { "hog": hog },
        });
        let file = dir.path().join("limited.json");
        std::fs::write(&file, workload.to_string()).unwrap();
        let args = ["vm", file.to_str().unwrap(), "--kernel", "7.2", "--json", "--keep"];
        let run = json(&args);
        let starts = run["slices"].as_array().unwrap().iter().skip(1);
        let late_ns = starts.map(|slice| slice["start_ns"].as_u64().unwrap() % period_ns).min();
        assert!(late_ns.is_some_and(|ns| ns < 200_000), "{group}: {late_ns:?}");
        let used = run["measures"]["tasks"][0]["cpu_time_ns"].as_u64().unwrap() as f64 / 3e9;
        assert!((share - 0.02..share + 0.03).contains(&used), "{group}: {used}");
    }
}

/// A long run plays the workload several times without reloading the scheduler.
#[test]
fn a_long_run_has_several_rounds() {
    if !ready("6.18") {
        return;
    }
    let args =
        ["vm", "hogs:n=2,work=20ms", "--kernel", "6.18", "--scheduler", "rr", "--soak", "4s"];
    let run = json(&[&args[..], &["--json"]].concat());
    let rounds: u64 = setting(&run, "vm.rounds").parse().unwrap();
    let ns: u64 = setting(&run, "vm.rounds_ns").parse().unwrap();
    // Each round reloads the recorder, which takes some seconds of the guest's time.
    assert!(rounds >= 2 && ns > 4_000_000_000, "{rounds} {ns}");
    let refused = schedlab(&[&args[..], &["--golden", "x"]].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

/// A file that both lanes compile by the same rules: headers in `include` above it, a macro, a
/// further source of its build, words that the loader fills in, the kernel's configuration.
#[test]
fn one_source_runs_in_the_simulator_and_in_a_guest() {
    const MAIN: &str = r#"
#include <scx/common.bpf.h>
#include "own.h"

extern unsigned CONFIG_HZ __kconfig;
const volatile u64 __SCX_SLICE_DFL __weak;
const volatile u32 nr_cpu_ids;
char _license[] SEC("license") = "GPL";

SEC("struct_ops/x_enqueue")
void BPF_PROG(x_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 good = CONFIG_HZ == 250 && nr_cpu_ids == 1 && p->scx.weight == 100;

	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, good ? slice_of(__SCX_SLICE_DFL) : 1, enq_flags);
}

SEC(".struct_ops.link")
struct sched_ext_ops x_ops = { .enqueue = (void *)x_enqueue, .name = "one_source" };
"#;
    const OTHER: &str = "#include <scx/common.bpf.h>\n#include \"own.h\"\n\
        char _license[] SEC(\"license\") = \"GPL\";\n\
        u64 slice_of(u64 slice) { return slice * TURNS; }\n";
    const HEADER: &str = "#include \"vmlinux.h\"\n#include <bpf/bpf_helpers.h>\n\
        #include <bpf/bpf_tracing.h>\n#include <errno.h>\n#include <limits.h>\n\
        void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags) __ksym;\n";
    if !ready("6.18") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("src/bpf/main.bpf.c", MAIN),
        ("src/bpf/other.bpf.c", OTHER),
        ("src/bpf/own.h", "#pragma once\nu64 slice_of(u64 slice);\n"),
        ("include/scx/common.bpf.h", HEADER),
        ("build.rs", ".enable_skel(\"src/bpf/main.bpf.c\").add_source(\"src/bpf/other.bpf.c\")"),
    ] {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let file = dir.path().join("src/bpf/main.bpf.c").display().to_string();
    // Full turns of 40 ms, in a kernel up to the next tick of 4 ms.
    for lane in [&["sim"][..], &["vm", "--kernel", "6.18"]] {
        let more = ["hogs:n=3,work=400ms", "--scheduler", &file, "-D", "TURNS=2", "--slices"];
        let done = schedlab(&[lane, &more].concat());
        if done.code == 3 {
            return schedlab_testing::skip(done.stderr);
        }
        assert_eq!(done.code, 0, "{}", done.stderr);
        let slices = done.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lengths = slices.map(|slice| {
            let at = |name: &str| slice[name].as_u64().unwrap();
            (at("end_ns") - at("start_ns")) / 1_000_000
        });
        let turns = lengths.filter(|ms| (39..=45).contains(ms)).count();
        assert!((24..=30).contains(&turns), "{lane:?}: {turns} turns of 40 to 44 ms");
    }
}
