// SPDX-License-Identifier: MIT OR Apache-2.0
//! The best real-time priority of each CPU, for finding the least important CPU quickly.
//!
//! Source: Linux kernel/sched/cpupri.c. Level 0 is a CPU without runnable real-time tasks, level k
//! one whose best task has `sched_priority` k. Since 5.10 idle CPUs have no separate level: an idle
//! CPU and one that runs fair tasks are equally good targets. The caller leaves out CPUs that serve
//! a class above this one (CPUPRI_HIGHER).

use super::queue::MAX_RT_PRIO;
use schedlab_model::{CpuId, CpuMask};

/// Priorities of CPUs.
#[derive(Debug)]
pub struct CpuPri {
    /// CPUs by level.
    masks: Vec<CpuMask>,
    /// Number of CPUs by level.
    counts: Vec<u32>,
    /// Level by CPU.
    levels: Vec<u8>,
}

impl CpuPri {
    /// All CPUs at level 0.
    pub fn new(nr_cpus: u32) -> Self {
        let mut masks = vec![CpuMask::empty(); MAX_RT_PRIO];
        masks[0] = CpuMask::first(nr_cpus);
        let mut counts = vec![0; MAX_RT_PRIO];
        counts[0] = nr_cpus;
        Self { masks, counts, levels: vec![0; nr_cpus as usize] }
    }

    /// Level of kernel priority `prio` (0..=98; anything above: no real-time task).
    fn level(prio: usize) -> usize {
        (MAX_RT_PRIO - 1).saturating_sub(prio)
    }

    /// Sets the best queued priority of `cpu` to `prio`.
    pub fn set(&mut self, cpu: CpuId, prio: usize) {
        let old = usize::from(self.levels[cpu.index()]);
        let new = Self::level(prio);
        if old != new {
            self.masks[old].clear(cpu);
            self.counts[old] -= 1;
            self.masks[new].set(cpu);
            self.counts[new] += 1;
            self.levels[cpu.index()] = new as u8;
        }
    }

    /// The CPUs of `allowed` at the lowest non-empty level, if that level is below `prio`.
    pub fn find(&self, allowed: &CpuMask, prio: usize) -> Option<CpuMask> {
        (0..Self::level(prio)).find_map(|level| {
            if self.counts[level] == 0 {
                return None;
            }
            let mask = self.masks[level].and(allowed);
            (!mask.is_empty()).then_some(mask)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_level_strictly_below_the_task_is_found() {
        let mut cpupri = CpuPri::new(3);
        cpupri.set(CpuId(0), 49);
        cpupri.set(CpuId(1), 89);
        cpupri.set(CpuId(2), 49);
        let all = CpuMask::first(3);
        assert_eq!(cpupri.find(&all, 9), Some(CpuMask::only(CpuId(1))));
        let mut some = all;
        some.clear(CpuId(1));
        assert_eq!(cpupri.find(&some, 9), Some(some));
        assert_eq!(cpupri.find(&some, 49), None);
        cpupri.set(CpuId(2), 100);
        assert_eq!(cpupri.find(&all, 98), Some(CpuMask::only(CpuId(2))));
    }
}
