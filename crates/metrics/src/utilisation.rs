// SPDX-License-Identifier: MIT OR Apache-2.0
//! Utilisation: which part of the CPUs' time the tasks of the run used.
//!
//! Formula: sum of cpu_time_ns / (nr_cpus * window_ns), the window being the makespan or, while a
//! task lives on, first release to end of the run. Range: 0 to 1.
//! Source: Silberschatz, Galvin and Gagne, Operating System Concepts, chapter "CPU Scheduling".
//! Not: the load of the machine. Other tasks of a host are not in it.

use schedlab_model::Nanos;

/// Busy part of `nr_cpus` CPUs over `window_ns`.
pub fn utilisation(cpu_time_ns: Nanos, nr_cpus: u32, window_ns: Nanos) -> f64 {
    let capacity = nr_cpus as f64 * window_ns as f64;
    if capacity == 0.0 { 0.0 } else { cpu_time_ns as f64 / capacity }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measure, run};

    /// One CPU-bound job after another keeps one CPU of two busy.
    #[test]
    fn serial_jobs_use_one_cpu() {
        assert_eq!(measure(1, &run::fcfs(&[10, 20, 30])).totals.utilisation, 1.0);
        assert_eq!(measure(2, &run::fcfs(&[10, 20, 30])).totals.utilisation, 0.5);
    }

    #[test]
    fn no_capacity_is_no_utilisation() {
        assert_eq!(utilisation(5, 0, 10), 0.0);
        assert_eq!(utilisation(5, 1, 0), 0.0);
        assert_eq!(utilisation(5, 2, 10), 0.25);
    }
}
