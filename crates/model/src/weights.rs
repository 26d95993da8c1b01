// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weight of a nice value.

/// Weights of nice -20 to 19 (`sched_prio_to_weight`, Linux kernel/sched/core.c): each step of nice
/// is about a factor of 1.25, so that of two tasks one step apart one gets 55 % and the other 45 %.
pub const NICE_WEIGHTS: [u64; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291, 29_154, 23_254, 18_705, 14_949, 11_916, 9_548, 7_620,
    6_100, 4_904, 3_906, 3_121, 2_501, 1_991, 1_586, 1_277, 1_024, 820, 655, 526, 423, 335, 272,
    215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// Weight of `nice`; values outside -20 to 19 count as the nearest of them.
pub fn nice_weight(nice: i8) -> u64 {
    NICE_WEIGHTS[(i32::from(nice).clamp(-20, 19) + 20) as usize]
}
