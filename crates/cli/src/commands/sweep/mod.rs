// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab compare EXPERIMENT.toml`: runs every run of an experiment file on all CPUs and stores
//! each one. Then it makes tables and figures with intervals.
//!
//! `prepare` makes the plan and the lanes, `repeat` runs what a manifest describes, `show` prints
//! tables.

mod prepare;
mod repeat;
mod show;

pub use prepare::{Prepared, settings};
pub use repeat::repeat;

use super::progress::{Bar, Unavailable, finish_with_failures};
use super::report;
use super::results::{self, Expectations};
use crate::args::{CompareArgs, SweepArgs};
use crate::error::{CliError, CliResult, EXIT_INTERRUPTED};
use crate::output::{Out, say};
use crate::table::counted;
use schedlab_host::HostLane;
use schedlab_lab::store::{Begin, Folder, LOG_NAME, RunLog, export, held};
use schedlab_lab::{ExperimentResult, Failure};
use schedlab_run::LaneError;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Whether the argument names an experiment file.
pub fn is_experiment(text: &str) -> bool {
    text.to_ascii_lowercase().ends_with(".toml")
}

/// Refuses options of a sweep for a single workload, which has no directory of results.
pub fn refuse_options(args: &SweepArgs) -> CliResult<()> {
    let given = [
        ("--output", args.output.is_some()),
        ("--dry-run", args.dry_run),
        ("--resume", args.resume),
        ("--fresh", args.fresh),
        ("--lane", args.lane.is_some()),
        ("--plots", args.plots),
    ];
    refuse(&given, "belongs to an experiment file (.toml)", "name one, or leave the option out")
}

/// Refuses the first given option, with the reason `why`.
fn refuse(given: &[(&str, bool)], why: &str, help: &str) -> CliResult<()> {
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(CliError::usage_help(format!("{name} {why}"), help)),
        None => Ok(()),
    }
}

/// Refuses options for settings that the experiment file makes.
fn refuse_file_options(args: &CompareArgs) -> CliResult<()> {
    let tasks = &args.tasks;
    let given = [
        ("--scheduler", !args.scheduler.is_empty()),
        ("--host", !args.host.is_empty()),
        ("--cpus", args.cpus.is_some()),
        ("--repetitions", args.repetitions.is_some()),
        ("--param", !tasks.params.is_empty()),
        ("--policy", tasks.policy.is_some()),
        ("--nice", tasks.nice.is_some()),
        ("--until", tasks.until.is_some()),
        ("--set", !args.machine.tunables.is_empty()),
        ("--machine", args.machine.machine.is_some()),
        ("--keep", args.keep),
    ];
    refuse(&[("--markdown", args.markdown)], "is for one workload", "use --json, or tables.csv")?;
    refuse(&given, "is given beside an experiment file", "write it into the file")?;
    let analysis = [("--analysis", args.analysis.analysis)];
    refuse(&analysis, "is given beside an experiment file", "give it with one of its workloads")
}

/// Runs the command with an experiment file.
pub fn sweep(args: &CompareArgs, path: &str, out: &mut Out) -> CliResult<()> {
    refuse_file_options(args)?;
    let prepared = Prepared::new(args, Path::new(path))?;
    prepared.sweep.plan.notes.iter().for_each(|note| say(format!("note: {note}")));
    let output = args.sweep.output.clone().unwrap_or_else(|| folder_of(path));
    if args.sweep.dry_run {
        return show::dry_run(&prepared, &output, out);
    }
    let begin = match (args.sweep.fresh, args.sweep.resume) {
        (true, _) => Begin::Fresh,
        (_, true) => Begin::Resume,
        _ => Begin::Any,
    };
    let (log, _lock) = open(&prepared, &output, begin)?;
    let failures = run_missing(&prepared, &log, &output, threads(args))?;
    let mut log = held(&log);
    let results = prepared.sweep.load(&mut log, &output, false)?;
    results::warn(results.iter().flat_map(|result| &result.runs));
    finish(&prepared, &mut log, &results, &failures, &output, args)?;
    show::tables(&results, args.json, out)?;
    let expectations = Expectations::of(results.iter().flat_map(|result| &result.runs));
    match expectations.table() {
        // The JSON holds only measures, so the unmet expectations go to stderr.
        Some(table) if args.json => say(table),
        Some(table) => out.line(table)?,
        None => {}
    }
    out.finish_now()?;
    let finished = finish_with_failures(&failures, Unavailable::IsSaid);
    // A failed check takes precedence.
    expectations.check(&prepared.sweep.title()).and(finished)
}

/// Runs what `output` does not hold yet of an experiment file and stores each run. Returns all
/// results with their tasks.
pub fn stored(
    prepared: &Prepared,
    output: &Path,
    begin: Begin,
    threads: usize,
) -> CliResult<(Vec<ExperimentResult>, Vec<Failure>)> {
    let (log, _lock) = open(prepared, output, begin)?;
    let failures = run_missing(prepared, &log, output, threads)?;
    let mut log = held(&log);
    let results = prepared.sweep.load(&mut log, output, true)?;
    prepared.sweep.write_manifest(&mut log, &failures, output, &[LOG_NAME.into()])?;
    Ok((results, failures))
}

/// Opens and locks the directory of a sweep; no other process writes to it while the file is open.
fn open(prepared: &Prepared, output: &Path, begin: Begin) -> CliResult<(Arc<Mutex<RunLog>>, File)> {
    let Folder { log, lock } = Folder::open(output, &prepared.sweep, begin)?;
    if log.nr_damaged() > 0 {
        say(format!(
            "warning: damaged in {}: {}; their runs are run again",
            output.join(LOG_NAME).display(),
            counted(log.nr_damaged(), "line", "lines")
        ));
    }
    Ok((Arc::new(Mutex::new(log)), lock))
}

/// The default directory: `a/b.toml` gives `b.results`.
fn folder_of(path: &str) -> PathBuf {
    let stem = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("{stem}.results"))
}

fn threads(args: &CompareArgs) -> usize {
    super::sim::threads(&args.machine)
}

/// Runs what the log does not hold yet.
fn run_missing(
    prepared: &Prepared,
    log: &Arc<Mutex<RunLog>>,
    output: &Path,
    threads: usize,
) -> CliResult<Vec<Failure>> {
    let plan = &prepared.sweep.plan;
    let nr_stored = prepared.sweep.nr_stored(&held(log));
    prepared.announce(nr_stored, output);
    end_on_signal(log, plan.runs.len(), output);
    let bar = Bar::new(plan);
    bar.skip(nr_stored);
    let host = HostLane;
    let step = |run: usize, error: Option<&LaneError>| bar.step(&plan.runs[run], error);
    let failures = prepared.sweep.run_missing(log, &prepared.lanes(&host), threads, &step);
    bar.finish();
    failures.map_err(|error| {
        let stored = held(log).len();
        say(format!("{stored} of {} runs are stored in {}", plan.runs.len(), output.display()));
        CliError::file("write", &output.join(LOG_NAME), &error)
    })
}

/// On Ctrl-C and similar signals, ends the program between two lines of the log and prints what is
/// stored. Tasks of a run on this machine end with the program: their launcher kills them.
fn end_on_signal(log: &Arc<Mutex<RunLog>>, nr_runs: usize, output: &Path) {
    let written = Written { log: Arc::clone(log), nr_runs, output: output.to_path_buf() };
    let is_first = held(&WRITTEN).replace(written).is_none();
    let handler = || {
        if let Some(written) = &*held(&WRITTEN) {
            let log = held(&written.log);
            say(format!(
                "\ninterrupted: {} of {} runs are stored in {}; the same command goes on there",
                log.len(),
                written.nr_runs,
                written.output.display()
            ));
            std::process::exit(EXIT_INTERRUPTED);
        }
    };
    if is_first && let Err(error) = ctrlc::set_handler(handler) {
        say(format!("note: Ctrl-C will end the program without a word: {error}"));
    }
}

/// The files being written, for the thread that ends the program.
struct Written {
    log: Arc<Mutex<RunLog>>,
    nr_runs: usize,
    output: PathBuf,
}

static WRITTEN: Mutex<Option<Written>> = Mutex::new(None);

/// Writes all files that are made from the results.
fn finish(
    prepared: &Prepared,
    log: &mut RunLog,
    results: &[ExperimentResult],
    failures: &[Failure],
    output: &Path,
    args: &CompareArgs,
) -> CliResult<()> {
    let mut files = vec![LOG_NAME.to_string()];
    if results.iter().all(|result| result.runs.is_empty()) {
        say("no run gave a result: there is nothing to report");
    } else {
        files.extend(export::write(results, output)?);
        let title = prepared.sweep.title();
        let plots = args.sweep.plots.then(|| output.join("plots"));
        let own = output.join("report.html");
        // Leave out the number of threads: equal results must give equal reports.
        let command = format!("schedlab compare {}", prepared.sweep.source.file_name());
        report::write_by(&own, plots.as_deref(), &title, results, &command)?;
        files.push("report.html".into());
        if let Some(path) = &args.report {
            report::write_by(path, None, &title, results, &command)?;
        }
    }
    prepared.sweep.write_manifest(log, failures, output, &files)?;
    say(format!("results: {}", output.display()));
    Ok(())
}
