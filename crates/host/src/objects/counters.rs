// SPDX-License-Identifier: MIT OR Apache-2.0
//! Barriers and semaphores.

use crate::sys::{self, SharedMap};
use schedlab_model::objects::SEM_VALUE_MAX;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// A futex word and a count. Zero is valid.
#[repr(C, align(64))]
#[derive(Debug)]
struct CountCell {
    /// Semaphore: its value. Barrier: number of times it opened.
    word: AtomicU32,
    /// Semaphore: number of sleeping tasks. Barrier: number of tasks that arrived.
    count: AtomicU32,
}

fn cell(map: &SharedMap, at: usize) -> &CountCell {
    // SAFETY: made of atomics, for which zero is valid.
    unsafe { map.at(at) }
}

/// A barrier: the last task to arrive opens it for all.
#[derive(Debug)]
pub struct Barrier {
    pub at: usize,
    pub parties: u32,
}

impl Barrier {
    /// Waits for the other tasks. `on_block` is called each time before it may sleep.
    pub fn wait(&self, map: &SharedMap, on_block: &mut dyn FnMut()) {
        let cell = cell(map, self.at);
        let round = cell.word.load(Ordering::Acquire);
        if cell.count.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            cell.count.store(0, Ordering::Relaxed);
            cell.word.store(round.wrapping_add(1), Ordering::Release);
            sys::futex_wake_all(&cell.word);
            return;
        }
        while cell.word.load(Ordering::Acquire) == round {
            on_block();
            sys::futex_wait(&cell.word, round);
        }
    }
}

/// A semaphore: a futex as in sem_wait(3), or an eventfd if a set of objects contains it. Then the
/// word only shows whether a wait is likely to block.
#[derive(Debug)]
pub struct Semaphore {
    pub at: usize,
    pub initial: u32,
    pub is_polled: bool,
    pub fd: i32,
}

impl Semaphore {
    /// Sets its initial value.
    pub fn start(&self, map: &SharedMap) {
        cell(map, self.at).word.store(self.initial, Ordering::Relaxed);
    }

    /// Creates the eventfd, if it is one.
    pub fn open(&mut self) -> io::Result<()> {
        if self.is_polled {
            self.fd = sys::event_counter(self.initial)?;
        }
        Ok(())
    }

    /// Its value, as known without a system call.
    pub fn level(&self, map: &SharedMap) -> i32 {
        cell(map, self.at).word.load(Ordering::Relaxed) as i32
    }

    /// Decrements it, or waits. `on_block` is called each time before it may sleep.
    pub fn wait(&self, map: &SharedMap, on_block: &mut dyn FnMut()) -> io::Result<()> {
        let cell = cell(map, self.at);
        if self.is_polled {
            // A reader that is faster than the poster's count makes the word negative for a moment.
            if self.level(map) <= 0 {
                on_block();
            }
            sys::read_some(self.fd, &mut [0; 8])?;
            cell.word.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        }
        let take = |value: u32| value.checked_sub(1);
        while cell.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
            cell.count.fetch_add(1, Ordering::SeqCst);
            on_block();
            sys::futex_wait(&cell.word, 0);
            cell.count.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Increments it.
    pub fn post(&self, map: &SharedMap) -> io::Result<()> {
        let cell = cell(map, self.at);
        if self.is_polled {
            sys::write_some(self.fd, &1u64.to_ne_bytes())?;
            cell.word.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let add = |value: u32| (value < SEM_VALUE_MAX).then_some(value + 1);
        if cell.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add).is_err() {
            return Err(io::Error::from_raw_os_error(libc::EOVERFLOW));
        }
        if cell.count.load(Ordering::SeqCst) > 0 {
            sys::futex_wake(&cell.word, 1);
        }
        Ok(())
    }
}
