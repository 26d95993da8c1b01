// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contents of a reproduction's report, by study.

use super::{StudyPage, page_id};
use crate::group::Group;
use crate::html::escape;
use crate::number::plural;
use schedlab_lab::claims::ClaimResult;
use std::fmt::Write as _;

/// What stands after the studies.
const APPENDIX: [(&str, &str); 6] = [
    ("experiments", "All experiments, run by run"),
    ("overview", "All runs at a glance"),
    ("agreement", "How far simulation and kernel agree"),
    ("machine", "Machine, settings, versions, seeds"),
    ("definitions", "What the measures mean"),
    ("models", "What the models simplify"),
];

/// The contents as a list.
pub fn contents(pages: &[StudyPage], groups: &[Group<'_>], claims: &[ClaimResult]) -> String {
    let mut out = String::from(
        "<nav class=\"contents\" aria-label=\"Contents\">\n<h2>Contents</h2>\n<ol>\n\
         <li><a href=\"#claims\">Claims and verdicts</a></li>\n",
    );
    for page in pages {
        let count = claims.iter().filter(|claim| claim.study == page.name).count();
        let of_study =
            groups.iter().filter(|group| group.result.experiment.study == page.name).count();
        let mut parts = Vec::new();
        for (count, one, many) in [
            (page.figures.len(), "figure", "figures"),
            (page.tables.len(), "table", "tables"),
            (count, "claim", "claims"),
            (of_study, "experiment", "experiments"),
        ] {
            if count > 0 {
                parts.push(plural(count, one, many));
            }
        }
        let _ = writeln!(
            out,
            "<li><a href=\"#{}\">{}: {}</a> <span class=\"lane\">{}</span></li>",
            page_id(&page.name),
            escape(&page.name),
            escape(&page.title),
            parts.join(", ")
        );
    }
    for (id, text) in APPENDIX {
        let _ = writeln!(out, "<li><a href=\"#{id}\">{text}</a></li>");
    }
    out += "</ol>\n</nav>\n";
    out
}
