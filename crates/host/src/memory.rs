// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the processes of a run share: one slot for each task, and rings for the tasks' own
//! marks.
//!
//! Everything is atomic, in one anonymous shared mapping that is created before the first fork.
//! While a run is measured, tasks write time stamps only here: no output, no allocation.
//!
//! The launcher writes a slot's plan and its last counters; the task writes its marks and times. A
//! slot's index is the task's number ([`schedlab_model::TaskId`]).

use crate::sys::{self, SharedMap};
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Marks in a task's ring. The reader empties it every 20 ms.
pub const MARKS_PER_TASK: u64 = 4096;
/// Number of tasks that a workload may fork, in addition to those that the launcher starts.
pub const FORKS_MAX: u32 = 32_768;
const ERROR_LEN: usize = 1000;

/// State of a slot.
pub mod slot_state {
    /// Not in use.
    pub const FREE: u32 = 0;
    /// Its process is being created.
    pub const FORKING: u32 = 1;
    /// Its process waits for the release.
    pub const HELD: u32 = 2;
    /// Released.
    pub const RUNNING: u32 = 3;
    /// Finished its program.
    pub const ENDED: u32 = 4;
    /// Failed: see `error_stage` and `error_number`.
    pub const FAILED: u32 = 5;
}

/// State of the run.
pub mod run_state {
    /// Tasks are being created.
    pub const SETUP: u32 = 0;
    /// Time 0 has passed.
    pub const RUNNING: u32 = 1;
    /// All tasks have ended and are counted.
    pub const DONE: u32 = 2;
    /// Failed: see the error text.
    pub const FAILED: u32 = 3;
    /// The commands around a program are ready; the launcher waits for the caller.
    pub const PREPARED: u32 = 4;
}

/// The run as a whole.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct RunHeader {
    /// [`run_state`].
    pub state: AtomicU32,
    /// Slots in use. A task that forks takes the next one.
    pub nr_slots: AtomicU32,
    /// Time 0 (CLOCK_MONOTONIC).
    pub zero_ns: AtomicU64,
    /// Planned time 0 (CLOCK_MONOTONIC), from which tasks with a later release count; 0: the
    /// launcher releases them.
    pub planned_ns: AtomicU64,
    /// When the launcher began to wake the tasks of time 0 (CLOCK_MONOTONIC); 0: not before it.
    pub early_ns: AtomicU64,
    /// End of the run (CLOCK_MONOTONIC); 0 before.
    pub end_ns: AtomicU64,
    /// 1: the limit ended the run.
    pub was_limited: AtomicU32,
    /// 1: the run was ended because every task waited for another.
    pub was_deadlocked: AtomicU32,
    /// Descendants of commands that were still running and were killed.
    pub nr_leftover: AtomicU32,
    /// CPU time (us) of everything that the launcher started; known at its end.
    pub descendants_cpu_us: AtomicU64,
    /// Descriptor plus one of the counter that a task raises when its marks need a reader; 0: none.
    alarm: AtomicU32,
    error_len: AtomicU32,
    error: [AtomicU8; ERROR_LEN],
}

impl RunHeader {
    /// Sets the counter that tasks raise when their marks need a reader. The launcher and its tasks
    /// inherit the descriptor.
    pub fn set_alarm(&self, fd: i32) {
        self.alarm.store(fd as u32 + 1, Ordering::Relaxed);
    }

    /// The counter of [`Self::set_alarm`].
    pub fn alarm(&self) -> Option<i32> {
        self.alarm.load(Ordering::Relaxed).checked_sub(1).map(|fd| fd as i32)
    }

    /// Records why the run failed. The first text stays.
    pub fn fail(&self, text: &str) {
        if self.error_len.load(Ordering::Acquire) == 0 {
            let bytes = &text.as_bytes()[..text.len().min(ERROR_LEN)];
            for (to, from) in self.error.iter().zip(bytes) {
                to.store(*from, Ordering::Relaxed);
            }
            self.error_len.store(bytes.len() as u32, Ordering::Release);
        }
        self.state.store(run_state::FAILED, Ordering::Release);
    }

    /// Why the run failed, if it did.
    pub fn error(&self) -> Option<String> {
        let len = self.error_len.load(Ordering::Acquire) as usize;
        let bytes: Vec<u8> =
            self.error.iter().take(len).map(|byte| byte.load(Ordering::Relaxed)).collect();
        (len > 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Counters of a task. `base` is read while the task is held, `last` after it exited.
#[repr(C)]
#[derive(Debug)]
pub struct Counters {
    /// CPU time by schedstat, ns.
    pub run_ns: AtomicU64,
    /// Run delay by schedstat, ns.
    pub run_delay_ns: AtomicU64,
    /// Number of its slices, from schedstat.
    pub nr_slices: AtomicU64,
    /// User time, us.
    pub user_us: AtomicU64,
    /// System time, us.
    pub system_us: AtomicU64,
    /// Voluntary switches.
    pub nr_voluntary: AtomicU64,
    /// Involuntary switches.
    pub nr_involuntary: AtomicU64,
}

/// One task.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Slot {
    /// [`slot_state`].
    pub state: AtomicU32,
    /// Process id, 0 before the fork.
    pub pid: AtomicU32,
    /// Index of its description.
    pub spec: AtomicU32,
    /// Slot of its parent; `u32::MAX` for the launcher.
    pub parent: AtomicU32,
    /// How many tasks of its description were forked before it; 0 for the launcher's.
    pub nth: AtomicU32,
    /// Futex word: 0 hold, 1 go. Tasks released together are moved to the word of the first of
    /// them.
    pub go: AtomicU32,
    /// 1: the launcher has waited for it and `last` is valid.
    pub is_reaped: AtomicU32,
    /// Wait status.
    pub status: AtomicI32,
    /// The step that failed: an index into [`crate::player::STAGES`].
    pub error_stage: AtomicU32,
    /// errno of the failure.
    pub error_number: AtomicI32,
    /// Object (number in the trace plus one) at which it failed; 0: none.
    pub error_object: AtomicU32,
    /// Object (number in the trace plus one) on which it blocks or may block; 0: none.
    pub blocked_on: AtomicU32,
    /// `blocked_on` when the run was ended from outside, if the task slept then.
    pub blocked_at_end: AtomicU32,
    /// Slot plus one of the task that held the mutex of `blocked_at_end`; 0: unknown.
    pub blocked_by: AtomicU32,
    /// Mutex (number plus one) that it took over from a task that ended while holding it; 0: none.
    pub took_abandoned: AtomicU32,
    /// Channel (number plus one) whose other end was closed, so that its program ended; 0: none.
    pub closed_channel: AtomicU32,
    /// Units of progress finished.
    pub nr_progress: AtomicU32,
    /// When it was released (CLOCK_MONOTONIC).
    pub released_ns: AtomicU64,
    /// When its first instruction after the release ran (CLOCK_MONOTONIC).
    pub first_ns: AtomicU64,
    /// When its program ended (CLOCK_MONOTONIC), 0 before.
    pub ended_ns: AtomicU64,
    /// CPU time that its Run operations asked for, ns.
    pub requested_ns: AtomicU64,
    /// CPU time that they took by the thread's clock, ns.
    pub burned_ns: AtomicU64,
    /// Counters while held.
    pub base: Counters,
    /// Counters at exit.
    pub last: Counters,
}

/// A mark that a task writes about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// One unit of progress done.
    Progress,
    /// A phase begins.
    Phase(u32),
    /// About to call sched_yield.
    YieldBegin,
    /// sched_yield has returned.
    YieldEnd,
    /// First instruction after the release (only if nothing else is recorded).
    Began,
    /// The program has ended (only if nothing else is recorded).
    Ended,
    /// It is about to block on the object with this number in the trace. The next sleep is that
    /// wait.
    Block(u32),
    /// The next sleep is not the wait of the last [`Mark::Block`].
    Unblock,
}

impl Mark {
    fn encode(self) -> u64 {
        match self {
            Self::Progress => 1,
            Self::Phase(phase) => 2 | u64::from(phase) << 8,
            Self::YieldBegin => 3,
            Self::YieldEnd => 4,
            Self::Began => 5,
            Self::Ended => 6,
            Self::Block(object) => 7 | u64::from(object) << 8,
            Self::Unblock => 8,
        }
    }

    fn decode(word: u64) -> Option<Self> {
        Some(match word & 0xff {
            1 => Self::Progress,
            2 => Self::Phase((word >> 8) as u32),
            3 => Self::YieldBegin,
            4 => Self::YieldEnd,
            5 => Self::Began,
            6 => Self::Ended,
            7 => Self::Block((word >> 8) as u32),
            8 => Self::Unblock,
            _ => return None,
        })
    }
}

#[repr(C)]
struct RawMark {
    time_ns: AtomicU64,
    word: AtomicU64,
}

/// Marks of one task. The task writes them, the reader removes them.
#[repr(C, align(64))]
pub struct MarkRing {
    head: AtomicU64,
    lost: AtomicU64,
    tail: AtomicU64,
    marks: [RawMark; MARKS_PER_TASK as usize],
}

impl MarkRing {
    /// Adds a mark with the present time. If the ring is full, the mark is lost and counted.
    /// Returns whether the ring has just become half full.
    #[inline]
    fn push(&self, mark: Mark) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        let used = head - self.tail.load(Ordering::Acquire);
        if used >= MARKS_PER_TASK {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let raw = &self.marks[(head % MARKS_PER_TASK) as usize];
        raw.word.store(mark.encode(), Ordering::Relaxed);
        raw.time_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
        self.head.store(head + 1, Ordering::Release);
        used + 1 == MARKS_PER_TASK / 2
    }

    /// Adds a less important mark: only while the ring is less than half full. Returns as
    /// [`Self::push`].
    #[inline]
    fn push_unless_crowded(&self, mark: Mark) -> bool {
        let used = self.head.load(Ordering::Relaxed) - self.tail.load(Ordering::Acquire);
        if used < MARKS_PER_TASK / 2 {
            return self.push(mark);
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Removes all marks.
    pub fn drain(&self, mut take: impl FnMut(u64, Mark)) {
        let head = self.head.load(Ordering::Acquire);
        let mut tail = self.tail.load(Ordering::Relaxed);
        while tail != head {
            let raw = &self.marks[(tail % MARKS_PER_TASK) as usize];
            let word = raw.word.load(Ordering::Relaxed);
            if let Some(mark) = Mark::decode(word) {
                take(raw.time_ns.load(Ordering::Relaxed), mark);
            }
            tail += 1;
        }
        self.tail.store(tail, Ordering::Release);
    }

    /// Marks lost so far.
    pub fn nr_lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Writes the marks of one task, and calls their reader when half of the ring is used.
#[derive(Clone, Copy)]
pub struct Marker<'a> {
    ring: &'a MarkRing,
    alarm: Option<i32>,
}

impl Marker<'_> {
    /// Adds a mark with the present time. If the ring is full, the mark is lost and counted.
    #[inline]
    pub fn push(&self, mark: Mark) {
        if self.ring.push(mark) {
            self.call_reader();
        }
    }

    /// Adds a less important mark: only while the ring is less than half full.
    #[inline]
    pub fn push_unless_crowded(&self, mark: Mark) {
        if self.ring.push_unless_crowded(mark) {
            self.call_reader();
        }
    }

    fn call_reader(&self) {
        if let Some(fd) = self.alarm {
            // If it fails, the reader comes with its next round.
            let _ = sys::write_some(fd, &1_u64.to_ne_bytes());
        }
    }
}

/// The shared memory of a run.
#[derive(Debug)]
pub struct RunMemory {
    map: SharedMap,
    slots_max: u32,
    /// Number of descriptions. A counter of forked tasks for each follows the slots.
    nr_specs: u32,
}

impl RunMemory {
    const SLOTS_AT: usize = size_of::<RunHeader>();

    /// Memory for up to `slots_max` tasks of `nr_specs` descriptions.
    pub fn new(slots_max: u32, nr_specs: u32) -> io::Result<Self> {
        let len =
            Self::marks_from(slots_max, nr_specs) + slots_max as usize * size_of::<MarkRing>();
        Ok(Self { map: SharedMap::new(len)?, slots_max, nr_specs })
    }

    fn forked_from(slots_max: u32) -> usize {
        Self::SLOTS_AT + slots_max as usize * size_of::<Slot>()
    }

    fn marks_from(slots_max: u32, nr_specs: u32) -> usize {
        let end = Self::forked_from(slots_max) + nr_specs as usize * size_of::<AtomicU32>();
        end.next_multiple_of(align_of::<MarkRing>())
    }

    fn marks_at(&self, index: u32) -> usize {
        Self::marks_from(self.slots_max, self.nr_specs) + index as usize * size_of::<MarkRing>()
    }

    /// Number of tasks of a description that were forked so far.
    fn nr_forked(&self, spec: u32) -> &AtomicU32 {
        assert!(spec < self.nr_specs);
        let at = Self::forked_from(self.slots_max) + spec as usize * size_of::<AtomicU32>();
        // SAFETY: an atomic, for which zero is valid.
        unsafe { self.map.at(at) }
    }

    /// The state of the run.
    pub fn header(&self) -> &RunHeader {
        // SAFETY: made of atomics, for which zero is valid.
        unsafe { self.map.at(0) }
    }

    /// Slot `index`.
    pub fn slot(&self, index: u32) -> &Slot {
        assert!(index < self.slots_max);
        // SAFETY: made of atomics, for which zero is valid.
        unsafe { self.map.at(Self::SLOTS_AT + index as usize * size_of::<Slot>()) }
    }

    /// Marks of task `index`.
    pub fn marks(&self, index: u32) -> &MarkRing {
        assert!(index < self.slots_max);
        // SAFETY: made of atomics, for which zero is valid.
        unsafe { self.map.at(self.marks_at(index)) }
    }

    /// Writes the marks of task `index`.
    pub fn marker(&self, index: u32) -> Marker<'_> {
        Marker { ring: self.marks(index), alarm: self.header().alarm() }
    }

    /// Allocates the pages that a task writes, so that this never faults. `writes_marks`: whether
    /// its program does; otherwise only its first page of marks is used.
    pub fn populate(&self, index: u32, writes_marks: bool) {
        self.map.populate(Self::SLOTS_AT + index as usize * size_of::<Slot>(), size_of::<Slot>());
        let len = if writes_marks { size_of::<MarkRing>() } else { align_of::<MarkRing>() };
        self.map.populate(self.marks_at(index), len);
    }

    /// Takes the next free slot; `None` if there is none.
    pub fn allocate(&self, spec: u32, parent: u32) -> Option<u32> {
        let index = self.header().nr_slots.fetch_add(1, Ordering::AcqRel);
        if index >= self.slots_max {
            self.header().nr_slots.store(self.slots_max, Ordering::Release);
            return None;
        }
        let slot = self.slot(index);
        slot.spec.store(spec, Ordering::Relaxed);
        slot.parent.store(parent, Ordering::Relaxed);
        if parent != u32::MAX {
            let nth = self.nr_forked(spec).fetch_add(1, Ordering::Relaxed);
            slot.nth.store(nth, Ordering::Relaxed);
        }
        slot.state.store(slot_state::FORKING, Ordering::Release);
        Some(index)
    }

    /// Number of slots in use.
    pub fn nr_slots(&self) -> u32 {
        self.header().nr_slots.load(Ordering::Acquire).min(self.slots_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_out_as_they_went_in_and_losses_are_counted() {
        let memory = RunMemory::new(3, 1).unwrap();
        let ring = memory.marks(2);
        for phase in 0..MARKS_PER_TASK as u32 + 5 {
            ring.push(Mark::Phase(phase));
        }
        let mut seen = Vec::new();
        ring.drain(|time_ns, mark| seen.push((time_ns, mark)));
        assert_eq!(seen.len() as u64, MARKS_PER_TASK);
        assert_eq!(seen[7].1, Mark::Phase(7));
        assert!(seen.is_sorted_by_key(|(time_ns, _)| *time_ns));
        assert_eq!(ring.nr_lost(), 5);
        ring.push(Mark::YieldEnd);
        ring.drain(|_, mark| assert_eq!(mark, Mark::YieldEnd));
        for object in 0..MARKS_PER_TASK as u32 {
            ring.push_unless_crowded(Mark::Block(object));
        }
        ring.push(Mark::Progress);
        let mut seen = Vec::new();
        ring.drain(|_, mark| seen.push(mark));
        assert_eq!(seen.len() as u64, MARKS_PER_TASK / 2 + 1);
        assert_eq!((seen[9], seen.last()), (Mark::Block(9), Some(&Mark::Progress)));
    }

    #[test]
    fn a_ring_that_is_half_full_calls_its_reader_before_marks_are_lost() {
        let memory = RunMemory::new(1, 1).unwrap();
        let alarm = sys::event_counter(0).unwrap();
        memory.header().set_alarm(alarm);
        let is_called = || {
            let mut items = [sys::Pollable { fd: alarm, is_ready: false }];
            sys::poll(&mut items, Some(std::time::Duration::ZERO));
            items[0].is_ready
        };
        let marker = memory.marker(0);
        for round in 0..2 {
            for mark in 1..MARKS_PER_TASK / 2 {
                marker.push(Mark::Phase(mark as u32));
            }
            assert!(!is_called(), "{round}");
            marker.push_unless_crowded(Mark::YieldBegin);
            assert!(is_called(), "{round}");
            sys::read_some(alarm, &mut [0; 8]).unwrap();
            memory.marks(0).drain(|_, _| ());
        }
        assert_eq!(memory.marks(0).nr_lost(), 0);
        sys::close(alarm);
    }

    #[test]
    fn populated_pages_are_there() {
        let memory = RunMemory::new(4, 1).unwrap();
        memory.populate(1, true);
        let start = std::ptr::from_ref(memory.marks(1)) as usize / sys::page_size();
        let pages = size_of::<MarkRing>() / sys::page_size();
        let mut entries = vec![0_u8; pages * 8];
        let file = std::fs::File::open("/proc/self/pagemap").unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut entries, start as u64 * 8).unwrap();
        // The highest bit of an entry: the page is in memory (proc_pid_pagemap(5)).
        assert!(entries.chunks(8).all(|entry| entry[7] & 0x80 != 0), "{entries:?}");
    }

    #[test]
    fn slots_run_out_instead_of_overflowing() {
        let memory = RunMemory::new(3, 6).unwrap();
        assert_eq!(memory.allocate(4, u32::MAX), Some(0));
        assert_eq!(memory.allocate(5, 0), Some(1));
        assert_eq!(memory.allocate(5, 1), Some(2));
        assert_eq!(memory.allocate(5, 0), None);
        let of_slots = |word: fn(&Slot) -> &AtomicU32| {
            (0..3).map(|index| word(memory.slot(index)).load(Ordering::Relaxed)).collect::<Vec<_>>()
        };
        assert_eq!(of_slots(|slot| &slot.spec), [4, 5, 5]);
        assert_eq!(of_slots(|slot| &slot.nth), [0, 0, 1]);
        assert_eq!(memory.nr_slots(), 3);
    }

    #[test]
    fn the_first_error_stays() {
        let memory = RunMemory::new(1, 1).unwrap();
        memory.header().fail("first");
        memory.header().fail("second");
        assert_eq!(memory.header().error().as_deref(), Some("first"));
    }
}
