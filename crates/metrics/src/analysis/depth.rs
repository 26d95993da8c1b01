// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run-queue depth: the number of runnable tasks, on each CPU and in the whole run; and the number
//! of tasks in each dispatch queue of a simulated sched_ext scheduler.
//!
//! Formula: at each moment, the tasks on a CPU's queue and the one that it runs (the kernel's
//! nr_running). Mean and percentiles weight each value by its duration: p99 is the least depth that
//! was not exceeded during 99 % of the time. Unit: tasks.
//!
//! Source: `rq->nr_running`, Linux kernel/sched/sched.h; `sar -q` and the load average sample the
//! same quantity.
//!
//! Exact up to a depth of 511; percentiles of greater depths are within 0.1 % ([`crate::samples`]).
//!
//! Left out: tasks outside the run.

use super::follow::{Change, Move};
use super::series::{Curve, Series};
use crate::samples::{SUB_BUCKETS, bucket_of, value_of};
use schedlab_model::trace::DispatchQueue;
use schedlab_model::{CpuId, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Number of bins of the curves over time.
pub const BINS: usize = 256;
/// Number of CPUs with a curve of their own: the first ones.
pub const CURVES_MAX: usize = 16;

/// The time spent at some depths.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DepthTime {
    /// Least depth.
    pub from: u64,
    /// Greatest depth: up to 16 equal to `from`; above that the ranges double.
    pub to: u64,
    /// Time at these depths.
    pub ns: u64,
}

/// Depth of one run queue, or of all of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Depth {
    /// CPU; null: the whole run.
    pub cpu: Option<u32>,
    /// Mean over time.
    pub mean: f64,
    /// Median over time.
    pub median: u64,
    /// The depth that was not exceeded during 99 % of the time.
    pub p99: u64,
    /// Greatest depth.
    pub max: u64,
    /// When it first reached the greatest depth.
    pub max_at_ns: u64,
    /// Time at each depth, without depths that did not occur.
    pub histogram: Vec<DepthTime>,
    /// Depth over time; only the first 16 CPUs have a curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
}

/// Number of tasks in a dispatch queue (DSQ) of a sched_ext scheduler.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueDepth {
    /// The queue, such as `DSQ 0x1` or `DSQ local of CPU 3`.
    pub queue: String,
    /// Its depth.
    pub depth: Depth,
}

/// One counter of tasks.
#[derive(Clone, Debug)]
struct Gauge {
    value: u64,
    since_ns: Nanos,
    /// Time in each bucket, in the layout of [`crate::samples`].
    times: Vec<Nanos>,
    area: u128,
    max: u64,
    max_at_ns: Nanos,
    series: Option<Series>,
}

impl Gauge {
    fn new(has_curve: bool) -> Self {
        Self {
            value: 0,
            since_ns: 0,
            times: Vec::new(),
            area: 0,
            max: 0,
            max_at_ns: 0,
            series: has_curve.then(|| Series::new(BINS)),
        }
    }

    /// Adds the time up to `now`.
    fn advance(&mut self, now: Nanos) {
        let past = now.saturating_sub(self.since_ns);
        if past == 0 {
            return;
        }
        let (octave, bucket) = bucket_of(self.value);
        let index = octave * SUB_BUCKETS + bucket;
        if index >= self.times.len() {
            self.times.resize(index + 1, 0);
        }
        self.times[index] += past;
        self.area += u128::from(self.value) * u128::from(past);
        // Ignore a depth that lasted no time.
        if self.value > self.max {
            (self.max, self.max_at_ns) = (self.value, self.since_ns);
        }
        self.since_ns = now;
    }

    fn change(&mut self, now: Nanos, up: bool) {
        self.set(now, if up { self.value + 1 } else { self.value.saturating_sub(1) });
    }

    fn set(&mut self, now: Nanos, value: u64) {
        self.advance(now);
        self.value = value;
        if let Some(series) = &mut self.series {
            series.set(now, self.value);
        }
    }

    /// Depth and time of each used bucket.
    fn buckets(&self) -> impl Iterator<Item = (u64, Nanos)> {
        let used = self.times.iter().enumerate().filter(|(_, ns)| **ns > 0);
        used.map(|(index, ns)| {
            let depth = value_of(index / SUB_BUCKETS, index % SUB_BUCKETS);
            (depth.min(self.max), *ns)
        })
    }

    /// The least depth that was not exceeded during `percent` of the time.
    fn percentile(&self, percent: u64) -> u64 {
        let whole: u128 = self.times.iter().map(|ns| u128::from(*ns)).sum();
        let rank = (whole * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        let found = self.buckets().find(|(_, ns)| {
            seen += u128::from(*ns);
            seen >= rank
        });
        found.map_or(0, |(depth, _)| depth)
    }

    fn histogram(&self) -> Vec<DepthTime> {
        let mut out: Vec<DepthTime> = Vec::new();
        for (depth, ns) in self.buckets() {
            // 0, 1 ... 16, 17 to 32, 33 to 64 ...
            let to = if depth > 16 { depth.next_power_of_two() } else { depth };
            let from = if depth > 16 { to / 2 + 1 } else { depth };
            match out.last_mut().filter(|last| last.from == from) {
                Some(last) => last.ns += ns,
                None => out.push(DepthTime { from, to, ns }),
            }
        }
        out
    }

    fn finish(mut self, cpu: Option<u32>, end_ns: Nanos) -> Depth {
        self.advance(end_ns);
        let booked: Nanos = self.times.iter().sum();
        assert_eq!(booked, self.since_ns, "time at all depths of CPU {cpu:?}");
        let length = self.since_ns.max(1);
        Depth {
            cpu,
            mean: self.area as f64 / length as f64,
            median: self.percentile(50),
            p99: self.percentile(99),
            max: self.max,
            max_at_ns: self.max_at_ns,
            histogram: self.histogram(),
            curve: self.series.map(|series| series.finish(end_ns)),
        }
    }
}

/// The dispatch queues of a scheduler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues(BTreeMap<DispatchQueue, Gauge>);

impl Queues {
    /// A queue has so many tasks from now on.
    pub fn set(&mut self, now: Nanos, queue: DispatchQueue, nr_tasks: u32) {
        match self.0.entry(queue) {
            Entry::Vacant(_) if nr_tasks == 0 => {}
            Entry::Vacant(entry) => entry.insert(Gauge::new(true)).set(now, nr_tasks.into()),
            Entry::Occupied(mut entry) if entry.get().value != u64::from(nr_tasks) => {
                entry.get_mut().set(now, nr_tasks.into());
            }
            Entry::Occupied(_) => {}
        }
    }

    /// The queues that held tasks for the longest time in all; the others have no row.
    pub fn finish(self, end_ns: Nanos) -> Vec<QueueDepth> {
        let depth = |(queue, gauge): (DispatchQueue, Gauge)| QueueDepth {
            queue: queue.to_string(),
            depth: gauge.finish(None, end_ns),
        };
        // A task that passes through a queue at one instant does not wait in it.
        let is_used = |of: &QueueDepth| of.depth.max > 0;
        let mut all: Vec<QueueDepth> = self.0.into_iter().map(depth).filter(is_used).collect();
        // Stable: equal means stay in the order of the queues.
        all.sort_by(|a, b| b.depth.mean.total_cmp(&a.depth.mean));
        all.truncate(QUEUES_MAX);
        all
    }
}

/// Number of dispatch queues with a row: those with the greatest mean.
pub const QUEUES_MAX: usize = 32;

/// The depth of every run queue.
#[derive(Clone, Debug)]
pub(crate) struct Depths {
    all: Gauge,
    cpus: Vec<Gauge>,
}

impl Depths {
    pub fn new() -> Self {
        Self { all: Gauge::new(true), cpus: Vec::new() }
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Gauge {
        while cpu.index() >= self.cpus.len() {
            self.cpus.push(Gauge::new(self.cpus.len() < CURVES_MAX));
        }
        &mut self.cpus[cpu.index()]
    }

    #[inline]
    pub fn change(&mut self, change: &Change) {
        let (was, is) = (change.past.state.is_runnable(), change.state.is_runnable());
        if was == is && change.from == change.cpu {
            return;
        }
        if was {
            self.cpu(change.from).change(change.now, false);
        }
        if is {
            self.cpu(change.cpu).change(change.now, true);
        }
        if was != is {
            self.all.change(change.now, is);
        }
    }

    pub fn moved(&mut self, moved: &Move) {
        self.cpu(moved.from).change(moved.now, false);
        self.cpu(moved.to).change(moved.now, true);
    }

    /// The depths of the whole run, of CPUs 0 to `nr_cpus` - 1, and of every other CPU that had a
    /// task.
    pub fn finish(mut self, nr_cpus: usize, end_ns: Nanos) -> (Depth, Vec<Depth>) {
        if let Some(last) = nr_cpus.checked_sub(1) {
            self.cpu(CpuId(last as u32));
        }
        let queued: u64 = self.cpus.iter().map(|gauge| gauge.value).sum();
        assert_eq!(queued, self.all.value, "runnable tasks of all CPUs are not those of the run");
        let cpus = (0..).zip(self.cpus);
        let cpus = cpus.map(|(cpu, gauge)| gauge.finish(Some(cpu), end_ns)).collect();
        (self.all.finish(None, end_ns), cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::analyse;
    use crate::testing::Script;
    use schedlab_model::SwitchOut;

    /// CPU 0: 2 tasks 0..10, 1 task 10..60, none 60..100. CPU 1: 1 task from 10 to the end.
    #[test]
    fn depth_is_weighed_by_time() {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1).switch(0, None, Some(0), SwitchOut::Idle);
        s.migrate(10, 1, 0, 1).switch_on(1, 15, None, Some(1), SwitchOut::Idle);
        s.switch(60, Some(0), None, SwitchOut::Sleeping).end(100);
        let result = analyse(2, &s);
        let of = |d: &Depth| (d.mean, d.median, d.p99, d.max, d.max_at_ns);
        assert_eq!(of(&result.cpus[0]), (0.7, 1, 2, 2, 0));
        assert_eq!(of(&result.cpus[1]), (0.9, 1, 1, 1, 10));
        assert_eq!(of(&result.depth), (1.6, 2, 2, 2, 0));
        let times: Vec<_> = result.cpus[0].histogram.iter().map(|t| (t.from, t.ns)).collect();
        assert_eq!(times, [(0, 40), (1, 50), (2, 10)]);
        assert_eq!(result.depth.curve.as_ref().unwrap().mean, [1.6]);
    }

    #[test]
    fn queues_are_listed_by_mean_and_empty_ones_left_out() {
        let mut queues = Queues::default();
        let own = DispatchQueue::Own;
        for (now, queue, nr) in
            [(0, own(7), 0), (10, own(1), 1), (20, own(2), 4), (30, own(2), 4), (40, own(2), 0)]
        {
            queues.set(now, queue, nr);
        }
        let found = queues.finish(100);
        let rows: Vec<_> =
            found.iter().map(|of| (&*of.queue, of.depth.mean, of.depth.max)).collect();
        assert_eq!(rows, [("DSQ 0x1", 0.9, 1), ("DSQ 0x2", 0.8, 4)]);
        let mut passed = Queues::default();
        (0..2).for_each(|nr| passed.set(10, own(3), 1 - nr));
        assert_eq!(passed.finish(100), [], "it held a task for no time");
        let mut many = Queues::default();
        (0..100).for_each(|id| many.set(id, own(id), 1));
        assert_eq!(many.finish(200).len(), QUEUES_MAX);
    }

    /// For great depths, the percentile is within a thousandth, the ranges double, and the times
    /// add up.
    #[test]
    fn great_depths_are_summed_in_ranges() {
        let mut gauge = Gauge::new(false);
        for at in 0..4_000 {
            gauge.change(at, true);
        }
        let depth = gauge.finish(None, 4_000);
        assert_eq!((depth.max, depth.max_at_ns, depth.mean), (4_000, 3_999, 2_000.5));
        assert!(depth.p99.abs_diff(3_960) <= 4, "{}", depth.p99);
        assert_eq!(depth.histogram.iter().map(|t| t.ns).sum::<u64>(), 4_000);
        let ranges: Vec<_> = depth.histogram.iter().skip(16).map(|t| (t.from, t.to)).collect();
        assert_eq!(ranges[..2], [(17, 32), (33, 64)]);
        assert_eq!(depth.histogram[16].ns, 16);
    }
}
