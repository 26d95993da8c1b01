// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of this machine in a validation.
//!
//! Its costs are measured here, as `schedlab calibrate` does, and kept beside the results: the runs
//! of a directory belong to one model. The file can be given to `--machine` too.

use crate::error::{CliError, CliResult};
use crate::input;
use crate::machine;
use crate::output::say;
use schedlab_host::Calibration;
use schedlab_model::Costs;
use schedlab_run::file::write_whole;
use schedlab_run::{LaneError, MachineFile};
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
        return input::read_text(&path, FILE_BYTES_MAX);
    }
    say("measuring what switches, wake-ups and forks cost here: a few seconds");
    let found = schedlab_host::calibrate(repetitions).map_err(LaneError::from)?;
    let file = with_costs(machine::host()?, &found);
    let text = serde_json::to_string_pretty(&file)
        .map_err(|error| CliError::usage(format!("the model of this machine: {error}")))?;
    std::fs::create_dir_all(output).map_err(|error| CliError::file("make", output, &error))?;
    write_whole(&path, text.as_bytes())?;
    Ok(text)
}

/// The machine with the costs that were measured; the others keep their defaults.
fn with_costs(mut file: MachineFile, found: &Calibration) -> MachineFile {
    let measured = Costs::NAMES.iter().filter(|name| found.figure(name).is_some());
    let value = |name: &&str| Some(((**name).to_string(), found.costs.field(name)?));
    file.costs = measured.filter_map(value).collect();
    file.sources.push("costs: measured on this machine before the runs".into());
    file
}

#[cfg(test)]
mod tests {
    use super::*;

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
