// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cold caches: the data that a task with a known working set must read again when it is switched
//! in.
//!
//! Each core's cache and each last-level cache remembers the working sets that were used in it, in
//! order of last use. A set of `w` bytes, after which other sets of `n` bytes in total were used,
//! has lost `n + w - c` bytes (at least 0, at most `w`) in a cache of `c` bytes. A set larger than
//! a cache counts with the cache's size. Data lost in the last-level cache is read from memory: at
//! the speed of the home node, where the task first ran, or at that of another node. Data lost only
//! in the core's cache is read from the last-level cache. A migration moves the whole set: nothing
//! remains in the old cache. The first run is free, because a cold start is part of the program.
//!
//! Such a task is charged this time instead of the fixed costs of a migration, which represent a
//! small set. Left out: what tasks that run at the same time take from each other, shared pages,
//! and the order in which a program accesses its set.

use crate::engine::Engine;
use schedlab_model::machine::Caches;
use schedlab_model::{CpuId, Machine, Nanos, TaskId, Topology, TraceSink, Workload};

/// Working sets that one cache remembers. Older ones count as lost.
const SETS_MAX: usize = 1024;

/// Working sets in one cache, the last used one at the end.
#[derive(Clone, Default, Debug)]
struct Lru {
    sets: Vec<(TaskId, u64)>,
}

impl Lru {
    fn remove(&mut self, task: TaskId) {
        // Tasks that run often are near the end.
        if let Some(index) = self.sets.iter().rposition(|(id, _)| *id == task) {
            self.sets.remove(index);
        }
    }

    /// `task` uses `bytes` of a cache of `size` bytes.
    fn touch(&mut self, task: TaskId, bytes: u64, size: u64) {
        self.remove(task);
        self.sets.push((task, bytes));
        let mut newer: u64 = 0;
        let mut kept = 0;
        for (_, bytes) in self.sets.iter().rev() {
            if newer >= size || kept == SETS_MAX {
                break;
            }
            newer = newer.saturating_add(*bytes);
            kept += 1;
        }
        let gone = self.sets.len() - kept;
        self.sets.drain(..gone);
        let is_own = |set: &&(TaskId, u64)| set.0 == task;
        debug_assert_eq!(self.sets.iter().filter(is_own).count(), 1, "sets of task {task}");
    }

    /// Bytes of `task`'s set of `bytes` that the cache has lost.
    fn lost(&self, task: TaskId, bytes: u64, size: u64) -> u64 {
        let mut newer: u64 = 0;
        for (id, used) in self.sets.iter().rev() {
            if *id == task {
                return newer.saturating_add(bytes).saturating_sub(size).min(bytes);
            }
            newer = newer.saturating_add(*used);
        }
        bytes
    }
}

/// All caches of a machine.
#[derive(Debug)]
pub struct ColdCaches {
    sizes: Caches,
    topology: Topology,
    cores: Vec<Lru>,
    llcs: Vec<Lru>,
    /// Node on which each task first ran.
    homes: Vec<Option<u32>>,
}

fn one_each(level: &[u32]) -> Vec<Lru> {
    vec![Lru::default(); level.iter().max().map_or(0, |most| *most as usize + 1)]
}

impl ColdCaches {
    /// `None` if no task has a working set, or no cache is modelled.
    pub fn new(machine: &Machine, workload: &Workload) -> Option<Self> {
        let sizes = machine.caches;
        let has_sets = workload.tasks.iter().any(|task| task.working_set_bytes > 0);
        if !has_sets || (sizes.core_bytes == 0 && sizes.llc_bytes == 0) {
            return None;
        }
        // Numbers of a machine file may have gaps: the lists have an entry for each part only.
        let dense = |level: &[u32]| -> Vec<u32> {
            let mut numbers = level.to_vec();
            numbers.sort_unstable();
            numbers.dedup();
            let index = |number| numbers.partition_point(|known| known < number) as u32;
            level.iter().map(index).collect()
        };
        let topology = Topology {
            core: dense(&machine.topology.core),
            llc: dense(&machine.topology.llc),
            node: machine.topology.node.clone(),
        };
        Some(Self {
            sizes,
            cores: one_each(&topology.core),
            llcs: one_each(&topology.llc),
            topology,
            homes: Vec::new(),
        })
    }

    fn core(&mut self, cpu: CpuId) -> &mut Lru {
        &mut self.cores[self.topology.core[cpu.index()] as usize]
    }

    fn llc(&mut self, cpu: CpuId) -> &mut Lru {
        &mut self.llcs[self.topology.llc[cpu.index()] as usize]
    }

    /// `task`, with a set of `bytes`, used the caches of `cpu` up to now.
    pub fn used(&mut self, cpu: CpuId, task: TaskId, bytes: u64) {
        let Caches { core_bytes, llc_bytes, .. } = self.sizes;
        if core_bytes > 0 {
            self.core(cpu).touch(task, bytes.min(core_bytes), core_bytes);
        }
        if llc_bytes > 0 {
            self.llc(cpu).touch(task, bytes.min(llc_bytes), llc_bytes);
        }
    }

    /// Time (ns) that `task` loses on `cpu` to refills, if it last ran on `last`.
    pub fn refill_ns(&mut self, cpu: CpuId, last: CpuId, task: TaskId, bytes: u64) -> Nanos {
        if self.homes.len() <= task.index() {
            self.homes.resize(task.index() + 1, None);
        }
        let node = self.topology.node[cpu.index()];
        let Some(home) = self.homes[task.index()] else {
            self.homes[task.index()] = Some(node);
            return 0;
        };
        let Caches { core_bytes, llc_bytes, .. } = self.sizes;
        if self.topology.core[cpu.index()] != self.topology.core[last.index()] {
            self.core(last).remove(task);
        }
        if self.topology.llc[cpu.index()] != self.topology.llc[last.index()] {
            self.llc(last).remove(task);
        }
        let in_core = self.core(cpu).lost(task, bytes.min(core_bytes), core_bytes);
        let in_llc = match llc_bytes {
            0 => in_core,
            size => self.llc(cpu).lost(task, bytes.min(size), size),
        };
        debug_assert!(in_core.max(in_llc) <= bytes, "{in_core} and {in_llc} of {bytes} bytes");
        let is_local = home == node;
        let memory =
            if is_local { self.sizes.local_bytes_per_sec } else { self.sizes.remote_bytes_per_sec };
        let from_llc = in_core.saturating_sub(in_llc);
        Caches::transfer_ns(in_llc, memory)
            .saturating_add(Caches::transfer_ns(from_llc, self.sizes.llc_bytes_per_sec))
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Size (bytes) of the working set of `task`; `None` if it has none or caches are not modelled.
    pub(crate) fn working_set(&self, task: TaskId) -> Option<u64> {
        self.cpus.cold_caches.as_ref()?;
        let spec = self.tasks[task].spec as usize;
        Some(self.workload.tasks[spec].working_set_bytes).filter(|bytes| *bytes > 0)
    }

    /// `task` leaves `cpu`: its working set was the last one used there.
    pub(crate) fn caches_used(&mut self, cpu: CpuId, task: TaskId) {
        debug_assert_eq!(self.core.rq(cpu).curr, Some(task), "another's set is used on CPU {cpu}");
        let bytes = self.working_set(task);
        if let (Some(caches), Some(bytes)) = (&mut self.cpus.cold_caches, bytes) {
            caches.used(cpu, task, bytes);
        }
    }

    /// `task` runs on `cpu` after `last`: returns the time (ns) that it loses to refills.
    pub(crate) fn refill_caches(&mut self, cpu: CpuId, last: CpuId, task: TaskId) -> Nanos {
        let Some(bytes) = self.working_set(task) else { return 0 };
        let caches = self.cpus.cold_caches.as_mut();
        let ns = caches.map_or(0, |caches| caches.refill_ns(cpu, last, task, bytes));
        self.outcome.cache_refill_ns += ns;
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);
    const C: TaskId = TaskId(2);

    #[test]
    fn a_set_loses_what_newer_ones_do_not_leave_room_for() {
        let mut cache = Lru::default();
        assert_eq!(cache.lost(A, 30, 100), 30);
        cache.touch(A, 30, 100);
        assert_eq!(cache.lost(A, 30, 100), 0);
        cache.touch(B, 60, 100);
        assert_eq!(cache.lost(A, 30, 100), 0);
        cache.touch(C, 25, 100);
        assert_eq!(cache.lost(A, 30, 100), 15);
        // B again: a set that was counted is not counted twice.
        cache.touch(B, 60, 100);
        assert_eq!(cache.lost(A, 30, 100), 15);
        cache.touch(C, 40, 100);
        assert_eq!(cache.lost(A, 30, 100), 30);
        assert_eq!(cache.sets.len(), 2);
    }

    #[test]
    fn only_so_many_sets_are_remembered() {
        let mut cache = Lru::default();
        for task in 0..5_000 {
            cache.touch(TaskId(task), 1, 1 << 20);
        }
        assert_eq!(cache.sets.len(), SETS_MAX);
        assert_eq!(cache.lost(TaskId(4_999), 1, 1 << 20), 0);
        assert_eq!(cache.lost(A, 1, 1 << 20), 1);
    }
}
