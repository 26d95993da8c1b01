// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host lane: runs a workload, or copies of any command, as real processes on the running
//! kernel, and records what the scheduler does with them.
//!
//! [`HostLane::play`] runs a workload, [`command`] a command. [`doctor`] checks what this machine
//! supports; [`calibrate`] measures the costs of scheduling here. Every change of the machine is
//! undone when a run ends for any reason: see [`launcher`].

pub mod attr;
pub mod burn;
pub mod calibrate;
pub mod cgroup;
pub mod command;
mod deadlock;
pub mod doctor;
pub mod error;
pub mod ext;
pub mod files;
pub mod inspect;
pub mod lane;
pub mod launcher;
pub mod machine;
pub mod memory;
pub mod objects;
pub mod outcome;
pub mod pace;
pub mod plan;
pub mod player;
pub mod procfs;
pub mod program;
pub mod recorder;
pub mod refuse;
pub mod result;
mod room;
pub mod session;
pub mod sys;
pub mod topology;
pub mod traps;
mod tunables;
pub mod waiting;

pub use attr::PolicyOverride;
pub use calibrate::{Calibration, Figure, REPETITIONS_DEFAULT, REPETITIONS_MAX, calibrate};
pub use command::{CommandOutcome, CopyOutcome, RunCommand, run_command};
pub use doctor::{Check, doctor};
pub use error::HostError;
pub use lane::{HostLane, HostRequest};
pub use machine::usable_cpus as allowed_cpus;
pub use outcome::{HostOutcome, SelfCheck, TaskOutcome, TraceSums};
pub use pace::Pace;
pub use plan::Output;
pub use session::{RecorderChoice, prepare_recorder};
