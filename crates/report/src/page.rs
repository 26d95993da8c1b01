// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common parts of every page: embedded style sheets and script, and the order of sections. The
//! report of experiments is one such page; `study` makes the pages of a reproduction.

use crate::ReportInput;
use crate::agreement::agreement_section;
use crate::error::ReportError;
use crate::experiment::{Caps, Experiments};
use crate::findings::findings;
use crate::group::{Group, group_all};
use crate::html::escape;
use crate::machines::machine_section;
use crate::pairs::{Pair, pairs_of};
use crate::sections::{definitions_section, footer};
use crate::style::Styles;
use crate::tables::summary_section;
use crate::warnings::warnings_section;
use std::fmt::Write as _;

/// The page's style sheets; the last one overrides the others for phone and print.
const STYLES: [&str; 6] = [
    include_str!("../assets/page.css"),
    include_str!("../assets/chart.css"),
    include_str!("../assets/figures.css"),
    include_str!("../assets/analysis.css"),
    include_str!("../assets/claims.css"),
    include_str!("../assets/media.css"),
];

/// The page's script, in the required order.
const CODE: [&str; 5] = [
    include_str!("../assets/data.js"),
    include_str!("../assets/tables.js"),
    include_str!("../assets/timeline.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/report.js"),
];

/// The page fetches nothing: the browser refuses whatever is not in this file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";

/// Renders the report of experiments as one HTML file.
pub fn render_report(input: &ReportInput<'_>) -> Result<String, ReportError> {
    let groups = group_all(input.results);
    if groups.is_empty() {
        return Err(ReportError::NoRuns { experiments: input.results.len() });
    }
    let styles = Styles::new(&groups);
    let pairs = pairs_of(&groups);
    let mut out = head(input.title);
    out += "<main>\n";
    title(&mut out, input, &groups, &pairs);
    let _ = writeln!(
        out,
        "<p class=\"summary\" id=\"summary\">{}</p>",
        escape(&findings(&groups, &pairs).join(" "))
    );
    out += &warnings_section(&groups, &[]);
    out += &summary_section(&groups, &styles);
    let caps = Caps::new(&groups, input.limits);
    let mut experiments = Experiments { styles: &styles, number: 0, caps };
    for group in &groups {
        out += &experiments.section(group)?;
    }
    // Models alone have nothing to agree with.
    if !pairs.is_empty() {
        out += &agreement_section(&pairs, &styles);
    }
    out += &machine_section(&groups, input.command);
    out += &definitions_section(&groups);
    out += "</main>\n";
    out += &footer(input.model_notes);
    out += &code();
    Ok(out)
}

/// The file up to the start of its body, with the style sheets.
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

/// The page's script and the end of the file.
pub fn code() -> String {
    format!("<script>\n\"use strict\";\n{}</script>\n</body>\n</html>\n", CODE.concat())
}

/// The notice for readers without JavaScript.
pub const NO_SCRIPT: &str = "<noscript><p class=\"notice\">Figures that zoom, long tables and what \
                             is folded up need JavaScript, which is off here.</p></noscript>\n";

fn title(out: &mut String, input: &ReportInput<'_>, groups: &[Group<'_>], pairs: &[Pair<'_>]) {
    let _ = writeln!(out, "<header>\n<h1>{}</h1>", escape(input.title));
    if let Some(date) = input.date {
        let _ = writeln!(out, "<p class=\"byline\">{}</p>", escape(date));
    }
    let of_group = |group: &Group<'_>| (group.id.clone(), group.result.experiment.name.clone());
    let agreement = (!pairs.is_empty()).then_some(("agreement", "Agreement"));
    let rest = [("machine", "Machine"), ("definitions", "Measures"), ("models", "Models")];
    let rest = agreement.into_iter().chain(rest).map(|(id, text)| (id.into(), text.into()));
    *out += &contents(groups.iter().map(of_group).chain(rest));
    *out += NO_SCRIPT;
    *out += "</header>\n";
}

/// Links to the sections of a page, by id and text.
pub fn contents(sections: impl IntoIterator<Item = (String, String)>) -> String {
    let mut out = String::from("<nav aria-label=\"Contents\"><ul>");
    for (id, text) in sections {
        let _ = write!(out, "<li><a href=\"#{id}\">{}</a></li>", escape(&text));
    }
    out + "</ul></nav>\n"
}
