// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels: pipes and socket pairs.
//!
//! The tasks count the bytes in a channel beside the kernel, for one purpose: to know without a
//! system call whether a transfer is likely to block, which is worth a mark in the trace.

use crate::sys::{self, SharedMap};
use schedlab_model::ChannelKind;
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Nobody holds the other end any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

/// What the tasks count. Zero is valid.
#[repr(C, align(64))]
#[derive(Debug)]
struct LevelCell {
    /// Bytes sent less bytes received, each counted after its system call: a moment behind.
    level: AtomicI64,
    /// What the kernel says it holds; written once, before the tasks are made.
    capacity: AtomicU64,
}

/// A channel.
#[derive(Debug)]
pub struct Channel {
    at: usize,
    kind: ChannelKind,
    /// Bytes it is to hold.
    pub asked_bytes: u64,
    /// Descriptor of the reading end; negative before it is open.
    pub read: i32,
    /// Of the writing end.
    pub write: i32,
}

impl Channel {
    /// Not open yet; it counts at byte `at` of zeroed memory.
    pub fn new(at: usize, kind: ChannelKind, asked_bytes: u64) -> Self {
        Self { at, kind, asked_bytes, read: -1, write: -1 }
    }

    fn cell<'m>(&self, map: &'m SharedMap) -> &'m LevelCell {
        // SAFETY: made of atomics, for which zero is valid.
        unsafe { map.at(self.at) }
    }

    /// Bytes in it, a moment behind.
    pub fn level(&self, map: &SharedMap) -> i64 {
        self.cell(map).level.load(Ordering::Relaxed)
    }

    /// Bytes that the kernel lets it hold; 0 before it is open.
    pub fn capacity(&self, map: &SharedMap) -> u64 {
        self.cell(map).capacity.load(Ordering::Relaxed)
    }

    /// Makes both ends.
    pub fn open(&mut self, map: &SharedMap) -> io::Result<()> {
        let capacity = match self.kind {
            ChannelKind::Pipe => {
                (self.read, self.write) = sys::pipe()?;
                sys::set_pipe_capacity(self.write, self.asked_bytes)?
            }
            ChannelKind::SocketPair => {
                (self.read, self.write) = sys::socket_pair()?;
                sys::set_send_buffer(self.write, self.asked_bytes)?
            }
        };
        self.cell(map).capacity.store(capacity, Ordering::Relaxed);
        Ok(())
    }

    /// Writes `bytes` bytes, at most `buffer` at a time. `on_block` is called before a call that is
    /// likely to block.
    pub fn send(
        &self,
        map: &SharedMap,
        bytes: u64,
        buffer: &[u8],
        on_block: &mut dyn FnMut(),
    ) -> io::Result<Result<(), Closed>> {
        let cell = self.cell(map);
        let capacity = self.capacity(map) as i64;
        let mut left = bytes;
        while left > 0 {
            let len = left.min(buffer.len() as u64);
            if cell.level.load(Ordering::Relaxed) + len as i64 > capacity {
                on_block();
            }
            match sys::write_some(self.write, &buffer[..len as usize]) {
                Ok(written) => {
                    cell.level.fetch_add(written as i64, Ordering::Relaxed);
                    left -= written as u64;
                }
                Err(error) if is_closed(&error) => return Ok(Err(Closed)),
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(()))
    }

    /// Reads `bytes` bytes, at most `buffer` at a time. `on_block` as for [`Self::send`].
    pub fn receive(
        &self,
        map: &SharedMap,
        bytes: u64,
        buffer: &mut [u8],
        on_block: &mut dyn FnMut(),
    ) -> io::Result<Result<(), Closed>> {
        let cell = self.cell(map);
        let mut left = bytes;
        while left > 0 {
            let len = left.min(buffer.len() as u64);
            if cell.level.load(Ordering::Relaxed) <= 0 {
                on_block();
            }
            match sys::read_some(self.read, &mut buffer[..len as usize]) {
                Ok(0) => return Ok(Err(Closed)),
                Ok(read) => {
                    cell.level.fetch_sub(read as i64, Ordering::Relaxed);
                    left -= read as u64;
                }
                Err(error) if is_closed(&error) => return Ok(Err(Closed)),
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(()))
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET))
}
