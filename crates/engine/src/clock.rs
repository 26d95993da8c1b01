// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times to come: a heap of events, and the end of each CPU's current burst.

use schedlab_model::{CpuId, Nanos, TaskId};
use std::collections::BinaryHeap;

/// What happens at a time. The order of the variants is the order at one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    /// The launcher releases arrival number n.
    Release(u32),
    /// A sleeping or blocked task wakes.
    Wake(TaskId),
    /// A timer of a class.
    ClassTimer {
        /// Class.
        class: u8,
        /// The class's own.
        token: u64,
    },
    /// The task of a CPU comes to a point where the kernel may be preempted.
    ReturnToUser(CpuId),
}

impl Due {
    const fn phase(&self) -> u64 {
        match self {
            Self::Release(_) | Self::Wake(_) => 0,
            Self::ClassTimer { .. } | Self::ReturnToUser(_) => 1,
        }
    }
}

/// An event of the queue. The order is that of `key` alone, greatest first: the heap's top is the
/// least key.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Time, then phase, then number of insertion: from the highest bits down.
    key: u128,
    due: Due,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.key.cmp(&self.key)
    }
}

/// Events ordered by time, phase, and order of insertion.
#[derive(Default, Debug)]
pub struct EventQueue {
    heap: BinaryHeap<Entry>,
    sequence: u64,
}

impl EventQueue {
    /// Adds an event.
    pub fn push(&mut self, at: Nanos, due: Due) {
        // One number orders by phase first, then by insertion.
        let order = (due.phase() << 62) | self.sequence;
        self.sequence += 1;
        self.heap.push(Entry { key: u128::from(at) << 64 | u128::from(order), due });
    }

    /// Time of the first event, `Nanos::MAX` if there is none.
    #[inline]
    pub fn next_time(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |entry| (entry.key >> 64) as Nanos)
    }

    /// Whether a task is to be released or woken some time.
    pub fn wakes_somebody(&self) -> bool {
        self.heap.iter().any(|entry| matches!(entry.due, Due::Release(_) | Due::Wake(_)))
    }

    /// Takes the first event if it is due at `now`.
    #[inline]
    pub fn pop_at(&mut self, now: Nanos) -> Option<Due> {
        if self.next_time() != now {
            return None;
        }
        self.heap.pop().map(|entry| entry.due)
    }
}

/// CPUs of a block of [`BurstEnds`].
const BLOCK: usize = 16;

/// The least of one time a CPU. Ties go to the lower CPU.
///
/// CPUs form blocks, each of which knows its least; what a change makes uncertain is looked up when
/// it is asked for. At a tick every CPU's end moves before anybody asks, so a tick of n CPUs costs
/// n steps in all, and a single change 16 steps and one for each block (64 at most).
#[derive(Debug)]
pub struct BurstEnds {
    /// By CPU.
    times: Vec<Nanos>,
    /// Least of each block: time and CPU.
    least: Vec<(Nanos, u32)>,
    /// Blocks whose least must be looked up.
    stale: u64,
    /// The least of all.
    first: (Nanos, u32),
    /// `first` must be looked up.
    is_first_stale: bool,
}

impl BurstEnds {
    /// No CPU has an end.
    pub fn new(nr_cpus: u32) -> Self {
        let blocks = (nr_cpus as usize).div_ceil(BLOCK).max(1);
        assert!(blocks <= 64, "a machine has at most {} CPUs", 64 * BLOCK);
        Self {
            times: vec![Nanos::MAX; nr_cpus as usize],
            least: (0..blocks).map(|block| (Nanos::MAX, (block * BLOCK) as u32)).collect(),
            stale: 0,
            first: (Nanos::MAX, 0),
            is_first_stale: false,
        }
    }

    /// The end of `cpu`'s burst.
    #[inline]
    pub fn get(&self, cpu: CpuId) -> Nanos {
        self.times[cpu.index()]
    }

    /// Sets the end of `cpu`'s burst.
    #[inline]
    pub fn set(&mut self, cpu: CpuId, at: Nanos) {
        self.times[cpu.index()] = at;
        let block = cpu.index() / BLOCK;
        let least = &mut self.least[block];
        if (at, cpu.0) < *least {
            *least = (at, cpu.0);
            self.is_first_stale = true;
        } else if least.1 == cpu.0 && at != least.0 {
            self.stale |= 1 << block;
            self.is_first_stale = true;
        }
    }

    /// The CPU whose burst ends first, and when.
    #[inline]
    pub fn first(&mut self) -> (CpuId, Nanos) {
        if self.is_first_stale {
            self.look_up();
        }
        (CpuId(self.first.1), self.first.0)
    }

    fn look_up(&mut self) {
        while self.stale != 0 {
            let block = self.stale.trailing_zeros() as usize;
            self.stale &= self.stale - 1;
            let start = block * BLOCK;
            let end = self.times.len().min(start + BLOCK);
            let mut least = (Nanos::MAX, start as u32);
            for (&at, cpu) in self.times[start..end].iter().zip(start as u32..) {
                if at < least.0 {
                    least = (at, cpu);
                }
            }
            self.least[block] = least;
        }
        self.first = self.least[0];
        for &least in &self.least[1..] {
            if least.0 < self.first.0 {
                self.first = least;
            }
        }
        self.is_first_stale = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::random::{Purpose, Stream};

    #[test]
    fn events_come_by_time_then_phase_then_insertion() {
        let mut queue = EventQueue::default();
        queue.push(5, Due::ClassTimer { class: 0, token: 1 });
        queue.push(5, Due::Wake(TaskId(9)));
        queue.push(5, Due::Release(3));
        queue.push(4, Due::Release(7));
        let mut order = Vec::new();
        while queue.next_time() != Nanos::MAX {
            order.push(queue.pop_at(queue.next_time()).unwrap());
        }
        let last = Due::ClassTimer { class: 0, token: 1 };
        assert_eq!(order, [Due::Release(7), Due::Wake(TaskId(9)), Due::Release(3), last]);
        assert_eq!(queue.pop_at(5), None);
    }

    #[test]
    fn the_first_burst_end_wins_and_ties_go_to_the_lower_cpu() {
        for nr_cpus in [1, 2, 3, 8, 13, 16, 17, 1024] {
            let mut ends = BurstEnds::new(nr_cpus);
            assert_eq!(ends.first().1, Nanos::MAX);
            for cpu in 0..nr_cpus {
                ends.set(CpuId(cpu), 100);
            }
            assert_eq!(ends.first(), (CpuId(0), 100));
            ends.set(CpuId(nr_cpus - 1), 50);
            assert_eq!(ends.first(), (CpuId(nr_cpus - 1), 50));
            ends.set(CpuId(nr_cpus - 1), 100);
            assert_eq!(ends.first(), (CpuId(0), 100));
        }
    }

    /// Against a plain search, whatever changes between two questions.
    #[test]
    fn the_first_burst_end_is_that_of_a_plain_search() {
        let mut random = Stream::new(3, Purpose::Scheduler, 0);
        for nr_cpus in [1u32, 5, 16, 40, 200] {
            let mut ends = BurstEnds::new(nr_cpus);
            let mut plain = vec![Nanos::MAX; nr_cpus as usize];
            for _ in 0..2_000 {
                for _ in 0..random.below(4) {
                    let cpu = random.below(u64::from(nr_cpus)) as u32;
                    let at = if random.below(8) == 0 { Nanos::MAX } else { random.below(20) };
                    ends.set(CpuId(cpu), at);
                    plain[cpu as usize] = at;
                }
                let (at, cpu) = plain.iter().zip(0u32..).map(|(at, cpu)| (*at, cpu)).min().unwrap();
                assert_eq!(ends.first().1, at);
                if at != Nanos::MAX {
                    assert_eq!(ends.first().0, CpuId(cpu));
                }
            }
        }
    }
}
