// SPDX-License-Identifier: MIT OR Apache-2.0
//! "Wait time" by the formula in the text of study S2, with its slip of the sign.
//!
//! Formula: makespan_ns * CPUs - user_time_ns + system_time_ns. Unit: ns. `None` while a task lives
//! on, and where user and system time are not known.
//! Source: Shannon and Eller, "An Analysis of Linux Schedulers" (2015), section Benchmarking. Its
//! own first equation, solved for the wait time, has - system, as its program does:
//! [`crate::idle_capacity`].
//! Not: anything that a task waited for. It is here to be put beside the others.

use schedlab_model::Nanos;

/// The formula as printed.
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
