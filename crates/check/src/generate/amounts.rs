// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of all scales, with a preference for those at which schedulers change what they do.

use super::{Draw, Feature, constant};
use crate::tree::{self, Node};
use schedlab_model::time::{NSEC_PER_MSEC as MS, NSEC_PER_SEC, NSEC_PER_USEC as US, tick_nsec};
use schedlab_model::{Amount, LoopCount, Nanos, Op, Workload};

/// Times that schedulers compare with: slices, granularities, the cost of a migration.
const BORDERS: [Nanos; 7] = [500 * US, 700 * US, 750 * US, 2_800 * US, 3 * MS, 5 * MS, 100 * MS];

/// Times that people write.
const ROUND: [Nanos; 9] =
    [10 * US, 50 * US, 100 * US, 200 * US, MS, 2 * MS, 10 * MS, 20 * MS, 50 * MS];

impl Draw {
    /// A time from 1 us, or what the shape allows, to 100 ms.
    pub(super) fn time(&mut self) -> Nanos {
        let least = self.time_ns_min;
        match self.below(8) {
            0 | 1 => self.log_uniform(least, 100 * MS),
            2 => {
                let border = match self.one_in(2) {
                    true => tick_nsec(self.hz),
                    false => self.choose(&BORDERS),
                };
                match self.below(3) {
                    0 => border,
                    1 => border - US,
                    _ => border + US,
                }
                .max(least)
            }
            3 | 4 => {
                let first = ROUND.partition_point(|time| *time < least);
                self.choose(&ROUND[first..])
            }
            _ => self.log_uniform(least.max(10 * US), (20 * least).max(2 * MS)),
        }
    }

    /// A time that is short more often than [`Draw::time`].
    pub(super) fn short_time(&mut self) -> Nanos {
        self.time().min(self.time()).min(self.time())
    }

    /// A whole number of microseconds whose logarithm is about uniform.
    fn log_uniform(&mut self, low: Nanos, high: Nanos) -> Nanos {
        let doublings = u64::from((high / low).ilog2());
        let base = low << self.below(doublings + 1);
        (base + self.below(base)).min(high) / US * US
    }

    /// A constant time, or in cases with drawn amounts a distribution.
    pub(super) fn amount(&mut self) -> Amount {
        let ns = self.time();
        if !self.has(Feature::Drawn) || self.one_in(2) {
            return constant(ns);
        }
        match self.one_in(2) {
            true => Amount::Exponential { mean: ns },
            false => Amount::Uniform { low: ns / 2 / US * US, high: ns * 2 },
        }
    }
}

/// About how many steps a second a task with this program takes.
pub(super) fn pace(body: &[Node]) -> u64 {
    let (steps, ns) = cycle(body, &|_| 1);
    rate((steps.max(1), ns))
}

/// How often a second something happens, which happens so often in so much time (ns).
fn rate((count, ns): (u64, Nanos)) -> u64 {
    (count.saturating_mul(NSEC_PER_SEC) / ns).min(2_000_000)
}

/// About how many tasks are forked up to `end_ns`, at most.
pub(crate) fn forks(workload: &Workload, end_ns: Nanos) -> u64 {
    let forks = workload.tasks.iter().map(|task| {
        let waits = task.program.ops.iter().any(|op| matches!(op, Op::JoinAll | Op::Join { .. }));
        let child_ns = task.program.ops.iter().find_map(|op| match op {
            Op::Fork { task } if waits => workload.tasks.get(*task as usize),
            _ => None,
        });
        let child_ns = child_ns.map_or(0, |child| cycle(&tree::nodes(&child.program), &|_| 0).1);
        let nodes = tree::nodes(&task.program);
        let (per_pass, ns) = cycle(&nodes, &|op| u64::from(matches!(op, Op::Fork { .. })));
        let paced = u128::from(rate((per_pass, ns.saturating_add(child_ns))));
        let paced = paced * u128::from(end_ns) / u128::from(NSEC_PER_SEC);
        let most = if has_endless(&nodes) { paced } else { paced.min(u128::from(per_pass)) };
        most * u128::from(task.instances.max(1))
    });
    u64::try_from(forks.sum::<u128>()).unwrap_or(u64::MAX)
}

fn has_endless(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Loop(LoopCount::Forever, _) => true,
        Node::Loop(_, body) => has_endless(body),
        Node::Op(_) => false,
    })
}

/// About how many steps the tasks of a workload take up to `end_ns`.
pub(crate) fn steps(workload: &Workload, end_ns: Nanos) -> u64 {
    let paces = workload
        .tasks
        .iter()
        .map(|task| u64::from(task.instances.max(1)) * pace(&tree::nodes(&task.program)));
    let paces: u128 = paces.map(u128::from).sum();
    u64::try_from(paces * u128::from(end_ns) / u128::from(NSEC_PER_SEC)).unwrap_or(u64::MAX)
}

/// Sum of `of` over the operations of one pass through the tree, and the time that they take at
/// least.
fn cycle(body: &[Node], of: &dyn Fn(&Op) -> u64) -> (u64, Nanos) {
    let mut sum: (u64, Nanos) = (0, 0);
    for node in body {
        let (count, ns) = match node {
            Node::Loop(times, body) => {
                let (count, ns) = cycle(body, of);
                match times {
                    LoopCount::Times(times) => {
                        (count.saturating_mul(*times), ns.saturating_mul(*times))
                    }
                    LoopCount::Forever => (count, ns),
                }
            }
            Node::Op(op) => match op {
                Op::Run(amount) | Op::Sleep(amount) | Op::RunWall(amount) => (of(op), mean(amount)),
                Op::Timer { period, .. } => (of(op), mean(period)),
                _ => (of(op), 0),
            },
        };
        sum = (sum.0.saturating_add(count), sum.1.saturating_add(ns));
    }
    (sum.0, sum.1.max(US))
}

fn mean(amount: &Amount) -> Nanos {
    match *amount {
        Amount::Constant(ns) | Amount::Exponential { mean: ns } => ns,
        Amount::Uniform { low, high } => low.midpoint(high),
    }
}
