// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of a set of durations: a measure that consists of several numbers.
//!
//! Percentiles are exact for small sets and within 0.1 % for large ones ([`crate::samples`]).

use crate::measure::{Measure, Unit, measures};

/// One number of a distribution. [`crate::samples::Samples`] computes all of them together.
const fn part(unit: Unit, formula: &'static str) -> Measure<()> {
    Measure { unit, formula, notes: "", source: "", value: () }
}

measures! {
    /// Statistics of a set of durations.
    #[derive(Copy, Eq)]
    Distribution {
        /// Number of samples; `None`: unknown, because there is no trace.
        count: Option<u64> = part(Unit::Count, "number of samples; null: without a trace"),
        /// Least sample. Like the other numbers it is `None` without a sample.
        ns_min: Option<u64> =
            part(Unit::Ns, "least, exact; null, like all below, without a sample"),
        /// Arithmetic mean, rounded to the nearest ns.
        ns_mean: Option<u64> =
            part(Unit::Ns, "arithmetic mean, exact, rounded to the nearest ns"),
        /// Median (mean of the two middle samples if their number is even).
        ns_median: Option<u64> =
            part(Unit::Ns, "median; of an even number of samples the mean of the two middle ones"),
        /// 95th percentile (nearest rank).
        ns_p95: Option<u64> =
            part(Unit::Ns, "nearest rank: the least sample that at least 95 % do not exceed"),
        /// 99th percentile (nearest rank).
        ns_p99: Option<u64> = part(Unit::Ns, "least sample that at least 99 % do not exceed"),
        /// Greatest sample.
        ns_max: Option<u64> = part(Unit::Ns, "greatest, exact"),
    }
}
