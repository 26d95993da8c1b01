// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time: integer nanoseconds since the start of the run.

/// Nanoseconds since the start of the run, or a duration. Unsigned, because no event is before the
/// start. Differences that may be negative are `i64`, and their names say it.
pub type Nanos = u64;

/// Nanoseconds in a microsecond.
pub const NSEC_PER_USEC: Nanos = 1_000;
/// Nanoseconds in a millisecond.
pub const NSEC_PER_MSEC: Nanos = 1_000_000;
/// Nanoseconds in a second.
pub const NSEC_PER_SEC: Nanos = 1_000_000_000;

/// Length (ns) of a tick at `hz` ticks per second, rounded to the nearest nanosecond as the
/// kernel's `TICK_NSEC`.
pub const fn tick_nsec(hz: u32) -> Nanos {
    (NSEC_PER_SEC + hz as u64 / 2) / hz as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick_length_is_rounded_to_the_nearest_nanosecond() {
        assert_eq!(tick_nsec(1000), 1_000_000);
        assert_eq!(tick_nsec(250), 4_000_000);
        assert_eq!(tick_nsec(300), 3_333_333);
        assert_eq!(tick_nsec(100), 10_000_000);
    }
}
