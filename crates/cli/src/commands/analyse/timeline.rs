// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timeline of a trace for the report, with a limit on the number of slices.

use schedlab_metrics::analysis::Wanted;
use schedlab_model::trace::TaskInfo;
use schedlab_model::{Event, EventKind, Nanos, TaskId, TraceSink};
use schedlab_run::{ProgressCurve, Slice, Warning};
use schedlab_trace::SliceTracker;
use std::collections::BTreeMap;

/// Collects slices and progress of the wanted tasks.
pub struct Timeline {
    tracker: SliceTracker,
    wanted: Wanted,
    /// Whether each task is wanted.
    is_wanted: Vec<bool>,
    slices: Vec<Slice>,
    progress: BTreeMap<u32, Vec<Nanos>>,
    nr_marks: usize,
    limit: usize,
    /// Number of slices left out after the limit, and the time at which the timeline therefore
    /// ends.
    nr_left_out: u64,
    stops_at_ns: Nanos,
}

impl Timeline {
    /// Keeps at most `limit` slices, and as many units of progress.
    pub fn new(limit: usize, wanted: Wanted) -> Self {
        Self {
            tracker: SliceTracker::default(),
            wanted,
            is_wanted: Vec::new(),
            slices: Vec::new(),
            progress: BTreeMap::new(),
            nr_marks: 0,
            limit,
            nr_left_out: 0,
            stops_at_ns: 0,
        }
    }

    fn keep(&mut self, slice: Slice) {
        if !self.is_wanted.get(slice.task as usize).is_some_and(|wanted| *wanted) {
            return;
        }
        if self.slices.len() < self.limit {
            self.stops_at_ns = slice.end_ns;
            self.slices.push(slice);
        } else {
            self.nr_left_out += 1;
        }
    }

    /// Returns the slices sorted by start, the progress, and a warning if the limit cut some off.
    pub fn finish(mut self) -> (Vec<Slice>, Vec<ProgressCurve>, Option<Warning>) {
        self.slices.sort_by_key(|slice| (slice.start_ns, slice.cpu, slice.end_ns));
        let progress = self.progress.into_iter();
        let progress = progress.map(|(task, times_ns)| ProgressCurve { task, times_ns }).collect();
        let cut = (self.nr_left_out > 0 && self.limit > 0)
            .then(|| Warning::trace_timeline_cut(self.limit, self.stops_at_ns, self.nr_left_out));
        (self.slices, progress, cut)
    }
}

impl TraceSink for Timeline {
    fn task(&mut self, _id: TaskId, info: &TaskInfo) {
        self.is_wanted.push(self.wanted.has(&info.name, Some(info.pid).filter(|pid| *pid > 0)));
    }

    fn event(&mut self, event: &Event) {
        if self.limit == 0 {
            return;
        }
        if let Some(slice) = self.tracker.event(event) {
            self.keep(slice.into());
        }
        if let EventKind::Progress { task } = event.kind
            && self.nr_marks < self.limit
            && self.is_wanted.get(task.index()).is_some_and(|wanted| *wanted)
        {
            self.nr_marks += 1;
            self.progress.entry(task.0).or_default().push(event.time_ns);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        for slice in self.tracker.end(end_ns) {
            self.keep(slice.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::synthetic::Synthetic;

    #[test]
    fn holds_the_first_slices_and_says_what_it_left_out() {
        let what = Synthetic { seed: 3, nr_cpus: 2, nr_tasks: 8, nr_events: 4_000 };
        let mut all = Timeline::new(1_000_000, Wanted::default());
        let mut few = Timeline::new(10, Wanted::default());
        let mut one = Timeline::new(1_000_000, Wanted::new(vec!["task-3".into()]));
        what.play(&mut ((&mut all, &mut few), &mut one));
        let (slices, _, cut) = all.finish();
        assert!(cut.is_none() && slices.len() > 500);
        let (kept, progress, cut) = few.finish();
        let text = cut.expect("some were left out").text;
        assert_eq!(kept.len(), 10);
        assert!(text.contains(&format!("{} later ones", slices.len() - 10)), "{text}");
        assert!(progress.iter().map(|curve| curve.times_ns.len()).sum::<usize>() <= 10);
        let (of_one, _, _) = one.finish();
        let wanted = slices.iter().filter(|slice| slice.task == 3).count();
        assert!(wanted > 0 && of_one.len() == wanted);
    }
}
