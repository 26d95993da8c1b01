// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of this machine in a validation.
//!
//! This module measures its costs as `schedlab calibrate` does and stores them with the results:
//! all runs of a directory belong to one model. `--machine` also reads the file.

use crate::error::{CliError, CliResult};
use crate::machine;
use crate::output::say;
use schedlab_run::LaneError;
use schedlab_run::file::read_text;
use schedlab_run::file::write_whole;
use std::path::Path;

/// Name of the machine file in the output directory.
const FILE: &str = "machine.json";

/// Size limit for the file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Text of the machine file. Uses the file in `output` unless `anew` is set; otherwise measures the
/// costs now, each `repetitions` times.
pub fn model(output: &Path, anew: bool, repetitions: u32) -> CliResult<String> {
    let path = output.join(FILE);
    if !anew && path.exists() {
        return Ok(read_text(&path, FILE_BYTES_MAX)?);
    }
    say("measuring what switches, wake-ups and forks cost here: a few seconds");
    let found = schedlab_host::calibrate(repetitions).map_err(LaneError::from)?;
    let file = found.with_costs(machine::host()?);
    let text = serde_json::to_string_pretty(&file)
        .map_err(|error| CliError::usage(format!("the model of this machine: {error}")))?;
    std::fs::create_dir_all(output).map_err(|error| CliError::file("make", output, &error))?;
    write_whole(&path, text.as_bytes())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::Costs;

    #[test]
    fn costs_are_measured_once_for_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("validation");
        let first = model(&output, false, 1).unwrap();
        let spec = schedlab_sim::machine::parse(&first).unwrap();
        assert!(first.contains("\"fork_ns\""), "{first}");
        assert_ne!(spec.machine.costs, Costs::DEFAULT);
        assert_eq!(model(&output, false, 1).unwrap(), first);
        std::fs::write(output.join(FILE), "{}").unwrap();
        assert_eq!(model(&output, false, 1).unwrap(), "{}");
        assert!(model(&output, true, 1).unwrap().contains("\"fork_ns\""));
    }
}
