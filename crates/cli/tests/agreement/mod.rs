// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the simulation of a scheduler agrees with a guest that loads the same file: the same
//! workloads on one CPU, in counted time and on the machine model `guest-counted`; on two CPUs and
//! `guest-counted-smp` if the scheduler refuses one. Measures,
//! tolerances and the comparison of slices are those of `schedlab validate`
//! (studies/validate.toml). Both lanes apply the same setup. As there, the simulation may also
//! deviate by as much as the guest itself does if the same workload starts a little later, or if
//! its tasks work a little longer before they sleep for the first time.

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

/// Changes of a workload whose guests show the kernel's own variation.
#[derive(Clone, Copy)]
enum Change {
    /// Tasks start so many microseconds later.
    Later(u32),
    /// Tasks do 1 to 5 us of work before they sleep for the first time. The work of equal tasks
    /// differs by less than that in a kernel too, and a scheduler that measures it may order them
    /// by it for the rest of the run. The costs of a machine are the same for each of them.
    FirstWork,
}

const CHANGES: [Change; 3] = [Change::Later(20), Change::Later(80), Change::FirstWork];

/// How far two runs of a workload differ.
#[derive(Clone, Copy, Default)]
struct Deviation {
    /// Largest difference of a CPU share, in points.
    share_points: f64,
    /// Largest difference of a task's switches, as a fraction of the first run's.
    switches_part: f64,
    /// Part of the slices that are not equal.
    slices_part: f64,
}

impl Deviation {
    /// What is accepted of any two runs.
    const TOLERANCE: Self = Self {
        share_points: SHARE_POINTS,
        switches_part: SWITCHES_PART,
        slices_part: 1.0 - SLICES_PART,
    };

    fn of(kernel: &RunResult, other: &RunResult, compares_slices: bool) -> Self {
        let apart = |(one, other): &(f64, f64)| (one - other).abs();
        let shares = by_description(kernel, other, share);
        let switches = by_description(kernel, other, count);
        let counted = switches.iter().filter(|(one, _)| *one >= SWITCHES_FLOOR as f64);
        let equal = compare(&Sequence::of(kernel, &RULE), &Sequence::of(other, &RULE), &RULE);
        Self {
            share_points: shares.iter().map(apart).fold(0.0, f64::max) * 100.0,
            switches_part: counted.map(|both| apart(both) / both.0).fold(0.0, f64::max),
            slices_part: if compares_slices { 1.0 - equal.part() } else { 0.0 },
        }
    }

    /// The greater deviation of each measure.
    fn or(self, other: Self) -> Self {
        Self {
            share_points: self.share_points.max(other.share_points),
            switches_part: self.switches_part.max(other.switches_part),
            slices_part: self.slices_part.max(other.slices_part),
        }
    }

    /// The measures that are beyond `bounds`, in words.
    fn beyond(self, bounds: Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.share_points > bounds.share_points {
            found.push(format!("share {:.1} pt", self.share_points));
        }
        if self.switches_part > bounds.switches_part {
            found.push(format!("switches {:.0} %", self.switches_part * 100.0));
        }
        if self.slices_part > bounds.slices_part {
            found.push(format!("{:.0} % of slices equal", (1.0 - self.slices_part) * 100.0));
        }
        found
    }
}

/// What came of a workload.
struct Compared {
    /// What differs by more than its tolerance and the kernel's own variation.
    differs: Vec<String>,
    /// Whether something differs by more than its tolerance alone.
    by_variation: bool,
}

/// The machine of both lanes.
#[derive(Clone, Copy)]
struct Lanes {
    nr_cpus: &'static str,
    machine: &'static str,
}

/// What most schedulers are compared on.
const ONE_CPU: Lanes = Lanes { nr_cpus: "1", machine: "guest-counted" };
/// What those are compared on whose user program pairs CPUs.
const TWO_CPUS: Lanes = Lanes { nr_cpus: "2", machine: "guest-counted-smp" };

impl Lanes {
    fn of(scheduler: &Path) -> Self {
        let scheduler = scheduler.to_str().unwrap();
        let hogs = ["sim", "hogs:n=1,work=1ms", "--cpus", "1", "--scheduler", scheduler];
        let needs_pairs = super::flat(&schedlab(&hogs).stderr).contains("need an even number");
        if needs_pairs { TWO_CPUS } else { ONE_CPU }
    }
}

/// The cell of a scheduler in the table: on how many of the workloads both agree, and what differs
/// on the others.
pub fn agreement(scheduler: &Path, kernel: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (mut nr_agreeing, mut nr_by_variation) = (0, 0);
    let lanes = Lanes::of(scheduler);
    let mut others = Vec::new();
    for (name, text) in WORKLOADS {
        let file = folder.path().join(format!("{name}.json"));
        std::fs::write(&file, text).unwrap();
        let found = compared(scheduler, &file, text, (kernel, lanes));
        match found {
            Ok(Compared { differs, by_variation }) if differs.is_empty() => {
                eprintln!("{} {name} {kernel}: agree, {by_variation}", scheduler.display());
                nr_agreeing += 1;
                nr_by_variation += usize::from(by_variation);
            }
            Ok(Compared { differs, .. }) => {
                eprintln!("{} {name} {kernel}: {differs:?}", scheduler.display());
                others.push(format!("{name}: {}", differs.join(", ")));
            }
            Err(why) => others.push(format!("{name}: {why}")),
        }
    }
    let mut parts = vec![format!("{nr_agreeing} of {}", WORKLOADS.len())];
    if lanes.nr_cpus != "1" {
        parts[0] += &format!(" on {} CPUs", lanes.nr_cpus);
    }
    if nr_by_variation > 0 {
        parts[0] += &format!(", {nr_by_variation} by own variation");
    }
    others.dedup_by_key(|text| text.split_once(": ").map(|(_, why)| why.to_owned()));
    parts.extend(others);
    format!("{} ({kernel})", parts.join("; "))
}

/// Compares the simulation of a workload with a guest.
fn compared(
    scheduler: &Path,
    workload: &Path,
    text: &str,
    (kernel, lanes): (&str, Lanes),
) -> Result<Compared, String> {
    let (scheduler, file) = (scheduler.to_str().unwrap(), workload.to_str().unwrap());
    let core = format!("scx_core={kernel}");
    let cpus = ["--cpus", lanes.nr_cpus, "--scheduler", scheduler];
    let sim = ["sim", file, "--machine", lanes.machine, "--set", &core];
    let sim = run(&[&sim[..], &cpus].concat(), "simulated")?;
    let guest = |file: &str| {
        let vm = ["vm", file, "--kernel", kernel];
        run(&[&vm[..], &cpus].concat(), "in the guest")
    };
    let compares_slices = !file.contains(SLEEPERS);
    let vm = guest(file)?;
    let found = Deviation::of(&vm, &sim, compares_slices);
    if found.beyond(Deviation::TOLERANCE).is_empty() {
        return Ok(Compared { differs: Vec::new(), by_variation: false });
    }
    let mut bounds = Deviation::TOLERANCE;
    for change in CHANGES {
        let other = workload.with_extension("changed.json");
        std::fs::write(&other, changed(text, change)).unwrap();
        let vm_other = guest(other.to_str().unwrap())?;
        bounds = bounds.or(Deviation::of(&vm, &vm_other, compares_slices));
    }
    Ok(Compared { differs: found.beyond(bounds), by_variation: true })
}

/// The workload with a change.
fn changed(text: &str, change: Change) -> String {
    const FIRST: &str = r#""loop": 1, "sleep""#;
    let shift_us = match change {
        Change::Later(shift_us) => shift_us,
        Change::FirstWork => {
            let work = r#"{ "distribution": "uniform", "low": "1us", "high": "5us" }"#;
            return text.replace(FIRST, &format!(r#""loop": 1, "run0": {work}, "sleep""#));
        }
    };
    let mut workload: serde_json::Value = serde_json::from_str(text).unwrap();
    for task in workload["tasks"].as_object_mut().unwrap().values_mut() {
        task["delay"] = shift_us.into();
    }
    workload.to_string()
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
