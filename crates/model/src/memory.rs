// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time of a program's own memory accesses.
//!
//! There are two levels: a buffer that fits the cache, and one that does not. Sequential accesses
//! run at the bandwidth of their level, because hardware prefetches them. Independent random
//! accesses overlap, [`Memory::OVERLAP`] at a time. A random chase waits for each access. A line
//! has [`Memory::LINE`] bytes. An access moves a whole line, unless the next one is in the same
//! line.
//!
//! Left out: contention for bandwidth between CPUs, the smaller caches, remote NUMA nodes, page
//! faults, and what another task left in the cache.

use crate::Nanos;
use crate::program::{MemAccess, MemPattern, Step};

/// Cache size, and times of accesses, for one task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    /// Largest buffer (bytes) that stays in the cache.
    pub cache_bytes: u64,
    /// CPU time (ns) of 1,024 sequential bytes in the cache.
    pub cache_kib_ns: Nanos,
    /// CPU time (ns) of 1,024 sequential bytes beyond the cache.
    pub dram_kib_ns: Nanos,
    /// CPU time (ns) of an access in the cache that depends on the previous one.
    pub cache_access_ns: Nanos,
    /// CPU time (ns) of an access beyond the cache that depends on the previous one.
    pub dram_access_ns: Nanos,
}

impl Default for Memory {
    /// A current x86 server core, as orders of magnitude from lmbench's `bw_mem` and `lat_mem_rd`:
    /// 30 and 10 GB/s, 20 and 90 ns.
    fn default() -> Self {
        Self {
            cache_bytes: 16 << 20,
            cache_kib_ns: 33,
            dram_kib_ns: 100,
            cache_access_ns: 20,
            dram_access_ns: 90,
        }
    }
}

impl Memory {
    /// Bytes of a cache line.
    pub const LINE: u64 = 64;
    /// Independent accesses in flight at the same time (line fill buffers of a core).
    pub const OVERLAP: u64 = 10;

    /// CPU time (ns) of `bytes` sequential bytes, in a buffer of `size_bytes`.
    fn stream_ns(&self, size_bytes: u64, bytes: u128) -> Nanos {
        let fits = size_bytes <= self.cache_bytes;
        let kib_ns = if fits { self.cache_kib_ns } else { self.dram_kib_ns };
        saturated((bytes * u128::from(kib_ns)).div_ceil(1024))
    }

    /// CPU time (ns) of a step that accesses memory; 0 for every other step.
    pub fn cpu_ns(&self, step: &Step) -> Nanos {
        match *step {
            Step::Mem { bytes } => self.stream_ns(bytes, u128::from(bytes)),
            Step::MemRun { access, pattern, size_bytes, stride_bytes, count } => {
                let count = u128::from(count);
                if pattern == MemPattern::Sequential {
                    let moved = u128::from(stride_bytes.min(Self::LINE)) * count;
                    return self.stream_ns(size_bytes, moved);
                }
                let fits = size_bytes <= self.cache_bytes;
                let access_ns = if fits { self.cache_access_ns } else { self.dram_access_ns };
                let at_once = if access == MemAccess::Chase { 1 } else { Self::OVERLAP };
                saturated((count * u128::from(access_ns)).div_ceil(u128::from(at_once)))
            }
            _ => 0,
        }
    }
}

fn saturated(ns: u128) -> Nanos {
    Nanos::try_from(ns).unwrap_or(Nanos::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(access: MemAccess, pattern: MemPattern, size_bytes: u64, stride_bytes: u64) -> Nanos {
        let step = Step::MemRun { access, pattern, size_bytes, stride_bytes, count: 1_000 };
        Memory::default().cpu_ns(&step)
    }

    #[test]
    fn time_follows_from_bytes_and_level() {
        let memory = Memory::default();
        assert_eq!(memory.cpu_ns(&Step::Mem { bytes: 10 << 10 }), 330);
        assert_eq!(memory.cpu_ns(&Step::Mem { bytes: 64 << 20 }), (64 << 10) * 100);
        assert_eq!(memory.cpu_ns(&Step::Mem { bytes: u64::MAX }), u64::MAX / 1024 * 100 + 100);
        assert_eq!(memory.cpu_ns(&Step::Yield), 0);
    }

    #[test]
    fn order_and_dependence_decide() {
        use {MemAccess::*, MemPattern::*};
        let (small, big) = (1 << 20, 1 << 30);
        // 1,000 accesses of 8 bytes touch 8,000 bytes; from 64 bytes on each has its own line.
        assert_eq!(run(Read, Sequential, big, 8), (8_000u64 * 100).div_ceil(1024));
        assert_eq!(run(Write, Sequential, big, 4096), (64_000u64 * 100).div_ceil(1024));
        assert_eq!(run(Chase, Random, big, 64), 90_000);
        assert_eq!(run(Chase, Random, small, 64), 20_000);
        assert_eq!(run(Read, Random, big, 64), 9_000);
    }
}
