// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns events into slices (uninterrupted stays of a task on a CPU) and passes each to a callback
//! when it ends.
//!
//! Memory: a few words per CPU. After lost events, `prev` of a switch may not be the task last
//! switched to on that CPU. Such a switch gives no slice, because the slice's start is unknown.

use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{Found, TaskInfo};
use schedlab_model::{CpuId, Event, EventKind, Nanos, SwitchOut, TaskId, TraceSink};

/// Why a slice ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceEnd {
    /// The task left the CPU.
    Left(SwitchOut),
    /// The run ended, or events were lost while the task ran: its true end is unknown.
    Running,
}

impl SliceEnd {
    /// Name in results: `preempted`, `yielded`, `sleeping`, `blocked-io`, `exited`, `running`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Left(out) => out.name(),
            Self::Running => "running",
        }
    }
}

/// An uninterrupted stay of a task on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// CPU.
    pub cpu: CpuId,
    /// Task.
    pub task: TaskId,
    /// Switch-in.
    pub start_ns: Nanos,
    /// Switch-out; or the last time at which it is known to run.
    pub end_ns: Nanos,
    /// Why it ended.
    pub end: SliceEnd,
}

/// Turns switches into slices.
#[derive(Clone, Debug, Default)]
pub struct SliceTracker {
    /// The running task of each CPU, and since when it runs.
    running: Vec<Option<(TaskId, Nanos)>>,
}

impl SliceTracker {
    /// Returns the slice that `event` ends. If events were lost during the slice, it ends at the
    /// last known time.
    #[inline]
    pub fn event(&mut self, event: &Event) -> Option<Slice> {
        let cpu = event.cpu.index();
        match event.kind {
            EventKind::Switch { prev, next, out } if cpu < NR_CPUS_MAX => {
                if cpu >= self.running.len() {
                    self.running.resize(cpu + 1, None);
                }
                let next = next.map(|task| (task, event.time_ns));
                let (task, start_ns) = std::mem::replace(&mut self.running[cpu], next)?;
                let (end_ns, end) = (event.time_ns, SliceEnd::Left(out));
                (prev == Some(task)).then_some(Slice {
                    cpu: event.cpu,
                    task,
                    start_ns,
                    end_ns,
                    end,
                })
            }
            EventKind::Lost { .. } => self.close(cpu, event.time_ns),
            _ => None,
        }
    }

    /// What a part of a longer trace begins with.
    pub fn found(&mut self, found: Found) {
        if let Found::Runs { cpu, task } = found {
            let kind = EventKind::Switch { prev: None, next: task, out: SwitchOut::Idle };
            self.event(&Event { time_ns: 0, cpu, kind });
        }
    }

    /// The slices that the end of the run cuts off, by CPU.
    pub fn end(&mut self, end_ns: Nanos) -> Vec<Slice> {
        (0..self.running.len()).filter_map(|cpu| self.close(cpu, end_ns)).collect()
    }

    fn close(&mut self, cpu: usize, now: Nanos) -> Option<Slice> {
        let (task, start_ns) = self.running.get_mut(cpu)?.take()?;
        let (end_ns, end) = (now.max(start_ns), SliceEnd::Running);
        Some(Slice { cpu: CpuId(cpu as u32), task, start_ns, end_ns, end })
    }
}

/// A sink that calls `F` with each slice when it ends: in order of the ends, not of the starts.
#[derive(Clone, Debug)]
pub struct SliceSink<F> {
    tracker: SliceTracker,
    callback: F,
}

impl<F: FnMut(Slice)> SliceSink<F> {
    /// A sink that calls `callback`.
    pub fn new(callback: F) -> Self {
        Self { tracker: SliceTracker::default(), callback }
    }
}

impl<F: FnMut(Slice)> TraceSink for SliceSink<F> {
    fn task(&mut self, _id: TaskId, _info: &TaskInfo) {}

    fn found(&mut self, found: Found) {
        self.tracker.found(found);
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        if let Some(slice) = self.tracker.event(event) {
            (self.callback)(slice);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        self.tracker.end(end_ns).into_iter().for_each(&mut self.callback);
    }
}

/// A sink that passes the time of each unit of progress to a callback.
#[derive(Clone, Debug)]
pub struct ProgressSink<F>(
    /// The callback, with the task and the time of each unit.
    pub F,
);

impl<F: FnMut(TaskId, Nanos)> TraceSink for ProgressSink<F> {
    fn task(&mut self, _id: TaskId, _info: &TaskInfo) {}

    #[inline]
    fn event(&mut self, event: &Event) {
        if let EventKind::Progress { task } = event.kind {
            (self.0)(task, event.time_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;
    use schedlab_model::trace::MemorySink;

    fn switch(time_ns: Nanos, prev: Option<u32>, next: Option<u32>, out: SwitchOut) -> Event {
        let (prev, next) = (prev.map(TaskId), next.map(TaskId));
        Event { time_ns, cpu: CpuId(0), kind: EventKind::Switch { prev, next, out } }
    }

    #[test]
    fn slices_of_a_small_trace() {
        let mut slices = Vec::new();
        let mut sink = SliceSink::new(|slice: Slice| {
            slices.push((slice.task.0, slice.start_ns, slice.end_ns, slice.end.name()));
        });
        sink.event(&switch(1, None, Some(0), SwitchOut::Idle));
        sink.event(&switch(4, Some(0), Some(1), SwitchOut::Preempted));
        sink.event(&switch(6, Some(1), None, SwitchOut::BlockedIo));
        sink.event(&switch(9, None, Some(0), SwitchOut::Idle));
        sink.end(12);
        let want = [(0, 1, 4, "preempted"), (1, 4, 6, "blocked-io"), (0, 9, 12, "running")];
        assert_eq!(slices, want);
    }

    #[test]
    fn a_task_that_ran_before_the_recording_has_no_first_slice() {
        let mut tracker = SliceTracker::default();
        assert_eq!(tracker.event(&switch(5, Some(7), Some(8), SwitchOut::Preempted)), None);
        assert_eq!(tracker.event(&switch(6, Some(8), None, SwitchOut::Dead)).unwrap().start_ns, 5);
    }

    /// A switch-out that was lost must not stretch the slice over what it hid.
    #[test]
    fn lost_events_end_the_slice() {
        let mut slices = Vec::new();
        let mut sink = SliceSink::new(|slice: Slice| slices.push(slice));
        sink.event(&switch(1, None, Some(0), SwitchOut::Idle));
        let kind = EventKind::Lost { count: 3 };
        sink.event(&Event { time_ns: 5, cpu: CpuId(0), kind });
        sink.event(&switch(9, Some(1), None, SwitchOut::Sleeping));
        sink.end(10);
        assert_eq!(slices.len(), 1);
        assert_eq!((slices[0].end_ns, slices[0].end), (5, SliceEnd::Running));
    }

    /// On each CPU slices do not overlap, and there are as many as switches that bring a task.
    #[test]
    fn slices_of_a_random_trace() {
        let mut memory = MemorySink::default();
        let mut slices: Vec<Slice> = Vec::new();
        let what = Synthetic { seed: 5, nr_cpus: 3, nr_tasks: 20, nr_events: 5_000 };
        what.play(&mut (&mut memory, SliceSink::new(|slice| slices.push(slice))));
        let starts = memory
            .events
            .iter()
            .filter(|e| matches!(e.kind, EventKind::Switch { next: Some(_), .. }))
            .count();
        assert_eq!(slices.len(), starts);
        for cpu in 0..3 {
            let mut on: Vec<_> = slices.iter().filter(|s| s.cpu == CpuId(cpu)).collect();
            on.sort_by_key(|s| s.start_ns);
            assert!(on.windows(2).all(|w| w[0].end_ns <= w[1].start_ns));
        }
    }
}
