// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operations of a program.

use super::Amount;
use crate::{ObjectId, SchedAttr};

/// How often a loop runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoopCount {
    /// This many times (0 skips the body).
    Times(u64),
    /// Until the run ends.
    Forever,
}

/// How the deadline of a periodic timer moves on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimerMode {
    /// rt-app's default: if the period has passed already, the next one counts from now.
    Relative,
    /// Period boundaries stay where they were planned, however late the task is.
    Absolute,
}

/// Direction of a transfer with the block device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IoDirection {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// How a program touches its memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemAccess {
    /// Loads that do not depend on each other.
    Read,
    /// Stores.
    Write,
    /// Each load gives the address of the next (a list is followed).
    Chase,
}

/// In which order a program touches its memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemPattern {
    /// By ascending address.
    Sequential,
    /// In random order.
    Random,
}

/// One operation.
///
/// What waits for another task names an object of the workload ([`crate::Workload::objects`]); the
/// kind that each needs is checked by [`crate::Workload::check`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Uses this much CPU time (ns).
    Run(Amount),
    /// Is busy until this much wall time (ns) has passed since the operation began.
    RunWall(Amount),
    /// Sleeps this long (ns).
    Sleep(Amount),
    /// Sleeps until the next period boundary of timer `timer` (numbered within the task).
    Timer {
        /// Timer number, an index below the task's count of timers.
        timer: u32,
        /// Period (ns), > 0.
        period: Amount,
        /// What happens after an overrun.
        mode: TimerMode,
    },
    /// Transfers bytes with the block device. `sync`: waits for the device (O_SYNC);
    /// otherwise copies through the page cache and goes on.
    Io {
        /// Direction.
        direction: IoDirection,
        /// Bytes of this transfer.
        bytes: Amount,
        /// Whether the task waits for the device.
        sync: bool,
    },
    /// Calls sched_yield(2).
    Yield,
    /// Creates a task from the task description with this index in [`crate::Workload::tasks`].
    Fork {
        /// Index of the description.
        task: u32,
    },
    /// Waits until every task that this task forked has exited.
    JoinAll,
    /// Waits until every task of one description that this task forked has exited.
    Join {
        /// Index of the description.
        task: u32,
    },
    /// Locks a mutex (pthread_mutex_lock). A task may not lock what it holds.
    Lock {
        /// A mutex.
        object: ObjectId,
    },
    /// Unlocks a mutex that the task holds (pthread_mutex_unlock).
    Unlock {
        /// A mutex.
        object: ObjectId,
    },
    /// Releases the mutex, waits for a signal and locks the mutex again (pthread_cond_wait). The
    /// task holds the mutex when it begins.
    Wait {
        /// A condition variable.
        condvar: ObjectId,
        /// The mutex that goes with it.
        mutex: ObjectId,
    },
    /// Wakes the task that has waited longest, if any does (pthread_cond_signal).
    Signal {
        /// A condition variable.
        object: ObjectId,
    },
    /// Wakes all that wait (pthread_cond_broadcast).
    Broadcast {
        /// A condition variable.
        object: ObjectId,
    },
    /// Signals, then waits, with the mutex held between the two (rt-app's `sync`).
    Sync {
        /// A condition variable.
        condvar: ObjectId,
        /// The mutex that goes with it.
        mutex: ObjectId,
    },
    /// Waits until as many tasks have come as the barrier has parties (pthread_barrier_wait).
    Barrier {
        /// A barrier.
        object: ObjectId,
    },
    /// Takes one from a semaphore, or waits until there is one (sem_wait).
    SemWait {
        /// A semaphore.
        object: ObjectId,
    },
    /// Adds one to a semaphore (sem_post).
    SemPost {
        /// A semaphore.
        object: ObjectId,
    },
    /// Waits for the next [`Op::Resume`] of the event (rt-app's `suspend`).
    Suspend {
        /// An event.
        object: ObjectId,
    },
    /// Wakes all that suspended themselves on the event; with nobody there it is lost (rt-app's
    /// `resume`).
    Resume {
        /// An event.
        object: ObjectId,
    },
    /// Writes this many bytes of the task's own memory, in order (rt-app's `mem`). The CPU time
    /// follows from the machine's [`crate::Memory`].
    Mem {
        /// Bytes.
        bytes: Amount,
    },
    /// Touches a buffer (rt-app's `memrun`). The CPU time follows from the machine's
    /// [`crate::Memory`].
    MemRun {
        /// Kind of access.
        access: MemAccess,
        /// Order of the accesses.
        pattern: MemPattern,
        /// Size of the buffer, > 0.
        size_bytes: u64,
        /// Distance of one access to the next of the sequential order, > 0.
        stride_bytes: u64,
        /// Number of accesses.
        count: Amount,
    },
    /// Writes one message into a channel (write(2)); waits while it does not fit.
    Send {
        /// A channel.
        channel: ObjectId,
        /// Bytes of the message.
        bytes: Amount,
    },
    /// Reads from a channel until this many bytes have come (read(2), repeated).
    Receive {
        /// A channel.
        channel: ObjectId,
        /// Bytes.
        bytes: Amount,
    },
    /// Waits until one object of a set is ready, as epoll_wait(2): a channel with bytes in it, a
    /// semaphore above 0. Takes nothing.
    WaitAny {
        /// Index into [`crate::Workload::wait_sets`].
        set: u32,
    },
    /// Ends the task.
    Exit,
    /// Changes the task's own scheduling attributes (sched_setattr, sched_setaffinity).
    SetAttr(Box<SchedAttr>),
    /// Starts a loop; `end` is the index of its [`Op::LoopEnd`].
    LoopBegin {
        /// Repetitions.
        count: LoopCount,
        /// Index of the matching [`Op::LoopEnd`].
        end: u32,
    },
    /// Ends a loop; `begin` is the index of its [`Op::LoopBegin`].
    LoopEnd {
        /// Index of the matching [`Op::LoopBegin`].
        begin: u32,
    },
    /// A phase starts; index into [`crate::TaskSpec::phases`]. Takes no time; goes to the trace.
    Phase(u32),
    /// One more unit of progress done (a record of study S0). Takes no time; goes to the trace.
    Progress,
}

impl Op {
    /// The word for the operation in messages; rt-app's where it has one.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::RunWall(_) => "runtime",
            Self::Sleep(_) => "sleep",
            Self::Timer { .. } => "timer",
            Self::Io { .. } => "iorun",
            Self::Yield => "yield",
            Self::Fork { .. } => "fork",
            Self::JoinAll | Self::Join { .. } => "join",
            Self::Lock { .. } => "lock",
            Self::Unlock { .. } => "unlock",
            Self::Wait { .. } => "wait",
            Self::Signal { .. } => "signal",
            Self::Broadcast { .. } => "broad",
            Self::Sync { .. } => "sync",
            Self::Barrier { .. } => "barrier",
            Self::SemWait { .. } => "sem_wait",
            Self::SemPost { .. } => "sem_post",
            Self::Suspend { .. } => "suspend",
            Self::Resume { .. } => "resume",
            Self::Mem { .. } => "mem",
            Self::MemRun { .. } => "memrun",
            Self::Send { .. } => "send",
            Self::Receive { .. } => "receive",
            Self::WaitAny { .. } => "wait_any",
            Self::Exit => "exit",
            Self::SetAttr(_) => "sched",
            Self::LoopBegin { .. } | Self::LoopEnd { .. } => "loop",
            Self::Phase(_) => "phase",
            Self::Progress => "progress",
        }
    }

    /// The amount that the operation draws, if it has one.
    pub const fn amount(&self) -> Option<&Amount> {
        match self {
            Self::Run(amount) | Self::RunWall(amount) | Self::Sleep(amount) => Some(amount),
            Self::Timer { period, .. } => Some(period),
            Self::Io { bytes, .. }
            | Self::Mem { bytes }
            | Self::Send { bytes, .. }
            | Self::Receive { bytes, .. } => Some(bytes),
            Self::MemRun { count, .. } => Some(count),
            _ => None,
        }
    }

    /// Whether the operation needs objects of the workload: it acts on another task, or waits for
    /// one.
    pub const fn uses_objects(&self) -> bool {
        matches!(
            self,
            Self::Lock { .. }
                | Self::Unlock { .. }
                | Self::Wait { .. }
                | Self::Signal { .. }
                | Self::Broadcast { .. }
                | Self::Sync { .. }
                | Self::Barrier { .. }
                | Self::SemWait { .. }
                | Self::SemPost { .. }
                | Self::Suspend { .. }
                | Self::Resume { .. }
                | Self::Send { .. }
                | Self::Receive { .. }
                | Self::WaitAny { .. }
        )
    }

    /// Whether the operation uses CPU time or may wait. Fork counts as none, so that an endless
    /// loop of forks, a fork bomb, is refused; the wait for a forked task is counted by the caller.
    pub(super) const fn takes_time(&self) -> bool {
        match self {
            Self::Run(amount) | Self::RunWall(amount) | Self::Sleep(amount) => {
                !amount.is_always_zero()
            }
            Self::Mem { bytes: amount }
            | Self::MemRun { count: amount, .. }
            | Self::Send { bytes: amount, .. }
            | Self::Receive { bytes: amount, .. } => !amount.is_always_zero(),
            Self::Timer { .. }
            | Self::Io { .. }
            | Self::Yield
            | Self::Exit
            | Self::Lock { .. }
            | Self::Wait { .. }
            | Self::Sync { .. }
            | Self::Barrier { .. }
            | Self::SemWait { .. }
            | Self::Suspend { .. }
            | Self::WaitAny { .. } => true,
            _ => false,
        }
    }
}
