// SPDX-License-Identifier: MIT OR Apache-2.0
//! The random transition of RMLFQ: a task that has used up its slice moves to a lower stage, to a
//! higher one, or stays.
//!
//! Priorities 0 (best) to 99 form ten deciles of one slice length each and five stages of two
//! deciles. A draw promotes ("low"), demotes ("high") or leaves a task by its stage s and its
//! `times`, the number of slices since it last moved, counted from 1:
//!
//! - as designed: r of 0..=9; promote if r < s + times, demote if r > 5 + s - times;
//! - as built: r of 32 bits; promote if r < (times + s) * 4294967295 / 10, demote if
//!   r > (5 - times + s) * 4294967295 / 10. The two differ by 0.1 between staying and demotion;
//! - as built on 32 bits: the products wrap, k * (2^32 - 1) = 2^32 - k, so every threshold is 0.1
//!   and neither stage nor `times` matters.
//!
//! Source: Zenan Li, "In Search of an Efficient Linux Process Scheduler" (2021), sections 3.3
//! (design) and 4.4 (code).

use schedlab_model::random::Stream;

/// Number of priorities (MAX_WRR_PRIO).
pub const PRIORITIES: u8 = 100;
/// Priorities of one slice length.
pub const DECILE: u8 = 10;
/// Priorities of one row of the table of probabilities.
const STAGE: u8 = 20;
/// Greatest number of 32 bits, as the code writes it.
const MAX: u32 = 4_294_967_295;

/// The rule by which a draw decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DrawRule {
    /// The rule of the text.
    Design,
    /// The rule of the code, with arithmetic that does not wrap.
    AsBuilt64,
    /// The rule of the code on a machine whose `unsigned long` has 32 bits.
    AsBuilt32,
}

/// The result of a draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// One decile up: a better priority, a shorter slice. In the first decile: stays there, moved.
    Promote,
    /// One decile down. In the last decile: stays there, moved.
    Demote,
    /// Neither: it stays at this priority.
    Stay,
}

impl Outcome {
    /// A word for explanations.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Promote => "promote",
            Self::Demote => "demote",
            Self::Stay => "stay",
        }
    }
}

/// A draw and the numbers that it was compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draw {
    /// The random number.
    pub drawn: u32,
    /// It promotes if the number is below this.
    pub promotes_below: u32,
    /// It demotes if it does not promote and the number is above this.
    pub demotes_above: u32,
    /// The result of the draw.
    pub outcome: Outcome,
}

/// Row of the table of probabilities for priority `prio`.
pub const fn stage(prio: u8) -> u8 {
    prio / STAGE
}

/// Slice length of priority `prio`, counted from 0.
pub const fn decile(prio: u8) -> u8 {
    prio / DECILE
}

impl DrawRule {
    /// The number below which a draw promotes, and the one above which it demotes.
    pub fn thresholds(self, stage: u8, times: u8) -> (u32, u32) {
        let (stage, times) = (u32::from(stage), u32::from(times));
        let low = times + stage;
        let high = (5 + stage).wrapping_sub(times);
        match self {
            // A fourth slice at one place is impossible: after the third no chance to stay is left.
            Self::Design => (low, high),
            Self::AsBuilt64 => {
                let tenths = |k: u32| (u64::from(k) * u64::from(MAX) / 10) as u32;
                (tenths(low), tenths(high))
            }
            Self::AsBuilt32 => (low.wrapping_mul(MAX) / 10, high.wrapping_mul(MAX) / 10),
        }
    }

    /// Draws for a task of this stage and `times`.
    pub fn draw(self, random: &mut Stream, stage: u8, times: u8) -> Draw {
        let (promotes_below, demotes_above) = self.thresholds(stage, times);
        let drawn = match self {
            Self::Design => random.below(10) as u32,
            Self::AsBuilt64 | Self::AsBuilt32 => (random.next_u64() >> 32) as u32,
        };
        let outcome = if drawn < promotes_below {
            Outcome::Promote
        } else if drawn > demotes_above {
            Outcome::Demote
        } else {
            Outcome::Stay
        };
        Draw { drawn, promotes_below, demotes_above, outcome }
    }
}

/// Where a task with `prio` and `times` is after `outcome`.
pub const fn moved(prio: u8, times: u8, outcome: Outcome) -> (u8, u8) {
    match outcome {
        Outcome::Promote if prio >= DECILE => (prio - DECILE, 1),
        Outcome::Demote if prio < PRIORITIES - DECILE => (prio + DECILE, 1),
        Outcome::Promote | Outcome::Demote => (prio, 1),
        Outcome::Stay => (prio, times.saturating_add(1)),
    }
}
