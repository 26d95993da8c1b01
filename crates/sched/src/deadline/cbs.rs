// SPDX-License-Identifier: MIT OR Apache-2.0
//! The constant bandwidth server of one task: budget, deadline, and when they are renewed.
//!
//! Source: Linux kernel/sched/deadline.c, 6.12.63 (replenish_dl_entity, update_dl_entity,
//! dl_entity_overflow, update_dl_revised_wakeup, dl_next_period, start_dl_timer). Times are
//! unsigned and far from wrapping, so a plain comparison is the kernel's `dl_time_before`.

use schedlab_model::{DeadlineParams, Nanos};

/// Bits of a bandwidth's fraction (BW_SHIFT).
const BW_SHIFT: u32 = 20;

/// Bits dropped from times before two of them are multiplied (DL_SCALE).
const DL_SCALE: u32 = 10;

/// Share of a CPU: floor(2^20 * runtime / period), so 2^20 is a whole CPU (`to_ratio`).
pub fn to_ratio(period: Nanos, runtime: Nanos) -> u64 {
    if period == 0 {
        return 0;
    }
    ((u128::from(runtime) << BW_SHIFT) / u128::from(period)) as u64
}

/// State of a task (`struct sched_dl_entity`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entity {
    /// Budget in each period (`dl_runtime`).
    pub dl_runtime: Nanos,
    /// Relative deadline (`dl_deadline`).
    pub dl_deadline: Nanos,
    /// Period (`dl_period`).
    pub dl_period: Nanos,
    /// Budget left; negative after an overrun.
    pub runtime: i64,
    /// Absolute deadline.
    pub deadline: Nanos,
    /// Whether it is out of budget until the timer renews it.
    pub throttled: bool,
    /// Whether it gave up the rest of its budget (sched_yield).
    pub yielded: bool,
    /// Whether it reclaims unused bandwidth (SCHED_FLAG_RECLAIM).
    pub reclaim: bool,
    /// Lent parameters, if any (`pi_se`).
    pub lent: Option<Params>,
}

/// Budget, relative deadline and period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Params {
    /// Budget in each period.
    pub runtime: Nanos,
    /// Relative deadline.
    pub deadline: Nanos,
    /// Period.
    pub period: Nanos,
}

impl Entity {
    /// Takes over the parameters of sched_setattr(2); a period of 0 means the deadline.
    pub fn set_params(&mut self, params: &DeadlineParams) {
        self.dl_runtime = params.runtime_ns;
        self.dl_deadline = params.deadline_ns;
        self.dl_period = if params.period_ns == 0 { params.deadline_ns } else { params.period_ns };
        self.reclaim = params.reclaim;
    }

    /// The parameters that apply: lent ones, or else its own (`pi_of`).
    pub fn params(&self) -> Params {
        let (runtime, deadline, period) = (self.dl_runtime, self.dl_deadline, self.dl_period);
        self.lent.unwrap_or(Params { runtime, deadline, period })
    }

    /// Runtime over period (`dl_bw`).
    pub fn bandwidth(&self) -> u64 {
        to_ratio(self.dl_period, self.dl_runtime)
    }

    /// Runtime over relative deadline (`dl_density`).
    fn density(&self) -> u64 {
        to_ratio(self.dl_deadline, self.dl_runtime)
    }

    /// Whether deadline and period are the same (`dl_is_implicit`).
    pub fn is_implicit(&self) -> bool {
        self.dl_deadline == self.dl_period
    }

    /// Whether it has never had a deadline.
    pub fn is_new(&self) -> bool {
        self.deadline == 0
    }

    /// Start of the period after the current one.
    pub fn next_period(&self) -> Nanos {
        self.deadline - self.dl_deadline + self.dl_period
    }

    /// Whether the budget is used up.
    pub fn is_exceeded(&self) -> bool {
        self.runtime <= 0
    }

    /// The time at which the timer renews the budget, unless that is a microsecond or more ago.
    pub fn timer_at(&self, now: Nanos) -> Option<Nanos> {
        let at = self.next_period();
        (now < at + 1_000).then_some(at)
    }

    /// Starts a period now, with the full budget.
    pub fn start_period(&mut self, now: Nanos) {
        let Params { runtime, deadline, .. } = self.params();
        self.deadline = now + deadline;
        self.runtime = runtime as i64;
    }

    /// Whether using the rest of the budget until the deadline would exceed the task's density.
    pub fn overflows(&self, now: Nanos) -> bool {
        let params = self.params();
        let left = i128::from(params.deadline >> DL_SCALE) * i128::from(self.runtime >> DL_SCALE);
        let laxity = i128::from((self.deadline - now) >> DL_SCALE);
        laxity * i128::from(params.runtime >> DL_SCALE) < left
    }

    /// Handles a wake-up: the task keeps budget and deadline if allowed; otherwise both are renewed
    /// (`update_dl_entity`).
    pub fn wake(&mut self, now: Nanos) {
        let is_current = !self.is_new() && self.deadline >= now;
        if is_current && !self.overflows(now) {
            return;
        }
        if is_current && !self.is_implicit() && self.lent.is_none() {
            self.revise(now);
        } else {
            self.start_period(now);
        }
    }

    /// Reduces the budget to what the density allows until the deadline (update_dl_revised_wakeup).
    pub fn revise(&mut self, now: Nanos) {
        let laxity = u128::from(self.deadline - now);
        self.runtime = ((u128::from(self.density()) * laxity) >> BW_SHIFT) as i64;
    }

    /// Whether it wakes after its deadline but before its next period, and so must wait for that
    /// period.
    pub fn wakes_between(&self, now: Nanos) -> bool {
        !self.is_new() && !self.is_implicit() && self.deadline < now && now < self.next_period()
    }

    /// Renews the budget at the timer (`replenish_dl_entity`): adds periods until the overrun is
    /// paid.
    pub fn replenish(&mut self, now: Nanos) {
        let params = self.params();
        if self.dl_runtime == 0 {
            // A task of another policy has only the lent parameters.
            self.start_period(now);
        }
        if self.yielded && self.runtime > 0 {
            self.runtime = 0;
        }
        if self.runtime <= 0 {
            let periods = self.runtime.unsigned_abs() / params.runtime + 1;
            self.deadline += periods * params.period;
            self.runtime += (periods * params.runtime) as i64;
        }
        if self.deadline < now {
            self.start_period(now);
        }
        self.yielded = false;
        self.throttled = false;
    }

    /// When the bandwidth of a task that stops using it becomes free (0-lag time): until then the
    /// task could have used its share without a break.
    pub fn zero_lag(&self) -> Nanos {
        let used = i128::from(self.runtime) * i128::from(self.dl_period);
        let ahead = used / i128::from(self.dl_runtime.max(1));
        (i128::from(self.deadline) - ahead).max(0) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn entity(runtime: Nanos, deadline: Nanos, period: Nanos) -> Entity {
        let mut entity = Entity::default();
        entity.set_params(&DeadlineParams {
            runtime_ns: runtime,
            deadline_ns: deadline,
            period_ns: period,
            reclaim: false,
        });
        entity
    }

    #[test]
    fn section_4_1_ratios() {
        assert_eq!(to_ratio(100 * MS, 10 * MS), 104_857);
        assert_eq!(to_ratio(1_000 * MS, 50 * MS), 52_428);
        assert_eq!(to_ratio(0, 50 * MS), 0);
        assert_eq!(entity(10 * MS, 100 * MS, 0).bandwidth(), 104_857);
    }

    #[test]
    fn section_4_3_wake_ups_keep_or_renew() {
        let mut task = entity(10 * MS, 100 * MS, 100 * MS);
        task.wake(1);
        assert_eq!((task.deadline, task.runtime), (100 * MS + 1, 10 * MS as i64), "a new one");
        for (at, left, deadline, runtime) in
            [(30, 6, 100, 6), (40, 6, 140, 10), (95, 1, 195, 10), (101, 6, 201, 10)]
        {
            task.deadline = 100 * MS;
            task.runtime = left * MS as i64;
            task.wake(at * MS);
            assert_eq!((task.deadline, task.runtime), (deadline * MS, runtime * MS as i64), "{at}");
        }
    }

    #[test]
    fn section_4_3_a_constrained_task_gets_what_its_density_allows() {
        let mut task = entity(4 * MS, 20 * MS, 100 * MS);
        (task.deadline, task.runtime) = (20 * MS, 4 * MS as i64);
        assert_eq!(task.density(), 209_715);
        task.wake(10 * MS);
        assert_eq!((task.deadline, task.runtime), (20 * MS, 1_999_998));
        assert!(!task.wakes_between(20 * MS) && task.wakes_between(20 * MS + 1));
        assert!(task.wakes_between(100 * MS - 1) && !task.wakes_between(100 * MS));
        assert!(!entity(4 * MS, 20 * MS, 20 * MS).wakes_between(50 * MS));
    }

    #[test]
    fn section_4_4_an_overrun_is_paid_with_periods() {
        let mut task = entity(10 * MS, 100 * MS, 100 * MS);
        (task.deadline, task.runtime, task.throttled) = (100 * MS, -2 * MS as i64, true);
        task.replenish(100 * MS);
        let state = |task: &Entity| (task.deadline, task.runtime, task.throttled, task.yielded);
        assert_eq!(state(&task), (200 * MS, 8 * MS as i64, false, false));
        task.runtime = -25 * MS as i64;
        task.replenish(200 * MS);
        assert_eq!(state(&task), (500 * MS, 5 * MS as i64, false, false));
        // A yield gives up the rest of the budget.
        task.yielded = true;
        task.replenish(500 * MS);
        assert_eq!(state(&task), (600 * MS, 10 * MS as i64, false, false));
        // Too late: a new period starts.
        task.runtime = 0;
        task.replenish(900 * MS);
        assert_eq!(state(&task), (1_000 * MS, 10 * MS as i64, false, false));
        task.runtime = 0;
        task.replenish(5_000 * MS);
        assert_eq!(state(&task), (5_100 * MS, 10 * MS as i64, false, false));
    }

    #[test]
    fn bandwidth_is_free_again_at_the_zero_lag_time() {
        let mut task = entity(10 * MS, 100 * MS, 100 * MS);
        (task.deadline, task.runtime) = (300 * MS, 6 * MS as i64);
        assert_eq!(task.zero_lag(), 240 * MS);
        task.runtime = -2 * MS as i64;
        assert_eq!(task.zero_lag(), 320 * MS);
    }

    #[test]
    fn the_timer_is_not_armed_in_the_past() {
        let mut task = entity(10 * MS, 20 * MS, 100 * MS);
        task.deadline = 20 * MS;
        assert_eq!(task.timer_at(50 * MS), Some(100 * MS));
        assert_eq!(task.timer_at(100 * MS + 999), Some(100 * MS));
        assert_eq!(task.timer_at(100 * MS + 1_000), None);
    }
}
