// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slots in which a nice value may run, and the time in each.
//!
//! Source: Con Kolivas's patch 2.6.22-ck1 to Linux 2.6.22, kernel/sched.c (`prio_matrix`,
//! `rr_quota`); for RSDL, what is known of version 0.31, partly from memory.

/// Slots of a rotation, and nice values: user priorities 0 to 39.
pub const SLOTS: u8 = 40;

/// A nice value's user priority, 0 to 39.
pub fn user_priority(nice: i8) -> u8 {
    (i32::from(nice) + 20) as u8
}

/// Row of the matrix for a user priority: bit s is set if slot s may *not* be used. The number of
/// usable slots is 40 minus the priority, spread from the last one backwards.
pub fn row(user: u8) -> u64 {
    let step = 1_600 / (40 - u32::from(user));
    let mut row = (1 << SLOTS) - 1;
    let mut at = 0;
    while at <= 1_560 {
        row &= !(1 << (39 - at / 40));
        at += step;
    }
    row
}

/// Row of SCHED_BATCH: every slot from the task's own priority on.
pub fn batch_row(user: u8) -> u64 {
    (1 << user) - 1
}

/// The first slot from `start` on that neither `row` nor `used` forbids.
pub fn first_free(row: u64, used: u64, start: u8) -> Option<u8> {
    let taken = row | used | ((1 << start) - 1);
    let slot = taken.trailing_ones() as u8;
    (slot < SLOTS).then_some(slot)
}

/// Time in one slot of SD (us), with an interval of `rr_ms`.
pub fn sd_quota_us(nice: i8, rr_ms: u64) -> i64 {
    let nice = i64::from(nice);
    let rr = rr_ms as i64;
    let ms = match nice {
        ..-6 => rr * nice * nice / 40,
        -6..=0 => rr,
        _ => (rr / 2).max(1),
    };
    ms * 1_000
}

/// Time on one level of RSDL, in ticks, with an interval of `rr` ticks.
pub fn rsdl_quota_ticks(nice: i8, rr: i64) -> i64 {
    let nice = i64::from(nice);
    if nice < -6 { rr * nice * nice / 40 } else { rr }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(user: u8) -> String {
        let row = row(user);
        (0..SLOTS).map(|slot| if row >> slot & 1 == 1 { '1' } else { '0' }).collect()
    }

    #[test]
    fn section_4_2_rows() {
        for (nice, expected) in [
            (-20, "0000000000000000000000000000000000000000"),
            (-10, "1001000100010001000100010001000100010000"),
            (-5, "1010010010100100101001001010010010100100"),
            (0, "1010101010101010101010101010101010101010"),
            (1, "1101010101010101010110101010101010101010"),
            (5, "1101101101011011010110110101101101011010"),
            (10, "1110111011101110111011101110111011101110"),
            (15, "1111111011111110111111101111111011111110"),
            (19, "1111111111111111111111111111111111111110"),
        ] {
            assert_eq!(text(user_priority(nice)), expected, "nice {nice}");
        }
    }

    #[test]
    fn section_4_2_slot_counts_and_first_slots() {
        for user in 0..SLOTS {
            let usable = u32::from(SLOTS) - row(user).count_ones();
            assert_eq!(usable, u32::from(40 - user));
            assert_eq!(row(user) >> 39, 0, "every nice value has slot 39");
        }
        let firsts = [-20, -10, -5, 0, 1, 5, 10, 15, 19]
            .map(|nice| first_free(row(user_priority(nice)), 0, 0).unwrap());
        assert_eq!(firsts, [0, 1, 1, 1, 2, 2, 3, 7, 39]);
    }

    #[test]
    fn section_4_2_quotas() {
        let quotas = [-20, -15, -10, -7, -6, 0, 1, 19].map(|nice| sd_quota_us(nice, 6));
        let ms = [60, 33, 15, 7, 6, 6, 3, 3];
        assert_eq!(quotas, ms.map(|ms| ms * 1_000));
        assert_eq!(sd_quota_us(19, 1), 1_000);
        // The whole rotation: the number of slots is 40 minus the user priority.
        let rotation = |nice| sd_quota_us(nice, 6) * i64::from(40 - user_priority(nice)) / 1_000;
        assert_eq!([0, 10, 19, -10, -20].map(rotation), [120, 30, 3, 450, 2_400]);
    }

    #[test]
    fn section_4_1_quotas() {
        assert_eq!([-20, -10, -7, -6, 0, 19].map(|n| rsdl_quota_ticks(n, 6)), [60, 15, 7, 6, 6, 6]);
    }

    #[test]
    fn section_4_4_slots_are_searched_from_the_start() {
        let nice_0 = row(20);
        assert_eq!(first_free(nice_0, 0, 2), Some(3));
        assert_eq!(first_free(nice_0, 1 << 3, 2), Some(5));
        assert_eq!(first_free(row(39), 1 << 39, 0), None);
        assert_eq!(first_free(batch_row(20), 0, 0), Some(20));
        assert_eq!(first_free(batch_row(0), 0, 39), Some(39));
        assert_eq!(first_free(0, 0, 40), None);
    }
}
