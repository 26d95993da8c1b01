// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often schedlab's own helpers check while a run is measured.
//!
//! On a machine with free CPUs, launcher and recorder work next to the run and may check often. If
//! the run uses all CPUs, every check takes the CPU from a task and makes the scheduler pick again.
//! The same holds on a machine with one CPU, such as a guest with counted time. There they check as
//! rarely as their buffers allow.

use crate::session;
use schedlab_model::{CpuMask, Nanos, Op, Program, Workload};

/// Instructions of a round of the recorder's loop (`make_longer` in bpf/recorder.bpf.c).
const JITTER_ROUND_INSTRUCTIONS: u64 = 5;
/// The most rounds of that loop (REC_JITTER_ROUNDS_MAX in bpf/recorder.h).
pub const JITTER_ROUNDS_MAX: u32 = 1024;

/// The intervals of the helpers, and the sizes of their buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Time (ns) between two rounds that empty the recorder's rings and the tasks' marks.
    pub round_ns: Nanos,
    /// Time (ns) between two checks of the launcher for failed tasks. Exits and releases wake it
    /// anyway.
    pub look_ns: Nanos,
    /// How long nobody of the run does anything before the release (ns).
    pub calm_ns: Nanos,
    /// When a run that has this calm before it may begin; `None`: at any tick.
    pub beat: Option<Beat>,
    /// Records of each CPU's ring, a power of two; `None`: by the number of CPUs.
    pub ring_size: Option<u64>,
    /// Records and marks that are kept before they are converted while the run goes on.
    pub kept_max: usize,
    /// Length (bytes) after which transfers to files of a run start again at the beginning.
    pub file_len: u64,
    /// Time (ns) of every instruction, if the clock counts instructions: work is then a number of
    /// instructions, and no task needs to read a clock.
    pub instruction_ns: Option<Nanos>,
    /// The greatest number of rounds of a loop by which the recorder makes a switch longer.
    pub switch_jitter_rounds: u32,
}

/// Times at equal distances at which a run may begin (CLOCK_MONOTONIC, ns).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beat {
    /// One of them.
    pub at_ns: u64,
    /// Their distance, >= 1.
    pub period_ns: u64,
    /// When the kernel will do something that should not fall into a run, or up to 3 s later; 0:
    /// nothing.
    pub avoided_ns: u64,
}

impl Beat {
    /// The first of them from `ns` on. What is avoided comes some seconds after it, or before it.
    pub fn first_from(&self, ns: u64) -> u64 {
        const BEFORE_NS: u64 = 6_000_000_000;
        const AFTER_NS: u64 = 3_000_000_000;
        let first = |ns: u64| {
            let nr = ns.saturating_sub(self.at_ns).div_ceil(self.period_ns);
            self.at_ns + nr * self.period_ns
        };
        let at = first(ns);
        let is_far = at + BEFORE_NS < self.avoided_ns || self.avoided_ns + AFTER_NS < at;
        if is_far { at } else { first(self.avoided_ns + AFTER_NS) }
    }
}

impl Pace {
    /// The pace with counted time, and with switches that take up to `jitter_ns` longer.
    pub fn counted(self, instruction_ns: Nanos, jitter_ns: Nanos) -> Self {
        let round_ns = (instruction_ns * JITTER_ROUND_INSTRUCTIONS).max(1);
        let rounds = jitter_ns.div_ceil(round_ns).min(JITTER_ROUNDS_MAX.into());
        Self { instruction_ns: Some(instruction_ns), switch_jitter_rounds: rounds as u32, ..self }
    }

    /// Whether nobody but the run uses the machine: a guest.
    pub fn has_machine(&self) -> bool {
        self.calm_ns > 0
    }

    /// The pace for a machine with free CPUs. The smallest ring has room for 40 ms at 1.5 million
    /// events per second.
    pub const LIVE: Self = Self {
        round_ns: 20_000_000,
        look_ns: 100_000_000,
        calm_ns: 0,
        beat: None,
        ring_size: None,
        kept_max: 0,
        file_len: 16 << 20,
        instruction_ns: None,
        switch_jitter_rounds: 0,
    };

    /// The pace for a run on `cpus` of this machine. `workload` is `None` for a program, which
    /// writes no marks.
    pub fn on_this_machine(workload: Option<&Workload>, cpus: &CpuMask) -> Self {
        let helpers = session::helper_cpus(cpus);
        Self::beside(workload, helpers.weight(), !helpers.and(cpus).is_empty())
    }

    /// The pace for helpers on `nr_cpus` CPUs, which the run uses too if `is_shared`. Two threads
    /// that each wake 50 times a second cause most switches of a task that is alone on a CPU. On
    /// many CPUs they disturb few of the tasks, and long rings would take too much memory.
    fn beside(workload: Option<&Workload>, nr_cpus: u32, is_shared: bool) -> Self {
        const FEW_CPUS: u32 = 16;
        if !is_shared
            || nr_cpus > FEW_CPUS
            || workload.is_some_and(|of| of.tasks.iter().any(|task| has_marks(&task.program)))
        {
            return Self::LIVE;
        }
        Self {
            round_ns: 200_000_000,
            look_ns: 1_000_000_000,
            ring_size: Some(1 << 19),
            kept_max: 1 << 18,
            ..Self::LIVE
        }
    }

    /// The pace for a guest that only the run uses: a round takes the CPU from the run for 0.7 ms
    /// or more. Rings of a million records have room for some ten seconds, even for tasks that only
    /// wake each other. A task whose smaller ring of marks is half full asks for a round. Files are
    /// in the guest's memory, which must have room for those of a hundred tasks; short files also
    /// cost every task the same. The CPUs share the room for records.
    pub fn quiet(nr_cpus: u32) -> Self {
        const SELDOM_NS: Nanos = 5_000_000_000;
        // A fair server's period (1 s), and memory that the setup has left (5 s), are over. The
        // kernel renews its random key after half of its uptime: soon before such a run, and not
        // before its fifth second. An idle guest with counted time skips this time.
        const CALM_NS: Nanos = 13_000_000_000;
        Self {
            round_ns: SELDOM_NS,
            look_ns: SELDOM_NS,
            calm_ns: CALM_NS,
            beat: None,
            ring_size: Some(Self::quiet_ring_size(nr_cpus)),
            kept_max: 1 << 20,
            file_len: 256 << 10,
            instruction_ns: None,
            switch_jitter_rounds: 0,
        }
    }

    /// Records of each CPU's ring in such a guest.
    pub fn quiet_ring_size(nr_cpus: u32) -> u64 {
        const RECORDS: u64 = 1 << 20;
        RECORDS / u64::from(nr_cpus.max(1)).next_power_of_two()
    }
}

/// Whether a task with this program writes marks, for which its ring has little room.
pub(crate) fn has_marks(program: &Program) -> bool {
    program.ops.iter().any(|op| match op {
        Op::Progress | Op::Phase(_) | Op::Yield | Op::JoinAll | Op::Join { .. } => true,
        op => op.uses_objects(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::{Amount, TaskSpec};

    fn workload(ops: Vec<Op>) -> Workload {
        let program = Program { ops, nr_timers: 0 };
        Workload::new("w", vec![TaskSpec::new("t", program)])
    }

    fn run() -> Op {
        Op::Run(Amount::Constant(1))
    }

    #[test]
    fn helpers_on_the_cpus_of_a_run_look_seldom() {
        let (plain, marked) = (workload(vec![run()]), workload(vec![run(), Op::Yield]));
        let round = |of, nr_cpus, is_shared| Pace::beside(of, nr_cpus, is_shared).round_ns;
        assert_eq!(round(Some(&plain), 2, true), 200_000_000);
        assert_eq!(round(None, 2, true), 200_000_000);
        // A longer round gains nothing, or the ring would be too small.
        assert_eq!(round(Some(&plain), 2, false), Pace::LIVE.round_ns);
        assert_eq!(round(Some(&plain), 64, true), Pace::LIVE.round_ns);
        assert_eq!(round(Some(&marked), 2, true), Pace::LIVE.round_ns);
    }

    #[test]
    fn beats_come_at_equal_distances() {
        const S: u64 = 1_000_000_000;
        let beat = Beat { at_ns: 10 * S, period_ns: 3 * S, avoided_ns: 30 * S };
        let first = |from: u64| beat.first_from(from * S) / S;
        assert_eq!([0, 10, 11, 13, 14].map(first), [10, 10, 13, 13, 16]);
        assert_eq!([22, 23, 33, 34, 35].map(first), [22, 34, 34, 34, 37]);
    }

    #[test]
    fn a_ring_holds_what_comes_in_a_round() {
        const EVENTS_PER_S: u64 = 1_500_000;
        let pace = Pace::beside(None, 2, true);
        let come = pace.round_ns / 1_000_000 * EVENTS_PER_S / 1_000;
        assert!(pace.ring_size.is_some_and(|size| size > come && size.is_power_of_two()));
    }
}
