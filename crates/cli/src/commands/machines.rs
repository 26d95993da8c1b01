// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab list machines`: lists the presets and this machine. `--json` prints each as a machine
//! file.

use super::list::select;
use crate::args::ListArgs;
use crate::error::{CliError, CliResult};
use crate::machine;
use crate::output::Out;
use crate::table;
use schedlab_run::{MachineFile, MachineSpec};
use schedlab_sim::machine::PRESETS;
use schedlab_workload::units;
use serde_json::Value;
use std::collections::BTreeSet;

/// All presets; then this machine, if it can be read.
fn all() -> CliResult<Vec<MachineFile>> {
    let wrong = |error: String| CliError::usage(format!("a preset cannot be read: {error}"));
    let mut files: Vec<MachineFile> = PRESETS
        .iter()
        .map(|(_, text)| schedlab_sim::machine::read(text).map_err(wrong))
        .collect::<CliResult<_>>()?;
    files.extend(machine::host().ok());
    Ok(files)
}

/// The machines as JSON, each in the form of a machine file. With a name, only that machine.
pub fn as_json(name: Option<&str>) -> CliResult<Value> {
    let all = all()?;
    let selected = select("machine", all.iter(), name, |file| file.name.as_str())?;
    let value = |file: &MachineFile| serde_json::to_value(file).unwrap_or_default();
    Ok(match (name, &selected[..]) {
        (Some(_), [one]) => value(one),
        _ => selected.into_iter().map(value).collect(),
    })
}

/// Prints the machines.
pub fn list(args: &ListArgs, out: &mut Out) -> CliResult<()> {
    let all = all()?;
    let selected = select("machine", all.iter(), args.name.as_deref(), |f| f.name.as_str())?;
    if !args.long && args.name.is_none() {
        let mut rows = table::table(&["machine", "CPUs", "what it is"]);
        for file in selected {
            let spec = file.spec().map_err(CliError::usage)?;
            rows.add_row([
                comfy_table::Cell::new(&file.name),
                table::number(spec.machine.nr_cpus()),
                comfy_table::Cell::new(&file.summary),
            ]);
        }
        return out.line(table::render(&rows));
    }
    for file in selected {
        let spec = file.spec().map_err(CliError::usage)?;
        out.line(&file.name)?;
        for line in describe(&spec) {
            out.line(format!("  {line}"))?;
        }
        out.line("")?;
    }
    Ok(())
}

/// Describes a machine in lines for people.
fn describe(spec: &MachineSpec) -> Vec<String> {
    let machine = &spec.machine;
    let count = |level: &[u32]| level.iter().collect::<BTreeSet<_>>().len();
    let topology = &machine.topology;
    let preempt = match spec.preempt {
        Some(model) => model.name(),
        None => "that of the scheduler's kernel",
    };
    let mut lines = vec![
        spec.summary.clone(),
        format!(
            "CPUs:       {} on {} cores, {} last-level caches, {} nodes",
            machine.nr_cpus(),
            count(&topology.core),
            count(&topology.llc),
            count(&topology.node)
        ),
        format!(
            "caches:     {} a core, {} last-level",
            units::format_bytes(machine.caches.core_bytes),
            units::format_bytes(machine.caches.llc_bytes)
        ),
        format!("kernel:     HZ {}, preemption: {preempt}", machine.hz),
    ];
    if !machine.smt_speed.is_empty() {
        let speeds: Vec<String> = machine.smt_speed.iter().map(u32::to_string).collect();
        lines.push(format!("siblings:   {} thousandths of full speed", speeds.join(", ")));
    }
    for source in &machine.interrupts {
        lines.push(format!(
            "interrupt:  {} every {}, {} and {} of softirq",
            source.name,
            units::format_duration(source.interval_ns),
            units::format_duration(source.cost_ns),
            units::format_duration(source.softirq_ns)
        ));
    }
    lines.extend(spec.sources.iter().map(|text| format!("source:     {text}")));
    lines.extend(spec.assumptions.iter().map(|text| format!("assumption: {text}")));
    lines
}
