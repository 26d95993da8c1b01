// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plain-text sections: definitions of the measures, and what the models simplify.

use crate::ModelNote;
use crate::group::Group;
use crate::html::escape;
use std::fmt::Write as _;

const DEFINITIONS: [(&str, &str); 15] = [
    ("response", "from a task's release to the moment it first runs"),
    ("turnaround", "from a task's release to its exit"),
    ("makespan", "from the first release of a run to its last exit"),
    ("throughput", "tasks that exited, divided by the makespan"),
    ("run delay", "time a task was runnable but not running, summed over its life"),
    ("longest wait", "the longest single stay of any task on a run queue"),
    ("wake-up latency", "from a wake-up to the moment the task runs"),
    ("slice", "one uninterrupted stay of a task on a CPU"),
    ("switches", "changes of the task that a CPU runs, to or from a task of the run"),
    ("voluntary switch", "the task stopped running because it slept, waited or exited (nvcsw)"),
    ("involuntary switch", "the task could have gone on but was taken off the CPU (nivcsw)"),
    ("migrations", "moves of a task from one CPU to another"),
    ("utilisation", "busy CPU time divided by CPUs times the length of the run"),
    (
        "Jain",
        "Jain's fairness index of the tasks' CPU time: (sum x)\u{b2} / (n \u{b7} sum x\u{b2}), \
         1 when all got the same, 1/n when one got all",
    ),
    ("p50, p95, p99", "the value that 50, 95 or 99 % of the samples do not exceed"),
];

/// Writes what each measure means and, if there are repetitions, how to see the intervals.
pub fn definitions_section(groups: &[Group<'_>]) -> String {
    let mut out =
        String::from("<section id=\"definitions\">\n<h2>What the measures mean</h2>\n<dl>\n");
    for (term, text) in DEFINITIONS {
        let _ = writeln!(out, "<dt>{term}</dt><dd>{text}</dd>");
    }
    out += "</dl>\n";
    if groups.iter().flat_map(|group| &group.cells).any(|cell| cell.runs.len() > 1) {
        out += "<p>Every mean over repetitions has a 95\u{a0}% confidence interval from Student's \
                t; hold the pointer over a number in a table to see it.</p>\n";
    }
    out += "</section>\n";
    out
}

/// Writes what the models leave out.
pub fn footer(notes: &[ModelNote]) -> String {
    let mut out = String::from(
        "<footer id=\"models\">\n<h2>What the models simplify</h2>\n<p>A simulated run knows only \
         its workload, the scheduler's rules and what is listed with the modelled machine. There \
         are no interrupts and no refills of caches but those that it names, no other processes, \
         no change of clock frequency, no contention for memory, and every cost is the same each \
         time. A real machine has all of these; where the two differ, look there first.</p>\n",
    );
    if !notes.is_empty() {
        out += "<dl>\n";
        for note in notes {
            let _ = writeln!(
                out,
                "<dt>{}</dt><dd>Faithful to: {}. Left out or simplified: {}.</dd>",
                escape(&note.scheduler),
                escape(note.source.trim_end_matches('.')),
                escape(note.leaves_out.trim_end_matches('.'))
            );
        }
        out += "</dl>\n";
    }
    out += "<p class=\"made\">This page is one file: it loads nothing from anywhere and sends \
        nothing.</p>\n</footer>\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::Sim;

    #[test]
    fn intervals_are_announced_only_where_runs_repeat() {
        let text = |runs| definitions_section(&group_all(&[experiment("x", runs)]));
        assert!(!text(vec![run(Sim, "rr", 1, 1)]).contains("confidence"));
        assert!(text(vec![run(Sim, "rr", 1, 1); 2]).contains("confidence"));
    }
}
