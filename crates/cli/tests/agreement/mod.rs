// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the simulation of a scheduler agrees with a guest that loads the same file: the same
//! workloads on one CPU, in counted time and on the machine model `guest-counted`. Measures,
//! tolerances and the comparison of slices are those of `schedlab validate`
//! (studies/validate.toml). Both lanes apply the same setup.

use super::common::schedlab;
use schedlab_lab::claims::slices::{Sequence, SliceRule, compare, description};
use schedlab_run::RunResult;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest difference of a CPU share, in points.
const SHARE_POINTS: f64 = 1.0;
/// Largest difference of switches, as a fraction of the kernel's, from this number on.
const SWITCHES_PART: f64 = 0.1;
const SWITCHES_FLOOR: u64 = 20;
/// Least part of equal slices.
const SLICES_PART: f64 = 0.95;
/// What counts as a slice.
const RULE: SliceRule = SliceRule { gap_ns: 400_000, shortest_ns: 300_000, within_ns: 4_400_000 };

/// Workloads: name and file. Tasks sleep until they begin, as the launcher would have to wait for
/// its turn.
const WORKLOADS: [(&str, &str); 4] = [
    (
        "hogs",
        r#"{
  "global": { "duration": "4s" },
  "tasks": {
    "hog": {
      "instance": 4, "loop": 1, "sleep": { "distribution": "uniform", "low": 0, "high": "8ms" },
      "run": "10s"
    }
  }
}"#,
    ),
    (
        "nice",
        r#"{
  "global": { "duration": "4s" },
  "tasks": {
    "heavy": { "loop": 1, "sleep": "10ms", "run": "10s" },
    "middle": { "priority": 5, "loop": 1, "sleep": "12ms", "run": "10s" },
    "light": { "priority": 10, "loop": 1, "sleep": "14ms", "run": "10s" }
  }
}"#,
    ),
    (
        SLEEPERS,
        r#"{
  "global": { "duration": "4s" },
  "tasks": {
    "hog": { "instance": 2, "loop": 1, "sleep": "5ms", "run": "10s" },
    "sleeper": {
      "instance": 2, "run": "2ms",
      "sleep": { "distribution": "uniform", "low": "8ms", "high": "24ms" }
    }
  }
}"#,
    ),
    (
        "groups",
        r#"{
  "global": { "duration": "4s" },
  "cgroups": { "/a": { "weight": 300 }, "/b": { "weight": 100 } },
  "tasks": {
    "a": { "instance": 2, "taskgroup": "/a", "loop": 1, "sleep": "5ms", "run": "10s" },
    "b": { "instance": 2, "taskgroup": "/b", "loop": 1, "sleep": "7ms", "run": "10s" }
  }
}"#,
    ),
];

/// The workload in which slices are not compared: sleeps decide their order.
const SLEEPERS: &str = "sleepers";

/// The cell of a scheduler in the table: on how many of the workloads both agree, and what differs
/// on the others.
pub fn agreement(scheduler: &Path, kernel: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut nr_agreeing = 0;
    let mut others = Vec::new();
    for (name, text) in WORKLOADS {
        let file = folder.path().join(format!("{name}.json"));
        std::fs::write(&file, text).unwrap();
        let found = differences(scheduler, &file, kernel);
        eprintln!("{} {name} {kernel}: {found:?}", scheduler.display());
        match found {
            Ok(found) if found.is_empty() => nr_agreeing += 1,
            Ok(found) => others.push(format!("{name}: {}", found.join(", "))),
            Err(why) => others.push(format!("{name}: {why}")),
        }
    }
    let mut parts = vec![format!("{nr_agreeing} of {}", WORKLOADS.len())];
    others.dedup_by_key(|text| text.split_once(": ").map(|(_, why)| why.to_owned()));
    parts.extend(others);
    format!("{} ({kernel})", parts.join("; "))
}

/// What differs by more than its tolerance.
fn differences(scheduler: &Path, workload: &Path, kernel: &str) -> Result<Vec<String>, String> {
    let (scheduler, workload) = (scheduler.to_str().unwrap(), workload.to_str().unwrap());
    let core = format!("scx_core={kernel}");
    let sim = ["sim", workload, "--machine", "guest-counted", "--set", &core];
    let sim = run(&[&sim[..], &["--scheduler", scheduler]].concat(), "simulated")?;
    let vm = ["vm", workload, "--kernel", kernel, "--scheduler", scheduler];
    let vm = run(&vm, "in the guest")?;
    let mut found = Vec::new();
    let (shares, switches) = (by_description(&vm, &sim, share), by_description(&vm, &sim, count));
    let apart = |(kernel, model): &(f64, f64)| (kernel - model).abs();
    let points = shares.iter().map(apart).fold(0.0, f64::max) * 100.0;
    if points > SHARE_POINTS {
        found.push(format!("share {points:.1} pt"));
    }
    let counted = switches.iter().filter(|(kernel, _)| *kernel >= SWITCHES_FLOOR as f64);
    let part = counted.map(|both| apart(both) / both.0).fold(0.0, f64::max);
    if part > SWITCHES_PART {
        found.push(format!("switches {:.0} %", part * 100.0));
    }
    let equal = compare(&Sequence::of(&vm, &RULE), &Sequence::of(&sim, &RULE), &RULE);
    if equal.part() < SLICES_PART && !workload.contains(SLEEPERS) {
        found.push(format!("{:.0} % of slices equal", equal.part() * 100.0));
    }
    Ok(found)
}

/// The result of a run, or how it failed.
fn run(args: &[&str], place: &str) -> Result<RunResult, String> {
    const WORDS_MAX: usize = 16;
    let done = schedlab(&[args, &["--json", "--keep"]].concat());
    if done.code != 0 {
        let flat = super::flat(&done.stderr).replace('|', "\\|");
        let error = flat.split("× ").nth(1).unwrap_or(&flat);
        let words = error.split(' ').filter(|word| !word.contains('/'));
        return Err(format!("{place}: {}", words.take(WORDS_MAX).collect::<Vec<_>>().join(" ")));
    }
    serde_json::from_str(&done.stdout).map_err(|error| format!("{place}: {error}"))
}

/// A task's share of the CPU time that all tasks have used.
fn share(run: &RunResult, task: usize) -> f64 {
    let all: u64 = run.measures.tasks.iter().map(|task| task.cpu_time_ns).sum();
    run.measures.tasks[task].cpu_time_ns as f64 / all.max(1) as f64
}

/// A task's switches.
fn count(run: &RunResult, task: usize) -> f64 {
    let task = &run.measures.tasks[task];
    (task.nr_voluntary_switches + task.nr_involuntary_switches) as f64
}

/// A measure of each task in the guest and in the simulation. Equal tasks are interchangeable:
/// those of one description are compared by rank.
fn by_description(
    kernel: &RunResult,
    model: &RunResult,
    measure: impl Fn(&RunResult, usize) -> f64,
) -> Vec<(f64, f64)> {
    let ranked = |run: &RunResult| {
        let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (index, task) in run.measures.tasks.iter().enumerate() {
            all.entry(description(&task.name).to_owned()).or_default().push(measure(run, index));
        }
        all.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
        all.into_values().flatten().collect::<Vec<f64>>()
    };
    let (kernel, model) = (ranked(kernel), ranked(model));
    assert_eq!(kernel.len(), model.len(), "both have the same tasks");
    kernel.into_iter().zip(model).collect()
}
