// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU share: which part of the CPU time that the run's tasks got went to one task.
//!
//! Formula: cpu_time_ns(task) / sum of cpu_time_ns over all tasks. Range: 0 to 1; the shares sum to
//! 1.
//! Source: C. Waldspurger, W. Weihl, Lottery Scheduling, OSDI 1994: the "allocation" that is
//! compared with the tickets (here: the weights).
//! Not: a part of the machine (that is utilisation): a lone task that sleeps half the time has
//! share 1.

use schedlab_model::Nanos;

/// Share of one task.
pub fn cpu_share(cpu_time_ns: Nanos, all_ns: Nanos) -> f64 {
    if all_ns == 0 { 0.0 } else { cpu_time_ns as f64 / all_ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measure, run};

    #[test]
    fn shares_follow_the_cpu_time_and_sum_to_one() {
        let m = measure(1, &run::fcfs(&[10, 30, 60]));
        let shares: Vec<f64> = m.tasks.iter().map(|task| task.cpu_share).collect();
        assert_eq!(shares, [0.1, 0.3, 0.6]);
        assert_eq!(cpu_share(0, 0), 0.0);
    }
}
