// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab compare --manifest`: repeats a sweep and compares its results.

use super::prepare::{Prepared, machine_is_default};
use super::{refuse, refuse_file_options, threads};
use crate::args::CompareArgs;
use crate::commands::progress::Bar;
use crate::error::{CliError, CliResult, Exit};
use crate::output::{Out, say};
use crate::schedulers::Schedulers;
use crate::table::{self, digits, duration, number};
use schedlab_host::HostLane;
use schedlab_lab::identity::Program;
use schedlab_lab::store::Manifest;
use schedlab_lab::store::repeat::{Repeated, drifts};
use schedlab_lab::studies::Source;
use schedlab_run::values;

/// Maximum number of runs in a table of differences.
const SHOWN: usize = 20;

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
    let plan = &prepared.sweep.plan;
    let bar = Bar::new(plan);
    let host = HostLane;
    let lanes = prepared.lanes(&host);
    let compared = prepared
        .sweep
        .repeat(&then, &lanes, threads(args), &|run, error| bar.step(&plan.runs[run], error));
    bar.finish();
    show(&compared, args.json, out)
}

/// Makes the manifest's plan, which must equal the plan that was run.
fn prepare(then: &Manifest, runs_max: usize) -> CliResult<Prepared> {
    let Manifest { experiment_file, experiment_text, workload_files, settings, .. } = then;
    let source = Source::of_manifest(
        experiment_file,
        experiment_text.clone(),
        workload_files.clone(),
        settings.pairs.as_ref(),
    )?;
    let (made_by, this) = (then.program(), Program::this());
    let prepared =
        Prepared::of(source, settings.clone(), &made_by, &Schedulers::default(), runs_max)?;
    if made_by != this {
        let name = |Program { version, models }| format!("schedlab {version} with models {models}");
        say(format!("note: the results are of {}, this is {}", name(made_by), name(this)));
    }
    prepared.sweep.check_repeats(then)?;
    Ok(prepared)
}

fn show(compared: &[Repeated], json: bool, out: &mut Out) -> CliResult<()> {
    let simulated = compared.iter().filter(|one| one.is_identical.is_some()).count();
    let identical = compared.iter().filter(|one| one.is_identical == Some(true)).count();
    let is_measured = compared.iter().any(|one| one.is_identical.is_none());
    let differing: Vec<&Repeated> =
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
        if is_measured {
            out.line(measured_table(compared))?;
        }
    }
    out.finish_now()?;
    if differing.is_empty() {
        return Ok(());
    }
    Err(CliError::new(
        Exit::Check,
        format!("{} of {simulated} simulated results are not what they were", differing.len()),
        "equal version, text, settings and seed must give equal results: if the version is the \
         same, please report it",
    ))
}

fn value_of(measure: &str, value: f64) -> String {
    if values::is_time(measure) { duration(value.round().max(0.0) as u64) } else { digits(value) }
}

fn differences(differing: &[&Repeated]) -> String {
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

/// A table of the means then and now, and of the differences between single runs.
fn measured_table(compared: &[Repeated]) -> String {
    let failed = compared.iter().filter(|one| one.is_identical.is_none() && one.error.is_some());
    let mut rows = table::table(&[
        "measured",
        "runs",
        "mean then",
        "mean now",
        "difference",
        "run to run, median",
        "most",
    ]);
    for drift in drifts(compared) {
        let [then, now] = drift.means.map(|mean| number(value_of(&drift.measure, mean)));
        let [median, most] = drift.apart.map(|apart| number(table::percent(apart)));
        rows.add_row([
            comfy_table::Cell::new(&drift.measure),
            number(drift.nr_runs),
            then,
            now,
            number(format!("{:+.1} %", 100.0 * drift.difference)),
            median,
            most,
        ]);
    }
    let without = match failed.count() {
        0 => String::new(),
        count => {
            let runs = table::counted(count as u64, "measured run", "measured runs");
            format!("\n{runs} gave no result now")
        }
    };
    format!("{}{without}", table::render(&rows))
}
