// SPDX-License-Identifier: MIT OR Apache-2.0
//! Study S1: turnaround time and throughput against the number of processes.
//!
//! Source: `load.py`, `multiload.sh` and `cpuperf.sh` of Satoru Takeuchi, "Linux in Practice"
//! (second edition): a shell starts n background jobs at once and waits for all; another does so
//! with one job, with two, and so on. Left out: the interpreter's start-up.

use super::args::{Args, BuiltinError};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{LoopCount, Op, SchedAttr, TaskSpec, Workload};

/// One job of `work` CPU time.
pub(super) fn load(args: &Args) -> Result<Workload, BuiltinError> {
    let mut job = TaskSpec::new("load", ProgramBuilder::new().run(args.number("work")).build());
    job.attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    Ok(Workload::new("load", vec![job]))
}

/// A shell that starts `n` such jobs in the background and waits. `cpus=0` is the script without
/// `-m`: it pins itself, and therefore its jobs, to CPU 0.
pub(super) fn multiload(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    let shell = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(args.number("n")))
        .op(Op::Fork { task: 1 })
        .end_loop()
        .op(Op::JoinAll)
        .build();
    let shell = TaskSpec { attr, ..TaskSpec::new("shell", shell) };
    let job = ProgramBuilder::new().run(args.number("work")).build();
    let job = TaskSpec { attr, instances: 0, ..TaskSpec::new("load", job) };
    Ok(Workload::new("multiload", vec![shell, job]))
}

/// A shell that starts one such job and waits, then two, up to `max`.
pub(super) fn cpuperf(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    let mut shell = ProgramBuilder::new();
    for count in 1..=args.number("max") {
        shell
            .begin_loop(LoopCount::Times(count))
            .op(Op::Fork { task: 1 })
            .end_loop()
            .op(Op::JoinAll);
    }
    let shell = TaskSpec { attr, ..TaskSpec::new("shell", shell.build()) };
    let job = ProgramBuilder::new().run(args.number("work")).build();
    let job = TaskSpec { attr, instances: 0, ..TaskSpec::new("load", job) };
    Ok(Workload::new("cpuperf", vec![shell, job]))
}
