// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU share: a task's part of the CPU time that all tasks of the run got.
//!
//! The shares of a run add up to 1. A lone task that sleeps half the time has a share of 1.

use crate::facts::OfTask;
use crate::measure::{Measure, Unit};
use schedlab_model::Nanos;

/// [`crate::totals::summarise`] sets it, because it needs every task.
pub(crate) const OF_TASK: OfTask<Option<f64>> = Measure {
    unit: Unit::Ratio("0 to 1"),
    formula: "`cpu_time_ns` / sum over all tasks",
    notes: "a part of what the run's tasks got, not of the machine; null: no task had CPU time",
    source: "C. Waldspurger, W. Weihl, Lottery Scheduling, OSDI 1994: the \"allocation\" that is \
             compared with the tickets (here: the weights)",
    value: |_| None,
};

/// Share of one task, 0 to 1; `None` if no task had CPU time.
pub fn cpu_share(cpu_time_ns: Nanos, all_ns: Nanos) -> Option<f64> {
    (all_ns > 0).then(|| cpu_time_ns as f64 / all_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measure, run};

    #[test]
    fn shares_follow_the_cpu_time_and_sum_to_one() {
        let m = measure(1, &run::fcfs(&[10, 30, 60]));
        let shares: Vec<f64> = m.tasks.iter().filter_map(|task| task.cpu_share).collect();
        assert_eq!(shares, [0.1, 0.3, 0.6]);
        assert_eq!(cpu_share(0, 0), None);
    }
}
