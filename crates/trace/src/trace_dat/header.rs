// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where everything is in a file: the descriptions of events, and the pages of each CPU.

use super::pages::{Cpu, Layout};
use super::section::{self, from};
use crate::tracepoint::feed::Feed;
use crate::tracepoint::head::{Head, Machine, read_machine};
use crate::tracepoint::{u32_at, u64_at};
use schedlab_model::cpumask::NR_CPUS_MAX;
use std::io::{Read, Seek};

/// Numbers of options and sections.
const DONE: u16 = 0;
const BUFFER: u16 = 3;
const TRACE_CLOCK: u16 = 5;
const CPU_COUNT: u16 = 8;
const HEADER_INFO: u16 = 16;
const FTRACE_FORMATS: u16 = 17;
const EVENT_FORMATS: u16 = 18;
const COMMS: u16 = 21;

/// Most lists of options, and most options of a list.
const LISTS_MAX: usize = 1 << 10;
const OPTIONS_MAX: usize = 1 << 16;

/// The pages of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pages {
    cpu: u32,
    offset: u64,
    size: u64,
}

/// What describes the pages.
#[derive(Debug)]
pub(super) struct Header {
    pub head: Head,
    pub nr_cpus: u32,
    /// Whether the clock counts something else than nanoseconds.
    pub is_clock_unknown: bool,
    machine: Machine,
    pages: Vec<Pages>,
    is_compressed: bool,
}

impl Header {
    /// The header of a file.
    pub fn read<R: Read + Seek>(source: &mut R) -> Result<Self, String> {
        let mut feed = from(source, 0)?;
        let (version, machine) = read_machine(&mut feed)?;
        let mut header = Self {
            head: Head::default(),
            nr_cpus: 0,
            is_clock_unknown: false,
            machine,
            pages: Vec::new(),
            is_compressed: false,
        };
        match &version[..] {
            b"6" => header.read_v6(&mut feed)?,
            b"7" => {
                header.read_compression(&mut feed)?;
                let options = feed.u64("the place of the options")?;
                header.read_v7(source, options)?;
            }
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(format!("a trace.dat of version {other:?}: known are 6 and 7"));
            }
        }
        if header.head.formats.is_empty() {
            return Err("the recording has no events of the scheduler: record with `trace-cmd \
                        record -e sched`"
                .into());
        }
        Ok(header)
    }

    fn read_v6<R: Read>(&mut self, feed: &mut Feed<R>) -> Result<(), String> {
        self.head = Head::read_v6(feed, true)?;
        let what = "the options";
        self.nr_cpus = check_cpus(feed.u32("the number of CPUs")?)?;
        let mut name = [0; 10];
        feed.exact(&mut name, what)?;
        if &name == b"options  \0" {
            for _ in 0..OPTIONS_MAX {
                let number = feed.u16(what)?;
                if number == DONE {
                    break;
                }
                let size = feed.u32(what)?;
                let option = feed.bytes(size.into(), what)?;
                if number == TRACE_CLOCK {
                    self.set_clock(&option);
                }
            }
            feed.exact(&mut name, what)?;
        }
        if &name != b"flyrecord\0" {
            let name = String::from_utf8_lossy(&name).into_owned();
            return Err(format!("it holds {name:?}: only \"flyrecord\", events, can be read"));
        }
        for cpu in 0..self.nr_cpus {
            let what = "the places of the events";
            let (offset, size) = (feed.u64(what)?, feed.u64(what)?);
            self.pages.push(Pages { cpu, offset, size });
        }
        Ok(())
    }

    fn read_compression<R: Read>(&mut self, feed: &mut Feed<R>) -> Result<(), String> {
        let name = feed.text("the name of the compression")?;
        feed.text("the version of the compression")?;
        match &name[..] {
            b"none" => {}
            b"zstd" => self.is_compressed = true,
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(format!(
                    "it is compressed with {other:?}: known is zstd; convert it with `trace-cmd \
                     convert --compression none`"
                ));
            }
        }
        Ok(())
    }

    /// Options are lists, each of which tells where the next one is.
    fn read_v7<R: Read + Seek>(&mut self, source: &mut R, first: u64) -> Result<(), String> {
        let mut next = first;
        for _ in 0..LISTS_MAX {
            if next == 0 {
                return Ok(());
            }
            let (_, content) = section::read(source, next)?;
            let mut feed = Feed::new(&content[..]);
            next = 0;
            for _ in 0..OPTIONS_MAX {
                if feed.at >= content.len() as u64 {
                    break;
                }
                let what = "the options";
                let (number, size) = (feed.u16(what)?, feed.u32(what)?);
                let option = feed.bytes(size.into(), what)?;
                if number == DONE {
                    next = u64_at(&option, 0).unwrap_or(0);
                    break;
                }
                self.option(source, number, &option)?;
            }
        }
        Err(format!("there are more than {LISTS_MAX} lists of options"))
    }

    fn option<R: Read + Seek>(
        &mut self,
        source: &mut R,
        number: u16,
        option: &[u8],
    ) -> Result<(), String> {
        let place = u64_at(option, 0);
        match (number, place) {
            (TRACE_CLOCK, _) => self.set_clock(option),
            (CPU_COUNT, _) => {
                self.nr_cpus = self.nr_cpus.max(check_cpus(u32_at(option, 0).unwrap_or(0))?);
            }
            (HEADER_INFO | FTRACE_FORMATS | EVENT_FORMATS | COMMS, Some(place)) => {
                let (_, content) = section::read(source, place)?;
                let mut feed = Feed::new(&content[..]);
                match number {
                    HEADER_INFO => self.head.read_pages(&mut feed)?,
                    EVENT_FORMATS => self.head.read_formats(&mut feed)?,
                    COMMS => self.head.read_comms(&mut feed)?,
                    _ => {}
                }
            }
            (BUFFER, Some(_)) => self.buffer(option)?,
            _ => {}
        }
        Ok(())
    }

    /// A buffer: its section, name, clock and page size, and the place of each CPU's pages. Where
    /// there are several instances, the first one with events counts.
    fn buffer(&mut self, option: &[u8]) -> Result<(), String> {
        let what = "the description of a buffer";
        let mut feed = Feed::new(option);
        feed.skip(8, what)?;
        feed.text(what)?;
        let clock = feed.text(what)?;
        let page_size = feed.u32(what)?;
        let count = check_cpus(feed.u32(what)?)?;
        let mut pages = Vec::new();
        for _ in 0..count {
            let cpu = feed.u32(what)?;
            pages.push(Pages { cpu, offset: feed.u64(what)?, size: feed.u64(what)? });
        }
        self.nr_cpus = self.nr_cpus.max(count);
        if self.pages.iter().all(|pages| pages.size == 0) {
            self.pages = pages;
            self.machine.page_size = page_size;
            self.is_clock_unknown |= is_no_time(&clock);
        }
        Ok(())
    }

    /// `[local] global counter ...`: the one in brackets was used.
    fn set_clock(&mut self, clocks: &[u8]) {
        let used = clocks.split(|byte| *byte == b'[').nth(1);
        let used = used.and_then(|rest| rest.split(|byte| *byte == b']').next());
        self.is_clock_unknown |= used.is_some_and(is_no_time);
    }

    /// The CPUs with their pages.
    pub fn cpus<R: Read + Seek>(&self, source: &mut R) -> Result<Vec<Cpu>, String> {
        let layout = Layout::of(&self.head.header_page, self.machine)?;
        let pages = self.pages.iter().filter(|pages| pages.size > 0);
        pages
            .map(|pages| {
                if pages.cpu as usize >= NR_CPUS_MAX {
                    let max = NR_CPUS_MAX - 1;
                    return Err(format!("CPU {} is not allowed: 0 to {max} are", pages.cpu));
                }
                let end = pages.offset.checked_add(pages.size);
                let end = end.ok_or("the events of a CPU are beyond 64 bits")?;
                let range = (pages.offset, end);
                Cpu::new(pages.cpu, layout, range, self.is_compressed, source)
            })
            .collect()
    }
}

/// Clocks that count something else than nanoseconds.
fn is_no_time(clock: &[u8]) -> bool {
    matches!(clock, b"counter" | b"x86-tsc" | b"uptime")
}

fn check_cpus(count: u32) -> Result<u32, String> {
    if count as usize > NR_CPUS_MAX {
        return Err(format!("{count} CPUs: allowed are {NR_CPUS_MAX}"));
    }
    Ok(count)
}
