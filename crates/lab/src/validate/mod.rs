// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far models are from kernels.
//!
//! A validation is data: pairs of a kernel and its model, workloads, and for each metric how far
//! the model may be off, with the reason, written down before anything runs. `study` makes a
//! study of it, so that its runs are planned, stored and resumed like any others;
//! `slices` and `values` compare one run of the kernel with one of the model; `judge` makes a word
//! of all of them: within, outside, inconclusive. A metric that accepts a model which is wrong
//! on purpose, or that no setting of the model moves, does not discriminate: it agrees with
//! nothing.

mod file;
mod judge;
mod result;
pub mod slices;
mod study;
#[cfg(test)]
mod tests;
mod values;

pub use file::{
    Control, LaneSpec, Metric, Pair, SliceRule, Sweep, Tolerance, Validation, WorkloadSpec,
};
pub use judge::judge;
pub use result::{
    Comparison, ControlResult, MetricResult, SweepPoint, SweepResult, UnitResult, ValidationResult,
    Verdict,
};
pub use study::{ValidationStudy, Wanted};
