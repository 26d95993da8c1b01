// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names with a sample of their line, and signs with their meaning.

use crate::draw::style_swatch;
use crate::group::Config;
use crate::html::escape;
use crate::style::Styles;

/// Sample and name of `config`, for table cells.
pub fn line_name(config: &Config, styles: &Styles) -> String {
    format!("{}{}", style_swatch(styles.of(config)), escape(&config.label()))
}

/// An entry in the legend of verdicts: the cell as in tables, and its meaning.
pub fn verdict_item(class: &str, sign: &str, text: &str) -> String {
    format!("<li><span class=\"cell {class}\">{sign}</span> {}</li>", text.to_lowercase())
}
