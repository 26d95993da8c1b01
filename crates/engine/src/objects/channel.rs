// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pipes and socket pairs: bytes from writers to readers.
//!
//! **Pipe** (fs/pipe.c): a message of at most PIPE_BUF bytes goes in whole or waits; a longer one
//! goes in as there is room. A write into an empty pipe wakes one reader; a read wakes the first
//! writer that has room now; a reader that leaves bytes behind wakes the next one, and a writer
//! that leaves room the next writer.
//! **Socket pair** (net/unix/af_unix.c, SOCK_STREAM): a writer goes on while less than the
//! capacity is queued, in pieces of half of it, so the last one may go beyond. Every piece wakes
//! the readers; a read wakes the writers only when at most a quarter is still queued
//! (`unix_writable`).
//!
//! A message, its buffer and the channel's counters lie in the cache of the CPU that used the other
//! end last: if that is another one, the transfer costs `channel_transfer_ns` more.
//!
//! Wake-ups between the two ends carry the hint that the waker will soon sleep (WF_SYNC). Each byte
//! is copied twice, once by each end, at the device's price for a copy; a call itself costs
//! `pipe_ns` or `socket_ns`. Left out: the page and buffer granularity of both.
//!
//! A transfer whose other end no living task has open fails (end of file, EPIPE, ECONNRESET). Its
//! task then exits, and its mutexes go to their waiters, as in the player of the other lanes.

use super::Object;
use super::queue::WaitQueue;
use super::stuck::{BlockedTask, READS_FROM, WRITES_TO};
use crate::engine::Engine;
use crate::step::Next;
use schedlab_model::objects::PIPE_ATOMIC_BYTES;
use schedlab_model::workload::uses::{READS, Uses, WRITES};
use schedlab_model::{ChannelKind, CpuId, Nanos, ObjectId, Step, TaskId, TraceSink, Workload};

/// A channel.
#[derive(Debug)]
pub(crate) struct Channel {
    kind: ChannelKind,
    capacity: u64,
    /// Bytes written and not yet read.
    pub bytes: u64,
    pub readers: WaitQueue,
    pub writers: WaitQueue,
    pub pollers: Vec<TaskId>,
    /// Tasks that live, or are to come, and have an end open.
    pub nr_writers: u32,
    pub nr_readers: u32,
    /// The CPUs on which it was last written and read.
    written_on: Option<CpuId>,
    read_on: Option<CpuId>,
}

impl Channel {
    pub fn new(kind: ChannelKind, capacity: u64) -> Self {
        Self {
            kind,
            capacity,
            bytes: 0,
            readers: WaitQueue::default(),
            writers: WaitQueue::default(),
            pollers: Vec::new(),
            nr_writers: 0,
            nr_readers: 0,
            written_on: None,
            read_on: None,
        }
    }

    /// `cpu` writes or reads. Returns whether the other end was last used on another CPU.
    fn comes_from_elsewhere(&mut self, cpu: CpuId, writes: bool) -> bool {
        let (own, other) = match writes {
            true => (&mut self.written_on, self.read_on),
            false => (&mut self.read_on, self.written_on),
        };
        *own = Some(cpu);
        other.is_some_and(|other| other != cpu)
    }

    /// How many bytes of a message of `bytes` fit now.
    pub(super) fn room_for(&self, bytes: u64) -> u64 {
        let free = self.capacity.saturating_sub(self.bytes);
        match self.kind {
            ChannelKind::Pipe if bytes <= PIPE_ATOMIC_BYTES.min(self.capacity) => {
                if bytes <= free {
                    bytes
                } else {
                    0
                }
            }
            ChannelKind::Pipe => bytes.min(free),
            ChannelKind::SocketPair => {
                let piece = (self.capacity / 2).max(1);
                let pieces = free.div_ceil(piece);
                bytes.min(pieces.saturating_mul(piece))
            }
        }
    }

    fn is_pipe(&self) -> bool {
        self.kind == ChannelKind::Pipe
    }

    /// A task opens these ends.
    fn open(&mut self, ends: u8) {
        self.nr_readers += u32::from(ends & READS != 0);
        self.nr_writers += u32::from(ends & WRITES != 0);
    }

    /// A task closes these ends. Returns the tasks that wait for one that nobody has open any more.
    fn close(&mut self, ends: u8) -> Vec<TaskId> {
        let mut waiters = Vec::new();
        if ends & READS != 0 {
            self.nr_readers -= 1;
            if self.nr_readers == 0 {
                waiters.extend(std::iter::from_fn(|| self.writers.pop()));
            }
        }
        if ends & WRITES != 0 {
            self.nr_writers -= 1;
            if self.nr_writers == 0 {
                waiters.extend(std::iter::from_fn(|| self.readers.pop()));
            }
        }
        waiters
    }
}

/// The channels of which tasks of each description have ends open, in the order of their numbers.
#[derive(Debug)]
pub(super) struct ChannelEnds(Vec<Vec<(ObjectId, u8)>>);

impl ChannelEnds {
    pub fn of(workload: &Workload, objects: &[Object]) -> Self {
        let is_channel = |index: &usize| matches!(objects[*index], Object::Channel(_));
        let channels: Vec<usize> = (0..objects.len()).filter(is_channel).collect();
        if channels.is_empty() {
            return Self(Vec::new());
        }
        let ends = |uses: &Uses| {
            let ends = channels.iter().map(|index| (ObjectId(*index as u32), uses.get(*index)));
            ends.filter(|(_, ends)| *ends != 0).collect()
        };
        Self(Uses::of(workload).iter().map(ends).collect())
    }

    fn of_spec(&self, spec: u32) -> &[(ObjectId, u8)] {
        self.0.get(spec as usize).map_or(&[], Vec::as_slice)
    }
}

impl super::Objects {
    /// A task of description `spec` begins, or is to come.
    pub fn open_ends(&mut self, spec: u32) {
        for (id, ends) in self.ends.of_spec(spec) {
            if let Object::Channel(channel) = &mut self.objects[id.index()] {
                channel.open(*ends);
            }
        }
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// The exiting `task` closes its ends of channels, which wakes those that wait for a transfer
    /// with nobody else.
    pub(crate) fn close_ends(&mut self, cpu: CpuId, task: TaskId) {
        let spec = self.tasks[task].spec;
        for index in 0..self.objects.ends.of_spec(spec).len() {
            let (id, ends) = self.objects.ends.of_spec(spec)[index];
            for waiter in self.objects.channel(id).close(ends) {
                self.wake_waiter(cpu, task, waiter, false);
            }
            if self.objects.channel(id).nr_writers == 0 {
                self.wake_pollers(cpu, task, id);
            }
        }
    }

    /// A transfer of `task` fails for good: its program ends.
    fn ends_early(&mut self, cpu: CpuId, task: TaskId, id: ObjectId, act: &'static str) -> Next {
        let (name, object) = (self.tasks[task].name.clone(), self.object_name(id));
        self.outcome.cut_off.push(BlockedTask { task: name, act, object, holder: None });
        while let Some(mutex) = self.shared(task).held.last().copied() {
            self.release_mutex(cpu, task, mutex);
        }
        self.exits(cpu, task)
    }

    pub(super) fn send(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        id: ObjectId,
        bytes: u64,
        retried: bool,
    ) -> Next {
        if !retried {
            self.charge_transfer(task, id);
        }
        let channel = self.objects.channel(id);
        if channel.nr_readers == 0 {
            return self.ends_early(cpu, task, id, WRITES_TO);
        }
        let was_empty = channel.bytes == 0;
        debug_assert!(bytes > 0 || !retried, "task {task} is woken to send nothing to {id}");
        let taken = channel.room_for(bytes);
        debug_assert!(taken <= bytes, "more than the message goes into {id}");
        channel.bytes += taken;
        debug_assert!(!channel.is_pipe() || channel.bytes <= channel.capacity, "{id} overflows");
        self.charge(task, self.device.copy_ns(taken));
        if taken > 0 {
            self.charge_lines(cpu, task, id, true);
            self.wake_readers(cpu, task, id, was_empty);
        }
        if taken < bytes {
            let prio = self.core.task(task).attr.kernel_prio();
            self.objects.channel(id).writers.push(task, prio);
            let rest = Step::Send { channel: id, bytes: bytes - taken };
            return self.block_on(cpu, task, id, Some(rest));
        }
        if self.objects.channel(id).is_pipe() {
            self.wake_writer(cpu, task, id, false);
        }
        Next::Call
    }

    /// Charges `task` for a system call on the channel, without copy and wake-ups.
    fn charge_transfer(&mut self, task: TaskId, id: ObjectId) {
        let ns = self.transfer_ns(id);
        self.charge(task, ns);
    }

    /// Time of a system call on the channel.
    pub(super) fn transfer_ns(&mut self, id: ObjectId) -> Nanos {
        let is_pipe = self.objects.channel(id).is_pipe();
        if is_pipe { self.costs.pipe_ns } else { self.costs.socket_ns }
    }

    /// Charges the transfer of the channel's data, if the other end was last used on another CPU.
    #[inline]
    fn charge_lines(&mut self, cpu: CpuId, task: TaskId, id: ObjectId, writes: bool) {
        if self.costs.channel_transfer_ns > 0
            && self.objects.channel(id).comes_from_elsewhere(cpu, writes)
        {
            self.charge(task, self.costs.channel_transfer_ns);
        }
    }

    fn wake_readers(&mut self, cpu: CpuId, task: TaskId, id: ObjectId, was_empty: bool) {
        let is_pipe = self.objects.channel(id).is_pipe();
        if !is_pipe || was_empty {
            while let Some(reader) = self.objects.channel(id).readers.pop() {
                self.wake_waiter(cpu, task, reader, true);
                if is_pipe {
                    break;
                }
            }
        }
        self.wake_pollers(cpu, task, id);
    }

    /// Wakes the first writer that has room. Returns whether there was one.
    fn wake_writer(&mut self, cpu: CpuId, task: TaskId, id: ObjectId, sync: bool) -> bool {
        // The queue is taken out while its channel is asked.
        let channel = self.objects.channel(id);
        let mut writers = std::mem::take(&mut channel.writers);
        let fits = |writer: TaskId| {
            let shared = self.tasks[writer].shared.as_ref();
            let pending = shared.and_then(|shared| shared.pending);
            matches!(pending, Some(Step::Send { bytes, .. }) if channel.room_for(bytes) > 0)
        };
        let writer = writers.pop_if(fits);
        channel.writers = writers;
        if let Some(writer) = writer {
            self.wake_waiter(cpu, task, writer, sync);
        }
        writer.is_some()
    }

    pub(super) fn receive(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        id: ObjectId,
        bytes: u64,
        retried: bool,
    ) -> Next {
        if !retried {
            self.charge_transfer(task, id);
        }
        let channel = self.objects.channel(id);
        let taken = channel.bytes.min(bytes);
        channel.bytes -= taken;
        let (is_pipe, left) = (channel.is_pipe(), channel.bytes);
        let wakes = is_pipe || left <= channel.capacity / 4;
        self.charge(task, self.device.copy_ns(taken));
        if taken > 0 {
            self.charge_lines(cpu, task, id, false);
        }
        if taken > 0 && wakes {
            while self.wake_writer(cpu, task, id, true) && !is_pipe {}
        }
        if taken < bytes && self.objects.channel(id).nr_writers == 0 {
            return self.ends_early(cpu, task, id, READS_FROM);
        }
        if taken < bytes {
            if taken > 0 {
                // This read has returned what there was; the next one waits.
                self.charge_transfer(task, id);
            }
            let prio = self.core.task(task).attr.kernel_prio();
            self.objects.channel(id).readers.push(task, prio);
            let rest = Step::Receive { channel: id, bytes: bytes - taken };
            return self.block_on(cpu, task, id, Some(rest));
        }
        if left > 0
            && is_pipe
            && let Some(reader) = self.objects.channel(id).readers.pop()
        {
            self.wake_waiter(cpu, task, reader, false);
        }
        Next::Call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(kind: ChannelKind, capacity: u64, queued: u64, bytes: u64) -> u64 {
        Channel { bytes: queued, ..Channel::new(kind, capacity) }.room_for(bytes)
    }

    #[test]
    fn a_pipe_takes_short_messages_whole_and_long_ones_in_parts() {
        let pipe = |queued, bytes| room(ChannelKind::Pipe, 65_536, queued, bytes);
        assert_eq!(pipe(65_000, 536), 536);
        assert_eq!(pipe(65_000, 537), 0);
        assert_eq!(pipe(65_000, 4_097), 536);
        // Where not even one such message fits, it goes in in parts.
        assert_eq!(room(ChannelKind::Pipe, 10, 4, 11), 6);
        assert_eq!(room(ChannelKind::Pipe, 10, 4, 10), 0);
    }

    #[test]
    fn a_socket_takes_pieces_while_below_its_capacity() {
        let socket = |queued, bytes| room(ChannelKind::SocketPair, 1_000, queued, bytes);
        assert_eq!(socket(999, 400), 400);
        assert_eq!(socket(999, 900), 500);
        assert_eq!(socket(0, 9_000), 1_000);
        assert_eq!(socket(1_000, 1), 0);
    }
}
