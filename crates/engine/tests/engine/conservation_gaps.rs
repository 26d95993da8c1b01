// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where history's schedulers leave a CPU idle beside a waiting task: the analysis of traces
//! ([`schedlab_metrics::analysis::wasted`]) finds each gap, with scheduler, time and cause.
//!
//! Four scenarios on two CPUs at HZ=1000, where nothing costs time. A scheduler with one queue for
//! all CPUs has no gap in any. The others have those of [`GAPS`], and no others; why stands there.

use crate::common;

use common::workloads::{burst, bursts, nice, on, policy, task};
use common::{Case, MS};
use schedlab_metrics::analysis::{Analyser, Analysis, Context, SpecFacts, Thresholds};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, CpuMask, Op, Policy, SchedAttr, TaskId, TaskSpec, TraceSink, Workload,
};
use schedlab_sched::Scheduler;
use schedlab_sched::registry::{SCHEDULERS, find};

/// Shortest gap that is told.
const SHORTEST: u64 = MS / 2;

fn analysed(case: &Case<'_>) -> Analysis {
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let all = CpuMask::first(case.machine.nr_cpus());
    let facts = |task: &TaskSpec| SpecFacts {
        policy: task.attr.policy,
        prio: task.attr.kernel_prio(),
        cpus: Some(task.attr.affinity.unwrap_or(all)),
        ..SpecFacts::default()
    };
    let context = Context {
        cpus: all,
        is_whole: true,
        specs: case.workload.tasks.iter().map(facts).collect(),
        thresholds: Thresholds { wasted_ns: SHORTEST, ..Thresholds::default() },
        ..Context::default()
    };
    let mut analyser = Analyser::new(context);
    for (id, info) in run.trace.tasks.iter().enumerate() {
        analyser.task(TaskId(id as u32), info);
    }
    for event in &run.trace.events {
        analyser.event(event);
    }
    analyser.end(run.trace.end_ns);
    analyser.finish()
}

/// `program` bound to a CPU, woken at a time.
fn bound(attr: SchedAttr, cpu: u32, release_ns: u64, run_ns: u64) -> TaskSpec {
    let attr = SchedAttr { affinity: on(&[cpu]).affinity, ..attr };
    TaskSpec { release_ns: Amount::Constant(release_ns), ..task("bound", attr, burst(run_ns)) }
}

/// A task that may run anywhere is...
fn scenario(name: &str) -> Workload {
    let tasks = match name {
        // ... forked, and forks two children on its CPU.
        "forked" => {
            let mut root = ProgramBuilder::new();
            root.op(Op::Fork { task: 1 }).op(Op::Fork { task: 1 }).run(30 * MS);
            let child = TaskSpec { instances: 0, ..TaskSpec::new("child", burst(30 * MS)) };
            vec![TaskSpec::new("root", root.build()), child]
        }
        // ... woken where it ran last, which another one has come to that may run nowhere else.
        "woken" => vec![
            task("sleeper", nice(0), bursts(10, MS / 4, 3 * MS)),
            bound(nice(0), 0, MS, 30 * MS),
        ],
        // ... driven off its CPU by a real-time task that may run nowhere else.
        "driven" => vec![
            task("hog", nice(0), burst(150 * MS)),
            bound(policy(Policy::Fifo, 1), 0, 5 * MS, 100 * MS),
        ],
        // ... yielding to one that may run nowhere else.
        _ => {
            let mut yielder = ProgramBuilder::new();
            yielder.run(5 * MS).op(Op::Yield).run(20 * MS);
            vec![
                task("yielder", nice(0), yielder.build()),
                bound(nice(0), 1, 0, 3 * MS),
                // Just before a tick, so that it comes before it in every kernel.
                bound(nice(0), 0, MS - 1, 30 * MS),
            ]
        }
    };
    Workload::new(name, tasks)
}

const SCENARIOS: [&str; 4] = ["forked", "woken", "driven", "yields"];

/// "0 late-balance 5000-6000": task 0 waited from 5 to 6 ms beside an idle CPU that took it then.
fn gaps(scheduler: &Scheduler, name: &str) -> Vec<String> {
    let workload = scenario(name);
    let mut case = Case::new(&workload, scheduler, 2);
    case.machine.hz = 1000;
    let found = analysed(&case).wasted;
    let tell = |gap: &schedlab_metrics::analysis::Wasted| {
        format!("{} {} {}-{}", gap.task, gap.cause, gap.from_ns / 1_000, gap.to_ns / 1_000)
    };
    found.longest.iter().map(tell).collect()
}

/// Schedulers, scenario, the gaps.
const GAPS: [(&[&str], &str, &[&str]); 21] = [
    // One queue, but nobody looks for a CPU for a task that yields or is driven off: it waits until
    // a CPU chooses anew, and an idle one does not.
    (&["linux-2.4.18"], "yields", &["0 not-balanced 5000-35000"]),
    (WRR, "yields", &["0 not-balanced 5000-35000"]),
    (WRR, "driven", &["0 not-balanced 5000-105000"]),
    // A fork and a wake-up look for no idle CPU. An idle CPU looks at its next tick.
    (&["linux-2.6.0"], "forked", &["0 late-balance 0-1000"]),
    (&["linux-2.6.0"], "woken", &["0 late-balance 3250-4000"]),
    (&["linux-2.6.0"], "driven", &["0 late-balance 5000-6000"]),
    (&["linux-2.6.0"], "yields", &["0 late-balance 5000-6000"]),
    // It takes one of two, which ends the gap of the other: no CPU is idle any more.
    (&["linux-2.6.11"], "forked", TWO_CHILDREN),
    // With domains the interval of an idle CPU is 1 to 2 ms, and the load of the other CPU is an
    // average: a second task that has just come may not show yet.
    (WITH_DOMAINS, "woken", &["0 late-balance 3250-5000"]),
    (&["linux-2.6.11"], "driven", &["0 late-balance 5000-6000"]),
    (WITH_DOMAINS, "yields", &["0 late-balance 5000-6000"]),
    // What has just been forked is cache-hot for 2.5 ms, for an idle CPU too.
    (
        &["linux-2.6.22"],
        "forked",
        &["2 late-balance 0-3000", "1 not-balanced 0-3000", "0 late-balance 33000-34000"],
    ),
    // Turns are shorter: who waits has run a while ago, and is hot.
    (
        &["rsdl-0.31"],
        "forked",
        &[
            "1 not-balanced 0-1000",
            "2 late-balance 0-3000",
            "0 not-balanced 1000-3000",
            "1 late-balance 33000-34000",
        ],
    ),
    (
        &["sd-0.48"],
        "forked",
        &["2 late-balance 0-3000", "1 not-balanced 0-3000", "1 late-balance 33000-36000"],
    ),
    // The average rises from tick to tick; at first the difference is too small to act on.
    (&["linux-2.6.22", "rsdl-0.31", "sd-0.48"], "driven", &["0 late-balance 5000-8000"]),
    // An idle CPU relieves a CPU with one fair task when the real-time task has taken a seventh of
    // its capacity (sched_reduced_capacity). A CPU notices that when it balances itself
    // (update_cpu_capacity), which a busy one of two does after 31 ms.
    (CFS_AND_EEVDF, "driven", &["0 late-balance 5000-37000"]),
    // Only CFS gives the CPU away at once; the tick of the busy CPU then wakes the idle one.
    (&["linux-6.1"], "yields", &["0 late-balance 5000-6000"]),
    (&["linux-6.6", "linux-6.12.0"], "yields", &[]),
    // With NI_RANDOM every second CPU that is about to go idle does not search at first.
    (&["linux-6.1"], "forked", &["0 late-balance 30000-31000"]),
    (&["linux-6.12", "linux-6.18"], "forked", &["2 late-balance 30000-31000"]),
    (&["linux-6.12", "linux-6.18"], "yields", &["0 late-balance 3000-4000"]),
];

const WRR: &[&str] = &[
    "wrr",
    "group-wrr",
    "basic-wrr-as-built",
    "rmlfq-design",
    "rmlfq-as-built-64",
    "rmlfq-as-built-32",
];
const WITH_DOMAINS: &[&str] = &["linux-2.6.11", "linux-2.6.22", "rsdl-0.31", "sd-0.48"];
const CFS_AND_EEVDF: &[&str] =
    &["linux-6.1", "linux-6.6", "linux-6.12.0", "linux-6.12", "linux-6.18"];
const TWO_CHILDREN: &[&str] = &["2 late-balance 0-1000", "1 not-balanced 0-1000"];

#[test]
fn the_gaps_of_each_scheduler_are_found_by_name() {
    let mut named: Vec<&str> = GAPS.iter().flat_map(|row| row.0).copied().collect();
    named.sort_unstable();
    named.dedup();
    let mut differences = Vec::new();
    for scheduler in named {
        let info = find(scheduler).expect("it is registered");
        for scenario in SCENARIOS {
            let row = GAPS.iter().find(|row| row.0.contains(&scheduler) && row.1 == scenario);
            let (expected, found) = (row.map_or(&[][..], |row| row.2), gaps(info, scenario));
            if found != expected {
                differences.push(format!("{scheduler}, {scenario}: {found:?}, not {expected:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn one_queue_for_all_cpus_has_no_gap() {
    let mut nr_checked = 0;
    for info in SCHEDULERS.iter() {
        let is_textbook = info.claims.work_conserving && !info.name.starts_with("linux-");
        // The first CFS patch is a Linux too.
        if is_textbook && !info.name.starts_with("cfs-") {
            nr_checked += 1;
            for scenario in SCENARIOS {
                let found = gaps(info, scenario);
                assert_eq!(found, Vec::<String>::new(), "{}, {scenario}", info.name);
            }
        }
    }
    assert_eq!(nr_checked, 15);
}
