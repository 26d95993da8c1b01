// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much CPU time the tasks had got at each moment: one line a task.

use super::curve::{Plane, WIDE};
use crate::html::escape;
use crate::number::duration;
use crate::style::COLOURS;
use schedlab_metrics::Analysis;
use schedlab_metrics::analysis::{Progress, TaskAnalysis};
use std::fmt::Write as _;

/// Lines in the picture: those of the tasks that got most, one for each colour.
const LINES_MAX: usize = COLOURS.len();

/// The picture and its key; empty if no task ran.
pub fn progress_part(analysis: &Analysis, end_ns: u64) -> String {
    let mut lines: Vec<(&TaskAnalysis, &Progress, u64)> = analysis
        .tasks
        .iter()
        .filter_map(|task| {
            let progress = task.progress.as_ref()?;
            Some((task, progress, *progress.cpu_time_ns.last()?))
        })
        .collect();
    lines.sort_by_key(|(task, _, got)| (std::cmp::Reverse(*got), task.id));
    lines.truncate(LINES_MAX);
    let Some(most) = lines.first().map(|(_, _, got)| *got).filter(|got| *got > 0) else {
        return String::new();
    };
    let words: Vec<String> = lines
        .iter()
        .map(|(task, _, got)| format!("{} {}", task.name, duration(*got as f64)))
        .collect();
    let label = format!("CPU time over time; at the end: {}.", words.join(", "));
    let plane = Plane::new(WIDE, end_ns, most as f64);
    let mut out = String::from("<p class=\"state-key\">CPU time that the tasks had got: ");
    for (colour, (task, _, _)) in lines.iter().enumerate() {
        let name = escape(&task.name);
        let _ = write!(out, "<span><i class=\"state line{colour}\"></i>{name}</span> ");
    }
    out += "</p>\n";
    out += &plane.head(&label, duration);
    for (colour, (_, progress, got)) in lines.iter().enumerate() {
        let _ = write!(out, "<polyline class=\"line line{colour}\" points=\"");
        let values = std::iter::once(0).chain(progress.cpu_time_ns.iter().copied());
        let times = (0..).map(|bin: u64| bin.saturating_mul(progress.bin_ns).min(end_ns));
        for (time, value) in times.zip(values).chain([(end_ns, *got)]) {
            let (x, y) = plane.at(time as f64, value as f64);
            let _ = write!(out, "{x:.1},{y:.1} ");
        }
        out += "\"/>";
    }
    out + "</svg>\n"
}
