// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws a panel: its axes, then its series.

use super::chart::{Axis, Form, Panel, Series, Ticks, colour_of, dash_of, is_same};
use super::path::Path;
use super::scale::Scale;
use super::svg::{Svg, fitted, width_of};
use schedlab_lab::redrawn::DrawnPoint;

/// Space to the right of the plot; the second value is for names at the ends of lines.
const RIGHT: f64 = 14.0;
const RIGHT_NAMES: f64 = 142.0;
/// Minimum width of a panel for names at the ends of its lines.
const NAMES_WIDTH_MIN: f64 = 440.0;
/// Height of a line of labels; the second value is for slanted names.
const LABEL: f64 = 18.0;
const SLANTED: f64 = 62.0;
/// Distance between names at the ends of lines.
const NAME_LINE: f64 = 14.0;
/// Maximum number of slots that each get a tick.
const SLOTS_MAX: usize = 64;

/// The plot area of a panel, with its scales.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    along: Scale,
    value: Scale,
    is_lying: bool,
}

impl Frame {
    /// The point at these distances on both axes, turned if the panel is.
    fn turned(&self, along: f64, value: f64) -> (f64, f64) {
        if self.is_lying { (value, along) } else { (along, value) }
    }

    /// The point of a value; `None` if it is outside an axis.
    fn at(&self, along: f64, value: f64) -> Option<(f64, f64)> {
        Some(self.turned(self.along.at(along)?, self.value.at(value)?))
    }

    fn places(&self, series: &Series) -> Vec<(f64, f64)> {
        series.points.iter().filter_map(|point| self.at(point.x, point.y)).collect()
    }

    /// The position of the axis of places.
    fn base(&self) -> f64 {
        self.value.clamped(0.0)
    }
}

fn label_of(axis: &Axis) -> &str {
    match axis {
        Axis::Numbers { label, .. } => label,
        Axis::Names(_) => "",
    }
}

fn scale_of(axis: &Axis, from: f64, to: f64) -> Scale {
    match axis {
        Axis::Numbers { low, high, ticks: Ticks::Decades, .. } => Scale::log(*low, *high, from, to),
        Axis::Numbers { low, high, .. } => Scale::linear(*low, *high, from, to),
        Axis::Names(names) => Scale::linear(-0.5, names.len() as f64 - 0.5, from, to),
    }
}

/// About `count` ticks for an axis of numbers, one tick for each name for an axis of names.
fn ticks_of(axis: &Axis, scale: &Scale, count: usize) -> Vec<(f64, String)> {
    match axis {
        Axis::Numbers { ticks, .. } => scale.ticks(count, *ticks == Ticks::Whole),
        Axis::Names(names) => {
            (0..).map(f64::from).zip(names.iter().take(SLOTS_MAX).cloned()).collect()
        }
    }
}

/// The vertical and the horizontal axis.
fn upright_and_flat(panel: &Panel) -> (&Axis, &Axis) {
    if panel.is_lying { (&panel.along, &panel.value) } else { (&panel.value, &panel.along) }
}

fn upright_ticks(panel: &Panel, scale: &Scale) -> Vec<(f64, String)> {
    let room = (panel.height / 16.0) as usize;
    let is_each = matches!(upright_and_flat(panel).0, Axis::Numbers { ticks: Ticks::Whole, .. });
    ticks_of(upright_and_flat(panel).0, scale, if is_each { room.min(24) } else { room.min(6) })
}

/// Space for the labels of the vertical axis in a panel of `width`.
pub fn left_of(panel: &Panel, width: f64) -> f64 {
    if panel.is_bare {
        return 1.0;
    }
    let scale = scale_of(upright_and_flat(panel).0, panel.height, 0.0);
    let labels = upright_ticks(panel, &scale);
    let widest = labels.iter().map(|(_, label)| width_of(label)).fold(0.0, f64::max);
    (widest + 12.0).clamp(34.0, (width * 0.5).max(34.0))
}

fn head_of(panel: &Panel) -> f64 {
    let (upright, _) = upright_and_flat(panel);
    match panel.is_bare {
        true => 1.0,
        false if label_of(upright).is_empty() => 8.0,
        false => LABEL + 6.0,
    }
}

fn foot_of(panel: &Panel) -> f64 {
    match upright_and_flat(panel).1 {
        _ if panel.is_bare => 1.0,
        Axis::Names(_) => SLANTED,
        Axis::Numbers { label, .. } if label.is_empty() => LABEL,
        Axis::Numbers { .. } => 2.0 * LABEL,
    }
}

/// Height of the whole panel.
pub fn panel_height(panel: &Panel) -> f64 {
    head_of(panel) + panel.height + foot_of(panel)
}

/// Draws `panel` at a position. Its plot starts `left` units from the panel's left edge; `keys` are
/// the legend's entries. Returns the plot's left and right ends.
pub fn panel_body(
    svg: &mut Svg,
    panel: &Panel,
    keys: &[&Series],
    (x, y): (f64, f64),
    (left, width): (f64, f64),
) -> (f64, f64) {
    let names_ends = panel.has_end_names && width >= NAMES_WIDTH_MIN;
    let right = match panel.is_bare {
        true => 1.0,
        false if names_ends => RIGHT_NAMES,
        false => RIGHT,
    };
    let (left, right) = (x + left, x + width - right);
    let (top, bottom) = (y + head_of(panel), y + head_of(panel) + panel.height);
    let (along, value) = if panel.is_lying {
        // Put the first name on top.
        (scale_of(&panel.along, top, bottom), scale_of(&panel.value, left, right))
    } else {
        (scale_of(&panel.along, left, right), scale_of(&panel.value, bottom, top))
    };
    let frame = Frame { left, right, top, bottom, along, value, is_lying: panel.is_lying };
    if panel.is_tinted {
        let mut ground = Path::default();
        ground.rect((left, top), (right, bottom));
        svg.path("wash", &ground);
    }
    if !panel.is_bare {
        axes(svg, panel, &frame, x);
    }
    for series in &panel.series {
        let line = keys.iter().position(|key| is_same(key, series));
        svg.open(&colour_of(series), line);
        draw(svg, series, &frame);
        svg.close();
    }
    if names_ends {
        end_names(svg, panel, &frame, keys);
    }
    (left, right)
}

fn axes(svg: &mut Svg, panel: &Panel, frame: &Frame, x: f64) {
    let Frame { left, right, top, bottom, .. } = *frame;
    let (upright, flat) = upright_and_flat(panel);
    let (up, across) = match panel.is_lying {
        true => (&frame.along, &frame.value),
        false => (&frame.value, &frame.along),
    };
    let (mut grid, mut axis) = (Path::default(), Path::default());
    for (value, label) in upright_ticks(panel, up) {
        let Some(at) = up.at(value) else { continue };
        if !matches!(upright, Axis::Names(_)) {
            grid.segment((left, at), (right, at));
        }
        svg.text("end", (left - 6.0, at + 4.0), &fitted(&label, left - x - 8.0));
    }
    if !label_of(upright).is_empty() {
        svg.text("soft", (x + 2.0, top - 10.0), &fitted(label_of(upright), right - x));
    }
    let room = ((right - left) / 40.0).floor().max(3.0) as usize;
    for (value, label) in ticks_of(flat, across, room.min(12)) {
        let Some(at) = across.at(value) else { continue };
        if matches!(flat, Axis::Names(_)) {
            svg.slanted("end", (at + 4.0, bottom + 14.0), &fitted(&label, SLANTED * 1.4));
            continue;
        }
        if panel.is_lying {
            grid.segment((at, top), (at, bottom));
        }
        axis.segment((at, bottom), (at, bottom + 4.0));
        // Keep the last label within the panel.
        let middle = at.min(right + RIGHT - width_of(&label) / 2.0);
        svg.text("mid", (middle, bottom + 16.0), &label);
    }
    let label = label_of(flat);
    svg.text("soft mid", ((left + right) / 2.0, bottom + 32.0), &fitted(label, right - x));
    axis.segment((left, bottom), (right, bottom));
    if panel.is_lying {
        axis.segment((frame.base(), top), (frame.base(), bottom));
    }
    svg.path("grid", &grid);
    svg.path("axis", &axis);
    if let Some(at) = panel.rule.and_then(|at| frame.along.at(at)) {
        let mut rule = Path::default();
        rule.segment((at, top), (at, bottom));
        svg.path("rule", &rule);
    }
}

fn draw(svg: &mut Svg, series: &Series, frame: &Frame) {
    let style = series.style.unwrap_or_default();
    let places = frame.places(series);
    let mut line = Path::default();
    line.line(&places);
    let dash = dash_of(style, series.form);
    match series.form {
        Form::Band => {
            svg.path("band", &band(series, frame));
            svg.stroke("line", &line, 2.0, dash);
            marks(svg, series, &places, 3.6);
        }
        Form::Line { r, .. } => {
            svg.path("axis", &intervals(series, frame));
            svg.stroke("line", &line, 2.0, dash);
            marks(svg, series, &places, r);
        }
        Form::Track => {
            svg.stroke("line", &line, 1.75, dash);
            marks(svg, series, &places[places.len().saturating_sub(1)..], 3.0);
        }
        Form::Area => {
            let mut area = Path::default();
            if let (Some(first), Some(last)) = (places.first(), places.last()) {
                let ends = [(last.0, frame.base()), (first.0, frame.base())];
                area.line(&places);
                area.line_to(ends[0]).line_to(ends[1]);
            }
            svg.path("area", &area);
        }
        Form::Dots { r } => {
            svg.path("axis", &intervals(series, frame));
            let mut dots = Path::default();
            places.iter().for_each(|place| dots.dot(*place));
            svg.stroke("dots", &dots, 2.0 * r, "");
        }
        Form::Bars { part, parts } => {
            let slot = (frame.along.clamped(0.5) - frame.along.clamped(-0.5)).abs();
            let thick = slot * 0.78 / parts.max(1) as f64;
            for point in &series.points {
                let Some(middle) = frame.along.at(point.x) else { continue };
                let from = middle - slot * 0.39 + part as f64 * thick;
                bar(svg, point, frame, (from, thick));
            }
        }
    }
}

fn marks(svg: &mut Svg, series: &Series, places: &[(f64, f64)], r: f64) {
    if r <= 0.0 {
        return;
    }
    let style = series.style.unwrap_or_default();
    let mut marks = Path::default();
    places.iter().for_each(|place| marks.marker(style.marker, r, *place));
    let is_hollow = style.dashed && series.form == Form::Band;
    svg.path(if is_hollow { "hollow" } else { "mark" }, &marks);
}

/// The area between the ends of the intervals.
fn band(series: &Series, frame: &Frame) -> Path {
    let with = series.points.iter().filter_map(|point| Some((point.x, point.ci95?)));
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for (x, ends) in with {
        let Some(x) = frame.along.at(x) else { continue };
        low.push(frame.turned(x, frame.value.clamped(ends[0])));
        high.push(frame.turned(x, frame.value.clamped(ends[1])));
    }
    let mut band = Path::default();
    band.line(&high);
    low.iter().rev().for_each(|place| {
        band.line_to(*place);
    });
    band
}

fn intervals(series: &Series, frame: &Frame) -> Path {
    let mut bars = Path::default();
    for point in &series.points {
        if let (Some(at), Some(ends)) = (frame.along.at(point.x), point.ci95) {
            interval(&mut bars, frame, at, ends);
        }
    }
    bars
}

/// Draws a line over an interval with a short cross stroke at each end.
fn interval(path: &mut Path, frame: &Frame, at: f64, ends: [f64; 2]) {
    let [low, high] = ends.map(|end| frame.value.clamped(end));
    path.segment(frame.turned(at, low), frame.turned(at, high));
    for end in [low, high] {
        path.segment(frame.turned(at - 3.0, end), frame.turned(at + 3.0, end));
    }
}

/// Draws a bar from the axis to the value, or a box of quartiles with the median and whiskers to
/// the least and the greatest value.
fn bar(svg: &mut Svg, point: &DrawnPoint, frame: &Frame, (from, thick): (f64, f64)) {
    let (to, middle) = (from + (thick - 0.8).max(0.8), from + thick / 2.0);
    let (mut block, mut thin, mut median) = (Path::default(), Path::default(), Path::default());
    match point.spread {
        Some(spread) => {
            let [least, q1, q3, greatest] = spread.map(|value| frame.value.clamped(value));
            for (quartile, end) in [(q1, least), (q3, greatest)] {
                thin.segment(frame.turned(middle, quartile), frame.turned(middle, end));
                let [a, b] = [middle - thick / 4.0, middle + thick / 4.0];
                thin.segment(frame.turned(a, end), frame.turned(b, end));
            }
            block.rect(frame.turned(from, q1), frame.turned(to, q3));
            let across = frame.value.clamped(point.y);
            median.segment(frame.turned(from, across), frame.turned(to, across));
        }
        None => {
            if let Some(value) = frame.value.at(point.y) {
                block.rect(frame.turned(from, frame.base()), frame.turned(to, value));
            }
            if let Some(ends) = point.ci95 {
                interval(&mut thin, frame, middle, ends);
            }
        }
    }
    svg.path("block", &block);
    svg.path("axis", &thin);
    svg.path("median", &median);
}

/// Draws names to the right of the lines' last points, moved apart so that they do not overlap.
fn end_names(svg: &mut Svg, panel: &Panel, frame: &Frame, keys: &[&Series]) {
    let last = |series| frame.places(series).last().copied();
    let mut ends: Vec<(&Series, (f64, f64))> = panel
        .series
        .iter()
        .filter_map(|series| Some((series, last(series)?)))
        .filter(|(_, (x, _))| *x > frame.right - 40.0)
        .collect();
    ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let mut at: Vec<f64> = Vec::new();
    for (_, (_, y)) in &ends {
        at.push(at.last().map_or(*y, |above| y.max(above + NAME_LINE)));
    }
    let mut limit = frame.bottom + LABEL;
    for y in at.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - NAME_LINE;
    }
    for ((series, (x, y)), at) in ends.into_iter().zip(at) {
        let is_dashed = series.style.is_some_and(|style| style.dashed);
        let mut leader = Path::default();
        leader.segment((x + 6.0, y), (x + 14.0, at));
        let line = keys.iter().position(|key| is_same(key, series));
        svg.open(&colour_of(series), line);
        svg.path("line faint", &leader);
        let class = if is_dashed { "named italic" } else { "named bold" };
        svg.text(class, (x + 17.0, at + 4.0), &fitted(&series.name, RIGHT_NAMES - 26.0));
        svg.close();
    }
}
