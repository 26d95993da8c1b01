// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sim lane: workloads under modelled schedulers on modelled machines.
//!
//! `lane` runs a request in the simulator, `machine` has the machines by name and from files,
//! `explain` answers why a task was chosen and who kept it waiting; `bench` says how fast it all
//! is.

pub mod bench;
pub mod explain;
pub mod lane;
pub mod machine;

pub use lane::{SimLane, Watchdog};
