// SPDX-License-Identifier: MIT OR Apache-2.0
//! What schedulers decide in real kernels stays as it is written down: who runs after whom, and why
//! each leaves its CPU, under the schedulers of bpf/scx on three kernels, in counted time.
//!
//! `goldens/vm-turns.json` holds the turns, keyed by kernel, QEMU, machine and request; the guest's
//! build is no part of it (crates/vm/src/turns.rs). Where it has none for the kernel or QEMU that
//! are here, a run is made twice, both are compared, and the output says so. `cargo xtask bless`
//! writes the file anew, from the kernels that are here.
//!
//! Tasks come one after the other, some milliseconds apart: of tasks that come at once some
//! microseconds decide who is first, and those belong to a build of the guest. Of four builds two
//! began with another task.
//!
//! The kernels' own class and `vtime` have no entry: who of several tasks is first goes by some
//! microseconds of CPU time that each has used before its work begins, and those belong to a build
//! of the guest. Two builds differed from the first turns on. Under `sd` builds differed in whether
//! a task exits in its last turn or just after it. These are run twice.

mod common;
use common::{kernel_ready, schedlab};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Four equal tasks.
const HOGS: &str = "hogs.json";
/// Nice -5, 0, 5, 10.
const NICE: &str = "nice.json";
/// Tests write the file one after the other.
static FILE: Mutex<()> = Mutex::new(());

fn file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    folder.join(name).display().to_string()
}

/// The turns of these schedulers are those of the file.
fn turns_are_as_written_down(kernel: &str, schedulers: &str) {
    if !kernel_ready(kernel) {
        return;
    }
    let blesses = schedlab_testing::is_blessing();
    let _alone = blesses.then(|| FILE.lock().unwrap_or_else(PoisonError::into_inner));
    for workload in [HOGS, NICE].map(file) {
        for line in checked(&workload, kernel, schedulers, blesses) {
            assert!(!line.contains("bless anew"), "{line}");
            let is_checked = ["the same", "both runs equal", "turns kept"];
            assert!(is_checked.iter().any(|words| line.contains(words)), "{line}");
        }
    }
}

/// The kernel's own class, and what else has no entry, decides the same twice.
fn two_runs_are_equal(kernel: &str, schedulers: &str) {
    if !kernel_ready(kernel) {
        return;
    }
    for line in checked(&file(NICE), kernel, schedulers, false) {
        assert!(line.contains("none for this run; run twice, both runs equal"), "{line}");
    }
}

/// What is said of each run.
fn checked(workload: &str, kernel: &str, schedulers: &str, blesses: bool) -> Vec<String> {
    let golden = file("vm-turns.json");
    let mut args = vec!["vm", workload, "--kernel", kernel, "--scheduler", schedulers];
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
    let six = "fifo,rr,wrr,group-wrr,rmlfq,mlfq";
    turns_are_as_written_down("6.18", six);
}

#[test]
fn some_schedulers_on_7_0() {
    turns_are_as_written_down("7.0", "fifo,rr,wrr,group-wrr,rmlfq");
}

#[test]
fn some_schedulers_on_7_2() {
    turns_are_as_written_down("7.2", "fifo,rr,wrr,group-wrr,rmlfq");
}

#[test]
fn kernels_own_classes_repeat() {
    for kernel in ["6.1", "6.12", "7.0", "7.2"] {
        two_runs_are_equal(kernel, "kernel");
    }
    two_runs_are_equal("6.18", "kernel,sd,vtime");
}
