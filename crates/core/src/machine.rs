// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines of the simulator: presets and files; costs; how many CPUs a run has.

use crate::{Error, SimLane};
use schedlab_model::Costs;
use schedlab_run::machine::costs_file;
use schedlab_run::place::allowed_words;
use schedlab_run::{MachineFile, MachineSpec};

/// The presets: name, and the text of the file.
pub const PRESETS: [(&str, &str); 12] = [
    ("laptop", include_str!("../../../machines/laptop.toml")),
    ("server-2x32", include_str!("../../../machines/server-2x32.toml")),
    ("pi", include_str!("../../../machines/pi.toml")),
    ("guest-counted", include_str!("../../../machines/guest-counted.toml")),
    ("guest-counted-smp", include_str!("../../../machines/guest-counted-smp.toml")),
    ("S0", include_str!("../../../machines/S0.toml")),
    ("S2", include_str!("../../../machines/S2.toml")),
    ("S3-a", include_str!("../../../machines/S3-a.toml")),
    ("S3-b", include_str!("../../../machines/S3-b.toml")),
    ("S3-c", include_str!("../../../machines/S3-c.toml")),
    ("S3-d", include_str!("../../../machines/S3-d.toml")),
    ("S4", include_str!("../../../machines/S4.toml")),
];

/// Finds the preset called `name`, in any case.
pub fn preset(name: &str) -> Option<MachineSpec> {
    let (_, text) = PRESETS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    // A test reads every preset.
    parse(text).ok()
}

/// Reads a machine file: TOML, or JSON if it begins with a brace.
pub fn read(text: &str) -> Result<MachineFile, String> {
    if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}

/// Reads a machine from the text of a file.
pub fn parse(text: &str) -> Result<MachineSpec, String> {
    read(text)?.spec()
}

/// The error for a name that no preset has. `more` are names that the caller knows in addition.
pub fn unknown(name: &str, more: &[&str]) -> Error {
    let mut names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
    names.extend(more);
    Error::usage(
        format!("no machine is called {name:?}: {}", allowed_words(name, &names)),
        "`schedlab list machines` says what each is; a file must end in .toml or .json or contain \
         a /",
    )
}

/// Reads the machine file `name`.
pub fn of_file(name: &str, text: &str) -> Result<MachineSpec, Error> {
    parse(text).map_err(|error| {
        Error::usage(
            format!("machine file {name}: {error}"),
            "docs/reference/machines.md says what it may hold; `schedlab list machines NAME \
             --json` prints an example",
        )
    })
}

/// Reads the costs file `name`.
pub fn costs_of_file(name: &str, text: &str) -> Result<Costs, Error> {
    costs_file::parse(text).map_err(|(line, text)| {
        Error::usage(
            format!("{name}, line {line}: {text}"),
            "`schedlab calibrate --output FILE` writes a file of this form",
        )
    })
}

/// Costs by name: `zero` or `default`.
pub fn costs_by_name(name: &str) -> Option<Costs> {
    match name {
        "zero" => Some(Costs::ZERO),
        "default" => Some(Costs::DEFAULT),
        _ => None,
    }
}

/// The error for costs that are neither a name nor a file.
pub fn unknown_costs(text: &str) -> Error {
    Error::usage(
        format!("--costs is {text:?}, which is no file"),
        "allowed are zero, default and the path of a file that `schedlab calibrate` wrote",
    )
}

/// Number of CPUs of a run: the given number, else all CPUs of the lane's machine, else 1.
pub fn nr_cpus(lane: &SimLane, given: Option<u32>) -> Result<u32, Error> {
    let Some(spec) = &lane.machine else { return Ok(given.unwrap_or(1)) };
    let nr_cpus = given.unwrap_or(spec.machine.nr_cpus());
    spec.first_cpus(nr_cpus).map_err(|text| Error::usage(text, ""))?;
    Ok(nr_cpus)
}
