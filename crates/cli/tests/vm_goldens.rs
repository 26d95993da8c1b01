// SPDX-License-Identifier: MIT OR Apache-2.0
//! What real kernels and schedulers decide stays as it is written down: who runs after whom, and
//! why each leaves its CPU, on five kernels and under every scheduler of bpf/scx, in counted time.
//!
//! `goldens/vm-turns.json` holds the turns, keyed by kernel, QEMU, machine and request; the guest's
//! build is no part of it (crates/vm/src/turns.rs). Where it has none for the kernel or QEMU that
//! are here, a run is made twice, both are compared, and the output says so. `cargo xtask bless`
//! writes the file anew, from the kernels that are here.

mod common;
use common::{kernel_ready, schedlab};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const HOGS: &str = "hogs:n=4,work=120ms";
/// Nice -5, 0, 5, 10.
const NICE: &str = "nice.json";
/// Tests write the file one after the other.
static FILE: Mutex<()> = Mutex::new(());

fn file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    folder.join(name).display().to_string()
}

/// The runs of a kernel: its own class and these schedulers, under both workloads.
fn turns_are_as_written_down(test: &str, kernel: &str, schedulers: &str) {
    if !kernel_ready(test, kernel) {
        return;
    }
    let (golden, nice) = (file("vm-turns.json"), file(NICE));
    let blesses = std::env::var_os("SCHEDLAB_BLESS").is_some();
    let _alone = blesses.then(|| FILE.lock().unwrap_or_else(PoisonError::into_inner));
    for workload in [HOGS, &nice] {
        let mut args = vec!["vm", workload, "--kernel", kernel, "--scheduler", schedulers];
        args.extend(["--golden", &golden, "--json"]);
        if blesses {
            args.extend(["--bless", "--turns"]);
        }
        let done = schedlab(&args);
        let told: Vec<&str> =
            done.stderr.lines().filter(|line| line.starts_with("golden: ")).collect();
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert_eq!(told.len(), schedulers.split(',').count(), "{}", done.stderr);
        for line in told {
            println!("{line}");
            assert!(!line.contains("bless anew"), "{line}");
            let is_checked = ["the same", "both runs equal", "turns kept"];
            assert!(is_checked.iter().any(|words| line.contains(words)), "{line}");
        }
    }
}

#[test]
fn cfs_of_6_1() {
    turns_are_as_written_down("cfs_of_6_1", "6.1", "kernel");
}

#[test]
fn eevdf_of_6_12() {
    turns_are_as_written_down("eevdf_of_6_12", "6.12", "kernel");
}

#[test]
fn eevdf_of_6_18_and_every_scheduler() {
    let all = "kernel,fifo,rr,wrr,group-wrr,rmlfq,mlfq,sd,vtime";
    turns_are_as_written_down("eevdf_of_6_18_and_every_scheduler", "6.18", all);
}

#[test]
fn eevdf_of_7_0_and_some_schedulers() {
    turns_are_as_written_down("eevdf_of_7_0_and_some_schedulers", "7.0", "kernel,rr,wrr");
}

#[test]
fn eevdf_of_7_2_and_some_schedulers() {
    turns_are_as_written_down("eevdf_of_7_2_and_some_schedulers", "7.2", "kernel,rr,wrr");
}
