// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts as a load: CPU time that devices take from the running task.

use super::{Machine, SMT_SPEED_FULL};
use crate::random::Stream;
use crate::time::tick_nsec;
use crate::{CpuId, CpuMask, Nanos};

/// How the times between interrupts are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum InterruptArrivals {
    /// At equal distances. CPU c of n starts later by c/n of the distance, so that the CPUs'
    /// interrupts do not coincide.
    #[default]
    Periodic,
    /// Exponentially distributed distances (a Poisson process), from a random stream for each CPU.
    Exponential,
}

/// A source of interrupts. Each interrupt takes `cost_ns + softirq_ns` of its CPU and wakes no
/// task.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InterruptSource {
    /// Name, such as `eth0`.
    pub name: String,
    /// CPUs that take its interrupts, each at the full rate. CPUs that the machine lacks are
    /// ignored.
    pub cpus: CpuMask,
    /// Mean time between two interrupts on one CPU (ns), >= [`INTERVAL_NS_MIN`].
    pub interval_ns: Nanos,
    /// Time of the interrupt handler (ns).
    pub cost_ns: Nanos,
    /// Time (ns) of the softirq that it raises, after the handler.
    pub softirq_ns: Nanos,
    /// How the times between interrupts are chosen.
    pub arrivals: InterruptArrivals,
}

/// Least mean distance (ns): a million interrupts per second on one CPU.
pub const INTERVAL_NS_MIN: Nanos = 1_000;

impl InterruptSource {
    /// Draws the time (ns) from one interrupt to the next.
    pub fn next_interval_ns(&self, stream: &mut Stream) -> Nanos {
        match self.arrivals {
            InterruptArrivals::Periodic => self.interval_ns.max(1),
            InterruptArrivals::Exponential => stream.exponential(self.interval_ns).max(1),
        }
    }

    /// CPU time (ns) that one interrupt takes.
    pub fn stolen_ns(&self) -> Nanos {
        self.cost_ns.saturating_add(self.softirq_ns)
    }
}

impl Machine {
    /// Checks that interrupts and ticks leave the tasks of `cpu` some time, even while its siblings
    /// slow it down most. Otherwise a burst there would never end.
    pub(super) fn check_time_left(&self, cpu: CpuId) -> Result<(), String> {
        // Parts of the CPU's time, in units of 2^-32, rounded up.
        let part =
            |ns: Nanos, every_ns: Nanos| (u128::from(ns) << 32).div_ceil(u128::from(every_ns));
        let sources = || self.interrupts.iter().filter(|source| source.cpus.contains(cpu));
        let taken = sources().map(|s| part(s.stolen_ns(), s.interval_ns)).sum::<u128>()
            + part(self.costs.tick_ns, tick_nsec(self.hz));
        let speed = self.slowest_speed(cpu);
        let full = u128::from(SMT_SPEED_FULL);
        if taken * full < u128::from(speed) << 32 {
            return Ok(());
        }
        let mut names: Vec<String> = sources().map(|s| format!("{:?}", s.name)).collect();
        names.push("the tick".into());
        let percent = (taken * full * 100 / u128::from(speed)) >> 32;
        Err(format!(
            "what interrupts CPU {cpu} ({}) takes {percent} % of its time at its slowest, {speed} \
             of {SMT_SPEED_FULL}: no time would be left for tasks; lower the cost or the rate",
            names.join(", ")
        ))
    }

    /// Speed of `cpu` while all its siblings are busy.
    fn slowest_speed(&self, cpu: CpuId) -> u32 {
        let own = self.topology.core[cpu.index()];
        let siblings = self.topology.core.iter().filter(|core| **core == own).count() - 1;
        let slowed = self.smt_speed.iter().take(siblings).min();
        slowed.copied().unwrap_or(SMT_SPEED_FULL)
    }
}
