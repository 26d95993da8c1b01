// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ticks of idle CPUs, which the engine does not simulate.
//!
//! In these kernels every CPU balances at its own tick, an idle one too. The engine ticks only busy
//! CPUs. So this module executes the ticks of idle CPUs at those of busy ones, in the order of the
//! CPUs. While all CPUs are idle, there is nothing to pull; the next tick updates their load
//! averages.

use crate::boundary::core::Core;
use schedlab_model::CpuId;

/// Tracks which ticks of idle CPUs are still to be executed.
#[derive(Debug, Default)]
pub struct TickCatchUp {
    /// The present tick, and the first CPU whose tick has not been executed.
    jiffy: u64,
    next_cpu: u32,
}

impl TickCatchUp {
    /// At the tick of busy `cpu`: the number of earlier ticks with all CPUs idle, and the CPUs
    /// whose tick is now. These are the CPUs between the last busy one and this one, and those
    /// after it if none of them is busy.
    pub fn due(&mut self, core: &Core, cpu: CpuId) -> (u64, std::ops::Range<u32>) {
        let jiffies = core.jiffies();
        let mut missed = 0;
        if jiffies != self.jiffy {
            missed = jiffies - self.jiffy - 1;
            self.jiffy = jiffies;
            self.next_cpu = 0;
        }
        let is_busy = |cpu: u32| core.rq(CpuId(cpu)).curr.is_some();
        let is_last = !(cpu.0 + 1..core.nr_cpus()).any(is_busy);
        let end = if is_last { core.nr_cpus() } else { cpu.0 + 1 };
        let begin = self.next_cpu;
        self.next_cpu = begin.max(end);
        (missed, begin..end)
    }

    /// Whether the present tick directly follows the last one.
    pub fn is_next(&self, core: &Core) -> bool {
        self.jiffy + 1 == core.jiffies()
    }

    /// Records that all CPUs have had their ticks up to now.
    pub fn pass(&mut self, core: &Core) {
        self.jiffy = core.jiffies();
        self.next_cpu = core.nr_cpus();
    }
}
