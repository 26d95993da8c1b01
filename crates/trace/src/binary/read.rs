// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the log. The file is treated as hostile: every number is checked before it is used, no
//! memory is allocated from a size in the file, and every error names the byte where it was found.
//! Each trace has exactly one encoding; a log with another one is refused as damaged.

use super::{
    HEADER_LEN, MAGIC, NAME_MAX, NO_WAKER, PREV_IMPLIED, SAME_CPU, VERSION, VERSION_MIN,
    WAKER_IMPLIED, control, kind, mark,
};
use crate::varint::{self, VarintError};
use crate::{Place, ReadError};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{ObjectInfo, TaskInfo, WaitKind};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use std::io::{ErrorKind, Read};

/// Bytes read at a time.
const BUFFER: usize = 1 << 16;
/// Longest record without a name.
const RECORD_MAX: usize = 64;

/// A record of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// A new task.
    Task(TaskId, TaskInfo),
    /// A new object.
    Object(ObjectId, ObjectInfo),
    /// An event.
    Event(Event),
    /// The end of the run; the last record.
    End(Nanos),
}

/// Reads a log: an iterator over its records. After an error or the end it returns `None`.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
    /// Unread bytes are `buffer[start..stop]`.
    start: usize,
    stop: usize,
    /// Position in the file of `buffer[0]`.
    base: u64,
    nr_cpus: u32,
    version: u16,
    nr_tasks: u32,
    nr_objects: u32,
    nr_events: u64,
    now: Nanos,
    last_cpu: CpuId,
    running: Vec<u64>,
    is_done: bool,
}

/// The bytes of one record while it is decoded.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

const TRUNCATED: &str = "the file ends inside a record: it is truncated; record or copy it again";

impl Cursor<'_> {
    #[inline]
    fn varint(&mut self) -> Result<u64, String> {
        varint::get(self.bytes, &mut self.at).map_err(wrong_varint)
    }

    /// A number below `limit`.
    #[inline]
    fn below(&mut self, limit: u64, what: &str) -> Result<u32, String> {
        let value = self.varint()?;
        if value < limit { Ok(value as u32) } else { Err(too_big(value, limit, what)) }
    }
}

#[cold]
fn wrong_varint(error: VarintError) -> String {
    match error {
        VarintError::Truncated => TRUNCATED.into(),
        VarintError::Malformed => {
            "a number is written in a way that is not allowed: the file is damaged".into()
        }
    }
}

#[cold]
fn too_big(value: u64, limit: u64, what: &str) -> String {
    match limit {
        0 => format!("{what} {value}, but there is none yet"),
        _ => format!("{what} {value}, but allowed are 0 to {}", limit - 1),
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header. The reader buffers, so pass the file itself.
    pub fn new(source: R) -> Result<Self, ReadError> {
        let mut reader = Self {
            source,
            buffer: vec![0; BUFFER],
            start: 0,
            stop: 0,
            base: 0,
            nr_cpus: 0,
            version: 0,
            nr_tasks: 0,
            nr_objects: 0,
            nr_events: 0,
            now: 0,
            last_cpu: CpuId(0),
            running: Vec::new(),
            is_done: false,
        };
        match reader.header() {
            Ok(()) => Ok(reader),
            Err(what) => Err(ReadError { place: Place::Byte(0), what }),
        }
    }

    /// CPUs of the machine that was traced.
    pub const fn nr_cpus(&self) -> u32 {
        self.nr_cpus
    }

    /// Tasks read so far.
    pub const fn nr_tasks(&self) -> u32 {
        self.nr_tasks
    }

    /// Events read so far.
    pub const fn nr_events(&self) -> u64 {
        self.nr_events
    }

    /// Passes the rest of the log to a sink and returns the end of the run. On an error the sink
    /// has all records before it, and no `end`.
    pub fn replay(mut self, sink: &mut impl TraceSink) -> Result<Nanos, ReadError> {
        self.replay_into(sink)
    }

    /// As [`Self::replay`]. The reader's counts remain available.
    pub fn replay_into<S: TraceSink + ?Sized>(&mut self, sink: &mut S) -> Result<Nanos, ReadError> {
        // Events do not go through a `Record`: that has room for names, and moving it costs more
        // than reading an event.
        let mut ended_ns = None;
        while !self.is_done {
            let result = match self.tag() {
                Ok(tag) if tag & 7 != kind::CONTROL => {
                    self.event(tag).map(|event| sink.event(&event))
                }
                Ok(tag) => self.control(tag).map(|record| match record {
                    Record::End(end_ns) => {
                        sink.end(end_ns);
                        ended_ns = Some(end_ns);
                    }
                    Record::Task(id, info) => sink.task(id, &info),
                    Record::Object(id, info) => sink.object(id, &info),
                    Record::Event(event) => sink.event(&event),
                }),
                Err(what) => Err(what),
            };
            if let Err(what) = result {
                self.is_done = true;
                return Err(self.error(what));
            }
            if let Some(end_ns) = ended_ns {
                return Ok(end_ns);
            }
        }
        Err(self.error("the log has been read to its end".into()))
    }

    #[cold]
    fn error(&self, what: String) -> ReadError {
        ReadError { place: Place::Byte(self.base + self.start as u64), what }
    }

    /// Reads until at least `count` unread bytes are buffered, or the source ends.
    #[inline]
    fn fill(&mut self, count: usize) -> Result<(), String> {
        if self.stop - self.start >= count { Ok(()) } else { self.refill(count) }
    }

    #[cold]
    fn refill(&mut self, count: usize) -> Result<(), String> {
        let (start, stop) = (self.start, self.stop);
        assert!(start <= stop && stop <= self.buffer.len(), "unread bytes are {start} to {stop}");
        assert!(count <= self.buffer.len(), "a record of {count} bytes is never whole");
        self.buffer.copy_within(self.start..self.stop, 0);
        self.base += self.start as u64;
        self.stop -= self.start;
        self.start = 0;
        while self.stop < count {
            match self.source.read(&mut self.buffer[self.stop..]) {
                Ok(0) => break,
                Ok(length) => self.stop += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot read: {error}")),
            }
        }
        Ok(())
    }

    fn header(&mut self) -> Result<(), String> {
        self.fill(HEADER_LEN)?;
        let bytes = &self.buffer[..self.stop];
        if bytes.len() < MAGIC.len() || bytes[..MAGIC.len()] != MAGIC {
            return Err(
                "this is no trace log: it does not begin with the bytes 89 53 4C 54 0D 0A \
                        1A 0A"
                    .into(),
            );
        }
        let header = bytes.get(..HEADER_LEN).ok_or(TRUNCATED)?;
        let version = u16::from_le_bytes([header[8], header[9]]);
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(format!(
                "the log has version {version}; this reader knows {VERSION_MIN} to {VERSION}"
            ));
        }
        if header[10..12] != [0, 0] {
            return Err("bytes 10 and 11 of the header are not 0: the file is damaged".into());
        }
        let nr_cpus = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
        if nr_cpus == 0 || nr_cpus as usize > NR_CPUS_MAX {
            return Err(format!("the machine has {nr_cpus} CPUs; allowed are 1 to {NR_CPUS_MAX}"));
        }
        self.version = version;
        self.nr_cpus = nr_cpus;
        self.running = vec![0; nr_cpus as usize];
        self.start = HEADER_LEN;
        Ok(())
    }

    /// The tag of the next record. The buffer has as many of its bytes as exist.
    #[inline]
    fn tag(&mut self) -> Result<u8, String> {
        self.fill(RECORD_MAX)?;
        match self.buffer[self.start..self.stop].first() {
            Some(&tag) => Ok(tag),
            None => Err(no_end()),
        }
    }

    #[inline]
    fn record(&mut self) -> Result<Record, String> {
        let tag = self.tag()?;
        if tag & 7 == kind::CONTROL {
            self.control(tag)
        } else {
            self.event(tag).map(Record::Event)
        }
    }

    #[inline]
    fn event(&mut self, tag: u8) -> Result<Event, String> {
        let mut cursor = Cursor { bytes: &self.buffer[self.start..self.stop], at: 1 };
        let delta = cursor.varint()?;
        let Some(time_ns) = self.now.checked_add(delta) else {
            return Err(late(self.now, delta));
        };
        let cpu = if tag & SAME_CPU != 0 {
            self.last_cpu
        } else {
            let cpu = CpuId(cursor.below(u64::from(self.nr_cpus), "CPU")?);
            if cpu == self.last_cpu {
                return Err(unknown_tag(tag));
            }
            cpu
        };
        let running = self.running[cpu.index()];
        debug_assert!(running <= u64::from(self.nr_tasks), "CPU {cpu} runs {running}, + 1");
        let known = Known { tasks: self.nr_tasks, objects: self.nr_objects, cpus: self.nr_cpus };
        let kind = decode_kind(&mut cursor, tag, known, running)?;
        if let EventKind::Switch { next, .. } = kind {
            self.running[cpu.index()] = next.map_or(0, |task| u64::from(task.0) + 1);
        }
        debug_assert!(cursor.at <= RECORD_MAX, "an event of {} bytes", cursor.at);
        debug_assert!(time_ns >= self.now, "{time_ns} ns after {} ns", self.now);
        self.start += cursor.at;
        self.now = time_ns;
        self.last_cpu = cpu;
        self.nr_events += 1;
        Ok(Event { time_ns, cpu, kind })
    }

    fn control(&mut self, tag: u8) -> Result<Record, String> {
        match tag {
            control::TASK => self.task(),
            control::OBJECT if self.version >= 2 => self.object(),
            control::END => self.end(),
            _ => Err(format!("the record tag {tag:#04x} is not known: the file is damaged")),
        }
    }

    fn task(&mut self) -> Result<Record, String> {
        let mut cursor = Cursor { bytes: &self.buffer[self.start..self.stop], at: 1 };
        let spec = match cursor.varint()? {
            spec if spec <= 1 << 32 => spec.checked_sub(1).map(|spec| spec as u32),
            spec => return Err(too_big(spec, (1 << 32) + 1, "a description + 1 =")),
        };
        let pid = cursor.below(1 << 32, "a process id")?;
        let length = cursor.below(NAME_MAX as u64 + 1, "a name length of")? as usize;
        let at = cursor.at;
        let name = self.name(at, length, "task", self.nr_tasks)?;
        let id = TaskId(self.nr_tasks);
        self.nr_tasks = id.0.checked_add(1).ok_or("there are more than 2^32 - 1 tasks")?;
        self.start += at + length;
        Ok(Record::Task(id, TaskInfo { name, spec, pid }))
    }

    fn object(&mut self) -> Result<Record, String> {
        let mut cursor = Cursor { bytes: &self.buffer[self.start..self.stop], at: 1 };
        let kind = cursor.below(WaitKind::ALL.len() as u64, "a kind of object")?;
        let length = cursor.below(NAME_MAX as u64 + 1, "a name length of")? as usize;
        let at = cursor.at;
        let name = self.name(at, length, "object", self.nr_objects)?;
        let id = ObjectId(self.nr_objects);
        self.nr_objects = id.0.checked_add(1).ok_or("there are more than 2^32 - 1 objects")?;
        self.start += at + length;
        Ok(Record::Object(id, ObjectInfo { name, kind: WaitKind::ALL[kind as usize] }))
    }

    /// The name of `length` bytes that is `at` bytes into the record.
    fn name(&mut self, at: usize, length: usize, what: &str, id: u32) -> Result<String, String> {
        self.fill(at + length)?;
        let rest = &self.buffer[self.start..self.stop];
        let name = rest.get(at..at + length).ok_or(TRUNCATED)?;
        match std::str::from_utf8(name) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => Err(format!("the name of {what} {id} is not UTF-8")),
        }
    }

    fn end(&mut self) -> Result<Record, String> {
        let mut cursor = Cursor { bytes: &self.buffer[self.start..self.stop], at: 1 };
        let end_ns = cursor.varint()?;
        let (nr_tasks, nr_events) = (cursor.varint()?, cursor.varint()?);
        if end_ns < self.now {
            return Err(format!("the run ends at {end_ns} ns, before its event at {}", self.now));
        }
        if (nr_tasks, nr_events) != (u64::from(self.nr_tasks), self.nr_events) {
            return Err(format!(
                "the end record counts {nr_tasks} tasks and {nr_events} events, but {} and {} \
                 were read: a part of the file is missing",
                self.nr_tasks, self.nr_events
            ));
        }
        self.start += cursor.at;
        self.fill(1)?;
        if self.start < self.stop {
            return Err("more bytes follow the end record".into());
        }
        self.is_done = true;
        Ok(Record::End(end_ns))
    }
}

#[cold]
fn no_end() -> String {
    "the log ends without an end record: it is truncated, or its recording was cut short".into()
}

#[cold]
fn late(now: Nanos, delta: u64) -> String {
    format!("the time {now} + {delta} ns is out of range")
}

/// Number of tasks and objects so far.
#[derive(Clone, Copy)]
struct Known {
    tasks: u32,
    objects: u32,
    cpus: u32,
}

/// Decodes an event from its tag and its fields.
#[inline]
fn decode_kind(
    cursor: &mut Cursor<'_>,
    tag: u8,
    known: Known,
    running: u64,
) -> Result<EventKind, String> {
    let nr_tasks = u64::from(known.tasks);
    if tag & 7 == kind::SWITCH {
        return decode_switch(cursor, tag, nr_tasks, running);
    }
    let allowed = match tag & 7 {
        kind::WAKEUP | kind::FORK => NO_WAKER | WAKER_IMPLIED,
        kind::MARK => 3 << 4,
        _ => 0,
    };
    if tag & !(7 | SAME_CPU | allowed) != 0 {
        return Err(unknown_tag(tag));
    }
    if tag & !SAME_CPU == kind::MARK | mark::LOST {
        return Ok(EventKind::Lost { count: cursor.below(1 << 32, "a count of lost events")? });
    }
    let task = TaskId(cursor.below(nr_tasks, "task")?);
    Ok(match tag & !SAME_CPU & !NO_WAKER & !WAKER_IMPLIED {
        kind::WAKEUP => {
            EventKind::Wakeup { task, waker: decode_waker(cursor, tag, nr_tasks, running)? }
        }
        kind::FORK => {
            EventKind::Fork { task, parent: decode_waker(cursor, tag, nr_tasks, running)? }
        }
        kind::MIGRATE => {
            EventKind::Migrate { task, from: CpuId(cursor.below(u64::from(known.cpus), "CPU")?) }
        }
        kind::EXIT => EventKind::Exit { task },
        kind::MARK if tag & (3 << 4) == mark::PHASE => {
            EventKind::Phase { task, phase: cursor.below(1 << 32, "phase")? }
        }
        kind::MARK if tag & (3 << 4) == mark::BLOCK => {
            let object = ObjectId(cursor.below(u64::from(known.objects), "object")?);
            EventKind::Block { task, object }
        }
        kind::MARK if tag & (3 << 4) == mark::PROGRESS => EventKind::Progress { task },
        _ => return Err(unknown_tag(tag)),
    })
}

#[inline]
fn decode_switch(
    cursor: &mut Cursor<'_>,
    tag: u8,
    nr_tasks: u64,
    running: u64,
) -> Result<EventKind, String> {
    let Some(&out) = SwitchOut::ALL.get(usize::from(tag >> 4 & 7)) else {
        return Err(unknown_tag(tag));
    };
    let id = |plus_one: u64| plus_one.checked_sub(1).map(|id| TaskId(id as u32));
    let next = id(u64::from(cursor.below(nr_tasks + 1, "next task + 1 =")?));
    let prev = if tag & PREV_IMPLIED != 0 {
        id(running)
    } else {
        let prev = u64::from(cursor.below(nr_tasks + 1, "previous task + 1 =")?);
        if prev == running {
            return Err(unknown_tag(tag));
        }
        id(prev)
    };
    if prev.is_none() != (out == SwitchOut::Idle) {
        let who = prev.map_or("idle".into(), |id| format!("task {id}"));
        return Err(format!("a switch lets {who} leave the CPU as {:?}", out.name()));
    }
    Ok(EventKind::Switch { prev, next, out })
}

#[inline]
fn decode_waker(
    cursor: &mut Cursor<'_>,
    tag: u8,
    nr_tasks: u64,
    running: u64,
) -> Result<Option<TaskId>, String> {
    match (tag & NO_WAKER != 0, tag & WAKER_IMPLIED != 0) {
        (true, false) => Ok(None),
        (false, true) if running > 0 => Ok(Some(TaskId((running - 1) as u32))),
        (false, false) => match cursor.below(nr_tasks, "waker or parent")? {
            waker if u64::from(waker) + 1 == running => Err(unknown_tag(tag)),
            waker => Ok(Some(TaskId(waker))),
        },
        _ => Err(unknown_tag(tag)),
    }
}

#[cold]
fn unknown_tag(tag: u8) -> String {
    format!("the record tag {tag:#04x} is not allowed here: the file is damaged")
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        Some(self.record().map_err(|what| {
            self.is_done = true;
            self.error(what)
        }))
    }
}
