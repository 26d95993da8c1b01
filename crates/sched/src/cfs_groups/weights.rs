// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights, and the arithmetic of virtual time, of the first versions of CFS on a 64-bit machine.
//!
//! The division is [`crate::fair::wmult`]'s; this file has the differences between the versions.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched.c (`calc_delta_mine`, `set_load_weight`,
//! `set_se_shares`), sched_fair.c (`calc_delta_fair`).

use super::rules::Rules;
pub use crate::fair::wmult::{LoadWeight, NICE_0_LOAD, calc_delta_mine};
use schedlab_model::weights::{MAX_SHARES, MIN_SHARES, NICE_WEIGHTS};
use schedlab_model::{Nanos, Policy, SchedAttr};

/// Weight of a real-time task in the load of its CPU, up to 2.6.24.
pub const RT_WEIGHT: u64 = 2 * NICE_WEIGHTS[0];
/// 2^32 (WMULT_CONST).
const WMULT_CONST: u64 = 1 << 32;

/// The weight of a fair task (`set_load_weight`).
pub fn of_task(attr: &SchedAttr, rules: &Rules) -> LoadWeight {
    match attr.policy {
        Policy::Idle => {
            let inv_weight = (WMULT_CONST - 1).div_ceil(rules.idle_weight);
            LoadWeight { weight: rules.idle_weight, inv_weight }
        }
        _ => LoadWeight::of_task(&SchedAttr { policy: Policy::Normal, ..*attr }),
    }
}

/// Any other weight: a sum. The kernel computes its inverse when it is first needed.
#[inline]
pub fn of_sum(weight: u64, rules: &Rules) -> LoadWeight {
    if !rules.inverse_adds_one {
        return LoadWeight::of_load(weight);
    }
    let inv_weight = match weight {
        WMULT_CONST.. => 1,
        _ => 1 + (WMULT_CONST - weight / 2) / (weight + 1),
    };
    LoadWeight { weight, inv_weight }
}

/// The weight of a group's entity (`set_se_shares`).
pub fn of_shares(shares: u64, rules: &Rules) -> LoadWeight {
    match rules.inverse_adds_one {
        true => of_sum(shares, rules),
        false => LoadWeight { weight: shares, inv_weight: WMULT_CONST / shares },
    }
}

/// Virtual time of an entity of weight `of` for `delta` ns of real time (`calc_delta_fair`).
#[inline]
pub fn calc_delta_fair(delta: Nanos, of: LoadWeight) -> u64 {
    if of.weight == NICE_0_LOAD { delta } else { calc_delta_mine(delta, NICE_0_LOAD, of) }
}

/// cpu.shares for a cpu.weight: 100 becomes 1024, because these are the two defaults; at least 2.
pub const fn shares_of(cpu_weight: u32) -> u64 {
    let shares = (cpu_weight as u64 * NICE_0_LOAD + 50) / 100;
    if shares < MIN_SHARES {
        MIN_SHARES
    } else if shares > MAX_SHARES {
        MAX_SHARES
    } else {
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::time::NSEC_PER_MSEC as MS;

    const ALL: [Rules; 2] = [Rules::LINUX_2_6_24, Rules::LINUX_2_6_32];

    #[test]
    fn section_5_1_weighted_time_of_10_ms() {
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
        for (rules, (nice, weighted)) in ALL.iter().flat_map(|r| expected.map(|e| (r, e))) {
            let load = of_task(&SchedAttr { nice, ..SchedAttr::default() }, rules);
            assert_eq!(calc_delta_fair(10 * MS, load), weighted, "{} nice {nice}", rules.name);
        }
        // The time of nice 0 is not rounded to multiples of 64 ns, as the product would be.
        let normal = of_task(&SchedAttr::default(), &ALL[0]);
        assert_eq!(calc_delta_fair(10 * MS + 1, normal), 10 * MS + 1);
        assert_eq!(RT_WEIGHT, 177_522);
    }

    #[test]
    fn section_5_1_idle_weight_is_2_and_later_3() {
        let idle = SchedAttr { policy: Policy::Idle, ..SchedAttr::default() };
        let first = LoadWeight { weight: 2, inv_weight: 1 << 31 };
        assert_eq!(of_task(&idle, &Rules::LINUX_2_6_24), first);
        let later = LoadWeight { weight: 3, inv_weight: 1_431_655_765 };
        assert_eq!(of_task(&idle, &Rules::LINUX_2_6_32), later);
    }

    #[test]
    fn inverses_of_sums_differ_in_rounding() {
        let inverse = |weight, rules: &Rules| of_sum(weight, rules).inv_weight;
        assert_eq!(inverse(2048, &Rules::LINUX_2_6_24), 2_097_152);
        assert_eq!(inverse(2048, &Rules::LINUX_2_6_32), 2_096_129);
        assert_eq!(inverse(1 << 32, &Rules::LINUX_2_6_32), 1);
    }

    #[test]
    fn shares_follow_cpu_weight() {
        let shares = [1, 50, 100, 200, 10_000].map(shares_of);
        assert_eq!(shares, [10, 512, 1024, 2048, 102_400]);
    }
}
