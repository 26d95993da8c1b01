// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab reproduce`: repeats the studies' experiments and judges each of their claims.
//!
//! Each study has its own directory below the output. The command stores each run there when it
//! ends, so an interrupted command resumes.

mod show;

use super::progress::{Unavailable, finish_with_failures};
use super::report::{self, Judged};
use super::sweep::{Prepared, settings, stored};
use super::{results, sim};
use crate::args::ReproduceArgs;
use crate::error::{CliError, CliResult};
use crate::machine;
use crate::output::{Out, say};
use crate::schedulers::Schedulers;
use schedlab_lab::claims::{ClaimResult, Evidence, judge};
use schedlab_lab::identity::Program;
use schedlab_lab::store::{Begin, Settings};
use schedlab_lab::studies::{self, Source};
use schedlab_lab::{ExperimentResult, Failure};
use schedlab_report::StudyPage;
use schedlab_run::file::AtomicFile;
use schedlab_sim::Watchdog;
use std::path::Path;

/// The results of one study.
struct Reproduced {
    results: Vec<ExperimentResult>,
    failures: Vec<Failure>,
    claims: Vec<ClaimResult>,
    page: StudyPage,
}

/// Runs the command.
pub fn reproduce(args: &ReproduceArgs, out: &mut Out) -> CliResult<()> {
    let sources = sources(&args.studies)?;
    let output = args.verdicts.folder("reproduction");
    let begin = args.verdicts.begin();
    let mut claims = Vec::new();
    let mut all = Vec::new();
    let mut failures = Vec::new();
    let mut names = Vec::new();
    let mut pages = Vec::new();
    for source in sources {
        names.push(source.study.name.clone());
        let folder = output.join(&source.study.name);
        let mut found = one(args, source, &folder, begin)?;
        claims.append(&mut found.claims);
        all.append(&mut found.results);
        failures.append(&mut found.failures);
        pages.push(found.page);
    }
    results::warn(all.iter().flat_map(|result| &result.runs));
    let judged = Judged { claims: &claims, studies: &pages };
    write(output, &names, &all, judged, args.plots)?;
    match args.verdicts.json {
        true => out.json(&claims)?,
        false => show::table(&claims, &pages, args.verdicts.details, out)?,
    }
    out.finish_now()?;
    finish_with_failures(&failures, Unavailable::IsSaid)
}

/// The named studies or study files; all built-in studies if none is named.
fn sources(wanted: &[String]) -> CliResult<Vec<Source>> {
    let mut built_in = studies::built_in()?;
    if wanted.is_empty() {
        return Ok(built_in);
    }
    let mut found = Vec::new();
    for name in wanted {
        if name.to_ascii_lowercase().ends_with(".toml") {
            found.push(Source::read(Path::new(name))?);
            continue;
        }
        let place = built_in.iter().position(|s| s.study.name.eq_ignore_ascii_case(name));
        let Some(place) = place else {
            return Err(unknown(name, &built_in, &found));
        };
        found.push(built_in.remove(place));
    }
    Ok(found)
}

/// The error for a name that matches no study, or only a study already in `found`.
fn unknown(name: &str, left: &[Source], found: &[Source]) -> CliError {
    let is_taken = found.iter().any(|s| s.study.name.eq_ignore_ascii_case(name));
    if is_taken {
        return CliError::usage_help(format!("study {name:?} is named twice"), "name it once");
    }
    let all = left.iter().chain(found).map(|source| source.study.name.as_str());
    let mut names: Vec<&str> = all.collect();
    names.sort_unstable();
    CliError::usage_help(
        format!("no study is called {name:?}"),
        format!("allowed are {}, and files that end in .toml", names.join(", ")),
    )
}

/// Runs the missing runs of a study and judges its claims.
fn one(args: &ReproduceArgs, source: Source, folder: &Path, begin: Begin) -> CliResult<Reproduced> {
    let mut lane = machine::sim_lane(&args.machine)?;
    // Some studies measure how long a scheduler starves tasks, so starvation must not end their
    // runs.
    if lane.watchdog == Watchdog::Auto {
        lane.watchdog = Watchdog::Off;
    }
    let settings = Settings {
        quick: args.quick,
        host_repetitions: args.repetitions,
        analysis: args.analysis.thresholds().map(|t| [t.starved_ns, t.wasted_ns]),
        ..settings(args.seed, &args.lane, &lane)
    };
    let study = source.study.clone();
    let runs_max = schedlab_lab::plan::RUNS_MAX_DEFAULT;
    let prepared =
        Prepared::of(source, settings, &Program::this(), &Schedulers::default(), runs_max)?;
    prepared.sweep.plan.notes.iter().for_each(|note| say(format!("note: {note}")));
    let (results, failures) = stored(&prepared, folder, begin, sim::threads(&args.machine))?;
    let nr_cpus = schedlab_host::allowed_cpus().weight();
    let evidence = Evidence {
        study: &study.name,
        results: &results,
        nr_cpus,
        lanes: &args.lane,
        plan: &prepared.sweep.plan,
        failures: &failures,
    };
    let claims = judge(&study.claims, evidence);
    let page = StudyPage::of(&study, &results, nr_cpus);
    Ok(Reproduced { results, failures, claims, page })
}

/// Writes the report, the claims and the results.
fn write(
    output: &Path,
    names: &[String],
    results: &[ExperimentResult],
    judged: Judged<'_>,
    plots: bool,
) -> CliResult<()> {
    let path = output.join("claims.json");
    let mut file = AtomicFile::create(&path)?;
    serde_json::to_writer_pretty(&mut file, judged.claims)
        .map_err(|error| CliError::file("write", &path, &error.into()))?;
    file.commit()?;
    if results.iter().all(|result| result.runs.is_empty()) {
        say("no run gave a result: there is nothing to report");
        return Ok(());
    }
    let title = match names {
        [one] => format!("Study {one} reproduced"),
        _ => format!("{} studies of Linux schedulers reproduced", names.len()),
    };
    let plots = plots.then(|| output.join("plots"));
    report::write_claims(&output.join("report.html"), plots.as_deref(), &title, results, judged)
}
