// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of CPUs.

use crate::CpuId;
use std::fmt;

/// Most CPUs that a machine may have.
pub const NR_CPUS_MAX: usize = 1024;
const WORDS: usize = NR_CPUS_MAX / 64;

/// A set of CPUs below [`NR_CPUS_MAX`], as the kernel's `cpumask_t`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CpuMask {
    words: [u64; WORDS],
}

impl CpuMask {
    /// No CPU.
    pub const fn empty() -> Self {
        Self { words: [0; WORDS] }
    }

    /// CPUs `0 .. count`.
    pub fn first(count: u32) -> Self {
        let mut mask = Self::empty();
        for cpu in 0..count {
            mask.set(CpuId(cpu));
        }
        mask
    }

    /// Exactly `cpu`.
    pub fn only(cpu: CpuId) -> Self {
        let mut mask = Self::empty();
        mask.set(cpu);
        mask
    }

    /// Adds `cpu`. Panics if it is not below [`NR_CPUS_MAX`]; readers check before.
    #[inline]
    pub fn set(&mut self, cpu: CpuId) {
        self.words[cpu.index() / 64] |= 1 << (cpu.index() % 64);
    }

    /// Removes `cpu`.
    #[inline]
    pub fn clear(&mut self, cpu: CpuId) {
        self.words[cpu.index() / 64] &= !(1 << (cpu.index() % 64));
    }

    /// Whether `cpu` is in the set.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        cpu.index() < NR_CPUS_MAX && self.words[cpu.index() / 64] >> (cpu.index() % 64) & 1 == 1
    }

    /// Number of CPUs in the set (`nr_cpus_allowed`).
    pub fn weight(&self) -> u32 {
        self.words.iter().map(|w| w.count_ones()).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// The lowest CPU of the set.
    pub fn first_cpu(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// CPUs in both sets.
    pub fn and(&self, other: &Self) -> Self {
        let mut words = [0; WORDS];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.words[i] & other.words[i];
        }
        Self { words }
    }

    /// CPUs of this set that are not in `other`.
    pub fn and_not(&self, other: &Self) -> Self {
        let mut words = [0; WORDS];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.words[i] & !other.words[i];
        }
        Self { words }
    }

    /// CPUs in either set.
    pub fn or(&self, other: &Self) -> Self {
        let mut words = [0; WORDS];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.words[i] | other.words[i];
        }
        Self { words }
    }

    /// CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                Some(CpuId(index as u32 * 64 + bit))
            })
        })
    }

    /// CPUs in ascending order starting at `start` and wrapping round to below it.
    pub fn iter_from(&self, start: CpuId) -> impl Iterator<Item = CpuId> + '_ {
        let upper = self.iter().filter(move |cpu| *cpu >= start);
        let lower = self.iter().filter(move |cpu| *cpu < start);
        upper.chain(lower)
    }
}

impl FromIterator<CpuId> for CpuMask {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut mask = Self::empty();
        for cpu in cpus {
            mask.set(cpu);
        }
        mask
    }
}

impl fmt::Display for CpuMask {
    /// The kernel's list format: `0-3,8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus: Vec<u32> = self.iter().map(|cpu| cpu.0).collect();
        let mut index = 0;
        while index < cpus.len() {
            let start = cpus[index];
            while index + 1 < cpus.len() && cpus[index + 1] == cpus[index] + 1 {
                index += 1;
            }
            if start != cpus[0] {
                f.write_str(",")?;
            }
            if cpus[index] == start {
                write!(f, "{start}")?;
            } else {
                write!(f, "{start}-{}", cpus[index])?;
            }
            index += 1;
        }
        Ok(())
    }
}

impl fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuMask({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_kernels_list_format() {
        let mask: CpuMask = [0, 1, 2, 5, 8, 9].map(CpuId).into_iter().collect();
        assert_eq!(mask.to_string(), "0-2,5,8-9");
        assert_eq!(CpuMask::empty().to_string(), "");
    }

    #[test]
    fn iterates_from_a_cpu_and_wraps() {
        let mask: CpuMask = [1, 3, 64, 1023].map(CpuId).into_iter().collect();
        let order: Vec<u32> = mask.iter_from(CpuId(4)).map(|c| c.0).collect();
        assert_eq!(order, [64, 1023, 1, 3]);
        assert_eq!(mask.weight(), 4);
    }
}
