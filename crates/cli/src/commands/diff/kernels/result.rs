// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison with a real kernel in the form of `--json`.

use super::{Pair, Side};
use crate::commands::explain::time;
use schedlab_check::{Runnable, TurnDiff, TurnSide};
use schedlab_lab::versus::Versus;
use schedlab_run::RunResult;
use schedlab_sim::explain::StatedDecision;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the form of [`TurnDiffResult`].
const SCHEMA_VERSION: u32 = 1;

/// What `diff --json` prints if a side is a kernel in a guest.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TurnDiffResult {
    /// Version of this form.
    pub schema_version: u32,
    /// Version of the program.
    pub schedlab_version: String,
    /// The sides: A, B.
    pub sides: Vec<ComparedSide>,
    /// Name of the workload.
    pub workload: String,
    /// Seed of the run that is shown.
    pub seed: u64,
    /// Whether no run has a turn that differs by choice.
    pub same: bool,
    /// The result in a sentence.
    pub sentence: String,
    /// Turns before the first that differs: what a task runs from its pick until it leaves the CPU.
    pub nr_equal: u64,
    /// How far equal turns begin apart, at most (ns).
    pub apart_ns_max: u64,
    /// Turns that a preemption ends count as equal if they differ by this at most (ns).
    pub tolerance_ns: u64,
    /// The first turn that differs.
    pub first: Option<FirstTurn>,
    /// Why nothing was compared from some point on.
    pub stopped: Option<String>,
    /// With `--seeds`: how the runs differ.
    pub runs: Option<Runs>,
    /// With `--seeds`: the measures of B compared with those of A.
    pub measures: Option<Versus>,
    /// With `--random`: the seed of the workload that was made small.
    pub found_at_seed: Option<u64>,
    /// With `--random`: the workload file.
    pub workload_text: Option<String>,
    /// With `--random`: the command that compares it.
    pub command: Option<String>,
}

/// A side of the comparison.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparedSide {
    /// Its name on the command line.
    pub name: String,
    /// Its lane.
    pub lane: String,
    /// The kernel that ran, of a guest.
    pub kernel: Option<String>,
    /// Its tunables that were set.
    pub tunables: Vec<(String, String)>,
}

/// How runs with different seeds and starts differ.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Runs {
    /// Number of runs of each side.
    pub nr_runs: u64,
    /// Runs whose first difference is a choice.
    pub nr_choice: u64,
    /// Runs whose first difference comes from other times.
    pub nr_timing: u64,
}

/// The first turn that differs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FirstTurn {
    /// Why other times alone explain it; absent if the schedulers choose otherwise.
    pub timing: Option<String>,
    /// What A and B did.
    pub sides: Vec<FirstTurnSide>,
}

/// What one side did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FirstTurnSide {
    /// Time in this run (ns).
    pub time_ns: u64,
    /// What it did, in words.
    pub did: String,
    /// The tasks that could run just before.
    pub runnable: Vec<RunnableTask>,
    /// Of a model: its last pick up to this time.
    pub decision: Option<StatedDecision>,
}

/// A task that could run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunnableTask {
    /// Its name.
    pub name: String,
    /// How long it has waited (ns); absent: it runs.
    pub waited_ns: Option<u64>,
    /// Its CPU time so far (ns).
    pub ran_ns: u64,
}

/// What is stated.
pub struct Played<'p> {
    pub sides: &'p [Side; 2],
    pub shown: &'p Pair,
    pub choices: [Option<StatedDecision>; 2],
    pub tolerance_ns: u64,
}

impl TurnDiffResult {
    /// The result of one pair of runs.
    pub fn new(played: &Played<'_>) -> Self {
        let Pair { requests, runs, diff } = played.shown;
        let sides = played.sides.iter().zip(runs).map(|(side, run)| side_of(side, run)).collect();
        let first = diff.first.as_ref().map(|first| FirstTurn {
            timing: first.timing.clone(),
            sides: first.sides.iter().zip(&played.choices).map(stated).collect(),
        });
        Self {
            schema_version: SCHEMA_VERSION,
            schedlab_version: env!("CARGO_PKG_VERSION").into(),
            sides,
            workload: requests[0].workload.name.clone(),
            seed: requests[0].seed,
            same: first.as_ref().is_none_or(|first| first.timing.is_some()),
            sentence: sentence(diff),
            nr_equal: diff.nr_equal,
            apart_ns_max: diff.apart_ns_max,
            tolerance_ns: played.tolerance_ns,
            first,
            stopped: diff.stopped.clone(),
            runs: None,
            measures: None,
            found_at_seed: None,
            workload_text: None,
            command: None,
        }
    }
}

fn side_of(side: &Side, run: &RunResult) -> ComparedSide {
    let is_guest = matches!(side.kind, super::Kind::Guest(_));
    ComparedSide {
        name: side.name.clone(),
        lane: side.lane().kind().name().into(),
        kernel: is_guest.then(|| run.machine.kernel.clone()),
        tunables: side.tunables().to_vec(),
    }
}

fn stated((side, decision): (&TurnSide, &Option<StatedDecision>)) -> FirstTurnSide {
    let task = |task: &Runnable| RunnableTask {
        name: task.name.clone(),
        waited_ns: task.waited_ns,
        ran_ns: task.ran_ns,
    };
    FirstTurnSide {
        time_ns: side.time_ns,
        did: side.did.clone(),
        runnable: side.runnable.iter().map(task).collect(),
        decision: decision.clone(),
    }
}

fn sentence(diff: &TurnDiff) -> String {
    let nr_equal = diff.nr_equal;
    let Some(first) = &diff.first else {
        return format!("A and B make the same {nr_equal} turns.");
    };
    let [a, b] = &first.sides;
    format!(
        "After {nr_equal} equal turns: at {} A {}; at {} B {}.",
        time(a.time_ns),
        a.did,
        time(b.time_ns),
        b.did
    )
}
