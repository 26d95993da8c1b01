// SPDX-License-Identifier: MIT OR Apache-2.0
//! sched_ext in the simulator: schedulers written for the kernel, run by a model of its core.

pub mod core;
