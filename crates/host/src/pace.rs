// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often the lab's own helpers look while a run is measured.
//!
//! On a machine with other CPUs the launcher and the recorder work beside the run and may look
//! often. On a machine with a single CPU, such as a guest with counted time, every look takes the
//! CPU from a task and makes the scheduler choose again: there they look as seldom as their
//! buffers allow.

use schedlab_model::{Nanos, Op, Workload};

/// Rounds of the helpers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Time between two rounds that empty the recorder's rings and the tasks' marks, ns.
    pub round_ns: Nanos,
    /// Time between two looks of the launcher for failed tasks, ns; exits and releases wake it
    /// anyway.
    pub look_ns: Nanos,
    /// Records of each CPU's ring, a power of two; `None`: by the number of CPUs.
    pub ring_size: Option<u64>,
    /// Length at which the files of a run begin anew, bytes.
    pub file_len: u64,
    /// Time that every instruction takes, ns, where the clock counts instructions: then work is a
    /// number of them, and no task need look at a clock.
    pub instruction_ns: Option<Nanos>,
}

impl Pace {
    /// For a machine where others have room. The smallest ring holds 40 ms at 1.5 million events a
    /// second.
    pub const LIVE: Self = Self {
        round_ns: 20_000_000,
        look_ns: 100_000_000,
        ring_size: None,
        file_len: 16 << 20,
        instruction_ns: None,
    };

    /// For a guest that the run has for itself: rings of a million records hold some ten seconds
    /// even of tasks that do nothing but wake each other. The tasks' rings of marks are smaller, so
    /// tasks that write marks keep short rounds. Its files lie in its memory, where those of a
    /// hundred tasks must have room; short ones also cost every task the same, whoever came before.
    /// The CPUs share the room for records.
    pub fn quiet(workload: &Workload, nr_cpus: u32) -> Self {
        const RECORDS: u64 = 1 << 20;
        const MARKED_NS: Nanos = 100_000_000;
        const SELDOM_NS: Nanos = 2_000_000_000;
        let marks = |op: &Op| {
            matches!(op, Op::Yield | Op::Progress | Op::Phase(_) | Op::JoinAll | Op::Join { .. })
                || op.uses_objects()
        };
        let is_marked = workload.tasks.iter().any(|task| task.program.ops.iter().any(marks));
        let round_ns = if is_marked { MARKED_NS } else { SELDOM_NS };
        Self {
            round_ns,
            look_ns: SELDOM_NS,
            ring_size: Some(RECORDS / u64::from(nr_cpus.max(1)).next_power_of_two()),
            file_len: 256 << 10,
            instruction_ns: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::{Amount, Program, TaskSpec};

    #[test]
    fn only_tasks_that_mark_make_the_rounds_short() {
        let workload = |ops: Vec<Op>| {
            let program = Program { ops, nr_timers: 0 };
            Workload::new("w", vec![TaskSpec::new("t", program)])
        };
        let run = || Op::Run(Amount::Constant(1));
        assert_eq!(Pace::quiet(&workload(vec![run()]), 1).round_ns, 2_000_000_000);
        assert_eq!(Pace::quiet(&workload(vec![run(), Op::Yield]), 1).round_ns, 100_000_000);
        assert_eq!(Pace::quiet(&workload(vec![run()]), 1).ring_size, Some(1 << 20));
        assert_eq!(Pace::quiet(&workload(vec![run()]), 6).ring_size, Some(1 << 17));
    }
}
