// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of one task went.
//!
//! From its release to its exit a task is at every moment in exactly one of four states, and each
//! interval is booked once, when it ends: on a CPU (cpu_time), runnable (run_delay), asleep
//! (sleep), waiting for a device (blocked_io). Hence turnaround = cpu_time + run_delay + sleep +
//! blocked_io, exactly. An interval that the events contradict (some were lost) is booked as
//! `unaccounted`, so that the sum still holds and the hole is seen.

use crate::migrations::Migrations;
use crate::run_delay::RunDelay;
use crate::slice::Slices;
use crate::switches::SwitchCounts;
use crate::wakeup_latency::WakeupLatency;
use crate::{TaskMeasures, response, turnaround};
use schedlab_model::{CpuId, Nanos, SwitchOut};

/// What a task is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Known by name only.
    #[default]
    Unreleased,
    /// Alive, but events are missing: not known until the next one.
    Unknown,
    Queued,
    Running(CpuId),
    Sleeping,
    BlockedIo,
    Dead,
}

/// Account of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    state: State,
    /// When the state began.
    since_ns: Nanos,
    /// How many losses had been reported when the task was last seen.
    pub epoch: u32,
    /// Whether a figure may be wrong because events were lost.
    pub is_uncertain: bool,
    /// Whether the recording began in the midst of things, so that a task may have lived before.
    is_attached: bool,
    /// Whether it did: its release was not seen.
    is_release_unseen: bool,
    sleep_ns: Nanos,
    blocked_io_ns: Nanos,
    unaccounted_ns: Nanos,
    pub slices: Slices,
    pub run_delay: RunDelay,
    pub wakeup_latency: WakeupLatency,
    switches: SwitchCounts,
    pub migrations: Migrations,
    pub nr_progress: u64,
    release_ns: Nanos,
    first_run_ns: Option<Nanos>,
    exit_event_ns: Option<Nanos>,
    exit_ns: Option<Nanos>,
}

impl Account {
    /// An account of a task announced after `epoch` losses, in a recording that began with its
    /// tasks or, `is_attached`, in the midst of things.
    pub fn new(epoch: u32, is_attached: bool) -> Self {
        Self { epoch, is_attached, ..Self::default() }
    }

    /// The recording turns out to begin in the midst of things.
    pub fn attach(&mut self) {
        self.is_attached |= self.state == State::Unreleased;
    }

    /// The first event of a task that was not forked. True: the recording is attached, so the task
    /// lived before it and nothing is wrong.
    fn first_seen(&mut self, now: Nanos) -> bool {
        self.release_ns = now;
        self.is_release_unseen = self.is_attached;
        self.is_attached
    }

    /// Another task was found where this one ran: when it left is not known.
    pub fn vanish(&mut self, now: Nanos, cpu: CpuId) {
        if self.state == State::Running(cpu) {
            self.contradict(now);
            self.enter(State::Unknown, now);
        }
    }

    pub fn is_released(&self) -> bool {
        self.state != State::Unreleased
    }

    pub fn is_dead(&self) -> bool {
        self.state == State::Dead
    }

    fn enter(&mut self, state: State, now: Nanos) {
        self.state = state;
        self.since_ns = now;
    }

    /// Length of the interval that ends now.
    fn interval(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.since_ns)
    }

    /// The events do not fit together: the interval is unaccounted.
    fn contradict(&mut self, now: Nanos) {
        if self.state != State::Unreleased && self.state != State::Dead {
            self.unaccounted_ns += self.interval(now);
        }
        self.wakeup_latency.forget();
        self.is_uncertain = true;
    }

    /// Released by a fork. False: it had been released before.
    pub fn fork(&mut self, now: Nanos) -> bool {
        let fits = self.state == State::Unreleased;
        if fits {
            self.release_ns = now;
            self.enter(State::Queued, now);
        } else {
            self.is_uncertain = true;
        }
        fits
    }

    /// Woken; the first wake-up of a task that was not forked is its release.
    /// False: no task in this state can be woken.
    pub fn wakeup(&mut self, now: Nanos) -> bool {
        let interval = self.interval(now);
        match self.state {
            State::Unreleased => {
                if self.first_seen(now) {
                    self.wakeup_latency.woken();
                }
                self.enter(State::Queued, now);
            }
            State::Unknown => {
                self.contradict(now);
                self.enter(State::Queued, now);
            }
            State::Sleeping | State::BlockedIo => {
                if self.state == State::Sleeping {
                    self.sleep_ns += interval;
                } else {
                    self.blocked_io_ns += interval;
                }
                self.wakeup_latency.woken();
                self.enter(State::Queued, now);
            }
            // The kernel reports a wake-up of a task that has not left its queue or CPU yet.
            State::Queued | State::Running(_) => {}
            State::Dead => return false,
        }
        true
    }

    /// Begins to run. False: it was not runnable.
    pub fn switch_in(&mut self, now: Nanos, cpu: CpuId) -> bool {
        let mut fits = self.state == State::Queued;
        if fits {
            let wait = self.interval(now);
            self.run_delay.wait_ended(wait);
            self.wakeup_latency.wait_ended(wait);
        } else if self.state == State::Unreleased {
            fits = self.first_seen(now);
            self.is_uncertain |= !fits;
        } else {
            self.contradict(now);
            if self.state == State::Dead {
                self.exit_ns = None;
            }
        }
        self.first_run_ns.get_or_insert(now);
        self.enter(State::Running(cpu), now);
        fits
    }

    /// Stops running. False: it did not run on this CPU.
    pub fn switch_out(&mut self, now: Nanos, cpu: CpuId, out: SwitchOut) -> bool {
        let mut fits = self.state == State::Running(cpu);
        if fits {
            self.slices.ended(self.interval(now));
        } else if self.state == State::Unreleased {
            fits = self.first_seen(now);
            self.is_uncertain |= !fits;
        } else {
            self.contradict(now);
        }
        self.switches.count(out);
        let next = match out {
            // `Idle` names no task; a reader refuses it, and here the task is at least runnable.
            SwitchOut::Preempted | SwitchOut::Yielded | SwitchOut::Idle => State::Queued,
            SwitchOut::Sleeping => State::Sleeping,
            SwitchOut::BlockedIo => State::BlockedIo,
            SwitchOut::Dead => {
                self.exit_ns = Some(now);
                State::Dead
            }
        };
        self.enter(next, now);
        fits
    }

    /// The exit event: the task still holds its CPU until it is switched out as dead.
    pub fn exit(&mut self, now: Nanos) {
        self.exit_event_ns = Some(now);
    }

    /// The run is over: closes the open interval.
    pub fn close(&mut self, end_ns: Nanos) {
        if self.state == State::Dead || self.state == State::Unreleased {
            return;
        }
        // The exit event was seen, the last switch-out was not: the task ended there.
        let stop = self.exit_event_ns.map_or(end_ns, |exit| exit.max(self.since_ns));
        let interval = self.interval(stop);
        match self.state {
            State::Queued => self.run_delay.wait_cut_off(interval),
            State::Running(_) if self.exit_event_ns.is_some() => self.slices.ended(interval),
            State::Running(_) => self.slices.cut_off(interval),
            State::Sleeping => self.sleep_ns += interval,
            State::BlockedIo => self.blocked_io_ns += interval,
            State::Unknown => self.unaccounted_ns += interval,
            State::Unreleased | State::Dead => {}
        }
        if self.exit_event_ns.is_some() {
            self.exit_ns = Some(stop);
        }
        self.enter(State::Dead, stop);
    }

    /// The measures, `cpu_share` and what names the task left open.
    pub fn measures(&self) -> TaskMeasures {
        // What began before the recording has no length.
        let known = !self.is_release_unseen;
        let first_run_ns = self.first_run_ns.filter(|_| known);
        TaskMeasures {
            release_ns: self.release_ns,
            first_run_ns,
            exit_ns: self.exit_ns,
            response_ns: response::response_ns(self.release_ns, first_run_ns),
            turnaround_ns: turnaround::turnaround_ns(self.release_ns, self.exit_ns)
                .filter(|_| known),
            is_release_unseen: self.is_release_unseen,
            cpu_time_ns: self.slices.cpu_time_ns(),
            run_delay_ns: self.run_delay.total_ns(),
            sleep_ns: self.sleep_ns,
            blocked_io_ns: self.blocked_io_ns,
            unaccounted_ns: self.unaccounted_ns,
            nr_voluntary_switches: self.switches.voluntary,
            nr_involuntary_switches: self.switches.involuntary,
            nr_migrations: self.migrations.0,
            nr_wakeups: self.wakeup_latency.nr_wakeups(),
            nr_progress: self.nr_progress,
            wakeup_latency: self.wakeup_latency.samples().distribution(),
            wait: self.run_delay.waits().distribution(),
            slice: self.slices.samples().distribution(),
            is_uncertain: self.is_uncertain,
            ..TaskMeasures::default()
        }
    }
}
