// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace for people: its tasks by CPU time, or its CPUs, and the totals.

use super::Analysed;
use crate::commands::results;
use crate::error::CliResult;
use crate::output::Out;
use crate::table::{self, duration, maybe_duration, number, or_dash, percent};
use schedlab_metrics::TaskMeasures;
use schedlab_metrics::cpu_use::CpuMeasures;

/// Tasks that the table shows; the others are counted.
const TASKS_SHOWN: usize = 40;

/// Prints one trace.
pub fn one(analysed: &Analysed, of_cpus: bool, out: &mut Out) -> CliResult<()> {
    out.line(head(analysed))?;
    if of_cpus {
        out.line(cpu_table(&analysed.cpus))?;
    } else {
        let tasks = &analysed.run.measures.tasks;
        out.line(task_table(tasks))?;
        let hidden = tasks.len().saturating_sub(TASKS_SHOWN);
        if hidden > 0 {
            out.line(format!("... and {hidden} more tasks with less CPU time; --json shows all"))?;
        }
    }
    out.line(results::totals(&analysed.run))
}

/// `trace: ftrace text, 2 CPUs, 3 tasks, 10 events in 60.00 us, from 500.000010000 s`.
fn head(analysed: &Analysed) -> String {
    let (run, facts) = (&analysed.run, &analysed.facts);
    let clock = facts.start_clock_ns;
    format!(
        "{}: {}, {}, {}, {} in {}, from {}.{:09} s of the trace's clock",
        run.workload,
        run.source,
        table::counted(facts.nr_cpus, "CPU", "CPUs"),
        table::counted(facts.nr_tasks, "task", "tasks"),
        table::counted(facts.nr_events, "event", "events"),
        duration(facts.end_ns),
        clock / 1_000_000_000,
        clock % 1_000_000_000,
    )
}

fn task_table(tasks: &[TaskMeasures]) -> String {
    let mut rows = table::table(&[
        "task",
        "pid",
        "CPU time",
        "run delay",
        "sleep",
        "blocked",
        "unaccounted",
        "switches",
        "invol.",
        "migr.",
        "wake-ups",
        "latency p50",
        "p99",
        "longest wait",
    ]);
    let mut by_time: Vec<&TaskMeasures> = tasks.iter().collect();
    by_time.sort_by_key(|task| (std::cmp::Reverse(task.cpu_time_ns), task.id));
    for task in by_time.into_iter().take(TASKS_SHOWN) {
        let time = |ns: Option<u64>| number(maybe_duration(ns));
        let count = |count: Option<u64>| number(or_dash(count, |count| count.to_string()));
        rows.add_row([
            comfy_table::Cell::new(&task.name),
            number(or_dash(task.pid, |pid| pid.to_string())),
            number(duration(task.cpu_time_ns)),
            number(duration(task.run_delay_ns)),
            time(task.sleep_ns),
            time(task.blocked_io_ns),
            time(task.unaccounted_ns),
            number(task.nr_voluntary_switches + task.nr_involuntary_switches),
            number(task.nr_involuntary_switches),
            count(task.nr_migrations),
            count(task.nr_wakeups),
            time(task.wakeup_latency.ns_median),
            time(task.wakeup_latency.ns_p99),
            time(task.wait.ns_max),
        ]);
    }
    table::render(&rows)
}

fn cpu_table(cpus: &[CpuMeasures]) -> String {
    let mut rows = table::table(&[
        "CPU", "busy", "busy %", "idle", "unknown", "switches", "wake-ups", "forks", "migr. in",
        "missing", "lost",
    ]);
    for cpu in cpus {
        let known = cpu.busy_ns + cpu.idle_ns;
        rows.add_row([
            number(cpu.cpu),
            number(duration(cpu.busy_ns)),
            match known {
                0 => number("-"),
                _ => number(percent(cpu.busy_ns as f64 / known as f64)),
            },
            number(duration(cpu.idle_ns)),
            number(duration(cpu.unknown_ns)),
            number(cpu.nr_switches),
            number(cpu.nr_wakeups),
            number(cpu.nr_forks),
            number(cpu.nr_migrations_in),
            number(cpu.nr_missing_switches),
            number(cpu.nr_lost_events),
        ]);
    }
    table::render(&rows)
}
