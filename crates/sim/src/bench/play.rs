// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run that is measured.
//!
//! It is compiled here, as the simulator's own runs are. [`simulate`] is compiled in the crate that
//! names the sink, and the crate of the command line is optimised for a short build.

use schedlab_engine::{SimConfig, SimError, SimOutcome, simulate};
use schedlab_model::Workload;
use schedlab_model::trace::NullSink;
use schedlab_trace::BinarySink;
use std::fs::File;
use std::io;

/// Plays the workload without a trace.
///
/// # Errors
/// Those of [`simulate`].
pub fn untraced(workload: &Workload, config: &SimConfig<'_>) -> Result<SimOutcome, SimError> {
    simulate(workload, config, NullSink, None)
}

/// Plays the workload and writes schedlab's own log to `file`, which comes back.
///
/// # Errors
/// Those of [`simulate`]; inside, those of writing the file.
pub fn logged(
    workload: &Workload,
    config: &SimConfig<'_>,
    file: File,
) -> Result<(SimOutcome, io::Result<File>), SimError> {
    let mut sink = BinarySink::new(file, config.machine.nr_cpus());
    let outcome = simulate(workload, config, &mut sink, None)?;
    Ok((outcome, sink.finish()))
}
