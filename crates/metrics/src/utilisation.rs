// SPDX-License-Identifier: MIT OR Apache-2.0
//! Utilisation: the part of the CPUs' time that the tasks of the run used.
//!
//! It is not the load of the machine: it leaves out other tasks of a host.

use crate::facts::OfRun;
use crate::measure::{Measure, Unit};
use crate::slice;
use schedlab_model::Nanos;

/// Of all tasks.
pub(crate) const OF_RUN: OfRun<Option<f64>> = Measure {
    unit: Unit::Ratio("0 to 1"),
    formula: "`cpu_time_ns` / (CPUs x makespan)",
    notes: "while a task is alive: divided by (end of run - first release); other tasks of a \
            host are not in it; null: no time passed",
    source: "Silberschatz, Galvin and Gagne, Operating System Concepts, chapter CPU Scheduling",
    value: |of| utilisation(slice::cpu_time_ns(of), of.nr_cpus, of.window_of_all()?.length_ns()),
};

/// Busy part of `nr_cpus` CPUs during `window_ns`; `None` without CPUs or time.
pub fn utilisation(cpu_time_ns: Nanos, nr_cpus: u32, window_ns: Nanos) -> Option<f64> {
    let capacity = nr_cpus as f64 * window_ns as f64;
    (capacity > 0.0).then(|| cpu_time_ns as f64 / capacity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measure, run};

    /// One CPU-bound job after another keeps one CPU of two busy.
    #[test]
    fn serial_jobs_use_one_cpu() {
        assert_eq!(measure(1, &run::fcfs(&[10, 20, 30])).totals.utilisation, Some(1.0));
        assert_eq!(measure(2, &run::fcfs(&[10, 20, 30])).totals.utilisation, Some(0.5));
    }

    #[test]
    fn no_capacity_is_no_utilisation() {
        assert_eq!(utilisation(5, 0, 10), None);
        assert_eq!(utilisation(5, 1, 0), None);
        assert_eq!(utilisation(5, 2, 10), Some(0.25));
    }
}
