// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels: pipes and socket pairs.
//!
//! The tasks count the bytes in a channel themselves. So they know without a system call whether a
//! transfer is likely to block, which is recorded as a mark in the trace.
//!
//! A capacity means bytes of messages. A socket counts the memory of each message instead
//! (`truesize` in include/linux/skbuff.h). Its send buffer is therefore set to the memory of as
//! many messages of the size that the programs send.

use crate::sys::{self, SharedMap};
use schedlab_model::ChannelKind;
use schedlab_model::objects::{socket_memory_bytes, socket_payload_bytes};
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// No process has the other end any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

/// The tasks' counts. Zero is valid.
#[repr(C, align(64))]
#[derive(Debug)]
struct LevelCell {
    /// Bytes sent minus bytes received. Each is counted after its system call, so slightly late.
    level: AtomicI64,
    /// The capacity that the kernel reports; written once, before the tasks are created.
    capacity: AtomicU64,
}

/// A channel.
#[derive(Debug)]
pub struct Channel {
    at: usize,
    kind: ChannelKind,
    /// Requested capacity (bytes).
    pub asked_bytes: u64,
    /// Largest message that a program sends (bytes); 0: none.
    message_bytes: u64,
    /// Descriptor of the reading end; negative until it is open.
    pub read: i32,
    /// Of the writing end.
    pub write: i32,
}

impl Channel {
    /// A channel that is not open yet. Its counts are at byte `at` of zeroed memory.
    pub fn new(at: usize, kind: ChannelKind, asked_bytes: u64, message_bytes: u64) -> Self {
        Self { at, kind, asked_bytes, message_bytes, read: -1, write: -1 }
    }

    fn cell<'m>(&self, map: &'m SharedMap) -> &'m LevelCell {
        // SAFETY: made of atomics, for which zero is valid.
        unsafe { map.at(self.at) }
    }

    /// Bytes in the channel, slightly late.
    pub fn level(&self, map: &SharedMap) -> i64 {
        self.cell(map).level.load(Ordering::Relaxed)
    }

    /// Capacity that the kernel gives it (bytes); 0 until it is open.
    pub fn capacity(&self, map: &SharedMap) -> u64 {
        self.cell(map).capacity.load(Ordering::Relaxed)
    }

    /// Creates both ends.
    pub fn open(&mut self, map: &SharedMap) -> io::Result<()> {
        let capacity = match self.kind {
            ChannelKind::Pipe => {
                (self.read, self.write) = sys::pipe()?;
                let capacity = sys::set_pipe_capacity(self.write, self.asked_bytes)?;
                // A pipe keeps the page of a message that was read: the first of the run finds one.
                sys::write_some(self.write, &[0])?;
                sys::read_some(self.read, &mut [0])?;
                capacity
            }
            ChannelKind::SocketPair => {
                (self.read, self.write) = sys::socket_pair()?;
                // A message is taken while the memory of those before is below the limit.
                let one = self.message_bytes.clamp(1, self.asked_bytes);
                let count = self.asked_bytes / one;
                let memory = count.saturating_mul(socket_memory_bytes(one));
                let got = sys::set_send_buffer(self.write, memory)?;
                if got.abs_diff(memory) <= 1 {
                    self.asked_bytes
                } else {
                    socket_payload_bytes(got, one)
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that go into a new channel before a writer would have to wait.
    fn fits(kind: ChannelKind, capacity: u64, message: usize) -> u64 {
        let map = SharedMap::new(64).unwrap();
        let mut channel = Channel::new(0, kind, capacity, message as u64);
        channel.open(&map).unwrap();
        assert_eq!(channel.capacity(&map), capacity);
        sys::set_nonblocking(channel.write).unwrap();
        let mut bytes = 0;
        while let Ok(written) = sys::write_some(channel.write, &vec![1; message]) {
            bytes += written as u64;
        }
        sys::close(channel.read);
        sys::close(channel.write);
        bytes
    }

    #[test]
    fn a_channel_holds_the_bytes_it_was_asked_to_hold() {
        assert_eq!(fits(ChannelKind::Pipe, 65_536, 4_096), 65_536);
        let sizes = [(100, 27_800), (1, 278), (1_000, 50_000), (4_000, 200_000), (9_000, 90_000)];
        for (message, capacity) in sizes {
            let bytes = fits(ChannelKind::SocketPair, capacity, message);
            let off = bytes.abs_diff(capacity);
            assert!(off <= capacity / 10, "{message}: {bytes} instead of {capacity}");
        }
    }
}
