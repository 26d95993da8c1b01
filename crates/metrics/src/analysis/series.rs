// SPDX-License-Identifier: MIT OR Apache-2.0
//! A quantity over time in a fixed number of bins. When the run outgrows them, neighbouring bins
//! are joined and become twice as wide, so memory does not depend on the length of the run.

use schedlab_model::Nanos;
use serde::{Deserialize, Serialize};

/// Width of the first bins (ns).
const WIDTH_MIN: Nanos = 1 << 10;

/// A curve: mean and maximum in each bin.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// Width of a bin (ns): bin k reaches from k to k + 1 times this width; the last one may end
    /// earlier.
    pub bin_ns: u64,
    /// Mean over the time of each bin.
    pub mean: Vec<f64>,
    /// Maximum in each bin.
    pub max: Vec<u64>,
}

/// Equal bins over a growing time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bins {
    pub width: Nanos,
    pub nr_max: usize,
}

impl Bins {
    pub const fn new(nr_max: usize) -> Self {
        Self { width: WIDTH_MIN, nr_max }
    }

    /// Whether bins must be joined to reach `end`.
    pub fn is_outgrown(&self, end: Nanos) -> bool {
        end.div_ceil(self.width) > self.nr_max as u64
    }

    /// The part of `from..to` in each bin.
    pub fn parts(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = (usize, Nanos)> {
        let width = self.width;
        let (first, last) = (from / width, to.saturating_sub(1) / width);
        let bins = if from < to { first..last + 1 } else { 0..0 };
        bins.map(move |bin| {
            let part = to.min((bin + 1).saturating_mul(width)) - from.max(bin * width);
            (bin as usize, part)
        })
    }
}

/// Joins neighbouring bins.
pub(crate) fn join<T: Copy>(bins: &mut Vec<T>, both: impl Fn(T, T) -> T) {
    let joined = |pair: &[T]| match pair {
        [one, other] => both(*one, *other),
        [one, ..] => *one,
        [] => unreachable!("chunks are not empty"),
    };
    *bins = bins.chunks(2).map(joined).collect();
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    /// Integral of the value over the bin.
    area: u128,
    max: u64,
}

/// A step function of time.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    bins: Bins,
    values: Vec<Bin>,
    value: u64,
    since_ns: Nanos,
}

impl Series {
    pub const fn new(nr_bins: usize) -> Self {
        Self { bins: Bins::new(nr_bins), values: Vec::new(), value: 0, since_ns: 0 }
    }

    /// Sets the value from `now` on.
    pub fn set(&mut self, now: Nanos, value: u64) {
        self.advance(now);
        self.value = value;
    }

    fn advance(&mut self, now: Nanos) {
        if now <= self.since_ns {
            return;
        }
        while self.bins.is_outgrown(now) {
            join(&mut self.values, |a, b| Bin { area: a.area + b.area, max: a.max.max(b.max) });
            self.bins.width *= 2;
        }
        for (bin, part) in self.bins.parts(self.since_ns, now) {
            if bin >= self.values.len() {
                self.values.resize(bin + 1, Bin::default());
            }
            let slot = &mut self.values[bin];
            slot.area += u128::from(self.value) * u128::from(part);
            slot.max = slot.max.max(self.value);
        }
        self.since_ns = now;
        debug_assert!(self.values.len() <= self.bins.nr_max, "{} bins", self.values.len());
    }

    /// The curve up to the end of the run.
    pub fn finish(mut self, end_ns: Nanos) -> Curve {
        self.advance(end_ns);
        let width = self.bins.width;
        let means = self.values.iter().enumerate().map(|(bin, value)| {
            let length = width.min(self.since_ns - bin as u64 * width);
            let most = u128::from(value.max) * u128::from(length);
            assert!(value.area <= most, "bin {bin} of {length} ns: {value:?}");
            value.area as f64 / length as f64
        });
        Curve {
            bin_ns: width,
            mean: means.collect(),
            max: self.values.iter().map(|value| value.max).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 until 1,024, then 6 for half a bin, then 0.
    #[test]
    fn means_and_greatest_values() {
        let mut series = Series::new(4);
        series.set(0, 2);
        series.set(1_024, 6);
        series.set(1_536, 0);
        let curve = series.finish(3_072);
        assert_eq!((curve.bin_ns, curve.mean), (1_024, vec![2.0, 3.0, 0.0]));
        assert_eq!(curve.max, [2, 6, 0]);
    }

    /// Eight bins' worth of time in four bins: the area stays the same.
    #[test]
    fn joining_keeps_the_area() {
        let mut series = Series::new(4);
        let mut area = 0;
        for step in 0..80u64 {
            series.set(step * 100, step % 7);
            area += (step % 7) * 100;
        }
        let curve = series.finish(8_000);
        assert_eq!(curve.bin_ns, 2_048);
        let sum: f64 = curve.mean[..3].iter().map(|mean| mean * 2_048.0).sum();
        assert_eq!(sum + curve.mean[3] * (8_000.0 - 3.0 * 2_048.0), area as f64);
        assert_eq!(curve.max, [6, 6, 6, 6]);
    }

    #[test]
    fn an_empty_run_has_an_empty_curve() {
        assert_eq!(Series::new(4).finish(0).mean, Vec::<f64>::new());
    }
}
