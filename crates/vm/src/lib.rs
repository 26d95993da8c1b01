// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real kernels under QEMU: boots one, plays a workload in it, and brings the trace back.
//!
//! [`VmLane`] is the lane. [`kernel`] finds kernels, fetches them and looks into them; [`qemu`]
//! starts machines. What goes between the lab and the guest is in `schedlab-guest`, which is also
//! the guest's init: the host lane itself.

pub mod cache;
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
pub mod shared;
mod sys;
pub mod turns;

pub use cache::Cache;
pub use error::VmError;
pub use lane::{Clock, VmLane};
