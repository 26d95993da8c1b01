// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab compare --manifest`: a sweep again, and whether it gives the same.
//!
//! A simulated result must be the same to the bit. A measured one cannot be: there the means of the
//! measures then and now are told, and how far single runs are apart.

use super::manifest::{self, Manifest, ManifestRun};
use super::prepare::{Prepared, machine_is_default};
use super::{check_failed, held, refuse, refuse_file_options, threads};
use crate::args::CompareArgs;
use crate::commands::progress::Bar;
use crate::commands::studies::Source;
use crate::error::{CliError, CliResult};
use crate::output::{Out, say};
use crate::schedulers::Schedulers;
use crate::table::{self, digits, duration, number};
use schedlab_host::HostLane;
use schedlab_lab::identity::Program;
use schedlab_lab::{ExecuteOptions, execute_some};
use schedlab_metrics::stats;
use schedlab_run::values;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// Runs that a table of differences shows.
const SHOWN: usize = 20;

/// How the repetition of one run went.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Comparison {
    label: String,
    lane: String,
    seed: u64,
    /// Simulated: the sums are equal. Measured: `None`, they never are.
    is_identical: Option<bool>,
    /// Measures then and now.
    measures: BTreeMap<String, [Option<f64>; 2]>,
    /// Why there is no result now.
    error: Option<String>,
}

/// Runs the command.
pub fn repeat(args: &CompareArgs, out: &mut Out) -> CliResult<()> {
    let Some(path) = &args.sweep.manifest else { return Ok(()) };
    refuse_file_options(args)?;
    let given = [
        ("--output", args.sweep.output.is_some()),
        ("--dry-run", args.sweep.dry_run),
        ("--plots", args.sweep.plots),
        ("--report", args.report.is_some()),
        ("--seed", args.tasks.seed != 1),
        ("--hz, --costs, --preempt or --watchdog", !machine_is_default(&args.machine)),
    ];
    refuse(&given, "is given beside --manifest", "the manifest says all: leave the option out")?;
    let then = Manifest::read(path)?;
    if !then.is_complete {
        return Err(CliError::usage_help(
            format!("{} is of a sweep that was not finished", path.display()),
            "finish it first: run its experiment again with the same --output",
        ));
    }
    let prepared = prepare(&then, args.sweep.runs_max as usize)?;
    let now = run_all(&prepared, threads(args));
    let compared: Vec<Comparison> =
        then.runs.iter().zip(now).map(|(then, now)| compare(then, now)).collect();
    show(&compared, args.json, out)
}

/// The plan of the manifest, which must be the one that was run.
fn prepare(then: &Manifest, runs_max: usize) -> CliResult<Prepared> {
    let Manifest { experiment_file, experiment_text, workload_files, settings, .. } = then;
    let source = Source::of_manifest(
        experiment_file,
        experiment_text.clone(),
        workload_files.clone(),
        settings.validation.as_ref(),
    )?;
    let (made_by, this) = (then.program(), Program::this());
    let prepared =
        Prepared::of(source, settings.clone(), &made_by, &Schedulers::default(), runs_max)?;
    let is_other_program = made_by != this;
    if is_other_program {
        let name = |Program { version, models }| format!("schedlab {version} with models {models}");
        say(format!("note: the results are of {}, this is {}", name(made_by), name(this)));
    }
    let is_same = prepared.plan_key == then.plan_key;
    let labels = |index: usize| manifest::entry(&prepared, index, None).label;
    let names_fit = then.runs.len() == prepared.plan.runs.len()
        && then.runs.iter().enumerate().all(|(index, run)| run.label == labels(index));
    let can_be_compared = is_same || (is_other_program && names_fit);
    if !can_be_compared {
        return Err(CliError::usage_help(
            "the runs of the manifest are not those that its text gives",
            "it was changed, or this program makes other runs of it: nothing can be compared",
        ));
    }
    Ok(prepared)
}

fn run_all(prepared: &Prepared, threads: usize) -> Vec<ManifestRun> {
    let plan = &prepared.plan;
    let slots: Vec<Mutex<Option<ManifestRun>>> =
        plan.runs.iter().map(|_| Mutex::new(None)).collect();
    let bar = Bar::new(plan);
    let host = HostLane;
    let lanes = prepared.lanes(&host);
    let options = ExecuteOptions { threads, seed: prepared.settings.seed };
    execute_some(plan, &lanes, options, &|_| true, &|run, result| {
        bar.step(&plan.runs[run], result.as_ref().err());
        let error = result.as_ref().err().map(|error| error.text().to_string());
        let entry = manifest::entry(prepared, run, result.as_ref().ok());
        *held(&slots[run]) = Some(ManifestRun { error, ..entry });
        ControlFlow::Continue(())
    });
    bar.finish();
    let not_run = |run| ManifestRun {
        error: Some("its thread ended before it did".into()),
        ..manifest::entry(prepared, run, None)
    };
    let taken = slots
        .iter()
        .enumerate()
        .map(|(run, slot)| held(slot).take().unwrap_or_else(|| not_run(run)));
    taken.collect()
}

fn compare(then: &ManifestRun, now: ManifestRun) -> Comparison {
    let is_identical = (then.lane == "sim").then(|| {
        then.result_sha256 == now.result_sha256 && (then.error.is_some() == now.error.is_some())
    });
    let names = then.measures.keys().chain(now.measures.keys());
    let measures = names
        .map(|name| {
            let values = [then.measures.get(name).copied(), now.measures.get(name).copied()];
            (name.clone(), values)
        })
        .collect();
    Comparison {
        label: now.label,
        lane: now.lane,
        seed: now.seed,
        is_identical,
        measures,
        error: now.error,
    }
}

fn show(compared: &[Comparison], json: bool, out: &mut Out) -> CliResult<()> {
    let simulated = compared.iter().filter(|one| one.is_identical.is_some()).count();
    let identical = compared.iter().filter(|one| one.is_identical == Some(true)).count();
    let measured: Vec<&Comparison> =
        compared.iter().filter(|one| one.is_identical.is_none()).collect();
    let differing: Vec<&Comparison> =
        compared.iter().filter(|one| one.is_identical == Some(false)).collect();
    if json {
        out.json(&compared)?;
    } else {
        if simulated > 0 {
            out.line(format!("simulated: {identical} of {simulated} results are identical"))?;
        }
        if !differing.is_empty() {
            out.line(differences(&differing))?;
        }
        if !measured.is_empty() {
            out.line(measured_table(&measured))?;
        }
    }
    out.finish_now()?;
    if differing.is_empty() {
        return Ok(());
    }
    Err(check_failed(
        format!("{} of {simulated} simulated results are not what they were", differing.len()),
        "equal version, text, settings and seed must give equal results: if the version is the \
         same, please report it",
    ))
}

fn value_of(measure: &str, value: f64) -> String {
    if values::is_time(measure) { duration(value.round().max(0.0) as u64) } else { digits(value) }
}

fn differences(differing: &[&Comparison]) -> String {
    let mut rows = table::table(&["run", "seed", "measure", "then", "now"]);
    for one in differing.iter().take(SHOWN) {
        let show = |name: &str, value: Option<f64>| {
            number(value.map_or_else(|| "-".into(), |value| value_of(name, value)))
        };
        let mut changed = one.measures.iter().filter(|(_, values)| values[0] != values[1]);
        let Some((name, values)) = changed.next() else {
            let what = one.error.clone().unwrap_or_else(|| "another measure".into());
            rows.add_row([one.label.clone(), one.seed.to_string(), what]);
            continue;
        };
        rows.add_row([
            comfy_table::Cell::new(&one.label),
            number(one.seed),
            comfy_table::Cell::new(name),
            show(name, values[0]),
            show(name, values[1]),
        ]);
    }
    let hidden = differing.len().saturating_sub(SHOWN);
    let more = if hidden > 0 { format!("\n... and {hidden} more") } else { String::new() };
    format!("{}{more}", table::render(&rows))
}

/// Means then and now, and the distance of single runs.
fn measured_table(measured: &[&Comparison]) -> String {
    let failed = measured.iter().filter(|one| one.error.is_some()).count();
    let mut rows = table::table(&[
        "measured",
        "runs",
        "mean then",
        "mean now",
        "difference",
        "run to run, median",
        "most",
    ]);
    let mut pairs: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (name, values) in measured.iter().flat_map(|one| &one.measures) {
        if let [Some(then), Some(now)] = values {
            pairs.entry(name).or_default().push((*then, *now));
        }
    }
    for (name, pairs) in pairs {
        let then: Vec<f64> = pairs.iter().map(|(then, _)| *then).collect();
        let now: Vec<f64> = pairs.iter().map(|(_, now)| *now).collect();
        let apart: Vec<f64> = pairs.iter().map(|(then, now)| relative(*then, *now).abs()).collect();
        let most = apart.iter().copied().fold(0.0, f64::max);
        rows.add_row([
            comfy_table::Cell::new(name),
            number(pairs.len()),
            number(value_of(name, stats::mean(&then))),
            number(value_of(name, stats::mean(&now))),
            number(format!("{:+.1} %", 100.0 * relative(stats::mean(&then), stats::mean(&now)))),
            number(table::percent(stats::median(&apart))),
            number(table::percent(most)),
        ]);
    }
    let without = match failed {
        0 => String::new(),
        count => {
            let runs = table::counted(count as u64, "measured run", "measured runs");
            format!("\n{runs} gave no result now")
        }
    };
    format!("{}{without}", table::render(&rows))
}

/// How far `now` is from `then`, as a part of `then`.
fn relative(then: f64, now: f64) -> f64 {
    if then == now { 0.0 } else { (now - then) / then.abs().max(f64::MIN_POSITIVE) }
}
