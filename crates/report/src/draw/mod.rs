// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures: a description ([`Chart`]), and the only code that draws it, as SVG for pages and files.
//! The page's own script adds what a picture lacks: it reads values and hides series.

mod chart;
mod panel;
mod path;
mod scale;
mod svg;
mod timeline;

pub use chart::{Axis, Chart, Form, Panel, Series, Ticks, style_swatch};
pub use scale::{nice_end, spans_decades};
pub use timeline::timeline_file;
