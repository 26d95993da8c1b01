// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace for ui.perfetto.dev, in its own protobuf format.
//!
//! Switches and wake-ups are written like the kernel's (`compact_sched`), so the viewer shows its
//! native tracks per CPU and task, with the wait after each wake-up and its waker. The file also
//! has:
//!
//! - an arrow (flow) from a task that wakes or forks another to where that one first runs;
//! - a slice for each block on an object, until the wake-up;
//! - a slice for each phase, and a counter of finished units, on each task's track;
//! - a counter of a task's virtual runtime, and one of the tasks in each dispatch queue that ever
//!   holds one, if a simulator computes them;
//! - a counter of runnable tasks for each CPU (the running one included, as in the kernel's
//!   nr_running; tasks outside the run are left out).
//!
//! Memory is constant: 4,096 events per CPU, and some words per task. Source: Perfetto
//! protos/perfetto/trace/*.proto; the numbers in this file are their field numbers. A simulated
//! task's pid is its number + 1. Migrations need no events, because the viewer sees on which CPU a
//! task runs next.

use crate::names::Names;
use packets::{EventType, Packets, Unit};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{DispatchQueue, ObjectInfo, TaskInfo};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Write};

mod packets;
mod proto;
mod sched;
#[cfg(test)]
mod tests;

/// Kernel release that the state numbers belong to (any since 4.14 reads them alike).
const RELEASE: &str = "6.12.0";

/// The track of the run as a whole. The ids below are unique within the file, and short: most
/// events name one.
const TRACK_RUN: u64 = 1;

/// The counter of a CPU's runnable tasks.
fn cpu_track(cpu: CpuId) -> u64 {
    4 * (u64::from(cpu.0) + 1)
}

/// The track of a task's phases, blocks and arrows.
fn task_track(task: TaskId) -> u64 {
    4 * (u64::from(task.0) + 1) + 1
}

/// The counter of a task's finished units.
fn progress_track(task: TaskId) -> u64 {
    4 * (u64::from(task.0) + 1) + 2
}

/// The counter of a task's virtual runtime.
fn vruntime_track(task: TaskId) -> u64 {
    4 * (u64::from(task.0) + 1) + 3
}

/// The counter of the dispatch queue that was the `number`-th to hold a task, from 0.
fn queue_track(number: usize) -> u64 {
    QUEUE_TRACKS + 4 * number as u64
}

/// Above the tracks of CPUs, which have the same remainder.
const QUEUE_TRACKS: u64 = 1 << 40;

/// State of a task for counters and phases.
#[derive(Clone, Copy, Debug, Default)]
struct TaskState {
    /// The CPU on which it is runnable or running.
    runnable_on: Option<CpuId>,
    /// CPU it runs on.
    runs_on: Option<CpuId>,
    has_track: bool,
    has_open_phase: bool,
    has_open_block: bool,
    has_progress_track: bool,
    has_vruntime_track: bool,
    nr_progress: i64,
    /// The arrow that ends where it next runs.
    open_flow: Option<u64>,
}

/// Writes a Perfetto trace.
#[derive(Debug)]
pub struct PerfettoSink<W> {
    packets: Packets<W>,
    has_counters: bool,
    names: Names,
    phases: Vec<Vec<String>>,
    tasks: Vec<TaskState>,
    bundles: Vec<sched::Bundle>,
    /// Runnable tasks of each CPU; `None` before its counter track exists.
    nr_running: Vec<Option<i64>>,
    /// The track and the length of each dispatch queue that has held a task.
    queues: BTreeMap<DispatchQueue, (u64, u32)>,
    /// Number of arrows so far.
    nr_flows: u64,
}

impl<W: Write> PerfettoSink<W> {
    /// Writes to `writer`, with a buffer.
    pub fn new(writer: W) -> Self {
        Self {
            packets: Packets::new(writer, RELEASE),
            has_counters: true,
            names: Names::default(),
            phases: Vec::new(),
            tasks: Vec::new(),
            bundles: Vec::new(),
            nr_running: Vec::new(),
            queues: BTreeMap::new(),
            nr_flows: 0,
        }
    }

    /// Sets whether the file has counters (`vruntime`, `nr_running`, progress, lengths of queues).
    /// If tasks share CPUs, they are more than half of it. Default: yes.
    pub fn with_counters(mut self, has_counters: bool) -> Self {
        self.has_counters = has_counters;
        self
    }

    /// Sets the kernel's priority (`SchedAttr::kernel_prio`) of each description of the workload.
    /// The default is 120.
    pub fn with_prio(mut self, spec_prio: Vec<i32>) -> Self {
        self.names.set_prio(spec_prio);
        self
    }

    /// Sets the names of the phases of each description. The defaults are `phase 0`, `phase 1` ...
    pub fn with_phases(mut self, phases: Vec<Vec<String>>) -> Self {
        self.phases = phases;
        self
    }

    /// Returns the writer, or the first error.
    pub fn finish(mut self) -> io::Result<W> {
        for cpu in 0..self.bundles.len() {
            self.flush_bundle(cpu);
        }
        self.packets.finish()
    }

    fn flush_bundle(&mut self, cpu: usize) {
        if self.bundles[cpu].is_empty() {
            return;
        }
        let bundle = &mut self.bundles[cpu];
        self.packets.put(|packet| bundle.write(packet, cpu as u32));
    }

    /// Makes room for the state of a CPU. Returns false if the CPU is out of range.
    fn know_cpu(&mut self, cpu: CpuId) -> bool {
        if cpu.index() >= NR_CPUS_MAX {
            let what = format!("an event on CPU {cpu}; at most {NR_CPUS_MAX} CPUs are allowed");
            self.packets.fail(io::Error::new(io::ErrorKind::InvalidInput, what));
            return false;
        }
        if cpu.index() >= self.bundles.len() {
            self.bundles.resize(cpu.index() + 1, sched::Bundle::default());
            self.nr_running.resize(cpu.index() + 1, None);
        }
        true
    }

    fn switch(
        &mut self,
        event: &Event,
        prev: Option<TaskId>,
        next: Option<TaskId>,
        out: SwitchOut,
    ) {
        let cpu = event.cpu;
        let name = next.and_then(|task| Some((task, self.names.get(task)?)));
        if self.bundles[cpu.index()].switch(event.time_ns, out, name) {
            self.flush_bundle(cpu.index());
        }
        if let Some(state) = prev.and_then(|task| self.tasks.get_mut(task.index())) {
            state.runs_on = None;
        }
        if let Some(state) = next.and_then(|task| self.tasks.get_mut(task.index())) {
            state.runs_on = Some(cpu);
        }
        if let Some(next) = next {
            self.set_runnable(event.time_ns, next, Some(cpu));
            self.end_flow(event.time_ns, next);
        }
        if let (Some(prev), true) = (prev, out.is_voluntary()) {
            self.set_runnable(event.time_ns, prev, None);
            if out == SwitchOut::Dead {
                self.close_phase(event.time_ns, prev);
            }
        }
    }

    /// Writes the wake-up on the waker's CPU, because the viewer shows the running task of that CPU
    /// as the waker.
    fn waking(&mut self, event: &Event, task: TaskId, waker: Option<TaskId>) {
        let waker_cpu = waker.and_then(|waker| self.tasks.get(waker.index())?.runs_on);
        let on = waker_cpu.unwrap_or(event.cpu).index();
        self.close_block(event.time_ns, task);
        let Some(name) = self.names.get(task) else { return };
        let by_interrupt = waker_cpu.is_none();
        let waker = waker.filter(|_| !by_interrupt);
        if self.bundles[on].waking(event.time_ns, (task, name), event.cpu.0, by_interrupt) {
            self.flush_bundle(on);
        }
        if let Some(waker) = waker {
            self.begin_flow(event.time_ns, waker, task);
        }
        self.set_runnable(event.time_ns, task, Some(event.cpu));
    }

    /// Begins an arrow at an instant on the waker's track. A wake-up of a runnable task has no
    /// arrow.
    fn begin_flow(&mut self, time_ns: Nanos, waker: TaskId, task: TaskId) {
        let is_asleep = self.tasks.get(task.index()).is_some_and(|t| t.runnable_on.is_none());
        let Some(track) = self.task_track(waker).filter(|_| is_asleep) else { return };
        self.nr_flows += 1;
        let flow = self.nr_flows;
        self.tasks[task.index()].open_flow = Some(flow);
        self.packets.put_event(time_ns, EventType::Instant, track, Some("wakes"), |event| {
            proto::fixed64(event, 47, flow);
        });
    }

    /// Ends an arrow at an instant on the task's track, where it first runs.
    fn end_flow(&mut self, time_ns: Nanos, task: TaskId) {
        let state = self.tasks.get_mut(task.index());
        let Some(flow) = state.and_then(|state| state.open_flow.take()) else { return };
        let Some(track) = self.task_track(task) else { return };
        self.packets.put_event(time_ns, EventType::Instant, track, Some("woken"), |event| {
            proto::fixed64(event, 48, flow);
        });
    }

    /// Updates the counters of runnable tasks.
    fn set_runnable(&mut self, time_ns: Nanos, task: TaskId, on: Option<CpuId>) {
        let Some(state) = self.tasks.get_mut(task.index()) else { return };
        let was = std::mem::replace(&mut state.runnable_on, on);
        if was == on || !self.has_counters {
            return;
        }
        for (cpu, change) in [(was, -1), (on, 1)] {
            if let Some(cpu) = cpu {
                self.count(time_ns, cpu, change);
            }
        }
    }

    fn count(&mut self, time_ns: Nanos, cpu: CpuId, change: i64) {
        let track = cpu_track(cpu);
        if self.nr_running[cpu.index()].is_none() {
            let name = format!("CPU {cpu} nr_running");
            self.packets.put_counter_track(track, None, &name, Unit::Count);
        }
        let value = self.nr_running[cpu.index()].unwrap_or(0) + change;
        self.nr_running[cpu.index()] = Some(value);
        self.packets.count(time_ns, track, value);
    }

    /// The track of a task's phases, created when it is first needed.
    fn task_track(&mut self, task: TaskId) -> Option<u64> {
        let track = task_track(task);
        let state = self.tasks.get_mut(task.index())?;
        if !std::mem::replace(&mut state.has_track, true) {
            let name = self.names.get(task)?;
            self.packets.put_track(track, |track| {
                proto::message(track, 4, |thread| {
                    proto::number(thread, 1, u64::from(name.pid));
                    proto::number(thread, 2, u64::from(name.pid));
                    proto::bytes(thread, 5, name.comm.as_bytes());
                });
            });
        }
        Some(track)
    }

    /// Ends a block. It is inside the phase, so it ends first.
    fn close_block(&mut self, time_ns: Nanos, task: TaskId) {
        let Some(state) = self.tasks.get_mut(task.index()) else { return };
        if std::mem::replace(&mut state.has_open_block, false) {
            self.packets.put_event(time_ns, EventType::SliceEnd, task_track(task), None, |_| {});
        }
    }

    fn block(&mut self, time_ns: Nanos, task: TaskId, object: ObjectId) {
        let Some(track) = self.task_track(task) else { return };
        self.close_block(time_ns, task);
        self.tasks[task.index()].has_open_block = true;
        let what = self.names.object(object).unwrap_or("an unknown object");
        let name = format!("blocked on {what}");
        self.packets.put_event(time_ns, EventType::SliceBegin, track, Some(&name), |_| {});
    }

    fn close_phase(&mut self, time_ns: Nanos, task: TaskId) {
        self.close_block(time_ns, task);
        let Some(state) = self.tasks.get_mut(task.index()) else { return };
        if std::mem::replace(&mut state.has_open_phase, false) {
            self.packets.put_event(time_ns, EventType::SliceEnd, task_track(task), None, |_| {});
        }
    }

    fn phase(&mut self, time_ns: Nanos, task: TaskId, phase: u32) {
        let Some(track) = self.task_track(task) else { return };
        self.close_phase(time_ns, task);
        self.tasks[task.index()].has_open_phase = true;
        let spec = self.names.get(task).and_then(|name| name.spec);
        let names = spec.and_then(|spec| self.phases.get(spec as usize));
        let name = names.and_then(|names| names.get(phase as usize)).cloned();
        let name = name.unwrap_or_else(|| format!("phase {phase}"));
        self.packets.put_event(time_ns, EventType::SliceBegin, track, Some(&name), |_| {});
    }

    fn progress(&mut self, time_ns: Nanos, task: TaskId) {
        let Some(parent) = self.task_track(task) else { return };
        let track = progress_track(task);
        let state = &mut self.tasks[task.index()];
        state.nr_progress += 1;
        if !std::mem::replace(&mut state.has_progress_track, true) {
            self.packets.put_counter_track(track, Some(parent), "progress", Unit::Count);
        }
        self.packets.count(time_ns, track, state.nr_progress);
    }
}

impl<W: Write> TraceSink for PerfettoSink<W> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.names.add(id, info);
        self.tasks.push(TaskState::default());
        let Some(name) = self.names.get(id) else { return };
        let (pid, comm) = (u64::from(name.pid), &name.comm);
        self.packets.put(|packet| {
            proto::message(packet, 2, |tree| {
                proto::message(tree, 1, |process| {
                    proto::number(process, 1, pid);
                    proto::bytes(process, 3, comm.as_bytes());
                });
                proto::message(tree, 2, |thread| {
                    proto::number(thread, 1, pid);
                    proto::bytes(thread, 2, comm.as_bytes());
                    proto::number(thread, 3, pid);
                });
            });
        });
    }

    fn object(&mut self, _id: ObjectId, info: &ObjectInfo) {
        self.names.add_object(info);
    }

    fn event(&mut self, event: &Event) {
        if self.packets.has_failed() || !self.know_cpu(event.cpu) {
            return;
        }
        let now = event.time_ns;
        match event.kind {
            EventKind::Switch { prev, next, out } => self.switch(event, prev, next, out),
            EventKind::Wakeup { task, waker } => self.waking(event, task, waker),
            EventKind::Fork { task, parent } => self.waking(event, task, parent),
            EventKind::Migrate { task, .. } => {
                let is_runnable =
                    self.tasks.get(task.index()).is_some_and(|t| t.runnable_on.is_some());
                if is_runnable {
                    self.set_runnable(now, task, Some(event.cpu));
                }
            }
            EventKind::Phase { task, phase } => self.phase(now, task, phase),
            EventKind::Progress { task } if self.has_counters => self.progress(now, task),
            EventKind::Block { task, object } => self.block(now, task, object),
            // The switch-out as dead says it.
            EventKind::Exit { .. } | EventKind::Progress { .. } => {}
            EventKind::Lost { .. } => {
                self.flush_bundle(event.cpu.index());
                self.bundles[event.cpu.index()].lost();
            }
        }
    }

    fn wants_vruntime(&self) -> bool {
        self.has_counters
    }

    /// A counter below the track of the task.
    fn vruntime(&mut self, time_ns: Nanos, task: TaskId, value: i64) {
        if self.packets.has_failed() || !self.has_counters {
            return;
        }
        let Some(parent) = self.task_track(task) else { return };
        let track = vruntime_track(task);
        let state = &mut self.tasks[task.index()];
        if !std::mem::replace(&mut state.has_vruntime_track, true) {
            self.packets.put_counter_track(track, Some(parent), "vruntime", Unit::Ns);
        }
        self.packets.count(time_ns, track, value);
    }

    fn wants_queues(&self) -> bool {
        self.has_counters
    }

    fn queue_length(&mut self, time_ns: Nanos, queue: DispatchQueue, nr_tasks: u32) {
        if self.packets.has_failed() || !self.has_counters {
            return;
        }
        let number = self.queues.len();
        let track = match self.queues.entry(queue) {
            Entry::Vacant(_) if nr_tasks == 0 => return,
            Entry::Vacant(entry) => {
                let track = queue_track(number);
                entry.insert((track, nr_tasks));
                self.packets.put_counter_track(track, None, &queue.to_string(), Unit::Count);
                track
            }
            Entry::Occupied(mut entry) => {
                let (track, length) = entry.get_mut();
                if std::mem::replace(length, nr_tasks) == nr_tasks {
                    return;
                }
                *track
            }
        };
        self.packets.count(time_ns, track, nr_tasks.into());
    }

    fn end(&mut self, end_ns: Nanos) {
        for task in 0..self.tasks.len() as u32 {
            self.close_phase(end_ns, TaskId(task));
        }
        // Stretches the trace to its end: a slice that is still open would else stop at the last
        // event.
        self.packets.put_track(TRACK_RUN, |track| proto::bytes(track, 2, b"run"));
        let name = Some("end of run");
        self.packets.put_event(end_ns, EventType::Instant, TRACK_RUN, name, |_| {});
    }
}
