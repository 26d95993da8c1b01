// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shape of the hackbench figures of 2003, at a small size. In 2.4, the single list under one
//! lock costs more than proportionally to the tasks, and more so the more CPUs need it. The queues
//! of 2.6.0 do not. The lists of tasks that 2.4 walks when a task ends also cost more.
//!
//! `studies/hackbench-2003.toml` has the full experiment next to the published figures.

use schedlab_lab::Study;
use schedlab_metrics::RunMeasures;
use schedlab_model::CpuMask;
use schedlab_run::{Lane, RunRequest};
use schedlab_sim::{SimLane, Watchdog, machine};
use std::sync::Arc;

/// A quarter of the rounds is enough: the cost after the start counts in any case.
const LOOPS: &str = "25";

/// Runs the workload. With so few rounds the ends of the tasks would hide the cost of the list and
/// the lock, unless `ends` leaves them out.
fn measures(machine: &str, scheduler: &str, hz: u32, groups: &str, ends: bool) -> RunMeasures {
    let mut spec = machine::preset(machine).unwrap();
    if !ends {
        spec.machine.costs.task_line_ns = 0;
    }
    let parameters = [("groups", groups), ("loops", LOOPS)];
    let workload = schedlab_workload::builtin("hackbench", &parameters).unwrap();
    let cpus = CpuMask::first(spec.machine.nr_cpus());
    let request =
        RunRequest { machine: Some(Arc::new(spec)), ..RunRequest::new(workload, scheduler, cpus) };
    let lane = SimLane { hz: Some(hz), watchdog: Watchdog::Off, ..SimLane::default() };
    let run = lane.run(&request, &mut schedlab_model::trace::NullSink).unwrap();
    run.measures
}

#[test]
fn one_lock_and_one_list_cost_more_the_more_tasks_and_cpus_there_are() {
    let mut gaps = Vec::new();
    for machine in ["S3-a", "S3-c", "S3-d"] {
        let run = |scheduler, hz| ["50", "200"].map(|n| measures(machine, scheduler, hz, n, false));
        let (old, new) = (run("linux-2.4.18", 100), run("linux-2.6.0", 1_000));
        let seconds = |run: &RunMeasures| run.totals.last_phase_ns.unwrap() as f64 / 1e9;
        let growth = |runs: &[RunMeasures; 2]| seconds(&runs[1]) / seconds(&runs[0]);
        let gap = seconds(&old[1]) / seconds(&new[1]);
        println!("{machine}: growth {:.2} and {:.2}, gap {gap:.2}", growth(&old), growth(&new));
        // Four times the groups need four times the time, or more.
        assert!((3.2..4.8).contains(&growth(&new)), "{machine}: {}", growth(&new));
        assert!(growth(&old) > 5.0, "{machine}: {}", growth(&old));
        // 2.4 searches the whole list at each choice; 2.6 reads a bitmap instead of a list.
        let [old_counters, new_counters] = [&old[1], &new[1]].map(|run| run.model.unwrap());
        let totals = &old[1].totals;
        assert!(old_counters.nr_entries_scanned / totals.nr_switches > 500, "{machine}");
        assert_eq!(new_counters.nr_entries_scanned, 0);
        gaps.push((gap, old_counters.lock_wait_ns as f64 / totals.cpu_time_ns as f64));
    }
    println!("gaps and parts of the time that CPUs spin: {gaps:?}");
    let [one, four, eight] = gaps[..] else { panic!("three machines: {gaps:?}") };
    assert!(one.0 > 1.2 && four.0 > 1.3 * one.0 && eight.0 > 1.3 * four.0, "{gaps:?}");
    assert!(one.1 == 0.0 && four.1 > 0.2 && eight.1 > 1.2 * four.1, "{gaps:?}");
}

/// 2.4 looks at every task at each exit, and at every child at each wait, which alone is quadratic.
/// 2.6.0 does not.
#[test]
fn the_ends_of_tasks_cost_2_4_more_than_in_proportion() {
    let seconds = |scheduler, hz, groups, ends| {
        measures("S3-a", scheduler, hz, groups, ends).totals.last_phase_ns.unwrap() as f64 / 1e9
    };
    let walks = |groups| {
        let of = |ends| seconds("linux-2.4.18", 100, groups, ends);
        of(true) - of(false)
    };
    let (few, many) = (walks("25"), walks("100"));
    println!("walks: {few:.2} s with 25 groups, {many:.2} s with 100");
    assert!((10.0..22.0).contains(&(many / few)), "{few} {many}");
    // 1,000 and 4,000 tasks: some ten lines of every other one for each.
    for (seconds, tasks) in [(few, 1e3), (many, 4e3)] {
        let lines = seconds / (tasks * tasks / 2.0 * 150e-9);
        assert!((4.0..14.0).contains(&lines), "{lines}");
    }
    let [with, without] = [true, false].map(|ends| seconds("linux-2.6.0", 1_000, "25", ends));
    assert_eq!(with, without);
}

#[test]
fn the_study_names_all_published_figures_and_the_machines_one_set_of_costs() {
    let study = Study::parse(include_str!("../../../studies/hackbench-2003.toml")).unwrap();
    let published = study.experiments[0].published.as_ref().unwrap();
    assert_eq!(published.rows.iter().map(|row| row.values.len()).sum::<usize>(), 32);
    let machines = ["S3-a", "S3-b", "S3-c", "S3-d"].map(|name| machine::preset(name).unwrap());
    let costs = machines.map(|spec| spec.machine.costs);
    for (other, mhz) in costs[1..].iter().zip([850, 700, 700]) {
        assert_eq!(*other, costs[0].at_clock(1_000, mhz));
    }
}
