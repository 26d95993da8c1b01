// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab validate`: the models beside the kernels that they are models of.
//!
//! The validation becomes a study, whose runs are stored one by one in a directory below the
//! output, so that the command goes on where it was stopped.

mod host;
mod show;

use super::progress::{Unavailable, finish_with_failures};
use super::report;
use super::results;
use super::studies::{self, SCHEMA_HELP_VALIDATION, Source};
use super::sweep::{Begin, Prepared, Settings, stored};
use crate::args::{LaneArg, VerdictArgs};
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use crate::output::{Out, say};
use crate::schedulers::Schedulers;
use clap::Args;
use schedlab_lab::ExperimentResult;
use schedlab_lab::identity::Program;
use schedlab_lab::plan::Note;
use schedlab_lab::validate::{Validation, ValidationResult, Verdict, Wanted, judge};
use schedlab_run::StudyError;
use schedlab_run::file::write_whole;
use schedlab_sim::{SimLane, Watchdog};
use std::path::{Path, PathBuf};

/// The validation that comes with the program.
const BUILT_IN: &str = include_str!("../../../../../studies/validate.toml");

/// Largest validation file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Examples below the long help.
pub const EXAMPLES: &str = "Examples:
  schedlab validate --lane vm --quick
  schedlab validate --lane vm --kernel 6.12,6.18 --details
  schedlab validate --json | jq '.comparisons[] | select(.kernel == \"6.12\") | .metrics'
  schedlab validate my-validation.toml

Runs on real kernels in guests with counted time (lane vm) and on this machine's (lane host). The
same command goes on where it was stopped. Exit code 1 if a model is outside of a tolerance, which
are named, or if a metric accepts a model that is wrong on purpose.";

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// A validation file (`schedlab schema validation`); without it the built-in one.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Only kernels in these lanes, separated by commas: vm, host.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub lane: Vec<LaneArg>,
    /// Only these kernels, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "SERIES")]
    pub kernel: Vec<String>,
    /// Without the kernels and workloads that the file leaves out of a quick look.
    #[arg(long)]
    pub quick: bool,
    /// Runs of each kernel instead of the file's, 5 or more.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(5..=1000))]
    pub repetitions: Option<u32>,
    /// What becomes of the verdicts.
    #[command(flatten)]
    pub verdicts: VerdictArgs,
    /// Threads to simulate on, all CPUs if nothing is said; the results do not depend on it.
    #[arg(long, short = 'j', visible_alias = "jobs", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// Runs the command.
pub fn validate(args: &ValidateArgs, out: &mut Out) -> CliResult<()> {
    let (name, text) = match &args.file {
        None => ("validate.toml".to_string(), BUILT_IN.to_string()),
        Some(path) => (path.display().to_string(), input::read_text(path, FILE_BYTES_MAX)?),
    };
    let wrong = |error: StudyError| studies::placed(&name, &text, error, SCHEMA_HELP_VALIDATION);
    let validation = Validation::parse(&text).map_err(wrong)?;
    let wanted = wanted(args)?;
    let made = validation.study(&wanted).map_err(wrong)?;
    let output = args.verdicts.folder("validation");
    let repetitions = schedlab_host::REPETITIONS_DEFAULT;
    let this_machine = || host::model(output, args.verdicts.fresh, repetitions);
    let source = Source::validation(&name, text.clone(), &made, this_machine)?;
    let prepared = prepare(source, wanted)?;
    prepared.plan.notes.iter().for_each(|note| say(format!("note: {note}")));
    let begin = Begin::of(&args.verdicts);
    let threads = || std::thread::available_parallelism().map_or(1, |count| count.get());
    let threads = args.threads.map_or_else(threads, usize::from);
    let (results, failures) = stored(&prepared, &output.join("runs"), begin, threads)?;
    results::warn(results.iter().flat_map(|result| &result.runs));
    let mut found = judge(&validation, &made, &results);
    let notes = prepared.plan.notes.iter().map(Note::to_string);
    found.missing.splice(made.missing.len()..made.missing.len(), notes);
    found.missing.dedup();
    write(output, &validation, &found, &results)?;
    match args.verdicts.json {
        true => out.json(&found)?,
        false => show::terminal(&found, args.verdicts.details, out)?,
    }
    out.finish_now()?;
    finish_with_failures(&failures, Unavailable::IsSaid)?;
    finish(&found)
}

fn wanted(args: &ValidateArgs) -> CliResult<Wanted> {
    if args.lane.contains(&LaneArg::Sim) {
        return Err(CliError::usage_help(
            "--lane sim: the models are simulated in any case",
            "name where the kernels run: vm, host",
        ));
    }
    let cpus = schedlab_host::allowed_cpus();
    Ok(Wanted {
        lanes: args.lane.iter().map(|lane| lane.kind().name().into()).collect(),
        kernels: args.kernel.clone(),
        quick: args.quick,
        repetitions: args.repetitions,
        host_release: Some(schedlab_host::machine::info(&cpus).kernel),
    })
}

fn prepare(source: Source, wanted: Wanted) -> CliResult<Prepared> {
    // Wrong models may starve tasks: that is for the metrics to say.
    let lane = SimLane { watchdog: Watchdog::Off, ..SimLane::default() };
    let settings = Settings { validation: Some(wanted), ..Settings::new(1, &[], &lane) };
    let runs_max = schedlab_lab::plan::RUNS_MAX_DEFAULT;
    Prepared::of(source, settings, &Program::this(), &Schedulers::default(), runs_max)
}

/// Writes the result, the report, and the tables for a page of the documentation.
fn write(
    output: &Path,
    validation: &Validation,
    found: &ValidationResult,
    results: &[ExperimentResult],
) -> CliResult<()> {
    let json =
        serde_json::to_string_pretty(found).map_err(|error| CliError::usage(error.to_string()))?;
    write_whole(&output.join("validation.json"), (json + "\n").as_bytes())?;
    write_whole(&output.join("tables.md"), show::markdown(validation, found).as_bytes())?;
    say(format!("results: {}", output.display()));
    report::write_validation(
        &output.join("report.html"),
        validation.title_or_name(),
        (validation, found),
        results,
    )
}

/// The exit code, with the names of what is out.
fn finish(found: &ValidationResult) -> CliResult<()> {
    if found.comparisons.is_empty() {
        return Err(CliError::new(
            Exit::Unavailable,
            format!("no kernel could be run: {}", found.missing.join("; ")),
            "`schedlab doctor` shows what this machine can do",
        ));
    }
    let mut parts = Vec::new();
    for (verdict, what) in [
        (Verdict::Outside, "outside of the tolerance"),
        (Verdict::DoesNotDiscriminate, "tells no right model from a wrong one"),
    ] {
        let names = found.with(verdict);
        if !names.is_empty() {
            parts.push(format!("{what}: {}", names.join("; ")));
        }
    }
    match parts.is_empty() {
        true => Ok(()),
        false => Err(CliError::new(
            Exit::Check,
            parts.join(". "),
            "--details shows the values; docs/reference/fidelity.md says what is known of them",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_validation_can_be_planned() {
        let validation = Validation::parse(BUILT_IN).unwrap();
        for quick in [false, true] {
            let wanted = Wanted {
                quick,
                host_release: Some("6.18.5".into()),
                lanes: vec!["host".into()],
                ..Wanted::default()
            };
            let made = validation.study(&wanted).unwrap();
            let this_machine = || Ok(serde_json::to_string(&crate::machine::host()?).unwrap());
            let text = BUILT_IN.to_string();
            let source = Source::validation("validate.toml", text, &made, this_machine).unwrap();
            let again = Source::of_manifest(
                "validate.toml",
                BUILT_IN.into(),
                source.files(),
                Some(&wanted),
            );
            let prepared = prepare(source, wanted.clone()).unwrap();
            assert_eq!(prepare(again.unwrap(), wanted).unwrap().plan_key, prepared.plan_key);
            assert!(prepared.plan.runs.len() > 50, "{}", prepared.plan.runs.len());
            for run in &prepared.plan.runs {
                run.request.workload.check(run.request.cpus.weight()).unwrap();
            }
        }
    }
}
