// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a trace is possible: every lane's trace must follow these rules.
//!
//! - Time does not go back. A task is announced once, before it is named, with ids from 0 upwards.
//! - A switch's `prev` is the running task of that CPU, and `next` is another task than `prev`.
//! - A task is on one CPU at a time. Only a runnable task is switched in. A dead task has no
//!   events.
//! - `out` is `Idle` if and only if `prev` is the idle task.
//! - A task is forked once, before its other events. Only a running task exits.
//! - A migration starts on the CPU where the task was last placed, ends on another, and never moves
//!   a running task.
//! - A task blocks only while it runs, and on an object that was announced before.
//! - With [`TraceCheck::with_moves`] a task is only switched in on the CPU where it was placed.
//!
//! A wake-up of a task that is still queued or running is allowed, because the kernel reports such
//! wake-ups. After lost events the checker forgets its state, and learns it from the following
//! events.

use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use std::fmt;

/// The first rule that a trace broke.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Time of the event.
    pub time_ns: Nanos,
    /// CPU of the event.
    pub cpu: CpuId,
    /// What is wrong, and what is allowed.
    pub what: String,
    /// Number of the event in the trace, from 0.
    pub event: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "trace event {} at {} ns on CPU {}: {}",
            self.event, self.time_ns, self.cpu, self.what
        )
    }
}

impl std::error::Error for Violation {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Announced, or without an event since events were lost.
    Unknown,
    Queued,
    Running(CpuId),
    Asleep,
    Dead,
}

impl State {
    fn describe(self) -> String {
        match self {
            Self::Unknown => "has not been released".into(),
            Self::Queued => "is queued".into(),
            Self::Running(cpu) => format!("is running on CPU {cpu}"),
            Self::Asleep => "sleeps".into(),
            Self::Dead => "is dead".into(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Task {
    state: State,
    /// The CPU where it was last placed.
    cpu: Option<CpuId>,
    /// Number of losses when this state was learnt.
    epoch: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    current: Option<TaskId>,
    /// Number of losses when `current` was learnt.
    epoch: u32,
}

/// A sink that checks the trace.
#[derive(Clone, Debug, Default)]
pub struct TraceCheck {
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    nr_objects: u32,
    epoch: u32,
    last_ns: Nanos,
    nr_events: u64,
    with_moves: bool,
    violation: Option<Violation>,
}

type Checked = Result<(), String>;

impl TraceCheck {
    /// A checker of the rules for every lane.
    pub fn new() -> Self {
        Self::default()
    }

    /// A checker that also requires a migrate event for every move of a queued task.
    pub fn with_moves() -> Self {
        Self { with_moves: true, ..Self::default() }
    }

    /// The first violation so far.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// The result for the whole trace.
    pub fn finish(self) -> Result<(), Violation> {
        self.violation.map_or(Ok(()), Err)
    }

    /// The state of a task. After a loss an unseen task is `Unknown`.
    fn known(&mut self, id: TaskId) -> Result<&mut Task, String> {
        let epoch = self.epoch;
        let task = self
            .tasks
            .get_mut(id.index())
            .ok_or_else(|| format!("task {id} is named but was never announced"))?;
        if task.epoch != epoch {
            *task = Task { state: State::Unknown, cpu: None, epoch };
        }
        Ok(task)
    }

    /// Whether `Unknown` may be any state, because events were lost.
    fn has_lost(&self) -> bool {
        self.epoch > 0
    }

    fn cpu(&mut self, cpu: CpuId) -> Result<&mut Cpu, String> {
        if cpu.index() >= schedlab_model::cpumask::NR_CPUS_MAX {
            return Err(format!("CPU {cpu} is out of range"));
        }
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Cpu::default());
        }
        Ok(&mut self.cpus[cpu.index()])
    }

    fn check(&mut self, event: &Event) -> Checked {
        if event.time_ns < self.last_ns {
            return Err(format!("time goes back from {} ns", self.last_ns));
        }
        self.last_ns = event.time_ns;
        let cpu = event.cpu;
        match event.kind {
            EventKind::Switch { prev, next, out } => self.switch(cpu, prev, next, out),
            EventKind::Wakeup { task, .. } => self.wakeup(cpu, task),
            EventKind::Fork { task, .. } => self.fork(cpu, task),
            EventKind::Exit { task }
            | EventKind::Phase { task, .. }
            | EventKind::Progress { task } => self.own_act(cpu, task),
            EventKind::Block { object, .. } if object.0 >= self.nr_objects => {
                Err(format!("object {object} is named but was never announced"))
            }
            EventKind::Block { task, .. } => self.own_act(cpu, task),
            EventKind::Migrate { task, from } => self.migrate(cpu, task, from),
            EventKind::Lost { .. } => {
                self.epoch += 1;
                Ok(())
            }
        }
    }

    /// Whether the known running task of `cpu` is known to run there.
    fn is_in_step(&self, cpu: CpuId) -> bool {
        let current = self.cpus.get(cpu.index()).filter(|slot| slot.epoch == self.epoch);
        let current = current.and_then(|slot| slot.current);
        let task = current.and_then(|id| self.tasks.get(id.index()));
        task.is_none_or(|task| task.epoch != self.epoch || task.state == State::Running(cpu))
    }

    fn switch(
        &mut self,
        cpu: CpuId,
        prev: Option<TaskId>,
        next: Option<TaskId>,
        out: SwitchOut,
    ) -> Checked {
        let name = |task: Option<TaskId>| task.map_or("idle".into(), |id| format!("task {id}"));
        if prev == next {
            return Err(format!("switch from {} to itself", name(prev)));
        }
        if prev.is_none() != (out == SwitchOut::Idle) {
            return Err(format!("{} leaves the CPU as {:?}", name(prev), out.name()));
        }
        let epoch = self.epoch;
        let slot = self.cpu(cpu)?;
        if slot.epoch == epoch && slot.current != prev {
            let (current, prev) = (name(slot.current), name(prev));
            return Err(format!("the switch says that {prev} ran, but {current} did"));
        }
        *slot = Cpu { current: next, epoch };
        if let Some(prev) = prev {
            let has_lost = self.has_lost();
            let task = self.known(prev)?;
            let may_be_so = has_lost && task.state == State::Unknown;
            if task.state != State::Running(cpu) && !may_be_so {
                return Err(format!("task {prev} leaves the CPU, but {}", task.state.describe()));
            }
            task.state = match out {
                SwitchOut::Sleeping | SwitchOut::BlockedIo => State::Asleep,
                SwitchOut::Dead => State::Dead,
                SwitchOut::Preempted | SwitchOut::Yielded | SwitchOut::Idle => State::Queued,
            };
            task.cpu = Some(cpu);
        }
        next.map_or(Ok(()), |next| self.switch_in(cpu, next))
    }

    fn switch_in(&mut self, cpu: CpuId, id: TaskId) -> Checked {
        let (has_lost, with_moves) = (self.has_lost(), self.with_moves);
        let task = self.known(id)?;
        match task.state {
            State::Queued => {}
            State::Unknown if has_lost => {}
            state => return Err(format!("task {id} is switched in, but {}", state.describe())),
        }
        if let Some(put) = task.cpu.filter(|put| with_moves && *put != cpu) {
            return Err(format!(
                "task {id} is switched in, but was put on CPU {put} and not moved"
            ));
        }
        task.state = State::Running(cpu);
        task.cpu = Some(cpu);
        Ok(())
    }

    fn wakeup(&mut self, cpu: CpuId, id: TaskId) -> Checked {
        self.cpu(cpu)?;
        let task = self.known(id)?;
        match task.state {
            State::Dead => Err(format!("task {id} is woken, but is dead")),
            State::Queued | State::Running(_) => Ok(()),
            State::Unknown | State::Asleep => {
                task.state = State::Queued;
                task.cpu = Some(cpu);
                Ok(())
            }
        }
    }

    fn fork(&mut self, cpu: CpuId, id: TaskId) -> Checked {
        self.cpu(cpu)?;
        let task = self.known(id)?;
        if task.state != State::Unknown {
            return Err(format!("task {id} is forked, but {} already", task.state.describe()));
        }
        task.state = State::Queued;
        task.cpu = Some(cpu);
        Ok(())
    }

    /// Checks an exit, phase, progress or block: only a running task can have these.
    fn own_act(&mut self, cpu: CpuId, id: TaskId) -> Checked {
        let has_lost = self.has_lost();
        let task = self.known(id)?;
        let unknown = has_lost && task.state == State::Unknown;
        if task.state != State::Running(cpu) && !unknown {
            return Err(format!("task {id} acts here, but {}", task.state.describe()));
        }
        Ok(())
    }

    fn migrate(&mut self, cpu: CpuId, id: TaskId, from: CpuId) -> Checked {
        self.cpu(cpu)?;
        if from == cpu {
            return Err(format!("task {id} migrates to the CPU it comes from"));
        }
        let task = self.known(id)?;
        match (task.state, task.cpu) {
            (State::Running(_) | State::Dead, _) => {
                Err(format!("task {id} migrates, but {}", task.state.describe()))
            }
            (_, Some(was)) if was != from => {
                Err(format!("task {id} migrates from CPU {from}, but was put on CPU {was}"))
            }
            _ => {
                task.cpu = Some(cpu);
                Ok(())
            }
        }
    }
}

impl TraceCheck {
    /// Checks that announced items have the numbers from 0 upwards.
    fn announced(&mut self, what: &str, name: &str, id: u32, next: usize) {
        if id as usize != next && self.violation.is_none() {
            self.violation = Some(Violation {
                time_ns: self.last_ns,
                cpu: CpuId(0),
                what: format!("{what} {name:?} is announced as {id}, but the next id is {next}"),
                event: self.nr_events,
            });
        }
    }
}

impl TraceSink for TraceCheck {
    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        self.announced("object", &info.name, id.0, self.nr_objects as usize);
        self.nr_objects += 1;
    }

    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.announced("task", &info.name, id.0, self.tasks.len());
        self.tasks.push(Task { state: State::Unknown, cpu: None, epoch: self.epoch });
    }

    fn event(&mut self, event: &Event) {
        if self.violation.is_none()
            && let Err(what) = self.check(event)
        {
            self.violation = Some(Violation {
                time_ns: event.time_ns,
                cpu: event.cpu,
                what,
                event: self.nr_events,
            });
        }
        debug_assert!(
            self.violation.is_some() || self.is_in_step(event.cpu),
            "after {event:?} the task and its CPU differ"
        );
        self.nr_events += 1;
    }

    fn end(&mut self, end_ns: Nanos) {
        if end_ns < self.last_ns && self.violation.is_none() {
            self.violation = Some(Violation {
                time_ns: end_ns,
                cpu: CpuId(0),
                what: format!("the run ends before its last event at {} ns", self.last_ns),
                event: self.nr_events,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);

    fn switch(prev: Option<TaskId>, next: Option<TaskId>, out: SwitchOut) -> EventKind {
        EventKind::Switch { prev, next, out }
    }

    fn fork(task: TaskId) -> EventKind {
        EventKind::Fork { task, parent: None }
    }

    fn verdict_of(mut check: TraceCheck, events: &[(Nanos, u32, EventKind)]) -> Option<Violation> {
        for id in 0..2 {
            check.task(TaskId(id), &TaskInfo::default());
        }
        check.object(ObjectId(0), &ObjectInfo::default());
        for &(time_ns, cpu, kind) in events {
            check.event(&Event { time_ns, cpu: CpuId(cpu), kind });
        }
        check.end(100);
        check.finish().err()
    }

    /// The last event breaks a rule; the message names it.
    #[test]
    fn each_rule_is_checked() {
        use SwitchOut::{Dead, Idle, Preempted, Sleeping};
        let run_a = [(1, 0, fork(A)), (1, 0, fork(B)), (2, 0, switch(None, Some(A), Idle))];
        let broken = [
            ((1, 0, EventKind::Progress { task: A }), "time goes back"),
            ((3, 0, switch(Some(B), None, Sleeping)), "says that task 1 ran, but task 0 did"),
            ((3, 1, switch(None, Some(A), Idle)), "is running on CPU 0"),
            ((3, 0, switch(Some(A), Some(A), Preempted)), "to itself"),
            ((3, 0, switch(Some(A), None, Idle)), "leaves the CPU as \"idle\""),
            ((3, 1, switch(None, Some(B), Dead)), "idle leaves the CPU as \"exited\""),
            ((3, 0, fork(A)), "forked, but is running on CPU 0 already"),
            ((3, 1, EventKind::Exit { task: B }), "acts here, but is queued"),
            ((3, 1, EventKind::Exit { task: A }), "acts here, but is running on CPU 0"),
            ((3, 1, EventKind::Migrate { task: A, from: CpuId(0) }), "migrates, but is running"),
            ((3, 1, EventKind::Migrate { task: B, from: CpuId(2) }), "was put on CPU 0"),
            ((3, 1, EventKind::Migrate { task: B, from: CpuId(1) }), "CPU it comes from"),
            ((3, 0, fork(TaskId(7))), "never announced"),
            ((3, 0, EventKind::Block { task: A, object: ObjectId(1) }), "object 1 is named but"),
            ((3, 0, EventKind::Block { task: B, object: ObjectId(0) }), "acts here, but is queued"),
            ((3, 4096, fork(A)), "out of range"),
        ];
        for (event, word) in broken {
            let events: Vec<_> = run_a.iter().copied().chain([event]).collect();
            let found = verdict_of(TraceCheck::new(), &events).expect(word);
            assert!(found.what.contains(word), "{found}");
            assert_eq!((found.time_ns, found.cpu, found.event), (event.0, CpuId(event.1), 3));
        }
        assert_eq!(verdict_of(TraceCheck::new(), &run_a), None);
    }

    #[test]
    fn sleepers_and_the_dead_do_not_run() {
        use SwitchOut::{Dead, Idle, Sleeping};
        for (out, word) in [(Sleeping, "sleeps"), (Dead, "is dead")] {
            let events = [
                (1, 0, fork(A)),
                (2, 0, switch(None, Some(A), Idle)),
                (3, 0, switch(Some(A), None, out)),
                (4, 0, switch(None, Some(A), Idle)),
            ];
            let found = verdict_of(TraceCheck::new(), &events).unwrap();
            assert!(found.what.contains(word), "{found}");
        }
        let woken = [
            (1, 0, fork(A)),
            (2, 0, switch(None, Some(A), Idle)),
            (3, 0, switch(Some(A), None, Dead)),
            (4, 0, EventKind::Wakeup { task: A, waker: None }),
        ];
        let found = verdict_of(TraceCheck::new(), &woken).unwrap();
        assert!(found.to_string().contains("trace event 3 at 4 ns on CPU 0: task 0 is woken"));
    }

    #[test]
    fn moves_are_demanded_only_when_asked_for() {
        let events = [(1, 0, fork(A)), (2, 1, switch(None, Some(A), SwitchOut::Idle))];
        assert_eq!(verdict_of(TraceCheck::new(), &events), None);
        let found = verdict_of(TraceCheck::with_moves(), &events).unwrap();
        assert!(found.what.contains("put on CPU 0 and not moved"), "{found}");
    }

    /// After a loss anything may be so; what is seen then counts again.
    #[test]
    fn learns_anew_after_a_loss() {
        use SwitchOut::{Idle, Sleeping};
        let mut events = vec![
            (1, 0, fork(A)),
            (2, 0, switch(None, Some(A), Idle)),
            (3, 0, EventKind::Lost { count: 4 }),
            (4, 0, switch(Some(B), None, Sleeping)),
            (5, 1, switch(None, Some(A), Idle)),
        ];
        assert_eq!(verdict_of(TraceCheck::new(), &events), None);
        events.push((6, 0, switch(None, Some(A), Idle)));
        let found = verdict_of(TraceCheck::new(), &events).unwrap();
        assert!(found.what.contains("is running on CPU 1"), "{found}");
    }
}
