// SPDX-License-Identifier: MIT OR Apache-2.0
//! futex(2) on words that processes share, and set_robust_list(2).

use super::check;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize};

/// Bits of a word with the owner's thread id (FUTEX_TID_MASK).
pub const FUTEX_TID: u32 = 0x3fff_ffff;
/// Set by the kernel when the owner ended without unlocking (FUTEX_OWNER_DIED).
pub const FUTEX_OWNER_DIED: u32 = 0x4000_0000;
/// A task sleeps on the word (FUTEX_WAITERS).
pub const FUTEX_WAITERS: u32 = 0x8000_0000;

/// `struct robust_list_head` of include/uapi/linux/futex.h: the words that the kernel checks when
/// the thread ends.
#[repr(C)]
#[derive(Debug, Default)]
pub struct RobustHead {
    /// First entry, or the address of this field.
    pub next: AtomicUsize,
    /// Distance from an entry to its futex word (bytes).
    pub futex_offset: isize,
    /// The entry that is being added or removed.
    pub pending: AtomicUsize,
}

/// Registers the calling thread's list. It must not move until the thread ends, hence the lifetime.
pub fn set_robust_list(head: &'static RobustHead) -> io::Result<()> {
    // SAFETY: the head is valid forever, and its entries are atomics in mapped memory.
    check(unsafe {
        libc::syscall(libc::SYS_set_robust_list, head as *const RobustHead, size_of::<RobustHead>())
    })
    .map(drop)
}

/// Sleeps while `word` is `expected`. Returns false if it had another value.
pub fn futex_wait(word: &AtomicU32, expected: u32) -> bool {
    // SAFETY: the word is valid and aligned; no timeout. The caller handles spurious returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            expected,
            std::ptr::null::<libc::timespec>(),
        )
    };
    result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EAGAIN)
}

/// Sleeps while `word` is `expected`, at most until a time on CLOCK_MONOTONIC.
pub fn futex_wait_until(word: &AtomicU32, expected: u32, until_ns: u64) {
    let until = libc::timespec {
        tv_sec: (until_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (until_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the word is valid and aligned, the time valid. The caller handles every return.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET,
            expected,
            &raw const until,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
}

/// Wakes at most `count` tasks that sleep on `word`. Returns their number.
pub fn futex_wake(word: &AtomicU32, count: u32) -> u32 {
    let count = count.min(i32::MAX as u32);
    // SAFETY: the word is valid and aligned.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
    woken.max(0) as u32
}

/// Wakes all tasks that sleep on `word`. Returns their number.
pub fn futex_wake_all(word: &AtomicU32) -> u32 {
    futex_wake(word, u32::MAX)
}

/// Moves the task that sleeps on `from`, which must be 0, to `to`, after all that sleep there.
pub fn futex_requeue(from: &AtomicU32, to: &AtomicU32) {
    // SAFETY: both words are valid and aligned. Wakes none, moves one. If it fails, the task
    // continues to sleep on its word.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            from.as_ptr(),
            libc::FUTEX_CMP_REQUEUE,
            0usize,
            1usize,
            to.as_ptr(),
            0u32,
        );
    }
}

/// Locks a priority-inheritance word that is not free; the kernel writes the owner.
pub fn futex_lock_pi(word: &AtomicU32) -> io::Result<()> {
    loop {
        // SAFETY: the word is valid and aligned; no timeout.
        let result = check(unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_LOCK_PI,
                0u32,
                std::ptr::null::<libc::timespec>(),
            )
        });
        match result {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => {}
            result => return result.map(drop),
        }
    }
}

/// Unlocks a priority-inheritance word on which a task waits.
pub fn futex_unlock_pi(word: &AtomicU32) -> io::Result<()> {
    // SAFETY: the word is valid and aligned.
    check(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_UNLOCK_PI) }).map(drop)
}
