// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab validate`: compares kernels with their models in a study, by default the built-in one.
//!
//! The command runs, stores and judges it like any study, and prints a table of its comparisons.

pub mod cases;
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
use schedlab_lab::cases::{Half, Made};
use schedlab_lab::claims::tables::{label, of_kind};
use schedlab_lab::claims::{Answer, ClaimResult, Evidence, PairKind, judge};
use schedlab_lab::identity::Program;
use schedlab_lab::pairs::Wanted;
use schedlab_lab::plan::Note;
use schedlab_lab::store::Settings;
use schedlab_lab::studies::{Source, VALIDATION};
use schedlab_run::LaneKind;
use schedlab_run::file::write_whole;
use schedlab_sim::{SimLane, Watchdog};
use std::path::{Path, PathBuf};

/// Examples at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  schedlab validate --lane vm --quick
  schedlab validate --lane vm --kernel 6.12,6.18 --details
  schedlab validate --json | jq '.[].checks[] | select(.scheduler == \"6.12\") | .pair.units'
  schedlab validate my-validation.toml
  schedlab validate --lane host --details                  (is this machine quiet enough?)
  schedlab validate --cases development --kernel 6.12 --details
  schedlab validate --cases development --lane host --quick

Kernels run in guests with counted time (lane vm) and on this machine (lane host). The same command
resumes where it was stopped. Exit code 1 if a comparison fails, or if one accepts a model that is
wrong on purpose; the output names both.";

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Study file with [claim.pairs] (`schedlab schema experiment`) [default: the built-in one]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Validate only against kernels in these lanes: vm, host
    #[arg(long, value_parser = lane(), value_delimiter = ',')]
    pub lane: Vec<LaneKind>,
    /// Validate only against these kernels, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "SERIES")]
    pub kernel: Vec<String>,
    /// Compare random workloads instead: development, or held-out for the figure alone
    ///
    /// The file lists their seeds in [[cases]]. The result counts how many comparisons are within
    /// the tolerance, or within the kernel's own variation. They run in guests; with --lane host,
    /// those of one CPU run on this machine.
    #[arg(long, value_name = "HALF", value_parser = cases::half)]
    pub cases: Option<Half>,
    /// Only these sets of random workloads, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "SET", requires = "cases")]
    pub only: Vec<String>,
    /// Also put the figures of --cases into this file, beside those of other kernels
    #[arg(long, value_name = "FILE", requires = "cases")]
    pub store: Option<PathBuf>,
    /// Omit the kernels, workloads and cases that the file marks as slow
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
    let wanted = wanted(args)?;
    let output = match args.cases {
        Some(_) => args.verdicts.folder("validation-cases"),
        None => args.verdicts.folder("validation"),
    };
    let source = source(args.file.as_deref(), &wanted)?;
    let repetitions = schedlab_host::REPETITIONS_DEFAULT;
    let source =
        source.with_this_machine(|| host::model(output, args.verdicts.fresh, repetitions))?;
    let study = source.study.clone();
    let prepared = prepare(source, wanted)?;
    let plan = &prepared.sweep.plan;
    plan.notes.iter().for_each(|note| say(format!("note: {note}")));
    let threads = || std::thread::available_parallelism().map_or(1, |count| count.get());
    let threads = args.threads.map_or_else(threads, usize::from);
    cases::write_workloads(&study.of_cases.cases, output)?;
    // Each half is an experiment of its own.
    let runs = match args.cases {
        Some(half) => output.join(format!("runs-{}", half.name())),
        None => output.join("runs"),
    };
    let (results, failures) = stored(&prepared, &runs, args.verdicts.begin(), threads)?;
    if args.cases.is_some() {
        let mut agreement = schedlab_lab::cases::judge(&study.of_cases, &results, plan, &failures);
        let made = Made { study: &study.of_cases, results: &results, plan };
        cases::explain(&mut agreement, made, &models(), threads);
        cases::write(&agreement, output, args.store.as_deref())?;
        match args.verdicts.json {
            true => out.json(&agreement)?,
            false => cases::print(&agreement, args.verdicts.details, out)?,
        }
        out.finish_now()?;
        finish_with_failures(&failures, Unavailable::IsSaid)?;
        return cases::finish(&agreement);
    }
    results::warn(results.iter().flat_map(|result| &result.runs));
    let claims = judge(
        &study.claims,
        Evidence {
            study: &study.name,
            results: &results,
            nr_cpus: schedlab_host::allowed_cpus().weight(),
            lanes: &[],
            plan,
            failures: &failures,
        },
    );
    let missing = missing(&claims, &plan.notes);
    let json = serde_json::to_string_pretty(&claims)
        .map_err(|error| CliError::usage(error.to_string()))?;
    write_whole(&output.join("claims.json"), (json + "\n").as_bytes())?;
    write_whole(&output.join("tables.md"), show::markdown(&claims).as_bytes())?;
    say(format!("results: {}", output.display()));
    let page = output.join("report.html");
    report::write_validation(&page, &prepared.sweep.title(), (&claims, &missing), &results)?;
    match args.verdicts.json {
        true => out.json(&claims)?,
        false => show::terminal(&claims, &missing, args.verdicts.details, out)?,
    }
    out.finish_now()?;
    finish_with_failures(&failures, Unavailable::IsSaid)?;
    finish(&claims, &missing)
}

/// The study of a file, or the built-in one.
fn source(file: Option<&Path>, wanted: &Wanted) -> CliResult<Source> {
    let Some(path) = file else {
        return Ok(Source::with_pairs("validate.toml", VALIDATION.into(), None, wanted)?);
    };
    let source = Source::read_pairs(path, wanted)?;
    let has_pairs = source.study.claims.iter().any(|claim| claim.pairs.is_some());
    match has_pairs || wanted.cases.is_some() {
        true => Ok(source),
        false => Err(CliError::usage_help(
            format!("{} compares no pairs: it has no [claim.pairs]", path.display()),
            "give it to `schedlab reproduce`, or say what is compared",
        )),
    }
}

/// What was not compared, and why.
fn missing(claims: &[ClaimResult], notes: &[Note]) -> Vec<String> {
    let mut missing: Vec<String> = notes.iter().map(Note::to_string).collect();
    for (check, pair) in of_kind(claims, PairKind::Agrees).filter(|(check, _)| check.nr_runs == 0) {
        let reason = check.reason.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = format!("{}: {reason}", label(check, pair));
        if !missing.contains(&text) && !missing.contains(&reason) {
            missing.push(text);
        }
    }
    missing
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
        cases: args.cases,
        sets: args.only.clone(),
    })
}

/// Simulates the models. Wrong ones may starve tasks; the metrics judge that.
fn models() -> SimLane {
    SimLane { watchdog: Watchdog::Off, charges_textbooks: true, ..SimLane::default() }
}

fn prepare(source: Source, wanted: Wanted) -> CliResult<Prepared> {
    let settings = Settings { pairs: Some(wanted), ..settings(1, &[], &models()) };
    let runs_max = schedlab_lab::plan::RUNS_MAX_DEFAULT;
    Prepared::of(source, settings, &Program::this(), &Schedulers::default(), runs_max)
}

/// Returns the exit code, with the names of failed comparisons.
fn finish(claims: &[ClaimResult], missing: &[String]) -> CliResult<()> {
    if of_kind(claims, PairKind::Agrees).all(|(check, _)| check.nr_runs == 0) {
        return Err(CliError::new(
            Exit::Unavailable,
            format!("no kernel could be run: {}", missing.join("; ")),
            "`schedlab doctor` shows what this machine can do",
        ));
    }
    let mut parts = Vec::new();
    for (kind, what) in [
        (PairKind::Agrees, "outside of the tolerance"),
        (PairKind::Rejects, "accepts a wrong model"),
        (PairKind::Moves, "no knob moves it"),
    ] {
        let fails = claims.iter().flat_map(|claim| {
            let of_claim = of_kind(std::slice::from_ref(claim), kind);
            let fails = of_claim.filter(|(check, _)| check.answer == Answer::Fails);
            fails.map(|(check, pair)| format!("{}: {}", label(check, pair), claim.id))
        });
        let names: Vec<String> = fails.collect();
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
        for quick in [false, true] {
            let wanted = Wanted {
                quick,
                host_release: Some("6.18.5".into()),
                lanes: vec![LaneKind::Host],
                ..Wanted::default()
            };
            let source = source(None, &wanted).unwrap();
            let source = source.with_this_machine(|| Machines.this_machine()).unwrap();
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
