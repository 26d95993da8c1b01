// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a task's state that the scheduler itself reads and writes (`struct
//! sched_ext_entity`).
//!
//! Source: Linux include/linux/sched/ext.h, 6.12 to 7.1. A scheduler may store to `p->scx.slice`
//! and `p->scx.dsq_vtime` of any task at any time. So these words are accessed only through
//! methods, and a store needs no exclusive reference.

use super::consts::SLICE_DFL;
use std::fmt;
use std::ptr::NonNull;

/// The words, in the order of the C structs.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Words {
    /// Rest of the slice (ns).
    pub slice: u64,
    /// The key in queues ordered by virtual time.
    pub dsq_vtime: u64,
    /// The weight.
    pub weight: u32,
    /// SCX_TASK_* flags. The core keeps its own elsewhere.
    pub flags: u32,
    /// Whether the task is kept out of the class.
    pub disallow: bool,
}

/// The words of a task that core and scheduler share. They are in their own memory, or in that of a
/// natively compiled scheduler, which stores there directly.
pub struct Entity {
    words: NonNull<Words>,
    own: NonNull<Words>,
}

// SAFETY: the core and its scheduler have one owner; no other code accesses the words.
unsafe impl Send for Entity {}

impl Default for Entity {
    fn default() -> Self {
        let words = Words { slice: SLICE_DFL, dsq_vtime: 0, weight: 0, flags: 0, disallow: false };
        let own = NonNull::from(Box::leak(Box::new(words)));
        Self { words: own, own }
    }
}

impl Drop for Entity {
    fn drop(&mut self) {
        // SAFETY: it came from a box, in `default`.
        drop(unsafe { Box::from_raw(self.own.as_ptr()) });
    }
}

impl fmt::Debug for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entity")
            .field("slice", &self.slice())
            .field("dsq_vtime", &self.dsq_vtime())
            .field("weight", &self.weight())
            .finish_non_exhaustive()
    }
}

impl Entity {
    #[inline]
    fn get(&self) -> Words {
        // SAFETY: the words are alive: our own, or those that `place` was promised.
        unsafe { self.words.as_ptr().read() }
    }

    /// Moves the words to `home`.
    ///
    /// # Safety
    ///
    /// `home` stays valid, and only the scheduler accesses it, while it runs, until
    /// [`Entity::take_back`] or until this value is dropped.
    pub unsafe fn place(&mut self, home: NonNull<Words>) {
        let words = self.get();
        // SAFETY: the caller's promise.
        unsafe { home.as_ptr().write(words) };
        self.words = home;
    }

    /// Moves the words back to their own memory.
    pub fn take_back(&mut self) {
        let words = self.get();
        // SAFETY: our own box.
        unsafe { self.own.as_ptr().write(words) };
        self.words = self.own;
    }

    /// Rest of the slice (ns). All bits set: it never ends.
    #[inline]
    pub fn slice(&self) -> u64 {
        // SAFETY: as in `get`.
        unsafe { (*self.words.as_ptr()).slice }
    }

    /// Sets the slice.
    #[inline]
    pub fn set_slice(&self, ns: u64) {
        // SAFETY: as in `get`.
        unsafe { (*self.words.as_ptr()).slice = ns }
    }

    /// The key in queues ordered by virtual time.
    #[inline]
    pub fn dsq_vtime(&self) -> u64 {
        // SAFETY: as in `get`.
        unsafe { (*self.words.as_ptr()).dsq_vtime }
    }

    /// Sets the key.
    #[inline]
    pub fn set_dsq_vtime(&self, vtime: u64) {
        // SAFETY: as in `get`.
        unsafe { (*self.words.as_ptr()).dsq_vtime = vtime }
    }

    /// The weight, 1 to 10000; 0 until the task is enabled (init_scx_entity).
    #[inline]
    pub fn weight(&self) -> u32 {
        // SAFETY: as in `get`.
        unsafe { (*self.words.as_ptr()).weight }
    }

    /// Sets the weight; only the core does.
    pub fn set_weight(&self, weight: u32) {
        // SAFETY: as in `get`.
        unsafe { (*self.words.as_ptr()).weight = weight }
    }

    /// Whether `ops.init_task` keeps the task out of the class.
    pub fn disallow(&self) -> bool {
        // SAFETY: as in `get`.
        unsafe { (*self.words.as_ptr()).disallow }
    }
}
