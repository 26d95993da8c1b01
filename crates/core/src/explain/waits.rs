// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waits of tasks on run queues, and what the CPUs did during one of them.
//!
//! A wait begins at a release, wake-up, preemption or yield, and ends when the task gets a CPU, as
//! in the measure `wait` (crates/metrics, run_delay). Memory: a few words for each task and CPU.

use super::result::{CpuMeanwhile, RanMeanwhile};
use schedlab_model::trace::TaskInfo;
use schedlab_model::{CpuId, CpuMask, Event, EventKind, Nanos, SwitchOut, TaskId, TraceSink};
use std::collections::BTreeMap;

/// One wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The waiting task.
    pub task: TaskId,
    /// Which of its waits, from 1.
    pub nth: u64,
    /// Start (ns).
    pub start_ns: Nanos,
    /// End (ns); the end of the run if it never got a CPU.
    pub end_ns: Nanos,
    /// Whether it got a CPU.
    pub ended: bool,
    /// `released`, `woken`, `preempted`, `yielded`.
    pub began_by: &'static str,
    /// The task that woke it.
    pub waker: Option<TaskId>,
    /// CPUs on whose queues it waited.
    pub cpus: CpuMask,
}

impl Wait {
    pub fn length_ns(&self) -> Nanos {
        self.end_ns - self.start_ns
    }
}

/// The wait to find.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The longest wait of all tasks.
    Longest,
    /// The longest wait of the tasks with this name, or the n-th wait of the only task with it.
    Of(String, Option<u64>),
}

/// Finds a wait in the events of a run.
#[derive(Debug)]
pub struct WaitFinder {
    wanted: Wanted,
    pub names: Vec<String>,
    is_wanted: Vec<bool>,
    open: Vec<Option<Wait>>,
    /// Waits begun by each task.
    pub nr_waits: Vec<u64>,
    pub found: Option<Wait>,
    pub end_ns: Nanos,
}

impl WaitFinder {
    pub fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            names: Vec::new(),
            is_wanted: Vec::new(),
            open: Vec::new(),
            nr_waits: Vec::new(),
            found: None,
            end_ns: 0,
        }
    }

    /// Whether any task has the name.
    pub fn is_known(&self) -> bool {
        self.is_wanted.iter().any(|wanted| *wanted)
    }

    fn begin(&mut self, event: &Event, task: TaskId, by: &'static str, waker: Option<TaskId>) {
        let Some(open) = self.open.get_mut(task.index()) else { return };
        if open.is_some() {
            return;
        }
        self.nr_waits[task.index()] += 1;
        let mut cpus = CpuMask::empty();
        cpus.set(event.cpu);
        *open = Some(Wait {
            task,
            nth: self.nr_waits[task.index()],
            start_ns: event.time_ns,
            end_ns: event.time_ns,
            ended: false,
            began_by: by,
            waker,
            cpus,
        });
    }

    fn close(&mut self, task: TaskId, now: Nanos, ended: bool) {
        let Some(mut wait) = self.open.get_mut(task.index()).and_then(Option::take) else { return };
        wait.end_ns = now;
        wait.ended = ended;
        if !self.is_wanted[task.index()] {
            return;
        }
        let better = match &self.wanted {
            Wanted::Of(_, Some(nth)) => wait.nth == *nth && self.found.is_none(),
            _ => self.found.as_ref().is_none_or(|best| wait.length_ns() > best.length_ns()),
        };
        if better {
            self.found = Some(wait);
        }
    }
}

impl TraceSink for WaitFinder {
    fn task(&mut self, _id: TaskId, info: &TaskInfo) {
        let wanted = match &self.wanted {
            Wanted::Longest => true,
            Wanted::Of(name, _) => *name == info.name,
        };
        self.names.push(info.name.clone());
        self.is_wanted.push(wanted);
        self.open.push(None);
        self.nr_waits.push(0);
    }

    fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::Fork { task, parent } => self.begin(event, task, "released", parent),
            EventKind::Wakeup { task, waker } => self.begin(event, task, "woken", waker),
            EventKind::Switch { prev, next, out } => {
                if let Some(next) = next {
                    self.close(next, event.time_ns, true);
                }
                match (prev, out) {
                    (Some(prev), SwitchOut::Preempted) => {
                        self.begin(event, prev, "preempted", None);
                    }
                    (Some(prev), SwitchOut::Yielded) => self.begin(event, prev, "yielded", None),
                    _ => {}
                }
            }
            EventKind::Migrate { task, .. } => {
                if let Some(Some(wait)) = self.open.get_mut(task.index()) {
                    wait.cpus.set(event.cpu);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        self.end_ns = end_ns;
        for task in 0..self.open.len() as u32 {
            self.close(TaskId(task), end_ns, false);
        }
    }
}

/// Adds up what each CPU did during one wait.
#[derive(Debug)]
pub struct Witness {
    wait: Wait,
    /// The CPU on whose queue the task waits.
    at: Option<CpuId>,
    /// What each CPU runs, and since when.
    running: Vec<(Option<TaskId>, Nanos)>,
    /// When the part of the wait on its present CPU began.
    here_since: Nanos,
    waited_here: Vec<Nanos>,
    idle: Vec<Nanos>,
    /// Time and number of slices by CPU and task, while the task waited on that CPU.
    beside: BTreeMap<(u32, TaskId), (Nanos, u64)>,
    /// Time and number of slices by CPU and task, during the whole wait.
    during: BTreeMap<(u32, TaskId), (Nanos, u64)>,
}

impl Witness {
    pub fn new(wait: Wait, nr_cpus: u32) -> Self {
        let nr_cpus = nr_cpus as usize;
        Self {
            here_since: wait.start_ns,
            wait,
            at: None,
            running: vec![(None, 0); nr_cpus],
            waited_here: vec![0; nr_cpus],
            idle: vec![0; nr_cpus],
            beside: BTreeMap::new(),
            during: BTreeMap::new(),
        }
    }

    /// Length (ns) of the part of from..to that is within the wait and after `since`.
    fn overlap(&self, from: Nanos, to: Nanos, since: Nanos) -> Nanos {
        let from = from.max(self.wait.start_ns).max(since);
        to.min(self.wait.end_ns).saturating_sub(from)
    }

    /// Adds what `cpu` did up to `now`. `stays` is 1 if its slice ended.
    fn book(&mut self, cpu: usize, now: Nanos, stays: u64) {
        let (task, since) = self.running[cpu];
        self.running[cpu].1 = now;
        let during = self.overlap(since, now, 0);
        let Some(task) = task else {
            self.idle[cpu] += during;
            return;
        };
        if task == self.wait.task || (during == 0 && stays == 0) {
            return;
        }
        let key = (cpu as u32, task);
        if during > 0 {
            let entry = self.during.entry(key).or_default();
            *entry = (entry.0 + during, entry.1 + stays);
        }
        if self.at == Some(CpuId(cpu as u32)) {
            let beside = self.overlap(since, now, self.here_since);
            if beside > 0 {
                let entry = self.beside.entry(key).or_default();
                *entry = (entry.0 + beside, entry.1 + stays);
            }
        }
    }

    /// The task waits on `cpu` from now on (`None`: on no CPU).
    fn move_to(&mut self, now: Nanos, cpu: Option<CpuId>) {
        if self.at == cpu {
            return;
        }
        if let Some(at) = self.at {
            self.book(at.index(), now, 0);
            self.waited_here[at.index()] += self.overlap(self.here_since, now, 0);
        }
        if let Some(cpu) = cpu {
            self.book(cpu.index(), now, 0);
        }
        self.here_since = now;
        self.at = cpu;
    }

    /// Returns what every CPU did; the task's own first.
    pub fn finish(
        mut self,
        allowed: &CpuMask,
        name: impl Fn(TaskId) -> String,
    ) -> Vec<CpuMeanwhile> {
        for cpu in 0..self.running.len() {
            self.book(cpu, self.wait.end_ns, 1);
        }
        self.move_to(self.wait.end_ns, None);
        let ran = |from: &BTreeMap<(u32, TaskId), (Nanos, u64)>, cpu: u32| {
            let range = from.range((cpu, TaskId(0))..(cpu + 1, TaskId(0)));
            let mut ran: Vec<RanMeanwhile> = range
                .map(|((_, task), (ran_ns, nr_slices))| RanMeanwhile {
                    task: task.0,
                    name: name(*task),
                    ran_ns: *ran_ns,
                    nr_slices: (*nr_slices).max(1),
                })
                .collect();
            ran.sort_by_key(|one| (std::cmp::Reverse(one.ran_ns), one.task));
            ran
        };
        let mut cpus: Vec<CpuMeanwhile> = (0..self.running.len() as u32)
            .map(|cpu| {
                let waited_here_ns = self.waited_here[cpu as usize];
                let from = if waited_here_ns > 0 { &self.beside } else { &self.during };
                CpuMeanwhile {
                    cpu,
                    is_allowed: allowed.contains(CpuId(cpu)),
                    waited_here_ns,
                    idle_ns: self.idle[cpu as usize],
                    ran: ran(from, cpu),
                }
            })
            .collect();
        cpus.sort_by_key(|one| (std::cmp::Reverse(one.waited_here_ns), one.cpu));
        cpus
    }
}

impl TraceSink for Witness {
    fn task(&mut self, _id: TaskId, _info: &TaskInfo) {}

    fn event(&mut self, event: &Event) {
        let now = event.time_ns;
        match event.kind {
            EventKind::Switch { prev, next, .. } => {
                let cpu = event.cpu.index();
                if cpu < self.running.len() {
                    self.book(cpu, now, 1);
                    self.running[cpu] = (next, now);
                }
                if prev == Some(self.wait.task) {
                    self.move_to(now, Some(event.cpu));
                } else if next == Some(self.wait.task) {
                    self.move_to(now, None);
                }
            }
            EventKind::Wakeup { task, .. }
            | EventKind::Fork { task, .. }
            | EventKind::Migrate { task, .. }
                if task == self.wait.task =>
            {
                self.move_to(now, Some(event.cpu));
            }
            _ => {}
        }
    }
}
