// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes one self-contained HTML file from results. A reproduction becomes an index and a page for
//! each study. Figures can also become SVG files.
//!
//! A page loads nothing and sends nothing. It is readable on a phone and in print, in light and
//! dark mode. Equal input gives equal bytes: the crate reads no clock, and the caller passes any
//! date.
//!
//! From results to page: [`group`](mod@group) sorts runs into cells, `pairs` finds what models
//! what, `style` assigns colours. Each figure has a module that decides its content; `draw` draws
//! it; `fold` packs what is closed or out of view. `page` and `study` put the sections in order.
//! `assets/` holds the style sheets and the page's script.

mod agreement;
mod analysis;
mod boxes;
mod claims;
mod curves;
mod draw;
mod embed;
mod error;
mod experiment;
mod figure;
mod findings;
mod fold;
mod group;
mod html;
mod latency;
mod legend;
mod machines;
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
mod words;

pub use error::ReportError;
pub use page::render_report;
pub use plots::write_plots;
pub use study::{PageFile, StudyPage, render_reproduction};
pub use validation::{ValidationInput, render_validation, write_validation};

use schedlab_lab::ExperimentResult;
use schedlab_lab::claims::ClaimResult;
use schedlab_run::file::{AtomicFile, write_whole};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What a model reproduces faithfully and what it leaves out; printed at the end of the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelNote {
    /// Scheduler's name.
    pub scheduler: String,
    /// What it reproduces faithfully.
    pub source: String,
    /// What it leaves out or simplifies.
    pub leaves_out: String,
}

/// Limits on the size of a page. A notice states whatever they cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Slices in all timelines.
    pub slices_max: usize,
    /// Marks in all progress curves.
    pub progress_marks_max: usize,
}

impl Default for Limits {
    /// Two million slices make a file of about 10 MB, which a phone can still open.
    fn default() -> Limits {
        Limits { slices_max: 2_000_000, progress_marks_max: 1_000_000 }
    }
}

/// The input of a report.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// Date or other line below the title. The report itself reads no clock.
    pub date: Option<&'a str>,
    /// Command line that made the results, so that the reader can repeat it.
    pub command: Option<&'a str>,
    /// Experiments in the order of the page.
    pub results: &'a [ExperimentResult],
    /// Claims of the studies with their verdicts, in the order of the page.
    pub claims: &'a [ClaimResult],
    /// Studies with their figures and tables, in the order of the index. With studies or claims,
    /// the report is that of a reproduction: an index, and a page for each study.
    pub studies: &'a [StudyPage],
    /// Notes on the models of these results, in order.
    pub model_notes: &'a [ModelNote],
    /// Limits on the size.
    pub limits: Limits,
}

/// Writes the report to `path`. For a reproduction, writes the index there and the studies' pages
/// next to it. Every page is complete or missing, and none appears before all are written. Returns
/// their paths, the index last.
pub fn write_report(path: &Path, input: &ReportInput<'_>) -> Result<Vec<PathBuf>, ReportError> {
    if input.studies.is_empty() && input.claims.is_empty() {
        write_whole(path, render_report(input)?.as_bytes())?;
        return Ok(vec![path.into()]);
    }
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| ReportError::NotAFile { path: path.into() })?;
    let mut written = Vec::new();
    for page in render_reproduction(input, name)? {
        let path = path.with_file_name(&page.name);
        let mut file = AtomicFile::create(&path)?;
        file.write_all(page.html.as_bytes())
            .and_then(|()| file.sync())
            .map_err(|source| ReportError::Write { path: path.clone(), source })?;
        written.push((path, file));
    }
    let commit = |(path, file): (PathBuf, AtomicFile)| -> Result<PathBuf, ReportError> {
        file.commit()?;
        Ok(path)
    };
    written.into_iter().map(commit).collect()
}
