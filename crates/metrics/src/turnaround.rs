// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turnaround time: from the release of a task to its exit.
//!
//! Formula: exit_ns - release_ns = cpu_time + run_delay + sleep + blocked_io (+ unaccounted where
//! events were lost). Unit: ns. `None` for a task that lives on.
//! Source: Silberschatz, Galvin and Gagne, Operating System Concepts, chapter "CPU Scheduling".
//! Exit is the switch that takes the task off its CPU for good (state dead); where the trace ends
//! before it, the exit event itself.

use schedlab_model::Nanos;

/// Turnaround time of a task released and gone at these times.
pub fn turnaround_ns(release_ns: Nanos, exit_ns: Option<Nanos>) -> Option<Nanos> {
    exit_ns.map(|exit| exit.saturating_sub(release_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measure, run};

    /// FCFS with bursts 24, 3, 3: turnarounds 24, 27, 30, mean 27 (Silberschatz).
    #[test]
    fn fcfs_textbook_example() {
        let m = measure(1, &run::fcfs(&[24, 3, 3]));
        let all: Vec<_> = m.tasks.iter().map(|task| task.turnaround_ns.unwrap()).collect();
        assert_eq!(all, [24, 27, 30]);
        assert_eq!(m.totals.turnaround_ns_mean, 27);
        assert_eq!(m.totals.turnaround.ns_median, 27);
    }

    /// n equal jobs of length t one after another: the mean is t(n+1)/2.
    #[test]
    fn equal_jobs_one_after_another() {
        let m = measure(1, &run::fcfs(&[100; 9]));
        assert_eq!(m.totals.turnaround_ns_mean, 100 * 10 / 2);
    }

    #[test]
    fn a_task_that_lives_on_has_none() {
        assert_eq!(turnaround_ns(5, None), None);
        assert_eq!(turnaround_ns(5, Some(9)), Some(4));
    }
}
