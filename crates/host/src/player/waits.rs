// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says on what a task is about to block: in its slot for the launcher, by a mark for the trace.

use crate::memory::{Mark, MarkRing, Slot};
use schedlab_model::ObjectId;
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// What one task says of its waits.
pub struct Waits<'a> {
    slot: &'a Slot,
    marks: &'a MarkRing,
    /// There is a trace that can use the marks.
    is_traced: bool,
    /// The last mark says that it blocks, and nothing has taken that back.
    is_marked: Cell<bool>,
}

impl<'a> Waits<'a> {
    /// Nothing said yet.
    pub fn new(slot: &'a Slot, marks: &'a MarkRing, is_traced: bool) -> Self {
        Self { slot, marks, is_traced, is_marked: Cell::new(false) }
    }

    /// The task is about to block on `object` (numbered as in the trace), as far as it can know.
    pub fn begin(&self, object: ObjectId) {
        self.slot.blocked_on.store(object.0 + 1, Ordering::Relaxed);
        if self.is_traced {
            self.marks.push_unless_crowded(Mark::Block(object.0));
            self.is_marked.set(true);
        }
    }

    /// The wait is over, or there was none.
    pub fn end(&self) {
        self.slot.blocked_on.store(0, Ordering::Relaxed);
    }

    /// The task is about to sleep for another reason: a mark that was not followed by a sleep must
    /// not explain that one.
    pub fn sleeps_alone(&self) {
        if self.is_marked.take() {
            self.marks.push(Mark::Unblock);
        }
    }
}
