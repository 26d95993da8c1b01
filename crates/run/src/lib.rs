// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boundary of the lanes: what a run is asked for, what comes of it, and what every lane does
//! with its events on the way.
//!
//! `lane` has the request and the trait, `result` the result, `warning` what may distort one;
//! `recorder` turns a lane's events into measures, with the help of `analysis` (what the analysis
//! must know of the workload) and `launchers`; `expect` compares the measures with what the
//! workload expects, `values` finds them by name. `machine` says what a modelled machine is,
//! `policy` names the policies, `program` is somebody else's program as a workload; `pipeline` puts
//! a sink on a thread of its own; `place` says where in a document an error is; `file` writes files
//! whole or not at all and reads texts, `sha` sums bytes.
//!
//! No scheduler, no file format and no report is linked here, so that a lane needs none of them.

pub mod analysis;
pub mod expect;
pub mod file;
pub mod lane;
pub mod launchers;
pub mod machine;
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

pub use expect::Expected;
pub use lane::{Keep, Lane, LaneError, LaneKind, Origin, RunRequest, Schedulers, run_and_check};
pub use machine::{MachineFile, MachineSpec};
pub use place::StudyError;
pub use recorder::{Recorded, Recorder};
pub use result::{
    CopyResult, GroupResult, MachineInfo, ProgressCurve, RunResult, SCHEMA_VERSION, Setting, Slice,
    check_version,
};
pub use variant::Variant;
pub use warning::{Code, Warning};
