// SPDX-License-Identifier: MIT OR Apache-2.0
//! GRUB through the whole engine: shares that follow from the equation of kernel/sched/deadline.c
//! (grub_reclaim), and what reclaiming leaves to others.

use crate::common;

use common::checks::{check_case, measures};
use common::workloads::{bursts, endless, task};
use common::{Case, MS, timeline};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{Amount, DeadlineParams, Policy, SchedAttr, TaskSpec, Workload};
use schedlab_sched::registry::find;

/// Budget and period in ms.
fn deadline(runtime_ms: u64, period_ms: u64, reclaim: bool) -> SchedAttr {
    let (runtime_ns, period_ns) = (runtime_ms * MS, period_ms * MS);
    let deadline = DeadlineParams { runtime_ns, deadline_ns: period_ns, period_ns, reclaim };
    SchedAttr { policy: Policy::Deadline, deadline, ..SchedAttr::default() }
}

fn hog(attr: SchedAttr) -> TaskSpec {
    task("hog", attr, endless())
}

/// CPU time of each task in 100 s, in ms.
fn shares(scheduler: &str, nr_cpus: u32, tasks: Vec<TaskSpec>) -> Vec<u64> {
    let workload = Workload::new("reclaim", tasks);
    let mut case = Case::new(&workload, find(scheduler).unwrap(), nr_cpus);
    case.machine.hz = 1000;
    case.until_ns = Some(100_000 * MS);
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    measures(&case, &run).tasks.iter().map(|task| task.cpu_time_ns / MS).collect()
}

/// What a budget of `runtime_ms` in each 100 ms lasts in 100 s at a charge of `rate` / 2^20.
fn lasts(runtime_ms: u64, rate: u64) -> u64 {
    ((runtime_ms * 1_000) << 20) / rate
}

fn assert_near(found: u64, expected: u64) {
    // At most a tick of each of the first and last period.
    assert!(found.abs_diff(expected) <= 2, "{found} ms, expected {expected} ms");
}

#[test]
fn a_reclaiming_task_alone_gets_95_percent() {
    let found = shares("linux-6.6", 1, vec![hog(deadline(10, 100, true))]);
    assert_near(found[0], lasts(10, 110_181));
    assert_near(found[0], 95_168);
    // From 7.2 on it is the whole CPU.
    let found = shares("linux-7.2", 1, vec![hog(deadline(10, 100, true))]);
    assert_near(found[0], 100_000);
    // Before 6.5 it got two thirds: the equation took what was admitted for free.
    let found = shares("linux-6.1", 1, vec![hog(deadline(10, 100, true))]);
    assert_near(found[0], lasts(10, (1 << 20) - (996_147 - 104_857)));
    // Without the flag it gets its tenth, and so does one that reclaims from nobody.
    assert_eq!(shares("linux-6.6", 1, vec![hog(deadline(10, 100, false))]), [10_000]);
}

#[test]
fn the_first_periods_are_exact() {
    let workload = Workload::new("reclaim", vec![hog(deadline(10, 100, true))]);
    let mut case = Case::new(&workload, find("linux-6.6").unwrap(), 1);
    case.until_ns = Some(1_100 * MS);
    let run = case.run().unwrap();
    // 96 ms cost 10.087 ms, and the overrun adds up: in the fifth period 9.651 ms are left, which
    // is less than 23 ticks cost.
    let expected = "0A 96- 100A 196- 200A 296- 300A 396- 400A 492- 500A 596- 600A 696- 700A 796- \
                    800A 896- 900A 992- 1000A 1096-";
    assert_eq!(timeline(&run), expected);
}

#[test]
fn two_share_what_both_were_given() {
    let (u, v) = (104_857, 314_572);
    let both = ((u + v) * 269) >> 8;
    let tasks = vec![hog(deadline(10, 100, true)), hog(deadline(30, 100, true))];
    let found = shares("linux-6.6", 1, tasks);
    assert_near(found[0], lasts(10, both));
    assert_near(found[1], lasts(30, both));
    assert_near(found[0] + found[1], 95_168);
}

#[test]
fn a_neighbour_that_does_not_reclaim_keeps_its_bandwidth() {
    let neighbour = hog(deadline(30, 100, false));
    let found = shares("linux-6.6", 1, vec![hog(deadline(10, 100, true)), neighbour]);
    assert_near(found[0], lasts(10, ((104_857 + 314_572) * 269) >> 8));
    assert_eq!(found[1], 30_000);
}

#[test]
fn what_a_sleeper_leaves_unused_is_reclaimed_after_its_zero_lag_time() {
    // It runs for 1 of its 3 ms in each 10 ms and is active for the first 3.33 of them. The other,
    // charged at ticks and switches for all the time since, pays the dearer rate for 2 of its 9 ms:
    // for the half before the sleeper's wake-up too, which has it active when that is charged.
    let mut sleeper = task("sleeper", deadline(3, 10, false), bursts(20_000, MS, 9 * MS));
    sleeper.release_ns = Amount::Constant(MS / 2);
    let found = shares("linux-6.6", 1, vec![hog(deadline(100, 1_000, true)), sleeper]);
    assert_near(found[1], 10_000);
    let dear = ((104_857 + 314_572) * 269) >> 8;
    let expected = lasts(100, (2 * dear + 7 * 110_181) / 9) / 10;
    assert!(found[0].abs_diff(expected) <= 300, "{} ms, expected {expected} ms", found[0]);
}

#[test]
fn an_idle_fair_server_is_reclaimed_too() {
    let tasks = || vec![hog(deadline(10, 100, true))];
    assert_near(shares("linux-6.18", 1, tasks())[0], lasts(10, 110_181));
    // 6.12 takes the server twice from what is free, and gives back only the idle one.
    let rate = ((104_857 + 52_428) * 269) >> 8;
    assert_near(shares("linux-6.12", 1, tasks())[0], lasts(10, rate));
}

/// Everybody who does not reclaim gets what it would get without the others that do; nobody is
/// lost, with any mixture on one to four CPUs.
#[test]
fn random_mixtures_keep_the_rules_of_the_core() {
    let mut random = Stream::new(12, Purpose::Scheduler, 0);
    for round in 0..60 {
        let nr_cpus = 1 + round % 4;
        let mut draw = |low: u64, high: u64| low + random.below(high - low + 1);
        let tasks: Vec<TaskSpec> = (0..draw(1, 2 + 2 * u64::from(nr_cpus)))
            .map(|index| {
                let period = draw(8, 60);
                let attr = deadline((period / draw(4, 10)).max(1), period, draw(0, 1) == 0);
                let program = bursts(draw(5, 40), draw(1, 20) * MS, draw(1, 40) * MS);
                task(&format!("t{index}"), attr, program)
            })
            .collect();
        let workload = Workload::new("random", tasks);
        for scheduler in ["linux-6.1", "linux-6.12"] {
            let mut case = Case::new(&workload, find(scheduler).unwrap(), nr_cpus);
            case.watchdog_ns = None;
            case.judges_balance = false;
            if let Err(broken) = check_case(&case) {
                panic!("round {round}: {broken:?}");
            }
        }
    }
}
