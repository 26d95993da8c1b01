// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: what to run, in which lane, how often; and the results.
//!
//! `study` reads what was asked (`axis`: what varies; `place`: where a mistake stands), `plan`
//! makes single runs of it, `execute` runs them in their lanes, `recorder` turns a lane's events
//! into measures, `result` is what comes out, `expect` compares it with what the workload expects;
//! `analysis` says what the analysis of a trace must know of the workload; `view` puts results into
//! rows with intervals and differences, `values` is how it reads them; `pipeline` puts a sink on a
//! thread of its own.
//! `claims` judges what a study says by the results of its experiments; `programs` prints a run as
//! the studies' own programs would have, `redrawn` fills their own figures and tables.
//! `store` keeps results on disk run by run, `identity` tells which run a stored one is.

pub mod analysis;
pub mod axis;
pub mod claims;
pub mod execute;
pub mod expect;
pub mod explain;
pub mod identity;
pub mod lane;
pub mod launchers;
pub mod machine;
pub mod pipeline;
pub mod place;
pub mod plan;
pub mod policy;
pub mod program;
pub mod programs;
pub mod published;
pub mod recorder;
pub mod redrawn;
pub mod result;
pub mod sim;
pub mod store;
pub mod study;

pub mod validate;
pub mod values;
pub mod view;

pub use execute::{ExecuteOptions, Failure, Outcome, execute, execute_some, run_and_check};
pub use expect::Expected;
pub use lane::{Keep, Lane, LaneError, RunRequest};
pub use machine::{MachineFile, MachineSpec};
pub use place::{Step, StudyError};
pub use plan::{Built, Makers, Plan, PlanInput, PlannedRun};
pub use recorder::{Recorded, Recorder, SliceTracker};
pub use result::{
    CopyResult, Experiment, ExperimentResult, FigureKind, GroupResult, MachineInfo, ProgressCurve,
    RunResult, SCHEMA_VERSION, Setting, Slice, Warning,
};
pub use sim::{SimLane, Watchdog};
pub use study::Study;
pub use view::View;
