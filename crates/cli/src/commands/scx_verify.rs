// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab scx verify`: shows what the verifiers of real kernels, booted in guests, say of each
//! program of a scheduler.

use super::vm;
use crate::args::ScxArgs;
use crate::complete;
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use crate::output::{Out, say};
use crate::schedulers::native_digests;
use crate::table::{self, counted, maybe_duration, number, or_dash};
use clap::Args;
use clap_complete::ArgValueCompleter;
use schedlab_host::ext::verdict::{ProgramVerdict, Refusal};
use schedlab_model::Nanos;
use schedlab_run::LaneError;
use schedlab_vm::Cache;
use schedlab_vm::kernel::{ExtSupport, Store};
use schedlab_vm::lane::Options;
use schedlab_vm::verify::{Verdict, remember};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The kernel that is asked if none with sched_ext is stored.
pub(super) const KERNEL_DEFAULT: &str = "6.18";

/// Refused programs whose logs are printed: most often all of an object have one cause.
const LOGS_SHOWN: usize = 3;

/// Examples of `schedlab scx verify`.
pub const EXAMPLES: &str = "Examples:
  schedlab scx verify ./my_sched.bpf.c
  schedlab scx verify wrr ./my_sched.bpf.o --kernel 6.18,7.0,7.2
  schedlab scx verify ./my_sched.bpf.c --set nr_cpu_ids=64
  schedlab scx verify ./my_sched.bpf.c --scx-setup ./my_sched.toml
  schedlab scx verify ./my_sched.bpf.c --json | jq '.[].programs[] | {program, nr_insns}'

Exit code 1: a kernel refuses a program. Verdicts are cached until the object, its setup, an
option or the kernel changes. Needs qemu-system-x86_64, but neither root nor KVM.";

/// Arguments of `scx verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Schedulers: .bpf.c sources, .bpf.o objects, or names (`schedlab load --list`)
    #[arg(required = true, value_name = "FILE|NAME")]
    pub schedulers: Vec<String>,
    /// Kernels, separated by commas [default: every stored one with sched_ext, or 6.18]
    ///
    /// Series (`schedlab kernel list`) or image files.
    #[arg(long, value_delimiter = ',', value_name = "KERNELS",
          add = ArgValueCompleter::new(complete::kernels))]
    pub kernel: Vec<String>,
    /// Set an option of the scheduler, such as slice_ms=5 (repeatable)
    ///
    /// The verifier knows the value of every option, so paths that an option closes count for
    /// nothing.
    #[arg(long = "set", short = 's', value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// Ask the kernels again, even if the verdict is cached
    #[arg(long)]
    pub again: bool,
    /// Limit on the real time for a scheduler and kernel
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "30min",
          value_parser = crate::input::duration)]
    pub limit: Nanos,
    /// Print the verdicts as JSON
    #[arg(long)]
    pub json: bool,
    /// How a source is compiled.
    #[command(flatten)]
    pub scx: ScxArgs,
}

/// Runs the command.
pub fn verify(args: &VerifyArgs, out: &mut Out) -> CliResult<()> {
    let settings = input::pairs("--set", &args.options)?;
    let source = args.scx.options_for_kernel()?;
    let (setup, limit) = (args.scx.setup.clone(), Duration::from_nanos(args.limit));
    let lane = vm::lane_with(Options { source, setup, limit, ..Options::default() })?;
    let cache = Cache::of_user().map_err(LaneError::from)?;
    let kernels = if args.kernel.is_empty() { stored(&cache)? } else { args.kernel.clone() };
    let mut verdicts: Vec<Verdict> = Vec::new();
    for file in &args.schedulers {
        let mut own = Vec::new();
        for kernel in &kernels {
            let verdict = lane.verify(file, kernel, &settings, args.again);
            let verdict = verdict.map_err(LaneError::from)?;
            if !args.json {
                let is_first = verdicts.is_empty() && own.is_empty();
                show(&verdict, is_first, out)?;
                out.finish_now()?;
            }
            own.push(verdict);
        }
        // The simulator looks for them under what it runs.
        let releases: Vec<&str> = own.iter().map(|verdict| verdict.kernel.as_str()).collect();
        for digest in native_digests(&args.scx, Path::new(file), &releases) {
            for verdict in &own {
                remember(&cache, &digest, verdict).map_err(LaneError::from)?;
            }
        }
        verdicts.extend(own);
    }
    if args.json {
        out.json(&verdicts)?;
    }
    out.finish_now()?;
    finish(&verdicts)
}

/// The series of every stored kernel that has sched_ext.
fn stored(cache: &Cache) -> CliResult<Vec<String>> {
    let kernels = Store::new(cache.clone()).list().map_err(LaneError::from)?;
    let has_ext = kernels.iter().filter(|kernel| kernel.ext == ExtSupport::Yes);
    let mut series: Vec<String> =
        has_ext.filter(|kernel| kernel.package.is_some()).map(|k| k.series.clone()).collect();
    series.dedup();
    if series.is_empty() {
        say(format!("note: no kernel with sched_ext is stored; {KERNEL_DEFAULT} is fetched"));
        series.push(KERNEL_DEFAULT.into());
    }
    Ok(series)
}

/// Prints a verdict: a head line, a table of the programs, the reasons of refusals.
fn show(verdict: &Verdict, is_first: bool, out: &mut Out) -> CliResult<()> {
    if !is_first {
        out.line("")?;
    }
    let word = if verdict.is_accepted() { "accepted" } else { "refused" };
    let setup = verdict.setup.as_ref().map(|origin| format!(" with its setup ({origin})"));
    let (setup, kernel) = (setup.unwrap_or_default(), &verdict.kernel);
    out.line(format!("{}{setup} on {kernel}: {word}", verdict.file))?;
    let mut rows = table::table(&["program", "verdict", "instructions", "states", "stack", "time"]);
    for program in &verdict.programs {
        rows.add_row([
            program.program.as_str().into(),
            if program.refusal.is_none() { "accepted" } else { "refused" }.into(),
            number(or_dash(program.nr_insns, |count| count.to_string())),
            number(or_dash(program.nr_states, |count| count.to_string())),
            number(or_dash(program.stack_bytes, |bytes| format!("{bytes} B"))),
            number(maybe_duration(program.time_ns)),
        ]);
    }
    if !verdict.programs.is_empty() {
        out.line(table::render(&rows))?;
    }
    let refused: Vec<_> = verdict
        .programs
        .iter()
        .filter_map(|program| Some((program, program.refusal.as_ref()?)))
        .collect();
    for (nth, (program, refusal)) in refused.iter().enumerate() {
        explain(program, refusal, nth < LOGS_SHOWN, out)?;
    }
    if refused.len() > LOGS_SHOWN {
        out.line(format!("\nlogs of the first {LOGS_SHOWN} are shown; --json has all"))?;
    }
    if let Some(error) = &verdict.error {
        let which = if verdict.programs.is_empty() { "no program" } else { "no other program" };
        out.line(format!("{which} reached the verifier: {error}"))?;
    }
    Ok(())
}

/// Prints why a program is refused, with the end of its log or without.
fn explain(
    program: &ProgramVerdict,
    refusal: &Refusal,
    has_log: bool,
    out: &mut Out,
) -> CliResult<()> {
    out.line(format!("\n{} is refused: {}", program.program, refusal.reason))?;
    for (what, line) in [("at", &refusal.at), ("taken at", &refusal.acquired_at)] {
        if let Some(line) = line {
            out.line(format!("  {what} {}: {}", line.place, line.code))?;
        }
    }
    if !has_log || refusal.log.is_empty() {
        return Ok(());
    }
    out.line("  the end of the verifier's log:")?;
    refusal.log.iter().try_for_each(|line| out.line(format!("    {line}")))
}

/// The error of a command of which a verdict was a refusal.
fn finish(verdicts: &[Verdict]) -> CliResult<()> {
    let mut refused: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for verdict in verdicts.iter().filter(|verdict| !verdict.is_accepted()) {
        refused.entry(&verdict.file).or_default().push(&verdict.kernel);
    }
    if refused.is_empty() {
        return Ok(());
    }
    let nr: usize = refused.values().map(Vec::len).sum();
    let list: Vec<String> =
        refused.iter().map(|(file, kernels)| format!("{file} ({})", kernels.join(", "))).collect();
    Err(CliError::new(
        Exit::Check,
        format!(
            "{nr} of {} refused: {}",
            counted(verdicts.len() as u64, "verdict", "verdicts"),
            list.join(", ")
        ),
        "",
    ))
}
