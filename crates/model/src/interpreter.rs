// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks a program. Every lane uses this one, so that all draw the same amounts in the same order.

use crate::program::{IoDirection, LoopCount, Op, Program, TimerMode};
use crate::random::{Purpose, Stream};
use crate::{Nanos, TaskId};

/// An operation with its amounts drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Use this much CPU time.
    Run(Nanos),
    /// Be busy until this much wall time has passed.
    RunWall(Nanos),
    /// Sleep.
    Sleep(Nanos),
    /// Sleep until the timer's next period boundary.
    Timer {
        /// Timer number.
        timer: u32,
        /// Period.
        period_ns: Nanos,
        /// What happens after an overrun.
        mode: TimerMode,
    },
    /// Transfer with the block device.
    Io {
        /// Direction.
        direction: IoDirection,
        /// Bytes.
        bytes: u64,
        /// Whether the task waits for the device.
        sync: bool,
    },
    /// sched_yield.
    Yield,
    /// Create a task of this description.
    Fork {
        /// Index into the workload's tasks.
        task: u32,
    },
    /// Wait for all forked tasks.
    JoinAll,
    /// Change attributes: `ops[op]` is the [`Op::SetAttr`].
    SetAttr {
        /// Index of the operation.
        op: u32,
    },
    /// A phase starts.
    Phase(u32),
    /// One unit of progress done.
    Progress,
    /// The task ends.
    Exit,
}

impl Step {
    /// Whether a task stops using the CPU at this step of its own accord (its CPU burst ends).
    pub const fn ends_burst(&self) -> bool {
        match self {
            Self::Sleep(_) | Self::Timer { .. } | Self::JoinAll | Self::Exit => true,
            Self::Io { sync, .. } => *sync,
            _ => false,
        }
    }
}

/// Position in a program: program counter, loop counters, random stream.
#[derive(Clone, Debug)]
pub struct Interpreter {
    pc: u32,
    /// Rounds left of each open loop, innermost last.
    loops: Vec<LoopCount>,
    stream: Stream,
}

impl Interpreter {
    /// At the start of a program, for task number `task` of the run with `seed`.
    pub fn new(seed: u64, task: TaskId) -> Self {
        Self {
            pc: 0,
            loops: Vec::new(),
            stream: Stream::new(seed, Purpose::Program, u64::from(task.0)),
        }
    }

    /// The next step. After [`Step::Exit`] it is `Exit` for ever.
    pub fn next(&mut self, program: &Program) -> Step {
        loop {
            let index = self.pc;
            let Some(op) = program.ops.get(index as usize) else { return Step::Exit };
            self.pc += 1;
            match op {
                Op::LoopBegin { count, end } => match count {
                    LoopCount::Times(0) => self.pc = end + 1,
                    LoopCount::Times(_) | LoopCount::Forever => self.loops.push(*count),
                },
                Op::LoopEnd { begin } => match self.loops.last_mut() {
                    Some(LoopCount::Times(left)) if *left <= 1 => {
                        self.loops.pop();
                    }
                    Some(LoopCount::Times(left)) => {
                        *left -= 1;
                        self.pc = begin + 1;
                    }
                    Some(LoopCount::Forever) => self.pc = begin + 1,
                    None => panic!("program was not checked: loop end without begin"),
                },
                Op::Run(amount) => return Step::Run(amount.draw(&mut self.stream)),
                Op::RunWall(amount) => return Step::RunWall(amount.draw(&mut self.stream)),
                Op::Sleep(amount) => return Step::Sleep(amount.draw(&mut self.stream)),
                Op::Timer { timer, period, mode } => {
                    // A drawn period of 0 would make the task spin in no time.
                    let period_ns = period.draw(&mut self.stream).max(1);
                    return Step::Timer { timer: *timer, period_ns, mode: *mode };
                }
                Op::Io { direction, bytes, sync } => {
                    let bytes = bytes.draw(&mut self.stream);
                    return Step::Io { direction: *direction, bytes, sync: *sync };
                }
                Op::Yield => return Step::Yield,
                Op::Fork { task } => return Step::Fork { task: *task },
                Op::JoinAll => return Step::JoinAll,
                Op::SetAttr(_) => return Step::SetAttr { op: index },
                Op::Phase(phase) => return Step::Phase(*phase),
                Op::Progress => return Step::Progress,
                Op::Exit => {
                    self.pc = index;
                    return Step::Exit;
                }
            }
        }
    }

    /// CPU time until the program next gives up the CPU of its own accord, drawn on a copy so that
    /// nothing moves. `None` when it does not within `steps_max` steps.
    pub fn peek_burst(&self, program: &Program, steps_max: u32) -> Option<Nanos> {
        let mut copy = self.clone();
        let mut burst: Nanos = 0;
        for _ in 0..steps_max {
            match copy.next(program) {
                Step::Run(ns) | Step::RunWall(ns) => burst = burst.saturating_add(ns),
                step if step.ends_burst() => return Some(burst),
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ProgramBuilder;

    fn steps(program: &Program, count: usize) -> Vec<Step> {
        let mut interpreter = Interpreter::new(1, TaskId(0));
        (0..count).map(|_| interpreter.next(program)).collect()
    }

    #[test]
    fn loops_run_as_often_as_they_say() {
        let program = ProgramBuilder::new()
            .begin_loop(LoopCount::Times(2))
            .run(5)
            .begin_loop(LoopCount::Times(0))
            .sleep(9)
            .end_loop()
            .end_loop()
            .build();
        assert_eq!(steps(&program, 4), [Step::Run(5), Step::Run(5), Step::Exit, Step::Exit]);
    }

    #[test]
    fn peeking_moves_nothing() {
        let program = ProgramBuilder::new().run(3).run(4).sleep(1).run(8).build();
        let mut interpreter = Interpreter::new(1, TaskId(0));
        assert_eq!(interpreter.peek_burst(&program, 100), Some(7));
        assert_eq!(interpreter.next(&program), Step::Run(3));
        assert_eq!(interpreter.peek_burst(&program, 100), Some(4));
        let endless =
            ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1).end_loop().build();
        assert_eq!(Interpreter::new(1, TaskId(0)).peek_burst(&endless, 100), None);
    }
}
