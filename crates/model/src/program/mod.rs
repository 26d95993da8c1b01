// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a task does: a program of operations, the same for every lane.
//!
//! A program is a flat list and loops are jumps, so an interpreter is a program counter and a stack
//! of loop counters. Simulator and host interpret the same program and draw the same random amounts
//! in the same order (stream: seed, [`Purpose::Program`], task number).

#[allow(unused_imports)]
use crate::random::Purpose;

mod amount;
mod builder;
mod check;
mod feature;
mod op;
mod tunable;

pub use amount::Amount;
pub use builder::ProgramBuilder;
pub use check::{ProgramError, TIMELESS_STEPS_MAX};
pub use feature::SchedFeature;
pub use op::{IoDirection, LoopCount, MemAccess, MemPattern, Op, Step, TimerMode};
pub use tunable::SchedTunable;

/// The operations of a task. A program that reaches its end exits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Program {
    /// Operations in order. The targets of jumps are resolved.
    pub ops: Vec<Op>,
    /// Number of periodic timers the operations name.
    pub nr_timers: u32,
}

impl Program {
    /// Whether it loops for ever.
    pub fn is_endless(&self) -> bool {
        let endless = |op: &Op| matches!(op, Op::LoopBegin { count: LoopCount::Forever, .. });
        self.ops.iter().any(endless)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_for_ever_makes_a_program_endless() {
        let looped = |count| ProgramBuilder::new().begin_loop(count).run(1).end_loop().build();
        assert!(looped(LoopCount::Forever).is_endless());
        assert!(!looped(LoopCount::Times(3)).is_endless());
        assert!(!Program::default().is_endless());
    }
}
