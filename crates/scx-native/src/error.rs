// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong before a natively compiled scheduler runs.

use std::fmt;

/// Why a scheduler cannot be compiled or loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NativeError {
    /// There is no compiler, or it cannot be started.
    NoCompiler(String),
    /// The compiler says no: its messages, condensed.
    Compile(String),
    /// The scheduler asks for what the simulator does not have, or is no scheduler.
    Refused(String),
    /// An option that was given is unknown or its value is bad.
    Option(String),
    /// A defect of ours, or of the file system.
    Internal(String),
}

impl fmt::Display for NativeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCompiler(text)
            | Self::Compile(text)
            | Self::Refused(text)
            | Self::Option(text)
            | Self::Internal(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for NativeError {}
