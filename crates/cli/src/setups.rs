// SPDX-License-Identifier: MIT OR Apache-2.0
//! Setups of sched_ext schedulers that a kernel loads: those that the simulator applies too.

use schedlab_scx_source::ReadySetup;
use schedlab_vm::VmError;
use schedlab_vm::setup::SetupQuery;

/// What of a setup's refusal is for the simulator.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const FOR_SIMULATOR: &str = ": run its user program with --scx-user";

/// How an error of a built-in setup begins.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const BUILT_IN: &str = "the setup built-in: ";

/// Finds the setup of a scheduler for a machine.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub fn find(query: &SetupQuery<'_>) -> Result<Option<ReadySetup>, VmError> {
    let SetupQuery { scheduler, source, file, topology, hz, is_for_verifier } = *query;
    let found = schedlab_scx_native::ready_setup(scheduler, source, file, topology, hz);
    found.or_else(|error| {
        let text = error.to_string();
        match text.strip_suffix(FOR_SIMULATOR) {
            Some(_) if is_for_verifier => Ok(None),
            // The guest that verifies has one CPU, and scx_pair needs two.
            None if is_for_verifier && text.contains(BUILT_IN) => Ok(None),
            Some(text) => Err(VmError::Input(format!(
                "{text}: run its user program, which loads it; in a guest with --scheduler-cmd"
            ))),
            None => Err(VmError::Input(text)),
        }
    })
}

/// Finds none: setups are read where schedulers can be simulated.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub fn find(query: &SetupQuery<'_>) -> Result<Option<ReadySetup>, VmError> {
    match query.file {
        None => Ok(None),
        Some(file) => Err(VmError::Unavailable(format!(
            "setup {}: setups are read on x86-64 Linux only",
            file.display()
        ))),
    }
}
