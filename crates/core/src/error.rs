// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a request has no outcome. The texts are those of the command line.

use schedlab_run::workload_file::WorkloadFileError;
use schedlab_run::{LaneError, StudyError};
use schedlab_workload::{BuiltinError, NotAPair, ReadError};
use std::fmt;

/// What kind of error it is. The command line has an exit code for each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A check of the run failed: a scheduler lost or starved a task.
    Check,
    /// The request is wrong.
    Usage,
    /// It cannot be done here.
    Unavailable,
    /// The caller ended the run.
    Cancelled,
}

impl Kind {
    /// Its name: `check`, `usage`, `unavailable`, `cancelled`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Usage => "usage",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Why a request has no outcome.
#[derive(Debug)]
pub struct Error {
    /// What kind of error it is.
    pub kind: Kind,
    /// What was found, and what is allowed.
    pub text: String,
    /// What to do; may be empty.
    pub help: String,
    /// The place in the workload file, with a snippet of it.
    pub place: Option<Box<ReadError>>,
}

impl Error {
    /// An error about the request, with advice, which may be empty.
    pub fn usage(text: impl Into<String>, help: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, text: text.into(), help: help.into(), place: None }
    }

    /// Line and column of the mistake in the workload file, both from 1.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.place.as_ref().map(|place| (place.line, place.column))
    }

    /// The text and the advice on one line.
    pub fn one_line(&self) -> String {
        match self.help.as_str() {
            "" => self.text.clone(),
            help => format!("{}; {help}", self.text),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<Box<ReadError>> for Error {
    fn from(error: Box<ReadError>) -> Self {
        let (text, help) = (error.to_string(), error.help.clone());
        Self { place: Some(error), ..Self::usage(text, help) }
    }
}

impl From<WorkloadFileError> for Error {
    fn from(error: WorkloadFileError) -> Self {
        match error {
            WorkloadFileError::Placed(error) => error.into(),
            WorkloadFileError::Expectation(text) => Self::usage(text, ""),
        }
    }
}

impl From<StudyError> for Error {
    fn from(error: StudyError) -> Self {
        Self::usage(error.text, error.help)
    }
}

impl From<BuiltinError> for Error {
    fn from(error: BuiltinError) -> Self {
        Self::usage(error.to_string(), error.help())
    }
}

impl From<NotAPair> for Error {
    fn from(error: NotAPair) -> Self {
        Self::usage(error.to_string(), error.help())
    }
}

impl From<LaneError> for Error {
    fn from(error: LaneError) -> Self {
        let kind = match error {
            LaneError::Input(_) => Kind::Usage,
            LaneError::Check(_) => Kind::Check,
            LaneError::Unavailable(_) | LaneError::System(_) => Kind::Unavailable,
        };
        Self { kind, ..Self::usage(error.text(), "") }
    }
}
