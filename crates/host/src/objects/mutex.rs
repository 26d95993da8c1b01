// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutexes between processes: futexes with the protocols of pthread_mutex(3).
//!
//! A word contains its owner's thread id, as the kernel's robust and priority-inheritance futexes
//! require (Documentation/locking/robust-futex-ABI.rst, pi-futex.rst). Free and uncontended ones
//! need no system call. libc's mutexes are not used. Tasks fork tasks by clone(2) with
//! CLONE_PARENT, without libc's knowledge, so libc would write a wrong thread id.
//!
//! Robust: each task has a list of the mutexes that it holds, registered with the kernel. When the
//! task ends, the next task gets the mutex and is informed.

use crate::sys::{self, FUTEX_OWNER_DIED, FUTEX_TID, FUTEX_WAITERS, RobustHead};
use schedlab_model::MutexProtocol;
use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// A mutex in shared memory; zero is unlocked.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct MutexCell {
    /// Entry of the owner's list.
    node: AtomicUsize,
    /// Owner's thread id and the kernel's flags.
    word: AtomicU32,
}

/// Bit of a list entry that means "priority inheritance".
const PI: usize = 1;

/// How a mutex was obtained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It was free, or its owner unlocked it.
    Unlocked,
    /// Its owner ended without unlocking it.
    Abandoned,
}

impl MutexCell {
    /// Thread id of the owner; 0: free.
    pub fn owner(&self) -> u32 {
        self.word.load(Ordering::Relaxed) & FUTEX_TID
    }

    fn entry(&self, protocol: MutexProtocol) -> usize {
        let flag = if protocol == MutexProtocol::Inherit { PI } else { 0 };
        (&raw const self.node) as usize | flag
    }

    fn take_free(&self, tid: u32) -> bool {
        self.word.compare_exchange(0, tid, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn lock_plain(&self, tid: u32, on_block: &mut dyn FnMut()) -> Taken {
        let mut claim = tid;
        loop {
            let now = self.word.load(Ordering::Relaxed);
            let replace = |with: u32| {
                let order = (Ordering::Acquire, Ordering::Relaxed);
                self.word.compare_exchange(now, with, order.0, order.1).is_ok()
            };
            if now & FUTEX_TID == 0 {
                if replace(claim | now & FUTEX_WAITERS) {
                    let died = now & FUTEX_OWNER_DIED != 0;
                    return if died { Taken::Abandoned } else { Taken::Unlocked };
                }
            } else if now & FUTEX_WAITERS != 0 || replace(now | FUTEX_WAITERS) {
                on_block();
                sys::futex_wait(&self.word, now | FUTEX_WAITERS);
                // Other tasks may sleep too, but this is no longer known.
                claim = tid | FUTEX_WAITERS;
            }
        }
    }

    fn lock_pi(&self, on_block: &mut dyn FnMut()) -> io::Result<Taken> {
        on_block();
        match sys::futex_lock_pi(&self.word) {
            // The kernel detects that this wait can never end. As with pthread's normal mutex, it
            // does not end; the launcher detects it too.
            Err(error) if error.raw_os_error() == Some(libc::EDEADLK) => sleep_for_ever(),
            result => result?,
        }
        let before = self.word.fetch_and(!FUTEX_OWNER_DIED, Ordering::Relaxed);
        let died = before & FUTEX_OWNER_DIED != 0;
        Ok(if died { Taken::Abandoned } else { Taken::Unlocked })
    }

    fn unlock(&self, tid: u32, protocol: MutexProtocol) -> io::Result<()> {
        if protocol == MutexProtocol::Inherit {
            let freed =
                self.word.compare_exchange(tid, 0, Ordering::Release, Ordering::Relaxed).is_ok();
            return if freed { Ok(()) } else { sys::futex_unlock_pi(&self.word) };
        }
        if self.word.swap(0, Ordering::Release) & FUTEX_WAITERS != 0 {
            sys::futex_wake(&self.word, 1);
        }
        Ok(())
    }
}

/// Sleeps until the process is killed.
pub fn sleep_for_ever() -> ! {
    let never = AtomicU32::new(0);
    loop {
        sys::futex_wait(&never, 0);
    }
}

/// The mutexes that the calling task holds, in the order in which it locked them.
pub struct HeldMutexes {
    tid: u32,
    head: &'static RobustHead,
    held: Vec<(u32, MutexProtocol)>,
}

impl HeldMutexes {
    /// An empty list, registered with the kernel for the calling process until the process ends.
    pub fn register() -> io::Result<Self> {
        let head = Box::leak(Box::new(RobustHead {
            futex_offset: offset_of!(MutexCell, word) as isize
                - offset_of!(MutexCell, node) as isize,
            ..RobustHead::default()
        }));
        head.next.store((&raw const head.next) as usize, Ordering::Relaxed);
        sys::set_robust_list(head)?;
        Ok(Self { tid: sys::gettid(), head, held: Vec::with_capacity(16) })
    }

    /// Whether it holds mutex number `id`.
    pub fn holds(&self, id: u32) -> bool {
        self.held.iter().any(|(held, _)| *held == id)
    }

    /// Highest ceiling of the mutexes that it holds; 0 without any.
    pub fn ceiling(&self) -> u8 {
        let ceilings = self.held.iter().map(|(_, protocol)| match protocol {
            MutexProtocol::Ceiling { rt_priority } => *rt_priority,
            _ => 0,
        });
        ceilings.max().unwrap_or(0)
    }

    /// Locks mutex number `id`, which the task must not hold. `on_block` is called each time before
    /// it may sleep.
    pub fn lock(
        &mut self,
        id: u32,
        cell: &MutexCell,
        protocol: MutexProtocol,
        on_block: &mut dyn FnMut(),
    ) -> io::Result<Taken> {
        let entry = cell.entry(protocol);
        self.head.pending.store(entry, Ordering::Relaxed);
        let taken = if cell.take_free(self.tid) {
            Taken::Unlocked
        } else if protocol == MutexProtocol::Inherit {
            cell.lock_pi(on_block)?
        } else {
            cell.lock_plain(self.tid, on_block)
        };
        // New entries are added at the head of the list.
        cell.node.store(self.head.next.load(Ordering::Relaxed), Ordering::Relaxed);
        self.head.next.store(entry, Ordering::Release);
        self.head.pending.store(0, Ordering::Relaxed);
        self.held.push((id, protocol));
        Ok(taken)
    }

    /// Unlocks mutex number `id`, which the task must hold. `cell_of` finds the cells of others.
    pub fn unlock<'c>(
        &mut self,
        id: u32,
        cell_of: impl Fn(u32) -> Option<&'c MutexCell>,
    ) -> io::Result<()> {
        let not_held = || io::Error::from_raw_os_error(libc::EPERM);
        let at = self.held.iter().position(|(held, _)| *held == id).ok_or_else(not_held)?;
        let (_, protocol) = self.held[at];
        let cell = cell_of(id).ok_or_else(not_held)?;
        self.head.pending.store(cell.entry(protocol), Ordering::Relaxed);
        let next = cell.node.load(Ordering::Relaxed);
        // Mutexes locked after it are before it in the list.
        match self.held.get(at + 1).and_then(|(after, _)| cell_of(*after)) {
            Some(after) => after.node.store(next, Ordering::Release),
            None => self.head.next.store(next, Ordering::Release),
        }
        self.held.remove(at);
        let result = cell.unlock(self.tid, protocol);
        self.head.pending.store(0, Ordering::Relaxed);
        result
    }
}
