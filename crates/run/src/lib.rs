// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface of the lanes: requests, results, and the processing of events that all lanes
//! share.
//!
//! - `lane` has the request and the trait of a lane, `result` the result, `warning` what may
//!   distort a result.
//! - `recorder` computes measures from a lane's events. `analysis` and `launchers` give it what it
//!   must know of the workload.
//! - `expect` compares measures with the workload's expectations; `values` finds them by name.
//! - `machine` reads modelled machines, `policy` has the names of policies, `program` describes
//!   third-party programs as workloads.
//! - `workload_file` reads a workload from the text of a file.
//! - `pipeline` runs a sink on its own thread, `place` finds the place of an error in a document,
//!   `file` reads and writes files, `sha` computes hashes. Without the feature `system` the crate
//!   uses no file and no thread.
//!
//! This crate uses no scheduler, file format or report, so lanes need none of them.

pub mod analysis;
pub mod expect;
#[cfg(feature = "system")]
pub mod file;
pub mod lane;
pub mod launchers;
pub mod machine;
#[cfg(feature = "system")]
pub mod pipeline;
pub mod place;
pub mod policy;
pub mod program;
pub mod recorder;
pub mod result;
#[cfg(feature = "sha")]
pub mod sha;
pub mod values;
pub mod variant;
pub mod warning;
#[cfg(feature = "rtapp")]
pub mod workload_file;

pub use expect::Expected;
pub use lane::{
    Boot, Keep, Lane, LaneError, LaneKind, Origin, RunRequest, SWITCH_JITTER_NS_MAX, Schedulers,
    check_run, run_and_check,
};
pub use machine::{MachineFile, MachineSpec};
pub use place::StudyError;
pub use recorder::{Recorded, Recorder};
pub use result::{
    CopyResult, GroupResult, MachineInfo, ProgressCurve, RunResult, SCHEMA_VERSION, Setting, Slice,
    check_version,
};
pub use variant::Variant;
pub use warning::{Code, Warning};
