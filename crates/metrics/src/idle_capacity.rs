// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idle capacity: CPU time that the machine had and the tasks of the run did not use.
//!
//! It is not waiting time: with more runnable tasks than CPUs it approaches 0 while run_delay_ns
//! grows. It is negative only if tasks ran before the first release, or launchers after the last
//! exit.

use crate::facts::OfRun;
use crate::measure::{Measure, Unit};
use crate::{makespan, slice};
use schedlab_model::Nanos;

/// [`crate::totals::settle`] recomputes it if a lane changes the totals from which it is computed.
pub(crate) const OF_RUN: OfRun<Option<i64>> = Measure {
    unit: Unit::Ns,
    formula: "makespan x CPUs - `cpu_time_ns`",
    notes: "what the program of study S2 calls wait time; null while a task is alive",
    source: "`analyze` of Shannon and Eller, An Analysis of Linux Schedulers, 2015: wall * cores - \
             user - system",
    value: |of| idle_capacity_ns(makespan::of_run(of), of.nr_cpus, slice::cpu_time_ns(of)),
};

/// Unused CPU time (ns) of `nr_cpus` CPUs during the makespan.
pub fn idle_capacity_ns(
    makespan_ns: Option<Nanos>,
    nr_cpus: u32,
    cpu_time_ns: Nanos,
) -> Option<i64> {
    let capacity = i128::from(makespan_ns?) * i128::from(nr_cpus);
    i64::try_from(capacity - i128::from(cpu_time_ns)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measure, run};

    /// Jobs of 10, 20 and 30 ns one after another: no CPU idles, and they wait 0 + 10 + 30 ns.
    #[test]
    fn waiting_tasks_leave_no_capacity() {
        let one = measure(1, &run::fcfs(&[10, 20, 30])).totals;
        assert_eq!((one.idle_capacity_ns, one.run_delay_ns), (Some(0), 40));
        let two = measure(2, &run::fcfs(&[10, 20, 30])).totals;
        assert_eq!(two.idle_capacity_ns, Some(60));
    }

    #[test]
    fn it_can_be_below_0_and_unknown() {
        assert_eq!(idle_capacity_ns(Some(10), 2, 21), Some(-1));
        assert_eq!(idle_capacity_ns(None, 2, 21), None);
        assert_eq!(idle_capacity_ns(Some(u64::MAX), 1024, 0), None);
    }
}
