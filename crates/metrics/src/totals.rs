// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the measures of a run from those of its tasks. Every lane uses this, even one that has
//! no trace and reads its tasks from /proc.

use crate::facts::{RunFacts, TraceFacts};
use crate::{RunTotals, TaskMeasures, cpu_share, idle_capacity, wait_as_reported};
use schedlab_model::Nanos;

/// Computes the totals of tasks that were measured without a trace, and each task's `cpu_share`.
/// Totals that only a trace has are absent, and `nr_lost_events` is 0.
pub fn summarise(tasks: &mut [TaskMeasures], nr_cpus: u32, end_ns: Nanos) -> RunTotals {
    of_run(tasks, nr_cpus, end_ns, None)
}

/// Computes the totals, and each task's `cpu_share`.
pub(crate) fn of_run(
    tasks: &mut [TaskMeasures],
    nr_cpus: u32,
    end_ns: Nanos,
    trace: Option<TraceFacts>,
) -> RunTotals {
    let cpu_time_ns = tasks.iter().map(|task| task.cpu_time_ns).sum();
    for task in tasks.iter_mut() {
        task.cpu_share = cpu_share::cpu_share(task.cpu_time_ns, cpu_time_ns);
    }
    let totals = RunTotals::of(&RunFacts::new(tasks, nr_cpus, end_ns, trace));
    let RunTotals { nr_tasks, nr_launchers, nr_exited, nr_switches, .. } = totals;
    assert_eq!(nr_tasks + nr_launchers, tasks.len() as u64, "{nr_launchers} are launchers");
    assert!(nr_exited <= nr_tasks, "{nr_exited} of {nr_tasks} tasks exited");
    let nr_out = totals.nr_voluntary_switches + totals.nr_involuntary_switches;
    assert!(nr_out <= nr_switches, "{nr_out} of {nr_switches} switches left a task");
    totals
}

/// Computes the totals that depend on other totals. Call it again after those have changed.
pub fn settle(totals: &mut RunTotals, nr_cpus: u32) {
    let (makespan, user) = (totals.makespan_ns, totals.user_time_ns);
    let cpu_time_ns = totals.cpu_time_ns;
    totals.idle_capacity_ns = idle_capacity::idle_capacity_ns(makespan, nr_cpus, cpu_time_ns);
    totals.wait_as_reported_ns =
        wait_as_reported::wait_as_reported_ns(makespan, nr_cpus, user, totals.system_time_ns);
}
