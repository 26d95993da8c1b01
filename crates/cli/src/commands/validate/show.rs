// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints comparisons for people: tables on the terminal, and in Markdown.

use crate::error::CliResult;
use crate::output::Out;
use crate::table::{self, digits, duration};
use comfy_table::Cell;
use schedlab_lab::claims::tables::{
    PairCell, PairDetail, PairTable, compared, controls, knobs, pairs_summary, tolerances,
};
use schedlab_lab::claims::{CheckResult, ClaimResult};

const LEGEND: &str = "In brackets the kernel's own variation. ! fails, v holds only by that \
                      variation, ? inconclusive,\n~ does not tell a right model from a wrong one";

fn value(check: &CheckResult, value: f64) -> String {
    match check.is_time {
        true => duration(value.round() as u64),
        false => digits(value),
    }
}

fn text(cell: &PairCell) -> String {
    match cell {
        PairCell::Text(text) | PairCell::Number(text) => text.clone(),
        PairCell::Deviation { text, own: Some(own), word, .. } => {
            format!("{text} ({own}){}", word.mark())
        }
        PairCell::Deviation { text, own: None, word, .. } => format!("{text}{}", word.mark()),
        PairCell::Verdict(text, _) => (*text).into(),
    }
}

fn render(table: &PairTable) -> String {
    let heads: Vec<&str> = table.heads.iter().map(String::as_str).collect();
    let mut rows = table::table(&heads);
    for cells in &table.rows {
        rows.add_row(cells.iter().map(|cell| match cell {
            PairCell::Text(_) | PairCell::Verdict(..) => Cell::new(text(cell)),
            PairCell::Number(_) | PairCell::Deviation { .. } => table::number(text(cell)),
        }));
    }
    table::render(&rows)
}

/// Prints all tables.
pub fn terminal(
    claims: &[ClaimResult],
    missing: &[String],
    is_detailed: bool,
    out: &mut Out,
) -> CliResult<()> {
    let (table, details) = compared(claims, &value);
    out.line(render(&table))?;
    out.line(LEGEND)?;
    if is_detailed {
        for detail in &details {
            let PairDetail { place: [workload, kernel, model, place], release, nr_pairs, .. } =
                detail;
            out.line(format!(
                "\n{workload} under {kernel} ({place}), release {release}, against {model}, \
                 {nr_pairs} pairs of runs"
            ))?;
            out.line(render(&detail.table))?;
            for (what, text) in &detail.notes {
                out.line(format!("  {what}: {text}"))?;
            }
        }
        out.line(format!("\n{}", render(&controls(claims))))?;
        out.line(format!("\n{}", render(&knobs(claims))))?;
    }
    for text in missing {
        out.line(format!("not compared: {text}"))?;
    }
    out.line(pairs_summary(claims))
}

/// The tables in Markdown: tolerances, comparisons, wrong models, knobs.
pub fn markdown(claims: &[ClaimResult]) -> String {
    let (table, _) = compared(claims, &value);
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let one = |table: &PairTable| {
        let rows = table.rows.iter().map(|cells| row(cells.iter().map(text).collect()));
        let line = format!("|{}\n", " --- |".repeat(table.heads.len()));
        row(table.heads.clone()) + &line + &rows.collect::<String>()
    };
    let all = [tolerances(claims), table, controls(claims), knobs(claims)];
    all.iter().map(one).collect::<Vec<_>>().join("\n")
}
