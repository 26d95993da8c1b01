// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface between scheduling classes and the modelled kernel core.
//!
//! `class` has the callbacks with their contracts, and the constant properties of a class. `core`
//! is the state that classes see, `clock` a clock that a pick leaves as it is, `flags` the reasons
//! of calls, `explain` the explanations of decisions. `options` are tunables, `tunable_names` their
//! names in kernels, `domains` the scheduling domains, `turns` the choice between equal CPUs,
//! `hrtick` the timer that ends slices, `user` a scheduler's user half.

pub mod class;
pub mod clock;
pub mod core;
pub mod domains;
pub mod explain;
pub mod flags;
pub mod hrtick;
pub mod options;
pub mod tunable_names;
pub mod turns;
pub mod user;
