// SPDX-License-Identifier: MIT OR Apache-2.0
//! The five forms of protobuf that a Perfetto trace needs.
//!
//! Source: Protocol Buffers, "Encoding". Written by hand, because it is this short, and a generated
//! writer is more than ten times slower on packed fields.

use crate::varint;

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

/// A number. Negative numbers of signed types are passed as `value as i64 as u64`.
pub fn number(buffer: &mut Vec<u8>, field: u64, value: u64) {
    varint::push(buffer, field << 3 | VARINT);
    varint::push(buffer, value);
}

/// A number of eight bytes.
pub fn fixed64(buffer: &mut Vec<u8>, field: u64, value: u64) {
    varint::push(buffer, field << 3 | FIXED64);
    buffer.extend_from_slice(&value.to_le_bytes());
}

/// Bytes, text, a packed field, or a message that has been encoded.
pub fn bytes(buffer: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint::push(buffer, field << 3 | LENGTH_DELIMITED);
    varint::push(buffer, value.len() as u64);
    buffer.extend_from_slice(value);
}

/// Bytes; nothing if they are empty.
pub fn bytes_if_any(buffer: &mut Vec<u8>, field: u64, value: &[u8]) {
    if !value.is_empty() {
        bytes(buffer, field, value);
    }
}

/// A message that `fill` writes in place. Most are shorter than 128 bytes, so their length is one
/// byte. The content of a longer one is moved to make room.
#[inline]
pub fn message(buffer: &mut Vec<u8>, field: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    varint::push(buffer, field << 3 | LENGTH_DELIMITED);
    let at = buffer.len();
    buffer.push(0);
    fill(buffer);
    let length = buffer.len() - at - 1;
    if length < 0x80 {
        buffer[at] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(varint::MAX_VARINT);
    varint::push(&mut prefix, length as u64);
    buffer.splice(at..=at, prefix);
}
