// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a run on the host has no result.

use schedlab_run::LaneError;

/// The text states what was found, what is allowed and what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostError {
    /// The request is wrong.
    #[error("{0}")]
    Input(String),
    /// This machine, kernel or user cannot do what was requested.
    #[error("{0}")]
    Unavailable(String),
    /// The system refused or broke something during the run.
    #[error("{0}")]
    System(String),
}

impl HostError {
    /// A system call failed.
    pub fn system(what: &str, error: &std::io::Error) -> Self {
        Self::System(format!("{what}: {error}"))
    }
}

impl From<HostError> for LaneError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Input(text) => Self::Input(text),
            HostError::Unavailable(text) => Self::Unavailable(text),
            HostError::System(text) => Self::System(text),
        }
    }
}
