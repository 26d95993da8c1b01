// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduling events of the kernel, whichever tool recorded them, and what makes a trace of
//! them. The readers of text and of binary recordings only find the events.

mod facts;
mod recording;
mod translate;

pub use facts::{Dialect, Facts};
pub use recording::BACK_MAX_NS;
pub(crate) use recording::{At, Recording};
pub use translate::WakeSource;
pub(crate) use translate::clean;
use translate::{Context, Translator};

use schedlab_model::SwitchOut;

/// Greatest process id: `PID_MAX_LIMIT` of a 64-bit kernel (include/linux/threads.h).
pub const PID_MAX: u32 = 4 << 20;

/// Longest name of a task in bytes. The kernel's are at most 15, those of its own threads 63; the
/// names of a simulated workload may be as long as the log allows.
pub const COMM_MAX: usize = crate::binary::NAME_MAX;

/// A task as an event names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Who<'a> {
    pub comm: &'a [u8],
    pub pid: u32,
}

/// Which of the three wake-up events it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wake {
    /// The wake-up has been decided, in the context of the waker.
    Waking,
    /// The task is on a queue.
    Wakeup,
    /// The first wake-up of a new task.
    New,
}

/// An event of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kernel<'a> {
    Switch { prev: Who<'a>, out: SwitchOut, next: Who<'a> },
    Wake { who: Who<'a>, cpu: Option<u32>, wake: Wake },
    Migrate { who: Who<'a>, from: u32, to: u32 },
    Fork { parent: Who<'a>, child: Who<'a> },
    Exit { who: Who<'a> },
    Exec { pid: u32, old_pid: u32 },
    Mark { text: &'a [u8] },
    Other,
}

/// How a task left its CPU, from the bits of prev_state: TASK_REPORT of include/linux/sched.h, 1 S,
/// 2 D, 4 T, 8 t, 0x10 X, 0x20 Z, 0x40 P; above it 0x80 I (its first bit was TASK_DEAD before
/// 4.14), and 0x100 for "preempted".
pub(crate) const fn switch_out_of_bits(bits: u64) -> SwitchOut {
    match bits {
        0 => SwitchOut::Preempted,
        bits if bits & 0x100 != 0 => SwitchOut::Preempted,
        bits if bits & 0x30 != 0 => SwitchOut::Dead,
        bits if bits & 2 != 0 => SwitchOut::BlockedIo,
        _ => SwitchOut::Sleeping,
    }
}
