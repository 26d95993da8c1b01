// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress over time: CPU time and finished units of work of each task, at each moment.
//!
//! Formula: sums from the start of the run to the end of each bin. Unit: ns, and units of work.
//!
//! Source: study S0, whose programs record the time of each unit of work. For a program that marks
//! no units, CPU time is the progress.
//!
//! Bounded memory: [`BINS`] bins, joined when the run outgrows them, for the first [`TASKS_MAX`]
//! tasks. The timeline (`progress` of a result) keeps the exact time of each unit.

use super::follow::Change;
use super::series::{Bins, join};
use crate::life::State;
use schedlab_model::{Nanos, TaskId};
use serde::{Deserialize, Serialize};

/// Number of bins of a task's curve.
pub const BINS: usize = 128;
/// Number of tasks with a curve: the first ones.
pub const TASKS_MAX: usize = 64;

/// The progress of one task.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Progress {
    /// Width of a bin (ns). The value with index k belongs to time (k + 1) * `bin_ns`; after the
    /// last value it stays constant.
    pub bin_ns: u64,
    /// CPU time so far (ns).
    pub cpu_time_ns: Vec<u64>,
    /// Finished units of work so far; empty if the task marks none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<u64>,
}

/// Amounts in each bin.
#[derive(Clone, Debug, Default)]
struct Row {
    cpu_time_ns: Vec<u64>,
    units: Vec<u64>,
}

/// The progress of the first tasks.
#[derive(Clone, Debug)]
pub(crate) struct Advances {
    bins: Bins,
    rows: Vec<Row>,
}

fn add(bins: &mut Vec<u64>, bin: usize, amount: u64) {
    if bin >= bins.len() {
        bins.resize(bin + 1, 0);
    }
    bins[bin] += amount;
}

impl Advances {
    pub fn new() -> Self {
        Self { bins: Bins::new(BINS), rows: Vec::new() }
    }

    pub fn task(&mut self) {
        if self.rows.len() < TASKS_MAX {
            self.rows.push(Row::default());
        }
    }

    fn reach(&mut self, end: Nanos) {
        while self.bins.is_outgrown(end) {
            for row in &mut self.rows {
                join(&mut row.cpu_time_ns, |a, b| a + b);
                join(&mut row.units, |a, b| a + b);
            }
            self.bins.width *= 2;
        }
    }

    #[inline]
    pub fn change(&mut self, change: &Change) {
        let task = change.task.index();
        let ran = matches!(change.past.state, State::Running(_)) && change.past.is_known;
        if !ran || task >= self.rows.len() {
            return;
        }
        self.reach(change.now);
        let from = change.now.saturating_sub(change.past.ns);
        for (bin, part) in self.bins.parts(from, change.now) {
            add(&mut self.rows[task].cpu_time_ns, bin, part);
        }
    }

    /// Records a finished unit of work.
    pub fn unit(&mut self, now: Nanos, task: TaskId) {
        if task.index() < self.rows.len() {
            self.reach(now);
            let bin = (now.saturating_sub(1) / self.bins.width) as usize;
            add(&mut self.rows[task.index()].units, bin, 1);
        }
    }

    /// The curve of a task, if it has one.
    pub fn of(&self, id: TaskId) -> Option<Progress> {
        let row = self.rows.get(id.index())?;
        let sums = |bins: &[u64]| {
            let sum = |sum: &mut u64, part: &u64| {
                *sum += part;
                Some(*sum)
            };
            bins.iter().scan(0, sum).collect()
        };
        let bin_ns = self.bins.width;
        Some(Progress { bin_ns, cpu_time_ns: sums(&row.cpu_time_ns), units: sums(&row.units) })
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::testing::analyse;
    use crate::testing::Script;
    use schedlab_model::{EventKind, SwitchOut, TaskId};

    /// 100 bins are enough for 102,400 ns; 200,000 ns need wider bins of 2,048 ns.
    #[test]
    fn progress_is_the_sum_so_far() {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1).switch(0, None, Some(0), SwitchOut::Idle);
        s.on(2_048, 0, EventKind::Progress { task: TaskId(0) });
        s.on(2_049, 0, EventKind::Progress { task: TaskId(0) });
        s.switch(3_048, Some(0), Some(1), SwitchOut::Preempted);
        s.switch(200_000, Some(1), Some(0), SwitchOut::Preempted).end(200_000);
        let analysis = analyse(1, &s);
        let [a, b] = [0, 1].map(|task: usize| analysis.tasks[task].progress.clone().unwrap());
        assert_eq!((a.bin_ns, a.cpu_time_ns[..2].to_vec()), (2_048, vec![2_048, 3_048]));
        assert_eq!((a.units, b.units), (vec![1, 2], vec![]));
        assert_eq!((b.cpu_time_ns[0], b.cpu_time_ns[1]), (0, 2 * 2_048 - 3_048));
        assert_eq!(b.cpu_time_ns.last(), Some(&(200_000 - 3_048)));
    }
}
