// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings about a run's objects: tasks that waited until the end, mutexes and channels whose
//! users ended, channels of another size.

use crate::memory::{RunMemory, Slot};
use crate::objects::Objects;
use crate::outcome::HostOutcome;
use schedlab_run::Warning;
use std::sync::atomic::{AtomicU32, Ordering};

/// Most tasks that one warning names.
const NAMED_MAX: usize = 8;

/// The warnings of a finished run.
pub fn warnings(outcome: &HostOutcome, memory: &RunMemory, objects: &Objects) -> Vec<Warning> {
    let run = Run { outcome, memory, objects };
    let mut warnings = Vec::new();
    let is_deadlocked = memory.header().was_deadlocked.load(Ordering::Relaxed) == 1;
    let waits = run.each(
        |slot| &slot.blocked_at_end,
        |task, slot, object| {
            let holder = slot.blocked_by.load(Ordering::Relaxed).checked_sub(1);
            let held = holder.map_or_else(String::new, |by| format!(", held by {}", run.task(by)));
            format!("{task} for {object}{held}")
        },
    );
    if let Some(waits) = waits {
        warnings.push(match is_deadlocked {
            true => Warning::deadlock(&waits),
            false => Warning::waiting_at_limit(&waits),
        });
    }
    let plain = |task: &str, _: &Slot, object: &str| format!("{task} {object}");
    if let Some(who) = run.each(|slot| &slot.took_abandoned, plain) {
        warnings.push(Warning::mutex_abandoned(&who));
    }
    if let Some(who) = run.each(|slot| &slot.closed_channel, plain) {
        warnings.push(Warning::channel_closed(&who));
    }
    for (name, asked, got) in objects.other_capacities() {
        warnings.push(Warning::channel_capacity(name, asked, got));
    }
    warnings
}

struct Run<'a> {
    outcome: &'a HostOutcome,
    memory: &'a RunMemory,
    objects: &'a Objects,
}

impl Run<'_> {
    fn task(&self, index: u32) -> String {
        match self.outcome.tasks.iter().find(|task| task.id == index) {
            Some(task) if !task.name.is_empty() => task.name.clone(),
            _ => format!("task {index}"),
        }
    }

    /// A joined text for the tasks whose `field` names an object; `None` if there are none.
    fn each(
        &self,
        field: impl Fn(&Slot) -> &AtomicU32,
        text: impl Fn(&str, &Slot, &str) -> String,
    ) -> Option<String> {
        let mut named = Vec::new();
        let mut count = 0;
        for index in 0..self.memory.nr_slots() {
            let slot = self.memory.slot(index);
            let object = field(slot).load(Ordering::Relaxed).checked_sub(1);
            let infos = self.objects.infos();
            let Some(info) = object.and_then(|object| infos.get(object as usize)) else { continue };
            count += 1;
            if named.len() < NAMED_MAX {
                let object = format!("{} {:?}", info.kind.name(), info.name);
                named.push(text(&self.task(index), slot, &object));
            }
        }
        if count > named.len() {
            named.push(format!("and {} more", count - named.len()));
        }
        (!named.is_empty()).then(|| named.join("; "))
    }
}
