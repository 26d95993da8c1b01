// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data from which measures are computed: the account of a task, and the tasks of a run.

use crate::account::Account;
use crate::makespan::Window;
use crate::measure::Measure;
use crate::samples::Samples;
use crate::{Distribution, TaskMeasures};
use schedlab_model::Nanos;
use schedlab_model::trace::TaskInfo;

/// A measure of a task.
pub(crate) type OfTask<T> = Measure<for<'f, 'a> fn(&'f TaskFacts<'a>) -> T>;

/// A measure of a run.
pub(crate) type OfRun<T> = Measure<for<'f, 'a> fn(&'f RunFacts<'a>) -> T>;

/// A task whose account is closed.
pub(crate) struct TaskFacts<'a> {
    pub id: u32,
    pub info: &'a TaskInfo,
    pub account: &'a Account,
}

/// The tasks of a run.
pub(crate) struct RunFacts<'a> {
    /// Every task that was released.
    pub tasks: &'a [TaskMeasures],
    /// The tasks that are not launchers; all tasks if only launchers ran.
    pub jobs: Vec<&'a TaskMeasures>,
    pub nr_cpus: u32,
    pub end_ns: Nanos,
    /// Data from the trace; `None` if the lane had no trace.
    pub trace: Option<TraceFacts>,
}

/// The samples of all tasks of a run. They outlive the accounts, which would take as much memory as
/// the measures made of them.
pub(crate) struct Merged {
    pub run_delays: Samples,
    pub slices: Samples,
    pub wakeup_latencies: Samples,
}

impl Merged {
    /// No samples.
    pub fn new() -> Self {
        let [run_delays, slices, wakeup_latencies] = std::array::from_fn(|_| Samples::merged());
        Self { run_delays, slices, wakeup_latencies }
    }

    /// Adds the samples of a task.
    pub fn add(&mut self, account: &Account) {
        self.run_delays.merge(&account.run_delay.waits);
        self.slices.merge(&account.slices.samples);
        self.wakeup_latencies.merge(&account.wakeup_latency.samples);
    }
}

/// Data of a run that only a trace has.
pub(crate) struct TraceFacts {
    pub merged: Merged,
    pub nr_switches: u64,
    pub nr_lost_events: u64,
    pub nr_inconsistent_events: u64,
    /// When the last phase began.
    pub last_phase_at: Option<Nanos>,
}

impl<'a> RunFacts<'a> {
    /// The data of a run of these tasks on `nr_cpus` CPUs.
    pub fn new(
        tasks: &'a [TaskMeasures],
        nr_cpus: u32,
        end_ns: Nanos,
        trace: Option<TraceFacts>,
    ) -> Self {
        let mut jobs: Vec<&TaskMeasures> = tasks.iter().filter(|task| !task.is_launcher).collect();
        if jobs.is_empty() {
            jobs.extend(tasks);
        }
        Self { tasks, jobs, nr_cpus, end_ns, trace }
    }

    /// The window of the jobs; `None` without a task.
    pub fn window(&self) -> Option<Window> {
        Window::of(self.jobs.iter().copied(), self.end_ns)
    }

    /// The window of all tasks, launchers too.
    pub fn window_of_all(&self) -> Option<Window> {
        Window::of(self.tasks.iter(), self.end_ns)
    }

    /// Sum over all tasks, launchers included.
    pub fn sum(&self, value: fn(&TaskMeasures) -> u64) -> u64 {
        self.tasks.iter().map(value).sum()
    }

    /// Number of tasks for which `is` is true.
    pub fn count(&self, is: fn(&TaskMeasures) -> bool) -> u64 {
        self.tasks.iter().filter(|task| is(task)).count() as u64
    }

    /// Distribution of one value per job. Jobs without the value are left out.
    pub fn over_jobs(&self, value: fn(&TaskMeasures) -> Option<u64>) -> Distribution {
        self.jobs.iter().copied().filter_map(value).collect::<Samples>().distribution()
    }

    /// Distribution of the samples of all tasks; unknown without a trace.
    pub fn merged(&self, samples: fn(&Merged) -> &Samples) -> Distribution {
        let Some(trace) = &self.trace else { return Distribution::default() };
        samples(&trace.merged).distribution()
    }
}
