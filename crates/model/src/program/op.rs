// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operations of a program.

use super::{Amount, SchedTunable};
use crate::random::Stream;
use crate::{Change, ObjectId, SchedAttr};

/// How often a loop runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum LoopCount {
    /// This many times (0 skips the body).
    Times(u64),
    /// Until the run ends.
    Forever,
}

/// When the next period of a periodic timer begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum TimerMode {
    /// rt-app's default: if the period has passed already, the next one counts from now.
    Relative,
    /// Period boundaries stay as planned, however late the task is.
    Absolute,
}

/// Direction of a transfer with the block device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum IoDirection {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// How a program touches its memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum MemAccess {
    /// Loads that do not depend on each other.
    Read,
    /// Stores.
    Write,
    /// Each load gives the address of the next, as when a list is followed.
    Chase,
}

/// The order in which a program accesses its memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum MemPattern {
    /// By ascending addresses.
    Sequential,
    /// In random order.
    Random,
}

/// One operation. This is the only list of operations: programs, their interpreter and the bytes
/// sent to a guest all use it.
///
/// `A` is the type of amounts, `S` that of scheduling attributes and `C` that of changes of groups.
/// A program holds `Op`, whose amounts are not drawn yet. The interpreter returns [`Step`], the
/// same operation with drawn amounts.
///
/// An operation that waits for another task names an object of the workload
/// ([`crate::Workload::objects`]). [`crate::Workload::check`] checks that the object is of the
/// right kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum Op<A = Amount, S = Box<SchedAttr>, C = Box<Change>> {
    /// Uses this much CPU time (ns) at full speed.
    Run(A),
    /// Computes until this much wall time (ns) has passed since the operation began.
    RunWall(A),
    /// Sleeps this long (ns).
    Sleep(A),
    /// Sleeps until the next period boundary of timer `timer` (numbered within the task).
    Timer {
        /// Timer number, an index below the task's count of timers.
        timer: u32,
        /// Period (ns), > 0.
        period: A,
        /// When the next period begins after an overrun.
        mode: TimerMode,
    },
    /// Transfers bytes with the block device. With `sync` it waits for the device (O_SYNC);
    /// without, it copies through the page cache and continues.
    Io {
        /// Direction.
        direction: IoDirection,
        /// Bytes of this transfer.
        bytes: A,
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
    /// Locks a mutex (pthread_mutex_lock). A task may not lock a mutex that it holds.
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
    /// task must hold the mutex before.
    Wait {
        /// A condition variable.
        condvar: ObjectId,
        /// The mutex used with it.
        mutex: ObjectId,
    },
    /// Wakes the task that has waited longest; no effect if none waits (pthread_cond_signal).
    Signal {
        /// A condition variable.
        object: ObjectId,
    },
    /// Wakes all waiting tasks (pthread_cond_broadcast).
    Broadcast {
        /// A condition variable.
        object: ObjectId,
    },
    /// Signals, then waits, and holds the mutex in between (rt-app's `sync`).
    Sync {
        /// A condition variable.
        condvar: ObjectId,
        /// The mutex used with it.
        mutex: ObjectId,
    },
    /// Waits until all parties of the barrier have arrived (pthread_barrier_wait).
    Barrier {
        /// A barrier.
        object: ObjectId,
    },
    /// Decrements a semaphore, or waits until it is above 0 (sem_wait).
    SemWait {
        /// A semaphore.
        object: ObjectId,
    },
    /// Increments a semaphore (sem_post).
    SemPost {
        /// A semaphore.
        object: ObjectId,
    },
    /// Waits for the next [`Op::Resume`] of the event (rt-app's `suspend`).
    Suspend {
        /// An event.
        object: ObjectId,
    },
    /// Wakes all tasks that wait for the event; no effect if none waits (rt-app's `resume`).
    Resume {
        /// An event.
        object: ObjectId,
    },
    /// Writes this many bytes of the task's own memory sequentially (rt-app's `mem`). The machine's
    /// [`crate::Memory`] determines the CPU time.
    Mem {
        /// Bytes.
        bytes: A,
    },
    /// Accesses a buffer (rt-app's `memrun`). The machine's [`crate::Memory`] determines the CPU
    /// time.
    MemRun {
        /// Kind of access.
        access: MemAccess,
        /// Order of the accesses.
        pattern: MemPattern,
        /// Size of the buffer, > 0.
        size_bytes: u64,
        /// Distance (bytes) from one sequential access to the next, > 0.
        stride_bytes: u64,
        /// Number of accesses.
        count: A,
    },
    /// Writes one message to a channel (write(2)). Waits until it fits.
    Send {
        /// A channel.
        channel: ObjectId,
        /// Bytes of the message.
        bytes: A,
    },
    /// Reads from a channel until this many bytes have arrived (read(2), repeated).
    Receive {
        /// A channel.
        channel: ObjectId,
        /// Bytes.
        bytes: A,
    },
    /// Waits until one object of a set is ready, as epoll_wait(2) does: a channel that holds bytes,
    /// or a semaphore above 0. It does not change the object.
    WaitAny {
        /// Index into [`crate::Workload::wait_sets`].
        set: u32,
    },
    /// Ends the task.
    Exit,
    /// Changes the task's own scheduling attributes (sched_setattr, sched_setaffinity).
    SetAttr(S),
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
    /// A phase starts; the number is an index into [`crate::TaskSpec::phases`]. Takes no time and
    /// is recorded in the trace.
    Phase(u32),
    /// The task has done one more unit of progress (a record of study S0). Takes no time and is
    /// recorded in the trace.
    Progress,
    /// Changes a control group: writes one of its files.
    Change(C),
    /// Sets a tunable of the scheduler, for the whole machine.
    Tune {
        /// The tunable.
        tunable: SchedTunable,
        /// Its value: a time (ns) or a number.
        value: u64,
    },
}

/// An operation as the interpreter returns it. Amounts are drawn (ns or bytes). What
/// [`Op::SetAttr`] and [`Op::Change`] hold is given as the index of the operation in
/// [`super::Program::ops`]. Loop marks do not occur, because the interpreter follows them.
pub type Step = Op<u64, u32, u32>;

impl<A, S, C> Op<A, S, C> {
    /// Name of the operation in messages; rt-app's name where it has one.
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
            Self::Change(_) => "change",
            Self::Tune { .. } => "tune",
            Self::LoopBegin { .. } | Self::LoopEnd { .. } => "loop",
            Self::Phase(_) => "phase",
            Self::Progress => "progress",
        }
    }

    /// The amount that the operation draws; `None` if it draws none.
    pub const fn amount(&self) -> Option<&A> {
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

    /// Whether the operation needs objects of the workload, because it acts on another task or
    /// waits for one.
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

    /// Whether the operation ends the task's CPU burst: the task blocks, yields or exits. Of the
    /// operations that may wait for another task only those count whose purpose is to wait. A lock
    /// is mostly free, and a channel mostly has room.
    pub const fn ends_burst(&self) -> bool {
        match self {
            Self::Sleep(_)
            | Self::Timer { .. }
            | Self::JoinAll
            | Self::Join { .. }
            | Self::Wait { .. }
            | Self::Sync { .. }
            | Self::Barrier { .. }
            | Self::SemWait { .. }
            | Self::Suspend { .. }
            | Self::Receive { .. }
            | Self::WaitAny { .. }
            | Self::Exit => true,
            Self::Io { sync, .. } => *sync,
            _ => false,
        }
    }
}

impl Op {
    /// Draws the amount from `stream`. `index` is the operation's index in the program.
    #[inline(never)]
    pub(crate) fn draw(&self, index: u32, stream: &mut Stream) -> Step {
        match *self {
            Self::Run(amount) => Step::Run(amount.draw(stream)),
            Self::RunWall(amount) => Step::RunWall(amount.draw(stream)),
            Self::Sleep(amount) => Step::Sleep(amount.draw(stream)),
            // A drawn period of 0 would make the task spin in no time.
            Self::Timer { timer, period, mode } => {
                Step::Timer { timer, period: period.draw(stream).max(1), mode }
            }
            Self::Io { direction, bytes, sync } => {
                Step::Io { direction, bytes: bytes.draw(stream), sync }
            }
            Self::Yield => Step::Yield,
            Self::Fork { task } => Step::Fork { task },
            Self::JoinAll => Step::JoinAll,
            Self::Join { task } => Step::Join { task },
            Self::Lock { object } => Step::Lock { object },
            Self::Unlock { object } => Step::Unlock { object },
            Self::Wait { condvar, mutex } => Step::Wait { condvar, mutex },
            Self::Signal { object } => Step::Signal { object },
            Self::Broadcast { object } => Step::Broadcast { object },
            Self::Sync { condvar, mutex } => Step::Sync { condvar, mutex },
            Self::Barrier { object } => Step::Barrier { object },
            Self::SemWait { object } => Step::SemWait { object },
            Self::SemPost { object } => Step::SemPost { object },
            Self::Suspend { object } => Step::Suspend { object },
            Self::Resume { object } => Step::Resume { object },
            Self::Mem { bytes } => Step::Mem { bytes: bytes.draw(stream) },
            Self::MemRun { access, pattern, size_bytes, stride_bytes, count } => {
                let count = count.draw(stream);
                Step::MemRun { access, pattern, size_bytes, stride_bytes, count }
            }
            Self::Send { channel, bytes } => Step::Send { channel, bytes: bytes.draw(stream) },
            Self::Receive { channel, bytes } => {
                Step::Receive { channel, bytes: bytes.draw(stream) }
            }
            Self::WaitAny { set } => Step::WaitAny { set },
            Self::Exit => Step::Exit,
            Self::SetAttr(_) => Step::SetAttr(index),
            Self::Change(_) => Step::Change(index),
            Self::Tune { tunable, value } => Step::Tune { tunable, value },
            Self::Phase(phase) => Step::Phase(phase),
            Self::Progress => Step::Progress,
            Self::LoopBegin { .. } | Self::LoopEnd { .. } => {
                unreachable!("the interpreter follows loop marks")
            }
        }
    }

    /// Whether the operation uses CPU time or may wait. A fork does not count, so that an endless
    /// loop of forks (a fork bomb) is refused. The caller counts the wait for a forked task.
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
