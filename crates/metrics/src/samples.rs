// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of durations in bounded memory, with percentiles.
//!
//! The first [`EXACT_SAMPLES`] values are kept as they are. With more values the set becomes a
//! log-linear histogram with 512 equal buckets per octave. It is exact below 1,024 ns; other values
//! are within 1/1024 (0.098 %) of the true ones. Count, sum, least and greatest value are always
//! exact.
//!
//! The layout is that of HdrHistogram (G. Tene, hdrhistogram.org), except that an octave is
//! allocated when its first value arrives. A trace has three sets per task, most of them small and
//! each within a few octaves; an HdrHistogram of the same precision takes some 180 kB per set from
//! the start.

use crate::Distribution;

/// Number of values that a set keeps exactly before it becomes a histogram.
pub const EXACT_SAMPLES: usize = 1024;

/// Number of exact values in a merged set. There is one per run, so it may be larger.
const EXACT_MERGED: usize = 1 << 16;

const SUB_BITS: u32 = 9;
/// Buckets per octave.
pub(crate) const SUB_BUCKETS: usize = 1 << SUB_BITS;
/// Octave 0 holds 0..512, octave k holds 2^(8+k) .. 2^(9+k).
const OCTAVES: usize = 64 - SUB_BITS as usize + 1;

type Octave = [u64; SUB_BUCKETS];

/// A set of durations (ns).
#[derive(Clone, Debug)]
pub struct Samples {
    /// The latest values, not yet added to the histogram.
    recent: Vec<u64>,
    /// Number of values kept before `recent` is added to the histogram.
    recent_limit: usize,
    /// `None` while every value is in `recent`. Apart, because a run may have three sets for each
    /// of a million tasks, nearly all of them small.
    histogram: Option<Box<Histogram>>,
}

/// Values by bucket, and what is exact about them.
#[derive(Clone, Debug)]
struct Histogram {
    totals: Totals,
    octaves: [Option<Box<Octave>>; OCTAVES],
}

impl Histogram {
    const EMPTY: Self = Self { totals: Totals::NONE, octaves: [const { None }; OCTAVES] };

    fn count(&mut self, value: u64, times: u64) {
        let (octave, bucket) = bucket_of(value);
        self.octaves[octave].get_or_insert_with(|| Box::new([0; SUB_BUCKETS]))[bucket] += times;
    }
}

/// Statistics that are exact for any number of values.
#[derive(Clone, Copy, Debug)]
struct Totals {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Totals {
    const NONE: Self = Self { count: 0, sum: 0, min: u64::MAX, max: 0 };

    fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

impl Default for Samples {
    fn default() -> Self {
        Self { recent: Vec::new(), recent_limit: EXACT_SAMPLES, histogram: None }
    }
}

/// Octave and bucket of a value.
#[inline]
pub(crate) fn bucket_of(value: u64) -> (usize, usize) {
    if value < SUB_BUCKETS as u64 {
        return (0, value as usize);
    }
    let shift = 63 - value.leading_zeros() - SUB_BITS;
    (shift as usize + 1, (value >> shift) as usize - SUB_BUCKETS)
}

/// The value that represents a bucket: its middle.
pub(crate) fn value_of(octave: usize, bucket: usize) -> u64 {
    if octave == 0 {
        return bucket as u64;
    }
    let shift = octave - 1;
    (((SUB_BUCKETS + bucket) as u64) << shift) + ((1u64 << shift) - 1) / 2
}

impl Samples {
    /// An empty set that others are merged into.
    pub fn merged() -> Self {
        Self { recent_limit: EXACT_MERGED, ..Self::default() }
    }

    fn totals(&self) -> Totals {
        let mut totals = self.histogram.as_ref().map_or(Totals::NONE, |known| known.totals);
        for &value in &self.recent {
            totals.add(value);
        }
        totals
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        let folded = self.histogram.as_ref().map_or(0, |known| known.totals.count);
        folded + self.recent.len() as u64
    }

    /// Sum of the values, exact.
    pub fn sum(&self) -> u128 {
        self.totals().sum
    }

    /// Whether percentiles are exact.
    pub fn is_exact(&self) -> bool {
        self.histogram.is_none()
    }

    /// Adds a value. Values go into the histogram in batches, because with many sets in use single
    /// values would miss the cache.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if self.recent.len() >= self.recent_limit {
            self.fold();
        } else if self.recent.capacity() == 0 {
            self.begin();
        }
        self.recent.push(value);
    }

    /// Makes room for one value: many a task of a run with a million has no other.
    #[cold]
    fn begin(&mut self) {
        self.recent.reserve_exact(1);
    }

    /// Moves the latest values into the histogram.
    #[cold]
    fn fold(&mut self) {
        let totals = self.totals();
        let histogram = self.histogram.get_or_insert_with(|| Box::new(Histogram::EMPTY));
        histogram.totals = totals;
        for value in self.recent.drain(..) {
            histogram.count(value, 1);
        }
    }

    /// Adds every value of another set.
    pub fn merge(&mut self, other: &Self) {
        let both = self.count() + other.count();
        for &value in &other.recent {
            self.record(value);
        }
        let Some(of_other) = &other.histogram else { return };
        self.fold();
        if let Some(histogram) = &mut self.histogram {
            for (octave, buckets) in of_other.octaves.iter().enumerate() {
                let filled = buckets.iter().flat_map(|b| b.iter().enumerate());
                for (bucket, &times) in filled.filter(|(_, times)| **times > 0) {
                    histogram.count(value_of(octave, bucket), times);
                }
            }
            histogram.totals.merge(&of_other.totals);
        }
        assert_eq!(self.count(), both, "values were lost between two sets");
    }

    /// Values at ascending `ranks` (1 = least). The set has no `recent` values, or only these.
    fn at_ranks<const N: usize>(&self, ranks: [u64; N], totals: &Totals) -> [u64; N] {
        let Some(histogram) = &self.histogram else {
            let mut sorted = self.recent.clone();
            sorted.sort_unstable();
            return ranks.map(|rank| sorted[rank as usize - 1]);
        };
        assert!(ranks.is_sorted() && ranks[0] > 0, "ranks {ranks:?} are not in order from 1");
        let mut values = [totals.max; N];
        let (mut seen, mut next) = (0, 0);
        for (octave, buckets) in histogram.octaves.iter().enumerate() {
            for (bucket, &times) in buckets.iter().flat_map(|b| b.iter().enumerate()) {
                seen += times;
                while next < N && seen >= ranks[next] {
                    values[next] = value_of(octave, bucket).clamp(totals.min, totals.max);
                    next += 1;
                }
            }
        }
        assert_eq!(seen, totals.count, "the buckets hold {seen} of {} values", totals.count);
        values
    }

    /// Mean (rounded to the nearest), median (mean of the two middle values if the count is even),
    /// p95 and p99 by nearest rank: the least value that at least this percentage of the values
    /// does not exceed.
    pub fn distribution(&self) -> Distribution {
        if !self.is_exact() && !self.recent.is_empty() {
            let mut whole = self.clone();
            whole.fold();
            return whole.distribution();
        }
        let totals = self.totals();
        let n = totals.count;
        if n == 0 {
            return Distribution { count: Some(0), ..Distribution::default() };
        }
        let ranks = [n.div_ceil(2), n / 2 + 1, rank_of(n, 95), rank_of(n, 99)];
        let [low, high, p95, p99] = self.at_ranks(ranks, &totals);
        let order = [totals.min, low, high, p95, p99, totals.max];
        assert!(order.is_sorted(), "least to greatest of {n} values: {order:?}");
        let mean = ((totals.sum + u128::from(n) / 2) / u128::from(n)) as u64;
        assert!((totals.min..=totals.max).contains(&mean), "the mean {mean} of {totals:?}");
        Distribution {
            count: Some(n),
            ns_min: Some(totals.min),
            ns_mean: Some(mean),
            ns_median: Some(low.midpoint(high)),
            ns_p95: Some(p95),
            ns_p99: Some(p99),
            ns_max: Some(totals.max),
        }
    }
}

/// Nearest rank of a percentile among `n` values: ceil(n * percent / 100), without overflow.
fn rank_of(n: u64, percent: u64) -> u64 {
    (u128::from(n) * u128::from(percent)).div_ceil(100) as u64
}

impl FromIterator<u64> for Samples {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut set = Self::merged();
        for value in values {
            set.record(value);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_exact() {
        let set: Samples = (1..=100).rev().collect();
        let d = set.distribution();
        assert_eq!([d.count, d.ns_min, d.ns_mean, d.ns_max], [100, 1, 51, 100].map(Some));
        assert_eq!([d.ns_median, d.ns_p95, d.ns_p99], [50, 95, 99].map(Some));
        let two: Samples = [10, 20].into_iter().collect();
        assert_eq!(two.distribution().ns_median, Some(15));
        let one: Samples = [7].into_iter().collect();
        let d = one.distribution();
        assert_eq!([d.ns_min, d.ns_mean, d.ns_median, d.ns_p95, d.ns_p99, d.ns_max], [Some(7); 6]);
        let none = Distribution { count: Some(0), ..Distribution::default() };
        assert_eq!(Samples::default().distribution(), none);
    }

    #[test]
    fn every_bucket_holds_the_value_that_stands_for_it() {
        for octave in 0..OCTAVES {
            for bucket in [0, 1, 255, 511] {
                assert_eq!(bucket_of(value_of(octave, bucket)), (octave, bucket));
            }
        }
        assert_eq!(bucket_of(u64::MAX), (OCTAVES - 1, SUB_BUCKETS - 1));
        assert_eq!(bucket_of(1023), (1, 511));
        assert_eq!(value_of(1, 511), 1023);
    }

    /// Compared with the sorted values, over a set that spans many octaves.
    #[test]
    fn many_values_are_within_a_thousandth() {
        let mut set = Samples::default();
        let mut values = Vec::new();
        let mut x = 88_172_645_463_325_252u64;
        for _ in 0..50_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let value = x >> (x % 50);
            values.push(value);
            set.record(value);
        }
        assert!(!set.is_exact());
        values.sort_unstable();
        let d = set.distribution();
        let exact = |percent: u64| values[rank_of(50_000, percent) as usize - 1] as f64;
        for (got, percent) in [(d.ns_median, 50), (d.ns_p95, 95), (d.ns_p99, 99)] {
            let error = (got.unwrap() as f64 - exact(percent)).abs() / exact(percent);
            assert!(error <= 0.001, "p{percent}: {got:?}, error {error}");
        }
        assert_eq!([d.ns_min, d.ns_max], [values[0], values[49_999]].map(Some));
        let sum: u128 = values.iter().map(|&v| u128::from(v)).sum();
        assert_eq!(set.sum(), sum);
    }

    #[test]
    fn merging_equals_recording_into_one_set() {
        for size in [10u64, 2_000] {
            let (mut a, mut b, mut all) =
                (Samples::default(), Samples::default(), Samples::default());
            for i in 0..size {
                let value = i * i * 37;
                if i % 3 == 0 { &mut a } else { &mut b }.record(value);
                all.record(value);
            }
            let mut merged = Samples::merged();
            merged.merge(&a);
            merged.merge(&b);
            let (m, d) = (merged.distribution(), all.distribution());
            assert_eq!(
                (m.count, m.ns_min, m.ns_mean, m.ns_max),
                (d.count, d.ns_min, d.ns_mean, d.ns_max)
            );
            for (got, want) in [(m.ns_median, d.ns_median), (m.ns_p99, d.ns_p99)] {
                let (got, want) = (got.unwrap(), want.unwrap());
                assert!(got.abs_diff(want) * 512 <= want, "{got} {want}");
            }
        }
    }
}
