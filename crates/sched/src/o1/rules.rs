// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences between the versions of the O(1) scheduler, as data; and the arithmetic of time
//! slices, bonus and interactivity.
//!
//! Source: Linux 2.6.0, 2.6.11 and 2.6.22, kernel/sched.c (`task_timeslice`, `CURRENT_BONUS`,
//! `DELTA`, `TASK_INTERACTIVE`, `INTERACTIVE_SLEEP`, `TIMESLICE_GRANULARITY`). Times are in ns, or
//! in ticks where the docstring names ticks, as in the kernel.

use schedlab_model::{Nanos, time::tick_nsec};

/// Number of priorities (MAX_PRIO): 0 to 99 real-time, 100 to 139 others; less is better.
pub const MAX_PRIO: usize = 140;
/// Number of real-time priorities (MAX_RT_PRIO).
pub const MAX_RT_PRIO: u8 = 100;
/// Range of the bonus (MAX_BONUS): half of it either way.
pub const MAX_BONUS: u64 = 10;
/// Share of the wait on the queue that counts as sleep for a task that a task woke, in 128ths.
pub const ON_RUNQUEUE_WEIGHT: u64 = 30 * 128 / 100;
/// Percentage of the parent's bonus that a child keeps (CHILD_PENALTY).
const CHILD_PENALTY: u64 = 95;
/// Weight of the parent's own sleep average against that of a child that exits (EXIT_WEIGHT).
pub const EXIT_WEIGHT: u64 = 3;
/// An interactive credit above this, or below its negative, has an effect (CREDIT_LIMIT).
pub const CREDIT_LIMIT: i32 = 100;

/// The length of a time slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceRule {
    /// 10 to 200 ms, linear in the priority.
    Linear,
    /// 100 ms at nice 0 down to 5 ms at 19, and 420 to 800 ms for negative nice values.
    Split,
}

/// How sleep increases `sleep_avg`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SleepRule {
    /// The sleep is multiplied by the distance of the bonus from its maximum, and limited by
    /// interactive credits.
    Credits,
    /// The sleep is multiplied, without credits.
    Multiplied,
    /// The sleep counts unchanged, up to a ceiling.
    Plain,
}

/// How a version spreads work over CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BalanceRule {
    /// By number of tasks, every 200 ms and at each idle tick.
    Counts,
    /// Along scheduling domains, by number of tasks.
    Domains,
    /// Along scheduling domains, by weight of tasks.
    Weights,
}

/// The rules of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Name of the scheduler.
    pub name: &'static str,
    /// Length of a slice.
    pub slice: SliceRule,
    /// Growth of the sleep average.
    pub sleep: SleepRule,
    /// How work is spread over CPUs.
    pub balance: BalanceRule,
    /// Whether DELTA rounds towards the better side for every nice value, instead of towards 0.
    pub delta_floors: bool,
    /// Whether a better expired task sends interactive ones to the expired array
    /// (`best_expired_prio`).
    pub minds_expired_prio: bool,
    /// Whether the priority of a task is recomputed when it moves to the tail of its list between
    /// two slices.
    pub rotation_recomputes: bool,
    /// Whether a picked task is queued again only if its priority changed.
    pub requeues_if_changed: bool,
    /// Whether a real-time task that was woken is queued again, last in its list, as it is picked.
    /// 2.6.11 added the test that spares it (schedule()).
    pub requeues_woken_rt: bool,
    /// Whether the sleep of a real-time task counts. It shows when the task gives up its policy.
    pub rt_sleep_counts: bool,
    /// Whether a new thread is queued last, with its own priority, and a process before its parent.
    pub threads_run_last: bool,
    /// Whether the slice of a parent, after a child gave its rest back, is limited to a full slice
    /// of the child instead of the longest slice.
    pub exit_caps_by_child: bool,
    /// Whether the rest is given back only on the same CPU.
    pub exit_same_cpu: bool,
    /// Whether setpriority() keeps the bonus.
    pub nice_keeps_bonus: bool,
    /// Whether the version has SCHED_BATCH.
    pub knows_batch: bool,
}

impl Rules {
    /// Linux 2.6.0.
    pub const LINUX_2_6_0: Self = Self {
        name: "linux-2.6.0",
        slice: SliceRule::Linear,
        sleep: SleepRule::Credits,
        balance: BalanceRule::Counts,
        delta_floors: false,
        minds_expired_prio: false,
        rotation_recomputes: true,
        requeues_if_changed: false,
        requeues_woken_rt: true,
        rt_sleep_counts: true,
        threads_run_last: false,
        exit_caps_by_child: false,
        exit_same_cpu: false,
        nice_keeps_bonus: false,
        knows_batch: false,
    };

    /// Linux 2.6.11.
    pub const LINUX_2_6_11: Self = Self {
        name: "linux-2.6.11",
        slice: SliceRule::Split,
        sleep: SleepRule::Multiplied,
        balance: BalanceRule::Domains,
        minds_expired_prio: true,
        rotation_recomputes: false,
        requeues_woken_rt: false,
        threads_run_last: true,
        exit_caps_by_child: true,
        ..Self::LINUX_2_6_0
    };

    /// Linux 2.6.22.
    pub const LINUX_2_6_22: Self = Self {
        name: "linux-2.6.22",
        sleep: SleepRule::Plain,
        balance: BalanceRule::Weights,
        delta_floors: true,
        requeues_if_changed: true,
        rt_sleep_counts: false,
        exit_same_cpu: true,
        nice_keeps_bonus: true,
        knows_batch: true,
        ..Self::LINUX_2_6_11
    };

    /// Ticks of a slice at `static_prio`, 100 to 139 (`task_timeslice`).
    pub fn timeslice(&self, hz: u32, static_prio: u8) -> u32 {
        let prio = u32::from(static_prio);
        let (min, max) = self.slice_range(hz);
        match self.slice {
            SliceRule::Linear => min + (max - min) * (MAX_PRIO as u32 - 1 - prio) / 39,
            SliceRule::Split => {
                let base = 100 * hz / 1000 * if prio < 120 { 4 } else { 1 };
                (base * (MAX_PRIO as u32 - prio) / 20).max(min)
            }
        }
    }

    /// Shortest and longest slice in ticks; the longest is that of nice -20.
    fn slice_range(&self, hz: u32) -> (u32, u32) {
        match self.slice {
            SliceRule::Linear => ((10 * hz / 1000).max(1), (200 * hz / 1000).max(1)),
            SliceRule::Split => ((5 * hz / 1000).max(1), (800 * hz / 1000).max(1)),
        }
    }

    /// The bonus, -3 to 6, that a task of this nice value needs to be interactive (DELTA).
    pub fn delta(&self, nice: i8) -> i32 {
        let nice = i32::from(nice);
        if self.delta_floors { (nice + 20) * 10 / 40 - 5 + 2 } else { nice * 10 / 40 + 2 }
    }
}

/// The constants of a version at a tick rate.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Rules of the version.
    pub rules: Rules,
    /// Length of a tick.
    pub tick: Nanos,
    /// Greatest sleep average, in ticks (MAX_SLEEP_AVG).
    pub max_sleep_ticks: u64,
    /// Greatest sleep average, in ns.
    pub max_sleep: Nanos,
    /// Slice at nice 0, in ticks (AVG_TIMESLICE, DEF_TIMESLICE).
    pub def_timeslice: u32,
    /// Longest slice in ticks (MAX_TIMESLICE).
    pub max_timeslice: u32,
    /// Ticks of the shortest turn of an interactive task.
    granularity: u64,
    nr_cpus: u64,
    timeslices: [u32; 40],
    deltas: [i32; 40],
}

impl Scale {
    /// The constants for `rules` on a machine.
    pub fn new(rules: Rules, hz: u32, nr_cpus: u32) -> Self {
        let tick = tick_nsec(hz);
        let timeslices = std::array::from_fn(|index| rules.timeslice(hz, 100 + index as u8));
        let def_timeslice = timeslices[20];
        let max_sleep_ticks = u64::from(def_timeslice) * MAX_BONUS;
        Self {
            rules,
            tick,
            max_sleep_ticks,
            max_sleep: max_sleep_ticks * tick,
            def_timeslice,
            max_timeslice: rules.slice_range(hz).1,
            granularity: u64::from((10 * hz / 1000).max(1)),
            nr_cpus: u64::from(nr_cpus),
            timeslices,
            deltas: std::array::from_fn(|index| rules.delta(index as i8 - 20)),
        }
    }

    /// Ticks of a slice.
    #[inline]
    pub fn timeslice(&self, static_prio: u8) -> u32 {
        self.timeslices[usize::from(static_prio - MAX_RT_PRIO)]
    }

    /// The bonus of a sleep average, 0 to 10 (CURRENT_BONUS).
    #[inline]
    pub fn current_bonus(&self, sleep_avg: Nanos) -> u64 {
        sleep_avg / self.tick * MAX_BONUS / self.max_sleep_ticks
    }

    /// Priority of a task that is not real-time (`effective_prio`).
    #[inline]
    pub fn effective_prio(&self, static_prio: u8, sleep_avg: Nanos) -> u8 {
        let bonus = self.current_bonus(sleep_avg) as i32 - 5;
        (i32::from(static_prio) - bonus).clamp(100, 139) as u8
    }

    /// The bonus needed to be interactive.
    #[inline]
    pub fn delta(&self, static_prio: u8) -> i32 {
        self.deltas[usize::from(static_prio - MAX_RT_PRIO)]
    }

    /// Whether a task stays in the active array when its slice is over (TASK_INTERACTIVE).
    #[inline]
    pub fn is_interactive(&self, static_prio: u8, prio: u8) -> bool {
        i32::from(prio) <= i32::from(static_prio) - self.delta(static_prio)
    }

    /// A task that sleeps longer than this (ns) becomes at most just interactive
    /// (INTERACTIVE_SLEEP).
    pub fn interactive_sleep(&self, static_prio: u8) -> Nanos {
        let steps = (5 + self.delta(static_prio) + 1) as u64;
        (self.max_sleep_ticks * steps / MAX_BONUS - 1) * self.tick
    }

    /// Ticks after which an interactive task moves to the tail of its list (TIMESLICE_GRANULARITY).
    pub fn granularity(&self, sleep_avg: Nanos) -> u64 {
        let bonus = self.current_bonus(sleep_avg);
        let shift = MAX_BONUS.saturating_sub(bonus).max(1) - 1;
        (self.granularity << shift) * self.nr_cpus
    }

    /// Ticks that queued tasks may be kept waiting in the expired array, for each runnable task
    /// (STARVATION_LIMIT).
    pub const fn starvation_limit(&self) -> u64 {
        self.max_sleep_ticks
    }

    /// The parent's sleep average after a fork.
    pub fn parent_sleep_avg(&self, sleep_avg: Nanos) -> Nanos {
        self.current_bonus(sleep_avg) * self.max_sleep_ticks / MAX_BONUS * self.tick
    }

    /// The child's sleep average after a fork by a parent with `sleep_avg`.
    pub fn child_sleep_avg(&self, sleep_avg: Nanos) -> Nanos {
        let bonus = self.current_bonus(sleep_avg) * CHILD_PENALTY / 100;
        bonus * self.max_sleep_ticks / MAX_BONUS * self.tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::time::NSEC_PER_MSEC as MS;

    const ALL: [Rules; 3] = [Rules::LINUX_2_6_0, Rules::LINUX_2_6_11, Rules::LINUX_2_6_22];

    fn scale(rules: Rules) -> Scale {
        Scale::new(rules, 1000, 1)
    }

    fn slices<const N: usize>(rules: Rules, hz: u32, nices: [i8; N]) -> [u32; N] {
        nices.map(|nice| rules.timeslice(hz, (120 + i32::from(nice)) as u8))
    }

    #[test]
    fn section_3_2_time_slices() {
        let first = slices(Rules::LINUX_2_6_0, 1000, [-20, -10, -1, 0, 1, 10, 19]);
        assert_eq!(first, [200, 151, 107, 102, 97, 53, 10]);
        let nices = [-20, -19, -10, -5, -1, 0, 1, 5, 10, 15, 19];
        for rules in [Rules::LINUX_2_6_11, Rules::LINUX_2_6_22] {
            let expected = [800, 780, 600, 500, 420, 100, 95, 75, 50, 25, 5];
            assert_eq!(slices(rules, 1000, nices), expected);
            assert_eq!(slices(rules, 250, [-20, 0, 10, 19]), [200, 25, 12, 1]);
            assert_eq!(slices(rules, 100, [-20, 0, 10, 19]), [80, 10, 5, 1]);
        }
    }

    #[test]
    fn section_3_3_sleep_average_to_priority() {
        assert_eq!(ALL.map(|rules| scale(rules).max_sleep / MS), [1020, 1000, 1000]);
        let later = scale(Rules::LINUX_2_6_22);
        let prios = [0, 500, 1000].map(|ms| later.effective_prio(120, ms * MS));
        assert_eq!(prios, [125, 120, 115]);
        assert_eq!((later.effective_prio(100, 0), later.effective_prio(139, 0)), (105, 139));
        assert_eq!(later.effective_prio(102, 1000 * MS), 100);
    }

    #[test]
    fn section_3_4_delta() {
        let nices = [-20, -15, -10, -5, -1, 0, 5, 10, 15, 19];
        for rules in [Rules::LINUX_2_6_0, Rules::LINUX_2_6_11] {
            assert_eq!(nices.map(|nice| rules.delta(nice)), [-3, -1, 0, 1, 2, 2, 3, 4, 5, 6]);
        }
        let last = Rules::LINUX_2_6_22;
        assert_eq!(nices.map(|nice| last.delta(nice)), [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6]);
        // They differ exactly if a quarter of a negative nice value is not a whole number.
        for nice in -20..=19 {
            let differs = last.delta(nice) != Rules::LINUX_2_6_11.delta(nice);
            assert_eq!(differs, nice < 0 && nice % 4 != 0, "nice {nice}");
        }
    }

    #[test]
    fn section_3_4_least_bonus_to_be_interactive() {
        let scale = scale(Rules::LINUX_2_6_22);
        let least = |nice: i8| {
            let static_prio = (120 + i32::from(nice)) as u8;
            let prio = |bonus: u64| scale.effective_prio(static_prio, bonus * 100 * MS);
            (0..=MAX_BONUS).find(|bonus| scale.is_interactive(static_prio, prio(*bonus)))
        };
        let nices = [-20, -15, -10, -5, -1, 0, 5, 10, 15];
        assert_eq!(nices.map(|nice| least(nice).unwrap()), [2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(least(19), None);
    }

    #[test]
    fn section_3_4_interactive_sleep() {
        let sleeps = |rules: Rules| {
            [-20i8, 0, 10, 19]
                .map(|nice| scale(rules).interactive_sleep((120 + i32::from(nice)) as u8) / MS)
        };
        assert_eq!(sleeps(Rules::LINUX_2_6_0), [305, 815, 1019, 1223]);
        assert_eq!(sleeps(Rules::LINUX_2_6_11), [299, 799, 999, 1199]);
        assert_eq!(sleeps(Rules::LINUX_2_6_22), [299, 799, 999, 1199]);
    }

    #[test]
    fn section_3_8_granularity() {
        let one = scale(Rules::LINUX_2_6_22);
        let at = |bonus: u64| one.granularity(bonus * 100 * MS);
        assert_eq!([10, 9, 8, 7, 6, 5, 0].map(at), [10, 10, 20, 40, 80, 160, 5120]);
        assert_eq!(Scale::new(Rules::LINUX_2_6_22, 1000, 4).granularity(1000 * MS), 40);
    }

    #[test]
    fn section_3_10_sleep_averages_after_a_fork() {
        for rules in [Rules::LINUX_2_6_11, Rules::LINUX_2_6_22] {
            let scale = scale(rules);
            let children = [10, 9, 5, 2, 1].map(|b| scale.child_sleep_avg(b * 100 * MS) / MS);
            assert_eq!(children, [900, 800, 400, 100, 0]);
            assert_eq!(scale.parent_sleep_avg(567 * MS), 500 * MS);
        }
    }
}
