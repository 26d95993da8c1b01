// SPDX-License-Identifier: MIT OR Apache-2.0
//! User and system time: which part of the CPU time was the program's, and which the kernel's.
//!
//! Host: ru_utime and ru_stime of wait4(2), from the task's release to its exit. The kernel splits
//! its exact sum by what ticks found (kernel/sched/cputime.c, cputime_adjust), so the split of a
//! short task is rough and the sum is not. Simulator: user time is what programs asked for and what
//! cold caches cost them, system time the rest of the CPU time: switches, ticks, system calls,
//! interrupts. Unit: ns. `None`: not known (a trace; a task without a wait4; in the simulator while
//! a task lives on, and where hardware threads slow each other).
//! Source: getrusage(2), wait4(2), `%U` and `%S` of time(1).
//! Not: CPU time of the hypervisor or of other tasks' interrupts.

use crate::TaskMeasures;

/// Sums over all tasks; `None` unless every one knows its own.
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
