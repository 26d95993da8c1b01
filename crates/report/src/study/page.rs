// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of one study.

use super::figures::{of_claims, study_figures};
use super::verdicts::{cells, counts, legend};
use super::{LIMITS, Part, Site, facts, tables};
use crate::agreement::agreement_section;
use crate::claims::study_claims;
use crate::error::ReportError;
use crate::experiment::{Caps, Experiments};
use crate::group::Group;
use crate::html::{escape, slug};
use crate::machines::machine_section;
use crate::number::plural;
use crate::page::{NO_SCRIPT, code, contents, head};
use crate::pairs::pairs_of;
use crate::sections::{definitions_section, footer};
use crate::style::Styles;
use crate::tables::summary_section;
use crate::warnings::warnings_section;
use crate::{Limits, ModelNote};
use schedlab_run::LaneKind;
use std::fmt::Write as _;

impl Site<'_> {
    /// Renders the page of the study at this index.
    pub fn study(&self, at: usize) -> Result<String, ReportError> {
        let part = &self.parts[at];
        let page = &part.page;
        let mut out = head(&format!("{}: {}", page.name, page.title()));
        out += "<main>\n";
        out += &self.pages_nav(at);
        self.title(&mut out, part);
        let pairs = pairs_of(&part.groups);
        out += &contents(sections(part, !pairs.is_empty()));
        out += &warnings_section(&part.groups, &[]);
        about(&mut out, part);
        let figures_of = of_claims(page.drawn(), page.filled());
        out += &study_claims(self.input.claims, &page.name, &figures_of);
        let mut number = 0;
        if page.drawn().next().is_some() {
            out += "<section id=\"figures\">\n<h2>The study's figures, redrawn</h2>\n\
                    <div class=\"figures\">\n";
            out += &study_figures(page.drawn(), self.input.claims, &mut number)?;
            out += "</div>\n</section>\n";
        }
        if page.filled().next().is_some() {
            out += "<section id=\"tables\">\n<h2>Its tables, measured again</h2>\n";
            page.filled().for_each(|table| out += &tables::table(table));
            out += "</section>\n";
        }
        out += &without_data(part);
        self.experiments(&mut out, part, number)?;
        if !pairs.is_empty() {
            out += &agreement_section(&pairs, &Styles::new(&part.groups));
        }
        if !part.groups.is_empty() {
            out += &machine_section(&part.groups, self.input.command);
            out += &definitions_section(&part.groups);
        }
        out += "</main>\n";
        out += &footer(&notes_of(&part.groups, self.input.model_notes));
        out += &code();
        Ok(out)
    }

    /// Links to the index, the previous study and the next one.
    fn pages_nav(&self, at: usize) -> String {
        let mut out = format!(
            "<nav class=\"pages\" aria-label=\"Pages\"><ul><li><a href=\"{}\">All studies</a></li>",
            self.index
        );
        let before = at.checked_sub(1).and_then(|at| self.parts.get(at));
        let after = self.parts.get(at + 1);
        for (part, arrow) in [(before, "\u{2190}"), (after, "\u{2192}")] {
            if let Some(part) = part {
                let name = escape(&part.page.name);
                let _ = write!(out, "<li><a href=\"{}\">{arrow} {name}</a></li>", part.file);
            }
        }
        out + "</ul></nav>\n"
    }

    fn title(&self, out: &mut String, part: &Part<'_>) {
        let page = &part.page;
        let _ = writeln!(
            out,
            "<header>\n<h1><span class=\"study\">Study {}</span> {}</h1>",
            escape(&page.name),
            escape(page.title())
        );
        if !page.author.is_empty() {
            let _ = writeln!(out, "<p class=\"byline\">{}</p>", escape(&page.author));
        }
        *out += &self.byline();
        *out += NO_SCRIPT;
        *out += "</header>\n";
        if !part.claims.is_empty() {
            let _ = writeln!(
                out,
                "<p class=\"summary\" id=\"summary\">{}: {}.</p>\n{}{}",
                plural(part.claims.len(), "claim", "claims"),
                counts(&part.claims),
                cells(&part.claims, ""),
                legend()
            );
        }
    }

    /// Writes each experiment as a closed section, then the table of all runs.
    fn experiments(
        &self,
        out: &mut String,
        part: &Part<'_>,
        number: usize,
    ) -> Result<(), ReportError> {
        if part.groups.is_empty() {
            return Ok(());
        }
        let styles = Styles::new(&part.groups);
        let own = self.input.limits;
        let limits = Limits {
            slices_max: own.slices_max.min(LIMITS.slices_max),
            progress_marks_max: own.progress_marks_max.min(LIMITS.progress_marks_max),
        };
        let caps = Caps::new(&part.groups, limits);
        let mut experiments = Experiments { styles: &styles, number, caps };
        *out += "<section class=\"appendix\" id=\"experiments\">\n<h2>All experiments, run by \
                 run</h2>\n";
        for group in &part.groups {
            *out += &experiments.folded(group)?;
        }
        *out += "</section>\n<p class=\"print-only\">Every experiment with all its runs is in the \
                 file from which this was printed, not on paper.</p>\n";
        *out += &summary_section(&part.groups, &styles);
        Ok(())
    }
}

/// Sections of the page, by id and title.
fn sections(part: &Part<'_>, has_agreement: bool) -> Vec<(String, String)> {
    let page = &part.page;
    let has_runs = !part.groups.is_empty();
    let claims = format!("claims-{}", slug(&page.name));
    [
        ("about", "About", true),
        (claims.as_str(), "Claims", !part.claims.is_empty()),
        ("figures", "Figures", page.drawn().next().is_some()),
        ("tables", "Tables", page.filled().next().is_some()),
        ("experiments", "Experiments", has_runs),
        ("overview", "All runs", has_runs),
        ("agreement", "Agreement", has_agreement),
        ("machine", "Machine", has_runs),
        ("definitions", "Measures", has_runs),
        ("models", "Models", true),
    ]
    .into_iter()
    .filter(|(.., is_there)| *is_there)
    .map(|(id, text, _)| (id.into(), text.into()))
    .collect()
}

fn about(out: &mut String, part: &Part<'_>) {
    *out += "<section id=\"about\">\n<h2>What was studied, and how it was run here</h2>\n";
    for paragraph in part.page.text.split("\n\n").filter(|text| !text.trim().is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", escape(paragraph.trim()));
    }
    *out += &facts::facts(&part.page.name, &part.groups);
    *out += "</section>\n";
}

/// Names, in one sentence, the parts of the study for which no run gave data.
fn without_data(part: &Part<'_>) -> String {
    let page = &part.page;
    let figures = page.figures.iter().filter(|drawn| drawn.panels.is_empty());
    let figures = figures.map(|drawn| drawn.id.as_str());
    let tables = page.tables.iter().filter(|table| table.rows.is_empty());
    let missing: Vec<&str> = figures.chain(tables.map(|table| table.id.as_str())).collect();
    if missing.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"without-data\">No run gave data for {} of the study.</p>\n",
        escape(&missing.join(", "))
    )
}

/// The notes on the models that these experiments used.
fn notes_of(groups: &[Group<'_>], notes: &[ModelNote]) -> Vec<ModelNote> {
    let is_used = |note: &&ModelNote| {
        let mut runs = groups.iter().flat_map(|group| &group.result.runs);
        runs.any(|run| run.lane == LaneKind::Sim && run.scheduler == note.scheduler)
    };
    notes.iter().filter(is_used).cloned().collect()
}
