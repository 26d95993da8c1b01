// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each task did, as a bar of states, and which tasks ran while it waited. Tasks of one name
//! form a group; the group that lost most time is first.

use super::{id_of, number_cell, table_foot, table_head};
use crate::html::escape;
use crate::number::{duration, significant};
use schedlab_metrics::Analysis;
use schedlab_metrics::analysis::{Lag, NamedAntagonist, StateTime, TaskAnalysis};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of tasks in the table.
const TASKS_MAX: usize = 200;
/// Maximum number of objects or antagonists that a row names.
const NAMED: usize = 3;

/// States in the order of a bar. The style sheet defines a colour for each.
const STATES: [(&str, &str); 6] = [
    ("running", "on a CPU"),
    ("runnable", "on a run queue"),
    ("blocked", "on an object"),
    ("sleeping", "timers and what no event names"),
    ("device", "uninterruptible"),
    ("unknown", "events are missing"),
];

/// The table of tasks.
pub fn states_part(id: &str, analysis: &Analysis) -> String {
    let mut out = String::from("<p class=\"state-key\">");
    for (state, meaning) in STATES {
        let _ = write!(out, "<span><i class=\"state {state}\"></i>{state}: {meaning}</span> ");
    }
    out += "</p>\n<p>Behind and ahead: the furthest that a task was from what its weight is worth \
        on an ideal machine.</p>\n";
    let id = format!("{id}-states");
    let mut heads = vec![("task", false), ("life", true), ("its parts", false)];
    heads.extend([("running", true), ("runnable", true), ("blocked", true), ("sleeping", true)]);
    heads.extend([("behind", true), ("ahead", true)]);
    heads.extend([("blocked on", false), ("ran while it waited", false)]);
    out += &table_head(&id, &heads);
    for task in by_time_lost(&analysis.tasks).into_iter().take(TASKS_MAX) {
        row(&mut out, task);
    }
    out += &table_foot(&id);
    if analysis.tasks.len() > TASKS_MAX {
        let all = analysis.tasks.len();
        let _ = writeln!(
            out,
            "<p class=\"notice\">The first {TASKS_MAX} of {all} tasks; the JSON has all.</p>"
        );
    }
    out
}

/// Sorts tasks by the time that all tasks of their name waited for a CPU, then by their own waiting
/// time. Tasks without process ids, as in a simulation, keep the order of the workload.
fn by_time_lost(tasks: &[TaskAnalysis]) -> Vec<&TaskAnalysis> {
    let mut rows: Vec<&TaskAnalysis> = tasks.iter().collect();
    if tasks.iter().all(|task| task.pid.is_none()) {
        return rows;
    }
    let mut of_name: BTreeMap<&str, u64> = BTreeMap::new();
    for task in tasks {
        *of_name.entry(&task.name).or_default() += task.time_in("runnable");
    }
    rows.sort_by_key(|task| {
        let name = task.name.as_str();
        (Reverse(of_name[name]), name, Reverse(task.time_in("runnable")), task.id)
    });
    rows
}

fn row(out: &mut String, task: &TaskAnalysis) {
    let percent = |state: &str| task.time_in(state) as f64 * 100.0 / task.life_ns.max(1) as f64;
    let mut bar = String::from("<div class=\"bar\">");
    let mut words = Vec::new();
    for (state, _) in STATES {
        let part = percent(state);
        if part > 0.0 {
            words.push(format!("{state} {} %", significant(part)));
            let _ = write!(
                bar,
                "<i class=\"state {state}\" style=\"width:{part:.3}%\" title=\"{state} {} %\"></i>",
                significant(part)
            );
        }
    }
    bar += "</div>";
    let _ = write!(
        out,
        "<tr><th scope=\"row\">{}</th>{}<td role=\"img\" aria-label=\"{}\">{bar}</td>",
        escape(&id_of(&task.name, task.pid)),
        number_cell(task.life_ns, &duration(task.life_ns as f64)),
        words.join(", ")
    );
    for state in ["running", "runnable", "blocked", "sleeping"] {
        let part = percent(state);
        *out += &number_cell(part, &format!("{part:.1}\u{a0}%"));
    }
    for lag in [|lag: Lag| lag.behind_ns_max, |lag: Lag| lag.ahead_ns_max] {
        *out += &match task.lag.map(lag) {
            Some(ns) => number_cell(ns, &duration(ns as f64)),
            None => "<td class=\"num none\">\u{2013}</td>".into(),
        };
    }
    let _ = writeln!(out, "<td>{}</td><td>{}</td></tr>", blocked_on(&task.states), ran(task));
}

/// `mutex m 12 ms, pipe p 3 µs`.
fn blocked_on(states: &[StateTime]) -> String {
    let named = states.iter().filter_map(|state| {
        Some(escape(&format!("{} {}", state.blocked_on()?, duration(state.ns as f64))))
    });
    named.take(NAMED).collect::<Vec<_>>().join(", ")
}

/// `hog (3 tasks) 12 ms, sh 8 3 ms`. Results of older versions list single tasks instead of names.
fn ran(task: &TaskAnalysis) -> String {
    let timed = |who: String, ns: u64| escape(&format!("{who} {}", duration(ns as f64)));
    let name = |one: &NamedAntagonist| match one.nr_tasks {
        0 | 1 => timed(id_of(&one.name, one.pid), one.ns),
        count => timed(format!("{} ({count} tasks)", one.name), one.ns),
    };
    let antagonists = &task.antagonists;
    let all: Vec<String> = if antagonists.names.is_empty() {
        let one = antagonists.tasks.iter();
        one.map(|one| timed(id_of(&one.name, one.pid), one.ns)).take(NAMED).collect()
    } else {
        antagonists.names.iter().map(name).take(NAMED).collect()
    };
    all.join(", ")
}
