// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-made traces for the tests of the measures.

use crate::{Collector, RunMeasures};
use schedlab_model::trace::{ObjectInfo, TaskInfo, WaitKind};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};

/// A trace, written event by event. The CPU is 0 by default.
pub struct Script {
    pub nr_tasks: u32,
    /// Name and kind of the objects.
    pub objects: Vec<(&'static str, WaitKind)>,
    pub events: Vec<Event>,
    pub end_ns: Nanos,
}

impl Script {
    pub fn new(nr_tasks: u32) -> Self {
        Self { nr_tasks, objects: Vec::new(), events: Vec::new(), end_ns: 0 }
    }

    pub fn on(&mut self, time_ns: Nanos, cpu: u32, kind: EventKind) -> &mut Self {
        self.events.push(Event { time_ns, cpu: CpuId(cpu), kind });
        self
    }

    pub fn fork(&mut self, time_ns: Nanos, task: u32) -> &mut Self {
        self.on(time_ns, 0, EventKind::Fork { task: TaskId(task), parent: None })
    }

    pub fn wakeup(&mut self, time_ns: Nanos, task: u32) -> &mut Self {
        self.on(time_ns, 0, EventKind::Wakeup { task: TaskId(task), waker: None })
    }

    pub fn exit(&mut self, time_ns: Nanos, task: u32) -> &mut Self {
        self.on(time_ns, 0, EventKind::Exit { task: TaskId(task) })
    }

    pub fn migrate(&mut self, time_ns: Nanos, task: u32, from: u32, to: u32) -> &mut Self {
        self.on(time_ns, to, EventKind::Migrate { task: TaskId(task), from: CpuId(from) })
    }

    pub fn switch(
        &mut self,
        time_ns: Nanos,
        prev: Option<u32>,
        next: Option<u32>,
        out: SwitchOut,
    ) -> &mut Self {
        self.switch_on(0, time_ns, prev, next, out)
    }

    pub fn switch_on(
        &mut self,
        cpu: u32,
        time_ns: Nanos,
        prev: Option<u32>,
        next: Option<u32>,
        out: SwitchOut,
    ) -> &mut Self {
        let (prev, next) = (prev.map(TaskId), next.map(TaskId));
        self.on(time_ns, cpu, EventKind::Switch { prev, next, out })
    }

    pub fn end(&mut self, end_ns: Nanos) {
        self.end_ns = end_ns;
    }

    pub fn play(&self, sink: &mut impl TraceSink) {
        for (id, (name, kind)) in (0..).zip(&self.objects) {
            let info = ObjectInfo { name: (*name).into(), kind: *kind };
            sink.object(ObjectId(id), &info);
        }
        for id in 0..self.nr_tasks {
            let info = TaskInfo { name: format!("t{id}"), spec: Some(id), pid: 0 };
            sink.task(TaskId(id), &info);
        }
        for event in &self.events {
            sink.event(event);
        }
        sink.end(self.end_ns);
    }
}

/// The measures of a trace on `nr_cpus` CPUs.
pub fn measure(nr_cpus: u32, script: &Script) -> RunMeasures {
    let mut collector = Collector::new(nr_cpus);
    script.play(&mut collector);
    collector.finish()
}

/// Textbook schedules on one CPU with everything released at 0.
pub mod run {
    use super::*;
    use std::collections::VecDeque;

    /// First come, first served.
    pub fn fcfs(bursts: &[Nanos]) -> Script {
        round_robin(bursts, Nanos::MAX)
    }

    /// Round robin.
    pub fn round_robin(bursts: &[Nanos], quantum: Nanos) -> Script {
        let mut script = Script::new(bursts.len() as u32);
        let mut queue: VecDeque<(u32, Nanos)> = (0..).zip(bursts.iter().copied()).collect();
        for &(task, _) in &queue {
            script.fork(0, task);
        }
        let (mut now, mut prev, mut out) = (0, None, SwitchOut::Idle);
        while let Some((task, left)) = queue.pop_front() {
            if prev != Some(task) {
                script.switch(now, prev, Some(task), out);
            }
            let ran = left.min(quantum);
            now += ran;
            prev = Some(task);
            if left > quantum {
                out = SwitchOut::Preempted;
                queue.push_back((task, left - quantum));
            } else {
                out = SwitchOut::Dead;
                script.exit(now, task);
            }
        }
        script.switch(now, prev, None, out).end(now);
        script
    }
}
