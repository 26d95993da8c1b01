// SPDX-License-Identifier: MIT OR Apache-2.0
//! "Wait time" by the formula in the text of study S2, which has a wrong sign.
//!
//! The study's own first equation, solved for the wait time, has "- system", as its program does:
//! [`crate::idle_capacity`]. No task waited for this time; the measure exists to compare it with
//! the others.

use crate::facts::OfRun;
use crate::measure::{Measure, Unit};
use crate::{makespan, user_system};
use schedlab_model::Nanos;

/// [`crate::totals::settle`] recomputes it when a lane sets user and system time.
pub(crate) const OF_RUN: OfRun<Option<i64>> = Measure {
    unit: Unit::Ns,
    formula: "makespan x CPUs - `user_time_ns` + `system_time_ns`",
    notes: "the formula in the text of study S2, which has the wrong sign for system time; null \
            while a task is alive, and where user and system time are not known",
    source: "Shannon and Eller, An Analysis of Linux Schedulers, 2015, section Benchmarking",
    value: |of| {
        let (user, system) = user_system::of_tasks(of.tasks).unzip();
        wait_as_reported_ns(makespan::of_run(of), of.nr_cpus, user, system)
    },
};

/// The formula as printed in the study.
pub fn wait_as_reported_ns(
    makespan_ns: Option<Nanos>,
    nr_cpus: u32,
    user_time_ns: Option<Nanos>,
    system_time_ns: Option<Nanos>,
) -> Option<i64> {
    let capacity = i128::from(makespan_ns?) * i128::from(nr_cpus);
    let wait = capacity - i128::from(user_time_ns?) + i128::from(system_time_ns?);
    i64::try_from(wait).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle_capacity::idle_capacity_ns;

    /// It differs from the idle capacity by twice the system time.
    #[test]
    fn the_sign_of_the_system_time_is_wrong() {
        let (user, system) = (70, 12);
        let reported = wait_as_reported_ns(Some(50), 2, Some(user), Some(system));
        assert_eq!(reported, Some(42));
        assert_eq!(idle_capacity_ns(Some(50), 2, user + system), Some(18));
        assert_eq!(wait_as_reported_ns(Some(50), 2, Some(user), None), None);
    }
}
