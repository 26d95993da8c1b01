// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workloads: built-in ones with parameters, and files in rt-app's JSON.
//!
//! This crate reads no file, clock or environment: the caller passes the text. Every workload it
//! returns has passed [`schedlab_model::Workload::check`].

pub mod builtin;
pub mod name;
pub mod policy;
#[cfg(feature = "rtapp")]
pub mod rtapp;
pub mod units;
pub mod warning;

#[cfg(test)]
mod testing;

/// The JSON schema of a workload file, as published in docs/reference.
pub const SCHEMA: &str = include_str!("../../../docs/reference/workload.schema.json");

pub use builtin::{BUILTINS, Builtin, BuiltinError, builtin};
pub use name::{NotAPair, WorkloadName, pair};
#[cfg(feature = "rtapp")]
pub use rtapp::{ReadError, ReadOutcome, Warning, read_rtapp, write_rtapp, write_rtapp_short};
pub use warning::WarningKind;
