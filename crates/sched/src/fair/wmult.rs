// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights with their inverses, with the arithmetic of the fair class in Linux 2.6.23 to 2.6.32.
//!
//! A division by a weight is a multiplication by 2^32 / weight and a shift that rounds to nearest.
//! Later kernels truncate ([`crate::fair::weights`]), so the results differ in the last digits.
//!
//! Source: Linux 2.6.23.17 and 2.6.24, kernel/sched.c (`prio_to_weight`, `prio_to_wmult`,
//! `calc_delta_mine`, `set_load_weight`), on a 64-bit machine, where WMULT_CONST is 2^32.

use crate::fair::weights::PRIO_TO_WMULT;
use schedlab_model::weights::NICE_WEIGHTS;
use schedlab_model::{Nanos, Policy, SchedAttr};

/// Bits of an inverse weight (WMULT_SHIFT).
pub const WMULT_SHIFT: u32 = 32;
/// 2^32 (WMULT_CONST of 64-bit machines).
const WMULT_CONST: u64 = 1 << WMULT_SHIFT;
/// log2 of [`NICE_0_LOAD`] (NICE_0_SHIFT).
pub const NICE_0_SHIFT: u32 = 10;
/// Weight of nice 0.
pub const NICE_0_LOAD: u64 = 1 << NICE_0_SHIFT;
/// Weight of SCHED_IDLE tasks up to 2.6.28 (WEIGHT_IDLEPRIO).
pub const WEIGHT_IDLEPRIO: u64 = 2;

/// A weight and 2^32 divided by it (`struct load_weight`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadWeight {
    /// Weight; 1024 is one task of nice 0.
    pub weight: u64,
    /// 2^32 / weight; 0 for a weight of 0.
    pub inv_weight: u64,
}

impl LoadWeight {
    /// A weight of 0.
    pub const ZERO: Self = Self { weight: 0, inv_weight: 0 };

    /// The weight of a real-time task: twice that of nice -20. Only balancing uses it.
    pub const REAL_TIME: Self =
        Self { weight: NICE_WEIGHTS[0] * 2, inv_weight: (PRIO_TO_WMULT[0] >> 1) as u64 };

    /// The weight of a task with these attributes (`set_load_weight`). A SCHED_IDLE task has the
    /// weight of Linux 2.6.23.
    pub fn of_task(attr: &SchedAttr) -> Self {
        if attr.policy.is_rt() {
            return Self::REAL_TIME;
        }
        if attr.policy == Policy::Idle {
            return Self { weight: WEIGHT_IDLEPRIO, inv_weight: 1 << 31 };
        }
        let index = (i32::from(attr.nice) + 20) as usize;
        Self { weight: NICE_WEIGHTS[index], inv_weight: u64::from(PRIO_TO_WMULT[index]) }
    }

    /// Any other weight, usually a sum.
    pub const fn of_load(weight: u64) -> Self {
        let inv_weight = match WMULT_CONST.saturating_sub(weight / 2).checked_div(weight) {
            Some(inverse) => inverse + 1,
            None => 0,
        };
        Self { weight, inv_weight }
    }
}

/// `value` / 2^`shift`, to the nearest (SRR).
const fn shift_right_round(value: u64, shift: u32) -> u64 {
    value.wrapping_add(1 << (shift - 1)) >> shift
}

/// delta * weight / of.weight. Products wrap at 64 bits as in the kernel; this takes seconds
/// without an update.
#[inline]
pub fn calc_delta_mine(delta: Nanos, weight: u64, of: LoadWeight) -> u64 {
    let product = delta.wrapping_mul(weight);
    let result = if product > WMULT_CONST {
        let half = WMULT_SHIFT / 2;
        shift_right_round(shift_right_round(product, half).wrapping_mul(of.inv_weight), half)
    } else {
        shift_right_round(product.wrapping_mul(of.inv_weight), WMULT_SHIFT)
    };
    result.min(i64::MAX as u64)
}

/// Virtual time for a weight, or a whole queue, during `delta` of real time (`calc_delta_fair`).
#[inline]
pub fn calc_delta_fair(delta: Nanos, of: LoadWeight) -> u64 {
    calc_delta_mine(delta, NICE_0_LOAD, of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice(nice: i8) -> LoadWeight {
        LoadWeight::of_task(&SchedAttr { nice, ..SchedAttr::default() })
    }

    #[test]
    fn section_5_1_weights() {
        let weights = [-20, -15, -10, -5, -1, 0, 1, 5, 10, 15, 19].map(|n| nice(n).weight);
        assert_eq!(weights, [88761, 29154, 9548, 3121, 1277, 1024, 820, 335, 110, 36, 15]);
        let inverses = [-20, -10, 0, 10, 19].map(|n| nice(n).inv_weight);
        assert_eq!(inverses, [48_388, 449_829, 4_194_304, 39_045_157, 286_331_153]);
        let idle = SchedAttr { policy: Policy::Idle, ..SchedAttr::default() };
        let fifo = SchedAttr { policy: Policy::Fifo, rt_priority: 1, ..SchedAttr::default() };
        assert_eq!(LoadWeight::of_task(&idle), LoadWeight { weight: 2, inv_weight: 2_147_483_648 });
        assert_eq!(LoadWeight::of_task(&fifo), LoadWeight { weight: 177_522, inv_weight: 24_194 });
    }

    #[test]
    fn section_5_1_weighted_10_ms() {
        let expected = [
            (-20, 115_366),
            (-10, 1_072_476),
            (-5, 3_281_000),
            (0, 10_000_000),
            (1, 12_487_805),
            (5, 30_567_164),
            (10, 93_090_909),
            (19, 682_666_667),
        ];
        for (value, delta) in expected {
            assert_eq!(calc_delta_fair(10_000_000, nice(value)), delta, "nice {value}");
        }
    }

    #[test]
    fn section_5_1_advance_of_the_fair_clock_in_10_ms() {
        for (load, delta) in [(2048, 5_000_000), (3072, 3_333_333), (1359, 7_534_952)] {
            assert_eq!(calc_delta_fair(10_000_000, LoadWeight::of_load(load)), delta, "{load}");
        }
    }

    #[test]
    fn section_5_1_shares_of_two_hogs_in_hundredths_of_a_percent() {
        let share = |a: i8, b: i8| {
            let (a, b) = (nice(a).weight, nice(b).weight);
            (10_000 * a + (a + b) / 2) / (a + b)
        };
        let pairs = [(0, 1), (0, 5), (0, 10), (0, 19), (-5, 0), (-20, 19)];
        let shares = pairs.map(|(a, b)| share(a, b));
        assert_eq!(shares, [5553, 7535, 9030, 9856, 7530, 9998]);
    }

    #[test]
    fn beyond_2_to_the_32_a_product_is_cut_to_multiples_of_2_to_the_16() {
        // 2^32 / 1024 ns is the longest time computed in one step at nice 0.
        let load = LoadWeight::of_load(2048);
        assert_eq!(calc_delta_fair(4_194_304, load), 2_097_152);
        assert_eq!(calc_delta_fair(4_194_305, load), 2_097_152);
        assert_eq!(calc_delta_fair(4_194_306, load), 2_097_152);
        assert_eq!(calc_delta_fair(4_194_368, load), 2_097_184);
        assert_eq!(LoadWeight::of_load(0), LoadWeight::ZERO);
    }
}
