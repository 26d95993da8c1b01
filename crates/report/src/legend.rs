// SPDX-License-Identifier: MIT OR Apache-2.0
//! Legends: a swatch with the line's colour, dash and marker, then its name.

use crate::group::{Config, Group};
use crate::html::escape;
use crate::order::config_order;
use crate::style::{MARKERS, Style, Styles};
use std::fmt::Write as _;

/// Legend of the lines `configs` of `group`; each entry is a button that hides its line.
pub fn line_legend(group: &Group<'_>, styles: &Styles, configs: &[usize]) -> String {
    let mut out = String::from("<ul class=\"legend\" aria-label=\"Legend\">\n");
    for config in config_order(group).into_iter().filter(|c| configs.contains(c)) {
        let line = &group.configs[config];
        let _ = writeln!(
            out,
            "<li><button type=\"button\" aria-pressed=\"true\" data-line=\"{config}\">\
             {swatch}{label} <span class=\"lane\">{lane}</span></button></li>",
            swatch = swatch(styles.of(line)),
            label = escape(&line.label()),
            lane = escape(line.lane_words()),
        );
    }
    out += "</ul>\n";
    out
}

/// Swatch and name of `config`, for table cells.
pub fn line_name(config: &Config, styles: &Styles) -> String {
    format!("{}{}", swatch(styles.of(config)), escape(&config.label()))
}

/// A short stretch of the line with one marker.
pub fn swatch(style: Style) -> String {
    let dash = if style.dashed { " stroke-dasharray=\"5 3\"" } else { "" };
    let fill = if style.dashed { "var(--paper)" } else { "currentColor" };
    format!(
        "<svg class=\"swatch c{colour}\" width=\"30\" height=\"12\" viewBox=\"0 0 30 12\" \
         aria-hidden=\"true\">\
         <path d=\"M1 6H29\" stroke=\"currentColor\" stroke-width=\"2\"{dash}/>\
         <path d=\"{shape}\" fill=\"{fill}\" stroke=\"currentColor\" stroke-width=\"1.5\"/></svg>",
        colour = style.colour,
        shape = marker_path(MARKERS[style.marker]),
    )
}

/// Outline of a marker centred on (15, 6).
fn marker_path(marker: &str) -> &'static str {
    match marker {
        "circle" => "M11.8 6a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
        "square" => "M12 3h6v6h-6z",
        "triangle" => "M15 2l4 7h-8z",
        "diamond" => "M15 1.8l4.2 4.2-4.2 4.2-4.2-4.2z",
        "down" => "M15 10l4-7h-8z",
        "cross" => "M12 3l6 6m0-6l-6 6",
        "plus" => "M15 2v8m-4-4h8",
        _ => "M15 2v8m-3.5-6l7 4m0-4l-7 4",
    }
}

/// An entry of the legend of verdicts: the cell as tables show it, and what it means.
pub fn verdict_item(class: &str, sign: &str, text: &str) -> String {
    format!("<li><span class=\"cell {class}\">{sign}</span> {}</li>", text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};

    #[test]
    fn names_in_a_legend_are_escaped_and_simulated_lines_dashed() {
        let results = [experiment("x", vec![run("sim", "<b>rr", 1, 1), run("host", "RR", 1, 1)])];
        let groups = group_all(&results);
        let html = line_legend(&groups[0], &Styles::new(&groups), &[0, 1]);
        assert!(html.contains("&lt;b&gt;rr") && !html.contains("<b>"));
        assert_eq!(html.matches("stroke-dasharray").count(), 1);
        assert_eq!(html.matches("<button").count(), 2);
    }
}
