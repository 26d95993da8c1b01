// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: what to run, in which lane, how often; and the results.
//!
//! `study` reads what was asked, `plan` makes single runs of it, `execute` runs them in their
//! lanes,
//! `recorder` turns a lane's events into measures, `result` is what comes out.

pub mod execute;
pub mod explain;
pub mod lane;
pub mod launchers;
pub mod machine;
pub mod plan;
pub mod recorder;
pub mod result;
pub mod sim;
pub mod study;

pub use execute::{ExecuteOptions, Failure, Outcome, execute};
pub use lane::{Keep, Lane, LaneError, RunRequest};
pub use machine::{MachineFile, MachineSpec};
pub use plan::{Plan, PlanInput, PlannedRun};
pub use recorder::{Recorded, Recorder, SliceTracker};
pub use result::{
    CopyResult, Experiment, ExperimentResult, FigureKind, MachineInfo, ProgressCurve, RunResult,
    SCHEMA_VERSION, Setting, Slice, Warning,
};
pub use sim::{SimLane, Watchdog};
pub use study::{Study, StudyError};
