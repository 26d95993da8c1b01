// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a trace: the state of every task and CPU, and the attributes that hold.
//!
//! A trace has no event for a change of attributes. A program may mark a change with a phase before
//! it and a phase after it; between the two the attributes are unknown. In a task whose changes are
//! not marked they are always unknown, and rules that depend on them leave the task out.

use schedlab_model::trace::TaskInfo;
use schedlab_model::workload::effective_cpus;
use schedlab_model::{
    CgroupId, CgroupSpec, Change, CpuId, CpuMask, Event, EventKind, Nanos, Op, SchedAttr,
    SwitchOut, TaskId, Workload,
};

/// How a task came to wait for a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queued {
    /// It woke.
    Woken,
    /// It was created.
    Forked,
    /// It was preempted.
    Preempted,
    /// It called sched_yield.
    Yielded,
}

/// State of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It has not been released.
    New,
    /// It waits for a CPU.
    Waits {
        /// On the queue of this CPU.
        cpu: CpuId,
        /// Since this time (ns).
        since: Nanos,
        /// Why.
        how: Queued,
    },
    /// It runs.
    Runs {
        /// On this CPU.
        cpu: CpuId,
        /// Since this time (ns).
        since: Nanos,
    },
    /// It sleeps.
    Sleeps,
    /// It has exited.
    Dead,
}

/// What is known of a task.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// Name.
    pub name: String,
    /// Index of its description.
    pub spec: usize,
    /// State.
    pub state: State,
    /// Its attributes; `None` while they are unknown.
    pub attr: Option<&'a SchedAttr>,
    /// CPUs that it may use; while attributes are unknown, all that it may ever use.
    pub allowed: CpuMask,
    /// CPU time so far (ns).
    pub ran_ns: Nanos,
    /// When it changed its attributes (ns).
    pub changed_at: Vec<Nanos>,
}

impl Seen<'_> {
    /// Whether it waits or runs.
    pub fn is_runnable(&self) -> bool {
        matches!(self.state, State::Waits { .. } | State::Runs { .. })
    }

    /// How often it has changed its attributes from `since` on.
    pub fn nr_changes(&self, since: Nanos) -> u64 {
        let earlier = self.changed_at.partition_point(|at| *at < since);
        (self.changed_at.len() - earlier) as u64
    }
}

/// What a phase of a program means for attributes, or for the CPUs of a group.
#[derive(Clone, Copy, Debug)]
enum Mark<'a> {
    Nothing,
    Before,
    After(&'a SchedAttr),
    BeforeCpus,
    AfterCpus(CgroupId, Option<CpuMask>),
}

/// CPUs of groups, as far as a trace tells.
#[derive(Debug)]
struct Cpusets<'a> {
    groups: &'a [CgroupSpec],
    own: Vec<Option<CpuMask>>,
    effective: Vec<CpuMask>,
    /// Changes under way.
    nr_open: u32,
    /// Whether two changes overlapped, or one is not marked: then their order is unknown.
    is_lost: bool,
}

impl<'a> Cpusets<'a> {
    /// `None` if groups have no CPUs of their own.
    fn new(workload: &'a Workload, cpus: CpuMask) -> Option<Self> {
        let changes = || workload.tasks.iter().map(|task| &task.program.ops);
        let has_changes = changes().flatten().any(|op| changed_cpus(op).is_some());
        if !workload.has_cpusets() && !has_changes {
            return None;
        }
        let groups = workload.cgroups.as_slice();
        let own: Vec<_> = groups.iter().map(|group| group.cpus).collect();
        let effective = effective_cpus(groups, |group| own[group], cpus);
        let is_lost = !changes().all(|ops| is_marked(ops, |op| changed_cpus(op).is_some()));
        Some(Self { groups, own, effective, nr_open: 0, is_lost })
    }

    fn begin(&mut self) {
        self.nr_open += 1;
        self.is_lost |= self.nr_open > 1;
    }

    fn end(&mut self, group: CgroupId, cpus: Option<CpuMask>) {
        self.nr_open = self.nr_open.saturating_sub(1);
        if let Some(own) = self.own.get_mut(group.index()) {
            *own = cpus;
        }
        self.effective = effective_cpus(self.groups, |group| self.own[group], self.effective[0]);
    }
}

/// The group whose CPUs `op` changes, and its new ones.
pub(crate) fn changed_cpus(op: &Op) -> Option<(CgroupId, Option<CpuMask>)> {
    match op {
        Op::Change(change) => match **change {
            Change::Cpus { group, cpus } => Some((group, cpus)),
            _ => None,
        },
        _ => None,
    }
}

/// What is known of a task description.
#[derive(Debug)]
struct Spec<'a> {
    attr: &'a SchedAttr,
    marks: Vec<Mark<'a>>,
    /// Whether every change of attributes is between two marks.
    is_marked: bool,
    /// CPUs that a task may use at any time.
    ever_allowed: CpuMask,
}

/// State of all tasks and CPUs.
#[derive(Debug)]
pub struct World<'a> {
    /// Present time (ns).
    pub now: Nanos,
    /// All CPUs.
    pub cpus: CpuMask,
    /// The running task of each CPU.
    pub running: Vec<Option<TaskId>>,
    /// When each CPU last switched (ns).
    pub switched_at: Vec<Nanos>,
    /// Tasks by id.
    pub tasks: Vec<Seen<'a>>,
    specs: Vec<Spec<'a>>,
    cpusets: Option<Cpusets<'a>>,
}

impl<'a> World<'a> {
    /// The state before the first event.
    pub fn new(workload: &'a Workload, nr_cpus: u32) -> Self {
        let cpus = CpuMask::first(nr_cpus);
        let specs = workload.tasks.iter().map(|task| {
            let ops = &task.program.ops;
            let changes = ops.iter().filter_map(|op| match op {
                Op::SetAttr(attr) => Some(&**attr),
                _ => None,
            });
            let ever = changes.chain([&task.attr]).map(|attr| allowed(attr, &cpus));
            Spec {
                attr: &task.attr,
                marks: marks(ops, task.phases.len()),
                is_marked: is_marked(ops, |op| matches!(op, Op::SetAttr(_))),
                ever_allowed: ever.fold(CpuMask::empty(), |all, one| all.or(&one)),
            }
        });
        Self {
            now: 0,
            cpus,
            running: vec![None; nr_cpus as usize],
            switched_at: vec![0; nr_cpus as usize],
            tasks: Vec::new(),
            specs: specs.collect(),
            cpusets: Cpusets::new(workload, cpus),
        }
    }

    /// The task with this id.
    pub fn task(&self, id: TaskId) -> &Seen<'a> {
        &self.tasks[id.index()]
    }

    /// The CPUs of `group`, if it or a group above it has some of its own, and they are known.
    pub fn group_cpus(&self, group: CgroupId) -> Option<&CpuMask> {
        let known = self.cpusets.as_ref().filter(|sets| sets.nr_open == 0 && !sets.is_lost)?;
        known.effective.get(group.index())
    }

    /// Tasks with their ids.
    pub fn each(&self) -> impl Iterator<Item = (TaskId, &Seen<'a>)> {
        self.tasks.iter().enumerate().map(|(id, task)| (TaskId(id as u32), task))
    }

    /// Tasks that wait, with the CPU on whose queue they wait.
    pub fn waiting(&self) -> impl Iterator<Item = (TaskId, &Seen<'a>, CpuId)> {
        self.each().filter_map(|(id, task)| match task.state {
            State::Waits { cpu, .. } => Some((id, task, cpu)),
            _ => None,
        })
    }

    /// A task is announced. One without a description cannot be judged.
    pub fn announce(&mut self, info: &TaskInfo) -> bool {
        let Some(spec) = info.spec.filter(|spec| (*spec as usize) < self.specs.len()) else {
            return false;
        };
        let known = &self.specs[spec as usize];
        self.tasks.push(Seen {
            name: info.name.clone(),
            spec: spec as usize,
            state: State::New,
            attr: known.is_marked.then_some(known.attr),
            allowed: match known.is_marked {
                true => allowed(known.attr, &self.cpus),
                false => known.ever_allowed,
            },
            ran_ns: 0,
            changed_at: Vec::new(),
        });
        true
    }

    /// Time passes up to `to`.
    pub fn pass(&mut self, to: Nanos) {
        let length = to - self.now;
        for id in self.running.iter().flatten() {
            self.tasks[id.index()].ran_ns += length;
        }
        self.now = to;
    }

    /// Applies an event of the present time.
    pub fn apply(&mut self, event: &Event) {
        let (now, cpu) = (self.now, event.cpu);
        match event.kind {
            EventKind::Switch { prev, next, out } => {
                if let Some(prev) = prev {
                    let wait = |how| State::Waits { cpu, since: now, how };
                    self.tasks[prev.index()].state = match out {
                        SwitchOut::Sleeping | SwitchOut::BlockedIo => State::Sleeps,
                        SwitchOut::Dead => State::Dead,
                        SwitchOut::Yielded => wait(Queued::Yielded),
                        SwitchOut::Preempted | SwitchOut::Idle => wait(Queued::Preempted),
                    };
                }
                self.running[cpu.index()] = next;
                self.switched_at[cpu.index()] = now;
                if let Some(next) = next {
                    self.tasks[next.index()].state = State::Runs { cpu, since: now };
                }
            }
            EventKind::Wakeup { task, .. } => self.wait(task, cpu, Queued::Woken),
            EventKind::Fork { task, .. } => self.wait(task, cpu, Queued::Forked),
            EventKind::Migrate { task, .. } => {
                if let State::Waits { cpu: place, .. } = &mut self.tasks[task.index()].state {
                    *place = cpu;
                }
            }
            EventKind::Phase { task, phase } => self.mark(task, phase),
            _ => {}
        }
    }

    /// A wake-up of a task that runs or waits changes nothing.
    fn wait(&mut self, task: TaskId, cpu: CpuId, how: Queued) {
        let seen = &mut self.tasks[task.index()];
        if !seen.is_runnable() {
            seen.state = State::Waits { cpu, since: self.now, how };
        }
    }

    fn mark(&mut self, task: TaskId, phase: u32) {
        let seen = &mut self.tasks[task.index()];
        let spec = &self.specs[seen.spec];
        match (spec.marks.get(phase as usize), &mut self.cpusets) {
            (Some(Mark::BeforeCpus), Some(cpusets)) => cpusets.begin(),
            (Some(Mark::AfterCpus(group, cpus)), Some(cpusets)) => cpusets.end(*group, *cpus),
            _ => {}
        }
        if !spec.is_marked {
            return;
        }
        match spec.marks.get(phase as usize) {
            Some(Mark::Before) => {
                seen.attr = None;
                seen.allowed = spec.ever_allowed;
            }
            Some(Mark::After(attr)) => {
                seen.attr = Some(attr);
                seen.allowed = allowed(attr, &self.cpus);
                seen.changed_at.push(self.now);
            }
            _ => {}
        }
    }
}

fn allowed(attr: &SchedAttr, cpus: &CpuMask) -> CpuMask {
    attr.affinity.unwrap_or(*cpus).and(cpus)
}

/// The meaning of every phase.
fn marks(ops: &[Op], nr_phases: usize) -> Vec<Mark<'_>> {
    let mut marks = vec![Mark::Nothing; nr_phases];
    for (index, op) in ops.iter().enumerate() {
        let Op::Phase(phase) = op else { continue };
        let before = index.checked_sub(1).and_then(|index| ops.get(index));
        let meaning = match (before, ops.get(index + 1)) {
            (Some(Op::SetAttr(attr)), _) => Mark::After(attr),
            (_, Some(Op::SetAttr(_))) => Mark::Before,
            (Some(before), after) => match (changed_cpus(before), after.and_then(changed_cpus)) {
                (Some((group, cpus)), _) => Mark::AfterCpus(group, cpus),
                (None, Some(_)) => Mark::BeforeCpus,
                _ => continue,
            },
            (None, Some(after)) if changed_cpus(after).is_some() => Mark::BeforeCpus,
            _ => continue,
        };
        if let Some(mark) = marks.get_mut(*phase as usize) {
            *mark = meaning;
        }
    }
    marks
}

/// Whether every operation that `is` such a change is between two phases of its own.
pub(crate) fn is_marked(ops: &[Op], is: impl Fn(&Op) -> bool) -> bool {
    let is_phase = |op: Option<&Op>| matches!(op, Some(Op::Phase(_)));
    ops.iter().enumerate().all(|(index, op)| {
        let before = index.checked_sub(1).and_then(|index| ops.get(index));
        !is(op) || (is_phase(before) && is_phase(ops.get(index + 1)))
    })
}
