// SPDX-License-Identifier: MIT OR Apache-2.0
//! A case: a workload on a machine, with the seed of its random numbers.

use schedlab_model::{Machine, Workload};

/// A run that a scheduler is to be checked with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// The workload. It has a duration, so every run of it ends.
    pub workload: Workload,
    /// The machine. Its preemption model is replaced by that of the scheduler.
    pub machine: Machine,
    /// Seed of the random numbers of the run.
    pub seed: u64,
}
