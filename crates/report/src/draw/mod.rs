// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures: a description ([`Chart`]) and the one place that draws it, as SVG for the page and for
//! files. The code of the page adds what a picture cannot do: it reads values and hides series.

mod chart;
mod panel;
mod path;
mod scale;
mod svg;
mod timeline;

pub use chart::{Axis, Chart, Form, Panel, Series, Ticks, style_swatch};
pub use scale::{nice_end, spans_decades};
pub use timeline::timeline_file;
