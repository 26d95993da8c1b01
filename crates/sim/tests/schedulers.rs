// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler that a lane is handed, as a compiled one is, and the same of the registry.

use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::NullSink;
use schedlab_model::workload::SessionSpec;
use schedlab_model::{CpuMask, TaskSpec, Workload};
use schedlab_run::{Lane, RunRequest, RunResult};
use schedlab_sched::{Scheduler, registry};
use schedlab_sim::SimLane;
use std::sync::Arc;

/// Four tasks, three of them in one session, under linux-6.18 with autogroup on, handed to the lane
/// under the name `mine`.
fn run(scheduler: &str) -> RunResult {
    let member = |name: &str, instances, session| TaskSpec {
        instances,
        session: Some(session),
        ..TaskSpec::new(name, ProgramBuilder::new().run(400_000_000).build())
    };
    let mut workload = Workload::new("sessions", vec![member("many", 3, 0), member("one", 1, 1)]);
    let session = |name: &str| SessionSpec { name: name.into(), nice: 0 };
    workload.sessions = vec![session("build"), session("player")];
    let own = Scheduler::clone(registry::find("linux-6.18").unwrap());
    let mine = Scheduler { name: "mine".into(), ..own };
    let lane = SimLane { schedulers: vec![Arc::new(mine)], ..SimLane::default() };
    let mut request = RunRequest::new(workload, scheduler, CpuMask::first(1));
    request.tunables = vec![("sched_autogroup_enabled".into(), "1".into())];
    lane.run(&request, &mut NullSink).unwrap()
}

#[test]
fn both_ways_to_a_scheduler_give_the_same_run() {
    let (own, mine) = (run("linux-6.18"), run("mine"));
    assert_eq!((own.scheduler.as_str(), mine.scheduler.as_str()), ("linux-6.18", "mine"));
    assert_eq!(own.measures, mine.measures);
    // The groups of sessions are made in both: the task that is alone in its session has half of
    // the CPU, and ends when its 400 ms of work have taken 800 ms.
    let one = mine.measures.tasks.iter().find(|task| task.name == "one").unwrap();
    let turnaround = one.turnaround_ns.unwrap();
    assert!((790_000_000..830_000_000).contains(&turnaround), "{turnaround}");
}

#[test]
fn a_kernel_is_found_under_its_bare_version_too() {
    assert_eq!(run("6.18").scheduler, "linux-6.18");
    assert_eq!(run("6.18").measures, run("linux-6.18").measures);
}
