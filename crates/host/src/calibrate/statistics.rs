// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics over several repetitions of a measurement.
//!
//! The interval is that of order statistics. Of n values drawn from any continuous distribution,
//! the k-th least and the k-th greatest have the median between them with probability `1 - 2 P(B(n,
//! 1/2) < k)` (Conover, Practical Nonparametric Statistics, section 3.2). It assumes that
//! repetitions are independent, and nothing about their distribution.

use super::Method;
use schedlab_model::Nanos;

/// The spread of the repetitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Noise {
    /// At most 10 % of the median, or 5 ns.
    Quiet,
    /// At most 50 %.
    Noisy,
    /// More than 50 %: the machine was busy, or the figure means little here.
    Unreliable,
}

impl Noise {
    fn of(spread_ns: Nanos, spread_percent: f64) -> Self {
        match spread_percent {
            // Below that a figure of some ten nanoseconds only shows its rounding.
            _ if spread_ns <= 5 => Self::Quiet,
            x if x <= 10.0 => Self::Quiet,
            x if x <= 50.0 => Self::Noisy,
            _ => Self::Unreliable,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Noisy => "noisy",
            Self::Unreliable => "unreliable",
        }
    }
}

/// One measured figure.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Figure {
    /// Name, as in [`schedlab_model::Costs::NAMES`] or a field of the device.
    pub name: &'static str,
    /// How it was measured.
    pub method: &'static str,
    /// Median of the repetitions (ns).
    pub median_ns: Nanos,
    /// Interval that contains the true median with at least 95 % (ns); `None` for fewer than 6
    /// repetitions.
    pub ci95_ns: Option<(Nanos, Nanos)>,
    /// Range of the repetitions without a tenth at either end, in percent of the median.
    pub spread_percent: f64,
    /// Assessment of the spread.
    pub noise: Noise,
    /// Number of repetitions with a value.
    pub nr_repetitions: u32,
    /// Number of samples in all of them.
    pub nr_samples: u64,
}

/// The middle value; of two the lesser one.
fn middle(sorted: &[u64]) -> Option<u64> {
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

/// Median of `samples`; `None` without any.
pub fn median(mut samples: Vec<u64>) -> Option<u64> {
    samples.sort_unstable();
    middle(&samples)
}

/// Range of the values without a tenth of them, rounded down, at either end.
fn spread(sorted: &[u64]) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    let out = last / 10;
    Some(sorted[last - out] - sorted[out])
}

/// How many values can be left out at either end so that the rest contains the median with at least
/// 95 %; `None` if that needs more than `n` values. `n` is at most 60.
fn ranks_left_out(n: usize) -> Option<usize> {
    let n = n as u64;
    let all: u64 = 1 << n;
    // P(B < k) = sum of C(n, i) / 2^n for i < k; twice that may be 1/20 at most.
    let (mut choose, mut below) = (1u64, 0u64);
    let mut out = None;
    for k in 0..n {
        below += choose;
        if below > all / 40 {
            break;
        }
        out = Some(k as usize);
        choose = (u128::from(choose) * u128::from(n - k) / u128::from(k + 1)) as u64;
    }
    out
}

/// Values of all figures, one for each repetition.
#[derive(Debug, Default)]
pub struct Repeated(Vec<Values>);

#[derive(Debug)]
struct Values {
    name: &'static str,
    medians: Vec<u64>,
    nr_samples: u64,
}

impl Repeated {
    /// Adds a repetition of `name`: the median of `samples` minus `part_ns`. Returns it.
    pub fn add(&mut self, name: &'static str, samples: Vec<u64>, part_ns: u64) -> Option<u64> {
        let nr_samples = samples.len() as u64;
        let value = median(samples)?.saturating_sub(part_ns);
        let known = self.0.iter().position(|values| values.name == name);
        let index = known.unwrap_or_else(|| {
            self.0.push(Values { name, medians: Vec::new(), nr_samples: 0 });
            self.0.len() - 1
        });
        self.0[index].medians.push(value);
        self.0[index].nr_samples += nr_samples;
        Some(value)
    }

    /// The figure over all repetitions; `None` if none has a value.
    pub fn figure(&self, method: Method) -> Option<Figure> {
        let values = self.0.iter().find(|values| values.name == method.name)?;
        let mut sorted = values.medians.clone();
        sorted.sort_unstable();
        let median_ns = middle(&sorted)?;
        let spread_ns = spread(&sorted)?;
        let spread_percent = spread_ns as f64 * 100.0 / median_ns.max(1) as f64;
        let ci95_ns =
            ranks_left_out(sorted.len()).map(|out| (sorted[out], sorted[sorted.len() - 1 - out]));
        Some(Figure {
            name: method.name,
            method: method.text,
            median_ns,
            ci95_ns,
            spread_percent,
            noise: Noise::of(spread_ns, spread_percent),
            nr_repetitions: sorted.len() as u32,
            nr_samples: values.nr_samples,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHOD: Method = Method { name: "x", text: "" };

    #[test]
    fn a_figure_is_the_median_of_the_medians() {
        let mut found = Repeated::default();
        assert_eq!(found.add("x", Vec::new(), 0), None);
        assert!(found.figure(METHOD).is_none());
        for middle in [120, 100, 110] {
            assert_eq!(found.add("x", vec![900, middle, 1], 20), Some(middle - 20));
        }
        assert_eq!(found.add("y", vec![3], 8), Some(0));
        let figure = found.figure(METHOD).unwrap();
        assert_eq!((figure.median_ns, figure.nr_repetitions, figure.nr_samples), (90, 3, 9));
        assert_eq!((figure.ci95_ns, figure.noise), (None, Noise::Noisy));
    }

    /// The table of Conover, and sums by hand: C(15,0..3) = 1 + 15 + 105 + 455 = 576 of 32,768.
    #[test]
    fn the_interval_holds_the_median_with_at_least_95_percent() {
        let known = [(1, None), (5, None), (6, Some(0)), (8, Some(0)), (9, Some(1)), (12, Some(2))];
        let known = known.into_iter().chain([(15, Some(3)), (20, Some(5)), (60, Some(21))]);
        for (n, want) in known {
            assert_eq!(ranks_left_out(n), want, "{n}");
        }
        let mut found = Repeated::default();
        for value in (0..15).rev() {
            found.add("x", vec![1_000 + value], 0);
        }
        let figure = found.figure(METHOD).unwrap();
        assert_eq!((figure.median_ns, figure.ci95_ns), (1_007, Some((1_003, 1_011))));
        assert_eq!(figure.noise, Noise::Quiet);
    }

    #[test]
    fn noise_is_told_from_rounding() {
        assert_eq!(Noise::of(5, 80.0), Noise::Quiet);
        assert_eq!(Noise::of(6, 80.0), Noise::Unreliable);
        assert_eq!(Noise::of(100, 10.1).name(), "noisy");
    }
}
