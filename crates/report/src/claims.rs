// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims of a study: a table with the study's numbers, ours and the verdicts. Below it, the reader
//! can open every number with its interval and bounds.

use crate::html::{escape, slug};
use crate::number::{duration, significant};
use schedlab_lab::claims::{CheckResult, ClaimResult, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Figures of each claim: id and name.
pub type FiguresOf = BTreeMap<String, Vec<(String, String)>>;

/// Maximum number of places whose numbers are in the table of claims; the others are below it.
const PLACES_MAX: usize = 4;

/// Writes the claims of one study; empty if it has none.
pub fn study_claims(claims: &[ClaimResult], study: &str, figures: &FiguresOf) -> String {
    let of_study: Vec<&ClaimResult> = claims.iter().filter(|claim| claim.study == study).collect();
    if of_study.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<div class=\"claims\" id=\"claims-{}\">\n<h3>Claims</h3>\n<div class=\"scroll\">\
         <table class=\"claim-table\">\n<thead><tr><th>claim</th><th>what the study says</th>\
         <th>the study</th><th>here</th></tr></thead>\n<tbody>\n",
        slug(study)
    );
    for claim in &of_study {
        row(&mut out, claim, figures);
    }
    out += "</tbody></table></div>\n<details class=\"claim-details\"><summary>Every number behind \
            these verdicts, with its interval and its bounds</summary>\n";
    for claim in of_study {
        one(&mut out, claim);
    }
    out += "</details>\n</div>\n";
    out
}

/// CSS class of a verdict.
pub const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::PartlyHolds => "partly",
        Verdict::Fails => "fails",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// A sign for a verdict, so that colour is not the only cue.
pub const fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "\u{2713}",
        Verdict::PartlyHolds => "\u{223c}",
        Verdict::Fails => "\u{2717}",
        Verdict::Inconclusive => "?",
    }
}

fn badge(verdict: Verdict) -> String {
    format!("<span class=\"verdict {}\">{}</span>", class(verdict), verdict.text())
}

fn row(out: &mut String, claim: &ClaimResult, figures: &FiguresOf) {
    let id = escape(&claim.id);
    let _ = write!(
        out,
        "<tr id=\"claim-{id}\"><th><a href=\"#numbers-{id}\">{id}</a><br>{}</th><td>{}",
        badge(claim.verdict),
        escape(&claim.text)
    );
    let _ = write!(out, "<p class=\"claim-note\">{}</p>", escape(&claim.finding(show)));
    for (head, text) in [("Remark", &claim.remark), ("Inconclusive", &claim.reason)] {
        if !text.is_empty() {
            let _ = write!(out, "<p class=\"claim-note\"><b>{head}:</b> {}</p>", escape(text));
        }
    }
    if let Some(of_claim) = figures.get(&claim.id) {
        let link = |(figure, name): &(String, String)| {
            format!("<a href=\"#{}\">{}</a>", escape(figure), escape(name))
        };
        let links: Vec<String> = of_claim.iter().map(link).collect();
        let _ = write!(out, "<p class=\"claim-note\"><b>See:</b> {}</p>", links.join(", "));
    }
    let _ = writeln!(out, "</td><td>{}</td><td>{}</td></tr>", escape(&claim.numbers), here(claim));
}

/// Our numbers for the first compared quantity, by place.
fn here(claim: &ClaimResult) -> String {
    let Some(first) = claim.checks.first() else { return "\u{2013}".into() };
    let same: Vec<&CheckResult> =
        claim.checks.iter().filter(|check| check.what == first.what).collect();
    let mut out = format!("{}:", escape(&first.what));
    for check in same.iter().take(PLACES_MAX) {
        let value = check.found.map_or_else(|| "\u{2013}".into(), |value| show(check, value));
        let _ = write!(
            out,
            "<br><b>{value}</b> <span class=\"lane\">{} {}</span>",
            check.lane,
            escape(check.scheduler.as_deref().unwrap_or_default())
        );
    }
    let more = claim.checks.len() - same.len().min(PLACES_MAX);
    if more > 0 {
        let _ = write!(out, "<br><span class=\"lane\">and {more} more</span>");
    }
    out
}

fn one(out: &mut String, claim: &ClaimResult) {
    let id = escape(&claim.id);
    let _ = writeln!(
        out,
        "<article class=\"claim\" id=\"numbers-{id}\">\n<h4><a href=\"#claim-{id}\">{id}</a> {}\
         </h4>\n<p>{}</p>",
        badge(claim.verdict),
        escape(&claim.text)
    );
    for fact in &claim.facts {
        let _ = writeln!(
            out,
            "<p class=\"claim-note\"><b>{}:</b> {} <span class=\"lane\">{}</span></p>",
            fact.answer().text(),
            escape(&fact.found),
            escape(&fact.source)
        );
    }
    if claim.checks.is_empty() {
        let _ = writeln!(out, "<p class=\"claim-note\">{}</p>", escape(&claim.reason));
    } else {
        checks(out, &claim.checks);
    }
    *out += "</article>\n";
}

fn checks(out: &mut String, checks: &[CheckResult]) {
    *out += "<div class=\"scroll\"><table class=\"checks\">\n<thead><tr><th>what</th>\
             <th>where</th><th class=\"num\">study</th><th class=\"num\">here</th>\
             <th class=\"num\">95 % interval</th><th>holds if</th><th>because</th>\
             <th>answer</th></tr></thead>\n<tbody>\n";
    for check in checks {
        let mut scheduler = check.scheduler.clone().unwrap_or_default();
        if let Some(pair) = &check.pair {
            let _ = write!(scheduler, ", {}: {}", pair.against, pair.experiment);
        }
        let _ = writeln!(
            out,
            "<tr><td title=\"{}\">{}</td><td>{} {}</td><td class=\"num\">{}</td>\
             <td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td><td>{}</td>\
             <td>{}</td></tr>",
            escape(&check.value),
            escape(&check.what),
            check.lane,
            escape(&scheduler),
            check.published.map_or_else(|| "\u{2013}".into(), |value| show(check, value)),
            check.found.map_or_else(|| "\u{2013}".into(), |value| show(check, value)),
            interval(check),
            escape(&check.holds),
            escape(&check.why),
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

/// A number, or a time with its unit; for a pair, its deviation.
pub fn show(check: &CheckResult, value: f64) -> String {
    if let Some(pair) = &check.pair {
        return pair.scale.text(value);
    }
    match check.is_time && value >= 0.0 {
        true => duration(value),
        false => significant(value),
    }
}

fn answer(check: &CheckResult) -> String {
    let text = check.answer.text();
    match &check.reason {
        Some(reason) => format!("{text}: {}", escape(&reason.to_string())),
        None => text.into(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use schedlab_lab::claims::Answer;

    /// A claim with one number.
    pub fn claim(study: &str, id: &str, verdict: Verdict) -> ClaimResult {
        let check = CheckResult {
            what: "a < b".into(),
            lane: schedlab_run::LaneKind::Host,
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
            pair: None,
        };
        ClaimResult {
            facts: Vec::new(),
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
    fn every_claim_has_its_verdict_numbers_and_figures() {
        let claims = [
            claim("S0", "S0-1", Verdict::Holds),
            claim("S1", "S1-1", Verdict::Inconclusive),
            claim("S0", "S0-2", Verdict::Fails),
        ];
        let figure = ("figure-s0-f1".to_string(), "S0-F1".to_string());
        let figures = BTreeMap::from([("S0-2".to_string(), vec![figure])]);
        let page = study_claims(&claims, "S0", &figures);
        assert!(page.contains("S0-1") && page.contains("FAILS") && !page.contains("S1-1"));
        assert!(page.contains("2.03") && page.contains("a &lt; b"), "{page}");
        assert!(page.contains("no &lt;b&gt;") && page.contains("1.90 to 2.10"), "{page}");
        assert!(page.contains("fixed before"), "the reason for the bounds");
        assert_eq!(page.matches("href=\"#figure-s0-f1\"").count(), 1);
        assert_eq!(study_claims(&claims, "S9", &figures), "");
    }
}
