// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arithmetic of 2.4: the ticks of a nice value, and the goodness of a task for a CPU.
//!
//! Source: Linux 2.4.16 and 2.4.17, kernel/sched.c (`NICE_TO_TICKS`, `goodness`) and
//! include/asm-i386/smp.h (PROC_CHANGE_PENALTY).

/// Bonus of a task on the CPU where it last ran, in a kernel built for several CPUs (i386).
pub const PROC_CHANGE_PENALTY: i32 = 15;

/// Goodness of a task that has called sched_yield.
pub const YIELDED: i32 = -1;

/// Goodness if there is no task: the idle task runs.
pub const NOBODY: i32 = -1000;

/// Ticks that a task of this nice value gets in an epoch (`NICE_TO_TICKS`): 6 at nice 0, HZ=100.
pub const fn nice_to_ticks(hz: u32, nice: i8) -> i32 {
    let left = 20 - nice as i32;
    let scaled = match hz {
        0..200 => left >> 2,
        200..400 => left >> 1,
        400..800 => left,
        800..1600 => left << 1,
        _ => left << 2,
    };
    scaled + 1
}

/// Maximum number of ticks of a parent after adding a child's rest (MAX_COUNTER): 200 ms.
pub const fn max_counter(hz: u32) -> i32 {
    20 * hz as i32 / 100
}

/// The ticks left after `epochs` recalculations that a task has slept or waited through.
pub const fn recalculated(mut counter: i32, ticks: i32, mut epochs: u64) -> i32 {
    while epochs > 0 {
        let next = (counter >> 1) + ticks;
        if next == counter {
            break;
        }
        counter = next;
        epochs -= 1;
    }
    counter
}

/// A task as a CPU sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Whether it has called sched_yield (the flag SCHED_YIELD of 2.4).
    pub yielded: bool,
    /// Real-time priority, 0 for SCHED_OTHER.
    pub rt_priority: u8,
    /// Ticks left in this epoch.
    pub counter: i32,
    /// Nice value.
    pub nice: i8,
    /// Whether it last ran on this CPU, and the kernel is built for several CPUs.
    pub affine: bool,
    /// Whether its address space is loaded on this CPU.
    pub same_mm: bool,
}

/// The goodness of the task: -1 to 77 for SCHED_OTHER, 1001 to 1099 for real-time tasks.
#[inline]
pub const fn goodness(look: &Look) -> i32 {
    if look.yielded {
        return YIELDED;
    }
    if look.rt_priority > 0 {
        return 1000 + look.rt_priority as i32;
    }
    if look.counter == 0 {
        return 0;
    }
    let affine = if look.affine { PROC_CHANGE_PENALTY } else { 0 };
    look.counter + affine + look.same_mm as i32 + 20 - look.nice as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look =
        Look { yielded: false, rt_priority: 0, counter: 6, nice: 0, affine: false, same_mm: false };

    #[test]
    fn section_2_2_nice_to_ticks() {
        let at_100 = [
            (-20..=-20, 11),
            (-19..=-16, 10),
            (-15..=-12, 9),
            (-11..=-8, 8),
            (-7..=-4, 7),
            (-3..=0, 6),
            (1..=4, 5),
            (5..=8, 4),
            (9..=12, 3),
            (13..=16, 2),
            (17..=19, 1),
        ];
        for (range, ticks) in at_100 {
            for nice in range {
                assert_eq!(nice_to_ticks(100, nice), ticks, "nice {nice}");
            }
        }
        let at_1000 = [-20, 0, 10, 19].map(|nice| nice_to_ticks(1000, nice));
        assert_eq!(at_1000, [81, 41, 21, 3]);
        assert_eq!(max_counter(100), 20);
    }

    #[test]
    fn section_2_3_goodness() {
        let same_mm = Look { same_mm: true, ..LOOK };
        assert_eq!(goodness(&LOOK), 26);
        assert_eq!(goodness(&same_mm), 27);
        assert_eq!(goodness(&Look { affine: true, ..LOOK }), 41);
        assert_eq!(goodness(&Look { affine: true, ..same_mm }), 42);
        assert_eq!(goodness(&Look { counter: 3, nice: 10, ..LOOK }), 13);
        assert_eq!(goodness(&Look { counter: 0, nice: -20, ..same_mm }), 0);
        assert_eq!(goodness(&Look { rt_priority: 50, counter: 0, ..same_mm }), 1050);
        assert_eq!(goodness(&Look { yielded: true, rt_priority: 50, ..same_mm }), -1);
        let least = Look { counter: 1, nice: 19, ..LOOK };
        let most = Look { counter: 21, nice: -20, ..same_mm };
        assert_eq!((goodness(&least), goodness(&most)), (2, 62));
    }

    #[test]
    fn section_2_9_epochs() {
        let sequence = |nice, length| -> Vec<i32> {
            let ticks = nice_to_ticks(100, nice);
            (1..=length).map(|epochs| recalculated(0, ticks, epochs)).collect()
        };
        assert_eq!(sequence(0, 5), [6, 9, 10, 11, 11]);
        assert_eq!(sequence(-20, 6), [11, 16, 19, 20, 21, 21]);
        assert_eq!(sequence(-10, 5), [8, 12, 14, 15, 15]);
        assert_eq!(sequence(10, 4), [3, 4, 5, 5]);
        assert_eq!(sequence(19, 3), [1, 1, 1]);
        // The limit is 2N - 1 for any number of epochs, also from above.
        assert_eq!(recalculated(0, 6, u64::MAX), 11);
        assert_eq!(recalculated(20, 6, u64::MAX), 12);
    }
}
