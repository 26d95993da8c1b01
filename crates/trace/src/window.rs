// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part of a trace, from one time to another, as a trace of its own.
//!
//! For the sink behind a [`Window`] time 0 is the start of the part. It gets the state of tasks and
//! CPUs at that time ([`Found`]). So a wait, a slice or
//! a sleep that a border cuts counts with the part inside, and the parts of two neighbouring
//! windows add up to the whole. Events at `from` are inside, events at `to` are not.
//!
//! Memory: a few words a task and a CPU.

use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{Found, ObjectInfo, TaskInfo};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};

/// What a task does, as far as the events before the window tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// No event has told it, or the task has exited.
    #[default]
    Unknown,
    Runs,
    Waits,
    Sleeps {
        is_device: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Task {
    state: State,
    /// Where it runs or waits, or did so last.
    cpu: CpuId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Before,
    Inside,
    After,
}

/// Passes the events from one time to another on, counted from the first.
pub struct Window<'s> {
    sink: &'s mut dyn TraceSink,
    from_ns: Nanos,
    to_ns: Nanos,
    phase: Phase,
    tasks: Vec<Task>,
    /// What each CPU runs; the outer `None`: not known.
    cpus: Vec<Option<Option<TaskId>>>,
}

impl<'s> Window<'s> {
    /// The events from `from_ns` up to `to_ns`. `nr_idle_cpus`: of a recording that begins with
    /// its run, the CPUs, which are idle at first; else 0.
    pub fn new(
        sink: &'s mut dyn TraceSink,
        (from_ns, to_ns): (Nanos, Nanos),
        nr_idle_cpus: u32,
    ) -> Self {
        let phase = if from_ns == 0 { Phase::Inside } else { Phase::Before };
        let cpus = vec![Some(None); (nr_idle_cpus as usize).min(NR_CPUS_MAX)];
        Self { sink, from_ns, to_ns, phase, tasks: Vec::new(), cpus }
    }

    /// Follows an event before the window.
    fn follow(&mut self, event: &Event) {
        let cpu = event.cpu;
        match event.kind {
            EventKind::Switch { prev, next, out } => {
                if let Some(prev) = prev {
                    let state = match out {
                        SwitchOut::Preempted | SwitchOut::Yielded | SwitchOut::Idle => State::Waits,
                        SwitchOut::Sleeping => State::Sleeps { is_device: false },
                        SwitchOut::BlockedIo => State::Sleeps { is_device: true },
                        SwitchOut::Dead => State::Unknown,
                    };
                    self.set(prev, cpu, state);
                }
                if let Some(next) = next {
                    self.set(next, cpu, State::Runs);
                }
                self.set_cpu(cpu, prev, Some(next));
            }
            EventKind::Wakeup { task, .. } if self.state(task) != State::Runs => {
                self.set(task, cpu, State::Waits);
            }
            EventKind::Fork { task, .. } => self.set(task, cpu, State::Waits),
            EventKind::Migrate { task, .. } if self.state(task) != State::Runs => {
                self.set(task, cpu, self.state(task));
            }
            EventKind::Lost { count: 0 } => {
                self.tasks.fill(Task::default());
                self.cpus.fill(None);
            }
            EventKind::Lost { .. } => self.set_cpu(cpu, None, None),
            _ => {}
        }
    }

    fn state(&self, task: TaskId) -> State {
        self.tasks.get(task.index()).map_or(State::Unknown, |task| task.state)
    }

    fn set(&mut self, task: TaskId, cpu: CpuId, state: State) {
        if let Some(task) = self.tasks.get_mut(task.index()) {
            *task = Task { state, cpu };
        }
    }

    /// The CPU runs something else than `left`; whatever else it ran before has vanished.
    fn set_cpu(&mut self, cpu: CpuId, left: Option<TaskId>, runs: Option<Option<TaskId>>) {
        let at = cpu.index();
        if at >= NR_CPUS_MAX {
            return;
        }
        if at >= self.cpus.len() {
            self.cpus.resize(at + 1, None);
        }
        let was = std::mem::replace(&mut self.cpus[at], runs).flatten();
        if let Some(was) = was.filter(|was| Some(*was) != left)
            && Some(was) != runs.flatten()
            && self.tasks.get(was.index()) == Some(&Task { state: State::Runs, cpu })
        {
            self.set(was, cpu, State::Unknown);
        }
    }

    /// The window begins.
    fn open(&mut self) {
        self.phase = Phase::Inside;
        let kind = EventKind::Lost { count: 0 };
        self.sink.event(&Event { time_ns: 0, cpu: CpuId(0), kind });
        for (cpu, runs) in (0..).map(CpuId).zip(&self.cpus) {
            let Some(task) = *runs else { continue };
            let at = Task { state: State::Runs, cpu };
            if task.is_none_or(|task| self.tasks.get(task.index()) == Some(&at)) {
                self.sink.found(Found::Runs { cpu, task });
            }
        }
        for (task, &Task { state, cpu }) in (0..).map(TaskId).zip(&self.tasks) {
            match state {
                State::Waits => self.sink.found(Found::Waits { task, cpu }),
                State::Sleeps { is_device } => {
                    self.sink.found(Found::Sleeps { task, cpu, is_device });
                }
                State::Unknown | State::Runs => {}
            }
        }
        (self.tasks, self.cpus) = Default::default();
    }
}

impl TraceSink for Window<'_> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        if self.phase == Phase::Before {
            self.tasks.push(Task::default());
        }
        self.sink.task(id, info);
    }

    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        self.sink.object(id, info);
    }

    fn renamed(&mut self, id: TaskId, name: &str) {
        // What happens to a name after the window is still told: it is the one that tables show.
        self.sink.renamed(id, name);
    }

    fn event(&mut self, event: &Event) {
        if self.phase == Phase::Before {
            if event.time_ns < self.from_ns {
                return self.follow(event);
            }
            self.open();
        }
        if event.time_ns >= self.to_ns {
            self.phase = Phase::After;
        }
        if self.phase == Phase::Inside {
            let time_ns = event.time_ns - self.from_ns;
            self.sink.event(&Event { time_ns, ..*event });
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        if self.phase == Phase::Before {
            self.open();
        }
        self.sink.end(end_ns.min(self.to_ns).saturating_sub(self.from_ns));
    }
}

/// Passes everything on at a later time: what a [`Window`] has counted from its start counts from
/// the start of the trace again. For sinks that follow slices.
#[derive(Debug)]
pub struct Delayed<S> {
    sink: S,
    by_ns: Nanos,
}

impl<S: TraceSink> Delayed<S> {
    /// Everything later by `by_ns`.
    pub const fn new(sink: S, by_ns: Nanos) -> Self {
        Self { sink, by_ns }
    }
}

impl<S: TraceSink> TraceSink for Delayed<S> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.sink.task(id, info);
    }

    fn renamed(&mut self, id: TaskId, name: &str) {
        self.sink.renamed(id, name);
    }

    /// The slice of a task that runs at the start begins there.
    fn found(&mut self, found: Found) {
        if let Found::Runs { cpu, task } = found {
            let kind = EventKind::Switch { prev: None, next: task, out: SwitchOut::Idle };
            self.sink.event(&Event { time_ns: self.by_ns, cpu, kind });
        }
    }

    fn event(&mut self, event: &Event) {
        let time_ns = event.time_ns.saturating_add(self.by_ns);
        self.sink.event(&Event { time_ns, ..*event });
    }

    fn end(&mut self, end_ns: Nanos) {
        self.sink.end(end_ns.saturating_add(self.by_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::trace::MemorySink;

    /// Task 0 runs from 10 and is preempted at 50; task 1 sleeps from 20 on; task 2 exits at 30.
    #[test]
    fn the_window_begins_with_what_is_known() {
        let mut recorded = Recorded::default();
        let mut window = Window::new(&mut recorded, (40, 60), 3);
        for id in 0..3 {
            window.task(TaskId(id), &TaskInfo::default());
        }
        let switch = |cpu, time_ns, prev: Option<u32>, next: Option<u32>, out| Event {
            time_ns,
            cpu: CpuId(cpu),
            kind: EventKind::Switch { prev: prev.map(TaskId), next: next.map(TaskId), out },
        };
        use SwitchOut::{Dead, Idle, Preempted, Sleeping};
        for event in [
            switch(0, 10, None, Some(0), Idle),
            switch(1, 15, None, Some(1), Idle),
            switch(1, 20, Some(1), Some(2), Sleeping),
            switch(1, 30, Some(2), None, Dead),
            switch(0, 50, Some(0), Some(1), Preempted),
            switch(0, 60, Some(1), Some(0), Preempted),
        ] {
            window.event(&event);
        }
        window.end(100);
        let Recorded { found, events } = recorded;
        let cpu = CpuId;
        let want = [
            Found::Runs { cpu: cpu(0), task: Some(TaskId(0)) },
            Found::Runs { cpu: cpu(1), task: None },
            Found::Runs { cpu: cpu(2), task: None },
            Found::Sleeps { task: TaskId(1), cpu: cpu(1), is_device: false },
        ];
        assert_eq!(found, want);
        let times: Vec<Nanos> = events.events.iter().map(|event| event.time_ns).collect();
        assert_eq!((times, events.end_ns, events.tasks.len()), (vec![0, 10], 20, 3));
    }

    #[derive(Default)]
    struct Recorded {
        found: Vec<Found>,
        events: MemorySink,
    }

    impl TraceSink for Recorded {
        fn task(&mut self, id: TaskId, info: &TaskInfo) {
            self.events.task(id, info);
        }
        fn found(&mut self, found: Found) {
            self.found.push(found);
        }
        fn event(&mut self, event: &Event) {
            self.events.event(event);
        }
        fn end(&mut self, end_ns: Nanos) {
            self.events.end(end_ns);
        }
    }
}
