// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of runnable tasks, over time and on each CPU.

use super::charts::{depth_panel, panel_html, small_html};
use super::{number_cell, table_foot, table_head};
use crate::number::{count, duration, significant};
use schedlab_metrics::Analysis;
use schedlab_metrics::analysis::Depth;
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
    let id = format!("{id}-depth");
    let mut heads = vec![("CPU", true), ("mean", true), ("median", true), ("p99", true)];
    heads.extend([("max", true), ("idle", true), ("over time", false)]);
    out += &table_head(&id, &heads);
    for depth in analysis.cpus.iter().take(CPUS_MAX) {
        row(&mut out, depth, end_ns);
    }
    out += &table_foot(&id);
    if analysis.cpus.len() > CPUS_MAX {
        let all = analysis.cpus.len();
        let _ = writeln!(
            out,
            "<p class=\"notice\">The first {CPUS_MAX} of {all} CPUs; the JSON has all.</p>"
        );
    }
    out
}

fn row(out: &mut String, depth: &Depth, end_ns: u64) {
    let cpu = depth.cpu.unwrap_or_default();
    let whole: u64 = depth.histogram.iter().map(|time| time.ns).sum();
    let idle = depth.histogram.first().filter(|time| time.from == 0).map_or(0, |time| time.ns);
    let idle = idle as f64 * 100.0 / whole.max(1) as f64;
    let picture = depth.curve.as_ref().map(|curve| {
        let label = format!("CPU {cpu}: {} runnable tasks at most.", depth.max);
        small_html(curve, end_ns, &label)
    });
    let _ = writeln!(
        out,
        "<tr>{}{}{}{}{}{}<td>{}</td></tr>",
        number_cell(cpu, &cpu.to_string()),
        number_cell(depth.mean, &significant(depth.mean)),
        number_cell(depth.median, &count(depth.median)),
        number_cell(depth.p99, &count(depth.p99)),
        number_cell(depth.max, &count(depth.max)),
        number_cell(idle, &format!("{idle:.1}\u{a0}%")),
        picture.unwrap_or_default()
    );
}
