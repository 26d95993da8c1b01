// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tasks share and wait on: mutexes, condition variables, barriers, semaphores, events,
//! channels.

use crate::trace::WaitKind;

/// What a mutex does about priority inversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MutexProtocol {
    /// Nothing: a normal mutex (PTHREAD_PRIO_NONE).
    #[default]
    None,
    /// The holder runs with the priority of the most important task that waits for it
    /// (PTHREAD_PRIO_INHERIT).
    Inherit,
    /// The holder runs with at least this priority (PTHREAD_PRIO_PROTECT).
    Ceiling {
        /// `sched_priority`, 1 to 99; no task above it may lock the mutex.
        rt_priority: u8,
    },
}

/// What a channel is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelKind {
    /// pipe(2).
    Pipe,
    /// socketpair(2), AF_UNIX, SOCK_STREAM; messages go one way.
    SocketPair,
}

/// Kind of an object, and what it starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    /// A mutex, unlocked.
    Mutex {
        /// What it does about priority inversion.
        protocol: MutexProtocol,
    },
    /// A condition variable.
    Condvar,
    /// A barrier.
    Barrier {
        /// Tasks that must come before any goes on, >= 1.
        parties: u32,
    },
    /// A semaphore.
    Semaphore {
        /// Its first value, at most [`SEM_VALUE_MAX`].
        initial: u32,
    },
    /// Something to suspend on: a resume wakes all that wait, and is lost if none does.
    Event,
    /// A stream of bytes from writers to readers.
    Channel {
        /// What it is made of.
        kind: ChannelKind,
        /// Bytes it holds before a writer must wait, 1 to [`CHANNEL_BYTES_MAX`].
        capacity_bytes: u64,
    },
}

/// Greatest value of a semaphore (SEM_VALUE_MAX of glibc).
pub const SEM_VALUE_MAX: u32 = i32::MAX as u32;

/// Bytes in a pipe: 16 pages of 4,096 bytes (pipe(7), "Pipe capacity").
pub const PIPE_BYTES: u64 = 65_536;

/// Bytes of a message that a pipe takes whole or not at all (PIPE_BUF, pipe(7)).
pub const PIPE_ATOMIC_BYTES: u64 = 4_096;

/// Largest capacity of a channel: what F_SETPIPE_SZ can ask for (fcntl(2)).
pub const CHANNEL_BYTES_MAX: u64 = 1 << 31;

impl ObjectKind {
    /// A normal mutex.
    pub const MUTEX: Self = Self::Mutex { protocol: MutexProtocol::None };

    /// A pipe of the kernel's default capacity.
    pub const PIPE: Self = Self::Channel { kind: ChannelKind::Pipe, capacity_bytes: PIPE_BYTES };

    /// The word for the kind, in messages and traces.
    pub fn name(self) -> &'static str {
        WaitKind::from(self).name()
    }

    /// Whether [`crate::Op::WaitAny`] can wait for it.
    pub const fn is_pollable(&self) -> bool {
        matches!(self, Self::Semaphore { .. } | Self::Channel { .. })
    }

    /// Whether its numbers are allowed; else what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (what, found, allowed) = match *self {
            Self::Barrier { parties: 0 } => ("parties", 0, "1 and more".to_owned()),
            Self::Semaphore { initial } if initial > SEM_VALUE_MAX => {
                ("value", u64::from(initial), format!("0 to {SEM_VALUE_MAX}"))
            }
            Self::Channel { capacity_bytes, .. }
                if !(1..=CHANNEL_BYTES_MAX).contains(&capacity_bytes) =>
            {
                ("capacity in bytes", capacity_bytes, format!("1 to {CHANNEL_BYTES_MAX}"))
            }
            Self::Mutex { protocol: MutexProtocol::Ceiling { rt_priority } }
                if !(1..=99).contains(&rt_priority) =>
            {
                ("ceiling", u64::from(rt_priority), "1 to 99".to_owned())
            }
            _ => return Ok(()),
        };
        Err(format!("its {what} is {found}, allowed are {allowed}"))
    }
}

/// An object of a workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectSpec {
    /// Name, unique in the workload.
    pub name: String,
    /// Kind.
    pub kind: ObjectKind,
}

impl ObjectSpec {
    /// An object.
    pub fn new(name: impl Into<String>, kind: ObjectKind) -> Self {
        Self { name: name.into(), kind }
    }
}
