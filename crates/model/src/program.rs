// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a task does: a program of operations, the same for every lane.
//!
//! A program is a flat list; loops are jumps, so that an interpreter is a program counter and a stack
//! of loop counters. Both the simulator and the host player interpret it and draw the same random
//! amounts in the same order (stream: seed, [`Purpose::Program`], task number).

use crate::random::Stream;
use crate::{Nanos, SchedAttr};

#[allow(unused_imports)]
use crate::random::Purpose;

/// An amount (of time in ns, or of bytes), constant or drawn anew each time the operation runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// Always this.
    Constant(u64),
    /// Uniform, both ends included.
    Uniform {
        /// Least value.
        low: u64,
        /// Greatest value.
        high: u64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: u64,
    },
}

impl Amount {
    /// Draws a value.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        match *self {
            Self::Constant(value) => value,
            Self::Uniform { low, high } => stream.between(low, high),
            Self::Exponential { mean } => stream.exponential(mean),
        }
    }
}

/// How often a loop runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopCount {
    /// This many times (0 skips the body).
    Times(u64),
    /// Until the run ends.
    Forever,
}

/// How the deadline of a periodic timer moves on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerMode {
    /// rt-app's default: if the period has passed already, the next one counts from now.
    Relative,
    /// Period boundaries stay where they were planned, however late the task is.
    Absolute,
}

/// Direction of a transfer with the block device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoDirection {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// One operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Uses this much CPU time (ns).
    Run(Amount),
    /// Is busy until this much wall time (ns) has passed since the operation began.
    RunWall(Amount),
    /// Sleeps this long (ns).
    Sleep(Amount),
    /// Sleeps until the next period boundary of timer `timer` (numbered within the task).
    Timer {
        /// Timer number, an index below the task's count of timers.
        timer: u32,
        /// Period (ns), > 0.
        period: Amount,
        /// What happens after an overrun.
        mode: TimerMode,
    },
    /// Transfers bytes with the block device. `sync`: waits for the device (O_SYNC);
    /// otherwise copies through the page cache and goes on.
    Io {
        /// Direction.
        direction: IoDirection,
        /// Bytes of this transfer.
        bytes: Amount,
        /// Whether the task waits for the device.
        sync: bool,
    },
    /// Calls sched_yield(2).
    Yield,
    /// Creates a task from the task description with this index in [`crate::Workload::tasks`].
    Fork {
        /// Index of the description.
        task: u32,
    },
    /// Waits until every task that this task forked has exited.
    JoinAll,
    /// Ends the task.
    Exit,
    /// Changes the task's own scheduling attributes (sched_setattr, sched_setaffinity).
    SetAttr(Box<SchedAttr>),
    /// Starts a loop; `end` is the index of its [`Op::LoopEnd`].
    LoopBegin {
        /// Repetitions.
        count: LoopCount,
        /// Index of the matching [`Op::LoopEnd`].
        end: u32,
    },
    /// Ends a loop; `begin` is the index of its [`Op::LoopBegin`].
    LoopEnd {
        /// Index of the matching [`Op::LoopBegin`].
        begin: u32,
    },
    /// A phase starts; index into [`crate::TaskSpec::phases`]. Takes no time; goes to the trace.
    Phase(u32),
    /// One more unit of progress done (a record of study S0). Takes no time; goes to the trace.
    Progress,
}

/// A task's operations. A program that runs off its end exits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Operations in order; jumps are resolved.
    pub ops: Vec<Op>,
    /// Number of periodic timers the operations name.
    pub nr_timers: u32,
}

/// Why a program cannot be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProgramError {
    /// A jump does not point at its counterpart.
    BadJump {
        /// Index of the operation.
        op: usize,
    },
    /// A timer number is not below `nr_timers`, or its period can be zero.
    BadTimer {
        /// Index of the operation.
        op: usize,
    },
    /// A fork names no task description.
    BadFork {
        /// Index of the operation.
        op: usize,
    },
}

impl std::fmt::Display for ProgramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BadJump { op } => write!(f, "operation {op}: loop begin and end do not match"),
            Self::BadTimer { op } => {
                write!(f, "operation {op}: timer unknown, or its period can be 0 (it must be > 0)")
            }
            Self::BadFork { op } => write!(f, "operation {op}: forks a task that is not described"),
        }
    }
}

impl std::error::Error for ProgramError {}

impl Program {
    /// Checks jumps, timers and forks; `nr_specs` is the number of task descriptions.
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
                _ => {}
            }
        }
        Ok(())
    }
}

/// Builds programs without counting indices by hand.
#[derive(Default, Debug)]
pub struct ProgramBuilder {
    program: Program,
    open_loops: Vec<u32>,
}

impl ProgramBuilder {
    /// An empty program.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an operation (not a loop mark).
    pub fn op(&mut self, op: Op) -> &mut Self {
        if let Op::Timer { timer, .. } = op {
            self.program.nr_timers = self.program.nr_timers.max(timer + 1);
        }
        self.program.ops.push(op);
        self
    }

    /// Appends `Run` of a constant CPU time.
    pub fn run(&mut self, ns: Nanos) -> &mut Self {
        self.op(Op::Run(Amount::Constant(ns)))
    }

    /// Appends `Sleep` of a constant time.
    pub fn sleep(&mut self, ns: Nanos) -> &mut Self {
        self.op(Op::Sleep(Amount::Constant(ns)))
    }

    /// Opens a loop.
    pub fn begin_loop(&mut self, count: LoopCount) -> &mut Self {
        self.open_loops.push(self.program.ops.len() as u32);
        self.program.ops.push(Op::LoopBegin { count, end: 0 });
        self
    }

    /// Closes the innermost loop. Panics if none is open.
    pub fn end_loop(&mut self) -> &mut Self {
        let begin = self.open_loops.pop().expect("end_loop without begin_loop");
        let end_index = self.program.ops.len() as u32;
        if let Op::LoopBegin { end, .. } = &mut self.program.ops[begin as usize] {
            *end = end_index;
        }
        self.program.ops.push(Op::LoopEnd { begin });
        self
    }

    /// The program. Panics if a loop is still open.
    pub fn build(&mut self) -> Program {
        assert!(self.open_loops.is_empty(), "a loop is still open");
        std::mem::take(&mut self.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
