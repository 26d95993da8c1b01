// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each CPU did lately: the last [`STAYS_MAX`] stays, to be gone through when a wait ends.

use super::follow::{Follower, Runs, Turn};
use schedlab_model::{CpuId, Nanos};
use std::collections::VecDeque;

/// Stays that are remembered of each CPU.
pub const STAYS_MAX: usize = 512;

/// What one CPU did.
#[derive(Clone, Debug, Default)]
struct Log {
    /// Starts and what it did from then on; the end of one is the start of the next.
    past: VecDeque<(Nanos, Runs)>,
}

/// The stays of all CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct StayLog {
    cpus: Vec<Log>,
}

impl StayLog {
    /// The log of a run whose CPUs do what `follower` says.
    pub fn new(follower: &Follower) -> Self {
        let log = |(_, runs, since_ns)| Log { past: VecDeque::from([(since_ns, runs)]) };
        Self { cpus: follower.cpus().map(log).collect() }
    }

    #[inline]
    pub fn turn(&mut self, turn: &Turn) {
        let at = turn.cpu.index();
        if at >= self.cpus.len() {
            self.cpus.resize_with(at + 1, Log::default);
        }
        let past = &mut self.cpus[at].past;
        debug_assert!(past.back().is_none_or(|last| last.0 <= turn.now), "{turn:?} after {past:?}");
        match past.back_mut() {
            // What was thought to run there turns out to be not known.
            Some(last) => last.1 = turn.was,
            None => past.push_back((turn.since_ns, turn.was)),
        }
        if past.len() >= STAYS_MAX {
            past.pop_front();
        }
        past.push_back((turn.now, turn.runs));
    }

    /// Calls `visit` with what `cpu` did between `from` and `to` and for how long, the latest
    /// first. Gives the time before the stays that are remembered, of which nothing is known.
    pub fn walk(
        &self,
        cpu: CpuId,
        (from, to): (Nanos, Nanos),
        mut visit: impl FnMut(Runs, Nanos),
    ) -> Nanos {
        let mut end = to;
        let past = self.cpus.get(cpu.index()).map(|log| &log.past);
        for &(start, runs) in past.into_iter().flatten().rev() {
            if end <= from {
                return 0;
            }
            let ns = end.saturating_sub(start.max(from));
            if ns > 0 {
                visit(runs, ns);
            }
            end = end.min(start);
        }
        end.saturating_sub(from)
    }
}
