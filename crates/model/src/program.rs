// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a task does: a program of operations, the same for every lane.
//!
//! A program is a flat list; loops are jumps, so that an interpreter is a program counter and a
//! stack of loop counters. Both the simulator and the host player interpret it and draw the same
//! random amounts in the same order (stream: seed, [`Purpose::Program`], task number).

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
    /// Whether it has a value to draw: a uniform range must not be empty.
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
    /// A uniform amount whose least value lies above its greatest.
    BadAmount {
        /// Index of the operation.
        op: usize,
    },
    /// A loop runs for ever, or more than [`TIMELESS_STEPS_MAX`] steps, and no operation in it
    /// takes time: no lane would ever get past it.
    TimelessLoop {
        /// Index of the loop's begin.
        op: usize,
    },
}

/// Most steps in a row that may take no time at all (marks, changes of attributes, zero amounts).
/// A real program of this size marks a few thousand records; a hostile one hangs the lane.
pub const TIMELESS_STEPS_MAX: u64 = 1_000_000;

impl std::fmt::Display for ProgramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BadJump { op } => write!(f, "operation {op}: loop begin and end do not match"),
            Self::BadTimer { op } => {
                write!(f, "operation {op}: timer unknown, or its period can be 0 (it must be > 0)")
            }
            Self::BadFork { op } => write!(f, "operation {op}: forks a task that is not described"),
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
            if op.amount().is_some_and(|amount| !amount.is_valid()) {
                return Err(ProgramError::BadAmount { op: index });
            }
        }
        self.check_loops_take_time()
    }

    /// Refuses loops that spin without time passing in any lane. Jumps are checked already.
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
                        body.join |= matches!(op, Op::JoinAll);
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
    /// A round that forks and then waits takes the child's time.
    fn takes_time(&self) -> bool {
        self.time || (self.fork && self.join)
    }
}

impl Op {
    /// The amount that the operation draws, if it has one.
    pub const fn amount(&self) -> Option<&Amount> {
        match self {
            Self::Run(amount) | Self::RunWall(amount) | Self::Sleep(amount) => Some(amount),
            Self::Timer { period, .. } => Some(period),
            Self::Io { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Whether the operation uses CPU time or waits. Fork counts as none, so that an endless loop
    /// of forks, a fork bomb, is refused; the wait for a forked task is counted by the caller.
    const fn takes_time(&self) -> bool {
        match self {
            Self::Run(amount) | Self::RunWall(amount) | Self::Sleep(amount) => {
                !amount.is_always_zero()
            }
            Self::Timer { .. } | Self::Io { .. } | Self::Yield | Self::Exit => true,
            _ => false,
        }
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
