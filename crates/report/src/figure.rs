// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frame of every figure in the report: a caption in words, the plot with a text alternative,
//! its data as a table and as CSV, and the embedded data.

use crate::error::ReportError;
use crate::fold::{packed, packed_if_long};
use crate::html::{escape, json_in_script};
use serde::Serialize;
use std::fmt::Write as _;

/// Data of more bytes than this stays packed until the figure is drawn.
const DATA_BYTES_MAX: usize = 4 << 10;

/// The parts of a figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Element id, unique in the report, made only of safe characters.
    pub id: String,
    /// Which code draws the figure: `timeline`, `progress`, `curves` or `boxes`.
    pub kind: &'static str,
    /// Title in plain text.
    pub title: String,
    /// Caption in plain text: its content and how to read it.
    pub caption: String,
    /// Text alternative in plain text: the content, with numbers.
    pub alternative: String,
    /// Notices in plain text about what was left out or cut; shown prominently.
    pub notices: Vec<String>,
    /// Legend as HTML.
    pub legend: String,
    /// Ready-made picture as HTML; empty if the page's code draws it.
    pub picture: String,
    /// Whether the figure takes half the width of a wide screen, next to another one.
    pub half: bool,
}

impl Figure {
    /// Renders the figure as HTML, with `data` embedded for drawing, table and CSV.
    pub fn render<T: Serialize>(&self, number: usize, data: &T) -> Result<String, ReportError> {
        let json = json_in_script(data)
            .map_err(|source| ReportError::Encode { figure: self.id.clone(), source })?;
        // Timelines and progress curves have already packed their numbers.
        let is_packed = matches!(self.kind, "timeline" | "progress");
        let data = match json.len() > DATA_BYTES_MAX && !is_packed {
            true => packed("fig-data", &json),
            false => {
                format!("<script type=\"application/json\" class=\"fig-data\">{json}</script>")
            }
        };
        let (id, kind) = (&self.id, self.kind);
        let mut out = format!(
            "<figure class=\"fig fig-{kind}{half}\" id=\"{id}\" data-kind=\"{kind}\">\n\
             <figcaption><span class=\"fig-no\">Figure {number}.</span> \
             <strong>{title}</strong> {caption}</figcaption>\n",
            half = if self.half { " half" } else { "" },
            title = escape(&self.title),
            caption = escape(&self.caption),
        );
        for notice in &self.notices {
            let _ = writeln!(out, "<p class=\"notice\">{}</p>", escape(notice));
        }
        let _ = write!(
            out,
            "{legend}<div class=\"plot\" role=\"img\" tabindex=\"0\" aria-label=\"{alt}\" \
             aria-describedby=\"{id}-keys\">{picture}</div>\n\
             <p class=\"readout\" id=\"{id}-readout\" aria-live=\"polite\"></p>\n\
             <div class=\"fig-foot\"><span class=\"keys\" id=\"{id}-keys\">{keys}</span>\
             <a class=\"csv\" href=\"#{id}\" download=\"{id}.csv\">Data as CSV</a></div>\n\
             <details class=\"data-table\"><summary>Data as a table</summary>\
             <div class=\"scroll\"></div></details>\n\
             {data}\n</figure>\n",
            legend = self.legend,
            alt = escape(&self.alternative),
            picture = packed_if_long("fig-picture", self.picture.clone()),
            keys = self.keys(),
        );
        Ok(out)
    }

    /// How to use this kind of figure with keyboard and pointer, as HTML.
    fn keys(&self) -> &'static str {
        match self.kind {
            "timeline" => {
                "Drag to move; pinch or <kbd>Ctrl</kbd>+wheel to zoom (wheel alone once clicked); \
                 tap a block for its details. Keys: <kbd>+</kbd> <kbd>\u{2212}</kbd> \
                 <kbd>\u{2190}</kbd> <kbd>\u{2192}</kbd> move, <kbd>0</kbd> all, \
                 <kbd>\u{2191}</kbd> <kbd>\u{2193}</kbd> row, <kbd>n</kbd> <kbd>p</kbd> next and \
                 previous block."
            }
            "curves" | "progress" => {
                "Point at the plot, or focus it and use <kbd>\u{2190}</kbd> <kbd>\u{2192}</kbd>, \
                 to read values."
            }
            _ => "",
        }
    }
}

/// A figure's data as a plain table: all that `boxes` needs, and a part of `curves`.
#[derive(Debug, Default, Serialize)]
pub struct Table {
    /// Column headings, unit last.
    pub columns: Vec<String>,
    /// Rows of text or numbers.
    pub rows: Vec<Vec<serde_json::Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text_in_every_place() {
        let evil = "</script><img src=x onerror=alert(1)>\"'";
        let figure = Figure {
            id: "f".into(),
            kind: "boxes",
            title: evil.into(),
            caption: evil.into(),
            alternative: evil.into(),
            notices: vec![evil.into()],
            legend: String::new(),
            picture: String::new(),
            half: false,
        };
        let html = figure.render(1, &[evil]).unwrap();
        assert!(!html.contains("<img"));
        assert_eq!(html.matches("</script>").count(), 1);
        assert!(!html.contains("aria-label=\"</"));
    }
}
