// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deadline servers beside sched_ext schedulers: to 6.18 real-time tasks starve the tasks of a
//! scheduler, from 7.0 on the ext server gives these a share of each CPU. Sequences follow from
//! kernel/sched/deadline.c and ext.c of 7.0.

use crate::support;

use schedlab_model::{DeadlineParams, Policy, SchedAttr, TaskSpec};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::record::Log;
use support::schedulers::Simple;
use support::script::Script;
use support::{Case, MS, hog, nice, policy};

fn real_time() -> TaskSpec {
    hog("rt", policy(Policy::Fifo, 50))
}

/// A real-time hog A and a hog B of the scheduler.
fn hogs(until_ms: u64) -> Case {
    Case::new(1, until_ms, vec![real_time(), hog("ext", nice(0))])
}

fn timeline(case: &Case) -> String {
    case.run(Simple::fifo(), Log::default()).timeline()
}

#[test]
fn to_6_18_real_time_tasks_starve_those_of_a_scheduler() {
    assert_eq!(timeline(&hogs(3_100)), "0A");
}

#[test]
fn section_4_6_the_ext_server_of_7_1() {
    let expected = "0A 950B 1000A 1950B 2000A 2950B 3000A";
    assert_eq!(timeline(&hogs(3_100).at_7_1()), expected);
    // Half of the share, half as often.
    let case = hogs(4_100).at_7_1().with("ext_server_runtime", 25 * MS);
    let case = case.with("ext_server_period", 2_000 * MS);
    assert_eq!(timeline(&case), "0A 1975B 2000A 3975B 4000A");
}

#[test]
fn without_runtime_the_ext_server_serves_nobody() {
    assert_eq!(timeline(&hogs(3_100).at_7_1().with("ext_server_runtime", 0)), "0A");
}

#[test]
fn the_fair_server_serves_until_the_scheduler_is_loaded_and_after_it() {
    let case = hogs(4_400).at_7_1().with("scx_load_at", 1_500 * MS);
    let case = case.with("scx_unload_at", 2_600 * MS);
    // The ext server begins with the first task of the scheduler, at 1500. The fair server's
    // period of 1950 is over when its task comes back at 2600.
    assert_eq!(timeline(&case), "0A 950B 1000A 2450B 2500A 3550B 3600A");
}

#[test]
fn both_servers_of_7_1_are_admitted_from_the_start() {
    let deadline = |count: u32| {
        let (runtime_ns, period_ns) = (10 * MS, 100 * MS);
        let deadline =
            DeadlineParams { runtime_ns, deadline_ns: period_ns, period_ns, reclaim: false };
        let attr = SchedAttr { policy: Policy::Deadline, deadline, ..SchedAttr::default() };
        let tasks = vec![TaskSpec { instances: count, ..hog("deadline", attr) }];
        Case::new(1, 200, tasks)
    };
    let admits = |case: &Case| case.run(Simple::fifo(), Log::default()).result.is_ok();
    assert!(admits(&deadline(9)) && admits(&deadline(8).at_7_1()));
    let refused = deadline(9).at_7_1().run(Simple::fifo(), Log::default());
    assert!(refused.error().contains("EBUSY"), "{}", refused.error());
}

#[test]
fn a_scheduler_that_keeps_its_task_to_itself_is_asked_once() {
    let asked = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&asked);
    let ops = Script {
        enqueue: Some(Box::new(|_, _, _| {})),
        dispatch: Some(Box::new(move |k, _, _| {
            if k.now() > 0 {
                asked.fetch_add(1, Ordering::Relaxed);
            }
        })),
        ..Script::default()
    };
    assert_eq!(hogs(3_100).at_7_1().run(ops, Log::default()).timeline(), "0A");
    assert_eq!(seen.load(Ordering::Relaxed), 1, "by the server at 950 ms");
}
