// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a workload from the text of a file, and checks that its expectations name measures.

use crate::{Code, Warning, expect};
use schedlab_model::Workload;
use schedlab_workload::ReadError;
use std::fmt;

/// Why the text of a file is no workload.
#[derive(Debug)]
pub enum WorkloadFileError {
    /// A mistake at a position in the text.
    Placed(Box<ReadError>),
    /// An expectation names no measure.
    Expectation(String),
}

impl fmt::Display for WorkloadFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placed(error) => error.fmt(f),
            Self::Expectation(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for WorkloadFileError {}

/// Reads the text of the workload file `name` for a machine of `nr_cpus` CPUs. Adds warnings about
/// members that have no effect.
pub fn read(
    name: &str,
    text: &str,
    nr_cpus: u32,
    warnings: &mut Vec<Warning>,
) -> Result<Workload, WorkloadFileError> {
    let read =
        schedlab_workload::read_rtapp(name, text, nr_cpus).map_err(WorkloadFileError::Placed)?;
    expect::check(&read.workload)
        .map_err(|text| WorkloadFileError::Expectation(format!("{name}: {text}")))?;
    warnings.extend(read.warnings.iter().map(|warning| Warning {
        code: Code::File(warning.kind),
        text: format!("{name}:{}:{}: {}", warning.line, warning.column, warning.text),
    }));
    Ok(read.workload)
}
