// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons of a call. Names follow ENQUEUE_*, DEQUEUE_* and WF_* of Linux kernel/sched/sched.h.

use schedlab_model::{CpuId, TaskId};

/// Why a task is put on a runqueue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EnqueueFlags {
    /// The task wakes up.
    pub wakeup: bool,
    /// First enqueue of a new task (ENQUEUE_INITIAL).
    pub initial: bool,
    /// Put back after a change of attributes (ENQUEUE_RESTORE); pairs with `DequeueFlags::save`.
    pub restore: bool,
    /// Its queue position may change (ENQUEUE_MOVE).
    pub moved: bool,
    /// To the head of its list rather than the tail (ENQUEUE_HEAD).
    pub head: bool,
    /// It comes from another CPU (ENQUEUE_MIGRATED).
    pub migrated: bool,
    /// It is still queued with a delayed dequeue and becomes runnable again (ENQUEUE_DELAYED).
    pub delayed: bool,
}

impl EnqueueFlags {
    /// A wake-up.
    pub const WAKEUP: Self = Self { wakeup: true, ..Self::NONE };
    /// A new task.
    pub const INITIAL: Self = Self { initial: true, ..Self::NONE };
    /// No special reason.
    pub const NONE: Self = Self {
        wakeup: false,
        initial: false,
        restore: false,
        moved: false,
        head: false,
        migrated: false,
        delayed: false,
    };
}

/// Why a task is taken off a runqueue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DequeueFlags {
    /// The task blocks (DEQUEUE_SLEEP).
    pub sleep: bool,
    /// Taken off for a change of attributes and put back at once (DEQUEUE_SAVE).
    pub save: bool,
    /// Its queue position may change (DEQUEUE_MOVE).
    pub moved: bool,
    /// It exits: its dequeue must not be delayed (DEQUEUE_SPECIAL).
    pub special: bool,
}

impl DequeueFlags {
    /// The task blocks.
    pub const SLEEP: Self = Self { sleep: true, ..Self::NONE };
    /// No special reason.
    pub const NONE: Self = Self { sleep: false, save: false, moved: false, special: false };
}

/// What made a task runnable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeKind {
    /// A wake-up (WF_TTWU).
    Wakeup,
    /// A new task (WF_FORK).
    Fork,
}

/// Circumstances of a wake-up or fork (WF_*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeFlags {
    /// Wake-up or fork.
    pub kind: WakeKind,
    /// The waker is about to sleep (WF_SYNC).
    pub sync: bool,
    /// The CPU changed in this wake-up (WF_MIGRATED).
    pub migrated: bool,
    /// The CPU on which the wake-up happens: the waker's, or the one that handles the interrupt.
    pub this_cpu: CpuId,
    /// The task that wakes; `None` for a timer, a device or the launcher.
    pub waker: Option<TaskId>,
}

impl WakeFlags {
    /// A timer on CPU 0 wakes a task.
    pub const TIMER: Self = Self {
        kind: WakeKind::Wakeup,
        sync: false,
        migrated: false,
        this_cpu: CpuId(0),
        waker: None,
    };

    /// Whether a new task starts.
    pub fn is_fork(&self) -> bool {
        self.kind == WakeKind::Fork
    }
}
