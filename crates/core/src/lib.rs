// SPDX-License-Identifier: MIT OR Apache-2.0
//! One door to the simulator: a [`Request`] goes in, an [`Outcome`] or an [`Error`] comes out.
//!
//! The command line, the browser and Python decide nothing themselves. This crate decides what a
//! name means, which machine and costs a run has by default, and what warnings and errors say. So
//! the same request gives the same bytes everywhere.
//!
//! - `request` has the request as data, `run` runs it, `outcome` has the result, `columns` the
//!   slices, states and queues of the run as plain vectors.
//! - `workload`, `schedulers`, `machine` and `parse` turn names and texts into workloads,
//!   schedulers, machines and values.
//! - `script` has what policies in JavaScript see.
//! - `lane` is the sim lane, `explain` answers why a task was picked and what kept it waiting.
//!
//! This crate uses no file, clock, environment or thread, and builds for wasm32.

mod ask;
mod columns;
mod error;
pub mod explain;
pub mod lane;
pub mod machine;
mod outcome;
pub mod parse;
mod request;
mod run;
pub mod schedulers;
pub mod script;
mod visible;
pub mod workload;

pub use ask::{Ask, explain_request, explain_request_with};
pub use columns::{Columns, END_NAMES, Progress, Queues, STATE_NAMES, Slices, States};
pub use error::{Error, Kind};
pub use lane::{SimLane, Watchdog};
pub use outcome::{Digest, Outcome};
pub use request::{Keep, Request};
pub use run::{Inputs, simulate, simulate_with, validate};
pub use schedlab_sched::textbook::user;
