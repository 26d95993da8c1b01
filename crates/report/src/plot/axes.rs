// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures with two axes: box plots, curves against n, progress curves.

use super::{Ink, TEXT, literal, theme};
use crate::boxes::BoxPicture;
use crate::curves::Facet;
use crate::style::{COLOURS, Style};
use kuva::plot::legend::{LegendEntry, LegendPosition, LegendShape};
use kuva::plot::scatter::{MarkerShape, ScatterPlot};
use kuva::plot::{BandPlot, BoxPlot, LinePlot};
use kuva::render::figure::Figure;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};

/// Horizontal boxes, the first on top.
pub fn boxes_scene(picture: &BoxPicture, width: f64, ink: Ink) -> Scene {
    let mut plot = BoxPlot::new().with_horizontal(true).with_width(0.55);
    if picture.boxes.iter().all(|one| one.values.len() <= 200) {
        plot = plot.with_strip(0.0).with_overlay_color(TEXT).with_overlay_size(1.8);
    }
    let mut colours = Vec::new();
    // Groups count upwards from the axis.
    for one in picture.boxes.iter().rev() {
        let label = format!("{}, {}", one.scheduler, short_lane(&one.lane));
        plot = plot.with_group(literal(&label), one.values.iter().copied());
        colours.push(one.colour.to_string());
    }
    let plot = plot.with_group_colors(colours);
    let plots = vec![Plot::from(plot)];
    let mut layout = Layout::auto_from_plots(&plots);
    let mut height = 70.0 + 30.0 * picture.boxes.len() as f64;
    if ink == Ink::File {
        // In the page the heading is text above the picture.
        layout = layout.with_title(literal(&picture.heading)).with_title_size(15);
        height += 30.0;
    }
    let layout = layout
        .with_theme(theme(ink))
        .with_width(width)
        .with_height(height)
        .with_x_label(literal(&picture.label))
        .with_x_axis_min(0.0)
        .with_tick_size(12)
        .with_label_size(12);
    render_multiple(plots, layout)
}

fn short_lane(lane: &str) -> &str {
    match lane {
        "simulated" => "sim",
        "measured" => "real",
        other => other,
    }
}

/// One picture of lines with bands and markers against n.
pub fn curves_scene(facet: &Facet, title: &str, y_label: &str) -> Scene {
    let mut plots: Vec<Plot> = Vec::new();
    let mut legend = Vec::new();
    for line in &facet.lines {
        let points = |values: &[Option<f64>]| -> Vec<(f64, f64)> {
            facet.n.iter().zip(values).filter_map(|(n, y)| Some((*n as f64, (*y)?))).collect()
        };
        let colour = COLOURS[line.style.colour];
        let (low, high) = (points(&line.low), points(&line.high));
        if low.len() > 1 {
            let x: Vec<f64> = low.iter().map(|p| p.0).collect();
            let band = BandPlot::new(x, low.iter().map(|p| p.1), high.iter().map(|p| p.1));
            plots.push(band.with_color(colour).with_opacity(0.12).into());
        }
        let mean = points(&line.mean);
        let mut stroke = LinePlot::new()
            .with_data(mean.iter().copied())
            .with_color(colour)
            .with_stroke_width(2.0);
        if line.style.dashed {
            stroke = stroke.with_dashed();
        }
        plots.push(stroke.into());
        let shape = marker(line.style);
        plots.push(
            ScatterPlot::new()
                .with_data(mean)
                .with_color(colour)
                .with_size(4.0)
                .with_marker(shape)
                .into(),
        );
        legend.push(LegendEntry {
            label: literal(&format!("{}, {}", line.label, line.lane)),
            color: colour.into(),
            shape: LegendShape::Line,
            dasharray: line.style.dashed.then(|| "8 4".into()),
        });
    }
    let end = |n: Option<&u64>| n.map_or(0.0, |n| *n as f64);
    let step = whole_step(end(facet.n.first()), end(facet.n.last()), 12.0);
    let layout = Layout::auto_from_plots(&plots)
        .with_theme(theme(Ink::File))
        .with_width(900.0)
        .with_height(460.0)
        .with_title(literal(title))
        .with_x_label("tasks n")
        .with_y_label(literal(y_label))
        .with_y_axis_min(0.0)
        .with_x_tick_step(step)
        .with_legend_entries(legend)
        .with_legend_position(LegendPosition::OutsideRightTop);
    render_multiple(plots, layout)
}

/// Distance of the ticks, 1, 2, 5, 10, ..., that gives at most `ticks_max` (>= 1) between `first`
/// and `last`.
pub fn whole_step(first: f64, last: f64, ticks_max: f64) -> f64 {
    let mut step = 1.0;
    for factor in [2.0, 2.5, 2.0].iter().cycle() {
        if (last - first) / step <= ticks_max {
            break;
        }
        step *= factor;
    }
    step
}

/// The library's shape for a marker.
pub fn marker(style: Style) -> MarkerShape {
    match style.marker {
        0 => MarkerShape::Circle,
        1 => MarkerShape::Square,
        2 => MarkerShape::Triangle,
        3 => MarkerShape::Diamond,
        4 => MarkerShape::TriangleDown,
        5 => MarkerShape::Cross,
        6 => MarkerShape::Plus,
        _ => MarkerShape::Star,
    }
}

/// One progress line: name, and points of elapsed ms and percent.
pub type ProgressLine = (String, Vec<(f64, f64)>);

/// Small panels of progress curves on common axes, a model beside the policy it models.
pub fn progress_scene(title: &str, panels: &[(String, Vec<ProgressLine>)], end_ms: f64) -> Scene {
    let columns = if panels.len() > 1 { 2 } else { 1 };
    let rows = panels.len().div_ceil(columns);
    let (mut all_plots, mut layouts) = (Vec::new(), Vec::new());
    for (title, lines) in panels {
        let mut plots: Vec<Plot> = Vec::new();
        for (index, (name, points)) in lines.iter().enumerate() {
            let line = LinePlot::new()
                .with_data(points.iter().copied())
                .with_color(COLOURS[index % COLOURS.len()])
                .with_stroke_width(1.5);
            let line = if lines.len() <= 8 { line.with_legend(literal(name)) } else { line };
            plots.push(line.into());
        }
        let layout = Layout::auto_from_plots(&plots)
            .with_theme(theme(Ink::File))
            .with_title(literal(title))
            .with_title_size(13)
            .with_x_label("elapsed (ms)")
            .with_y_label("progress (%)")
            .with_x_axis_min(0.0)
            .with_x_axis_max(end_ms)
            .with_y_axis_min(0.0)
            .with_y_axis_max(100.0)
            .with_legend_position(LegendPosition::OutsideRightTop);
        layouts.push(layout);
        all_plots.push(plots);
    }
    Figure::new(rows, columns)
        .with_title(literal(title))
        .with_plots(all_plots)
        .with_layouts(layouts)
        .with_cell_size(520.0, 260.0)
        .render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_whole_and_few() {
        let known = [(1.0, 4.0, 1.0), (1.0, 13.0, 1.0), (0.0, 13.0, 2.0), (0.0, 50.0, 5.0)];
        let known = known.into_iter().chain([(0.0, 61.0, 10.0), (0.0, 1e6, 100_000.0)]);
        for (first, last, step) in known {
            assert_eq!(whole_step(first, last, 12.0), step, "{first} to {last}");
        }
        assert_eq!(whole_step(3.0, 3.0, 12.0), 1.0);
    }
}
