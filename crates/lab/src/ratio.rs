// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ratio of two means, with its interval.
//!
//! R = mean(new) / mean(base). The interval of paired samples comes from the residuals
//! r = new - R base, one for each pair: on a logarithmic scale, its half width is
//! t(0.975, n-1) sd(r) / (sqrt(n) mean(new)), the first-order error of a ratio (Cochran, Sampling
//! Techniques, 3rd edition, 1977, chapter 6). What the seed does to both samples alike cancels
//! out. If the samples change places, the ratio and both ends are inverted.

use schedlab_metrics::stats::{self, Summary};
use schemars::JsonSchema;
use serde::Serialize;

/// The greatest relative difference that counts as equal.
pub const MARGIN: f64 = 0.01;

/// How a sample compares with its base.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The whole interval is below 1.
    Lower,
    /// The whole interval is within [`MARGIN`] of 1.
    Equal,
    /// The whole interval is above 1.
    Higher,
    /// There is no interval, or it includes 1 and more than the margin.
    Unclear,
}

impl Order {
    /// The word for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Equal => "equal",
            Self::Higher => "higher",
            Self::Unclear => "unclear",
        }
    }
}

/// A ratio of two positive means.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Ratio {
    /// Mean of the new sample divided by the mean of the base.
    pub ratio: f64,
    /// Ends of its 95 % confidence interval; `None` without repetitions. They are equal if the
    /// ratio is the same in every pair.
    pub ci95: Option<[f64; 2]>,
}

impl Ratio {
    /// The ratio of paired samples: values of the base and of the new one under the same seed.
    /// `None` if a mean is not positive.
    pub fn paired(pairs: &[(f64, f64)]) -> Option<Self> {
        let (base, new): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let ratio = of_means(stats::mean(&base), stats::mean(&new))?;
        let residuals: Vec<f64> = pairs.iter().map(|(base, new)| new - ratio * base).collect();
        let half = stats::ci95_half_width(&residuals).map(|half| half / stats::mean(&new));
        Some(Self { ratio, ci95: half.map(|half| around(ratio, half)) })
    }

    /// The ratio of independent samples. Their relative half widths add up like independent
    /// errors, on a logarithmic scale; a single value contributes none. `None` if a mean is not
    /// positive.
    pub fn independent(base: &Summary, new: &Summary) -> Option<Self> {
        let ratio = of_means(base.mean, new.mean)?;
        let relative = |sample: &Summary| Some(sample.ci95_half_width? / sample.mean);
        let width = match (relative(base), relative(new)) {
            (None, None) => None,
            (base, new) => Some(base.unwrap_or(0.0).hypot(new.unwrap_or(0.0))),
        };
        Some(Self { ratio, ci95: width.map(|width| around(ratio, width)) })
    }

    /// How the new sample compares with the base.
    pub fn order(&self) -> Order {
        match self.ci95 {
            None => Order::Unclear,
            Some([low, high]) if low >= 1.0 / (1.0 + MARGIN) && high <= 1.0 + MARGIN => {
                Order::Equal
            }
            Some([_, high]) if high < 1.0 => Order::Lower,
            Some([low, _]) if low > 1.0 => Order::Higher,
            Some(_) => Order::Unclear,
        }
    }
}

fn of_means(base: f64, new: f64) -> Option<f64> {
    let is_positive = |mean: f64| mean > 0.0 && mean.is_finite();
    (is_positive(base) && is_positive(new)).then(|| new / base)
}

/// The interval with this half width on a logarithmic scale.
fn around(ratio: f64, half: f64) -> [f64; 2] {
    [ratio * (-half).exp(), ratio * half.exp()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-6 * want.abs().max(1.0), "{got}, expected {want}");
    }

    /// Means 200 and 300, R = 1.5; residuals -5, 10, -5: deviation 8.660254, t(2) = 4.302653,
    /// half 4.302653 * 8.660254 / (sqrt(3) * 300) = 0.0717109.
    #[test]
    fn the_interval_is_that_of_the_residuals() {
        let pairs = [(100.0, 145.0), (200.0, 310.0), (300.0, 445.0)];
        let found = Ratio::paired(&pairs).unwrap();
        close(found.ratio, 1.5);
        let [low, high] = found.ci95.unwrap();
        close(low, 1.5 * (-0.071_710_88_f64).exp());
        close(high, 1.5 * 0.071_710_88_f64.exp());
        assert_eq!(found.order(), Order::Higher);
        // Unpaired, the spread of the seeds hides the difference.
        let of = |which: fn(&(f64, f64)) -> f64| {
            Summary::of(&pairs.iter().map(which).collect::<Vec<f64>>())
        };
        let apart = Ratio::independent(&of(|pair| pair.0), &of(|pair| pair.1)).unwrap();
        assert_eq!((apart.ratio, apart.order()), (1.5, Order::Unclear));
    }

    #[test]
    fn swapped_samples_invert_the_ratio_and_its_ends() {
        let pairs = [(3.0, 5.0), (4.0, 9.0), (5.0, 6.0), (2.0, 7.0)];
        let swapped = pairs.map(|(base, new)| (new, base));
        let (one, other) = (Ratio::paired(&pairs).unwrap(), Ratio::paired(&swapped).unwrap());
        close(one.ratio * other.ratio, 1.0);
        let ([low, high], [other_low, other_high]) = (one.ci95.unwrap(), other.ci95.unwrap());
        close(low * other_high, 1.0);
        close(high * other_low, 1.0);
    }

    #[test]
    fn the_order_is_that_of_the_whole_interval() {
        let order = |low, high| Ratio { ratio: low, ci95: Some([low, high]) }.order();
        assert_eq!(order(1.001, 1.009), Order::Equal, "a clear difference within the margin");
        assert_eq!(order(1.005, 1.02), Order::Higher);
        assert_eq!(order(0.5, 0.999), Order::Lower);
        assert_eq!(order(0.98, 1.005), Order::Unclear);
        assert_eq!(order(1.0, 1.0), Order::Equal);
        assert_eq!(Ratio::paired(&[(1.0, 2.0)]).unwrap().order(), Order::Unclear, "one pair");
    }

    #[test]
    fn means_that_are_not_positive_have_no_ratio() {
        for pairs in [&[][..], &[(0.0, 3.0)], &[(3.0, 0.0)], &[(f64::INFINITY, 1.0)]] {
            assert_eq!(Ratio::paired(pairs), None, "{pairs:?}");
        }
    }
}
