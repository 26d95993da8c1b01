// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: runs that belong in the same figures, as asked for and with their results.

use crate::View;
use schedlab_run::RunResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which figure an experiment is drawn as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// CPU timeline of single runs (study S0).
    Timeline,
    /// Progress curves of single runs (study S0).
    Progress,
    /// Mean turnaround against n (study S1).
    TurnaroundAgainstN,
    /// Throughput against n (study S1).
    ThroughputAgainstN,
    /// Box plots over tasks and repetitions.
    Boxes,
}

/// What was asked: one group of runs that belong in the same figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// Short name, such as `S0-1cpu-4`.
    pub name: String,
    /// Study it belongs to, such as `S0`; empty for a user's own.
    pub study: String,
    /// Title for people.
    pub title: String,
    /// What it shows, for people.
    pub text: String,
    /// Figures to draw.
    pub figures: Vec<FigureKind>,
    /// How the runs are put into a table with intervals and differences, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
}

/// An experiment with its runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentResult {
    /// What was asked.
    pub experiment: Experiment,
    /// What came of it, in a fixed order.
    pub runs: Vec<RunResult>,
}
