// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decisions of schedulers in real kernels stay as recorded: the order of tasks and why each
//! leaves its CPU. The tests cover the schedulers of bpf/scx on three kernels, in counted time.
//!
//! `goldens/vm-turns.json` holds the turns, keyed by kernel, QEMU, machine and request; the key
//! does not include the guest's build (crates/vm/src/turns.rs). If the file has no entry for the
//! kernel or QEMU of this machine, the test makes a run twice, compares the two, and prints this.
//! `cargo xtask bless` rewrites the file from the kernels of this machine.
//!
//! Tasks start one after the other, some milliseconds apart. If they started at once, some
//! microseconds would decide which is first, and these depend on the build of the guest. Of four
//! builds two began with another task.
//!
//! `mlfq` runs without its boosts. They are counted from when the scheduler was loaded. How long
//! before the tasks that is depends on the build of the guest: at the default of one second the
//! first boost fell at the end of the run. Moved by 10 ms it made 20 turns of 24.
//!
//! The kernels' own class and `vtime` have no entry. Under them, the first of several tasks depends
//! on some microseconds of CPU time that each has used before its work begins, and these depend on
//! the build of the guest. Two builds differed from the first turns on. Under `sd` builds differed
//! in whether a task exits in its last turn or just after it. The tests run these schedulers twice.

mod common;
use common::{kernel_ready, schedlab};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Four equal tasks. Like those below they end in the middle of a turn: after 115 ms or 120 ms of
/// work, and what the guest's build adds, a task would be at the end of one under `mlfq`.
const HOGS: &str = "hogs.json";
/// Nice -5, 0, 5, 10.
const NICE: &str = "nice.json";
/// Lets only one test write the file at a time.
static FILE: Mutex<()> = Mutex::new(());

fn file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    folder.join(name).display().to_string()
}

/// Checks that the turns of these schedulers, with these options, equal those of the file.
fn turns_are_as_written_down(kernel: &str, schedulers: &str, options: &[&str]) {
    if !kernel_ready(kernel) {
        return;
    }
    let blesses = schedlab_testing::is_blessing();
    let _alone = blesses.then(|| FILE.lock().unwrap_or_else(PoisonError::into_inner));
    for workload in [HOGS, NICE].map(file) {
        for line in checked(&workload, kernel, schedulers, options, blesses) {
            assert!(!line.contains("bless anew"), "{line}");
            let is_checked = ["the same", "both runs equal", "turns kept"];
            assert!(is_checked.iter().any(|words| line.contains(words)), "{line}");
        }
    }
}

/// Checks that the kernel's own class, and schedulers without an entry, decide the same twice.
fn two_runs_are_equal(kernel: &str, schedulers: &str) {
    if !kernel_ready(kernel) {
        return;
    }
    for line in checked(&file(NICE), kernel, schedulers, &[], false) {
        assert!(line.contains("none for this run; run twice, both runs equal"), "{line}");
    }
}

/// What the output says about each run.
fn checked(
    workload: &str,
    kernel: &str,
    schedulers: &str,
    options: &[&str],
    blesses: bool,
) -> Vec<String> {
    let golden = file("vm-turns.json");
    let mut args = vec!["vm", workload, "--kernel", kernel, "--scheduler", schedulers];
    args.extend(options.iter().flat_map(|option| ["--set", option]));
    args.extend(["--golden", &golden, "--json"]);
    if blesses {
        args.extend(["--bless", "--turns"]);
    }
    let done = schedlab(&args);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let lines = done.stderr.lines().filter(|line| line.starts_with("golden: "));
    let told: Vec<String> = lines.map(String::from).collect();
    told.iter().for_each(|line| println!("{line}"));
    assert_eq!(told.len(), schedulers.split(',').count(), "{}", done.stderr);
    told
}

#[test]
fn six_schedulers_on_6_18() {
    turns_are_as_written_down("6.18", "fifo,rr,wrr,group-wrr,rmlfq", &[]);
    turns_are_as_written_down("6.18", "mlfq", &["boost=0s"]);
}

#[test]
fn some_schedulers_on_7_0() {
    turns_are_as_written_down("7.0", "fifo,rr,wrr,group-wrr,rmlfq", &[]);
}

#[test]
fn some_schedulers_on_7_2() {
    turns_are_as_written_down("7.2", "fifo,rr,wrr,group-wrr,rmlfq", &[]);
}

#[test]
fn kernels_own_classes_repeat() {
    for kernel in ["6.1", "6.12", "7.0", "7.2"] {
        two_runs_are_equal(kernel, "kernel");
    }
    two_runs_are_equal("6.18", "kernel,sd,vtime");
}
