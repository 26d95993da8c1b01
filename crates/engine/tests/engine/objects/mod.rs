// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tasks share and wait on: who gets it, when, and what the trace and the errors say.
//!
//! Without costs, and with a CPU for each task unless the CPU is the point, times are closed forms.

use crate::common;

mod channels;
mod errors;
mod inversion;
mod sync;

use common::{Case, MS, Run};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::WaitKind;
use schedlab_model::{
    Amount, CpuId, CpuMask, EventKind, Nanos, ObjectId, ObjectKind, ObjectSpec, Program, SchedAttr,
    TaskId, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

/// A workload of objects, each called by its letter from `a` on.
fn workload(objects: &[ObjectKind], tasks: Vec<TaskSpec>) -> Workload {
    let mut workload = Workload::new("objects", tasks);
    for (letter, kind) in ('a'..).zip(objects) {
        workload.add_object(ObjectSpec::new(letter, *kind));
    }
    workload
}

/// A task alone on CPU `cpu`, released at `ms`.
fn task(name: &str, cpu: u32, ms: u64, program: Program) -> TaskSpec {
    let affinity = Some(CpuMask::only(CpuId(cpu)));
    TaskSpec {
        attr: SchedAttr { affinity, ..SchedAttr::default() },
        release_ns: Amount::Constant(ms * MS),
        ..TaskSpec::new(name, program)
    }
}

fn build(fill: impl FnOnce(&mut ProgramBuilder)) -> Program {
    let mut builder = ProgramBuilder::new();
    fill(&mut builder);
    builder.build()
}

fn run_under(scheduler: &str, nr_cpus: u32, workload: &Workload) -> Run {
    let info = find(scheduler).expect("the scheduler is registered");
    common::checks::check_case(&Case::new(workload, info, nr_cpus))
        .unwrap_or_else(|broken| panic!("{}", broken.text))
}

/// Under a plain scheduler, on 4 CPUs.
fn run(workload: &Workload) -> Run {
    run_under("rr", 4, workload)
}

fn id_of(run: &Run, name: &str) -> TaskId {
    let at = run.trace.tasks.iter().position(|task| task.name == name);
    TaskId(at.unwrap_or_else(|| panic!("no task {name:?}")) as u32)
}

/// When a task exits (ms).
fn exit_ms(run: &Run, name: &str) -> u64 {
    let id = id_of(run, name);
    let is_exit = |kind: EventKind| kind == EventKind::Exit { task: id };
    let exit = run.trace.events.iter().find(|event| is_exit(event.kind)).expect("it exits");
    assert_eq!(exit.time_ns % MS, 0, "{name} exits at {} ns", exit.time_ns);
    exit.time_ns / MS
}

/// When a task blocks, and on what.
fn blocks(run: &Run, name: &str) -> Vec<(Nanos, String)> {
    let id = id_of(run, name);
    let block = |event: &schedlab_model::Event| match event.kind {
        EventKind::Block { task, object } if task == id => {
            let object = &run.trace.objects[object.index()];
            Some((event.time_ns, format!("{} {}", object.kind.name(), object.name)))
        }
        _ => None,
    };
    run.trace.events.iter().filter_map(block).collect()
}

/// The task that woke another, at each of its wake-ups.
fn wakers(run: &Run, name: &str) -> Vec<(Nanos, Option<String>)> {
    let id = id_of(run, name);
    let wakeup = |event: &schedlab_model::Event| match event.kind {
        EventKind::Wakeup { task, waker } if task == id => {
            let waker = waker.map(|waker| run.trace.tasks[waker.index()].name.clone());
            Some((event.time_ns, waker))
        }
        _ => None,
    };
    run.trace.events.iter().filter_map(wakeup).collect()
}

const A: ObjectId = ObjectId(0);
const B: ObjectId = ObjectId(1);
const C: ObjectId = ObjectId(2);

#[test]
fn objects_are_announced_with_name_and_kind() {
    let done = workload(
        &[ObjectKind::MUTEX, ObjectKind::PIPE],
        vec![task(
            "t",
            0,
            0,
            build(|b| {
                b.lock(A).run(MS).unlock(A);
            }),
        )],
    );
    let kinds: Vec<_> = run(&done).trace.objects.into_iter().map(|o| (o.name, o.kind)).collect();
    assert_eq!(kinds, [("a".into(), WaitKind::Mutex), ("b".into(), WaitKind::Pipe)]);
}
