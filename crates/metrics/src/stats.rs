// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics over repetitions of a run.
//!
//! Used only at output, on `f64`. The confidence interval is Student's for the mean, which assumes
//! independent repetitions. With few of them and a skewed measure, look at the median and the range
//! too. Left out: tests between two groups, which are done where runs are compared.

use serde::{Deserialize, Serialize};

/// Summary of the values of one measure over repetitions.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean; 0 without a value.
    pub mean: f64,
    /// Sample standard deviation (n - 1); 0 for fewer than two values.
    pub std_dev: f64,
    /// Half the width of the 95 % confidence interval of the mean; `None` for fewer than two
    /// values.
    pub ci95_half_width: Option<f64>,
    /// Least value.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest value.
    pub max: f64,
}

impl Summary {
    /// Summarises these values, in any order. Values that are not finite are left out.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        Self {
            count: sorted.len() as u64,
            mean: mean(&sorted),
            std_dev: std_dev(&sorted),
            ci95_half_width: ci95_half_width(&sorted),
            min,
            median: percentile_of_sorted(&sorted, 50.0),
            p95: percentile_of_sorted(&sorted, 95.0),
            p99: percentile_of_sorted(&sorted, 99.0),
            max,
        }
    }

    /// Lower and upper end of the 95 % confidence interval of the mean.
    pub fn ci95(&self) -> Option<(f64, f64)> {
        self.ci95_half_width.map(|half| (self.mean - half, self.mean + half))
    }
}

/// Arithmetic mean; 0 without a value.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Sample standard deviation, sqrt(sum (x - mean)^2 / (n - 1)); 0 for fewer than two values.
pub fn std_dev(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Half the width of the 95 % confidence interval of the mean, t * s / sqrt(n); `None` for fewer
/// than two values, because they have no spread.
pub fn ci95_half_width(values: &[f64]) -> Option<f64> {
    let n = values.len();
    (n >= 2).then(|| t_975(n as u64 - 1) * std_dev(values) / (n as f64).sqrt())
}

/// Median; 0 without a value.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50.0)
}

/// Percentile `percent` (0 to 100) with linear interpolation between the two nearest values (type 7
/// of Hyndman and Fan, The American Statistician 50, 1996; the default of R and NumPy). 0 without a
/// value.
pub fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile_of_sorted(&sorted, percent)
}

fn percentile_of_sorted(sorted: &[f64], percent: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = last as f64 * percent.clamp(0.0, 100.0) / 100.0;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// The 0.975 quantile of Student's t distribution with `df` >= 1 degrees of freedom.
///
/// Tabulated up to 30 (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2); beyond, the
/// Cornish-Fisher expansion about the normal quantile (Abramowitz and Stegun 26.7.5), which errs by
/// less than 10^-6 there.
pub fn t_975(df: u64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706_204_736,
        4.302_652_730,
        3.182_446_305,
        2.776_445_105,
        2.570_581_836,
        2.446_911_851,
        2.364_624_252,
        2.306_004_135,
        2.262_157_163,
        2.228_138_852,
        2.200_985_160,
        2.178_812_830,
        2.160_368_656,
        2.144_786_688,
        2.131_449_546,
        2.119_905_299,
        2.109_815_578,
        2.100_922_040,
        2.093_024_054,
        2.085_963_447,
        2.079_613_845,
        2.073_873_068,
        2.068_657_610,
        2.063_898_562,
        2.059_538_553,
        2.055_529_439,
        2.051_830_516,
        2.048_407_142,
        2.045_229_642,
        2.042_272_456,
    ];
    if let Some(value) = df.checked_sub(1).and_then(|index| TABLE.get(index as usize)) {
        return *value;
    }
    if df == 0 {
        return f64::INFINITY;
    }
    let z = 1.959_963_984_540_054_f64;
    let n = df as f64;
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance, "{got}, expected {want}");
    }

    /// Michelson's speed of light data, first series of five; mean and deviation by hand.
    #[test]
    fn known_sample() {
        let s = Summary::of(&[850.0, 740.0, 900.0, 1070.0, 930.0]);
        assert_eq!((s.count, s.mean, s.median, s.min, s.max), (5, 898.0, 900.0, 740.0, 1070.0));
        close(s.std_dev, 120.291_313, 1e-6);
        // t(4) = 2.7764, s = 120.2913, n = 5
        close(s.ci95_half_width.unwrap(), 149.361_4, 1e-3);
        let (low, high) = s.ci95().unwrap();
        close(high - low, 2.0 * 149.361_4, 1e-2);
    }

    /// Values of numpy.percentile([15, 20, 35, 40, 50], ...).
    #[test]
    fn percentiles_interpolate() {
        let v = [40.0, 15.0, 50.0, 35.0, 20.0];
        for (percent, want) in [(0.0, 15.0), (5.0, 16.0), (40.0, 29.0), (50.0, 35.0), (95.0, 48.0)]
        {
            close(percentile(&v, percent), want, 1e-12);
        }
        assert_eq!(percentile(&v, 100.0), 50.0);
        assert_eq!(median(&[1.0, 2.0, 3.0, 10.0]), 2.5);
        assert_eq!(percentile(&[], 50.0), 0.0);
    }

    #[test]
    fn student_t() {
        let known = [(1, 12.7062), (2, 4.3027), (9, 2.2622), (30, 2.0423), (31, 2.039_513)];
        for (df, want) in known.into_iter().chain([(60, 2.000_298), (120, 1.979_930)]) {
            close(t_975(df), want, 1e-4);
        }
        close(t_975(1_000_000_000), 1.959_964, 1e-6);
        // The table goes over into the expansion without a step.
        assert!(t_975(30) - t_975(31) > 0.0 && t_975(30) - t_975(31) < 0.003);
        assert_eq!(t_975(0), f64::INFINITY);
    }

    #[test]
    fn too_few_values() {
        assert_eq!(Summary::of(&[]), Summary::default());
        let one = Summary::of(&[3.0]);
        assert_eq!((one.mean, one.std_dev, one.ci95_half_width), (3.0, 0.0, None));
        assert_eq!(Summary::of(&[f64::NAN, 2.0]).count, 1);
        assert_eq!(Summary::of(&[4.0; 6]).ci95_half_width, Some(0.0));
    }
}
