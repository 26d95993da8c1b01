// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints verdicts on the terminal.

use crate::error::CliResult;
use crate::output::Out;
use crate::table::{self, digits, duration};
use comfy_table::Cell;
use schedlab_lab::claims::{Answer, CheckResult, ClaimResult, summary};
use schedlab_report::StudyPage;

/// Maximum number of characters of a claim's sentence in the table; the report has the whole
/// sentence.
const TEXT_MAX: usize = 76;

/// Prints every claim with its verdict, study by study; with `details` its numbers too.
pub fn table(
    claims: &[ClaimResult],
    studies: &[StudyPage],
    details: bool,
    out: &mut Out,
) -> CliResult<()> {
    for study in studies {
        out.line(format!("{}: {}", study.name, study.title))?;
        let mut rows = table::table(&["claim", "verdict", "checks", "what the study says"]);
        for claim in claims.iter().filter(|claim| claim.study == study.name) {
            rows.add_row([
                Cell::new(&claim.id),
                Cell::new(claim.verdict.text()),
                table::number(checks(claim)),
                Cell::new(shortened(&claim.text)),
            ]);
        }
        out.line(table::render(&rows))?;
        out.line("")?;
    }
    if details {
        for claim in claims {
            detail(claim, out)?;
            out.line("")?;
        }
    }
    out.line(summary(claims))
}

/// How many of the checks behind the verdict hold.
fn checks(claim: &ClaimResult) -> String {
    let deciding = || claim.checks.iter().filter(|check| check.decides());
    let holds = deciding().filter(|check| check.answer == Answer::Holds).count();
    match deciding().count() {
        0 => "-".into(),
        count => format!("{holds} of {count}"),
    }
}

fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= TEXT_MAX {
        return text;
    }
    let begin: String = text.chars().take(TEXT_MAX - 3).collect();
    format!("{}...", begin.trim_end())
}

fn detail(claim: &ClaimResult, out: &mut Out) -> CliResult<()> {
    out.line(format!("{}  {}", claim.id, claim.verdict.text()))?;
    out.line(format!("  {}", claim.text))?;
    out.line(format!("  finding: {}", claim.finding(show)))?;
    for (head, text) in [("study: ", &claim.numbers), ("remark: ", &claim.remark)] {
        if !text.is_empty() {
            out.line(format!("  {head}{text}"))?;
        }
    }
    if claim.checks.is_empty() {
        return Ok(());
    }
    let mut rows = table::table(&["  what", "where", "study", "here", "holds if", "answer"]);
    for check in &claim.checks {
        rows.add_row([
            Cell::new(format!("  {}", check.what)),
            Cell::new(place(check)),
            table::number(check.published.map_or_else(|| "-".into(), |value| show(check, value))),
            table::number(found(check)),
            Cell::new(&check.holds),
            Cell::new(check.answer.text()),
        ]);
    }
    out.line(table::render(&rows))
}

fn place(check: &CheckResult) -> String {
    let place = match &check.scheduler {
        Some(scheduler) => format!("{} {scheduler}", check.lane),
        None => check.lane.to_string(),
    };
    match &check.pair {
        Some(pair) => format!("{place}, {}: {}", pair.against, pair.experiment),
        None => place,
    }
}

fn found(check: &CheckResult) -> String {
    let Some(value) = check.found else { return "-".into() };
    let of = |value| show(check, value);
    match check.ci95 {
        Some([low, high]) => format!("{} [{}, {}]", of(value), of(low), of(high)),
        None => of(value),
    }
}

/// A number, or a time with its unit; for a pair, its deviation.
fn show(check: &CheckResult, value: f64) -> String {
    if let Some(pair) = &check.pair {
        return pair.scale.text(value);
    }
    match check.is_time && value >= 0.0 {
        true => duration(value.round() as u64),
        false => digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sentences_are_cut_at_a_sign() {
        assert_eq!(shortened("a\n  b"), "a b");
        let long = shortened(&"\u{e4}b ".repeat(100));
        assert!(long.ends_with("...") && long.chars().count() <= TEXT_MAX, "{long}");
    }
}
