// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sched_ext schedulers of bpf/scx, loaded in a real kernel, decide as their models do: the
//! same order of tasks, on one CPU in counted time, under six workloads (hogs, mixed nice values,
//! sleepers, a fork storm, groups, yields).
//!
//! The models run on a machine with the guest's costs, so that tasks that the kernel keeps busy
//! besides their work end their turns where they end them there. Turns of a kernel's boot are not
//! those of a model, so lengths are not compared, only who comes after whom; what stays on the CPU
//! for less than [`SHORT_NS`] (whoever begins or exits) and what runs again at once is no decision.
//! Where the two part sooner, the number of decisions that agree stands here, and the reason in
//! docs/reference/fidelity.md. Where there is no QEMU or no kernel the tests say SKIP and why.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;
use common::{kernel_ready, schedlab};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The kernel.
const KERNEL: &str = "6.18";
/// Shorter stays are what surrounds a task's work.
const SHORT_NS: u64 = 300_000;
/// A task that only starts others.
const LAUNCHER: &str = "parent";

const HOGS: &str = "hogs:n=4,work=350ms";
const NICE: &str = "kernel-nice.json";
const SLEEP: &str = "kernel-sleep.json";
const FORKS: &str = "cpu_bound:n=12";
const GROUPS: &str = "kernel-groups.json";
const YIELD: &str = "yield.json";
const EVERY: [&str; 6] = [HOGS, NICE, SLEEP, FORKS, GROUPS, YIELD];

fn file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/twins");
    folder.join(name).display().to_string()
}

/// Who ran, in order.
fn order(args: &[&str]) -> Vec<String> {
    let done = schedlab(args);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    let mut order: Vec<String> = Vec::new();
    for line in done.stdout.lines() {
        let slice: Value = serde_json::from_str(line).unwrap();
        let name = slice["name"].as_str().unwrap();
        let (start, end) = (slice["start_ns"].as_u64().unwrap(), slice["end_ns"].as_u64().unwrap());
        if end - start >= SHORT_NS && name != LAUNCHER && order.last().is_none_or(|l| l != name) {
            order.push(name.into());
        }
    }
    order
}

/// The kernel's order and the model's.
fn orders(workload: &str, scheduler: &str, model: &str) -> [Vec<String>; 2] {
    let workload = match workload.strip_suffix(".json") {
        Some(_) => file(workload),
        None => workload.into(),
    };
    let machine = file("kernel.toml");
    let mut kernels = vec!["vm", &workload, "--kernel", KERNEL, "--scheduler", scheduler];
    kernels.push("--slices");
    if scheduler == "rmlfq" {
        kernels.extend(["--set", "seed=1"]);
    }
    let models =
        ["sim", &workload, "--machine", &machine, "--cpus", "1", "--scheduler", model, "--slices"];
    [order(&kernels), order(&models)]
}

/// How many decisions of the model the kernel makes too, from the first on.
fn agreeing(kernels: &[String], models: &[String]) -> usize {
    kernels.iter().zip(models).take_while(|(one, other)| one == other).count()
}

/// `scheduler` and its `model` agree to the end on all workloads but those of `first`, on which
/// they agree for as many decisions.
fn agree(test: &str, scheduler: &str, model: &str, first: &[(&str, usize)]) {
    if !kernel_ready(test, KERNEL) {
        return;
    }
    let mut wrong = Vec::new();
    for workload in EVERY {
        let [kernels, models] = orders(workload, scheduler, model);
        let found = agreeing(&kernels, &models);
        let known = first.iter().find(|(name, _)| *name == workload).map(|(_, count)| *count);
        println!("{scheduler} {workload}: {found} of {} (kernel {})", models.len(), kernels.len());
        // Whoever exits needs some time for that, which may be a turn of its own.
        let rest = kernels.get(models.len()..).unwrap_or_default();
        let tasks: BTreeSet<&String> = models.iter().collect();
        let is_whole = found == models.len() && rest.len() <= tasks.len();
        let is_right = known.map_or(is_whole, |count| found == count);
        if !is_right {
            let at = found.saturating_sub(3)..found + 5;
            let show = |order: &[String]| {
                order.iter().skip(at.start).take(at.len()).cloned().collect::<Vec<_>>().join(" ")
            };
            wrong.push(format!(
                "{workload}: {found} of {} decisions agree, expected {known:?}; from {} on: kernel \
                 {}, model {}",
                models.len(),
                at.start,
                show(&kernels),
                show(&models)
            ));
        }
    }
    assert!(wrong.is_empty(), "{scheduler} in {KERNEL} and {model}: {}", wrong.join("; "));
}

#[test]
fn fifo_is_first_come_first_served() {
    agree("fifo_is_first_come_first_served", "fifo", "fcfs", &[]);
}

#[test]
fn round_robin() {
    agree("round_robin", "rr", "rr", &[]);
}

#[test]
fn weighted_round_robin() {
    agree("weighted_round_robin", "wrr", "wrr", &[]);
}

#[test]
fn groups_take_turns() {
    agree("groups_take_turns", "group-wrr", "group-wrr", &[]);
}

#[test]
fn random_moves_draw_the_same_numbers() {
    agree("random_moves_draw_the_same_numbers", "rmlfq", "rmlfq-design", &[]);
}

#[test]
fn feedback_queues() {
    agree("feedback_queues", "mlfq", "mlfq", &[]);
}

#[test]
fn staircase() {
    agree("staircase", "sd", "sd-0.48", &[]);
}

#[test]
fn virtual_time() {
    agree("virtual_time", "vtime", "vtime", &[]);
}
