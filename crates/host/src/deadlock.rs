// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects that every task of a run waits for another, and records which task waits for what.
//!
//! A task writes to its slot on which object it blocks. If all living tasks wait for an object,
//! sleep, and have not run between two checks, only another task of the run could wake any of them,
//! and none will. The run is then over.

use crate::memory::{RunMemory, Slot, slot_state};
use crate::objects::Objects;
use crate::procfs;
use schedlab_model::ObjectId;
use std::sync::atomic::Ordering;

/// Time between two checks (ns).
const LOOK_NS: u64 = 100_000_000;

/// Result of the last check.
#[derive(Debug, Default)]
pub struct Deadlock {
    looked_ns: u64,
    /// Slot and number of slices of every waiting task; empty if some task does not wait.
    waiting: Vec<(u32, u64)>,
}

/// Whether the task has not ended.
fn lives(slot: &Slot) -> bool {
    let state = slot.state.load(Ordering::Acquire);
    !matches!(state, slot_state::FREE | slot_state::ENDED | slot_state::FAILED)
}

/// Slots of the living tasks.
fn living(memory: &RunMemory) -> impl Iterator<Item = (u32, &Slot)> {
    let slots = (0..memory.nr_slots()).map(|index| (index, memory.slot(index)));
    slots.filter(|(_, slot)| lives(slot))
}

impl Deadlock {
    /// Checks, if it is time. Returns true if no task can continue.
    pub fn is_found(&mut self, memory: &RunMemory, now_ns: u64) -> bool {
        if now_ns < self.looked_ns.saturating_add(LOOK_NS) {
            return false;
        }
        self.looked_ns = now_ns;
        let seen = all_waiting(memory).unwrap_or_default();
        let is_found = !seen.is_empty() && seen == self.waiting;
        self.waiting = seen;
        is_found
    }
}

/// Every living task with its number of slices, if all wait for an object.
fn all_waiting(memory: &RunMemory) -> Option<Vec<(u32, u64)>> {
    if living(memory).any(|(_, slot)| slot.blocked_on.load(Ordering::Acquire) == 0) {
        return None;
    }
    let mut waiting = Vec::new();
    for (index, slot) in living(memory) {
        let pid = slot.pid.load(Ordering::Acquire);
        match procfs::state(pid) {
            Some('S') if slot.blocked_on.load(Ordering::Acquire) != 0 => {
                waiting.push((index, procfs::schedstat(pid).ok()?.nr_slices));
            }
            // Killed from outside; its slot does not contain that.
            Some('Z' | 'X') | None => {}
            _ => return None,
        }
    }
    Some(waiting)
}

/// Records in the slots which task waits for what, and which task holds it, before the tasks are
/// ended.
pub fn note_waits(memory: &RunMemory, objects: &Objects) {
    for (_, slot) in living(memory) {
        let blocked_on = slot.blocked_on.load(Ordering::Acquire);
        let pid = slot.pid.load(Ordering::Acquire);
        if blocked_on == 0 || !procfs::is_sleeping(pid) {
            continue;
        }
        slot.blocked_at_end.store(blocked_on, Ordering::Relaxed);
        let owner = objects.mutex(ObjectId(blocked_on - 1)).map_or(0, |(cell, _)| cell.owner());
        let has_pid = |(_, slot): &(u32, &Slot)| slot.pid.load(Ordering::Acquire) == owner;
        if owner != 0
            && let Some((holder, _)) = living(memory).find(has_pid)
        {
            slot.blocked_by.store(holder + 1, Ordering::Relaxed);
        }
    }
}
