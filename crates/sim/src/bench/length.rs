// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the simulated time in which a job makes a number of switches, with runs of growing length.
//!
//! Schedulers differ by three orders of magnitude in how often they switch. One simulated time for
//! all would be too short to measure some and too long to wait for others.

use super::BenchResult;
use schedlab_model::Nanos;

/// Longest simulated time (ns): a scheduler that never preempts does not reach every number of
/// switches.
const UNTIL_MAX_NS: Nanos = 100_000_000_000_000_000;
/// A pilot run that takes more CPU time (s) than this is the last.
const PILOT_CPU_S_MAX: f64 = 2.0;

/// A pilot run and its length.
pub struct Pilot {
    /// Its measurement.
    pub result: BenchResult,
    /// Its simulated time (ns).
    pub until_ns: Nanos,
}

/// Lengthens a run from `from_ns` until it has `wanted` switches or takes too long. `run` measures
/// a run of this simulated time.
pub fn grow<E>(
    wanted: u64,
    from_ns: Nanos,
    run: impl Fn(Nanos) -> Result<BenchResult, E>,
) -> Result<Pilot, E> {
    let mut until_ns = from_ns;
    loop {
        let result = run(until_ns)?;
        let enough = result.nr_switches >= wanted || result.run_cpu_s >= PILOT_CPU_S_MAX;
        if enough || until_ns >= UNTIL_MAX_NS {
            return Ok(Pilot { result, until_ns });
        }
        until_ns = next(until_ns, &result, wanted);
    }
}

/// The next length to try, estimated from switches and CPU time so far: at least twice and at most
/// 64 times the last one.
fn next(until_ns: Nanos, last: &BenchResult, wanted: u64) -> Nanos {
    let by_switches = wanted as f64 / last.nr_switches.max(1) as f64 * 1.1;
    let by_cpu = PILOT_CPU_S_MAX / last.run_cpu_s.max(1e-3) * 1.1;
    let factor = by_switches.min(by_cpu).clamp(2.0, 64.0);
    ((until_ns as f64 * factor) as Nanos).min(UNTIL_MAX_NS)
}

/// Simulated time (ns) in which a job has about `wanted` switches. It is the job's own time,
/// `own_ns`, if no task is ever preempted; and that of a pilot run if more would take too long.
/// `run` measures a run of the job.
pub fn for_switches<E>(
    own_ns: Nanos,
    wanted: u64,
    run: impl Fn(Nanos) -> Result<BenchResult, E>,
) -> Result<Nanos, E> {
    let pilot = grow(wanted / 16, own_ns / 1_000, run)?;
    let (found, first) = (pilot.result.nr_switches, u64::from(pilot.result.nr_cpus));
    if found <= first {
        return Ok(own_ns);
    }
    if found < wanted / 16 {
        return Ok(pilot.until_ns);
    }
    let scaled = pilot.until_ns as f64 * wanted as f64 / found as f64;
    Ok((scaled as Nanos).clamp(1, UNTIL_MAX_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job with a switch each `interval_ns` at most, whose switches cost 1 us each.
    fn job(interval_ns: Nanos, until_ns: Nanos) -> Result<BenchResult, String> {
        let nr_switches = until_ns / interval_ns;
        let run_cpu_s = nr_switches as f64 * 1e-6;
        Ok(BenchResult { nr_switches, run_cpu_s, nr_cpus: 1, ..BenchResult::default() })
    }

    #[test]
    fn a_run_is_as_long_as_its_switches_need() {
        let until = |interval| for_switches(8_000_000_000, 160_000, |ns| job(interval, ns));
        assert_eq!(until(1_000_000), Ok(160_000 * 1_000_000));
        assert_eq!(until(50), Ok(160_000 * 50));
        // Nobody is preempted: the job's own time.
        assert_eq!(until(Nanos::MAX), Ok(8_000_000_000));
        assert!(for_switches(1, 1, |_| Err::<BenchResult, _>("no")).is_err());
    }
}
