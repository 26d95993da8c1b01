// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of a stream, one at a time, in a fixed amount of memory.

use crate::tracepoint::{PIECE_MAX, number_at, u32_at};
use std::io::{ErrorKind, Read};

/// Bytes read at a time. A record has at most 65,535.
const BUFFER: usize = 1 << 20;
/// Type, flags and size of a record.
pub(super) const HEADER: usize = 8;

/// Type of a record, its flags and its bytes, header included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    pub kind: u32,
    pub whole: &'a [u8],
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Record<'a> {
    Whole(Bytes<'a>),
    /// No more; perhaps in the middle of a record.
    End {
        is_cut_off: bool,
    },
}

/// The records of a stream.
#[derive(Debug)]
pub(super) struct Records<R> {
    source: R,
    buffer: Vec<u8>,
    /// Unread bytes are `buffer[start..stop]`.
    start: usize,
    stop: usize,
    /// Position of `buffer[0]` in the file.
    base: u64,
    is_at_end: bool,
}

/// The record at the front of `bytes`; `None`: more bytes are needed.
pub(super) fn front(bytes: &[u8]) -> Result<Option<Bytes<'_>>, String> {
    let (Some(kind), Some(size)) = (u32_at(bytes, 0), number_at(bytes, 6, 2)) else {
        return Ok(None);
    };
    let size = size as usize;
    if size < HEADER {
        return Err(format!("a record of {size} bytes: it has at least {HEADER}"));
    }
    Ok(bytes.get(..size).map(|whole| Bytes { kind, whole }))
}

impl<R: Read> Records<R> {
    /// The records of `source`, which is at position `base` of its file. It buffers.
    pub fn new(source: R, base: u64) -> Self {
        let buffer = vec![0; BUFFER];
        Self { source, buffer, start: 0, stop: 0, base, is_at_end: false }
    }

    /// Position of the next record in the file.
    pub const fn at(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The next record.
    pub fn next_record(&mut self) -> Result<Record<'_>, String> {
        loop {
            let size = front(&self.buffer[self.start..self.stop])?.map(|record| record.whole.len());
            if let Some(size) = size {
                let from = self.start;
                self.start += size;
                let whole = &self.buffer[from..from + size];
                let kind = u32_at(whole, 0).unwrap_or_default();
                return Ok(Record::Whole(Bytes { kind, whole }));
            }
            if self.is_at_end {
                return Ok(Record::End { is_cut_off: self.start < self.stop });
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), String> {
        self.buffer.copy_within(self.start..self.stop, 0);
        self.base += self.start as u64;
        self.stop -= self.start;
        self.start = 0;
        match self.source.read(&mut self.buffer[self.stop..]) {
            Ok(0) => self.is_at_end = true,
            Ok(read) => self.stop += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }

    /// Passes over bytes that follow a record.
    pub fn skip(&mut self, mut len: u64) -> Result<(), String> {
        loop {
            let there = ((self.stop - self.start) as u64).min(len);
            self.start += there as usize;
            len -= there;
            if len == 0 || self.is_at_end {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// The bytes that follow a record.
    pub fn take(&mut self, len: u64) -> Result<Vec<u8>, String> {
        if len > PIECE_MAX {
            return Err(format!("a piece of {len} bytes: allowed are {PIECE_MAX}"));
        }
        let len = len as usize;
        let mut taken = Vec::new();
        loop {
            let there = (self.stop - self.start).min(len - taken.len());
            taken.extend_from_slice(&self.buffer[self.start..self.start + there]);
            self.start += there;
            if taken.len() == len || self.is_at_end {
                return Ok(taken);
            }
            self.fill()?;
        }
    }
}
