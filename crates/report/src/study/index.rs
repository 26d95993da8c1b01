// SPDX-License-Identifier: MIT OR Apache-2.0
//! The index of a reproduction: verdicts study by study, with links to their pages.

use super::verdicts::{Outcome, cells, count, counts, legend};
use super::{Part, Site};
use crate::claims::{class, show, sign};
use crate::fold::folded;
use crate::html::escape;
use crate::number::plural;
use crate::page::{NO_SCRIPT, code, head};
use crate::warnings::nr_warnings;
use schedlab_lab::claims::ClaimResult;
use std::fmt::Write as _;

const READING: &str = "<section id=\"verdicts\">\n<h2>What the verdicts mean</h2>\n\
    <p>A claim holds if the interval of each of its numbers lies within bounds that were fixed \
    before the runs, and fails if none does. If only some do, the claim is <em>mixed</em> where \
    others are out of bounds, and <em>incomplete</em> where the others are inconclusive: not \
    measured here, or too few repetitions. What was not measured never counts as agreement.</p>\n\
    </section>\n";

const FOOT: &str = "<footer>\n<p class=\"made\">Keep this file and the pages of the studies in one \
    folder: they link one another. They load nothing from anywhere else and send nothing.</p>\n\
    </footer>\n";

impl Site<'_> {
    /// Renders the index.
    pub fn index(&self) -> String {
        let mut out = head(self.input.title);
        let _ = writeln!(out, "<main>\n<header>\n<h1>{}</h1>", escape(self.input.title));
        out += &self.byline();
        out += NO_SCRIPT;
        out += "</header>\n";
        let claims: Vec<&ClaimResult> = self.input.claims.iter().collect();
        let studies = plural(self.parts.len(), "study", "studies");
        let _ = match claims.is_empty() {
            true => writeln!(out, "<p class=\"summary\" id=\"summary\">{studies}.</p>"),
            false => writeln!(
                out,
                "<p class=\"summary\" id=\"summary\">{} of {studies}: {}.</p>",
                plural(claims.len(), "claim", "claims"),
                counts(&claims)
            ),
        };
        self.table(&mut out);
        for part in &self.parts {
            card(&mut out, part);
        }
        out += READING;
        out += "</main>\n";
        out += FOOT;
        out += &code();
        out
    }

    /// The line below the title: the command that made the pages.
    pub fn byline(&self) -> String {
        let mut out = String::new();
        if let Some(date) = self.input.date {
            let _ = writeln!(out, "<p class=\"byline\">{}</p>", escape(date));
        }
        if let Some(command) = self.input.command {
            let _ = writeln!(
                out,
                "<p class=\"byline\">Made by <code>{}</code>; the same command makes it again.</p>",
                escape(command)
            );
        }
        out
    }

    /// Writes a row for each study, and one for all studies.
    fn table(&self, out: &mut String) {
        *out += "<section id=\"studies\">\n<h2>What holds</h2>\n<div class=\"scroll\">\
                 <table class=\"verdicts\">\n<thead><tr><th scope=\"col\">study</th>";
        for outcome in Outcome::ALL {
            let _ = write!(out, "<th scope=\"col\" class=\"num\">{}</th>", outcome.head());
        }
        *out += "<th scope=\"col\" class=\"num\">warnings</th></tr></thead>\n<tbody>\n";
        for part in &self.parts {
            let _ = write!(out, "<tr><th scope=\"row\">{}</th>", link(part));
            counts_of(out, &part.claims);
            let warnings = nr_warnings(&part.groups);
            let _ = writeln!(out, "<td class=\"num\">{warnings}</td></tr>");
        }
        let claims: Vec<&ClaimResult> = self.input.claims.iter().collect();
        *out += "<tr class=\"all\"><th scope=\"row\">all studies</th>";
        counts_of(out, &claims);
        *out += "<td></td></tr>\n</tbody></table></div>\n";
        if !claims.is_empty() {
            *out += &legend();
        }
        *out += "</section>\n";
    }
}

fn link(part: &Part<'_>) -> String {
    format!("<a href=\"{}\">{}</a>", part.file, escape(part.page.title()))
}

fn counts_of(out: &mut String, claims: &[&ClaimResult]) {
    for outcome in Outcome::ALL {
        match count(claims, outcome) {
            0 => *out += "<td class=\"num none\">0</td>",
            count => {
                let _ = write!(out, "<td class=\"num\">{count}</td>");
            }
        }
    }
}

/// Writes a study: title, author, contents of its page, a cell for each claim, and findings that a
/// click opens.
fn card(out: &mut String, part: &Part<'_>) {
    let page = &part.page;
    let _ = write!(
        out,
        "<section class=\"study-card\" id=\"study-{}\">\n<h3>{}</h3>\n<p class=\"byline\">",
        part.file.trim_end_matches(".html"),
        link(part)
    );
    if !page.author.is_empty() {
        let _ = write!(out, "{}. ", escape(page.author.trim_end_matches('.')));
    }
    let parts: Vec<String> = [
        (part.claims.len(), "claim", "claims"),
        (page.drawn().count(), "figure", "figures"),
        (page.filled().count(), "table", "tables"),
        (part.groups.len(), "experiment", "experiments"),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, one, many)| plural(count, one, many))
    .collect();
    let _ = writeln!(out, "Study {}: {}.</p>", escape(&page.name), parts.join(", "));
    if !part.claims.is_empty() {
        *out += &cells(&part.claims, &part.file);
        *out += &folded(" class=\"findings\"", "What was found, claim by claim", findings(part));
    }
    *out += "</section>\n";
}

/// Each claim and its finding, in a sentence each.
fn findings(part: &Part<'_>) -> String {
    let mut out = String::from("<ul>\n");
    for claim in &part.claims {
        let id = escape(&claim.id);
        let _ = writeln!(
            out,
            "<li><a class=\"cell {}\" href=\"{}#claim-{id}\">{id}\u{a0}{}</a> {} \
             <span class=\"claim-note\">{}</span></li>",
            class(claim.verdict),
            part.file,
            sign(claim.verdict),
            escape(&claim.text),
            escape(&claim.finding(show))
        );
    }
    out + "</ul>\n"
}
