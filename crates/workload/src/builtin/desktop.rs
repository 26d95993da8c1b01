// SPDX-License-Identifier: MIT OR Apache-2.0
//! Desktop workloads: a program that draws frames next to hogs, and a compilation.
//!
//! `compile` is the tree of processes that `make -jN` starts. For each file a compiler driver runs
//! the compiler proper and the assembler; at the end the linker runs. make's job slots are a
//! semaphore, as its job server's pipe is (GNU make manual, "POSIX Jobserver Interaction").

use super::args::{Args, BuiltinError};
use super::blocks::hog_program;
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::time::NSEC_PER_SEC;
use schedlab_model::{
    Amount, LoopCount, ObjectId, ObjectKind, ObjectSpec, Op, Program, SchedAttr, TaskSpec,
    TimerMode, Workload,
};

/// A program that draws `fps` frames per second, and hogs. Each frame is one unit of progress.
/// After a late frame a new period begins. The number of lost frames is therefore `fps` times the
/// duration, minus the progress; the frame rate is progress divided by duration.
pub(super) fn frame_loop(args: &Args) -> Result<Workload, BuiltinError> {
    let (fps, work_ns) = (args.number("fps"), args.number("work"));
    let period_ns = NSEC_PER_SEC / fps;
    if work_ns > period_ns {
        return Err(args.conflict(format!(
            "work ({work_ns} ns) is longer than a frame at {fps} frames a second ({period_ns} ns): \
             no scheduler could keep up; lower work or fps"
        )));
    }
    let period = Amount::Constant(period_ns);
    let frames = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .run(work_ns)
        .op(Op::Progress)
        .op(Op::Timer { timer: 0, period, mode: TimerMode::Relative })
        .end_loop()
        .build();
    let attr = args.attr()?;
    let mut frames = TaskSpec::new("frames", frames);
    frames.attr = SchedAttr { nice: args.nice("nice"), ..attr };
    frames.is_process = true;
    let mut tasks = vec![frames];
    let hogs = args.count("hogs");
    if hogs > 0 {
        let mut hog = TaskSpec::new("hog", hog_program(None));
        hog.attr = SchedAttr {
            nice: args.nice("hog_nice"),
            affinity: attr.affinity,
            ..SchedAttr::default()
        };
        hog.instances = hogs;
        hog.is_process = true;
        tasks.push(hog);
    }
    let mut workload = Workload::new("frame_loop", tasks);
    workload.duration_ns = Some(args.number("until"));
    Ok(workload)
}

/// make's job slots.
const SLOTS: ObjectId = ObjectId(0);
/// Indices of descriptions. make forks `cc` for each file and `ld` at the end; `cc` forks `cc1` and
/// `as`.
const CC: u32 = 1;
const CC1: u32 = 2;
const AS: u32 = 3;
const LD: u32 = 4;

/// CPU time of small programs: make's reading of the makefile for one file, and the driver's own
/// work.
const OVERHEAD_NS: u64 = 1_000_000;
/// Divisor: the assembler and the linker take this part of a file's CPU time.
const AS_PART: u64 = 10;

/// The work of files varies: from half the mean to one and a half times the mean.
fn around(mean: u64) -> Amount {
    Amount::Uniform { low: mean / 2, high: mean + mean / 2 }
}

/// A transfer of about this many bytes.
fn transfer(direction: IoDirection, bytes: u64, sync: bool) -> Op {
    Op::Io { direction, bytes: around(bytes), sync }
}

/// make: starts a job for each file while slots are free, then the linker.
fn make(files: u64) -> Program {
    ProgramBuilder::new()
        .begin_loop(LoopCount::Times(files))
        .op(Op::SemWait { object: SLOTS })
        .run(OVERHEAD_NS)
        .op(Op::Fork { task: CC })
        .end_loop()
        .op(Op::JoinAll)
        .op(Op::Fork { task: LD })
        .op(Op::Join { task: LD })
        .build()
}

/// The compiler driver.
fn cc() -> Program {
    ProgramBuilder::new()
        .run(OVERHEAD_NS)
        .op(Op::Fork { task: CC1 })
        .op(Op::Join { task: CC1 })
        .op(Op::Fork { task: AS })
        .op(Op::Join { task: AS })
        .op(Op::Progress)
        .op(Op::SemPost { object: SLOTS })
        .build()
}

/// A program that reads, computes and writes through the page cache.
fn stage(read: Op, work_ns: u64, written: u64) -> Program {
    ProgramBuilder::new()
        .op(read)
        .op(Op::Run(around(work_ns)))
        .op(transfer(IoDirection::Write, written, false))
        .build()
}

/// The linker: reads every object file and writes the program.
fn ld(files: u64, work_ns: u64, object: u64) -> Program {
    ProgramBuilder::new()
        .begin_loop(LoopCount::Times(files))
        .op(transfer(IoDirection::Read, object, false))
        .op(Op::Run(around(work_ns)))
        .end_loop()
        .op(transfer(IoDirection::Write, object, true))
        .build()
}

/// `make -jJ` on `files` files.
pub(super) fn compile(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    let (files, work_ns) = (args.number("files"), args.number("work"));
    let (source, object) = (args.number("source"), args.number("object"));
    let from_device = transfer(IoDirection::Read, source, true);
    let from_cache = transfer(IoDirection::Read, object, false);
    let programs = [
        ("make", make(files)),
        ("cc", cc()),
        ("cc1", stage(from_device, work_ns, object)),
        ("as", stage(from_cache, work_ns / AS_PART, object)),
        ("ld", ld(files, work_ns / AS_PART / 2, object)),
    ];
    let tasks = programs.into_iter().enumerate().map(|(index, (name, program))| TaskSpec {
        attr,
        instances: u32::from(index == 0),
        is_process: true,
        ..TaskSpec::new(name, program)
    });
    let mut workload = Workload::new("compile", tasks.collect());
    let slots = ObjectKind::Semaphore { initial: args.count("jobs") };
    workload.objects = vec![ObjectSpec::new("slots", slots)];
    Ok(workload)
}

#[cfg(test)]
mod tests {
    use crate::builtin::builtin;

    #[test]
    fn a_compilation_is_three_processes_a_file() {
        let workload = builtin("compile", &[("files", "7")]).unwrap();
        assert_eq!(workload.nr_tasks_least(), 1 + 7 * 3 + 1);
    }

    #[test]
    fn a_frame_must_fit_its_period() {
        let error = builtin("frame_loop", &[("work", "20ms")]).unwrap_err().to_string();
        assert!(error.contains("work (20000000 ns) is longer than a frame at 60"), "{error}");
        let alone = builtin("frame_loop", &[("hogs", "0")]).unwrap();
        assert_eq!(alone.nr_released(), 1);
    }
}
