// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page: all sections in order, with style sheet and code inside.

use crate::agreement::agreement_section;
use crate::analysis::analysis_section;
use crate::embed::fair_cap;
use crate::error::ReportError;
use crate::findings::findings;
use crate::group::{Group, group_all};
use crate::html::escape;
use crate::number::plural;
use crate::pairs::{Pair, pairs_of};
use crate::progress::progress_runs;
use crate::sections::{definitions_section, footer, machine_section};
use crate::study::{StudyPage, contents, study_page, verdict_summary};
use crate::style::Styles;
use crate::tables::{detail_table, summary_table};
use crate::timeline::timeline_runs;
use crate::warnings::warnings_section;
use crate::{ReportInput, boxes, curves, progress, sweep, timeline};
use schedlab_lab::FigureKind;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The page's style sheets; the last one overrides for phone and print.
const STYLES: [&str; 6] = [
    include_str!("../assets/page.css"),
    include_str!("../assets/chart.css"),
    include_str!("../assets/figures.css"),
    include_str!("../assets/analysis.css"),
    include_str!("../assets/claims.css"),
    include_str!("../assets/media.css"),
];

/// The page's own code, in the order in which it must run.
const CODE: [&str; 5] = [
    include_str!("../assets/data.js"),
    include_str!("../assets/tables.js"),
    include_str!("../assets/timeline.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/report.js"),
];

/// Nothing may be fetched: the browser itself refuses whatever is not in this file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";

/// The report as one HTML file.
pub fn render_report(input: &ReportInput<'_>) -> Result<String, ReportError> {
    let groups = group_all(input.results);
    if groups.is_empty() {
        return Err(ReportError::NoRuns { experiments: input.results.len() });
    }
    let styles = Styles::new(&groups);
    let pairs = pairs_of(&groups);
    let mut page = Page { styles: &styles, number: 0, caps: Caps::new(&groups, input) };
    let mut out = head(input.title);
    out += "<main>\n";
    let studies = studies(input);
    if studies.is_empty() {
        title(&mut out, input, &groups, &pairs);
        let _ = writeln!(
            out,
            "<p class=\"summary\" id=\"summary\">{}</p>",
            escape(&findings(&groups, &pairs).join(" "))
        );
        out += &warnings_section(&groups, &[]);
        summary(&mut out, &groups, &styles);
        for group in &groups {
            page.experiment(&mut out, group)?;
        }
    } else {
        page.reproduction(&mut out, input, &studies, &groups)?;
        summary(&mut out, &groups, &styles);
    }
    // Of models alone there is nothing to say; a study's contents name the section.
    if !pairs.is_empty() || !studies.is_empty() {
        out += &agreement_section(&pairs, &styles);
    }
    out += &machine_section(&groups, input.command);
    out += &definitions_section();
    out += "</main>\n";
    out += &footer(input.model_notes);
    let _ =
        write!(out, "<script>\n\"use strict\";\n{}</script>\n</body>\n</html>\n", CODE.concat());
    Ok(out)
}

/// The pages of the studies; one that has claims and no page of its own gets a bare one.
fn studies(input: &ReportInput<'_>) -> Vec<StudyPage> {
    let mut pages = input.studies.to_vec();
    for claim in input.claims {
        if !pages.iter().any(|page| page.name == claim.study) {
            pages.push(StudyPage { name: claim.study.clone(), ..StudyPage::default() });
        }
    }
    pages
}

/// The file up to the begin of its body, with the style sheets.
pub fn head(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n",
        escape(title),
        STYLES.concat()
    )
}

fn title(out: &mut String, input: &ReportInput<'_>, groups: &[Group<'_>], pairs: &[Pair<'_>]) {
    let _ = writeln!(out, "<header>\n<h1>{}</h1>", escape(input.title));
    if let Some(date) = input.date {
        let _ = writeln!(out, "<p class=\"byline\">{}</p>", escape(date));
    }
    *out += "<nav aria-label=\"Contents\"><ul>";
    for group in groups {
        let _ = write!(
            out,
            "<li><a href=\"#{}\">{}</a></li>",
            group.id,
            escape(&group.result.experiment.name)
        );
    }
    let agreement = (!pairs.is_empty()).then_some(("agreement", "Agreement"));
    let rest = [("machine", "Machine"), ("definitions", "Measures"), ("models", "Models")];
    for (id, text) in agreement.into_iter().chain(rest) {
        let _ = write!(out, "<li><a href=\"#{id}\">{text}</a></li>");
    }
    *out += "</ul></nav>\n";
    *out += NO_SCRIPT;
    *out += "</header>\n";
}

const NO_SCRIPT: &str = "<noscript><p class=\"notice\">Figures that zoom need JavaScript, which is \
                         off here; text, tables and box plots work without it.</p></noscript>\n";

/// Versions of schedlab that made the runs.
fn versions(groups: &[Group<'_>]) -> String {
    let runs = groups.iter().flat_map(|group| &group.result.runs);
    let all: BTreeSet<&str> = runs.map(|run| run.schedlab_version.as_str()).collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}

fn summary(out: &mut String, groups: &[Group<'_>], styles: &Styles) {
    let table = summary_table(groups, styles);
    let minor = table.matches("<tr class=\"minor\">").count();
    *out += "<section id=\"overview\" class=\"hide-minor\">\n<h2>All runs at a glance</h2>\n";
    *out += "<p>Means over repetitions. Click a head to sort.";
    if minor > 0 {
        let _ = write!(
            out,
            " <label class=\"all-n\"><input type=\"checkbox\" id=\"show-minor\"> show every n, not \
             only the greatest ({} more)</label>",
            plural(minor, "row", "rows")
        );
    }
    *out += "</p>\n";
    *out += &table;
    *out += "<div class=\"fig-foot\"><a class=\"csv-of\" href=\"#overview\" \
        data-table=\"summary-table\" download=\"summary.csv\">All rows as CSV</a></div>\n";
    *out += "</section>\n";
}

/// How much each run may keep so that the page stays small enough to open.
struct Caps {
    slices: usize,
    marks: usize,
}

impl Caps {
    fn new(groups: &[Group<'_>], input: &ReportInput<'_>) -> Caps {
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
            slices: fair_cap(&slices, input.limits.slices_max),
            marks: fair_cap(&marks, input.limits.progress_marks_max),
        }
    }
}

struct Page<'s> {
    styles: &'s Styles,
    number: usize,
    caps: Caps,
}

impl Page<'_> {
    /// Title, contents, verdicts, a page for each study; then every experiment.
    fn reproduction(
        &mut self,
        out: &mut String,
        input: &ReportInput<'_>,
        studies: &[StudyPage],
        groups: &[Group<'_>],
    ) -> Result<(), ReportError> {
        let _ = writeln!(out, "<header>\n<h1>{}</h1>", escape(input.title));
        if let Some(command) = input.command {
            let _ = writeln!(
                out,
                "<p class=\"byline\">Made by <code>{}</code>, schedlab {}; the same command makes \
                 it again. Machines, settings and seeds stand at the <a href=\"#machine\">end</a>.\
                 </p>",
                escape(command),
                escape(&versions(groups))
            );
        }
        *out += NO_SCRIPT;
        *out += "</header>\n";
        *out += &contents(studies, groups, input.claims);
        *out += &verdict_summary(input.claims);
        *out += &warnings_section(groups, &[]);
        for page in studies {
            *out += &study_page(page, groups, input.claims, &mut self.number)?;
        }
        *out +=
            "<div class=\"appendix\" id=\"experiments\">\n<h2>All experiments, run by run</h2>\n";
        for group in groups {
            let experiment = &group.result.experiment;
            let _ = writeln!(
                out,
                "<details class=\"experiment-of-study\"><summary>{}: {}</summary>",
                escape(&experiment.name),
                escape(group.title())
            );
            self.experiment(out, group)?;
            *out += "</details>\n";
        }
        *out += "</div>\n<p class=\"print-only\">Every experiment with all its runs is in the file \
                 from which this was printed, not on paper.</p>\n";
        Ok(())
    }

    fn experiment(&mut self, out: &mut String, group: &Group<'_>) -> Result<(), ReportError> {
        let experiment = &group.result.experiment;
        let study = if experiment.study.is_empty() {
            String::new()
        } else {
            format!("<span class=\"study\">Study {}</span> ", escape(&experiment.study))
        };
        let _ = writeln!(
            out,
            "<section class=\"experiment\" id=\"{}\">\n<h2>{study}{}</h2>",
            group.id,
            escape(group.title())
        );
        for paragraph in experiment.text.split("\n\n").filter(|text| !text.trim().is_empty()) {
            let _ = writeln!(out, "<p>{}</p>", escape(paragraph.trim()));
        }
        *out += "<div class=\"figures\">\n";
        let mut drawn: Vec<FigureKind> = Vec::new();
        for kind in &experiment.figures {
            if !drawn.contains(kind) {
                drawn.push(*kind);
                self.figure(out, group, *kind)?;
            }
        }
        for (figure, data) in sweep::sweep_figures(group) {
            self.number += 1;
            *out += &figure.render(self.number, &data)?;
        }
        let _ = write!(
            out,
            "</div>\n{}<details class=\"all-measures\">\
             <summary>All measures of this experiment</summary>\n\
             {}</details>\n</section>\n",
            analysis_section(group),
            detail_table(group, self.styles)
        );
        Ok(())
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
        // A figure without data is left out.
        if let Some(html) = html {
            self.number = number;
            *out += &html?;
        }
        Ok(())
    }
}
