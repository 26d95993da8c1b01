// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds programs without computing the targets of jumps by hand.

use super::{Amount, LoopCount, Op, Program};
use crate::{Nanos, ObjectId};

/// Builds a program without computing the targets of jumps by hand.
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

    /// Appends an operation that is not the begin or end of a loop.
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

    /// Appends `Lock`.
    pub fn lock(&mut self, object: ObjectId) -> &mut Self {
        self.op(Op::Lock { object })
    }

    /// Appends `Unlock`.
    pub fn unlock(&mut self, object: ObjectId) -> &mut Self {
        self.op(Op::Unlock { object })
    }

    /// Appends `Send` of a message of constant size.
    pub fn send(&mut self, channel: ObjectId, bytes: u64) -> &mut Self {
        self.op(Op::Send { channel, bytes: Amount::Constant(bytes) })
    }

    /// Appends `Receive` of a constant number of bytes.
    pub fn receive(&mut self, channel: ObjectId, bytes: u64) -> &mut Self {
        self.op(Op::Receive { channel, bytes: Amount::Constant(bytes) })
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

    /// Returns the program. Panics if a loop is still open.
    pub fn build(&mut self) -> Program {
        assert!(self.open_loops.is_empty(), "a loop is still open");
        std::mem::take(&mut self.program)
    }
}
