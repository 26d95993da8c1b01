// SPDX-License-Identifier: MIT OR Apache-2.0
//! Caches: their sizes, and how fast they refill after a migration or after other tasks ran.

use crate::Nanos;
use crate::time::NSEC_PER_SEC;

/// Sizes and speeds of caches. A size of 0 means that the cache is not modelled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Caches {
    /// Size (bytes) of the largest private cache of a core, shared by its hardware threads.
    pub core_bytes: u64,
    /// Size (bytes) of one last-level cache.
    pub llc_bytes: u64,
    /// Speed at which a core refills its cache from the last-level cache, bytes per second, >= 1.
    pub llc_bytes_per_sec: u64,
    /// Speed at which a core reads memory of its own node, bytes per second, >= 1.
    pub local_bytes_per_sec: u64,
    /// Speed at which a core reads memory of another node, bytes per second, >= 1.
    pub remote_bytes_per_sec: u64,
}

impl Caches {
    /// No cache is modelled, and refills take no time.
    pub const NONE: Self = Self {
        core_bytes: 0,
        llc_bytes: 0,
        llc_bytes_per_sec: 30_000_000_000,
        local_bytes_per_sec: 10_000_000_000,
        remote_bytes_per_sec: 6_000_000_000,
    };

    /// Time (ns) to move `bytes` at `bytes_per_sec`, rounded down; a speed of 0 counts as 1.
    pub fn transfer_ns(bytes: u64, bytes_per_sec: u64) -> Nanos {
        let ns = u128::from(bytes) * u128::from(NSEC_PER_SEC) / u128::from(bytes_per_sec.max(1));
        Nanos::try_from(ns).unwrap_or(Nanos::MAX)
    }
}

impl Default for Caches {
    /// A current x86 server core with 1 MiB of its own and 32 MiB shared. The speeds are those of
    /// one core reading sequentially, from lmbench's `bw_mem`; orders of magnitude.
    fn default() -> Self {
        Self { core_bytes: 1 << 20, llc_bytes: 32 << 20, ..Self::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_take_bytes_by_speed_and_never_overflow() {
        assert_eq!(Caches::transfer_ns(1 << 20, 1 << 30), 976_562);
        assert_eq!(Caches::transfer_ns(0, 5), 0);
        assert_eq!(Caches::transfer_ns(u64::MAX, 0), u64::MAX);
    }
}
