// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts what several CPUs recorded into one order of time.
//!
//! perf reads the rings of all CPUs, one after the other, and then writes that the round is over.
//! What the next round brings is not earlier than what this one brought last, so at the end of a
//! round everything up to the end of the round before can go out (tools/perf/util/
//! ordered-events.c). Equal times stay in the order of the file.
//!
//! Memory: two rounds, which the rings bound. Of a file without rounds at most [`BYTES_MAX`] are
//! held: then the earlier half goes out.

use super::sample::Stamp;

/// Bytes that are held at most.
const BYTES_MAX: usize = 256 << 20;

/// What is held of a record.
#[derive(Clone, Copy, Debug)]
struct Entry {
    stamp: Stamp,
    /// Where its bytes are; of a loss their number.
    offset: usize,
    len: usize,
    is_loss: bool,
}

/// A record that goes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held<'a> {
    Event(&'a [u8]),
    Lost(usize),
}

/// The records that are held.
#[derive(Debug, Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The bytes of the entries that stay, while the others go.
    spare: Vec<u8>,
    latest_ns: u64,
    /// The latest time when the last round ended.
    round_ns: u64,
}

impl Queue {
    /// Takes an event.
    pub fn push(&mut self, stamp: Stamp, raw: &[u8]) {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(raw);
        self.enter(Entry { stamp, offset, len: raw.len(), is_loss: false });
    }

    /// Takes a loss of so many events.
    pub fn push_loss(&mut self, stamp: Stamp, count: usize) {
        self.enter(Entry { stamp, offset: count, len: 0, is_loss: true });
    }

    fn enter(&mut self, entry: Entry) {
        self.latest_ns = self.latest_ns.max(entry.stamp.time_ns);
        self.entries.push(entry);
    }

    /// Whether too much is held.
    pub fn is_full(&self) -> bool {
        self.bytes.len() + self.entries.len() * size_of::<Entry>() > BYTES_MAX
    }

    fn sort(&mut self) {
        if !self.entries.is_sorted_by_key(|entry| entry.stamp.time_ns) {
            self.entries.sort_by_key(|entry| entry.stamp.time_ns);
        }
    }

    /// A round is over: hands out what can have no predecessor any more.
    pub fn round<E>(&mut self, out: impl FnMut(Stamp, Held<'_>) -> Result<(), E>) -> Result<(), E> {
        self.sort();
        let limit = std::mem::replace(&mut self.round_ns, self.latest_ns);
        let count = self.entries.partition_point(|entry| entry.stamp.time_ns <= limit);
        self.hand_out(count, out)
    }

    /// Hands out the earlier half.
    pub fn half<E>(&mut self, out: impl FnMut(Stamp, Held<'_>) -> Result<(), E>) -> Result<(), E> {
        self.sort();
        self.hand_out(self.entries.len().div_ceil(2), out)
    }

    /// Hands out everything.
    pub fn all<E>(&mut self, out: impl FnMut(Stamp, Held<'_>) -> Result<(), E>) -> Result<(), E> {
        self.sort();
        self.hand_out(self.entries.len(), out)
    }

    fn hand_out<E>(
        &mut self,
        count: usize,
        mut out: impl FnMut(Stamp, Held<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in &self.entries[..count] {
            let held = match entry.is_loss {
                true => Held::Lost(entry.offset),
                false => Held::Event(&self.bytes[entry.offset..entry.offset + entry.len]),
            };
            out(entry.stamp, held)?;
        }
        self.entries.drain(..count);
        self.spare.clear();
        for entry in self.entries.iter_mut().filter(|entry| !entry.is_loss) {
            let from = entry.offset;
            entry.offset = self.spare.len();
            self.spare.extend_from_slice(&self.bytes[from..from + entry.len]);
        }
        std::mem::swap(&mut self.bytes, &mut self.spare);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ns: u64, cpu: u32) -> Stamp {
        Stamp { time_ns, cpu, ..Stamp::default() }
    }

    #[test]
    fn rounds_go_out_in_order_of_time() {
        let mut queue = Queue::default();
        let mut seen = Vec::new();
        let mut out = |stamp: Stamp, held: Held<'_>| -> Result<(), ()> {
            let what = match held {
                Held::Event(raw) => String::from_utf8(raw.to_vec()).unwrap(),
                Held::Lost(count) => format!("lost {count}"),
            };
            seen.push((stamp.time_ns, stamp.cpu, what));
            Ok(())
        };
        queue.push(at(10, 0), b"a");
        queue.push(at(30, 0), b"bb");
        queue.push(at(20, 1), b"c");
        queue.round(&mut out).unwrap();
        queue.push_loss(at(25, 0), 7);
        queue.push(at(40, 0), b"d");
        queue.push(at(30, 1), b"e");
        queue.round(&mut out).unwrap();
        queue.push(at(35, 1), b"f");
        queue.all(&mut out).unwrap();
        let want = [
            (10, 0, "a"),
            (20, 1, "c"),
            (25, 0, "lost 7"),
            (30, 0, "bb"),
            (30, 1, "e"),
            (35, 1, "f"),
            (40, 0, "d"),
        ];
        assert_eq!(seen, want.map(|(time, cpu, what)| (time, cpu, what.to_string())));
    }
}
