// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throughput: tasks finished a second.
//!
//! Formula: exited tasks * 10^9 / makespan_ns; while a task lives on, over the time from the first
//! release to the end of the run. Unit: 1/s. 0 when no time passed.
//! Source: Silberschatz, Galvin and Gagne, Operating System Concepts, chapter "CPU Scheduling".
//! Not: the inverse of one task's wall time, nor work per second: tasks of unequal length count
//! alike.

use schedlab_model::Nanos;

/// Tasks a second.
pub fn throughput_per_s(nr_exited: u64, window_ns: Nanos) -> f64 {
    if window_ns == 0 { 0.0 } else { nr_exited as f64 * 1e9 / window_ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measure, run};

    /// n equal jobs of length t on one CPU finish at 1/t a second, in whatever order they run.
    #[test]
    fn does_not_depend_on_the_order() {
        let t = 2_000_000;
        for m in [measure(1, &run::fcfs(&[t; 5])), measure(1, &run::round_robin(&[t; 5], 300_000))]
        {
            assert_eq!(m.totals.throughput_per_s, 500.0);
        }
    }

    #[test]
    fn no_time_no_throughput() {
        assert_eq!(throughput_per_s(3, 0), 0.0);
        assert_eq!(throughput_per_s(3, 1_500_000_000), 2.0);
    }
}
