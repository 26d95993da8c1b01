// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the log.

use super::{
    HEADER_LEN, MAGIC, NAME_MAX, NO_WAKER, PREV_IMPLIED, SAME_CPU, VERSION, WAKER_IMPLIED, control,
    kind, mark,
};
use crate::varint;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use std::io::{self, Write};

/// Bytes collected before a write.
const BUFFER: usize = 1 << 16;
/// Longest record without a name.
const RECORD_MAX: usize = 1 + 4 * varint::MAX_VARINT;

/// Writes the log.
#[derive(Debug)]
pub struct BinarySink<W> {
    writer: W,
    /// Bytes to write, of which the first `length` are valid. After [`BUFFER`] there is always room
    /// for a record.
    buffer: Box<[u8; BUFFER + RECORD_MAX]>,
    length: usize,
    nr_cpus: u32,
    nr_tasks: u32,
    nr_objects: u32,
    nr_events: u64,
    last_ns: Nanos,
    last_cpu: CpuId,
    /// The running task of each CPU: its number + 1, or 0.
    running: Vec<u64>,
    is_ended: bool,
    error: Option<io::Error>,
}

/// The number of a task + 1; 0 for `None`.
#[inline]
fn plus_one(task: Option<TaskId>) -> u64 {
    task.map_or(0, |task| u64::from(task.0) + 1)
}

impl<W: Write> BinarySink<W> {
    /// A log of a machine with `nr_cpus` CPUs, 1 to [`NR_CPUS_MAX`]. It buffers, so pass the file
    /// itself.
    pub fn new(writer: W, nr_cpus: u32) -> Self {
        let mut sink = Self {
            writer,
            buffer: Box::new([0; BUFFER + RECORD_MAX]),
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

    /// Writes the buffered bytes and returns the writer, or the first error.
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
    fn fail_on_cpu(&mut self, cpu: CpuId) {
        let count = self.nr_cpus;
        self.fail(format!("an event on CPU {cpu} of a machine with {count} CPUs"));
    }

    #[cold]
    fn fail_on_time(&mut self, time_ns: Nanos) {
        let last = self.last_ns;
        self.fail(format!("an event at {time_ns} ns comes after one at {last} ns"));
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

    /// Checks that the log can hold the name. Otherwise the log fails.
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

    /// Appends bytes. `bytes` is at most [`BUFFER`] long.
    fn append(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= BUFFER, "{} bytes at once", bytes.len());
        if self.length + bytes.len() > BUFFER {
            self.flush();
        }
        self.buffer[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// Checks that an event is in order. Otherwise the log fails.
    #[inline(always)]
    fn admits(&mut self, time_ns: Nanos, cpu: CpuId) -> bool {
        if cpu.index() >= self.running.len() {
            self.fail_on_cpu(cpu);
            return false;
        }
        if time_ns < self.last_ns {
            self.fail_on_time(time_ns);
            return false;
        }
        true
    }

    /// Writes a switch. Tasks are numbers + 1, and 0 for none.
    #[inline(never)]
    fn switch(&mut self, time_ns: Nanos, cpu: CpuId, prev: u64, next: u64, out: SwitchOut) {
        if !self.admits(time_ns, cpu) {
            return;
        }
        let running = std::mem::replace(&mut self.running[cpu.index()], next);
        let tag = kind::SWITCH | (out as u8) << 4;
        if prev == running {
            self.encode(time_ns, cpu, tag | PREV_IMPLIED, next);
        } else {
            self.encode_long(time_ns, cpu, tag, &[next, prev]);
        }
    }

    /// Writes a wake-up or a fork of `task` by `other`, given as its number + 1, or 0.
    #[inline(never)]
    fn related(&mut self, time_ns: Nanos, cpu: CpuId, tag: u8, task: TaskId, other: u64) {
        if !self.admits(time_ns, cpu) {
            return;
        }
        let task = u64::from(task.0);
        if other == 0 {
            self.encode(time_ns, cpu, tag | NO_WAKER, task);
        } else if other == self.running[cpu.index()] {
            self.encode(time_ns, cpu, tag | WAKER_IMPLIED, task);
        } else {
            self.encode_long(time_ns, cpu, tag, &[task, other - 1]);
        }
    }

    /// Writes any other event.
    #[inline(never)]
    fn other(&mut self, time_ns: Nanos, cpu: CpuId, tag: u8, fields: &[u32]) {
        if self.admits(time_ns, cpu) {
            self.encode_long(time_ns, cpu, tag, fields);
        }
    }

    /// Writes a record of one field directly into the buffer: most have three or four bytes.
    #[inline(always)]
    fn encode(&mut self, time_ns: Nanos, cpu: CpuId, tag: u8, field: u64) {
        let (delta, number) = (time_ns - self.last_ns, u64::from(cpu.0));
        if (delta | number | field) >= 0x80 || self.length > BUFFER {
            self.encode_long(time_ns, cpu, tag, &[field]);
            return;
        }
        // Each number is a byte, and the record fits a word.
        let (same_cpu, numbers, length) = match cpu == self.last_cpu {
            true => (SAME_CPU, field, 3),
            false => (0, number | field << 8, 4),
        };
        let word = u64::from(tag | same_cpu) | delta << 8 | numbers << 16;
        self.buffer[self.length..][..4].copy_from_slice(&(word as u32).to_le_bytes());
        self.count(time_ns, cpu, length);
    }

    /// Writes a record field by field.
    #[inline(never)]
    fn encode_long<F>(&mut self, time_ns: Nanos, cpu: CpuId, tag: u8, fields: &[F])
    where
        F: Copy + Into<u64>,
    {
        if self.length > BUFFER {
            self.flush();
        }
        let Some(record) = self.buffer[self.length..].first_chunk_mut::<RECORD_MAX>() else {
            unreachable!("there is always room for a record behind the buffer's end");
        };
        let same = cpu == self.last_cpu;
        record[0] = tag | if same { SAME_CPU } else { 0 };
        let mut at = varint::put(record, 1, time_ns - self.last_ns);
        if !same {
            at = varint::put(record, at, u64::from(cpu.0));
        }
        for field in fields {
            at = varint::put(record, at, (*field).into());
        }
        self.count(time_ns, cpu, at);
    }

    /// Counts a written record of `length` bytes.
    #[inline(always)]
    fn count(&mut self, time_ns: Nanos, cpu: CpuId, length: usize) {
        debug_assert!((3..=RECORD_MAX).contains(&length), "a record of {length} bytes");
        debug_assert!(time_ns >= self.last_ns, "{time_ns} ns after {} ns", self.last_ns);
        self.length += length;
        debug_assert!(self.length <= BUFFER + RECORD_MAX, "{} bytes are buffered", self.length);
        self.nr_events += 1;
        (self.last_ns, self.last_cpu) = (time_ns, cpu);
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

    // Where the caller knows what it tells, only one of these calls is left of it.
    #[inline(always)]
    fn event(&mut self, event: &Event) {
        let Event { time_ns, cpu, kind: event } = *event;
        let mut other = |tag: u8, fields: &[u32]| self.other(time_ns, cpu, tag, fields);
        match event {
            EventKind::Switch { prev, next, out } => {
                self.switch(time_ns, cpu, plus_one(prev), plus_one(next), out);
            }
            EventKind::Wakeup { task, waker } => {
                self.related(time_ns, cpu, kind::WAKEUP, task, plus_one(waker));
            }
            EventKind::Fork { task, parent } => {
                self.related(time_ns, cpu, kind::FORK, task, plus_one(parent));
            }
            EventKind::Migrate { task, from } => other(kind::MIGRATE, &[task.0, from.0]),
            EventKind::Exit { task } => other(kind::EXIT, &[task.0]),
            EventKind::Phase { task, phase } => other(kind::MARK | mark::PHASE, &[task.0, phase]),
            EventKind::Progress { task } => other(kind::MARK | mark::PROGRESS, &[task.0]),
            EventKind::Block { task, object } => {
                other(kind::MARK | mark::BLOCK, &[task.0, object.0]);
            }
            EventKind::Lost { count } => other(kind::MARK | mark::LOST, &[count]),
        }
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
