// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delays events, so that an event that becomes known late can get its place.
//!
//! A switch that the kernel did not trace is detected only when its task leaves the CPU again
//! ([`super::convert`]). Memory is bounded: beyond [`HELD_MAX`] events the oldest is passed on, and
//! an older event gets its time.

use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{Event, EventKind, ObjectId, SwitchOut, TaskId, TraceSink};
use std::collections::VecDeque;

/// Most delayed events: some 2 MB, or 20 ms at the rate that the rings support.
pub const HELD_MAX: usize = 1 << 15;

/// A sink that accepts late events.
pub struct Reorder<'a> {
    sink: &'a mut dyn TraceSink,
    held: VecDeque<Event>,
    /// Time of the last event passed on.
    gone_ns: u64,
}

impl<'a> Reorder<'a> {
    /// Passes events on to `sink`.
    pub fn new(sink: &'a mut dyn TraceSink) -> Self {
        Self { sink, held: VecDeque::new(), gone_ns: 0 }
    }

    /// Announces a task. No earlier event names it, so this is passed on at once.
    pub fn task(&mut self, task: TaskId, info: &TaskInfo) {
        self.sink.task(task, info);
    }

    /// Announces an object.
    pub fn object(&mut self, object: ObjectId, info: &ObjectInfo) {
        self.sink.object(object, info);
    }

    /// Adds an event that is later than all before.
    #[inline]
    pub fn event(&mut self, event: Event) {
        self.held.push_back(event);
        if self.held.len() > HELD_MAX
            && let Some(oldest) = self.held.pop_front()
        {
            self.gone_ns = oldest.time_ns;
            self.sink.event(&oldest);
        }
    }

    /// Adds a late event, after the events with the same time.
    pub fn late_event(&mut self, event: Event) {
        let event = Event { time_ns: event.time_ns.max(self.gone_ns), ..event };
        let at = self.held.partition_point(|held| held.time_ns <= event.time_ns);
        self.held.insert(at, event);
    }

    /// Corrects why `task` last left its CPU.
    pub fn amend_out(&mut self, task: TaskId, how: SwitchOut) {
        for event in self.held.iter_mut().rev() {
            if let EventKind::Switch { prev: Some(prev), out, .. } = &mut event.kind
                && *prev == task
            {
                *out = how;
                return;
            }
        }
    }

    /// Records that `task` exited when it last left its CPU. Returns false if that event was
    /// already passed on.
    pub fn exited(&mut self, task: TaskId) -> bool {
        let left = |event: &Event| match event.kind {
            EventKind::Switch { prev, .. } => prev == Some(task),
            _ => false,
        };
        let Some(at) = self.held.iter().rposition(left) else { return false };
        self.amend_out(task, SwitchOut::Dead);
        let Event { time_ns, cpu, .. } = self.held[at];
        self.held.insert(at, Event { time_ns, cpu, kind: EventKind::Exit { task } });
        true
    }

    /// Ends the trace.
    pub fn end(self, end_ns: u64) {
        for event in &self.held {
            self.sink.event(event);
        }
        self.sink.end(end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::CpuId;
    use schedlab_model::trace::MemorySink;

    fn event(time_ns: u64, task: u32) -> Event {
        Event { time_ns, cpu: CpuId(0), kind: EventKind::Progress { task: TaskId(task) } }
    }

    #[test]
    fn a_late_event_takes_its_place_and_the_held_are_bounded() {
        let mut sink = MemorySink::default();
        let mut reorder = Reorder::new(&mut sink);
        let count = HELD_MAX as u64 + 10;
        (0..count).for_each(|time| reorder.event(event(time * 2, 0)));
        reorder.late_event(event(101, 1));
        reorder.late_event(event(100, 2));
        reorder.late_event(event(3, 3));
        assert!(reorder.held.len() <= HELD_MAX + 3);
        reorder.end(count * 2);
        let times: Vec<u64> = sink.events.iter().map(|event| event.time_ns).collect();
        assert!(times.is_sorted());
        assert_eq!(times.len() as u64, count + 3);
        let at = |task| sink.events.iter().position(|e| e.kind == event(0, task).kind).unwrap();
        assert_eq!(times[at(1)], 101);
        assert_eq!((times[at(2)], times[at(2) - 1]), (100, 100));
        // Nine events have been passed on, up to time 18 (the tenth): the oldest takes that time.
        assert_eq!(times[at(3)], 18);
    }
}
