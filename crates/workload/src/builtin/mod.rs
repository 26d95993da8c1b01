// SPDX-License-Identifier: MIT OR Apache-2.0
//! Built-in workloads with parameters. [`BUILTINS`] is the only list of them.
//!
//! Each reproduces a program of a study, or is a building block for experiments. Each builder names
//! its source. What a program did besides scheduling (output, parsing) is left out.

mod args;
mod blocks;
mod crowds;
mod desktop;
mod hackbench;
mod registry;
mod s0_timeline;
mod s1_turnaround;
mod s2_benchmark;
mod s4_processes;
mod services;

pub use args::{Args, BuiltinError, Kind, Param};
pub use registry::{BUILTINS, Builtin, builtin};
