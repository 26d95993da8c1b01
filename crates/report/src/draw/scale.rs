// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps values to positions on an axis, and finds round values for ticks.

/// A linear or logarithmic axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_log: bool,
}

impl Scale {
    /// A linear axis that puts the values `low` to `high` at `from` to `to`.
    pub fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from, to, is_log: false }
    }

    /// A logarithmic axis that puts the values `low` to `high`, both above 0, at `from` to `to`.
    pub fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let high = if high > low { high } else { low * 10.0 };
        Self { low, high, from, to, is_log: true }
    }

    /// Position of a value; `None` if it is below a logarithmic axis or not a number.
    pub fn at(&self, value: f64) -> Option<f64> {
        let part = if self.is_log {
            if value < self.low {
                return None;
            }
            (value / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        part.is_finite().then(|| self.from + part.clamp(-0.02, 1.02) * (self.to - self.from))
    }

    /// Position of a value. A value outside the axis gets the position of the nearest end.
    pub fn clamped(&self, value: f64) -> f64 {
        self.at(value.clamp(self.low, self.high)).unwrap_or(self.from)
    }

    /// About `count` round values at most, with their labels. With `is_whole` they are whole
    /// numbers.
    pub fn ticks(&self, count: usize, is_whole: bool) -> Vec<(f64, String)> {
        if self.is_log { self.decades(count) } else { self.steps(count, is_whole) }
    }

    fn decades(&self, count: usize) -> Vec<(f64, String)> {
        let first = (self.low.log10() - 1e-9).ceil() as i32;
        let last = (self.high.log10() + 1e-9).floor() as i32;
        let step = ((last - first) as usize / count.max(1) + 1).max(1);
        let values = (first..=last).step_by(step).map(|power| 10.0_f64.powi(power));
        values.map(|value| (value, label(value))).collect()
    }

    fn steps(&self, count: usize, is_whole: bool) -> Vec<(f64, String)> {
        let least = if is_whole { 1.0 } else { 0.0 };
        let step = nice_step(((self.high - self.low) / count.max(1) as f64).max(least));
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|index| index as f64 * step).map(|v| (v, label(v))).collect()
    }
}

/// Whether positive values span more than two decades, so that only a logarithmic axis shows all of
/// them. False if a value is 0 or below, because such an axis cannot show it.
pub fn spans_decades(values: impl IntoIterator<Item = f64>) -> bool {
    let (low, high) = values
        .into_iter()
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    low > 0.0 && high / low > 100.0
}

/// The least of 1, 2, 5, 10 ... that is not below `least`.
fn nice_step(least: f64) -> f64 {
    let least = least.max(1e-12);
    let power = 10.0_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    factors.into_iter().map(|f| f * power).find(|step| *step >= least * 0.999).unwrap_or(power)
}

/// A round value, not below `value`, at which an axis may end.
pub fn nice_end(value: f64) -> f64 {
    let step = nice_step(value / 5.0);
    (value / step - 1e-9).ceil() * step
}

/// A value without needless digits, with thousands as `k`.
fn label(value: f64) -> String {
    let rounded = (value * 1e9).round() / 1e9;
    let rounded = if rounded == 0.0 { 0.0 } else { rounded };
    match rounded.abs() {
        big if big >= 1e6 => format!("{}M", rounded / 1e6),
        big if big >= 1e4 => format!("{}k", rounded / 1e3),
        _ => format!("{rounded}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, count: usize) -> Vec<String> {
        scale.ticks(count, false).into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(Scale::linear(0.0, 100.0, 0.0, 1.0), 5),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(labels(Scale::linear(0.0, 0.35, 0.0, 1.0), 4), ["0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(Scale::linear(0.0, 30_000.0, 0.0, 1.0), 3), ["0", "10k", "20k", "30k"]);
        let log = Scale::log(0.001, 100.0, 0.0, 1.0);
        assert_eq!(labels(log, 6), ["0.001", "0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(Scale::log(1.0, 1e6, 0.0, 1.0), 5), ["1", "100", "10k", "1M"]);
    }

    #[test]
    fn values_have_their_place() {
        let scale = Scale::linear(0.0, 10.0, 100.0, 0.0);
        assert_eq!(
            (scale.at(0.0), scale.at(5.0), scale.at(10.0)),
            (Some(100.0), Some(50.0), Some(0.0))
        );
        assert_eq!((scale.clamped(-3.0), scale.clamped(30.0)), (100.0, 0.0));
        assert_eq!(scale.at(f64::NAN), None);
        let log = Scale::log(1.0, 100.0, 0.0, 10.0);
        assert_eq!((log.at(10.0), log.at(0.5), log.at(0.0)), (Some(5.0), None, None));
        assert!(Scale::linear(1.0, 1.0, 0.0, 1.0).at(1.0).is_some());
    }

    #[test]
    fn more_than_two_decades_want_a_logarithmic_axis() {
        assert!(spans_decades([1.0, 101.0]) && !spans_decades([1.0, 100.0]));
        assert!(!spans_decades([0.0, 1.0, 1e6]) && !spans_decades([]) && !spans_decades([5.0]));
    }

    #[test]
    fn axes_end_at_round_values() {
        let ends = [0.35, 1.0, 671.0, 14.5].map(nice_end);
        assert_eq!(ends.map(|end| (end * 100.0).round() / 100.0), [0.4, 1.0, 800.0, 15.0]);
    }
}
