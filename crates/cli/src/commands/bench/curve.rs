// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the cost of a switch grows with tasks and CPUs.

use super::{measure, pick};
use crate::args::{BenchArgs, BenchCurve};
use crate::error::{CliError, CliResult};
use crate::output::Out;
use crate::table::{self, digits, number};
use schedlab_sim::bench::BenchResult;

/// One point: CPUs, tasks, simulated milliseconds.
type Point = (u32, u32, u64);

/// Powers of ten of tasks on one CPU, with a switch every 4 ms.
const TASKS: [Point; 7] = [
    (1, 2, 1_000_000),
    (1, 10, 1_000_000),
    (1, 100, 1_000_000),
    (1, 1_000, 1_000_000),
    (1, 10_000, 1_000_000),
    (1, 100_000, 2_000_000),
    (1, 1_000_000, 8_000_000),
];

/// Machines with four tasks per CPU.
const CPUS: [Point; 6] = [
    (1, 4, 400_000),
    (4, 16, 100_000),
    (16, 64, 30_000),
    (64, 256, 10_000),
    (256, 1_024, 2_000),
    (1_024, 4_096, 1_000),
];

/// Measures one job at growing sizes, each point in processes of its own.
pub fn curve(
    curve: BenchCurve,
    schedulers: &[&str],
    args: &BenchArgs,
    out: &mut Out,
) -> CliResult<()> {
    let (job, points) = match curve {
        BenchCurve::Pick => return pick::curve(schedulers, args, out),
        BenchCurve::Tasks => ("J1", &TASKS[..]),
        BenchCurve::Cpus => ("J8", &CPUS[..]),
        BenchCurve::CpusSleeping => ("P8", &CPUS[..]),
    };
    if args.tasks.is_some() || args.switches.is_some() {
        return Err(CliError::usage("--tasks and --switches go with jobs and --curve pick"));
    }
    let mut results = Vec::new();
    for scheduler in schedulers {
        for (nr_cpus, nr_tasks, until_ms) in points {
            let more = [
                format!("--cpus={nr_cpus}"),
                format!("--tasks={nr_tasks}"),
                format!("--until={until_ms}ms"),
            ];
            let plain = BenchArgs { cpus: None, ..args.clone() };
            results.push(measure::in_processes(job, scheduler, &more, &plain)?);
        }
    }
    if args.json { out.json(&results) } else { out.line(render(&results)) }
}

fn render(results: &[BenchResult]) -> String {
    let mut rows = table::table(&[
        "scheduler",
        "cpus",
        "tasks",
        "simulated",
        "switches",
        "ticks",
        "CPU of the run",
        "ns/switch",
        "ns/(switch + tick)",
        "peak memory",
        "bytes/task",
    ]);
    for r in results {
        let ns = r.run_cpu_s * 1e9;
        rows.add_row([
            comfy_table::Cell::new(&r.scheduler),
            number(r.nr_cpus),
            number(r.nr_tasks),
            number(table::duration(r.simulated_ns)),
            number(r.nr_switches),
            number(r.nr_ticks),
            number(format!("{} s", digits(r.run_cpu_s))),
            number(digits(ns / r.nr_switches.max(1) as f64)),
            number(digits(ns / (r.nr_switches + r.nr_ticks).max(1) as f64)),
            number(format!("{} MB", digits(r.max_rss_bytes as f64 / 1e6))),
            number(digits(r.max_rss_bytes as f64 / r.nr_tasks.max(1) as f64)),
        ]);
    }
    table::render(&rows)
}
