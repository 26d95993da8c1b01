// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of runnable tasks, over time and on each CPU, and of tasks in each dispatch queue.

use super::charts::{depth_panel, panel_html, small_html};
use super::{number_cell, table_foot, table_head};
use crate::html::escape;
use crate::number::{count, duration, significant};
use schedlab_metrics::Analysis;
use schedlab_metrics::analysis::{Depth, QueueDepth};
use schedlab_run::RunResult;
use std::fmt::Write as _;

/// Maximum number of CPUs in the table.
const CPUS_MAX: usize = 256;

/// Writes the picture of the run and the table of its CPUs.
pub fn depth_part(id: &str, run: &RunResult, analysis: &Analysis) -> String {
    let end_ns = run.measures.totals.end_ns;
    let whole = &analysis.depth;
    let mut out = format!(
        "<p>Runnable tasks, those that run included: {} in the mean, {} at most (at {}).",
        significant(whole.mean),
        count(whole.max),
        duration(whole.max_at_ns as f64)
    );
    out += " The line is the mean over short times, the area behind it the greatest number.</p>\n";
    if let Some(panel) = depth_panel(run, analysis) {
        let label = format!(
            "Runnable tasks over time: mean {}, p99 {}, at most {}.",
            significant(whole.mean),
            whole.p99,
            whole.max
        );
        out += &panel_html(panel, &label);
    }
    let table = format!("{id}-depth");
    out += &table_head(&table, &heads("CPU", "idle"));
    for depth in analysis.cpus.iter().take(CPUS_MAX) {
        let cpu = depth.cpu.unwrap_or_default();
        let label = format!("CPU {cpu}: {} runnable tasks at most.", depth.max);
        row(&mut out, &number_cell(cpu, &cpu.to_string()), &label, depth, end_ns);
    }
    out += &table_foot(&table);
    if analysis.cpus.len() > CPUS_MAX {
        let all = analysis.cpus.len();
        let _ = writeln!(
            out,
            "<p class=\"notice\">The first {CPUS_MAX} of {all} CPUs; the JSON has all.</p>"
        );
    }
    out
}

/// Writes the table of the scheduler's dispatch queues, if it has some.
pub fn queues_part(id: &str, run: &RunResult, analysis: &Analysis) -> String {
    let end_ns = run.measures.totals.end_ns;
    if analysis.queues.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<p>Tasks in the dispatch queues of the scheduler, the longest queues first. A queue that \
         never held a task has no row.</p>\n",
    );
    let table = format!("{id}-queues");
    out += &table_head(&table, &heads("queue", "empty"));
    for QueueDepth { queue, depth } in &analysis.queues {
        let label = format!("{queue}: {} tasks at most.", depth.max);
        let name = format!("<th scope=\"row\">{}</th>", escape(queue));
        row(&mut out, &name, &label, depth, end_ns);
    }
    out + &table_foot(&table)
}

/// The columns of a table of depths. `empty`: the share of time without a task.
fn heads<'h>(what: &'h str, empty: &'h str) -> [(&'h str, bool); 7] {
    [
        (what, true),
        ("mean", true),
        ("median", true),
        ("p99", true),
        ("max", true),
        (empty, true),
        ("over time", false),
    ]
}

/// A row with the cell `name` first, and a picture with this label last.
fn row(out: &mut String, name: &str, label: &str, depth: &Depth, end_ns: u64) {
    let whole: u64 = depth.histogram.iter().map(|time| time.ns).sum();
    let empty = depth.histogram.first().filter(|time| time.from == 0).map_or(0, |time| time.ns);
    let empty = empty as f64 * 100.0 / whole.max(1) as f64;
    let picture = depth.curve.as_ref().map(|curve| small_html(curve, end_ns, label));
    let _ = writeln!(
        out,
        "<tr>{name}{}{}{}{}{}<td>{}</td></tr>",
        number_cell(depth.mean, &significant(depth.mean)),
        number_cell(depth.median, &count(depth.median)),
        number_cell(depth.p99, &count(depth.p99)),
        number_cell(depth.max, &count(depth.max)),
        number_cell(empty, &format!("{empty:.1}\u{a0}%")),
        picture.unwrap_or_default()
    );
}
