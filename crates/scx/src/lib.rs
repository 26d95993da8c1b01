// SPDX-License-Identifier: MIT OR Apache-2.0
//! sched_ext in the simulator: schedulers written for the kernel, run by a model of its core.

pub mod core;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod native;
