// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sim lane: workloads under modelled schedulers on modelled machines.
//!
//! `lane` runs a request in the simulator. `machine` finds machines by name and reads files.
//! `explain` answers why a task was picked and what kept it waiting. `bench` measures the speed.

pub mod bench;
pub mod explain;
pub mod lane;
pub mod machine;

pub use lane::{SimLane, Watchdog};
