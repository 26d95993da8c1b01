// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared parts of the tests of the host lane: what this machine supports, and small workloads.
//!
//! Tests that need root or BPF run on every machine that allows it, and are skipped on others. In
//! CI (CI=true) root is expected, and BPF must load if the kernel has BTF: there a recorder that
//! does not load is a failure, not a skip.

#![allow(dead_code, missing_docs)] // Each test binary uses its own part.

use schedlab_host::{HostLane, HostOutcome, HostRequest};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::MemorySink;
use schedlab_model::{LoopCount, Op, Program, TaskSpec, Workload};
use schedlab_testing::skip;

pub fn is_ci() -> bool {
    std::env::var("CI").as_deref() == Ok("true")
}

/// Whether this process is root; otherwise prints why the test is skipped.
pub fn has_root() -> bool {
    let has = schedlab_host::lane::is_root();
    assert!(has || !is_ci(), "CI runs these tests as root");
    if !has {
        skip("needs root");
    }
    has
}

/// Whether this process may set real-time policies and attributes of other users' tasks; otherwise
/// prints why not.
pub fn has_nice() -> bool {
    let has = has_root() && schedlab_host::lane::may_set_policies();
    assert!(has || !is_ci(), "CI runs these tests with CAP_SYS_NICE");
    if !has {
        skip("needs CAP_SYS_NICE");
    }
    has
}

/// Whether the BPF recorder works; otherwise prints why not.
pub fn has_bpf() -> bool {
    if !has_root() {
        return false;
    }
    let probe = hogs(1, 1, 100_000);
    let request =
        HostRequest { recorder: schedlab_host::RecorderChoice::Bpf, ..HostRequest::new(probe, 1) };
    match HostLane.play(&request, &mut MemorySink::default()) {
        Ok(_) => true,
        Err(error) => {
            let has_btf = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
            assert!(!(is_ci() && has_btf), "the BPF recorder does not work: {error}");
            skip(error);
            false
        }
    }
}

/// A program of `times` units of `ns` CPU time, each marked.
pub fn units(times: u64, ns: u64) -> Program {
    ProgramBuilder::new()
        .begin_loop(LoopCount::Times(times))
        .run(ns)
        .op(Op::Progress)
        .end_loop()
        .build()
}

/// `n` tasks of [`units`].
pub fn hogs(n: u32, times: u64, ns: u64) -> Workload {
    let mut hog = TaskSpec::new("hog", units(times, ns));
    hog.instances = n;
    Workload::new("hogs", vec![hog])
}

/// Plays `request`, which must succeed, while no other test of this program plays one.
pub fn play(request: &HostRequest) -> (HostOutcome, MemorySink) {
    let _turn = schedlab_testing::turn();
    let mut sink = MemorySink::default();
    let outcome = HostLane.play(request, &mut sink).expect("the run succeeds");
    (outcome, sink)
}

/// Plays `request` until `holds`, at most ten times: other load on the machine disturbs single
/// attempts, a defect disturbs all of them.
pub fn play_until(
    request: &HostRequest,
    holds: impl Fn(&HostOutcome, &MemorySink) -> bool,
) -> (HostOutcome, MemorySink) {
    let mut last = None;
    for _ in 0..10 {
        let (outcome, sink) = play(request);
        if holds(&outcome, &sink) {
            return (outcome, sink);
        }
        last = Some(outcome);
    }
    panic!("none of ten runs is within the bounds; the last: {last:?}");
}
