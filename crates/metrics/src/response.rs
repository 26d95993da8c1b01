// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response time: from the release of a task until it first runs.
//!
//! Formula: first_run_ns - release_ns. Unit: ns. `None` for a task that never ran.
//! Source: Silberschatz, Galvin and Gagne, Operating System Concepts, chapter "CPU Scheduling",
//! where it is the time to the first answer; a scheduler's own part of it ends at the first
//! instruction.
//! Not: turnaround, nor wake-up latency (which is taken at every later wake-up).

use schedlab_model::Nanos;

/// Response time of a task released and first run at these times.
pub fn response_ns(release_ns: Nanos, first_run_ns: Option<Nanos>) -> Option<Nanos> {
    first_run_ns.map(|first| first.saturating_sub(release_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measure, run};

    /// FCFS with bursts 24, 3, 3 released at 0: responses 0, 24, 27 (Silberschatz).
    #[test]
    fn fcfs_textbook_example() {
        let m = measure(1, &run::fcfs(&[24, 3, 3]));
        let responses: Vec<_> = m.tasks.iter().map(|task| task.response_ns).collect();
        assert_eq!(responses, [Some(0), Some(24), Some(27)]);
        assert_eq!(m.totals.response_ns_mean, 17);
        assert_eq!(m.totals.response.ns_max, 27);
    }

    #[test]
    fn a_task_that_never_ran_has_none() {
        assert_eq!(response_ns(5, None), None);
        assert_eq!(response_ns(5, Some(9)), Some(4));
    }
}
