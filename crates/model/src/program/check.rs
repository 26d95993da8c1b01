// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a program can run: jumps, indices, amounts, and endless loops that take no time.

use super::{Amount, LoopCount, Op, Program};

/// Why a program cannot be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProgramError {
    /// A jump does not point to its matching begin or end.
    BadJump {
        /// Index of the operation.
        op: usize,
    },
    /// A timer number is not below `nr_timers`, or its period can be zero.
    BadTimer {
        /// Index of the operation.
        op: usize,
    },
    /// A fork names a task description that does not exist.
    BadFork {
        /// Index of the operation.
        op: usize,
    },
    /// A join names a task description that does not exist.
    BadJoin {
        /// Index of the operation.
        op: usize,
    },
    /// A buffer or a stride of 0 bytes.
    BadBuffer {
        /// Index of the operation.
        op: usize,
    },
    /// A uniform amount whose least value is above its greatest.
    BadAmount {
        /// Index of the operation.
        op: usize,
    },
    /// A loop runs for ever, or for more than [`TIMELESS_STEPS_MAX`] steps, and no operation in it
    /// takes time. No lane would ever leave it.
    TimelessLoop {
        /// Index of the loop's first operation.
        op: usize,
    },
}

impl ProgramError {
    /// Index of the operation.
    pub const fn op(&self) -> usize {
        let (Self::BadJump { op }
        | Self::BadTimer { op }
        | Self::BadFork { op }
        | Self::BadJoin { op }
        | Self::BadBuffer { op }
        | Self::BadAmount { op }
        | Self::TimelessLoop { op }) = self;
        *op
    }
}

/// Most steps in a row that may take no time (marks, changes of attributes, zero amounts). A real
/// program of this kind marks a few thousand records; a hostile one would hang the lane.
pub const TIMELESS_STEPS_MAX: u64 = 1_000_000;

impl std::fmt::Display for ProgramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BadJump { op } => write!(f, "operation {op}: loop begin and end do not match"),
            Self::BadTimer { op } => {
                write!(f, "operation {op}: timer unknown, or its period can be 0 (it must be > 0)")
            }
            Self::BadFork { op } => write!(f, "operation {op}: forks a task that is not described"),
            Self::BadJoin { op } => {
                write!(f, "operation {op}: waits for a task that is not described")
            }
            Self::BadBuffer { op } => {
                write!(f, "operation {op}: the buffer and its stride must have at least 1 byte")
            }
            Self::BadAmount { op } => {
                write!(
                    f,
                    "operation {op}: the least value of the uniform amount lies above its greatest"
                )
            }
            Self::TimelessLoop { op } => write!(
                f,
                "operation {op}: this loop repeats without end, or more than {TIMELESS_STEPS_MAX} \
                 times, and nothing in it takes time: put a run, sleep or timer into it"
            ),
        }
    }
}

impl std::error::Error for ProgramError {}

impl Program {
    /// Checks jumps, timers, forks and joins. `nr_specs` is the number of task descriptions.
    pub fn check(&self, nr_specs: usize) -> Result<(), ProgramError> {
        for (index, op) in self.ops.iter().enumerate() {
            match op {
                Op::LoopBegin { end, .. } => {
                    let matches = matches!(self.ops.get(*end as usize),
                        Some(Op::LoopEnd { begin }) if *begin as usize == index);
                    if !matches || (*end as usize) <= index {
                        return Err(ProgramError::BadJump { op: index });
                    }
                }
                Op::LoopEnd { begin } => {
                    let matches = matches!(self.ops.get(*begin as usize),
                        Some(Op::LoopBegin { end, .. }) if *end as usize == index);
                    if !matches {
                        return Err(ProgramError::BadJump { op: index });
                    }
                }
                Op::Timer { timer, period, .. } => {
                    let may_be_zero = match *period {
                        Amount::Constant(value) => value == 0,
                        Amount::Uniform { low, .. } => low == 0,
                        Amount::Exponential { .. } => false,
                    };
                    if *timer >= self.nr_timers || may_be_zero {
                        return Err(ProgramError::BadTimer { op: index });
                    }
                }
                Op::Fork { task } if *task as usize >= nr_specs => {
                    return Err(ProgramError::BadFork { op: index });
                }
                Op::Join { task } if *task as usize >= nr_specs => {
                    return Err(ProgramError::BadJoin { op: index });
                }
                Op::MemRun { size_bytes, stride_bytes, .. }
                    if *size_bytes == 0 || *stride_bytes == 0 =>
                {
                    return Err(ProgramError::BadBuffer { op: index });
                }
                _ => {}
            }
            if op.amount().is_some_and(|amount| !amount.is_valid()) {
                return Err(ProgramError::BadAmount { op: index });
            }
        }
        self.check_loops_take_time()
    }

    /// Refuses endless loops in which no time passes. Jumps must have been checked.
    fn check_loops_take_time(&self) -> Result<(), ProgramError> {
        // Open loops, innermost last; the first entry is the program itself.
        let mut open = vec![LoopBody::default()];
        for (index, op) in self.ops.iter().enumerate() {
            match op {
                Op::LoopBegin { .. } => open.push(LoopBody { begin: index, ..Default::default() }),
                Op::LoopEnd { begin } => {
                    let body = open.pop().unwrap_or_default();
                    let count = match self.ops.get(*begin as usize) {
                        // A loop may not end inside another one that began in it.
                        Some(Op::LoopBegin { count, .. }) if body.begin == *begin as usize => count,
                        _ => return Err(ProgramError::BadJump { op: index }),
                    };
                    let rounds = match count {
                        LoopCount::Times(times) => *times,
                        LoopCount::Forever => u64::MAX,
                    };
                    let steps = body.steps.saturating_add(1).saturating_mul(rounds);
                    if !body.takes_time() && steps > TIMELESS_STEPS_MAX {
                        return Err(ProgramError::TimelessLoop { op: *begin as usize });
                    }
                    if let Some(outer) = open.last_mut() {
                        outer.steps = outer.steps.saturating_add(steps);
                        outer.time |= body.time && rounds > 0;
                        outer.fork |= body.fork && rounds > 0;
                        outer.join |= body.join && rounds > 0;
                    }
                }
                _ => {
                    if let Some(body) = open.last_mut() {
                        body.steps = body.steps.saturating_add(1);
                        body.time |= op.takes_time();
                        body.fork |= matches!(op, Op::Fork { .. });
                        body.join |= matches!(op, Op::JoinAll | Op::Join { .. });
                    }
                }
            }
        }
        Ok(())
    }
}

/// What one round of a loop does, for [`Program::check`].
#[derive(Default)]
struct LoopBody {
    begin: usize,
    steps: u64,
    time: bool,
    fork: bool,
    join: bool,
}

impl LoopBody {
    /// Whether a round takes time. A round that forks and then waits takes the child's time.
    fn takes_time(&self) -> bool {
        self.time || (self.fork && self.join)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ProgramBuilder;

    #[test]
    fn builder_resolves_nested_loops() {
        let program = ProgramBuilder::new()
            .begin_loop(LoopCount::Forever)
            .run(1)
            .begin_loop(LoopCount::Times(3))
            .sleep(2)
            .end_loop()
            .end_loop()
            .build();
        assert_eq!(program.check(0), Ok(()));
        assert_eq!(program.ops[0], Op::LoopBegin { count: LoopCount::Forever, end: 5 });
        assert_eq!(program.ops[4], Op::LoopEnd { begin: 2 });
    }

    #[test]
    fn check_names_the_bad_operation() {
        let program = Program { ops: vec![Op::Yield, Op::LoopEnd { begin: 0 }], nr_timers: 0 };
        assert_eq!(program.check(0), Err(ProgramError::BadJump { op: 1 }));
        let fork = Program { ops: vec![Op::Fork { task: 2 }], nr_timers: 0 };
        assert_eq!(fork.check(2), Err(ProgramError::BadFork { op: 0 }));
        let empty = Amount::Uniform { low: 2, high: 1 };
        let draws = Program { ops: vec![Op::Run(empty)], nr_timers: 0 };
        assert_eq!(draws.check(0), Err(ProgramError::BadAmount { op: 0 }));
    }

    #[test]
    fn a_loop_that_never_takes_time_is_refused() {
        let looped = |count, op: Op| {
            let mut builder = ProgramBuilder::new();
            builder.begin_loop(count).op(Op::Progress).op(op).end_loop();
            builder.build().check(1)
        };
        let timeless = Err(ProgramError::TimelessLoop { op: 0 });
        assert_eq!(looped(LoopCount::Forever, Op::Run(Amount::Constant(0))), timeless);
        assert_eq!(looped(LoopCount::Forever, Op::Fork { task: 0 }), timeless);
        assert_eq!(looped(LoopCount::Times(u64::MAX), Op::Progress), timeless);
        assert_eq!(looped(LoopCount::Times(1000), Op::Progress), Ok(()));
        assert_eq!(looped(LoopCount::Forever, Op::Yield), Ok(()));
        // The run is never reached, so the outer loop spins.
        let skipped = ProgramBuilder::new()
            .begin_loop(LoopCount::Forever)
            .begin_loop(LoopCount::Times(0))
            .run(5)
            .end_loop()
            .end_loop()
            .build();
        assert_eq!(skipped.check(0), timeless);
        let begin = |end| Op::LoopBegin { count: LoopCount::Times(1), end };
        let crossed = vec![begin(2), begin(3), Op::LoopEnd { begin: 0 }, Op::LoopEnd { begin: 1 }];
        let crossed = Program { ops: crossed, nr_timers: 0 };
        assert_eq!(crossed.check(0), Err(ProgramError::BadJump { op: 2 }));
        let serial = ProgramBuilder::new()
            .begin_loop(LoopCount::Forever)
            .op(Op::Fork { task: 0 })
            .op(Op::JoinAll)
            .end_loop()
            .build();
        assert_eq!(serial.check(1), Ok(()));
    }
}
