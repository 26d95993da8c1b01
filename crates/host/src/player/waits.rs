// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records on which object a task is about to block: in its slot for the launcher, and with a mark
//! for the trace.

use crate::memory::{Mark, Marker, Slot};
use schedlab_model::ObjectId;
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// The records of one task.
pub struct Waits<'a> {
    slot: &'a Slot,
    marks: Marker<'a>,
    /// Whether a trace uses the marks.
    is_traced: bool,
    /// Whether the last mark says that it blocks, and is still valid.
    is_marked: Cell<bool>,
}

impl<'a> Waits<'a> {
    /// No record yet.
    pub fn new(slot: &'a Slot, marks: Marker<'a>, is_traced: bool) -> Self {
        Self { slot, marks, is_traced, is_marked: Cell::new(false) }
    }

    /// Records that the task is about to block on `object` (numbered as in the trace), as far as it
    /// can know.
    pub fn begin(&self, object: ObjectId) {
        self.slot.blocked_on.store(object.0 + 1, Ordering::Relaxed);
        if self.is_traced {
            self.marks.push_unless_crowded(Mark::Block(object.0));
            self.is_marked.set(true);
        }
    }

    /// Records that the wait is over, or did not take place.
    pub fn end(&self) {
        self.slot.blocked_on.store(0, Ordering::Relaxed);
    }

    /// Records that the task is about to sleep for another reason. An earlier mark without a sleep
    /// must not explain this sleep.
    pub fn sleeps_alone(&self) {
        if self.is_marked.take() {
            self.marks.push(Mark::Unblock);
        }
    }
}
