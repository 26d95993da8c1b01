// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a study cannot be read, or its results cannot be stored.

use schedlab_run::StudyError;
use schedlab_run::file::{self, FileError, TextError};
use schedlab_run::workload_file::WorkloadFileError;
use schedlab_workload::{BuiltinError, NotAPair, ReadError};
use std::fmt;
use std::path::PathBuf;

/// Why a study cannot be read, or its results cannot be stored.
#[derive(Debug)]
pub enum LabError {
    /// The request is refused.
    Refused {
        /// What was found.
        text: String,
        /// What to do; may be empty.
        help: String,
    },
    /// A mistake at a position in a text.
    Placed(Box<ReadError>),
    /// A file or directory that cannot be used.
    File(FileError),
    /// Another process writes to this directory.
    Locked(PathBuf),
}

impl LabError {
    /// A refusal with advice, which may be empty.
    pub fn refused(text: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Refused { text: text.into(), help: help.into() }
    }

    /// The advice; may be empty.
    pub fn help(&self) -> &str {
        match self {
            Self::Refused { help, .. } => help,
            Self::Placed(error) => &error.help,
            Self::File(error) => file::help(&error.source),
            Self::Locked(_) => "wait for it, or give another --output",
        }
    }

    /// The text and the advice on one line, for use within another error.
    pub fn text(&self) -> String {
        match self.help() {
            "" => self.to_string(),
            help => format!("{self}; {help}"),
        }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { text, .. } => f.write_str(text),
            Self::Placed(error) => error.fmt(f),
            Self::File(error) => error.fmt(f),
            Self::Locked(path) => write!(f, "another schedlab writes to {}", path.display()),
        }
    }
}

impl std::error::Error for LabError {}

impl From<FileError> for LabError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl From<TextError> for LabError {
    fn from(error: TextError) -> Self {
        match error {
            TextError::File(error) => Self::File(error),
            other => Self::refused(other.to_string(), other.help()),
        }
    }
}

impl From<StudyError> for LabError {
    fn from(error: StudyError) -> Self {
        Self::refused(error.text, error.help)
    }
}

impl From<Box<ReadError>> for LabError {
    fn from(error: Box<ReadError>) -> Self {
        Self::Placed(error)
    }
}

impl From<WorkloadFileError> for LabError {
    fn from(error: WorkloadFileError) -> Self {
        match error {
            WorkloadFileError::Placed(error) => Self::Placed(error),
            WorkloadFileError::Expectation(text) => Self::refused(text, ""),
        }
    }
}

impl From<NotAPair> for LabError {
    fn from(error: NotAPair) -> Self {
        Self::refused(error.to_string(), error.help())
    }
}

impl From<BuiltinError> for LabError {
    fn from(error: BuiltinError) -> Self {
        Self::refused(error.to_string(), error.help())
    }
}
