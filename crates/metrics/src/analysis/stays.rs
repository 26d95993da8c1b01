// SPDX-License-Identifier: MIT OR Apache-2.0
//! A log of what each CPU did, read when a wait ends: the last stays one by one, earlier ones as
//! sums over blocks.
//!
//! Memory: up to [`STAYS_MAX`] stays and [`BLOCKS_MAX`] blocks for each CPU. With more,
//! neighbouring blocks are joined, so older parts of the log are coarser. A block names at most
//! [`TASKS_MAX`] tasks.

use super::follow::{Follower, Runs, Turn};
use schedlab_model::{CpuId, Nanos, TaskId};
use std::collections::VecDeque;

/// Maximum number of single stays in the log of a CPU.
pub const STAYS_MAX: usize = 512;
/// Number of stays in a block.
const BLOCK: usize = 256;
/// Maximum number of blocks of a CPU.
const BLOCKS_MAX: usize = 128;
/// Maximum number of tasks that a block names: those that ran longest.
const TASKS_MAX: usize = 256;

/// What one CPU did over many stays.
#[derive(Clone, Debug, Default)]
struct Block {
    from: Nanos,
    to: Nanos,
    /// Each task once, with its time.
    tasks: Vec<(TaskId, Nanos)>,
    idle_ns: Nanos,
    /// Time that is unknown, or belongs to unnamed tasks.
    unknown_ns: Nanos,
}

impl Block {
    fn add(&mut self, runs: Runs, ns: Nanos) {
        match runs {
            Runs::Idle => self.idle_ns += ns,
            Runs::Unknown => self.unknown_ns += ns,
            Runs::Task(task) => match self.tasks.iter_mut().find(|(known, _)| *known == task) {
                Some((_, sum)) => *sum += ns,
                None => self.tasks.push((task, ns)),
            },
        }
    }

    /// Forgets the names of all but the tasks that ran longest.
    fn trim(&mut self) {
        if self.tasks.len() > TASKS_MAX {
            self.tasks.sort_by_key(|(task, ns)| (std::cmp::Reverse(*ns), *task));
            self.unknown_ns += self.tasks.drain(TASKS_MAX..).map(|(_, ns)| ns).sum::<Nanos>();
        }
    }

    /// Joins this block with the next one.
    fn join(&mut self, next: &Self) {
        debug_assert_eq!(self.to, next.from, "blocks leave no gap");
        self.to = next.to;
        self.idle_ns += next.idle_ns;
        self.unknown_ns += next.unknown_ns;
        next.tasks.iter().for_each(|(task, ns)| self.add(Runs::Task(*task), *ns));
        self.trim();
    }
}

/// The log of one CPU.
#[derive(Clone, Debug, Default)]
struct Log {
    blocks: VecDeque<Block>,
    /// The start of each activity; it ends at the start of the next.
    past: VecDeque<(Nanos, Runs)>,
}

impl Log {
    /// Makes a block of the oldest stays.
    fn condense(&mut self) {
        let stays: Vec<(Nanos, Runs)> = self.past.drain(..BLOCK).collect();
        let ends = stays.iter().skip(1).chain(self.past.front()).map(|next| next.0);
        let mut block = Block { from: stays[0].0, to: stays[0].0, ..Block::default() };
        for (stay, end) in stays.iter().zip(ends) {
            block.add(stay.1, end - stay.0);
            block.to = end;
        }
        block.trim();
        self.blocks.push_back(block);
        if self.blocks.len() > BLOCKS_MAX {
            self.coarsen();
        }
    }

    /// Joins the two neighbouring blocks that are shortest for their age: this loses least about a
    /// wait that began in them.
    fn coarsen(&mut self) {
        let now = self.blocks.back().map_or(0, |last| last.to);
        let pair = |at: usize| {
            let from = self.blocks[at].from;
            (u128::from(self.blocks[at + 1].to - from), u128::from(now - from))
        };
        let shortest = (0..self.blocks.len() - 1).min_by(|one, other| {
            let ((length, age), (other_length, other_age)) = (pair(*one), pair(*other));
            (length * other_age).cmp(&(other_length * age))
        });
        if let Some(at) = shortest
            && let Some(next) = self.blocks.remove(at + 1)
        {
            self.blocks[at].join(&next);
        }
    }
}

/// The logs of all CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct StayLog {
    cpus: Vec<Log>,
}

impl StayLog {
    /// A log that starts with the CPUs' activity in `follower`.
    pub fn new(follower: &Follower) -> Self {
        let log = |(_, runs, since_ns)| Log {
            past: VecDeque::from([(since_ns, runs)]),
            ..Log::default()
        };
        Self { cpus: follower.cpus().map(log).collect() }
    }

    #[inline]
    pub fn turn(&mut self, turn: &Turn) {
        let at = turn.cpu.index();
        if at >= self.cpus.len() {
            self.cpus.resize_with(at + 1, Log::default);
        }
        let log = &mut self.cpus[at];
        let past = &mut log.past;
        debug_assert!(past.back().is_none_or(|last| last.0 <= turn.now), "{turn:?} after {past:?}");
        match past.back_mut() {
            // The assumed activity turns out to be unknown.
            Some(last) => last.1 = turn.was,
            None => past.push_back((turn.since_ns, turn.was)),
        }
        past.push_back((turn.now, turn.runs));
        if past.len() > STAYS_MAX {
            log.condense();
        }
    }

    /// Calls `visit` with the activity of `cpu` between `from` and `to` and its length, the latest
    /// first. Returns the time at the start that the log no longer covers.
    pub fn walk(
        &self,
        cpu: CpuId,
        (from, to): (Nanos, Nanos),
        mut visit: impl FnMut(Runs, Nanos),
    ) -> Nanos {
        let Some(log) = self.cpus.get(cpu.index()) else { return to.saturating_sub(from) };
        let mut end = to;
        for &(start, runs) in log.past.iter().rev() {
            if end <= from {
                return 0;
            }
            let ns = end.saturating_sub(start.max(from));
            if ns > 0 {
                visit(runs, ns);
            }
            end = end.min(start);
        }
        for block in log.blocks.iter().rev() {
            // If only a part of a block counts, the block does not show what was in that part.
            if end <= from || block.from < from || block.to > end {
                break;
            }
            block.tasks.iter().for_each(|(task, ns)| visit(Runs::Task(*task), *ns));
            for (runs, ns) in [(Runs::Idle, block.idle_ns), (Runs::Unknown, block.unknown_ns)] {
                if ns > 0 {
                    visit(runs, ns);
                }
            }
            end = block.from;
        }
        end.saturating_sub(from)
    }
}
