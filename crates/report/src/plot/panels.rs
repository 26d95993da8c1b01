// SPDX-License-Identifier: MIT OR Apache-2.0
//! A study's figure drawn again: small panels in rows, the original's values on a tinted ground,
//! each with its axes, drawn with the library's plain shapes so that nothing overlaps: every label
//! has its room.

use super::scale::{Scale, nice_end};
use super::{AXIS, FONTS, GRID, Ink, TEXT, literal, text};
use crate::style::COLOURS;
use kuva::render::color::Color;
use kuva::render::render::{Primitive, Scene, TextAnchor};
use schedlab_lab::redrawn::{Drawn, DrawnKind, DrawnPanel, DrawnPoint, DrawnSeries};

/// Ground of the original's panels; the style sheet knows it.
const TINT: &str = "#f6f2e8";
/// Room left of a panel's plot for the numbers of its axis.
const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;
/// Room above it for its title and the label of its axis.
const HEAD: f64 = 44.0;
/// Room below it for numbers and label, and for slanted names of groups.
const FOOT: f64 = 38.0;
const FOOT_SLANTED: f64 = 62.0;
/// Most panels side by side where the figure does not say.
const COLUMNS_MAX: usize = 4;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 18.0;
/// The line of a box's median, on any of the colours.
const MEDIAN: &str = "#ffffff";
/// Dashes of lines in their order: one that lies on another leaves gaps for it.
const DASHES: [&str; 4] = ["", "9 5", "4 7", "2 9"];
/// Width of a letter at the size of the legend, roughly.
const LETTER: f64 = 7.0;

/// Where and how large a panel is drawn.
struct Place<'d> {
    panel: &'d DrawnPanel,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    /// Whether it bears the label of the vertical axis: the first of its row.
    is_first: bool,
}

/// What panels have in common.
struct Look<'d> {
    drawn: &'d Drawn,
    ink: Ink,
}

/// The figure in `width`; a narrow one has its panels below one another.
pub fn panels_scene(drawn: &Drawn, width: f64, ink: Ink) -> Scene {
    let columns = columns(drawn, width);
    let cell = width / columns as f64;
    let legend = legend_lines(drawn, width);
    let top = legend.len() as f64 * LEGEND_LINE + if legend.is_empty() { 4.0 } else { 10.0 };
    let mut y = top;
    let mut places = Vec::new();
    for row in drawn.panels.chunks(columns) {
        let plot = row.iter().map(|panel| plot_height(drawn, panel)).fold(0.0, f64::max);
        for (index, panel) in row.iter().enumerate() {
            let x = index as f64 * cell;
            places.push(Place { panel, x, y, width: cell, height: plot, is_first: index == 0 });
        }
        y += HEAD + plot + foot(drawn) + 8.0;
    }
    let mut scene = Scene::new(width, y);
    scene.background_color = (ink == Ink::File).then(|| "white".into());
    scene.text_color = Some(TEXT.into());
    scene.font_family = Some(FONTS.into());
    draw_legend(&mut scene, &legend);
    let look = Look { drawn, ink };
    for place in &places {
        look.panel(&mut scene, place);
    }
    scene
}

fn columns(drawn: &Drawn, width: f64) -> usize {
    let count = drawn.panels.len().max(1);
    if width < 500.0 {
        return 1;
    }
    match drawn.columns as usize {
        0 => count.min(COLUMNS_MAX),
        columns => columns.clamp(1, count),
    }
}

fn foot(drawn: &Drawn) -> f64 {
    if drawn.groups.is_empty() { FOOT } else { FOOT_SLANTED }
}

fn plot_height(drawn: &Drawn, panel: &DrawnPanel) -> f64 {
    match panel.kind {
        // A row for each process.
        DrawnKind::Who => {
            let panels = drawn.panels.iter().filter(|other| other.kind == DrawnKind::Who);
            let most = panels.map(|other| other.series.len()).max().unwrap_or(1);
            24.0 + 16.0 * most.min(40) as f64
        }
        DrawnKind::Progress => 130.0,
        DrawnKind::Points => 170.0,
        DrawnKind::Lines => 220.0,
        DrawnKind::Bars | DrawnKind::Boxes => 190.0,
    }
}

/// Labels with their colours, in lines that fit `width`.
fn legend_lines(drawn: &Drawn, width: f64) -> Vec<Vec<(String, usize)>> {
    let mut labels: Vec<&str> = Vec::new();
    for label in drawn.panels.iter().flat_map(|p| &p.series).map(|one| one.label.as_str()) {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    if labels.len() < 2 {
        return Vec::new();
    }
    let mut lines: Vec<Vec<(String, usize)>> = vec![Vec::new()];
    let mut used = 0.0;
    for (index, label) in labels.into_iter().enumerate() {
        let room = legend_width(label);
        if used + room > width && used > 0.0 {
            lines.push(Vec::new());
            used = 0.0;
        }
        used += room;
        if let Some(line) = lines.last_mut() {
            line.push((label.to_string(), index));
        }
    }
    lines
}

fn legend_width(label: &str) -> f64 {
    label.chars().count() as f64 * LETTER + 34.0
}

fn draw_legend(scene: &mut Scene, lines: &[Vec<(String, usize)>]) {
    for (row, line) in lines.iter().enumerate() {
        let y = row as f64 * LEGEND_LINE + 12.0;
        let mut x = 4.0;
        for (label, index) in line {
            rect(scene, [x, y - 8.0, 10.0, 10.0], COLOURS[index % COLOURS.len()]);
            text(scene, (x + 15.0, y + 1.0), label, 12, false, TextAnchor::Start);
            x += legend_width(label);
        }
    }
}

impl Look<'_> {
    fn panel(&self, scene: &mut Scene, place: &Place<'_>) {
        let (left, top) = (place.x + LEFT, place.y + HEAD);
        let (right, bottom) = (place.x + place.width - RIGHT, top + place.height);
        if place.panel.is_original {
            rect(scene, [left, top, right - left, bottom - top], TINT);
        }
        let title = cut(&place.panel.title, place.width - 8.0);
        text(scene, (place.x + 4.0, place.y + 14.0), &title, 12, true, TextAnchor::Start);
        if place.is_first {
            let label = self.y_label(place.panel);
            text(scene, (place.x + 4.0, place.y + 29.0), label, 11, false, TextAnchor::Start);
        }
        let y = self.y_scale(place.panel, bottom, top);
        let x = self.x_scale(place.panel, left, right);
        self.y_axis(scene, place, &y, left, right);
        self.x_axis(scene, place, &x, (top, bottom), (left, right));
        let base = y.at(y.low()).unwrap_or(bottom);
        let count = place.panel.series.len();
        for (index, one) in place.panel.series.iter().enumerate() {
            // Earlier dots are larger: one that lies under another still shows around it.
            let below = (count - 1 - index).min(4) as f64;
            let colour = COLOURS[self.colour(one, index) % COLOURS.len()];
            match place.panel.kind {
                DrawnKind::Who | DrawnKind::Progress => dots(scene, one, (&x, &y), colour, 1.7),
                DrawnKind::Points => {
                    intervals(scene, one, (&x, &y));
                    dots(scene, one, (&x, &y), colour, 3.4);
                }
                DrawnKind::Lines => {
                    line(scene, one, (&x, &y), colour, DASHES[index % DASHES.len()]);
                    dots(scene, one, (&x, &y), colour, 2.4 + 0.9 * below);
                }
                DrawnKind::Bars => {
                    let slot = (right - left) / self.drawn.groups.len().max(1) as f64;
                    let bar = Bar { left, slot, width: slot * 0.78 / count as f64, index, base };
                    bars(scene, one, &y, &bar, colour);
                }
                DrawnKind::Boxes => {
                    let slot = (right - left) / self.drawn.groups.len().max(1) as f64;
                    let bar = Bar { left, slot, width: slot * 0.78 / count as f64, index, base };
                    boxes(scene, one, &y, &bar, colour);
                }
            }
        }
    }

    /// The number of a series' colour: that of the legend.
    fn colour(&self, one: &DrawnSeries, index: usize) -> usize {
        let mut labels: Vec<&str> = Vec::new();
        for label in self.drawn.panels.iter().flat_map(|p| &p.series).map(|s| s.label.as_str()) {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        labels.iter().position(|label| *label == one.label).unwrap_or(index)
    }

    fn y_label<'l>(&'l self, panel: &DrawnPanel) -> &'l str {
        match panel.kind {
            DrawnKind::Who => "process",
            DrawnKind::Progress => "progress (%)",
            _ => &self.drawn.y_label,
        }
    }

    fn x_label<'l>(&'l self, panel: &DrawnPanel) -> &'l str {
        match panel.kind {
            DrawnKind::Who | DrawnKind::Progress => "elapsed time (ms)",
            _ => &self.drawn.x_label,
        }
    }

    /// Points of the panels that share the axis of `panel`: those of its kind, and of the original
    /// and ours together only where they are of one size.
    fn peers<'s>(&'s self, panel: &'s DrawnPanel) -> Vec<&'s DrawnPoint> {
        let of = |is_original: bool| -> Vec<&DrawnPoint> {
            let panels = self.drawn.panels.iter();
            let same = panels.filter(|p| p.kind == panel.kind && p.is_original == is_original);
            same.flat_map(|p| p.series.iter().flat_map(|one| &one.points)).collect()
        };
        let most = |points: &[&DrawnPoint]| points.iter().map(|p| p.top()).fold(0.0, f64::max);
        let (own, other) = (of(panel.is_original), of(!panel.is_original));
        let (a, b) = (most(&own), most(&other));
        if b > 0.0 && a > 0.0 && (a / b).max(b / a) <= 3.0 {
            return own.into_iter().chain(other).collect();
        }
        own
    }

    fn y_scale(&self, panel: &DrawnPanel, bottom: f64, top: f64) -> Scale {
        let peers = self.peers(panel);
        let high = peers.iter().map(|point| point.top()).fold(0.0, f64::max);
        let [low_fixed, high_fixed] = self.drawn.y_range;
        match panel.kind {
            DrawnKind::Who => {
                let count = panel.series.len().max(1) as f64;
                Scale::linear(-0.6, count - 0.4, bottom, top)
            }
            DrawnKind::Progress => Scale::linear(0.0, 100.0, bottom, top),
            _ if self.drawn.log => {
                let low = low_fixed.unwrap_or(1.0).max(1e-12);
                let high = high_fixed.unwrap_or(high).max(low * 10.0);
                Scale::log(low, 10.0_f64.powf(high.log10().ceil()), bottom, top)
            }
            _ => {
                let low = low_fixed.unwrap_or(0.0);
                let high = high_fixed.unwrap_or_else(|| nice_end(high.max(low + 1e-9)));
                Scale::linear(low, high, bottom, top)
            }
        }
    }

    fn x_scale(&self, panel: &DrawnPanel, left: f64, right: f64) -> Scale {
        let panels = self.drawn.panels.iter();
        let xs = || panels.clone().flat_map(|p| p.series.iter().flat_map(|one| &one.points));
        let high = xs().map(|point| point.x).fold(0.0, f64::max);
        match panel.kind {
            DrawnKind::Bars | DrawnKind::Boxes => {
                Scale::linear(-0.5, self.drawn.groups.len() as f64 - 0.5, left, right)
            }
            // As the studies' scripts draw it: from 0 to one more than the last.
            DrawnKind::Points if high <= 40.0 => Scale::linear(0.0, high + 1.0, left, right),
            DrawnKind::Who | DrawnKind::Progress => Scale::linear(0.0, high, left, right),
            _ => Scale::linear(0.0, high.max(1e-9) * 1.05, left, right),
        }
    }

    fn y_axis(&self, scene: &mut Scene, place: &Place<'_>, y: &Scale, left: f64, right: f64) {
        let ticks: Vec<(f64, String)> = match place.panel.kind {
            DrawnKind::Who => (0..place.panel.series.len().min(40))
                .map(|number| (number as f64, number.to_string()))
                .collect(),
            _ => y.ticks(if self.drawn.log { 7 } else { 5 }),
        };
        for (value, label) in ticks {
            let Some(at) = y.at(value) else { continue };
            segment(scene, (left, at), (right, at), GRID, 1.0);
            text(scene, (left - 6.0, at + 4.0), &label, 11, false, TextAnchor::End);
        }
    }

    fn x_axis(
        &self,
        scene: &mut Scene,
        place: &Place<'_>,
        x: &Scale,
        (top, bottom): (f64, f64),
        (left, right): (f64, f64),
    ) {
        segment(scene, (left, bottom), (right, bottom), AXIS, 1.0);
        if matches!(place.panel.kind, DrawnKind::Bars | DrawnKind::Boxes) {
            for (index, name) in self.drawn.groups.iter().enumerate() {
                let Some(at) = x.at(index as f64) else { continue };
                slanted(scene, (at + 4.0, bottom + 14.0), name);
            }
            return;
        }
        let room = ((right - left) / 44.0).floor().max(2.0) as usize;
        for (value, label) in x.ticks(room.min(8)) {
            let Some(at) = x.at(value) else { continue };
            segment(scene, (at, top), (at, bottom), GRID, 1.0);
            segment(scene, (at, bottom), (at, bottom + 4.0), AXIS, 1.0);
            text(scene, (at, bottom + 16.0), &label, 11, false, TextAnchor::Middle);
        }
        let label = self.x_label(place.panel);
        let middle = (left + right) / 2.0;
        text(scene, (middle, bottom + 32.0), label, 11, false, TextAnchor::Middle);
        if self.ink == Ink::File {
            segment(scene, (left, top), (left, bottom), AXIS, 1.0);
        }
    }
}

/// Where bars of a series stand.
struct Bar {
    left: f64,
    slot: f64,
    width: f64,
    index: usize,
    base: f64,
}

fn bars(scene: &mut Scene, one: &DrawnSeries, y: &Scale, bar: &Bar, colour: &str) {
    for point in &one.points {
        let Some(top) = y.at(point.y) else { continue };
        let x = bar.left + (point.x + 0.11) * bar.slot + bar.index as f64 * bar.width;
        rect(scene, [x, top, (bar.width - 0.6).max(0.8), (bar.base - top).max(0.0)], colour);
        if let Some([low, high]) = point.ci95 {
            let middle = x + bar.width / 2.0;
            let (low, high) = (y.clamped(low), y.clamped(high));
            segment(scene, (middle, low), (middle, high), AXIS, 1.0);
        }
    }
}

/// Boxes of quartiles with the median across, and lines to the least and the greatest.
fn boxes(scene: &mut Scene, one: &DrawnSeries, y: &Scale, bar: &Bar, colour: &str) {
    for point in &one.points {
        let Some(spread) = point.spread else { continue };
        let [min, q1, q3, max] = spread.map(|value| y.clamped(value));
        let x = bar.left + (point.x + 0.11) * bar.slot + bar.index as f64 * bar.width;
        let (width, middle) = ((bar.width - 2.0).max(1.0), x + bar.width / 2.0);
        segment(scene, (middle, min), (middle, q1), AXIS, 1.0);
        segment(scene, (middle, q3), (middle, max), AXIS, 1.0);
        for end in [min, max] {
            segment(scene, (middle - width / 4.0, end), (middle + width / 4.0, end), AXIS, 1.0);
        }
        rect(scene, [x + 1.0, q3, width, (q1 - q3).max(1.0)], colour);
        let median = y.clamped(point.y);
        segment(scene, (x + 1.0, median), (x + 1.0 + width, median), MEDIAN, 2.0);
    }
}

fn dots(scene: &mut Scene, one: &DrawnSeries, (x, y): (&Scale, &Scale), colour: &str, r: f64) {
    let places = one.points.iter().filter_map(|point| Some((x.at(point.x)?, y.at(point.y)?)));
    let (cx, cy): (Vec<f64>, Vec<f64>) = places.unzip();
    scene.add(Primitive::CircleBatch {
        cx,
        cy,
        r,
        fill: Color::from(colour),
        fill_opacity: None,
        stroke: None,
        stroke_width: None,
    });
}

fn intervals(scene: &mut Scene, one: &DrawnSeries, (x, y): (&Scale, &Scale)) {
    for point in &one.points {
        let (Some(at), Some([low, high])) = (x.at(point.x), point.ci95) else { continue };
        segment(scene, (at, y.clamped(low)), (at, y.clamped(high)), AXIS, 1.4);
    }
}

fn line(
    scene: &mut Scene,
    one: &DrawnSeries,
    (x, y): (&Scale, &Scale),
    colour: &str,
    dashes: &str,
) {
    let points = one.points.iter().filter_map(|point| Some((x.at(point.x)?, y.at(point.y)?)));
    scene.add(Primitive::PolyLine {
        points: points.collect(),
        stroke: Color::from(colour),
        stroke_width: 2.0,
        stroke_dasharray: (!dashes.is_empty()).then(|| dashes.into()),
    });
}

fn rect(scene: &mut Scene, [x, y, width, height]: [f64; 4], fill: &str) {
    scene.add(Primitive::Rect {
        x,
        y,
        width,
        height,
        fill: Color::from(fill),
        stroke: None,
        stroke_width: None,
        opacity: None,
    });
}

fn segment(scene: &mut Scene, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
    scene.add(Primitive::Line {
        x1: from.0,
        y1: from.1,
        x2: to.0,
        y2: to.1,
        stroke: Color::from(colour),
        stroke_width: width,
        stroke_dasharray: None,
    });
}

/// A name below its group, rising to its place.
fn slanted(scene: &mut Scene, (x, y): (f64, f64), content: &str) {
    scene.add(Primitive::Text {
        x,
        y,
        content: literal(content),
        size: 11,
        anchor: TextAnchor::End,
        rotate: Some(-40.0),
        bold: false,
        color: Some(Color::from(TEXT)),
    });
}

/// `text` in at most `width`, at the size of a panel's title.
fn cut(text: &str, width: f64) -> String {
    let most = (width / 7.2).max(4.0) as usize;
    if text.chars().count() <= most {
        return text.into();
    }
    let begin: String = text.chars().take(most - 1).collect();
    format!("{}\u{2026}", begin.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::svg;

    pub(super) fn drawn(kind: DrawnKind, panels: usize) -> Drawn {
        let point = |x: usize| DrawnPoint {
            ci95: Some([0.1, 2.0]),
            spread: (kind == DrawnKind::Boxes).then_some([0.2, 0.4, 3.0, 4.0]),
            ..DrawnPoint::plain(x as f64, 0.5 + x as f64)
        };
        let series =
            |label: &str| DrawnSeries { label: label.into(), points: (0..3).map(point).collect() };
        let panel = |index: usize| DrawnPanel {
            kind,
            title: format!("panel {index} of <b> and a name that is too long for its panel"),
            is_original: index == 0,
            series: vec![series("one"), series("two")],
        };
        Drawn {
            id: "S0-F1".into(),
            title: "t".into(),
            text: String::new(),
            claims: Vec::new(),
            source: None,
            columns: 0,
            x_label: "n".into(),
            y_label: "seconds (s)".into(),
            log: kind == DrawnKind::Bars,
            y_range: [None, None],
            groups: if matches!(kind, DrawnKind::Bars | DrawnKind::Boxes) {
                ["L-CPU", "M-CPU", "H-CPU"].map(String::from).into()
            } else {
                Vec::new()
            },
            panels: (0..panels).map(panel).collect(),
            missing: Vec::new(),
        }
    }

    #[test]
    fn every_kind_is_drawn_with_labels_and_legend() {
        for (kind, wanted) in [
            (DrawnKind::Who, "process"),
            (DrawnKind::Progress, "progress (%)"),
            (DrawnKind::Points, "seconds (s)"),
            (DrawnKind::Lines, "seconds (s)"),
            (DrawnKind::Bars, "L-CPU"),
            (DrawnKind::Boxes, "H-CPU"),
        ] {
            for width in [1000.0, 340.0] {
                let text = svg(&panels_scene(&drawn(kind, 3), width, Ink::Inline));
                assert!(text.contains(wanted), "{kind:?}");
                assert!(text.contains("one") && text.contains("two"), "{kind:?}: the legend");
                assert!(!text.contains("<b>"), "{kind:?}");
                assert!(text.contains(TINT), "{kind:?}: the original's ground");
            }
        }
    }

    #[test]
    fn bars_have_a_rectangle_for_each_value() {
        let text = svg(&panels_scene(&drawn(DrawnKind::Bars, 2), 900.0, Ink::File));
        // Two panels of two series; of three values one lies below the axis, which begins at 1.
        let bars = text.matches("#0072b2").count() + text.matches("#d55e00").count();
        assert!(bars >= 2 * 2 * 2 + 2, "{bars}: with the legend");
    }

    #[test]
    fn boxes_have_a_median_and_reach_the_greatest_value() {
        let figure = drawn(DrawnKind::Boxes, 2);
        let text = svg(&panels_scene(&figure, 900.0, Ink::Inline));
        assert_eq!(text.matches(MEDIAN).count(), 2 * 2 * 3, "panels, series, groups");
        // The axis ends above 4, the greatest, though no median is above 2.5.
        assert!(text.contains(">4<"), "{text}");
    }

    #[test]
    fn a_narrow_figure_is_higher() {
        let figure = drawn(DrawnKind::Points, 4);
        let wide = panels_scene(&figure, 1000.0, Ink::Inline);
        let narrow = panels_scene(&figure, 340.0, Ink::Inline);
        assert!(narrow.height > 3.0 * wide.height, "{} {}", narrow.height, wide.height);
    }
}
