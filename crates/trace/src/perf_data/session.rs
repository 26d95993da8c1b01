// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the records of a perf.data say.

use super::header::{Attr, FEATURE_NRCPUS, Header};
#[cfg(feature = "zstd")]
use super::inflate::Inflate;
use super::queue::{Held, Queue};
use super::record::{Bytes, HEADER};
use super::sample::{Layout, Stamp};
use crate::kernel::{At, COMM_MAX, Kernel, PID_MAX, Recording, Who};
use crate::tracepoint::feed::Feed;
use crate::tracepoint::head::{Comms, Head, read_machine};
use crate::tracepoint::{u32_at, u64_at};
use crate::{Dialect, Facts};
use schedlab_model::TraceSink;
use schedlab_model::cpumask::NR_CPUS_MAX;
use std::collections::BTreeMap;

/// Types of records: PERF_RECORD_* of the kernel, and from 64 on those of perf itself.
const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const HEADER_ATTR: u32 = 64;
const TRACING_DATA: u32 = 66;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const HEADER_FEATURE: u32 = 80;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

/// What is to be done after a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Then {
    Next,
    /// So many bytes follow that are no record and do not matter.
    Skip(u64),
    /// The head with the descriptions of tracepoints follows, of this length.
    Head(u64),
}

/// What has been read so far.
#[derive(Debug)]
pub(super) struct Session {
    header: Header,
    /// Index of the event of each identifier.
    by_id: BTreeMap<u64, usize>,
    /// The layout of all samples, where they have one.
    single: Option<Layout>,
    head: Head,
    comms: Comms,
    recording: Recording,
    queue: Queue,
    nr_records: u64,
    nr_samples: u64,
    #[cfg(feature = "zstd")]
    inflate: Option<Inflate>,
}

impl Session {
    /// A session of a recording with this header.
    pub fn new(mut header: Header, names: Vec<String>) -> Result<Self, String> {
        let tracing_data = std::mem::take(&mut header.tracing_data);
        let mut recording = Recording::new(names);
        recording.facts.dialect = Some(Dialect::Perf);
        let mut session = Self {
            by_id: header.ids.drain(..).collect(),
            header,
            single: None,
            head: Head::default(),
            comms: Comms::new(),
            recording,
            queue: Queue::default(),
            nr_records: 0,
            nr_samples: 0,
            #[cfg(feature = "zstd")]
            inflate: None,
        };
        session.describe()?;
        if !session.header.is_pipe {
            if tracing_data.is_empty() {
                return Err(NO_TRACEPOINTS.into());
            }
            session.head(&tracing_data)?;
        }
        Ok(session)
    }

    /// Bytes of records.
    pub const fn data_size(&self) -> u64 {
        self.header.data_size
    }

    /// The last record was cut off.
    pub fn is_cut_off(&mut self, is_cut_off: bool) {
        self.recording.facts.is_cut_off = is_cut_off;
    }

    /// Looks at the descriptions of events.
    fn describe(&mut self) -> Result<(), String> {
        let attrs = &self.header.attrs;
        let mut tracepoints = attrs.iter().filter(|attr| attr.is_tracepoint);
        tracepoints.try_for_each(|attr| attr.layout.check())?;
        let first = attrs.first().map(|attr| attr.layout);
        let is_single = attrs.iter().all(|attr| Some(attr.layout) == first);
        self.single = first.filter(|_| is_single);
        if !is_single && !attrs.iter().all(|attr| attr.layout.has_identifier()) {
            return Err("its events have different fields and no identifiers: record the events \
                        of the scheduler alone"
                .into());
        }
        Ok(())
    }

    /// Takes the head with the descriptions of tracepoints.
    pub fn head(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut feed = Feed::new(bytes);
        let (version, _) = read_machine(&mut feed)?;
        // Names of tasks are there since version 0.6.
        self.head = Head::read_v6(&mut feed, version != b"0.5")?;
        if self.head.formats.is_empty() {
            return Err(NO_TRACEPOINTS.into());
        }
        Ok(())
    }

    /// Takes a record.
    pub fn record<S: TraceSink + ?Sized>(
        &mut self,
        record: Bytes<'_>,
        sink: &mut S,
    ) -> Result<Then, String> {
        let body = &record.whole[HEADER..];
        match record.kind {
            TRACING_DATA => {
                // Its length is a multiple of 8.
                let len = u32_at(body, 0).unwrap_or_default();
                return Ok(Then::Head(u64::from(len).next_multiple_of(8)));
            }
            AUXTRACE => return Ok(Then::Skip(u64_at(body, 0).unwrap_or_default())),
            HEADER_ATTR => self.attr(body)?,
            HEADER_FEATURE => {
                if u64_at(body, 0) == Some(FEATURE_NRCPUS as u64) {
                    self.header.read_nr_cpus(&body[8..]);
                }
            }
            COMPRESSED => self.unpack(body, sink)?,
            COMPRESSED2 => {
                let len = u64_at(body, 0).unwrap_or_default();
                let packed = usize::try_from(len).ok().and_then(|len| body.get(8..8 + len));
                self.unpack(packed.ok_or("a compressed record is shorter than it says")?, sink)?;
            }
            _ => self.plain(record, sink)?,
        }
        Ok(Then::Next)
    }

    #[cfg(feature = "zstd")]
    fn unpack<S: TraceSink + ?Sized>(&mut self, packed: &[u8], sink: &mut S) -> Result<(), String> {
        let mut inflate = match self.inflate.take() {
            Some(inflate) => inflate,
            None => Inflate::new()?,
        };
        inflate.piece(packed, |record| self.plain(record, sink))?;
        self.inflate = Some(inflate);
        Ok(())
    }

    #[cfg(not(feature = "zstd"))]
    fn unpack<S: TraceSink + ?Sized>(&mut self, _: &[u8], _: &mut S) -> Result<(), String> {
        Err("its records are compressed, which this build cannot read: record without -z".into())
    }

    /// A record that does not change how the others are read.
    fn plain<S: TraceSink + ?Sized>(
        &mut self,
        record: Bytes<'_>,
        sink: &mut S,
    ) -> Result<(), String> {
        self.nr_records += 1;
        match record.kind {
            SAMPLE => {
                self.sample(record.whole)?;
                if self.queue.is_full() {
                    let Self { queue, recording, head, comms, .. } = self;
                    queue.half(|stamp, held| deliver(recording, head, comms, stamp, held, sink))?;
                }
            }
            FINISHED_ROUND => {
                let Self { queue, recording, head, comms, .. } = self;
                queue.round(|stamp, held| deliver(recording, head, comms, stamp, held, sink))?;
            }
            LOST => self.loss(record.whole, HEADER + 8),
            LOST_SAMPLES => self.loss(record.whole, HEADER),
            COMM => self.comm(&record.whole[HEADER..]),
            _ => {}
        }
        Ok(())
    }

    /// A description of an event in a pipe: the `perf_event_attr`, which tells its size, then
    /// identifiers.
    fn attr(&mut self, body: &[u8]) -> Result<(), String> {
        let size = u32_at(body, 4).unwrap_or_default() as usize;
        let attr =
            body.get(..size).ok_or("the description of an event is longer than its record")?;
        let index = self.header.attrs.len();
        self.header.attrs.push(Attr::of(attr)?);
        for id in body[size..].chunks_exact(8).filter_map(|id| u64_at(id, 0)) {
            self.by_id.insert(id, index);
        }
        self.describe()
    }

    fn layout(&self, record: &[u8]) -> Option<Layout> {
        if self.single.is_some() {
            return self.single;
        }
        let index = *self.by_id.get(&Layout::identifier(record)?)?;
        let attr = self.header.attrs.get(index)?;
        attr.is_tracepoint.then_some(attr.layout)
    }

    fn sample(&mut self, record: &[u8]) -> Result<(), String> {
        let Some(layout) = self.layout(record) else {
            self.recording.facts.nr_other_events += 1;
            return Ok(());
        };
        let found = layout.sample(record);
        let (stamp, raw) = found.ok_or("a sample is shorter than its fields")?;
        if !self.head.formats.is_wanted(raw) {
            self.recording.facts.nr_other_events += 1;
            return Ok(());
        }
        if stamp.cpu as usize >= NR_CPUS_MAX {
            let max = NR_CPUS_MAX - 1;
            return Err(format!("CPU {} is not allowed: allowed are 0 to {max}", stamp.cpu));
        }
        self.nr_samples += 1;
        self.queue.push(stamp, raw);
        Ok(())
    }

    /// Lost events: their number is at `at`.
    fn loss(&mut self, record: &[u8], at: usize) {
        let count = u64_at(record, at).unwrap_or(1) as usize;
        let layout = self.header.attrs.first().map(|attr| attr.layout);
        let stamp = layout.and_then(|layout| layout.trailer(record)).unwrap_or_default();
        self.queue.push_loss(stamp, count);
    }

    /// A task has a name: process, thread, text that ends with a 0 byte.
    fn comm(&mut self, body: &[u8]) {
        let (Some(tid), Some(text)) = (u32_at(body, 4), body.get(8..)) else { return };
        let end = memchr::memchr(0, text).unwrap_or(text.len());
        if tid <= PID_MAX && end <= COMM_MAX {
            self.comms.insert(tid, text[..end].into());
        }
    }

    /// The recording is over.
    pub fn finish<S: TraceSink + ?Sized>(mut self, sink: &mut S) -> Result<Facts, String> {
        let Self { queue, recording, head, comms, .. } = &mut self;
        queue.all(|stamp, held| deliver(recording, head, comms, stamp, held, sink))?;
        if !self.recording.has_begun {
            return Err(format!(
                "no scheduling event in {} records; record with `perf sched record`, or with \
                 `perf record -a -e sched:sched_switch -e sched:sched_wakeup`",
                self.nr_records
            ));
        }
        // CPUs that are offline leave gaps in the numbers.
        if let Some(nr_cpus) = self.header.nr_cpus {
            self.recording.state_cpus(nr_cpus.max(self.recording.translator.cpu_max + 1));
        }
        self.recording.finish(self.nr_records, None, sink)
    }
}

const NO_TRACEPOINTS: &str = "the recording has no tracepoints of the scheduler: record with `perf \
                              sched record`, or with `perf record -a -e sched:sched_switch -e \
                              sched:sched_wakeup`";

/// What was held goes out.
fn deliver<S: TraceSink + ?Sized>(
    recording: &mut Recording,
    head: &Head,
    comms: &Comms,
    stamp: Stamp,
    held: Held<'_>,
    sink: &mut S,
) -> Result<(), String> {
    let raw = match held {
        Held::Event(raw) => raw,
        Held::Lost(count) => {
            let cpu = stamp.cpu.min(NR_CPUS_MAX as u32 - 1);
            recording.lost(cpu, count.min(u32::MAX as usize) as u32, sink);
            return Ok(());
        }
    };
    let parsed = head.formats.parse(raw)?;
    // perf does not know a task that is about to end; the kernel does.
    let pid = u32::try_from(stamp.tid).unwrap_or(parsed.pid);
    // Only the context of a wake-up matters.
    let is_waker = matches!(parsed.kernel, Kernel::Wake { .. }) && !parsed.in_irq;
    let who = (is_waker && pid <= PID_MAX).then(|| {
        let comm = comms.get(&pid).map_or(&b"<...>"[..], |comm| comm);
        Who { comm, pid }
    });
    recording.event(At { clock_ns: stamp.time_ns, cpu: stamp.cpu, who }, parsed.kernel, sink)?;
    if let (Ok(tid), Ok(tgid)) = (u32::try_from(stamp.tid), u32::try_from(stamp.tgid))
        && tgid > 0
    {
        recording.translator.belongs(tid, tgid);
    }
    Ok(())
}
