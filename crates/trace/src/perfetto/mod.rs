// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace for ui.perfetto.dev, in its own protobuf.
//!
//! Switches and wake-ups are written as the kernel's (`compact_sched`), so the viewer shows its
//! native tracks a CPU and a task, with the wait after each wake-up and who woke it. Beside them:
//! an arrow (flow) from each task that wakes or forks another to the moment at which that one first
//! runs; a slice a block on an object, from there to the wake-up; a slice a phase and a counter of
//! the finished units on each task's track; a counter of a task's virtual runtime, where a
//! simulator tells it; and a counter a CPU of runnable tasks (the one that runs included, the
//! kernel's nr_running; tasks outside the run are not in it). Constant memory: a bundle of 4,096
//! events a CPU, and some words a task.
//! Source: Perfetto protos/perfetto/trace/*.proto; the numbers in this file are their field
//! numbers. A simulated task's pid is its number + 1. Migrations need no event of their own: the
//! viewer sees on which CPU a task runs next.

use crate::names::Names;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use std::io::{self, Write};

mod proto;
mod sched;
#[cfg(test)]
mod tests;

/// Bytes gathered before a write.
const BUFFER: usize = 1 << 16;
/// One writer, one sequence of packets.
const SEQUENCE_ID: u64 = 1;

/// Kernel release that the state numbers belong to (any since 4.14 reads them alike).
const RELEASE: &str = "6.12.0";

/// TrackEvent.type.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// Track of a CPU's or a task's own things. Ids need only be unique within the file.
const TRACK_RUN: u64 = 1;
const TRACK_CPU: u64 = 1 << 40;
const TRACK_TASK: u64 = 2 << 40;
const TRACK_PROGRESS: u64 = 3 << 40;
const TRACK_VRUNTIME: u64 = 4 << 40;

/// What the counters and phases need to know of a task.
#[derive(Clone, Copy, Debug, Default)]
struct TaskState {
    /// CPU it is runnable on, running included.
    runnable_on: Option<CpuId>,
    /// CPU it runs on.
    runs_on: Option<CpuId>,
    has_track: bool,
    has_open_phase: bool,
    has_open_block: bool,
    has_progress_track: bool,
    has_vruntime_track: bool,
    nr_progress: u64,
    /// The arrow that ends where it runs next.
    open_flow: Option<u64>,
}

/// Writes a Perfetto trace.
#[derive(Debug)]
pub struct PerfettoSink<W> {
    writer: W,
    buffer: Vec<u8>,
    names: Names,
    phases: Vec<Vec<String>>,
    tasks: Vec<TaskState>,
    bundles: Vec<sched::Bundle>,
    /// Runnable tasks of each CPU; `None` before its counter track exists.
    nr_running: Vec<Option<i64>>,
    /// Arrows so far; the next one gets this number + 1.
    nr_flows: u64,
    error: Option<io::Error>,
}

impl<W: Write> PerfettoSink<W> {
    /// Writes to `writer`; it buffers.
    pub fn new(writer: W) -> Self {
        let mut sink = Self {
            writer,
            buffer: Vec::with_capacity(2 * BUFFER),
            names: Names::default(),
            phases: Vec::new(),
            tasks: Vec::new(),
            bundles: Vec::new(),
            nr_running: Vec::new(),
            nr_flows: 0,
            error: None,
        };
        sink.put(|packet| {
            proto::number(packet, 13, 1); // sequence_flags: incremental state cleared
            proto::message(packet, 45, |info| {
                proto::message(info, 1, |utsname| {
                    proto::bytes(utsname, 1, b"Linux");
                    proto::bytes(utsname, 3, RELEASE.as_bytes());
                });
            });
        });
        sink
    }

    /// Sets the kernel's priority (`SchedAttr::kernel_prio`) of each description of the workload;
    /// without it every task has 120.
    pub fn with_prio(mut self, spec_prio: Vec<i32>) -> Self {
        self.names.set_prio(spec_prio);
        self
    }

    /// Sets the names of the phases of each description; without them a phase is `phase 0`, `phase
    /// 1` ...
    pub fn with_phases(mut self, phases: Vec<Vec<String>>) -> Self {
        self.phases = phases;
        self
    }

    /// Gives the writer back, or the first error that occurred.
    pub fn finish(mut self) -> io::Result<W> {
        for cpu in 0..self.bundles.len() {
            self.flush_bundle(cpu);
        }
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => {
                self.writer.flush()?;
                Ok(self.writer)
            }
        }
    }

    fn flush(&mut self) {
        if self.error.is_none()
            && let Err(error) = self.writer.write_all(&self.buffer)
        {
            self.error = Some(error);
        }
        self.buffer.clear();
    }

    /// Appends a TracePacket.
    #[inline]
    fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        proto::message(&mut self.buffer, 1, |packet| {
            proto::number(packet, 10, SEQUENCE_ID);
            fill(packet);
        });
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn put_track(&mut self, uuid: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        self.put(|packet| {
            proto::message(packet, 60, |track| {
                proto::number(track, 1, uuid);
                fill(track);
            });
        });
    }

    fn put_track_event(
        &mut self,
        time_ns: Nanos,
        kind: u64,
        track: u64,
        fill: impl FnOnce(&mut Vec<u8>),
    ) {
        self.put(|packet| {
            proto::number(packet, 8, time_ns);
            proto::message(packet, 11, |event| {
                proto::number(event, 9, kind);
                proto::number(event, 11, track);
                fill(event);
            });
        });
    }

    fn flush_bundle(&mut self, cpu: usize) {
        if self.bundles[cpu].is_empty() {
            return;
        }
        let mut bundle = std::mem::take(&mut self.bundles[cpu]);
        self.put(|packet| bundle.write(packet, cpu as u32));
        self.bundles[cpu] = bundle;
    }

    /// Makes room for the state of a CPU. False: the CPU is out of range.
    fn know_cpu(&mut self, cpu: CpuId) -> bool {
        if cpu.index() >= NR_CPUS_MAX {
            let what = format!("an event on CPU {cpu}; at most {NR_CPUS_MAX} CPUs are allowed");
            let error = io::Error::new(io::ErrorKind::InvalidInput, what);
            self.error.get_or_insert(error);
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

    /// The wake-up goes to the CPU of the waker, for the viewer takes what runs there for the
    /// waker.
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

    /// An arrow begins at an instant on the track of the waker. A wake-up of a task that is
    /// runnable already wakes nobody.
    fn begin_flow(&mut self, time_ns: Nanos, waker: TaskId, task: TaskId) {
        let is_asleep = self.tasks.get(task.index()).is_some_and(|t| t.runnable_on.is_none());
        let Some(track) = self.task_track(waker).filter(|_| is_asleep) else { return };
        self.nr_flows += 1;
        let flow = self.nr_flows;
        self.tasks[task.index()].open_flow = Some(flow);
        self.put_track_event(time_ns, INSTANT, track, |event| {
            proto::bytes(event, 23, b"wakes");
            proto::fixed64(event, 47, flow);
        });
    }

    /// And ends at an instant on the track of the task, where it first runs.
    fn end_flow(&mut self, time_ns: Nanos, task: TaskId) {
        let state = self.tasks.get_mut(task.index());
        let Some(flow) = state.and_then(|state| state.open_flow.take()) else { return };
        let Some(track) = self.task_track(task) else { return };
        self.put_track_event(time_ns, INSTANT, track, |event| {
            proto::bytes(event, 23, b"woken");
            proto::fixed64(event, 48, flow);
        });
    }

    /// Keeps the counters of runnable tasks.
    fn set_runnable(&mut self, time_ns: Nanos, task: TaskId, on: Option<CpuId>) {
        let Some(state) = self.tasks.get_mut(task.index()) else { return };
        let was = std::mem::replace(&mut state.runnable_on, on);
        if was == on {
            return;
        }
        for (cpu, change) in [(was, -1), (on, 1)] {
            if let Some(cpu) = cpu {
                self.count(time_ns, cpu, change);
            }
        }
    }

    fn count(&mut self, time_ns: Nanos, cpu: CpuId, change: i64) {
        let track = TRACK_CPU + u64::from(cpu.0);
        if self.nr_running[cpu.index()].is_none() {
            self.put_track(track, |track| {
                proto::bytes(track, 2, format!("CPU {cpu} nr_running").as_bytes());
                proto::message(track, 8, |counter| proto::number(counter, 3, 2)); // unit: count
            });
        }
        let value = self.nr_running[cpu.index()].unwrap_or(0) + change;
        self.nr_running[cpu.index()] = Some(value);
        self.put_track_event(time_ns, COUNTER, track, |event| {
            proto::number(event, 30, value as u64);
        });
    }

    /// The track of a task's phases, made when first needed.
    fn task_track(&mut self, task: TaskId) -> Option<u64> {
        let track = TRACK_TASK + u64::from(task.0);
        let name = self.names.get(task)?;
        let (pid, comm) = (u64::from(name.pid), name.comm.clone());
        if !std::mem::replace(&mut self.tasks[task.index()].has_track, true) {
            self.put_track(track, |track| {
                proto::message(track, 4, |thread| {
                    proto::number(thread, 1, pid);
                    proto::number(thread, 2, pid);
                    proto::bytes(thread, 5, comm.as_bytes());
                });
            });
        }
        Some(track)
    }

    /// A block lies within the phase, so it ends first.
    fn close_block(&mut self, time_ns: Nanos, task: TaskId) {
        let Some(state) = self.tasks.get_mut(task.index()) else { return };
        if std::mem::replace(&mut state.has_open_block, false) {
            let track = TRACK_TASK + u64::from(task.0);
            self.put_track_event(time_ns, SLICE_END, track, |_| {});
        }
    }

    fn block(&mut self, time_ns: Nanos, task: TaskId, object: ObjectId) {
        let Some(track) = self.task_track(task) else { return };
        self.close_block(time_ns, task);
        self.tasks[task.index()].has_open_block = true;
        let what = self.names.object(object).unwrap_or("an unknown object");
        let name = format!("blocked on {what}");
        self.put_track_event(time_ns, SLICE_BEGIN, track, |event| {
            proto::bytes(event, 23, name.as_bytes());
        });
    }

    fn close_phase(&mut self, time_ns: Nanos, task: TaskId) {
        self.close_block(time_ns, task);
        let Some(state) = self.tasks.get_mut(task.index()) else { return };
        if std::mem::replace(&mut state.has_open_phase, false) {
            let track = TRACK_TASK + u64::from(task.0);
            self.put_track_event(time_ns, SLICE_END, track, |_| {});
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
        self.put_track_event(time_ns, SLICE_BEGIN, track, |event| {
            proto::bytes(event, 23, name.as_bytes());
        });
    }

    /// A counter on the track of the task: the one number of its scheduler that is told.
    fn vruntime(&mut self, time_ns: Nanos, task: TaskId, name: &str, value: i64) {
        let Some(parent) = self.task_track(task) else { return };
        let track = TRACK_VRUNTIME + u64::from(task.0);
        let state = &mut self.tasks[task.index()];
        if !std::mem::replace(&mut state.has_vruntime_track, true) {
            self.put_track(track, |track| {
                proto::number(track, 5, parent);
                proto::bytes(track, 2, name.as_bytes());
                proto::message(track, 8, |counter| proto::number(counter, 3, 1)); // unit: ns
            });
        }
        self.put_track_event(time_ns, COUNTER, track, |event| {
            proto::number(event, 30, value as u64);
        });
    }

    fn progress(&mut self, time_ns: Nanos, task: TaskId) {
        let Some(parent) = self.task_track(task) else { return };
        let track = TRACK_PROGRESS + u64::from(task.0);
        let state = &mut self.tasks[task.index()];
        state.nr_progress += 1;
        let value = state.nr_progress;
        if !std::mem::replace(&mut state.has_progress_track, true) {
            self.put_track(track, |track| {
                proto::number(track, 5, parent);
                proto::bytes(track, 2, b"progress");
                proto::message(track, 8, |counter| proto::number(counter, 3, 2));
            });
        }
        self.put_track_event(time_ns, COUNTER, track, |event| proto::number(event, 30, value));
    }
}

impl<W: Write> TraceSink for PerfettoSink<W> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.names.add(id, info);
        self.tasks.push(TaskState::default());
        let Some(name) = self.names.get(id) else { return };
        let (pid, comm) = (u64::from(name.pid), name.comm.clone());
        self.put(|packet| {
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
        if self.error.is_some() || !self.know_cpu(event.cpu) {
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
            EventKind::Progress { task } => self.progress(now, task),
            EventKind::Block { task, object } => self.block(now, task, object),
            // The switch-out as dead says it.
            EventKind::Exit { .. } => {}
            EventKind::Lost { .. } => {
                self.flush_bundle(event.cpu.index());
                self.bundles[event.cpu.index()].lost();
            }
        }
    }

    fn counter(&mut self, time_ns: Nanos, task: TaskId, name: &'static str, value: i64) {
        if self.error.is_none() && name == "vruntime" {
            self.vruntime(time_ns, task, name, value);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        for task in 0..self.tasks.len() as u32 {
            self.close_phase(end_ns, TaskId(task));
        }
        // Stretches the trace to its end: a slice that is still open would else stop at the last
        // event.
        self.put_track(TRACK_RUN, |track| proto::bytes(track, 2, b"run"));
        self.put_track_event(end_ns, INSTANT, TRACK_RUN, |event| {
            proto::bytes(event, 23, b"end of run");
        });
    }
}
