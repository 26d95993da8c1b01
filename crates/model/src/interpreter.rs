// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks through a program. All lanes use this interpreter, so all draw the same amounts in the
//! same order.

use crate::program::{LoopCount, Op, Program, Step};
use crate::random::{Purpose, Stream};
use crate::{Memory, Nanos, TaskId};

/// A position in a program: program counter, loop counters, random stream.
#[derive(Clone, Debug)]
pub struct Interpreter {
    pc: u32,
    /// Remaining rounds of each open loop, innermost last.
    loops: Vec<LoopCount>,
    stream: Stream,
}

impl Interpreter {
    /// The start of a program, for task number `task` of the run with `seed`.
    pub fn new(seed: u64, task: TaskId) -> Self {
        Self {
            pc: 0,
            loops: Vec::new(),
            stream: Stream::new(seed, Purpose::Program, u64::from(task.0)),
        }
    }

    /// Number of the operation that comes next. It is not greater than before if a loop has begun
    /// again.
    pub fn position(&self) -> u32 {
        self.pc
    }

    /// Returns the next step. After [`Step::Exit`] it always returns `Exit`.
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
                op => return op.draw(index, &mut self.stream),
            }
        }
    }

    // Out of line: most programs enter their loop once.
    #[inline(never)]
    fn enter_loop(&mut self, count: LoopCount) {
        self.loops.push(count);
    }

    /// Returns the CPU time (ns) that the program uses until it next blocks, yields or exits, on a
    /// machine with this `memory`. It draws from a copy, so the position does not change. `None` if
    /// the burst does not end within `steps_max` steps.
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
