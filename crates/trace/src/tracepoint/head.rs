// SPDX-License-Identifier: MIT OR Apache-2.0
//! The head that trace-cmd writes and perf copies: layouts of pages and events, and names of
//! tasks.
//!
//! Source: Documentation/trace-cmd/trace-cmd.dat.v6.5.txt of trace-cmd; tools/perf/util/
//! trace-event-read.c.

use super::feed::Feed;
use super::format::Formats;
use crate::kernel::{COMM_MAX, PID_MAX};
use std::collections::BTreeMap;
use std::io::Read;

/// Most events of one system, and most systems.
const COUNT_MAX: u32 = 1 << 16;

/// Names of tasks by process id.
pub(crate) type Comms = BTreeMap<u32, Box<[u8]>>;

/// What a head tells.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub formats: Formats,
    /// Layout of the header of a ring buffer's page, as text.
    pub header_page: Vec<u8>,
    pub comms: Comms,
}

/// The first bytes of every such head.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Size of a long of the recorded machine, and of its pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Machine {
    pub long_size: usize,
    pub page_size: u32,
}

/// Version and machine, after the magic bytes.
pub(crate) fn read_machine<R: Read>(feed: &mut Feed<R>) -> Result<(Vec<u8>, Machine), String> {
    feed.expect(MAGIC, "the head of the recording")?;
    let version = feed.text("the version of the recording")?;
    if feed.u8("the byte order")? != 0 {
        return Err("it was recorded on a big-endian machine, which is not supported".into());
    }
    let long_size = usize::from(feed.u8("the size of a long")?);
    if !matches!(long_size, 4 | 8) {
        return Err(format!("a long has {long_size} bytes: allowed are 4 and 8"));
    }
    let page_size = feed.u32("the size of a page")?;
    Ok((version, Machine { long_size, page_size }))
}

impl Head {
    /// The parts of a head in the order of version 6.
    pub fn read_v6<R: Read>(feed: &mut Feed<R>, has_comms: bool) -> Result<Self, String> {
        let mut head = Self::default();
        head.read_pages(feed)?;
        head.read_ftrace_formats(feed)?;
        head.read_formats(feed)?;
        let size = feed.u32("the kernel's symbols")?;
        feed.skip(size.into(), "the kernel's symbols")?;
        let size = feed.u32("the kernel's texts")?;
        feed.skip(size.into(), "the kernel's texts")?;
        if has_comms {
            head.read_comms(feed)?;
        }
        Ok(head)
    }

    /// Layouts of a page's and an event's header.
    pub fn read_pages<R: Read>(&mut self, feed: &mut Feed<R>) -> Result<(), String> {
        let what = "the layout of a page";
        feed.expect(b"header_page\0", what)?;
        let size = feed.u64(what)?;
        self.header_page = feed.bytes(size, what)?;
        let what = "the layout of an event's header";
        feed.expect(b"header_event\0", what)?;
        let size = feed.u64(what)?;
        feed.skip(size, what)
    }

    /// ftrace's own events, none of which is of scheduling.
    pub fn read_ftrace_formats<R: Read>(&mut self, feed: &mut Feed<R>) -> Result<(), String> {
        let what = "the formats of ftrace";
        for _ in 0..count(feed, what)? {
            let size = feed.u64(what)?;
            feed.skip(size, what)?;
        }
        Ok(())
    }

    /// The formats of all systems.
    pub fn read_formats<R: Read>(&mut self, feed: &mut Feed<R>) -> Result<(), String> {
        for _ in 0..count(feed, "the systems of events")? {
            let system = feed.text("the name of a system of events")?;
            let what = "the format of an event";
            for _ in 0..count(feed, what)? {
                let size = feed.u64(what)?;
                if system == b"sched" {
                    let text = feed.bytes(size, what)?;
                    self.formats.add(&text)?;
                } else {
                    feed.skip(size, what)?;
                }
            }
        }
        Ok(())
    }

    /// Lines of a process id and a name.
    pub fn read_comms<R: Read>(&mut self, feed: &mut Feed<R>) -> Result<(), String> {
        let what = "the names of tasks";
        let size = feed.u64(what)?;
        let text = feed.bytes(size, what)?;
        for line in text.split(|byte| *byte == b'\n') {
            let Some(space) = memchr::memchr(b' ', line) else { continue };
            let pid = std::str::from_utf8(&line[..space]).ok().and_then(|pid| pid.parse().ok());
            let comm = &line[space + 1..];
            if let Some(pid) = pid.filter(|pid| *pid <= PID_MAX)
                && comm.len() <= COMM_MAX
            {
                self.comms.insert(pid, comm.into());
            }
        }
        Ok(())
    }
}

fn count<R: Read>(feed: &mut Feed<R>, what: &str) -> Result<u32, String> {
    let count = feed.u32(what)?;
    if count > COUNT_MAX {
        return Err(format!("{what}: {count} of them; allowed are {COUNT_MAX}"));
    }
    Ok(count)
}
