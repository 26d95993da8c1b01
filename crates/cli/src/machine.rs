// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the modelled machine from the command line.

use crate::args::MachineArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::output::say;
use schedlab_model::Costs;
use schedlab_run::file::read_text;
use schedlab_run::machine::costs_file;
use schedlab_run::place::allowed_words;
use schedlab_run::{MachineFile, MachineSpec};
use schedlab_sched::registry;
use schedlab_sim::SimLane;
use schedlab_sim::machine::PRESETS;
use std::collections::BTreeSet;
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
    let is_free = |name: &&str| registry::find(name).is_some_and(|found| lane.is_free(found));
    let free: BTreeSet<&str> = names.filter(is_free).collect();
    if !free.is_empty() {
        let names: Vec<&str> = free.into_iter().collect();
        say(format!(
            "note: switches and ticks cost nothing under {}, as in textbooks; --costs default \
             charges them",
            names.join(", ")
        ));
    }
}

/// Number of CPUs of a run: the given number, else all CPUs of the named machine, else 1.
pub fn nr_cpus(lane: &SimLane, given: Option<u32>) -> CliResult<u32> {
    let Some(spec) = &lane.machine else { return Ok(given.unwrap_or(1)) };
    let nr_cpus = given.unwrap_or(spec.machine.nr_cpus());
    spec.first_cpus(nr_cpus).map_err(CliError::usage)?;
    Ok(nr_cpus)
}

/// The machine that `text` names: `host`, a file, or a preset.
pub fn spec(text: &str) -> CliResult<MachineSpec> {
    if schedlab_run::machine::is_file(text) {
        let content = read_text(Path::new(text), MACHINE_BYTES_MAX)?;
        return schedlab_sim::machine::parse(&content).map_err(|error| {
            CliError::usage_help(
                format!("machine file {text}: {error}"),
                "docs/reference/machines.md says what it may hold; `schedlab list machines NAME \
                 --json` prints an example",
            )
        });
    }
    if text == "host" {
        return host()?.spec().map_err(|error| this_machine_fails(&error));
    }
    schedlab_sim::machine::preset(text).ok_or_else(|| {
        let mut names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        names.push("host");
        CliError::usage_help(
            format!("no machine is called {text:?}: {}", allowed_words(text, &names)),
            "`schedlab list machines` says what each is; a file must end in .toml or .json or \
             contain a /",
        )
    })
}

/// The machines that a study may name.
pub struct Machines;

impl schedlab_lab::studies::Machines for Machines {
    fn preset(&self, name: &str) -> Result<MachineSpec, String> {
        spec(name).map_err(|error| error.text())
    }

    fn parse(&self, text: &str) -> Result<MachineSpec, String> {
        schedlab_sim::machine::parse(text)
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
    match text {
        "zero" => Ok(Costs::ZERO),
        "default" => Ok(Costs::DEFAULT),
        path if Path::new(path).exists() => {
            let content = read_text(Path::new(path), FILE_BYTES_MAX)?;
            costs_file::parse(&content).map_err(|(line, text)| {
                CliError::usage_help(
                    format!("{path}, line {line}: {text}"),
                    "`schedlab calibrate --output FILE` writes a file of this form",
                )
            })
        }
        other => Err(CliError::usage_help(
            format!("--costs is {other:?}, which is no file"),
            "allowed are zero, default and the path of a file that `schedlab calibrate` wrote",
        )),
    }
}
