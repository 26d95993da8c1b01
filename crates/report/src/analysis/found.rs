// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings of the analysis: tasks that waited too long, and CPUs that were idle while tasks
//! waited.

use super::{id_of, number_cell, table_foot, table_head};
use crate::html::escape;
use crate::number::{duration, plural};
use schedlab_metrics::Analysis;
use schedlab_metrics::analysis::{Findings, Starved, Wasted};
use std::fmt::Write as _;

/// Maximum number of tasks that a row names.
const NAMED: usize = 3;

/// Writes both lists, or a sentence in place of an empty one.
pub fn found_part(id: &str, analysis: &Analysis) -> String {
    let (starved, wasted) = (&analysis.starved, &analysis.wasted);
    let limit = duration(starved.threshold_ns as f64);
    let mut out = match starved.count {
        0 => format!("<p>No task waited for {limit} or longer.</p>\n"),
        found => format!(
            "<p>Starved: {} of {limit} or longer, {} together{}.</p>\n",
            plural(found as usize, "wait", "waits"),
            duration(starved.ns as f64),
            shown(starved),
        ),
    };
    if !starved.longest.is_empty() {
        out += &starved_table(&format!("{id}-starved"), &starved.longest);
    }
    let limit = duration(wasted.threshold_ns as f64);
    out += &match wasted.count {
        0 => format!(
            "<p>No CPU was idle for {limit} or longer while a task that may run there waited on \
             another.</p>\n"
        ),
        found => format!(
            "<p>Wasted: {} a CPU was idle for {limit} or longer while a task that may run \
             there waited on another, {} together{}.</p>\n",
            plural(found as usize, "time", "times"),
            duration(wasted.ns as f64),
            shown(wasted),
        ),
    };
    if !wasted.longest.is_empty() {
        out += &wasted_table(&format!("{id}-wasted"), &wasted.longest);
    }
    out
}

fn shown<T>(found: &Findings<T>) -> String {
    match found.longest.len() as u64 {
        listed if listed < found.count => {
            format!("; the {listed} longest of {} are listed", found.count)
        }
        _ => String::new(),
    }
}

fn time_cell(ns: u64) -> String {
    number_cell(ns, &duration(ns as f64))
}

fn starved_table(id: &str, found: &[Starved]) -> String {
    let mut heads = vec![("task", false), ("waited", true), ("from", true), ("to", true)];
    heads.extend([("on CPU", true), ("cause", false), ("ran meanwhile", false)]);
    let mut out = table_head(id, &heads);
    for one in found {
        let ran = one.ran.iter().take(NAMED);
        let ran = ran.map(|other| {
            format!("{} {}", id_of(&other.name, other.pid), duration(other.ns as f64))
        });
        let open = if one.is_open { ", to the end" } else { "" };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th>{}{}{}{}<td>{}{open}</td><td>{}</td></tr>",
            escape(&id_of(&one.name, one.pid)),
            time_cell(one.ns),
            time_cell(one.from_ns),
            time_cell(one.to_ns),
            number_cell(one.cpu, &one.cpu.to_string()),
            escape(&one.cause),
            escape(&ran.collect::<Vec<_>>().join(", ")),
        );
    }
    out + &table_foot(id)
}

fn wasted_table(id: &str, found: &[Wasted]) -> String {
    let mut heads = vec![("idle CPU", true), ("for", true), ("from", true), ("to", true)];
    heads.extend([("task", false), ("waited on CPU", true), ("cause", false)]);
    let mut out = table_head(id, &heads);
    for one in found {
        let _ = writeln!(
            out,
            "<tr>{}{}{}{}<td>{}</td>{}<td>{}</td></tr>",
            number_cell(one.cpu, &one.cpu.to_string()),
            time_cell(one.ns),
            time_cell(one.from_ns),
            time_cell(one.to_ns),
            escape(&id_of(&one.name, one.pid)),
            number_cell(one.waited_on, &one.waited_on.to_string()),
            escape(&one.cause),
        );
    }
    out + &table_foot(id)
}
