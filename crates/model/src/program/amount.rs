// SPDX-License-Identifier: MIT OR Apache-2.0
//! Amounts of time or bytes, constant or drawn.

use crate::random::Stream;

/// An amount (of time in ns, or of bytes): constant, or drawn each time the operation runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum Amount {
    /// Always this amount.
    Constant(u64),
    /// Uniformly distributed, both ends included.
    Uniform {
        /// Least value.
        low: u64,
        /// Greatest value.
        high: u64,
    },
    /// Exponentially distributed.
    Exponential {
        /// Mean.
        mean: u64,
    },
}

impl Amount {
    /// Whether a value can be drawn: the range of a uniform amount must not be empty.
    pub const fn is_valid(&self) -> bool {
        match *self {
            Self::Uniform { low, high } => low <= high,
            Self::Constant(_) | Self::Exponential { .. } => true,
        }
    }

    /// Whether every draw is 0.
    pub const fn is_always_zero(&self) -> bool {
        match *self {
            Self::Constant(value) => value == 0,
            Self::Uniform { high, .. } => high == 0,
            Self::Exponential { mean } => mean == 0,
        }
    }

    /// Draws a value.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        match *self {
            Self::Constant(value) => value,
            Self::Uniform { .. } | Self::Exponential { .. } => self.draw_by_chance(stream),
        }
    }

    #[inline(never)]
    fn draw_by_chance(&self, stream: &mut Stream) -> u64 {
        match *self {
            Self::Constant(value) => value,
            Self::Uniform { low, high } => stream.between(low, high),
            Self::Exponential { mean } => stream.exponential(mean),
        }
    }
}
