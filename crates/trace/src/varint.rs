// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variable-length integers: seven bits a byte, least significant first, the high bit set on all
//! but the last byte (LEB128; the encoding of protobuf).

/// Longest encoding of a `u64`.
pub(crate) const MAX_VARINT: usize = 10;

/// Writes `value` at `buffer[at..]` and returns the position after it.
#[inline]
pub(crate) fn put<const N: usize>(buffer: &mut [u8; N], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        buffer[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    buffer[at] = value as u8;
    at + 1
}

/// Appends `value`.
#[inline]
pub(crate) fn push(buffer: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        buffer.push(value as u8);
        return;
    }
    let mut bytes = [0; MAX_VARINT];
    let length = put(&mut bytes, 0, value);
    buffer.extend_from_slice(&bytes[..length]);
}

/// A varint could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VarintError {
    /// The bytes end inside it.
    Truncated,
    /// It does not fit 64 bits, or is longer than necessary.
    Malformed,
}

/// Reads a varint at `*at` and advances `*at` past it.
#[inline]
pub(crate) fn get(bytes: &[u8], at: &mut usize) -> Result<u64, VarintError> {
    // One and two bytes, nearly all numbers of a trace, without a loop.
    match bytes.get(*at..) {
        Some(&[byte, ..]) if byte < 0x80 => {
            *at += 1;
            Ok(u64::from(byte))
        }
        Some(&[low, high, ..]) if high < 0x80 && high > 0 => {
            *at += 2;
            Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
        }
        _ => get_long(bytes, at),
    }
}

#[inline(never)]
fn get_long(bytes: &[u8], at: &mut usize) -> Result<u64, VarintError> {
    let (mut value, mut position) = (0u64, *at);
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(position).ok_or(VarintError::Truncated)?;
        position += 1;
        let bits = u64::from(byte & 0x7f);
        if (shift == 63 && bits > 1) || (shift > 0 && byte == 0) {
            return Err(VarintError::Malformed);
        }
        value |= bits << shift;
        if byte < 0x80 {
            *at = position;
            return Ok(value);
        }
    }
    Err(VarintError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_at_every_length() {
        for bits in 0..64 {
            for value in [1u64 << bits, (1u64 << bits) - 1, (1u64 << bits) | 1, u64::MAX >> bits] {
                let mut bytes = Vec::new();
                push(&mut bytes, value);
                let mut at = 0;
                assert_eq!(get(&bytes, &mut at), Ok(value));
                assert_eq!(at, bytes.len());
                at = 0;
                let cut = &bytes[..bytes.len() - 1];
                assert_eq!(get(cut, &mut at), Err(VarintError::Truncated));
            }
        }
        assert_eq!(get(&[0xff; 11], &mut 0), Err(VarintError::Malformed));
        assert_eq!(get(&[0x81, 0x00], &mut 0), Err(VarintError::Malformed));
        let mut too_big = [0xff; 10];
        too_big[9] = 2;
        assert_eq!(get(&too_big, &mut 0), Err(VarintError::Malformed));
    }
}
