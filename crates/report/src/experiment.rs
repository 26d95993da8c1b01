// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment on a page: its subject, its figures, and all its measures.

use crate::analysis::analysis_section;
use crate::embed::fair_cap;
use crate::error::ReportError;
use crate::fold::folded;
use crate::group::Group;
use crate::html::escape;
use crate::latency::latency;
use crate::progress::progress_runs;
use crate::style::Styles;
use crate::tables::detail_table;
use crate::timeline::timeline_runs;
use crate::{Limits, boxes, curves, progress, sweep, timeline};
use schedlab_lab::FigureKind;
use std::fmt::Write as _;

/// How much of each run the page keeps, so that it stays small enough to open.
pub struct Caps {
    slices: usize,
    marks: usize,
}

impl Caps {
    /// Caps that keep a page of these experiments within `limits`.
    pub fn new(groups: &[Group<'_>], limits: Limits) -> Caps {
        let has = |group: &Group<'_>, kind| group.result.experiment.figures.contains(&kind);
        let slices: Vec<usize> = groups
            .iter()
            .filter(|group| has(group, FigureKind::Timeline))
            .flat_map(timeline_runs)
            .map(|(_, _, run)| run.slices.len())
            .collect();
        let marks: Vec<usize> = groups
            .iter()
            .filter(|group| has(group, FigureKind::Progress))
            .flat_map(progress_runs)
            .map(|(_, _, run)| run.progress.iter().map(|curve| curve.times_ns.len()).sum())
            .collect();
        Caps {
            slices: fair_cap(&slices, limits.slices_max),
            marks: fair_cap(&marks, limits.progress_marks_max),
        }
    }
}

/// Writes the experiments of a page, with figures numbered consecutively.
pub struct Experiments<'s> {
    /// Looks of the lines.
    pub styles: &'s Styles,
    /// Number of the last figure.
    pub number: usize,
    /// How much of each run the page keeps.
    pub caps: Caps,
}

impl Experiments<'_> {
    /// An experiment as a section with its title.
    pub fn section(&mut self, group: &Group<'_>) -> Result<String, ReportError> {
        let experiment = &group.result.experiment;
        let study = if experiment.study.is_empty() {
            String::new()
        } else {
            format!("<span class=\"study\">Study {}</span> ", escape(&experiment.study))
        };
        Ok(format!(
            "<section class=\"experiment\" id=\"{}\">\n<h2>{study}{}</h2>\n{}</section>\n",
            group.id,
            escape(group.title()),
            self.body(group)?
        ))
    }

    /// An experiment that the reader opens with a click.
    pub fn folded(&mut self, group: &Group<'_>) -> Result<String, ReportError> {
        let experiment = &group.result.experiment;
        let attributes = format!(" class=\"experiment-of-study\" id=\"{}\"", group.id);
        let summary = format!("{}: {}", escape(&experiment.name), escape(group.title()));
        let body = self.body(group)?;
        Ok(folded(&attributes, &summary, format!("<div class=\"experiment\">\n{body}</div>\n")))
    }

    fn body(&mut self, group: &Group<'_>) -> Result<String, ReportError> {
        let experiment = &group.result.experiment;
        let mut out = String::new();
        for paragraph in experiment.text.split("\n\n").filter(|text| !text.trim().is_empty()) {
            let _ = writeln!(out, "<p>{}</p>", escape(paragraph.trim()));
        }
        out += "<div class=\"figures\">\n";
        let mut drawn: Vec<FigureKind> = Vec::new();
        for kind in &experiment.figures {
            if !drawn.contains(kind) {
                drawn.push(*kind);
                self.figure(&mut out, group, *kind)?;
            }
        }
        if let Some((figure, data)) = latency(group, self.styles) {
            self.number += 1;
            out += &figure.render(self.number, &data)?;
        }
        for (figure, data) in sweep::sweep_figures(group) {
            self.number += 1;
            out += &figure.render(self.number, &data)?;
        }
        out += "</div>\n";
        out += &analysis_section(group);
        out += &folded(
            " class=\"all-measures\"",
            "All measures of this experiment",
            detail_table(group, self.styles),
        );
        Ok(out)
    }

    fn figure(
        &mut self,
        out: &mut String,
        group: &Group<'_>,
        kind: FigureKind,
    ) -> Result<(), ReportError> {
        let number = self.number + 1;
        let html = match kind {
            FigureKind::Timeline => timeline::timeline(group, self.caps.slices)
                .map(|(figure, data)| figure.render(number, &data)),
            FigureKind::Progress => progress::progress(group, self.caps.marks)
                .map(|(figure, data)| figure.render(number, &data)),
            FigureKind::TurnaroundAgainstN | FigureKind::ThroughputAgainstN => {
                curves::curves(group, self.styles, kind)
                    .map(|(figure, data)| figure.render(number, &data))
            }
            FigureKind::Boxes => {
                boxes::boxes(group, self.styles).map(|(figure, data)| figure.render(number, &data))
            }
        };
        // Leave out figures without data.
        if let Some(html) = html {
            self.number = number;
            *out += &html?;
        }
        Ok(())
    }
}
