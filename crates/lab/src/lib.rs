// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: what to run, in which lane, how often; and the results.

pub mod result;

pub use result::{
    Experiment, ExperimentResult, FigureKind, MachineInfo, ProgressCurve, RunResult, Setting,
    Slice, Warning,
};
