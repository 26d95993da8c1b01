// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small charts with logarithmic axes as SVG: panels side by side on one pair of scales.
//!
//! The chart draws its background, so that it looks the same on a dark page.

use std::fmt::Write;

/// Colours that people with red-green colour blindness can distinguish (Okabe and Ito), and one
/// grey.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#2f9fd8", "#6b3fa0", "#555555"];
const PANEL_WIDTH: f64 = 400.0;
const PANEL_HEIGHT: f64 = 270.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 44.0;

/// A line: its name and points, x and y above 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points in order of x.
    pub points: Vec<(f64, f64)>,
}

/// A panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Title.
    pub title: String,
    /// Lines, in order of their legend.
    pub lines: Vec<Line>,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Panels, filled row by row.
    pub panels: Vec<Panel>,
    /// Panels in a row.
    pub columns: usize,
    /// Label of the x axis.
    pub x_label: &'static str,
    /// Label of the y axis.
    pub y_label: &'static str,
    /// A dashed reference line y = slope * x, and its name.
    pub slope: Option<(f64, &'static str)>,
}

/// The powers of ten of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Decades {
    first: i32,
    last: i32,
}

impl Decades {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let least = values.clone().fold(f64::MAX, f64::min).max(1e-3);
        let most = values.fold(1e-3, f64::max);
        let first = least.log10().floor() as i32;
        Self { first, last: (most.log10().ceil() as i32).max(first + 1) }
    }

    /// Position of `value` between 0 (the first power) and 1 (the last).
    fn place(self, value: f64) -> f64 {
        (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first)
    }

    fn powers(self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|power| 10_f64.powi(power))
    }
}

impl Chart {
    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
        let points = || self.panels.iter().flat_map(|p| &p.lines).flat_map(|line| &line.points);
        let x = Decades::of(points().map(|point| point.0));
        let y = Decades::of(points().map(|point| point.1));
        let columns = self.columns.max(1);
        let rows = self.panels.len().div_ceil(columns);
        let (width, height) = (PANEL_WIDTH * columns as f64, PANEL_HEIGHT * rows as f64);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\" \
             fill=\"#222\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
        );
        for (index, panel) in self.panels.iter().enumerate() {
            let left = PANEL_WIDTH * (index % columns) as f64;
            let top = PANEL_HEIGHT * (index / columns) as f64;
            let _ = writeln!(out, "<g transform=\"translate({left} {top})\">");
            self.axes(&mut out, panel, x, y);
            for (index, line) in panel.lines.iter().enumerate() {
                draw(&mut out, index, line, x, y);
            }
            out += "</g>\n";
        }
        out + "</svg>\n"
    }

    fn axes(&self, out: &mut String, panel: &Panel, x: Decades, y: Decades) {
        let (right, bottom) = (PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM);
        let _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"18\" font-size=\"13\" font-weight=\"bold\">{}</text>",
            escaped(&panel.title)
        );
        for value in x.powers() {
            let at = across(x, value);
            let _ = writeln!(
                out,
                "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#e2e2e2\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 15.0,
                thousands(value)
            );
        }
        for value in y.powers() {
            let at = down(y, value);
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#e2e2e2\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 5.0,
                at + 4.0,
                thousands(value)
            );
        }
        let middle = (TOP + bottom) / 2.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"12\" y=\"{middle:.1}\" transform=\"rotate(-90 12 {middle:.1})\" \
             text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            PANEL_HEIGHT - 10.0,
            escaped(self.x_label),
            escaped(self.y_label)
        );
        if let Some((slope, name)) = self.slope {
            self.slope_line(out, (slope, name), x, y);
        }
    }

    /// Draws the dashed line, cut to the panel.
    fn slope_line(&self, out: &mut String, slope: (f64, &str), x: Decades, y: Decades) {
        let (slope, name) = slope;
        let end = |decades: Decades, power: i32| {
            10_f64.powi(power).clamp(10_f64.powi(decades.first), 10_f64.powi(decades.last))
        };
        let from = end(x, x.first).max(end(y, y.first) / slope);
        let to = end(x, x.last).min(end(y, y.last) / slope);
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#999\" stroke-dasharray=\"4 3\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#777\">{}</text>",
            across(x, from),
            down(y, from * slope),
            across(x, to),
            down(y, to * slope),
            across(x, to) - 8.0,
            down(y, to * slope) + 12.0,
            escaped(name)
        );
    }
}

/// Draws a line, its points and its entry in the legend. The legend is in the upper left corner,
/// because curves begin low.
fn draw(out: &mut String, index: usize, line: &Line, x: Decades, y: Decades) {
    let colour = COLOURS[index % COLOURS.len()];
    let dashes = if index < COLOURS.len() { "" } else { " stroke-dasharray=\"5 2\"" };
    let at = |(px, py): &(f64, f64)| format!("{:.1},{:.1}", across(x, *px), down(y, *py));
    let points: Vec<String> = line.points.iter().map(at).collect();
    let _ = write!(
        out,
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dashes} points=\"{}\"/>",
        points.join(" ")
    );
    for (px, py) in &line.points {
        let (cx, cy) = (across(x, *px), down(y, *py));
        let _ = write!(out, "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"2.4\" fill=\"{colour}\"/>");
    }
    let top = TOP + 14.0 + 13.0 * index as f64;
    let _ = writeln!(
        out,
        "<path d=\"M{:.1} {:.1}h16\" stroke=\"{colour}\" stroke-width=\"2.5\"{dashes}/>\
         <text x=\"{:.1}\" y=\"{top:.1}\">{}</text>",
        LEFT + 8.0,
        top - 4.0,
        LEFT + 30.0,
        escaped(&line.name)
    );
}

fn across(x: Decades, value: f64) -> f64 {
    LEFT + x.place(value) * (PANEL_WIDTH - LEFT - RIGHT)
}

fn down(y: Decades, value: f64) -> f64 {
    PANEL_HEIGHT - BOTTOM - y.place(value) * (PANEL_HEIGHT - TOP - BOTTOM)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Formats a power of ten for people: 100,000.
fn thousands(value: f64) -> String {
    if value < 1.0 {
        return value.to_string();
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_hold_all_values() {
        let decades = Decades::of([3.0, 250.0].into_iter());
        assert_eq!(decades, Decades { first: 0, last: 3 });
        assert_eq!([decades.place(1.0), decades.place(1000.0)], [0.0, 1.0]);
        assert_eq!(Decades::of([100.0].into_iter()), Decades { first: 2, last: 3 });
    }

    #[test]
    fn a_chart_holds_its_lines_inside_and_its_text_harmless() {
        let line = Line { name: "<a&b>".into(), points: vec![(2.0, 10.0), (2_000.0, 90.0)] };
        let chart = Chart {
            panels: vec![Panel { title: "t".into(), lines: vec![line] }],
            columns: 2,
            x_label: "x",
            y_label: "y",
            slope: Some((1.0, "n")),
        };
        let svg = chart.svg();
        assert!(svg.contains("&lt;a&amp;b&gt;") && !svg.contains("NaN") && !svg.contains("inf"));
        assert!(svg.contains("fill=\"#fff\""), "a page in dark colours needs a background");
        assert!(svg.contains(">1,000<") && svg.contains(">10,000<"), "{svg}");
    }
}
