// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random traces that follow all rules of real ones, for tests and benchmarks of readers.
//!
//! They come from no scheduler. Tasks are forked, run, are preempted, sleep, block (also on
//! objects), wake (also while still queued, as the kernel reports it), migrate and exit at random.
//! The same seed gives the same trace.

use schedlab_model::random::{Purpose, Stream};
use schedlab_model::trace::{ObjectInfo, TaskInfo, WaitKind};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};

/// The size of the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Synthetic {
    /// Seed.
    pub seed: u64,
    /// CPUs, >= 1.
    pub nr_cpus: u32,
    /// Tasks, >= 1. They are forked throughout the trace.
    pub nr_tasks: u32,
    /// Least number of events. A few more complete the last step.
    pub nr_events: u64,
}

/// The state of the machine.
struct State<'a, S> {
    sink: &'a mut S,
    stream: Stream,
    now: Nanos,
    nr_events: u64,
    current: Vec<Option<TaskId>>,
    queues: Vec<Vec<TaskId>>,
    sleeping: Vec<TaskId>,
    nr_dead: usize,
    /// CPU on which each task was last placed.
    cpu: Vec<CpuId>,
}

impl Synthetic {
    /// Passes the trace to `sink` and ends it.
    pub fn play<S: TraceSink>(&self, sink: &mut S) {
        let cpus = self.nr_cpus.max(1) as usize;
        let mut state = State {
            sink,
            stream: Stream::new(self.seed, Purpose::Experiment, 0),
            now: 0,
            nr_events: 0,
            current: vec![None; cpus],
            queues: vec![Vec::new(); cpus],
            sleeping: Vec::new(),
            nr_dead: 0,
            cpu: Vec::new(),
        };
        for (id, kind) in WaitKind::ALL.into_iter().enumerate() {
            let name = format!("{}-{id}", kind.name());
            state.sink.object(ObjectId(id as u32), &ObjectInfo { name, kind });
        }
        while state.nr_events < self.nr_events {
            // A fork is due when the part of the tasks that exist lags behind the part of the
            // trace.
            let due = 1 + state.nr_events * u64::from(self.nr_tasks) / self.nr_events;
            if (state.cpu.len() as u64) < due.min(u64::from(self.nr_tasks.max(1))) {
                state.fork();
            } else {
                state.step();
            }
        }
        let places = state.queues.iter().map(Vec::len).sum::<usize>() + state.sleeping.len();
        let nr_current = state.current.iter().flatten().count();
        let placed = places + nr_current + state.nr_dead;
        assert_eq!(placed, state.cpu.len(), "a task is in one place at a time");
        state.now += 1_000;
        state.sink.end(state.now);
    }
}

impl<S: TraceSink> State<'_, S> {
    fn emit(&mut self, cpu: CpuId, kind: EventKind) {
        self.nr_events += 1;
        self.sink.event(&Event { time_ns: self.now, cpu, kind });
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.stream.below(one_in) == 0
    }

    fn any_cpu(&mut self) -> CpuId {
        CpuId(self.stream.below(self.current.len() as u64) as u32)
    }

    fn fork(&mut self) {
        let task = TaskId(self.cpu.len() as u32);
        let info = TaskInfo { name: format!("task-{task}"), spec: Some(task.0 % 7), pid: 0 };
        self.sink.task(task, &info);
        let cpu = self.any_cpu();
        let parent = self.current[cpu.index()];
        self.cpu.push(cpu);
        self.queues[cpu.index()].push(task);
        self.emit(cpu, EventKind::Fork { task, parent });
    }

    fn step(&mut self) {
        self.now += self.stream.below(4_000);
        let cpu = self.any_cpu();
        match self.stream.below(16) {
            0 => self.migrate(cpu),
            1 => self.mark(cpu),
            2..=6 => self.wake(cpu),
            _ => self.schedule(cpu),
        }
    }

    /// Moves a queued task to `cpu`.
    fn migrate(&mut self, cpu: CpuId) {
        let from = self.any_cpu();
        if from == cpu || self.queues[from.index()].is_empty() {
            return;
        }
        let task = self.queues[from.index()].remove(0);
        self.queues[cpu.index()].push(task);
        self.cpu[task.index()] = cpu;
        self.emit(cpu, EventKind::Migrate { task, from });
    }

    /// Lets the task on `cpu` enter a phase or make progress.
    fn mark(&mut self, cpu: CpuId) {
        let Some(task) = self.current[cpu.index()] else { return };
        let phase = self.stream.below(3) as u32;
        let is_phase = self.chance(2);
        let kind =
            if is_phase { EventKind::Phase { task, phase } } else { EventKind::Progress { task } };
        self.emit(cpu, kind);
    }

    fn wake(&mut self, waker_cpu: CpuId) {
        let waker = self.current[waker_cpu.index()];
        if self.chance(32)
            && let Some(&task) = self.queues[waker_cpu.index()].first()
        {
            // The kernel reports it; nothing changes.
            return self.emit(waker_cpu, EventKind::Wakeup { task, waker });
        }
        if self.sleeping.is_empty() {
            return;
        }
        let index = self.stream.below(self.sleeping.len() as u64) as usize;
        let task = self.sleeping.swap_remove(index);
        let from = self.cpu[task.index()];
        let cpu = if self.chance(4) { self.any_cpu() } else { from };
        if cpu != from {
            self.emit(cpu, EventKind::Migrate { task, from });
        }
        self.cpu[task.index()] = cpu;
        self.queues[cpu.index()].push(task);
        self.emit(cpu, EventKind::Wakeup { task, waker });
    }

    fn schedule(&mut self, cpu: CpuId) {
        let prev = self.current[cpu.index()];
        let waiting = !self.queues[cpu.index()].is_empty();
        if prev.is_none() && !waiting {
            return;
        }
        let mut out = SwitchOut::Idle;
        if let Some(task) = prev {
            out = match self.stream.below(16) {
                0..=5 if waiting => SwitchOut::Preempted,
                6 if waiting => SwitchOut::Yielded,
                7..=9 => SwitchOut::BlockedIo,
                // Half of the tasks live on, so that there is always one that can act.
                10 if 2 * self.nr_dead < self.cpu.len() - 1 && self.chance(64) => SwitchOut::Dead,
                _ => SwitchOut::Sleeping,
            };
            if out == SwitchOut::Dead {
                self.nr_dead += 1;
                self.emit(cpu, EventKind::Exit { task });
            }
            if out == SwitchOut::Sleeping && self.chance(2) {
                let object = ObjectId(self.stream.below(WaitKind::ALL.len() as u64) as u32);
                self.emit(cpu, EventKind::Block { task, object });
            }
        }
        let next = waiting.then(|| self.queues[cpu.index()].remove(0));
        match (out, prev) {
            (SwitchOut::Preempted | SwitchOut::Yielded, Some(task)) => {
                self.queues[cpu.index()].push(task);
            }
            (SwitchOut::Sleeping | SwitchOut::BlockedIo, Some(task)) => self.sleeping.push(task),
            _ => {}
        }
        self.current[cpu.index()] = next;
        self.emit(cpu, EventKind::Switch { prev, next, out });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceCheck;
    use schedlab_model::trace::MemorySink;

    #[test]
    fn keeps_every_rule_and_repeats() {
        for (seed, nr_cpus, nr_tasks) in [(1, 1, 1), (2, 1, 9), (3, 4, 40), (4, 16, 300)] {
            let what = Synthetic { seed, nr_cpus, nr_tasks, nr_events: 20_000 };
            let (mut check, mut memory, mut again) =
                (TraceCheck::with_moves(), MemorySink::default(), MemorySink::default());
            what.play(&mut (&mut check, &mut memory));
            what.play(&mut again);
            assert_eq!(check.finish(), Ok(()), "seed {seed}");
            assert_eq!(memory.events, again.events);
            assert_eq!(memory.tasks.len(), nr_tasks as usize);
            assert!(memory.events.len() >= 20_000);
        }
    }
}
