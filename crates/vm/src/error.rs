// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of kernels and guests.

use schedlab_run::LaneError;
use schedlab_run::file::FileError;
use std::io;
use std::path::Path;

/// Why there is no kernel or no run. The text states what was found, what is allowed and what to
/// do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VmError {
    /// The request is wrong.
    #[error("{0}")]
    Input(String),
    /// This machine, this QEMU or this kernel cannot do it.
    #[error("{0}")]
    Unavailable(String),
    /// Runs that must be equal are not.
    #[error("{0}")]
    Check(String),
    /// The guest or QEMU failed.
    #[error("{0}")]
    System(String),
}

impl VmError {
    /// A file that cannot be used.
    pub fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::Unavailable(format!("cannot {what} {}: {error}", path.display()))
    }
}

impl From<FileError> for VmError {
    fn from(error: FileError) -> Self {
        Self::file(error.what, &error.path, &error.source)
    }
}

impl From<VmError> for LaneError {
    fn from(error: VmError) -> Self {
        match error {
            VmError::Input(text) => Self::Input(text),
            VmError::Unavailable(text) => Self::Unavailable(text),
            VmError::Check(text) => Self::Check(text),
            VmError::System(text) => Self::System(text),
        }
    }
}
