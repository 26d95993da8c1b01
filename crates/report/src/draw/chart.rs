// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a figure: panels with axes and series. Pages and files draw the same description.

use super::panel::{left_of, panel_body, panel_height};
use super::path::Path;
use super::svg::{Svg, colour, fitted, width_of};
use crate::html::escape;
use crate::style::Style;
use schedlab_lab::redrawn::DrawnPoint;
use std::fmt::Write as _;

/// A figure.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Title. The page puts it into the caption, a file above the panels.
    pub title: String,
    /// Maximum number of panels in a row, at least 1.
    pub columns: usize,
    /// Panels, row by row.
    pub panels: Vec<Panel>,
}

/// A pair of axes with everything drawn between them.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Title; empty for none.
    pub title: String,
    /// Text after the title in a lighter colour, such as the lane.
    pub note: String,
    /// Whether the background is tinted, for values from another publication.
    pub is_tinted: bool,
    /// Height of the plot.
    pub height: f64,
    /// The axis of x values or groups.
    pub along: Axis,
    /// The axis of values.
    pub value: Axis,
    /// Whether the panel is turned: `along` runs down the left side, and values run to the right.
    pub is_lying: bool,
    /// Position on `along` of a dotted line across the plot.
    pub rule: Option<f64>,
    /// Whether a wide panel names its lines at their ends.
    pub has_end_names: bool,
    /// Whether the panel shows only the series, as in a small picture.
    pub is_bare: bool,
    /// Series; later ones are drawn over earlier ones.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug)]
pub enum Axis {
    /// Numbers from `low` to `high`.
    Numbers {
        /// Quantity, with its unit.
        label: String,
        /// Least number.
        low: f64,
        /// Greatest number, above `low`.
        high: f64,
        /// Which numbers get a tick.
        ticks: Ticks,
    },
    /// Names, each with an equal share of the axis.
    Names(Vec<String>),
}

impl Default for Axis {
    fn default() -> Axis {
        Axis::numbers("", 0.0, 1.0)
    }
}

impl Axis {
    /// An axis of numbers with round ticks.
    pub fn numbers(label: &str, low: f64, high: f64) -> Axis {
        Axis::Numbers { label: label.into(), low, high, ticks: Ticks::Round }
    }
}

/// Ticks of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ticks {
    /// Round numbers.
    Round,
    /// Whole numbers only: there is no half task.
    Whole,
    /// Powers of ten; the axis is logarithmic.
    Decades,
}

/// The points that form one line, area or set of bars.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Name in the legend; empty for none.
    pub name: String,
    /// Text after the name in a lighter colour.
    pub note: String,
    /// Colour, marker, and dashed with hollow marks or not; `None`: the colour of text.
    pub style: Option<Style>,
    /// How it is drawn.
    pub form: Form,
    /// Points, sorted by x. A [`Form::Band`] draws `ci95` as a band; other forms draw it as error
    /// bars.
    pub points: Vec<DrawnPoint>,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Form {
    /// A line with a mark at each point and a band for the intervals.
    #[default]
    Band,
    /// A line with marks of half width `r`, dashed with `dash`, and error bars for the intervals.
    Line {
        /// Half width of a mark; 0 for none.
        r: f64,
        /// Dashes as in `stroke-dasharray`; empty for none.
        dash: &'static str,
    },
    /// A thin line with a mark at its end.
    Track,
    /// The area between the line and the axis.
    Area,
    /// Dots of half width `r` with error bars.
    Dots {
        /// Half width.
        r: f64,
    },
    /// Bars; or boxes, if a point has quartiles. Several series in one slot each have their own
    /// part.
    Bars {
        /// Number of this series' part, from 0.
        part: usize,
        /// Number of parts in a slot.
        parts: usize,
    },
}

/// Maximum number of legend entries on a page.
const KEYS_MAX: usize = 48;
const KEY_LINE: f64 = 18.0;
/// Margin around the panels of a file.
const EDGE: f64 = 12.0;

impl Chart {
    /// The series for the legend, each name once. Their indices are the numbers by which the page
    /// hides series.
    fn keys(&self) -> Vec<&Series> {
        let mut keys: Vec<&Series> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if !series.name.is_empty() && !keys.iter().any(|known| is_same(known, series)) {
                keys.push(series);
            }
        }
        keys
    }

    fn left(&self, width: f64) -> f64 {
        self.panels.iter().map(|panel| left_of(panel, width)).fold(0.0, f64::max)
    }

    /// The legend as HTML, with a button for each entry that hides its series. Empty for fewer than
    /// two entries.
    pub fn legend(&self) -> String {
        let keys = self.keys();
        if keys.len() < 2 {
            return String::new();
        }
        let mut out = String::from("<ul class=\"legend\" aria-label=\"Legend\">\n");
        for (line, series) in keys.iter().enumerate().take(KEYS_MAX) {
            let _ = write!(
                out,
                "<li><button type=\"button\" aria-pressed=\"true\" data-line=\"{line}\">{}{}",
                swatch(series),
                escape(&series.name)
            );
            if !series.note.is_empty() {
                let _ = write!(out, " <span class=\"lane\">{}</span>", escape(&series.note));
            }
            out += "</button></li>\n";
        }
        if keys.len() > KEYS_MAX {
            let _ = writeln!(out, "<li>and {} more</li>", keys.len() - KEYS_MAX);
        }
        out + "</ul>\n"
    }

    /// The panels as HTML, each `wide` units wide. With `narrow`, also in that width for phones.
    pub fn page(&self, wide: f64, narrow: Option<f64>) -> String {
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let mut out = format!("<div class=\"picture\" style=\"--columns:{columns}\">");
        for (index, panel) in self.panels.iter().enumerate() {
            out += "<div class=\"panel\">";
            if !panel.title.is_empty() {
                let note = escape(&panel.note);
                let _ = write!(
                    out,
                    "<h5>{} <span class=\"lane\">{note}</span></h5>",
                    escape(&panel.title)
                );
            }
            let _ = match narrow {
                Some(narrow) => write!(
                    out,
                    "<div class=\"wide\">{}</div><div class=\"narrow\">{}</div>",
                    self.panel(index, wide),
                    self.panel(index, narrow)
                ),
                None => write!(out, "{}", self.panel(index, wide)),
            };
            out += "</div>";
        }
        out + "</div>"
    }

    /// One panel as an SVG element of the page.
    fn panel(&self, index: usize, width: f64) -> String {
        let panel = &self.panels[index];
        let mut svg = Svg::default();
        let left = self.left(width);
        let frame = panel_body(&mut svg, panel, &self.keys(), (0.0, 0.0), (left, width));
        let attributes = match &panel.along {
            Axis::Numbers { low, high, .. } if !panel.is_lying => format!(
                " data-panel=\"{index}\" data-x=\"{low} {high} {:.1} {:.1}\"",
                frame.0, frame.1
            ),
            _ => String::new(),
        };
        svg.for_page((width, panel_height(panel)), &attributes)
    }

    /// The figure as a file with panels of `width`.
    pub fn file(&self, width: f64) -> String {
        let mut svg = Svg::default();
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let whole = width * columns as f64 + 2.0 * EDGE;
        let mut y = EDGE;
        if !self.title.is_empty() {
            svg.text("large bold", (EDGE, y + 13.0), &fitted(&self.title, whole * 0.8));
            y += 28.0;
        }
        y = self.file_legend(&mut svg, y, whole);
        let left = self.left(width);
        for row in self.panels.chunks(columns) {
            let mut below: f64 = y;
            for (index, panel) in row.iter().enumerate() {
                let mut top = y;
                let x = EDGE + index as f64 * width;
                if !panel.title.is_empty() {
                    let title = match panel.note.is_empty() {
                        true => panel.title.clone(),
                        false => format!("{}, {}", panel.title, panel.note),
                    };
                    svg.text("bold", (x, y + 12.0), &fitted(&title, width - 8.0));
                    top += 22.0;
                }
                panel_body(&mut svg, panel, &self.keys(), (x, top), (left, width));
                below = below.max(top + panel_height(panel) + 8.0);
            }
            y = below;
        }
        svg.for_file((whole, y + EDGE))
    }

    /// Draws the legend in lines of width `whole`. Returns the position below it.
    fn file_legend(&self, svg: &mut Svg, top: f64, whole: f64) -> f64 {
        let keys = self.keys();
        if keys.len() < 2 {
            return top;
        }
        let (mut x, mut y) = (EDGE, top);
        for series in keys {
            let name = match series.note.is_empty() {
                true => series.name.clone(),
                false => format!("{}, {}", series.name, series.note),
            };
            let room = width_of(&name) + 52.0;
            if x + room > whole && x > EDGE {
                (x, y) = (EDGE, y + KEY_LINE);
            }
            draw_key(svg, series, (x, y + 6.0));
            svg.text("", (x + 36.0, y + 10.0), &name);
            x += room;
        }
        y + KEY_LINE + 8.0
    }
}

/// Whether two series share one legend entry.
pub fn is_same(a: &Series, b: &Series) -> bool {
    a.name == b.name && a.note == b.note
}

/// CSS class of a series' colour.
pub fn colour_of(series: &Series) -> String {
    series.style.map_or_else(|| "ink".into(), |style| colour(style.colour))
}

/// A short sample of the series, for legends on the page.
fn swatch(series: &Series) -> String {
    let mut svg = Svg::default();
    draw_key(&mut svg, series, (0.0, 6.0));
    svg.for_page((30.0, 12.0), "").replacen("chart", "chart swatch", 1)
}

/// A short sample of `style`, for a legend entry without a series.
pub fn style_swatch(style: Style) -> String {
    swatch(&Series { style: Some(style), ..Series::default() })
}

fn draw_key(svg: &mut Svg, series: &Series, (x, y): (f64, f64)) {
    let style = series.style.unwrap_or_default();
    let (mut line, mut mark) = (Path::default(), Path::default());
    svg.open(&colour_of(series), None);
    match series.form {
        Form::Band | Form::Line { .. } => {
            line.segment((x + 1.0, y), (x + 29.0, y));
            if !matches!(series.form, Form::Line { r, .. } if r <= 0.0) {
                mark.marker(style.marker, 3.2, (x + 15.0, y));
            }
            svg.stroke("line", &line, 2.0, dash_of(style, series.form));
            svg.path(if style.dashed { "hollow" } else { "mark" }, &mark);
        }
        Form::Track => {
            line.segment((x + 1.0, y), (x + 20.0, y));
            mark.marker(style.marker, 3.0, (x + 23.0, y));
            svg.stroke("line", &line, 1.75, dash_of(style, series.form));
            svg.path("mark", &mark);
        }
        Form::Dots { .. } => {
            line.dot((x + 15.0, y));
            svg.stroke("dots", &line, 8.0, "");
        }
        Form::Area | Form::Bars { .. } => {
            line.rect((x + 10.0, y - 5.0), (x + 20.0, y + 5.0));
            svg.path(if series.form == Form::Area { "area" } else { "block" }, &line);
        }
    }
    svg.close();
}

/// Dash pattern of a series' line.
pub fn dash_of(style: Style, form: Form) -> &'static str {
    match form {
        Form::Line { dash, .. } => dash,
        _ if style.dashed => "6 4",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, note: &str, values: [f64; 3]) -> Series {
        let points = (1..).map(f64::from).zip(values).map(|(x, y)| DrawnPoint::plain(x, y));
        Series {
            name: name.into(),
            note: note.into(),
            style: Some(Style::default()),
            points: points.collect(),
            ..Series::default()
        }
    }

    fn chart(series: Vec<Series>) -> Chart {
        let panel = Panel {
            height: 100.0,
            along: Axis::numbers("n", 0.0, 3.0),
            value: Axis::numbers("s", 0.0, 10.0),
            has_end_names: true,
            series,
            ..Panel::default()
        };
        Chart { title: "t".into(), columns: 2, panels: vec![panel.clone(), panel] }
    }

    #[test]
    fn a_name_has_one_number_in_all_panels_and_stays_text() {
        let chart = chart(vec![series("<b>", "sim", [1.0; 3]), series("<b>", "real", [2.0; 3])]);
        let legend = chart.legend();
        assert_eq!(legend.matches("<button").count(), 2, "{legend}");
        let page = chart.page(500.0, None);
        for line in ["data-line=\"0\"", "data-line=\"1\""] {
            assert_eq!(legend.matches(line).count(), 1, "{legend}");
            assert_eq!(page.matches(line).count(), 2 * 2, "in each panel a line and its name");
        }
        for text in [legend, page, chart.file(500.0)] {
            assert!(text.contains("&lt;b&gt;") && !text.contains("<b>"), "{text}");
        }
    }

    #[test]
    fn one_series_needs_no_legend() {
        assert_eq!(chart(vec![series("a", "", [1.0; 3])]).legend(), "");
    }

    #[test]
    fn names_at_the_ends_of_lines_lie_apart_and_only_where_there_is_room() {
        let names = ["a1", "a2", "a3", "a4"];
        let chart = chart(names.map(|name| series(name, "", [1.0, 2.0, 9.0])).into());
        let heights = |page: &str| -> Vec<f64> {
            let texts = page.split("<text class=\"named").skip(1).take(names.len());
            let of = |text: &str| text.split("y=\"").nth(1)?.split('"').next()?.parse().ok();
            texts.filter_map(of).collect()
        };
        let found = heights(&chart.page(500.0, None));
        assert_eq!(found.len(), names.len());
        assert!(found.windows(2).all(|pair| pair[1] - pair[0] >= 13.9), "{found:?}");
        assert!(heights(&chart.page(340.0, None)).is_empty());
    }

    #[test]
    fn the_page_knows_where_the_axis_lies() {
        let page = chart(vec![series("a", "", [1.0; 3])]).page(340.0, None);
        assert!(page.contains("data-panel=\"1\" data-x=\"0 3 34.0 326.0\""), "{page}");
    }
}
