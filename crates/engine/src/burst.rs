// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU burst of the running task: first its time in the kernel, then that of the program.

use crate::cold_cache::ColdCaches;
use crate::engine::Engine;
use crate::kernel_mode::KernelMode;
use crate::pace::Pace;
use crate::timer_interrupt::TimerInterrupt;
use schedlab_model::{CpuId, Machine, Nanos, TaskId, TraceSink, Workload};

/// State of CPUs that influences how long a burst takes.
#[derive(Debug)]
pub(crate) struct Cpus {
    /// `Some` only if hardware threads slow each other.
    pub pace: Option<Pace>,
    pub kernel_mode: KernelMode,
    /// `Some` only if a task has a working set and the machine has caches.
    pub cold_caches: Option<ColdCaches>,
    pub timers: Vec<TimerInterrupt>,
    has_plain_bursts: bool,
}

impl Cpus {
    /// The CPUs of `machine`, all idle.
    pub fn new(machine: &Machine, workload: &Workload) -> Self {
        let (pace, kernel_mode) = (Pace::new(machine), KernelMode::new(machine));
        let has_plain_bursts = pace.is_none() && !kernel_mode.is_tracked();
        let cold_caches = ColdCaches::new(machine, workload);
        let timers = vec![TimerInterrupt::default(); machine.nr_cpus() as usize];
        Self { pace, kernel_mode, cold_caches, timers, has_plain_bursts }
    }

    /// Whether a burst is only a time: siblings do not slow it, and time in the kernel does not
    /// count.
    #[inline]
    pub fn has_plain_bursts(&self) -> bool {
        self.has_plain_bursts
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// `task` begins a burst on `cpu`: `in_kernel`, then `ns` of work. A task that is busy until a
    /// wall time ends the burst no earlier than that.
    #[inline(always)]
    pub(crate) fn start_burst(&mut self, cpu: CpuId, task: TaskId, in_kernel: Nanos, ns: Nanos) {
        if self.cpus.has_plain_bursts() {
            let end = self.tasks[task].plain_end(self.core.now, in_kernel, ns);
            self.clock.burst_ends.set(cpu, end);
        } else {
            self.start_paced_burst(cpu, task, in_kernel, ns);
        }
    }

    /// `task` begins a burst that consists of its pending costs and `in_kernel`.
    #[inline(always)]
    pub(crate) fn start_owed_burst(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        in_kernel: Nanos,
        ns: Nanos,
    ) {
        let exec = &mut self.tasks[task];
        let in_kernel = std::mem::take(&mut exec.overhead).saturating_add(in_kernel);
        if self.cpus.has_plain_bursts() {
            let end = exec.plain_end(self.core.now, in_kernel, ns);
            self.clock.burst_ends.set(cpu, end);
        } else {
            self.start_paced_burst(cpu, task, in_kernel, ns);
        }
    }

    /// `task` resumes its unfinished burst after its pending costs and `refill`.
    #[inline(always)]
    pub(crate) fn resume_burst(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        in_kernel: Nanos,
        refill: Nanos,
    ) {
        debug_assert_eq!(self.core.rq(cpu).curr, Some(task), "CPU {cpu} runs another task");
        let ns = self.tasks[task].remaining.saturating_add(refill);
        self.start_owed_burst(cpu, task, in_kernel, ns);
    }

    /// `task`, which leaves `cpu`, has finished its burst.
    #[inline]
    pub(crate) fn finish_burst(&mut self, cpu: CpuId, task: TaskId) {
        // A plain burst that continues with the program has ended.
        if self.cpus.has_plain_bursts() {
            debug_assert!(self.clock.burst_ends.get(cpu) <= self.core.now);
        } else {
            self.start_paced_burst(cpu, task, 0, 0);
        }
    }

    /// As [`Self::start_burst`], if siblings slow each other or time in the kernel counts.
    #[inline(never)]
    fn start_paced_burst(&mut self, cpu: CpuId, task: TaskId, in_kernel: Nanos, ns: Nanos) {
        let now = self.core.now;
        let busy = in_kernel.saturating_add(ns);
        let exec = &mut self.tasks[task];
        let wall = exec.wall_until;
        let end = match &mut self.cpus.pace {
            None => now.saturating_add(busy),
            Some(pace) => {
                // Without work, `ahead` stays for the next burst.
                let ahead = if busy > 0 { std::mem::take(&mut exec.ahead) } else { 0 };
                pace.start(cpu, now, busy, ahead)
            }
        };
        let end = wall.map_or(end, |wall| end.max(wall));
        debug_assert!(end >= now, "the burst of task {task} ends before it begins");
        self.clock.burst_ends.set(cpu, end);
        if self.cpus.kernel_mode.is_tracked() {
            let stretched =
                self.cpus.pace.as_ref().map_or(in_kernel, |p| p.stretch(cpu, in_kernel));
            self.enter_kernel(cpu, now.saturating_add(stretched).min(end));
        }
    }

    /// An interrupt takes `ns` from the running task of `cpu`: its burst ends later.
    pub(crate) fn extend_burst(&mut self, cpu: CpuId, ns: Nanos) {
        debug_assert!(self.core.rq(cpu).curr.is_some(), "idle CPU {cpu} has no burst to extend");
        let is_wall_bound = self.wall_until(cpu).is_some();
        let end = match &mut self.cpus.pace {
            // It keeps its task for a moment, and its burst is put away.
            Some(_) if self.clock.burst_ends.get(cpu) == Nanos::MAX => Nanos::MAX,
            Some(pace) if !is_wall_bound => pace.extend(cpu, ns),
            _ => self.clock.burst_ends.get(cpu).saturating_add(ns),
        };
        self.clock.burst_ends.set(cpu, end);
        let until = self.cpus.kernel_mode.until(cpu);
        if until > self.core.now {
            debug_assert!(!self.cpus.has_plain_bursts(), "CPU {cpu} is in a kernel not modelled");
            self.cpus.kernel_mode.move_return(cpu, until.saturating_add(ns));
        }
    }

    /// The wall time until which the running task of `cpu` is busy, if it has one.
    fn wall_until(&self, cpu: CpuId) -> Option<Nanos> {
        let curr = self.core.rq(cpu).curr?;
        self.tasks[curr].wall_until
    }

    /// `cpu` becomes busy or idle: the other threads of its core change their speed.
    #[inline]
    pub(crate) fn core_busy(&mut self, cpu: CpuId, busy: bool) {
        if self.cpus.pace.is_some() {
            self.repace_siblings(cpu, busy);
        }
    }

    fn repace_siblings(&mut self, cpu: CpuId, busy: bool) {
        let now = self.core.now;
        let Some(pace) = &mut self.cpus.pace else { return };
        if !pace.set_busy(cpu, busy) {
            return;
        }
        for index in 0..pace.threads(cpu).len() {
            let sibling = pace.threads(cpu)[index];
            let Some(curr) = self.core.rq(sibling).curr.filter(|_| sibling != cpu) else {
                continue;
            };
            // One that keeps its task for a moment has put its burst away.
            let spins = self.locks.as_ref().is_some_and(|locks| locks.spins(sibling));
            if spins || self.searches.as_ref().is_some_and(|searches| searches.runs(sibling)) {
                continue;
            }
            let in_kernel = self.cpus.kernel_mode.until(sibling).saturating_sub(now);
            let in_kernel = pace.at_full_speed(sibling, in_kernel);
            let end = pace.repace(sibling, now);
            let end = self.tasks[curr].wall_until.map_or(end, |wall| end.max(wall));
            self.clock.burst_ends.set(sibling, end);
            if in_kernel > 0 {
                let until = now.saturating_add(pace.stretch(sibling, in_kernel)).min(end);
                self.cpus.kernel_mode.move_return(sibling, until);
            }
        }
    }

    /// The burst of `task` on `cpu` has ended.
    #[inline]
    pub(crate) fn burst_ended(&mut self, cpu: CpuId, task: TaskId) {
        let Some(pace) = &self.cpus.pace else { return };
        let exec = &mut self.tasks[task];
        if exec.wall_until.is_none() {
            exec.ahead += pace.excess(cpu, self.core.now);
        }
    }

    /// `task` leaves `cpu`: records the rest of its burst, and since when it waits.
    #[inline(always)]
    pub(crate) fn keep_rest(&mut self, cpu: CpuId, task: TaskId) {
        debug_assert_eq!(self.core.rq(cpu).curr, Some(task), "the burst of CPU {cpu} is another's");
        let exec = &mut self.tasks[task];
        exec.runnable_since = self.core.now;
        let before = exec.remaining;
        if self.cpus.has_plain_bursts() {
            let left = self.clock.burst_ends.get(cpu).saturating_sub(self.core.now);
            let left = if exec.wall_until.is_some() { 0 } else { left };
            exec.remaining = left;
            self.count_work(task, left < before);
        } else {
            self.keep_paced_rest(cpu, task);
            self.count_work(task, self.tasks[task].remaining < before);
        }
    }

    /// As [`Self::keep_rest`], if siblings slow each other or time in the kernel counts.
    #[inline(never)]
    fn keep_paced_rest(&mut self, cpu: CpuId, task: TaskId) {
        let now = self.core.now;
        let exec = &mut self.tasks[task];
        // A task that is busy until a wall time has no CPU time left to use; only time must pass.
        exec.remaining = match &self.cpus.pace {
            _ if exec.wall_until.is_some() => 0,
            None => self.clock.burst_ends.get(cpu).saturating_sub(now),
            Some(pace) => {
                let rest = pace.rest(cpu, now);
                exec.ahead += rest.ahead;
                rest.ns
            }
        };
        if self.cpus.kernel_mode.is_tracked() {
            // A task preempted in the kernel continues there.
            let in_kernel = self.cpus.kernel_mode.until(cpu).saturating_sub(now);
            let in_kernel =
                self.cpus.pace.as_ref().map_or(in_kernel, |p| p.at_full_speed(cpu, in_kernel));
            let in_kernel = in_kernel.min(exec.remaining);
            exec.remaining -= in_kernel;
            exec.overhead = exec.overhead.saturating_add(in_kernel);
        }
    }
}
