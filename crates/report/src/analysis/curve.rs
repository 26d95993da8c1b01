// SPDX-License-Identifier: MIT OR Apache-2.0
//! A curve over time as a plain SVG: the mean as a line, the greatest values as an area behind it.

use crate::html::escape;
use crate::number::{duration, significant};
use schedlab_metrics::analysis::Curve;
use std::fmt::Write as _;

/// Size of a picture in its own units.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub width: f64,
    pub height: f64,
    /// Whether it has room for axes.
    pub has_axes: bool,
}

/// A picture of a whole width.
pub const WIDE: Size = Size { width: 720.0, height: 180.0, has_axes: true };
/// A picture in a table's cell.
pub const SMALL: Size = Size { width: 220.0, height: 26.0, has_axes: false };

/// Points of a step line through the bins of a curve.
fn steps(
    values: &[f64],
    curve: &Curve,
    end_ns: u64,
    at: impl Fn(f64, f64) -> (f64, f64),
) -> String {
    let mut out = String::new();
    for (bin, value) in values.iter().enumerate() {
        for edge in [bin as u64, bin as u64 + 1] {
            let (x, y) = at((edge * curve.bin_ns).min(end_ns) as f64, *value);
            let _ = write!(out, "{x:.1},{y:.1} ");
        }
    }
    out.trim_end().to_string()
}

/// Where times and values stand in a picture.
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    size: Size,
    /// Time at the right edge (ns), at least 1.
    end: f64,
    /// Value at the top, above 0.
    top: f64,
}

impl Plane {
    pub fn new(size: Size, end_ns: u64, top: f64) -> Self {
        Self { size, end: end_ns.max(1) as f64, top: if top > 0.0 { top } else { 1.0 } }
    }

    fn margins(&self) -> (f64, f64) {
        if self.size.has_axes { (56.0, 22.0) } else { (1.0, 1.0) }
    }

    /// The point of a value at a time.
    pub fn at(&self, time: f64, value: f64) -> (f64, f64) {
        let (left, below) = self.margins();
        let (width, height) = (self.size.width - left - 6.0, self.size.height - below - 6.0);
        (left + time / self.end * width, 6.0 + (1.0 - value / self.top) * height)
    }

    /// The head of the picture, with axes if it has room for them; `show` writes a value.
    pub fn head(&self, label: &str, show: impl Fn(f64) -> String) -> String {
        let Size { width, height, has_axes } = self.size;
        let mut out = format!(
            "<svg class=\"curve\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{}\">",
            escape(label)
        );
        for part in [0.0, 0.5, 1.0].into_iter().filter(|_| has_axes) {
            let (x, y) = self.at(part * self.end, part * self.top);
            let (left, right) = (self.at(0.0, 0.0).0, self.at(self.end, 0.0).0);
            let anchor = if part < 1.0 { "middle" } else { "end" };
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{left}\" x2=\"{right:.1}\" y1=\"{y:.1}\" \
                 y2=\"{y:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                left - 6.0,
                y + 4.0,
                show(part * self.top),
                height - 4.0,
                duration(part * self.end),
            );
        }
        out
    }
}

/// The picture, `label` being what it shows.
pub fn curve_svg(curve: &Curve, end_ns: u64, size: Size, label: &str) -> String {
    let top = curve.max.iter().copied().max().unwrap_or(0) as f64;
    let plane = Plane::new(size, end_ns, top);
    let at = |time: f64, value: f64| plane.at(time, value);
    let max: Vec<f64> = curve.max.iter().map(|value| *value as f64).collect();
    let (zero, base) = at(0.0, 0.0);
    let last = at((curve.mean.len() as u64 * curve.bin_ns).min(end_ns) as f64, 0.0).0;
    format!(
        "{}<polygon class=\"max\" points=\"{zero:.1},{base:.1} {} {last:.1},{base:.1}\"/>\
         <polyline class=\"mean\" points=\"{}\"/></svg>",
        plane.head(label, significant),
        steps(&max, curve, end_ns, at),
        steps(&curve.mean, curve, end_ns, at),
    )
}
