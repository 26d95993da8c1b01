// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turnaround time: from the release of a task to its exit.
//!
//! It is cpu_time + run_delay + sleep + blocked_io (+ unaccounted if events were lost). The exit is
//! the last switch from the task (state dead); if the trace ends before it, the exit event.

use crate::Distribution;
use crate::facts::{OfRun, OfTask, RunFacts};
use crate::measure::{Measure, Unit};
use schedlab_model::Nanos;

/// Of one task; unknown if the task began before the recording.
pub(crate) const OF_TASK: OfTask<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "`exit_ns` - `release_ns`",
    notes: "null: still alive at the end",
    source: "Silberschatz, Galvin and Gagne, Operating System Concepts, chapter CPU Scheduling",
    value: |of| {
        let life = &of.account.life;
        turnaround_ns(life.release_ns, life.exit_ns).filter(|_| !life.is_release_unseen)
    },
};

/// Over the jobs.
pub(crate) const OVER_JOBS: OfRun<Distribution> = Measure {
    unit: Unit::Distribution,
    formula: "over the tasks that exited",
    notes: "",
    source: OF_TASK.source,
    value: over_jobs,
};

/// Mean over the jobs.
pub(crate) const MEAN: OfRun<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "mean over tasks that exited",
    notes: "null if none",
    source: OF_TASK.source,
    value: |of| over_jobs(of).ns_mean,
};

fn over_jobs(of: &RunFacts<'_>) -> Distribution {
    of.over_jobs(|task| task.turnaround_ns)
}

/// Turnaround time (ns) of a task with this release and this exit.
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
        assert_eq!(m.totals.turnaround_ns_mean, Some(27));
        assert_eq!(m.totals.turnaround.ns_median, Some(27));
    }

    /// n equal jobs of length t one after another: the mean is t(n+1)/2.
    #[test]
    fn equal_jobs_one_after_another() {
        let m = measure(1, &run::fcfs(&[100; 9]));
        assert_eq!(m.totals.turnaround_ns_mean, Some(100 * 10 / 2));
    }

    #[test]
    fn a_task_that_lives_on_has_none() {
        assert_eq!(turnaround_ns(5, None), None);
        assert_eq!(turnaround_ns(5, Some(9)), Some(4));
    }
}
