// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes from the events of a lane: measures, and on request the timeline, the progress and the
//! analysis.
//!
//! Measures are computed as events arrive; their memory grows only with the number of tasks. Slices
//! and progress grow with the length of the run and are kept only if [`Keep`] asks for them.

use crate::{Keep, ProgressCurve, Slice, analysis, launchers};
use schedlab_metrics::analysis::Context;
use schedlab_metrics::{Analyser, Analysis, Collector, RunMeasures};
use schedlab_model::trace::{DispatchQueue, Found, ObjectInfo, TaskInfo};
use schedlab_model::{CpuMask, Event, EventKind, Nanos, ObjectId, TaskId, TraceSink, Workload};
use schedlab_trace::SliceTracker;
use std::collections::BTreeMap;

impl From<schedlab_trace::Slice> for Slice {
    fn from(slice: schedlab_trace::Slice) -> Self {
        let schedlab_trace::Slice { cpu, task, start_ns, end_ns, end } = slice;
        Self { cpu: cpu.0, task: task.0, start_ns, end_ns, end: end.name().into() }
    }
}

/// The sink of a lane: measures, slices, progress.
#[derive(Clone, Debug)]
pub struct Recorder {
    keep: Keep,
    collector: Collector,
    analyser: Option<Box<Analyser>>,
    tracker: SliceTracker,
    slices: Vec<Slice>,
    progress: BTreeMap<TaskId, Vec<Nanos>>,
}

/// The results of a [`Recorder`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recorded {
    /// Measures.
    pub measures: RunMeasures,
    /// Slices in order of their start, then CPU; empty unless kept.
    pub slices: Vec<Slice>,
    /// Progress by task; empty unless kept.
    pub progress: Vec<ProgressCurve>,
    /// The analysis; `None` unless kept.
    pub analysis: Option<Analysis>,
}

impl Recorder {
    /// A recorder for a run on `nr_cpus` CPUs.
    pub fn new(nr_cpus: u32, keep: Keep) -> Self {
        Self {
            keep,
            collector: Collector::new(nr_cpus),
            analyser: None,
            tracker: SliceTracker::default(),
            slices: Vec::new(),
            progress: BTreeMap::new(),
        }
    }

    /// A recorder for a run of `workload` on `cpus`.
    pub fn of_run(workload: &Workload, cpus: &CpuMask, keep: Keep) -> Self {
        let recorder = Self::new(cpus.weight(), keep);
        match keep.analysis {
            Some(limits) => recorder.with_analysis(analysis::context(workload, cpus, limits)),
            None => recorder,
        }
    }

    /// Adds the analysis of the trace.
    pub fn with_analysis(self, context: Context) -> Self {
        Self { analyser: Some(Box::new(Analyser::new(context))), ..self }
    }

    /// Sets the number of CPUs, if it becomes known only after the events, as in a trace of another
    /// tool.
    pub fn set_cpus(&mut self, nr_cpus: u32) {
        self.collector.set_cpus(nr_cpus);
    }

    /// Returns the results of a run of `workload`. Totals leave out its launchers. Call it after
    /// `end`.
    pub fn finish(mut self, workload: &Workload) -> Recorded {
        let measures = self.collector.finish_without(launchers::of_workload(workload));
        self.slices.sort_by_key(|slice| (slice.start_ns, slice.cpu, slice.end_ns));
        Recorded {
            measures,
            slices: self.slices,
            progress: self
                .progress
                .into_iter()
                .map(|(task, times_ns)| ProgressCurve { task: task.0, times_ns })
                .collect(),
            analysis: self.analyser.map(|analyser| analyser.finish()),
        }
    }
}

impl TraceSink for Recorder {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.collector.task(id, info);
        if let Some(analyser) = &mut self.analyser {
            analyser.task(id, info);
        }
    }

    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        if let Some(analyser) = &mut self.analyser {
            analyser.object(id, info);
        }
    }

    fn renamed(&mut self, id: TaskId, name: &str) {
        if let Some(analyser) = &mut self.analyser {
            analyser.renamed(id, name);
        }
    }

    fn found(&mut self, found: Found) {
        self.collector.found(found);
        if let Some(analyser) = &mut self.analyser {
            analyser.found(found);
        }
        if self.keep.slices {
            self.tracker.found(found);
        }
    }

    fn event(&mut self, event: &Event) {
        self.collector.event(event);
        if let Some(analyser) = &mut self.analyser {
            analyser.event(event);
        }
        if self.keep.slices {
            self.slices.extend(self.tracker.event(event).map(Slice::from));
        }
        if let (true, EventKind::Progress { task }) = (self.keep.progress, event.kind) {
            self.progress.entry(task).or_default().push(event.time_ns);
        }
    }

    fn wants_queues(&self) -> bool {
        self.analyser.is_some()
    }

    fn queue_length(&mut self, time_ns: Nanos, queue: DispatchQueue, nr_tasks: u32) {
        if let Some(analyser) = &mut self.analyser {
            analyser.queue_length(time_ns, queue, nr_tasks);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        self.collector.end(end_ns);
        if let Some(analyser) = &mut self.analyser {
            analyser.end(end_ns);
        }
        if self.keep.slices {
            self.slices.extend(self.tracker.end(end_ns).into_iter().map(Slice::from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::{CpuId, SwitchOut};

    fn switch(time_ns: Nanos, prev: Option<u32>, next: Option<u32>, out: SwitchOut) -> Event {
        let kind = EventKind::Switch { prev: prev.map(TaskId), next: next.map(TaskId), out };
        Event { time_ns, cpu: CpuId(0), kind }
    }

    fn recorded(keep: Keep) -> Recorded {
        let mut recorder = Recorder::new(1, keep);
        for id in 0..2 {
            recorder.task(TaskId(id), &TaskInfo { name: format!("t{id}"), ..Default::default() });
            let kind = EventKind::Fork { task: TaskId(id), parent: None };
            recorder.event(&Event { time_ns: 0, cpu: CpuId(0), kind });
        }
        recorder.event(&switch(0, None, Some(0), SwitchOut::Idle));
        let kind = EventKind::Progress { task: TaskId(0) };
        recorder.event(&Event { time_ns: 3, cpu: CpuId(0), kind });
        recorder.event(&switch(4, Some(0), Some(1), SwitchOut::Preempted));
        recorder.event(&switch(9, Some(1), None, SwitchOut::Sleeping));
        recorder.event(&switch(11, None, Some(0), SwitchOut::Idle));
        recorder.end(20);
        recorder.finish(&Workload::new("w", vec![]))
    }

    #[test]
    fn slices_tell_how_they_ended_and_the_last_one_runs_on() {
        let kept = recorded(Keep::ALL);
        let seen: Vec<(u32, u64, u64, &str)> =
            kept.slices.iter().map(|s| (s.task, s.start_ns, s.end_ns, s.end.as_str())).collect();
        assert_eq!(seen, [(0, 0, 4, "preempted"), (1, 4, 9, "sleeping"), (0, 11, 20, "running")]);
        assert_eq!(kept.progress, [ProgressCurve { task: 0, times_ns: vec![3] }]);
        assert_eq!(kept.measures.tasks[0].cpu_time_ns, 13);
    }

    #[test]
    fn nothing_is_kept_that_was_not_asked_for() {
        let measured = recorded(Keep::NOTHING);
        assert!(measured.slices.is_empty() && measured.progress.is_empty());
        assert_eq!(measured.measures, recorded(Keep::ALL).measures);
    }
}
