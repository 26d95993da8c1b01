// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing the log.

use super::{
    HEADER_LEN, MAGIC, NAME_MAX, NO_WAKER, PREV_IMPLIED, SAME_CPU, VERSION, WAKER_IMPLIED, control,
    kind, mark,
};
use crate::varint;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, TaskId, TraceSink};
use std::io::{self, Write};

/// Bytes gathered before a write.
const BUFFER: usize = 1 << 16;
/// Longest record but a task's.
const RECORD_MAX: usize = 1 + 4 * varint::MAX_VARINT;

/// Writes the log.
#[derive(Debug)]
pub struct BinarySink<W> {
    writer: W,
    /// Bytes to write, of which the first `length` count; behind [`BUFFER`] there is always room
    /// for a record.
    buffer: Box<[u8]>,
    length: usize,
    nr_cpus: u32,
    nr_tasks: u32,
    nr_objects: u32,
    nr_events: u64,
    last_ns: Nanos,
    last_cpu: CpuId,
    /// What runs on each CPU: task number + 1, or 0.
    running: Vec<u64>,
    is_ended: bool,
    error: Option<io::Error>,
}

/// A task number for a field that may also say "none".
#[inline]
fn plus_one(task: Option<TaskId>) -> u64 {
    task.map_or(0, |task| u64::from(task.0) + 1)
}

impl<W: Write> BinarySink<W> {
    /// A log of a machine with `nr_cpus` CPUs, 1 to [`NR_CPUS_MAX`]. It buffers; give it the bare
    /// file.
    pub fn new(writer: W, nr_cpus: u32) -> Self {
        let mut sink = Self {
            writer,
            buffer: vec![0; BUFFER + RECORD_MAX].into_boxed_slice(),
            length: 0,
            nr_cpus,
            nr_tasks: 0,
            nr_objects: 0,
            nr_events: 0,
            last_ns: 0,
            last_cpu: CpuId(0),
            running: vec![0; (nr_cpus as usize).min(NR_CPUS_MAX)],
            is_ended: false,
            error: None,
        };
        if nr_cpus == 0 || nr_cpus as usize > NR_CPUS_MAX {
            sink.fail(format!("a trace of {nr_cpus} CPUs; allowed are 1 to {NR_CPUS_MAX}"));
        }
        let mut header = [0; HEADER_LEN];
        header[..8].copy_from_slice(&MAGIC);
        header[8..10].copy_from_slice(&VERSION.to_le_bytes());
        header[12..].copy_from_slice(&nr_cpus.to_le_bytes());
        sink.append(&header);
        sink
    }

    /// Writes what is buffered and gives the writer back, or the first error that occurred.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush();
        if let Some(error) = self.error {
            return Err(error);
        }
        if !self.is_ended {
            return Err(io::Error::other("the trace was not ended: its log would be incomplete"));
        }
        self.writer.flush()?;
        Ok(self.writer)
    }

    #[cold]
    fn fail(&mut self, what: String) {
        self.error.get_or_insert_with(|| io::Error::new(io::ErrorKind::InvalidInput, what));
    }

    #[cold]
    fn flush(&mut self) {
        if self.error.is_none()
            && let Err(error) = self.writer.write_all(&self.buffer[..self.length])
        {
            self.error = Some(error);
        }
        self.length = 0;
    }

    /// Whether the name may stand in a log; else the log fails.
    fn takes_name(&mut self, what: &str, id: u32, name: &str) -> bool {
        if name.len() <= NAME_MAX {
            return true;
        }
        let length = name.len();
        self.fail(format!(
            "the name of {what} {id} has {length} bytes; at most {NAME_MAX} are allowed"
        ));
        false
    }

    /// Appends bytes; `bytes` is no longer than [`BUFFER`].
    fn append(&mut self, bytes: &[u8]) {
        if self.length + bytes.len() > BUFFER {
            self.flush();
        }
        self.buffer[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// Writes the record straight into the buffer: most are of three or four bytes.
    #[inline]
    fn encode(&mut self, event: &Event, running: u64) {
        if self.length > BUFFER {
            self.flush();
        }
        let Some(record) = self.buffer[self.length..].first_chunk_mut::<RECORD_MAX>() else {
            unreachable!("there is always room for a record behind the buffer's end");
        };
        let (tag, fields, count) = fields_of(event, running);
        let same = event.cpu == self.last_cpu;
        record[0] = tag | if same { SAME_CPU } else { 0 };
        let mut at = varint::put(record, 1, event.time_ns - self.last_ns);
        if !same {
            at = varint::put(record, at, u64::from(event.cpu.0));
        }
        at = varint::put(record, at, fields[0]);
        if count == 2 {
            at = varint::put(record, at, fields[1]);
        }
        self.length += at;
    }
}

/// Tag (without the CPU bit) and fields, one or two, of an event on a CPU that runs `running`.
#[inline]
fn fields_of(event: &Event, running: u64) -> (u8, [u64; 2], usize) {
    let related = |tag: u8, task: TaskId, other: Option<TaskId>| {
        let (task, other) = (u64::from(task.0), plus_one(other));
        if other == 0 {
            (tag | NO_WAKER, [task, 0], 1)
        } else if other == running {
            (tag | WAKER_IMPLIED, [task, 0], 1)
        } else {
            (tag, [task, other - 1], 2)
        }
    };
    match event.kind {
        EventKind::Switch { prev, next, out } => {
            let (prev, next) = (plus_one(prev), plus_one(next));
            let tag = kind::SWITCH | (out as u8) << 4;
            if prev == running {
                (tag | PREV_IMPLIED, [next, 0], 1)
            } else {
                (tag, [next, prev], 2)
            }
        }
        EventKind::Wakeup { task, waker } => related(kind::WAKEUP, task, waker),
        EventKind::Fork { task, parent } => related(kind::FORK, task, parent),
        EventKind::Migrate { task, from } => {
            (kind::MIGRATE, [u64::from(task.0), u64::from(from.0)], 2)
        }
        EventKind::Exit { task } => (kind::EXIT, [u64::from(task.0), 0], 1),
        EventKind::Phase { task, phase } => {
            (kind::MARK | mark::PHASE, [u64::from(task.0), u64::from(phase)], 2)
        }
        EventKind::Progress { task } => (kind::MARK | mark::PROGRESS, [u64::from(task.0), 0], 1),
        EventKind::Block { task, object } => {
            (kind::MARK | mark::BLOCK, [u64::from(task.0), u64::from(object.0)], 2)
        }
        EventKind::Lost { count } => (kind::MARK | mark::LOST, [u64::from(count), 0], 1),
    }
}

impl<W: Write> TraceSink for BinarySink<W> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        if id.0 != self.nr_tasks {
            return self.fail(format!("task {id} is announced, but the next is {}", self.nr_tasks));
        }
        if !self.takes_name("task", id.0, &info.name) {
            return;
        }
        self.nr_tasks += 1;
        let mut bytes = [0u8; RECORD_MAX];
        bytes[0] = control::TASK;
        let mut at = varint::put(&mut bytes, 1, info.spec.map_or(0, |spec| u64::from(spec) + 1));
        at = varint::put(&mut bytes, at, u64::from(info.pid));
        at = varint::put(&mut bytes, at, info.name.len() as u64);
        self.append(&bytes[..at]);
        self.append(info.name.as_bytes());
    }

    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        if id.0 != self.nr_objects {
            let next = self.nr_objects;
            return self.fail(format!("object {id} is announced, but the next is {next}"));
        }
        if !self.takes_name("object", id.0, &info.name) {
            return;
        }
        self.nr_objects += 1;
        let mut bytes = [0u8; RECORD_MAX];
        bytes[0] = control::OBJECT;
        let mut at = varint::put(&mut bytes, 1, info.kind as u64);
        at = varint::put(&mut bytes, at, info.name.len() as u64);
        self.append(&bytes[..at]);
        self.append(info.name.as_bytes());
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        let Some(&running) = self.running.get(event.cpu.index()) else {
            let (cpu, count) = (event.cpu, self.nr_cpus);
            return self.fail(format!("an event on CPU {cpu} of a machine with {count} CPUs"));
        };
        if event.time_ns < self.last_ns {
            let (time, last) = (event.time_ns, self.last_ns);
            return self.fail(format!("an event at {time} ns comes after one at {last} ns"));
        }
        self.encode(event, running);
        if let EventKind::Switch { next, .. } = event.kind {
            self.running[event.cpu.index()] = plus_one(next);
        }
        self.nr_events += 1;
        self.last_ns = event.time_ns;
        self.last_cpu = event.cpu;
    }

    fn end(&mut self, end_ns: Nanos) {
        let mut bytes = [0u8; RECORD_MAX];
        bytes[0] = control::END;
        let mut at = varint::put(&mut bytes, 1, end_ns.max(self.last_ns));
        at = varint::put(&mut bytes, at, u64::from(self.nr_tasks));
        at = varint::put(&mut bytes, at, self.nr_events);
        self.append(&bytes[..at]);
        self.is_ended = true;
    }
}
