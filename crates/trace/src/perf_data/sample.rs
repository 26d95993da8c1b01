// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples: fields whose presence and order the description of their event tells.

use super::record::HEADER;
use crate::tracepoint::{u32_at, u64_at};

/// Bits of `perf_event_sample_format`.
const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// Which fields samples have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub sample_type: u64,
    pub read_format: u64,
    /// Whether other records end with time and CPU (`sample_id_all`).
    pub has_trailer: bool,
}

/// When and where something happened, and who ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stamp {
    pub time_ns: u64,
    pub cpu: u32,
    /// Process and thread; -1: perf did not know it.
    pub tgid: i32,
    pub tid: i32,
}

impl Layout {
    /// Whether all is there that an event of the scheduler needs.
    pub fn check(&self) -> Result<(), String> {
        for (bit, what, option) in [
            (TIME, "times", "-T"),
            (CPU, "CPUs", "-a"),
            (TID, "process ids", "-a"),
            (RAW, "fields of tracepoints", "-R"),
        ] {
            if self.sample_type & bit == 0 {
                return Err(format!(
                    "the recording has no {what}: record with `perf record {option}`"
                ));
            }
        }
        Ok(())
    }

    /// Whether the identifier of its event is the first field of a sample.
    pub const fn has_identifier(&self) -> bool {
        self.sample_type & IDENTIFIER != 0
    }

    /// The identifier of the event of a sample, where it can be found without its layout.
    pub fn identifier(record: &[u8]) -> Option<u64> {
        u64_at(record, HEADER)
    }

    /// The fields of a sample that matter; `None`: it is too short for them.
    pub fn sample<'a>(&self, record: &'a [u8]) -> Option<(Stamp, &'a [u8])> {
        let mut at = HEADER;
        let mut stamp = Stamp::default();
        let has = |bit: u64| self.sample_type & bit != 0;
        at += 8 * usize::from(has(IDENTIFIER)) + 8 * usize::from(has(IP));
        if has(TID) {
            stamp.tgid = u32_at(record, at)? as i32;
            stamp.tid = u32_at(record, at + 4)? as i32;
            at += 8;
        }
        if has(TIME) {
            stamp.time_ns = u64_at(record, at)?;
            at += 8;
        }
        at += 8 * usize::from(has(ADDR)) + 8 * usize::from(has(ID));
        at += 8 * usize::from(has(STREAM_ID));
        if has(CPU) {
            stamp.cpu = u32_at(record, at)?;
            at += 8;
        }
        at += 8 * usize::from(has(PERIOD));
        if has(READ) {
            at = at.checked_add(self.read_size(record, at)?)?;
        }
        if has(CALLCHAIN) {
            let len = usize::try_from(u64_at(record, at)?).ok()?.checked_mul(8)?;
            at = at.checked_add(8)?.checked_add(len)?;
        }
        if !has(RAW) {
            return Some((stamp, &[]));
        }
        let len = u32_at(record, at)? as usize;
        let raw = record.get(at + 4..at.checked_add(4)?.checked_add(len)?)?;
        Some((stamp, raw))
    }

    /// Bytes of a `read_format`: times, then for one event or for each of a group a value, an
    /// identifier, a count of losses.
    fn read_size(&self, record: &[u8], at: usize) -> Option<usize> {
        let bit = |bit: u64| usize::from(self.read_format & bit != 0);
        let (times, each) = (bit(1) + bit(2), 1 + bit(4) + bit(16));
        if bit(8) == 0 {
            return Some(8 * (times + each));
        }
        let count = usize::try_from(u64_at(record, at)?).ok()?;
        count.checked_mul(each)?.checked_add(1 + times)?.checked_mul(8)
    }

    /// Time and CPU at the end of a record that is no sample.
    pub fn trailer(&self, record: &[u8]) -> Option<Stamp> {
        if !self.has_trailer {
            return None;
        }
        let has = |bit: u64| usize::from(self.sample_type & bit != 0);
        let fields = has(TID) + has(TIME) + has(ID) + has(STREAM_ID) + has(CPU) + has(IDENTIFIER);
        let mut at = record.len().checked_sub(8 * fields).filter(|at| *at >= HEADER)?;
        let mut stamp = Stamp::default();
        if has(TID) > 0 {
            stamp.tgid = u32_at(record, at)? as i32;
            stamp.tid = u32_at(record, at + 4)? as i32;
            at += 8;
        }
        if has(TIME) > 0 {
            stamp.time_ns = u64_at(record, at)?;
            at += 8;
        }
        at += 8 * (has(ID) + has(STREAM_ID));
        if has(CPU) > 0 {
            stamp.cpu = u32_at(record, at)?;
        }
        Some(stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Every field that can precede the raw bytes, and a group of two values with their ids.
    #[test]
    fn raw_bytes_are_found_behind_all_other_fields() {
        let sample_type = IP | TID | TIME | ADDR | READ | CALLCHAIN | ID | CPU | PERIOD | STREAM_ID;
        let layout = Layout {
            sample_type: sample_type | RAW | IDENTIFIER,
            read_format: 1 | 4 | 8,
            has_trailer: true,
        };
        let who = 7u64 | 8 << 32;
        let mut record = words(&[0, 99, 1, who, 1_000, 2, 99, 3, 5, 4]);
        // Two values: enabled, then value and id of each. A chain of three. Four raw bytes.
        record.extend(words(&[2, 50, 11, 12, 13, 14, 3, 21, 22, 23, 4 | 0xabcd_1234 << 32]));
        let (stamp, raw) = layout.sample(&record).unwrap();
        assert_eq!(stamp, Stamp { time_ns: 1_000, cpu: 5, tgid: 7, tid: 8 });
        assert_eq!(raw, 0xabcd_1234u32.to_le_bytes());
        for end in 0..record.len() {
            assert_eq!(layout.sample(&record[..end]).map(|found| found.1), None, "{end} bytes");
        }
        let record = words(&[0, 1, who, 1_000, 99, 3, 5, 99]);
        let wanted = Stamp { time_ns: 1_000, cpu: 5, tgid: 7, tid: 8 };
        assert_eq!(layout.trailer(&record), Some(wanted));
        assert_eq!(layout.trailer(&record[..48]), None);
    }
}
