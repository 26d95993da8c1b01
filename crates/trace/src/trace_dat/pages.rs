// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of the kernel's ring buffer, event by event.
//!
//! A page begins with a time and the length of its events. The header of an event has 5 bits of
//! type or length and 27 bits of time since the event before (include/linux/ring_buffer.h).

use super::section::{chunk, from};
use crate::tracepoint::head::Machine;
use crate::tracepoint::{number_at, u32_at, u64_at};
use crate::{Place, ReadError};
use std::io::{Read, Seek, SeekFrom};

/// Pages of a CPU that are read at a time.
const PAGES: u64 = 16;
/// Largest page: sub-buffers can be larger than a page of memory since Linux 6.8.
const PAGE_MAX: usize = 1 << 26;

/// In the word of the length: how many bytes, and whether events before were lost and counted.
const LENGTH: u64 = (1 << 27) - 1;
const IS_COUNTED: u64 = 1 << 30;
const HAS_LOST: u64 = 1 << 31;

/// Types of events that are none.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of an absolute time.
const STAMP: u64 = (1 << 59) - 1;

/// Where things are in a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    page_size: usize,
    /// Place and size of the length.
    commit: (usize, usize),
    /// Where the events begin.
    data: usize,
    long_size: usize,
}

impl Layout {
    /// From the kernel's description of a page.
    pub fn of(text: &[u8], machine: Machine) -> Result<Self, String> {
        let text = String::from_utf8_lossy(text);
        let number = |line: &str, key: &str| -> Option<usize> {
            line.split(';').find_map(|part| part.trim().strip_prefix(key)?.parse().ok())
        };
        let field = |name: &str| {
            let line = text.lines().find(|line| {
                line.split(';').next().is_some_and(|head| head.trim_end().ends_with(name))
            });
            line.and_then(|line| Some((number(line, "offset:")?, number(line, "size:")?)))
        };
        let what = "the layout of a page has no field";
        let commit = field(" commit").ok_or_else(|| format!("{what} commit"))?;
        let (data, _) = field(" data").ok_or_else(|| format!("{what} data"))?;
        let page_size = machine.page_size as usize;
        let fits = matches!(commit.1, 4 | 8)
            && (8..=64).contains(&commit.0)
            && (8..=64).contains(&data)
            && (64..=PAGE_MAX).contains(&page_size);
        if !fits {
            return Err(format!(
                "the layout of a page cannot be so: {page_size} bytes, length at {}, events at \
                 {data}",
                commit.0
            ));
        }
        Ok(Self { page_size, commit, data, long_size: machine.long_size })
    }
}

/// What a CPU has next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Item<'a> {
    /// Time and bytes of an event.
    Event(u64, &'a [u8]),
    /// So many events were lost.
    Lost(u32),
}

/// The pages of one CPU.
#[derive(Debug)]
pub(super) struct Cpu {
    pub number: u32,
    layout: Layout,
    /// What has not been read of the file.
    offset: u64,
    end: u64,
    is_compressed: bool,
    /// Compressed pieces that have not been read.
    nr_chunks: u32,
    buffer: Vec<u8>,
    /// The page in the buffer, the end of its events, and the next one.
    page: usize,
    stop: usize,
    at: usize,
    time_ns: u64,
    /// Lost events that have not been told, and the last item.
    lost: Option<u32>,
    now: Now,
}

/// The last item.
#[derive(Clone, Copy, Debug)]
enum Now {
    Event { from: usize, to: usize },
    Lost(u32),
}

impl Cpu {
    /// The CPU whose pages are in this part of the file.
    pub fn new<R: Read + Seek>(
        number: u32,
        layout: Layout,
        (mut offset, end): (u64, u64),
        is_compressed: bool,
        source: &mut R,
    ) -> Result<Self, String> {
        let mut nr_chunks = 0;
        if is_compressed {
            let mut feed = from(source, offset)?;
            nr_chunks = feed.u32("the number of compressed pieces")?;
            offset = feed.at;
        }
        Ok(Self {
            number,
            layout,
            offset,
            end,
            is_compressed,
            nr_chunks,
            buffer: Vec::new(),
            page: 0,
            stop: 0,
            at: 0,
            time_ns: 0,
            lost: None,
            now: Now::Lost(0),
        })
    }

    /// An error about what is being read of it.
    pub fn wrong(&self, what: String) -> ReadError {
        let what = format!("CPU {}: {what}", self.number);
        ReadError { place: Place::Byte(self.offset), what }
    }

    /// What [`Self::advance`] has found.
    pub fn item(&self) -> Item<'_> {
        match self.now {
            Now::Event { from, to } => Item::Event(self.time_ns, &self.buffer[from..to]),
            Now::Lost(count) => Item::Lost(count),
        }
    }

    /// Goes on to the next event or loss, and gives its time; `None`: there is no more.
    pub fn advance<R: Read + Seek>(&mut self, source: &mut R) -> Result<Option<u64>, String> {
        loop {
            if let Some(count) = self.lost.take() {
                self.now = Now::Lost(count);
                return Ok(Some(self.time_ns));
            }
            if self.at < self.stop {
                if let Some((from, to)) = self.event()? {
                    self.now = Now::Event { from, to };
                    return Ok(Some(self.time_ns));
                }
                continue;
            }
            let next = if self.buffer.is_empty() { 0 } else { self.page + self.layout.page_size };
            if next >= self.buffer.len() {
                if !self.fill(source)? {
                    return Ok(None);
                }
                self.open(0)?;
            } else {
                self.open(next)?;
            }
        }
    }

    /// Reads the next pages. False: there are none.
    fn fill<R: Read + Seek>(&mut self, source: &mut R) -> Result<bool, String> {
        self.buffer.clear();
        (self.stop, self.at) = (0, 0);
        if self.is_compressed {
            if self.nr_chunks == 0 {
                return Ok(false);
            }
            self.nr_chunks -= 1;
            let mut feed = from(source, self.offset)?;
            self.buffer = chunk(&mut feed)?;
            self.offset = feed.at;
            return Ok(!self.buffer.is_empty());
        }
        let len = (PAGES * self.layout.page_size as u64).min(self.end.saturating_sub(self.offset));
        source.seek(SeekFrom::Start(self.offset)).map_err(|error| error.to_string())?;
        let read = source.take(len).read_to_end(&mut self.buffer);
        read.map_err(|error| error.to_string())?;
        if (self.buffer.len() as u64) < len {
            return Err("the file ends within its events: it was cut off".into());
        }
        self.offset += len;
        Ok(len > 0)
    }

    /// Begins the page at `page` in the buffer.
    fn open(&mut self, page: usize) -> Result<(), String> {
        let Layout { page_size, commit, data, long_size } = self.layout;
        let whole = &self.buffer[page..self.buffer.len().min(page + page_size)];
        let short = || format!("a page of {} bytes", whole.len());
        let time_ns = u64_at(whole, 0).ok_or_else(short)?;
        let word = number_at(whole, commit.0, commit.1).ok_or_else(short)?;
        let len = (word & LENGTH) as usize;
        if data + len > whole.len() {
            return Err(format!("a page of {} bytes has {len} bytes of events", whole.len()));
        }
        self.lost = (word & HAS_LOST != 0).then(|| {
            let count = number_at(whole, data + len, long_size).filter(|_| word & IS_COUNTED != 0);
            count.unwrap_or(1).clamp(1, u64::from(u32::MAX)) as u32
        });
        self.time_ns = time_ns;
        (self.page, self.at, self.stop) = (page, page + data, page + data + len);
        Ok(())
    }

    /// Takes the next event of the page; `None`: it was none, but filling or time.
    fn event(&mut self) -> Result<Option<(usize, usize)>, String> {
        let bytes = &self.buffer[..self.stop];
        let short = || String::from("an event goes beyond the end of its page");
        let word = u32_at(bytes, self.at).ok_or_else(short)?;
        let (kind, delta) = (word & 31, u64::from(word >> 5));
        let after = self.at + 4;
        let second = || u32_at(bytes, after).ok_or_else(short);
        let (from, to) = match kind {
            PADDING if delta == 0 => {
                self.at = self.stop;
                return Ok(None);
            }
            PADDING => {
                let len = second()? as usize;
                self.time_ns = self.time_ns.wrapping_add(delta);
                self.at = after.checked_add(len.max(4)).ok_or_else(short)?;
                return Ok(None);
            }
            TIME_EXTEND => {
                let high = u64::from(second()?) << 27;
                self.time_ns = self.time_ns.wrapping_add(high + delta);
                self.at = after + 4;
                return Ok(None);
            }
            TIME_STAMP => {
                let low = (u64::from(second()?) << 27) + delta;
                self.time_ns = self.time_ns & !STAMP | low & STAMP;
                self.at = after + 4;
                return Ok(None);
            }
            0 => {
                let len = (second()? as usize).checked_sub(4).ok_or_else(short)?;
                (after + 4, (after + 4).checked_add(len).ok_or_else(short)?)
            }
            words => (after, after + 4 * words as usize),
        };
        if to > self.stop {
            return Err(short());
        }
        self.time_ns = self.time_ns.wrapping_add(delta);
        self.at = to.next_multiple_of(4);
        Ok(Some((from, to)))
    }
}
