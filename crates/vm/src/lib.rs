// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real kernels under QEMU: boots a kernel, runs a workload in it, and returns the trace.
//!
//! [`VmLane`] is the lane. [`kernel`] finds and fetches kernels and reads their images; [`qemu`]
//! starts machines. The communication with the guest is in `schedlab-guest`, which is also the
//! guest's init and contains the host lane.

mod apt;
pub mod cache;
pub mod command;
pub mod error;
pub mod golden;
pub mod golden_check;
pub mod golden_file;
pub mod guest;
mod hz;
pub mod identity;
pub mod initramfs;
pub mod kernel;
pub mod lane;
pub mod qemu;
pub mod settings;
pub mod setup;
pub mod shared;
mod sys;
pub mod turns;
pub mod verify;

pub use cache::Cache;
pub use error::VmError;
pub use lane::{Clock, VmLane};
