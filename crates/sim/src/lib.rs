// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sim lane as the program uses it: the lane of the core, and `bench`, which measures the speed
//! of this machine with a clock.

pub mod bench;

pub use schedlab_core::{SimLane, Watchdog, explain, lane, machine};
