// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue of sleeping tasks, for condition variables and events.
//!
//! A task that arrives takes a ticket. A signal grants the oldest open ticket and wakes only its
//! owner, who sleeps on a separate word. So waits end in the order in which they began, none ends
//! without a signal, and no signal is lost between two waits. (glibc allows spurious wake-ups, and
//! the kernel's futex queue puts real-time tasks first.)

use crate::sys::{self, SharedMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Tickets taken (upper half) and granted (lower half). Zero is an empty queue.
#[repr(C, align(64))]
#[derive(Debug)]
struct Tickets(AtomicU64);

/// A queue in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct WaitQueue {
    at: usize,
    capacity: u32,
}

const fn split(both: u64) -> (u32, u32) {
    ((both >> 32) as u32, both as u32)
}

impl WaitQueue {
    /// Memory (bytes) of a queue for `tasks` waiting tasks.
    pub fn len_for(tasks: u32) -> usize {
        size_of::<Tickets>() + tasks.max(1).next_power_of_two() as usize * size_of::<AtomicU32>()
    }

    /// The queue at byte `at` of zeroed memory.
    pub fn new(at: usize, tasks: u32) -> Self {
        Self { at, capacity: tasks.max(1).next_power_of_two() }
    }

    fn tickets<'m>(&self, map: &'m SharedMap) -> &'m AtomicU64 {
        // SAFETY: made of atomics, for which zero is valid.
        let tickets: &Tickets = unsafe { map.at(self.at) };
        &tickets.0
    }

    fn word<'m>(&self, map: &'m SharedMap, ticket: u32) -> &'m AtomicU32 {
        let index = (ticket % self.capacity) as usize;
        // SAFETY: an atomic, for which zero is valid.
        unsafe { map.at(self.at + size_of::<Tickets>() + index * size_of::<AtomicU32>()) }
    }

    /// Takes a ticket. From now on a signal counts for the caller.
    pub fn enter(&self, map: &SharedMap) -> u32 {
        split(self.tickets(map).fetch_add(1 << 32, Ordering::AcqRel)).0
    }

    /// Sleeps until the ticket is granted. `on_block` is called each time before it may sleep.
    pub fn wait(&self, map: &SharedMap, ticket: u32, on_block: &mut dyn FnMut()) {
        let word = self.word(map, ticket);
        let granted = ticket.wrapping_add(1);
        loop {
            let now = word.load(Ordering::Acquire);
            if now == granted {
                return;
            }
            on_block();
            sys::futex_wait(word, now);
        }
    }

    /// Grants up to `most` tickets, oldest first. Returns their number.
    pub fn grant(&self, map: &SharedMap, most: u32) -> u32 {
        let mut first = 0;
        let mut count = 0;
        let changed = self.tickets(map).fetch_update(Ordering::AcqRel, Ordering::Acquire, |both| {
            let (given, granted) = split(both);
            (first, count) = (granted, given.wrapping_sub(granted).min(most));
            let granted = granted.wrapping_add(count);
            (count > 0).then_some(u64::from(given) << 32 | u64::from(granted))
        });
        if changed.is_err() {
            return 0;
        }
        for ticket in (0..count).map(|nth| first.wrapping_add(nth)) {
            let word = self.word(map, ticket);
            word.store(ticket.wrapping_add(1), Ordering::Release);
            sys::futex_wake(word, 1);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_granted_oldest_first_and_signals_to_nobody_are_lost() {
        let map = SharedMap::new(WaitQueue::len_for(3)).unwrap();
        let queue = WaitQueue::new(0, 3);
        assert_eq!(queue.grant(&map, 1), 0);
        let tickets = [0; 3].map(|_| queue.enter(&map));
        assert_eq!(tickets, [0, 1, 2]);
        assert_eq!(queue.grant(&map, 1), 1);
        queue.wait(&map, 0, &mut || panic!("the ticket is granted"));
        assert_eq!(queue.grant(&map, u32::MAX), 2);
        queue.wait(&map, 2, &mut || panic!("the ticket is granted"));
        assert_eq!(queue.grant(&map, u32::MAX), 0);
    }

    #[test]
    fn the_numbers_wrap() {
        let map = SharedMap::new(WaitQueue::len_for(2)).unwrap();
        let queue = WaitQueue::new(0, 2);
        let last = u64::from(u32::MAX);
        queue.tickets(&map).store(last << 32 | last, Ordering::Relaxed);
        let tickets = [queue.enter(&map), queue.enter(&map)];
        assert_eq!(tickets, [u32::MAX, 0]);
        assert_eq!(queue.grant(&map, 5), 2);
        for ticket in tickets {
            queue.wait(&map, ticket, &mut || panic!("the ticket is granted"));
        }
    }
}
