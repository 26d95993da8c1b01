// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of CPUs.

use crate::CpuId;
use std::fmt;

/// Most CPUs that a machine may have.
pub const NR_CPUS_MAX: usize = 1024;
const WORDS: usize = NR_CPUS_MAX / 64;

/// A set of CPUs below [`NR_CPUS_MAX`], as the kernel's `cpumask_t`.
///
/// Operations look only at the words that may hold a CPU, so small machines are fast.
#[derive(Clone, Copy)]
pub struct CpuMask {
    words: [u64; WORDS],
    /// All words from this one on are 0.
    used: u32,
}

impl PartialEq for CpuMask {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for CpuMask {}

impl std::hash::Hash for CpuMask {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.words.hash(state);
    }
}

impl CpuMask {
    /// The empty set.
    pub const fn empty() -> Self {
        Self { words: [0; WORDS], used: 0 }
    }

    /// The set with the CPUs whose bits are 1 in `words`, as in the kernel's mask.
    pub fn from_words(words: [u64; WORDS]) -> Self {
        let used = words.iter().rposition(|word| *word != 0).map_or(0, |last| last as u32 + 1);
        Self { words, used }
    }

    /// The CPUs of the set as bits, as in the kernel's mask.
    #[inline]
    pub fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// The CPUs from 0 to `count - 1`.
    pub fn first(count: u32) -> Self {
        let mut mask = Self::empty();
        for cpu in 0..count {
            mask.set(CpuId(cpu));
        }
        mask
    }

    /// The set with only `cpu`.
    pub fn only(cpu: CpuId) -> Self {
        let mut mask = Self::empty();
        mask.set(cpu);
        mask
    }

    /// The words that may hold a CPU.
    #[inline]
    fn used_words(&self) -> &[u64] {
        &self.words[..(self.used as usize).min(WORDS)]
    }

    /// Adds `cpu`. Panics if it is not below [`NR_CPUS_MAX`]: callers check numbers from files
    /// first.
    #[inline]
    pub fn set(&mut self, cpu: CpuId) {
        let word = cpu.index() / 64;
        self.words[word] |= 1 << (cpu.index() % 64);
        self.used = self.used.max(word as u32 + 1);
    }

    /// Removes `cpu`.
    #[inline]
    pub fn clear(&mut self, cpu: CpuId) {
        self.words[cpu.index() / 64] &= !(1 << (cpu.index() % 64));
    }

    /// Removes `cpu`; returns whether it was in the set.
    #[inline]
    pub fn take(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = (&mut self.words[cpu.index() / 64], 1 << (cpu.index() % 64));
        let was_set = *word & bit != 0;
        *word &= !bit;
        was_set
    }

    /// Whether `cpu` is in the set.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        cpu.index() < NR_CPUS_MAX && self.words[cpu.index() / 64] >> (cpu.index() % 64) & 1 == 1
    }

    /// Number of CPUs in the set (`nr_cpus_allowed`).
    #[inline]
    pub fn weight(&self) -> u32 {
        self.used_words().iter().map(|w| w.count_ones()).sum()
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used_words().iter().all(|&w| w == 0)
    }

    /// The lowest CPU of the set.
    #[inline]
    pub fn first_cpu(&self) -> Option<CpuId> {
        let words = self.used_words();
        let index = words.iter().position(|&w| w != 0)?;
        Some(CpuId(index as u32 * 64 + words[index].trailing_zeros()))
    }

    /// CPUs in both sets.
    #[inline]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = Self::empty();
        both.used = self.used.min(other.used);
        for (i, word) in self.used_words().iter().zip(other.used_words()).enumerate() {
            both.words[i] = word.0 & word.1;
        }
        both
    }

    /// Whether the sets have a CPU in common.
    #[inline]
    pub fn intersects(&self, other: &Self) -> bool {
        self.used_words().iter().zip(other.used_words()).any(|(a, b)| a & b != 0)
    }

    /// Returns the first CPU that is in both sets. The search starts at `start`, goes up and wraps
    /// round, and looks at no more than the first `most` CPUs of this set.
    pub fn first_common_from(&self, start: CpuId, other: &Self, most: u32) -> Option<CpuId> {
        let end = self.used * 64;
        let start = start.0.min(end);
        let mut left = most;
        self.first_common_between(start, end, other, &mut left)
            .or_else(|| self.first_common_between(0, start, other, &mut left))
    }

    /// As [`Self::first_common_from`], from CPU `from` to below `to`. Each CPU that it passes
    /// reduces `left` by one.
    fn first_common_between(
        &self,
        from: u32,
        to: u32,
        other: &Self,
        left: &mut u32,
    ) -> Option<CpuId> {
        let mut base = from & !63;
        while base < to && *left > 0 {
            let index = base as usize / 64 % WORDS;
            let mut own = self.words[index];
            if base < from {
                own = own >> (from - base) << (from - base);
            }
            if to - base < 64 {
                own &= (1 << (to - base)) - 1;
            }
            let common = own & other.words[index];
            if common != 0 {
                let bit = common.trailing_zeros();
                let passed = (own & ((1 << bit) - 1)).count_ones();
                let is_near = passed < *left;
                *left = 0;
                return is_near.then_some(CpuId(base + bit));
            }
            *left = left.saturating_sub(own.count_ones());
            base += 64;
        }
        None
    }

    /// CPUs of this set that are not in `other`.
    #[inline]
    pub fn and_not(&self, other: &Self) -> Self {
        let mut rest = Self::empty();
        rest.used = self.used;
        for (i, word) in self.used_words().iter().enumerate() {
            rest.words[i] = word & !other.words[i];
        }
        rest
    }

    /// CPUs in either set.
    #[inline]
    pub fn or(&self, other: &Self) -> Self {
        let mut either = *self;
        either.used = self.used.max(other.used);
        for (i, word) in other.used_words().iter().enumerate() {
            either.words[i] |= word;
        }
        either
    }

    /// Iterates over the CPUs in ascending order.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        Iter::between(&self.words, 0, self.used * 64)
    }

    /// Iterates over the CPUs in ascending order from `start`, then over those below it.
    #[inline]
    pub fn iter_from(&self, start: CpuId) -> impl Iterator<Item = CpuId> + '_ {
        let end = self.used * 64;
        let start = start.0.min(end);
        Iter::between(&self.words, start, end).chain(Iter::between(&self.words, 0, start))
    }
}

/// CPUs of a set in ascending order.
#[derive(Clone, Debug)]
pub struct Iter<'m> {
    words: &'m [u64; WORDS],
    /// Bits not yet returned of the word that ends before CPU `base + 64`.
    rest: u64,
    base: u32,
    /// The iteration ends before this CPU.
    end: u32,
}

impl<'m> Iter<'m> {
    #[inline]
    fn between(words: &'m [u64; WORDS], start: u32, end: u32) -> Self {
        let base = start & !63;
        let rest = if start < end {
            words[start as usize / 64] >> (start % 64) << (start % 64)
        } else {
            0
        };
        Self { words, rest, base, end }
    }
}

impl Iterator for Iter<'_> {
    type Item = CpuId;

    #[inline]
    fn next(&mut self) -> Option<CpuId> {
        while self.rest == 0 {
            self.base += 64;
            if self.base >= self.end {
                self.base = self.end;
                return None;
            }
            self.rest = self.words[self.base as usize / 64 % WORDS];
        }
        let cpu = self.base + self.rest.trailing_zeros();
        self.rest &= self.rest - 1;
        if cpu >= self.end {
            self.rest = 0;
            self.base = self.end;
            return None;
        }
        Some(CpuId(cpu))
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

/// Why a text is no list of CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CpuListError {
    /// A part is neither a CPU nor a range of CPUs, each below [`NR_CPUS_MAX`].
    NotCpus(String),
    /// A range whose end comes before its begin.
    Backwards(u32, u32),
}

impl fmt::Display for CpuListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCpus(part) => write!(
                f,
                "{part:?} names no CPUs: expected a list such as 0-3,8, with CPUs 0 to {}",
                NR_CPUS_MAX - 1
            ),
            Self::Backwards(first, last) => {
                write!(f, "{first}-{last} runs backwards: write {last}-{first}")
            }
        }
    }
}

impl std::error::Error for CpuListError {}

/// Reads the kernel's list format (Documentation/admin-guide/kernel-parameters.rst, cpu lists):
/// `0-3,8`. The empty text is refused.
impl std::str::FromStr for CpuMask {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let number = |text: &str| {
            let wrong = || CpuListError::NotCpus(text.chars().take(20).collect());
            // `parse` would take a sign.
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<u32>().ok().filter(|_| is_plain);
            number.filter(|cpu| (*cpu as usize) < NR_CPUS_MAX).ok_or_else(wrong)
        };
        let mut mask = Self::empty();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first.trim())?, number(last.trim())?);
            if first > last {
                return Err(CpuListError::Backwards(first, last));
            }
            (first..=last).for_each(|cpu| mask.set(CpuId(cpu)));
        }
        Ok(mask)
    }
}

impl fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuMask({self})")
    }
}

/// As a sequence of the CPUs' numbers.
#[cfg(feature = "borsh")]
impl borsh::BorshSerialize for CpuMask {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        self.iter().map(|cpu| cpu.0).collect::<Vec<u32>>().serialize(writer)
    }
}

#[cfg(feature = "borsh")]
impl borsh::BorshDeserialize for CpuMask {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Self> {
        let cpus = Vec::<u32>::deserialize_reader(reader)?;
        match cpus.iter().find(|cpu| **cpu as usize >= NR_CPUS_MAX) {
            None => Ok(cpus.into_iter().map(CpuId).collect()),
            Some(cpu) => Err(borsh::io::Error::new(
                borsh::io::ErrorKind::InvalidData,
                format!("CPU {cpu}: allowed are 0 to {}", NR_CPUS_MAX - 1),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    #[test]
    fn prints_the_kernels_list_format() {
        let mask: CpuMask = [0, 1, 2, 5, 8, 9].map(CpuId).into_iter().collect();
        assert_eq!(mask.to_string(), "0-2,5,8-9");
        assert_eq!(CpuMask::empty().to_string(), "");
    }

    #[test]
    fn iterates_from_a_cpu_and_wraps() {
        let mask: CpuMask = [1, 3, 64, 1023].map(CpuId).into_iter().collect();
        let from = |start| mask.iter_from(CpuId(start)).map(|c| c.0).collect::<Vec<u32>>();
        assert_eq!(from(4), [64, 1023, 1, 3]);
        assert_eq!(from(0), [1, 3, 64, 1023]);
        assert_eq!(from(3), [3, 64, 1023, 1]);
        assert_eq!(from(64), [64, 1023, 1, 3]);
        assert_eq!(from(1024), [1, 3, 64, 1023]);
        assert_eq!(mask.weight(), 4);
        let mut iter = mask.iter();
        assert_eq!(iter.by_ref().count(), 4);
        assert_eq!(iter.next(), None);
        assert_eq!(CpuMask::empty().iter_from(CpuId(5)).next(), None);
    }

    /// Against a walk through the set.
    #[test]
    fn the_first_common_cpu_is_that_of_a_walk() {
        let mut random = Stream::new(5, Purpose::Scheduler, 0);
        for _ in 0..3_000 {
            let top = 1 + random.below(200);
            let density = 1 + random.below(40);
            let mut draw = |one_in: u64| {
                (0..top as u32).map(CpuId).filter(|_| random.below(one_in) == 0).collect()
            };
            let (all, other): (CpuMask, CpuMask) = (draw(2), draw(density));
            let start = CpuId(random.below(top + 2) as u32);
            let most = random.below(top + 1) as u32;
            let mut walk = all.iter_from(start).take(most as usize);
            let expected = walk.find(|cpu| other.contains(*cpu));
            assert_eq!(all.first_common_from(start, &other, most), expected);
        }
    }

    /// How a set came about does not show: only its CPUs count.
    #[test]
    fn sets_are_what_is_in_them() {
        let set = |cpus: &[u32]| cpus.iter().map(|cpu| CpuId(*cpu)).collect::<CpuMask>();
        let mut shrunk = set(&[3, 900]);
        shrunk.clear(CpuId(900));
        assert_eq!(shrunk, set(&[3]));
        assert_eq!(shrunk.or(&set(&[70])), set(&[3, 70]));
        assert_eq!(set(&[3, 70]).and(&shrunk), set(&[3]));
        assert_eq!(set(&[3, 70]).and_not(&shrunk), set(&[70]));
        assert_eq!(shrunk.and_not(&set(&[3, 70])), CpuMask::empty());
        assert!(shrunk.intersects(&set(&[3, 4])) && !shrunk.intersects(&set(&[4, 900])));
        shrunk.clear(CpuId(3));
        assert!(shrunk.is_empty() && shrunk.first_cpu().is_none() && shrunk.weight() == 0);
        assert_eq!(CpuMask::first(1024).iter().count(), 1024);
        assert_eq!(set(&[65, 1000]).first_cpu(), Some(CpuId(65)));
    }
}
