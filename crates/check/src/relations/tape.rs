// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run did, to be compared with another run.

use crate::case::Case;
use crate::play::simulated;
use crate::subject::Subject;
use schedlab_model::trace::TaskInfo;
use schedlab_model::{CpuId, Event, EventKind, Nanos, SwitchOut, TaskId, TraceSink};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A task, in both runs: its description, and how many tasks of it were before.
pub(super) type Key = (u32, u32);

/// A difference.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Found {
    pub time_ns: Nanos,
    pub cpu: Option<CpuId>,
    pub task: Option<String>,
    pub text: String,
}

/// The events of a run, and the CPU time of its tasks.
#[derive(Debug, Default)]
pub(super) struct Tape {
    pub end_ns: Nanos,
    tasks: Vec<(Key, String, Nanos)>,
    nr_of_spec: BTreeMap<u32, u32>,
    /// The running task of each CPU, and since when.
    running: BTreeMap<CpuId, (TaskId, Nanos)>,
    events: Vec<Event>,
}

/// What is compared of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Switch([Option<Key>; 2], SwitchOut),
    Wakeup(Key),
    Fork(Key),
    Migrate(Key, CpuId),
}

impl Tape {
    /// The run of `case`; `None` if it fails.
    pub fn record(case: &Case, subject: &Subject) -> Option<Self> {
        let mut tape = Self::default();
        let run = || simulated(case, subject, &mut tape, None).is_ok();
        // A class that finds its own state broken panics.
        let is_whole = catch_unwind(AssertUnwindSafe(run)).unwrap_or(false);
        is_whole.then_some(tape)
    }

    /// Key, name and CPU time of every task.
    pub fn times(&self) -> impl Iterator<Item = (Key, &str, Nanos)> {
        self.tasks.iter().map(|(key, name, ran)| (*key, name.as_str(), *ran))
    }

    /// The CPU time of one task.
    pub fn time_of(&self, wanted: Key) -> Option<Nanos> {
        self.times().find(|(key, ..)| *key == wanted).map(|(.., ran)| ran)
    }

    fn key(&self, task: TaskId) -> Key {
        self.tasks[task.index()].0
    }

    /// The name of a task, under which the first run `names` has it.
    fn name<'t>(&'t self, names: &'t Self, task: TaskId) -> &'t str {
        let (key, own, _) = &self.tasks[task.index()];
        let same = names.tasks.iter().find(|(other, ..)| other == key);
        same.map_or(own, |(_, name, _)| name)
    }

    fn act(&self, event: &Event) -> Option<Act> {
        let key = |task| self.key(task);
        Some(match event.kind {
            EventKind::Switch { prev, next, out } => {
                Act::Switch([prev.map(key), next.map(key)], out)
            }
            EventKind::Wakeup { task, .. } => Act::Wakeup(key(task)),
            EventKind::Fork { task, .. } => Act::Fork(key(task)),
            EventKind::Migrate { task, from } => Act::Migrate(key(task), from),
            _ => return None,
        })
    }

    /// What happened on the first CPUs, in order.
    fn acts(&self, nr_cpus: u32) -> impl Iterator<Item = (&Event, Act)> {
        let seen = self.events.iter().filter(move |event| event.cpu.0 < nr_cpus);
        seen.filter_map(|event| Some((event, self.act(event)?)))
    }

    /// An event in words, with the names of the first run.
    fn described(&self, names: &Self, event: Option<&Event>) -> String {
        let name = |task| self.name(names, task);
        let Some(event) = event else { return "nothing more happens".into() };
        let (cpu, time) = (event.cpu, event.time_ns);
        match event.kind {
            EventKind::Switch { next: Some(next), .. } => {
                format!("CPU {cpu} switches to {:?} at {time} ns", name(next))
            }
            EventKind::Switch { next: None, .. } => format!("CPU {cpu} goes idle at {time} ns"),
            EventKind::Migrate { task, .. } => {
                format!("{:?} moves to CPU {cpu} at {time} ns", name(task))
            }
            EventKind::Wakeup { task, .. } | EventKind::Fork { task, .. } => {
                format!("{:?} becomes runnable on CPU {cpu} at {time} ns", name(task))
            }
            _ => format!("CPU {cpu} goes on at {time} ns"),
        }
    }
}

impl TraceSink for Tape {
    fn task(&mut self, _id: TaskId, info: &TaskInfo) {
        let spec = info.spec.unwrap_or(u32::MAX);
        let count = self.nr_of_spec.entry(spec).or_default();
        self.tasks.push(((spec, *count), info.name.clone(), 0));
        *count += 1;
    }

    fn event(&mut self, event: &Event) {
        if let EventKind::Switch { next, .. } = event.kind {
            if let Some((task, since)) = self.running.remove(&event.cpu) {
                self.tasks[task.index()].2 += event.time_ns - since;
            }
            if let Some(next) = next {
                self.running.insert(event.cpu, (next, event.time_ns));
            }
        }
        self.events.push(*event);
    }

    fn end(&mut self, end_ns: Nanos) {
        for (task, since) in std::mem::take(&mut self.running).into_values() {
            self.tasks[task.index()].2 += end_ns - since;
        }
        self.end_ns = end_ns;
    }
}

/// The first decision on the first CPUs in which two runs differ. `what` tells how the second one
/// was changed.
pub(super) fn first_difference(one: &Tape, two: &Tape, nr_cpus: u32, what: &str) -> Option<Found> {
    let (mut first, mut second) = (one.acts(nr_cpus), two.acts(nr_cpus));
    loop {
        let (a, b) = (first.next(), second.next());
        let is_equal = match (&a, &b) {
            (None, None) => return None,
            (Some((event, act)), Some((other, same))) => {
                (event.time_ns, event.cpu, act) == (other.time_ns, other.cpu, same)
            }
            _ => false,
        };
        if is_equal {
            continue;
        }
        let (a, b) = (a.map(|(event, _)| event), b.map(|(event, _)| event));
        let at = [a, b].into_iter().flatten().min_by_key(|event| event.time_ns)?;
        let text = format!("{}; {what}, {}", one.described(one, a), two.described(one, b));
        let task = a.and_then(|event| match event.kind {
            EventKind::Switch { prev, next, .. } => next.or(prev),
            EventKind::Wakeup { task, .. }
            | EventKind::Fork { task, .. }
            | EventKind::Migrate { task, .. } => Some(task),
            _ => None,
        });
        return Some(Found {
            time_ns: at.time_ns,
            cpu: Some(at.cpu),
            task: task.map(|task| one.name(one, task).to_owned()),
            text,
        });
    }
}
