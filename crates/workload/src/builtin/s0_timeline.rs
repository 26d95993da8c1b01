// SPDX-License-Identifier: MIT OR Apache-2.0
//! Study S0: timeline and progress of CPU-bound processes.
//!
//! Source: `sched` and `sched_nice` of Satoru Takeuchi, "Linux in Practice" (first edition). The
//! parent forks children one after another; each does a fixed amount of CPU work in records and
//! notes the time after each. Left out: the calibration loop (lanes measure CPU time) and the
//! printed records (the trace holds them).

use super::args::{Args, BuiltinError};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{LoopCount, Op, Program, SchedAttr, TaskSpec, Workload};

/// A child does `total / resol` records of `resol` CPU time. Each record is marked as progress.
/// `nice`: the child sets its own nice value before the first record, as with `nice(2)`.
fn child_program(args: &Args, own_attr: Option<SchedAttr>) -> Result<Program, BuiltinError> {
    let (total_ns, resol_ns) = (args.number("total"), args.number("resol"));
    if !total_ns.is_multiple_of(resol_ns) {
        return Err(args.conflict(format!(
            "total ({total_ns} ns) is no multiple of resol ({resol_ns} ns): choose one that is"
        )));
    }
    let mut builder = ProgramBuilder::new();
    if let Some(attr) = own_attr {
        builder.op(Op::SetAttr(Box::new(attr)));
    }
    Ok(builder
        .begin_loop(LoopCount::Times(total_ns / resol_ns))
        .run(resol_ns)
        .op(Op::Progress)
        .end_loop()
        .build())
}

/// A task that only a fork creates.
fn child(name: &str, attr: SchedAttr, program: Program) -> TaskSpec {
    TaskSpec { attr, instances: 0, ..TaskSpec::new(name, program) }
}

/// `sched n total resol`.
pub(super) fn sched(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    let parent = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(args.number("n")))
        .op(Op::Fork { task: 1 })
        .end_loop()
        .op(Op::JoinAll)
        .build();
    let parent = TaskSpec { attr, ..TaskSpec::new("sched", parent) };
    let child = child("child", attr, child_program(args, None)?);
    Ok(Workload::new("sched", vec![parent, child]))
}

/// `sched_nice total resol`: two children, the second at another nice value.
pub(super) fn sched_nice(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = args.attr()?;
    let parent = ProgramBuilder::new()
        .op(Op::Fork { task: 1 })
        .op(Op::Fork { task: 2 })
        .op(Op::JoinAll)
        .build();
    let parent = TaskSpec { attr, ..TaskSpec::new("sched_nice", parent) };
    let niced = SchedAttr { nice: args.nice("nice"), ..attr };
    let first = child("child0", attr, child_program(args, None)?);
    let second = child("child1", attr, child_program(args, Some(niced))?);
    Ok(Workload::new("sched_nice", vec![parent, first, second]))
}
