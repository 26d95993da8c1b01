// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the run was and how many tasks it had.

use crate::facts::OfRun;
use crate::measure::{Measure, Unit};

/// End of the run.
pub(crate) const END: OfRun<u64> = Measure {
    unit: Unit::Ns,
    formula: "end of the run",
    notes: "",
    source: "",
    value: |of| of.end_ns,
};

/// Number of jobs.
pub(crate) const TASKS: OfRun<u64> = Measure {
    unit: Unit::Count,
    formula: "tasks that were released",
    notes: "without launchers",
    source: "",
    value: |of| of.jobs.len() as u64,
};

/// Number of tasks that only start others.
pub(crate) const LAUNCHERS: OfRun<u64> = Measure {
    unit: Unit::Count,
    formula: "tasks with `is_launcher`",
    notes: "not in `nr_tasks`",
    source: "",
    value: |of| (of.tasks.len() - of.jobs.len()) as u64,
};

/// Number of jobs that have exited.
pub(crate) const EXITED: OfRun<u64> = Measure {
    unit: Unit::Count,
    formula: "tasks that exited",
    notes: "",
    source: "",
    value: exited,
};

/// Number of jobs that have exited.
pub(crate) fn exited(of: &crate::facts::RunFacts<'_>) -> u64 {
    of.jobs.iter().filter(|task| task.exit_ns.is_some()).count() as u64
}
