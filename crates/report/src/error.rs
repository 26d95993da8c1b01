// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors while making a report. Each text states what was found and what to do.

use schedlab_run::file::FileError;
use std::io;
use std::path::PathBuf;

/// Why no report or plot was written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// No experiment has a run to show.
    #[error("no run to report: of {experiments} given experiments none has a run; run one first")]
    NoRuns {
        /// Number of experiments given.
        experiments: usize,
    },
    /// The path names no file.
    #[error("`{path}` names no file to write; give a path that ends in a file name")]
    NotAFile {
        /// Path as given.
        path: PathBuf,
    },
    /// A file or folder could not be written.
    #[error("cannot write `{path}`: {source}; check that the folder exists and has room")]
    Write {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Figure data could not be turned into JSON.
    #[error("cannot encode the data of figure `{figure}`: {source}")]
    Encode {
        /// Figure's name.
        figure: String,
        /// Error of the encoder.
        source: serde_json::Error,
    },
}

impl From<FileError> for ReportError {
    fn from(FileError { path, source, .. }: FileError) -> Self {
        if source.kind() == io::ErrorKind::IsADirectory {
            Self::NotAFile { path }
        } else {
            Self::Write { path, source }
        }
    }
}
