// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts as a load: time that devices take from whatever runs.

use crate::random::Stream;
use crate::{CpuMask, Nanos};

/// How the times of interrupts are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InterruptArrivals {
    /// At equal distances; CPU number c of n starts c/n of a distance later, so that they do not
    /// all meet.
    #[default]
    Periodic,
    /// Exponential distances (a Poisson process), from a seeded stream of each CPU.
    Exponential,
}

/// A source of interrupts. Each costs its CPU `cost_ns + softirq_ns` and wakes nobody.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterruptSource {
    /// Name, such as `eth0`.
    pub name: String,
    /// CPUs that take its interrupts, each at the full rate; CPUs that the machine has not are
    /// left out.
    pub cpus: CpuMask,
    /// Mean time between two interrupts on one CPU (ns), >= [`INTERVAL_NS_MIN`].
    pub interval_ns: Nanos,
    /// Time of the handler.
    pub cost_ns: Nanos,
    /// Time of the softirq that it raises, at the handler's end.
    pub softirq_ns: Nanos,
    /// How their times are drawn.
    pub arrivals: InterruptArrivals,
}

/// Least mean distance of interrupts: a million a second on one CPU.
pub const INTERVAL_NS_MIN: Nanos = 1_000;

impl InterruptSource {
    /// Time from one interrupt to the next.
    pub fn next_interval_ns(&self, stream: &mut Stream) -> Nanos {
        match self.arrivals {
            InterruptArrivals::Periodic => self.interval_ns.max(1),
            InterruptArrivals::Exponential => stream.exponential(self.interval_ns).max(1),
        }
    }

    /// Time that one takes from the CPU.
    pub fn stolen_ns(&self) -> Nanos {
        self.cost_ns.saturating_add(self.softirq_ns)
    }
}
