// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the tables of a sweep on the terminal and as JSON, and the list of a dry run.

use super::prepare::Prepared;
use crate::error::CliResult;
use crate::output::{Out, say};
use crate::table::{self, digits, duration, number};
use comfy_table::Cell;
use schedlab_lab::ExperimentResult;
use schedlab_lab::published::{ComparedRow, Comparison, Pair, typical_factor};
use schedlab_lab::store::{LOG_NAME, RunLog, export};
use schedlab_lab::view::{CellValue, Estimate, METHOD, Table};
use schedlab_run::values;
use std::path::Path;

/// Lists the runs and whether each is stored.
pub fn dry_run(prepared: &Prepared, output: &Path, out: &mut Out) -> CliResult<()> {
    let log = output.join(LOG_NAME);
    // A dry run only reads: it makes no directory.
    let log = if log.exists() { RunLog::open(output).ok() } else { None };
    let mut stored = 0;
    let sweep = &prepared.sweep;
    for (run, key) in sweep.plan.runs.iter().zip(&sweep.keys) {
        let is_stored = log.as_ref().is_some_and(|log| log.contains(key));
        stored += u64::from(is_stored);
        let experiment = &sweep.plan.experiments[run.experiment].name;
        let mark = if is_stored { "  (stored)" } else { "" };
        out.line(format!("{experiment}: {} seed={}{mark}", run.label(), run.request.seed))?;
    }
    out.finish_now()?;
    say(format!("{}; {stored} stored in {}", prepared.counts(), output.display()));
    Ok(())
}

/// Prints every experiment's table.
pub fn tables(results: &[ExperimentResult], json: bool, out: &mut Out) -> CliResult<()> {
    let tables = export::tables(results);
    if json {
        return out.json(&tables);
    }
    for named in &tables {
        out.line(format!("{}: {}", named.experiment, named.title))?;
        out.line(rendered(&named.table))?;
        out.line("")?;
    }
    for result in results {
        published(result, out)?;
    }
    out.line(METHOD)?;
    let incomplete: u64 = tables
        .iter()
        .flat_map(|named| &named.table.rows)
        .flat_map(|row| &row.values)
        .map(|value| value.nr_seeds_incomplete)
        .sum();
    if incomplete > 0 {
        out.line(format!(
            "Left out: {}, each of a row and measure that lacks one of its runs.",
            table::counted(incomplete, "seed", "seeds")
        ))?;
    }
    Ok(())
}

/// Prints the results next to published values, with the deviation.
fn published(result: &ExperimentResult, out: &mut Out) -> CliResult<()> {
    let Some(found) = Comparison::of(result) else { return Ok(()) };
    let Some(source) = result.experiment.view.as_ref().and_then(|v| v.published.as_ref()) else {
        return Ok(());
    };
    out.line(format!("{}: simulated / published ({})", result.experiment.name, source.source))?;
    out.line(compared(&found.at, &found.rows, &source.along))?;
    if !found.gaps.is_empty() {
        out.line("Each by the row that it is compared with:")?;
        out.line(compared(&found.at, &found.gaps, &source.along))?;
    }
    let growths =
        |rows: &[ComparedRow]| -> Vec<Pair> { rows.iter().filter_map(|row| row.growth).collect() };
    let gaps = found.gaps.iter().flat_map(|row| row.pairs.iter().flatten().copied());
    let factor = |pairs: &mut dyn Iterator<Item = Pair>| {
        typical_factor(pairs).map_or_else(|| "-".into(), |factor| format!("{factor:.2}"))
    };
    out.line(format!(
        "Fit error, as a factor (root of the mean square of ln(simulated / published)): values {} \
         ({} of {}), growth {}, gaps {}",
        factor(&mut found.pairs()),
        found.pairs().count(),
        found.at.len() * found.rows.len(),
        factor(&mut growths(&found.rows).into_iter()),
        factor(&mut gaps.into_iter()),
    ))?;
    out.line("")
}

/// Cells such as `12.3 / 10.5 (1.17)` for each value, and the growth of each row.
fn compared(at: &[String], rows: &[ComparedRow], along: &str) -> String {
    let places: Vec<String> = at.iter().map(|place| format!("{along}={place}")).collect();
    let mut heads = vec!["row"];
    heads.extend(places.iter().map(String::as_str));
    heads.push("growth");
    let mut table = table::table(&heads);
    let cell = |pair: &Option<Pair>| match pair {
        None => number("-"),
        Some(pair) => {
            number(format!("{:.2} / {:.2} ({:.2})", pair.simulated, pair.published, pair.ratio()))
        }
    };
    for row in rows {
        let cells = row.pairs.iter().chain([&row.growth]).map(cell);
        table.add_row([Cell::new(&row.name)].into_iter().chain(cells));
    }
    table::render(&table)
}

fn rendered(table: &Table) -> String {
    let has_baseline = table.rows.iter().any(|row| row.is_baseline);
    let mut heads: Vec<&str> = table.by.iter().map(String::as_str).collect();
    heads.push("seeds");
    for measure in &table.measures {
        heads.push(measure);
        if has_baseline {
            heads.push("difference");
        }
    }
    let mut rows = table::table(&heads);
    for row in &table.rows {
        let mut cells: Vec<Cell> = row
            .key
            .iter()
            .map(|value| match value.parse::<f64>() {
                Ok(_) => number(value),
                Err(_) => Cell::new(if value.is_empty() { "-" } else { value }),
            })
            .collect();
        cells.push(number(seeds(&row.values)));
        for (measure, value) in table.measures.iter().zip(&row.values) {
            cells.push(number(mean(measure, value.estimate)));
            if has_baseline {
                let text = if row.is_baseline { "baseline".into() } else { difference(value) };
                cells.push(number(text));
            }
        }
        rows.add_row(cells);
    }
    table::render(&rows)
}

/// The number of seeds: one number, or a range if measures differ.
fn seeds(values: &[CellValue]) -> String {
    let counts = values.iter().map(|value| value.estimate.map_or(0, |estimate| estimate.n));
    let (least, most) = counts.fold((u64::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
    match least {
        _ if least == most => most.to_string(),
        _ => format!("{}-{most}", least.min(most)),
    }
}

fn mean(measure: &str, estimate: Option<Estimate>) -> String {
    let Some(estimate) = estimate else { return "-".into() };
    let show = |value: f64| match values::is_time(measure) {
        true => duration(value.round().max(0.0) as u64),
        false => digits(value),
    };
    match estimate.ci95 {
        Some([_, high]) => format!("{} \u{b1} {}", show(estimate.mean), show(high - estimate.mean)),
        None => show(estimate.mean),
    }
}

/// The difference as a percentage of the baseline's mean.
fn difference(value: &CellValue) -> String {
    let Some(difference) = value.difference else { return "-".into() };
    let paired = difference.paired;
    let base = difference.baseline_mean;
    if base == 0.0 {
        return if paired.mean == 0.0 { "0".into() } else { "base is 0".into() };
    }
    let percent = |part: f64| 100.0 * part / base.abs();
    match paired.ci95 {
        Some([_, high]) => {
            format!("{:+.1} \u{b1} {:.1} %", percent(paired.mean), percent(high - paired.mean))
        }
        None => format!("{:+.1} %", percent(paired.mean)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_lab::view::{Difference, Row};

    fn estimate(n: u64, mean: f64, half: Option<f64>) -> Estimate {
        Estimate { n, mean, std_dev: None, ci95: half.map(|half| [mean - half, mean + half]) }
    }

    #[test]
    fn a_table_shows_means_intervals_and_differences() {
        let cell = |mean, difference| CellValue {
            estimate: Some(estimate(3, mean, Some(5e5))),
            nr_seeds_incomplete: 0,
            difference,
        };
        let paired = estimate(3, 1e6, Some(5e4));
        let table = Table {
            by: vec!["scheduler".into()],
            measures: vec!["makespan_ns".into()],
            rows: vec![
                Row {
                    key: vec!["a".into()],
                    is_baseline: true,
                    nr_runs: 3,
                    values: vec![cell(2e6, None)],
                },
                Row {
                    key: vec!["".into()],
                    is_baseline: false,
                    nr_runs: 3,
                    values: vec![cell(3e6, Some(Difference { paired, baseline_mean: 2e6 }))],
                },
            ],
        };
        let text = rendered(&table);
        assert!(text.contains("2.000 ms \u{b1} 500.0 us") && text.contains("baseline"), "{text}");
        assert!(text.contains("+50.0 \u{b1} 2.5 %"), "{text}");
    }

    #[test]
    fn one_seed_shows_no_interval() {
        assert_eq!(mean("nr_switches", Some(estimate(1, 5.0, None))), "5.000");
        assert_eq!(mean("nr_switches", None), "-");
        let zero = Difference { paired: estimate(1, 0.0, None), baseline_mean: 0.0 };
        let value = CellValue { difference: Some(zero), ..CellValue::default() };
        assert_eq!(difference(&value), "0");
    }
}
