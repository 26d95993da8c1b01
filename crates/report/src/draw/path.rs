// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outlines as SVG path data. Coordinates are relative and in tenths of a unit: the shortest
//! notation, because a report has many thousands of points.

use std::fmt::Write as _;

/// An outline.
#[derive(Clone, Debug, Default)]
pub struct Path {
    data: String,
    /// Position of the pen, in tenths.
    pen: [i64; 2],
}

impl Path {
    /// Whether nothing has been drawn.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Value of the attribute `d`.
    pub fn data(&self) -> &str {
        &self.data
    }

    /// Moves the pen to a point without drawing.
    pub fn move_to(&mut self, (x, y): (f64, f64)) -> &mut Self {
        self.pen = [tenths(x), tenths(y)];
        self.data.push('M');
        number(&mut self.data, self.pen[0]);
        if self.pen[1] >= 0 {
            self.data.push(' ');
        }
        number(&mut self.data, self.pen[1]);
        self
    }

    /// Draws a straight line to a point.
    pub fn line_to(&mut self, (x, y): (f64, f64)) -> &mut Self {
        let to = [tenths(x), tenths(y)];
        let [dx, dy] = [to[0] - self.pen[0], to[1] - self.pen[1]];
        self.pen = to;
        match (dx, dy) {
            (0, 0) => {}
            (dx, 0) => {
                self.data.push('h');
                number(&mut self.data, dx);
            }
            (0, dy) => {
                self.data.push('v');
                number(&mut self.data, dy);
            }
            (dx, dy) => {
                self.data.push('l');
                number(&mut self.data, dx);
                if dy >= 0 {
                    self.data.push(' ');
                }
                number(&mut self.data, dy);
            }
        }
        self
    }

    /// Draws a separate straight line.
    pub fn segment(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.move_to(from).line_to(to);
    }

    /// Draws a rectangle between two corners.
    pub fn rect(&mut self, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) {
        self.move_to((x0, y0)).line_to((x1, y0)).line_to((x1, y1)).line_to((x0, y1));
        self.data.push('z');
    }

    /// Draws a dot: a line of length 0, which round ends make as wide as the stroke.
    pub fn dot(&mut self, at: (f64, f64)) {
        self.move_to(at);
        self.data.push_str("h0");
    }

    /// Draws a line through `points`, without the points that a straight line passes within a
    /// quarter of a unit.
    pub fn line(&mut self, points: &[(f64, f64)]) {
        let kept = simplified(points);
        let Some((first, rest)) = kept.split_first() else { return };
        self.move_to(*first);
        for point in rest {
            self.line_to(*point);
        }
    }

    /// Draws a marker with half width `r` centred at a point. `shape` counts circle, square,
    /// triangle, diamond, triangle down, cross, plus, star.
    pub fn marker(&mut self, shape: usize, r: f64, (x, y): (f64, f64)) {
        let mut outline = |points: &[(f64, f64)]| {
            for (index, (dx, dy)) in points.iter().enumerate() {
                let at = (x + dx * r, y + dy * r);
                if index == 0 {
                    self.move_to(at)
                } else {
                    self.line_to(at)
                };
            }
            self.data.push('z');
        };
        match shape {
            1 => outline(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => outline(&[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)]),
            3 => outline(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            4 => outline(&[(0.0, 1.2), (1.1, -0.9), (-1.1, -0.9)]),
            5 => self.strokes((x, y), r, &[(-1.0, -1.0), (-1.0, 1.0)]),
            6 => self.strokes((x, y), r, &[(0.0, -1.2), (-1.2, 0.0)]),
            7 => self.strokes((x, y), r, &[(0.0, -1.2), (-1.0, -0.6), (-1.0, 0.6)]),
            _ => {
                self.move_to((x - r, y));
                let _ = write!(self.data, "a{r} {r} 0 1 0 {w} 0a{r} {r} 0 1 0-{w} 0z", w = 2.0 * r);
            }
        }
    }

    /// Draws straight strokes through a centre, each between opposite corners.
    fn strokes(&mut self, (x, y): (f64, f64), r: f64, corners: &[(f64, f64)]) {
        for (dx, dy) in corners {
            self.segment((x + dx * r, y + dy * r), (x - dx * r, y - dy * r));
        }
    }
}

fn tenths(value: f64) -> i64 {
    (value * 10.0).round() as i64
}

/// Writes a number of tenths without trailing zeros.
fn number(out: &mut String, tenths: i64) {
    if tenths < 0 {
        out.push('-');
    }
    let (whole, rest) = (tenths.abs() / 10, tenths.abs() % 10);
    if whole > 0 || rest == 0 {
        let _ = write!(out, "{whole}");
    }
    if rest > 0 {
        let _ = write!(out, ".{rest}");
    }
}

/// The points, in order, of the shortest line that passes all of `points` within a quarter of a
/// unit (Douglas and Peucker, 1973).
fn simplified(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const TOLERANCE: f64 = 0.25;
    if points.len() < 3 {
        return points.to_vec();
    }
    let mut kept = vec![false; points.len()];
    if let [first, .., last] = &mut kept[..] {
        (*first, *last) = (true, true);
    }
    let mut open = vec![(0, points.len() - 1)];
    while let Some((from, to)) = open.pop() {
        let far = (from + 1..to)
            .map(|index| (distance(points[index], points[from], points[to]), index))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, index)) = far.filter(|(distance, _)| *distance > TOLERANCE) {
            kept[index] = true;
            open.extend([(from, index), (index, to)]);
        }
    }
    points.iter().zip(kept).filter_map(|(point, kept)| kept.then_some(*point)).collect()
}

/// Distance of `point` from the line through `a` and `b`.
fn distance(point: (f64, f64), a: (f64, f64), b: (f64, f64)) -> f64 {
    let ((dx, dy), (px, py)) = ((b.0 - a.0, b.1 - a.1), (point.0 - a.0, point.1 - a.1));
    let length = dx.hypot(dy);
    if length == 0.0 { px.hypot(py) } else { (dx * py - dy * px).abs() / length }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlines_are_short() {
        let mut path = Path::default();
        path.segment((1.04, -0.5), (4.0, -0.5));
        path.rect((0.0, 0.0), (2.0, 3.3));
        path.dot((7.0, 8.0));
        assert_eq!(path.data(), "M1-.5h3M0 0h2v3.3h-2zM7 8h0");
    }

    #[test]
    fn rounding_does_not_add_up() {
        let mut path = Path::default();
        path.move_to((0.0, 0.0));
        for step in 1..=100 {
            path.line_to((f64::from(step) * 0.04, 0.0));
        }
        let ends: f64 = path.data()[5..].split('h').map(|by| by.parse::<f64>().unwrap()).sum();
        assert!((ends - 4.0).abs() < 1e-9, "{}", path.data());
    }

    #[test]
    fn a_line_keeps_its_corners_only() {
        let stairs: Vec<(f64, f64)> = (0..1_000)
            .map(|i| (f64::from(i) * 0.1, f64::from(i / 250) * 10.0 + f64::from(i % 250) * 1e-4))
            .collect();
        let kept = simplified(&stairs);
        assert_eq!((kept.first(), kept.last()), (stairs.first(), stairs.last()));
        assert_eq!(kept.len(), 8, "{kept:?}");
        assert!(simplified(&[]).is_empty());
    }

    #[test]
    fn every_marker_is_drawn() {
        let drawn: std::collections::BTreeSet<String> = (0..8)
            .map(|shape| {
                let mut path = Path::default();
                path.marker(shape, 3.0, (10.0, 10.0));
                path.data().to_string()
            })
            .collect();
        assert_eq!(drawn.len(), 8);
    }
}
