// SPDX-License-Identifier: MIT OR Apache-2.0
//! A study's figure as a chart: small panels in rows. The original's values have a tinted
//! background.

use crate::draw::{Axis, Chart, Form, Panel, Series, Ticks, nice_end};
use crate::style::Style;
use schedlab_lab::redrawn::{Drawn, DrawnKind, DrawnPanel, DrawnPoint, DrawnSeries};

/// Default maximum number of panels in a row.
const COLUMNS_MAX: usize = 4;
/// Dash patterns in the order of lines: a line that covers another leaves gaps for it.
const DASHES: [&str; 4] = ["", "9 5", "4 7", "2 9"];
/// Maximum number of processes with a row each.
const ROWS_MAX: usize = 40;

/// The chart of a figure.
pub fn study_chart(drawn: &Drawn) -> Chart {
    let count = drawn.panels.len().max(1);
    let columns = match drawn.columns as usize {
        0 => count.min(COLUMNS_MAX),
        columns => columns.clamp(1, count),
    };
    let panels = drawn.panels.iter().map(|panel| Look { drawn, panel }.panel()).collect();
    Chart { title: format!("{}. {}", drawn.id, drawn.title), columns, panels }
}

/// A panel and its figure.
struct Look<'d> {
    drawn: &'d Drawn,
    panel: &'d DrawnPanel,
}

impl Look<'_> {
    fn panel(&self) -> Panel {
        Panel {
            title: self.panel.title.clone(),
            is_tinted: self.panel.is_original,
            height: self.height(),
            along: self.along(),
            value: self.value(),
            series: self.panel.series.iter().enumerate().map(|one| self.series(one)).collect(),
            ..Panel::default()
        }
    }

    fn height(&self) -> f64 {
        match self.panel.kind {
            // A row for each process.
            DrawnKind::Who => {
                let panels = self.drawn.panels.iter().filter(|p| p.kind == DrawnKind::Who);
                let most = panels.map(|other| other.series.len()).max().unwrap_or(1);
                24.0 + 16.0 * most.min(ROWS_MAX) as f64
            }
            DrawnKind::Progress => 130.0,
            DrawnKind::Points => 170.0,
            DrawnKind::Lines => 220.0,
            DrawnKind::Bars | DrawnKind::Boxes => 190.0,
        }
    }

    fn series(&self, (index, one): (usize, &DrawnSeries)) -> Series {
        let count = self.panel.series.len();
        // Earlier marks are larger, so that a covered mark remains visible around its edge.
        let below = (count - 1 - index).min(4) as f64;
        let form = match self.panel.kind {
            DrawnKind::Who | DrawnKind::Progress => Form::Dots { r: 1.7 },
            DrawnKind::Points => Form::Dots { r: 3.4 },
            DrawnKind::Lines => {
                Form::Line { r: 2.4 + 0.9 * below, dash: DASHES[index % DASHES.len()] }
            }
            DrawnKind::Bars | DrawnKind::Boxes => Form::Bars { part: index, parts: count },
        };
        Series {
            name: one.label.clone(),
            style: Some(Style::numbered(self.colour(one))),
            form,
            points: one.points.clone(),
            ..Series::default()
        }
    }

    /// The index of a series' label among those of the figure, so that a label looks the same
    /// everywhere.
    fn colour(&self, one: &DrawnSeries) -> usize {
        let mut labels: Vec<&str> = Vec::new();
        for series in self.drawn.panels.iter().flat_map(|panel| &panel.series) {
            if series.label == one.label {
                break;
            }
            if !labels.contains(&series.label.as_str()) {
                labels.push(&series.label);
            }
        }
        labels.len()
    }

    /// Points of the panels that share this panel's axis: those of its kind. The original's panels
    /// and ours share an axis only if their values have similar size.
    fn peers(&self) -> Vec<&DrawnPoint> {
        let of = |is_original: bool| -> Vec<&DrawnPoint> {
            let panels = self.drawn.panels.iter();
            let same = panels.filter(|p| p.kind == self.panel.kind && p.is_original == is_original);
            same.flat_map(|p| p.series.iter().flat_map(|one| &one.points)).collect()
        };
        let most = |points: &[&DrawnPoint]| points.iter().map(|p| p.top()).fold(0.0, f64::max);
        let (own, other) = (of(self.panel.is_original), of(!self.panel.is_original));
        let (a, b) = (most(&own), most(&other));
        if b > 0.0 && a > 0.0 && (a / b).max(b / a) <= 3.0 {
            return own.into_iter().chain(other).collect();
        }
        own
    }

    fn value(&self) -> Axis {
        let high = self.peers().iter().map(|point| point.top()).fold(0.0, f64::max);
        let [low_fixed, high_fixed] = self.drawn.y_range;
        match self.panel.kind {
            DrawnKind::Who => Axis::Numbers {
                label: "process".into(),
                low: -0.6,
                high: self.panel.series.len().max(1) as f64 - 0.4,
                ticks: Ticks::Whole,
            },
            DrawnKind::Progress => Axis::numbers("progress (%)", 0.0, 100.0),
            _ if self.drawn.log => {
                let low = low_fixed.unwrap_or(1.0).max(1e-12);
                let high = high_fixed.unwrap_or(high).max(low * 10.0);
                Axis::Numbers {
                    label: self.drawn.y_label.clone(),
                    low,
                    high: 10.0_f64.powf(high.log10().ceil()),
                    ticks: Ticks::Decades,
                }
            }
            _ => {
                let low = low_fixed.unwrap_or(0.0);
                let high = high_fixed.unwrap_or_else(|| nice_end(high.max(low + 1e-9)));
                Axis::numbers(&self.drawn.y_label, low, high)
            }
        }
    }

    fn along(&self) -> Axis {
        let panels = self.drawn.panels.iter();
        let points = panels.flat_map(|panel| panel.series.iter().flat_map(|one| &one.points));
        let high = points.map(|point| point.x).fold(0.0, f64::max);
        let label = &self.drawn.x_label;
        match self.panel.kind {
            DrawnKind::Bars | DrawnKind::Boxes => Axis::Names(self.drawn.groups.clone()),
            DrawnKind::Who | DrawnKind::Progress => Axis::numbers("elapsed time (ms)", 0.0, high),
            // As the studies' scripts draw it: from 0 to one more than the last.
            DrawnKind::Points if high <= 40.0 => Axis::numbers(label, 0.0, high + 1.0),
            _ => Axis::numbers(label, 0.0, high.max(1e-9) * 1.05),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(kind: DrawnKind, panels: usize) -> Drawn {
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
            let chart = study_chart(&drawn(kind, 3));
            for text in [chart.file(340.0), chart.legend() + &chart.page(260.0, Some(340.0))] {
                assert!(text.contains(wanted), "{kind:?}");
                assert!(text.contains("one") && text.contains("two"), "{kind:?}: the legend");
                assert!(!text.contains("<b>"), "{kind:?}");
                assert!(text.contains("class=\"wash\""), "{kind:?}: the original's ground");
            }
        }
    }

    #[test]
    fn bars_have_a_rectangle_for_each_value() {
        let text = study_chart(&drawn(DrawnKind::Bars, 2)).file(450.0);
        // Two panels of two series. One of three values is below the axis, which begins at 1. The
        // legend has a square for each series.
        assert_eq!(text.matches("class=\"block\"").count(), 2 * 2 * 2 + 2);
    }

    #[test]
    fn boxes_have_a_median_and_reach_the_greatest_value() {
        let text = study_chart(&drawn(DrawnKind::Boxes, 2)).page(450.0, None);
        assert_eq!(text.matches("median\" d").count(), 2 * 2 * 3, "panels, series, groups");
        // The axis ends above 4, the greatest value, although no median is above 2.5.
        assert!(text.contains(">4<"), "{text}");
    }

    #[test]
    fn a_line_over_another_leaves_gaps_and_smaller_marks() {
        let chart = study_chart(&drawn(DrawnKind::Lines, 1));
        let forms: Vec<Form> = chart.panels[0].series.iter().map(|one| one.form).collect();
        assert_eq!(forms[0], Form::Line { r: 3.3, dash: "" });
        assert_eq!(forms[1], Form::Line { r: 2.4, dash: "9 5" });
    }
}
