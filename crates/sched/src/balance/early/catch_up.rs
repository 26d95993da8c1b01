// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ticks of idle CPUs, which the engine does not take.
//!
//! In the kernels modelled here every CPU balances at its own tick, an idle one too. The engine
//! ticks only while some CPU is busy, and busy CPUs only; so the ticks of idle CPUs are made up for
//! at those of the busy ones, in the order of the CPUs. While all are idle nothing could be pulled;
//! what is remembered of their load is brought up to date at the next tick.

use crate::boundary::core::Core;
use schedlab_model::CpuId;

/// Which ticks of idle CPUs are still to be made up for: the engine ticks on busy CPUs only.
#[derive(Debug, Default)]
pub struct TickCatchUp {
    /// The present tick, and the first CPU that has not had it.
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

    /// Whether the present tick follows the last one that was seen.
    pub fn is_next(&self, core: &Core) -> bool {
        self.jiffy + 1 == core.jiffies()
    }

    /// All CPUs have had their ticks up to now.
    pub fn pass(&mut self, core: &Core) {
        self.jiffy = core.jiffies();
        self.next_cpu = core.nr_cpus();
    }
}
