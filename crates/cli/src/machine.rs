// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modelled machine from the command line, and the file that holds its costs.
//!
//! A costs file has one `name = nanoseconds` a line; `#` begins a comment; what is not named keeps
//! its default. `schedlab calibrate --output` writes such a file.

use crate::args::MachineArgs;
use crate::error::{CliError, CliResult, Exit, allowed_words};
use crate::input;
use schedlab_model::{Costs, Nanos};
use schedlab_run::{MachineFile, MachineSpec};
use schedlab_sim::SimLane;
use schedlab_sim::machine::PRESETS;
use std::path::Path;
use std::sync::Arc;

/// Largest costs file.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Largest single cost: a second. More is a slip of the unit.
const COST_NS_MAX: Nanos = 1_000_000_000;

/// Largest machine file: 1,024 CPUs in three lists take 20 kB.
const MACHINE_BYTES_MAX: u64 = 1 << 20;

/// The lane that simulates on this machine.
pub fn sim_lane(args: &MachineArgs) -> CliResult<SimLane> {
    let machine = args.machine.as_deref().map(spec).transpose()?;
    Ok(SimLane {
        schedulers: Vec::new(),
        machine: machine.map(Arc::new),
        hz: args.hz,
        preempt: args.preempt,
        costs: args.costs.as_deref().map(costs).transpose()?,
        watchdog: args.watchdog,
        schedlab_version: env!("CARGO_PKG_VERSION").into(),
    })
}

/// CPUs of a run: those asked for, else all of the machine that was named, else 1.
pub fn nr_cpus(lane: &SimLane, given: Option<u32>) -> CliResult<u32> {
    let Some(spec) = &lane.machine else { return Ok(given.unwrap_or(1)) };
    let nr_cpus = given.unwrap_or(spec.machine.nr_cpus());
    spec.first_cpus(nr_cpus).map_err(CliError::usage)?;
    Ok(nr_cpus)
}

/// Whether `text` names a file and no preset.
pub fn is_file(text: &str) -> bool {
    text.contains('/') || text.ends_with(".toml") || text.ends_with(".json")
}

/// The machine that `text` names: `host`, a file, or a preset.
pub fn spec(text: &str) -> CliResult<MachineSpec> {
    if is_file(text) {
        let content = input::read_text(Path::new(text), MACHINE_BYTES_MAX)?;
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

/// `zero`, `default`, or a file.
pub fn costs(text: &str) -> CliResult<Costs> {
    match text {
        "zero" => Ok(Costs::ZERO),
        "default" => Ok(Costs::DEFAULT),
        path if Path::new(path).exists() => {
            let content = input::read_text(Path::new(path), FILE_BYTES_MAX)?;
            parse_costs(&content).map_err(|(line, text)| {
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

/// Reads a costs file; the error has the line's number.
fn parse_costs(text: &str) -> Result<Costs, (usize, String)> {
    let mut costs = Costs::DEFAULT;
    let mut seen: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |text: String| (index + 1, text);
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (name, value) =
            line.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(
                || wrong(format!("{line:?} is not of the form `name = nanoseconds`")),
            )?;
        let field = costs.field_mut(name).ok_or_else(|| {
            wrong(format!("no cost is called {name:?}: {}", allowed_words(name, &Costs::NAMES)))
        })?;
        *field = value.parse().ok().filter(|ns| *ns <= COST_NS_MAX).ok_or_else(|| {
            wrong(format!("{name} is {value:?}, allowed are whole numbers, 0 to {COST_NS_MAX}"))
        })?;
        if seen.contains(&name) {
            return Err(wrong(format!("{name} is given twice: give it once")));
        }
        seen.push(name);
    }
    Ok(costs)
}

/// A costs file with a remark at each cost.
pub fn format_costs(costs: &Costs, head: &str, remark: impl Fn(&str) -> String) -> String {
    let mut text: String = head.lines().map(|line| format!("# {line}\n")).collect();
    for name in Costs::NAMES {
        let value = costs.field(name).unwrap_or_default();
        text += &format!("{name} = {value}  # {}\n", remark(name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_costs_file_reads_back() {
        let mut costs = Costs::ZERO;
        costs.fork_ns = 77;
        assert_eq!(
            parse_costs(&format_costs(&costs, "two\nlines", |name| format!("{name} = 5"))).unwrap(),
            costs
        );
        let partial = parse_costs("tick_ns=5 # mine\n\n").unwrap();
        assert_eq!((partial.tick_ns, partial.fork_ns), (5, Costs::DEFAULT.fork_ns));
    }

    #[test]
    fn mistakes_are_shown_with_their_line() {
        let error = |text| parse_costs(text).unwrap_err();
        assert_eq!(error("tick_ns = 1\ntik_ns = 1").0, 2);
        assert!(error("tik_ns = 1").1.contains("did you mean `tick_ns`?"));
        assert!(error("tick_ns = 1us").1.contains("allowed are whole numbers"));
        assert!(error("tick_ns = 1\ntick_ns = 2").1.contains("twice"));
        assert!(error("tick_ns").1.contains("name = nanoseconds"));
        assert!(error("tick_ns = 1000000001").1.contains("0 to 1000000000"));
    }
}
