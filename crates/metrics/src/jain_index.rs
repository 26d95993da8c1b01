// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jain's fairness index of the tasks' CPU time.
//!
//! It is not weighted. With unequal nice values the scheduler should not give equal shares; compare
//! each task's cpu_share with its weight instead. If all tasks finish, it only shows how equal
//! their work was. It measures fairness in runs of fixed length.

use crate::facts::OfRun;
use crate::measure::{Measure, Unit};

/// Over the jobs.
pub(crate) const OF_RUN: OfRun<Option<f64>> = Measure {
    unit: Unit::Ratio("1/n to 1"),
    formula: "(sum x)^2 / (n sum x^2), x = `cpu_time_ns`",
    notes: "1: all equal, 1/n: one has all; unweighted; null: no CPU time at all",
    source: "R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination for \
             Resource Allocation in Shared Computer Systems, DEC-TR-301, 1984",
    value: |of| jain_index(of.jobs.iter().map(|task| task.cpu_time_ns)),
};

/// Jain's index of these amounts, 1/n to 1; `None` if all are 0.
pub fn jain_index(amounts: impl Iterator<Item = u64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0u64, 0.0f64, 0.0f64);
    for amount in amounts {
        let x = amount as f64;
        n += 1;
        sum += x;
        squares += x * x;
    }
    (squares > 0.0).then(|| sum * sum / (n as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(jain_index([5, 5, 5, 5].into_iter()), Some(1.0));
        assert_eq!(jain_index([9, 0, 0].into_iter()), Some(1.0 / 3.0));
        // (1+2+3)^2 / (3 * (1+4+9)) = 36/42
        assert!((jain_index([1, 2, 3].into_iter()).unwrap() - 6.0 / 7.0).abs() < 1e-15);
        assert_eq!(jain_index([].into_iter()), None);
        assert_eq!(jain_index([0, 0].into_iter()), None);
    }
}
