// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces the loader in a build without BPF: the same names, with errors that give the reason.

use super::verdict::ObjectLog;
use super::{Build, Counter, Description, ExitInfo, Source};
use crate::error::HostError;

fn absent() -> HostError {
    HostError::Unavailable(
        "this build cannot load schedulers: clang was missing when it was built, or its feature \
         bpf was off"
            .into(),
    )
}

/// A loaded scheduler; this build has none.
#[derive(Debug)]
pub enum Loaded {}

impl Loaded {
    /// Its name.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// Its description.
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

    /// Why it ended.
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

/// Describes an object.
///
/// # Errors
/// Always: this build has no BPF.
pub fn describe(_source: &Source, _build: &Build) -> Result<Description, HostError> {
    Err(absent())
}

/// Describes an object.
///
/// # Errors
/// Always: this build has no BPF.
pub fn describe_object(_name: &str, _bytes: &[u8]) -> Result<Description, HostError> {
    Err(absent())
}

/// The object of a scheduler.
///
/// # Errors
/// Always: this build has no BPF.
pub fn object(
    _source: &Source,
    _build: &Build,
) -> Result<std::borrow::Cow<'static, [u8]>, HostError> {
    Err(absent())
}

/// Loads a scheduler.
///
/// # Errors
/// Always: this build has no BPF.
pub fn load(
    _source: &Source,
    _build: &Build,
    _settings: &[(String, String)],
    _setup: Option<&schedlab_scx_source::ReadySetup>,
) -> Result<Loaded, HostError> {
    super::check_kernel()?;
    Err(absent())
}

/// Loads each program of a scheduler for the verifier's log.
///
/// # Errors
/// Always: this build has no BPF.
pub fn verify(
    _source: &Source,
    _build: &Build,
    _settings: &[(String, String)],
) -> Result<ObjectLog, HostError> {
    super::check_kernel()?;
    Err(absent())
}
