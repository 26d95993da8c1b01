// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scheduler's user program would set up, for a guest that loads the scheduler's file.
//!
//! The program hands the lane a function that finds a setup: this crate reads no setups.

use crate::VmError;
use schedlab_guest::protocol::ExtRequest;
use schedlab_host::ext::{self, Source};
use schedlab_model::machine::Topology;
use schedlab_run::Warning;
use schedlab_scx_source::ReadySetup;
use std::path::Path;

/// Which setup is wanted.
#[derive(Clone, Copy, Debug)]
pub struct SetupQuery<'a> {
    /// Name of the scheduler (`sched_ext_ops.name`).
    pub scheduler: &'a str,
    /// Its file.
    pub source: &'a Path,
    /// The file with the setup, if the user names one.
    pub file: Option<&'a Path>,
    /// The machine.
    pub topology: &'a Topology,
    /// Its ticks a second.
    pub hz: u32,
    /// Whether the scheduler is only verified, which one needs no user program for that decides.
    pub is_for_verifier: bool,
}

/// Finds the setup of a scheduler; `None`: there is none.
pub type FindSetup = fn(&SetupQuery<'_>) -> Result<Option<ReadySetup>, VmError>;

/// Finds none.
pub fn no_setup(_query: &SetupQuery<'_>) -> Result<Option<ReadySetup>, VmError> {
    Ok(None)
}

/// The setup of the scheduler of a request for a guest of `nr_cpus` CPUs, which share a cache, or a
/// warning if it seems to lack one.
pub(crate) fn of_request(
    request: &ExtRequest,
    find: FindSetup,
    file: Option<&Path>,
    (nr_cpus, hz): (u32, u32),
    is_for_verifier: bool,
) -> Result<(Option<ReadySetup>, Option<Warning>), VmError> {
    const ADVICE: &str = "--scheduler-cmd runs that command instead, --scx-setup applies a setup.";
    let Source::File(source) = Source::parse(&request.name) else {
        return match file {
            None => Ok((None, None)),
            Some(file) => Err(VmError::Input(format!(
                "setup {}: scheduler {} is built in and needs none; a setup is for a file",
                file.display(),
                request.name
            ))),
        };
    };
    // The guest says what is wrong with an object that cannot be described.
    let Ok(found) = ext::describe_object(&request.name, &request.object) else {
        return Ok((None, None));
    };
    let topology = Topology::flat(nr_cpus);
    let (scheduler, source) = (&found.name, source.as_path());
    let setup =
        find(&SetupQuery { scheduler, source, file, topology: &topology, hz, is_for_verifier })?;
    let missing = found.missing_setup().filter(|_| setup.is_none());
    let warning =
        missing.map(|what| Warning::scx_no_setup(&request.name, &what.to_string(), ADVICE));
    Ok((setup, warning))
}
