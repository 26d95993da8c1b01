// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab report`: results to one HTML file and to plots. Also what other commands call to write
//! a report of their own runs.

use super::results;
use crate::args::ReportArgs;
use crate::error::{CliError, CliResult};
use crate::input;
use crate::output::say;
use schedlab_lab::ExperimentResult;
use schedlab_lab::claims::ClaimResult;
use schedlab_lab::validate::{Validation, ValidationResult};
use schedlab_report::{Limits, ModelNote, ReportError, ReportInput, StudyPage, ValidationInput};
use schedlab_run::{RunResult, check_version};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Largest results file: the demo's is a few megabytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Runs the command.
pub fn report(args: &ReportArgs) -> CliResult<()> {
    let mut all = Vec::new();
    for path in &args.results {
        let text = input::read_text(path, FILE_BYTES_MAX)?;
        all.extend(parse(path, &text)?);
    }
    let title = match &all[..] {
        [one] if !one.experiment.title.is_empty() => one.experiment.title.clone(),
        _ => "schedlab report".into(),
    };
    write(&args.output, args.plots.as_deref(), &title, &all)
}

/// What a report of a reproduction has beside the results.
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

/// Writes the report and says where it is.
pub fn write(
    path: &Path,
    plots: Option<&Path>,
    title: &str,
    results: &[ExperimentResult],
) -> CliResult<()> {
    write_by(path, plots, title, results, &command_line())
}

/// The same, made by `command`.
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
    schedlab_report::write_report(path, &input).map_err(wrong)?;
    say(format!("report: {}", shown(path)));
    plots.map_or(Ok(()), |folder| write_plots_of(folder, &input))
}

/// Writes the page of a validation.
pub fn write_validation(
    path: &Path,
    title: &str,
    (validation, found): (&Validation, &ValidationResult),
    results: &[ExperimentResult],
) -> CliResult<()> {
    let (command, notes) = (command_line(), model_notes(results));
    let input = ValidationInput {
        title,
        command: &command,
        validation,
        found,
        results,
        model_notes: &notes,
    };
    schedlab_report::write_validation(path, &input).map_err(wrong)?;
    say(format!("report: {}", shown(path)));
    Ok(())
}

/// Writes the figures alone into `folder`, if there is one, and says where they are.
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

/// The command line of this process, for the reader who wants to repeat it.
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

/// What the models that were used are faithful to and leave out.
fn model_notes(results: &[ExperimentResult]) -> Vec<ModelNote> {
    let mut notes: Vec<ModelNote> = Vec::new();
    let simulated = results.iter().flat_map(|result| &result.runs).filter(|run| run.lane == "sim");
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

/// Reads results: one run, an array of runs, or an array of experiments.
pub fn parse(path: &Path, text: &str) -> CliResult<Vec<ExperimentResult>> {
    let name = if path == Path::new("-") { "stdin".into() } else { path.display().to_string() };
    let wrong = |what: String| {
        CliError::usage_help(
            format!("{name}: {what}"),
            "give what `schedlab sim --json`, `compare --json` or `demo` wrote; `schedlab schema` \
             prints its shape",
        )
    };
    let value: Value =
        serde_json::from_str(text).map_err(|error| wrong(format!("no JSON: {error}")))?;
    let is_experiments = value.get(0).is_some_and(|first| first.get("experiment").is_some());
    if is_experiments {
        let runs = value.as_array().into_iter().flatten().filter_map(|one| one["runs"].as_array());
        runs.flatten().try_for_each(check_version).map_err(wrong)?;
        return serde_json::from_value(value).map_err(|error| wrong(error.to_string()));
    }
    let values = if let Value::Array(runs) = value { runs } else { vec![value] };
    values.iter().try_for_each(check_version).map_err(wrong)?;
    let runs: Result<Vec<RunResult>, _> = values.into_iter().map(serde_json::from_value).collect();
    let runs = runs.map_err(|error| wrong(error.to_string()))?;
    let workload = runs.first().map(|run| run.workload.clone()).unwrap_or_default();
    Ok(vec![results::own_experiment(&workload, runs)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_run::SCHEMA_VERSION;

    fn one() -> RunResult {
        RunResult { schema_version: SCHEMA_VERSION, workload: "w".into(), ..Default::default() }
    }

    #[test]
    fn every_shape_of_results_is_read() {
        let path = Path::new("x.json");
        let experiments = vec![results::own_experiment("w", vec![one(), one()])];
        for (text, runs) in [
            (serde_json::to_string(&one()).unwrap(), 1),
            (serde_json::to_string(&vec![one(), one()]).unwrap(), 2),
            (serde_json::to_string(&experiments).unwrap(), 2),
        ] {
            let parsed = parse(path, &text).unwrap();
            assert_eq!((parsed.len(), parsed[0].runs.len()), (1, runs));
        }
    }

    #[test]
    fn other_files_are_refused() {
        for text in ["", "{", "{}", "[1]", "\"x\"", "[{\"experiment\": 1}]"] {
            assert!(parse(Path::new("x.json"), text).is_err(), "{text}");
        }
    }

    /// The counters of a first version's totals would be lost without a word.
    #[test]
    fn results_of_another_version_are_refused_with_what_to_do() {
        let old = RunResult { schema_version: 1, schedlab_version: "0.0.9".into(), ..one() };
        let experiments = vec![results::own_experiment("w", vec![one(), old.clone()])];
        for text in
            [serde_json::to_string(&old).unwrap(), serde_json::to_string(&experiments).unwrap()]
        {
            let CliError::Report { diagnostic, .. } =
                parse(Path::new("x.json"), &text).unwrap_err()
            else {
                panic!("expected a report");
            };
            let error = diagnostic.to_string();
            assert!(error.contains("schema_version is 1, this program reads 2"), "{error}");
            assert!(error.contains("run the experiment again"), "{error}");
            assert!(error.contains("schedlab 0.0.9"), "{error}");
        }
    }
}
