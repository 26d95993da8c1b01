// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors before a natively compiled scheduler runs.

use std::fmt;

/// Why a scheduler cannot be compiled or loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NativeError {
    /// There is no compiler, or it cannot be started.
    NoCompiler(String),
    /// The compiler failed: its shortened messages.
    Compile(String),
    /// The scheduler needs something that the simulator lacks, or is not a scheduler.
    Refused(String),
    /// An option is unknown or has a bad value.
    Option(String),
    /// A defect of schedlab, or an error of the file system.
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
