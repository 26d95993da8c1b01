// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long to simulate for a number of switches: found by runs that grow.
//!
//! Schedulers differ by three orders of magnitude in how often they switch, so that one simulated
//! time for all is too short to measure the one and too long to wait for the other.

use super::job::Job;
use super::measure::{self, BenchResult};
use crate::args::BenchArgs;
use crate::error::CliResult;
use schedlab_model::Nanos;

/// Where growing ends, ns: a scheduler that preempts nobody never reaches any number of switches.
const UNTIL_MAX_NS: Nanos = 100_000_000_000_000_000;
/// CPU time of a pilot run after which growing ends, s.
const PILOT_CPU_S_MAX: f64 = 2.0;

/// A pilot run, and how long it was.
pub struct Pilot {
    /// What it measured.
    pub result: BenchResult,
    /// Simulated time, ns.
    pub until_ns: Nanos,
}

/// Grows a run of `job`, from `from_ns` on, until it has `wanted` switches or takes too long.
/// `more` are further arguments.
pub fn grow(
    job: &Job,
    scheduler: &str,
    (wanted, from_ns): (u64, Nanos),
    more: &[String],
    args: &BenchArgs,
) -> CliResult<Pilot> {
    let mut until_ns = from_ns;
    loop {
        let mut words = more.to_vec();
        words.push(format!("--until={until_ns}ns"));
        let result = measure::in_process(&job.name, scheduler, &words, args)?;
        let enough = result.nr_switches >= wanted || result.run_cpu_s >= PILOT_CPU_S_MAX;
        if enough || until_ns >= UNTIL_MAX_NS {
            return Ok(Pilot { result, until_ns });
        }
        until_ns = next(until_ns, &result, wanted);
    }
}

/// The next length to try: what the switches and the CPU time so far make likely, at least twice
/// and at most 64 times the last one.
fn next(until_ns: Nanos, last: &BenchResult, wanted: u64) -> Nanos {
    let by_switches = wanted as f64 / last.nr_switches.max(1) as f64 * 1.1;
    let by_cpu = PILOT_CPU_S_MAX / last.run_cpu_s.max(1e-3) * 1.1;
    let factor = by_switches.min(by_cpu).clamp(2.0, 64.0);
    ((until_ns as f64 * factor) as Nanos).min(UNTIL_MAX_NS)
}

/// Simulated time in which `job` has about `wanted` switches under `scheduler`: the job's own if
/// nobody is ever preempted, that of a pilot run if more would take too long.
pub fn for_switches(job: &Job, scheduler: &str, wanted: u64, args: &BenchArgs) -> CliResult<Nanos> {
    let plain = BenchArgs { until: None, ..args.clone() };
    let pilot = grow(job, scheduler, (wanted / 16, job.until_ns / 1_000), &[], &plain)?;
    let (found, first) = (pilot.result.nr_switches, u64::from(pilot.result.nr_cpus));
    if found <= first {
        return Ok(job.until_ns);
    }
    if found < wanted / 16 {
        return Ok(pilot.until_ns);
    }
    let scaled = pilot.until_ns as f64 * wanted as f64 / found as f64;
    Ok((scaled as Nanos).clamp(1, UNTIL_MAX_NS))
}
