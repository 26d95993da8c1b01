// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ring buffers between a scheduler and its user program, in the layout of the kernel's pages: the
//! consumer's position, the producer's, the data, and the data again
//! (Documentation/bpf/ringbuf.rst, kernel/bpf/ringbuf.c).
//!
//! Records of the scheduler are copied to the program before a step. Those that the program has
//! written into a user ring buffer are copied to the scheduler after it, and are consumed by that.

use super::Backend;
use crate::calls::Call;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// Where the producer's position is.
const PRODUCER: u64 = PAGE;
/// Where the data are.
const DATA: u64 = 2 * PAGE;
/// Bytes before a record: its length, and the number of its page.
const HEADER: u64 = 8;
/// Bits of the length: the record is not written yet, or was discarded.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
/// Most ring buffers that an epoll watches.
const WATCHED_MAX: usize = 1 << 10;

/// A ring buffer, of the scheduler or, if `is_users`, of the program.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) map: String,
    pub(crate) file: File,
    /// Number of the file.
    pub(crate) number: u64,
    /// Bytes of data, a power of two.
    pub(crate) size: u64,
    pub(crate) is_users: bool,
}

/// A ring buffer that an epoll of the program watches.
#[derive(Debug)]
struct Watched {
    epoll: u32,
    number: u64,
    /// What the program gets back (`epoll_data`).
    data: [u8; 8],
}

/// The ring buffers of a program.
#[derive(Debug, Default)]
pub(super) struct Rings {
    all: Vec<Ring>,
    watched: Vec<Watched>,
}

impl Ring {
    fn position(&self, at: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.file.read_exact_at(&mut word, at)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Positions of consumer and producer.
    fn positions(&self) -> io::Result<(u64, u64)> {
        Ok((self.position(0)?, self.position(PRODUCER)?))
    }

    /// Writes data at a position, both times that they are there.
    fn write(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let at = position & (self.size - 1);
        for start in [at, at + self.size] {
            let room = (2 * self.size).saturating_sub(start).min(bytes.len() as u64) as usize;
            self.file.write_all_at(&bytes[..room], DATA + start)?;
        }
        // What goes over the end of the second copy is at the start of the first.
        let over = (at + bytes.len() as u64).saturating_sub(self.size).min(bytes.len() as u64);
        self.file.write_all_at(&bytes[bytes.len() - over as usize..], DATA)
    }

    fn pull(&self, backend: &mut dyn Backend) -> io::Result<()> {
        let (consumer, mut producer) = self.positions()?;
        loop {
            let room = self.size.saturating_sub(producer.wrapping_sub(consumer));
            let most = room.saturating_sub(HEADER);
            let Some(record) = backend.take_record(&self.map, most) else { break };
            let mut bytes = (record.len() as u32).to_le_bytes().to_vec();
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&record);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            self.write(producer, &bytes)?;
            producer = producer.wrapping_add(bytes.len() as u64);
        }
        self.file.write_all_at(&producer.to_le_bytes(), PRODUCER)
    }

    fn push(&self, backend: &mut dyn Backend) -> io::Result<()> {
        let (mut consumer, producer) = self.positions()?;
        while consumer != producer && producer.wrapping_sub(consumer) <= self.size {
            let at = DATA + (consumer & (self.size - 1));
            let mut word = [0; 4];
            self.file.read_exact_at(&mut word, at)?;
            let word = u32::from_le_bytes(word);
            let len = u64::from(word & !(BUSY | DISCARDED));
            if word & BUSY != 0 || len + HEADER > self.size {
                break;
            }
            if word & DISCARDED == 0 {
                let mut record = vec![0; len as usize];
                self.file.read_exact_at(&mut record, at + HEADER)?;
                if !backend.give_record(&self.map, &record) {
                    break;
                }
            }
            consumer = consumer.wrapping_add((len + HEADER).next_multiple_of(8));
        }
        self.file.write_all_at(&consumer.to_le_bytes(), 0)
    }

    fn has_records(&self) -> bool {
        self.positions().is_ok_and(|(consumer, producer)| consumer != producer)
    }
}

impl Rings {
    /// These ring buffers; those whose size is not a power of two are none.
    pub(super) fn set(&mut self, all: Vec<Ring>) {
        self.all = all.into_iter().filter(|ring| ring.size.is_power_of_two()).collect();
    }

    /// Copies records of the scheduler to the program.
    pub(super) fn pull(&self, backend: &mut dyn Backend) -> io::Result<()> {
        self.all.iter().filter(|ring| !ring.is_users).try_for_each(|ring| ring.pull(backend))
    }

    /// Copies records of the program to the scheduler.
    pub(super) fn push(&self, backend: &mut dyn Backend) -> io::Result<()> {
        self.all.iter().filter(|ring| ring.is_users).try_for_each(|ring| ring.push(backend))
    }

    /// epoll_ctl(2) about a ring buffer, which a file in memory cannot be watched for.
    pub(super) fn watch(&mut self, call: &Call, number: u64) {
        let epoll = call.args[0] as u32;
        self.watched.retain(|own| own.epoll != epoll || own.number != number);
        let is_removed = call.args[1] == libc::EPOLL_CTL_DEL as u64;
        let event = call.read(call.args[3], 12).filter(|_| !is_removed);
        if let Some(data) = event.and_then(|event| event[4..].first_chunk().copied())
            && self.watched.len() < WATCHED_MAX
        {
            self.watched.push(Watched { epoll, number, data });
        }
    }

    /// The events of an epoll: the ring buffers that have records.
    pub(super) fn events(&self, epoll: u32, most: u64) -> Vec<u8> {
        let is_ready = |watched: &&Watched| {
            let ring = self.all.iter().find(|ring| ring.number == watched.number);
            watched.epoll == epoll && ring.is_some_and(|ring| !ring.is_users && ring.has_records())
        };
        let ready = self.watched.iter().filter(is_ready).take(most as usize);
        ready
            .flat_map(|own| [&(libc::EPOLLIN as u32).to_le_bytes()[..], &own.data].concat())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::memory_file;

    /// A scheduler with records of its own, which keeps what it is given.
    #[derive(Default)]
    struct Records {
        own: Vec<Vec<u8>>,
        given: Vec<Vec<u8>>,
    }

    impl Backend for Records {
        fn lookup(&mut self, _map: &str, _key: &[u8]) -> Result<Vec<u8>, i32> {
            Err(libc::ENOENT)
        }
        fn update(&mut self, _: &str, _: &[u8], _: &[u8], _: u64) -> Result<(), i32> {
            Err(libc::ENOENT)
        }
        fn delete(&mut self, _map: &str, _key: &[u8]) -> Result<(), i32> {
            Err(libc::ENOENT)
        }
        fn pop(&mut self, _map: &str) -> Result<Vec<u8>, i32> {
            Err(libc::ENOENT)
        }
        fn next_key(&mut self, _map: &str, _key: Option<&[u8]>) -> Result<Vec<u8>, i32> {
            Err(libc::ENOENT)
        }
        fn run(&mut self, _: &str, _: &mut [u8], _: Option<u32>) -> Result<i32, i32> {
            Err(libc::ENOENT)
        }
        fn variable(&mut self, _name: &str) -> Option<Vec<u8>> {
            None
        }
        fn set_variable(&mut self, _name: &str, _offset: usize, _bytes: &[u8]) {}
        fn take_record(&mut self, _map: &str, most: u64) -> Option<Vec<u8>> {
            let fits = self.own.first().is_some_and(|own| own.len() as u64 <= most);
            fits.then(|| self.own.remove(0))
        }
        fn give_record(&mut self, _map: &str, record: &[u8]) -> bool {
            self.given.push(record.to_vec());
            true
        }
        fn times(&mut self) -> String {
            String::new()
        }
    }

    fn ring(is_users: bool) -> Ring {
        let (file, number) = memory_file(DATA + 2 * PAGE).unwrap();
        Ring { map: "ring".into(), file, number, size: PAGE, is_users }
    }

    #[test]
    fn what_one_side_writes_the_other_reads_across_the_end() {
        let ring = ring(true);
        let record = |nth: u8| vec![nth; 1_000];
        let mut records = Records::default();
        for nth in 0..20 {
            // Written as the scheduler's, read as the program's: the pages are the same.
            records.own.push(record(nth));
            ring.pull(&mut records).unwrap();
            assert!(ring.has_records());
            ring.push(&mut records).unwrap();
            assert!(!ring.has_records());
        }
        assert_eq!(records.given, (0..20).map(record).collect::<Vec<_>>());
    }

    #[test]
    fn a_full_buffer_takes_no_more() {
        let ring = ring(false);
        let mut records = Records { own: vec![vec![1; 2_000]; 3], ..Records::default() };
        ring.pull(&mut records).unwrap();
        // 4,096 bytes have room for two records of 2,008 bytes.
        assert_eq!(records.own.len(), 1);
        assert_eq!(ring.positions().unwrap(), (0, 4_016));
    }

    #[test]
    fn wrong_positions_and_lengths_end_a_copy() {
        let ring = ring(true);
        let mut records = Records::default();
        ring.file.write_all_at(&u64::MAX.to_le_bytes(), PRODUCER).unwrap();
        ring.push(&mut records).unwrap();
        ring.file.write_all_at(&64u64.to_le_bytes(), PRODUCER).unwrap();
        for word in [BUSY, 1 << 20, DISCARDED | 8, 3] {
            ring.file.write_all_at(&word.to_le_bytes(), DATA).unwrap();
            ring.push(&mut records).unwrap();
        }
        assert!(records.given.iter().all(|record| record.len() <= 56), "{:?}", records.given);
    }
}
