// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goldens: the decisions of a kernel and a scheduler, stored in a file and compared with later
//! runs.
//!
//! An entry belongs to *conditions*: QEMU, machine, guest, workload, seed; all parts of an identity
//! except the kernel and the scheduler's object, which are tested. Under the same conditions the
//! decisions must be the same and in the same order: which task runs, which is preempted, where a
//! task is placed. Another kernel has other instructions, so its times may differ. The same kernel
//! and object must also repeat the times.
//!
//! If a kernel thread interrupts a task that continues afterwards, this is not a decision about the
//! run's tasks, and is left out.

use crate::golden_file::{GoldenEntry, GoldenFile, Names};
use schedlab_model::trace::TaskInfo;
use schedlab_model::{Event, EventKind, Nanos, SwitchOut, TaskId, TraceSink};
use schedlab_run::RunResult;
use serde::{Deserialize, Serialize};

/// A decision with its time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Decision(
    /// Time since the start of the run (ns).
    pub Nanos,
    /// The decision, such as `cpu 0: hog-1 preempted, hog-2 runs`.
    pub String,
);

/// Collects the decisions of a run from its trace.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    names: Names,
    /// For each CPU: a task that a thread outside of the run has preempted.
    interrupted: Vec<Option<TaskId>>,
    found: Vec<Decision>,
}

impl Decisions {
    /// Returns the collected decisions.
    pub fn finish(self) -> Vec<Decision> {
        self.found
    }

    fn name(&self, task: TaskId) -> &str {
        self.names.get(task)
    }

    fn push(&mut self, event: &Event, text: String) {
        self.found.push(Decision(event.time_ns, format!("cpu {}: {text}", event.cpu)));
    }

    fn switch(
        &mut self,
        event: &Event,
        prev: Option<TaskId>,
        next: Option<TaskId>,
        out: SwitchOut,
    ) {
        if self.interrupted.len() <= event.cpu.index() {
            self.interrupted.resize(event.cpu.index() + 1, None);
        }
        let held = &mut self.interrupted[event.cpu.index()];
        let text = match (prev, next) {
            (Some(task), None) if out == SwitchOut::Preempted => {
                *held = Some(task);
                return;
            }
            (None, Some(task)) => match held.take() {
                Some(before) if before == task => return,
                Some(before) => {
                    format!("{} preempted, {} runs", self.name(before), self.name(task))
                }
                None => format!("{} runs", self.name(task)),
            },
            (Some(task), Some(after)) => {
                format!("{} {}, {} runs", self.name(task), out.name(), self.name(after))
            }
            (Some(task), None) => format!("{} {}", self.name(task), out.name()),
            (None, None) => return,
        };
        self.push(event, text);
    }
}

impl TraceSink for Decisions {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.names.set(id, info);
    }

    fn event(&mut self, event: &Event) {
        let by = |waker: Option<TaskId>| match waker {
            Some(waker) => format!(" by {}", self.name(waker)),
            None => String::new(),
        };
        let text = match event.kind {
            EventKind::Switch { prev, next, out } => return self.switch(event, prev, next, out),
            EventKind::Wakeup { task, waker } => {
                format!("{} is woken{}", self.name(task), by(waker))
            }
            EventKind::Fork { task, parent } => {
                format!("{} is created{}", self.name(task), by(parent))
            }
            EventKind::Migrate { task, from } => {
                format!("{} is moved here from cpu {from}", self.name(task))
            }
            EventKind::Lost { count } if count > 0 => format!("{count} events were lost"),
            // A task's own marks; and its exit, which its last switch already shows.
            _ => return,
        };
        self.push(event, text);
    }
}

/// The decisions of one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Kernel and scheduler of the request.
    pub scheduler: String,
    /// Workload.
    pub workload: String,
    /// Hash of the conditions, which must be equal for a comparison.
    pub conditions: String,
    /// Hash of the identity.
    pub identity: String,
    /// Release of the kernel.
    pub kernel: String,
    /// QEMU.
    pub qemu: String,
    /// SHA-256 of the trace.
    pub trace: String,
    /// The decisions, in order.
    pub decisions: Vec<Decision>,
}

impl Entry {
    /// Makes an entry from a result of the vm lane.
    pub fn of(run: &RunResult, decisions: Vec<Decision>) -> Self {
        let value = |name| run.machine.setting(name).unwrap_or_default().to_string();
        Self {
            scheduler: run.scheduler.clone(),
            workload: run.workload.clone(),
            conditions: value("vm.conditions"),
            identity: value("vm.identity"),
            kernel: run.machine.kernel.clone(),
            qemu: value("vm.qemu"),
            trace: value("vm.trace"),
            decisions,
        }
    }
}

/// The result of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All decisions and all times are equal.
    Same,
    /// All decisions are equal. Times differ by at most this (ns), as with another kernel or
    /// object.
    Moved(Nanos),
    /// The decisions differ. The text describes the first difference.
    Different(String),
}

/// Compares a run with the golden. Both have the same conditions.
pub fn compare(golden: &Entry, found: &Entry) -> Verdict {
    let pairs = || golden.decisions.iter().zip(&found.decisions);
    let first = pairs().position(|(then, now)| then.1 != now.1);
    let shorter = golden.decisions.len().min(found.decisions.len());
    let is_longer = golden.decisions.len() != found.decisions.len();
    if let Some(at) = first.or_else(|| is_longer.then_some(shorter)) {
        let text = |entry: &Entry| match entry.decisions.get(at) {
            Some(Decision(time_ns, text)) => format!("{text} (at {time_ns} ns)"),
            None => format!("no more, after {} decisions", entry.decisions.len()),
        };
        return Verdict::Different(format!(
            "decision {} of {}: expected {}, found {}",
            at + 1,
            golden.decisions.len(),
            text(golden),
            text(found)
        ));
    }
    if golden.trace == found.trace {
        return Verdict::Same;
    }
    let moved = pairs().map(|(then, now)| then.0.abs_diff(now.0)).max().unwrap_or(0);
    if golden.identity != found.identity {
        return Verdict::Moved(moved);
    }
    let first = pairs().position(|(then, now)| then.0 != now.0);
    Verdict::Different(match first {
        Some(at) => format!(
            "decision {}: the same kernel and scheduler took it at {} ns and now at {} ns: {}",
            at + 1,
            golden.decisions[at].0,
            found.decisions[at].0,
            found.decisions[at].1
        ),
        None => "the same decisions at the same times, but the tasks' own marks differ".into(),
    })
}

impl GoldenEntry for Entry {
    const FORMAT: &'static str = "schedlab golden 1";
    const HOLDS: &'static str = "goldens";

    fn is_for(&self, found: &Self) -> bool {
        self.conditions == found.conditions && self.scheduler == found.scheduler
    }
}

/// A file of goldens: entries in the order in which they were added.
pub type Goldens = GoldenFile<Entry>;

impl Goldens {
    /// Number of entries with the same kernel, scheduler and workload, but other conditions.
    pub fn others(&self, found: &Entry) -> usize {
        let is_like =
            |entry: &&Entry| entry.scheduler == found.scheduler && entry.workload == found.workload;
        self.entries.iter().filter(is_like).count()
    }

    /// Adds an entry. It replaces the one that it would be compared with.
    pub fn bless(&mut self, found: Entry) {
        self.entries.retain(|entry| !entry.is_for(&found));
        self.entries.push(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::CpuId;

    fn entry(decisions: &[(Nanos, &str)], identity: &str) -> Entry {
        let decisions: Vec<Decision> =
            decisions.iter().map(|(time, text)| Decision(*time, (*text).into())).collect();
        Entry {
            scheduler: "6.18:rr".into(),
            workload: "hogs".into(),
            conditions: "c".into(),
            identity: identity.into(),
            kernel: "6.18.1".into(),
            qemu: "QEMU".into(),
            trace: schedlab_run::sha::sha256(format!("{decisions:?}").as_bytes()),
            decisions,
        }
    }

    #[test]
    fn the_first_decision_that_changed_is_named() {
        let golden = entry(&[(1, "a runs"), (5, "b runs"), (9, "a runs")], "i");
        assert_eq!(compare(&golden, &golden), Verdict::Same);
        let moved = entry(&[(1, "a runs"), (7, "b runs"), (8, "a runs")], "j");
        assert_eq!(compare(&golden, &moved), Verdict::Moved(2));
        let changed = entry(&[(1, "a runs"), (6, "c runs"), (9, "x runs")], "j");
        let Verdict::Different(text) = compare(&golden, &changed) else { panic!("not found") };
        assert!(
            text.contains("decision 2 of 3: expected b runs (at 5 ns), found c runs (at 6 ns)"),
            "{text}"
        );
        let shorter = entry(&[(1, "a runs"), (5, "b runs")], "j");
        let Verdict::Different(text) = compare(&golden, &shorter) else { panic!("not found") };
        assert!(text.contains("decision 3") && text.contains("no more"), "{text}");
        let unsteady = Entry { identity: "i".into(), ..moved };
        let Verdict::Different(text) = compare(&golden, &unsteady) else { panic!("not found") };
        assert!(text.contains("at 5 ns and now at 7 ns: b runs"), "{text}");
    }

    #[test]
    fn a_file_comes_back_as_it_went_and_others_are_refused() {
        let mut goldens = Goldens::default();
        goldens.bless(entry(&[(1, "a runs")], "i"));
        goldens.bless(entry(&[(2, "a runs")], "j"));
        assert_eq!(goldens.entries.len(), 1, "the second takes the place of the first");
        let found = entry(&[], "k");
        assert_eq!(goldens.find(&found).unwrap().identity, "j");
        let elsewhere = Entry { conditions: "d".into(), ..found };
        assert!(goldens.find(&elsewhere).is_none());
        assert_eq!(goldens.others(&elsewhere), 1);
        assert_eq!(Goldens::read(&goldens.text()), Ok(goldens.clone()));
        let other = Goldens { format: "schedlab golden 9".into(), ..goldens };
        assert!(Goldens::read(&other.text()).unwrap_err().contains("golden 9"));
        assert!(Goldens::read("{}").unwrap_err().contains("no file of goldens"));
    }

    #[test]
    fn an_interruption_by_a_stranger_is_no_decision() {
        let (a, b) = (Some(TaskId(0)), Some(TaskId(1)));
        let mut decisions = Decisions::default();
        for (id, name) in [(0, "a"), (1, "b")] {
            decisions.task(TaskId(id), &TaskInfo { name: name.into(), ..TaskInfo::default() });
        }
        let out = SwitchOut::Preempted;
        let switches = [(None, a), (a, None), (None, a), (a, None), (None, b)];
        for (at, (prev, next)) in switches.into_iter().enumerate() {
            let out = if prev.is_none() { SwitchOut::Idle } else { out };
            let kind = EventKind::Switch { prev, next, out };
            decisions.event(&Event { time_ns: at as u64, cpu: CpuId(0), kind });
        }
        let kind = EventKind::Wakeup { task: TaskId(0), waker: b };
        decisions.event(&Event { time_ns: 9, cpu: CpuId(0), kind });
        let texts: Vec<String> = decisions.finish().into_iter().map(|found| found.1).collect();
        assert_eq!(
            texts,
            ["cpu 0: a runs", "cpu 0: a preempted, b runs", "cpu 0: a is woken by b"]
        );
    }
}
