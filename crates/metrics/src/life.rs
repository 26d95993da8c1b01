// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives the states of a task from its events.
//!
//! From its release to its exit a task is always in exactly one state. Each stay in a state is
//! returned once, when it ends, so the caller's sums add up to the task's life. A stay that
//! contradicts the events (some were lost) is returned as unknown, so that the sum still holds and
//! the gap is visible.

use schedlab_model::trace::Found;
use schedlab_model::{CpuId, Nanos, SwitchOut, TaskId};

/// What a task is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum State {
    /// Announced, but not released.
    #[default]
    Unreleased,
    /// Alive, but events are missing: unknown until the next event.
    Unknown,
    Queued,
    Running(CpuId),
    Sleeping,
    BlockedIo,
    Dead,
}

impl State {
    /// The task that a recording finds at its start, where, and in which state; none: an idle CPU.
    pub const fn found(found: Found) -> Option<(TaskId, CpuId, Self)> {
        match found {
            Found::Runs { task: None, .. } => None,
            Found::Runs { cpu, task: Some(task) } => Some((task, cpu, Self::Running(cpu))),
            Found::Waits { task, cpu } => Some((task, cpu, Self::Queued)),
            Found::Sleeps { task, cpu, is_device: false } => Some((task, cpu, Self::Sleeping)),
            Found::Sleeps { task, cpu, is_device: true } => Some((task, cpu, Self::BlockedIo)),
        }
    }

    /// On a run queue or on a CPU.
    pub const fn is_runnable(self) -> bool {
        matches!(self, Self::Queued | Self::Running(_))
    }
}

/// A stay in a state that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Past {
    /// The state; for an unknown stay the state that was assumed.
    pub state: State,
    /// Its length (ns); 0 before the release and after the exit.
    pub ns: Nanos,
    /// Whether the events confirm it.
    pub is_known: bool,
}

/// The effect of an event on a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// The stay that it ended; `None`: the state continues.
    pub past: Option<Past>,
    /// Whether the event fits the task's state.
    pub fits: bool,
}

/// The life of one task from release to exit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub state: State,
    /// When the present state began.
    pub since_ns: Nanos,
    /// Whether a figure may be wrong because events were lost.
    pub is_uncertain: bool,
    /// Whether the recording began on a running system, so that the task may have lived before.
    is_attached: bool,
    /// Whether the task lived before the recording, so that its release was not seen.
    pub is_release_unseen: bool,
    pub release_ns: Nanos,
    exit_event_ns: Option<Nanos>,
    pub exit_ns: Option<Nanos>,
}

impl Life {
    /// A task that was announced. `is_attached`: the recording began on a running system, not with
    /// its tasks.
    pub fn new(is_attached: bool) -> Self {
        Self { is_attached, ..Self::default() }
    }

    /// The recording turns out to have begun on a running system.
    pub fn attach(&mut self) {
        self.is_attached |= self.state == State::Unreleased;
    }

    pub fn is_released(&self) -> bool {
        self.state != State::Unreleased
    }

    pub fn is_dead(&self) -> bool {
        self.state == State::Dead
    }

    /// The first event of a task that was not forked. Returns true if the recording began on a
    /// running system: the task lived before it, and nothing is wrong.
    fn first_seen(&mut self, now: Nanos) -> bool {
        self.release_ns = now;
        self.is_release_unseen = self.is_attached;
        self.is_attached
    }

    /// Ends the present stay and begins another.
    #[inline]
    fn enter(&mut self, state: State, now: Nanos) -> Past {
        let ns = match self.state {
            State::Unreleased | State::Dead => 0,
            _ => now.saturating_sub(self.since_ns),
        };
        let past = Past { state: self.state, ns, is_known: self.state != State::Unknown };
        self.state = state;
        self.since_ns = now;
        past
    }

    /// Ends the present stay as unknown and begins another, because the events contradict each
    /// other.
    fn contradict(&mut self, state: State, now: Nanos) -> Past {
        self.is_uncertain = true;
        Past { is_known: false, ..self.enter(state, now) }
    }

    /// A part of a longer trace begins with the task in this state.
    pub fn found(&mut self, state: State, now: Nanos) -> Past {
        self.release_ns = now;
        self.is_release_unseen = true;
        self.enter(state, now)
    }

    /// Released by a fork. It does not fit if it had been released before.
    pub fn fork(&mut self, now: Nanos) -> Step {
        if self.state != State::Unreleased {
            self.is_uncertain = true;
            return Step { past: None, fits: false };
        }
        self.release_ns = now;
        Step { past: Some(self.enter(State::Queued, now)), fits: true }
    }

    /// The task is woken. The first wake-up of a task that was not forked is its release. A task
    /// that exited cannot be woken.
    #[inline]
    pub fn wakeup(&mut self, now: Nanos) -> Step {
        let past = match self.state {
            State::Unreleased => {
                self.first_seen(now);
                Some(self.enter(State::Queued, now))
            }
            State::Unknown => Some(self.contradict(State::Queued, now)),
            State::Sleeping | State::BlockedIo => Some(self.enter(State::Queued, now)),
            // The kernel reports a wake-up of a task that has not left its queue or CPU yet.
            State::Queued | State::Running(_) | State::Dead => None,
        };
        Step { past, fits: self.state != State::Dead }
    }

    /// The task begins to run. The event fits if it was runnable.
    #[inline]
    pub fn switch_in(&mut self, now: Nanos, cpu: CpuId) -> Step {
        let to = State::Running(cpu);
        match self.state {
            State::Queued => Step { past: Some(self.enter(to, now)), fits: true },
            State::Unreleased => self.appear(to, now),
            was => {
                if was == State::Dead {
                    self.exit_ns = None;
                }
                Step { past: Some(self.contradict(to, now)), fits: false }
            }
        }
    }

    /// The task stops running. The event fits if it ran on this CPU.
    #[inline]
    pub fn switch_out(&mut self, now: Nanos, cpu: CpuId, out: SwitchOut) -> Step {
        let to = match out {
            // `Idle` names no task; a reader refuses it, and here the task is at least runnable.
            SwitchOut::Preempted | SwitchOut::Yielded | SwitchOut::Idle => State::Queued,
            SwitchOut::Sleeping => State::Sleeping,
            SwitchOut::BlockedIo => State::BlockedIo,
            SwitchOut::Dead => State::Dead,
        };
        if to == State::Dead {
            self.exit_ns = Some(now);
        }
        if self.state == State::Running(cpu) {
            return Step { past: Some(self.enter(to, now)), fits: true };
        }
        if self.state == State::Unreleased {
            return self.appear(to, now);
        }
        Step { past: Some(self.contradict(to, now)), fits: false }
    }

    /// A switch is the first event of the task.
    fn appear(&mut self, to: State, now: Nanos) -> Step {
        let fits = self.first_seen(now);
        self.is_uncertain |= !fits;
        Step { past: Some(self.enter(to, now)), fits }
    }

    /// Another task was found on its CPU, so the time when it left is unknown.
    pub fn vanish(&mut self, now: Nanos, cpu: CpuId) -> Option<Past> {
        (self.state == State::Running(cpu)).then(|| self.contradict(State::Unknown, now))
    }

    /// The exit event: the task still has its CPU until it is switched out as dead.
    pub fn exit(&mut self, now: Nanos) {
        self.exit_event_ns = Some(now);
    }

    /// Whether the exit event was seen.
    pub fn has_exited(&self) -> bool {
        self.exit_event_ns.is_some()
    }

    /// The run ends. Returns the stay that is cut off.
    pub fn close(&mut self, end_ns: Nanos) -> Option<Past> {
        if matches!(self.state, State::Dead | State::Unreleased) {
            return None;
        }
        // The exit event was seen, the last switch-out was not: the task ended there.
        let stop = self.exit_event_ns.map_or(end_ns, |exit| exit.max(self.since_ns));
        assert!(stop >= self.since_ns, "{:?} since {} ends at {stop}", self.state, self.since_ns);
        if self.exit_event_ns.is_some() {
            self.exit_ns = Some(stop);
        }
        Some(self.enter(State::Dead, stop))
    }
}
