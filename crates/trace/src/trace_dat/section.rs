// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pieces of a file of version 7 that may be compressed.

use crate::tracepoint::PIECE_MAX;
use crate::tracepoint::feed::Feed;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// A stream that reads from a position on.
pub(super) fn from<R: Read + Seek>(
    source: &mut R,
    offset: u64,
) -> Result<Feed<BufReader<&mut R>>, String> {
    source.seek(SeekFrom::Start(offset)).map_err(|error| error.to_string())?;
    let mut feed = Feed::new(BufReader::new(source));
    feed.at = offset;
    Ok(feed)
}

/// A section: its number and its content.
pub(super) fn read<R: Read + Seek>(source: &mut R, offset: u64) -> Result<(u16, Vec<u8>), String> {
    let what = "a section";
    let mut feed = from(source, offset)?;
    let (number, flags) = (feed.u16(what)?, feed.u16(what)?);
    feed.skip(4, what)?;
    let size = feed.u64(what)?;
    if flags & 1 == 0 {
        return Ok((number, feed.bytes(size, what)?));
    }
    Ok((number, chunk(&mut feed)?))
}

/// A compressed piece: its size, the size of its content, and its bytes.
pub(super) fn chunk<R: Read>(feed: &mut Feed<R>) -> Result<Vec<u8>, String> {
    let what = "a compressed piece";
    let (packed, size) = (feed.u32(what)?, u64::from(feed.u32(what)?));
    if size > PIECE_MAX {
        return Err(format!("{what} has {size} bytes when unpacked: allowed are {PIECE_MAX}"));
    }
    unpack(&feed.bytes(packed.into(), what)?, size as usize)
}

#[cfg(feature = "zstd")]
fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    let wrong = |error| format!("a compressed piece is damaged: {error}");
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(wrong)?;
    decoder.take(size as u64 + 1).read_to_end(&mut unpacked).map_err(wrong)?;
    match unpacked.len() {
        len if len == size => Ok(unpacked),
        len => Err(format!("a compressed piece has {len} bytes, but should have {size}")),
    }
}

#[cfg(not(feature = "zstd"))]
fn unpack(_: &[u8], _: usize) -> Result<Vec<u8>, String> {
    Err("it is compressed, which this build cannot read: record with `--compression none`".into())
}
