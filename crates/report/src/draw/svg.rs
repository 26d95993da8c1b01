// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes SVG. The page and a file hold the same picture. Looks are classes of assets/chart.css.
//! The page contains it once, with colours for light, dark and paper; each file contains it with
//! the colours for paper.

use super::path::Path;
use crate::html::escape;
use crate::style::COLOURS;
use std::fmt::Write as _;

const STYLE: &str = include_str!("../../assets/chart.css");

/// Values of the page's variables on white paper.
const PAPER: [(&str, &str); 7] = [
    ("sans", "system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"),
    ("paper", "#ffffff"),
    ("ink", "#111110"),
    ("soft", "#77746e"),
    ("grid", "#e4e1d9"),
    ("wait", "#77746e"),
    ("wash", "#f6f2e8"),
];

/// The class that sets one of the [`COLOURS`].
pub fn colour(index: usize) -> String {
    format!("c{}", index % COLOURS.len())
}

/// A picture under construction.
#[derive(Debug, Default)]
pub struct Svg {
    body: String,
}

impl Svg {
    /// Opens a group of `class`. With `line`, the page can hide the group by that number.
    pub fn open(&mut self, class: &str, line: Option<usize>) {
        let _ = match line {
            Some(line) => write!(self.body, "<g class=\"{class}\" data-line=\"{line}\">"),
            None => write!(self.body, "<g class=\"{class}\">"),
        };
    }

    /// Closes the group.
    pub fn close(&mut self) {
        self.body += "</g>";
    }

    /// Draws an outline.
    pub fn path(&mut self, class: &str, path: &Path) {
        if !path.is_empty() {
            let _ = write!(self.body, "<path class=\"{class}\" d=\"{}\"/>", path.data());
        }
    }

    /// Draws an outline with a stroke of `width`, dashed with `dash` unless it is empty.
    pub fn stroke(&mut self, class: &str, path: &Path, width: f64, dash: &str) {
        if path.is_empty() {
            return;
        }
        let _ = write!(self.body, "<path class=\"{class}\" stroke-width=\"{width}\"");
        if !dash.is_empty() {
            let _ = write!(self.body, " stroke-dasharray=\"{dash}\"");
        }
        let _ = write!(self.body, " d=\"{}\"/>", path.data());
    }

    /// Writes a text that starts at a position, or is aligned by `class`.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        let _ =
            write!(self.body, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    }

    /// Writes a slanted text that ends at a position.
    pub fn slanted(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let _ = write!(
            self.body,
            "<text class=\"{class}\" transform=\"translate({x:.1} {y:.1})rotate(-40)\">{}</text>",
            escape(text)
        );
    }

    /// The picture as an element of the page, with extra attributes.
    pub fn for_page(self, (width, height): (f64, f64), attributes: &str) -> String {
        format!(
            "<svg class=\"chart\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" aria-hidden=\"true\"{attributes}>{}</svg>",
            self.body
        )
    }

    /// The picture as a file of its own, on white.
    pub fn for_file(self, (width, height): (f64, f64)) -> String {
        let mut style: String = STYLE
            .lines()
            .filter(|line| !line.starts_with("/*"))
            .map(str::trim)
            .collect::<Vec<_>>()
            .join("");
        let colours = COLOURS.iter().enumerate().map(|(index, hex)| (colour(index), *hex));
        let others = PAPER.iter().map(|(name, value)| (name.to_string(), *value));
        for (name, value) in colours.chain(others) {
            style = style.replace(&format!("var(--{name})"), value);
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{width:.0}\" \
             height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\"><style>{style}</style>\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{}</svg>\n",
            self.body
        )
    }
}

/// Approximate width of `text` at a size of 12 units.
pub fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * 6.8
}

/// `text`, shortened with an ellipsis if wider than `width`.
pub fn fitted(text: &str, width: f64) -> String {
    if width_of(text) <= width {
        return text.into();
    }
    let most = (width / width_of("x")).max(4.0) as usize;
    let begin: String = text.chars().take(most - 1).collect();
    format!("{}\u{2026}", begin.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_needs_nothing_of_the_page() {
        let svg = Svg::default().for_file((10.0, 20.0));
        assert!(!svg.contains("var(") && svg.contains(COLOURS[7]), "{svg}");
        assert!(svg.contains(".chart") && !svg.contains("/*"), "{svg}");
    }

    #[test]
    fn hostile_text_stays_text() {
        let mut svg = Svg::default();
        svg.text("", (0.0, 0.0), "<b>\u{1}");
        svg.slanted("", (0.0, 0.0), "</svg>");
        let svg = svg.for_page((1.0, 1.0), "");
        assert!(svg.contains("&lt;b&gt;\u{fffd}") && svg.matches("</svg>").count() == 1, "{svg}");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(fitted("short", 100.0), "short");
        assert_eq!(fitted("a rather long text", 70.0), "a rather\u{2026}");
    }
}
