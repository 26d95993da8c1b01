// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the kernel checks for stalls: twice in each timeout of a sched_ext scheduler a kernel
//! thread looks for tasks that wait too long. It takes the CPU from a task, which may change the
//! order of all. So a run begins at a known time after a check, and a model can have them too.
//!
//! The times of two checks tell the rest, as their timer always takes the same steps. They come
//! from the kernel's trace event of works that start. So does the time at which the kernel renews
//! its random key, which would take the CPU too: the next time follows from the last one.

use schedlab_host::{pace::Beat, sys};
use std::fs;

const EVENT: &str = "/sys/kernel/tracing/events/workqueue/workqueue_execute_start/enable";
const CLOCK: &str = "/sys/kernel/tracing/trace_clock";
const TRACE: &str = "/sys/kernel/tracing/trace";
/// The work that checks (kernel/sched/ext.c).
const CHECK: &str = "scx_watchdog_workfn";
/// The work that renews the key (drivers/char/random.c).
const RENEWAL: &str = "crng_reseed";
/// The longest time in which both come: the longest timeout is 30 s, and its half is rounded up to
/// at most 512 ticks.
const LONGEST_NS: u64 = 36_000_000_000;
const LOOK_NS: u64 = 100_000_000;
/// From the tick of a check to the begin of a run. Machine `guest-counted` has the same
/// (`after_check_ns`). A fair or ext server that the check has started has stopped by then, and
/// with timeouts of 5 s one check falls into a run of 4 s.
const AFTER_CHECK_NS: u64 = 1_100_000_000;

/// The kernel notes its checks.
pub struct Checks;

impl Checks {
    /// Lets the kernel note its checks; `None`: this kernel cannot. It never stops to do so, as the
    /// end of a trace event is work for the kernel, some of it 15 s later.
    pub fn noted() -> Option<Self> {
        fs::write(CLOCK, "mono").and_then(|()| fs::write(EVENT, "1")).ok().map(|()| Self)
    }

    /// Waits for two checks and a renewal while `goes_on`.
    pub fn beat(self, mut goes_on: impl FnMut() -> bool) -> Option<Beat> {
        let begin_ns = sys::monotonic_ns();
        let mut found = None;
        while goes_on() && sys::monotonic_ns() - begin_ns < LONGEST_NS {
            let trace = fs::read_to_string(TRACE).ok()?;
            found = beat(&trace, sys::tick_ns());
            if found.is_some_and(|beat| beat.avoided_ns > 0) {
                break;
            }
            sys::sleep_until_ns(sys::monotonic_ns() + LOOK_NS);
        }
        found
    }
}

/// What the kernel's trace tells; `None`: fewer than two checks.
fn beat(trace: &str, tick_ns: u64) -> Option<Beat> {
    let checks = times(trace, CHECK);
    let [.., before_ns, last_ns] = checks[..] else { return None };
    let ticks = (last_ns - before_ns + tick_ns / 2) / tick_ns;
    // crng_reseed_interval(): half of the uptime in whole seconds, at most a minute.
    let next = |ns: &u64| ns + (ns / 1_000_000_000 / 2).min(60) * 1_000_000_000;
    Some(Beat {
        at_ns: last_ns + AFTER_CHECK_NS,
        period_ns: ticks.max(1) * tick_ns,
        avoided_ns: times(trace, RENEWAL).last().map_or(0, next),
    })
}

/// The times (ns) at which a work started.
fn times(trace: &str, work: &str) -> Vec<u64> {
    let of_line = |line: &str| {
        let (head, _) = line.split_once(": workqueue_execute_start:")?;
        let (seconds, us) = head.split_whitespace().next_back()?.split_once('.')?;
        let (seconds, us): (u64, u64) = (seconds.parse().ok()?, us.parse().ok()?);
        Some(seconds * 1_000_000_000 + us * 1_000)
    };
    trace.lines().filter(|line| line.ends_with(work)).filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_and_renewals_are_found_in_a_trace() {
        let line = |time: &str, work: &str| {
            format!(
                "    kworker/u4:4-42      [000] ...1.    {time}: workqueue_execute_start: work \
                 struct 000000004a7b6d2f: function {work}\n"
            )
        };
        let one = line("23.399041", CHECK) + &line("25.183067", "neigh_periodic_work");
        assert_eq!(beat(&one, 4_000_000), None);
        let two = one.clone() + &line("25.959042", CHECK);
        let found = Beat { at_ns: 27_059_042_000, period_ns: 2_560_000_000, avoided_ns: 0 };
        assert_eq!(beat(&two, 4_000_000), Some(found));
        let all = two + &line("30.823043", RENEWAL);
        let found = Beat { avoided_ns: 45_823_043_000, ..found };
        assert_eq!(beat(&all, 4_000_000), Some(found));
        assert!(times("a: workqueue_execute_start: crng_reseed", RENEWAL).is_empty());
    }

    /// The model of a guest begins its run as long after a check as the guest does.
    #[test]
    fn the_machine_of_guests_has_the_same_time() {
        let machine = include_str!("../../../machines/guest-counted.toml");
        let times = machine.lines().filter_map(|line| line.strip_prefix("after_check_ns = "));
        let times: Vec<u64> = times.map(|time| time.replace('_', "").parse().unwrap()).collect();
        assert!(!times.is_empty() && times.iter().all(|time| *time == AFTER_CHECK_NS), "{times:?}");
    }
}
