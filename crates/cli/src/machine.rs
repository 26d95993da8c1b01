// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the modelled machine from the command line.

use crate::args::MachineArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::output::say;
use schedlab_core::{SimLane, machine, schedulers};
use schedlab_model::Costs;
use schedlab_run::file::read_text;
use schedlab_run::{MachineFile, MachineSpec};
use std::path::Path;
use std::sync::Arc;

/// Size limit for a costs file.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Size limit for a machine file: 1,024 CPUs in three lists take 20 kB.
const MACHINE_BYTES_MAX: u64 = 1 << 20;

/// The lane that simulates on the machine of `args`.
pub fn sim_lane(args: &MachineArgs) -> CliResult<SimLane> {
    let machine = args.machine.as_deref().map(spec).transpose()?;
    Ok(SimLane {
        schedulers: Vec::new(),
        machine: machine.map(Arc::new),
        hz: args.hz,
        preempt: args.preempt,
        costs: args.costs.as_deref().map(costs).transpose()?,
        charges_textbooks: false,
        watchdog: args.watchdog,
        schedlab_version: env!("CARGO_PKG_VERSION").into(),
    })
}

/// Prints which of the named schedulers run without costs by default.
pub fn say_free<'s>(lane: &SimLane, names: impl Iterator<Item = &'s str>) {
    if let Some(note) = schedulers::free_note(lane, names) {
        say(note);
    }
}

/// Number of CPUs of a run: the given number, else all CPUs of the named machine, else 1.
pub fn nr_cpus(lane: &SimLane, given: Option<u32>) -> CliResult<u32> {
    Ok(machine::nr_cpus(lane, given)?)
}

/// The machine that `text` names: `host`, a file, or a preset.
pub fn spec(text: &str) -> CliResult<MachineSpec> {
    if schedlab_run::machine::is_file(text) {
        let content = read_text(Path::new(text), MACHINE_BYTES_MAX)?;
        return Ok(machine::of_file(text, &content)?);
    }
    if text == "host" {
        return host()?.spec().map_err(|error| this_machine_fails(&error));
    }
    Ok(machine::preset(text).ok_or_else(|| machine::unknown(text, &["host"]))?)
}

/// The machines that a study may name.
pub struct Machines;

impl schedlab_lab::studies::Machines for Machines {
    fn preset(&self, name: &str) -> Result<MachineSpec, String> {
        spec(name).map_err(|error| error.text())
    }

    fn parse(&self, text: &str) -> Result<MachineSpec, String> {
        machine::parse(text)
    }

    fn this_machine(&self) -> Result<String, String> {
        let file = host().map_err(|error| error.text())?;
        serde_json::to_string(&file).map_err(|error| error.to_string())
    }
}

/// A model of this machine.
pub fn host() -> CliResult<MachineFile> {
    schedlab_host::topology::this_machine().map_err(|error| this_machine_fails(&error))
}

fn this_machine_fails(error: &str) -> CliError {
    CliError::new(
        Exit::Unavailable,
        format!("this machine cannot be described: {error}"),
        "write a machine file (docs/reference/machines.md)",
    )
}

/// Parses `zero`, `default`, or the path of a costs file.
pub fn costs(text: &str) -> CliResult<Costs> {
    if let Some(costs) = machine::costs_by_name(text) {
        return Ok(costs);
    }
    if !Path::new(text).exists() {
        return Err(machine::unknown_costs(text).into());
    }
    let content = read_text(Path::new(text), FILE_BYTES_MAX)?;
    Ok(machine::costs_of_file(text, &content)?)
}
