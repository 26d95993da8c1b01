// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makespan: from the first release to the last exit.
//!
//! It is not the turnaround of the last task, which starts at that task's own release. Idle time at
//! the start of a recording does not count.

use crate::TaskMeasures;
use crate::facts::{OfRun, RunFacts};
use crate::measure::{Measure, Unit};
use schedlab_model::Nanos;

/// Over the jobs.
pub(crate) const OF_RUN: OfRun<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "last exit - first release",
    notes: "null while a task is alive, or where one lived before the recording began",
    source: "M. Pinedo, Scheduling: Theory, Algorithms, and Systems, chapter 2 (C_max)",
    value: of_run,
};

/// From the start of the last phase.
pub(crate) const LAST_PHASE: OfRun<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "last exit - last begin of a phase",
    notes: "the time that benchmarks print whose clock starts after set-up (`hackbench`); null \
            without phases and while a task is alive",
    source: "hackbench",
    value: |of| of.window_of_all()?.rest_ns(of.trace.as_ref()?.last_phase_at?),
};

/// The makespan of the jobs.
pub(crate) fn of_run(of: &RunFacts<'_>) -> Option<Nanos> {
    of.window().and_then(|window| window.makespan_ns())
}

/// Window of a run: from the first release to the last exit, or to the end of the run while a task
/// is alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// First release.
    pub start_ns: Nanos,
    /// Last exit, or the end of the run.
    pub stop_ns: Nanos,
    /// Whether every task was released and has exited, so that the window is the makespan.
    pub is_complete: bool,
}

impl Window {
    /// The window of these tasks in a run that ended at `end_ns`; `None` without a task.
    pub fn of<'t>(
        tasks: impl Iterator<Item = &'t TaskMeasures> + Clone,
        end_ns: Nanos,
    ) -> Option<Self> {
        let start_ns = tasks.clone().map(|task| task.release_ns).min()?;
        let is_whole = |task: &TaskMeasures| task.exit_ns.is_some() && !task.is_release_unseen;
        let is_complete = tasks.clone().all(is_whole);
        let last_exit = tasks.filter_map(|task| task.exit_ns).max();
        let stop_ns = if is_complete { last_exit.unwrap_or(end_ns) } else { end_ns };
        Some(Self { start_ns, stop_ns, is_complete })
    }

    /// Length of the window.
    pub const fn length_ns(&self) -> Nanos {
        self.stop_ns.saturating_sub(self.start_ns)
    }

    /// The part of the makespan after `at`. For the start of the last phase it is `last_phase_ns`.
    pub fn rest_ns(&self, at: Nanos) -> Option<Nanos> {
        self.is_complete.then_some(self.stop_ns.saturating_sub(at))
    }

    /// The makespan.
    pub fn makespan_ns(&self) -> Option<Nanos> {
        self.is_complete.then_some(self.length_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measure, run};

    /// Work-conserving, one CPU: the makespan is the sum of the bursts.
    #[test]
    fn is_the_sum_of_the_bursts_on_one_cpu() {
        assert_eq!(measure(1, &run::fcfs(&[24, 3, 3])).totals.makespan_ns, Some(30));
        assert_eq!(measure(1, &run::round_robin(&[10, 10, 5], 4)).totals.makespan_ns, Some(25));
    }

    #[test]
    fn starts_at_the_first_release_and_needs_every_exit() {
        let task = |release_ns, exit_ns| TaskMeasures { release_ns, exit_ns, ..Default::default() };
        let window = Window::of([task(7, Some(20)), task(5, Some(17))].iter(), 100).unwrap();
        assert_eq!((window.makespan_ns(), window.rest_ns(8)), (Some(15), Some(12)));
        let window = Window::of([task(7, None), task(5, Some(17))].iter(), 100).unwrap();
        assert_eq!((window.makespan_ns(), window.length_ns()), (None, 95));
        assert_eq!(window.rest_ns(8), None);
        assert_eq!(Window::of([].iter(), 100), None);
    }
}
