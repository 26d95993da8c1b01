// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets of one sequence: times as differences, names by number, counters of one instant
//! together.
//!
//! Source: Perfetto protos/perfetto/trace/trace_packet.proto, clock_snapshot.proto and
//! track_event/track_event.proto; the numbers in this file are their field numbers.

use super::proto;
use crate::varint;
use schedlab_model::Nanos;
use std::collections::HashMap;
use std::io::{self, Write};

/// Bytes gathered before a write.
const BUFFER: usize = 1 << 16;
/// One writer, one sequence of packets.
pub const SEQUENCE_ID: u64 = 1;
/// The clock of switches, and of times before the last one.
const CLOCK_BOOTTIME: u64 = 6;
/// The sequence's own clock (64 to 127 are free for that): a time is the difference to the last.
const CLOCK_SEQUENCE: u64 = 64;
/// Most counters of one event: its own, and the 8 extra ones that the viewer supports.
const COUNTERS_MAX: usize = 9;
/// More bytes than the longest event of counters needs: 23 bytes each, and two more.
const COUNTERS_BYTES: usize = 256;

/// TrackEvent.type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventType {
    /// A slice begins.
    SliceBegin = 1,
    /// The slice that began last on the track ends.
    SliceEnd = 2,
    /// An event without a length.
    Instant = 3,
    /// A counter's value from here on.
    Counter = 4,
}

/// The unit of a counter, CounterDescriptor.Unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Nanoseconds.
    Ns = 1,
    /// A count.
    Count = 2,
}

/// Writes packets.
#[derive(Debug)]
pub struct Packets<W> {
    writer: W,
    buffer: Vec<u8>,
    /// Time of the last event.
    last_ns: Nanos,
    /// Number of each name of an event; looked up, never iterated.
    names: HashMap<String, u64>,
    /// Counters, by track, with their values since `counters_ns`, that are not written yet.
    counters: Vec<(u64, i64)>,
    counters_ns: Nanos,
    error: Option<io::Error>,
}

impl<W: Write> Packets<W> {
    /// Begins the sequence with its clocks, and the kernel's name and `release`.
    pub fn new(writer: W, release: &str) -> Self {
        let mut packets = Self {
            writer,
            buffer: Vec::with_capacity(2 * BUFFER),
            last_ns: 0,
            names: HashMap::new(),
            counters: Vec::with_capacity(COUNTERS_MAX),
            counters_ns: 0,
            error: None,
        };
        packets.put(|packet| {
            proto::number(packet, 13, 1); // sequence_flags: incremental state cleared
            proto::message(packet, 6, |snapshot| {
                proto::message(snapshot, 1, |clock| {
                    proto::number(clock, 1, CLOCK_BOOTTIME);
                    proto::number(clock, 2, 0);
                });
                proto::message(snapshot, 1, |clock| {
                    proto::number(clock, 1, CLOCK_SEQUENCE);
                    proto::number(clock, 2, 0);
                    proto::number(clock, 3, 1); // is_incremental
                });
            });
            proto::message(packet, 59, |defaults| proto::number(defaults, 58, CLOCK_SEQUENCE));
        });
        packets.put(|packet| {
            proto::message(packet, 45, |info| {
                proto::message(info, 1, |utsname| {
                    proto::bytes(utsname, 1, b"Linux");
                    proto::bytes(utsname, 3, release.as_bytes());
                });
            });
        });
        packets
    }

    /// Keeps the first error. Nothing is written after it.
    pub fn fail(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }

    /// Whether an error has occurred.
    pub const fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Returns the writer, or the first error.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush_counters();
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => {
                self.writer.flush()?;
                Ok(self.writer)
            }
        }
    }

    fn flush(&mut self) {
        if self.error.is_none()
            && let Err(error) = self.writer.write_all(&self.buffer)
        {
            self.error = Some(error);
        }
        self.buffer.clear();
    }

    /// Appends a packet without a time.
    #[inline]
    pub fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        proto::message(&mut self.buffer, 1, |packet| {
            proto::number(packet, 10, SEQUENCE_ID);
            fill(packet);
        });
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    /// Describes a track.
    pub fn put_track(&mut self, uuid: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        self.put(|packet| {
            proto::message(packet, 60, |track| {
                proto::number(track, 1, uuid);
                fill(track);
            });
        });
    }

    /// Describes the track of a counter, below the track `parent` if there is one.
    pub fn put_counter_track(&mut self, uuid: u64, parent: Option<u64>, name: &str, unit: Unit) {
        self.put_track(uuid, |track| {
            if let Some(parent) = parent {
                proto::number(track, 5, parent);
            }
            proto::bytes(track, 2, name.as_bytes());
            proto::message(track, 8, |counter| proto::number(counter, 3, unit as u64));
        });
    }

    /// Appends an event, which `fill` completes. A name is written only once.
    pub fn put_event(
        &mut self,
        time_ns: Nanos,
        kind: EventType,
        track: u64,
        name: Option<&str>,
        fill: impl FnOnce(&mut Vec<u8>),
    ) {
        if !self.counters.is_empty() && time_ns != self.counters_ns {
            self.flush_counters();
        }
        let (number, is_new) = match name.map(|name| self.names.get(name)) {
            None => (0, false),
            Some(Some(number)) => (*number, false),
            Some(None) => (self.names.len() as u64 + 1, true),
        };
        let new_name = name.filter(|_| is_new);
        if let Some(name) = new_name {
            self.names.insert(name.into(), number);
        }
        let time = self.time_since_last(time_ns);
        self.put(|packet| {
            match time {
                Some(delta_ns) => proto::number(packet, 8, delta_ns),
                None => {
                    proto::number(packet, 8, time_ns);
                    proto::number(packet, 58, CLOCK_BOOTTIME);
                }
            }
            if let Some(name) = new_name {
                proto::message(packet, 12, |interned| {
                    proto::message(interned, 2, |event_name| {
                        proto::number(event_name, 1, number);
                        proto::bytes(event_name, 2, name.as_bytes());
                    });
                });
            }
            proto::message(packet, 11, |event| {
                proto::number(event, 9, kind as u64);
                proto::number(event, 11, track);
                if name.is_some() {
                    proto::number(event, 10, number);
                }
                fill(event);
            });
        });
    }

    /// The time on the sequence's clock; `None` if the event is before the last one, as in
    /// recordings that are out of order.
    fn time_since_last(&mut self, time_ns: Nanos) -> Option<Nanos> {
        let delta_ns = time_ns.checked_sub(self.last_ns)?;
        self.last_ns = time_ns;
        Some(delta_ns)
    }

    /// Sets the counter `track` to `value` from `time_ns` on. Of several values at one instant the
    /// last counts.
    #[inline]
    pub fn count(&mut self, time_ns: Nanos, track: u64, value: i64) {
        if time_ns != self.counters_ns {
            self.flush_counters();
            self.counters_ns = time_ns;
        }
        if let Some(found) = self.counters.iter_mut().find(|counter| counter.0 == track) {
            found.1 = value;
            return;
        }
        if self.counters.len() == COUNTERS_MAX {
            self.flush_counters();
        }
        debug_assert!(self.counters.len() < COUNTERS_MAX, "{:?} was not written", self.counters);
        self.counters.push((track, value));
    }

    /// Writes the counters of the last instant as one event: the first as its own, the others as
    /// its extra counters.
    fn flush_counters(&mut self) {
        let Some(&(track, value)) = self.counters.first() else { return };
        let time_ns = self.counters_ns;
        let Some(delta_ns) = self.time_since_last(time_ns) else {
            for (track, value) in std::mem::take(&mut self.counters) {
                self.put_event(time_ns, EventType::Counter, track, None, |event| {
                    proto::number(event, 30, value as u64);
                });
            }
            return;
        };
        let mut event = [0; COUNTERS_BYTES];
        let mut put = |at: usize, key: u64, value: u64| {
            let at = varint::put(&mut event, at, key);
            varint::put(&mut event, at, value)
        };
        let mut at = put(0, 9 << 3, EventType::Counter as u64);
        at = put(at, 11 << 3, track);
        at = put(at, 30 << 3, value as u64);
        for &(track, value) in &self.counters[1..] {
            at = put(at, 31 << 3, track);
            at = put(at, 12 << 3, value as u64);
        }
        self.counters.clear();
        self.put(|packet| {
            proto::number(packet, 8, delta_ns);
            proto::bytes(packet, 11, &event[..at]);
        });
    }
}
