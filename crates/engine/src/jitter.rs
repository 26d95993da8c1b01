// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches that take longer, each by a time of its own.
//!
//! Guests have the same (`make_longer` of the recorder): a loop when the kernel has picked the next
//! task and read its clock, so the time is that task's. There a switch to the idle task takes
//! longer, too, which delays what comes next on that CPU. Here it does not.

use schedlab_model::Nanos;
use schedlab_model::random::{Purpose, Stream};

/// Draws how much longer switches take.
#[derive(Debug)]
pub struct Jitter {
    most_ns: Nanos,
    stream: Stream,
}

impl Jitter {
    /// `None` if no switch takes longer.
    pub fn new(most_ns: Nanos, seed: u64) -> Option<Self> {
        (most_ns > 0).then(|| Self { most_ns, stream: Stream::new(seed, Purpose::Switch, 0) })
    }

    /// How much longer the next switch takes (ns): 0 to the most, all equally likely.
    pub fn draw(&mut self) -> Nanos {
        self.stream.below(self.most_ns.saturating_add(1))
    }
}
