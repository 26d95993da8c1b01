// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints a trace for people: the answer, then its tasks by process and time lost (or its CPUs),
//! then the totals.

use super::processes::{self, Process};
use super::{Analysed, answer};
use crate::args::AnalyseArgs;
use crate::commands::analysis::{self, Shown};
use crate::commands::results;
use crate::error::CliResult;
use crate::output::Out;
use crate::table::{self, duration, maybe_duration, moment, number, or_dash, percent};
use comfy_table::{Cell, Table};
use schedlab_metrics::TaskMeasures;
use schedlab_metrics::cpu_use::CpuMeasures;
use schedlab_model::Nanos;

/// Maximum number of tasks in the table; the others are counted.
const TASKS_SHOWN: usize = 40;
/// Maximum number of tasks of one process in the table.
const OF_PROCESS_SHOWN: usize = 8;

/// Prints one trace.
pub fn one(analysed: &Analysed, args: &AnalyseArgs, out: &mut Out) -> CliResult<()> {
    let has_name = args.files.len() > 1;
    let name = if has_name { format!("{}: ", analysed.run.workload) } else { String::new() };
    out.line(format!("{name}{}", answer::line(&analysed.analysis)))?;
    out.line(head(analysed))?;
    let processes = processes::of(&analysed.run.measures.tasks, &analysed.facts);
    if args.cpus {
        out.line(cpu_table(&analysed.cpus))?;
    } else {
        let is_whole = args.all || !args.task.is_empty();
        let limits =
            if is_whole { (usize::MAX, usize::MAX) } else { (TASKS_SHOWN, OF_PROCESS_SHOWN) };
        let (rows, hidden) = task_table(&processes, limits);
        out.line(table::render(&rows))?;
        if hidden > 0 {
            out.line(format!("... and {hidden} more tasks with less run delay; --all shows all"))?;
        }
    }
    out.line(results::totals(&analysed.run))?;
    let order = processes.iter().flat_map(|one| &one.tasks).map(|task| task.id).collect();
    let is_of_tasks = !args.task.is_empty();
    let shown = Shown { all: args.all, all_findings: is_of_tasks, order };
    if args.analysis.analysis {
        analysis::show_all(&analysed.analysis, &shown, out)
    } else if is_of_tasks {
        analysis::starved(&analysed.analysis.starved, &shown, out)
    } else {
        Ok(())
    }
}

/// `trace: ftrace text, 2 CPUs, 3 tasks, 10 events in 60.00 us, from 500.000010000 s`.
fn head(analysed: &Analysed) -> String {
    let (run, facts) = (&analysed.run, &analysed.facts);
    let clock = facts.start_clock_ns;
    let part = analysed.part;
    let part = if part.is_whole() {
        String::new()
    } else {
        let to_ns = part.to_ns.min(facts.end_ns);
        format!(", of it {} to {}", moment(part.from_ns), moment(to_ns))
    };
    format!(
        "{}: {}, {}, {}, {} in {}, from {}.{:09} s of the trace's clock{part}",
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

/// Makes the rows of the processes and their tasks, within the limits for the table and for each
/// process. Also returns the number of tasks without a row.
fn task_table(
    processes: &[Process<'_>],
    (rows_max, of_process_max): (usize, usize),
) -> (Table, usize) {
    let mut rows = table::table(&[
        "task",
        "pid",
        "run delay",
        "longest wait",
        "latency p50",
        "p99",
        "CPU time",
        "sleep",
        "blocked",
        "unaccounted",
        "switches",
        "invol.",
        "migr.",
        "wake-ups",
    ]);
    let (mut shown, mut hidden) = (0, 0);
    for process in processes {
        let count = process.tasks.len();
        let room = of_process_max.min(rows_max - shown).min(count);
        if room > 0 && count > 1 {
            rows.add_row(process_row(process));
        }
        for task in &process.tasks[..room] {
            let indent = if count > 1 { "  " } else { "" };
            rows.add_row(task_row(task, indent));
        }
        shown += room;
        hidden += count - room;
    }
    (rows, hidden)
}

fn process_row(process: &Process<'_>) -> Vec<Cell> {
    let count = process.tasks.len();
    let sum = |value: fn(&TaskMeasures) -> u64| process.sum(value);
    let time = |value: fn(&TaskMeasures) -> u64| number(duration(sum(value)));
    let longest = process.tasks.iter().filter_map(|task| task.wait.ns_max).max();
    vec![
        Cell::new(format!("{}, {count} tasks", process.name())),
        number(or_dash(process.tgid, |tgid| tgid.to_string())),
        number(duration(process.run_delay_ns)),
        number(maybe_duration(longest)),
        number("-"),
        number("-"),
        time(|task| task.cpu_time_ns),
        time(|task| task.sleep_ns.unwrap_or(0)),
        time(|task| task.blocked_io_ns.unwrap_or(0)),
        time(|task| task.unaccounted_ns.unwrap_or(0)),
        number(sum(|task| task.nr_voluntary_switches + task.nr_involuntary_switches)),
        number(sum(|task| task.nr_involuntary_switches)),
        number(sum(|task| task.nr_migrations.unwrap_or(0))),
        number(sum(|task| task.nr_wakeups.unwrap_or(0))),
    ]
}

fn task_row(task: &TaskMeasures, indent: &str) -> Vec<Cell> {
    let time = |ns: Option<Nanos>| number(maybe_duration(ns));
    let count = |count: Option<u64>| number(or_dash(count, |count| count.to_string()));
    vec![
        Cell::new(format!("{indent}{}", task.name)),
        number(or_dash(task.pid, |pid| pid.to_string())),
        number(duration(task.run_delay_ns)),
        time(task.wait.ns_max),
        time(task.wakeup_latency.ns_median),
        time(task.wakeup_latency.ns_p99),
        number(duration(task.cpu_time_ns)),
        time(task.sleep_ns),
        time(task.blocked_io_ns),
        time(task.unaccounted_ns),
        number(task.nr_voluntary_switches + task.nr_involuntary_switches),
        number(task.nr_involuntary_switches),
        count(task.nr_migrations),
        count(task.nr_wakeups),
    ]
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
