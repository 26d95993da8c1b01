// SPDX-License-Identifier: MIT OR Apache-2.0
//! All verdicts at a glance: a row for each study, a cell for each claim, which leads to it.

use super::page_id;
use crate::claims::{class, sign};
use crate::html::escape;
use crate::legend::verdict_item;
use schedlab_lab::claims::{ClaimResult, Verdict, summary};
use std::fmt::Write as _;

/// The verdicts of all studies; nothing without a claim.
pub fn verdict_summary(claims: &[ClaimResult]) -> String {
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
        "<section id=\"claims\">\n<h2>Claims and verdicts</h2>\n<p>A claim holds if the \
         interval of each of its numbers lies within bounds that were fixed before the runs. It \
         partly holds if only some do: it is mixed if others lie outside, and incomplete if others \
         are inconclusive. What was not measured never counts as agreement.</p>\n<p>",
    );
    out += &escape(&summary(claims));
    out += ".</p>\n<ul class=\"legend\" aria-label=\"Legend\">";
    for verdict in Verdict::ALL {
        out += &verdict_item(class(verdict), sign(verdict), verdict.text());
    }
    out += "</ul>\n<div class=\"scroll\"><table class=\"verdicts\">\n<thead><tr><th>study</th>";
    for verdict in Verdict::ALL {
        let _ = write!(out, "<th class=\"num\">{}</th>", verdict.text().to_lowercase());
    }
    out += "<th>claims</th></tr></thead>\n<tbody>\n";
    for study in studies {
        let of_study = || claims.iter().filter(|claim| claim.study == study);
        let _ = write!(out, "<tr><td><a href=\"#{}\">{}</a></td>", page_id(study), escape(study));
        for verdict in Verdict::ALL {
            let count = of_study().filter(|claim| claim.verdict == verdict).count();
            let _ = write!(out, "<td class=\"num\">{count}</td>");
        }
        out += "<td class=\"cells\">";
        for claim in of_study() {
            let _ = write!(
                out,
                "<a class=\"cell {}\" href=\"#claim-{}\" title=\"{}: {}. {}\">{}\u{a0}{}</a>",
                class(claim.verdict),
                escape(&claim.id),
                escape(&claim.id),
                claim.verdict.text().to_lowercase(),
                escape(&claim.text),
                escape(claim.id.rsplit('-').next().unwrap_or_default()),
                sign(claim.verdict),
            );
        }
        out += "</td></tr>\n";
    }
    out += "</tbody></table></div>\n</section>\n";
    out
}

/// A link to a claim, with its verdict.
pub fn claim_link(id: &str, claims: &[ClaimResult]) -> String {
    let found = claims.iter().find(|claim| claim.id == id);
    let class = found.map_or("", |claim| class(claim.verdict));
    let sign = found.map_or(String::new(), |claim| format!("\u{a0}{}", sign(claim.verdict)));
    let id = escape(id);
    format!("<a class=\"cell {class}\" href=\"#claim-{id}\">{id}{sign}</a>")
}
