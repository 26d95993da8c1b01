// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times to come: a heap of events, and the end of each CPU's current burst.

use schedlab_model::{CpuId, Nanos, TaskId};
use std::cmp::Reverse;
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

/// Events ordered by time, phase, and order of insertion.
#[derive(Default, Debug)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<(Nanos, u64, Due)>>,
    sequence: u64,
}

impl EventQueue {
    /// Adds an event.
    pub fn push(&mut self, at: Nanos, due: Due) {
        // One number orders by phase first, then by insertion.
        let order = (due.phase() << 62) | self.sequence;
        self.sequence += 1;
        self.heap.push(Reverse((at, order, due)));
    }

    /// Time of the first event, `Nanos::MAX` if there is none.
    #[inline]
    pub fn next_time(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |Reverse((at, _, _))| *at)
    }

    /// Takes the first event if it is due at `now`.
    #[inline]
    pub fn pop_at(&mut self, now: Nanos) -> Option<Due> {
        if self.next_time() != now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, due))| due)
    }
}

/// The least of one time a CPU: a tournament tree, so that a change costs log2(CPUs) compares.
/// Ties go to the lower CPU.
#[derive(Debug)]
pub struct BurstEnds {
    /// `tree[1]` is the root; leaves start at `leaves`. Each node holds the winning CPU.
    tree: Vec<u32>,
    times: Vec<Nanos>,
    leaves: usize,
}

impl BurstEnds {
    /// No CPU has an end.
    pub fn new(nr_cpus: u32) -> Self {
        let leaves = (nr_cpus as usize).next_power_of_two();
        let mut tree = vec![0; 2 * leaves];
        for (index, node) in tree.iter_mut().enumerate().skip(leaves) {
            *node = (index - leaves) as u32;
        }
        let mut ends = Self { tree, times: vec![Nanos::MAX; leaves], leaves };
        for node in (1..leaves).rev() {
            ends.play(node);
        }
        ends
    }

    #[inline]
    fn play(&mut self, node: usize) -> bool {
        let (left, right) = (self.tree[2 * node], self.tree[2 * node + 1]);
        let right_wins = self.times[right as usize] < self.times[left as usize];
        let winner = if right_wins { right } else { left };
        let changed = self.tree[node] != winner;
        self.tree[node] = winner;
        changed
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
        let mut node = (self.leaves + cpu.index()) / 2;
        while node > 0 {
            self.play(node);
            node /= 2;
        }
    }

    /// The CPU whose burst ends first, and when.
    #[inline]
    pub fn first(&self) -> (CpuId, Nanos) {
        // With one CPU the root is the only leaf.
        let cpu = self.tree[1];
        (CpuId(cpu), self.times[cpu as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for nr_cpus in [1, 2, 3, 8, 13] {
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
}
