// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures of a sweep: lines or bars with error bars.

use super::axes::{marker, whole_step};
use super::{AXIS, Ink, literal, theme};
use crate::style::COLOURS;
use crate::sweep::SweepPicture;
use kuva::plot::legend::{LegendEntry, LegendPosition, LegendShape};
use kuva::plot::scatter::ScatterPlot;
use kuva::plot::{BarPlot, LinePlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};

/// A line for each configuration, an error bar at each point that has an interval.
pub fn sweep_lines_scene(picture: &SweepPicture, title: &str, width: f64, ink: Ink) -> Scene {
    let mut plots: Vec<Plot> = Vec::new();
    let mut legend = Vec::new();
    let mut low = 0.0_f64;
    for line in &picture.lines {
        let colour = COLOURS[line.style.colour];
        let points: Vec<(f64, f64)> = line.points.iter().map(|(x, y, _)| (*x, *y)).collect();
        low = points.iter().map(|(_, y)| *y).fold(low, f64::min);
        let stroke = LinePlot::new()
            .with_data(points.iter().copied())
            .with_color(colour)
            .with_stroke_width(2.0);
        plots.push(stroke.into());
        // The axis begins at 0: an interval that reaches below is drawn down to it.
        let errors = line.points.iter().map(|(_, y, half)| {
            let half = half.unwrap_or(0.0);
            (if *y >= 0.0 { half.min(*y) } else { half }, half)
        });
        let scatter = ScatterPlot::new()
            .with_data(points.iter().copied())
            .with_color(colour)
            .with_size(4.0)
            .with_marker(marker(line.style));
        let has_intervals = line.points.iter().any(|(_, _, half)| half.is_some());
        plots.push(if has_intervals {
            scatter.with_y_err_asymmetric(errors.collect::<Vec<_>>()).into()
        } else {
            scatter.into()
        });
        legend.push(LegendEntry {
            label: literal(&line.label),
            color: colour.into(),
            shape: LegendShape::Line,
            dasharray: None,
        });
    }
    let mut layout = Layout::auto_from_plots(&plots)
        .with_theme(theme(ink))
        .with_width(if ink == Ink::File { width + 180.0 } else { width })
        .with_height(400.0)
        .with_x_label(literal(picture.x_label.as_deref().unwrap_or_default()))
        .with_y_label(literal(&picture.y_label))
        .with_y_axis_min(low);
    let xs = || picture.lines.iter().flat_map(|line| &line.points).map(|(x, _, _)| *x);
    if xs().all(|x| x.fract() == 0.0) {
        // There is no half task and no half CPU.
        let (first, last) = (xs().fold(f64::MAX, f64::min), xs().fold(f64::MIN, f64::max));
        layout = layout.with_x_tick_step(whole_step(first, last, (width / 60.0).floor()));
    }
    if ink == Ink::File {
        layout = layout
            .with_title(literal(title))
            .with_legend_entries(legend)
            .with_legend_position(LegendPosition::OutsideRightTop);
    }
    render_multiple(plots, layout)
}

/// A bar for each configuration, the first on top.
pub fn sweep_bars_scene(picture: &SweepPicture, title: &str, width: f64, ink: Ink) -> Scene {
    let mut plot = BarPlot::new().with_horizontal(true).with_width(0.6).with_error_color(AXIS);
    let mut errors = Vec::new();
    // Bars count upwards from the axis.
    for line in picture.lines.iter().rev() {
        let Some((_, y, half)) = line.points.first() else { continue };
        plot = plot.with_colored_bar(literal(&line.label), *y, COLOURS[line.style.colour]);
        let half = half.unwrap_or(0.0);
        errors.push((half.min(y.abs()), half));
    }
    if errors.iter().any(|(_, half)| *half > 0.0) {
        plot = plot.with_asymmetric_error(errors);
    }
    let plots = vec![Plot::from(plot)];
    let mut height = 80.0 + 28.0 * picture.lines.len() as f64;
    let mut layout = Layout::auto_from_plots(&plots);
    if ink == Ink::File {
        layout = layout.with_title(literal(title)).with_title_size(15);
        height += 30.0;
    }
    let layout = layout
        .with_theme(theme(ink))
        .with_width(width)
        .with_height(height)
        .with_x_label(literal(&picture.y_label))
        .with_tick_size(12)
        .with_label_size(12);
    render_multiple(plots, layout)
}
