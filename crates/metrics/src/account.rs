// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a task spent its time.
//!
//! Each stay in a state ([`crate::life`]) is added once, when it ends: to cpu_time (on a CPU),
//! run_delay (runnable), sleep, or blocked_io (waiting for a device). So turnaround = cpu_time +
//! run_delay + sleep + blocked_io, exactly. A stay that contradicts the events (some were lost) is
//! added to `unaccounted`, so that the sum still holds and the gap is visible.

use crate::life::{Life, Past, State, Step};
use crate::migrations::Migrations;
use crate::run_delay::RunDelay;
use crate::slice::Slices;
use crate::switches::SwitchCounts;
use crate::wakeup_latency::WakeupLatency;
use schedlab_model::{CpuId, Nanos, SwitchOut};

/// The account of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub life: Life,
    /// Number of reported losses when the last event of the task arrived.
    pub epoch: u32,
    pub sleep_ns: Nanos,
    pub blocked_io_ns: Nanos,
    pub unaccounted_ns: Nanos,
    pub slices: Slices,
    pub run_delay: RunDelay,
    pub wakeup_latency: WakeupLatency,
    pub switches: SwitchCounts,
    pub migrations: Migrations,
    pub nr_progress: u64,
    first_run_ns: Option<Nanos>,
}

impl Account {
    /// The account of a task that was announced after `epoch` losses. `is_attached`: the recording
    /// began on a running system, not with its tasks.
    pub fn new(epoch: u32, is_attached: bool) -> Self {
        Self { epoch, life: Life::new(is_attached), ..Self::default() }
    }

    /// Another task was found on its CPU, so the time when it left is unknown.
    pub fn vanish(&mut self, now: Nanos, cpu: CpuId) {
        if let Some(past) = self.life.vanish(now, cpu) {
            self.book(past);
        }
    }

    /// Adds a stay that has ended.
    #[inline]
    fn book(&mut self, past: Past) {
        if !past.is_known {
            self.unaccounted_ns += past.ns;
            self.wakeup_latency.forget();
            return;
        }
        match past.state {
            State::Queued => {
                self.run_delay.wait_ended(past.ns);
                self.wakeup_latency.wait_ended(past.ns);
            }
            State::Running(_) => self.slices.ended(past.ns),
            State::Sleeping => self.sleep_ns += past.ns,
            State::BlockedIo => self.blocked_io_ns += past.ns,
            State::Unknown | State::Unreleased | State::Dead => {}
        }
    }

    /// Adds the stay that a step ended. Returns false if the event contradicts the state.
    #[inline]
    fn step(&mut self, step: Step) -> bool {
        if let Some(past) = step.past {
            self.book(past);
        }
        step.fits
    }

    /// The task is released by a fork. Returns false if it had been released before.
    pub fn fork(&mut self, now: Nanos) -> bool {
        let step = self.life.fork(now);
        self.step(step)
    }

    /// The task is woken. The first wake-up of a task that was not forked is its release. Returns
    /// false if a task in this state cannot be woken.
    #[inline]
    pub fn wakeup(&mut self, now: Nanos) -> bool {
        let step = self.life.wakeup(now);
        let is_woken = step.past.is_some_and(|past| match past.state {
            State::Unreleased => self.life.is_release_unseen,
            state => matches!(state, State::Sleeping | State::BlockedIo),
        });
        if is_woken {
            self.wakeup_latency.woken();
        }
        self.step(step)
    }

    /// The task begins to run. Returns false if it was not runnable.
    #[inline]
    pub fn switch_in(&mut self, now: Nanos, cpu: CpuId) -> bool {
        self.first_run_ns.get_or_insert(now);
        let step = self.life.switch_in(now, cpu);
        self.step(step)
    }

    /// The task stops running. Returns false if it did not run on this CPU.
    #[inline]
    pub fn switch_out(&mut self, now: Nanos, cpu: CpuId, out: SwitchOut) -> bool {
        self.switches.count(out);
        let step = self.life.switch_out(now, cpu, out);
        self.step(step)
    }

    /// The run ends: adds the open stay.
    pub fn close(&mut self, end_ns: Nanos) {
        let has_exited = self.life.has_exited();
        let Some(past) = self.life.close(end_ns) else { return };
        match past.state {
            State::Queued => self.run_delay.wait_cut_off(past.ns),
            State::Running(_) if !has_exited => self.slices.cut_off(past.ns),
            _ => self.book(past),
        }
    }

    /// Asserts that the parts of the closed account of `task` add up. `life_ns` is the time from
    /// its release to its end; `None` if events contradict each other.
    pub fn assert_sums(&self, task: usize, life_ns: Option<Nanos>) {
        let (cpu, delay) = (self.slices.cpu_time_ns, self.run_delay.total_ns);
        if let Some(life_ns) = life_ns {
            let parts = cpu + delay + self.sleep_ns + self.blocked_io_ns + self.unaccounted_ns;
            assert_eq!(parts, life_ns, "task {task} lived {life_ns} ns, its parts are {self:?}");
        }
        let (slices, waits) = (self.slices.samples.sum(), self.run_delay.waits.sum());
        assert!(slices <= u128::from(cpu), "slices of {slices} ns in {cpu} ns of task {task}");
        assert!(waits <= u128::from(delay), "waits of {waits} ns in {delay} ns of task {task}");
        let (nr_wakeups, latency) = (self.wakeup_latency.nr_wakeups, &self.wakeup_latency.samples);
        let nr_runs = latency.count();
        assert!(nr_runs <= nr_wakeups, "{nr_wakeups} wake-ups of task {task}, {nr_runs} runs");
        let latency = latency.sum();
        assert!(latency <= waits, "task {task} waited {latency} of {waits} ns after wake-ups");
    }

    /// When the task first ran; `None` if it never did, or did before the recording began.
    pub fn first_run_ns(&self) -> Option<Nanos> {
        self.first_run_ns.filter(|_| !self.life.is_release_unseen)
    }
}
