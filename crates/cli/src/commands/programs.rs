// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab export` in the formats of the studies' own programs: which runs an input holds, which
//! of them are meant, and the files that are made of them.
//!
//! An input is the JSON of runs, a directory that `reproduce` or `compare` left, or a trace.

use super::analyse;
use super::export::ExportFormat;
use super::report;
use super::trace_input::TraceInput;
use crate::args::ExportArgs;
use crate::error::{CliError, CliResult, allowed_words};
use crate::input;
use crate::output::{AtomicFile, Out, say};
use schedlab_lab::programs;
use schedlab_lab::store::LOG_NAME;
use schedlab_run::{RunResult, values};
use schedlab_trace::InputFormat;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// Largest result that is read, and longest line of a log of runs.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Most values that an error lists of a dimension.
const VALUES_MAX: usize = 8;

/// Writes what the programs would have printed.
pub fn export(args: &ExportArgs, format: ExportFormat, out: &mut Out) -> CliResult<()> {
    let all = runs(&args.input)?;
    let mut chosen = choose(&all, &args.which)?;
    only_of_program(&mut chosen, format);
    match format {
        ExportFormat::Cpuperf => {
            one_condition(&chosen, &["n"])?;
            let text = programs::cpuperf(&chosen).map_err(|what| wrong(args, &what))?;
            write_one(&args.output, &text, out)
        }
        ExportFormat::Schedmark => {
            one_condition(&chosen, &["n", "workload", "scheduler", "policy"])?;
            let cells = programs::cells(&chosen);
            if cells.is_empty() {
                return Err(wrong(args, "no run is of one of study S2's cells"));
            }
            let files = cells.into_iter().map(|cell| (cell.name, cell.text)).collect();
            write_all(&args.output, &files)
        }
        ExportFormat::Time => {
            let text = programs::time(only(&chosen)?).map_err(|what| wrong(args, &what))?;
            write_one(&args.output, &text, out)
        }
        ExportFormat::Data => {
            let files = programs::data(only(&chosen)?).map_err(|what| wrong(args, &what))?;
            let named = files.into_iter().enumerate();
            let files = named.map(|(number, text)| (format!("{number}.data"), text)).collect();
            write_all(&args.output, &files)
        }
        _ if is_folder(&args.output) => write_all(&args.output, &tsv_files(args, &chosen)?),
        _ => {
            let text = programs::tsv(only(&chosen)?).map_err(|what| wrong(args, &what))?;
            write_one(&args.output, &text, out)
        }
    }
}

/// A directory of a study holds runs of other workloads too: they leave, if any of the program's is
/// there.
fn only_of_program(runs: &mut Vec<&RunResult>, format: ExportFormat) {
    let is_its = |run: &&RunResult| match format {
        ExportFormat::Cpuperf => ["load", "multiload", "cpuperf"].contains(&run.workload.as_str()),
        ExportFormat::Schedmark => programs::is_cell(run),
        _ => true,
    };
    if runs.iter().any(is_its) {
        runs.retain(is_its);
    }
}

fn wrong(args: &ExportArgs, what: &str) -> CliError {
    CliError::usage(format!("{}: {what}", args.input.display()))
}

/// A file for each run, with the names that study S0 gave its own.
fn tsv_files(args: &ExportArgs, runs: &[&RunResult]) -> CliResult<BTreeMap<String, String>> {
    let mut by_name: BTreeMap<String, Vec<&RunResult>> = BTreeMap::new();
    for run in runs.iter().copied().filter(|run| !run.progress.is_empty()) {
        by_name.entry(programs::tsv_name(run)).or_default().push(run);
    }
    let mut files = BTreeMap::new();
    for (name, runs) in by_name {
        let text = programs::tsv(only(&runs)?).map_err(|what| wrong(args, &what))?;
        files.insert(name, text);
    }
    if files.is_empty() {
        return Err(wrong(args, "none of these runs kept progress"));
    }
    Ok(files)
}

/// Whether a path means a directory: one that is there, or that ends as one.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.to_string_lossy().ends_with('/')
}

fn write_one(path: &Path, text: &str, out: &mut Out) -> CliResult<()> {
    if path == Path::new("-") {
        return Ok(out.write_all(text.as_bytes())?);
    }
    write_file(path, text)?;
    say(format!("wrote {}", path.display()));
    Ok(())
}

fn write_file(path: &Path, text: &str) -> CliResult<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(|error| CliError::file("write", path, &error))?;
    file.commit()
}

fn write_all(folder: &Path, files: &BTreeMap<String, String>) -> CliResult<()> {
    if folder == Path::new("-") {
        return Err(CliError::usage_help("these are several files", "give a directory"));
    }
    std::fs::create_dir_all(folder).map_err(|error| CliError::file("create", folder, &error))?;
    for (name, text) in files {
        write_file(&folder.join(name), text)?;
    }
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    say(format!("wrote {} in {}", names.join(", "), folder.display()));
    Ok(())
}

/// The runs of an input.
fn runs(path: &Path) -> CliResult<Vec<RunResult>> {
    if path.is_dir() {
        return stored_runs(path);
    }
    // A trace is opened twice, which a pipe does not bear: what comes through one is JSON.
    if path == Path::new("-") || TraceInput::open(path)?.format() == InputFormat::Json {
        let text = input::read_text(path, FILE_BYTES_MAX)?;
        let results = report::parse(path, &text)?;
        return Ok(results.into_iter().flat_map(|result| result.runs).collect());
    }
    Ok(vec![analyse::run_of(path)?])
}

/// The runs of a directory of results, and of those in it.
fn stored_runs(folder: &Path) -> CliResult<Vec<RunResult>> {
    let wrong = |error: std::io::Error| CliError::file("list", folder, &error);
    let mut logs = vec![folder.join(LOG_NAME)];
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        logs.push(entry.map_err(wrong)?.path().join(LOG_NAME));
    }
    logs.retain(|log| log.is_file());
    logs.sort();
    let mut runs = Vec::new();
    for log in &logs {
        read_log(log, &mut runs)?;
    }
    if logs.is_empty() {
        return Err(CliError::usage_help(
            format!("{} holds no {LOG_NAME}", folder.display()),
            "give a directory that `reproduce` or `compare EXPERIMENT.toml` wrote",
        ));
    }
    Ok(runs)
}

/// Reads a log line by line; a damaged line is no run, and said so.
fn read_log(path: &Path, runs: &mut Vec<RunResult>) -> CliResult<()> {
    let wrong = |error: std::io::Error| CliError::file("read", path, &error);
    let file = std::fs::File::open(path).map_err(wrong)?;
    let mut nr_damaged = 0;
    for line in BufReader::new(file).split(b'\n') {
        match schedlab_lab::store::result_of_line(&line.map_err(wrong)?) {
            Some(run) => runs.push(run),
            None => nr_damaged += 1,
        }
    }
    if nr_damaged > 0 {
        say(format!("warning: {}: {nr_damaged} damaged lines are left out", path.display()));
    }
    Ok(())
}

/// The value of a dimension that `--which` may name.
fn value_of(run: &RunResult, name: &str) -> String {
    match name {
        "repetition" => run.repetition.to_string(),
        "model" if run.lane == "sim" => run.scheduler.clone(),
        _ => values::dimension(run, name),
    }
}

/// All dimensions of a run.
fn names_of(run: &RunResult) -> BTreeSet<String> {
    let fixed = ["lane", "scheduler", "workload", "cpus", "seed", "repetition"].map(String::from);
    // A model's name without the policy, which belongs to its `scheduler`.
    let model = (run.lane == "sim").then(|| "model".to_string());
    fixed.into_iter().chain(model).chain(run.parameters.keys().cloned()).collect()
}

/// The runs with all of these values.
fn choose<'r>(all: &'r [RunResult], which: &[String]) -> CliResult<Vec<&'r RunResult>> {
    let mut chosen: Vec<&RunResult> = all.iter().collect();
    for text in which {
        let (name, wanted) = input::pair("--which", text)?;
        let names: BTreeSet<String> = all.iter().flat_map(names_of).collect();
        if !names.contains(name) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(CliError::usage(format!(
                "no run has a dimension {name:?}: {}",
                allowed_words(name, &names)
            )));
        }
        let before = chosen.clone();
        chosen.retain(|run| value_of(run, name).eq_ignore_ascii_case(wanted));
        if chosen.is_empty() {
            return Err(CliError::usage_help(
                format!("no run has {name}={wanted}"),
                format!("there are {}", shown(name, &before)),
            ));
        }
    }
    match chosen.is_empty() {
        true => Err(CliError::usage("there are no runs in it")),
        false => Ok(chosen),
    }
}

/// `scheduler=linux-6.1|rr|fcfs`.
fn shown(name: &str, runs: &[&RunResult]) -> String {
    let mut values: Vec<String> = Vec::new();
    for value in runs.iter().map(|run| value_of(run, name)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let more = if values.len() > VALUES_MAX { "|..." } else { "" };
    values.truncate(VALUES_MAX);
    format!("{name}={}{more}", values.join("|"))
}

/// The names in which runs differ, but for `free`.
fn differing(runs: &[&RunResult], free: &[&str]) -> Vec<String> {
    let names: BTreeSet<String> = runs.iter().flat_map(|run| names_of(run)).collect();
    let differs = |name: &String| {
        !free.contains(&name.as_str())
            && runs.windows(2).any(|two| value_of(two[0], name) != value_of(two[1], name))
    };
    names.into_iter().filter(differs).collect()
}

/// The one run that is meant.
fn only<'r>(runs: &[&'r RunResult]) -> CliResult<&'r RunResult> {
    match runs {
        [one] => Ok(one),
        _ => Err(ambiguous(runs, &differing(runs, &[]))),
    }
}

/// Runs that may differ in `free` and in the repetition only.
fn one_condition(runs: &[&RunResult], free: &[&str]) -> CliResult<()> {
    let free: Vec<&str> = free.iter().copied().chain(["seed", "repetition"]).collect();
    let names = differing(runs, &free);
    if names.is_empty() { Ok(()) } else { Err(ambiguous(runs, &names)) }
}

fn ambiguous(runs: &[&RunResult], names: &[String]) -> CliError {
    let choices: Vec<String> = names.iter().map(|name| shown(name, runs)).collect();
    CliError::usage_help(
        format!("{} runs fit, and they are not alike", runs.len()),
        format!("choose with --which NAME=VALUE: {}", choices.join(", ")),
    )
}
