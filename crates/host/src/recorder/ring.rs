// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records and rings, with the layout of bpf/recorder.h.

use schedlab_model::SwitchOut;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Bits of a process id (REC_PID_BITS).
pub const PID_BITS: u32 = 22;
/// Every process id is below this.
pub const PIDS_MAX: usize = 1 << PID_BITS;
const PID_MASK: u64 = (1 << PID_BITS) - 1;
const CPU_SHIFT: u32 = 44;
const OUT_SHIFT: u32 = 54;
const KIND_SHIFT: u32 = 58;

/// One event as the kernel side wrote it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Everything else, packed: see bpf/recorder.h.
    pub word: u64,
}

/// The content of a record. Pids are 0 for tasks outside of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recorded {
    /// A switch from `prev` to `next`.
    Switch {
        /// Pid of the task that left.
        prev: u32,
        /// Pid of the task that runs next.
        next: u32,
        /// Why `prev` left.
        out: SwitchOut,
    },
    /// `pid` became runnable.
    Wakeup {
        /// Task.
        pid: u32,
        /// The task that woke it.
        waker: u32,
    },
    /// `pid` was created and became runnable.
    New {
        /// Task.
        pid: u32,
        /// Its creator.
        parent: u32,
    },
    /// `pid` migrated from another CPU.
    Migrate {
        /// Task.
        pid: u32,
        /// The CPU that it left.
        from: u32,
    },
    /// The CPU ran `pid` without a traced switch to it. The last traced switch was to `instead`.
    Unseen {
        /// The task that ran.
        pid: u32,
        /// The task that was assumed to run.
        instead: u32,
    },
    /// Follows `Unseen`: how long ago the task was switched to (ns), from the kernel's accounts; 0
    /// if unknown.
    Ago {
        /// ns.
        ago_ns: u64,
    },
    /// Events were lost before this time.
    Lost {
        /// Number of lost events.
        count: u32,
    },
    /// A task outside of the run left a CPU of the run.
    Other {
        /// Its pid.
        pid: u32,
        /// How long it had the CPU (ns), saturated.
        ran_ns: u32,
    },
}

impl Record {
    /// The record's CPU.
    #[inline]
    pub fn cpu(&self) -> u32 {
        (self.word >> CPU_SHIFT & 0x3ff) as u32
    }

    /// Decodes the record; `None` if the kernel side does not write such a word.
    #[inline]
    pub fn decode(&self) -> Option<Recorded> {
        let first = (self.word & PID_MASK) as u32;
        let second = (self.word >> PID_BITS & PID_MASK) as u32;
        Some(match self.word >> KIND_SHIFT & 0xf {
            1 => Recorded::Switch {
                prev: first,
                next: second,
                out: *SwitchOut::ALL.get((self.word >> OUT_SHIFT & 0xf) as usize)?,
            },
            2 => Recorded::Wakeup { pid: first, waker: second },
            3 => Recorded::New { pid: first, parent: second },
            4 => Recorded::Migrate { pid: first, from: second },
            5 => Recorded::Lost { count: first },
            6 => Recorded::Unseen { pid: first, instead: second },
            7 => Recorded::Ago { ago_ns: self.word & ((1 << CPU_SHIFT) - 1) },
            8 => Recorded::Other { pid: first, ran_ns: (self.word >> PID_BITS) as u32 },
            _ => return None,
        })
    }
}

/// Control block of one ring (struct ring_control).
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    /// Records written since the start.
    pub head: AtomicU64,
    /// Not 0 while a record is written.
    pub busy: AtomicU64,
    /// Lost since the last record.
    pub lost: AtomicU64,
    /// Lost since the start.
    pub lost_total: AtomicU64,
    /// Written by the kernel side: pid of the task of the run to which the last traced switch was.
    runs: AtomicU64,
    /// Not 0: this is a CPU of the run, on which other tasks count.
    pub tells_others: AtomicU64,
    /// Written by the kernel side: when the task came that runs now and is none of the run.
    other_since: AtomicU64,
    pad: [u64; 1],
    /// Written by the reader: records read since the start.
    pub tail: AtomicU64,
    pad2: [u64; 7],
}

/// The rings of all CPUs, mapped.
#[derive(Clone, Copy, Debug)]
pub struct Rings {
    controls: *const Control,
    records: *const Record,
    nr_cpus: u32,
    ring_size: u64,
}

// SAFETY: memory shared with the kernel. It is accessed through atomics, and records only below
// `head`, where the kernel does not write until `tail` advances. One thread at a time drains.
unsafe impl Send for Rings {}

impl Rings {
    /// Rings of `nr_cpus` CPUs with `ring_size` records each.
    ///
    /// # Safety
    ///
    /// `controls` has `nr_cpus` blocks and `records` has `nr_cpus * ring_size` records. Both stay
    /// mapped as long as the value (or a copy) is in use.
    pub unsafe fn new(
        controls: *const Control,
        records: *const Record,
        nr_cpus: u32,
        ring_size: u64,
    ) -> Self {
        Self { controls, records, nr_cpus, ring_size }
    }

    /// Number of rings.
    pub fn nr_cpus(&self) -> u32 {
        self.nr_cpus
    }

    /// Control block of a CPU.
    pub fn control(&self, cpu: u32) -> &Control {
        assert!(cpu < self.nr_cpus);
        // SAFETY: in range (above) and mapped (`new`).
        unsafe { &*self.controls.add(cpu as usize) }
    }

    /// Waits until no record of `cpu` is half written, so that later records are later than now.
    /// Gives up after about 1 ms, because a hypervisor may have stopped the CPU.
    pub fn settle(&self, cpu: u32) {
        let control = self.control(cpu);
        for _ in 0..20_000 {
            if control.busy.load(Ordering::Acquire) == 0 {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Appends all records in the ring of `cpu` to `out` and frees them.
    pub fn drain(&self, cpu: u32, out: &mut Vec<Record>) {
        let control = self.control(cpu);
        let head = control.head.load(Ordering::Acquire);
        let tail = control.tail.load(Ordering::Relaxed);
        let count = head.wrapping_sub(tail).min(self.ring_size);
        let start = tail % self.ring_size;
        let first = count.min(self.ring_size - start);
        for (at, len) in [(start, first), (0, count - first)] {
            let at = u64::from(cpu) * self.ring_size + at;
            // SAFETY: in this CPU's part of the records; the kernel does not write between tail and
            // head.
            let part =
                unsafe { std::slice::from_raw_parts(self.records.add(at as usize), len as usize) };
            out.extend_from_slice(part);
        }
        fence(Ordering::Release);
        control.tail.store(head, Ordering::Release);
    }

    /// Events lost on all CPUs so far.
    pub fn nr_lost(&self) -> u64 {
        (0..self.nr_cpus).map(|cpu| self.control(cpu).lost_total.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(kind: u64, first: u64, second: u64, cpu: u64, out: u64) -> u64 {
        kind << KIND_SHIFT | out << OUT_SHIFT | cpu << CPU_SHIFT | second << PID_BITS | first
    }

    #[test]
    fn records_decode_to_what_was_packed() {
        let record = Record { time_ns: 9, word: word(1, 4_194_303, 77, 1023, 4) };
        let out = SwitchOut::BlockedIo;
        assert_eq!(record.decode(), Some(Recorded::Switch { prev: 4_194_303, next: 77, out }));
        assert_eq!(record.cpu(), 1023);
        let lost = Record { time_ns: 9, word: word(5, 12, 0, 3, 0) };
        assert_eq!((lost.decode(), lost.cpu()), (Some(Recorded::Lost { count: 12 }), 3));
        let unseen = Record { time_ns: 9, word: word(6, 12, 13, 3, 0) };
        assert_eq!(unseen.decode(), Some(Recorded::Unseen { pid: 12, instead: 13 }));
        let ago = Record { time_ns: 9, word: 7 << KIND_SHIFT | 3 << CPU_SHIFT | 5_000_000_000_000 };
        assert_eq!(
            (ago.decode(), ago.cpu()),
            (Some(Recorded::Ago { ago_ns: 5_000_000_000_000 }), 3)
        );
        let other =
            Record { time_ns: 9, word: 8 << KIND_SHIFT | u64::from(u32::MAX) << PID_BITS | 9 };
        assert_eq!(other.decode(), Some(Recorded::Other { pid: 9, ran_ns: u32::MAX }));
        for kind in [0, 9, 15] {
            assert_eq!(Record { time_ns: 0, word: word(kind, 1, 1, 1, 1) }.decode(), None);
        }
        assert_eq!(Record { time_ns: 0, word: word(1, 1, 1, 1, 9) }.decode(), None);
    }

    #[test]
    fn draining_wraps_round_and_frees() {
        const SIZE: u64 = 4;
        let controls: [Control; 2] = std::array::from_fn(|_| Control {
            head: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            lost_total: AtomicU64::new(3),
            runs: AtomicU64::new(0),
            tells_others: AtomicU64::new(0),
            other_since: AtomicU64::new(0),
            pad: [0; 1],
            tail: AtomicU64::new(0),
            pad2: [0; 7],
        });
        let records: Vec<Record> = (0..8).map(|n| Record { time_ns: n, word: 0 }).collect();
        // SAFETY: two blocks and 2 * SIZE records that outlive `rings`.
        let rings = unsafe { Rings::new(controls.as_ptr(), records.as_ptr(), 2, SIZE) };
        rings.control(1).tail.store(6, Ordering::Relaxed);
        rings.control(1).head.store(9, Ordering::Relaxed);
        let mut out = Vec::new();
        rings.drain(1, &mut out);
        let times: Vec<u64> = out.iter().map(|record| record.time_ns).collect();
        assert_eq!(times, [6, 7, 4]);
        assert_eq!(rings.control(1).tail.load(Ordering::Relaxed), 9);
        assert_eq!(rings.nr_lost(), 6);
        rings.settle(0);
    }
}
