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
use super::sweep::{Prepared, settings, stored};
use crate::args::{VerdictArgs, lane};
use crate::error::{CliError, CliResult, Exit};
use crate::output::{Out, say};
use crate::schedulers::Schedulers;
use clap::Args;
use schedlab_lab::ExperimentResult;
use schedlab_lab::document::placed;
use schedlab_lab::identity::Program;
use schedlab_lab::plan::Note;
use schedlab_lab::store::Settings;
use schedlab_lab::studies::{SCHEMA_HELP_VALIDATION, STUDY_BYTES_MAX, Source, VALIDATION};
use schedlab_lab::validate::{Validation, ValidationResult, Verdict, Wanted, judge};
use schedlab_run::file::read_text;
use schedlab_run::file::write_whole;
use schedlab_run::{LaneKind, StudyError};
use schedlab_sim::{SimLane, Watchdog};
use std::path::{Path, PathBuf};

/// Examples below the long help.
pub const EXAMPLES: &str = "Examples:
  schedlab validate --lane vm --quick
  schedlab validate --lane vm --kernel 6.12,6.18 --details
  schedlab validate --json | jq '.comparisons[] | select(.kernel == \"6.12\") | .metrics'
  schedlab validate my-validation.toml

Kernels run in guests with counted time (lane vm) and on this machine (lane host). The same command
resumes where it was stopped. Exit code 1 if a model is outside a tolerance, or if a metric accepts
a model that is wrong on purpose; the output names both.";

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Validation file (`schedlab schema validation`) [default: the built-in one]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Validate only against kernels in these lanes: vm, host
    #[arg(long, value_parser = lane(), value_delimiter = ',')]
    pub lane: Vec<LaneKind>,
    /// Validate only against these kernels, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "SERIES")]
    pub kernel: Vec<String>,
    /// Omit the kernels and workloads that the file marks as slow
    #[arg(long)]
    pub quick: bool,
    /// Runs of each kernel, 5 or more [default: as the file says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(5..=1000))]
    pub repetitions: Option<u32>,
    /// What becomes of the verdicts.
    #[command(flatten)]
    pub verdicts: VerdictArgs,
    /// Threads to simulate on [default: one for each CPU]
    #[arg(long, short = 'j', hide_short_help = true, visible_alias = "jobs", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// Runs the command.
pub fn validate(args: &ValidateArgs, out: &mut Out) -> CliResult<()> {
    let (name, text) = match &args.file {
        None => ("validate.toml".to_string(), VALIDATION.to_string()),
        Some(path) => (path.display().to_string(), read_text(path, STUDY_BYTES_MAX)?),
    };
    let wrong = |error: StudyError| placed(&name, &text, error, SCHEMA_HELP_VALIDATION);
    let validation = Validation::parse(&text).map_err(wrong)?;
    let wanted = wanted(args)?;
    let made = validation.study(&wanted).map_err(wrong)?;
    let output = args.verdicts.folder("validation");
    let repetitions = schedlab_host::REPETITIONS_DEFAULT;
    let this_machine = || host::model(output, args.verdicts.fresh, repetitions);
    let source = Source::validation(&name, text.clone(), &made, this_machine)?;
    let prepared = prepare(source, wanted)?;
    prepared.sweep.plan.notes.iter().for_each(|note| say(format!("note: {note}")));
    let threads = || std::thread::available_parallelism().map_or(1, |count| count.get());
    let threads = args.threads.map_or_else(threads, usize::from);
    let (results, failures) =
        stored(&prepared, &output.join("runs"), args.verdicts.begin(), threads)?;
    results::warn(results.iter().flat_map(|result| &result.runs));
    let mut found = judge(&validation, &made, &results);
    let notes = prepared.sweep.plan.notes.iter().map(Note::to_string);
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
    if args.lane.contains(&LaneKind::Sim) {
        return Err(CliError::usage_help(
            "--lane sim: the models are simulated in any case",
            "name where the kernels run: vm, host",
        ));
    }
    let cpus = schedlab_host::allowed_cpus();
    Ok(Wanted {
        lanes: args.lane.clone(),
        kernels: args.kernel.clone(),
        quick: args.quick,
        repetitions: args.repetitions,
        host_release: Some(schedlab_host::machine::info(&cpus).kernel),
    })
}

fn prepare(source: Source, wanted: Wanted) -> CliResult<Prepared> {
    // Wrong models may starve tasks: that is for the metrics to say.
    let lane = SimLane { watchdog: Watchdog::Off, charges_textbooks: true, ..SimLane::default() };
    let settings = Settings { validation: Some(wanted), ..settings(1, &[], &lane) };
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
    use crate::machine::Machines;
    use schedlab_lab::studies::Machines as _;

    #[test]
    fn the_built_in_validation_can_be_planned() {
        let validation = Validation::parse(VALIDATION).unwrap();
        for quick in [false, true] {
            let wanted = Wanted {
                quick,
                host_release: Some("6.18.5".into()),
                lanes: vec![LaneKind::Host],
                ..Wanted::default()
            };
            let made = validation.study(&wanted).unwrap();
            let this_machine = || Machines.this_machine();
            let text = VALIDATION.to_string();
            let source = Source::validation("validate.toml", text, &made, this_machine).unwrap();
            let again = Source::of_manifest(
                "validate.toml",
                VALIDATION.into(),
                source.files(),
                Some(&wanted),
            );
            let prepared = prepare(source, wanted.clone()).unwrap();
            assert_eq!(
                prepare(again.unwrap(), wanted).unwrap().sweep.plan_key,
                prepared.sweep.plan_key
            );
            assert!(prepared.sweep.plan.runs.len() > 50, "{}", prepared.sweep.plan.runs.len());
            for run in &prepared.sweep.plan.runs {
                run.request.workload.check(run.request.cpus.weight()).unwrap();
            }
        }
    }
}
