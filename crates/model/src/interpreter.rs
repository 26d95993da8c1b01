// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks a program. Every lane uses this one, so that all draw the same amounts in the same order.

use crate::program::{IoDirection, LoopCount, MemAccess, MemPattern, Op, Program, TimerMode};
use crate::random::{Purpose, Stream};
use crate::{Memory, Nanos, ObjectId, TaskId};

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
    /// Wait for all forked tasks of a description.
    Join {
        /// Index into the workload's tasks.
        task: u32,
    },
    /// Lock a mutex.
    Lock {
        /// The mutex.
        object: ObjectId,
    },
    /// Unlock a mutex.
    Unlock {
        /// The mutex.
        object: ObjectId,
    },
    /// Release the mutex, wait for a signal, lock the mutex again.
    Wait {
        /// The condition variable.
        condvar: ObjectId,
        /// The mutex.
        mutex: ObjectId,
    },
    /// Wake one that waits.
    Signal {
        /// The condition variable.
        object: ObjectId,
    },
    /// Wake all that wait.
    Broadcast {
        /// The condition variable.
        object: ObjectId,
    },
    /// Signal, then wait.
    Sync {
        /// The condition variable.
        condvar: ObjectId,
        /// The mutex.
        mutex: ObjectId,
    },
    /// Wait for the other parties.
    Barrier {
        /// The barrier.
        object: ObjectId,
    },
    /// Take one from a semaphore.
    SemWait {
        /// The semaphore.
        object: ObjectId,
    },
    /// Add one to a semaphore.
    SemPost {
        /// The semaphore.
        object: ObjectId,
    },
    /// Wait for the next resume.
    Suspend {
        /// The event.
        object: ObjectId,
    },
    /// Wake all that are suspended.
    Resume {
        /// The event.
        object: ObjectId,
    },
    /// Touch memory in order.
    Mem {
        /// Bytes.
        bytes: u64,
    },
    /// Touch a buffer.
    MemRun {
        /// Kind of access.
        access: MemAccess,
        /// Order of the accesses.
        pattern: MemPattern,
        /// Size of the buffer.
        size_bytes: u64,
        /// Distance between accesses.
        stride_bytes: u64,
        /// Number of accesses.
        count: u64,
    },
    /// Write a message.
    Send {
        /// The channel.
        channel: ObjectId,
        /// Bytes.
        bytes: u64,
    },
    /// Read this many bytes.
    Receive {
        /// The channel.
        channel: ObjectId,
        /// Bytes.
        bytes: u64,
    },
    /// Wait until one object of a set is ready.
    WaitAny {
        /// Index into the workload's wait sets.
        set: u32,
    },
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
    /// Whether a task stops using the CPU at this step of its own accord (its CPU burst ends). Of
    /// the steps that wait for another task only those count that are there to wait: a lock is
    /// mostly free, and a channel mostly has room.
    pub const fn ends_burst(&self) -> bool {
        match self {
            Self::Sleep(_)
            | Self::Timer { .. }
            | Self::JoinAll
            | Self::Join { .. }
            | Self::Wait { .. }
            | Self::Sync { .. }
            | Self::Barrier { .. }
            | Self::SemWait { .. }
            | Self::Suspend { .. }
            | Self::Receive { .. }
            | Self::WaitAny { .. }
            | Self::Exit => true,
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
    // Without a call: the engine then goes on from each operation without a step in between.
    #[inline(always)]
    pub fn next(&mut self, program: &Program) -> Step {
        loop {
            let index = self.pc;
            let Some(op) = program.ops.get(index as usize) else { return Step::Exit };
            self.pc += 1;
            match op {
                Op::LoopBegin { count, end } => match count {
                    LoopCount::Times(0) => self.pc = end + 1,
                    LoopCount::Times(_) | LoopCount::Forever => self.enter_loop(*count),
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
                Op::Exit => {
                    self.pc = index;
                    return Step::Exit;
                }
                // The two of which most programs consist.
                Op::Run(amount) => return Step::Run(amount.draw(&mut self.stream)),
                Op::Sleep(amount) => return Step::Sleep(amount.draw(&mut self.stream)),
                op => return drawn(op, index, &mut self.stream),
            }
        }
    }

    // Out of line: most programs enter their loop once.
    #[inline(never)]
    fn enter_loop(&mut self, count: LoopCount) {
        self.loops.push(count);
    }

    /// CPU time until the program next gives up the CPU of its own accord, on a machine with this
    /// `memory`, drawn on a copy so that nothing moves. `None` when it does not within `steps_max`
    /// steps.
    pub fn peek_burst(&self, program: &Program, memory: &Memory, steps_max: u32) -> Option<Nanos> {
        let mut copy = self.clone();
        let mut burst: Nanos = 0;
        for _ in 0..steps_max {
            match copy.next(program) {
                Step::Run(ns) | Step::RunWall(ns) => burst = burst.saturating_add(ns),
                step if step.ends_burst() => return Some(burst),
                step => burst = burst.saturating_add(memory.cpu_ns(&step)),
            }
        }
        None
    }
}

/// The step of any other operation; `index` is its place in the program.
#[inline(never)]
fn drawn(op: &Op, index: u32, stream: &mut Stream) -> Step {
    match *op {
        Op::RunWall(amount) => Step::RunWall(amount.draw(stream)),
        // A drawn period of 0 would make the task spin in no time.
        Op::Timer { timer, period, mode } => {
            Step::Timer { timer, period_ns: period.draw(stream).max(1), mode }
        }
        Op::Io { direction, bytes, sync } => {
            Step::Io { direction, bytes: bytes.draw(stream), sync }
        }
        Op::Yield => Step::Yield,
        Op::Fork { task } => Step::Fork { task },
        Op::JoinAll => Step::JoinAll,
        Op::Join { task } => Step::Join { task },
        Op::Lock { object } => Step::Lock { object },
        Op::Unlock { object } => Step::Unlock { object },
        Op::Wait { condvar, mutex } => Step::Wait { condvar, mutex },
        Op::Signal { object } => Step::Signal { object },
        Op::Broadcast { object } => Step::Broadcast { object },
        Op::Sync { condvar, mutex } => Step::Sync { condvar, mutex },
        Op::Barrier { object } => Step::Barrier { object },
        Op::SemWait { object } => Step::SemWait { object },
        Op::SemPost { object } => Step::SemPost { object },
        Op::Suspend { object } => Step::Suspend { object },
        Op::Resume { object } => Step::Resume { object },
        Op::Mem { bytes } => Step::Mem { bytes: bytes.draw(stream) },
        Op::MemRun { access, pattern, size_bytes, stride_bytes, count } => {
            let count = count.draw(stream);
            Step::MemRun { access, pattern, size_bytes, stride_bytes, count }
        }
        Op::Send { channel, bytes } => Step::Send { channel, bytes: bytes.draw(stream) },
        Op::Receive { channel, bytes } => Step::Receive { channel, bytes: bytes.draw(stream) },
        Op::WaitAny { set } => Step::WaitAny { set },
        Op::SetAttr(_) => Step::SetAttr { op: index },
        Op::Phase(phase) => Step::Phase(phase),
        Op::Progress => Step::Progress,
        Op::Run(_) | Op::Sleep(_) | Op::LoopBegin { .. } | Op::LoopEnd { .. } | Op::Exit => {
            unreachable!("the interpreter has handled these")
        }
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
        assert_eq!(interpreter.peek_burst(&program, &Memory::default(), 100), Some(7));
        assert_eq!(interpreter.next(&program), Step::Run(3));
        assert_eq!(interpreter.peek_burst(&program, &Memory::default(), 100), Some(4));
        let endless =
            ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1).end_loop().build();
        assert_eq!(
            Interpreter::new(1, TaskId(0)).peek_burst(&endless, &Memory::default(), 100),
            None
        );
    }
}
