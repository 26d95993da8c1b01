// SPDX-License-Identifier: MIT OR Apache-2.0
//! Per-entity load tracking: geometric sums of how long an entity was runnable and running.
//!
//! Time is counted in units of 1,024 ns and periods of 1,024 units; a period's contribution halves
//! every 32 periods. Source: Linux kernel/sched/pelt.c and sched-pelt.h, 6.1 and 6.12. The clock is
//! the CPU's time, since the model has neither interrupt time nor frequency scaling (clock_pelt).

use schedlab_model::Nanos;

/// Greatest possible sum of contributions (LOAD_AVG_MAX).
pub const LOAD_AVG_MAX: u64 = 47_742;
/// Least divider (PELT_MIN_DIVIDER).
pub const MIN_DIVIDER: u64 = LOAD_AVG_MAX - 1024;
/// Utilisation of a fully used CPU (SCHED_CAPACITY_SCALE).
pub const CAPACITY_SCALE: u64 = 1024;
const CAPACITY_SHIFT: u32 = 10;

/// y^n * 2^32 for n in 0..32, y^32 = 1/2.
const DECAY: [u32; 32] = [
    0xffff_ffff,
    0xfa83_b2da,
    0xf525_7d14,
    0xefe4_b99a,
    0xeac0_c6e6,
    0xe5b9_06e6,
    0xe0cc_deeb,
    0xdbfb_b796,
    0xd744_fcc9,
    0xd2a8_1d91,
    0xce24_8c14,
    0xc9b9_bd85,
    0xc567_2a10,
    0xc12c_4cc9,
    0xbd08_a39e,
    0xb8fb_af46,
    0xb504_f333,
    0xb123_f581,
    0xad58_3ee9,
    0xa9a1_5ab4,
    0xa5fe_d6a9,
    0xa270_4302,
    0x9ef5_325f,
    0x9b8d_39b9,
    0x9837_f050,
    0x94f4_efa8,
    0x91c3_d373,
    0x8ea4_398a,
    0x8b95_c1e3,
    0x8898_0e80,
    0x85aa_c367,
    0x82cd_8698,
];

/// What a number of periods does to a value.
#[derive(Clone, Copy)]
struct Fade {
    shift: u32,
    factor: u32,
}

impl Fade {
    #[inline]
    fn of(periods: u64) -> Self {
        // After 2,016 periods the kernel leaves nothing; so do 63 halvings of what it tracks.
        if periods > 63 * 32 {
            return Self { shift: 63, factor: 0 };
        }
        Self { shift: (periods / 32) as u32, factor: DECAY[(periods % 32) as usize] }
    }

    #[inline]
    fn apply(self, value: u64) -> u64 {
        ((u128::from(value >> self.shift) * u128::from(self.factor)) >> 32) as u64
    }
}

/// `value` after `periods` periods.
#[inline]
pub fn decay(value: u64, periods: u64) -> u64 {
    Fade::of(periods).apply(value)
}

/// Sums and averages (`struct sched_avg`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Avg {
    /// Up to when the sums go.
    pub last_update_time: Nanos,
    /// Sum of time runnable; a queue's is weighted, an entity's is not.
    pub load_sum: u64,
    /// Sum of time runnable, times 1,024.
    pub runnable_sum: u64,
    /// Sum of time running, times 1,024.
    pub util_sum: u64,
    /// Units of the current period that are in the sums already, 0 to 1023.
    pub period_contrib: u32,
    /// Average load: weight times share of time runnable.
    pub load_avg: u64,
    /// Average runnable, 1024 for a task that is always runnable.
    pub runnable_avg: u64,
    /// Average utilisation, 1024 for a task that always runs.
    pub util_avg: u64,
    /// Whether an entity's averages are part of its queue's (the kernel: last_update_time != 0).
    pub attached: bool,
}

impl Avg {
    /// What the sums are divided by (get_pelt_divider).
    #[inline]
    pub fn divider(&self) -> u64 {
        MIN_DIVIDER + u64::from(self.period_contrib)
    }

    /// Whether the sums can be extended to `now` at all: a unit has passed since the last time.
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        now.saturating_sub(self.last_update_time) >> 10 != 0
    }

    /// Extends the sums to `now` for an entity that had `load` (its weight or 1), `runnable` and
    /// `running` all the while; returns whether a period ended, so that the averages are to be
    /// recomputed (___update_load_sum).
    #[inline]
    pub fn update_sum(&mut self, now: Nanos, load: u64, runnable: u64, running: bool) -> bool {
        self.is_due(now) && self.extend(now, load, runnable, running)
    }

    #[inline(never)]
    fn extend(&mut self, now: Nanos, load: u64, runnable: u64, running: bool) -> bool {
        let units = now.saturating_sub(self.last_update_time) >> 10;
        self.last_update_time += units << 10;
        let total = units + u64::from(self.period_contrib);
        let periods = total / 1024;
        let rest = total % 1024;
        let mut contrib = units;
        if periods > 0 {
            let fade = Fade::of(periods);
            self.load_sum = fade.apply(self.load_sum);
            self.runnable_sum = fade.apply(self.runnable_sum);
            self.util_sum = fade.apply(self.util_sum);
            // The end of one period, the full periods after it, and what there is of the current
            // one (__accumulate_pelt_segments).
            let first = 1024 - u64::from(self.period_contrib);
            contrib = fade.apply(first) + (LOAD_AVG_MAX - fade.apply(LOAD_AVG_MAX) - 1024) + rest;
        }
        self.period_contrib = rest as u32;
        if load != 0 {
            self.load_sum += load * contrib;
            self.runnable_sum += (runnable * contrib) << CAPACITY_SHIFT;
            self.util_sum += (u64::from(running) * contrib) << CAPACITY_SHIFT;
        }
        periods > 0
    }

    /// Recomputes the averages for an entity of `weight` (1 for a queue) (___update_load_avg).
    #[inline]
    pub fn update_avg(&mut self, weight: u64) {
        let divider = self.divider();
        let load_sum = weight * self.load_sum;
        if (load_sum | self.runnable_sum | self.util_sum) >> 32 == 0 {
            // Nearly always: a division of 32-bit numbers is the faster one.
            let divider = divider as u32;
            self.load_avg = u64::from(load_sum as u32 / divider);
            self.runnable_avg = u64::from(self.runnable_sum as u32 / divider);
            self.util_avg = u64::from(self.util_sum as u32 / divider);
        } else {
            self.load_avg = load_sum / divider;
            self.runnable_avg = self.runnable_sum / divider;
            self.util_avg = self.util_sum / divider;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Nanos = 1024 * 1024;

    fn run(avg: &mut Avg, now: Nanos, running: bool) {
        if avg.update_sum(now, u64::from(running), u64::from(running), running) {
            avg.update_avg(1024);
        }
    }

    #[test]
    fn section_7_3_decay() {
        assert_eq!(decay(47_742, 1), 46_718);
        assert_eq!(decay(1024, 32), 511);
        assert_eq!(decay(1000, 33), 489);
        assert_eq!(decay(u64::from(u32::MAX), 63 * 32 + 1), 0);
    }

    #[test]
    fn section_7_3_pelt_running_from_zero() {
        for (periods, util) in [
            (1, 21),
            (2, 43),
            (4, 85),
            (8, 162),
            (16, 299),
            (32, 512),
            (64, 768),
            (128, 960),
            (345, 1023),
        ] {
            let mut avg = Avg::default();
            run(&mut avg, periods * PERIOD, true);
            assert_eq!(avg.util_avg, util, "{periods} periods");
        }
    }

    #[test]
    fn section_7_3_pelt_blocked_from_steady_state() {
        for (periods, util) in [(1, 1001), (8, 860), (16, 723), (32, 511), (64, 255)] {
            let mut avg = Avg::default();
            run(&mut avg, 345 * PERIOD, true);
            run(&mut avg, (345 + periods) * PERIOD, false);
            assert_eq!(avg.util_avg, util, "{periods} periods");
        }
    }

    #[test]
    fn section_7_3_pelt_running_100_ms() {
        for step in [4_000_000, 1_000_000] {
            let mut avg = Avg::default();
            for n in 1..=100_000_000 / step {
                run(&mut avg, n * step, true);
            }
            assert_eq!((avg.util_avg, avg.period_contrib), (894, 376), "step {step}");
        }
    }
}
