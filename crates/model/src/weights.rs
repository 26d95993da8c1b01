// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights of tasks and control groups in the fair class. Nice 0 has the weight 1024.

use crate::{CgroupSpec, Policy, SchedAttr};

/// Weight of SCHED_IDLE tasks (`WEIGHT_IDLEPRIO`, Linux kernel/sched/sched.h).
pub const IDLE_WEIGHT: u64 = 3;

/// Weight of nice 0.
pub const NICE_0_WEIGHT: u64 = 1_024;

/// Least weight of a group (`MIN_SHARES`, Linux kernel/sched/sched.h).
pub const MIN_SHARES: u64 = 2;

/// Greatest weight of a group (`MAX_SHARES`).
pub const MAX_SHARES: u64 = 1 << 18;

/// Weights of nice -20 to 19 (`sched_prio_to_weight`, Linux kernel/sched/core.c). Each step of nice
/// is a factor of about 1.25: of two tasks one step apart, one gets 55 % of the CPU and the other
/// 45 %.
pub const NICE_WEIGHTS: [u64; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291, 29_154, 23_254, 18_705, 14_949, 11_916, 9_548, 7_620,
    6_100, 4_904, 3_906, 3_121, 2_501, 1_991, 1_586, 1_277, 1_024, 820, 655, 526, 423, 335, 272,
    215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// Weight of `nice`. Values below -20 count as -20, values above 19 as 19.
#[inline]
pub fn nice_weight(nice: i8) -> u64 {
    NICE_WEIGHTS[(i32::from(nice).clamp(-20, 19) + 20) as usize]
}

/// Weight of a task with these attributes. Real-time and deadline tasks have the weight of a fair
/// task with the same nice value (`set_load_weight`).
#[inline]
pub fn task_weight(attr: &SchedAttr) -> u64 {
    if attr.policy == Policy::Idle { IDLE_WEIGHT } else { nice_weight(attr.nice) }
}

/// Weight of a control group: that of its cpu.weight.nice; or else its cpu.weight, scaled so that
/// 100 is the weight of nice 0, and rounded to the nearest (`cpu_weight_nice_write_s64`,
/// `sched_weight_from_cgroup`).
pub fn group_weight(group: &CgroupSpec) -> u64 {
    match group.weight_nice {
        Some(nice) => nice_weight(nice),
        None => {
            let shares = (u64::from(group.weight) * NICE_0_WEIGHT + 50) / 100;
            shares.clamp(MIN_SHARES, MAX_SHARES)
        }
    }
}
