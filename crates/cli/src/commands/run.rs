// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab run`: runs a workload, or copies of any command, on the running kernel.

use super::copies::{self, Copies};
use super::trace_file::{OptionalTraceFile, SliceLines};
use super::{analysis, results, sim};
use crate::args::RunArgs;
use crate::error::{CliError, CliResult};
use crate::input;
use crate::output::Out;
use schedlab_host::{HostLane, Output};
use schedlab_model::CpuMask;
use schedlab_run::{RunRequest, RunResult, Variant};

/// Runs the command.
pub fn run(args: &RunArgs, out: &mut Out) -> CliResult<()> {
    results::check_columns(&args.output.columns)?;
    let cpus = match args.cpus {
        Some(cpus) => cpus.on_this_machine()?,
        None => schedlab_host::allowed_cpus(),
    };
    if args.repetitions > 1 && (args.output.print.slices || args.output.trace.file.is_some()) {
        return Err(CliError::usage_help(
            format!("--slices and --trace show one run, here are {}", args.repetitions),
            "leave --repetitions out",
        ));
    }
    let mut runs = Vec::new();
    for repetition in 0..args.repetitions {
        runs.push(match &args.workload {
            Some(workload) => run_workload(args, workload, cpus, repetition, out)?,
            None => run_copies(args, cpus, repetition, out)?,
        });
    }
    results::warn(runs.iter());
    let is_command = args.workload.is_none();
    let exits = copies::check_exits(runs.iter());
    match &runs[..] {
        many @ [_, _, ..] if is_command && !args.output.print.json => {
            out.line(copies::repetitions_table(many))?;
        }
        [one] if is_command && !args.output.print.json && !args.output.print.slices => {
            out.line(copies::copies_table(one))?;
            analysis::show(one, out)?;
        }
        _ => sim::show(runs, &args.output, out)?,
    }
    if exits.is_err() {
        out.finish_now()?;
    }
    exits
}

fn run_workload(
    args: &RunArgs,
    text: &str,
    cpus: CpuMask,
    repetition: u32,
    out: &mut Out,
) -> CliResult<RunResult> {
    let last = schedlab_host::allowed_cpus().iter().last().map_or(0, |cpu| cpu.0);
    let named = input::workload(text, &args.tasks, last + 1)?;
    let mut parameters = named.parameters;
    parameters.insert("cpus".into(), cpus.weight().to_string());
    let policy = args.tasks.policy.unwrap_or_default();
    let request = RunRequest {
        parameters,
        seed: args.tasks.seed.wrapping_add(u64::from(repetition)),
        repetition,
        until_ns: args.tasks.until,
        keep: sim::keep(&args.output),
        ..RunRequest::new(named.workload, policy.name(), cpus)
    };
    let mut run = sim::run_one(&HostLane, &request, &args.output, out)?;
    run.warnings.extend(named.warnings);
    Ok(run)
}

fn run_copies(
    args: &RunArgs,
    cpus: CpuMask,
    repetition: u32,
    out: &mut Out,
) -> CliResult<RunResult> {
    let mut command = copies::command(&args.command, &args.tasks, &Variant::default())?;
    command.copies = args.copies.unwrap_or(1);
    command.cpus = cpus;
    // The output of the copies would mix with the lines of data.
    if args.output.print.json || args.output.print.slices {
        command.output = Output::Null;
    }
    let copies = Copies {
        command,
        label: args.tasks.policy.unwrap_or_default().name().into(),
        keep: sim::keep(&args.output),
        seed: args.tasks.seed,
        repetition,
    };
    let last = cpus.iter().last().map_or(0, |cpu| cpu.0 + 1);
    let mut slices = SliceLines::new(args.output.print.slices.then_some(out), false);
    let mut file = OptionalTraceFile::create(&args.output.trace, &copies.workload(), last)?;
    let result = copies.play(&mut (&mut slices, file.sink()));
    slices.finish()?;
    let result = result?;
    file.commit()?;
    Ok(result)
}
