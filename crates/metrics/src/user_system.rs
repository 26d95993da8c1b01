// SPDX-License-Identifier: MIT OR Apache-2.0
//! User and system time: the parts of the CPU time that the program and the kernel used.
//!
//! Traces do not contain them; the lane sets them. On the host the kernel splits its exact sum by
//! what ticks found (kernel/sched/cputime.c, cputime_adjust). For a short task the split is rough,
//! but the sum is exact. Neither part contains CPU time of the hypervisor or of interrupts for
//! other tasks.

use crate::TaskMeasures;
use crate::facts::{OfRun, OfTask};
use crate::measure::{Measure, Unit};

const SOURCE: &str = "getrusage(2), wait4(2), `%U` and `%S` of time(1)";

/// User time of one task.
pub(crate) const USER: OfTask<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "ru_utime of wait4(2) from release to exit",
    notes: "null: not known (simulator, traces, tasks that were not reaped); [how it is \
            split](#user-and-system-time)",
    source: SOURCE,
    value: |_| None,
};

/// System time of one task.
pub(crate) const SYSTEM: OfTask<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "ru_stime of wait4(2) from release to exit",
    notes: "null where `user_time_ns` is",
    source: SOURCE,
    value: |_| None,
};

/// User time of all tasks.
pub(crate) const USER_OF_RUN: OfRun<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "host: sum over tasks; simulator: requested CPU time and cache refills",
    notes: "null: not known for every task; in the simulator while a task is alive, where hardware \
            threads slow each other, and of tasks that are busy until a wall time",
    source: SOURCE,
    value: |of| of_tasks(of.tasks).map(|(user, _)| user),
};

/// System time of all tasks.
pub(crate) const SYSTEM_OF_RUN: OfRun<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "host: sum over tasks; simulator: the rest of `cpu_time_ns` (switches, ticks, system \
              calls, interrupts)",
    notes: "null where `user_time_ns` is",
    source: SOURCE,
    value: |of| of_tasks(of.tasks).map(|(_, system)| system),
};

/// Sums over all tasks; `None` unless all tasks have the values.
pub fn of_tasks(tasks: &[TaskMeasures]) -> Option<(u64, u64)> {
    let known = tasks.iter().map(|task| Some((task.user_time_ns?, task.system_time_ns?)));
    let sum = known
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (!tasks.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_needs_every_task() {
        let task = |user_time_ns, system_time_ns| TaskMeasures {
            user_time_ns,
            system_time_ns,
            ..TaskMeasures::default()
        };
        let known = [task(Some(3), Some(1)), task(Some(4), Some(2))];
        assert_eq!(of_tasks(&known), Some((7, 3)));
        assert_eq!(of_tasks(&[known[0].clone(), task(Some(1), None)]), None);
        assert_eq!(of_tasks(&[]), None);
    }
}
