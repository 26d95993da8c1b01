// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights of nice values and groups, and the arithmetic of virtual time.
//!
//! Source: Linux kernel/sched/core.c (sched_prio_to_weight, sched_prio_to_wmult) and fair.c
//! (__calc_delta, calc_delta_fair), 6.1 to 7.1. The tables are the kernel's own numbers: they are
//! part of its behaviour up to 7.0, since 13 of the inverse weights are not what a division would
//! give. 7.1 divides exactly, and averages with full weights.

use schedlab_model::weights::{IDLE_WEIGHT, NICE_WEIGHTS, group_weight};
use schedlab_model::{CgroupSpec, Nanos, Policy, SchedAttr};

/// Bits by which a stored load weight is greater than the table's (SCHED_FIXEDPOINT_SHIFT).
pub const LOAD_SHIFT: u32 = 10;
/// Stored load weight of nice 0 (NICE_0_LOAD).
pub const NICE_0_LOAD: u64 = 1024 << LOAD_SHIFT;
/// 2^32 / 3 (WMULT_IDLEPRIO).
const WMULT_IDLEPRIO: u32 = 1_431_655_765;

/// 2^32 / weight of nice -20 to 19.
pub const PRIO_TO_WMULT: [u32; 40] = [
    48388, 59856, 76040, 92818, 118348, 147320, 184698, 229616, 287308, 360437, //
    449829, 563644, 704093, 875809, 1099582, 1376151, 1717300, 2157191, 2708050, 3363326, //
    4194304, 5237765, 6557202, 8165337, 10153587, 12820798, 15790321, 19976592, 24970740,
    31350126, //
    39045157, 49367440, 61356676, 76695844, 95443717, 119304647, 148102320, 186737708, 238609294,
    286331153,
];

/// A weight and 2^32 divided by it (`struct load_weight`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadWeight {
    /// Stored weight: the table's, shifted by [`LOAD_SHIFT`].
    pub weight: u64,
    /// The stored weight without its extra bits: [`scale_load_down`] of it.
    pub scaled: u64,
    /// The weight of an entity in averages of virtual runtimes: `scaled`, or from 7.1 on `weight`.
    pub averaged: i64,
    /// 2^32 / table weight; 0: divisions are exact (from 7.1 on).
    pub inv_weight: u32,
}

impl LoadWeight {
    const fn new(weight: u64, inv_weight: u32) -> Self {
        let scaled = scale_load_down(weight);
        Self { weight, scaled, averaged: scaled as i64, inv_weight }
    }

    /// The weight with the arithmetic of 7.1 on 64-bit machines: exact divisions, full weights.
    pub const fn exact(self) -> Self {
        Self { averaged: self.weight as i64, inv_weight: 0, ..self }
    }

    /// The weight of a task with these attributes (set_load_weight).
    pub fn of_task(attr: &SchedAttr) -> Self {
        if attr.policy == Policy::Idle {
            return Self::new(IDLE_WEIGHT << LOAD_SHIFT, WMULT_IDLEPRIO);
        }
        let index = (i32::from(attr.nice) + 20) as usize;
        Self::new(NICE_WEIGHTS[index] << LOAD_SHIFT, PRIO_TO_WMULT[index])
    }

    /// Any other weight: a sum, or that of a group's entity (__update_inv_weight).
    pub fn of_load(weight: u64) -> Self {
        Self::new(weight, inverse_weight(weight))
    }
}

/// A stored weight without its extra bits, never below 2 unless 0 (scale_load_down).
#[inline]
pub const fn scale_load_down(weight: u64) -> u64 {
    let down = weight >> LOAD_SHIFT;
    // No branch on the path that is nearly always taken.
    if down >= 2 {
        down
    } else if weight == 0 {
        0
    } else {
        2
    }
}

/// 2^32 / weight for weights outside the table.
#[inline]
pub const fn inverse_weight(weight: u64) -> u32 {
    let down = scale_load_down(weight);
    if down >= 1 << 32 {
        1
    } else {
        match (u32::MAX as u64).checked_div(down) {
            Some(inverse) => inverse as u32,
            None => u32::MAX,
        }
    }
}

/// Highest set bit, counted from 1; 0 for 0.
#[inline]
const fn fls(x: u32) -> u32 {
    32 - x.leading_zeros()
}

/// delta * weight / of.weight (__calc_delta), by the 32-bit inverse if there is one.
#[inline]
pub fn calc_delta(delta: u64, weight: u64, of: LoadWeight) -> u64 {
    if of.inv_weight == 0 {
        return divide_exactly(delta, weight, of.weight);
    }
    let mut factor = scale_load_down(weight);
    let mut shift = 32;
    let high = (factor >> 32) as u32;
    if high != 0 {
        let bits = fls(high);
        shift -= bits;
        factor >>= bits;
    }
    factor = (factor & 0xffff_ffff) * u64::from(of.inv_weight);
    let high = (factor >> 32) as u32;
    if high != 0 {
        let bits = fls(high);
        shift -= bits;
        factor >>= bits;
    }
    ((u128::from(delta) * u128::from(factor)) >> shift) as u64
}

/// floor(delta * weight / of).
fn divide_exactly(delta: u64, weight: u64, of: u64) -> u64 {
    match delta.checked_mul(weight) {
        Some(product) => product / of,
        None => (u128::from(delta) * u128::from(weight) / u128::from(of)) as u64,
    }
}

/// Virtual time of an entity of weight `of` for `delta` of real time (calc_delta_fair).
#[inline]
pub fn calc_delta_fair(delta: Nanos, of: LoadWeight) -> u64 {
    if of.weight == NICE_0_LOAD { delta } else { calc_delta(delta, NICE_0_LOAD, of) }
}

/// Shares of a group, as a stored weight (cpu_weight_write_u64, cpu_weight_nice_write_s64).
pub fn shares_of(group: &CgroupSpec) -> u64 {
    group_weight(group) << LOAD_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice(nice: i8) -> LoadWeight {
        LoadWeight::of_task(&SchedAttr { nice, ..SchedAttr::default() })
    }

    fn idle() -> LoadWeight {
        LoadWeight::of_task(&SchedAttr { policy: Policy::Idle, ..SchedAttr::default() })
    }

    #[test]
    fn section_1_2_calc_delta_fair_of_1_ms() {
        let expected: [(i8, u64); 9] = [
            (-20, 11_536),
            (-10, 107_247),
            (-5, 328_099),
            (-1, 801_879),
            (0, 1_000_000),
            (1, 1_248_780),
            (5, 3_056_716),
            (10, 9_309_090),
            (19, 68_266_666),
        ];
        for (value, v) in expected {
            assert_eq!(calc_delta_fair(1_000_000, nice(value)), v, "nice {value}");
        }
        assert_eq!(calc_delta_fair(1_000_000, idle()), 341_333_333);
    }

    #[test]
    fn section_1_2_calc_delta_fair_of_4_ms() {
        let expected: [(i8, u64); 7] = [
            (-20, 46_146),
            (-10, 428_990),
            (-5, 1_312_399),
            (1, 4_995_121),
            (5, 12_226_865),
            (10, 37_236_363),
            (19, 273_066_666),
        ];
        for (value, v) in expected {
            assert_eq!(calc_delta_fair(4_000_000, nice(value)), v, "nice {value}");
        }
    }

    #[test]
    fn section_2_9_calc_delta_fair_is_exact() {
        for (value, weight) in (-20i8..).zip(NICE_WEIGHTS) {
            for delta in [1u64, 999, 1_000_000, 4_000_000, 1 << 53, u64::MAX >> 11] {
                let exact = u128::from(delta) * 1024 / u128::from(weight);
                assert_eq!(u128::from(calc_delta_fair(delta, nice(value).exact())), exact);
            }
        }
        assert_eq!(calc_delta_fair(1_000_000, nice(5).exact()), 3_056_716);
        assert_eq!(calc_delta_fair(1_000_000, idle().exact()), 341_333_333);
        // The inverse weight of nice 19 is slightly too small, that of nice 5 too great.
        let both =
            |value| [nice(value), nice(value).exact()].map(|of| calc_delta_fair(10_u64.pow(8), of));
        assert_eq!(both(19), [6_826_666_665, 6_826_666_666]);
        assert_eq!(both(5), [305_671_644, 305_671_641]);
    }

    #[test]
    fn section_1_16_shares_of_cpu_weights() {
        let expected = [(1, 10), (50, 512), (100, 1024), (200, 2048), (10_000, 102_400)];
        for (cpu_weight, shares) in expected {
            let group = CgroupSpec { weight: cpu_weight, ..CgroupSpec::root() };
            assert_eq!(shares_of(&group), shares << LOAD_SHIFT);
        }
    }

    #[test]
    fn inverse_of_other_weights_divides_the_greatest_32_bit_number() {
        assert_eq!(inverse_weight(2 * NICE_0_LOAD), 2_097_151);
        assert_eq!(inverse_weight(0), u32::MAX);
        assert_eq!(inverse_weight(2), u32::MAX / 2);
        assert_eq!(inverse_weight(1 << 42), 1);
    }
}
