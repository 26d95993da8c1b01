// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: what to run, in which lane, how often; and the results.

pub mod lane;
pub mod recorder;
pub mod result;

pub use lane::{Keep, Lane, LaneError, RunRequest};
pub use recorder::{Recorded, Recorder, SliceTracker};
pub use result::{
    Experiment, ExperimentResult, FigureKind, MachineInfo, ProgressCurve, RunResult,
    SCHEMA_VERSION, Setting, Slice, Warning,
};
