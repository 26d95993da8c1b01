// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of this machine in a validation.
//!
//! Its costs are measured here, as `schedlab calibrate` does, and kept beside the results: the runs
//! of a directory belong to one model. The file can be given to `--machine` too.

use crate::error::{CliError, CliResult};
use crate::machine;
use crate::output::say;
use schedlab_run::LaneError;
use schedlab_run::file::read_text;
use schedlab_run::file::write_whole;
use std::path::Path;

/// Its file below the output.
const FILE: &str = "machine.json";

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Text of the machine file: that of `output`, unless it is to be made `anew`, else one with the
/// costs of now, each measured so many times.
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
