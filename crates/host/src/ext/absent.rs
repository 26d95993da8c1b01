// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands for the loader in a build without BPF: the same names, each with the reason.

use super::{Counter, Description, ExitInfo, Source};
use crate::error::HostError;

fn absent() -> HostError {
    HostError::Unavailable(
        "this build cannot load schedulers: clang was missing when it was built, or its feature \
         bpf was off"
            .into(),
    )
}

/// A scheduler at work; there is none in this build.
#[derive(Debug)]
pub enum Loaded {}

impl Loaded {
    /// Its name.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// What it says of itself.
    pub fn description(&self) -> &Description {
        match *self {}
    }

    /// Its counters.
    ///
    /// # Errors
    /// Never called.
    pub fn stats(&self) -> Result<Vec<Counter>, HostError> {
        match *self {}
    }

    /// Why it has ended.
    ///
    /// # Errors
    /// Never called.
    pub fn exit(&self) -> Result<Option<ExitInfo>, HostError> {
        match *self {}
    }

    /// Unloads it.
    ///
    /// # Errors
    /// Never called.
    pub fn detach(self) -> Result<ExitInfo, HostError> {
        match self {}
    }
}

/// What an object says of itself.
///
/// # Errors
/// Always: this build has no BPF.
pub fn describe(_source: &Source) -> Result<Description, HostError> {
    Err(absent())
}

/// Loads a scheduler.
///
/// # Errors
/// Always: this build has no BPF.
pub fn load(_source: &Source, _settings: &[(String, String)]) -> Result<Loaded, HostError> {
    super::check_kernel()?;
    Err(absent())
}
