// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response time: from the release of a task until it first runs.
//!
//! Textbooks mean the time until a program's first answer; the scheduler's part of that ends at the
//! first instruction. Response time is neither turnaround nor wake-up latency, which is measured at
//! every later wake-up.

use crate::Distribution;
use crate::facts::{OfRun, OfTask, RunFacts};
use crate::measure::{Measure, Unit};
use schedlab_model::Nanos;

/// Of one task.
pub(crate) const OF_TASK: OfTask<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "`first_run_ns` - `release_ns`",
    notes: "textbook response time; null: never ran",
    source: "Silberschatz, Galvin and Gagne, Operating System Concepts, chapter CPU Scheduling",
    value: |of| response_ns(of.account.life.release_ns, of.account.first_run_ns()),
};

/// Over the jobs.
pub(crate) const OVER_JOBS: OfRun<Distribution> = Measure {
    unit: Unit::Distribution,
    formula: "over the tasks that ran",
    notes: "",
    source: OF_TASK.source,
    value: over_jobs,
};

/// Mean over the jobs.
pub(crate) const MEAN: OfRun<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "mean over tasks that ran",
    notes: "null if none",
    source: OF_TASK.source,
    value: |of| over_jobs(of).ns_mean,
};

fn over_jobs(of: &RunFacts<'_>) -> Distribution {
    of.over_jobs(|task| task.response_ns)
}

/// Response time (ns) of a task with this release and this first run.
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
        assert_eq!(m.totals.response_ns_mean, Some(17));
        assert_eq!(m.totals.response.ns_max, Some(27));
    }

    #[test]
    fn a_task_that_never_ran_has_none() {
        assert_eq!(response_ns(5, None), None);
        assert_eq!(response_ns(5, Some(9)), Some(4));
    }
}
