// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab bench`: measures the simulator's speed and memory use.
//!
//! A job is one simulation in a process of its own, so that start-up time and memory belong to that
//! job alone. Several repetitions run in several processes; the command shows the medians.
//! benchmarks/jobs.json defines the tasks. The benchmark measures the engine and the log only: it
//! leaves out the measures and the trace checker, which `schedlab sim` also runs.

mod curve;
mod job;
mod measure;
mod pick;

use crate::args::BenchArgs;
use crate::error::{CliError, CliResult};
use crate::output::Out;
use crate::schedulers::{Schedulers, is_source};
use crate::table::{self, digits, number};
use job::Job;
use schedlab_run::place::allowed_words;
use schedlab_sched::{Scheduler, registry};
use schedlab_sim::bench::{BenchResult, length};
use std::sync::Arc;

/// Runs the command.
pub fn bench(args: &BenchArgs, out: &mut Out) -> CliResult<()> {
    let known = Schedulers::new(&args.scx, &[])?;
    let schedulers = schedulers(&known, &args.scheduler)?;
    // What clang has compiled is loaded a second time, from the cache. Only that is measured, so
    // that the first call gives the figures of every later one.
    let has_file = args.scheduler.iter().any(|name| is_source(name));
    let compiling_cpu_s = if has_file { measure::cpu_s() } else { 0.0 };
    let schedulers = match has_file {
        true => self::schedulers(&Schedulers::new(&args.scx, &[])?, &args.scheduler)?,
        false => schedulers,
    };
    if let Some(curve) = args.curve {
        let names: Vec<&str> = schedulers.iter().map(|found| found.name.as_ref()).collect();
        return curve::curve(curve, &names, args, out);
    }
    let mut jobs = Vec::new();
    for name in &args.jobs {
        jobs.push(known_job(name)?);
    }
    let mut results = Vec::new();
    match (&jobs[..], &schedulers[..]) {
        ([job], [scheduler]) if args.repetitions == 1 && args.switches.is_none() => {
            results.push(measure::here(job, scheduler, args, compiling_cpu_s)?);
        }
        _ => {
            for scheduler in &schedulers {
                for job in &jobs {
                    results.push(in_processes(job, &scheduler.name, args)?);
                }
            }
        }
    }
    if args.json {
        return match &results[..] {
            [one] => out.json(one),
            many => out.json(&many),
        };
    }
    out.line(render(&results))
}

/// The requested schedulers, each once; `all` stands for every scheduler.
fn schedulers(known: &Schedulers, asked: &[String]) -> CliResult<Vec<Arc<Scheduler>>> {
    let mut names = Vec::new();
    for name in asked {
        if name == "all" {
            names.extend(registry::SCHEDULERS.iter().cloned());
        } else {
            names.push(known.find(name)?);
        }
    }
    let mut once = Vec::new();
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    Ok(once)
}

/// Measures one job under one scheduler, for the job's simulated time or until `--switches` is
/// reached.
fn in_processes(job: &Job, scheduler: &str, args: &BenchArgs) -> CliResult<BenchResult> {
    let mut more = Vec::new();
    if let Some(wanted) = args.switches {
        let plain = BenchArgs { until: None, ..args.clone() };
        let until_ns = length::for_switches(job.until_ns, wanted, |until_ns| {
            let more = [format!("--until={until_ns}ns")];
            measure::in_process(&job.name, scheduler, &more, &plain)
        })?;
        more.push(format!("--until={until_ns}ns"));
    }
    measure::in_processes(&job.name, scheduler, &more, args)
}

fn known_job(name: &str) -> CliResult<Job> {
    let jobs = job::all();
    let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
    jobs.into_iter().find(|job| job.name == name).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        CliError::usage_help(
            format!("no job is called {name:?}: {}", allowed_words(name, &names)),
            "benchmarks/jobs.json says what each does",
        )
    })
}

/// Results as a table for people.
fn render(results: &[BenchResult]) -> String {
    let mut rows = table::table(&[
        "job",
        "scheduler",
        "trace",
        "machine",
        "cpus",
        "tasks",
        "simulated",
        "switches",
        "ticks",
        "records",
        "CPU",
        "switches/CPU-s",
        "events/CPU-s",
        "start-up",
        "peak memory",
    ]);
    for r in results {
        let rate = |value: f64| number(format!("{} M", digits(value / 1e6)));
        rows.add_row([
            comfy_table::Cell::new(&r.job),
            comfy_table::Cell::new(&r.scheduler),
            comfy_table::Cell::new(&r.trace),
            comfy_table::Cell::new(&r.machine),
            number(r.nr_cpus),
            number(r.nr_tasks),
            number(table::duration(r.simulated_ns)),
            number(r.nr_switches),
            number(r.nr_ticks),
            number(r.nr_records),
            number(format!("{} s", digits(r.cpu_s))),
            rate(r.switches_per_cpu_s),
            rate(r.events_per_cpu_s),
            number(format!("{} ms", digits(r.start_up_cpu_s * 1e3))),
            number(format!("{} MB", digits(r.max_rss_bytes as f64 / 1e6))),
        ]);
    }
    table::render(&rows)
}
