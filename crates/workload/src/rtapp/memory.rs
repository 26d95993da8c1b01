// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that touch memory or a device: `mem`, `memrun`, `iorun`.
//!
//! Source: rt-app's src/rt-app.c, `memload` and `ioload`, and its pull request 147 (2026) for
//! `memrun`, whose defaults for `stride` and `pattern` are chosen here.

use super::Reader;
use super::error::{Result, problem};
use super::json::{
    Members, byte_amount, bytes, count_amount, integer, key_span, object, span, string, wrong_kind,
};
use crate::WarningKind;
use crate::units::BYTES_MAX;
use jsonc_parser::ast::Value;
use schedlab_model::program::IoDirection;
use schedlab_model::suggest::{did_you_mean, list};
use schedlab_model::{Amount, MemAccess, MemPattern, Memory, Op};

/// rt-app's default of `mem_buffer_size`.
pub(crate) const MEM_BUFFER_BYTES: u64 = 4 << 20;

/// `mem`: writes bytes to the task's buffer, and begins at its start again when it is full.
pub(crate) fn mem(reader: &Reader, value: &Value, name: &str) -> Result<Op> {
    let bytes = byte_amount(value, name)?;
    let size_bytes = reader.mem_buffer_bytes;
    let most = match bytes {
        Amount::Constant(bytes) => bytes,
        Amount::Uniform { high, .. } => high,
        Amount::Exponential { .. } => u64::MAX,
    };
    if most <= size_bytes {
        return Ok(Op::Mem { bytes });
    }
    // More than the buffer: as many lines, in order, within it.
    let line = Memory::LINE;
    let count = match bytes {
        Amount::Constant(bytes) => Amount::Constant(bytes.div_ceil(line)),
        Amount::Uniform { low, high } => {
            Amount::Uniform { low: low.div_ceil(line), high: high.div_ceil(line) }
        }
        Amount::Exponential { mean } => Amount::Exponential { mean: mean.div_ceil(line) },
    };
    let (access, pattern) = (MemAccess::Write, MemPattern::Sequential);
    Ok(Op::MemRun { access, pattern, size_bytes, stride_bytes: line, count })
}

/// `memrun`: accesses to a buffer of a given size.
pub(crate) fn memrun(reader: &mut Reader, value: &Value, name: &str) -> Result<Op> {
    let keys = ["type", "size", "count", "stride", "pattern", "ref"];
    let mut members = Members::new(object(value, name)?, &keys, name)?;
    let missing = |what: &str| {
        let help = "a `memrun` object is { \"type\": \"read\", \"write\" or \"chase\", \"size\": \
                    bytes of the buffer, \"count\": accesses, \"stride\": bytes, \"pattern\": \
                    \"sequential\" or \"random\" }";
        problem(span(value), format!("`{name}` has no `{what}`"), help)
    };
    let access = members.take("type").ok_or_else(|| missing("type"))?;
    let accesses =
        [("read", MemAccess::Read), ("write", MemAccess::Write), ("chase", MemAccess::Chase)];
    let access = word(access, "type", &accesses)?;
    let is_chase = access == MemAccess::Chase;
    let count = members.take("count").ok_or_else(|| missing("count"))?;
    let count = count_amount(count, "count")?;
    let size_bytes = match members.take("size") {
        Some(value) => positive(value, "size")?,
        None => reader.mem_buffer_bytes,
    };
    let stride_bytes = match members.take("stride") {
        Some(value) => positive(value, "stride")?,
        None if is_chase => Memory::LINE,
        None => 1,
    };
    let patterns = [("sequential", MemPattern::Sequential), ("random", MemPattern::Random)];
    let pattern = match members.take("pattern") {
        Some(value) => word(value, "pattern", &patterns)?,
        None if is_chase => MemPattern::Random,
        None => MemPattern::Sequential,
    };
    if let Some(member) = members.take_member("ref") {
        let text = "`ref` has no effect: each task has a buffer of its own for each `memrun`";
        reader.warn(WarningKind::Memory, key_span(member).start, text.into());
    }
    Ok(Op::MemRun { access, pattern, size_bytes, stride_bytes, count })
}

/// A number of bytes above 0.
fn positive(value: &Value, name: &str) -> Result<u64> {
    match bytes(value, name)? {
        0 => {
            let help = format!("allowed are 1 to {BYTES_MAX} bytes");
            Err(problem(span(value), format!("`{name}` is 0"), help))
        }
        bytes => Ok(bytes),
    }
}

/// One of some words.
fn word<T: Copy>(value: &Value, name: &str, words: &[(&str, T)]) -> Result<T> {
    let found = string(value, name)?;
    let known = || words.iter().map(|(word, _)| *word);
    match words.iter().find(|(word, _)| *word == found) {
        Some((_, meaning)) => Ok(*meaning),
        None => Err(problem(
            span(value),
            format!("{name} {found:?} is not known"),
            did_you_mean(found, known()) + "allowed are " + &list(known()),
        )),
    }
}

/// `iorun`. In rt-app it is a number of bytes, written through the page cache. schedlab also
/// accepts an object with more keys.
pub(crate) fn iorun(value: &Value, name: &str) -> Result<Op> {
    let Value::Object(body) = value else {
        let bytes = byte_amount(value, name)?;
        return Ok(Op::Io { direction: IoDirection::Write, bytes, sync: false });
    };
    let keys = ["direction", "bytes", "sync"];
    let mut members = Members::new(body, &keys, name)?;
    let missing = |what: &str| {
        let help = "an `iorun` object is { \"direction\": \"read\" or \"write\", \"bytes\": n, \
                    \"sync\": true or false }";
        problem(span(value), format!("`{name}` has no `{what}`"), help)
    };
    let direction = members.take("direction").ok_or_else(|| missing("direction"))?;
    let directions = [("read", IoDirection::Read), ("write", IoDirection::Write)];
    let direction = word(direction, "direction", &directions)?;
    let bytes = byte_amount(members.take("bytes").ok_or_else(|| missing("bytes"))?, "bytes")?;
    let sync = match members.take("sync") {
        None => false,
        Some(Value::BooleanLit(literal)) => literal.value,
        Some(other) => return wrong_kind(other, "sync", "true (waits for the device) or false"),
    };
    Ok(Op::Io { direction, bytes, sync })
}

/// Reads `mem_buffer_size` of `global`.
pub(crate) fn read_buffer_size(value: &Value) -> Result<u64> {
    match value {
        Value::StringLit(_) => positive(value, "mem_buffer_size"),
        _ => integer(value, "mem_buffer_size", 1..=BYTES_MAX as i64).map(|bytes| bytes as u64),
    }
}
