// SPDX-License-Identifier: MIT OR Apache-2.0
//! What binary recordings of the kernel's tracepoints have in common: the descriptions of events
//! that stand in their heads, and the bytes of the events. perf.data and trace.dat differ in what
//! is around them.
//!
//! Everything is taken as hostile: each length is checked against what is there, and no number in
//! a file decides how much memory is taken.

pub(crate) mod feed;
pub(crate) mod format;
pub(crate) mod head;
#[cfg(test)]
pub(crate) mod testing;

/// Largest piece of a head that is held in memory at once.
pub(crate) const PIECE_MAX: u64 = 64 << 20;

/// The number in `bytes` at `at`, little-endian, of 1, 2, 4 or 8 bytes; `None` beyond the end.
pub(crate) fn number_at(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let slice = bytes.get(at..at.checked_add(size)?)?;
    let mut whole = [0; 8];
    whole.get_mut(..size)?.copy_from_slice(slice);
    Some(u64::from_le_bytes(whole))
}

/// The number of 4 bytes at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    number_at(bytes, at, 4).map(|number| number as u32)
}

/// The number of 8 bytes at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number_at(bytes, at, 8)
}
