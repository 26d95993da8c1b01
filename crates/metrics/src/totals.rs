// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the tasks' measures to those of the run. Every lane uses this, also one that has no trace
//! and filled in the tasks from /proc.

use crate::makespan::Window;
use crate::samples::Samples;
use crate::{
    RunTotals, TaskMeasures, cpu_share, idle_capacity, jain_index, throughput, user_system,
    utilisation, wait_as_reported,
};
use schedlab_model::Nanos;

/// Everything of [`RunTotals`] that follows from the tasks, and each task's `cpu_share`.
///
/// What does not is left at 0: `nr_lost_events`, `nr_inconsistent_events`, and the distributions
/// `wakeup_latency`, `wait` and `slice`. `nr_switches` is set to the tasks' switch-outs; a trace
/// knows the switches from idle too.
pub fn summarise(tasks: &mut [TaskMeasures], nr_cpus: u32, end_ns: Nanos) -> RunTotals {
    let cpu_time_ns = tasks.iter().map(|task| task.cpu_time_ns).sum();
    for task in tasks.iter_mut() {
        task.cpu_share = cpu_share::cpu_share(task.cpu_time_ns, cpu_time_ns);
    }
    let tasks: &[TaskMeasures] = tasks;
    let sum = |field: fn(&TaskMeasures) -> u64| tasks.iter().map(field).sum::<u64>();
    let window = Window::of(tasks, end_ns);
    let window_ns = window.map_or(0, |window| window.length_ns());
    let nr_exited = tasks.iter().filter(|task| task.exit_ns.is_some()).count() as u64;
    let over = |field: fn(&TaskMeasures) -> Option<u64>| {
        tasks.iter().filter_map(field).collect::<Samples>().distribution()
    };
    let turnaround = over(|task| task.turnaround_ns);
    let response = over(|task| task.response_ns);
    let (voluntary, involuntary) =
        (sum(|task| task.nr_voluntary_switches), sum(|task| task.nr_involuntary_switches));
    let (user_time_ns, system_time_ns) = user_system::of_tasks(tasks).unzip();
    let mut totals = RunTotals {
        end_ns,
        nr_tasks: tasks.len() as u64,
        nr_exited,
        makespan_ns: window.and_then(|window| window.makespan_ns()),
        throughput_per_s: throughput::throughput_per_s(nr_exited, window_ns),
        utilisation: utilisation::utilisation(cpu_time_ns, nr_cpus, window_ns),
        jain_index: jain_index::jain_index(tasks.iter().map(|task| task.cpu_time_ns)),
        cpu_time_ns,
        user_time_ns,
        system_time_ns,
        run_delay_ns: sum(|task| task.run_delay_ns),
        nr_switches: voluntary + involuntary,
        nr_voluntary_switches: voluntary,
        nr_involuntary_switches: involuntary,
        nr_migrations: sum(|task| task.nr_migrations),
        nr_uncertain_tasks: tasks.iter().filter(|task| task.is_uncertain).count() as u64,
        turnaround_ns_mean: turnaround.ns_mean,
        response_ns_mean: response.ns_mean,
        turnaround,
        response,
        run_delay: over(|task| Some(task.run_delay_ns)),
        ..RunTotals::default()
    };
    settle(&mut totals, nr_cpus);
    totals
}

/// What follows from other totals; to be called again when one of those has changed.
pub fn settle(totals: &mut RunTotals, nr_cpus: u32) {
    let (makespan, user) = (totals.makespan_ns, totals.user_time_ns);
    let cpu_time_ns = totals.cpu_time_ns;
    totals.idle_capacity_ns = idle_capacity::idle_capacity_ns(makespan, nr_cpus, cpu_time_ns);
    totals.wait_as_reported_ns =
        wait_as_reported::wait_as_reported_ns(makespan, nr_cpus, user, totals.system_time_ns);
}
