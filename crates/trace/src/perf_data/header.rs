// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is at the front and at the end of a perf.data: which events were recorded, with which
//! fields, and the descriptions of tracepoints.

use super::MAGIC;
use super::sample::Layout;
use crate::tracepoint::feed::Feed;
use crate::tracepoint::{PIECE_MAX, u32_at, u64_at};
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Size of the header of a pipe, by which it is known.
pub(super) const PIPE_HEADER_SIZE: u64 = 16;
/// Size of a `perf_event_attr` in its first version, which has all that is read.
const ATTR_SIZE_MIN: u64 = 64;
/// Most events of a recording.
const ATTRS_MAX: u64 = 1 << 16;
/// Most identifiers of events: one a CPU and event.
const IDS_MAX: u64 = 1 << 24;

/// Numbers of features.
pub(super) const FEATURE_TRACING_DATA: usize = 1;
pub(super) const FEATURE_NRCPUS: usize = 7;
const FEATURES: usize = 256;

/// An event that was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attr {
    pub layout: Layout,
    /// Whether it is a tracepoint.
    pub is_tracepoint: bool,
}

impl Attr {
    /// From a `perf_event_attr`: type, size, config, period, sample_type, read_format, flags.
    pub fn of(bytes: &[u8]) -> Result<Self, String> {
        let short = || format!("the description of an event has {} bytes", bytes.len());
        let word = |at| u64_at(bytes, at).ok_or_else(short);
        let kind = u32_at(bytes, 0).ok_or_else(short)?;
        let layout = Layout {
            sample_type: word(24)?,
            read_format: word(32)?,
            has_trailer: word(40)? & (1 << 18) != 0,
        };
        // PERF_TYPE_TRACEPOINT.
        Ok(Self { layout, is_tracepoint: kind == 2 })
    }
}

/// Everything that describes the records.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub attrs: Vec<Attr>,
    /// Identifiers and the indices of their events.
    pub ids: Vec<(u64, usize)>,
    pub data_offset: u64,
    pub data_size: u64,
    /// The head with the descriptions of tracepoints; empty: none.
    pub tracing_data: Vec<u8>,
    /// CPUs that were online.
    pub nr_cpus: Option<u32>,
    pub is_pipe: bool,
}

/// A part of the file.
#[derive(Clone, Copy, Debug)]
struct Section {
    offset: u64,
    size: u64,
}

fn section<R: Read>(feed: &mut Feed<R>) -> Result<Section, String> {
    Ok(Section { offset: feed.u64("the header")?, size: feed.u64("the header")? })
}

/// A stream that reads from a position on.
fn from<R: Read + Seek>(source: &mut R, offset: u64) -> Result<Feed<BufReader<&mut R>>, String> {
    source.seek(SeekFrom::Start(offset)).map_err(|error| error.to_string())?;
    Ok(Feed::new(BufReader::new(source)))
}

impl Header {
    /// The header of a file; `None`: it is what a pipe gave, saved in a file.
    pub fn read<R: Read + Seek>(source: &mut R) -> Result<Option<Self>, String> {
        let mut feed = from(source, 0)?;
        feed.expect(MAGIC, "a perf.data")?;
        let size = feed.u64("the header")?;
        if size == PIPE_HEADER_SIZE {
            return Ok(None);
        }
        let attr_size = feed.u64("the header")?;
        let (attrs, data) = (section(&mut feed)?, section(&mut feed)?);
        section(&mut feed)?;
        let features = feed.bytes(FEATURES as u64 / 8, "the header")?;
        if data.size == 0 {
            return Err("perf was killed before it finished this file, which therefore has no \
                        descriptions of events: record again and end perf with SIGINT"
                .into());
        }
        let mut header = Self { data_offset: data.offset, data_size: data.size, ..Self::default() };
        header.read_attrs(source, attr_size, attrs)?;
        header.read_features(source, data, &features)?;
        Ok(Some(header))
    }

    /// The header of a pipe: only the magic bytes and a size.
    pub fn read_pipe<R: Read>(source: &mut R) -> Result<Self, String> {
        let mut feed = Feed::new(source);
        feed.expect(MAGIC, "a perf.data")?;
        match feed.u64("the header")? {
            PIPE_HEADER_SIZE => Ok(Self { is_pipe: true, ..Self::default() }),
            _ => Err("a perf.data is described at its end and cannot be read from a pipe: give \
                      the file, or record with `perf record -o -`"
                .into()),
        }
    }

    fn read_attrs<R: Read + Seek>(
        &mut self,
        source: &mut R,
        attr_size: u64,
        attrs: Section,
    ) -> Result<(), String> {
        let count = attrs.size.checked_div(attr_size).unwrap_or(0);
        if !(ATTR_SIZE_MIN + 16..=4096).contains(&attr_size) || count > ATTRS_MAX {
            return Err(format!(
                "{} bytes of descriptions of events, {attr_size} bytes each: a description has \
                 80 to 4096 bytes, and there are at most {ATTRS_MAX}",
                attrs.size
            ));
        }
        let mut feed = from(source, attrs.offset)?;
        let mut ids = Vec::new();
        for _ in 0..count {
            let bytes = feed.bytes(attr_size, "the descriptions of events")?;
            self.attrs.push(Attr::of(&bytes)?);
            let at = bytes.len() - 16;
            let word = |at| u64_at(&bytes, at).unwrap_or_default();
            ids.push(Section { offset: word(at), size: word(at + 8) });
        }
        for (index, ids) in ids.into_iter().enumerate() {
            let mut feed = from(source, ids.offset)?;
            for _ in 0..ids.size / 8 {
                self.add_id(feed.u64("the identifiers of events")?, index)?;
            }
        }
        Ok(())
    }

    /// The identifier belongs to the event with this index.
    pub fn add_id(&mut self, id: u64, index: usize) -> Result<(), String> {
        if self.ids.len() as u64 >= IDS_MAX {
            return Err(format!("more than {IDS_MAX} identifiers of events"));
        }
        self.ids.push((id, index));
        Ok(())
    }

    /// The table of features follows the records: a place for each feature that the file has.
    fn read_features<R: Read + Seek>(
        &mut self,
        source: &mut R,
        data: Section,
        bits: &[u8],
    ) -> Result<(), String> {
        let there = |feature: &usize| bits[feature / 8] >> (feature % 8) & 1 == 1;
        let end = data.offset.checked_add(data.size).ok_or("the records are beyond 64 bits")?;
        let mut feed = from(source, end)?;
        let mut places = Vec::new();
        for feature in (0..FEATURES).filter(there) {
            places.push((feature, section(&mut feed)?));
        }
        for (feature, place) in places {
            match feature {
                FEATURE_TRACING_DATA => {
                    let size = place.size.min(PIECE_MAX);
                    let mut feed = from(source, place.offset)?;
                    self.tracing_data = feed.bytes(size, "the descriptions of tracepoints")?;
                }
                FEATURE_NRCPUS => {
                    let mut feed = from(source, place.offset)?;
                    self.read_nr_cpus(&feed.bytes(8, "the number of CPUs")?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Two numbers: CPUs that there are, CPUs that were online.
    pub fn read_nr_cpus(&mut self, bytes: &[u8]) {
        self.nr_cpus = u32_at(bytes, 4);
    }
}
