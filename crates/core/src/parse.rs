// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads values that people type: times, ticks, policies, the watchdog.

use crate::Watchdog;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::{Nanos, Policy};
use schedlab_run::place::allowed_words;
use schedlab_run::policy;
use schedlab_workload::units;

/// Parses a duration with its unit.
pub fn duration(text: &str) -> Result<Nanos, String> {
    match units::parse_duration(text) {
        Ok(0) => Err("it is 0: allowed is 1ns and more".into()),
        Ok(ns) => Ok(ns),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses a time since the start of the run: a duration, or 0.
pub fn moment(text: &str) -> Result<Nanos, String> {
    if text == "0" {
        return Ok(0);
    }
    units::parse_duration(text).map_err(|error| error.to_string())
}

/// Parses a duration, `auto` or `off`.
pub fn watchdog(text: &str) -> Result<Watchdog, String> {
    match text {
        "auto" => Ok(Watchdog::Auto),
        "off" => Ok(Watchdog::Off),
        _ => duration(text).map(Watchdog::After),
    }
}

/// Parses a number of ticks per second that kernels can be built with (kernel/Kconfig.hz).
pub fn hz(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(hz @ (100 | 250 | 300 | 1000)) => Ok(hz),
        _ => Err("allowed are 100, 250, 300 and 1000, as the kernel's".into()),
    }
}

/// Parses a scheduling policy.
pub fn policy(text: &str) -> Result<Policy, String> {
    let names: Vec<&str> = policy::POLICIES.iter().map(|policy| policy.name()).collect();
    policy::policy_by_name(text)
        .ok_or_else(|| format!("no such policy: {}", allowed_words(text, &names)))
}

/// The numbers of CPUs that a run can have.
pub fn allowed_cpus() -> String {
    format!("allowed are 1 to {NR_CPUS_MAX} CPUs")
}

/// Checks a number of CPUs.
pub fn nr_cpus(nr_cpus: u32) -> Result<u32, String> {
    match nr_cpus {
        1.. if nr_cpus as usize <= NR_CPUS_MAX => Ok(nr_cpus),
        _ => Err(allowed_cpus()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_refused() {
        assert!(hz("251").unwrap_err().contains("100, 250, 300 and 1000"));
        assert!(duration("0ms").is_err() && duration("5").is_err());
        assert_eq!((moment("0"), moment("2us")), (Ok(0), Ok(2_000)));
        assert_eq!(watchdog("off"), Ok(Watchdog::Off));
        assert!(policy("ffo").unwrap_err().contains("did you mean `FIFO`?"));
        assert_eq!((nr_cpus(1), nr_cpus(1024)), (Ok(1), Ok(1024)));
        assert!(nr_cpus(0).is_err() && nr_cpus(1025).unwrap_err().contains("1 to 1024"));
    }
}
