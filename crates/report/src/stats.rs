// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics over repetitions, and the five numbers of a box plot.

/// Mean of a sample and the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the interval; `None` with fewer than two values, because one value shows
    /// no spread.
    pub ci95_half: Option<f64>,
    /// Number of values.
    pub count: usize,
}

/// Two-sided 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom (NIST/SEMATECH
/// e-Handbook of Statistical Methods, section 1.3.6.7.2).
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Quantile for any number of degrees of freedom. Above 30 it uses the next lower row of the same
/// table, so the interval is never too narrow.
fn t_975(degrees: usize) -> f64 {
    match degrees {
        0 => f64::NAN,
        1..=30 => T_975[degrees - 1],
        31..=39 => 2.042,
        40..=59 => 2.021,
        60..=99 => 2.000,
        _ => 1.984,
    }
}

/// Mean and confidence interval of `values`; `None` without values.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let count = values.len();
    if count == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count as f64;
    let ci95_half = (count >= 2).then(|| {
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let deviation = (squares / (count - 1) as f64).sqrt();
        t_975(count - 1) * deviation / (count as f64).sqrt()
    });
    Some(Estimate { mean, ci95_half, count })
}

/// The five numbers of a box plot (Tukey): quartiles by linear interpolation, whiskers at the
/// last value within 1.5 interquartile ranges of the box.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FiveNumbers {
    /// End of the lower whisker.
    pub low: f64,
    /// First quartile.
    pub q1: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub q3: f64,
    /// End of the upper whisker.
    pub high: f64,
    /// Values beyond the whiskers.
    pub outliers: usize,
}

/// The box of `values`; `None` without values.
pub fn five_numbers(values: &[f64]) -> Option<FiveNumbers> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (q1, median, q3) =
        (quantile(&sorted, 0.25), quantile(&sorted, 0.5), quantile(&sorted, 0.75));
    let reach = 1.5 * (q3 - q1);
    let inside: Vec<f64> =
        sorted.iter().copied().filter(|v| (q1 - reach..=q3 + reach).contains(v)).collect();
    let (low, high) = (inside.first().copied().unwrap_or(q1), inside.last().copied().unwrap_or(q3));
    Some(FiveNumbers { low, q1, median, q3, high, outliers: sorted.len() - inside.len() })
}

/// Quantile `p` (0 to 1) of sorted, non-empty `values` by linear interpolation.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let rank = p * (sorted.len() - 1) as f64;
    let low = rank.floor() as usize;
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * (rank - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_three_values_matches_hand_calculation() {
        // Mean 2, deviation 1, t(2) = 4.303: 4.303 / sqrt(3) = 2.4843.
        let e = estimate(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(e.mean, 2.0);
        assert!((e.ci95_half.unwrap() - 2.4843).abs() < 1e-3);
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_mean() {
        assert_eq!(estimate(&[5.0]).unwrap().ci95_half, None);
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn quantile_of_t_never_grows_with_more_values() {
        for degrees in 1..200 {
            assert!(t_975(degrees + 1) <= t_975(degrees));
        }
    }

    #[test]
    fn box_leaves_the_far_value_outside() {
        let b = five_numbers(&[1.0, 2.0, 3.0, 4.0, 100.0]).unwrap();
        assert_eq!((b.low, b.q1, b.median, b.q3, b.high), (1.0, 2.0, 3.0, 4.0, 4.0));
        assert_eq!(b.outliers, 1);
    }
}
