// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of tasks that do not depend on which of several equal tasks ran first.
//!
//! Tasks are equal if their descriptions differ in their names only and draw nothing at random. The
//! equal tasks of a run are numbered in the order in which they first run. So two runs that differ
//! in the choice among equal tasks only have the same labels.

use schedlab_model::trace::TaskInfo;
use schedlab_model::{Amount, Event, EventKind, Op, TaskId, TaskSpec, Workload};

/// A task, whichever of its equals it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Label(u64);

/// What is known of a task.
#[derive(Clone, Copy, Debug)]
struct Known {
    spec: u32,
    label: Option<Label>,
    nr_children: u64,
    /// Whether the label is that of all its equals which have not run yet.
    is_fresh: bool,
}

/// The labels of the tasks of a run.
#[derive(Debug)]
pub struct Labels {
    /// For each description the first that it equals; `None`: it draws at random.
    equal_to: Vec<Option<u32>>,
    /// Number of tasks that the launcher released, by description.
    nr_released: Vec<u64>,
    /// Number of tasks that have run, by first equal description.
    nr_started: Vec<u64>,
    tasks: Vec<Known>,
}

impl Labels {
    /// No task has started.
    pub fn new(workload: &Workload) -> Self {
        let specs: Vec<TaskSpec> = workload.tasks.iter().map(nameless).collect();
        let first = |spec: &TaskSpec| specs.iter().position(|other| other == spec);
        let equal_to = specs.iter().map(|spec| {
            let index = is_constant(spec).then(|| first(spec)).flatten();
            index.map(|index| index as u32)
        });
        Self {
            equal_to: equal_to.collect(),
            nr_released: vec![0; specs.len()],
            nr_started: vec![0; specs.len()],
            tasks: Vec::new(),
        }
    }

    /// The next task is announced.
    pub fn announce(&mut self, info: &TaskInfo) {
        let spec = info.spec.unwrap_or_default();
        self.tasks.push(Known { spec, label: None, nr_children: 0, is_fresh: false });
    }

    /// `event` is next: labels the task that it is about, if it has no label yet.
    pub fn see(&mut self, event: &Event) {
        match event.kind {
            EventKind::Fork { task, parent: Some(parent) } => {
                let own = self.of(parent);
                let parent = &mut self.tasks[parent.index()];
                parent.nr_children += 1;
                let label = mixed(&[3, own.0, parent.nr_children]);
                self.tasks[task.index()].label.get_or_insert(label);
            }
            EventKind::Fork { task, .. }
            | EventKind::Wakeup { task, .. }
            | EventKind::Migrate { task, .. } => self.release(task),
            EventKind::Switch { next: Some(next), .. } => self.start(next),
            _ => {}
        }
    }

    /// The label of `task`.
    pub fn of(&self, task: TaskId) -> Label {
        let known = self.tasks.get(task.index()).and_then(|known| known.label);
        known.unwrap_or(Label(u64::from(task.0)))
    }

    fn release(&mut self, task: TaskId) {
        let known = &mut self.tasks[task.index()];
        if known.label.is_some() {
            return;
        }
        let spec = known.spec as usize;
        self.nr_released[spec] += 1;
        known.is_fresh = self.equal_to[spec].is_some();
        known.label = Some(match self.equal_to[spec] {
            Some(equal) => mixed(&[1, u64::from(equal)]),
            None => mixed(&[2, spec as u64, self.nr_released[spec]]),
        });
    }

    /// `task` runs.
    fn start(&mut self, task: TaskId) {
        let known = &mut self.tasks[task.index()];
        let equal = self.equal_to[known.spec as usize];
        if let Some(equal) = equal.filter(|_| known.is_fresh) {
            self.nr_started[equal as usize] += 1;
            known.is_fresh = false;
            known.label = Some(mixed(&[4, u64::from(equal), self.nr_started[equal as usize]]));
        }
    }
}

/// A number that stands for `parts` (splitmix64 of each).
fn mixed(parts: &[u64]) -> Label {
    let mix = |sum: u64, part: &u64| {
        let mut z = (sum ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    // The highest bit keeps labels apart from numbers of tasks.
    Label(parts.iter().fold(0, mix) | 1 << 63)
}

/// The description without what does not make its tasks differ.
fn nameless(spec: &TaskSpec) -> TaskSpec {
    TaskSpec { name: String::new(), instances: 1, phases: Vec::new(), ..spec.clone() }
}

/// Whether all tasks of the description do the same at the same times.
fn is_constant(spec: &TaskSpec) -> bool {
    let is_fixed = |amount: &Amount| matches!(amount, Amount::Constant(_));
    let op_is_fixed = |op: &Op| match op {
        Op::Run(amount) | Op::RunWall(amount) | Op::Sleep(amount) => is_fixed(amount),
        Op::Timer { period, .. } => is_fixed(period),
        Op::Io { bytes, .. }
        | Op::Mem { bytes }
        | Op::Send { bytes, .. }
        | Op::Receive { bytes, .. } => is_fixed(bytes),
        Op::MemRun { .. } => false,
        _ => true,
    };
    is_fixed(&spec.release_ns)
        && spec.interarrival_ns.is_none()
        && spec.program.ops.iter().all(op_is_fixed)
}
