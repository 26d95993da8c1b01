// SPDX-License-Identifier: MIT OR Apache-2.0
//! The weighted average of the virtual runtimes of a queue. EEVDF compares it with an entity's to
//! decide whether the entity has received more than its share.
//!
//! Source: Linux kernel/sched/fair.c (avg_vruntime, vruntime_eligible), 6.6 to 7.1.

use super::entity::{CfsRq, Entity};

/// floor(a / b), b > 0; fast if `a` fits in 64 bits, which is nearly always the case.
#[inline]
pub fn div_floor(a: i128, b: i64) -> i64 {
    match i64::try_from(a) {
        Ok(small) => small.div_euclid(b),
        Err(_) => a.div_euclid(i128::from(b)) as i64,
    }
}

/// Sums over all queued entities of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// The queue's `min_vruntime`, from which virtual runtimes are counted.
    base: u64,
    /// Sum of virtual runtime, relative to `base`, times weight.
    weighted: i128,
    /// Sum of weights.
    pub load: i64,
}

impl Sums {
    /// Sums over the waiting entities of `rq`, and over `running` if that is queued there.
    #[inline]
    pub fn of(rq: &CfsRq, running: Option<&Entity>) -> Self {
        let mut sums = Self { base: rq.min_vruntime, weighted: rq.avg_vruntime, load: rq.avg_load };
        if let Some(se) = running {
            let weight = se.load.averaged;
            let key = se.vruntime.wrapping_sub(sums.base) as i64;
            sums.weighted += i128::from(key) * i128::from(weight);
            sums.load += weight;
        }
        sums
    }

    /// V: the weighted average of virtual runtimes, rounded down; `min_vruntime` if there are none.
    #[inline]
    pub fn average(&self) -> u64 {
        let offset = if self.load == 0 { 0 } else { div_floor(self.weighted, self.load) };
        self.base.wrapping_add(offset as u64)
    }

    /// V rounded towards 0 instead, as up to 6.6-rc4.
    pub fn average_towards_zero(&self) -> u64 {
        let offset = self.weighted / i128::from(self.load.max(1));
        self.base.wrapping_add(offset as u64)
    }

    /// Whether virtual runtime `v` is not beyond the average, without division.
    #[inline]
    pub fn is_eligible(&self, v: u64) -> bool {
        let key = v.wrapping_sub(self.base) as i64;
        self.weighted >= i128::from(key) * i128::from(self.load)
    }
}
