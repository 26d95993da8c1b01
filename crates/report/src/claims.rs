// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims of the studies: a summary of the verdicts, and for each study a table of its claims with
//! the study's numbers, ours with their intervals, and the bounds.

use crate::html::escape;
use crate::number::{duration, significant};
use schedlab_lab::claims::{Answer, CheckResult, ClaimResult, Verdict};
use std::fmt::Write as _;

/// The verdicts of all studies; nothing without a claim.
pub fn claims_summary(claims: &[ClaimResult]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let mut studies: Vec<&str> = Vec::new();
    for claim in claims {
        if !studies.contains(&claim.study.as_str()) {
            studies.push(&claim.study);
        }
    }
    let mut out = String::from(
        "<section id=\"claims\">\n<h2>Claims and verdicts</h2>\n<p>A claim holds if the whole \
         interval of each of its numbers lies within bounds that were fixed beforehand; it holds \
         partly if that is so for some of them. What was not measured never counts as \
         agreement.</p>\n<div class=\"scroll\"><table class=\"claims-summary\">\n\
         <thead><tr><th>study</th>",
    );
    for verdict in Verdict::ALL {
        let _ = write!(out, "<th class=\"num\">{}</th>", verdict.text().to_lowercase());
    }
    out += "<th class=\"num\">claims</th></tr></thead>\n<tbody>\n";
    for study in studies {
        let of_study = || claims.iter().filter(|claim| claim.study == study);
        let _ = write!(out, "<tr><td><a href=\"#{}\">{}</a></td>", id(study), escape(study));
        for verdict in Verdict::ALL {
            let count = of_study().filter(|claim| claim.verdict == verdict).count();
            let _ = write!(out, "<td class=\"num\">{count}</td>");
        }
        let _ = writeln!(out, "<td class=\"num\">{}</td></tr>", of_study().count());
    }
    out += "</tbody></table></div>\n</section>\n";
    out
}

/// The claims of one study; nothing without any.
pub fn study_claims(claims: &[ClaimResult], study: &str) -> String {
    let mut of_study = claims.iter().filter(|claim| claim.study == study).peekable();
    if of_study.peek().is_none() {
        return String::new();
    }
    let mut out = format!(
        "<section class=\"claims\" id=\"{}\">\n<h2><span class=\"study\">Study {}</span> What it \
         claims</h2>\n",
        id(study),
        escape(study)
    );
    for claim in of_study {
        one(&mut out, claim);
    }
    out += "</section>\n";
    out
}

/// Anchor of a study's claims.
fn id(study: &str) -> String {
    let safe: String =
        study.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("claims-{safe}")
}

const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::HoldsPartly => "partly",
        Verdict::DoesNotHold => "fails",
        Verdict::CannotBeTold => "untold",
    }
}

fn one(out: &mut String, claim: &ClaimResult) {
    let _ = writeln!(
        out,
        "<article class=\"claim\" id=\"claim-{}\">\n<h3>{} <span class=\"verdict {}\">{}</span>\
         </h3>\n<p>{}</p>",
        escape(&claim.id),
        escape(&claim.id),
        class(claim.verdict),
        claim.verdict.text(),
        escape(&claim.text)
    );
    for (head, text) in
        [("Study", &claim.numbers), ("Remark", &claim.remark), ("Not told", &claim.reason)]
    {
        if !text.is_empty() {
            let _ = writeln!(out, "<p class=\"claim-note\"><b>{head}:</b> {}</p>", escape(text));
        }
    }
    if !claim.checks.is_empty() {
        checks(out, &claim.checks);
    }
    *out += "</article>\n";
}

fn checks(out: &mut String, checks: &[CheckResult]) {
    *out += "<div class=\"scroll\"><table class=\"checks\">\n<thead><tr><th>what</th>\
             <th>where</th><th class=\"num\">study</th><th class=\"num\">here</th>\
             <th class=\"num\">95 % interval</th><th>holds if</th><th>answer</th></tr></thead>\n\
             <tbody>\n";
    for check in checks {
        let scheduler = check.scheduler.as_deref().unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><td title=\"{}\">{}</td><td>{} {}</td><td class=\"num\">{}</td>\
             <td class=\"num\">{}</td><td class=\"num\">{}</td><td title=\"{}\">{}</td>\
             <td>{}</td></tr>",
            escape(&check.value),
            escape(&check.what),
            escape(&check.lane),
            escape(scheduler),
            check.published.map_or_else(|| "\u{2013}".into(), |value| show(check, value)),
            check.found.map_or_else(|| "\u{2013}".into(), |value| show(check, value)),
            interval(check),
            escape(&check.why),
            escape(&check.holds),
            answer(check),
        );
    }
    *out += "</tbody></table></div>\n";
}

fn interval(check: &CheckResult) -> String {
    match (check.found, check.ci95) {
        (Some(_), Some([low, high])) => {
            format!("{} to {}", show(check, low), show(check, high))
        }
        (Some(_), None) if check.is_exact => "exact".into(),
        _ => "\u{2013}".into(),
    }
}

/// A number, or a time with its unit.
fn show(check: &CheckResult, value: f64) -> String {
    match check.is_time && value >= 0.0 {
        true => duration(value),
        false => significant(value),
    }
}

fn answer(check: &CheckResult) -> String {
    match (&check.answer, &check.reason) {
        (Answer::Holds, _) => "holds".into(),
        (Answer::DoesNotHold, _) => "does not hold".into(),
        (Answer::CannotBeTold, Some(reason)) => format!("cannot be told: {}", escape(reason)),
        (Answer::CannotBeTold, None) => "cannot be told".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(study: &str, id: &str, verdict: Verdict) -> ClaimResult {
        let check = CheckResult {
            what: "a < b".into(),
            lane: "host".into(),
            scheduler: Some("OTHER".into()),
            value: "nr_switches".into(),
            published: Some(2.1),
            holds: "1.9 .. 2.2".into(),
            why: "fixed before".into(),
            found: Some(2.03456),
            ci95: Some([1.9, 2.1]),
            is_exact: false,
            is_time: false,
            nr_runs: 6,
            answer: Answer::Holds,
            reason: None,
        };
        ClaimResult {
            study: study.into(),
            id: id.into(),
            text: "More is <less>.".into(),
            numbers: String::new(),
            remark: String::new(),
            verdict,
            reason: "no <b>".into(),
            checks: vec![check],
        }
    }

    #[test]
    fn every_claim_has_its_verdict_and_numbers() {
        let claims = [
            claim("S0", "S0-1", Verdict::Holds),
            claim("S1", "S1-1", Verdict::CannotBeTold),
            claim("S0", "S0-2", Verdict::DoesNotHold),
        ];
        let summary = claims_summary(&claims);
        assert!(summary.contains("<a href=\"#claims-S0\">S0</a>"), "{summary}");
        let page = study_claims(&claims, "S0");
        assert!(page.contains("S0-1") && page.contains("DOES NOT HOLD") && !page.contains("S1-1"));
        assert!(page.contains("2.03") && page.contains("a &lt; b"), "{page}");
        assert!(page.contains("no &lt;b&gt;") && page.contains("1.90 to 2.10"), "{page}");
        assert_eq!(study_claims(&claims, "S9"), "");
        assert_eq!(claims_summary(&[]), "");
    }
}
