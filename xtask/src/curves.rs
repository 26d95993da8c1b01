// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of docs/reference/performance.md, drawn from stored results.

use crate::chart::{Chart, Line, Panel};
use serde_json::Value;
use std::path::Path;

/// The output of `schedlab bench --curve pick --scheduler all --json`.
const PICK: &str = "benchmarks/results/pick-cost.json";

/// Curves of the simulator's speed, and the names of their lines.
const SPEED: &str = "benchmarks/results/2026-11-22-epyc-zen4.json";
const SPEED_LINES: [(&str, &str, &str); 3] = [
    ("curve_tasks", "nr_tasks", "tasks on one CPU"),
    ("curve_cpus", "nr_cpus", "CPUs, 4 CPU-bound tasks each"),
    ("curve_cpus_sleeping", "nr_cpus", "CPUs, 4 sleeping tasks each"),
];

/// A panel of the figure of picks: its title, and whether a scheduler belongs there. The first
/// panel that accepts a scheduler gets it.
type Family = (&'static str, fn(&str) -> bool);
const FAMILIES: [Family; 6] = [
    ("Linux 2.4 and O(1)", |name| {
        ["linux-2.4.18", "linux-2.6.0", "linux-2.6.11", "linux-2.6.22"].contains(&name)
    }),
    ("Staircase and early CFS", |name| {
        ["rsdl", "sd-", "cfs-", "linux-2.6"].iter().any(|start| name.starts_with(start))
    }),
    ("CFS and EEVDF", |name| name.starts_with("linux-")),
    ("Study S4", |name| name.contains("wrr") || name.starts_with("rmlfq")),
    ("Textbook: by length or priority", |name| {
        ["sjf", "srtf", "priority"].iter().any(|start| name.starts_with(start))
    }),
    ("Textbook: queues and shares", |_| true),
];

/// The files and their contents.
pub fn all(root: &Path) -> Result<Vec<(&'static str, String)>, String> {
    Ok(vec![
        ("docs/images/performance.svg", speed(&read(root, SPEED)?)?.svg()),
        ("docs/images/pick-cost.svg", picks(&read(root, PICK)?)?.svg()),
    ])
}

fn read(root: &Path, file: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))
}

fn number(value: &Value, name: &str) -> Result<f64, String> {
    value[name].as_f64().ok_or_else(|| format!("a result without the number {name}"))
}

/// CPU time of a switch against the number of tasks and of CPUs, in one panel.
fn speed(results: &Value) -> Result<Chart, String> {
    let mut lines = Vec::new();
    for (curve, x, name) in SPEED_LINES {
        let mut points = Vec::new();
        for result in results[curve].as_array().ok_or_else(|| format!("{SPEED}: no {curve}"))? {
            // Most of a million tasks have not run yet, so that run measured their start.
            if number(result, "nr_switches")? > 3.0 * number(result, "nr_tasks")? {
                let ns = number(result, "run_cpu_s")? * 1e9 / number(result, "nr_switches")?;
                points.push((number(result, x)?, ns));
            }
        }
        lines.push(Line { name: name.into(), points });
    }
    Ok(Chart {
        panels: vec![Panel { title: "linux-6.12".into(), lines }],
        columns: 1,
        x_label: "tasks or CPUs",
        y_label: "ns of CPU time a switch",
        slope: None,
    })
}

/// CPU time of a switch against the number of runnable tasks, by families of schedulers.
fn picks(results: &Value) -> Result<Chart, String> {
    let mut panels: Vec<Panel> = FAMILIES
        .iter()
        .map(|(title, _)| Panel { title: (*title).into(), lines: Vec::new() })
        .collect();
    for result in results.as_array().ok_or_else(|| format!("{PICK}: no list of results"))? {
        let name = result["scheduler"].as_str().ok_or_else(|| format!("{PICK}: no scheduler"))?;
        let Some(steady) = result.get("steady") else { continue };
        let point = (number(result, "nr_tasks")?, number(steady, "ns_per_switch")?);
        let family = FAMILIES.iter().position(|(_, takes)| takes(name)).unwrap_or_default();
        let lines = &mut panels[family].lines;
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name: name.into(), points: vec![point] }),
        }
    }
    panels.retain(|panel| !panel.lines.is_empty());
    Ok(Chart {
        panels,
        columns: 2,
        x_label: "runnable tasks on one CPU",
        y_label: "ns of CPU time a switch",
        slope: Some((10.0, "10 ns \u{d7} n")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_scheduler_is_a_line_of_one_panel() {
        let point = |name: &str, n: u32| {
            let steady = json!({ "ns_per_switch": 100.0 + f64::from(n) });
            json!({ "scheduler": name, "nr_tasks": n, "steady": steady })
        };
        let names = ["rr", "srtf", "wrr", "sd-0.48", "linux-2.4.18", "linux-2.6.24", "linux-9.9"];
        let mut results: Vec<Value> =
            names.iter().flat_map(|name| [point(name, 2), point(name, 10)]).collect();
        results.push(json!({ "scheduler": "never", "nr_tasks": 2 }));
        let chart = picks(&Value::Array(results)).unwrap();
        let found: Vec<(&str, &str)> = chart
            .panels
            .iter()
            .flat_map(|p| p.lines.iter().map(|line| (p.title.as_str(), line.name.as_str())))
            .collect();
        assert_eq!(found.len(), names.len());
        assert!(found.contains(&("CFS and EEVDF", "linux-9.9")), "{found:?}");
        assert!(found.contains(&("Staircase and early CFS", "linux-2.6.24")), "{found:?}");
        assert!(chart.panels.iter().flat_map(|p| &p.lines).all(|line| line.points.len() == 2));
        assert!(picks(&json!({})).is_err());
        assert!(picks(&json!([{ "scheduler": "rr", "steady": {} }])).is_err());
    }
}
