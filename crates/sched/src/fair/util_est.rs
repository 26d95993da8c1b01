// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimated utilisation of tasks (UTIL_EST): what a task used when it last slept. A task that
//! wakes after a long sleep counts with it at once, while its average starts from little.
//!
//! Source: Linux kernel/sched/fair.c (util_est_enqueue, util_est_dequeue, util_est_update,
//! _task_util_est, cpu_util), 6.1 and 6.12.

use super::FairClass;
use super::pelt::CAPACITY_SCALE;
use super::rules::Algorithm;
use schedlab_model::CpuId;

/// Differences below this are no difference (UTIL_EST_MARGIN).
const MARGIN: u64 = CAPACITY_SCALE / 100;
/// A new value counts for a quarter (UTIL_EST_WEIGHT_SHIFT).
const WEIGHT_SHIFT: u32 = 2;

/// The estimate of a task (`util_est`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UtilEst {
    /// Average of the utilisations at the ends of its bursts, which follows a rise at once.
    ewma: u64,
    /// Utilisation at the end of its last burst. Always 0 from 6.8 on.
    last: u64,
}

impl UtilEst {
    /// The task's part of its CPU's estimate (`_task_util_est`).
    pub fn get(self) -> u64 {
        self.ewma.max(self.last)
    }

    /// The task sleeps with this utilisation and runnable average (`util_est_update` from 6.8 on).
    fn update(&mut self, util: u64, runnable: u64) {
        if self.ewma <= util {
            self.ewma = util;
            return;
        }
        let fall = self.ewma - util;
        // A task that others kept from running would be taken for a smaller one.
        if fall >= MARGIN && util + MARGIN >= runnable {
            self.ewma = ((self.ewma << WEIGHT_SHIFT) - fall) >> WEIGHT_SHIFT;
        }
    }

    /// The rule up to 6.7.
    fn update_early(&mut self, util: u64) {
        let before = std::mem::replace(&mut self.last, util);
        if self.ewma < util {
            self.ewma = util;
            return;
        }
        let fall = self.ewma - util;
        if fall >= MARGIN {
            self.ewma = ((self.ewma << WEIGHT_SHIFT) - fall) >> WEIGHT_SHIFT;
        } else if before.abs_diff(util) < MARGIN {
            self.last = before;
        }
    }
}

impl FairClass {
    /// Task entity `e` joins the queues of `cpu`.
    #[inline]
    pub(super) fn util_est_enqueue(&mut self, cpu: CpuId, e: u32) {
        if self.nr_cpus > 1 {
            self.cpus[cpu.index()].util_est += self.ent(e).util_est.get();
            self.touch(cpu.0);
        }
    }

    /// Task entity `e` is about to leave the queues of `cpu`; `sleep`: its burst is over.
    #[inline]
    pub(super) fn util_est_dequeue(&mut self, cpu: CpuId, e: u32, sleep: bool) {
        if self.nr_cpus == 1 {
            return;
        }
        let own = self.ent(e).util_est.get();
        let total = &mut self.cpus[cpu.index()].util_est;
        *total = total.saturating_sub(own);
        self.touch(cpu.0);
        if sleep && self.ent(e).avg.has_changed() {
            self.update_util_est(e);
        }
    }

    #[inline(never)]
    fn update_util_est(&mut self, e: u32) {
        // Only kernels with CFS have the earlier rule among those that are modelled.
        let is_early = self.rules.algorithm != Algorithm::EevdfByDeadline;
        let se = &mut self.ents[e as usize];
        let avg = se.avg.get();
        se.avg.forget_change();
        if is_early {
            se.util_est.update_early(avg.util_avg);
        } else {
            se.util_est.update(avg.util_avg, avg.runnable_avg);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_follows_a_rise_at_once_and_a_fall_by_quarters() {
        let mut est = UtilEst::default();
        est.update(400, 400);
        assert_eq!(est.get(), 400);
        est.update(200, 200);
        assert_eq!(est.get(), 350);
        est.update(341, 341);
        assert_eq!(est.get(), 350, "less than one percent");
        est.update(100, 300);
        assert_eq!(est.get(), 350, "it had to wait");
    }

    #[test]
    fn the_earlier_estimate_is_the_greater_of_the_last_and_the_average() {
        let mut est = UtilEst::default();
        est.update_early(400);
        assert_eq!(est, UtilEst { ewma: 400, last: 400 });
        est.update_early(200);
        assert_eq!(est, UtilEst { ewma: 350, last: 200 });
        est.update_early(345);
        assert_eq!(est, UtilEst { ewma: 350, last: 345 });
        est.update_early(342);
        assert_eq!(est, UtilEst { ewma: 350, last: 345 }, "neither has changed");
    }
}
