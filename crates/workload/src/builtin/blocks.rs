// SPDX-License-Identifier: MIT OR Apache-2.0
//! Building blocks of experiments: hogs, periodic tasks, interactive tasks among hogs.

use super::args::{Args, BuiltinError};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC};
use schedlab_model::{
    Amount, LoopCount, Nanos, Op, Program, SchedAttr, TaskSpec, TimerMode, Workload,
};

/// Default end of a run that would not end by itself.
const ENDLESS_RUN_NS: Nanos = 10 * NSEC_PER_SEC;

/// CPU time that an endless hog requests at once. It only determines how often a lane looks at the
/// program. There is no gap between two requests.
const HOG_CHUNK_NS: Nanos = 100 * NSEC_PER_MSEC;

/// Uses `work_ns` of CPU time; `None`: for ever.
pub(super) fn hog_program(work_ns: Option<Nanos>) -> Program {
    let mut builder = ProgramBuilder::new();
    match work_ns {
        Some(ns) => builder.run(ns).build(),
        None => builder.begin_loop(LoopCount::Forever).run(HOG_CHUNK_NS).end_loop().build(),
    }
}

/// Returns `until` as given. Without it, an endless workload gets [`ENDLESS_RUN_NS`].
fn end_of_run(args: &Args, endless: bool) -> Option<Nanos> {
    args.number_or_none("until").or(endless.then_some(ENDLESS_RUN_NS))
}

/// `n` tasks that only use the CPU. Several nice values are assigned to the tasks in turn; the
/// tasks of one value form one kind of task.
pub(super) fn hogs(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = args.attr()?;
    let work_ns = args.number_or_none("work");
    let nices = args.nices("nice");
    let count = args.count("n");
    if nices.len() > count as usize {
        return Err(args.conflict(format!(
            "nice lists {} values for n={count} hogs: give at most as many values as hogs",
            nices.len()
        )));
    }
    let mut kinds: Vec<(i8, u32)> = Vec::new();
    for hog in 0..count as usize {
        let nice = nices[hog % nices.len()];
        match kinds.iter_mut().find(|(kind, _)| *kind == nice) {
            Some((_, instances)) => *instances += 1,
            None => kinds.push((nice, 1)),
        }
    }
    let one_kind = kinds.len() == 1;
    let tasks = kinds
        .into_iter()
        .map(|(nice, instances)| {
            let name = if one_kind { "hog".into() } else { format!("hog_nice{nice}") };
            let mut task = TaskSpec::new(name, hog_program(work_ns));
            task.attr = SchedAttr { nice, ..attr };
            task.instances = instances;
            task
        })
        .collect();
    let mut workload = Workload::new("hogs", tasks);
    workload.duration_ns = end_of_run(args, work_ns.is_none());
    Ok(workload)
}

/// `n` tasks that run for `run` once per `period`. Each has its own absolute timer, so a late
/// period does not delay later ones.
pub(super) fn periodic(args: &Args) -> Result<Workload, BuiltinError> {
    let cycles = args.number_or_none("cycles");
    let (run_ns, period_ns) = (args.number("run"), args.number("period"));
    if run_ns > period_ns {
        return Err(args.conflict(format!(
            "run ({run_ns} ns) is longer than period ({period_ns} ns): such a task is a hog; \
             give run <= period"
        )));
    }
    let program = ProgramBuilder::new()
        .begin_loop(cycles.map_or(LoopCount::Forever, LoopCount::Times))
        .run(run_ns)
        .op(Op::Timer { timer: 0, period: Amount::Constant(period_ns), mode: TimerMode::Absolute })
        .end_loop()
        .build();
    let mut task = TaskSpec::new("periodic", program);
    task.attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    task.instances = args.count("n");
    let mut workload = Workload::new("periodic", vec![task]);
    workload.duration_ns = end_of_run(args, cycles.is_none());
    Ok(workload)
}

/// `n` endless hogs, and `sleepers` tasks that sleep for exponentially distributed times and then
/// work briefly, like a terminal or an editor.
pub(super) fn interactive(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = args.attr()?;
    let hogs = args.count("n");
    let mut tasks = Vec::new();
    if hogs > 0 {
        let mut hog = TaskSpec::new("hog", hog_program(None));
        hog.attr = SchedAttr { nice: args.nice("nice"), ..attr };
        hog.instances = hogs;
        tasks.push(hog);
    }
    let program = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .op(Op::Sleep(Amount::Exponential { mean: args.number("think") }))
        .run(args.number("burst"))
        .end_loop()
        .build();
    let mut sleeper = TaskSpec::new("sleeper", program);
    sleeper.attr = attr;
    sleeper.instances = args.count("sleepers");
    tasks.push(sleeper);
    let mut workload = Workload::new("interactive", tasks);
    workload.duration_ns = Some(args.number("until"));
    Ok(workload)
}
