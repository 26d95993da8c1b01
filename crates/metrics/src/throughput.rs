// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throughput: exited tasks per second.
//!
//! It is neither the inverse of one task's wall time nor work per second: short and long tasks
//! count alike.

use crate::census;
use crate::facts::OfRun;
use crate::measure::{Measure, Unit};
use schedlab_model::Nanos;

/// Of the jobs.
pub(crate) const OF_RUN: OfRun<Option<f64>> = Measure {
    unit: Unit::PerSecond,
    formula: "`nr_exited` / makespan",
    notes: "while a task is alive: divided by (end of run - first release); null: no time passed",
    source: "Silberschatz, Galvin and Gagne, Operating System Concepts, chapter CPU Scheduling",
    value: |of| throughput_per_s(census::exited(of), of.window()?.length_ns()),
};

/// Tasks per second; `None` if no time passed.
pub fn throughput_per_s(nr_exited: u64, window_ns: Nanos) -> Option<f64> {
    (window_ns > 0).then(|| nr_exited as f64 * 1e9 / window_ns as f64)
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
            assert_eq!(m.totals.throughput_per_s, Some(500.0));
        }
    }

    #[test]
    fn no_time_no_throughput() {
        assert_eq!(throughput_per_s(3, 0), None);
        assert_eq!(throughput_per_s(3, 1_500_000_000), Some(2.0));
    }
}
