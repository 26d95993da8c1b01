// SPDX-License-Identifier: MIT OR Apache-2.0
//! All schedulers, and the interface between a scheduler and the engine.
//!
//! A scheduler is a stack of scheduling classes ([`SchedClass`]) in order of priority, as in Linux
//! kernel/sched/. A class sees the shared state of the modelled kernel ([`Core`]) but not the
//! engine. [`boundary`] is that interface; the other modules are algorithms; [`registry`] is the
//! only list of schedulers.

pub mod balance;
pub mod boundary;
pub mod bugs;
pub mod cfs_early;
pub mod cfs_groups;
pub mod deadline;
pub mod fair;
pub mod kernels;
pub mod o1;
pub mod o_n;
pub mod registry;
pub mod rt;
pub mod scheduler;
pub mod staircase;
#[cfg(test)]
mod testing;
pub mod textbook;
pub mod wrr;

pub use boundary::class::{Balances, ClassTraits, SchedClass};
pub use boundary::core::{Core, LockDomain, PreemptCheck, Rq, Task, TaskState, TimerRequest};
pub use boundary::explain::{BandwidthStats, Explain};
pub use boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags, WakeKind};
pub use boundary::options::{OptionError, Options, Tunable, TunableKind, Words};
pub use boundary::user::{UserHalf, UserNext};
pub use scheduler::{Claims, Make, Scheduler, SourceDigest, Stack};
