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

/// The decay of a value over a number of periods.
#[derive(Clone, Copy, Debug)]
struct Fade {
    shift: u32,
    factor: u32,
}

impl Fade {
    #[inline]
    fn of(periods: u64) -> Self {
        // After 2,016 periods the kernel returns 0; so do 63 halvings of the values here.
        if periods > 63 * 32 {
            return Self { shift: 63, factor: 0 };
        }
        Self { shift: (periods / 32) as u32, factor: DECAY[(periods % 32) as usize] }
    }

    #[inline]
    fn apply(self, value: u64) -> u64 {
        ((u128::from(value >> self.shift) * u128::from(self.factor)) >> 32) as u64
    }

    /// Decays a value of 32 bits, which needs only a short multiplication.
    #[inline]
    fn apply_short(self, value: u32) -> u64 {
        ((u64::from(value) >> self.shift) * u64::from(self.factor)) >> 32
    }
}

/// The effect of a span of time on sums.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// `last_update_time` and `period_contrib` at its start.
    from: (Nanos, u32),
    /// `last_update_time` and `period_contrib` at its end.
    to: (Nanos, u32),
    /// Decay of the earlier sums; `None`: no period ended.
    fade: Option<Fade>,
    /// Contribution for each unit of load.
    contrib: u64,
}

/// `value` after `periods` periods.
#[inline]
pub fn decay(value: u64, periods: u64) -> u64 {
    Fade::of(periods).apply(value)
}

/// Sums and averages (`struct sched_avg`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Avg {
    /// Time of the last update of the sums.
    pub last_update_time: Nanos,
    /// Sum of time runnable; a queue's is weighted, an entity's is not.
    pub load_sum: u64,
    /// Sum of time runnable, times 1,024.
    pub runnable_sum: u64,
    /// Sum of time running, times 1,024.
    pub util_sum: u64,
    /// Units of the current period that the sums already contain, 0 to 1023.
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
    /// The divisor of the sums (get_pelt_divider).
    #[inline]
    pub fn divider(&self) -> u64 {
        MIN_DIVIDER + u64::from(self.period_contrib)
    }

    /// Whether the sums can be extended to `now`: a unit has passed since the last update.
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        // Signed: it may have been updated to a time in the future.
        now.wrapping_sub(self.last_update_time) as i64 >= 1024
    }

    /// The effect on the sums of the time from the last update to `now`, which is due.
    #[inline(always)]
    fn step_to(&self, now: Nanos) -> Step {
        let units = (now - self.last_update_time) >> 10;
        let total = units + u64::from(self.period_contrib);
        let (periods, rest) = (total / 1024, total % 1024);
        let from = (self.last_update_time, self.period_contrib);
        let to = (self.last_update_time + (units << 10), rest as u32);
        if periods == 0 {
            return Step { from, to, fade: None, contrib: units };
        }
        // The end of one period, the full periods after it, and the part of the current one
        // (__accumulate_pelt_segments).
        let fade = Fade::of(periods);
        let first = 1024 - self.period_contrib;
        let full = LOAD_AVG_MAX - fade.apply_short(LOAD_AVG_MAX as u32) - 1024;
        Step { from, to, fade: Some(fade), contrib: fade.apply_short(first) + full + rest }
    }

    /// Whether `step` begins where the sums end.
    #[inline]
    fn continues_with(&self, step: &Step) -> bool {
        step.from == (self.last_update_time, self.period_contrib)
    }

    /// Extends the sums by `step` for an entity with constant `load` (its weight or 1), `runnable`
    /// and `running`. Returns whether a period ended (___update_load_sum).
    #[inline(always)]
    fn take(&mut self, step: &Step, load: u64, runnable: u64, running: bool) -> bool {
        if let Some(fade) = step.fade {
            let (load, runnable, util) = (self.load_sum, self.runnable_sum, self.util_sum);
            if (load | runnable | util) >> 32 == 0 {
                // Nearly always the value fits, and such multiplications are faster.
                self.load_sum = fade.apply_short(load as u32);
                self.runnable_sum = fade.apply_short(runnable as u32);
                self.util_sum = fade.apply_short(util as u32);
            } else {
                self.load_sum = fade.apply(load);
                self.runnable_sum = fade.apply(runnable);
                self.util_sum = fade.apply(util);
            }
        }
        (self.last_update_time, self.period_contrib) = step.to;
        if load != 0 {
            self.load_sum += load * step.contrib;
            self.runnable_sum += (runnable * step.contrib) << CAPACITY_SHIFT;
            self.util_sum += (u64::from(running) * step.contrib) << CAPACITY_SHIFT;
        }
        step.fade.is_some()
    }

    /// Updates sums and averages of a queue, whose `load` is weighted, to `now`. Returns whether a
    /// period ended, so that the averages changed. `step`: an already known step to `now`.
    #[inline(always)]
    pub fn update(
        &mut self,
        now: Nanos,
        step: Option<&Step>,
        load: u64,
        runnable: u64,
        running: bool,
    ) -> bool {
        if !self.is_due(now) {
            return false;
        }
        let ended = match step {
            Some(step) if self.continues_with(step) => self.take(step, load, runnable, running),
            _ => self.take(&self.step_to(now), load, runnable, running),
        };
        if ended {
            self.update_avg(1);
        }
        ended
    }

    /// Recomputes the averages for an entity of `weight` (1 for a queue) (___update_load_avg).
    #[inline]
    fn update_avg(&mut self, weight: u64) {
        let divider = self.divider();
        let load_sum = weight * self.load_sum;
        if (load_sum | self.runnable_sum | self.util_sum) >> 32 == 0 {
            // Nearly always the value fits, and a 32-bit division is faster.
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

/// Sums and averages of an entity. The kernel recomputes the averages at the end of every period,
/// and nearly never reads them. Here this is postponed until they are read or the sums change
/// otherwise, which gives the same numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EntityAvg {
    avg: Avg,
    /// The weight for recomputing the averages from the sums; 0: the averages are up to date.
    owed: u64,
    /// Whether a period has ended while it was on a CPU, since the estimate of its utilisation was
    /// updated (the kernel: not UTIL_AVG_UNCHANGED).
    has_changed: bool,
}

impl EntityAvg {
    /// Whether it is part of its queue's; see [`Avg::attached`].
    #[inline]
    pub fn is_attached(&self) -> bool {
        self.avg.attached
    }

    /// See [`Avg::is_due`].
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        self.avg.is_due(now)
    }

    /// Updates the sums to `now` for an entity of `weight` that meanwhile was queued (or not),
    /// counted `runnable` tasks and was `running` (or not). Returns the step of time.
    #[inline(always)]
    pub fn update(
        &mut self,
        now: Nanos,
        weight: u64,
        queued: bool,
        runnable: u64,
        running: bool,
    ) -> Option<Step> {
        if !self.avg.is_due(now) {
            return None;
        }
        let step = self.avg.step_to(now);
        if step.fade.is_none() && self.owed != 0 {
            self.settle();
        }
        self.avg.take(&step, u64::from(queued), runnable, running);
        if step.fade.is_some() {
            self.owed = weight;
            self.has_changed = true;
        }
        Some(step)
    }

    /// Updates the sums to `now` for a sleeper of `weight` (__update_load_avg_blocked_se).
    pub fn update_blocked(&mut self, now: Nanos, weight: u64) {
        let had_changed = self.has_changed;
        self.update(now, weight, false, 0, false);
        self.has_changed = had_changed;
    }

    /// Whether a period has ended since [`Self::forget_change`].
    #[inline]
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// From now on [`Self::has_changed`] tells of later periods.
    pub fn forget_change(&mut self) {
        self.has_changed = false;
    }

    #[inline(never)]
    fn settle(&mut self) {
        self.avg.update_avg(self.owed);
        self.owed = 0;
    }

    /// Sums and averages, read-only.
    #[inline]
    pub fn get(&self) -> Avg {
        let mut copy = *self;
        *copy.settled()
    }

    /// Sums and averages, mutable.
    #[inline]
    pub fn settled(&mut self) -> &mut Avg {
        if self.owed != 0 {
            self.settle();
        }
        &mut self.avg
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::random::{Purpose, Stream};

    const PERIOD: Nanos = 1024 * 1024;

    fn run(avg: &mut Avg, now: Nanos, running: bool) {
        avg.update(now, None, u64::from(running) * 1024, u64::from(running), running);
    }

    /// Postponed averages equal those computed at once, and a passed step equals the one that would
    /// be computed.
    #[test]
    fn putting_off_averages_changes_none() {
        let mut random = Stream::new(5, Purpose::Scheduler, 0);
        let (mut entity, mut eager) = (EntityAvg::default(), Avg::default());
        let (mut follower, mut queue) = (Avg::default(), Avg::default());
        let mut now = 0;
        for _ in 0..20_000 {
            let far = random.below(4) == 0;
            now += random.below(if far { 80_000_000 } else { 1_500_000 });
            let weight = [15, 1024, 88_761][random.below(3) as usize];
            let queued = random.below(2) == 0;
            let running = queued && random.below(2) == 0;
            let runnable = u64::from(queued) * random.below(3);
            let step = entity.update(now, weight, queued, runnable, running);
            if eager.is_due(now) {
                let step = eager.step_to(now);
                eager.take(&step, u64::from(queued), runnable, running);
                if step.fade.is_some() {
                    eager.update_avg(weight);
                }
            }
            follower.update(now, step.as_ref(), weight, runnable, running);
            queue.update(now, None, weight, runnable, running);
            assert_eq!(follower, queue);
            if random.below(3) == 0 {
                assert_eq!(entity.get(), eager);
            }
            if random.below(9) == 0 {
                entity.settled().util_sum /= 2;
                eager.util_sum /= 2;
            }
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
