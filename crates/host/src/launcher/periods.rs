// SPDX-License-Identifier: MIT OR Apache-2.0
//! Periods of cpu.max in a guest begin with the run, and groups with all of their quota.
//!
//! The kernel draws when the first period of a group ends (init_cfs_bandwidth in
//! kernel/sched/fair.c, Linux 6.3 on), and then keeps the distance. So the time until the first
//! refill, which decides how long the first tasks run, depends on when a group was made. Tasks that
//! ran before the run have left up to 1 ms of CPU time in the group's queues, too.
//!
//! A new period counts from the end of the present one, so one of another length moves all later
//! ones. The launcher reads when the present one ends (/proc/timer_list). It sets a length that
//! ends at a whole number of periods before time 0, and then the group's own.

use super::{Launcher, Stop};
use crate::plan::Work;
use crate::sys;
use schedlab_model::{CgroupId, CpuMax, Nanos};

/// Shortest and longest period (ns).
const PERIOD_NS_MIN: Nanos = 1_000_000;
const PERIOD_NS_MAX: Nanos = 1_000_000_000;

/// Length (ns) of the period whose end is read, and how long before it the next one is set.
const READ_NS: Nanos = 250_000_000;
const MARGIN_NS: Nanos = 20_000_000;

/// Least length (ns) of the period that moves the others, so that it has not ended before the next
/// look.
const MOVE_NS: Nanos = 100_000_000;

/// Time (ns) between two looks whether periods are over.
const LOOK_NS: Nanos = 10_000_000;

/// Tries for each group.
const TRIES: u32 = 4;

/// Time (ns) before time 0 at which the periods should be as they are to be.
const LEAD_NS: Nanos = 3_000_000_000;

/// The kernel's name of the function that ends a period.
const TIMER: &str = "sched_cfs_period_timer";

impl Launcher<'_> {
    /// Lets periods of cpu.max begin at the planned time 0, if there is one. Where that fails, as
    /// where the kernel does not tell its timers, groups have their limits all the same.
    pub(super) fn align_periods(&self, planned_ns: Nanos) -> Result<(), Stop> {
        let Work::Tasks { workload, .. } = &self.plan.work else { return Ok(()) };
        if planned_ns == 0 {
            return Ok(());
        }
        // Ticks are at multiples of their length.
        let zero_ns = planned_ns / sys::tick_ns() * sys::tick_ns();
        let limits = (0..).map(CgroupId).zip(&workload.cgroups);
        for (group, cpu_max) in limits.filter_map(|(id, spec)| Some((id, spec.cpu_max?))) {
            let mut is_aligned = false;
            for _ in 0..TRIES {
                if !is_aligned && sys::monotonic_ns() + LEAD_NS <= zero_ns {
                    is_aligned = self.align(group, cpu_max, zero_ns)?;
                }
            }
            if !is_aligned {
                self.limit(group, cpu_max)?;
            }
        }
        Ok(())
    }

    /// Moves the periods of one group. Returns whether they are as they should be; otherwise the
    /// group may have another period.
    fn align(&self, group: CgroupId, cpu_max: CpuMax, zero_ns: Nanos) -> Result<bool, Stop> {
        self.wait_until_idle()?;
        // Long enough to be read before its end: the list takes 20 ms.
        self.limit(group, CpuMax { period_ns: READ_NS, ..cpu_max })?;
        let Some(end_ns) = period_end() else { return Ok(false) };
        if end_ns < sys::monotonic_ns() + MARGIN_NS {
            self.pause((end_ns + PERIOD_NS_MIN).saturating_sub(sys::monotonic_ns()))?;
            return Ok(false);
        }
        let rest_ns = distance(end_ns, zero_ns, cpu_max.period_ns);
        let Some(period_ns) = moving_period(rest_ns, cpu_max.period_ns) else { return Ok(false) };
        self.limit(group, CpuMax { period_ns, ..cpu_max })?;
        self.pause((end_ns + PERIOD_NS_MIN).saturating_sub(sys::monotonic_ns()))?;
        self.limit(group, cpu_max)?;
        Ok(period_end().is_some_and(|end_ns| distance(end_ns, zero_ns, cpu_max.period_ns) == 0))
    }

    /// Waits until no period is under way: those of groups without running tasks end for good.
    fn wait_until_idle(&self) -> Result<(), Stop> {
        let deadline = sys::monotonic_ns() + 3 * PERIOD_NS_MAX;
        while period_end().is_some() && sys::monotonic_ns() < deadline {
            self.pause(LOOK_NS)?;
        }
        Ok(())
    }

    fn limit(&self, group: CgroupId, cpu_max: CpuMax) -> Result<(), Stop> {
        self.plan.groups.limit(group, cpu_max).map_err(Stop::Failed)
    }
}

/// Time (ns) by which the end of a period comes too early, in whole us: 0 if one is at `zero_ns`,
/// or less than 1 us after it.
fn distance(end_ns: Nanos, zero_ns: Nanos, period_ns: Nanos) -> Nanos {
    let late_ns = (end_ns % period_ns + period_ns - zero_ns % period_ns) % period_ns;
    if late_ns < 1_000 { 0 } else { (period_ns - late_ns).next_multiple_of(1_000) }
}

/// The length of the period that moves the others by `rest_ns`; `None` if the kernel allows none.
fn moving_period(rest_ns: Nanos, period_ns: Nanos) -> Option<Nanos> {
    let lengths = (0..=MOVE_NS / PERIOD_NS_MIN).map(|nr| rest_ns + nr * period_ns);
    let mut allowed = lengths.filter(|ns| (PERIOD_NS_MIN..=PERIOD_NS_MAX).contains(ns));
    let first = allowed.next()?;
    Some(std::iter::once(first).chain(allowed).find(|ns| *ns >= MOVE_NS).unwrap_or(first))
}

/// When the first period under way ends (CLOCK_MONOTONIC, ns).
fn period_end() -> Option<Nanos> {
    end_in(&std::fs::read_to_string("/proc/timer_list").ok()?)
}

/// The same from the text of /proc/timer_list. A line names the timer, and the next tells its time.
fn end_in(list: &str) -> Option<Nanos> {
    let after = &list[list.find(TIMER)?..];
    let times = after.lines().nth(1)?.split_once("expires at ")?.1;
    times.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_period_is_read_from_the_list_of_timers() {
        let list = "active timers:\n #0: <0>, tick_nohz_handler, S:01\n # expires at \
                    8000000000-8000000000 nsecs [in 1 to 1 nsecs]\n #1: <0>, \
                    sched_cfs_period_timer, S:01\n # expires at 8001234567-8001234567 nsecs [in 2 \
                    to 2 nsecs]\n";
        assert_eq!(end_in(list), Some(8_001_234_567));
        assert_eq!(end_in("active timers:\n"), None);
    }

    #[test]
    fn a_moving_period_ends_at_a_whole_number_of_periods_before_time_0() {
        for (end_ns, zero_ns, period_ns) in [
            (7_340_123, 40_000_000, 10_000_000),
            (123_456_789, 20_000_000_000, 1_000_000_000),
            (3_999_999, 16_000_000, 4_000_000),
            (9_000_001, 20_000_000, 1_000_000),
        ] {
            let rest_ns = distance(end_ns, zero_ns, period_ns);
            let moving_ns = moving_period(rest_ns, period_ns).unwrap();
            assert!((PERIOD_NS_MIN..=PERIOD_NS_MAX).contains(&moving_ns));
            assert_eq!(moving_ns % 1_000, 0);
            assert_eq!(distance(end_ns + moving_ns, zero_ns, period_ns), 0, "{end_ns}");
        }
        assert_eq!(moving_period(500_000, 1_000_000_000), None);
    }
}
