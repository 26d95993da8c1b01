// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results to one self-contained HTML file, and to figures as SVG files.
//!
//! The file loads nothing and sends nothing, reads on a phone and in print, in light and dark.
//! Equal input gives equal bytes: there is no clock here, the caller passes any date.
//!
//! From results to page: [`group`](mod@group) sorts runs into cells, `pairs` finds what models
//! what, `style` gives out colours; each figure has a module that says what it
//! shows; `draw` draws it; `page` puts the sections in order; `assets/` holds the style sheets and
//! the code of the page.

mod agreement;
mod analysis;
mod boxes;
mod claims;
mod curves;
mod draw;
mod embed;
mod error;
mod figure;
mod findings;
mod group;
mod html;
mod legend;
mod number;
mod order;
mod page;
mod pairs;
mod plots;
mod progress;
mod sections;
mod stats;
mod study;
mod style;
mod sweep;
mod tables;
mod timeline;
mod validation;
mod warnings;

pub use error::ReportError;
pub use page::render_report;
pub use plots::write_plots;
pub use study::StudyPage;
pub use validation::{ValidationInput, render_validation, write_validation};

use schedlab_lab::ExperimentResult;
use schedlab_lab::claims::ClaimResult;
use schedlab_run::file::write_whole;
use std::path::Path;

/// What a model is faithful to and what it leaves out; printed at the end of the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelNote {
    /// Scheduler's name.
    pub scheduler: String,
    /// What it is faithful to.
    pub source: String,
    /// What it leaves out or simplifies.
    pub leaves_out: String,
}

/// How much the page may hold; what is beyond is cut with a notice, never silently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Slices in all timelines together.
    pub slices_max: usize,
    /// Marks in all progress curves together.
    pub progress_marks_max: usize,
}

impl Default for Limits {
    /// Two million slices make a file of about 10 MB that a phone still opens.
    fn default() -> Limits {
        Limits { slices_max: 2_000_000, progress_marks_max: 1_000_000 }
    }
}

/// Everything a report is made from.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// Date or any other line below the title; the report itself never looks at a clock.
    pub date: Option<&'a str>,
    /// Command line that made the results, so that the reader can repeat it.
    pub command: Option<&'a str>,
    /// Experiments in the order of the page.
    pub results: &'a [ExperimentResult],
    /// Claims of the studies with their verdicts, in the order of the page.
    pub claims: &'a [ClaimResult],
    /// Studies with their figures and tables, in the order of the page; with any, or with claims,
    /// the report is that of a reproduction: contents, a page a study, experiments as appendix.
    pub studies: &'a [StudyPage],
    /// Notes on the models that were used, in order.
    pub model_notes: &'a [ModelNote],
    /// Size guard.
    pub limits: Limits,
}

/// Writes the report to `path`, whole or not at all.
pub fn write_report(path: &Path, input: &ReportInput<'_>) -> Result<(), ReportError> {
    Ok(write_whole(path, render_report(input)?.as_bytes())?)
}
