// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab validate --cases`: random workloads on kernels and under their models.

use crate::error::{CliError, CliResult, Exit};
use crate::output::{Out, say};
use crate::table;
use schedlab_lab::cases::{
    Agreement, Cause, Comparison, Counts, FeatureCounts, Half, KernelAgreement, Made, SetCase,
    Typical,
};
use schedlab_run::file::{read_text, write_whole};
use schedlab_run::{Lane, LaneKind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Size limit of a file of figures.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Name of a half on the command line.
pub fn half(text: &str) -> Result<Half, String> {
    let known = [Half::Development, Half::HeldOut];
    let found = known.into_iter().find(|half| half.name() == text);
    found.ok_or_else(|| "allowed are development and held-out".into())
}

/// Writes the cases' workloads, for `schedlab diff`.
pub fn write_workloads(cases: &[SetCase], output: &Path) -> CliResult<()> {
    if cases.is_empty() {
        return Ok(());
    }
    let folder = output.join("cases");
    std::fs::create_dir_all(&folder).map_err(|error| CliError::file("make", &folder, &error))?;
    for case in cases {
        let path = folder.join(format!("{}-{}.json", case.set, case.seed));
        write_whole(&path, case.text.as_bytes())?;
    }
    Ok(())
}

/// Asks for the causes of comparisons outside in guests, which takes a while.
pub fn explain(agreement: &mut Agreement, made: Made<'_>, lane: &dyn Lane, threads: usize) {
    let in_guests = agreement.kernels.iter().filter(|one| one.lane == LaneKind::Vm);
    let nr: usize = in_guests.map(|one| one.outside.len()).sum();
    if nr > 0 {
        say(format!("simulating what makes the models agree in {nr} comparisons outside"));
    }
    schedlab_lab::cases::explain(agreement, made, lane, threads);
}

/// Writes the files of an agreement, and adds its figures to the file `store`.
pub fn write(agreement: &Agreement, output: &Path, store: Option<&Path>) -> CliResult<()> {
    write_whole(&output.join("agreement.json"), json(agreement)?.as_bytes())?;
    let tables = schedlab_lab::cases::markdown(agreement);
    write_whole(&output.join("agreement.md"), tables.as_bytes())?;
    say(format!("results: {}", output.display()));
    let Some(path) = store else { return Ok(()) };
    let mut stored = match path.exists() {
        true => read(path)?,
        false => Agreement::default(),
    };
    stored.merge(agreement.clone());
    write_whole(path, json(&stored)?.as_bytes())?;
    say(format!("figures: {}", path.display()));
    Ok(())
}

fn json(agreement: &Agreement) -> CliResult<String> {
    let text = serde_json::to_string_pretty(agreement);
    text.map(|text| text + "\n").map_err(|error| CliError::usage(error.to_string()))
}

fn read(path: &Path) -> CliResult<Agreement> {
    let text = read_text(path, FILE_BYTES_MAX)?;
    serde_json::from_str(&text).map_err(|error| {
        CliError::usage_help(
            format!("{} holds no figures of cases: {error}", path.display()),
            "name a file that --store wrote, or a new one",
        )
    })
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.1} %"))
}

/// Prints the tables.
pub fn print(agreement: &Agreement, is_detailed: bool, out: &mut Out) -> CliResult<()> {
    let heads = [
        "set",
        "half",
        "kernel",
        "model",
        "cases",
        "compared",
        "within",
        "or starts",
        "or switches",
        "kernel itself",
        "wrong model",
    ];
    let mut rows = table::table(&heads);
    for one in &agreement.kernels {
        let all = one.figures.all;
        let cells = [
            one.set.clone(),
            one.half.name().into(),
            kernel(one),
            one.model.clone(),
            one.nr_cases.to_string(),
            all.nr().to_string(),
            percent(all.percent_within()),
            percent(all.percent_shifted()),
            percent(all.percent().filter(|_| one.lane == LaneKind::Vm)),
            percent(one.kernel_itself.percent()),
            percent(one.wrong_model.percent()),
        ];
        rows.add_row(cells);
    }
    out.line(table::render(&rows))?;
    let shares = |counts: &BTreeMap<String, Counts>| {
        counts.iter().map(|(name, counts)| (name.clone(), share(*counts))).collect()
    };
    by_name("measure", agreement, &|one| shares(&one.figures.measures), out)?;
    let typical = |(name, one): (&String, &Typical)| (name.clone(), one.text());
    by_name("off by (own)", agreement, &|one| one.typical.iter().map(typical).collect(), out)?;
    out.line(TYPICAL)?;
    let of = |(name, found): (&String, &FeatureCounts)| {
        (format!("{name} ({} cases)", found.nr_cases), share(found.counts))
    };
    by_name("feature", agreement, &|one| one.figures.features.iter().map(of).collect(), out)?;
    if is_detailed {
        outside(agreement, out)?;
    }
    for one in agreement.kernels.iter().filter(|one| one.nr_disturbed > 0) {
        out.line(format!(
            "{}: other programs disturbed {} of {} runs, which moves values and adds variation",
            kernel(one),
            one.nr_disturbed,
            one.nr_runs
        ))?;
    }
    for one in &agreement.not_compared {
        out.line(format!(
            "not compared: {} {} under {}: {}",
            one.set,
            one.seed,
            placed(&one.kernel, one.lane),
            one.why
        ))?;
    }
    Ok(())
}

/// What the table of typical deviations has.
const TYPICAL: &str = "Medians over the cases, of the task that deviates most: the model's \
                       deviation and, in\nbrackets, the kernel's own variation.";

/// A kernel with its lane, unless it is a guest.
fn placed(kernel: &str, lane: LaneKind) -> String {
    match lane {
        LaneKind::Vm => kernel.into(),
        lane => format!("{kernel} ({lane})"),
    }
}

fn kernel(one: &KernelAgreement) -> String {
    placed(&one.kernel, one.lane)
}

/// The share of comparisons that agree, and how many there are.
fn share(counts: Counts) -> String {
    format!("{} of {}", percent(counts.percent()), counts.nr())
}

/// A column for each kernel, a row for each name.
fn by_name(
    head: &str,
    agreement: &Agreement,
    of: &dyn Fn(&KernelAgreement) -> BTreeMap<String, String>,
    out: &mut Out,
) -> CliResult<()> {
    let cells: Vec<BTreeMap<String, String>> = agreement.kernels.iter().map(of).collect();
    let names: BTreeSet<&String> = cells.iter().flat_map(BTreeMap::keys).collect();
    let titles = agreement.kernels.iter().map(|one| format!("{} {}", one.set, kernel(one)));
    let heads: Vec<String> = std::iter::once(head.to_string()).chain(titles).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut rows = table::table(&heads);
    for name in names {
        let cell = |cells: &BTreeMap<String, String>| cells.get(name).cloned().unwrap_or_default();
        rows.add_row([vec![name.clone()], cells.iter().map(cell).collect()].concat());
    }
    out.line(format!("\n{}", table::render(&rows)))
}

/// The comparisons outside of tolerance and variation.
fn outside(agreement: &Agreement, out: &mut Out) -> CliResult<()> {
    let heads = [
        "case",
        "kernel",
        "measure",
        "task",
        "kernel's",
        "model's",
        "off by",
        "own variation",
        "cause",
    ];
    let mut rows = table::table(&heads);
    for of in &agreement.kernels {
        for one in &of.outside {
            let Comparison { unit, measure, scale, .. } = one;
            rows.add_row([
                format!("{} {}", of.set, one.seed),
                kernel(of),
                measure.clone(),
                unit.clone(),
                table::digits(one.on),
                table::digits(one.against),
                scale.text(one.deviation),
                scale.text(one.variation),
                match of.lane {
                    LaneKind::Vm => Cause::list(&one.causes),
                    // It was not asked for.
                    _ => String::new(),
                },
            ]);
        }
    }
    out.line(format!("\n{}", table::render(&rows)))
}

/// The exit code: a wrong model must agree less than the right one.
pub fn finish(agreement: &Agreement) -> CliResult<()> {
    if agreement.kernels.iter().all(|one| one.figures.all.nr() == 0) {
        return Err(CliError::new(
            Exit::Unavailable,
            "no case could be compared",
            "`schedlab doctor` shows what this machine can do",
        ));
    }
    let accepts = |one: &&KernelAgreement| {
        let figures = [one.wrong_model.percent(), one.figures.all.percent()];
        matches!(figures, [Some(wrong), Some(right)] if wrong >= right)
    };
    match agreement.kernels.iter().find(accepts) {
        None => Ok(()),
        Some(one) => Err(CliError::new(
            Exit::Check,
            format!(
                "{}: the wrong model {} agrees as often as {}",
                one.kernel,
                one.wrong.as_deref().unwrap_or_default(),
                one.model
            ),
            match one.nr_disturbed {
                0 => "these cases do not tell a right model from a wrong one: add others",
                _ => "other programs disturbed the runs: repeat them on a quiet machine",
            },
        )),
    }
}
