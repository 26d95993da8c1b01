// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packs numbers into the report: LEB128 variable-length integers, one column after the other,
//! then zlib, then base64. The reader is `unpack` in assets/data.js; text goes the same way
//! ([`crate::fold`]).
//!
//! Packed this way, 100,000 slices take about a sixth of the space of plain typed arrays; the
//! browser test prints both sizes. Columns are separate because similar numbers compress best.

use base64::Engine as _;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write as _;

/// Collects numbers, then packs them.
#[derive(Debug, Default)]
pub struct Packer {
    bytes: Vec<u8>,
}

impl Packer {
    /// Appends one number. Values above 2^53 - 1 are ambiguous in the reader's doubles.
    pub fn push(&mut self, mut value: u64) {
        loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            if value == 0 {
                self.bytes.push(low);
                return;
            }
            self.bytes.push(low | 0x80);
        }
    }

    /// Appends ascending numbers as differences, the first from 0. A number below its predecessor
    /// counts as equal to it.
    pub fn push_ascending(&mut self, values: impl IntoIterator<Item = u64>) {
        let mut last = 0;
        for value in values {
            let value = value.max(last);
            self.push(value - last);
            last = value;
        }
    }

    /// The packed text.
    pub fn finish(self) -> String {
        packed_bytes(&self.bytes)
    }
}

/// Compresses bytes with zlib, then encodes them as base64.
pub fn packed_bytes(bytes: &[u8]) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    base64::engine::general_purpose::STANDARD.encode(packed.expect("writing to memory cannot fail"))
}

/// The greatest number of items that each series may keep so that all series together stay within
/// `limit`. Short series stay whole; long ones share the rest.
pub fn fair_cap(lengths: &[usize], limit: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut left = limit;
    for (index, length) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - index);
        if *length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Read as _;

    /// Unpacks the result of [`packed_bytes`].
    pub fn unpacked_bytes(text: &str) -> Vec<u8> {
        let packed = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        let mut bytes = Vec::new();
        flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn unpack(text: &str) -> Vec<u64> {
        let mut out = Vec::new();
        let (mut value, mut shift) = (0_u64, 0);
        for byte in unpacked_bytes(text) {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                out.push(value);
                (value, shift) = (0, 0);
            }
        }
        out
    }

    #[test]
    fn numbers_come_back() {
        let mut packer = Packer::default();
        for value in [0, 1, 127, 128, 300, u64::MAX] {
            packer.push(value);
        }
        packer.push_ascending([5, 5, 9, 3, 12]);
        let expected = [0, 1, 127, 128, 300, u64::MAX, 5, 0, 4, 0, 3];
        assert_eq!(unpack(&packer.finish()), expected);
    }

    #[test]
    fn cap_keeps_the_sum_within_the_limit_and_spares_short_series() {
        assert_eq!(fair_cap(&[10, 20, 30], 60), usize::MAX);
        let lengths = [10, 1000, 500];
        let cap = fair_cap(&lengths, 410);
        assert_eq!(cap, 200);
        assert!(lengths.iter().map(|l| l.min(&cap)).sum::<usize>() <= 410);
        assert_eq!(fair_cap(&[], 5), usize::MAX);
        assert_eq!(fair_cap(&[7, 7], 0), 0);
    }
}
