// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab report`: makes one HTML file and plots from results. Other commands call it to report
//! their own runs.

use crate::args::ReportArgs;
use crate::error::{CliError, CliResult};
use crate::output::say;
use schedlab_lab::ExperimentResult;
use schedlab_lab::claims::ClaimResult;
use schedlab_lab::experiment::read_results;
use schedlab_report::{Limits, ModelNote, ReportError, ReportInput, StudyPage, ValidationInput};
use schedlab_run::LaneKind;
use schedlab_run::file::read_text;
use std::path::{Path, PathBuf};

/// Size limit for a results file. The demo's file takes a few megabytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Runs the command.
pub fn report(args: &ReportArgs) -> CliResult<()> {
    let mut all = Vec::new();
    for path in &args.results {
        let text = read_text(path, FILE_BYTES_MAX)?;
        let name = if path == Path::new("-") { "stdin".into() } else { path.display().to_string() };
        all.extend(read_results(&name, &text)?);
    }
    let title = match &all[..] {
        [one] if !one.experiment.title.is_empty() => one.experiment.title.clone(),
        _ => "schedlab report".into(),
    };
    write(&args.output, args.plots.as_deref(), &title, &all)
}

/// What the report of a reproduction shows in addition to the results.
#[derive(Clone, Copy, Default)]
pub struct Judged<'j> {
    /// Claims with their verdicts.
    pub claims: &'j [ClaimResult],
    /// Pages of the studies.
    pub studies: &'j [StudyPage],
}

/// Writes the report of a reproduction, with the verdicts on the claims.
pub fn write_claims(
    path: &Path,
    plots: Option<&Path>,
    title: &str,
    results: &[ExperimentResult],
    judged: Judged<'_>,
) -> CliResult<()> {
    let command = command_line();
    write_report(path, plots, (title, &command), results, judged)
}

/// Writes the report and prints its path.
pub fn write(
    path: &Path,
    plots: Option<&Path>,
    title: &str,
    results: &[ExperimentResult],
) -> CliResult<()> {
    write_by(path, plots, title, results, &command_line())
}

/// Writes the report, with `command` as the command that made it, and prints its path.
pub fn write_by(
    path: &Path,
    plots: Option<&Path>,
    title: &str,
    results: &[ExperimentResult],
    command: &str,
) -> CliResult<()> {
    write_report(path, plots, (title, command), results, Judged::default())
}

fn write_report(
    path: &Path,
    plots: Option<&Path>,
    (title, command): (&str, &str),
    results: &[ExperimentResult],
    judged: Judged<'_>,
) -> CliResult<()> {
    let notes = model_notes(results);
    let input = ReportInput {
        title,
        date: None,
        command: Some(command),
        results,
        claims: judged.claims,
        studies: judged.studies,
        model_notes: &notes,
        limits: Limits::default(),
    };
    let written = schedlab_report::write_report(path, &input).map_err(wrong)?;
    say(match written.len() {
        1 => format!("report: {}", shown(path)),
        pages => format!("report: {}, and {} pages beside it", shown(path), pages - 1),
    });
    plots.map_or(Ok(()), |folder| write_plots_of(folder, &input))
}

/// Writes the page of claims over pairs of runs; `missing` lists what was not compared.
pub fn write_validation(
    path: &Path,
    title: &str,
    (claims, missing): (&[ClaimResult], &[String]),
    results: &[ExperimentResult],
) -> CliResult<()> {
    let (command, notes) = (command_line(), model_notes(results));
    let input =
        ValidationInput { title, command: &command, claims, missing, results, model_notes: &notes };
    schedlab_report::write_validation(path, &input).map_err(wrong)?;
    say(format!("report: {}", shown(path)));
    Ok(())
}

/// Writes only the figures into `folder`, if given, and prints where they are.
pub fn write_plots(
    folder: Option<&Path>,
    title: &str,
    results: &[ExperimentResult],
) -> CliResult<()> {
    let Some(folder) = folder else { return Ok(()) };
    let input = ReportInput {
        title,
        date: None,
        command: None,
        results,
        claims: &[],
        studies: &[],
        model_notes: &[],
        limits: Limits::default(),
    };
    write_plots_of(folder, &input)
}

fn write_plots_of(folder: &Path, input: &ReportInput<'_>) -> CliResult<()> {
    let written = schedlab_report::write_plots(folder, input).map_err(wrong)?;
    say(format!("plots: {} files in {}", written.len(), shown(folder)));
    Ok(())
}

fn wrong(error: ReportError) -> CliError {
    match &error {
        ReportError::Write { path, source } => CliError::file("write", path, source),
        _ => CliError::usage(error.to_string()),
    }
}

/// A path that a person can paste into a browser.
fn shown(path: &Path) -> String {
    std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path)).display().to_string()
}

/// The command line of this process, so that a reader can repeat it.
pub fn command_line() -> String {
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
    let mut line = program.into_owned();
    for word in words {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=.,:/+%@".contains(c));
        if plain && !word.is_empty() {
            line += &format!(" {word}");
        } else {
            line += &format!(" '{}'", word.replace('\'', "'\\''"));
        }
    }
    line
}

/// What the models of these results reproduce faithfully and what they leave out.
fn model_notes(results: &[ExperimentResult]) -> Vec<ModelNote> {
    let mut notes: Vec<ModelNote> = Vec::new();
    let simulated =
        results.iter().flat_map(|result| &result.runs).filter(|run| run.lane == LaneKind::Sim);
    for run in simulated {
        if notes.iter().any(|note| note.scheduler == run.scheduler) {
            continue;
        }
        if let Some(info) = schedlab_sched::registry::find(&run.scheduler) {
            notes.push(ModelNote {
                scheduler: info.name.to_string(),
                source: info.source.to_string(),
                leaves_out: info.leaves_out.to_string(),
            });
        }
    }
    notes
}
