// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the cost of a switch against the number of runnable tasks on one CPU.
//!
//! Uses job J1 (tasks that only compute) if the scheduler preempts them, else S1 (tasks that block
//! each ms). A point is the difference between two runs, one twice as long as the other. The
//! difference cancels the cost of starting the program and its tasks, and every task's first turn.

use super::job::{self, Job};
use super::measure;
use crate::args::BenchArgs;
use crate::error::CliResult;
use crate::output::{Out, say};
use crate::table::{self, digits, number};
use schedlab_sim::bench::{BenchResult, length};

/// Numbers of runnable tasks. A single task is never switched.
const TASKS: [u32; 6] = [2, 10, 100, 1_000, 10_000, 100_000];
/// Default number of switches after every task's first turn.
const SWITCHES: u64 = 200_000;

/// Measures every point of every scheduler.
pub fn curve(schedulers: &[&str], args: &BenchArgs, out: &mut Out) -> CliResult<()> {
    let most = args.tasks.unwrap_or(TASKS[TASKS.len() - 1]);
    let plain =
        BenchArgs { cpus: Some(1), tasks: None, until: None, switches: None, ..args.clone() };
    let wanted = args.switches.unwrap_or(SWITCHES);
    let mut results = Vec::new();
    for (index, scheduler) in schedulers.iter().enumerate() {
        if schedulers.len() > 1 {
            say(format!("{} of {}: {scheduler}", index + 1, schedulers.len()));
        }
        let job = switching_job(scheduler, &plain)?;
        for nr_tasks in TASKS.into_iter().filter(|nr_tasks| *nr_tasks <= most) {
            results.push(point(&job, scheduler, nr_tasks, wanted, &plain)?);
        }
    }
    if args.json { out.json(&results) } else { out.line(render(&results)) }
}

/// Job J1; or S1 for a scheduler under which CPU-bound tasks run one after the other.
fn switching_job(scheduler: &str, args: &BenchArgs) -> CliResult<Job> {
    let find = |name: &str| {
        let found = job::all().into_iter().find(|job| job.name == name);
        found.expect("benchmarks/jobs.json was checked by a test")
    };
    let two = measure::in_process("J1", scheduler, &["--tasks=2".into()], args)?;
    Ok(find(if two.nr_switches > 2 { "J1" } else { "S1" }))
}

fn point(
    job: &Job,
    scheduler: &str,
    nr_tasks: u32,
    wanted: u64,
    args: &BenchArgs,
) -> CliResult<BenchResult> {
    let tasks = format!("--tasks={nr_tasks}");
    let goal = 2 * u64::from(nr_tasks) + 2 * wanted;
    let more = |until_ns: u64| [tasks.clone(), format!("--until={until_ns}ns")];
    let pilot = length::grow(goal, 1_000_000_000, |until_ns| {
        measure::in_process(&job.name, scheduler, &more(until_ns), args)
    })?;
    let measured =
        |until_ns: u64| measure::in_processes(&job.name, scheduler, &more(until_ns), args);
    let (half, whole) = (measured(pilot.until_ns / 2)?, measured(pilot.until_ns)?);
    Ok(BenchResult { steady: whole.beyond(&half), ..whole })
}

fn render(results: &[BenchResult]) -> String {
    let mut rows = table::table(&[
        "scheduler",
        "job",
        "runnable",
        "simulated",
        "switches",
        "ticks",
        "CPU",
        "ns/switch",
        "entries/switch",
    ]);
    for r in results {
        let (nr_switches, nr_ticks, cpu_s, ns, entries) = match &r.steady {
            Some(s) => (
                s.nr_switches,
                s.nr_ticks,
                digits(s.cpu_s),
                digits(s.ns_per_switch),
                digits(s.entries_per_switch),
            ),
            None => (0, 0, "-".into(), "-".into(), "-".into()),
        };
        rows.add_row([
            comfy_table::Cell::new(&r.scheduler),
            comfy_table::Cell::new(&r.job),
            number(r.nr_tasks),
            number(table::duration(r.simulated_ns / 2)),
            number(nr_switches),
            number(nr_ticks),
            number(format!("{cpu_s} s")),
            number(ns),
            number(entries),
        ]);
    }
    table::render(&rows)
}
