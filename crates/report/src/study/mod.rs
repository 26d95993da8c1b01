// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a study in the report of a reproduction: what it is about, how it was measured, its
//! figures and tables beside the original's values, its claims.
//!
//! `fill` makes the page of a study and its results; `figures` and `tables` draw what the study's
//! file asks for, `facts` says on which machines and how often it ran, `contents` and `verdicts`
//! lead there.

mod contents;
mod facts;
mod figures;
mod fill;
mod panels;
mod tables;
mod verdicts;

pub use contents::contents;
pub use figures::{figure_files, study_figures};
pub use verdicts::verdict_summary;

use crate::claims::study_claims;
use crate::error::ReportError;
use crate::group::Group;
use crate::html::{escape, slug};
use schedlab_lab::claims::ClaimResult;
use schedlab_lab::redrawn::{Drawn, DrawnTable};
use std::fmt::Write as _;

/// A study with its figures and tables filled.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StudyPage {
    /// Short name: `S0`.
    pub name: String,
    /// Title.
    pub title: String,
    /// What it is about.
    pub text: String,
    /// The study's figures, redrawn.
    pub figures: Vec<Drawn>,
    /// Its tables.
    pub tables: Vec<DrawnTable>,
}

/// Id of a study's page.
pub fn page_id(study: &str) -> String {
    format!("study-{}", slug(study))
}

/// The page of a study; `number` is that of the last figure before it.
pub fn study_page(
    page: &StudyPage,
    groups: &[Group<'_>],
    claims: &[ClaimResult],
    number: &mut usize,
) -> Result<String, ReportError> {
    let mut out = format!(
        "<section class=\"study-page\" id=\"{}\">\n<h2><span class=\"study\">Study {}</span> \
         {}</h2>\n",
        page_id(&page.name),
        escape(&page.name),
        escape(&page.title)
    );
    for paragraph in page.text.split("\n\n").filter(|text| !text.trim().is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", escape(paragraph.trim()));
    }
    out += &facts::facts(&page.name, groups);
    if !page.figures.is_empty() {
        out += "<h3>The study's figures, redrawn</h3>\n<div class=\"figures\">\n";
        out += &study_figures(&page.figures, claims, number)?;
        out += "</div>\n";
    }
    if !page.tables.is_empty() {
        out += "<h3>Its tables, measured again</h3>\n";
        for table in &page.tables {
            out += &tables::table(table);
        }
    }
    out += &study_claims(claims, &page.name, &figures::of_claims(&page.figures, &page.tables));
    out += "</section>\n";
    Ok(out)
}
