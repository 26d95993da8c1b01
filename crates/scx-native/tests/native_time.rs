// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time that programs of a natively compiled scheduler take on a machine with
//! `bpf_kinsn_ns`.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "../../scx/tests/scx/support/mod.rs"]
mod support;

use schedlab_scx_native::{CompileOptions, NativeScheduler, find_clang};
use support::{Case, MS, later, nice};

/// One queue. Its second move has the flags that sources for 7.1 and later give.
const SOURCE: &str = r#"
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

s32 BPF_STRUCT_OPS_SLEEPABLE(x_init)
{
	return scx_bpf_create_dsq(7, -1);
}

void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, 7, SCX_SLICE_DFL, enq_flags);
}

void BPF_STRUCT_OPS(x_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(7))
		scx_bpf_dsq_move_to_local(7, 0);
}

SCX_OPS_DEFINE(x_ops, .init = (void *)x_init, .enqueue = (void *)x_enqueue,
	       .dispatch = (void *)x_dispatch, .name = "x");
"#;

/// When the CPU becomes idle (ns): after two tasks of 5 ms, of which the second waits.
fn ends_ns(scheduler: &NativeScheduler, kinsn_ns: u64) -> u64 {
    let tasks = (0..2).map(|_| later("task", nice(0), 0, 5 * MS)).collect();
    let mut case = Case::new(1, 100, tasks);
    case.machine.costs.bpf_kinsn_ns = kinsn_ns;
    let ops = scheduler.ops(1, case.machine.hz).unwrap();
    let ran = case.run_boxed(ops, Default::default());
    ran.outcome();
    ran.trace.events.last().unwrap().time_ns
}

#[test]
fn a_switch_takes_the_time_of_what_programs_call() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bpf.c");
    std::fs::write(&path, SOURCE).unwrap();
    let scheduler = NativeScheduler::compile(&path, &CompileOptions::default()).unwrap();
    assert_eq!(ends_ns(&scheduler, 0), 10 * MS);
    let insns = (ends_ns(&scheduler, 1_000_000) - 10 * MS) / 1_000;
    // Before each task: a callback (105) and a move (370).
    assert_eq!(insns, 2 * (105 + 370));
}
