// SPDX-License-Identifier: MIT OR Apache-2.0
//! Study S4: running time and latency of many processes.
//!
//! Source: `cpu_bound`, `io_bound`, `mixed` and `cpu_latency` of Zenan Li, "In Search of an
//! Efficient Linux Process Scheduler" (2021). The parent sets the policy with the greatest
//! priority, forks n children, which inherit it, and waits. The study's WRR policies are schedulers
//! here, so any policy may be given. `mixed` is called `cpu_io_bound`, because study S2 has a
//! `mixed` too.

use super::args::{Args, BuiltinError};
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{Amount, LoopCount, Op, Program, SchedAttr, TaskSpec, Workload};

fn parent(args: &Args, name: &str, child: Program) -> Result<Workload, BuiltinError> {
    let attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    let program = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(args.number("n")))
        .op(Op::Fork { task: 1 })
        .end_loop()
        .op(Op::JoinAll)
        .build();
    let parent = TaskSpec { attr, ..TaskSpec::new("parent", program) };
    let child = TaskSpec { attr, instances: 0, ..TaskSpec::new("child", child) };
    Ok(Workload::new(name, vec![parent, child]))
}

/// Appends operations that copy `bytes` in blocks through the page cache. The study opens files
/// without O_SYNC, so neither read nor write waits for the device.
fn copy(builder: &mut ProgramBuilder, bytes: u64, block: u64) {
    let io = |direction| Op::Io { direction, bytes: Amount::Constant(block), sync: false };
    builder
        .begin_loop(LoopCount::Times(bytes.div_ceil(block)))
        .op(io(IoDirection::Read))
        .op(io(IoDirection::Write))
        .end_loop();
}

/// Each child estimates e with random points: CPU work only.
pub(super) fn cpu_bound(args: &Args) -> Result<Workload, BuiltinError> {
    parent(args, "cpu_bound", ProgramBuilder::new().run(args.number("work")).build())
}

/// Each child copies `bytes` in blocks.
pub(super) fn io_bound(args: &Args) -> Result<Workload, BuiltinError> {
    let mut builder = ProgramBuilder::new();
    copy(&mut builder, args.number("bytes"), args.number("block"));
    parent(args, "io_bound", builder.build())
}

/// Each child does `rounds` rounds. A round is a part of the work and a part of the copying.
pub(super) fn cpu_io_bound(args: &Args) -> Result<Workload, BuiltinError> {
    let rounds = args.number("rounds");
    let work_ns = args.number("work");
    let bytes = args.number("bytes") / rounds;
    if !work_ns.is_multiple_of(rounds) || bytes == 0 {
        return Err(args.conflict(format!(
            "work ({work_ns} ns) must divide by rounds ({rounds}), and bytes must be at least \
             rounds"
        )));
    }
    let mut builder = ProgramBuilder::new();
    builder.begin_loop(LoopCount::Times(rounds)).run(work_ns / rounds);
    copy(&mut builder, bytes, args.number("block"));
    parent(args, "cpu_io_bound", builder.end_loop().build())
}

/// As `cpu_bound`, but each child has a priority drawn from 1 to 99, and the parent has the
/// greatest. The measured value is each child's response time: fork to first run.
///
/// The study's parent sets `rand() % 100` after each fork, unseeded, so every run has the same
/// sequence; here it comes from `seed`. A child here has its priority from the start. In the study
/// it has the parent's until the parent runs and changes it.
pub(super) fn cpu_latency(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = args.attr()?;
    let mut stream = Stream::new(args.number("seed"), Purpose::Program, 0);
    let mut children: Vec<TaskSpec> = Vec::new();
    let mut builder = ProgramBuilder::new();
    for _ in 0..args.number("n") {
        let rt_priority = 1 + stream.below(99) as u8;
        let known = children.iter().position(|child| child.attr.rt_priority == rt_priority);
        let index = known.unwrap_or_else(|| {
            let work = ProgramBuilder::new().run(args.number("work")).build();
            let name = format!("child_prio{rt_priority}");
            let attr = SchedAttr { rt_priority, ..attr };
            children.push(TaskSpec { attr, instances: 0, ..TaskSpec::new(name, work) });
            children.len() - 1
        });
        builder.op(Op::Fork { task: index as u32 + 1 });
    }
    let parent = TaskSpec {
        attr: SchedAttr { rt_priority: 99, ..attr },
        ..TaskSpec::new("parent", builder.op(Op::JoinAll).build())
    };
    let tasks = std::iter::once(parent).chain(children).collect();
    Ok(Workload::new("cpu_latency", tasks))
}
