// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one of two compared runs did, up to where the other one is.

use super::labels::{Label, Labels};
use schedlab_engine::{Decision, Observer};
use schedlab_model::trace::TaskInfo;
use schedlab_model::{CpuId, Event, EventKind, Nanos, SwitchOut, TaskId, TraceSink, Workload};
use schedlab_sched::Core;
use schedlab_sched::boundary::explain::{Explanation, Who};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Most candidates of a pick that are compared.
const CANDIDATES_MAX: usize = 64;

/// What a scheduler did: it placed, moved or switched a task.
#[derive(Clone, Debug)]
pub struct Act {
    /// The event.
    pub event: Event,
    /// The tasks of the event.
    labels: [Option<Label>; 2],
    /// The pick that a switch carries out.
    pub pick: Option<Rc<Decision>>,
}

/// Acts are equal if they do the same to equal tasks.
impl PartialEq for Act {
    fn eq(&self, other: &Self) -> bool {
        let kind = |act: &Self| match act.event.kind {
            EventKind::Switch { out, .. } => (0, Some(out), None),
            EventKind::Wakeup { .. } => (1, None, None),
            EventKind::Fork { .. } => (2, None, None),
            EventKind::Migrate { from, .. } => (3, None, Some(from)),
            _ => (4, None::<SwitchOut>, None),
        };
        self.event.cpu == other.event.cpu
            && kind(self) == kind(other)
            && self.labels == other.labels
    }
}

impl Act {
    /// The task that wakes or is new, and its label.
    pub fn placed(&self) -> Option<(TaskId, Label)> {
        match self.event.kind {
            EventKind::Wakeup { task, .. } | EventKind::Fork { task, .. } => {
                self.labels[0].map(|label| (task, label))
            }
            _ => None,
        }
    }
}

/// What happened at a time.
#[derive(Debug, Default)]
pub struct Moment {
    /// Time (ns).
    pub time_ns: Nanos,
    /// The acts, by CPU.
    pub acts: Vec<Act>,
    /// The last pick of each CPU that picked.
    pub picks: BTreeMap<CpuId, Rc<Decision>>,
    /// Labels at that time of the tasks that the picks name.
    pub labels: BTreeMap<TaskId, Label>,
}

/// What a run did.
#[derive(Debug)]
pub struct Log {
    labels: Labels,
    /// Names of the tasks.
    pub names: Vec<String>,
    /// What was not compared yet.
    pub moments: VecDeque<Moment>,
    /// The last pick of each CPU.
    pub last: Vec<Option<Rc<Decision>>>,
    /// The task that each CPU runs.
    pub running: Vec<Option<TaskId>>,
    /// The CPU on whose queue a task waits.
    pub waits_on: BTreeMap<TaskId, CpuId>,
}

impl Log {
    /// The log of a run that has not begun.
    pub fn new(workload: &Workload, nr_cpus: u32) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            labels: Labels::new(workload),
            names: Vec::new(),
            moments: VecDeque::new(),
            last: vec![None; nr_cpus as usize],
            running: vec![None; nr_cpus as usize],
            waits_on: BTreeMap::new(),
        }))
    }

    /// The moment at `time_ns`, if something happened then. Removes it.
    pub fn take(&mut self, time_ns: Nanos) -> Option<Moment> {
        let is_next = self.moments.front().is_some_and(|moment| moment.time_ns == time_ns);
        let mut moment = if is_next { self.moments.pop_front() } else { None }?;
        // Acts on different CPUs at one time have no order.
        moment.acts.sort_by_key(|act| act.event.cpu);
        Some(moment)
    }

    /// When the first moment is that was not compared yet.
    pub fn first_time(&self) -> Option<Nanos> {
        self.moments.front().map(|moment| moment.time_ns)
    }

    fn moment(&mut self, time_ns: Nanos) -> &mut Moment {
        if self.moments.back().is_none_or(|last| last.time_ns != time_ns) {
            self.moments.push_back(Moment { time_ns, ..Moment::default() });
        }
        self.moments.back_mut().expect("one was just added")
    }

    fn see(&mut self, event: &Event) {
        let tasks = match event.kind {
            EventKind::Switch { prev, next, .. } => [prev, next],
            EventKind::Wakeup { task, .. }
            | EventKind::Fork { task, .. }
            | EventKind::Migrate { task, .. } => [Some(task), None],
            _ => return,
        };
        self.labels.see(event);
        self.follow(event);
        let labels = tasks.map(|task| task.map(|task| self.labels.of(task)));
        let is_switch = matches!(event.kind, EventKind::Switch { .. });
        let pick = self.last[event.cpu.index()].clone().filter(|_| is_switch);
        self.moment(event.time_ns).acts.push(Act { event: *event, labels, pick });
    }

    fn follow(&mut self, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, next, out } => {
                let stays = matches!(out, SwitchOut::Preempted | SwitchOut::Yielded);
                if let Some(prev) = prev.filter(|_| stays) {
                    self.waits_on.insert(prev, event.cpu);
                }
                next.map(|next| self.waits_on.remove(&next));
                self.running[event.cpu.index()] = next;
            }
            EventKind::Wakeup { task, .. } | EventKind::Fork { task, .. }
                if !self.running.contains(&Some(task)) =>
            {
                self.waits_on.insert(task, event.cpu);
            }
            EventKind::Migrate { task, .. } => {
                if let Some(place) = self.waits_on.get_mut(&task) {
                    *place = event.cpu;
                }
            }
            _ => {}
        }
    }

    fn pick(&mut self, decision: Decision) {
        let (time_ns, cpu) = (decision.time_ns, decision.cpu);
        let decision = Rc::new(decision);
        self.last[cpu.index()] = Some(Rc::clone(&decision));
        let mut labels = Vec::new();
        for candidate in decision.explanation.iter().flat_map(|told| &told.contests) {
            for candidate in &candidate.candidates {
                if let Who::Task(task) = candidate.who {
                    labels.push((task, self.labels.of(task)));
                }
            }
        }
        let moment = self.moment(time_ns);
        moment.labels.extend(labels);
        moment.picks.insert(cpu, decision);
    }
}

/// Writes the events of a run into its log.
pub struct Tap(pub Rc<RefCell<Log>>);

impl TraceSink for Tap {
    fn task(&mut self, _id: TaskId, info: &TaskInfo) {
        let mut log = self.0.borrow_mut();
        log.labels.announce(info);
        log.names.push(info.name.clone());
    }

    fn event(&mut self, event: &Event) {
        self.0.borrow_mut().see(event);
    }
}

/// Writes the picks of a run, with their numbers, into its log.
pub struct Watcher(pub Rc<RefCell<Log>>);

impl Observer for Watcher {
    fn wants(&mut self, _now: Nanos, _cpu: CpuId) -> Option<Explanation> {
        Some(Explanation::new(CANDIDATES_MAX, None))
    }

    fn decided(&mut self, _core: &Core, decision: Decision) {
        self.0.borrow_mut().pick(decision);
    }
}
