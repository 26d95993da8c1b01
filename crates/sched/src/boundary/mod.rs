// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scheduling class and the modelled kernel core agree on.
//!
//! `class` has the callbacks and their contracts, and what is constant of a class; `core` what a
//! class sees, `flags` what callbacks are told, `explain` how a class gives its reasons, `options`
//! its tunables (`tunable_names`: under the names that kernels give them), `domains` the scheduling
//! domains, `hrtick` the timer that ends slices.

pub mod class;
pub mod core;
pub mod domains;
pub mod explain;
pub mod flags;
pub mod hrtick;
pub mod options;
pub mod tunable_names;
